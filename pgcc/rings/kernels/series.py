"""A program over truncated polynomials in t: z is t for variables observed 1, 0 for observed 0, 1 for unobserved.

Of every value u, L coefficients are kept. The bottom ones are those of 1, t, …, t^(L−1). The top ones are those of
t^D(u) and lower powers, where D(u) is a bound on the degree of u: the formal degree, or |A ∩ scope(u)| for sums that
are known to be multiaffine, whose higher coefficients cancel. Polynomials are multiplied term by term, not by FFT, so
that small coefficients keep their digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.walk import Operations, number_system, walk
from pgcc.program.program import DET, DETMAG, LEAF, SUM, TIMES

HUGE = 2**40  # stands for all degrees from here on


@bare_kernel
def _add_convolution(out, to, length, shift, weight, x, y):
    """out[to + i + j + shift] += weight · x_i · y_j, below `length`; x, y : an array, where it begins, and a degree."""
    (xs, at_x, dx), (ys, at_y, dy) = x, y
    for i in range(dx + 1):
        factor = weight * xs[at_x + i]
        if factor != 0.0:
            low, high = max(0, -shift - i), min(dy, length - 1 - shift - i)
            for j in range(low, high + 1):
                out[to + i + j + shift] += factor * ys[at_y + j]


@kernel
def count_ones(codes):
    """|A|, the number of variables observed 1."""
    total = 0
    for code in codes:
        total += code == 1
    return total


class Degrees(NamedTuple):
    """The number system of degree bounds in t, for one row of evidence. Every value must have a slot of its own.

    cap_scope[cap_start[i] : cap_start[i + 1]] : the variables of the value of instruction i, if it is known to be
    multiaffine.
    """

    leaf_variable: np.ndarray
    cap_start: np.ndarray
    cap_scope: np.ndarray
    codes: np.ndarray
    degree: np.ndarray


def _leaf_degree(system, i, at, number):
    v = system.leaf_variable[number]
    system.degree[at] = 1 if v >= 0 and system.codes[v] == 1 else 0


def _no_degree(system, i, at):
    system.degree[at] = 0


def _times_degree(system, at, x):
    system.degree[at] = min(HUGE, system.degree[at] + system.degree[x])


def _add_degree(system, at, k, x):
    system.degree[at] = max(system.degree[at], system.degree[x])


def _add_product_degree(system, at, k, x, y):
    system.degree[at] = max(system.degree[at], min(HUGE, system.degree[x] + system.degree[y]))


def _cap_degree(system, i, at):
    """The degree of a multiaffine value is at most |A ∩ scope|."""
    first, last = system.cap_start[i], system.cap_start[i + 1]
    if first < last:
        inside = 0
        for j in range(first, last):
            inside += system.codes[system.cap_scope[j]] == 1
        system.degree[at] = min(system.degree[at], inside)


def _determinant_degree(system, i, at, op, args):
    """Every term of a determinant has one factor of each pair (f, y). A bound on its error (DETMAG) has no degree."""
    degree, k, total = system.degree, len(args) // 2, 0
    if op != DET and op != DETMAG:
        raise ValueError("there is no rule for the degree of an instruction of this kind")
    for j in range(1, k + 1 if op == DET else 1):
        total = min(HUGE, total + max(degree[args[j]], degree[args[k + j]]))
    degree[at] = total


number_system(
    Degrees,
    Operations(
        _leaf_degree, _no_degree, _times_degree, _no_degree, _add_degree, _add_product_degree, _cap_degree, _cap_degree,
        _determinant_degree,
    ),
)  # fmt: skip


class Numbers(NamedTuple):
    """The numbers of a program."""

    weights: np.ndarray
    leaf_variable: np.ndarray
    leaf_table: np.ndarray


class Series(NamedTuple):
    """The number system of polynomials with `length` coefficients, for one row of evidence.

    top : whether the top coefficients are kept, from t^degree[slot] downwards, or the bottom ones, from 1 upwards.
    degree : degree bounds of the values. Top coefficients need them beforehand (`Degrees`); bottom ones compute them on
    the way, without the caps of multiaffine sums. work : the coefficients of slot s from s · stride on. spare : memory
    for one polynomial. constant : the polynomial 1. so_far : the degree of an unfinished product.
    """

    numbers: Numbers
    codes: np.ndarray
    top: bool
    length: int
    stride: int
    degree: np.ndarray
    work: np.ndarray
    spare: np.ndarray
    constant: np.ndarray
    so_far: np.ndarray


def _leaf(system, i, at, number):
    table, v, work = system.numbers.leaf_table, system.numbers.leaf_variable[number], system.work
    code = 2 if v < 0 or system.codes[v] < 0 else system.codes[v]
    here = at * system.stride
    for k in range(system.length):
        work[here + k] = 0.0
    if not system.top:
        system.degree[at] = code == 1
    if code == 1:  # a + b·t
        work[here] = table[number, 1 if system.top else 0]
        if system.length > 1:
            work[here + 1] = table[number, 0 if system.top else 1]
    else:
        work[here] = table[number, code]


def _one(system, i, at):
    _zero(system, i, at)
    system.work[at * system.stride] = 1.0
    system.so_far[0] = 0


def _times(system, at, x):
    length, stride, degree, work, spare = system.length, system.stride, system.degree, system.work, system.spare
    so_far, here = system.so_far[0], at * stride
    for k in range(length):
        spare[k] = 0.0
    dx, dy = min(so_far, length - 1), min(degree[x], length - 1)
    _add_convolution(spare, 0, length, 0, 1.0, (work, here, dx), (work, x * stride, dy))
    for k in range(length):
        work[here + k] = spare[k]
    system.so_far[0] = min(HUGE, so_far + degree[x])
    if not system.top:
        degree[at] = system.so_far[0]


@bare_kernel
def _zero(system, i, at):
    here, work = at * system.stride, system.work
    for k in range(system.length):
        work[here + k] = 0.0
    if not system.top:
        system.degree[at] = 0


def _add(system, at, k, x):
    length, stride, degree, work = system.length, system.stride, system.degree, system.work
    shift, most = degree[at] - degree[x] if system.top else 0, min(degree[x], length - 1)
    weight = system.numbers.weights[k]
    _add_convolution(work, at * stride, length, shift, weight, (work, x * stride, most), (system.constant, 0, 0))
    if not system.top:
        degree[at] = max(degree[at], degree[x])


def _add_product(system, at, k, x, y):
    length, stride, degree, work = system.length, system.stride, system.degree, system.work
    shift = degree[at] - degree[x] - degree[y] if system.top else 0
    dx, dy, weight = min(degree[x], length - 1), min(degree[y], length - 1), system.numbers.weights[k]
    _add_convolution(work, at * stride, length, shift, weight, (work, x * stride, dx), (work, y * stride, dy))
    if not system.top:
        degree[at] = max(degree[at], min(HUGE, degree[x] + degree[y]))


def _empty(system, i, at):
    _zero(system, i, at)


number_system(Series, Operations(_leaf, _one, _times, _empty, _add, _add_product))


@kernel
def find_slack(code, degree, roots, observed, slack):
    """slack[s] = how many coefficients below the top one slot s must keep, −1 for none at all; returns the largest.

    That is −1 if the degree of the root is below |A|: the coefficient of t^|A| is 0.
    """
    op, target, start, args, first_weight = code
    slack[:] = -1
    for r in range(len(roots)):
        slack[roots[r]] = max(slack[roots[r]], degree[roots[r]] - observed)
    for i in range(len(op) - 1, -1, -1):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF or slack[at] < 0:
            continue
        lowest = degree[at] - slack[at]
        if kind == TIMES:
            total = 0
            for j in range(first, last):
                total += degree[args[j]]
            for j in range(first, last):
                slack[args[j]] = max(slack[args[j]], total - lowest)
        elif kind == SUM:
            pairs = first + 2 * (first_weight[i + 1] - first_weight[i]) - (last - first)  # where terms w·x·y begin
            for j in range(first, pairs):
                slack[args[j]] = max(slack[args[j]], degree[args[j]] - lowest)
            for j in range(pairs, last, 2):
                x, y = args[j], args[j + 1]
                slack[x] = max(slack[x], degree[x] + degree[y] - lowest)
                slack[y] = max(slack[y], degree[x] + degree[y] - lowest)
        else:
            raise ValueError("an instruction that truncated polynomials do not know")
    most = -1
    for value in slack:
        most = max(most, value)
    return most


@kernel
def top_lengths(code, leaf_variable, caps, evidence, roots, slots, lengths):
    """lengths[row] = how many top coefficients the row needs; 0 if the degree is below |A|.

    code : Instructions. caps : cap_start, cap_scope (see `Degrees`).
    """
    degree, slack = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    for row in range(evidence.shape[0]):
        walk(code, Degrees(leaf_variable, caps[0], caps[1], evidence[row], degree), 0, len(code.op))
        lengths[row] = find_slack(code, degree, roots, count_ones(evidence[row]), slack) + 1
        if degree.max() == HUGE:
            lengths[row] = HUGE


@kernel
def run_series(code, numbers, caps, top, evidence, roots, slots, limit, out, lengths):
    """out[r, row] = coefficient of t^|A| at slot roots[r], by the top or the bottom coefficients.

    code : Instructions. numbers : Numbers. caps : as in `top_lengths`. lengths[row] = how many coefficients were kept;
    0 if the result is 0 because of the degree; −1 if more than `limit` were needed, and nothing was computed.
    """
    degree, slack = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    so_far = np.zeros(1, np.int64)
    capacity = 1
    work, spare, constant = np.zeros(slots), np.zeros(1), np.ones(1)
    for row in range(evidence.shape[0]):
        codes, observed = evidence[row], count_ones(evidence[row])
        if top:
            walk(code, Degrees(numbers.leaf_variable, caps[0], caps[1], codes, degree), 0, len(code.op))
            length = find_slack(code, degree, roots, observed, slack) + 1
            if degree.max() == HUGE:
                length = -1
        else:
            length = observed + 1
        if length > limit:
            length = -1
        lengths[row] = length
        if length <= 0:
            continue
        if length > capacity:
            capacity = length
            work, spare = np.zeros(slots * capacity), np.zeros(capacity)
        system = Series(numbers, codes, top, length, capacity, degree, work, spare, constant, so_far)
        walk(code, system, 0, len(code.op))
        for r in range(len(roots)):
            out[r, row] = work[roots[r] * capacity + (degree[roots[r]] - observed if top else observed)]

"""A program over truncated polynomials in t: z = t for variables observed 1, 0 for observed 0, 1 for the free ones.

The bottom coefficients are those of 1, t, …, t^(L−1). The top ones are, of every value u, the L coefficients from
t^D(u) downwards, where D(u) is a bound on its degree: the formal degree, or |A ∩ scope(u)| at sums that are known to
be multiaffine, whose higher coefficients cancel. Products are direct: small coefficients keep their digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.program.program import LEAF, TIMES
from pgcc.rings.kernels.walk import Operations, complete, no_determinant, number_system, walk

HUGE = 2**40  # degrees stop here: they are then no longer told apart


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
    """|A|"""
    total = 0
    for code in codes:
        total += code == 1
    return total


class Degrees(NamedTuple):
    """The bounds on degrees in t as a number system, for one row of evidence: a sum has the largest of its terms'.

    Every value must have a slot of its own. cap_start, cap_scope : of multiaffine values, the variables of the scope.
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
    """A multiaffine value has at most |A ∩ scope|."""
    first, last = system.cap_start[i], system.cap_start[i + 1]
    if first < last:
        inside = 0
        for j in range(first, last):
            inside += system.codes[system.cap_scope[j]] == 1
        system.degree[at] = min(system.degree[at], inside)


number_system(
    Degrees,
    Operations(
        _leaf_degree, _no_degree, _times_degree, _no_degree, _add_degree, _add_product_degree, _cap_degree, _cap_degree,
        no_determinant,
    ),
)  # fmt: skip


class Numbers(NamedTuple):
    """The numbers of a program."""

    weights: np.ndarray
    leaf_variable: np.ndarray
    leaf_table: np.ndarray


class Series(NamedTuple):
    """The number system of `length` coefficients, for one row of evidence.

    top : whether those are the highest ones, from t^degree[slot] downwards; otherwise, the lowest ones, from 1 upwards.
    degree : bounds on those of the values; the top coefficients need them beforehand (`Degrees`), the bottom ones find
    them on the way, without caps. work : the coefficients of slot s from s · stride on. spare : room for those of a
    value. so_far : the degree of a product.
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


number_system(Series, Operations(_leaf, _one, _times, _empty, _add, _add_product, complete, complete, no_determinant))


@kernel
def find_slack(code, degree, roots, observed, slack):
    """How many coefficients below the top one each value must keep (−1: none at all); the largest of them.

    −1 altogether where the degree of the root is below |A|: the coefficient is 0.
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
        else:
            alone = first + 2 * (first_weight[i + 1] - first_weight[i]) - (last - first)  # where the pairs begin
            for j in range(first, alone):
                slack[args[j]] = max(slack[args[j]], degree[args[j]] - lowest)
            for j in range(alone, last, 2):
                x, y = args[j], args[j + 1]
                slack[x] = max(slack[x], degree[x] + degree[y] - lowest)
                slack[y] = max(slack[y], degree[x] + degree[y] - lowest)
    most = -1
    for value in slack:
        most = max(most, value)
    return most


@kernel
def top_lengths(code, leaf_variable, caps, evidence, roots, slots, lengths):
    """How many top coefficients per value each row needs; 0 where the degree is below |A|.

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

    code : Instructions. numbers : Numbers. caps : as in `top_lengths`. lengths[row] = how many coefficients were kept,
    or 0 where the result is 0 by degree, or −1 where more than `limit` would be needed: nothing was computed.
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

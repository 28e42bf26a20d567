"""A program over truncated polynomials in t: z = t for variables observed 1, 0 for observed 0, 1 for the free ones.

The bottom coefficients are those of 1, t, …, t^(L−1). The top ones are, of every value u, the L coefficients from
t^D(u) downwards, where D(u) is a bound on its degree: the formal degree, or |A ∩ scope(u)| at sums that are known to
be multiaffine, whose higher coefficients cancel. Products are direct: small coefficients keep their digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import LEAF, TIMES
from pgcc.rings.kernels.walk import Operations, complete, no_determinant, number_system, walk

HUGE = 2**40  # degrees stop here: they are then no longer told apart


@kernel
def _add_convolution(out, x, y, weight, shift, dx, dy):
    """out[i + j + shift] += weight · x[i] · y[j]; x and y have dx + 1 and dy + 1 entries."""
    length = len(out)
    for i in range(dx + 1):
        factor = weight * x[i]
        if factor != 0.0:
            low, high = max(0, -shift - i), min(dy, length - 1 - shift - i)
            for j in range(low, high + 1):
                out[i + j + shift] += factor * y[j]


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
    degree : of every value. work : slots × coefficients. spare : room for as many. so_far : the degree of a product.
    """

    numbers: Numbers
    codes: np.ndarray
    top: bool
    length: int
    degree: np.ndarray
    work: np.ndarray
    spare: np.ndarray
    constant: np.ndarray
    so_far: np.ndarray


def _leaf(system, i, at, number):
    table, v = system.numbers.leaf_table[number], system.numbers.leaf_variable[number]
    code = 2 if v < 0 or system.codes[v] < 0 else system.codes[v]
    here = system.work[at, : system.length]
    here[:] = 0.0
    if code == 1:  # a + b·t
        here[0] = table[1] if system.top else table[0]
        if system.length > 1:
            here[1] = table[0] if system.top else table[1]
    else:
        here[0] = table[code]


def _one(system, i, at):
    system.work[at, : system.length] = 0.0
    system.work[at, 0] = 1.0
    system.so_far[0] = 0


def _times(system, at, x):
    length, degree = system.length, system.degree
    here, spare = system.work[at, :length], system.spare[:length]
    spare[:] = 0.0
    _add_convolution(spare, here, system.work[x], 1.0, 0, min(system.so_far[0], length - 1), min(degree[x], length - 1))
    here[:] = spare
    system.so_far[0] += degree[x]


def _zero(system, i, at):
    system.work[at, : system.length] = 0.0


def _add(system, at, k, x):
    length, degree = system.length, system.degree
    shift = degree[at] - degree[x] if system.top else 0
    here, most = system.work[at, :length], min(degree[x], length - 1)
    _add_convolution(here, system.work[x], system.constant, system.numbers.weights[k], shift, most, 0)


def _add_product(system, at, k, x, y):
    length, degree, work = system.length, system.degree, system.work
    shift = degree[at] - degree[x] - degree[y] if system.top else 0
    dx, dy = min(degree[x], length - 1), min(degree[y], length - 1)
    _add_convolution(work[at, :length], work[x], work[y], system.numbers.weights[k], shift, dx, dy)


number_system(Series, Operations(_leaf, _one, _times, _zero, _add, _add_product, complete, complete, no_determinant))


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
    work, spare, constant = np.zeros((slots, 1)), np.zeros(1), np.ones(1)
    for row in range(evidence.shape[0]):
        codes, observed = evidence[row], count_ones(evidence[row])
        walk(code, Degrees(numbers.leaf_variable, caps[0], caps[1], codes, degree), 0, len(code.op))
        if top:
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
            work, spare = np.zeros((slots, capacity)), np.zeros(capacity)
        walk(code, Series(numbers, codes, top, length, degree, work, spare, constant, so_far), 0, len(code.op))
        for r in range(len(roots)):
            out[r, row] = work[roots[r], degree[roots[r]] - observed if top else observed]

"""Error analysis of a program before it runs: one walk over its instructions, in the order in which they run.

Every slot has a `State`, which bounds the value that it holds at that moment of the run, for any evidence. An
instruction computes the state of its result from those of its arguments, so slots may be reused.

A computed value is the true one with factors (1 + δ), |δ| ≤ 2⁻⁵³, on its terms, plus an absolute error by underflow: a
product below 2⁻¹⁰²² is rounded to a multiple of 2⁻¹⁰⁷⁴. Logarithms are natural ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import LEAF, LOOKUP, PAIR, QUOTIENT, SUM, TIMES

# log of a bound above which products are normal numbers, even if they are off by a factor of two; and log 2⁻¹⁰²².
_NORMAL, LEAST_NORMAL = -1021 * math.log(2.0), -1022 * math.log(2.0)
# log of what rounding to a multiple of 2⁻¹⁰⁷⁴ loses, at most.
LOSS = -1074 * math.log(2.0)
# Stands for an infinite logarithm, in sums and differences that must not be NaN.
ENDLESS = 1e12


class State(NamedTuple):
    """Bounds on some values and on their errors, for any evidence.

    Attributes
    ----------
    rounds : float64 array
        An upper bound on the number of factors (1 + δ) on any term of a value.
    high : float64 array
        log of the largest absolute value; −inf if the value is always 0.
    low : float64 array
        log of the least absolute value above 0; `ENDLESS` if there is none.
    error : float64 array
        log of the absolute error by underflow; −inf if there is none.
    positive : uint8 array
        Whether the value is never negative.
    """

    rounds: np.ndarray
    high: np.ndarray
    low: np.ndarray
    error: np.ndarray
    positive: np.ndarray


def nothing_known(values: int) -> State:
    """The states of values that are all 0."""
    return State(
        np.zeros(values), np.full(values, -math.inf), np.full(values, ENDLESS), np.full(values, -math.inf),
        np.ones(values, np.uint8),
    )  # fmt: skip


@kernel
def log_add(a, b):
    """log(exp(a) + exp(b))"""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


@kernel
def _product(x_high, x_low, x_error, y_high, y_low, y_error, log_length):
    """(high, low, error) of a rounded product x·y.

    If x and y are series of exp(log_length) coefficients, `high` bounds the sum of the coefficients, and `error` is the
    largest error of a coefficient.
    """
    if x_high == -math.inf or y_high == -math.inf:
        return -math.inf, ENDLESS, -math.inf
    error = log_add(log_add(x_error + y_high, x_high + y_error), x_error + y_error + log_length)
    low = x_low + y_low if error == -math.inf else -ENDLESS
    if low < _NORMAL:
        low, error = -ENDLESS, log_add(error, LOSS + log_length)
    return x_high + y_high, max(low, -ENDLESS), min(error, ENDLESS)


@kernel
def _weighted(weight, high, low, error):
    """(high, low, error) of w·x, given log |w|. A subnormal weight has an error itself; ±1 rounds nothing."""
    if weight == 0.0:
        return high, low, error
    lost = weight < LEAST_NORMAL
    return _product(weight, -ENDLESS if lost else weight, LOSS if lost else -math.inf, high, low, error, 0.0)


@kernel
def _quotient(x_high, x_low, x_error, y_high, y_low, y_error):
    """(high, low, error) of x / y, for x that is 0 wherever y is. If y is below 2⁻¹⁰²², the kernel writes 0."""
    if x_high == -math.inf or y_high == -math.inf:
        return -math.inf, ENDLESS, -math.inf
    if y_error > -math.inf or y_low < _NORMAL:
        return ENDLESS, -ENDLESS, ENDLESS
    error = x_error - y_low
    low = x_low - y_high if error == -math.inf else -ENDLESS
    if low < _NORMAL:
        low, error = -ENDLESS, log_add(error, LOSS)
    return x_high - y_low, low, error


class Read(NamedTuple):
    """The operands of instructions other than slots.

    Attributes
    ----------
    log_weights, negative : float64 and bool arrays
        log |w| of every weight, and whether it is negative.
    leaves, lookups : State
        The states of the operands of LEAF (or PAIR) and of LOOKUP.
    """

    log_weights: np.ndarray
    negative: np.ndarray
    leaves: State
    lookups: State


class Arithmetic(NamedTuple):
    """How values are computed.

    Attributes
    ----------
    length : int
        The most coefficients of a value; 1 for numbers.
    weight_first : bool
        Whether w·x·y is computed as (w·x)·y; otherwise as w·(x·y).
    """

    length: int
    weight_first: bool


@kernel
def walk(code, begin, end, read, arithmetic, state):
    """Update the states of the slots that instructions begin … end − 1 write, none of them a determinant.

    code : Instructions. read : Read. arithmetic : Arithmetic. Returns the first instruction of an unknown kind, or
    `end` if there is none.
    """
    op, target, start, args, first_weight = code
    log_weights, negative, leaves, lookups = read
    length, weight_first = arithmetic
    count, high, low, error, positive = state
    log_length = math.log(length)
    for i in range(begin, end):
        kind, first, last, at, k = op[i], start[i], start[i + 1], target[i], first_weight[i]
        if kind in (LEAF, PAIR):
            x = args[first]
            count[at], high[at], low[at] = leaves.rounds[x], leaves.high[x], leaves.low[x]
            error[at], positive[at] = leaves.error[x], leaves.positive[x]
        elif kind == LOOKUP:
            x = args[first]
            count[at], high[at], low[at] = lookups.rounds[x], lookups.high[x], lookups.low[x]
            error[at], positive[at] = lookups.error[x], lookups.positive[x]
        elif kind == TIMES:  # from left to right
            total, h, least, e, sign = 0.0, 0.0, 0.0, -math.inf, 1
            for j in range(first, last):
                x = args[j]
                total, sign = total + count[x] + length, sign & positive[x]
                if j == first:
                    h, least, e = high[x], low[x], error[x]
                else:
                    h, least, e = _product(h, least, e, high[x], low[x], error[x], log_length)
            count[at], high[at], low[at], error[at], positive[at] = total, h, least, e, sign
        elif kind == QUOTIENT:  # three roundings: the division, the weight, and the product with it
            x, y = args[first], args[first + 1]
            h, least, e = _quotient(high[x], low[x], error[x], high[y], low[y], error[y])
            high[at], low[at], error[at] = _weighted(log_weights[k], h, least, e)
            count[at], positive[at] = count[x] + count[y] + 3.0, positive[x] & positive[y] & (not negative[k])
        elif kind == SUM:
            # a term has the roundings of its weight, of a product, and of as many additions as there are terms
            total, h, least, e, sign = 0.0, -math.inf, ENDLESS, -math.inf, 1
            terms, j = first_weight[i + 1] - k, first
            alone = 2 * terms - (last - first)  # terms w·x; the others are w·x·y
            for term in range(terms):
                x, w = args[j], log_weights[k]
                here, th, tl, te = count[x] + 2.0, high[x], low[x], error[x]
                plus = positive[x] & (not negative[k])
                if term < alone:
                    th, tl, te = _weighted(w, th, tl, te)
                    total, j = max(total, here), j + 1
                else:
                    y = args[j + 1]
                    if weight_first:
                        th, tl, te = _weighted(w, th, tl, te)
                        th, tl, te = _product(th, tl, te, high[y], low[y], error[y], log_length)
                    else:
                        th, tl, te = _product(th, tl, te, high[y], low[y], error[y], log_length)
                        th, tl, te = _weighted(w, th, tl, te)
                    total, plus, j = max(total, here + count[y] + length), plus & positive[y], j + 2
                if th > -math.inf:
                    h, least, e, sign = log_add(h, th), min(least, tl), log_add(e, te), sign & plus
                k += 1
            # a coefficient of a product of two series is a sum of up to `length` terms
            count[at] = total + alone + (terms - alone) * length
            high[at], error[at], positive[at] = h, e, sign
            low[at] = least if sign and e == -math.inf else -ENDLESS if h > -math.inf else ENDLESS
        else:
            return i
    return end

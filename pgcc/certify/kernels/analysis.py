"""What can be said of a program's errors before it runs: one walk over its instructions, in the order it runs them.

Every value has a `State`. A product or a sum of computed values gets its own from those of its arguments, so that the
walk may follow slots that are used again and again: it says what the kernels have in them at that moment.

A computed value is the true one with factors (1 + δ) on its terms, |δ| ≤ 2⁻⁵³, and off by an absolute error besides:
a product below 2⁻¹⁰²² is rounded to a multiple of 2⁻¹⁰⁷⁴. Logarithms are natural ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import LEAF, LOOKUP, PAIR, QUOTIENT, SUM, TIMES

# Products above it are normal numbers, also if they are off by a factor of two. 2⁻¹⁰²² itself.
_NORMAL, LEAST_NORMAL = -1021 * math.log(2.0), -1022 * math.log(2.0)
# What rounding to a multiple of 2⁻¹⁰⁷⁴ loses, at most; and a complex product, which takes four.
LOSS, COMPLEX_LOSS = -1074 * math.log(2.0), -1072 * math.log(2.0)
# A logarithm that stands for infinity: differences of it are numbers.
ENDLESS = 1e12


class State(NamedTuple):
    """What is known of some values, whatever the evidence is.

    Attributes
    ----------
    rounds : float64 array
        How many factors (1 + δ) stand on any term of a value, at most.
    high : float64 array
        log of the largest absolute value, −inf for a value that is always 0.
    low : float64 array
        log of the least absolute value above 0; `ENDLESS` if there is none.
    error : float64 array
        log of what the value is off by besides; −inf if by nothing.
    positive : uint8 array
        Whether it is never negative.
    """

    rounds: np.ndarray
    high: np.ndarray
    low: np.ndarray
    error: np.ndarray
    positive: np.ndarray


def nothing_known(values: int) -> State:
    """Room for the states of so many values, all of which are 0."""
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
def _product(x_high, x_low, x_error, y_high, y_low, y_error, loss, log_length):
    """(high, low, error) of a rounded product x·y; of series with exp(log_length) coefficients, of any of its own.

    Series have `high` for the sum of their coefficients, and `error` for the largest error of one.
    """
    if x_high == -math.inf or y_high == -math.inf:
        return -math.inf, ENDLESS, -math.inf
    error = log_add(log_add(x_error + y_high, x_high + y_error), x_error + y_error + log_length)
    low = x_low + y_low if error == -math.inf else -ENDLESS
    if low < _NORMAL:
        low, error = -ENDLESS, log_add(error, loss + log_length)
    return x_high + y_high, max(low, -ENDLESS), min(error, ENDLESS)


@kernel
def _weighted(weight, high, low, error, loss):
    """The same of w·x, for log |w|. A subnormal weight is itself off; ±1 rounds nothing."""
    if weight == 0.0:
        return high, low, error
    lost = weight < LEAST_NORMAL
    return _product(weight, -ENDLESS if lost else weight, LOSS if lost else -math.inf, high, low, error, loss, 0.0)


@kernel
def _quotient(x_high, x_low, x_error, y_high, y_low, y_error):
    """The same of x / y, of values of which x is 0 where y is; a y below 2⁻¹⁰²² makes it 0, whatever x is."""
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
    """What instructions read besides slots.

    Attributes
    ----------
    log_weights, negative : float64 and bool arrays
        Logarithms of the magnitudes of weights, and their signs.
    leaves, lookups : State
        Of what LEAF (or PAIR) and LOOKUP read, by their numbers.
    """

    log_weights: np.ndarray
    negative: np.ndarray
    leaves: State
    lookups: State


class Arithmetic(NamedTuple):
    """How values are computed.

    Attributes
    ----------
    loss : float
        The logarithm of what a product of small numbers loses.
    length : int
        The coefficients of a value, at most.
    weight_first : bool
        Whether w·x·y is (w·x)·y, and not w·(x·y).
    """

    loss: float
    length: int
    weight_first: bool


@kernel
def walk(code, begin, end, read, arithmetic, state):
    """The states that instructions begin … end − 1, none of them a determinant, leave in their slots.

    code : Instructions. read : Read. arithmetic : Arithmetic. Returns the first instruction that is none of those it
    knows; `end` if there is none.
    """
    op, target, start, args, first_weight = code
    log_weights, negative, leaves, lookups = read
    loss, length, weight_first = arithmetic
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
                    h, least, e = _product(h, least, e, high[x], low[x], error[x], loss, log_length)
            count[at], high[at], low[at], error[at], positive[at] = total, h, least, e, sign
        elif kind == QUOTIENT:  # divided, multiplied by its weight, which is rounded too
            x, y = args[first], args[first + 1]
            h, least, e = _quotient(high[x], low[x], error[x], high[y], low[y], error[y])
            high[at], low[at], error[at] = _weighted(log_weights[k], h, least, e, loss)
            count[at], positive[at] = count[x] + count[y] + 3.0, positive[x] & positive[y] & (not negative[k])
        elif kind == SUM:
            # every term passes its weight's rounding, a multiplication, and as many additions as there are terms
            total, h, least, e, sign = 0.0, -math.inf, ENDLESS, -math.inf, 1
            terms, j = first_weight[i + 1] - k, first
            alone = 2 * terms - (last - first)  # terms w·x; the others are w·x·y
            for term in range(terms):
                x, w = args[j], log_weights[k]
                here, th, tl, te = count[x] + 2.0, high[x], low[x], error[x]
                plus = positive[x] & (not negative[k])
                if term < alone:
                    th, tl, te = _weighted(w, th, tl, te, loss)
                    total, j = max(total, here), j + 1
                else:
                    y = args[j + 1]
                    if weight_first:
                        th, tl, te = _weighted(w, th, tl, te, loss)
                        th, tl, te = _product(th, tl, te, high[y], low[y], error[y], loss, log_length)
                    else:
                        th, tl, te = _product(th, tl, te, high[y], low[y], error[y], loss, log_length)
                        th, tl, te = _weighted(w, th, tl, te, loss)
                    total, plus, j = max(total, here + count[y] + length), plus & positive[y], j + 2
                if th > -math.inf:
                    h, least, e, sign = log_add(h, th), min(least, tl), log_add(e, te), sign & plus
                k += 1
            # a coefficient of a sum of products of series adds up `length` terms of each
            count[at] = total + alone + (terms - alone) * length
            high[at], error[at], positive[at] = h, e, sign
            low[at] = least if sign and e == -math.inf else -ENDLESS if h > -math.inf else ENDLESS
        else:
            return i
    return end

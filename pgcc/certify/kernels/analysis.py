"""Error analysis of a program before it runs, as a number system: bounds on values and on their errors.

Every slot has a `State`, which bounds the value that it holds at that moment of the run, for any evidence. An
instruction computes the state of its result from those of its arguments, so slots may be reused. (Determinants are
analysed between two stretches of other instructions: see `pgcc.certify.certificate`.)

A computed value is the true one with factors (1 + δ), |δ| ≤ 2⁻⁵³, on its terms, plus an absolute error by underflow: a
product below 2⁻¹⁰²² is rounded to a multiple of 2⁻¹⁰⁷⁴. Logarithms are natural ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.walk import Operations, number_system
from pgcc.program.program import PAIR

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


class ErrorAnalysis(NamedTuple):
    """The number system of error bounds.

    Attributes
    ----------
    log_weights, negative : float64 and bool arrays
        log |w| of every weight, and whether it is negative.
    leaves : State
        The operands of LEAF or PAIR, and then those of LOOKUP, which begin at `lookups`.
    state : State
        The bounds of every slot. Those of an unfinished sum or product are bounds of what has been added or multiplied.
    length, log_length : int, float
        The most coefficients of a value, and its logarithm; 1 for numbers.
    weight_first : bool
        Whether w·x·y is computed as (w·x)·y; otherwise as w·(x·y).
    terms : float64 array of one
        The additions of an unfinished sum, or the factors of an unfinished product.
    """

    log_weights: np.ndarray
    negative: np.ndarray
    leaves: State
    lookups: int
    state: State
    length: int
    log_length: float
    weight_first: bool
    terms: np.ndarray


@bare_kernel
def _copy(state, at, states, number):
    state.rounds[at], state.high[at], state.low[at] = states.rounds[number], states.high[number], states.low[number]
    state.error[at], state.positive[at] = states.error[number], states.positive[number]


def _leaf(system, i, at, number):
    _copy(system.state, at, system.leaves, number)


def _table(system, at, op, number):
    _copy(system.state, at, system.leaves, number if op == PAIR else system.lookups + number)


def _one(system, i, at):
    s = system.state
    s.rounds[at], s.high[at], s.low[at], s.error[at], s.positive[at] = 0.0, 0.0, 0.0, -math.inf, 1
    system.terms[0] = 0.0


def _times(system, at, x):
    """Multiply from left to right. The first factor is copied, not rounded."""
    rounds, high, low, error, positive = system.state
    if system.terms[0] == 0.0:
        high[at], low[at], error[at] = high[x], low[x], error[x]
    else:
        long = system.log_length
        high[at], low[at], error[at] = _product(high[at], low[at], error[at], high[x], low[x], error[x], long)
    rounds[at] += rounds[x] + system.length
    positive[at] &= positive[x]
    system.terms[0] += 1.0


def _zero(system, i, at):
    s = system.state
    s.rounds[at], s.high[at], s.low[at], s.error[at], s.positive[at] = 0.0, -math.inf, ENDLESS, -math.inf, 1
    system.terms[0] = 0.0


@bare_kernel
def _add_term(s, at, rounds, high, low, error, positive):
    s.rounds[at] = max(s.rounds[at], rounds)
    if high > -math.inf:
        s.high[at], s.low[at] = log_add(s.high[at], high), min(s.low[at], low)
        s.error[at], s.positive[at] = log_add(s.error[at], error), s.positive[at] & positive


def _add(system, at, k, x):
    """A term has the roundings of its weight and of the product with it, and `_end_sum` adds those of additions."""
    s = system.state
    high, low, error = _weighted(system.log_weights[k], s.high[x], s.low[x], s.error[x])
    _add_term(s, at, s.rounds[x] + 2.0, high, low, error, s.positive[x] & (not system.negative[k]))
    system.terms[0] += 1.0


def _add_product(system, at, k, x, y):
    """A coefficient of a product of two series is a sum of up to `length` terms."""
    s, w, long = system.state, system.log_weights[k], system.log_length
    high, low, error = s.high[x], s.low[x], s.error[x]
    if system.weight_first:
        high, low, error = _weighted(w, high, low, error)
        high, low, error = _product(high, low, error, s.high[y], s.low[y], s.error[y], long)
    else:
        high, low, error = _product(high, low, error, s.high[y], s.low[y], s.error[y], long)
        high, low, error = _weighted(w, high, low, error)
    rounds, positive = s.rounds[x] + s.rounds[y] + 2.0 + system.length, s.positive[x] & s.positive[y]
    _add_term(s, at, rounds, high, low, error, positive & (not system.negative[k]))
    system.terms[0] += system.length


def _end_sum(system, i, at):
    """No term has more roundings by additions than there are additions. Only what cannot cancel has a least value."""
    s = system.state
    s.rounds[at] += system.terms[0]
    if not (s.positive[at] and s.error[at] == -math.inf):
        s.low[at] = -ENDLESS if s.high[at] > -math.inf else ENDLESS


number_system(
    ErrorAnalysis,
    Operations(_leaf, _one, _times, _zero, _add, _add_product, end_sum=_end_sum, table=_table),
)

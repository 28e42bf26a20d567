"""Scaled numbers m · 2^(256·e), whose range no product of probabilities leaves.

A mantissa m is 0, or 2⁻¹²⁸ ≤ |m| < 2¹²⁸, so that the product of two does not overflow, and is normalised by at most one
step. Used for the rows whose float64 value is out of range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.ir.scaled_numbers import ZERO_EXPONENT
from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.walk import Operations, number_system, walk

RADIX = 256
_HIGH, _LOW = 2.0**128, 2.0**-128
_UP, _DOWN, _DOWN2 = 2.0**256, 2.0**-256, 2.0**-512
_MOST = 2**50


@kernel
def normalized(m, e):
    """The same number with its mantissa in range."""
    if m == 0.0:
        return 0.0, ZERO_EXPONENT
    while abs(m) >= _HIGH and abs(m) < math.inf:
        m *= _DOWN
        e += 1
    while abs(m) < _LOW:
        m *= _UP
        e -= 1
    if abs(e) > _MOST:
        return math.nan, 0  # even this range is left: unknown
    return m, e


@kernel
def shifted(m, gap):
    """m · 2^(−256·gap). For more than two steps, that is negligible: 0, or NaN if m is not finite."""
    if gap == 0:
        return m
    if gap < 0:  # the product of two mantissas may be one step above what their exponents say
        return m * _UP if gap == -1 else math.nan
    if gap == 1:
        return m * _DOWN
    return m * _DOWN2 if gap == 2 else m * 0.0


class Constants(NamedTuple):
    """The numbers of a program as scaled numbers; `weights` and `leaf_table` hold the mantissas."""

    weights: np.ndarray
    weight_exponents: np.ndarray
    leaf_variable: np.ndarray
    leaf_table: np.ndarray
    leaf_exponents: np.ndarray


class Scaled(NamedTuple):
    """The number system, for one row of evidence: mantissas and exponents of the slots."""

    constants: Constants
    codes: np.ndarray
    m: np.ndarray
    e: np.ndarray


def _leaf(system, i, at, number):
    v, constants = system.constants.leaf_variable[number], system.constants
    code = 2 if v < 0 or system.codes[v] < 0 else system.codes[v]
    system.m[at], system.e[at] = constants.leaf_table[number, code], constants.leaf_exponents[number, code]


def _one(system, i, at):
    system.m[at], system.e[at] = 1.0, 0


def _times(system, at, x):
    m, e = system.m, system.e
    m[at], e[at] = normalized(m[at] * m[x], e[at] + e[x])


def _zero(system, i, at):
    system.m[at], system.e[at] = 0.0, ZERO_EXPONENT


@bare_kernel
def _accumulate(m, e, at, x, p):
    """Add x · 2^(256·p) to a sum, whose exponent is the largest of its terms."""
    gap = e[at] - p
    if x == 0.0:
        return
    if m[at] == 0.0:
        m[at], e[at] = x, p
    elif gap == 0:
        m[at] += x
    elif gap > 0:
        m[at] += shifted(x, gap)
    else:
        m[at], e[at] = shifted(m[at], -gap) + x, p


def _add(system, at, k, x):
    c, m, e = system.constants, system.m, system.e
    _accumulate(m, e, at, c.weights[k] * m[x], c.weight_exponents[k] + e[x])


def _add_product(system, at, k, x, y):
    c, m, e = system.constants, system.m, system.e
    product, p = normalized(c.weights[k] * m[x], c.weight_exponents[k] + e[x])
    _accumulate(m, e, at, product * m[y], p + e[y])


def _end_sum(system, i, at):
    system.m[at], system.e[at] = normalized(system.m[at], system.e[at])


number_system(Scaled, Operations(_leaf, _one, _times, _zero, _add, _add_product, end_sum=_end_sum))


@kernel
def run_scaled(code, constants, evidence, roots, mantissas, exponents, slots):
    """mantissas[r, row], exponents[r, row] = value of slot roots[r]; code : Instructions, constants : Constants."""
    m, e = np.zeros(slots), np.zeros(slots, np.int64)
    for row in range(evidence.shape[0]):
        walk(code, Scaled(constants, evidence[row], m, e), 0, len(code.op))
        for r in range(len(roots)):
            mantissas[r, row], exponents[r, row] = m[roots[r]], e[roots[r]]


@kernel
def run_scaled_rows(code, constants, begin, end, evidence, m, e):
    """Run instructions begin … end − 1 for every row; m, e : rows × slots, the values of all slots."""
    for row in range(evidence.shape[0]):
        walk(code, Scaled(constants, evidence[row], m[row], e[row]), begin, end)

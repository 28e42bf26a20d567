"""A program over scaled numbers m · 2^(256·e): no product of probabilities leaves its range.

A mantissa is 0 or has 2⁻¹²⁸ ≤ |m| < 2¹²⁸, so that two of them multiply without overflow and one comparison
normalises the result. Used for the rows whose float64 value is out of range.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import LEAF, TIMES

RADIX = 256
_HIGH, _LOW = 2.0**128, 2.0**-128
_UP, _DOWN, _DOWN2 = 2.0**256, 2.0**-256, 2.0**-512
_NEVER = -(2**60)  # the exponent of 0
_MOST = 2**50


@kernel
def normalized(m, e):
    """The same number with its mantissa in range."""
    if m == 0.0:
        return 0.0, _NEVER
    while abs(m) >= _HIGH and abs(m) < math.inf:
        m *= _DOWN
        e += 1
    while abs(m) < _LOW:
        m *= _UP
        e -= 1
    if abs(e) > _MOST:
        return math.nan, 0  # out of every range: nothing is known
    return m, e


@kernel
def shifted(m, gap):
    """m · 2^(−256·gap); past two steps a finite number is too small to be seen (and infinity becomes NaN)."""
    if gap == 0:
        return m
    if gap < 0:  # the product of two mantissas may be one step above what their exponents say
        return m * _UP if gap == -1 else math.nan
    if gap == 1:
        return m * _DOWN
    return m * _DOWN2 if gap == 2 else m * 0.0


@kernel
def run_scaled(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
    weight_exponents, leaf_exponents, evidence, roots, mantissas, exponents, slots,
):  # fmt: skip
    """mantissas[r, row], exponents[r, row] = value of slot roots[r]; `weights` and `leaf_table` hold mantissas."""
    m, e = np.zeros(slots), np.zeros(slots, np.int64)
    for row in range(evidence.shape[0]):
        run_scaled_row(
            op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
            weight_exponents, leaf_exponents, 0, len(op), evidence[row], m, e,
        )  # fmt: skip
        for r in range(len(roots)):
            mantissas[r, row], exponents[r, row] = m[roots[r]], e[roots[r]]


@kernel
def run_scaled_rows(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
    weight_exponents, leaf_exponents, begin, end, evidence, m, e,
):  # fmt: skip
    """Instructions begin … end − 1 for every row; m, e : rows × slots, kept."""
    for row in range(evidence.shape[0]):
        run_scaled_row(
            op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
            weight_exponents, leaf_exponents, begin, end, evidence[row], m[row], e[row],
        )  # fmt: skip


@kernel
def run_scaled_row(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
    weight_exponents, leaf_exponents, begin, end, codes, m, e,
):  # fmt: skip
    """Instructions begin … end − 1, none of them a determinant, for one row."""
    for i in range(begin, end):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF:
            leaf = args[first]
            v = leaf_variable[leaf]
            code = 2 if v < 0 or codes[v] < 0 else codes[v]
            m[at], e[at] = leaf_table[leaf, code], leaf_exponents[leaf, code]
        elif kind == TIMES:
            x, p = 1.0, 0
            for j in range(first, last):
                x, p = normalized(x * m[args[j]], p + e[args[j]])
            m[at], e[at] = x, p
        else:
            weight, end = first_weight[i], first_weight[i + 1]
            alone = 2 * (end - weight) - (last - first)  # terms w·x; the others are w·x·y
            top, j = _NEVER, first
            for k in range(weight, end):
                p = weight_exponents[k] + e[args[j]]
                if k - weight >= alone:
                    j += 1
                    p += e[args[j]]
                j += 1
                top = max(top, p)
            if top <= _NEVER // 2:  # every term is 0
                m[at], e[at] = 0.0, _NEVER
                continue
            total, j = 0.0, first
            for k in range(weight, end):
                x, p = weights[k] * m[args[j]], weight_exponents[k] + e[args[j]]
                if k - weight >= alone:
                    j += 1
                    x, p = normalized(x, p)
                    x, p = x * m[args[j]], p + e[args[j]]
                j += 1
                if x != 0.0:
                    total += shifted(x, top - p)
            m[at], e[at] = normalized(total, top)

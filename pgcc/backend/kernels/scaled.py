"""A program over scaled numbers m · 2^(256·e): no product of probabilities leaves its range.

A mantissa is 0 or has 2⁻¹²⁸ ≤ |m| < 2¹²⁸, so that two of them multiply without overflow and one comparison
normalises the result. Used for the rows whose float64 value is out of range, and for determinants.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.backend.kernels.determinants import determinant_rows
from pgcc.backend.kernels.policy import kernel
from pgcc.lowering.program import DET, DETMAG, LEAF, MORE, SUM, TIMES

RADIX = 256
_HIGH, _LOW = 2.0**128, 2.0**-128
_UP, _DOWN, _DOWN2 = 2.0**256, 2.0**-256, 2.0**-512
_NEVER = -(2**60)  # the exponent of 0
_MOST = 2**50
_UNIT = 2.0**-53
_MOST_UNITS = 0.1 / _UNIT  # an error past which nothing is known


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
    weight_exponents, leaf_exponents, plan, data, ints, bases, degree, wanted,
    evidence, roots, mantissas, exponents, slots,
):  # fmt: skip
    """mantissas[r, row], exponents[r, row] = value of slot roots[r]; `weights` and `leaf_table` hold mantissas."""
    m, e = np.zeros(slots), np.zeros(slots, np.int64)
    error, variables = np.zeros(1), evidence.shape[1]
    flat = np.zeros(evidence.size + 8, np.uint8)
    for row in range(evidence.shape[0]):
        for v in range(variables):
            flat[row * variables + v] = evidence[row, v]
    for row in range(evidence.shape[0]):
        for i in range(len(op)):
            kind, first, last, at = op[i], start[i], start[i + 1], target[i]
            if kind == LEAF:
                leaf = args[first]
                v = leaf_variable[leaf]
                code = 2 if v < 0 or evidence[row, v] < 0 else evidence[row, v]
                m[at], e[at] = leaf_table[leaf, code], leaf_exponents[leaf, code]
            elif kind == TIMES:
                x, p = 1.0, 0
                for j in range(first, last):
                    x, p = normalized(x * m[args[j]], p + e[args[j]])
                m[at], e[at] = x, p
            elif kind == DET:
                d = args[first]
                m[at], e[at] = _determinant(
                    plan, data, ints, bases, d, args[first + 1 : last], flat, row * variables, wanted, m, e, error
                )
            elif kind == DETMAG:  # right after its DET: `error` is that of the value
                d, x = args[first], args[first + 1]
                size, power, off = abs(m[x]), e[x], error[0]
                if last - first > 2:
                    size, power = _determinant(
                        plan, data, ints, bases, d, args[first + 1 : last], flat, row * variables, wanted, m, e, error
                    )
                    off += error[0]
                if size != 0.0 or off > 0.0:  # the law is that of `run_stages`
                    off = degree[d] + off / _UNIT
                    size = math.inf if not off < _MOST_UNITS else size * off
                m[at], e[at] = (math.inf, 0) if size == math.inf else normalized(size, power)
            else:
                stride = 1 if kind == SUM else 2
                weight = first_weight[i]
                top = e[at] if kind == MORE else _NEVER
                for j in range(first, last, stride):
                    p = weight_exponents[weight + (j - first) // stride] + e[args[j]]
                    if stride == 2:
                        p += e[args[j + 1]]
                    top = max(top, p)
                if top <= _NEVER // 2:  # every term is 0
                    m[at], e[at] = 0.0, _NEVER
                    continue
                total = shifted(m[at], top - e[at]) if kind == MORE else 0.0
                for j in range(first, last, stride):
                    k = weight + (j - first) // stride
                    x, p = weights[k] * m[args[j]], weight_exponents[k] + e[args[j]]
                    if stride == 2:
                        x, p = normalized(x, p)
                        x, p = x * m[args[j + 1]], p + e[args[j + 1]]
                    if x != 0.0:
                        total += shifted(x, top - p)
                m[at], e[at] = normalized(total, top)
        for r in range(len(roots)):
            mantissas[r, row], exponents[r, row] = m[roots[r]], e[roots[r]]


@kernel
def _determinant(plan, data, ints, bases, d, slots, evidence, row, wanted, m, e, error):
    """Determinant d of scaled f (the first half of the slots) and y (the others); error[0]: its relative error.

    (f, y) = 2^(256·p)·(f', y') makes 2^(256·p) times the determinant: a child that must be in, y = 0, may be of any size.
    """
    k = len(slots) // 2
    work, power = np.empty(2 * k), 0
    for j in range(k):
        f, y = slots[j], slots[k + j]
        top = max(e[f], e[y])
        if m[f] != 0.0 and top - e[f] > 2:
            error[0] = math.inf  # tiny beside its partner, but perhaps not beside the matrix
            return 0.0, 0
        work[j] = 0.0 if m[f] == 0.0 else shifted(m[f], top - e[f])
        work[k + j] = 0.0 if m[y] == 0.0 else shifted(m[y], top - e[y])
        if m[f] != 0.0 or m[y] != 0.0:
            power += top
    mantissa, binary = np.empty(1), np.empty(1, np.int64)
    where = np.arange(2 * k)
    determinant_rows(
        plan, data, ints, bases, d, where[:k], where[k:], work, 1, evidence, row, 1, wanted, mantissa, binary, error
    )
    whole = binary[0] // RADIX
    return normalized(math.ldexp(mantissa[0], binary[0] - whole * RADIX), power + whole)

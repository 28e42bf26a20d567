"""A program over scaled numbers m · 2^(256·e): no product of probabilities leaves its range.

A mantissa is 0 or has 2⁻¹²⁸ ≤ |m| < 2¹²⁸, so that two of them multiply without overflow and one comparison
normalises the result. Used for the rows whose float64 value is out of range, and for determinants.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.backend.kernels.dense import (
    absolute_bordered,
    amplification,
    det_workspace,
    factor,
    fill_bordered,
    products_underflow,
    scale_columns,
)
from pgcc.backend.kernels.policy import kernel
from pgcc.lowering.program import DET, DETMAG, LEAF, MORE, SUM, TIMES

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
    weight_exponents, leaf_exponents, det_shape, det_start, det_data,
    evidence, roots, mantissas, exponents, slots,
):  # fmt: skip
    """mantissas[r, row], exponents[r, row] = value of slot roots[r]; `weights` and `leaf_table` hold mantissas."""
    m, e = np.zeros(slots), np.zeros(slots, np.int64)
    room = det_workspace(det_shape)
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
            elif kind in (DET, DETMAG):
                d = args[first]
                data = det_data[det_start[d] :]
                if kind == DET:
                    m[at], e[at] = _determinant(det_shape[d], data, args[first + 1 : last], m, e, room)
                else:
                    m[at], e[at] = _magnitude(det_shape[d], data, args[first + 1 : last], m, e, room)
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
def _columns(k, slots, m, e):
    """f_j and y_j as doubles, divided by 2^(256·p_j) so that the larger is near 1; and Σ p_j.

    The last number is False where f_j = y_j = 0 for some j: the determinant is then exactly 0.
    """
    f, y = np.empty(k), np.empty(k)
    total = 0
    for j in range(k):
        a, b = slots[j], slots[k + j]
        top = max(e[a], e[b])
        if m[a] == 0.0 and m[b] == 0.0:
            return f, y, 0, False
        f[j], y[j] = shifted(m[a], top - e[a]), shifted(m[b], top - e[b])
        total += top
    return f, y, total, True


@kernel
def _pivot_product(matrix, n, sign, exponent):
    """sign · Π pivots · 2^exponent as a scaled number."""
    value, power = normalized(sign, 0)
    for i in range(n):
        mantissa, binary = math.frexp(matrix[i, i])
        value, power = normalized(value * mantissa, power)
        exponent += binary
    whole = exponent // RADIX
    return normalized(math.ldexp(value, exponent - whole * RADIX), power + whole)


@kernel
def _determinant(shape, data, slots, m, e, room):
    matrices, rows, _ = room
    k = shape[1]
    f, y, power, alive = _columns(k, slots, m, e)
    if not alive:
        return 0.0, _NEVER
    n = fill_bordered(shape, data, f, y, matrices[0])
    binary = scale_columns(matrices[0], n)
    sign = factor(matrices[0], n, rows)
    if sign == 0.0:
        return 0.0, _NEVER
    value, exponent = _pivot_product(matrices[0], n, sign, binary)
    return value, exponent + power


@kernel
def _magnitude(shape, data, slots, m, e, room):
    """|det| · amplification: `inf` where the matrix is singular to working precision."""
    matrices, rows, column = room
    k = shape[1]
    f, y, power, alive = _columns(k, slots, m, e)
    if not alive:
        for j in range(k):  # exactly zero only if the zeros themselves are certain
            a, b = slots[2 * k + j], slots[3 * k + j]
            if m[a] == 0.0 and m[b] == 0.0:
                return 0.0, _NEVER
        return math.inf, 0
    # The magnitudes, on the same scale as f and y.
    size_f, size_y = np.empty(k), np.empty(k)
    for j in range(k):
        top = max(e[slots[j]], e[slots[k + j]])
        for half in range(2):
            s = slots[(2 + half) * k + j]
            gap = top - e[s]
            if gap > 2 and m[s] != 0.0:
                return math.inf, 0  # tiny beside its partner, but perhaps not beside the matrix
            size = 0.0 if m[s] == 0.0 else math.inf if gap < -1 else m[s] * _UP if gap == -1 else shifted(m[s], gap)
            if half == 0:
                size_f[j] = size
            else:
                size_y[j] = size
    if products_underflow(shape, data, f):
        return math.inf, 0
    n = absolute_bordered(shape, data, size_f, size_y, matrices[1])
    fill_bordered(shape, data, f, y, matrices[0])
    binary = 0
    for j in range(n):
        largest = 0.0
        for i in range(n):
            largest = max(largest, abs(matrices[0][i, j]))
        if largest == 0.0:
            return math.inf, 0
        exponent = math.frexp(largest)[1]
        binary += exponent
        for i in range(n):
            matrices[0][i, j] = math.ldexp(matrices[0][i, j], -exponent)
            # what gradual underflow may add to an entry is an error too, not relative to it
            matrices[1][i, j] = math.ldexp(matrices[1][i, j], -exponent) + 2.0**-1000
    matrices[2][:n, :n] = matrices[0][:n, :n]
    sign = factor(matrices[2], n, rows)
    if sign == 0.0:
        return math.inf, 0
    grow = amplification(matrices[0], matrices[1], n, matrices[2], rows, column)
    if not grow < math.inf:
        return math.inf, 0
    value, exponent = _pivot_product(matrices[2], n, sign, binary)
    return normalized(abs(value) * grow, exponent + power)

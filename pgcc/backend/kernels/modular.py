"""A program modulo the prime 2⁶¹ − 1, for identity tests on exact coefficients."""

from __future__ import annotations

import numpy as np

from pgcc.backend.kernels.policy import kernel
from pgcc.lowering.program import DET, DETMAG, LEAF, MORE, SUM, TIMES

PRIME = (1 << 61) - 1
_P = np.uint64(PRIME)
_LOW32 = np.uint64(0xFFFFFFFF)
_S3, _S29, _S32, _S61 = np.uint64(3), np.uint64(29), np.uint64(32), np.uint64(61)
_LOW29 = np.uint64((1 << 29) - 1)


@kernel
def add_mod(a, b):
    """a + b mod p"""
    c = a + b
    return c - _P if c >= _P else c


@kernel
def mul_mod(a, b):
    """a · b mod p, by halves of 32 bits: 2⁶⁴ = 2³ and 2⁶¹ = 1 modulo p."""
    a1, a0, b1, b0 = a >> _S32, a & _LOW32, b >> _S32, b & _LOW32
    high, low, middle = a1 * b1, a0 * b0, a1 * b0 + a0 * b1  # a1, b1 < 2²⁹: no overflow
    # middle · 2³² = (middle >> 29) · 2⁶¹ + (middle & (2²⁹ − 1)) · 2³²
    total = (high << _S3) + (middle >> _S29) + ((middle & _LOW29) << _S32) + (low >> _S61) + (low & _P)
    total = (total & _P) + (total >> _S61)
    return total - _P if total >= _P else total


@kernel
def inverse_mod(a):
    """a^(p − 2) = 1 / a mod p"""
    result, power, exponent = np.uint64(1), a, PRIME - 2
    while exponent:
        if exponent & 1:
            result = mul_mod(result, power)
        power = mul_mod(power, power)
        exponent >>= 1
    return result


@kernel
def _determinant_mod(shape, data, f, y, matrix):
    """The bordered determinant by elimination mod p."""
    r, k = shape[0], shape[1]
    n = r + k
    matrix[:n, :n] = 0
    for i in range(r):
        for j in range(r):
            matrix[i, j] = data[i * r + j]
        for j in range(k):
            matrix[i, r + j] = mul_mod(data[r * r + i * k + j], f[j])
            v = data[r * r + r * k + i * k + j]
            matrix[r + j, i] = _P - v if v else v
    for j in range(k):
        matrix[r + j, r + j] = y[j]
    value = np.uint64(1)
    for c in range(n):
        pivot = c
        while pivot < n and matrix[pivot, c] == 0:
            pivot += 1
        if pivot == n:
            return np.uint64(0)
        if pivot != c:
            value = _P - value
            for j in range(n):
                matrix[c, j], matrix[pivot, j] = matrix[pivot, j], matrix[c, j]
        value = mul_mod(value, matrix[c, c])
        inverse = inverse_mod(matrix[c, c])
        for i in range(c + 1, n):
            if matrix[i, c]:
                factor = _P - mul_mod(matrix[i, c], inverse)
                for j in range(c, n):
                    matrix[i, j] = add_mod(matrix[i, j], mul_mod(factor, matrix[c, j]))
    return value


@kernel
def run_modular(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
    det_shape, det_start, det_data, values, work,
):  # fmt: skip
    """work[slot, p] = value mod p of every slot at point p, where variable v is values[v, p].

    weights, leaf_table (a, b) and det_data are residues (uint64). DETMAG writes 0.
    """
    n_points = values.shape[1]
    n = 1
    for d in range(len(det_shape)):
        n = max(n, det_shape[d, 0] + det_shape[d, 1])
    matrix = np.empty((n, n), np.uint64)
    for i in range(len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        for p in range(n_points):
            if kind == LEAF:
                leaf = args[first]
                v = leaf_variable[leaf]
                x = leaf_table[leaf, 0]
                if v >= 0:
                    x = add_mod(x, mul_mod(leaf_table[leaf, 1], values[v, p]))
            elif kind == TIMES:
                x = np.uint64(1)
                for j in range(first, last):
                    x = mul_mod(x, work[args[j], p])
            elif kind == DET:
                d, k = args[first], (last - first - 1) // 2
                f, y = np.empty(k, np.uint64), np.empty(k, np.uint64)
                for j in range(k):
                    f[j], y[j] = work[args[first + 1 + j], p], work[args[first + 1 + k + j], p]
                x = _determinant_mod(det_shape[d], det_data[det_start[d] :], f, y, matrix)
            elif kind == DETMAG:
                x = np.uint64(0)
            else:
                x = work[at, p] if kind == MORE else np.uint64(0)
                k = first_weight[i]
                stride = 1 if kind == SUM else 2
                for j in range(first, last, stride):
                    y1 = work[args[j], p]
                    if stride == 2:
                        y1 = mul_mod(y1, work[args[j + 1], p])
                    x = add_mod(x, mul_mod(weights[k], y1))
                    k += 1
            work[at, p] = x

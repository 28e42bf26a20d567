"""Determinants of the bordered matrix [[M0, U·diag(f)], [−Vᵀ, diag(y)]] in float64 and complex128."""

from __future__ import annotations

import math

import numpy as np

from pgcc.backend.kernels.policy import kernel

# Past this ratio of magnitude to value a first-order bound on a determinant says nothing: the answer is "unknown".
_HOPELESS = 1e9
_UNIT = 2.0**-53


@kernel
def fill_bordered(shape, data, f, y, matrix):
    """Write the matrix of a Det with children f and complements y; data holds M0, U, V."""
    r, k = shape[0], shape[1]
    n = r + k
    matrix[:n, :n] = 0
    for i in range(r):
        for j in range(r):
            matrix[i, j] = data[i * r + j]
        for j in range(k):
            matrix[i, r + j] = data[r * r + i * k + j] * f[j]
            matrix[r + j, i] = -data[r * r + r * k + i * k + j]
    for j in range(k):
        matrix[r + j, r + j] = y[j]
    return n


@kernel
def factor(matrix, n, rows):
    """LU with partial pivoting, in place; `rows` becomes the permutation. The sign of it, or 0 if singular."""
    sign = 1.0
    for i in range(n):
        rows[i] = i
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if abs(matrix[i, j]) > abs(matrix[best, j]):
                best = i
        if abs(matrix[best, j]) == 0.0:
            return 0.0
        if best != j:
            sign = -sign
            rows[j], rows[best] = rows[best], rows[j]
            for c in range(n):
                matrix[j, c], matrix[best, c] = matrix[best, c], matrix[j, c]
        for i in range(j + 1, n):
            multiplier = matrix[i, j] / matrix[j, j]
            matrix[i, j] = multiplier
            for c in range(j + 1, n):
                matrix[i, c] -= multiplier * matrix[j, c]
    return sign


@kernel
def scale_columns(matrix, n):
    """Divide every column by a power of two that brings its largest entry near 1; the sum of the exponents.

    A column of zeros is left alone: the determinant is then 0 and says so by itself.
    """
    total = 0
    for j in range(n):
        largest = 0.0
        for i in range(n):
            largest = max(largest, abs(matrix[i, j]))
        if largest > 0.0:
            exponent = math.frexp(largest)[1]
            for i in range(n):
                matrix[i, j] = math.ldexp(matrix[i, j], -exponent)
            total += exponent
    return total


@kernel
def amplification(matrix, sizes, n, factors, rows, column):
    """Σ_ij |M⁻¹|_ji (sizes + |L||U|)_ij, given M = matrix with sizes ≥ |M| entrywise and `factors` = its LU.

    To first order, errors of at most ε·sizes in the entries and of ε·|L||U| by elimination change the determinant by at
    most ε · this · |det|.
    """
    total = 0.0
    worst = np.empty(n)  # the same solution with every number absolute: what rounding is relative to
    for j in range(n):  # column j of the inverse: solve M x = e_j
        for i in range(n):
            column[i] = worst[i] = 1.0 if rows[i] == j else 0.0
        for i in range(n):
            for c in range(i):
                column[i] -= factors[i, c] * column[c]
                worst[i] += abs(factors[i, c]) * worst[c]
        for i in range(n - 1, -1, -1):
            for c in range(i + 1, n):
                column[i] -= factors[i, c] * column[c]
                worst[i] += abs(factors[i, c]) * worst[c]
            column[i] /= factors[i, i]
            worst[i] /= abs(factors[i, i])
        where = 0
        while rows[where] != j:
            where += 1
        for i in range(n):  # x_i = (M⁻¹)_ij meets entry (j, i) of M, which is row `where` of the factors
            grown = 0.0
            for c in range(min(where, i) + 1):
                grown += (1.0 if c == where else abs(factors[where, c])) * abs(factors[c, i])
            # a path of substitutions rounds at most 4n times
            total += (abs(column[i]) + 8.0 * n * _UNIT * worst[i]) * (sizes[j, i] + grown)
    return total if total < _HOPELESS else math.inf


@kernel
def complex_determinant(shape, data, f, y, matrix, rows):
    """The determinant itself; plain product of pivots (the caller checks its range)."""
    n = fill_bordered(shape, data, f, y, matrix)
    value = factor(matrix, n, rows) + 0j
    if value != 0:
        for i in range(n):
            value *= matrix[i, i]
    return value


@kernel
def absolute_bordered(shape, data, f, y, matrix):
    """The same matrix with every number absolute: f and y are magnitudes."""
    n = fill_bordered(shape, data, f, y, matrix)
    for i in range(n):
        for j in range(n):
            matrix[i, j] = abs(matrix[i, j])
    return n


@kernel
def products_underflow(shape, data, f):
    """Whether a product of the matrix U·diag(f) loses digits to gradual underflow."""
    r, k = shape[0], shape[1]
    for i in range(r):
        for j in range(k):
            u = data[r * r + i * k + j]
            if u != 0.0 and f[j] != 0.0 and abs(u * f[j]) < 2.0**-960:
                return True
    return False


@kernel
def det_workspace(det_shape):
    """Room for the largest determinant: three matrices, a permutation, a column."""
    n = 1
    for d in range(len(det_shape)):
        n = max(n, det_shape[d, 0] + det_shape[d, 1])
    return np.empty((3, n, n)), np.empty(n, np.int64), np.empty(n)

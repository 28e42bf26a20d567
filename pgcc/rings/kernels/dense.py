"""Determinants of the bordered matrix [[M0, U·diag(f)], [−Vᵀ, diag(y)]] in complex128, without a bound."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel


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
def complex_determinant(shape, data, f, y, matrix, rows):
    """The determinant itself; plain product of pivots (the caller checks its range)."""
    n = fill_bordered(shape, data, f, y, matrix)
    value = factor(matrix, n, rows) + 0j
    if value != 0:
        for i in range(n):
            value *= matrix[i, i]
    return value


@kernel
def det_workspace(det_shape):
    """Room for the largest determinant: a matrix and a permutation."""
    n = 1
    for d in range(len(det_shape)):
        n = max(n, det_shape[d, 0] + det_shape[d, 1])
    return np.empty((n, n), np.complex128), np.empty(n, np.int64)

"""Small dense matrices in a fixed order of operations: inner loops add multiples of rows, which vectorises as it is."""

from __future__ import annotations

import numpy as np

from pgcc.backend.kernels.policy import bare_kernel, kernel
from pgcc.backend.kernels.simd import LANES, div, larger, load, mul, muladd, smaller, splat, store

# A pivot that is this small, relative to the diagonal that it is left of, is noise: the determinant is taken for 0.
PIVOT = 1e-14


@bare_kernel
def invert(a, n, v):
    """Minus the inverse of a positive definite matrix by sweeps, in place; its log det.

    `a` is n·n numbers, of which the upper triangle is read and written; `v` is room for a row. Sweeping k maps a_ij to
    a_ij − a_ik·a_kj / a_kk, a_ik to a_ik / a_kk and a_kk to −1 / a_kk.
    """
    logdet = 0.0
    for k in range(n):
        row = k * n
        pivot = a[row + k]
        logdet += np.log(pivot)
        for i in range(k):
            v[i] = a[i * n + k]
        for i in range(k, n):
            v[i] = a[row + i]
        inverse = 1.0 / pivot
        for i in range(n):
            ratio, mine, other = v[i] * inverse, a[i * n + i : i * n + n], v[i:n]
            for j in range(n - i):
                mine[j] -= ratio * other[j]
        for i in range(k):
            a[i * n + k] = v[i] * inverse
        for i in range(k + 1, n):
            a[row + i] = v[i] * inverse
        a[row + k] = -inverse
    return logdet


@bare_kernel
def packed(n, i):
    """Where row i of an upper triangle starts, if its rows stand one after the other, so that (i, j) is at that + j."""
    return i * n - i * (i + 1) // 2


@bare_kernel
def invert_eight(a, start, n, room, logdet, first):
    """The same for eight matrices at a time: upper triangles, packed, side by side in `a` from `start` on.

    Writes their log det to logdet[first : first + 8]; where a matrix is not definite, as far as rounding errors let
    one tell, that is −inf, and the inverse becomes zeros. `room` is for 2·n + 1 times eight numbers.
    """
    for lane in range(LANES):
        logdet[first + lane] = 0.0
    for i in range(n):
        store(room, LANES * i, mul(load(a, start + LANES * (packed(n, i) + i)), splat(-PIVOT)))
    last, worst, product = LANES * n, splat(1.0), splat(1.0)
    for k in range(n):
        pivot = load(a, start + LANES * (packed(n, k) + k))
        worst = smaller(muladd(splat(1.0), pivot, load(room, LANES * k)), worst)
        pivot = larger(pivot, splat(1e-300))
        product = mul(product, pivot)
        if k % 8 == 7 or k == n - 1:  # one logarithm for eight pivots
            store(room, last, product)
            product = splat(1.0)
            for lane in range(LANES):
                logdet[first + lane] += np.log(room[last + lane])
        inverse = div(splat(1.0), pivot)
        sweep_eight(a, start, n, k, inverse, mul(inverse, splat(-1.0)), room, last + LANES)
    store(room, last, worst)
    for lane in range(LANES):
        if not room[last + lane] > 0.0:
            logdet[first + lane] = -np.inf
            for i in range(n * (n + 1) // 2):
                a[start + LANES * i + lane] = 0.0


@bare_kernel
def sweep_eight(a, start, n, k, inverse, negative, room, v):
    """Sweep row k of eight matrices; from `v` on, `room` is for that row. Its first entries are those of column k."""
    row = start + LANES * packed(n, k)
    for i in range(k):
        store(room, v + LANES * i, load(a, start + LANES * (packed(n, i) + k)))
    for i in range(k, n):
        store(room, v + LANES * i, load(a, row + LANES * i))
    for i in range(n):
        at, ratio = start + LANES * packed(n, i), mul(load(room, v + LANES * i), negative)
        for j in range(i, n):
            store(a, at + LANES * j, muladd(ratio, load(room, v + LANES * j), load(a, at + LANES * j)))
    for i in range(k):
        store(a, start + LANES * (packed(n, i) + k), mul(load(room, v + LANES * i), inverse))
    for j in range(k + 1, n):
        store(a, row + LANES * j, mul(load(room, v + LANES * j), inverse))
    store(a, row + LANES * k, negative)


@kernel
def multiply(a, b, out):
    """a·b, square; four rows of b at a time."""
    n = len(a)
    for i in range(n):
        row = out[i]
        row[:] = 0.0
        k = 0
        while k + 4 <= n:
            x, y, z, w = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            first, second, third, fourth = b[k], b[k + 1], b[k + 2], b[k + 3]
            for j in range(n):
                row[j] += x * first[j] + y * second[j] + z * third[j] + w * fourth[j]
            k += 4
        while k < n:
            x, first = a[i, k], b[k]
            for j in range(n):
                row[j] += x * first[j]
            k += 1


@kernel
def multiply_transposed(a, transposed, out):
    """a·aᵀ, square; `transposed` is room for aᵀ."""
    n = len(a)
    for i in range(n):
        for j in range(n):
            transposed[j, i] = a[i, j]
    multiply(a, transposed, out)

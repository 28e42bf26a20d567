"""Small dense matrices: inverses, log-determinants and products.

The order of operations is fixed, so results are reproducible. Inner loops add a multiple of one row to another, which
compilers vectorize without reordering sums.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.kernels.exp_log import log
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel
from pgcc.kernels.simd import (
    LANES,
    div,
    if_less,
    larger,
    load,
    minus,
    mul,
    plus,
    smaller,
    splat,
    store,
)

# A pivot smaller than PIVOT times the original diagonal entry is rounding noise, and so is one below TINY: the
# determinant is then taken to be 0.
PIVOT, TINY = 1e-14, 1e-300
STEP = 2.0**500  # products of pivots are kept between 1/STEP and STEP
LOG_STEP = math.log(STEP)


@bare_kernel
def invert(a, n, v):
    """Replace a positive definite matrix by minus its inverse, with the sweep operator; return its log-determinant.

    `a` holds n·n numbers, of which only the upper triangle is read and written; `v` is scratch memory for one row.
    Sweeping row k maps a_ij to a_ij − a_ik·a_kj / a_kk, a_ik to a_ik / a_kk and a_kk to −1 / a_kk.
    """
    logdet = 0.0
    for k in range(n):
        row = k * n
        pivot = a[row + k]
        logdet += log(pivot)
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
    """The offset of row i in a packed upper triangle (rows one after another): entry (i, j) is at packed(n, i) + j."""
    return i * n - i * (i + 1) // 2


@separate_kernel
def invert_eight(a, start, n, scratch, logdet, first):
    """`invert` for eight matrices at a time: packed upper triangles, interleaved in `a` from `start` on.

    Writes their log-determinants to logdet[first : first + 8]. If a matrix is not positive definite, up to rounding,
    its log-determinant is −inf and its inverse all zeros. `scratch` holds 2·n times eight numbers.
    """
    if n == 0:
        store(logdet, first, splat(0.0))
        return
    for i in range(n):
        least = mul(load(a, start + LANES * (packed(n, i) + i)), splat(PIVOT))
        store(scratch, LANES * i, larger(splat(TINY), least))
    u = LANES * n
    worst, product, steps = splat(1.0), splat(1.0), splat(0.0)
    for k in range(n):
        copy_row(a, start, n, k, scratch, u)
        pivot = load(scratch, u + LANES * k)
        worst = smaller(minus(pivot, load(scratch, LANES * k)), worst)
        pivot = larger(splat(TINY), pivot)  # NaN stays NaN
        sweep(a, start, n, k, div(splat(1.0), pivot), scratch, u)
        pivot, steps = rescaled(pivot, steps)
        product, steps = rescaled(mul(product, pivot), steps)
    store(logdet, first, product)
    store(scratch, 0, steps)
    for lane in range(LANES):
        logdet[first + lane] = log(logdet[first + lane]) + scratch[lane] * LOG_STEP
    drop_indefinite(a, start, n, scratch, worst, logdet, first)


@bare_kernel
def drop_indefinite(a, start, n, scratch, worst, logdet, first):
    """Set matrices with a pivot that is not above its rounding noise to zeros, and their log-determinants to −inf."""
    store(scratch, 0, worst)
    for lane in range(LANES):
        if not scratch[lane] > 0.0:
            logdet[first + lane] = -np.inf
            for i in range(n * (n + 1) // 2):
                a[start + LANES * i + lane] = 0.0


@bare_kernel
def rescaled(x, steps):
    """x·STEP^steps as a new pair (x between 1/STEP and STEP, steps), for x > 0. NaN stays NaN."""
    small, large, step = splat(1.0 / STEP), splat(STEP), splat(1.0)
    more = if_less(x, small, splat(-1.0), if_less(large, x, step, splat(0.0)))
    return mul(x, if_less(x, small, large, if_less(large, x, small, step))), plus(steps, more)


@bare_kernel
def copy_row(a, start, n, k, scratch, to):
    """Copy row k of eight symmetric matrices to `scratch`; the entries left of the diagonal are read from column k."""
    row = start + LANES * packed(n, k)
    for i in range(k):
        store(scratch, to + LANES * i, load(a, start + LANES * (packed(n, i) + k)))
    for i in range(k, n):
        store(scratch, to + LANES * i, load(a, row + LANES * i))


@bare_kernel
def sweep(a, start, n, k, inverse, scratch, u):
    """Sweep row k. `u` is the position of its copy in `scratch`, and `inverse` is 1 / pivot."""
    for i in range(n):
        at, ratio = start + LANES * packed(n, i), mul(load(scratch, u + LANES * i), inverse)
        for j in range(i, n):
            store(a, at + LANES * j, minus(load(a, at + LANES * j), mul(ratio, load(scratch, u + LANES * j))))
    row = start + LANES * packed(n, k)
    for i in range(k):
        store(a, start + LANES * (packed(n, i) + k), mul(load(scratch, u + LANES * i), inverse))
    for j in range(k + 1, n):
        store(a, row + LANES * j, mul(load(scratch, u + LANES * j), inverse))
    store(a, row + LANES * k, mul(inverse, splat(-1.0)))


@kernel
def multiply(a, b, out):
    """a·b, square."""
    n = len(a)
    for i in range(n):
        row = out[i]
        row[:] = 0.0
        for k in range(n):
            x, other = a[i, k], b[k]
            for j in range(n):
                row[j] += x * other[j]

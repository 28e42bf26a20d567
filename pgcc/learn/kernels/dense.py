"""Small dense matrices: inverses, log-determinants and products.

The order of operations is fixed, so results are reproducible. Inner loops add a multiple of one row to another, which
compilers vectorize without reordering sums.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.kernels.elementary import log
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel
from pgcc.kernels.simd import (
    LANES,
    div,
    if_less,
    larger,
    load,
    minus,
    mul,
    muladd,
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
    its log-determinant is −inf and its inverse all zeros. `scratch` holds 3·n times eight numbers.
    """
    if n == 0:
        store(logdet, first, splat(0.0))
        return
    for i in range(n):
        least = mul(load(a, start + LANES * (packed(n, i) + i)), splat(PIVOT))
        store(scratch, LANES * i, larger(splat(TINY), least))
    u, v = LANES * n, 2 * LANES * n
    worst, product, steps = splat(1.0), splat(1.0), splat(0.0)
    for k in range(0, n, 2):
        copy_row(a, start, n, k, scratch, u)
        first_pivot, other_pivot = load(scratch, u + LANES * k), splat(1.0)
        worst = smaller(minus(first_pivot, load(scratch, LANES * k)), worst)
        first_pivot = larger(splat(TINY), first_pivot)  # NaN stays NaN
        by_first = div(splat(1.0), first_pivot)
        if k + 1 < n:
            copy_row(a, start, n, k + 1, scratch, v)
            ratio = mul(load(scratch, u + LANES * (k + 1)), by_first)
            other_pivot = subtract_row(scratch, u, v, n, k + 1, ratio)
            worst = smaller(minus(other_pivot, load(scratch, LANES * (k + 1))), worst)
            other_pivot = larger(splat(TINY), other_pivot)
            sweep_two(a, start, n, k, ratio, by_first, div(splat(1.0), other_pivot), scratch, u, v)
        else:
            sweep_one(a, start, n, k, by_first, scratch, u)
        for pivot in (first_pivot, other_pivot):
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
def subtract_row(scratch, u, v, n, k, ratio):
    """v ← v − ratio·u; returns entry k of the result."""
    for i in range(n):
        at = LANES * i
        store(scratch, v + at, minus(load(scratch, v + at), mul(ratio, load(scratch, u + at))))
    return load(scratch, v + LANES * k)


@bare_kernel
def sweep_one(a, start, n, k, inverse, scratch, u):
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


@bare_kernel
def sweep_two(a, start, n, k, ratio, inverse, other, scratch, u, v):
    """Sweep rows k and k + 1: a_ij − u_i·u_j / p − v_i·v_j / q.

    u is row k, v is row k + 1 after sweeping row k, and p and q are their pivots. `inverse` is 1/p, `other` is 1/q, and
    `ratio` is u_(k + 1) / p.
    """
    for i in range(n):
        at = start + LANES * packed(n, i)
        x, y = mul(load(scratch, u + LANES * i), inverse), mul(load(scratch, v + LANES * i), other)
        for j in range(i, n):
            rest = minus(load(a, at + LANES * j), mul(x, load(scratch, u + LANES * j)))
            store(a, at + LANES * j, minus(rest, mul(y, load(scratch, v + LANES * j))))
    row, below = start + LANES * packed(n, k), start + LANES * packed(n, k + 1)
    back = mul(ratio, other)
    for i in range(k):
        at, y = start + LANES * (packed(n, i) + k), load(scratch, v + LANES * i)
        store(a, at, minus(mul(load(scratch, u + LANES * i), inverse), mul(back, y)))
        store(a, at + LANES, mul(y, other))
    for j in range(k + 2, n):
        y = load(scratch, v + LANES * j)
        store(a, row + LANES * j, minus(mul(load(scratch, u + LANES * j), inverse), mul(back, y)))
        store(a, below + LANES * j, mul(y, other))
    store(a, row + LANES * k, mul(splat(-1.0), muladd(ratio, back, inverse)))
    store(a, row + LANES * (k + 1), back)
    store(a, below + LANES * (k + 1), mul(other, splat(-1.0)))


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


@kernel
def multiply_transposed(a, transposed, out):
    """a·aᵀ, square; `transposed` is scratch memory for aᵀ."""
    n = len(a)
    for i in range(n):
        for j in range(n):
            transposed[j, i] = a[i, j]
    multiply(a, transposed, out)

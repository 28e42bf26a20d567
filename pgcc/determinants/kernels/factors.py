"""Eight small determinants at a time: elimination without pivoting, and how far to trust it.

A matrix is stored row by row with a vector of eight doubles, one per determinant, for every entry: whole, or if it is
symmetric only what is on and below the diagonal. Elimination without pivoting is right for the matrices that pgcc makes
of determinantal distributions (definite, or quasi-definite: definite blocks of opposite signs in order); wherever it is
not, the bound says so.

The bound. Elimination computes L·D·R exactly for a matrix off by at most (q + data)·u·|L||D||R| in every entry; with
L̂ = |D|^-½·L·|D|^½, and R̂ likewise, the determinant is then off by a factor det(I + W), where
|W| ≤ (q + data)·u · X·Yᵀ for X = |L̂⁻¹||L̂| and Y = |R̂⁻ᵀ||R̂ᵀ|. With τ = (q + data)·u·‖X‖·‖Y‖ (Frobenius),
|tr W| ≤ τ and |tr Wⁿ| ≤ τⁿ, so that |log det(I + W)| ≤ −log(1 − τ), and the determinant is off by a factor within
τ/(1 − τ) of 1: at most 1.11·τ, if that is below 0.1, with 0.9 % to spare for the roundings of ‖X‖ and ‖Y‖
(sums of positive numbers). And |L̂⁻¹| is at most the inverse of the comparison matrix 2I − |L̂|, which one substitution
applies to a vector. Of the inverse itself, J as it is computed is off by at most η·X·|J|, η = (q + 8)·u; hence
X ≤ X̂ + η·X·X̂ for X̂ = |J||L̂|, and ‖X‖ ≤ ‖X̂‖/(1 − η·‖X̂‖), where η·‖X̂‖ < 0.1 if the bound is any good: 1.5 is more
than 1.11/0.81.
The roundings: a multiplier is off by 2, a product by 1, and the partial sums of an entry by q − 1, in units of
u·|L||D||R|; data has 5 more for what stands in the matrix.
"""

from __future__ import annotations

from pgcc.kernels.policy import bare_kernel, inlined_kernel
from pgcc.kernels.simd import LANES, div, load, magnitude, mul, muladd, root, splat, store


@inlined_kernel
def eliminate_symmetric(matrix, q, column):
    """L·D·Lᵀ of a symmetric matrix, in place: D on the diagonal, L·D below it. `column`: memory for q vectors."""
    minus = splat(-1.0)
    diagonal = 0
    for p in range(q - 1):
        reciprocal = div(minus, load(matrix, diagonal))
        at = diagonal
        for i in range(p + 1, q):
            at += i * LANES  # from (i − 1, p) to (i, p)
            store(column, i * LANES, load(matrix, at))
        at = diagonal
        for i in range(p + 1, q):
            at += i * LANES
            factor = mul(load(column, i * LANES), reciprocal)
            entry = at
            for j in range(p + 1, i + 1):
                entry += LANES
                store(matrix, entry, muladd(factor, load(column, j * LANES), load(matrix, entry)))
        diagonal += (p + 2) * LANES


@bare_kernel
def eliminate(matrix, q):
    """L·D·R of any matrix, in place: D on the diagonal, L·D below and D·R above it."""
    minus = splat(-1.0)
    for p in range(q - 1):
        pivots = p * q
        reciprocal = div(minus, load(matrix, (pivots + p) * LANES))
        for i in range(p + 1, q):
            row = i * q
            factor = mul(load(matrix, (row + p) * LANES), reciprocal)
            for j in range(p + 1, q):
                at = (row + j) * LANES
                store(matrix, at, muladd(factor, load(matrix, (pivots + j) * LANES), load(matrix, at)))


@inlined_kernel
def place(symmetric, transposed, q, i, j):
    """Where entry (i, j), j ≤ i, of the lower triangle is; of the upper one, as its transpose, if `transposed`."""
    if symmetric:
        return (i * (i + 1) // 2 + j) * LANES
    return (j * q + i) * LANES if transposed else (i * q + j) * LANES


@inlined_kernel
def inverse_roots(matrix, q, symmetric, scale):
    """scale[i] = 1/√|D_i|, with which L̂_ij = (L·D)_ij · scale[i] · scale[j]."""
    one = splat(1.0)
    for i in range(q):
        pivot = load(matrix, place(symmetric, False, q, i, i))
        store(scale, i * LANES, div(one, root(magnitude(pivot))))


@inlined_kernel
def quick_growth(matrix, q, symmetric, transposed, scale, x):
    """At least ‖X‖² in every lane, by one substitution: X·e ≤ 2·(2I − |L̂|)⁻¹·e − e. `x`: memory for q vectors."""
    total = splat(0.0)
    minus, one, two = splat(-1.0), splat(1.0), splat(2.0)
    for i in range(q):
        dot = splat(0.0)
        at, step = place(symmetric, transposed, q, i, 0), q * LANES if transposed else LANES
        for j in range(i):
            dot = muladd(magnitude(load(matrix, at)), load(x, j * LANES), dot)
            at += step
        # x holds scale[j]·((2I − |L̂|)⁻¹·e)_j, so that a product with L·D needs no other factor
        solution = muladd(dot, load(scale, i * LANES), one)
        store(x, i * LANES, mul(solution, load(scale, i * LANES)))
        sums = muladd(two, solution, minus)
        total = muladd(sums, sums, total)
    return total


@bare_kernel
def full_growth(matrix, q, symmetric, transposed, scale, inverse):
    """At least ‖X‖² in every lane, from the inverse itself. `inverse`: memory for q(q + 1)/2 vectors."""
    for j in range(q):  # column j of L̂⁻¹
        store(inverse, (j * (j + 1) // 2 + j) * LANES, splat(1.0))
        for i in range(j + 1, q):
            dot = splat(0.0)
            for k in range(j, i):
                entry = mul(load(matrix, place(symmetric, transposed, q, i, k)), load(scale, k * LANES))
                dot = muladd(entry, load(inverse, (k * (k + 1) // 2 + j) * LANES), dot)
            negative = mul(splat(-1.0), load(scale, i * LANES))
            store(inverse, (i * (i + 1) // 2 + j) * LANES, mul(dot, negative))
    total = splat(0.0)
    for i in range(q):
        for j in range(i + 1):
            # (|L̂⁻¹|·|L̂|)_ij; the computed inverse is off by rounding that `trust` allows for
            dot = magnitude(load(inverse, (i * (i + 1) // 2 + j) * LANES))
            for k in range(j + 1, i + 1):
                entry = magnitude(load(matrix, place(symmetric, transposed, q, k, j)))
                entry = mul(mul(entry, load(scale, k * LANES)), load(scale, j * LANES))
                dot = muladd(magnitude(load(inverse, (i * (i + 1) // 2 + k) * LANES)), entry, dot)
            total = muladd(dot, dot, total)
    return total

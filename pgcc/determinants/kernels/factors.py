"""Gaussian elimination without pivoting, for eight small matrices at a time, and the growth that bounds its error.

An entry is a vector of eight doubles, one lane per matrix. Matrices are stored row by row; of a symmetric matrix, only
the lower triangle. Pivoting is not needed for the matrices that pgcc makes of determinantal distributions, which are
definite or quasi-definite (definite diagonal blocks of opposite signs). For any other matrix the error bound is large
if the result is inaccurate. `forms` calls this.

Backward error. The computed L·D·R is exactly that of a matrix that differs by at most (q + data)·u·|L||D||R| in every
entry. In units of u·|L||D||R|, a multiplier has an error of 2, a product of 1, and the partial sums of an entry q − 1;
`data` is 5 more, for the errors of the entries themselves.

Forward error. With L̂ = |D|^-½·L·|D|^½, and R̂ likewise, the computed determinant is wrong by a factor det(I + W),
where |W| ≤ (q + data)·u · X·Yᵀ for X = |L̂⁻¹||L̂| and Y = |R̂⁻ᵀ||R̂ᵀ|. With τ = (q + data)·u·‖X‖·‖Y‖ (Frobenius norms),
|tr W| ≤ τ and |tr Wⁿ| ≤ τⁿ. So |log det(I + W)| ≤ −log(1 − τ), and the relative error is at most τ/(1 − τ). If 1.11·τ
is below 0.1, this is at most 1.11·τ, with a margin of 0.9 % for the roundings of ‖X‖ and ‖Y‖, which are sums of
positive numbers.

Growth. |L̂⁻¹| is at most the inverse of the comparison matrix 2I − |L̂|, which is applied to a vector by one
substitution (`quick_growth`). The inverse itself gives a better bound (`full_growth`): the computed inverse J has an
error of at most η·X·|J|, η = (q + 8)·u. Hence X ≤ X̂ + η·X·X̂ for X̂ = |J||L̂|, and ‖X‖ ≤ ‖X̂‖/(1 − η·‖X̂‖). This is
used only where η·‖X̂‖ < 0.1, and then the constant 1.5 covers 1.11/0.81.
"""

from __future__ import annotations

from pgcc.kernels.policy import bare_kernel, inlined_kernel
from pgcc.kernels.simd import LANES, div, load, magnitude, mul, muladd, root, splat, store


@inlined_kernel
def eliminate_symmetric(matrix, q, column):
    """L·D·Lᵀ of a symmetric matrix, in place: D on the diagonal, L·D below it. column : scratch for q vectors."""
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
    """L·D·R of a matrix, in place: D on the diagonal, L·D below and D·R above it."""
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
def entry_offset(symmetric, transposed, q, i, j):
    """The offset of entry (i, j), j ≤ i, of the lower triangle; if `transposed`, of the transpose of the upper one."""
    if symmetric:
        return (i * (i + 1) // 2 + j) * LANES
    return (j * q + i) * LANES if transposed else (i * q + j) * LANES


@inlined_kernel
def inverse_roots(matrix, q, symmetric, scale):
    """scale[i] = 1/√|D_i|, with which L̂_ij = (L·D)_ij · scale[i] · scale[j]."""
    one = splat(1.0)
    for i in range(q):
        pivot = load(matrix, entry_offset(symmetric, False, q, i, i))
        store(scale, i * LANES, div(one, root(magnitude(pivot))))


@inlined_kernel
def quick_growth(matrix, q, symmetric, transposed, scale, x):
    """An upper bound on ‖X‖² in every lane, by one substitution: X·e ≤ 2·(2I − |L̂|)⁻¹·e − e.

    x : scratch for q vectors.
    """
    total = splat(0.0)
    minus, one, two = splat(-1.0), splat(1.0), splat(2.0)
    for i in range(q):
        dot = splat(0.0)
        at, step = entry_offset(symmetric, transposed, q, i, 0), q * LANES if transposed else LANES
        for j in range(i):
            dot = muladd(magnitude(load(matrix, at)), load(x, j * LANES), dot)
            at += step
        # x holds scale[j]·((2I − |L̂|)⁻¹·e)_j, so that the products with L·D need no other factor
        solution = muladd(dot, load(scale, i * LANES), one)
        store(x, i * LANES, mul(solution, load(scale, i * LANES)))
        sums = muladd(two, solution, minus)
        total = muladd(sums, sums, total)
    return total


@bare_kernel
def full_growth(matrix, q, symmetric, transposed, scale, inverse):
    """‖X̂‖² in every lane, from the inverse itself. inverse : scratch for q(q + 1)/2 vectors."""
    for j in range(q):  # column j of L̂⁻¹
        store(inverse, (j * (j + 1) // 2 + j) * LANES, splat(1.0))
        for i in range(j + 1, q):
            dot = splat(0.0)
            for k in range(j, i):
                entry = mul(load(matrix, entry_offset(symmetric, transposed, q, i, k)), load(scale, k * LANES))
                dot = muladd(entry, load(inverse, (k * (k + 1) // 2 + j) * LANES), dot)
            negative = mul(splat(-1.0), load(scale, i * LANES))
            store(inverse, (i * (i + 1) // 2 + j) * LANES, mul(dot, negative))
    total = splat(0.0)
    for i in range(q):
        for j in range(i + 1):
            # (|J|·|L̂|)_ij; `_bound_errors` of `forms` allows for the rounding errors of J
            dot = magnitude(load(inverse, (i * (i + 1) // 2 + j) * LANES))
            for k in range(j + 1, i + 1):
                entry = magnitude(load(matrix, entry_offset(symmetric, transposed, q, k, j)))
                entry = mul(mul(entry, load(scale, k * LANES)), load(scale, j * LANES))
                dot = muladd(magnitude(load(inverse, (i * (i + 1) // 2 + k) * LANES)), entry, dot)
            total = muladd(dot, dot, total)
    return total

"""Symmetric elimination in double-double arithmetic: `factors.eliminate_symmetric` with a unit roundoff of 2⁻¹⁰⁰.

`forms` turns to it where doubles are not accurate enough. A minor of two near-duplicate items that are ε apart is about
ε², so the relative error of elimination in doubles is u/ε², and that of an orthogonal factorization of their vectors is
u/ε. In double-double arithmetic it is u²/ε², and no vectors are needed.

The operations are those of Joldes, Muller and Popescu (Tight and rigorous error bounds for basic building blocks of
double-word arithmetic, 2017), with relative errors of 3u² for a sum, 4u² for a product, and less than 9u² for a
reciprocal. A step of elimination takes a reciprocal, two products and a sum per entry, which is 20u² together; 2⁻¹⁰⁰ is
64u². Underflow of low parts is negligible beside pivots above 2⁻⁴⁰⁰, and products with smaller pivots are rejected (see
`_careful_product` of `forms`).
"""

from __future__ import annotations

from pgcc.kernels.policy import inlined_kernel
from pgcc.kernels.simd import LANES, div, fused, load, minus, mul, plus, splat, store

UNIT_OF_PAIRS = 2.0**-100


@inlined_kernel
def _two_sum(a, b):
    """a + b and its rounding error (Knuth)."""
    s = plus(a, b)
    other = minus(s, a)
    return s, plus(minus(a, minus(s, other)), minus(b, other))


@inlined_kernel
def _fast_two_sum(a, b):
    """a + b and its rounding error, where |a| ≥ |b| up to rounding (Dekker)."""
    s = plus(a, b)
    return s, minus(b, minus(s, a))


@inlined_kernel
def _add(a, a_low, b, b_low):
    s, s_low = _two_sum(a, b)
    t, t_low = _two_sum(a_low, b_low)
    s, s_low = _fast_two_sum(s, plus(s_low, t))
    return _fast_two_sum(s, plus(t_low, s_low))


@inlined_kernel
def _multiply(a, a_low, b, b_low):
    product = mul(a, b)
    error = fused(a, b, mul(splat(-1.0), product))
    cross = fused(a_low, b, fused(a, b_low, mul(a_low, b_low)))
    return _fast_two_sum(product, plus(error, cross))


@inlined_kernel
def _minus_reciprocal(a, a_low):
    """−1/a = x/(1 − r) ≈ x + x·r for x = −1/high; r = 1 + a·x is at most 2u, and computed with an error of 2u²."""
    x = div(splat(-1.0), a)
    r = fused(a_low, x, fused(a, x, splat(1.0)))
    return _fast_two_sum(x, mul(x, r))


@inlined_kernel
def eliminate_pairs(matrix, low, q, column, column_low):
    """`eliminate_symmetric` of matrix + low. column, column_low : scratch for q vectors each."""
    diagonal = 0
    for p in range(q - 1):
        reciprocal, reciprocal_low = _minus_reciprocal(load(matrix, diagonal), load(low, diagonal))
        at = diagonal
        for i in range(p + 1, q):
            at += i * LANES  # from (i − 1, p) to (i, p)
            store(column, i * LANES, load(matrix, at))
            store(column_low, i * LANES, load(low, at))
        at = diagonal
        for i in range(p + 1, q):
            at += i * LANES
            factor, factor_low = _multiply(
                load(column, i * LANES), load(column_low, i * LANES), reciprocal, reciprocal_low
            )
            entry = at
            for j in range(p + 1, i + 1):
                entry += LANES
                term, term_low = _multiply(
                    factor, factor_low, load(column, j * LANES), load(column_low, j * LANES)
                )  # fmt: skip
                value, value_low = _add(term, term_low, load(matrix, entry), load(low, entry))
                store(matrix, entry, value)
                store(low, entry, value_low)
        diagonal += (p + 2) * LANES

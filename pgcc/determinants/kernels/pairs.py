"""Elimination over pairs of doubles, high + low: as `factors` has it, with a unit of rounding of 2⁻¹⁰⁰.

A minor of near-duplicates that are ε apart has a determinant of ε², of which doubles lose u/ε²; an orthogonal
factorisation of their vectors, in doubles, would still lose u/ε. Pairs lose u²/ε², and need no vectors. The operations
are those of Joldes, Muller and Popescu (Tight and rigorous error bounds for basic building blocks of double-word
arithmetic, 2017), with relative errors of 3u² for a sum, 4u² for a product, and less than 9u² for a reciprocal. In a
step of elimination an entry takes a reciprocal, two products and a sum: 20u² together, and 2⁻¹⁰⁰ is 64u². What low
parts lose by underflow is nothing beside pivots above 2⁻⁴⁰⁰, and below that no product is trusted (see `determinants`).
"""

from __future__ import annotations

from pgcc.kernels.policy import inlined_kernel
from pgcc.kernels.simd import LANES, div, fused, load, minus, plus, splat, store, times

UNIT_OF_PAIRS = 2.0**-100


@inlined_kernel
def _two_sum(a, b):
    """a + b and its rounding error."""
    s = plus(a, b)
    other = minus(s, a)
    return s, plus(minus(a, minus(s, other)), minus(b, other))


@inlined_kernel
def _fast_two_sum(a, b):
    """The same where |a| ≥ |b|, or nearly."""
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
    product = times(a, b)
    error = fused(a, b, times(splat(-1.0), product))
    cross = fused(a_low, b, fused(a, b_low, times(a_low, b_low)))
    return _fast_two_sum(product, plus(error, cross))


@inlined_kernel
def _minus_reciprocal(a, a_low):
    """−1/a = x/(1 − r) ≈ x + x·r for x = −1/high, where r = 1 + a·x, at most 2u, is computed with an error of 2u²."""
    x = div(splat(-1.0), a)
    r = fused(a_low, x, fused(a, x, splat(1.0)))
    return _fast_two_sum(x, times(x, r))


@inlined_kernel
def eliminate_pairs(matrix, low, q, column, column_low):
    """`eliminate_symmetric` of matrix + low. `column`, `column_low`: memory for q vectors each."""
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

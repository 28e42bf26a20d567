"""Many bordered determinants from one elimination, each with an error bound.

`partials` calls this. One matrix M is eliminated; every *border* adds a last row and column to it, and its last pivot
is the Schur complement s, so that the bordered determinant is det M · s.

Errors, with the notation of `factors`. The computed L·D·R is exactly that of a matrix with backward errors E of at most
ε·|L||D||R| in every entry, ε = roundings·u. For M itself, let τ = ε·‖X‖·‖Y‖ < 0.1. Let a be the norm of the last row of
|L⁻¹||L||D|^½, which includes √|s|, and b that of the last column of |D|^½|R||R⁻¹|. The absolute error of s is at most

    |F_ss| + |F_s·(D − F)⁻¹·F_·s| ≤ ε·a·b·(1 + τ/(1 − τ)),      F = L⁻¹·E·R⁻¹,

also where s is 0, and the relative error of det M is at most τ/(1 − τ). The error of the product, relative to det M, is
at most ε·a·b/(1 − τ)² + τ/(1 − τ)·|s|; if QUICK·τ < 0.1, that is τ < 0.08, QUICK = 1.25 times ε·a·b and τ·|s| is
enough.

The norms come from running sums of the elimination: X·e ≤ 2·(2I − |L̂|)⁻¹·e − e for the eliminated rows, and
a ≤ √|s| + 2·Σ|(L·D)_p|·x_p/√|D_p|, where x = (2I − |L̂|)⁻¹·e. If this is not good enough, they come from the inverse of
L, whose computed J has an error of η·X·|J|. Then a, b, ‖X‖ and ‖Y‖ are at most 1/(1 − η·‖X̂‖) < 1.07 times the computed
ones (where FULL·τ < 0.1), and FULL = 1.7 is enough.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.schur import eliminate_row
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, inlined_kernel, kernel
from pgcc.kernels.simd import LANES, load, muladd, splat
from pgcc.rings.float64.kernels.interpreter import store4

_SMALL, _LARGE = 2.0**-400, 2.0**400
_NORMAL = 2.0**-1000
# Factors of the error bounds for higher-order terms, without and with the inverses of L and R: see above.
QUICK, FULL = 1.25, 1.7
# The number of borders per forward substitution.
WIDTH = 4 * LANES
# The state of an elimination: the mantissa and exponent of Π pivots · factors, Σ (X·e)² for L and for R, and 1 if no
# pivot or factor came near under- or overflow.
_MANTISSA, _EXPONENT, GROWTH_L, GROWTH_R, _IN_RANGE = range(5)


class Elimination(NamedTuple):
    """A partially eliminated matrix.

    Attributes
    ----------
    upper, lower : float64 arrays
        The upper triangle of the matrix, and that of its transpose (the same array if symmetric), with diagonals; below
        the diagonals, the multipliers of the eliminated rows: L in `upper`, Rᵀ in `lower`.
    symmetric : bool
    factor : float64 array
        The factors of the pivots in the determinant.
    unshifted : float64 array
        The diagonal of the kernel G, without the terms y/d, as it is for children that are surely in (y = 0). It is
        eliminated likewise.
    running_sums : float64 array, 2 × rows
        Σ_p |(L·D)_ip|·weight_p of the rows i that are left, over the eliminated rows p; the same for (D·R)_pi.
    weight : float64 array, 2 × rows
        x_p/√|D_p| of the eliminated rows, for L and for R.
    state : float64 array
        Product, growth and range of the eliminated rows: see `_MANTISSA` and the other indices.
    """

    upper: np.ndarray
    lower: np.ndarray
    symmetric: bool
    factor: np.ndarray
    unshifted: np.ndarray
    running_sums: np.ndarray
    weight: np.ndarray
    state: np.ndarray


@bare_kernel
def _update_growth(state, factor, pivot, left, right):
    """Add a pivot to `state`; returns the `weight` of its row for L and for R, given its running sums."""
    scale = 1.0 / np.sqrt(abs(pivot))
    x_left, x_right = 1.0 + left * scale, 1.0 + right * scale
    state[GROWTH_L] += (2.0 * x_left - 1.0) ** 2
    state[GROWTH_R] += (2.0 * x_right - 1.0) ** 2
    if not (_SMALL < abs(pivot) < _LARGE and _NORMAL < abs(factor) < math.inf):
        state[_IN_RANGE] = 0.0
    fraction, binary = math.frexp(factor)
    value, carry = math.frexp(state[_MANTISSA] * fraction * pivot)
    state[_MANTISSA] = value
    state[_EXPONENT] += binary + carry
    return x_left * scale, x_right * scale


@bare_kernel
def eliminate_with_growth(matrix, begin, end):
    """Eliminate rows begin … end − 1 of an `Elimination`, and keep its sums and state up to date."""
    upper, lower, symmetric, factor, unshifted, running_sums, weight, state = matrix
    count = len(upper)
    left, right = running_sums[0], running_sums[1]
    for p in range(begin, end):
        pivot, row, column = upper[p, p], upper[p], lower[p]
        weight[0, p], weight[1, p] = _update_growth(
            state, factor[p], pivot, left[p], left[p] if symmetric else right[p]
        )
        for i in range(p + 1, count):
            times = column[i] / pivot
            unshifted[i] -= times * row[i]
            left[i] += abs(column[i]) * weight[0, p]
            target = upper[i]
            for j in range(i, count):
                target[j] -= times * row[j]
            target[p] = times
        if not symmetric:
            for i in range(p + 1, count):
                times = row[i] / pivot
                right[i] += abs(row[i]) * weight[1, p]
                target = lower[i]
                for j in range(i, count):
                    target[j] -= times * column[j]
                target[p] = times


@bare_kernel
def record_if_better(state, known, pivot, size, factor, base_error, i, found):
    """found[i] = the determinant of the eliminated rows, times a last pivot and its factor, if its bound is smaller.

    Nothing is recorded where the error bound is not valid. known : the number of roundings, and ‖X‖·‖Y‖ of the
    eliminated rows. size : a·b of the border, or 0 if there is no last row. base_error : the relative error of the
    base.
    """
    roundings, growth = known
    mantissa, exponent, error = found
    tau = roundings * UNIT * growth
    if not (state[_IN_RANGE] == 1.0 and tau < 0.1 and _NORMAL < abs(factor) < math.inf):
        return
    if not (size == 0.0 or _SMALL < size < _LARGE):
        return
    fraction, binary = math.frexp(factor)
    value = state[_MANTISSA] * fraction
    relative = tau + base_error + 5.0 * (roundings * UNIT)  # 6 roundings per row in the product of pivots and factors
    bound = 1.001 * abs(value) * (roundings * UNIT * size + relative * abs(pivot))
    if bound < error[i]:
        mantissa[i], exponent[i], error[i] = value * pivot, int(state[_EXPONENT]) + binary, bound


@bare_kernel
def solve_borders(multipliers, count, columns):
    """L⁻¹·columns, in place, by forward substitution; L is unit lower triangular, with the multipliers."""
    for i in range(1, count):
        _add_rows(multipliers[i], -1.0, 0, i, columns, i, columns)


@inlined_kernel
def _add_rows(factors, sign, first, last, columns, i, result):
    """Row i of `result` = row i of `columns` + Σ sign·factors[p]·(row p of `columns`) for p = first, …, last − 1."""
    at = i * WIDTH
    a, b = load(columns, at), load(columns, at + LANES)
    c, e = load(columns, at + 2 * LANES), load(columns, at + 3 * LANES)
    for p in range(first, last):
        times, here = splat(sign * factors[p]), p * WIDTH
        a = muladd(times, load(columns, here), a)
        b = muladd(times, load(columns, here + LANES), b)
        c = muladd(times, load(columns, here + 2 * LANES), c)
        e = muladd(times, load(columns, here + 3 * LANES), e)
    store4(result, at, a, b, c, e)


@bare_kernel
def border_pivots(upper, left, right, weight, pivot, sizes):
    """The Schur complement pivot − Σ left·right/D of every border, and its norms a and b, from running sums.

    left, right : the row of L·D and the column of D·R of every border.
    """
    sizes[:] = 0.0
    for p in range(len(upper)):
        inverse, at = 1.0 / upper[p, p], p * WIDTH
        for j in range(WIDTH):
            pivot[j] -= right[at + j] * left[at + j] * inverse
            sizes[0, j] += abs(left[at + j]) * weight[0, p]
            sizes[1, j] += abs(right[at + j]) * weight[1, p]
    for j in range(WIDTH):
        root = np.sqrt(abs(pivot[j]))
        sizes[0, j], sizes[1, j] = root + 2.0 * sizes[0, j], root + 2.0 * sizes[1, j]


@bare_kernel
def is_zero_border(columns, count, j):
    """Whether border j is exactly 0, and has not just underflowed: L⁻¹ leaves its first nonzero entry as it is."""
    zero = True
    for p in range(count):
        zero &= columns[p * WIDTH + j] == 0.0
    return zero


@kernel
def _inverse(multipliers):
    """The inverse of the unit lower triangular matrix with these multipliers."""
    count = len(multipliers)
    inverse = np.zeros((count, count))
    for i in range(count):
        row, factors = inverse[i], multipliers[i]
        row[i] = 1.0
        for p in range(i):
            other, factor = inverse[p], factors[p]
            for j in range(p + 1):
                row[j] -= factor * other[j]
    return inverse


@kernel
def _square_of_growth(multipliers, inverse):
    """‖X‖², X = |D|^-½·|M⁻¹|·|M|·|D|^½, where M is unit lower triangular with the multipliers, and D are the pivots."""
    count, total = len(multipliers), 0.0
    row = np.empty(count)
    for i in range(count):
        row[:] = 0.0
        for p in range(i + 1):
            factor, other = abs(inverse[i, p]), multipliers[p]
            for j in range(p):
                row[j] += factor * abs(other[j])
            row[p] += factor
        scale = 1.0 / abs(multipliers[i, i])
        for j in range(i + 1):
            total += row[j] * row[j] * abs(multipliers[j, j]) * scale
    return total


@kernel
def growth_by_inverse(multipliers):
    """‖X‖² (see `_square_of_growth`), and the strict upper triangles of |M|ᵀ and M⁻ᵀ."""
    inverse = _inverse(multipliers)
    sizes, transposed = np.zeros(inverse.shape), np.zeros(inverse.shape)
    for i in range(len(inverse)):
        for j in range(i):
            sizes[j, i], transposed[j, i] = abs(multipliers[i, j]), inverse[i, j]
    return _square_of_growth(multipliers, inverse), sizes, transposed


@kernel
def border_growth(multipliers, sizes, inverse, columns, pivot, result):
    """The norm a of every border, from the inverse of M; for b, of the transpose.

    With the row m = (L·D)·D⁻¹ of the border, a is the norm of (|m·M⁻¹|·|M| + |m|)·|D|^½ and √|pivot| together.
    columns : the rows L·D of the borders. sizes : |M|ᵀ. inverse : M⁻ᵀ, both as `growth_by_inverse` returns them.
    """
    count = len(multipliers)
    rows, through, target = np.empty(count * WIDTH), np.empty(count * WIDTH), np.empty(count * WIDTH)
    for p in range(count):
        for j in range(p * WIDTH, (p + 1) * WIDTH):
            rows[j] = columns[j] / multipliers[p, p]
    _combine(inverse, rows, through)
    for j in range(count * WIDTH):
        through[j], rows[j] = abs(through[j]), abs(rows[j])
    _combine(sizes, through, target)
    for j in range(WIDTH):
        result[j] = abs(pivot[j])
    for q in range(count):
        weight = abs(multipliers[q, q])
        for j in range(WIDTH):
            entry = target[q * WIDTH + j] + rows[q * WIDTH + j]
            result[j] += entry * entry * weight
    for j in range(WIDTH):
        result[j] = np.sqrt(result[j])


@bare_kernel
def _combine(above, columns, result):
    """result = (I + above)·columns, for a strictly upper triangular matrix."""
    for i in range(len(above)):
        _add_rows(above[i], 1.0, i + 1, len(above), columns, i, result)


@kernel
def leave_each_out(matrix, first, roundings, base_error, children, units, found):
    """For every row from `first` on: eliminate all other rows, and take it last, with its unshifted diagonal.

    Divide and conquer: rows lo … hi − 1 are left at one level, and one half of them at the next, when the other half is
    eliminated. Depth first, on a stack. children, units : the children of these rows, and the factors of their pivots.
    """
    upper, lower, symmetric, factor, unshifted, running_sums, _, state = matrix
    t = len(upper) - first
    levels = 2 + math.ceil(math.log2(t))
    matrices, vectors, states = np.empty((levels, t, t)), np.empty((levels, 3, t)), np.empty((levels, len(state)))
    for i in range(t):
        for j in range(i, t):
            matrices[0, i, j], matrices[0, j, i] = upper[first + i, first + j], lower[first + i, first + j]
        vectors[0, 0, i], vectors[0, 1, i] = unshifted[first + i], running_sums[0, first + i]
        vectors[0, 2, i] = running_sums[0 if symmetric else 1, first + i]
    for v in range(len(state)):
        states[0, v] = state[v]
    stack = np.empty((2 * levels + 2, 3), np.int64)
    begins = np.zeros(levels, np.int64)  # the first row at every level
    ends = np.full(levels, t)
    stack[0, 0], stack[0, 1], stack[0, 2], height = 0, 0, t, 1
    while height:
        height -= 1
        level, lo, hi = stack[height, 0], stack[height, 1], stack[height, 2]
        if level > 0:
            _halve((matrices, vectors, states), level, begins[level - 1], ends[level - 1], lo, hi, factor[first:])
        begins[level], ends[level] = lo, hi
        if hi - lo == 1:
            here, pivot = states[level], vectors[level, 0, 0]
            root, growth = np.sqrt(abs(pivot)), np.sqrt(here[GROWTH_L] * here[GROWTH_R])
            size = (root + 2.0 * vectors[level, 1, 0]) * (root + 2.0 * vectors[level, 2, 0])
            if size > 0.0:  # otherwise it may have underflowed
                record_if_better(
                    here, (QUICK * roundings, growth), pivot, size, units[lo], base_error, children[lo], found
                )
            continue
        middle = (lo + hi) // 2
        for begin, end in ((lo, middle), (middle, hi)):
            stack[height, 0], stack[height, 1], stack[height, 2] = level + 1, begin, end
            height += 1


@kernel
def _halve(levels, level, begin, end, lo, hi, factor):
    """Of rows begin … end − 1 at the level before, keep rows lo … hi − 1 and eliminate the rest.

    levels : at every level, a Schur complement, three vectors, and `state`. The three vectors are the unshifted
    diagonal and the two running sums (see `Elimination`).
    """
    matrices, vectors, states = levels
    m, kept = end - begin, hi - lo
    order = np.empty(m, np.int64)  # the rows to eliminate, then the rows to keep
    at = 0
    for i in range(begin, end):
        if not lo <= i < hi:
            order[at] = i - begin
            at += 1
    for i in range(lo, hi):
        order[at] = i - begin
        at += 1
    before, matrix, vector = matrices[level - 1], np.empty((m, m)), np.empty((3, m))
    for i in range(m):
        for j in range(m):
            matrix[i, j] = before[order[i], order[j]]
        for v in range(3):
            vector[v, i] = vectors[level - 1, v, order[i]]
    for v in range(states.shape[1]):
        states[level, v] = states[level - 1, v]
    unshifted, left, right = vector[0], vector[1], vector[2]
    for p in range(m - kept):
        row, pivot = matrix[p], matrix[p, p]
        weight_left, weight_right = _update_growth(states[level], factor[begin + order[p]], pivot, left[p], right[p])
        for i in range(p + 1, m):
            unshifted[i] -= matrix[i, p] / pivot * row[i]
            left[i] += abs(matrix[i, p]) * weight_left
            right[i] += abs(row[i]) * weight_right
        eliminate_row(matrix, p, pivot)
    for i in range(kept):
        for j in range(kept):
            matrices[level, i, j] = matrix[m - kept + i, m - kept + j]
        for v in range(3):
            vectors[level, v, i] = vector[v, m - kept + i]

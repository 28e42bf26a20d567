"""Matrices with one row and one column more, by one elimination, and how far to trust each of them.

Elimination computes L·D·R exactly for a matrix off by at most ε·|L||D||R| in every entry, ε = (roundings)·u (see
`factors`, also for X, Y and the hats). Let a last row and column be added to a matrix that is already eliminated,
τ = ε·‖X‖·‖Y‖ < 0.1 of the latter, and s the last pivot. With a the norm of the last row of |D|^½·X (as |L⁻¹||L||D|^½,
its own √|s| included), and b that of Y likewise, s is off by

    |F_ss| + |F_s·(D − F)⁻¹·F_·s| ≤ ε·a·b·(1 + τ/(1 − τ)),      F = L⁻¹·E·R⁻¹,

and the determinant of the rest by a factor within τ/(1 − τ) of 1. This is absolute: it holds where s is 0. For
QUICK·τ < 0.1, that is τ < 0.08, the product is off by at most ε·a·b/(1 − τ)² + τ/(1 − τ)·|s|, times what is
eliminated: QUICK = 1.25 times either is enough. Where X comes from the inverse, which is off by η·X·|J| itself, a, b,
‖X‖ and ‖Y‖ are at most 1/(1 − η·‖X̂‖) < 1.07 times what is computed (FULL·τ < 0.1), and FULL = 1.7 is enough.
Without the inverse, X·e ≤ 2·(2I − |L̂|)⁻¹·e − e is known of the rows that are eliminated, and
a ≤ √|s| + 2·Σ|(L·D)_p|·x_p/√|D_p|: running sums as the elimination goes on.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, inlined_kernel, kernel
from pgcc.kernels.simd import LANES, load, muladd, splat
from pgcc.rings.float64.kernels.interpreter import store4

_SMALL, _LARGE = 2.0**-400, 2.0**400
_NORMAL = 2.0**-1000
# What the bounds are multiplied by, for what they leave out; inverses are themselves rounded.
QUICK, FULL = 1.25, 1.7
# Borders that are substituted together.
WIDTH = 4 * LANES
# What is known of a matrix of which some rows are eliminated: Π pivots · factors as mantissa and exponent, Σ (X·e)² for
# L and for R, and whether all was in range.
_MANTISSA, _EXPONENT, GROWTH_L, GROWTH_R, _TAME = range(5)


class Elimination(NamedTuple):
    """A matrix of which some rows are eliminated.

    Attributes
    ----------
    upper, lower : float64 arrays
        The matrix on and above the diagonal, and its transpose likewise (the same array if symmetric); below the
        diagonal, multipliers.
    symmetric : bool
    factor : float64 array
        What the pivots are multiplied by.
    bare : float64 array
        The diagonal that a row has if its child is surely in.
    growing : float64 array, 2 × rows
        |L|·x and |R|ᵀ·x of the rows to come.
    weight : float64 array, 2 × rows
        x_p/√|D_p| of those eliminated.
    state : float64 array
        What is known of those: see `_MANTISSA` and the others.
    """

    upper: np.ndarray
    lower: np.ndarray
    symmetric: bool
    factor: np.ndarray
    bare: np.ndarray
    growing: np.ndarray
    weight: np.ndarray
    state: np.ndarray


class Levels(NamedTuple):
    """What is left of a matrix at every level of halving: rows, three vectors, and `state`."""

    matrices: np.ndarray
    vectors: np.ndarray
    states: np.ndarray


@bare_kernel
def _grow(state, factor, pivot, left, right):
    """One more row eliminated: `state`, and x/√|pivot| of it for L and for R, given |L|·x and |R|ᵀ·x."""
    scale = 1.0 / np.sqrt(abs(pivot))
    x_left, x_right = 1.0 + left * scale, 1.0 + right * scale
    state[GROWTH_L] += (2.0 * x_left - 1.0) ** 2
    state[GROWTH_R] += (2.0 * x_right - 1.0) ** 2
    if not (_SMALL < abs(pivot) < _LARGE and _NORMAL < abs(factor) < math.inf):
        state[_TAME] = 0.0
    fraction, binary = math.frexp(factor)
    value, carry = math.frexp(state[_MANTISSA] * fraction * pivot)
    state[_MANTISSA] = value
    state[_EXPONENT] += binary + carry
    return x_left * scale, x_right * scale


@bare_kernel
def eliminate_growing(matrix, begin, end):
    """Rows begin … end − 1; what is below the diagonal becomes their multipliers (L in `upper`, Rᵀ in `lower`)."""
    upper, lower, symmetric, factor, bare, growing, weight, state = matrix
    count = len(upper)
    left, right = growing[0], growing[1]
    for p in range(begin, end):
        pivot, row, column = upper[p, p], upper[p], lower[p]
        weight[0, p], weight[1, p] = _grow(state, factor[p], pivot, left[p], left[p] if symmetric else right[p])
        for i in range(p + 1, count):
            times = column[i] / pivot
            bare[i] -= times * row[i]
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
def put(state, known, pivot, size, factor, off, i, found):
    """What is eliminated, times a last pivot and its factor; if it is known at all, and better than before.

    known : how many roundings, and ‖X‖·‖Y‖ of what is eliminated. size : a·b, or 0 if there is no last row. off : the
    relative error of the base.
    """
    roundings, growth = known
    mantissa, exponent, error = found
    tau = roundings * UNIT * growth
    if not (state[_TAME] == 1.0 and tau < 0.1 and _NORMAL < abs(factor) < math.inf):
        return
    if not (size == 0.0 or _SMALL < size < _LARGE):
        return
    fraction, binary = math.frexp(factor)
    value = state[_MANTISSA] * fraction
    relative = tau + off + 5.0 * (roundings * UNIT)  # pivots times factors: 6 roundings of every row
    bound = 1.001 * abs(value) * (roundings * UNIT * size + relative * abs(pivot))
    if bound < error[i]:
        mantissa[i], exponent[i], error[i] = value * pivot, int(state[_EXPONENT]) + binary, bound


@bare_kernel
def solve_borders(multipliers, count, columns):
    """L⁻¹·columns, in place; L : 1 on the diagonal and the multipliers below it."""
    for i in range(1, count):
        _add_rows(multipliers[i], -1.0, 0, i, columns, i, columns)


@inlined_kernel
def _add_rows(factors, sign, first, last, columns, i, result):
    """Row i of `result` = row i of `columns`, plus or minus factors[p] times row p of it for p = first, …, last − 1."""
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
def last_pivots(upper, left, right, weight, pivot, sizes):
    """pivot − Σ left·right/D of every border, and a and b of it; left, right : its row of L·D and its column of D·R."""
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
def is_nothing(columns, count, j):
    """Whether border j is 0 and not only too small: L⁻¹ leaves its first entry that is not 0 as it is."""
    nothing = True
    for p in range(count):
        nothing &= columns[p * WIDTH + j] == 0.0
    return nothing


@kernel
def _inverse(multipliers):
    """Of a triangle with 1 on its diagonal and the multipliers below it."""
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
    """‖X‖²: with M the triangle of multipliers and D the pivots, X = |D|^-½·|M⁻¹|·|M|·|D|^½."""
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
def full_growth(multipliers):
    """‖X‖², and |M|ᵀ and M⁻ᵀ without their diagonals."""
    inverse = _inverse(multipliers)
    sizes, transposed = np.zeros(inverse.shape), np.zeros(inverse.shape)
    for i in range(len(inverse)):
        for j in range(i):
            sizes[j, i], transposed[j, i] = abs(multipliers[i, j]), inverse[i, j]
    return _square_of_growth(multipliers, inverse), sizes, transposed


@kernel
def last_sizes(multipliers, sizes, inverse, columns, pivot, result):
    """a of every border, from the inverse; columns : its row of L·D.

    With m = (L·D)·D⁻¹, it is the norm of (|m·M⁻¹|·|M| + |m|)·|D|^½ and √|pivot|. sizes : |M|ᵀ; inverse : M⁻ᵀ.
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
    """result = (I + above)·columns, for a matrix that is 0 on and below the diagonal."""
    for i in range(len(above)):
        _add_rows(above[i], 1.0, i + 1, len(above), columns, i, result)


@kernel
def leave_out(matrix, first, roundings, off, children, units, found):
    """Eliminate all rows from `first` on but one, which comes last with its bare diagonal: for each of them in turn.

    Rows lo … hi − 1 are what is left of a matrix at one level; half of them are left at the next.
    """
    upper, lower, symmetric, factor, bare, growing, _, state = matrix
    t = len(upper) - first
    levels = 2 + math.ceil(math.log2(t))
    left = Levels(np.empty((levels, t, t)), np.empty((levels, 3, t)), np.empty((levels, len(state))))
    matrices, vectors, states = left
    for i in range(t):
        for j in range(i, t):
            matrices[0, i, j], matrices[0, j, i] = upper[first + i, first + j], lower[first + i, first + j]
        vectors[0, 0, i], vectors[0, 1, i] = bare[first + i], growing[0, first + i]
        vectors[0, 2, i] = growing[0 if symmetric else 1, first + i]
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
            _halve(left, level, begins[level - 1], ends[level - 1], lo, hi, factor[first:])
        begins[level], ends[level] = lo, hi
        if hi - lo == 1:
            here, pivot = states[level], vectors[level, 0, 0]
            root, growth = np.sqrt(abs(pivot)), np.sqrt(here[GROWTH_L] * here[GROWTH_R])
            size = (root + 2.0 * vectors[level, 1, 0]) * (root + 2.0 * vectors[level, 2, 0])
            if size > 0.0:  # else it may have underflowed
                put(here, (QUICK * roundings, growth), pivot, size, units[lo], off, children[lo], found)
            continue
        middle = (lo + hi) // 2
        for begin, end in ((lo, middle), (middle, hi)):
            stack[height, 0], stack[height, 1], stack[height, 2] = level + 1, begin, end
            height += 1


@kernel
def _halve(levels, level, begin, end, lo, hi, factor):
    """Of rows begin … end − 1 of the level before, keep lo … hi − 1 and eliminate the others."""
    matrices, vectors, states = levels
    m, kept = end - begin, hi - lo
    order = np.empty(m, np.int64)  # the others, then those that are kept
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
    bare, left, right = vector[0], vector[1], vector[2]
    for p in range(m - kept):
        row, pivot = matrix[p], matrix[p, p]
        on_left, on_right = _grow(states[level], factor[begin + order[p]], pivot, left[p], right[p])
        for i in range(p + 1, m):
            target = matrix[i]
            times = target[p] / pivot
            bare[i] -= times * row[i]
            left[i] += abs(target[p]) * on_left
            right[i] += abs(row[i]) * on_right
            for j in range(p + 1, m):
                target[j] -= times * row[j]
    for i in range(kept):
        for j in range(kept):
            matrices[level, i, j] = matrix[m - kept + i, m - kept + j]
        for v in range(3):
            vectors[level, v, i] = vector[v, m - kept + i]

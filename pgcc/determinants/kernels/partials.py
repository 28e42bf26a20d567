"""∂D/∂f_i for every child i of a determinant D, from one elimination: what all marginals are made of.

D is affine in every f_i, so ∂D/∂f_i is D with child i surely in: a determinant with one row more (see `determinants`).
The rows of the others come first in all of these, and are eliminated once; a child at the base adds a *border*, its
column and row of the kernel, which costs a substitution:

    det [[M, g], [h, G_ii]] = det M · (G_ii − h·M⁻¹·g)

A child that is among the eliminated ones, but not surely in, has to be left out of them. All are left out in turn by
halving: eliminate one half, go on with the other half alone, and the other way round, which takes O(q³) together.

How far to trust each is in `bordering`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.bordering import (
    FULL,
    GROWTH_L,
    GROWTH_R,
    QUICK,
    WIDTH,
    Elimination,
    eliminate_growing,
    full_growth,
    is_nothing,
    last_pivots,
    last_sizes,
    leave_out,
    put,
    solve_borders,
)
from pgcc.determinants.kernels.filling import added, below_base, fill_rank
from pgcc.determinants.kernels.observed import ordinary, row_values
from pgcc.determinants.kernels.plan import (
    BASES,
    CHILDREN,
    DEFINITE,
    FREE,
    HAS,
    MATRICES,
    OUT,
    RANK,
    SYMMETRIC,
    TABLE,
    Found,
    K,
    Minor,
    R,
    Scratch,
)
from pgcc.determinants.kernels.staged import in_range
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel
from pgcc.kernels.simd import LANES

_NO_BASE = np.array([1.0, 0.0, 0.0])


class Accuracy(NamedTuple):
    """How accurate the derivatives of a row are, and are to be.

    Attributes
    ----------
    roundings, spread : float
        See `_trust` of `forms`.
    off : float
        The relative error of the base.
    wanted : float
        A relative error that is good enough.
    """

    roundings: float
    spread: float
    off: float
    wanted: float


@kernel
def trusted_partials(dets, d, children, first):
    """Derivatives of a determinant divided by 2^shift into the slots from `first` on, and then their magnitudes.

    dets : Determinants. NaN where they are not known or out of range. Children off by γ change a derivative by
    degree·γ; its own error counts in units of roundings, as in `run_tail`.
    """
    work, lanes, rows, k = children.work, children.lanes, children.rows, dets.layout.plan[d, K]
    shift, degree = dets.shift[d], dets.degree[d]
    found = Found(np.empty((k, lanes)), np.empty((k, lanes), np.int64), np.empty((k, lanes)))
    mantissa, exponent, error = found
    partial_rows(dets.layout, d, children, dets.wanted, found)
    for i in range(k):
        value, size = (first + i) * lanes, (first + k + i) * lanes
        for lane in range(lanes):
            known = lane < rows and error[i, lane] < math.inf
            here = in_range(mantissa[i, lane], exponent[i, lane] - shift) if known else math.nan
            off = in_range(error[i, lane], exponent[i, lane] - shift) if known else math.nan
            work[value + lane] = here
            work[size + lane] = degree * (abs(here) + off) + off / UNIT


@separate_kernel
def partial_rows(layout, d, children, wanted, found):
    """mantissa[i, row]·2^exponent[i, row] = ∂D/∂f_i for determinant d, off by at most error[i, row]·2^exponent[i, row].

    See `determinant_rows`. Where f_i = 0 it is said to be 0: a child without negative coefficients that is 0 is so
    whatever happens to its free variables, and nobody asks. wanted : a relative error that is good enough.
    An error of inf says that nothing is known.
    """
    plan = layout.plan
    r, k, symmetric = plan[d, R], plan[d, K], plan[d, SYMMETRIC] == 1
    f, y = np.empty(k), np.empty(k)
    index, diagonal, bare, factor = np.empty(2 * k, np.int64), np.empty(k), np.empty(r + k), np.empty(r + k)
    for row in range(children.rows):
        here = Found(found.mantissa[:, row], found.exponent[:, row], found.error[:, row])
        row_values(layout, d, children, row, f, y)
        if not _begin(f, y, r, here):
            continue
        form = _choose_form(layout, d, f, y)
        if form < 0:
            continue
        base = layout.bases[BASES * d + form] if form != RANK else _NO_BASE
        if form == RANK:
            hard, count, last = _order_rank(r, f, y, index)
        else:
            hard, count, last = _order_base(layout, d, form, f, y, index, (diagonal, bare, factor))
        minor = Minor(d, form, count)
        state = np.array([base[0], base[1], 0.0, 0.0, 1.0])
        upper = np.empty((count, count))
        lower = upper if symmetric else np.empty((count, count))
        matrix = Elimination(
            upper, lower, symmetric, factor, bare, np.zeros((2, count)), np.empty((2, count)), state
        )  # fmt: skip
        roundings, spread = count + 9.0, 0.0  # see `_trust` of `forms`
        if form == RANK:
            sums, lost = _fill_rank(layout, minor, f, y, matrix)
            roundings, spread = (roundings, sums) if plan[d, DEFINITE] else (roundings + sums * lost, 0.0)
        else:
            _fill_base(layout, minor, index, diagonal, matrix)
        eliminate_growing(matrix, 0, hard)
        if hard < count:
            left_out = index[hard:count]
            leave_out(matrix, hard, roundings, base[2], left_out, _units(layout, d, form, left_out), here)
            eliminate_growing(matrix, hard, count)
        borders = index[count - (r if form == RANK else 0) : last]
        accuracy = Accuracy(roundings, spread, base[2], wanted)
        growth = _substitute(layout, minor, matrix, index, borders, accuracy, here)
        for i in range(k):
            if y[i] == 0.0:  # D/f_i
                put(state, growth, 1.0, 0.0, 1.0 / f[i], base[2], i, here)


@bare_kernel
def _begin(f, y, r, found):
    """Nothing is known yet but zeros; whether there is anything to compute."""
    mantissa, exponent, error = found
    mantissa[:], exponent[:], error[:] = 0.0, 0, math.inf
    if not ordinary(f, y):
        return False
    inner, zero = 0, False
    for i in range(len(f)):
        inner += y[i] == 0.0
        zero |= y[i] == 0.0 and f[i] == 0.0
        if f[i] == 0.0:
            error[i] = 0.0
    if zero or inner > r:  # a child that is impossible, or more vectors than dimensions
        error[:] = 0.0
        return False
    return True


@bare_kernel
def _choose_form(layout, d, f, y):
    """The cheapest form; −1 if there is none."""
    plan, data = layout.plan, layout.data
    r, k = plan[d, R], plan[d, K]
    best, form = math.inf, -1
    for candidate in (FREE, OUT):
        if plan[d, HAS + candidate]:
            count, soft = 0, 0
            for i in range(k):
                phi = data[plan[d, CHILDREN] + i] if candidate == FREE else 0.0
                if f[i] != phi or y[i] == 0.0:
                    count += 1
                    soft += y[i] != 0.0 and f[i] != 0.0
            cost = count * count * (count / 6.0 + (k - count) / 2.0) + 3.0 * soft * soft * soft
            if cost < best:
                best, form = cost, candidate
    if plan[d, HAS + RANK]:
        inner = 0
        for i in range(k):
            inner += y[i] == 0.0
        count = r + inner
        cost = 2.0 * k * r * r + count * count * (count / 6.0 + (k - inner) / 2.0)
        if cost < best:
            form = RANK
    return form


@bare_kernel
def _order_rank(r, f, y, index):
    """The children that are in, then those that may be; r rows and the former are eliminated, nothing is left out."""
    last = 0
    for surely in (True, False):
        for i in range(len(f)):
            if (y[i] == 0.0) == surely and f[i] > 0.0:
                index[last] = i
                last += 1
        if surely:
            count = r + last
    return count, count, last


@bare_kernel
def _order_base(layout, d, form, f, y, index, pivots):
    """Children as they are eliminated: those surely in or out, then those that differ from the base, then the others.

    Returns how many there are in the first group, up to the second, up to the last. pivots : the diagonal of
    G + diag(y/d), that of G, and d, unscaled.
    """
    plan, data = layout.plan, layout.data
    diagonal, bare, factor = pivots
    k, table = plan[d, K], plan[d, TABLE + form]
    phis, scales = plan[d, CHILDREN], plan[d, CHILDREN] + (1 if form == FREE else 3) * k
    hard, count, last = 0, 0, 0
    for group in range(4):
        for i in range(k):
            phi = data[phis + i] if form == FREE else 0.0
            if y[i] == 0.0:
                here = 0
            elif f[i] == phi:
                here = 3
            else:
                here = 1 if f[i] == 0.0 else 2
            if here != group or (group == 3 and f[i] == 0.0):
                continue
            index[last] = i
            last += 1
            if group == 3:
                continue
            count += 1
            hard += group < 2
            scale, change = data[scales + i], f[i] - y[i] * phi
            bare[last - 1] = data[table + i * (k + 1)]
            factor[last - 1] = change / scale
            if change > 0.0:
                diagonal[last - 1] = bare[last - 1] if y[i] == 0.0 else added(bare[last - 1], scale / change)
            else:
                diagonal[last - 1] = -below_base(data[phis + 2 * k + i], scale, f[i], phi, change)
    return hard, count, last


@bare_kernel
def _fill_base(layout, minor, index, diagonal, matrix):
    """G + diag(y/d) on and above the diagonal, and its transpose likewise (which is the same array if symmetric)."""
    data, upper, lower, symmetric = layout.data, matrix.upper, matrix.lower, matrix.symmetric
    d, form, count = minor
    k, table = layout.plan[d, K], layout.plan[d, TABLE + form]
    for p in range(count):
        here = table + index[p] * k
        for j in range(p + 1, count):
            upper[p, j] = data[here + index[j]]
            if not symmetric:
                lower[p, j] = data[table + index[j] * k + index[p]]
        upper[p, p] = lower[p, p] = diagonal[p]


@kernel
def _fill_rank(layout, minor, f, y, matrix):
    """[[M1, U_A], [−V_Aᵀ, 0]] likewise; returns what `fill_rank` does."""
    count, r, k = minor.q, layout.plan[minor.d, R], layout.plan[minor.d, K]
    entries, factors, index = np.empty(count * count * LANES), np.empty(count * LANES), np.empty(2 * k + 1, np.int64)
    scratch = Scratch(entries, np.empty(0), factors, np.empty(3 * r * r), np.empty((3, 0)), index, np.empty((2, 0)))
    sums, lost = fill_rank(layout, minor, f, y, 0, scratch)
    for p in range(count):
        matrix.factor[p], matrix.bare[p] = factors[p * LANES], 0.0
        for j in range(p, count):
            at = j * (j + 1) // 2 + p if matrix.symmetric else j * count + p
            matrix.lower[p, j] = entries[at * LANES]
            if not matrix.symmetric:
                matrix.upper[p, j] = entries[(p * count + j) * LANES]
    return sums, lost


@kernel
def _units(layout, d, form, children):
    """The factors of their pivots where f = 1 and y = 0 (see `fill_base` and `fill_rank`)."""
    plan, data = layout.plan, layout.data
    k, result = plan[d, K], np.ones(len(children))
    ratio, scale = plan[d, CHILDREN] + 4 * k, plan[d, CHILDREN] + (1 if form == FREE else 3) * k
    for j in range(len(children)):
        if form != RANK:
            result[j] = 1.0 / data[scale + children[j]]
        elif plan[d, SYMMETRIC]:
            result[j] = -1.0 / data[ratio + children[j]]
    return result


@separate_kernel
def _substitute(layout, minor, matrix, index, borders, accuracy, found):
    """Border the eliminated matrix with every child of `borders` in turn, many at a time.

    Returns what is to be known of the growth of the matrix without a border (see `put`).
    """
    upper, lower, symmetric, state, count = matrix.upper, matrix.lower, matrix.symmetric, matrix.state, minor.q
    roundings, spread, off, wanted = accuracy
    right = np.zeros(count * WIDTH)
    left = right if symmetric else np.zeros(count * WIDTH)
    pivot, sizes = np.empty(WIDTH), np.empty((2, WIDTH))
    units = _units(layout, minor.d, minor.form, borders)
    known = QUICK * (roundings + spread), np.sqrt(state[GROWTH_L] * state[GROWTH_R])
    refined = False
    for first in range(0, len(borders), WIDTH):
        some = borders[first : first + WIDTH]
        _fill_borders(layout, minor, index, some, right, left, pivot)
        solve_borders(upper, count, right)
        if not symmetric:
            solve_borders(lower, count, left)
        last_pivots(upper, left, right, matrix.weight, pivot, sizes)
        worst = 0.0
        for j in range(len(some)):
            c = some[j]
            size = _size(left, right, count, sizes, j)
            put(state, known, pivot[j], size, units[first + j], off, c, found)
            worst = max(worst, found.error[c] - wanted * abs(found.mantissa[c]))
        if worst <= 0.0:
            continue
        if not refined:
            refined = True
            on_left = full_growth(upper)
            on_right = on_left if symmetric else full_growth(lower)
            known = FULL * (roundings + (count + 1) * spread), np.sqrt(on_left[0] * on_right[0])
        last_sizes(upper, on_left[1], on_left[2], left, pivot, sizes[0])
        last_sizes(lower, on_right[1], on_right[2], right, pivot, sizes[1])
        for j in range(len(some)):
            c = some[j]
            size = _size(left, right, count, sizes, j)
            put(state, known, pivot[j], size, units[first + j], off, c, found)
    return known


@bare_kernel
def _size(left, right, count, sizes, j):
    """a·b of border j; NaN where it underflows, so that a border that is not 0 is not taken for one that is."""
    size = sizes[0, j] * sizes[1, j]
    known = size > 0.0 or (is_nothing(left, count, j) and is_nothing(right, count, j))
    return size if known else math.nan


@bare_kernel
def _fill_borders(layout, minor, index, some, right, left, pivot):
    """Columns and rows of the borders, and what stands in their corner."""
    plan, data = layout.plan, layout.data
    d, form, count = minor
    r, k, symmetric = plan[d, R], plan[d, K], plan[d, SYMMETRIC] == 1
    if form == RANK:  # (u, 0), (−v, 0), 0; or (u, 0) twice
        u, v = plan[d, MATRICES] + r * r, plan[d, MATRICES] + r * r + r * k
        pivot[:] = 0.0
        for j in range(len(some)):
            for p in range(count):
                right[p * WIDTH + j] = data[u + some[j] * r + p] if p < r else 0.0
                if not symmetric:
                    left[p * WIDTH + j] = -data[v + some[j] * r + p] if p < r else 0.0
        return
    table = plan[d, TABLE + form]
    for j in range(len(some)):
        pivot[j] = data[table + some[j] * (k + 1)]
    for p in range(count):
        here = table + index[p] * k
        for j in range(len(some)):
            right[p * WIDTH + j] = data[here + some[j]]
            if not symmetric:
                left[p * WIDTH + j] = data[table + some[j] * k + index[p]]

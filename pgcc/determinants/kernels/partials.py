"""The derivatives ∂D/∂f_i of a determinant D by all of its children, from one elimination, for marginals.

D is affine in every f_i, so ∂D/∂f_i is D with child i surely in: a determinant of the same form (see `forms`) with the
rows of all other children, which come first and are eliminated once. A child that is at the base has no row yet: it
becomes a *border* of the eliminated matrix M, which costs a substitution, by the Schur complement

    det [[M, g], [h, G_ii]] = det M · (G_ii − h·M⁻¹·g)

A child with a row of its own that is not surely in has to be left out of M. All of these are left out in turn by divide
and conquer: eliminate one half, go on with the other half, and vice versa, in O(q³) operations altogether. `bordering`
has both algorithms and their error bounds. `pgcc.determinants.reverse_pass` calls `write_partials`.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.bordering import (
    FULL,
    GROWTH_L,
    GROWTH_R,
    QUICK,
    WIDTH,
    Elimination,
    border_growth,
    border_pivots,
    eliminate_with_growth,
    growth_by_inverse,
    is_zero_border,
    leave_each_out,
    record_if_better,
    solve_borders,
)
from pgcc.determinants.kernels.filling import fill_rank, shifted_diagonal
from pgcc.determinants.kernels.observed import are_valid, row_values
from pgcc.determinants.kernels.plan import (
    BASES,
    FREE,
    OUT,
    RANK,
    Found,
    Minor,
    Scratch,
)
from pgcc.determinants.kernels.staged import in_range
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel
from pgcc.kernels.simd import LANES

_NO_BASE = np.array([1.0, 0.0, 0.0])


@kernel
def write_partials(dets, d, children, first):
    """Write the derivatives of a determinant, divided by 2^shift, and their magnitudes to the slots from `first` on.

    dets : Determinants. Derivatives that are unknown or out of range are NaN. A relative error γ of the children
    changes a derivative by degree·γ; its own error is added to the magnitude in units of roundings, as in `run_tail`.
    """
    work, lanes, rows, k = children.work, children.lanes, children.rows, dets.layout.plan[d].children
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
    """mantissa·2^exponent = ∂D/∂f_i of determinant d, with an error of at most error·2^exponent; all at [i, row].

    An error of inf means that the derivative is unknown. Arguments are those of `determinant_rows`. Where f_i = 0, the
    derivative is reported as 0: a child without negative coefficients that is 0 stays 0 whatever its free variables
    are, so that the derivative is never used.
    """
    det = layout.plan[d]
    r, k, symmetric = det.rank, det.children, det.symmetric
    f, y = np.empty(k), np.empty(k)
    index, diagonal, unshifted, factor = np.empty(2 * k, np.int64), np.empty(k), np.empty(r + k), np.empty(r + k)
    for row in range(children.rows):
        here = Found(found.mantissa[:, row], found.exponent[:, row], found.error[:, row])
        row_values(layout, d, children, row, f, y)
        if not _record_zeros(f, y, r, here):
            continue
        form = _choose_form(layout, d, f, y)
        if form < 0:
            continue
        base = layout.bases[BASES * d + form] if form != RANK else _NO_BASE
        if form == RANK:
            decided, count, last = _order_rank(r, f, y, index)
        else:
            decided, count, last = _order_base(layout, d, form, f, y, index, (diagonal, unshifted, factor))
        minor = Minor(d, form, count)
        state = np.array([base[0], base[1], 0.0, 0.0, 1.0])
        upper = np.empty((count, count))
        lower = upper if symmetric else np.empty((count, count))
        matrix = Elimination(
            upper, lower, symmetric, factor, unshifted, np.zeros((2, count)), np.empty((2, count)), state
        )  # fmt: skip
        roundings, spread = count + 9.0, 0.0  # see `_bound_errors` of `forms`
        if form == RANK:
            sums, lost = _fill_rank(layout, minor, f, y, matrix)
            roundings, spread = (roundings, sums) if det.definite else (roundings + sums * lost, 0.0)
        else:
            _fill_base(layout, minor, index, diagonal, matrix)
        eliminate_with_growth(matrix, 0, decided)
        if decided < count:
            left_out = index[decided:count]
            leave_each_out(
                matrix, decided, roundings, base[2], left_out, _unit_factors(layout, d, form, left_out), here
            )
            eliminate_with_growth(matrix, decided, count)
        borders = index[count - (r if form == RANK else 0) : last]
        accuracy = roundings, spread, base[2], wanted
        growth = _border_each(layout, minor, matrix, index, borders, accuracy, here)
        for i in range(k):
            if y[i] == 0.0:  # D/f_i
                record_if_better(state, growth, 1.0, 0.0, 1.0 / f[i], base[2], i, here)


@bare_kernel
def _record_zeros(f, y, r, found):
    """Record the derivatives that are 0, and all others as unknown; return whether there are any to compute."""
    mantissa, exponent, error = found
    mantissa[:], exponent[:], error[:] = 0.0, 0, math.inf
    if not are_valid(f, y):
        return False
    inner, zero = 0, False
    for i in range(len(f)):
        inner += y[i] == 0.0
        zero |= y[i] == 0.0 and f[i] == 0.0
        if f[i] == 0.0:
            error[i] = 0.0
    if zero or inner > r:  # an impossible child, or more vectors than dimensions: all derivatives are 0
        error[:] = 0.0
        return False
    return True


@bare_kernel
def _choose_form(layout, d, f, y):
    """The cheapest form of all derivatives; −1 if there is none.

    Not that of one value (`cost_of` of `forms`): every child at the base costs a substitution, and every one that is
    left out in turn a share of further eliminations.
    """
    det, data = layout.plan[d], layout.data
    r, k = det.rank, det.children
    best, form = math.inf, -1
    for candidate in (FREE, OUT):
        if det.has[candidate]:
            count, undecided = 0, 0
            for i in range(k):
                phi = data[det.phi + i] if candidate == FREE else 0.0
                if f[i] != phi or y[i] == 0.0:
                    count += 1
                    undecided += y[i] != 0.0 and f[i] != 0.0
            cost = count * count * (count / 6.0 + (k - count) / 2.0) + 3.0 * undecided * undecided * undecided
            if cost < best:
                best, form = cost, candidate
    if det.has[RANK]:
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
    """List the children that are surely in, then those that may be in; the r rows of M1 and the former are eliminated.

    Returns what `_order_base` does; no child has to be left out.
    """
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
    """List the children surely in or out, then all others that differ from the base, then those at the base.

    Returns the number of children in the first group, in the first two, and in all three. The first two groups are
    eliminated. pivots : the diagonal of G + diag(y/d), that of G, and d divided by the scale, of these two groups.
    """
    det, data = layout.plan[d], layout.data
    diagonal, unshifted, factor = pivots
    k, table = det.children, det.kernel[form]
    phis, scales, gaps = det.phi, det.scale[form], det.gap
    decided, count, last = 0, 0, 0
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
            decided += group < 2
            entry = unshifted[last - 1] = data[table + i * (k + 1)]
            diagonal[last - 1], factor[last - 1] = shifted_diagonal(
                entry, data[gaps + i], data[scales + i], f[i], y[i], phi
            )
    return decided, count, last


@bare_kernel
def _fill_base(layout, minor, index, diagonal, matrix):
    """Fill in G + diag(y/d) (see `Elimination`)."""
    data, upper, lower, symmetric = layout.data, matrix.upper, matrix.lower, matrix.symmetric
    d, form, count = minor
    det = layout.plan[d]
    k, table = det.children, det.kernel[form]
    for p in range(count):
        here = table + index[p] * k
        for j in range(p + 1, count):
            upper[p, j] = data[here + index[j]]
            if not symmetric:
                lower[p, j] = data[table + index[j] * k + index[p]]
        upper[p, p] = lower[p, p] = diagonal[p]


@kernel
def _fill_rank(layout, minor, f, y, matrix):
    """Fill in [[M1, U_A], [−V_Aᵀ, 0]] (see `Elimination`), by `fill_rank`, and return what that does."""
    count, r, k = minor.q, layout.plan[minor.d].rank, layout.plan[minor.d].children
    entries, factors, index = np.empty(count * count * LANES), np.empty(count * LANES), np.empty(2 * k + 1, np.int64)
    scratch = Scratch(entries, np.empty(0), factors, np.empty(3 * r * r), np.empty((3, 0)), index, np.empty((2, 0)))
    sums, lost = fill_rank(layout, minor, f, y, 0, scratch)
    for p in range(count):
        matrix.factor[p], matrix.unshifted[p] = factors[p * LANES], 0.0
        for j in range(p, count):
            at = j * (j + 1) // 2 + p if matrix.symmetric else j * count + p
            matrix.lower[p, j] = entries[at * LANES]
            if not matrix.symmetric:
                matrix.upper[p, j] = entries[(p * count + j) * LANES]
    return sums, lost


@kernel
def _unit_factors(layout, d, form, children):
    """The factors that the pivots of these children have if f = 1 and y = 0 (see `fill_base` and `fill_rank`)."""
    det, data, result = layout.plan[d], layout.data, np.ones(len(children))
    for j in range(len(children)):
        if form != RANK:
            result[j] = 1.0 / data[det.scale[form] + children[j]]
        elif det.symmetric:
            result[j] = -1.0 / data[det.ratio + children[j]]
    return result


@separate_kernel
def _border_each(layout, minor, matrix, index, borders, accuracy, found):
    """Border the eliminated matrix with every child of `borders` in turn, WIDTH of them at a time.

    accuracy : the backward errors of the matrix (roundings and spread: see `_bound_errors` of `forms`), the relative
    error of the base, and the relative error to aim at.
    Returns the number of roundings and the growth of the matrix without a border (`known` of `record_if_better`).
    """
    upper, lower, symmetric, state, count = matrix.upper, matrix.lower, matrix.symmetric, matrix.state, minor.q
    roundings, spread, base_error, wanted = accuracy
    right = np.zeros(count * WIDTH)
    left = right if symmetric else np.zeros(count * WIDTH)
    pivot, sizes = np.empty(WIDTH), np.empty((2, WIDTH))
    units = _unit_factors(layout, minor.d, minor.form, borders)
    known = QUICK * (roundings + spread), np.sqrt(state[GROWTH_L] * state[GROWTH_R])
    refined = False
    for first in range(0, len(borders), WIDTH):
        batch = borders[first : first + WIDTH]
        _fill_borders(layout, minor, index, batch, right, left, pivot)
        solve_borders(upper, count, right)
        if not symmetric:
            solve_borders(lower, count, left)
        border_pivots(upper, left, right, matrix.weight, pivot, sizes)
        worst = 0.0
        for j in range(len(batch)):
            c = batch[j]
            size = _growth_product(left, right, count, sizes, j)
            record_if_better(state, known, pivot[j], size, units[first + j], base_error, c, found)
            worst = max(worst, found.error[c] - wanted * abs(found.mantissa[c]))
        if worst <= 0.0:
            continue
        if not refined:
            refined = True
            on_left = growth_by_inverse(upper)
            on_right = on_left if symmetric else growth_by_inverse(lower)
            known = FULL * (roundings + (count + 1) * spread), np.sqrt(on_left[0] * on_right[0])
        border_growth(upper, on_left[1], on_left[2], left, pivot, sizes[0])
        border_growth(lower, on_right[1], on_right[2], right, pivot, sizes[1])
        for j in range(len(batch)):
            c = batch[j]
            size = _growth_product(left, right, count, sizes, j)
            record_if_better(state, known, pivot[j], size, units[first + j], base_error, c, found)
    return known


@bare_kernel
def _growth_product(left, right, count, sizes, j):
    """a·b of border j (see `bordering`); NaN where it underflows, so that a tiny border is not taken for 0."""
    size = sizes[0, j] * sizes[1, j]
    known = size > 0.0 or (is_zero_border(left, count, j) and is_zero_border(right, count, j))
    return size if known else math.nan


@bare_kernel
def _fill_borders(layout, minor, index, batch, right, left, pivot):
    """Fill in the columns, the rows and the corners of the borders."""
    d, form, count = minor
    det, data = layout.plan[d], layout.data
    r, k, symmetric = det.rank, det.children, det.symmetric
    if form == RANK:  # column (u, 0), row (−v, 0) or, if symmetric, (u, 0), and corner 0
        u, v = det.u, det.v
        pivot[:] = 0.0
        for j in range(len(batch)):
            for p in range(count):
                right[p * WIDTH + j] = data[u + batch[j] * r + p] if p < r else 0.0
                if not symmetric:
                    left[p * WIDTH + j] = -data[v + batch[j] * r + p] if p < r else 0.0
        return
    table = det.kernel[form]
    for j in range(len(batch)):
        pivot[j] = data[table + batch[j] * (k + 1)]
    for p in range(count):
        here = table + index[p] * k
        for j in range(len(batch)):
            right[p * WIDTH + j] = data[here + batch[j]]
            if not symmetric:
                left[p * WIDTH + j] = data[table + batch[j] * k + index[p]]

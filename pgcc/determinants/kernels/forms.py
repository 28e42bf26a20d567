"""Determinants of a block of rows with relative error bounds, each by the cheapest of four forms.

`staged` and `scaled_staged` call `determinant_rows`. Let (f_i, y_i) be the values of child i and of its complement, A
the children that are surely in (y_i = 0), and B those that are surely out (f_i = 0).

    FREE, OUT   minors of a kernel matrix, relative to a *base* (φ_i, 1) at which the determinant D_base and the kernel
                G = Vᵀ·N⁻¹·U, N = M0 + U·diag(φ)·Vᵀ, are known. By the matrix determinant lemma

                    D(f, y) = D_base · det( diag(y) + G·diag(d) ) = D_base · Π d_i · det( G + diag(y/d) ),
                    d_i = f_i − y_i·φ_i,

                over the children that differ from the base. In FREE, φ_i is the value of child i where nothing is
                observed; for a DPP, G is the marginal kernel K, and the minor has |A| + |B| rows. In OUT, φ = 0; for a
                DPP, G is the L-ensemble kernel, and the minor has a row for every child that is not in B.
    RANK        the bordered determinant det [[M1, U_A], [−V_Aᵀ, 0]], M1 = M0 + Σ_{y_i = 1} f_i·u_i·v_iᵀ, whose number
                of rows does not grow with |B|
    TREES       star–mesh elimination, where M0 and the u_i·v_iᵀ are Laplacians (see `laplacian`)

If d_i < 0, the diagonal entry G_ii + y_i/d_i would cancel; it is computed as −(h_i + f_i/(φ_i·|d_i|)), where `Base.gap`
h_i = 1/φ_i − G_ii is known to full accuracy. Children with d_i > 0 come first, so that the minor of a symmetric kernel
is quasi-definite: two definite diagonal blocks of opposite signs, and elimination without cancellation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.factors import (
    eliminate,
    eliminate_symmetric,
    full_growth,
    inverse_roots,
    quick_growth,
)
from pgcc.determinants.kernels.filling import fill_base, fill_low, fill_rank, fill_variables, next_diagonal, pad
from pgcc.determinants.kernels.laplacian import new_nodes, tree_sum
from pgcc.determinants.kernels.observed import are_valid, compare_values, observe, row_values
from pgcc.determinants.kernels.pairs import UNIT_OF_PAIRS, eliminate_pairs
from pgcc.determinants.kernels.plan import (
    BASES,
    FORMS,
    FREE,
    OUT,
    RANK,
    TOTAL,
    TREES,
    Minor,
    Scratch,
)
from pgcc.determinants.kernels.sized import sized_sum
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, inlined_kernel, kernel, separate_kernel
from pgcc.kernels.simd import LANES, larger, load, magnitude, mul, root, smaller, splat, store
from pgcc.program.det_structure import Laplacian

_SMALL, _LARGE = 2.0**-400, 2.0**400
_NORMAL = 2.0**-1000  # numbers above this have not lost digits to underflow


class Chosen(NamedTuple):
    """The form by which every row of a block is computed.

    Attributes
    ----------
    form, size : int64 arrays
        The form of every row of evidence, −1 for none, and the number of rows of its matrix.
    masks : uint64 array, 3 × words × rows
        See `observe` and `compare_values`.
    """

    form: np.ndarray
    size: np.ndarray
    masks: np.ndarray


@separate_kernel
def determinant_rows(layout, d, children, wanted, waits, found):
    """mantissa[row]·2^exponent[row] = determinant d with a relative error of at most error[row], for a block of rows.

    layout : FloatLayout. children : Children. wanted : the relative error to aim at. found : Found.
    Returns whether FREE would be the cheapest form of some row, but its base has not been computed yet. If it `waits`
    for that base, nothing is computed then.
    """
    det, rows = layout.plan[d], children.rows
    r, k = det.rank, det.children
    if det.fixed_size >= 0:
        _run_sized(layout, d, children, wanted, found)
        return False
    masks = np.empty((3, -(-max(k, det.variables) // 64), rows), np.uint64)
    chosen = Chosen(np.empty(rows, np.int64), np.empty(rows, np.int64), masks)
    missed = _choose_forms(layout, d, children, chosen, found)
    if missed and waits:
        return True
    for pairs in (False, True):  # in doubles; then in pairs of doubles, where doubles are not accurate enough
        if pairs and not _keep_uncertain(layout, d, chosen.form, found.error, wanted):
            break
        order, largest = _by_form_and_size(chosen.form, chosen.size, r + k + 1)
        _run_groups(layout, d, children, chosen, order, wanted, _scratch(largest, k, pairs), found)
    if det.has[TREES]:
        for row in range(rows):
            chosen.form[row] = TREES if not found.error[row] <= wanted else -1
        _run_trees(layout, d, children, chosen.form, found)
    return missed


@bare_kernel
def cost_of(form, size, r, k):
    """An estimate of the time for filling in and elimination, in nanoseconds."""
    if form == TREES:
        return 500.0 + 2.0 * k + size * size * size / 6.0
    if form == RANK:
        return 100.0 + 4.0 * k + k * r * r / 2.0 + size * size * size / 12.0
    return 30.0 + size * size + size * size * size / 16.0


@separate_kernel
def _choose_forms(layout, d, children, chosen, found):
    """The cheapest form of every row, and its size; −1 where the value is known to be 0 or where no form applies.

    Returns what `determinant_rows` does.
    """
    det, rows = layout.plan[d], children.rows
    form, size, masks = chosen
    mantissa, exponent, error = found
    r, k = det.rank, det.children
    # the size of every form: FREE, OUT: children that differ from the base; RANK: children that are in (r is added
    # below)
    known = np.empty((FORMS, rows), np.int64)
    unknown, zero = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    if det.variables:
        observe(layout, d, children, masks, known)
    else:
        compare_values(layout, d, children, masks, known, unknown, zero)
    mantissa[:rows], exponent[:rows], error[:rows] = 0.0, 0, math.inf
    missed, total_is_known = False, layout.bases[BASES * d + FREE, 2] < math.inf
    has_free, may_miss = det.has[FREE] == 1 and not det.prefers_trees, not det.prefers_trees
    for row in range(rows):
        inner, observed = known[RANK, row], known[FREE, row]
        form[row], size[row] = -1, 0
        if unknown[row]:
            continue
        if zero[row] or inner > r:  # an impossible child, or more vectors than dimensions: the value is 0
            error[row] = 0.0
            continue
        known[RANK, row] += r
        known[TREES, row] = r - inner
        best = math.inf
        # Answers must not depend on earlier queries, which decide when the base FREE is computed. So FREE comes last
        # and is taken only if it is strictly cheaper; where nothing is observed, the total is the answer without it.
        for step in range(1, FORMS + 1):
            candidate = (FREE + step) % FORMS
            has = has_free or (observed == 0 and total_is_known) if candidate == FREE else det.has[candidate] == 1
            if has:
                here = cost_of(candidate, known[candidate, row], r, k)
                if here < best:
                    best, form[row], size[row] = here, candidate, known[candidate, row]
        if may_miss and not has_free and (observed > 0 or best == math.inf):
            missed |= cost_of(FREE, observed, r, k) < best
    return missed


@kernel
def _keep_uncertain(layout, d, form, error, wanted):
    """Set form = −1 for all rows but the inaccurate ones whose kernels are known in pairs of doubles.

    Returns whether there are such rows.
    """
    some, has_low = False, layout.plan[d].has_low
    for row in range(len(form)):
        if error[row] <= wanted or form[row] < 0 or form[row] > OUT or not has_low[form[row]]:
            form[row] = -1
        some |= form[row] >= 0
    return some


@kernel
def _by_form_and_size(form, size, base):
    """The rows with a form other than TREES, sorted by form and then by size; and the largest size."""
    start, largest = np.zeros(TREES * base + 1, np.int64), 0  # of a counting sort
    for row in range(len(form)):
        if 0 <= form[row] < TREES:
            start[form[row] * base + size[row] + 1] += 1
            largest = max(largest, size[row])
    for key in range(TREES * base):
        start[key + 1] += start[key]
    order = np.empty(start[-1], np.int64)
    for row in range(len(form)):
        if 0 <= form[row] < TREES:
            key = form[row] * base + size[row]
            order[start[key]] = row
            start[key] += 1
    return order, largest


@separate_kernel
def _run_trees(layout, d, children, form, found):
    """Compute the rows whose form is TREES, one after another."""
    det, data, ints = layout.plan[d], layout.data, layout.ints
    mantissa, exponent, error = found
    r, k = det.rank, det.children
    graph = Laplacian(
        ints[det.tail : det.tail + k],
        ints[det.head : det.head + k],
        data[det.weight : det.weight + k],
        data[det.kill : det.kill + r],
        det.directed,
    )
    nodes, f, y = new_nodes(r), np.empty(k), np.empty(k)
    for row in range(len(form)):
        if form[row] == TREES:
            row_values(layout, d, children, row, f, y)
            if not are_valid(f, y):
                continue
            m, e, off = tree_sum(graph, f, y, nodes)
            if off == off:
                mantissa[row], exponent[row], error[row] = m, e, off


@separate_kernel
def _run_sized(layout, d, children, wanted, found):
    """Determinants with a size, of symmetric kernels, one row after another.

    The base OUT is tried where FREE is not accurate enough. Here FREE is the base where uncounted children are free and
    counted ones are out.
    """
    plan, data, ints, bases = layout
    det = plan[d]
    mantissa, exponent, error = found
    k, phis = det.children, det.phi
    f, y, phi, counted = np.empty(k), np.empty(k), np.zeros(k), ints[det.counted : det.counted + k]
    for row in range(children.rows):
        mantissa[row], exponent[row], error[row] = 0.0, 0, math.inf
        if not det.symmetric:
            continue
        row_values(layout, d, children, row, f, y)
        if not are_valid(f, y):
            continue
        total = bases[BASES * d + TOTAL]
        if total[2] <= wanted and _is_free(f, y, data[phis : phis + k]):
            mantissa[row], exponent[row], error[row] = total[0], int(total[1]), total[2]
        for form in (FREE, OUT):
            if det.has[form] and not error[row] <= wanted:
                for i in range(k):
                    phi[i] = data[phis + i] if form == FREE and not counted[i] else 0.0
                table, scales = det.kernel[form], det.scale[form]
                m, e, off = sized_sum(
                    data[table : table + k * k].reshape((k, k)), data[scales : scales + k],
                    data[det.gap : det.gap + k], phi, f, y, det.fixed_size, counted,
                )  # fmt: skip
                base = bases[BASES * d + form]
                off += 0.0 if m == 0.0 else base[2]
                if off < error[row]:
                    mantissa[row], exponent[row], error[row] = m * base[0], e + int(base[1]), off


@bare_kernel
def _is_free(f, y, phi):
    """Whether every child has the value that it has if nothing is observed."""
    free = True
    for i in range(len(f)):
        free &= y[i] == 1.0 and f[i] == phi[i]
    return free


@kernel
def _scratch(q, k, pairs):
    """Scratch memory for matrices of up to q rows, of a determinant with k children; pairs : with low parts."""
    return Scratch(
        np.empty(q * q * LANES),
        np.empty(max(1, q * (q + 1) // 2) * LANES if pairs else 0),
        np.empty(q * LANES),
        np.empty(q * (q + 1) // 2 * LANES),
        np.empty((3, max(1, q) * LANES)),
        np.empty(max(2 * k + 1, (3 * q + 1) * LANES), np.int64),
        np.empty((2, k)),
    )


@separate_kernel
def _run_groups(layout, d, children, chosen, order, wanted, scratch, found):
    """Compute the rows of `order`, up to eight of one form at a time, padded to the largest size among them.

    If `scratch` has memory for low parts, elimination is in pairs of doubles; this requires a symmetric matrix,
    children that are variables, and a form whose kernel has low parts.
    """
    symmetric, pairs = layout.plan[d].symmetric, len(scratch.low) > 0
    unit = UNIT_OF_PAIRS if pairs else UNIT
    last = 0
    while last < len(order):
        first, form = last, chosen.form[order[last]]
        while last < min(first + LANES, len(order)) and chosen.form[order[last]] == form:
            last += 1
        group, q = order[first:last], chosen.size[order[last - 1]]
        cancelled, spread = _fill_group(layout, Minor(d, form, q), children, chosen, group, scratch)
        if len(group) < LANES or chosen.size[group[0]] != q:
            _pad_group(group, chosen.size, q, symmetric, scratch)
        if pairs:
            eliminate_pairs(scratch.matrix, scratch.low, q, scratch.vectors[0], scratch.vectors[1])
        elif symmetric:
            eliminate_symmetric(scratch.matrix, q, scratch.vectors[0])
        else:
            eliminate(scratch.matrix, q)
        _bound_errors(scratch, q, symmetric, (q + 8.0 + cancelled) * unit, spread * unit, wanted)
        _record_group(layout, Minor(d, form, q), group, scratch, found)


@inlined_kernel
def _fill_group(layout, minor, children, chosen, group, scratch):
    """Fill in the matrices of a group of rows, with their low parts if there is memory for them.

    Returns the roundings from forming their entries: relative to the entries, and relative to √(M_ii·M_jj).
    """
    det = layout.plan[minor.d]
    cancelled, spread = 0.0, 0.0
    if minor.form == RANK:
        f, y = scratch.values[0], scratch.values[1]
        for lane in range(len(group)):
            row_values(layout, minor.d, children, group[lane], f, y)
            sums, lost = fill_rank(layout, minor, f, y, lane, scratch)
            if det.definite:  # Σ|f·u_i·v_j| ≤ √(M_ii·M_jj)
                spread = max(spread, sums)
            else:
                cancelled = max(cancelled, sums * lost)
    elif det.variables:
        fill_variables(layout, minor, chosen.masks, group, chosen.size, scratch)
        if len(scratch.low):
            fill_low(layout, minor, scratch.low, scratch.listed)
    else:
        for lane in range(len(group)):
            fill_base(layout, minor, children, chosen.masks, group[lane], lane, scratch)
    return cancelled, spread


@bare_kernel
def _pad_group(group, sizes, q, symmetric, scratch):
    """Pad the matrices of a group to q rows, and fill the lanes without a row with identity matrices."""
    for lane in range(LANES):
        size = sizes[group[lane]] if lane < len(group) else 0
        pad(scratch.matrix, q, size, lane, symmetric, 1.0)
        for i in range(size, q):
            scratch.factors[i * LANES + lane] = 1.0
        if len(scratch.low):
            pad(scratch.low, q, size, lane, symmetric, 0.0)


@inlined_kernel
def _record_group(layout, minor, group, scratch, found):
    """The determinants of a group of eliminated matrices, if their bounds are better than what was found before.

    Of rows that were never computed, the value is recorded even if its error is unknown.
    """
    d, form, q = minor
    mantissa, exponent, error = found
    symmetric, pairs, tau = layout.plan[d].symmetric, len(scratch.low) > 0, scratch.vectors[2]
    products = scratch.vectors[0]
    in_range = _multiply_pivots(scratch.matrix, q, symmetric, scratch.factors, products, scratch.vectors[1])
    # roundings per child: 1 of d, 2 of its scale, 1 of their quotient, and 2 products
    times, binary, off = 1.0, 0, 6.0 * q * UNIT
    if form != RANK:
        base = layout.bases[BASES * d + form]
        times, binary, off = base[0], int(base[1]), off + base[2]
    for lane in range(len(group)):
        row, value, more, normal = group[lane], products[lane], 0, True
        if not in_range:
            value, more, normal = _careful_product(scratch.matrix, q, symmetric, scratch.factors, lane)
        value *= times
        known = normal and tau[lane] + off < min(0.1, error[row]) and 0.0 < abs(value) < math.inf
        if known or not pairs:
            mantissa[row], exponent[row] = value, binary + more
            error[row] = tau[lane] + off if known else math.inf


@inlined_kernel
def _bound_errors(scratch, q, symmetric, roundings, spread, wanted):
    """vectors[2, lane] = bounds on the relative errors of eight determinants (see `factors`).

    roundings : the backward error of the entries relative to |L||D||R|. spread : backward errors relative to
    √(M_ii·M_jj), for which ‖X·e‖² takes the place of ‖X‖²; `quick_growth` bounds both, and ‖X·e‖² ≤ q·‖X‖².
    """
    matrix, inverse, vectors = scratch.matrix, scratch.inverse, scratch.vectors
    scale, spare, tau = vectors[0], vectors[1], vectors[2]
    if q == 0:
        tau[:LANES] = 0.0
        return
    inverse_roots(matrix, q, symmetric, scale)
    growth = quick_growth(matrix, q, symmetric, False, scale, spare)
    if not symmetric:
        growth = root(mul(growth, quick_growth(matrix, q, symmetric, True, scale, spare)))
    store(tau, 0, growth)
    good = True
    for lane in range(LANES):
        tau[lane] *= 1.11 * (roundings + spread)
        good &= tau[lane] <= wanted
    if good:
        return
    growth = full_growth(matrix, q, symmetric, False, scale, inverse)
    if not symmetric:
        growth = root(mul(growth, full_growth(matrix, q, symmetric, True, scale, inverse)))
    store(spare, 0, growth)
    for lane in range(LANES):
        better = 1.5 * (roundings + q * spread) * spare[lane]
        # valid only if the computed inverse is accurate: η·‖X̂‖ < 0.1 (see `factors`)
        if better < tau[lane] and (q + 8.0) * UNIT * np.sqrt(spare[lane]) < 0.1:
            tau[lane] = better


@inlined_kernel
def _multiply_pivots(matrix, q, symmetric, factors, products, extremes):
    """The products of pivots and factors in every lane; returns whether all stayed far from under- and overflow."""
    product, least, most, at = splat(1.0), splat(1.0), splat(1.0), 0
    for i in range(q):
        pivot, factor = load(matrix, at), load(factors, i * LANES)
        at += next_diagonal(i, symmetric, q)
        size = magnitude(pivot)
        least, most = smaller(size, least), larger(size, most)
        size = magnitude(factor)
        least, most = smaller(size, least), larger(size, most)
        product = mul(mul(product, pivot), factor)
        size = magnitude(product)
        least, most = smaller(size, least), larger(size, most)
    store(products, 0, product)
    store(extremes, 0, least)
    low = math.inf
    for lane in range(LANES):
        low = min(low, extremes[lane])
    store(extremes, 0, most)
    high = 0.0
    for lane in range(LANES):
        high = max(high, extremes[lane])
    return low > _SMALL and high < _LARGE


@bare_kernel
def _careful_product(matrix, q, symmetric, factors, lane):
    """The product of one lane as mantissa and exponent, and whether no pivot or factor is near under- or overflow."""
    value, binary, normal, at = 1.0, 0, True, lane
    for i in range(q):
        pivot, factor = matrix[at], factors[i * LANES + lane]
        at += next_diagonal(i, symmetric, q)
        normal &= _SMALL < abs(pivot) < _LARGE and _NORMAL < abs(factor) < math.inf
        factor, more = math.frexp(factor)
        value, carry = math.frexp(value * pivot * factor)  # in the order of `_multiply_pivots`: the same bits
        binary += more + carry
    return value, binary, normal

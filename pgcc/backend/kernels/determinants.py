"""Determinants of a block of rows, by whichever form is smallest for each row.

With (f_i, y_i) the values of child i and its complement, and a *base* (φ_i, 1) at which the determinant D_base and
G = Vᵀ·N⁻¹·U, N = M0 + U·diag(φ)·Vᵀ, are known, only the children that differ from the base matter:

    D(f, y) = D_base · det( diag(y) + G·diag(d) )  =  D_base · Π d_i · det( G + diag(y/d) ),     d_i = f_i − y_i·φ_i,

over those children. The base φ = (all free) is the K form of a determinantal point process (G = K, sizes |A| + |B|),
the base φ = 0 its L form (G = L, sizes |A| + what is free). On the diagonal, G_ii + y_i/d_i would cancel for d_i < 0:
there it is −(h_i + f_i/(φ_i·|d_i|)) with h_i = 1/φ_i − G_ii known by itself. Children with d_i > 0 come first, so that
for a symmetric kernel both diagonal blocks are definite, of opposite signs, and elimination adds and never cancels.

    RANK    det [[M1, U_A], [−V_Aᵀ, 0]], M1 = M0 + Σ_{y_i = 1} f_i·u_i·v_iᵀ: the cost does not grow with |B|
    TREES   star–mesh elimination, where M0 and the u_i·v_iᵀ are Laplacians (see `laplacian`)
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.backend.kernels.factors import (
    eliminate,
    eliminate_symmetric,
    full_growth,
    inverse_roots,
    quick_growth,
)
from pgcc.backend.kernels.filling import fill_base, fill_identity, fill_rank, fill_variables, next_diagonal
from pgcc.backend.kernels.laplacian import tree_sum
from pgcc.backend.kernels.observed import compare_values, observe, ordinary, row_values
from pgcc.backend.kernels.plan import (
    CHILDREN,
    COLUMNS,
    DEFINITE,
    DIRECTED,
    EDGES,
    FORMS,
    FREE,
    HAS,
    OUT,
    RANK,
    SIZE,
    SYMMETRIC,
    TABLE,
    TREES,
    VARIABLES,
    K,
    R,
)
from pgcc.backend.kernels.policy import bare_kernel, kernel
from pgcc.backend.kernels.simd import LANES, larger, load, magnitude, mul, root, smaller, splat, store
from pgcc.backend.kernels.sized import sized_sum
from pgcc.ir.numbers import UNIT

_SMALL, _LARGE = 2.0**-400, 2.0**400
_NORMAL = 2.0**-1000  # a number above it has all its digits


@kernel
def determinant_rows(
    plan, data, ints, bases, d, inside, outside, work, lanes, evidence, start, rows, wanted, mantissa, exponent, error
):  # fmt: skip
    """mantissa[row]·2^exponent[row] = determinant d, off by at most error[row] relatively, for rows 0 … rows − 1.

    inside, outside : slots of f and y in `work`, which holds `lanes` doubles for each slot.
    evidence, start : rows of codes (1, 0, 255), flat and with eight bytes more, and where the first one starts; the
    last row repeats. If the children are variables they are read there, and not from `work`; plan[d, VARIABLES] is then
    the length of a row.
    bases : one row per determinant and base: mantissa, exponent, relative error of D_base.
    wanted : an error that is good enough. An error of inf says that nothing is known.
    Returns whether the base of everything free was missed: whether it would have been the smallest form of some row.
    """
    r, k = plan[d, R], plan[d, K]
    if plan[d, SIZE] >= 0:
        _run_sized(
            plan, data, ints, bases, d, inside, outside, work, lanes, evidence, start, rows, mantissa, exponent, error
        )
        return False
    form, size = np.empty(rows, np.int64), np.empty(rows, np.int64)
    masks = np.empty((2, rows, -(-plan[d, VARIABLES] // 64)), np.uint64)
    missed = _choose_forms(
        plan, data, ints, d, inside, outside, work, lanes, evidence, start, rows, form, size, masks,
        mantissa, exponent, error,
    )  # fmt: skip
    order = _by_form_and_size(form, size, r + k + 1)
    largest = 0
    for row in range(rows):
        if 0 <= form[row] < TREES:
            largest = max(largest, size[row])
    room = _room(largest, k)
    _run_groups(
        plan, data, ints, bases, d, form, size, inside, outside, work, lanes, evidence, start, order, masks, wanted,
        mantissa, exponent, error, *room,
    )  # fmt: skip
    if plan[d, HAS + TREES]:
        for row in range(rows):
            form[row] = TREES if not error[row] <= wanted else -1
        _run_trees(plan, data, ints, d, inside, outside, work, lanes, evidence, start, form, mantissa, exponent, error)
    return missed


@bare_kernel
def cost_of(form, size, r, k):
    """Nanoseconds, roughly: what elimination and filling in take."""
    if form == TREES:
        return 500.0 + 2.0 * k + size * size * size / 6.0
    if form == RANK:
        return 100.0 + 4.0 * k + k * r * r / 2.0 + size * size * size / 12.0
    return 30.0 + size * size + size * size * size / 16.0


@kernel
def _choose_forms(
    plan, data, ints, d, inside, outside, work, lanes, evidence, start, rows, form, size, masks,
    mantissa, exponent, error,
):  # fmt: skip
    """The cheapest form of every row, and its size; −1 where the answer is 0 or where no form applies."""
    r, k = plan[d, R], plan[d, K]
    # FREE, OUT: how many children differ from the base; RANK: how many are in. Negative: no answer, or 0.
    known = np.zeros((FORMS, rows), np.int64)
    strange, zero = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    if plan[d, VARIABLES]:
        observe(evidence, start, plan[d, VARIABLES], ints[plan[d, COLUMNS] :], k, rows, masks, known)
    else:
        compare_values(data, plan[d, CHILDREN], k, inside, outside, work, lanes, rows, known, strange, zero)
    missed = False
    like, inner_before, outer_before, observed_before = 0, -1, -1, -1  # the last row decided, and its counts
    for row in range(rows):
        mantissa[row], exponent[row], error[row] = 0.0, 0, math.inf
        form[row], size[row] = -1, 0
        if strange[row]:
            continue
        inner, outer = known[RANK, row], known[OUT, row]
        if inner == inner_before and outer == outer_before and known[FREE, row] == observed_before and not zero[row]:
            form[row], size[row] = form[like], size[like]
            continue
        if zero[row] or inner > r:  # a child that is impossible, or more vectors than dimensions
            error[row] = 0.0
            continue
        like, inner_before, outer_before, observed_before = row, inner, outer, known[FREE, row]
        known[RANK, row] += r
        known[TREES, row] = r - inner
        best = math.inf
        for candidate in range(FORMS):
            if plan[d, HAS + candidate]:
                here = cost_of(candidate, known[candidate, row], r, k)
                if here < best:
                    best, form[row], size[row] = here, candidate, known[candidate, row]
        if not plan[d, HAS + FREE] and (known[FREE, row] > 0 or best == math.inf):
            missed |= cost_of(FREE, known[FREE, row], r, k) < best
    return missed


@kernel
def _by_form_and_size(form, size, base):
    """An order of the rows in which rows of one form are together, small ones first."""
    for row in range(1, len(form)):
        if form[row] != form[0] or size[row] != size[0]:
            return np.argsort(form * base + size)
    return np.arange(len(form))


@kernel
def _run_trees(plan, data, ints, d, inside, outside, work, lanes, evidence, start, form, mantissa, exponent, error):
    r, k, at = plan[d, R], plan[d, K], plan[d, EDGES]
    tail, head = ints[at : at + k], ints[at + k : at + 2 * k]
    weights = plan[d, CHILDREN] + 4 * k
    W, f, y = np.empty((r, r)), np.empty(k), np.empty(k)
    parent, label, chosen = np.empty(r + 1, np.int64), np.empty(r + 1, np.int64), np.empty(r + 1, np.bool_)
    for row in range(len(form)):
        if form[row] == TREES:
            row_values(plan, data, ints, d, inside, outside, work, lanes, evidence, start, row, f, y)
            if not ordinary(f, y):
                continue
            m, e, off = tree_sum(
                r, plan[d, DIRECTED] == 1, tail, head, data[weights : weights + k],
                data[weights + k : weights + k + r], f, y, W, parent, label, chosen,
            )  # fmt: skip
            if off == off:
                mantissa[row], exponent[row], error[row] = m, e, off


@kernel
def _run_sized(
    plan, data, ints, bases, d, inside, outside, work, lanes, evidence, start, rows, mantissa, exponent, error
):  # fmt: skip
    """Determinants with a size, of symmetric kernels at the base of nothing: one row after another."""
    k, table, scales = plan[d, K], plan[d, TABLE + OUT], plan[d, CHILDREN] + 3 * plan[d, K]
    f, y = np.empty(k), np.empty(k)
    for row in range(rows):
        mantissa[row], exponent[row], error[row] = 0.0, 0, math.inf
        if not (plan[d, HAS + OUT] and plan[d, SYMMETRIC]):
            continue
        row_values(plan, data, ints, d, inside, outside, work, lanes, evidence, start, row, f, y)
        if ordinary(f, y):
            matrix = data[table : table + k * k].reshape((k, k))
            m, e, off = sized_sum(matrix, data[scales : scales + k], f, y, plan[d, SIZE])
            mantissa[row], exponent[row] = m * bases[2 * d + OUT, 0], e + int(bases[2 * d + OUT, 1])
            error[row] = off if m == 0.0 else off + bases[2 * d + OUT, 2]


@kernel
def _room(q, k):
    """Room for matrices, the factors of their pivots, an inverse, three vectors, children, and their values."""
    return (
        np.empty(q * q * LANES),
        np.empty(q * LANES),
        np.empty(q * (q + 1) // 2 * LANES),
        np.empty((3, max(1, q) * LANES)),
        np.empty(2 * k + 1, np.int64),
        np.empty((2, k)),
    )


@bare_kernel
def _run_groups(
    plan, data, ints, bases, d, forms, sizes, inside, outside, work, lanes, evidence, start, order, masks, wanted,
    mantissa, exponent, error, matrix, factors, inverse, vectors, index, values,
):  # fmt: skip
    """Up to eight rows of one form at a time, padded to the largest size among them."""
    symmetric, variables = plan[d, SYMMETRIC] == 1, plan[d, VARIABLES] > 0
    scale, room, tau = vectors[0], vectors[1], vectors[2]
    f, y = values[0], values[1]
    last = 0
    while last < len(order):
        first, form = last, forms[order[last]]
        last += 1
        if form < 0:  # already answered
            continue
        if form == TREES:  # the last of the forms
            break
        while last < min(first + LANES, len(order)) and forms[order[last]] == form:
            last += 1
        group, q = order[first:last], sizes[order[last - 1]]
        cancelled, spread = 0.0, 0.0  # what forming the entries adds to their roundings; to those of √(M_ii·M_jj)
        if last - first < LANES or sizes[order[first]] != q:
            fill_identity(matrix, factors, q, symmetric)
        if variables and form != RANK:
            fill_variables(plan, data, ints, d, form, q, masks, group, sizes, matrix, factors, index)
        else:
            for lane in range(last - first):
                row_values(plan, data, ints, d, inside, outside, work, lanes, evidence, start, group[lane], f, y)
                if form == RANK:
                    sums, lost = fill_rank(plan, data, d, q, f, y, lane, matrix, factors, index, inverse)
                    if plan[d, DEFINITE]:  # Σ|f·u_i·v_j| ≤ √(M_ii·M_jj)
                        spread = max(spread, sums)
                    else:
                        cancelled = max(cancelled, sums * lost)
                else:
                    fill_base(plan, data, d, form, q, f, y, lane, matrix, factors, index)
        if symmetric:
            eliminate_symmetric(matrix, q, scale)
        else:
            eliminate(matrix, q)
        _trust(matrix, q, symmetric, q + 8.0 + cancelled, spread, wanted, scale, room, inverse, tau)
        in_range = _multiply_pivots(matrix, q, symmetric, factors, scale, room)
        times, binary, off = 1.0, 0, 4.0 * q * UNIT
        if form != RANK:
            times, binary, off = bases[2 * d + form, 0], int(bases[2 * d + form, 1]), off + bases[2 * d + form, 2]
        for lane in range(last - first):
            row, value, more, tame = group[lane], scale[lane], 0, True
            if not in_range:
                value, more, tame = _careful_product(matrix, q, symmetric, factors, lane)
            value *= times
            mantissa[row], exponent[row] = value, binary + more
            known = tame and tau[lane] + off < 0.1 and 0.0 < abs(value) < math.inf
            error[row] = tau[lane] + off if known else math.inf


@bare_kernel
def _trust(matrix, q, symmetric, roundings, spread, wanted, scale, room, inverse, tau):
    """tau[lane] = relative error bounds of eight eliminations (see `factors`).

    roundings : of every entry, relative to |L||D||R|. spread : those relative to √(M_ii·M_jj), for which ‖X·e‖² stands
    where ‖X‖² does for the others: it is what `quick_growth` bounds, and at most q·‖X‖².
    """
    if q == 0:
        tau[:LANES] = 0.0
        return
    inverse_roots(matrix, q, symmetric, scale)
    growth = quick_growth(matrix, q, symmetric, False, scale, room)
    if not symmetric:
        growth = root(mul(growth, quick_growth(matrix, q, symmetric, True, scale, room)))
    store(tau, 0, growth)
    good = True
    for lane in range(LANES):
        tau[lane] *= 1.1 * (roundings + spread) * UNIT
        good &= tau[lane] <= wanted
    if good:
        return
    growth = full_growth(matrix, q, symmetric, False, scale, inverse)
    if not symmetric:
        growth = root(mul(growth, full_growth(matrix, q, symmetric, True, scale, inverse)))
    store(room, 0, growth)
    for lane in range(LANES):
        better = 1.5 * (roundings + q * spread) * UNIT * room[lane]  # the inverse itself is rounded
        if better < tau[lane]:
            tau[lane] = better


@bare_kernel
def _multiply_pivots(matrix, q, symmetric, factors, products, extremes):
    """Products of pivots and factors, in every lane; whether none of them came near the limits of doubles."""
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
    """The same of one lane, whatever its range; and whether nothing that matters has underflowed."""
    value, binary, tame, at = 1.0, 0, True, lane
    for i in range(q):
        pivot, factor = matrix[at], factors[i * LANES + lane]
        at += next_diagonal(i, symmetric, q)
        tame &= _SMALL < abs(pivot) < _LARGE and _NORMAL < abs(factor) < math.inf
        factor, more = math.frexp(factor)
        value, carry = math.frexp(value * pivot * factor)  # in the order of `_multiply_pivots`: the same bits
        binary += more + carry
    return value, binary, tame

"""The matrices whose determinants `forms` and `partials` compute, filled in from kernel matrices and evidence.

An entry is a vector of eight doubles, one lane per determinant (see `factors`). Entries for any children (`fill_base`),
and those of the form RANK, are filled in one lane at a time. For speed alone, `fill_variables` gathers them for eight
rows at once where the children are variables, which it reads from the evidence: 2,000 rows of a DPP of 60 items take
0.27 ms instead of 0.63 ms.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.plan import FREE
from pgcc.kernels.policy import bare_kernel, inlined_kernel
from pgcc.kernels.simd import LANES, WORD, gather, lowest_bit, store

_CHUNK = 64  # terms per partial sum


@inlined_kernel
def next_diagonal(i, symmetric, q):
    """The offset from the diagonal entry of row i to the next diagonal entry."""
    return (i + 2 if symmetric else q + 1) * LANES


@inlined_kernel
def guarded_sum(entry, term):
    """entry + term for a diagonal, where term > 0; NaN where cancellation would magnify the rounding errors of both.

    A negative entry of the kernel may be at most a quarter of the sum, which then has an error of at most 5 roundings.
    """
    total = entry + term
    return total if entry >= 0.0 or -4.0 * entry <= total else math.nan


@inlined_kernel
def shifted_diagonal(entry, gap, scale, f, y, phi):
    """G_ii + y/d, scaled, of a child that differs from the base, where d = f − y·φ; and d divided by the scale.

    entry : G_ii. gap : h = 1/φ − G_ii. For d < 0 it is −(h + f/(φ·|d|)), in which nothing cancels; the product φ·d is
    avoided, because it may be subnormal.
    """
    change = f - y * phi
    if change < 0.0:
        return -(gap + scale / -change * (f / phi)), change / scale
    return entry if y == 0.0 else guarded_sum(entry, scale / change), change / scale


@bare_kernel
def pad(matrix, q, size, lane, symmetric, diagonal):
    """Make the rows from `size` on, of one lane, those of `diagonal` times the identity.

    Bordering a matrix with the identity does not change its determinant.
    """
    for i in range(size, q):
        if symmetric:
            at = i * (i + 1) // 2
            for j in range(i):
                matrix[(at + j) * LANES + lane] = 0.0
            matrix[(at + i) * LANES + lane] = diagonal
        else:
            for j in range(q):
                matrix[(i * q + j) * LANES + lane] = matrix[(j * q + i) * LANES + lane] = 0.0
            matrix[i * (q + 1) * LANES + lane] = diagonal


@inlined_kernel
def fill_variables(layout, minor, masks, group, sizes, scratch):
    """`fill_base` for up to eight rows of evidence on variables: (f, y) is (φ, 0), (0, 1) or (φ, 1)."""
    d, form, q = minor
    det, data = layout.plan[d], layout.data
    matrix, factors, index = scratch.matrix, scratch.factors, scratch.listed
    symmetric, table, changes, diagonals = det.symmetric, det.kernel[form], det.changes[form], det.diagonals[form]
    starts, states, zeros = q * LANES, 2 * q * LANES, 3 * q * LANES  # see `_list_observed`
    if len(group) < LANES or sizes[group[0]] < q:
        index[:zeros] = 0
    index[zeros : zeros + LANES] = 0
    for lane in range(len(group)):
        _list_observed(layout, minor, masks, group[lane], sizes[group[lane]], lane, index)
    at = 0
    for i in range(q):
        here = i * LANES
        store(factors, here, gather(data, changes, index, states + here, index, zeros))
        for j in range(i if symmetric else q):
            store(matrix, at, gather(data, table, index, starts + here, index, j * LANES))
            at += LANES
        diagonal = at if symmetric else i * (q + 1) * LANES
        store(matrix, diagonal, gather(data, diagonals, index, states + here, index, zeros))
        at += LANES if symmetric else 0


@inlined_kernel
def fill_low(layout, minor, low, index):
    """The low parts of the entries of a symmetric matrix whose high parts `fill_variables` has just filled in."""
    d, form, q = minor
    det, data = layout.plan[d], layout.data
    table, diagonals = det.low[form], det.low_diagonals[form]
    starts, states, zeros = q * LANES, 2 * q * LANES, 3 * q * LANES
    at = 0
    for i in range(q):
        for j in range(i):
            store(low, at, gather(data, table, index, starts + i * LANES, index, j * LANES))
            at += LANES
        store(low, at, gather(data, diagonals, index, states + i * LANES, index, zeros))
        at += LANES


@inlined_kernel
def _list_observed(layout, minor, masks, row, size, lane, index):
    """List the `size` children of a row that differ from the base, beginning with those observed 1.

    index : three arrays of q vectors: the children c; the offsets c·k of their rows in the kernel matrix; and their
    states, which are c for a child observed 1, and k + c for any other child.
    """
    d, form, q = minor
    det, ints = layout.plan[d], layout.ints
    k, child_of, child_bits = det.children, det.child_of, det.child_bits
    # offsets are unsigned, so that Numba need not ask whether they count from the end
    starts, states, step = np.uint64(q * LANES), np.uint64(2 * q * LANES), np.uint64(LANES)
    at, last = np.uint64(lane), np.uint64(lane + size * LANES)
    for state in range(2):
        for w in range(masks.shape[1] if at < last else 0):
            bits = masks[0, w, row]
            if state == 1:
                bits = (
                    masks[1, w, row] if form == FREE else np.uint64(ints[child_bits + w]) & ~(bits | masks[1, w, row])
                )
            while bits != 0:
                c = ints[np.uint64(child_of + WORD * w + lowest_bit(bits))]
                bits &= bits - np.uint64(1)
                index[at] = c
                index[starts + at] = c * k
                index[states + at] = state * k + c
                at += step


@bare_kernel
def fill_base(layout, minor, children, masks, row, lane, scratch):
    """G + diag(y/d) over the children that differ from the base, beginning with those where d > 0.

    factors : d, divided by the scale of the child. masks : see `compare_values`.
    """
    d, form, q = minor
    det, data = layout.plan[d], layout.data
    matrix, factors, index, lanes = scratch.matrix, scratch.factors, scratch.listed, children.lanes
    k, symmetric, table = det.children, det.symmetric, det.kernel[form]
    phis, scales, gaps = det.phi, det.scale[form], det.gap
    positive = _list_bits(masks[0 if form == FREE else 2], row, index, 0)
    count = _list_bits(masks[1], row, index, positive) if form == FREE else positive
    for i in range(count):
        at, here = (i * (i + 1) // 2 if symmetric else i * q) * LANES + lane, table + index[i] * k
        for j in range(i + 1 if symmetric else count):
            matrix[at + j * LANES] = data[here + index[j]]
    at = lane
    for i in range(count):
        c = index[i]
        phi, scale = data[phis + c] if form == FREE else 0.0, data[scales + c]
        f, y = children.work[children.inside[c] * lanes + row], children.work[children.outside[c] * lanes + row]
        matrix[at], factors[i * LANES + lane] = shifted_diagonal(matrix[at], data[gaps + c], scale, f, y, phi)
        at += next_diagonal(i, symmetric, q)


@bare_kernel
def _list_bits(words, row, index, count):
    """Append the positions of the bits that are set in the words of a row, and return the new length of the list."""
    for w in range(len(words)):
        bits = words[w, row]
        while bits != 0:
            index[count] = 64 * w + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            count += 1
    return count


@bare_kernel
def fill_rank(layout, minor, f, y, lane, scratch):
    """The bordered matrix [[M1, U_A], [−V_Aᵀ, 0]] of the form RANK, where A are the children that are in.

    If it is symmetric, u = s·v, and the matrix is [[M1, U_A], [U_Aᵀ, 0]]. The values f of A become factors of pivots.
    Returns the number of roundings of a term of M1, and the largest condition number Σ|terms| / |Σ terms| of its sums.
    """
    det, data, q = layout.plan[minor.d], layout.data, minor.q
    matrix, factors, index, spare = scratch.matrix, scratch.factors, scratch.listed, scratch.inverse
    r, k, symmetric, ratios = det.rank, det.children, det.symmetric, det.ratio
    m0, u, v = det.m0, det.u, det.v
    total, sizes, part = spare[: r * r], spare[r * r : 2 * r * r], spare[2 * r * r : 3 * r * r]
    for i in range(r * r):
        total[i], sizes[i], part[i] = data[m0 + i], abs(data[m0 + i]), 0.0
    count, terms = 0, 0
    for i in range(k):
        if y[i] == 0.0:
            index[count] = i
            count += 1
        elif f[i] != 0.0:
            terms += 1
            for a in range(r):
                left = f[i] * data[u + i * r + a]
                for b in range(a + 1 if symmetric else r):
                    term = left * data[v + i * r + b]
                    part[a * r + b] += term
                    sizes[a * r + b] += abs(term)
            if terms % _CHUNK == 0:  # partial sums: every term goes through fewer additions
                for j in range(r * r):
                    total[j] += part[j]
                    part[j] = 0.0
    lost = 1.0
    for a in range(r):
        at = a * (a + 1) // 2 if symmetric else a * q
        for b in range(a + 1 if symmetric else r):
            entry = total[a * r + b] + part[a * r + b]
            matrix[(at + b) * LANES + lane] = entry
            if sizes[a * r + b] > 0.0:
                lost = max(lost, sizes[a * r + b] / abs(entry))
        factors[a * LANES + lane] = 1.0
    for j in range(count):
        i, here = index[j], r + j
        at = here * (here + 1) // 2 if symmetric else here * q
        for a in range(r):
            if symmetric:
                matrix[(at + a) * LANES + lane] = data[u + i * r + a]
            else:
                matrix[(a * q + here) * LANES + lane] = data[u + i * r + a]
                matrix[(at + a) * LANES + lane] = -data[v + i * r + a]
        for b in range(j + 1 if symmetric else count):
            matrix[(at + r + b) * LANES + lane] = 0.0
        # the row of the border is −vᵀ = −uᵀ/s
        factors[here * LANES + lane] = -f[i] / data[ratios + i] if symmetric else f[i]
    return min(terms, _CHUNK + terms // _CHUNK) + 4.0, lost

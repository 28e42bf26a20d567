"""The children of a determinant in a block of rows: as bit masks relative to a base, and as values f and y.

`forms` counts with the masks how large each form of a row would be, and lists the rows of its matrix by them.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.plan import FREE, OUT, RANK
from pgcc.kernels.policy import bare_kernel
from pgcc.kernels.simd import WORD, count_bits, equal_bytes

PADDING = WORD  # bytes after the last row of flat evidence: WORD bytes are read at a time, beginning at any variable


@bare_kernel
def _row_start(evidence, start, n, row):
    """The offset of a row in flat evidence; rows beyond the end are the last one."""
    return min(start + row * n, len(evidence) - PADDING - n)


@bare_kernel
def observe(layout, d, children, masks, known):
    """masks[0], masks[1] = bit masks of the children observed 1 and 0 in every row, and their numbers in `known`.

    known[FREE] counts the observed children, known[OUT] those not observed 0, and known[RANK] those observed 1.
    """
    det, evidence = layout.plan[d], children.evidence
    n, k, child_bits = det.variables, det.children, layout.ints[det.child_bits :]
    for row in range(children.rows):
        at = _row_start(evidence, children.start, n, row)
        inner, outer = 0, 0
        for w in range(masks.shape[1]):
            here = np.uint64(child_bits[w])
            ones, zeros = equal_bytes(evidence, at + WORD * w, 1) & here, equal_bytes(evidence, at + WORD * w, 0) & here
            masks[0, w, row], masks[1, w, row] = ones, zeros
            inner += count_bits(ones)
            outer += count_bits(zeros)
        known[FREE, row], known[OUT, row], known[RANK, row] = inner + outer, k - outer, inner


@bare_kernel
def compare_values(layout, d, children, masks, known, unknown, zero):
    """masks[0], masks[1], masks[2] = bit masks of the children of every row that are above φ, below φ, and above 0.

    A child that is surely in counts as above φ and above 0. known : as in `observe`. unknown : rows with values for
    which no form holds. zero : rows with an impossible child (f = y = 0).
    """
    inside, outside, work, lanes, _, _, rows = children
    det = layout.plan[d]
    phis, k = det.phi, det.children
    known[:] = 0
    for w in range(masks.shape[1]):
        above, below, there = masks[0, w], masks[1, w], masks[2, w]
        above[:], below[:], there[:] = np.uint64(0), np.uint64(0), np.uint64(0)
        for i in range(64 * w, min(64 * w + 64, k)):
            phi, bit = layout.data[phis + i], np.uint64(1) << np.uint64(i - 64 * w)
            f, y = work[inside[i] * lanes :], work[outside[i] * lanes :]
            for row in range(rows):
                a, b = f[row], y[row]
                inner = b == 0.0
                above[row] |= bit if inner | (a > phi) else np.uint64(0)
                below[row] |= np.uint64(0) if inner | (a >= phi) else bit
                there[row] |= bit if inner | (a != 0.0) else np.uint64(0)
                known[RANK, row] += inner
                zero[row] |= (a == 0.0) & inner
                unknown[row] |= (not inner) & (b != 1.0) | (not (a >= 0.0 and a < math.inf))
        for row in range(rows):
            known[FREE, row] += count_bits(above[row]) + count_bits(below[row])
            known[OUT, row] += count_bits(there[row])


@bare_kernel
def row_values(layout, d, children, row, f, y):
    """The values f and y of every child in one row."""
    det, work, lanes = layout.plan[d], children.work, children.lanes
    k, n = det.children, det.variables
    if n:
        phis, variable_of = det.phi, det.variable_of
        at = _row_start(children.evidence, children.start, n, row)
        for i in range(k):
            code = children.evidence[at + layout.ints[variable_of + i]]
            f[i] = 0.0 if code == 0 else layout.data[phis + i]
            y[i] = 0.0 if code == 1 else 1.0
    else:
        for i in range(k):
            f[i], y[i] = work[children.inside[i] * lanes + row], work[children.outside[i] * lanes + row]


@bare_kernel
def are_valid(f, y):
    """Whether the forms hold for these values: every y is 0 or 1, and every f is finite and not negative."""
    valid = True
    for i in range(len(f)):
        valid &= (y[i] == 0.0 or y[i] == 1.0) and 0.0 <= f[i] < math.inf
    return valid

"""Programs with determinants over scaled numbers (mantissa and exponent), one row after another.

The counterpart of `staged` for rows that leave the range of float64: `evaluate/direct` calls `run_scaled_staged`, and
samplers call `scaled_determinant`.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.forms import determinant_rows
from pgcc.determinants.kernels.observed import PADDING
from pgcc.determinants.kernels.plan import Children, Found
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import kernel
from pgcc.kernels.walk import walk
from pgcc.program.program import DET, DETERMINANTS, DETMAG
from pgcc.rings.kernels.scaled import RADIX, Scaled, normalized, shifted

_MOST_UNITS = 0.1 / UNIT  # with larger errors, a determinant is unknown


@kernel
def run_scaled_staged(code, constants, dets, evidence, roots, mantissas, exponents, slots):
    """`run_scaled` for programs with determinants; dets : Determinants."""
    op, target, start, args, _ = code
    m, e = np.zeros(slots), np.zeros(slots, np.int64)
    error, variables = np.zeros(1), evidence.shape[1]
    flat = np.zeros(evidence.size + PADDING, np.uint8)
    for row in range(evidence.shape[0]):
        for v in range(variables):
            flat[row * variables + v] = evidence[row, v]
    for row in range(evidence.shape[0]):
        i = 0
        while i < len(op):
            begin = i
            while i < len(op) and op[i] not in DETERMINANTS:
                i += 1
            walk(code, Scaled(constants, evidence[row], m, e), begin, i)
            if i == len(op):
                break
            d, slot_list, at = np.int64(args[start[i]]), args[start[i] + 1 : start[i + 1]], target[i]
            is_value = op[i] == DET
            if not is_value and op[i] != DETMAG:
                raise ValueError("an instruction that scaled numbers do not know")
            size, power, off = 0.0, 0, 0.0
            if is_value or len(slot_list) > 1:
                if not is_value:
                    off = error[0]  # the error of the value, which was computed by the instruction before
                at_row = flat, row * variables
                size, power = scaled_determinant(dets.layout, d, slot_list, at_row, dets.wanted, (m, e), error)
                off += error[0]
            else:
                size, power, off = m[slot_list[0]], e[slot_list[0]], error[0]
            if not is_value:  # DETMAG: as in `run_tail`
                units = dets.degree[d] + off / UNIT
                if size != 0.0 or off > 0.0:
                    size = abs(size) * units if units < _MOST_UNITS else math.inf
            m[at], e[at] = (math.inf, 0) if size == math.inf else normalized(size, power)
            i += 1
        for r in range(len(roots)):
            mantissas[r, row], exponents[r, row] = m[roots[r]], e[roots[r]]


@kernel
def scaled_determinant(layout, d, slots, at_row, wanted, values, error):
    """Determinant d at scaled numbers f (the first half of the slots) and y (the second half).

    error[0] becomes its relative error. at_row : padded evidence, and the offset of the row. values : mantissas and
    exponents of all slots. D is linear in every pair (f_i, y_i), so each pair is divided by a power of 2^256 that
    brings it into the range of doubles, and the determinant is multiplied by these powers.
    """
    evidence, start = at_row
    m, e = values
    k = len(slots) // 2
    work, power = np.empty(2 * k), 0
    for j in range(0 if layout.plan[d].variables else k):  # variables are read from the evidence
        f, y = slots[j], slots[k + j]
        top = max(e[f], e[y])
        if (m[f] != 0.0 and top - e[f] > 2) or (m[y] != 0.0 and top - e[y] > 2):
            error[0] = math.inf  # one of f and y is tiny beside the other, but the matrix may make up for that
            return 0.0, 0
        work[j] = 0.0 if m[f] == 0.0 else shifted(m[f], top - e[f])
        work[k + j] = 0.0 if m[y] == 0.0 else shifted(m[y], top - e[y])
        if m[f] != 0.0 or m[y] != 0.0:
            power += top
    mantissa, binary = np.empty(1), np.empty(1, np.int64)
    where = np.arange(2 * k).astype(np.int32)
    children = Children(where[:k], where[k:], work, 1, evidence, start, 1)
    determinant_rows(layout, d, children, wanted, False, Found(mantissa, binary, error))
    whole = binary[0] // RADIX
    return normalized(np.ldexp(mantissa[0], int(binary[0] - whole * RADIX)), power + whole)

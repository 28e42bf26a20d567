"""From the values at the 2ⁿ corners to the 2ⁿ coefficients, and the rows of all corners."""

from __future__ import annotations

import numpy as np

from pgcc.backend.kernels.modular import PRIME, add_mod
from pgcc.backend.kernels.policy import kernel
from pgcc.ir.numbers import UNIT

_P = np.uint64(PRIME)


@kernel
def write_rows(first, rows):
    """Row r is the binary expansion of first + r: int8, column i is bit i."""
    for r in range(rows.shape[0]):
        code = first + r
        for i in range(rows.shape[1]):
            rows[r, i] = (code >> i) & 1


@kernel
def invert_corners(value, error):
    """Möbius inversion in place, c_S = Σ_{T⊆S} (−1)^{|S∖T|}·g(1_T): one variable at a time, high −= low.

    error bounds |value − truth| of every entry, before and after.
    """
    size, step = len(value), 1
    while step < size:
        for start in range(0, size, 2 * step):
            for i in range(start, start + step):
                value[i + step] -= value[i]
                error[i + step] = (error[i + step] + error[i] + UNIT * abs(value[i + step])) * (1.0 + 4.0 * UNIT)
        step *= 2


@kernel
def invert_corners_mod(value):
    """The same modulo p = 2⁶¹ − 1 (uint64)."""
    size, step = len(value), 1
    while step < size:
        for start in range(0, size, 2 * step):
            for i in range(start, start + step):
                low = value[i]
                value[i + step] = add_mod(value[i + step], _P - low if low != np.uint64(0) else low)
        step *= 2

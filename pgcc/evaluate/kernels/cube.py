"""From the values of a polynomial at the 2ⁿ corners of the cube {0, 1}ⁿ to its 2ⁿ coefficients."""

from __future__ import annotations

from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import kernel


@kernel
def write_rows(first, rows):
    """rows[r, i] = bit i of first + r: the corners of the cube, as rows of int8."""
    for r in range(rows.shape[0]):
        code = first + r
        for i in range(rows.shape[1]):
            rows[r, i] = (code >> i) & 1


@kernel
def invert_corners(value, error):
    """Möbius inversion in place, c_S = Σ_{T⊆S} (−1)^{|S∖T|}·g(1_T): one variable at a time, high −= low.

    error : bounds on the errors of the entries, before and after.
    """
    size, step = len(value), 1
    while step < size:
        for start in range(0, size, 2 * step):
            for i in range(start, start + step):
                value[i + step] -= value[i]
                error[i + step] = (error[i + step] + error[i] + UNIT * abs(value[i + step])) * (1.0 + 4.0 * UNIT)
        step *= 2

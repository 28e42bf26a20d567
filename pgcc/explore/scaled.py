"""Numbers as m·2^(64·e) with 2⁻³² ≤ |m| < 2³²: what the evaluator in the page computes with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pgcc.ir.numbers import Number

STEP, HALF = 64, 32
# A double beyond these may have lost digits, or stand for a number out of range.
_LEAST, _MOST = 2.0**-1000, 2.0**1000


def as_scaled(numbers: Sequence[Number], rounded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mantissas and exponents of numbers, given the doubles nearest to them.

    Examples
    --------
    >>> m, e = as_scaled([0.5, Fraction(2) ** 3000, 0], np.array([0.5, np.inf, 0.0]))
    >>> m.tolist(), e.tolist()
    ([0.5, 0.00390625, 0.0], [0, 47, 0])
    """
    with np.errstate(invalid="ignore"):
        mantissa, binary = np.frexp(np.where(np.isfinite(rounded), rounded, 0.0))  # |mantissa| in [½, 1)
    exponent = (binary + HALF - 1) // STEP
    mantissa = np.ldexp(mantissa, binary - STEP * exponent)
    size = np.abs(rounded)
    for i in np.flatnonzero(~((size > _LEAST) & (size < _MOST))).tolist():
        mantissa[i], exponent[i] = _exactly(Fraction(numbers[i]))
    return mantissa, exponent.astype(np.int32)


def _exactly(number: Fraction) -> tuple[float, int]:
    if not number:
        return 0.0, 0
    binary = number.numerator.bit_length() - number.denominator.bit_length()
    exponent = (binary + HALF - 1) // STEP
    return float(number / Fraction(2) ** (STEP * exponent)), exponent

"""Numbers as m·2^(64·e) with 2⁻³² ≤ |m| < 2³²: what the evaluator in the page computes with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.ir.numbers import Number
from pgcc.ir.scaled_numbers import split_numbers

_RADIX = 64


def as_scaled(numbers: Sequence[Number]) -> tuple[np.ndarray, np.ndarray]:
    """Mantissas and exponents of numbers; those of 0 are 0.

    Examples
    --------
    >>> m, e = as_scaled([0.5, 2**3000, 0])
    >>> m.tolist(), e.tolist()
    ([0.5, 0.00390625, 0.0], [0, 47, 0])
    """
    mantissa, exponent = split_numbers(numbers, _RADIX)
    return mantissa, np.where(mantissa == 0.0, 0, exponent).astype(np.int32)

"""flint's working precision, and its balls as doubles."""

from __future__ import annotations

import math
from typing import Any

from flint import arb

from pgcc.ir.numbers import UNIT
from pgcc.passes.balls import flint_lock, precision

__all__ = ["ball_parts", "flint_lock", "precision"]


def ball_parts(ball: Any) -> tuple[float, int, float]:
    """A ball as mantissa, exponent and relative error bound of its midpoint; (0, 0, 0) for an exact zero."""
    ball = arb(ball)
    if not ball.is_finite():
        return 0.0, 0, math.inf
    middle, radius = (_mantissa_exponent(x) for x in (ball.mid(), ball.rad()))
    if middle[0] == 0.0:
        return 0.0, 0, 0.0 if radius[0] == 0.0 else math.inf
    if radius[0] == 0.0:
        return middle[0], middle[1], 2 * UNIT
    gap = radius[1] - middle[1]
    if gap > 0:
        return middle[0], middle[1], math.inf
    ratio = math.ldexp(radius[0] / abs(middle[0]), max(gap, -1000)) * (1 + 8 * UNIT)
    return middle[0], middle[1], ratio / (1 - ratio) + 2 * UNIT if ratio < 0.5 else math.inf


def _mantissa_exponent(x: Any) -> tuple[float, int]:
    """A midpoint as (m, e) with ½ ≤ |m| < 1, to one rounding."""
    whole, exponent = (int(part) for part in x.man_exp())
    if not whole:
        return 0.0, 0
    extra = max(0, abs(whole).bit_length() - 64)  # a double holds no more than 64 bits
    mantissa, binary = math.frexp(float(whole >> extra))
    return mantissa, binary + extra + exponent

"""flint's working precision, and its balls as doubles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from pgcc.ir.numbers import UNIT, frexp
from pgcc.locks import new_lock

# The first working precision that is tried, in bits.
FIRST_BITS = 128
# If a ball with this many bits still contains 0, the value is probably 0, which only rationals can prove.
ZERO_BITS = 1024
# flint's precision is one number for the whole process.
flint_lock = new_lock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set flint's working precision, for one thread at a time."""
    with flint_lock, ctx.workprec(bits):
        yield


def doubled(first: int, most: int) -> Iterator[int]:
    """Working precisions to try one after another, in bits: the first, twice as many, … up to the most.

    >>> list(doubled(128, 1024))
    [128, 256, 512, 1024]
    """
    while first <= most:
        yield first
        first *= 2


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
    """A midpoint or radius as (m, e) with ½ ≤ |m| < 1, to one rounding; (0, 0) for 0."""
    whole, exponent = (int(part) for part in x.man_exp())
    mantissa, binary = frexp(whole)
    return mantissa, binary + exponent if mantissa else 0


def fraction_parts(value: Fraction) -> tuple[float, int, float]:
    """A fraction as mantissa, exponent and relative error bound."""
    return *frexp(value), UNIT if value else 0.0

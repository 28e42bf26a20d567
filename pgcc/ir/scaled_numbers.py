"""Numbers of any range as scaled numbers m·2^(radix·e), with 2^(−radix/2) ≤ |m| < 2^(radix/2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pgcc.ir.flat import doubles
from pgcc.ir.numbers import Number, frexp

ZERO_EXPONENT = -(2**60)  # the exponent of 0, below all others
# A double beyond these may have lost digits, or stand for a number out of range.
_LEAST, _MOST = 2.0**-1000, 2.0**1000


def split_number(number: Number, radix: int) -> tuple[float, int]:
    """A number as m and e, to one rounding.

    >>> split_number(0.25, 256), split_number(2**300, 256)
    ((0.25, 0), (17592186044416.0, 1))
    """
    mantissa, binary = frexp(number)
    if not mantissa:
        return 0.0, ZERO_EXPONENT
    exponent = (binary + radix // 2 - 1) // radix
    return math.ldexp(mantissa, binary - radix * exponent), exponent


def split_doubles(numbers: np.ndarray, radix: int, exponent: np.ndarray | int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Doubles, times 2^exponent, as arrays of m and e.

    >>> m, e = split_doubles(np.array([0.25, 2.0**300, 0.0]), 256)
    >>> m.tolist(), (e - [0, 1, ZERO_EXPONENT]).tolist()
    ([0.25, 17592186044416.0, 0.0], [0, 0, 0])
    """
    fraction, binary = np.frexp(numbers)
    binary = binary.astype(np.int64) + exponent
    high = (binary + (radix // 2 - 1)) // radix
    mantissa = np.ldexp(fraction, (binary - radix * high).astype(np.int32))
    return mantissa, np.where(fraction == 0.0, ZERO_EXPONENT, high)


def split_numbers(numbers: Sequence[Number], radix: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as arrays of m and e, to one rounding each."""
    return split_rounded(doubles(numbers), numbers.__getitem__, radix)


def split_rounded(rounded: np.ndarray, number: Callable[[int], Number], radix: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, given the nearest doubles, as arrays of m and e; `number` says those that are out of range of these."""
    size = np.abs(rounded)
    outside = ~((size > _LEAST) & (size < _MOST))
    mantissa, exponent = split_doubles(np.where(outside, 0.0, rounded), radix)
    for i in np.flatnonzero(outside).tolist():
        mantissa[i], exponent[i] = split_number(number(i), radix)
    return mantissa, exponent

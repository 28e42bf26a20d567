"""The numbers a circuit may hold, and exact arithmetic on them.

A weight is an `int`, a `Fraction` or a `float`. A float stands for the dyadic rational it is, so that
every circuit is one definite polynomial with rational coefficients; it stays a float as long as
nothing is computed from it, which keeps circuits with a million learned weights small.
"""

from __future__ import annotations

import math
import numbers
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pgcc.errors import CircuitError

# The unit roundoff of doubles.
UNIT = 2.0**-53
# The smallest normal double; smaller ones have fewer digits.
_LEAST_NORMAL = 2.0**-1022

Number = int | Fraction | float


def as_number(value: Any) -> Number:
    """The canonical form of a scalar: `int` where integral and exact, else `Fraction`, or `float`.

    >>> as_number(Fraction(4, 2)), as_number(0.1), as_number("0.1")
    (2, 0.1, Fraction(1, 10))
    """
    kind = type(value)
    if kind is float:
        if not math.isfinite(value):
            raise CircuitError(f"{value!r} is not a number a circuit can hold: weights are finite")
        return value
    if kind is int:
        return value
    if kind is Fraction:
        return value.numerator if value.denominator == 1 else value
    return _convert(value)


def _convert(value: Any) -> Number:
    if isinstance(value, numbers.Integral):  # bool and numpy integers too
        return int(value)
    if isinstance(value, numbers.Rational):
        return as_number(Fraction(int(value.numerator), int(value.denominator)))
    if isinstance(value, (Decimal, str)):
        try:
            return as_number(Fraction(value))
        except (ValueError, OverflowError, ZeroDivisionError):
            raise CircuitError(f"{value!r} is not a finite number") from None
    if isinstance(value, numbers.Real):  # numpy floats, of which long doubles may have more digits than doubles
        nearest, ratio = float(value), getattr(value, "as_integer_ratio", None)
        wider = nearest != value == value  # and not NaN
        return as_number(Fraction(*ratio()) if wider and ratio is not None else nearest)
    if getattr(value, "shape", None) == () and not getattr(value, "requires_grad", False):  # arrays of one number
        return as_number(value.item())
    raise CircuitError(f"{value!r} ({type(value).__name__}) is not a real number")


def is_number(value: Any) -> bool:
    """Whether a value is a number that `as_number` accepts, other than text."""
    return isinstance(value, (numbers.Real, Decimal))


def exact(value: Number) -> Fraction:
    """The rational a number stands for."""
    return Fraction(value)


def add(a: Number, b: Number) -> Number:
    """a + b, exactly."""
    if not a:
        return b
    if not b:
        return a
    return as_number(Fraction(a) + Fraction(b))


def mul(a: Number, b: Number) -> Number:
    """a · b, exactly."""
    if type(a) is int and a == 1:
        return b
    if type(b) is int and b == 1:
        return a
    return as_number(Fraction(a) * Fraction(b))


def absolute(a: Number) -> Number:
    """|a|"""
    return -a if a < 0 else a


def one_minus(p: Number) -> Number:
    """1 − p without rounding: where that is no double, it is a fraction.

    >>> one_minus(0.25), one_minus(0.1) == 1 - Fraction(0.1)
    (0.75, True)
    """
    rest = 1 - Fraction(p)
    return float(rest) if type(p) is float and float(rest) == rest else as_number(rest)


def reciprocal(value: Any) -> Number:
    """1 / value, by which a circuit is multiplied: exact for exact numbers, rounded for floats.

    >>> reciprocal(4), reciprocal(4.0)
    (Fraction(1, 4), 0.25)
    """
    divisor = as_number(value)
    if not divisor:
        raise CircuitError("division of a circuit by zero")
    return 1 / divisor if type(divisor) is float else as_number(Fraction(1) / divisor)


def power(a: Number, k: int) -> Number:
    """a ** k for k ≥ 0, exactly."""
    return a if k == 1 else as_number(Fraction(a) ** (k if a not in (1, -1) else k % 2))


def log_of(number: Number) -> float:
    """The logarithm of a number ≥ 0 of any size, with an error of at most 4 roundings of max(|log|, 1); −inf of 0.

    >>> log_of(1), log_of(0), round(log_of(Fraction(1, 10**400)), 3)
    (0.0, -inf, -921.034)
    """
    if not number:
        return -math.inf
    value = nearest_float(number)
    if _LEAST_NORMAL <= value < math.inf:
        return math.log(value)
    mantissa, exponent = frexp(number)
    return math.log(mantissa) + exponent * math.log(2.0)


def frexp(number: Number) -> tuple[float, int]:
    """`math.frexp` for numbers of any size: m and e with number = m·2^e to one rounding, and ½ ≤ |m| < 1 or m = 0.

    >>> frexp(0.75), frexp(Fraction(3) ** 1000)
    ((0.75, 0), (0.9743423782435513, 1585))
    """
    if type(number) is float:
        return math.frexp(number)
    numerator, denominator = number.as_integer_ratio()
    shift = numerator.bit_length() - denominator.bit_length()
    # The quotient of two integers, however long, is rounded once.
    near = numerator / (denominator << shift) if shift >= 0 else (numerator << -shift) / denominator
    mantissa, exponent = math.frexp(near)  # ½ < |near| < 2
    return mantissa, exponent + shift if mantissa else 0


def ldexp(mantissa: float, exponent: int) -> Number:
    """m·2^e: a float, or beyond their range (or next to its ends) an exact number.

    >>> ldexp(0.75, 1), ldexp(0.75, 1100) == 3 * 2**1098, ldexp(*frexp(Fraction(3) ** -1000)) * 2**1600
    (1.5, True, Fraction(4622194136202043, 137438953472))
    """
    mantissa, shift = math.frexp(mantissa)
    exponent += shift
    if mantissa and not -1000 < exponent < 1000:
        return as_number(Fraction(mantissa) * Fraction(2) ** exponent)
    return math.ldexp(mantissa, exponent)


def as_index(value: Any) -> int | None:
    """A whole number of any type; None for anything else, truth values included.

    >>> as_index(3), as_index(3.0), as_index(True)
    (3, None, None)
    """
    try:
        return None if type(value).__name__ in ("bool", "bool_") else operator.index(value)
    except TypeError:
        return None


def nearest_float(value: Number) -> float:
    """The double nearest to a number; ±inf where it is out of range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf

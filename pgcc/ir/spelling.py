"""Numbers and names as text: what the printer, the parser and the files agree on.

12   3/4        exact
0x1f            exact, in hexadecimal: how very long numbers are written, because reading decimals is quadratic
0x1.8p-3        a *float*: the C99 hexadecimal form gives every bit of it
"""

from __future__ import annotations

import re
from fractions import Fraction

from pgcc.errors import CircuitError
from pgcc.ir.numbers import Number, as_number, nearest_float

# An exact number in text, or computed from text, has at most this many bits (about 39,000 digits).
MAX_BITS = 1 << 17
# Decimals longer than this are not read, and longer numbers are written in hexadecimal. Below Python's own limit.
MAX_DIGITS = 4000
# A name in text has at most this many characters.
MAX_NAME = 1000

_DECIMAL_BITS = 13_000  # a number of at most this many bits has fewer than MAX_DIGITS digits


def bits(value: Number) -> int:
    """How long an exact number is; a float counts as nothing.

    >>> bits(255), bits(Fraction(1, 4))
    (8, 4)
    """
    if type(value) is Fraction:
        return value.numerator.bit_length() + value.denominator.bit_length()
    return value.bit_length() if type(value) is int else 0


def power_bits(value: Number, k: int) -> int:
    """A bound on the bits of value ** k, computed exactly.

    >>> power_bits(0.5, 3), power_bits(-1, 10**9)
    (9, 1)
    """
    return 1 if value in (0, 1, -1) else k * bits(as_number(Fraction(value)))


def integer_text(value: int) -> str:
    """An integer in decimal, or in hexadecimal if it is very long."""
    return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


def number_text(value: Number) -> str:
    """The text of a number, every bit of it; the parser reads it back as the same number of the same kind.

    >>> number_text(Fraction(3, 4)), number_text(0.75), number_text(-2)
    ('3/4', '0x1.8p-1', '-2')
    """
    if type(value) is float:
        return _float_text(value)
    if bits(value) > MAX_BITS:
        raise CircuitError(f"a number of {bits(value):,} bits is too long to be written (the limit is {MAX_BITS:,})")
    if type(value) is Fraction:
        return f"{integer_text(value.numerator)}/{integer_text(value.denominator)}"
    return integer_text(int(value))


def _float_text(value: float) -> str:
    mantissa, _, exponent = value.hex().partition("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".") or "0"
    return f"{mantissa}p{exponent}"


def display_text(value: Number) -> str:
    """A number as people like to see it: floats by their shortest decimal, very long numbers rounded.

    >>> display_text(0.1), display_text(Fraction(2, 5)), display_text(Fraction(10**60 + 1, 3))
    ('0.1', '2/5', '3.33333e+59')
    """
    if type(value) is float:
        return repr(value)
    if bits(value) <= 160:
        return number_text(value)
    return _rounded(Fraction(value))


def _rounded(value: Fraction) -> str:
    number = nearest_float(value)
    if 1e-300 < abs(number) < 1e300:
        return f"{number:.6g}"
    # Out of the range of a double: only the magnitude is shown.
    power = value.numerator.bit_length() - value.denominator.bit_length()
    return f"{'-' if value < 0 else ''}2**{power}"


_INTEGER = re.compile(r"-?(?:0x[0-9a-f]+|[0-9]{1,4000})", re.ASCII)


def read_integer(text: str) -> int:
    """The integer that `integer_text` wrote; `ValueError` if it did not."""
    if len(text) > MAX_BITS // 4 + 8 or not _INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not an integer")
    return int(text, 16) if "x" in text else int(text)


def read_exact(text: str) -> Number:
    """The exact number that `number_text` wrote; `ValueError` if it did not.

    >>> read_exact("3/4"), read_exact("-0x10")
    (Fraction(3, 4), -16)
    """
    numerator, slash, denominator = text.partition("/")
    if not slash:
        return read_integer(numerator)
    divisor = read_integer(denominator)
    if divisor <= 0:
        raise ValueError(f"{text[:40]!r} is not a fraction")
    return as_number(Fraction(read_integer(numerator), divisor))


KEYWORDS = frozenset({"det", "variables"})
_NAME = re.compile(r"[^\W\d]\w*")


def is_bare(name: str) -> bool:
    """Whether a name can stand in text without quotes."""
    return name not in KEYWORDS and name.isidentifier() and _NAME.fullmatch(name) is not None


def name_text(name: str) -> str:
    """A name as it stands in text: quoted unless it is an identifier.

    >>> name_text("z1"), name_text("a-b"), name_text("det")
    ('z1', '"a-b"', '"det"')
    """
    if is_bare(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

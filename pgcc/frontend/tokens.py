"""The tokens of the language of `pgcc.parse`, and the numbers that they spell."""

from __future__ import annotations

import re
from fractions import Fraction

from pgcc.errors import CircuitError
from pgcc.ir.numbers import Number, as_number
from pgcc.ir.spelling import MAX_BITS, MAX_DIGITS, MAX_NAME

MAX_DECIMAL_EXPONENT = 10_000  # 1e10000 is a number of 33,000 bits

# One alternative for every kind of token; the last matches any character, so every text is a sequence of tokens. No
# alternative can match in two ways, so matching never backtracks further than one token.
WORD = re.compile(
    r"""[ \t]*+ (?:\#[^\r\n]*+)?+ (?:
      (?P<call> (?:det|const|sum|product)[ \t]*+\( )
    | (?P<variables> variables(?=[ \t]++[\w"]) )
    | (?P<definition> (?:[^\W\d]\w*+|QUOTED)(?=[ \t]*+(?:=|in[ \t]*+\{)) )
    | (?P<states> in[ \t]*+\{ )
    | (?P<name> [^\W\d]\w*+ )
    | (?P<quoted> QUOTED )
    | (?P<number> 0[xX][0-9a-fA-F.]*+(?:[pP][+-]?+[0-9]++)?+
                | (?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+ )
    | (?P<power> \*\* )
    | (?P<factor> [*/] )
    | (?P<sign> [+-] )
    | (?P<open> \( ) | (?P<close> \) )
    | (?P<bracket> \[ ) | (?P<unbracket> \] )
    | (?P<brace> \} )
    | (?P<comma> , ) | (?P<colon> : )
    | (?P<equals> = )
    | (?P<complement> ~ )
    | (?P<newline> [\r\n][ \t\r\n]*+ )
    | (?P<end> \Z )
    | (?P<other> . )
    )""".replace("QUOTED", rf'"(?:[^"\\\r\n]|\\["\\]){{0,{MAX_NAME}}}+"'),
    re.VERBOSE | re.DOTALL,
)
KINDS = ["", *WORD.groupindex]  # the name of every alternative, by its number
END = WORD.groupindex["end"]
NEWLINE = re.compile(r"[\r\n]")
_HEXADECIMAL = re.compile(r"0[xX](?:([0-9a-fA-F]+)|(?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)")
ESCAPE = re.compile(r'\\(["\\])')


def read_number(word: str) -> Number:
    """A decimal number, exactly; 0x1f is an integer, and 0x1.8p-3 a float."""
    return _hexadecimal(word) if word[:2] in ("0x", "0X") else _decimal(word)


def _decimal(word: str) -> Number:
    mantissa, _, exponent = word.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    shift = exponent.lstrip("+-").lstrip("0")
    if len(shift) > 6 or int(shift or "0") > MAX_DECIMAL_EXPONENT:
        raise CircuitError(f"the number is too large or too small: an exponent is at most {MAX_DECIMAL_EXPONENT:,}")
    if len(whole) + len(fraction) > MAX_DIGITS:
        raise CircuitError(f"the number is too long: a decimal has at most {MAX_DIGITS:,} digits")
    power = (-1 if exponent.startswith("-") else 1) * int(shift or "0") - len(fraction)
    digits = int(whole + fraction)
    return digits * 10**power if power >= 0 else as_number(Fraction(digits, 10**-power))


def _hexadecimal(word: str) -> Number:
    match = _HEXADECIMAL.fullmatch(word)
    if match is None:
        raise CircuitError("a hexadecimal number looks like 0x1f, an integer, or 0x1.8p-3, a float")
    if len(word) > MAX_BITS // 4 + 2:
        raise CircuitError(f"the number is too long: at most {MAX_BITS:,} bits")
    if match[1]:
        return int(match[1], 16)
    try:
        return float.fromhex(word)
    except OverflowError:
        raise CircuitError("the number is too large to be a float") from None

"""The verdict on a claim: proved, refuted with a witness, or not proven."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pgcc.exact.balls import rational
from pgcc.validity.proof import Proof

PROVED, REFUTED, NOT_PROVEN = "proved", "refuted", "not proven"
_MOST_BITS = 1000  # of a fraction that is written in full


@dataclass(frozen=True, repr=False)
class Verdict:
    """The verdict of `pgcc.check` on one claim about a circuit.

    Attributes
    ----------
    state : str
        ``"proved"``, ``"refuted"`` or ``"not proven"``.
    reason : str
        Why, in words.
    witness : object
        The counterexample, if the claim is refuted.
    value : Fraction or None
        The exact number that goes with the witness, such as the negative coefficient.
    proof : Proof or None
        The proof that the proof checker verifies (`pgcc.validity.proof`); None if the claim is not proven.

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.check(pgcc.parse("1.5*x - 0.5")).nonnegative)
    refuted: the coefficient of x=0 is -1/2
    """

    state: str
    reason: str
    witness: Any = None
    value: Fraction | None = None
    proof: Proof | None = field(default=None, compare=False)

    @property
    def proved(self) -> bool:
        """Whether the claim is proved to be true."""
        return self.state == PROVED

    @property
    def refuted(self) -> bool:
        """Whether the claim is proved to be false."""
        return self.state == REFUTED

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain data, for JSON."""
        plain: dict[str, Any] = {"state": self.state, "reason": self.reason}
        if self.witness is not None:
            plain["witness"] = exact_text(self.witness) if isinstance(self.witness, Fraction) else self.witness
        if self.value is not None:
            plain["value"] = short_text(self.value)
        return plain

    def __repr__(self) -> str:
        shown = f"witness={_told(self.witness)}, value={_told(self.value)}"
        return f"Verdict(state={self.state!r}, reason={self.reason!r}, {shown})"

    def __str__(self) -> str:
        return f"{self.state}: {self.reason}"


def _told(value: Any) -> str:
    """As `repr` has it, but for fractions that are so long that Python refuses to write them."""
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator).bit_length() > _MOST_BITS:
        return f"<{short_text(value)}>"
    return repr(value)


def exact_text(value: Fraction | None) -> str:
    """A fraction of any length as text; "" for None. (Python itself refuses to write more than 4,300 digits.)"""
    return "" if value is None else str(rational(value))


def short_text(value: Fraction) -> str:
    """A short fraction as it is, a long one as a decimal.

    >>> short_text(Fraction(-1, 20)), short_text(Fraction(1, 3**60))
    ('-1/20', '2.359e-29')
    """
    if max(abs(value.numerator), value.denominator) < 10**12:
        return str(value)
    if value.denominator == 1 and abs(value.numerator) < sys.float_info.max:
        return f"{float(value):.6g}"
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(shift) < 1000:
        return f"{float(value):.4g}"
    return f"about {'-' if value < 0 else ''}2**{shift}"


def assignment_text(assignment: dict[str, int], most: int = 12) -> str:
    """An assignment as text; a long one as the names that are in, and how many are out.

    >>> assignment_text({"a": 1, "b": 0})
    'a=1, b=0'
    """
    if len(assignment) <= most:
        return ", ".join(f"{name}={value}" for name, value in assignment.items()) or "the empty set"
    inside = [name for name, value in assignment.items() if value]
    shown = ", ".join(inside[:most]) + (", …" if len(inside) > most else "") if inside else "nothing"
    return f"{shown} in, {len(assignment) - len(inside)} out"

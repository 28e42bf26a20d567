"""Balls and exact rationals (python-flint): the last resort of queries for which float64 is not accurate enough.

The circuit is evaluated in Python, one flint number per node (`pgcc.exact.tape`). A homogenized circuit is evaluated
once; any other over polynomials in t, of which the first |A| + 1 coefficients are kept (`pgcc.exact.truncated`).
Determinants are in `pgcc.exact.pencil`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_poly, fmpq, fmpq_poly

from pgcc.errors import PrecisionError
from pgcc.exact.balls import ball, fraction
from pgcc.exact.pencil import BALLS, RATIONALS, Ring
from pgcc.exact.precision import FIRST_BITS, ZERO_BITS, ball_parts, doubled, flint_lock, fraction_parts, precision
from pgcc.exact.tape import Layouts, Tape, bits_of_value, make_tape, run_tape
from pgcc.exact.truncated import Truncated, expand
from pgcc.ir.blocks import Blocks
from pgcc.ir.circuit import Circuit
from pgcc.locks import cached_property
from pgcc.rings.values import Values

MOST_BITS = 1 << 15  # of the working precision
_MOST_EXPONENT = 1 << 60
# Rationals with more bits are not computed.
MOST_EXACT_BITS = 1 << 27
# Answers that take more coefficients of a node, or of all nodes together, are refused.
_MOST_COEFFICIENTS, _MOST_WORK = 5_000, 10**8

Codes = Sequence[int]


class Exact:
    """The evaluator in balls and rationals.

    Parameters
    ----------
    circuit : Circuit
    homogeneous : bool
        Whether the circuit is homogenized, so that one evaluation at 0s and 1s is the answer.
    degree : int or None
        For other circuits: a bound on the degree in t; None if it is |A| because the polynomial is multiaffine.
    """

    def __init__(self, circuit: Circuit, homogeneous: bool, degree: int | None = None):
        self.circuit, self.homogeneous, self.degree = circuit, homogeneous, degree
        self._layouts = Layouts()
        self.blocks = Blocks.of(circuit.variables) if homogeneous and circuit.domains else None

    # -- balls --------------------------------------------------------------------------------------

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Values:
        """Values for int8 rows of evidence (1, 0, −1), each to `rtol`."""
        values = Values.empty(len(evidence))
        for row, codes in enumerate(evidence):
            values.mantissa[row], values.exponent[row], values.bound[row] = self._certified(codes.tolist(), rtol)
        return values

    def _certified(self, codes: Codes, rtol: float) -> tuple[float, int, float]:
        for bits in doubled(FIRST_BITS, MOST_BITS):
            mantissa, exponent, bound = self.ball(codes, bits)
            if abs(exponent) > _MOST_EXPONENT:
                raise PrecisionError(f"a value is beyond 2**±{_MOST_EXPONENT}: out of every range")
            if bound <= rtol:
                return mantissa, exponent, bound
            if bits >= ZERO_BITS and self.exact_bits <= MOST_EXACT_BITS:
                return fraction_parts(self.rational(codes))
        raise PrecisionError(
            f"a value is still uncertain with {MOST_BITS} bits, and its exact fraction would have more than "
            f"{MOST_EXACT_BITS} bits: rewrite the circuit so that less cancels",
            advice="rtol=1e-6 accepts a larger error",
        )

    def ball(self, codes: Codes, bits: int) -> tuple[float, int, float]:
        """(mantissa, exponent, relative error bound) of the value, computed with this precision."""
        with precision(bits):
            return ball_parts(self._value(codes, bits))

    def _value(self, codes: Codes, bits: int) -> Any:
        """The value as a ball; to be called inside of `precision(bits)`."""
        return arb(self._coefficient(self.balls(bits), codes, arb, arb_poly))

    def log_quotient(self, codes: Codes, by: Codes | None, rtol: float, other: Exact | None = None) -> float:
        """log(value of `codes` / value of `by`), to a relative error of `rtol` also where it is nearly 0.

        by : None to divide by 1. Both values must be positive. other : the circuit of the second value; the same one by
        default.
        """
        ratio, divisor = None, self if other is None else other
        for bits in doubled(FIRST_BITS, MOST_BITS):
            if bits > ZERO_BITS and ratio is None and max(self.exact_bits, divisor.exact_bits) <= MOST_EXACT_BITS:
                ratio = self.rational(codes) / (1 if by is None else divisor.rational(by))
            with precision(bits):
                quotient = self._value(codes, bits) if ratio is None else ball(ratio)
                if by is not None and ratio is None:
                    quotient /= divisor._value(by, bits)
                mantissa, exponent, bound = ball_parts(quotient.log())
            if bound <= rtol:
                return math.ldexp(mantissa, max(exponent, -2000))
        raise PrecisionError(
            f"a logarithm is still uncertain with {MOST_BITS} bits", advice="rtol=1e-6 accepts a larger error"
        )

    def balls(self, bits: int) -> Tape:
        """The circuit with its numbers as balls; kept for the last precision used."""
        if self._ball_tape[0] != bits:
            self._ball_tape = bits, self._tape(BALLS)
        return self._ball_tape[1]

    @cached_property
    def _ball_tape(self) -> tuple[int, Tape]:
        return 0, []

    # -- rationals ----------------------------------------------------------------------------------

    def rational(self, codes: Codes) -> Fraction:
        """The value as a fraction."""
        if self.exact_bits > MOST_EXACT_BITS:
            raise PrecisionError(
                f"the exact value may have more than {MOST_EXACT_BITS} bits", advice="rtol=1e-12 rounds it"
            )
        with flint_lock:
            return fraction(fmpq(self._coefficient(self.rationals, codes, fmpq, fmpq_poly)))

    @cached_property
    def rationals(self) -> Tape:
        """The circuit with its numbers as rationals."""
        return self._tape(RATIONALS)

    @cached_property
    def exact_bits(self) -> int:
        """A rough bound on the bits of the exact value."""
        return bits_of_value(self.circuit.order, self._layouts)

    # -- both ---------------------------------------------------------------------------------------

    def _tape(self, ring: Ring) -> Tape:
        return make_tape(self.circuit.order, ring, self._layouts)

    def _coefficient(self, tape: Tape, codes: Codes, number: Any, poly: Any) -> Any:
        """The value in a ring with these classes of numbers and polynomials: of a homogenized circuit, or [t^|A|]."""
        if self.homogeneous:
            if self.blocks is not None:
                codes = self.blocks.closed(np.array([codes], np.int8))[0].tolist()
            return run_tape(tape, self._literals(codes, number(1), number(0)))
        wanted = sum(code == 1 for code in codes)
        if (wanted + 1) * len(self.circuit.order) > _MOST_WORK or wanted >= _MOST_COEFFICIENTS:
            raise PrecisionError(
                f"a certified answer would need {wanted + 1} coefficients of {len(self.circuit.order)} nodes: too many"
            )
        t = Truncated(poly([0, 1]), wanted + 1)
        found = expand(tape, self._literals(codes, t, number(0)), wanted + 1, poly)
        return found[wanted] if wanted < len(found) else number(0)

    def _literals(self, codes: Codes, inside: Any, zero: Any) -> dict[tuple[str, bool], Any]:
        """z and ȳ of every variable. `inside` is z of a variable observed 1: t, or 1 if the circuit is homogenized."""
        one = zero + 1
        outside = zero if self.homogeneous else one  # ȳ of a variable observed 1
        values = {}
        for name, code in zip(self.circuit.variables, codes, strict=True):
            values[name, False] = inside if code == 1 else zero if code == 0 else one
            values[name, True] = outside if code == 1 else one
        return values

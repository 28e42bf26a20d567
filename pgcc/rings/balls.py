"""Balls and exact rationals (python-flint): the last resort of queries for which float64 is not accurate enough.

The circuit is evaluated in Python, one flint number per node. A homogenized circuit is evaluated once; any other at
|A| + 1 points, from which the coefficient of t^|A| is interpolated: roots of unity for balls, small integers for
rationals. Determinants are in `pgcc.determinants.pencil`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, assert_never

import numpy as np
from flint import arb, fmpq

from pgcc.determinants.pencil import BALLS, RATIONALS, Determinant, Layout, Ring, interpolated_coefficient
from pgcc.errors import PrecisionError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import UNIT, Number, exact
from pgcc.passes.ball_coefficients import coefficient_from_roots
from pgcc.passes.balls import ball
from pgcc.rings.precision import ball_parts, flint_lock, precision
from pgcc.rings.values import Values

FIRST_BITS, MOST_BITS = 128, 1 << 15
# If a ball with this many bits still contains 0, the value is probably 0, which only rationals can prove.
ZERO_BITS = 1024
_MOST_EXPONENT = 1 << 60
# Rationals with more bits are not computed.
MOST_EXACT_BITS = 1 << 27
# Answers that take more evaluations of the circuit, or more evaluations of nodes, are refused.
_MOST_POINTS, _MOST_WORK = 5_000, 10**8

Codes = Sequence[int]
# A node of a circuit: operation, children, data with numbers in a ring, and the children that no later node needs.
Entry = tuple[Op, tuple[int, ...], Any, list[int]]
Tape = list[Entry]


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

    # -- balls --------------------------------------------------------------------------------------

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Values:
        """Values for int8 rows of evidence (1, 0, −1), each to `rtol`."""
        values = Values.empty(len(evidence))
        for row, codes in enumerate(evidence):
            values.mantissa[row], values.exponent[row], values.bound[row] = self._certified(codes.tolist(), rtol)
        return values

    def _certified(self, codes: Codes, rtol: float) -> tuple[float, int, float]:
        bits = FIRST_BITS
        while bits <= MOST_BITS:
            mantissa, exponent, bound = self.ball(codes, bits)
            if abs(exponent) > _MOST_EXPONENT:
                raise PrecisionError(f"a value is beyond 2**±{_MOST_EXPONENT}: out of every range")
            if bound <= rtol:
                return mantissa, exponent, bound
            if bits >= ZERO_BITS and self.exact_bits <= MOST_EXACT_BITS:
                return split_fraction(self.rational(codes))
            bits *= 2
        raise PrecisionError(
            f"a value is still uncertain with {MOST_BITS} bits, and its exact fraction would have more than "
            f"{MOST_EXACT_BITS} bits: raise `rtol`, or rewrite the circuit so that less cancels"
        )

    def ball(self, codes: Codes, bits: int) -> tuple[float, int, float]:
        """(mantissa, exponent, relative error bound) of the value, computed with this precision."""
        with precision(bits):
            return ball_parts(self._value(codes, bits))

    def _value(self, codes: Codes, bits: int) -> Any:
        """The value as a ball; to be called inside of `precision(bits)`."""
        tape = self.balls(bits)
        if self.homogeneous:
            return arb(run_tape(tape, self._literals(codes, arb(1), arb(0))))
        wanted, n_points = self._points(codes)
        return coefficient_from_roots(
            lambda t: run_tape(tape, self._literals(codes, t, arb(0))), wanted, n_points, is_real=True
        ).real

    def log_quotient(self, codes: Codes, by: Codes | None, rtol: float) -> float:
        """log(value of `codes` / value of `by`), to a relative error of `rtol` also where it is nearly 0.

        by : None to divide by 1. Both values must be positive.
        """
        bits, ratio = FIRST_BITS, None
        while bits <= MOST_BITS:
            if bits > ZERO_BITS and ratio is None and self.exact_bits <= MOST_EXACT_BITS:
                ratio = self.rational(codes) / (1 if by is None else self.rational(by))
            with precision(bits):
                quotient = self._value(codes, bits) if ratio is None else ball(ratio)
                if by is not None and ratio is None:
                    quotient /= self._value(by, bits)
                mantissa, exponent, bound = ball_parts(quotient.log())
            if bound <= rtol:
                return math.ldexp(mantissa, max(exponent, -2000))
            bits *= 2
        raise PrecisionError(f"a logarithm is still uncertain with {MOST_BITS} bits: raise `rtol`")

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
            raise PrecisionError(f"the exact value may have more than {MOST_EXACT_BITS} bits: ask for `rtol` instead")
        with flint_lock:
            tape = self.rationals
            if self.homogeneous:
                value = run_tape(tape, self._literals(codes, fmpq(1), fmpq(0)))
            else:
                wanted, n_points = self._points(codes)
                at = [run_tape(tape, self._literals(codes, fmpq(t), fmpq(0))) for t in range(n_points)]
                value = interpolated_coefficient(at, wanted)
            value = fmpq(value)
            return Fraction(int(value.p), int(value.q))

    @cached_property
    def rationals(self) -> Tape:
        """The circuit with its numbers as rationals."""
        return self._tape(RATIONALS)

    @cached_property
    def exact_bits(self) -> int:
        """A rough bound on the bits of the exact value: the bits of factors add up."""
        bits: list[int] = []
        for node, children in zip(self.circuit.order, self.circuit.links, strict=True):
            match node.op:
                case Op.CONST:
                    bits.append(_bits(node.value))
                case Op.VAR:
                    bits.append(1)
                case Op.SUM:
                    bits.append(
                        max((_bits(w) + bits[c] for w, c in zip(node.weights, children, strict=True)), default=1) + 8
                    )
                case Op.PRODUCT:
                    bits.append(sum(bits[c] for c in children))
                case Op.DET:
                    entries = map(_bits, self._layouts[node].numbers())
                    n = node.matrices[0].shape[0] + len(node.inside)
                    bits.append(sum(bits[c] for c in children) + n * (max(entries, default=1) + 8))
                case _:
                    assert_never(node.op)
        return bits[-1]

    # -- both ---------------------------------------------------------------------------------------

    @cached_property
    def _layouts(self) -> dict[Node, Layout]:
        return {node: Layout(node) for node in self.circuit.order if node.op is Op.DET}

    def _tape(self, ring: Ring) -> Tape:
        """The nodes in order, with numbers in the ring."""
        last_use: dict[int, int] = {}
        for i, children in enumerate(self.circuit.links):
            last_use.update(dict.fromkeys(children, i))
        tape: Tape = []
        for i, node in enumerate(self.circuit.order):
            data = node.data
            if node.op is Op.CONST:
                data = ring.lift(node.value)
            elif node.op is Op.SUM:
                data = [ring.lift(w) for w in node.weights]
            elif node.op is Op.DET:
                data = Determinant(self._layouts[node], ring)
            children = self.circuit.links[i]
            tape.append((node.op, children, data, [c for c in dict.fromkeys(children) if last_use[c] == i]))
        return tape

    def _points(self, codes: Codes) -> tuple[int, int]:
        """|A|, and the number of points from which the coefficient of t^|A| is interpolated."""
        wanted = sum(code == 1 for code in codes)
        n_points = (wanted if self.degree is None else max(self.degree, wanted)) + 1
        if n_points * len(self.circuit.order) > _MOST_WORK or n_points > _MOST_POINTS:
            raise PrecisionError(
                f"a certified answer would need {n_points} evaluations of {len(self.circuit.order)} nodes: too many"
            )
        return wanted, n_points

    def _literals(self, codes: Codes, inside: Any, zero: Any) -> dict[tuple[str, bool], Any]:
        """z and ȳ of every variable. `inside` is z of a variable observed 1: t, or 1 if the circuit is homogenized."""
        one = zero + 1
        outside = zero if self.homogeneous else one  # ȳ of a variable observed 1
        values = {}
        for name, code in zip(self.circuit.variables, codes, strict=True):
            values[name, False] = inside if code == 1 else zero if code == 0 else one
            values[name, True] = outside if code == 1 else one
        return values


def run_tape(tape: Tape, literals: dict[tuple[str, bool], Any]) -> Any:
    """The value of a circuit, given those of z (False) and ȳ (True) of every variable."""
    at: list[Any] = []
    for op, children, data, dead in tape:
        match op:
            case Op.CONST:
                at.append(data)
            case Op.VAR:
                at.append(literals[data])
            case Op.SUM:
                at.append(sum([w * at[c] for w, c in zip(data, children, strict=True)], start=0))
            case Op.PRODUCT:
                at.append(math.prod([at[c] for c in children], start=1))
            case Op.DET:
                k = len(children) // 2
                at.append(data.at([at[c] for c in children[:k]], [at[c] for c in children[k:]]))
            case _:
                assert_never(op)
        for c in dead:  # free the memory: numbers may be long
            at[c] = None
    return at[-1]


def _bits(number: Number) -> int:
    ratio = exact(number)
    return ratio.numerator.bit_length() + ratio.denominator.bit_length()


def split_fraction(value: Fraction) -> tuple[float, int, float]:
    """A fraction as mantissa, exponent and relative error bound."""
    if not value:
        return 0.0, 0, 0.0
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    scaled = value / (1 << shift) if shift >= 0 else value * (1 << -shift)
    return float(scaled), shift, UNIT

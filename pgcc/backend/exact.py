"""Balls and exact rationals (python-flint): what a query falls back on when float64 cannot promise enough.

The tape is walked in Python, one flint number per node. A homogenised circuit is evaluated once; any other at |A| + 1
points, from which the coefficient of t^|A| follows: roots of unity for balls, small integers for rationals.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, ctx, fmpq, fmpq_mat

from pgcc.backend.values import UNIT, Values
from pgcc.errors import PrecisionError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Op
from pgcc.ir.numbers import Number, exact

# flint's precision is one number for the whole process.
_flint = threading.RLock()

_FIRST_BITS, _MOST_BITS = 128, 1 << 15
# Past this many bits balls are still uncertain of the sign: the value is probably 0, which only rationals can prove.
_ZERO_BITS = 1024
_MOST_EXPONENT = 1 << 60
# Rationals with more digits than this are not attempted.
_MOST_EXACT_BITS = 1 << 27
# Nor are answers that take more evaluations of the circuit, or more evaluations of nodes.
_MOST_POINTS, _MOST_WORK = 5_000, 10**8

Codes = Sequence[int]
Row = tuple[Op, tuple[int, ...], Any, list[int]]  # operation, children, numbers, children not needed any more


class Exact:
    """The evaluator in balls and rationals.

    Parameters
    ----------
    circuit : Circuit
    homogeneous : bool
        Whether the circuit is homogenised, so that one evaluation at 0s and 1s is the answer.
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
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            mantissa, exponent, bound = self.ball(codes, bits)
            if abs(exponent) > _MOST_EXPONENT:
                raise PrecisionError(f"a value is about 2**({exponent:.3e}): out of every range")
            if bound <= rtol:
                return mantissa, exponent, bound
            if bits >= _ZERO_BITS and self._exact_bits <= _MOST_EXACT_BITS:
                return _split(self.rational(codes))
            bits *= 2
        raise PrecisionError(
            f"a value is still uncertain with {_MOST_BITS} bits, and its exact fraction would have more than "
            f"{_MOST_EXACT_BITS} bits: raise rtol, or rewrite the circuit so that less cancels"
        )

    def ball(self, codes: Codes, bits: int) -> tuple[float, int, float]:
        """(mantissa, exponent, relative error bound) of the value, computed with so many bits."""
        with _flint, ctx.workprec(bits):
            rows = self._balls(bits)
            if self.homogeneous:
                result = _walk(rows, self._literals(codes, arb(1), arb(0)), _det_of_balls)
            else:
                result = self._coefficient_from_roots(rows, codes)
            return _ball_parts(result)

    def _coefficient_from_roots(self, rows: list[Row], codes: Codes) -> Any:
        wanted, n_points = self._points(codes)
        total = arb(0)
        for k in range(n_points // 2 + 1):
            point = acb(fmpq(2 * k, n_points)).exp_pi_i()
            value = acb(_walk(rows, self._literals(codes, point, arb(0)), _det_of_balls))
            term = (value * acb(fmpq(-2 * k * wanted % (2 * n_points), n_points)).exp_pi_i()).real
            twice = k != 0 and 2 * k != n_points  # a point and its conjugate give conjugate terms
            total += 2 * term if twice else term
        return total / n_points

    def _balls(self, bits: int) -> list[Row]:
        """The tape with its numbers as balls; kept for the last precision used."""
        if self._ball_tape[0] != bits:
            self._ball_tape = bits, _tape(self.circuit, lambda x: arb(_rational(x)))
        return self._ball_tape[1]

    @cached_property
    def _ball_tape(self) -> tuple[int, list[Row]]:
        return 0, []

    # -- rationals ----------------------------------------------------------------------------------

    def rational(self, codes: Codes) -> Fraction:
        """The value as a fraction."""
        if self._exact_bits > _MOST_EXACT_BITS:
            raise PrecisionError(f"the exact value may have more than {_MOST_EXACT_BITS} bits: ask for rtol instead")
        with _flint:
            rows = self._rationals
            if self.homogeneous:
                value = _walk(rows, self._literals(codes, fmpq(1), fmpq(0)), _det_of_rationals)
            else:
                wanted, n_points = self._points(codes)
                at = [_walk(rows, self._literals(codes, fmpq(t), fmpq(0)), _det_of_rationals) for t in range(n_points)]
                value = _interpolated_coefficient(at, wanted)
            value = fmpq(value)
            return Fraction(int(value.p), int(value.q))

    @cached_property
    def _rationals(self) -> list[Row]:
        return _tape(self.circuit, _rational)

    @cached_property
    def _exact_bits(self) -> int:
        """About how many bits the exact value has: numbers multiply along products and add up their digits."""
        bits: list[int] = []
        for op, children, data, _ in _tape(self.circuit, _bits):
            match op:
                case Op.CONST:
                    bits.append(data)
                case Op.VAR:
                    bits.append(1)
                case Op.SUM:
                    bits.append(max((w + bits[c] for w, c in zip(data, children, strict=True)), default=1) + 8)
                case Op.PRODUCT:
                    bits.append(sum(bits[c] for c in children))
                case Op.DET:
                    entries = [x for matrix in data for row in matrix for x in row]
                    n = len(data[0]) + len(children) // 2
                    bits.append(sum(bits[c] for c in children) + n * (max(entries, default=1) + 8))
        return bits[-1]

    # -- both ---------------------------------------------------------------------------------------

    def _points(self, codes: Codes) -> tuple[int, int]:
        """|A|, and the number of points that determine the coefficient of t^|A|."""
        wanted = sum(code == 1 for code in codes)
        n_points = (wanted if self.degree is None else max(self.degree, wanted)) + 1
        if n_points * len(self.circuit.order) > _MOST_WORK or n_points > _MOST_POINTS:
            raise PrecisionError(
                f"a certified answer would need {n_points} evaluations of {len(self.circuit.order)} nodes: too many"
            )
        return wanted, n_points

    def _literals(self, codes: Codes, inside: Any, zero: Any) -> dict[tuple[str, bool], Any]:
        """What z and ȳ of every variable become; `inside` is z of a variable observed 1: t, or 1 if homogenised."""
        one = zero + 1
        outside = zero if self.homogeneous else one  # ȳ of a variable observed 1
        values = {}
        for name, code in zip(self.circuit.variables, codes, strict=True):
            values[name, False] = inside if code == 1 else zero if code == 0 else one
            values[name, True] = outside if code == 1 else one
        return values


def _tape(circuit: Circuit, lift: Callable[[Number], Any]) -> list[Row]:
    """The nodes in order, with positions for children and numbers lifted to the ring."""
    last_use: dict[int, int] = {}
    for i, children in enumerate(circuit.links):
        last_use.update(dict.fromkeys(children, i))
    rows: list[Row] = []
    for i, node in enumerate(circuit.order):
        data = node.data
        if node.op is Op.CONST:
            data = lift(node.value)
        elif node.op is Op.SUM:
            data = [lift(w) for w in node.weights]
        elif node.op is Op.DET:
            data = [[[lift(x) for x in row] for row in matrix.numbers()] for matrix in node.matrices]
        children = circuit.links[i]
        rows.append((node.op, children, data, [c for c in dict.fromkeys(children) if last_use[c] == i]))
    return rows


def _walk(rows: list[Row], literals: dict[tuple[str, bool], Any], determinant: Callable[[list[list[Any]]], Any]) -> Any:
    at: list[Any] = []
    for op, children, data, dead in rows:
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
                at.append(determinant(_bordered(data, [at[c] for c in children])))
        for c in dead:  # long numbers are not kept longer than they are needed
            at[c] = None
    return at[-1]


def _bordered(data: list[list[list[Any]]], at: list[Any]) -> list[list[Any]]:
    """[[M0, U·diag(f)], [−Vᵀ, diag(y)]]"""
    m0, u, v = data
    k, r = len(at) // 2, len(m0)
    top = [m0[i] + [u[i][j] * at[j] for j in range(k)] for i in range(r)]
    low = [[-v[i][j] for i in range(r)] + [at[k + j] if i == j else 0 for i in range(k)] for j in range(k)]
    return top + low


def _det_of_balls(matrix: list[list[Any]]) -> Any:
    if not matrix:
        return arb(1)
    is_complex = any(isinstance(x, acb) for row in matrix for x in row)
    return (acb_mat if is_complex else arb_mat)(matrix).det()


def _det_of_rationals(matrix: list[list[Any]]) -> Any:
    n = len(matrix)
    return fmpq_mat(n, n, [fmpq(x) for row in matrix for x in row]).det() if n else fmpq(1)


def _rational(number: Number) -> fmpq:
    if type(number) is int:
        return fmpq(number)
    ratio = exact(number)
    return fmpq(ratio.numerator, ratio.denominator)


def _bits(number: Number) -> int:
    ratio = exact(number)
    return ratio.numerator.bit_length() + ratio.denominator.bit_length()


def _interpolated_coefficient(values: list[Any], wanted: int) -> Any:
    """The coefficient of t^wanted of the polynomial with these values at 0, 1, 2, …: Newton's form, then Horner's."""
    differences = list(values)
    n = len(values)
    for level in range(1, n):
        for i in range(n - 1, level - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / fmpq(level)
    coefficients: list[Any] = [fmpq(0)] * n
    for i in range(n - 1, -1, -1):  # p := p · (t − i) + differences[i]
        shifted = [fmpq(0), *coefficients[:-1]]
        coefficients = [s - i * c for s, c in zip(shifted, coefficients, strict=True)]
        coefficients[0] += differences[i]
    return coefficients[wanted]


def _ball_parts(ball: Any) -> tuple[float, int, float]:
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
    extra = max(0, abs(whole).bit_length() - 64)  # 64 bits are more than a double holds
    mantissa, binary = math.frexp(float(whole >> extra))
    return mantissa, binary + extra + exponent


def _split(value: Fraction) -> tuple[float, int, float]:
    """A fraction as mantissa, exponent and relative error bound."""
    if not value:
        return 0.0, 0, 0.0
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    scaled = value / (1 << shift) if shift >= 0 else value * (1 << -shift)
    return float(scaled), shift, UNIT

"""Truncated polynomials of flint, in t or in ε, as the numbers of a circuit: `expand`.

A determinant with entries that are linear in t is det(P + t·D), with D = Q − P. It is computed from the elementary
symmetric polynomials e_k of the eigenvalues of Q⁻¹·D, as a polynomial in t − 1. Other determinants are interpolated
from their values at points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flint import fmpq, fmpq_mat

from pgcc.errors import PrecisionError
from pgcc.exact.ball_coefficients import elementary_symmetric, from_roots_of_unity
from pgcc.exact.pencil import BALLS, Determinant, Pencil, interpolated
from pgcc.exact.tape import Tape, run_tape
from pgcc.ir.node import Op

# Determinants of a lower degree are interpolated, even if they are linear in t.
_FEW_POINTS = 8
_MOST_POINTS = 5_000


def expand(tape: Tape, literals: Mapping[tuple[str, bool], Any], length: int, poly: Any) -> list[Any]:
    """The first coefficients, at most `length`, of a circuit's value, given those of z and ȳ: numbers or `Truncated`.

    poly : the class of polynomials over the ring of the tape.
    """
    lifted = [
        (op, children, _ExpandedDet(data, length, poly) if op is Op.DET else data, dead)
        for op, children, data, dead in tape
    ]
    return _coefficients(run_tape(lifted, literals))[:length]


class Truncated:
    """A polynomial of flint modulo t^length."""

    __slots__ = ("length", "poly")

    def __init__(self, poly: Any, length: int):
        self.poly, self.length = poly.truncate(length) if poly.length() > length else poly, length

    def __mul__(self, other: Any) -> Truncated:
        return Truncated(self.poly * (other.poly if isinstance(other, Truncated) else other), self.length)

    def __add__(self, other: Any) -> Truncated:
        return Truncated(self.poly + (other.poly if isinstance(other, Truncated) else other), self.length)

    __rmul__, __radd__ = __mul__, __add__


def _coefficients(x: Any) -> list[Any]:
    """The coefficients of a polynomial, or of a number."""
    return x.poly.coeffs() if isinstance(x, Truncated) else [x]


class _ExpandedDet:
    """A determinant whose children are polynomials in t."""

    def __init__(self, det: Determinant, length: int, poly: Any):
        self.det, self.length, self.poly = det, length, poly

    def at(self, f: list[Any], y: list[Any]) -> Any:
        """Its value, a polynomial in t."""
        inside, outside = [_trimmed(x) for x in f], [_trimmed(x) for x in y]
        # every term has one factor of each pair (f, y)
        degree = sum(max(len(a), len(b), 1) - 1 for a, b in zip(inside, outside, strict=True))
        if degree == 0:
            return self.det.at(*([self._number(x) for x in part] for part in (inside, outside)))
        if degree >= _FEW_POINTS and max(map(len, inside)) <= 2 and max(map(len, outside)) <= 1:
            try:
                return self._pencil(inside, [self._number(x) for x in outside])
            except ZeroDivisionError:  # singular at t = 1
                pass
        if degree > _MOST_POINTS:
            raise PrecisionError(f"a determinant is of degree {degree} in t: too many points to interpolate")
        return Truncated(self._interpolated(inside, outside, degree), self.length)

    def _number(self, coefficients: Sequence[Any]) -> Any:
        return coefficients[0] if coefficients else self.det.zero

    # -- linear in t ----------------------------------------------------------------------------------

    def _pencil(self, f: list[list[Any]], y: list[Any]) -> Any:
        """The determinant det(P + t·D) from the eigenvalues of Q⁻¹·D, with P at t = 0, Q at t = 1 and D = Q − P."""
        if self.det.layout.size is not None:
            raise ZeroDivisionError
        at_0, at_1 = [self._number(x) for x in f], [sum(x, start=self.det.zero) for x in f]
        kept = [i for i, x in enumerate(f) if x]
        factor = math.prod([y[i] for i, x in enumerate(f) if not x], start=self.det.one)
        rows = self.det.rows_left(kept)
        pencils = [Pencil(self.det, rows, kept, at, y) for at in (at_0, at_1)]
        if factor == 0 or pencils[0].is_singular:
            return self.det.zero
        P, Q = (pencil.at_one() for pencil in pencils)
        D, det = Q - P, self.det.ring.det
        if self.length <= len(kept):  # only the first coefficients are asked for
            e = _elementary(*_compressed(P, D), self.length - 1)
            return Truncated(self.poly(e) * (det(P) * factor), self.length)
        shifted = self.poly(_elementary(*_compressed(Q, D)))(self.poly([-1, 1]))  # Σ e_k·(t − 1)^k
        return Truncated(shifted * (det(Q) * factor), self.length)

    # -- at points ------------------------------------------------------------------------------------

    def _interpolated(self, f: list[list[Any]], y: list[list[Any]], degree: int) -> Any:
        f_polys, y_polys = ([self.poly(x) for x in part] for part in (f, y))

        def at(t: Any) -> Any:
            return self.det.at([p(t) for p in f_polys], [p(t) for p in y_polys])

        n = degree + 1
        if self.det.ring is BALLS:
            return self.poly(from_roots_of_unity(at, n, is_real=True))
        return interpolated([at(fmpq(k)) for k in range(n)])


def _trimmed(x: Any) -> list[Any]:
    """The coefficients, without zeros at the end."""
    found = _coefficients(x)
    while found and found[-1] == 0:
        found.pop()
    return found


def _compressed(Q: Any, D: Any) -> tuple[Any, Any]:
    """A smaller pair (Q, D) with the same nonzero eigenvalues of Q⁻¹·D: I, and the block of D·Q⁻¹ at nonzero rows of D.

    Q and D themselves, if most rows of D are not 0.
    """
    kind, n, rows = type(D), D.nrows(), D.tolist()
    live = [i for i, row in enumerate(rows) if not all(x == 0 for x in row)]
    if 4 * len(live) > 3 * n:
        return Q, D
    m = len(live)
    left = kind(m, n, [x for i in live for x in rows[i]]) if m else kind(0, n)
    right = Q.solve(kind(n, m, [int(i == j) for i in range(n) for j in live]))
    return kind(m, m, [int(i == j) for i in range(m) for j in range(m)]), left * right


def _elementary(Q: Any, D: Any, most: int | None = None) -> list[Any]:
    """e_0, e_1, … of the eigenvalues of A = Q⁻¹·D, up to e_most: det(I + s·A) = Σ e_k·s^k."""
    A, n = Q.solve(D), D.nrows()
    if isinstance(A, fmpq_mat):
        return (A * fmpq(-1)).charpoly().coeffs()[::-1]  # det(x·I + A) = Σ e_k·x^(n − k)
    return elementary_symmetric(A, n if most is None else min(n, most))

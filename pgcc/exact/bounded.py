"""Exact arithmetic for passes: numbers that do not become enormous, determinants of numbers, interpolation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from pgcc.ir.matrix import Matrix
from pgcc.ir.numbers import Number, as_number

LARGEST = 4096  # bits of a number that a pass may make


def bits(x: Number) -> int:
    """Bits of numerator and denominator together."""
    numerator, denominator = x.as_integer_ratio()
    return numerator.bit_length() + denominator.bit_length()


def times(a: Number, b: Number) -> Number | None:
    """a · b, or None if it could become enormous."""
    if type(a) is not Fraction and a == 1:
        return b
    if type(b) is not Fraction and b == 1:
        return a
    (m, p), (n, q) = a.as_integer_ratio(), b.as_integer_ratio()
    return _ratio(m * n, p * q) if _fit(m, p, n, q) else None


def plus(a: Number, b: Number) -> Number | None:
    """a + b, or None if it could become enormous."""
    (m, p), (n, q) = a.as_integer_ratio(), b.as_integer_ratio()
    return _ratio(m * q + n * p, p * q) if _fit(m, p, n, q) else None


def _fit(m: int, p: int, n: int, q: int) -> bool:
    return m.bit_length() + p.bit_length() + n.bit_length() + q.bit_length() <= LARGEST


def _ratio(numerator: int, denominator: int) -> Number:
    return numerator if denominator == 1 else as_number(Fraction(numerator, denominator))


def constant_determinant(matrix: Matrix) -> Number | None:
    """det of a constant matrix, or None if it could become enormous."""
    from flint import fmpq, fmpq_mat  # simplifying a circuit without determinants does not need it

    rows = matrix.exact()
    if determinant_bits(map(bits, row) for row in rows) > LARGEST:
        return None
    value = fmpq_mat(len(rows), len(rows), [fmpq(x.numerator, x.denominator) for row in rows for x in row]).det()
    return as_number(Fraction(int(value.p), int(value.q)))


def determinant_bits(rows: Iterable[Iterable[int]]) -> int:
    """A bound on the bits of a determinant, given those of the entries of every row (Hadamard)."""
    lengths = [list(row) for row in rows]
    return sum(max(row) + len(row).bit_length() for row in lengths)


def interpolation_weights(points: Sequence[int], k: int) -> list[Fraction]:
    """λ with Σ_j λ_j·p(points[j]) = the coefficient of t^k, for every polynomial p of degree < len(points).

    >>> interpolation_weights([-1, 0, 1], 2)
    [Fraction(1, 2), Fraction(-1, 1), Fraction(1, 2)]
    """
    whole = [1]  # Π (t − p), from the constant on
    for p in points:
        whole = [a - p * b for a, b in zip([0, *whole], [*whole, 0], strict=True)]
    return [Fraction(_without_root(whole, p)[k], math.prod(p - q for q in points if q != p)) for p in points]


def _without_root(coefficients: Sequence[int], root: int) -> list[int]:
    """A polynomial divided by t − root, which it has as a factor."""
    found = [0]
    for a in reversed(coefficients[1:]):
        found.append(a + root * found[-1])
    return found[:0:-1]

"""The signs of all 2ⁿ coefficients of a multiaffine polynomial.

A decomposable circuit is evaluated at all full rows. Any other circuit, without determinants, is evaluated at the
corners {0, 1}ⁿ, whose values are sums of coefficients over subsets; a Möbius inversion recovers the coefficients, with
bounds on their errors. Those that stay undecided (mostly zeros by cancellation) are computed modulo random primes,
which reveals zeros, and then as fractions.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import assert_never

import numpy as np

from pgcc.compiler import VALUES, Compiled, climb
from pgcc.errors import PgccError
from pgcc.evaluate.direct import Float64, Scaled
from pgcc.evaluate.kernels.cube import invert_corners, write_rows
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op, const, rebuild, weighted_sum
from pgcc.ir.numbers import absolute, nearest_float
from pgcc.locks import cached_property
from pgcc.rings.residues import MOST_CHANCE, LongResidues, Residues, rounds_of_test
from pgcc.rings.values import Values

# Rows that are evaluated at a time, and points modulo p.
_ROWS, _POINTS = 1 << 15, 1 << 11
# The sign of a value with a relative error below this is certain.
_CERTAIN = 0.5
# The rungs that compute in doubles; what these leave uncertain is decided by fractions and residues.
_IN_DOUBLES = [rung for rung in VALUES[True] if rung.stage in ("float64", "scaled")]
# Up to this many undecided coefficients are computed as fractions before any residues.
_FEW = 512
# The largest error of a value that underflows.
_TINY = 2.0**-1000

NEGATIVE, UNDECIDED, FINE = -1, 0, 1


@dataclass(frozen=True)
class Scan:
    """The result of a scan of all 2ⁿ coefficients.

    Attributes
    ----------
    negative : list of int or None
        0 or 1 for every variable: a coefficient below −slack, as its fraction confirms.
    undecided : int
        How many are still undecided, because time ran out or their fractions are too long.
    zeros : int
        How many were found to be 0 only by their residues modulo random primes.
    """

    negative: list[int] | None
    undecided: int
    zeros: int


def scan_coefficients(compiled: Compiled, slack: Fraction, seconds: float) -> Scan:
    """Decide for every coefficient whether it is at least −slack.

    Parameters
    ----------
    compiled : Compiled
        A multiaffine polynomial.
    slack : Fraction
        How far below 0 a coefficient may be.
    seconds : float
        The time after which to give up.
    """
    return _Scanner(compiled, slack, seconds).run()


def all_rows(n: int, size: int = _ROWS) -> Iterator[tuple[int, np.ndarray]]:
    """All full assignments of n variables in chunks, with the number of the first; bit i is variable i."""
    for first in range(0, 1 << n, size):
        rows = np.empty((min(size, (1 << n) - first), n), np.int8)
        write_rows(first, rows)
        yield first, rows


def magnitudes(circuit: Circuit) -> Circuit:
    """The same circuit with absolute numbers; determinants stay as they are.

    >>> import pgcc
    >>> print(magnitudes(pgcc.parse("a - 2*b")))
    a + 2*b
    """
    new: dict[Node, Node] = {}
    for node in circuit.order:
        children = [new[c] for c in node.children]
        match node.op:
            case Op.SUM:
                new[node] = weighted_sum(map(absolute, node.weights), children)
            case Op.CONST:
                new[node] = const(absolute(node.value))
            case Op.VAR | Op.PRODUCT | Op.DET:
                new[node] = rebuild(node, children)
            case _:
                assert_never(node.op)
    return Circuit(new[circuit.root], circuit.variables)


class _Scanner:
    def __init__(self, compiled: Compiled, slack: Fraction, seconds: float):
        self.compiled, self.slack, self.seconds = compiled, slack, seconds
        self.n = len(compiled.circuit.variables)

    def run(self) -> Scan:
        self._start_clock()
        undecided: list[np.ndarray] = []
        for first, signs in self._signs():
            for k in np.flatnonzero(signs == NEGATIVE).tolist():
                if self._exact(first + k) == NEGATIVE:
                    return Scan(self._codes(first + k), 0, 0)
                signs[k] = UNDECIDED
            undecided.append(first + np.flatnonzero(signs == UNDECIDED))
        left = np.concatenate(undecided) if undecided else np.zeros(0, np.int64)
        return self._resolve(left)

    def _start_clock(self) -> None:
        """Start the clock, which does not count the compilation of kernels on first use."""
        one = np.zeros((1, self.n), np.int8)
        if self.compiled.decomposable:
            self.compiled.values(one, _CERTAIN, "direct")
        elif self._has_corners:
            self._at_corners(one)
        self.end = time.monotonic() + self.seconds

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self.end

    # -- float64 ------------------------------------------------------------------------------------

    def _signs(self) -> Iterator[tuple[int, np.ndarray]]:
        if self.compiled.decomposable:
            yield from self._signs_by_rows()
        elif self._has_corners:
            yield from self._signs_by_corners()
        else:
            yield 0, np.full(1 << self.n, UNDECIDED)

    def _signs_by_rows(self) -> Iterator[tuple[int, np.ndarray]]:
        for first, rows in all_rows(self.n):
            if self._is_late:
                yield first, np.full((1 << self.n) - first, UNDECIDED)
                return
            values = self.compiled.values(rows, _CERTAIN, "direct")
            error = _error(values)
            wide = np.flatnonzero(np.isinf(error))
            if self.slack and len(wide) and not self.compiled.circuit.facts.dets:
                found, error[wide] = self.compiled.float64.absolute_errors(rows[wide])
                values.put(wide, Values(found, np.zeros(len(wide), np.int64), np.full(len(wide), np.inf)))
            yield first, self._judge(values, error)

    def _judge(self, values: Values, error: np.ndarray) -> np.ndarray:
        """Signs of values that are off by at most `error` (absolutely) or by less than half of themselves."""
        certain = values.bound <= _CERTAIN
        if self.slack:
            signs = self._judge_enclosed(values.floats(), error)
        else:
            signs = np.where(certain & (values.mantissa < 0.0), NEGATIVE, UNDECIDED)
        signs[certain & (values.mantissa >= 0.0)] = FINE
        return signs

    def _signs_by_corners(self) -> Iterator[tuple[int, np.ndarray]]:
        value, error = np.empty(1 << self.n), np.empty(1 << self.n)
        for first, rows in all_rows(self.n):
            if self._is_late:
                yield 0, np.full(1 << self.n, UNDECIDED)
                return
            at = slice(first, first + len(rows))
            value[at], error[at] = self._corners(rows)
        invert_corners(value, error)
        signs = self._judge_enclosed(value, error)
        for number in _chunks(np.flatnonzero(signs == UNDECIDED), _FEW):
            if self._is_late:
                break
            values = self.compiled.values((number[:, None] >> np.arange(self.n) & 1).astype(np.int8), _CERTAIN, "top")
            signs[number] = self._judge(values, _error(values))
        yield 0, signs

    def _judge_enclosed(self, value: np.ndarray, error: np.ndarray) -> np.ndarray:
        signs, slack = np.full(len(value), UNDECIDED), min(nearest_float(self.slack), sys.float_info.max)
        with np.errstate(invalid="ignore"):  # inf − inf decides nothing
            signs[value - error >= -slack * 0.999] = FINE
            signs[value + error < -slack * 1.001] = NEGATIVE
        return signs

    def _corners(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g at corners, and bounds on the errors."""
        rows = -rows  # z = 1 is "free" to a leaf a·ȳ + b·z: observed 1 would be b alone
        found = self._at_corners(rows)
        value = found.floats().copy()
        error = _error(found)
        error[(found.bound > 0.0) | (found.mantissa != 0.0)] += _TINY
        wide = np.flatnonzero(np.isinf(error))
        if len(wide):
            value[wide], error[wide] = self._corners_in_float64.absolute_errors(rows[wide])
        return value, error

    @property
    def _has_corners(self) -> bool:
        return not self.compiled.circuit.facts.dets

    @cached_property
    def _corners_in_float64(self) -> Float64:
        return Float64(self.compiled.lowered[0])

    def _at_corners(self, rows: np.ndarray) -> Values:
        float64 = self._corners_in_float64
        return climb(_IN_DOUBLES, SimpleNamespace(float64=float64, scaled=Scaled(float64)), rows, _CERTAIN)[0]

    # -- the rest -----------------------------------------------------------------------------------

    def _resolve(self, left: np.ndarray) -> Scan:
        """Decide the coefficients that are left: a few by fractions; many by residues, then fractions."""
        few, left = left[:_FEW], left[_FEW:]
        negative, undecided = self._resolve_exactly(few)
        zeros = 0
        if negative is None and len(left):
            zero = self._zeros(left)
            zeros = int(zero.sum())
            negative, more = self._resolve_exactly(left[~zero])
            undecided += more
        return Scan(negative, undecided, zeros)

    def _resolve_exactly(self, numbers: np.ndarray) -> tuple[list[int] | None, int]:
        """A negative coefficient, if there is one, and how many are undecided."""
        undecided = 0
        for k, number in enumerate(numbers.tolist()):
            if self._is_late:
                return None, undecided + len(numbers) - k
            sign = self._exact(number)
            if sign == NEGATIVE:
                return self._codes(number), 0
            undecided += sign == UNDECIDED
        return None, undecided

    def _exact(self, number: int) -> int:
        try:
            value = self.compiled.exact.rational(self._codes(number))
        except PgccError:
            return UNDECIDED
        return FINE if value >= -self.slack else NEGATIVE

    def _codes(self, number: int) -> list[int]:
        return [number >> i & 1 for i in range(self.n)]

    def _zeros(self, numbers: np.ndarray) -> np.ndarray:
        """Which of these coefficients are 0 modulo random primes; False where there was no time, or no program."""
        try:
            program, _ = self.compiled.lowered
        except PgccError:  # a determinant that is too large to expand
            return np.zeros(len(numbers), bool)
        zero = np.ones(len(numbers), bool)
        chosen, chance = rounds_of_test(program, len(numbers))
        if chance > MOST_CHANCE:
            return np.zeros(len(numbers), bool)
        for modular in chosen:
            value = self._values(modular)
            if value is None:
                return np.zeros(len(numbers), bool)
            for i in range(self.n):  # Möbius inversion: of the value at a corner, and the one where variable i is 0
                pairs = value.reshape(-1, 2, 1 << i)
                pairs[:, 1] -= pairs[:, 0]
                pairs[:, 1] += modular.prime * (pairs[:, 1] < 0)
            zero &= value[numbers] == 0
        return zero

    def _values(self, modular: Residues | LongResidues) -> np.ndarray | None:
        """The residues of g at all corners; None if time runs out."""
        value: np.ndarray = np.empty(1 << self.n, modular.kind)
        work: np.ndarray = np.zeros((modular.program.slots, _POINTS), modular.kind)
        for first, rows in all_rows(self.n, _POINTS):
            if self._is_late:
                return None
            points: np.ndarray = np.zeros((self.n, _POINTS), modular.kind)
            points[:, : len(rows)] = rows.T.astype(modular.kind)
            modular.run(points, work)
            value[first : first + len(rows)] = work[modular.program.value, : len(rows)]
        return value


def _chunks(numbers: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (numbers[first : first + size] for first in range(0, len(numbers), size))


def _error(values: Values) -> np.ndarray:
    """Bounds on the absolute errors; inf where not even the sign is certain."""
    error = np.full(len(values.bound), np.inf)
    certain = values.bound <= _CERTAIN
    size = np.abs(values.floats())
    error[certain] = 2.0 * values.bound[certain] * size[certain]
    error[certain & (values.mantissa != 0.0) & (size < _TINY)] = 2.0 * _TINY  # its double says nothing
    return error

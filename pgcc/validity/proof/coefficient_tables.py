"""All coefficients of a polynomial of few variables, for the checker of proofs: rationals, or intervals of doubles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import nearest_float
from pgcc.validity.proof.exact_arithmetic import RATIONALS, bordered, exact_rows, lift_exact, scopes_of, unknown


def as_fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def as_object(x: Any) -> np.ndarray:
    return np.array([lift_exact(x)], object)


class Interval:
    """Intervals of doubles, rounded outwards. An end that is NaN says nothing, and no comparison with it holds."""

    def __init__(self, low: np.ndarray, high: np.ndarray):
        self.low, self.high = low, high

    @staticmethod
    def lift(x: Any) -> Interval:
        """The doubles next to a number; itself, if it is one."""
        near = nearest_float(x)
        if math.isfinite(near) and Fraction(near) == Fraction(x):
            return Interval(np.array([near]), np.array([near]))
        return Interval(np.nextafter([near], -np.inf), np.nextafter([near], np.inf))

    def __getitem__(self, at: Any) -> Interval:
        return Interval(self.low[at], self.high[at])

    def __add__(self, other: Interval) -> Interval:
        return Interval(_rounded(np.add, self.low, other.low, -1), _rounded(np.add, self.high, other.high, 1))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __mul__(self, other: Interval) -> Interval:
        if np.min(other.low) >= 0 and np.min(self.low) >= 0:
            pairs = [(self.low, other.low)], [(self.high, other.high)]
        else:
            ends = [(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
            pairs = ends, ends
        lows, highs = (
            [_rounded(np.multiply, x, y, d) for x, y in some] for some, d in zip(pairs, (-1, 1), strict=True)
        )
        return Interval(np.minimum.reduce(lows), np.maximum.reduce(highs))


def _rounded(operation: Any, x: np.ndarray, y: np.ndarray, direction: int) -> np.ndarray:
    """x + y or x·y, down or up by one unit in the last place at least; a sum or a product with 0 is not rounded."""
    with np.errstate(all="ignore"):
        near = operation(x, y)
        moved = near + direction * (np.abs(near) * 2.0**-52 + 2.0**-1074)
        exact = (x == 0) | (y == 0)
        return np.where(exact, 0.0 if operation is np.multiply else near, moved)


def all_coefficients(circuit: Circuit, lift: Callable[[Any], Any]) -> Any:
    """All of them, in an array with an axis of length 2 for every variable (and one of length 1 for none).

    In a decomposable circuit the coefficients of every node are computed: 1 is (1, 0) in each variable that it misses.
    In any other the values at the corners {0, 1}ⁿ are, where 1 is (1, 1), and their differences are the coefficients.
    """
    n = len(circuit.variables)
    axis = {name: i for i, name in enumerate(circuit.variables)}
    scopes, shared = scopes_of(circuit)
    zero, one = lift(0), lift(1)

    def along(i: int, first: Any, second: Any) -> Any:
        shape = [2 if i == k else 1 for k in range(n)]
        which = np.arange(2).reshape(shape)
        return _choose(which, first, second)

    absent = [along(i, one, one if shared else zero) for i in range(n)]

    def padded(x: Any, missing: int, needed: bool = not shared) -> Any:
        return x * math.prod((absent[i] for i in range(n) if missing >> i & 1), start=one) if missing and needed else x

    uses = Counter(c for links in circuit._links for c in links)
    at: dict[int, Any] = {}
    for k, (node, links) in enumerate(zip(circuit.order, circuit._links, strict=True)):
        match node.op:
            case Op.CONST:
                value = lift(node.value)
            case Op.VAR:
                i = axis[node.name]
                value = absent[i] if node.is_complement else along(i, zero, one)
            case Op.SUM:
                value = padded(zero, scopes[k], True)
                for w, c in zip(node.weights, links, strict=True):
                    value = value + padded(lift(w) * at[c], scopes[k] & ~scopes[c])
            case Op.PRODUCT:
                value = math.prod((at[c] for c in links), start=one)
            case Op.DET:
                half = len(links) // 2
                pairs = [
                    (padded(at[f], scopes[y] & ~scopes[f]), padded(at[y], scopes[f] & ~scopes[y]))
                    for f, y in zip(links[:half], links[half:], strict=True)
                ]
                value = _expanded_det(node, pairs, lift)
            case _:
                unknown(node)
        at[k] = value
        for c in links:
            uses[c] -= 1
            if not uses[c]:
                at.pop(c, None)
    found = padded(at[len(circuit.order) - 1], ((1 << n) - 1) & ~scopes[-1], True)
    return _differences(found, n) if shared else found


def _choose(which: np.ndarray, first: Any, second: Any) -> Any:
    if isinstance(first, Interval):
        return Interval(np.where(which, second.low, first.low), np.where(which, second.high, first.high))
    return np.where(which, second, first)


def _expanded_det(node: Node, pairs: Sequence[tuple[Any, Any]], lift: Callable[[Any], Any]) -> Any:
    """Σ_T c_T · Π_{i∈T} f_i · Π_{i∉T} y_i, one child after the other."""
    k = len(pairs)
    matrices = tuple(map(exact_rows, node.matrices))
    values = []
    for T in range(1 << k):
        inside = [T >> i & 1 for i in range(k)]
        if node.size is not None and sum(x for x, c in zip(inside, node.counted, strict=True) if c) != node.size:
            values.append(lift(0))
            continue
        f, y = [fmpq(x) for x in inside], [fmpq(1 - x) for x in inside]
        values.append(lift(as_fraction(bordered(matrices, f, y, RATIONALS))))
    for f, y in pairs:
        values = [a * y + b * f for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _differences(values: Any, n: int) -> Any:
    """Coefficients from values at corners: in every variable, the value at 1 less that at 0."""
    for i in range(n):
        parts = [values[(slice(None),) * i + (slice(k, k + 1),)] for k in (0, 1)]
        which = np.arange(2).reshape([2 if i == k else 1 for k in range(n)])
        values = _choose(which, parts[0], parts[1] + -parts[0])
    return values

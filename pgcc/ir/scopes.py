"""Sets of variables, interned: one small number per distinct set.

Variables are numbered in the order in which a walk over the circuit meets them, so that the scopes of real circuits are
nearly contiguous. A scope of at most eight runs is the tuple of its boundaries (start, stop, start, stop, …); a more
scattered one is an integer used as a bit set. Either form is unique, and short: 100,000 nested scopes of 100,000
variables take a few megabytes. Real circuits have few distinct scopes, so unions are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import numpy as np

from pgcc.ir.flat import Flat
from pgcc.ir.node import Op

Scope = tuple[int, ...] | int
EMPTY: Scope = ()
_MOST_BOUNDARIES = 16


def from_intervals(intervals: Iterable[tuple[int, int]]) -> Scope:
    """The union of intervals [start, stop).

    >>> from_intervals([(3, 4), (1, 2), (2, 3), (7, 8)])
    (1, 4, 7, 8)
    """
    boundaries: list[int] = []
    for start, stop in sorted(intervals):
        if boundaries and start <= boundaries[-1]:
            boundaries[-1] = max(boundaries[-1], stop)
        else:
            boundaries += (start, stop)
    if len(boundaries) <= _MOST_BOUNDARIES:
        return tuple(boundaries)
    mask = np.zeros(boundaries[-1] + 1, np.int8)
    np.add.at(mask, boundaries, [1, -1] * (len(boundaries) // 2))
    return int.from_bytes(np.packbits(np.cumsum(mask), bitorder="little").tobytes(), "little")


def as_bits(scope: Scope) -> int:
    """The scope as a bit set."""
    if type(scope) is int:
        return scope
    bits = 0
    for start, stop in runs(scope):
        bits |= ((1 << (stop - start)) - 1) << start
    return bits


def from_bits(bits: int) -> Scope:
    """The unique form of a bit set."""
    boundaries: list[int] = []
    position, rest = 0, bits
    while rest:
        zeros = (rest & -rest).bit_length() - 1
        rest >>= zeros
        ones = (~rest & (rest + 1)).bit_length() - 1
        rest >>= ones
        boundaries += (position + zeros, position + zeros + ones)
        if len(boundaries) > _MOST_BOUNDARIES:
            return bits
        position += zeros + ones
    return tuple(boundaries)


def union(a: Scope, b: Scope) -> Scope:
    """a ∪ b

    >>> union((0, 3), (3, 5))
    (0, 5)
    """
    if type(a) is tuple and type(b) is tuple:
        if len(a) == 2 and len(b) == 2 and a[0] <= b[1] and b[0] <= a[1]:
            return (min(a[0], b[0]), max(a[1], b[1]))
        return from_intervals([*runs(a), *runs(b)])
    return from_bits(as_bits(a) | as_bits(b))


def difference(a: Scope, b: Scope) -> Scope:
    """a \\ b

    >>> difference((0, 9), (2, 4))
    (0, 2, 4, 9)
    """
    if not b:
        return a
    if type(a) is tuple and type(b) is tuple and len(a) == 2 and len(b) == 2:
        return from_intervals((s, t) for s, t in ((a[0], min(a[1], b[0])), (max(a[0], b[1]), a[1])) if s < t)
    return from_bits(as_bits(a) & ~as_bits(b))


def size(scope: Scope) -> int:
    """|scope|"""
    if isinstance(scope, int):
        return scope.bit_count()
    return sum(scope[1::2]) - sum(scope[::2])


def runs(scope: Scope) -> Iterator[tuple[int, int]]:
    """The maximal intervals [start, stop), in order."""
    if isinstance(scope, tuple):
        return zip(scope[::2], scope[1::2], strict=True)
    bits = np.frombuffer(scope.to_bytes(scope.bit_length() // 8 + 1, "little"), np.uint8)
    edges = np.flatnonzero(np.diff(np.unpackbits(bits, bitorder="little"), prepend=0, append=0))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def members(scope: Scope) -> Iterator[int]:
    """The elements, in order."""
    for start, stop in runs(scope):
        yield from range(start, stop)


class Scopes:
    """The scope of every node of a circuit.

    Parameters
    ----------
    flat : Flat
        The circuit.
    only : set of str, optional
        Track these variables alone; the others are in no scope.
    unit : mapping, optional
        Variables that count as one: for each, the name of what it is a part of.

    Attributes
    ----------
    names : list of str
        The variables in order of first appearance: member i of a scope is names[i].
    of : list of int
        For every node, the number of its scope.
    disjoint : list of bool
        For every product, whether no two factors share a variable; for a determinant, the same of its pairs
        (f_i, y_i). True for all other nodes.
    """

    def __init__(self, flat: Flat, only: Set[str] | None = None, unit: Mapping[str, str] | None = None):
        self._flat = flat
        self.distinct: list[Scope] = [EMPTY]
        self._number: dict[Scope, int] = {EMPTY: 0}
        self._unions: dict[tuple[int, int], tuple[int, bool]] = {}
        index: dict[str, int] = {}
        unit = unit or {}
        self.of: list[int] = []
        self.disjoint: list[bool] = []
        known: dict[tuple[int, tuple[int, ...]], tuple[int, bool]] = {}  # by operation and scopes of the children
        at, start, child = self.of.__getitem__, flat.start.tolist(), flat.child.tolist()
        for i, op in enumerate(flat.op.tolist()):
            if op == Op.VAR and (only is None or flat.data[i][0] in only):
                name = flat.data[i][0]
                member = index.setdefault(unit.get(name, name), len(index))
                found = self.number((member, member + 1)), True
            else:
                key = op, tuple(map(at, child[start[i] : start[i + 1]]))
                found = known.get(key) or known.setdefault(key, self._combined(*key))
            self.of.append(found[0])
            self.disjoint.append(found[1])
        self.names = list(index)

    def _combined(self, op: int, below: tuple[int, ...]) -> tuple[int, bool]:
        """The scope of a node with children of these scopes, and whether what it multiplies is disjoint."""
        if op != Op.SUM:
            return self._multiply(self._factors(op, below))
        scope = 0
        for other in set(below):
            scope = self.union(scope, other)[0]
        return scope, True

    def shared(self, position: int) -> list[int]:
        """The variables that two factors of this product or determinant have in common."""
        seen = twice = 0
        below = tuple(self.of[c] for c in self._flat.child[self._flat.start[position] : self._flat.start[position + 1]])
        for factor in self._factors(int(self._flat.op[position]), below):
            bits = as_bits(self.distinct[factor])
            twice |= seen & bits
            seen |= bits
        return list(members(from_bits(twice)))

    def _factors(self, op: int, below: tuple[int, ...]) -> Sequence[int]:
        """The scopes that a node multiplies. In a Det, f_i and its complement y_i never stand in one monomial."""
        match op:
            case Op.PRODUCT:
                return below
            case Op.DET:
                half = len(below) // 2
                return [self.union(f, y)[0] for f, y in zip(below[:half], below[half:], strict=True)]
            case Op.CONST | Op.VAR:
                return ()
        raise AssertionError(f"operation {op} multiplies nothing")

    def number(self, scope: Scope) -> int:
        """The number of a set."""
        found = self._number.get(scope)
        if found is None:
            found = self._number[scope] = len(self.distinct)
            self.distinct.append(scope)
        return found

    def union(self, a: int, b: int) -> tuple[int, bool]:
        """The number of a ∪ b, and whether the two are disjoint: iff their sizes add up."""
        if not a or not b:
            return a or b, True
        known = self._unions.get((a, b))
        if known is None:
            x, y = self.distinct[a], self.distinct[b]
            both = union(x, y)
            known = self._unions[a, b] = self.number(both), size(both) == size(x) + size(y)
        return known

    def _multiply(self, below: Sequence[int]) -> tuple[int, bool]:
        if len(below) == 2:
            return self.union(below[0], below[1])
        if len(below) < 2:
            return below[0] if below else 0, True
        # Many factors at once: one sort, not a chain of ever larger unions.
        parts = [self.distinct[s] for s in below]
        both = from_intervals([run for part in parts for run in runs(part)])
        return self.number(both), size(both) == sum(map(size, parts))

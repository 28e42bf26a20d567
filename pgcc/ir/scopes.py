"""Sets of variables, interned: one small number per distinct set.

Variables are numbered in the order in which a walk over the circuit meets them, so that the scopes of real circuits are
nearly contiguous. A scope of at most eight runs is the tuple of its boundaries (start, stop, start, stop, …); a more
scattered one is an integer used as a bit set. Either form is unique, and short: 100,000 nested scopes of 100,000
variables take a few megabytes. Real circuits have few distinct scopes, so unions are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import assert_never

import numpy as np

from pgcc.ir.node import Node, Op

Scope = tuple[int, ...] | int
EMPTY: Scope = ()
_MOST_BOUNDARIES = 16


def of_members(members: Iterable[int]) -> Scope:
    """The scope with these members.

    >>> of_members([3, 1, 2, 7])
    (1, 4, 7, 8)
    """
    return from_intervals((m, m + 1) for m in members)


def from_intervals(intervals: Iterable[tuple[int, int]]) -> Scope:
    """The union of intervals [start, stop)."""
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
    order : sequence of Node
        A postorder.
    links : sequence of tuples
        The positions of each node's children.
    only : set of str, optional
        Track these variables alone; the others are in no scope.

    Attributes
    ----------
    names : list of str
        The variables in order of first appearance: member i of a scope is names[i].
    of : list of int
        For every node, the number of its scope.
    disjoint : list of bool
        For every node, whether what it multiplies has no variable in common (True for all but products and dets).
    """

    def __init__(self, order: Sequence[Node], links: Sequence[tuple[int, ...]], only: Set[str] | None = None):
        self._order, self._links = order, links
        self.distinct: list[Scope] = [EMPTY]
        self._number: dict[Scope, int] = {EMPTY: 0}
        self._unions: dict[tuple[int, int], tuple[int, bool]] = {}
        index: dict[str, int] = {}
        self.of: list[int] = []
        self.disjoint: list[bool] = []
        for node, children in zip(order, links, strict=True):
            disjoint = True
            if node.op is Op.VAR and (only is None or node.name in only):
                i = index.setdefault(node.name, len(index))
                scope = self.number((i, i + 1))
            elif not children:
                scope = 0
            elif node.op is Op.SUM:
                scope = self.of[children[0]]
                for child in children:
                    if self.of[child] != scope:
                        scope = self.union(scope, self.of[child])[0]
            else:
                scope, disjoint = self._multiply(self._factors(node, children))
            self.of.append(scope)
            self.disjoint.append(disjoint)
        self.names = list(index)

    def shared(self, position: int) -> list[int]:
        """The variables that two factors of this product or determinant have in common."""
        seen = twice = 0
        for factor in self._factors(self._order[position], self._links[position]):
            bits = as_bits(self.distinct[factor])
            twice |= seen & bits
            seen |= bits
        return list(members(from_bits(twice)))

    def _factors(self, node: Node, children: tuple[int, ...]) -> list[int]:
        """The scopes that a node multiplies. In a Det, f_i and its complement y_i never stand in one monomial."""
        below = [self.of[c] for c in children]
        match node.op:
            case Op.PRODUCT:
                return below
            case Op.DET:
                half = len(below) // 2
                return [self.union(f, y)[0] for f, y in zip(below[:half], below[half:], strict=True)]
            case Op.CONST | Op.VAR | Op.SUM:
                raise AssertionError(f"{node!r} multiplies nothing")
        assert_never(node.op)

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

    def _multiply(self, below: list[int]) -> tuple[int, bool]:
        if len(below) == 2:
            return self.union(*below)
        if len(below) < 2:
            return below[0] if below else 0, True
        # Many factors at once: one sort, not a chain of ever larger unions.
        parts = [self.distinct[s] for s in below]
        both = from_intervals([run for part in parts for run in runs(part)])
        return self.number(both), size(both) == sum(map(size, parts))

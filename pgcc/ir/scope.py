"""Sets of variables, as bit sets that stay short.

A scope is a pair (shift, bits): the set {shift + k : bit k of bits is 1}. Variables are numbered in the order
in which a walk meets them, so the scopes of real circuits are nearly contiguous and the pair is small, even
among 100,000 variables. `walk_scopes` forgets a scope as soon as the last parent has seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pgcc.ir.node import Node, Op

Scope = tuple[int, int]
EMPTY: Scope = (0, 0)


def single(index: int) -> Scope:
    """{index}"""
    return (index, 1)


def union(a: Scope, b: Scope) -> Scope:
    """a ∪ b"""
    if a == b or not b[1]:
        return a
    if not a[1]:
        return b
    if a[0] > b[0]:
        a, b = b, a
    return (a[0], a[1] | (b[1] << (b[0] - a[0])))


def union_all(scopes: Sequence[Scope]) -> Scope:
    """The union of many, halving the list each round, so that n singletons cost n·log n bits, not n²."""
    scopes = list(scopes)
    while len(scopes) > 1:
        half = [union(scopes[i], scopes[i + 1]) for i in range(0, len(scopes) - 1, 2)]
        if len(scopes) % 2:
            half.append(scopes[-1])
        scopes = half
    return scopes[0] if scopes else EMPTY


def size(a: Scope) -> int:
    """|a|"""
    return a[1].bit_count()


def difference(a: Scope, b: Scope) -> Scope:
    """a \\ b"""
    shift = b[0] - a[0]
    bits = b[1] << shift if shift >= 0 else b[1] >> -shift
    return (a[0], a[1] & ~bits)


def runs(a: Scope) -> Iterator[tuple[int, int]]:
    """The maximal intervals [start, stop) of a, in order."""
    position, bits = a
    while bits:
        zeros = (bits & -bits).bit_length() - 1
        bits >>= zeros
        ones = (~bits & (bits + 1)).bit_length() - 1
        position += zeros
        yield position, position + ones
        bits >>= ones
        position += ones


def members(a: Scope) -> Iterator[int]:
    """The elements of a, in order."""
    for start, stop in runs(a):
        yield from range(start, stop)


def normal(a: Scope) -> Scope:
    """The one form that equal sets share (lowest bit set)."""
    if not a[1]:
        return EMPTY
    zeros = (a[1] & -a[1]).bit_length() - 1
    return (a[0] + zeros, a[1] >> zeros) if zeros else a


Visit = Callable[[Node, Scope, list[Scope]], None]


def walk_scopes(order: Sequence[Node], number: dict[str, int], visit: Visit) -> None:
    """Call `visit(node, its scope, its children's scopes)` for every node, children first.

    Parameters
    ----------
    order : sequence of Node
        A postorder.
    number : dict
        Variable name to index, best in order of first appearance; a variable that has none is in no scope.
    """
    waiting: dict[Node, int] = {}
    for node in order:
        for child in node.children:
            waiting[child] = waiting.get(child, 0) + 1
    live: dict[Node, Scope] = {}
    for node in order:
        children = node.children
        below = [live[c] for c in children]
        if node.op is Op.VAR:
            scope = single(number[node.name]) if node.name in number else EMPTY
        elif not below:
            scope = EMPTY
        elif all(s == below[0] for s in below):
            scope = below[0]
        else:
            scope = normal(union_all(below))
        visit(node, scope, below)
        live[node] = scope
        for child in children:
            left = waiting[child] - 1
            if left:
                waiting[child] = left
            else:
                del waiting[child], live[child]

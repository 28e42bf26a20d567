"""Structural properties of a circuit, found in a few linear walks over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np

from pgcc.ir.flat import Flat
from pgcc.ir.node import Node, Op
from pgcc.ir.scopes import Scopes

if TYPE_CHECKING:
    from pgcc.ir.circuit import Circuit


# Larger degrees are reported as this: no polynomial of such a degree is computed with.
MOST_DEGREE = 1 << 62


@dataclass(frozen=True)
class Facts:
    """Structural properties of a circuit.

    Attributes
    ----------
    edges : int
        The number of edges, which is how the paper measures the size of a circuit.
    depth : int
        The number of edges on the longest path from the root to a leaf.
    degree : int
        The formal degree: 1 for a variable, the maximum over a sum, the sum over a product or a determinant (with a
        size, the sum over as many of the largest as can be in). Repeated squaring quickly gives degrees of very many
        digits, so degrees beyond 2⁶² are reported as 2⁶².
    decomposable : bool
        Whether the children of every product, and of every determinant, have disjoint variables.
    smooth : bool
        Whether the children of every sum have the same variables.
    monotone : bool
        Whether there is no negative number and no determinant, so that nothing can cancel.
    exact : bool
        Whether no number was given as a float.
    dets : int
        The number of determinants.
    """

    edges: int
    depth: int
    degree: int
    decomposable: bool
    smooth: bool
    monotone: bool
    exact: bool
    dets: int


def find_facts(circuit: Circuit) -> Facts:
    """The facts of a circuit."""
    order, links = circuit.order, circuit._links
    degree = formal_degrees(order, links)
    return Facts(
        edges=sum(map(len, links)),
        depth=_depth(links),
        degree=degree[-1],
        decomposable=circuit._overlap is None,
        smooth=not len(find_uneven_sums(circuit)),
        monotone=all(map(is_monotone, order)),
        exact=all(map(is_exact, order)),
        dets=sum(node.op is Op.DET for node in order),
    )


def multiplications(circuit: Circuit) -> int:
    """Multiplications per row, about: one per edge, and r²·(r + k) for an r × r determinant of k children."""
    flat = circuit._flat
    shapes = [flat.data[i][1].shape for i in np.flatnonzero(flat.op == Op.DET).tolist()]
    return len(flat.child) + sum(rank**2 * (rank + children) for rank, children in shapes)


def find_overlap(flat: Flat, scopes: Scopes) -> tuple[Node, str] | None:
    """The first product that is not decomposable, and a variable that two of its factors share."""
    if all(scopes.disjoint):
        return None
    position = scopes.disjoint.index(False)
    return flat.nodes[position], scopes.names[min(scopes.shared(position))]


def formal_degrees(order: Sequence[Node], links: Sequence[tuple[int, ...]]) -> list[int]:
    """The formal degree of every node."""
    degree: list[int] = []
    for node, children in zip(order, links, strict=True):
        below = [degree[c] for c in children]
        if node.op is Op.SUM:
            degree.append(max(below, default=0))
        elif node.op is Op.PRODUCT:
            degree.append(min(sum(below), MOST_DEGREE))
        elif node.op is Op.VAR:
            degree.append(0 if node.is_complement else 1)
        elif node.op is Op.CONST:
            degree.append(0)
        elif node.op is Op.DET:
            degree.append(min(_det_degree(node, below[: len(below) // 2], below[len(below) // 2 :]), MOST_DEGREE))
        else:
            assert_never(node.op)
    return degree


def _det_degree(node: Node, inside: list[int], outside: list[int]) -> int:
    """max over T of Σ_{i∈T} deg f_i + Σ_{i∉T} deg y_i: all of the y, and what the children in T gain over them."""
    gains = [f - y for f, y in zip(inside, outside, strict=True)]
    if node.size is None:
        return sum(outside) + sum(max(gain, 0) for gain in gains)
    any_number = [max(gain, 0) for gain, counts in zip(gains, node.counted, strict=True) if not counts]
    of_size = sorted((gain for gain, counts in zip(gains, node.counted, strict=True) if counts), reverse=True)
    return sum(outside) + sum(any_number) + sum(of_size[: node.size])


def overlaps(circuit: Circuit) -> list[str]:
    """The variables in two children of some product, in the circuit's order. Only these can be squared."""
    scopes = circuit.scopes
    shared = {m for i, disjoint in enumerate(scopes.disjoint) if not disjoint for m in scopes.shared(i)}
    found = {scopes.names[m] for m in shared}
    return [name for name in circuit.variables if name in found]


def _depth(links: Sequence[tuple[int, ...]]) -> int:
    depth: list[int] = []
    for children in links:
        depth.append(1 + max([depth[c] for c in children]) if children else 0)
    return depth[-1]


def find_uneven_sums(circuit: Circuit) -> np.ndarray:
    """The positions of the sums whose children have different variables."""
    of, flat = np.array(circuit.scopes.of), circuit._flat
    uneven = (of[flat.child] != of[flat.parent]) & (flat.op == Op.SUM)[flat.parent]
    return np.unique(flat.parent[uneven])


def is_monotone(node: Node) -> bool:
    """Whether a node has no negative number and is no determinant, so that nothing cancels in it.

    >>> from pgcc.ir.node import var, weighted_sum
    >>> is_monotone(weighted_sum((0.5, -0.5), (var("a"), var("b"))))
    False
    """
    match node.op:
        case Op.CONST:
            return node.value >= 0
        case Op.SUM:
            return min(node.weights, default=0) >= 0
        case Op.DET:
            return False
        case Op.VAR | Op.PRODUCT:
            return True
    assert_never(node.op)


def is_exact(node: Node) -> bool:
    """Whether no number of a node was given as a float."""
    match node.op:
        case Op.CONST:
            return type(node.value) is not float
        case Op.SUM:
            return float not in set(map(type, node.weights))
        case Op.DET:
            return all(m.is_exact for m in node.matrices)
        case Op.VAR | Op.PRODUCT:
            return True
    assert_never(node.op)

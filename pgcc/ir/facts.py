"""What is true of a circuit, found in a few linear walks over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgcc.ir.node import Node, Op
from pgcc.ir.scope import Scope, members, size, union, walk_scopes

if TYPE_CHECKING:
    from pgcc.ir.circuit import Circuit


@dataclass(frozen=True)
class Facts:
    """Structural properties of a circuit.

    Attributes
    ----------
    nodes, edges : int
        Nodes, and edges: the size of a circuit as the paper counts it.
    depth : int
        Edges on the longest path from the root to a leaf.
    degree : int
        Formal degree: 1 for a variable, max over a sum, Σ over a product and a determinant.
    decomposable : bool
        Whether the children of every product, and of every determinant, have disjoint variables.
    smooth : bool
        Whether the children of every sum have the same variables.
    monotone : bool
        No negative number and no determinant: nothing can cancel.
    exact : bool
        Whether no number was given as a float.
    dets : int
        Number of Det nodes.
    overlap : tuple or None
        (node, variable): the first product that is not decomposable and a variable that two of its children share.
    """

    nodes: int
    edges: int
    depth: int
    degree: int
    decomposable: bool
    smooth: bool
    monotone: bool
    exact: bool
    dets: int
    overlap: tuple[Node, str] | None = field(default=None, compare=False, repr=False)


def find_facts(order: Sequence[Node], variables: Sequence[str]) -> Facts:
    """The facts of the circuit with this postorder."""
    structure = _Structure(variables)
    walk_scopes(order, {name: i for i, name in enumerate(variables)}, structure.visit)
    return Facts(
        nodes=len(order),
        edges=sum(len(node.children) for node in order),
        depth=_depth(order),
        degree=formal_degrees(order)[order[-1]],
        decomposable=structure.overlap is None,
        smooth=structure.smooth,
        monotone=all(map(_is_monotone, order)),
        exact=all(map(_is_exact, order)),
        dets=sum(node.op is Op.DET for node in order),
        overlap=structure.overlap,
    )


class _Structure:
    """Decomposability and smoothness, in one walk over the scopes."""

    def __init__(self, variables: Sequence[str]):
        self.variables = variables
        self.smooth = True
        self.overlap: tuple[Node, str] | None = None

    def visit(self, node: Node, scope: Scope, below: list[Scope]) -> None:
        if node.op is Op.SUM:
            self.smooth = self.smooth and all(s == scope for s in below)
        elif self.overlap is None and (node.op is Op.PRODUCT or node.op is Op.DET):
            groups = _groups(node, below)
            # Sets are disjoint iff the size of their union is the sum of their sizes.
            if sum(map(size, groups)) != size(scope):
                self.overlap = node, self.variables[shared_member(groups)]


def _groups(node: Node, below: list[Scope]) -> list[Scope]:
    """The scopes that a product multiplies. In a Det, f_i and its complement y_i never stand in one monomial."""
    if node.op is Op.PRODUCT:
        return below
    half = len(below) // 2
    return [union(f, y) for f, y in zip(below[:half], below[half:], strict=True)]


def overlaps(circuit: Circuit) -> list[str]:
    """The variables that stand in two children of some product, in the circuit's order: only they can be squared."""
    used = [node.name for node in circuit.order if node.op is Op.VAR]
    names = list(dict.fromkeys(used))
    shared = 0

    def visit(node: Node, scope: Scope, below: list[Scope]) -> None:
        nonlocal shared
        if node.op is not Op.PRODUCT and node.op is not Op.DET:
            return
        groups = _groups(node, below)
        if sum(map(size, groups)) != size(scope):
            seen = 0
            for shift, bits in groups:
                shared |= seen & (bits << shift)
                seen |= bits << shift

    walk_scopes(circuit.order, {name: i for i, name in enumerate(names)}, visit)
    found = {names[i] for i in members((0, shared))}
    return [name for name in circuit.variables if name in found]


def shared_member(scopes: Sequence[Scope]) -> int:
    """The smallest index that two of the scopes have in common."""
    seen, twice = 0, 0
    for shift, bits in scopes:
        twice |= seen & (bits << shift)
        seen |= bits << shift
    return (twice & -twice).bit_length() - 1


def formal_degrees(order: Sequence[Node]) -> dict[Node, int]:
    """The formal degree of every node."""
    degree: dict[Node, int] = {}
    for node in order:
        match node.op:
            case Op.CONST:
                degree[node] = 0
            case Op.VAR:
                degree[node] = 0 if node.is_complement else 1
            case Op.SUM:
                degree[node] = max((degree[c] for c in node.children), default=0)
            case Op.PRODUCT:
                degree[node] = sum(degree[c] for c in node.children)
            case Op.DET:
                degree[node] = sum(max(degree[f], degree[y]) for f, y in zip(node.inside, node.outside, strict=True))
    return degree


def _depth(order: Sequence[Node]) -> int:
    depth: dict[Node, int] = {}
    for node in order:
        depth[node] = 1 + max((depth[c] for c in node.children), default=-1)
    return depth[order[-1]]


def _is_monotone(node: Node) -> bool:
    match node.op:
        case Op.CONST:
            return node.value >= 0
        case Op.SUM:
            return min(node.weights, default=0) >= 0
        case Op.DET:
            return False
    return True


def _is_exact(node: Node) -> bool:
    match node.op:
        case Op.CONST:
            return type(node.value) is not float
        case Op.SUM:
            return float not in set(map(type, node.weights))
        case Op.DET:
            return not any(m.is_float for m in node.matrices)
    return True

"""Homogenise: give every child of a sum the factor ȳ_i for each variable i of the sum that it misses.

    g(z)  ↦  ĝ(z, ȳ) = Σ_S g_S · Π_{i∈S} z_i · Π_{i∉S} ȳ_i

The result agrees with g at ȳ = 1, and any marginal is then one evaluation at numbers: (z_i, ȳ_i) = (1, 0), (0, 1),
(1, 1) for observed 1, observed 0, free. Products of ȳ's are shared: they are built from the aligned blocks of a
binary tree over the variables, never one per edge.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgcc.errors import CircuitError
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, const, det, product, rebuild, var, weighted_sum
from pgcc.ir.numbers import Number, mul
from pgcc.ir.scope import EMPTY, Scope, difference, normal, runs, walk_scopes


def homogenize(circuit: Circuit) -> Circuit:
    """The homogenised circuit of a decomposable one; its root mentions every variable of the circuit.

    Examples
    --------
    >>> import pgcc
    >>> print(homogenize(pgcc.parse("0.4*a*b + 0.6")))
    2/5*a*b + 3/5*~a*~b
    """
    overlap = circuit.facts.overlap
    if overlap is not None:
        raise CircuitError(f"cannot homogenise: {overlap[0]!r} has {overlap[1]!r} in two of its children")
    used = [node.name for node in circuit.order if node.op is Op.VAR]
    names = list(dict.fromkeys([*used, *circuit.variables]))
    with collector_paused():
        rewriter = _Rewriter(names)
        walk_scopes(circuit.order, {name: i for i, name in enumerate(names)}, rewriter.visit)
        everything = (0, (1 << len(names)) - 1)
        root = rewriter.pad(rewriter.new[circuit.root], difference(everything, rewriter.root_scope))
        return Circuit(root, circuit.variables)


class _Rewriter:
    def __init__(self, names: Sequence[str]):
        self.names = names
        self.new: dict[Node, Node] = {}
        self.root_scope: Scope = EMPTY
        self._absent: dict[Scope, Node] = {}

    def visit(self, node: Node, scope: Scope, below: list[Scope]) -> None:
        children = [self.new[c] for c in node.children]
        if node.op is Op.SUM:
            self.new[node] = self._smooth_sum(node, children, scope, below)
        elif node.op is Op.DET:
            self.new[node] = self._smooth_det(node, children, below)
        else:
            self.new[node] = rebuild(node, children)
        self.root_scope = scope  # the root is visited last

    def _smooth_sum(self, node: Node, children: list[Node], scope: Scope, below: list[Scope]) -> Node:
        weights: list[Number] = list(node.weights)
        for i, have in enumerate(below):
            if have == scope:
                continue
            child = children[i]
            if child.op is Op.CONST:  # w·c = (w·c)·1, and the 1 is what the padding replaces
                weights[i], child = mul(weights[i], child.value), ONE
            children[i] = self.pad(child, difference(scope, have))
        if all(map(_is, children, node.children)):
            return node
        return weighted_sum(weights, children)

    def _smooth_det(self, node: Node, children: list[Node], below: list[Scope]) -> Node:
        k = len(children) // 2
        f = [self.pad(children[i], difference(below[k + i], below[i])) for i in range(k)]
        y = [self.pad(children[k + i], difference(below[i], below[k + i])) for i in range(k)]
        return det(*node.matrices, f, y)

    def pad(self, node: Node, missing: Scope) -> Node:
        """node · Π_{i ∈ missing} ȳ_i"""
        if not missing[1]:
            return node
        gadget = self.absent(normal(missing))
        if node is ONE:
            return gadget
        return product((*node.children, gadget)) if node.op is Op.PRODUCT else product((node, gadget))

    def absent(self, scope: Scope) -> Node:
        """Π_{i ∈ scope} ȳ_i, of shared blocks."""
        gadget = self._absent.get(scope)
        if gadget is None:
            blocks = [self._block(k, level) for start, stop in runs(scope) for k, level in aligned_blocks(start, stop)]
            gadget = self._absent[scope] = _product(blocks)
        return gadget

    def _block(self, k: int, level: int) -> Node:
        """Π ȳ_i for i in [k·2^level, (k+1)·2^level)"""
        if level == 0:
            return var(self.names[k], complement=True)
        key = normal((k << level, (1 << (1 << level)) - 1))
        block = self._absent.get(key)
        if block is None:
            block = product((self._block(2 * k, level - 1), self._block(2 * k + 1, level - 1)))
            self._absent[key] = block
        return block


def aligned_blocks(start: int, stop: int) -> list[tuple[int, int]]:
    """[start, stop) as O(log) aligned blocks (k, level) = [k·2^level, (k+1)·2^level).

    >>> aligned_blocks(3, 8)
    [(3, 0), (1, 2)]
    """
    blocks = []
    while start < stop:
        level = min((start & -start).bit_length() - 1 if start else 63, (stop - start).bit_length() - 1)
        blocks.append((start >> level, level))
        start += 1 << level
    return blocks


def _product(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else product(nodes) if nodes else const(1)


def _is(a: object, b: object) -> bool:
    return a is b

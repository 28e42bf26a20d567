"""Padding sums: give every child of a sum a factor for each variable of the sum that it misses.

*Homogenise*: the factor is ȳ_i, which is 1 in every generating polynomial.

    g(z)  ↦  ĝ(z, ȳ) = Σ_S g_S · Π_{i∈S} z_i · Π_{i∉S} ȳ_i

The result agrees with g at ȳ = 1, and any marginal is then one evaluation at numbers: (z_i, ȳ_i) = (1, 0), (0, 1),
(1, 1) for observed 1, observed 0, free.

*Smooth*: the factor is z_i + ȳ_i, which says "either value". That is what a variable means that a probabilistic circuit
(over literals z_i, ȳ_i) does not mention.

Products of factors are shared: they are built from the aligned blocks of a binary tree over the variables, never one
per edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from pgcc.errors import CircuitError
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, const, product, rebuild, var, weighted_sum
from pgcc.ir.numbers import Number, mul
from pgcc.ir.scopes import Scope, difference, from_intervals, runs, size


def homogenize(circuit: Circuit) -> Circuit:
    """The homogenised circuit of a decomposable one; its root mentions every variable of the circuit.

    Examples
    --------
    >>> import pgcc
    >>> print(homogenize(pgcc.parse("0.4*a*b + 0.6")))
    2/5*a*b + 3/5*~a*~b
    """
    return _padded(circuit, lambda name: var(name, complement=True))


def smooth(circuit: Circuit) -> Circuit:
    """The smooth circuit of a decomposable probabilistic circuit: every sum's children have the same variables.

    Examples
    --------
    >>> import pgcc
    >>> print(smooth(pgcc.parse("0.4*a*b + 0.6*~a")))
    2/5*a*b + 3/5*~a*(b + ~b)
    """
    return _padded(circuit, lambda name: weighted_sum((1, 1), (var(name), var(name, complement=True))))


def _padded(circuit: Circuit, filler: Callable[[str], Node]) -> Circuit:
    with collector_paused():
        fillers = Fillers(circuit, filler)
        rewriter = _Padding(circuit, fillers)
        for position in range(len(circuit.order)):
            rewriter.visit(position)
        return Circuit(pad(rewriter.new[-1], fillers.absent_from_root()), circuit.variables)


class Fillers:
    """The products of factors that children of a decomposable circuit's sums miss.

    Parameters
    ----------
    circuit : Circuit
    filler : function
        The factor of a variable by its name; by default its complement.
    """

    def __init__(self, circuit: Circuit, filler: Callable[[str], Node] = lambda name: var(name, complement=True)):
        overlap = circuit.overlap
        if overlap is not None:
            raise CircuitError(f"not decomposable: {overlap[0]!r} has {overlap[1]!r} in two of its children")
        self.scopes, self.filler = circuit.scopes, filler
        occurring = set(self.scopes.names)
        self.names = [*self.scopes.names, *(v for v in circuit.variables if v not in occurring)]
        self._absent: dict[Scope, Node] = {}
        self._missing: dict[tuple[int, int], Node | None] = {}

    def missing(self, have: int, want: int) -> Node | None:
        """Π of the factors of the variables of scope `want` that scope `have` lacks; None if there are none."""
        if have == want:
            return None
        key = (have, want)
        if key not in self._missing:
            lacking = difference(self.scopes.distinct[want], self.scopes.distinct[have])
            self._missing[key] = self.absent(lacking) if size(lacking) else None
        return self._missing[key]

    def missing_from_pairs(self, below: tuple[int, ...]) -> list[Node | None]:
        """The same for the children f_1..f_k, y_1..y_k of a determinant (by position): what f_i or y_i alone has."""
        k = len(below) // 2
        of = [self.scopes.of[c] for c in below]
        both = [self.scopes.union(of[i], of[k + i])[0] for i in range(k)]
        return [self.missing(scope, both[i % k]) for i, scope in enumerate(of)]

    def absent_from_root(self) -> Node | None:
        """The same for the variables of the circuit that its root lacks."""
        everything = self.scopes.number(from_intervals([(0, len(self.names))] if self.names else []))
        return self.missing(self.scopes.of[-1], everything)

    def absent(self, scope: Scope) -> Node:
        """Π of the factors of a scope, of shared blocks."""
        gadget = self._absent.get(scope)
        if gadget is None:
            blocks = [self._block(k, level) for start, stop in runs(scope) for k, level in aligned_blocks(start, stop)]
            gadget = self._absent[scope] = _product(blocks)
        return gadget

    def _block(self, k: int, level: int) -> Node:
        """Π of the factors i in [k·2^level, (k+1)·2^level)"""
        if level == 0:
            return self.filler(self.names[k])
        key = (k << level, (k + 1) << level)
        block = self._absent.get(key)
        if block is None:
            block = product((self._block(2 * k, level - 1), self._block(2 * k + 1, level - 1)))
            self._absent[key] = block
        return block


class _Padding:
    def __init__(self, circuit: Circuit, fillers: Fillers):
        self.order, self.links, self.scopes, self.fillers = circuit.order, circuit.links, circuit.scopes, fillers
        self.new: list[Node] = []

    def visit(self, position: int) -> None:
        node, below = self.order[position], self.links[position]
        children = [self.new[c] for c in below]
        if node.op is Op.SUM:
            self.new.append(self._smooth_sum(node, children, self.scopes.of[position], below))
        elif node.op is Op.DET:
            self.new.append(rebuild(node, list(map(pad, children, self.fillers.missing_from_pairs(below)))))
        elif node.op is Op.PRODUCT or node.op is Op.VAR or node.op is Op.CONST:
            self.new.append(rebuild(node, children))
        else:
            assert_never(node.op)

    def _smooth_sum(self, node: Node, children: list[Node], scope: int, below: tuple[int, ...]) -> Node:
        of = self.scopes.of
        weights: list[Number] | None = None
        for i, child in enumerate(children):
            missing = self.fillers.missing(of[below[i]], scope)
            if missing is None:
                continue
            if child.op is Op.CONST:  # w·c = (w·c)·1, and the 1 is what the padding replaces
                if child is not ONE:
                    weights = list(node.weights) if weights is None else weights
                    weights[i] = mul(weights[i], child.value)
                children[i] = missing
            else:
                children[i] = pad(child, missing)
        return rebuild(node, children) if weights is None else weighted_sum(weights, children)


def pad(node: Node, missing: Node | None) -> Node:
    """node · missing"""
    if missing is None:
        return node
    if node is ONE:
        return missing
    return product((*node.children, missing)) if node.op is Op.PRODUCT else product((node, missing))


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

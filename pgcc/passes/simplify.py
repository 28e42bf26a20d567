"""Simplify: the same polynomial by a smaller circuit, in two walks over it.

- `flatten` opens sums in sums and products in products, where the inner one has no other parent.
- `fold` applies the rules of `pgcc.passes.rules` to one node at a time, children first.

`pgcc.passes.pipeline` repeats them until nothing changes. No node is ever copied, so that a DAG never becomes larger.
Numbers are computed exactly; where a number would become enormous (`LARGEST` bits, as in 2**2**2**9), the rule is not
applied. A node that no rule matches is kept as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from operator import itemgetter

import numpy as np

from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.flat import Flat
from pgcc.ir.node import ONE, ZERO, Node, Op, count_uses, product, rebuild, weighted_sum
from pgcc.ir.numbers import Number
from pgcc.passes.exact import times
from pgcc.passes.rules import APPLY, Draft, find_matches, is_constant, scaled

# -- fold ---------------------------------------------------------------------------------------------------


def fold(circuit: Circuit) -> Circuit:
    """Apply `RULES` everywhere, and make nodes that differ only in the order of their children one.

    Examples
    --------
    >>> import pgcc
    >>> print(fold(pgcc.parse("2*a*(3*b)*1 + 0*c + a*b - a*b*1")))
    6*a*b
    """
    with collector_paused():
        order = circuit.order
        matches = find_matches(circuit.flat) | _other_constants(circuit.flat)
        if not matches.any() and not _may_share(circuit.flat):
            return circuit
        root = _Folding(circuit).run(zip(order, matches.tolist(), strict=True))
        return circuit if root is circuit.root else Circuit(root, circuit.variables)


def _other_constants(flat: Flat) -> np.ndarray:
    """Constants c that are to become c·1, or 0."""
    return (flat.op == Op.CONST) & ~is_constant(flat, 0) & ~is_constant(flat, 1)


def _may_share(flat: Flat) -> bool:
    """Whether two nodes may differ only in the order of their children: whether sums over the children are equal.

    The sums are of 64 bits that depend on a child and its weight, so that other nodes hardly ever have the same.
    """
    bits = _scrambled(np.arange(1, len(flat.op) + 1, dtype=np.uint64))[flat.child]
    of_sum = (flat.op == Op.SUM)[flat.parent]
    bits[of_sum] = _scrambled(bits[of_sum] + (flat.doubles + 0.0).view(np.uint64))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits, dtype=np.uint64)])
    sums = np.sort((total[flat.start[1:]] - total[flat.start[:-1]])[flat.lengths > 0])
    return bool((sums[1:] == sums[:-1]).any())


def _scrambled(bits: np.ndarray) -> np.ndarray:
    """A bijection of 64-bit integers in which every bit depends on all others (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class _Folding:
    def __init__(self, circuit: Circuit):
        self.circuit = circuit
        self.new: dict[Node, Node] = {}  # only of nodes that changed
        self.factor: dict[Node, Number] = {}  # node = factor · new; only where it is not 1
        self.stuck = cannot_hand_up(circuit)
        self.share = Sharing().representative

    def run(self, order: Iterable[tuple[Node, bool]]) -> Node:
        """The new root; order : all nodes, children first, and whether some rule matches each."""
        changed, share = self.new.keys(), self.share
        for node, matches in order:
            op = node.op
            if op is Op.VAR:
                continue
            if op is Op.CONST:
                self.constant(node)
            elif not matches and changed.isdisjoint(node.children):
                first = share(node)
                if first is not node:
                    self.new[node] = first
            else:
                self.rewrite(node)
        root = self.circuit.root
        return scaled(self.factor.get(root, 1), self.new.get(root, root))

    def constant(self, node: Node) -> None:
        """c = c·1"""
        if node.value == 0:
            if node is not ZERO:
                self.new[node] = ZERO
        elif node is not ONE:
            self.new[node] = ONE
            self.factor[node] = node.value

    def rewrite(self, node: Node) -> None:
        children, new, factor_of = node.children, self.new, self.factor
        changed = [new.get(c, c) for c in children]
        unscaled = factor_of.keys().isdisjoint(children)
        draft = Draft(node, () if unscaled else [factor_of.get(c, 1) for c in children], changed)
        for apply in APPLY[node.op]:
            apply(draft)
            if draft.op is not node.op:
                break
        self.record(node, draft.factor, self.share(draft.finish()))

    def record(self, node: Node, factor: Number, result: Node) -> None:
        """node = factor · result"""
        if type(factor) is Fraction or factor != 1:
            if node not in self.stuck or result is ONE:
                self.factor[node] = factor
            else:
                result = scaled(factor, result)
        if result is not node:
            self.new[node] = result


def cannot_hand_up(circuit: Circuit) -> set[Node]:
    """Nodes that keep their factor, because some parent could not take it without growing.

    A sum takes a factor into its weights. A product takes it if it hands it up itself, or if it is the only parent
    (then it keeps the factor in the child's place). A determinant does not take it, and nothing is above the root.
    """
    uses = count_uses(circuit.order)
    stuck = {circuit.root}
    for node in reversed(circuit.order):
        if node.op is Op.DET:
            stuck.update(node.children)
        elif node.op is Op.PRODUCT and node in stuck:
            stuck.update(c for c in node.children if uses[c] > 1)
    return stuck


_FIRST = itemgetter(0)


class Sharing:
    """a + b = b + a and a·b = b·a: of the nodes that differ only in the order of their children, the first.

    The order of addresses is only used to compare sets, so that the outcome does not depend on it.
    """

    def __init__(self) -> None:
        self._products: dict[tuple[Node, ...], Node] = {}
        self._sums: dict[tuple[Node, ...], Node] = {}
        self._by_weights: dict[tuple[Node, ...], dict[tuple, Node]] = {}

    def representative(self, node: Node) -> Node:
        """The first node seen that is equal to this one."""
        if node.op is Op.PRODUCT:
            return self._products.setdefault(tuple(sorted(node.children, key=id)), node)
        if node.op is not Op.SUM:
            return node
        key = tuple(sorted(node.children, key=id))
        first = self._sums.setdefault(key, node)
        if first is node:
            return node
        group = self._by_weights.get(key)  # sums of the same children; only now weights are looked at
        if group is None:
            group = self._by_weights[key] = {_weights_by_child(first): first}
        return group.setdefault(_weights_by_child(node), node)


def _weights_by_child(node: Node) -> tuple[tuple[int, int], ...]:
    """The weights in the order of the children's addresses, as ratios (a Fraction is slow to hash)."""
    if len(node.children) == 1:
        return (node.weights[0].as_integer_ratio(),)
    edges = sorted(zip(map(id, node.children), node.weights, strict=True), key=_FIRST)
    return tuple([weight.as_integer_ratio() for _, weight in edges])


# -- flatten ------------------------------------------------------------------------------------------------


def flatten(circuit: Circuit) -> Circuit:
    """Σ w·(Σ v·c) = Σ (w·v)·c and Π a·(Π b) = Π a·b, where the inner node has no other parent.

    Examples
    --------
    >>> import pgcc
    >>> flatten(pgcc.parse("a + (b + (c + d))")).edges
    4
    """
    with collector_paused():
        if not _may_nest(circuit.flat):
            return circuit
        inner, weights = _nested(circuit)
        if not inner:
            return circuit
        new: dict[Node, Node] = {}
        for node in circuit.order:
            if node in inner:
                continue
            if inner.isdisjoint(node.children):
                if not new.keys().isdisjoint(node.children):
                    new[node] = rebuild(node, [new.get(c, c) for c in node.children])
                continue
            edges = list(_open(node, inner, weights))
            children = [new.get(c, c) for _, c in edges]
            new[node] = weighted_sum([w for w, _ in edges], children) if node.op is Op.SUM else product(children)
        return Circuit(new[circuit.root], circuit.variables)


def _may_nest(flat: Flat) -> bool:
    """Whether some sum is the child of a sum only, or some product that of a product."""
    same = (flat.op[flat.child] == flat.op[flat.parent]) & (flat.uses[flat.child] == 1) & (flat.lengths[flat.child] > 0)
    return bool((same & (flat.op[flat.parent] != Op.DET)).any())


def _nested(circuit: Circuit) -> tuple[set[Node], dict[Node, list[Number]]]:
    """The nodes to open, and for sums their weights, multiplied by those above them."""
    uses = count_uses(circuit.order)
    single = {node for node, count in uses.items() if count == 1 and node.children}
    inner: set[Node] = set()
    weights: dict[Node, list[Number]] = {}
    lone: set[Node] = set()  # w·c in a product: `fold` hands the w up, which leaves the weights below as they are
    for node in reversed(circuit.order):  # parents first
        op = node.op
        if (op is not Op.SUM and op is not Op.PRODUCT) or single.isdisjoint(node.children) or node in lone:
            continue
        if op is Op.PRODUCT:
            own = [c for c in node.children if c in single]
            inner.update(c for c in own if c.op is op)
            lone.update(c for c in own if c.op is Op.SUM and len(c.children) == 1)
            continue
        for weight, child in zip(weights.get(node, node.weights), node.children, strict=True):
            if child.op is op and child in single:
                multiplied = [times(weight, v) for v in child.weights]
                if None not in multiplied:
                    inner.add(child)
                    weights[child] = multiplied  # type: ignore[assignment]
    return inner, weights


def _open(head: Node, inner: set[Node], weights: dict[Node, list[Number]]) -> Iterator[tuple[Number, Node]]:
    """The edges out of the nest below `head`, left to right; iterative, for nests a million deep."""
    stack = [_edges(head, weights)]
    while stack:
        for weight, child in stack[-1]:
            if child in inner:
                stack.append(_edges(child, weights))
                break
            yield weight, child
        else:
            stack.pop()


def _edges(node: Node, weights: dict[Node, list[Number]]) -> Iterator[tuple[Number, Node]]:
    own: Sequence[Number] = weights.get(node, node.weights) if node.op is Op.SUM else [1] * len(node.children)
    return zip(own, node.children, strict=True)

"""Simplify: the same polynomial by a smaller circuit, in two walks over it.

- `flatten` opens sums in sums and products in products, where the inner one has no other parent.
- `fold` applies the rules of `pgcc.passes.rules` to one node at a time, children first.

`pgcc.passes.pipeline` repeats them until nothing changes. No node is ever copied, so that a DAG never becomes larger.
Numbers are computed exactly; where a number would become enormous (`LARGEST` bits, as in 2**2**2**9), the rule is not
applied. A circuit that no rule changes is returned itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.collector import collector_paused
from pgcc.exact.bounded import times
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.flat import Entry, Flat
from pgcc.ir.flat_builder import FlatBuilder
from pgcc.ir.node import Op
from pgcc.ir.numbers import Number
from pgcc.passes.rules import APPLY, Draft, scaled

LARGE = 1000  # edges: circuits with more are looked at as arrays first, and are not simplified to the end

# -- fold ---------------------------------------------------------------------------------------------------


def fold(circuit: Circuit) -> Circuit:
    """Apply `RULES` everywhere, and make nodes that differ only in the order of their children one.

    Examples
    --------
    >>> import pgcc
    >>> print(fold(pgcc.parse("2*a*(3*b)*1 + 0*c + a*b - a*b*1")))
    6*a*b
    """
    if circuit.edges > LARGE and _is_folded(circuit._flat):
        return circuit
    with collector_paused():
        folded = _Folding(circuit._flat).run()
        return circuit if folded.equals(circuit._flat) else from_flat(folded, circuit.variables)


def _is_folded(flat: Flat) -> bool:
    """Whether it is seen at once that no rule applies, as in circuits of arrays; False if it is not seen.

    No determinants with a size and no numbers but 1, and none in products; at least two terms or factors, without
    zeros; and no two nodes alike: their sums of pseudo-random numbers for children are different (`Sharing` looks for
    those that only seem alike).
    """
    inner, op = flat.op >= Op.SUM, flat.op[flat.parent]
    constants, dets = (np.flatnonzero(flat.op == one).tolist() for one in (Op.CONST, Op.DET))
    if (flat.lengths[inner] < 2).any() or any(flat.data[i][3] is not None for i in dets) or not flat.doubles.all():
        return False
    if any(type(flat.data[i]) is not int or flat.data[i] != 1 for i in constants):
        return False
    leaves = [number for i, number in flat.data.items() if flat.op[i] < Op.SUM]
    if np.isin(flat.child[op == Op.PRODUCT], constants).any() or len(set(leaves)) < len(leaves):
        return False
    keys = np.sort(((flat.parent << 32) + flat.child)[op != Op.DET])
    if (keys[1:] == keys[:-1]).any():  # a child twice
        return False
    drawn = np.random.default_rng(0).integers(1 << 63, size=len(flat.op), dtype=np.uint64)[flat.child]
    drawn[op == Op.SUM] *= flat.doubles.view(np.uint64) | np.uint64(1)
    seen = np.sort(np.add.reduceat(drawn, flat.start[:-1][inner]) * np.uint64(4) + flat.op[inner])
    return bool((seen[1:] != seen[:-1]).all())


class _Folding:
    """The folded circuit, built anew. Its nodes are known by their positions in `build`.

    Attributes
    ----------
    new, factor : list, dict
        By position in the old circuit: node = factor · new. Factors are left out where they are 1.
    """

    def __init__(self, flat: Flat):
        self.flat, self.build = flat, FlatBuilder()
        self.new: list[int] = []
        self.factor: dict[int, Number] = {}
        self.stuck = cannot_hand_up(flat)
        self.share = Sharing(self.build).representative

    def run(self) -> Flat:
        """The new circuit."""
        for i, (op, children, data) in enumerate(self.flat.entries()):
            if op is Op.VAR:
                self.new.append(self.build.add(op, children, data))
            elif op is Op.CONST:
                self.constant(i, data)
            else:
                self.rewrite(i, op, children, data)
        root = len(self.new) - 1
        return self.build.flat(scaled(self.build, self.factor.get(root, 1), self.new[root]))

    def constant(self, i: int, number: Number) -> None:
        """c = c·1"""
        self.new.append(self.build.one if number else self.build.zero)
        if number and (type(number) is not int or number != 1):
            self.factor[i] = number

    def rewrite(self, i: int, op: Op, children: tuple[int, ...], data: Any) -> None:
        """Apply the rules of this operation, until it becomes another one."""
        unscaled = self.factor.keys().isdisjoint(children)
        factors = () if unscaled else [self.factor.get(c, 1) for c in children]
        draft = Draft(self.build, op, data, factors, [self.new[c] for c in children])
        for apply in APPLY[op]:
            apply(draft)
            if draft.op is not op:
                break
        self.record(i, draft.factor, self.share(draft.finish()))

    def record(self, i: int, factor: Number, result: int) -> None:
        """Node i = factor · result"""
        if type(factor) is Fraction or factor != 1:
            if i not in self.stuck or result == self.build.one:
                self.factor[i] = factor
            else:
                result = scaled(self.build, factor, result)
        self.new.append(result)


def cannot_hand_up(flat: Flat) -> set[int]:
    """Nodes that keep their factor, because some parent could not take it without growing.

    A sum takes a factor into its weights. A product takes it if it hands it up itself, or if it is the only parent
    (then it keeps the factor in the child's place). A determinant does not take it, and nothing is above the root.
    """
    root, uses = len(flat.op) - 1, flat.uses.tolist()
    start, child = flat.start.tolist(), flat.child.tolist()
    stuck = {root}
    parents = np.flatnonzero((flat.op == Op.DET) | (flat.op == Op.PRODUCT))[::-1]
    for i, is_det in zip(parents.tolist(), (flat.op[parents] == Op.DET).tolist(), strict=True):
        if is_det:
            stuck.update(child[start[i] : start[i + 1]])
        elif i in stuck:
            stuck.update([c for c in child[start[i] : start[i + 1]] if uses[c] > 1])
    return stuck


class Sharing:
    """a + b = b + a and a·b = b·a: of the nodes that differ only in the order of their children, the first."""

    def __init__(self, build: FlatBuilder) -> None:
        self.build = build
        self._first: dict[tuple, int] = {}

    def representative(self, node: int) -> int:
        """The first node seen that is equal to this one."""
        op, children = self.build.op[node], self.build.children[node]
        if op is Op.PRODUCT:
            return self._first.setdefault((op, *sorted(children)), node)
        if op is Op.SUM:  # weights as ratios, because a Fraction is slow to hash
            ratios = [weight.as_integer_ratio() for weight in self.build.data[node]]
            return self._first.setdefault((op, *sorted(zip(children, ratios, strict=True))), node)
        return node


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
        nests = _Nests(circuit._flat)
        return from_flat(nests.opened(), circuit.variables) if nests.inner else circuit


class _Nests:
    """Sums in sums and products in products, where the inner node has no other parent.

    Attributes
    ----------
    inner : set
        The positions of the nodes to open.
    weights : dict
        The weights of the sums among them, multiplied by those above them.
    """

    def __init__(self, flat: Flat):
        self.flat = flat
        only_child = (flat.uses == 1)[flat.child]
        of_sum, of_product = ((flat.op == op)[flat.parent] & only_child for op in (Op.SUM, Op.PRODUCT))
        is_sum, is_product = (
            (flat.op == op)[flat.child] & (flat.lengths > 0)[flat.child] for op in (Op.SUM, Op.PRODUCT)
        )
        self.inner = set(flat.child[of_product & is_product].tolist())
        self.weights: dict[int, list[Number]] = {}
        # w·c in a product: `fold` hands the w up, which leaves the weights below as they are
        lone = np.zeros(len(flat.op), bool)
        lone[flat.child[of_product & is_sum & (flat.lengths == 1)[flat.child]]] = True
        self._multiply_weights(np.flatnonzero(of_sum & is_sum & ~lone[flat.parent]))

    def _multiply_weights(self, edges: np.ndarray) -> None:
        """Open sums in sums, given by the edges between them, unless a weight would become enormous."""
        flat, weights = self.flat, self.weights
        first, place = flat.first_weight.tolist(), (edges - flat.start[flat.parent[edges]]).tolist()
        for parent, child, k in reversed(
            list(zip(flat.parent[edges].tolist(), flat.child[edges].tolist(), place, strict=True))
        ):  # parents first
            weight = weights[parent][k] if parent in weights else flat.weights[first[parent] + k]
            multiplied = [times(weight, v) for v in flat.weights[first[child] : first[child + 1]]]
            if None not in multiplied:
                self.inner.add(child)
                weights[child] = multiplied  # type: ignore[assignment]

    def opened(self) -> Flat:
        """The circuit with all nests opened."""
        build, inner = FlatBuilder(), self.inner
        entries = list(self.flat.entries())
        new: list[int] = []
        for i, (op, children, data) in enumerate(entries):
            if i in inner:
                new.append(-1)  # it has no node of its own
                continue
            if not inner.isdisjoint(children):
                edges = list(self._edges_out(i, entries))
                children = tuple([c for _, c in edges])
                data = tuple([w for w, _ in edges]) if op is Op.SUM else None
            new.append(build.add(op, tuple([new[c] for c in children]), data))
        return build.flat(new[-1])

    def _edges_out(self, head: int, entries: list[Entry]) -> Iterator[tuple[Number, int]]:
        """The edges out of the nest below `head`, left to right; iterative, for nests a million deep."""
        stack = [self._edges(head, entries[head])]
        while stack:
            for weight, child in stack[-1]:
                if child in self.inner:
                    stack.append(self._edges(child, entries[child]))
                    break
                yield weight, child
            else:
                stack.pop()

    def _edges(self, i: int, entry: Entry) -> Iterator[tuple[Number, int]]:
        op, children, data = entry
        weights: Sequence[Number] = self.weights.get(i) or data if op is Op.SUM else [1] * len(children)
        return zip(weights, children, strict=True)

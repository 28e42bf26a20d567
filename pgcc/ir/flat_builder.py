"""Flat circuits, built one node at a time, by readers and passes that make many nodes and look at few of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pgcc.errors import CircuitError
from pgcc.ir.flat import Flat, make_nodes, starts
from pgcc.ir.node import Node, Op, identity, postorder
from pgcc.ir.numbers import Number, as_number, mul, nearest_float
from pgcc.locks import cached_property


class FlatBuilder:
    """Nodes known by position. Equal nodes have one position, as equal `Node`s are one object.

    Attributes
    ----------
    op, children, data : lists
        By position, what a `Node` has; children are positions.

    Examples
    --------
    >>> build = FlatBuilder()
    >>> a, b = build.var("a"), build.var("b")
    >>> build.product((a, b)) == build.product((a, b))
    True
    >>> build.flat(build.weighted_sum((0.5, 0.5), (a, build.product((a, b))))).nodes
    [Var(a), Var(b), Product(2 children), Sum(2 children)]
    """

    def __init__(self) -> None:
        self.op: list[Op] = []
        self.children: list[tuple[int, ...]] = []
        self.data: list[Any] = []
        self._position: dict[tuple, int] = {}

    def add(self, op: Op, children: tuple[int, ...], data: Any) -> int:
        """The node with these data, which must have been checked as those of a `Node` are."""
        new = len(self.op)
        position = self._position.setdefault(identity(op, children, data), new)
        if position == new:
            self.op.append(op)
            self.children.append(children)
            self.data.append(data)
        return position

    def const(self, number: Number) -> int:
        """A number."""
        return self.add(Op.CONST, (), as_number(number))

    def var(self, name: str, complement: bool = False) -> int:
        """A variable whose name was checked, or its complement."""
        return self.add(Op.VAR, (), (name, complement))

    def weighted_sum(self, weights: Iterable[Number], children: Iterable[int]) -> int:
        """Σ w_i · child_i."""
        return self.add(Op.SUM, tuple(children), tuple(map(as_number, weights)))

    def product(self, children: Iterable[int]) -> int:
        """Π child_i."""
        return self.add(Op.PRODUCT, tuple(children), None)

    @cached_property
    def zero(self) -> int:
        """The constant 0."""
        return self.const(0)

    @cached_property
    def one(self) -> int:
        """The constant 1."""
        return self.const(1)

    def nodes(self) -> list[Node]:
        """The node at each position."""
        return make_nodes(zip(self.op, self.children, self.data, strict=True))

    def flat(self, root: int) -> Flat:
        """The circuit with this root, in the order in which `pgcc.ir.node.postorder` has its nodes."""
        order = postorder(root, self.children.__getitem__)
        op = np.fromiter([self.op[i] for i in order], np.uint8, len(order))
        children = [self.children[i] for i in order]
        start = starts(np.fromiter(map(len, children), np.int64, len(order)))
        child = np.fromiter(chain.from_iterable(children), np.int64, int(start[-1]))
        position = np.empty(len(self.op), np.int32)
        position[order] = np.arange(len(order))
        weights = list(chain.from_iterable([self.data[i] for i in order if self.op[i] is Op.SUM]))
        others = np.flatnonzero((op != Op.SUM) & (op != Op.PRODUCT)).tolist()
        data = {i: self.data[order[i]] for i in others}
        return Flat(op, start, position[child], weights, data)


class FlatBlocks:
    """Flat circuits, built many nodes at a time, as arrays; whoever adds them sees to it that equal nodes are one.

    Attributes
    ----------
    count : int
        The number of nodes so far.

    Examples
    --------
    >>> from pgcc.ir.node import var
    >>> build = FlatBlocks()
    >>> a, b = build.leaf(var("a")), build.leaf(var("b"))
    >>> build.products(np.array([[a, b]])).tolist()
    [2]
    >>> both = build.sums(np.array([2]), np.array([a, 2]), np.array([0.25, 0.75]))
    >>> build.flat(int(both[0])).nodes
    [Var(a), Var(b), Product(2 children), Sum(2 children)]
    """

    def __init__(self) -> None:
        self.count = 0
        self._leaves: dict[Node, int] = {}
        self._blocks: list[tuple[Op, np.ndarray, np.ndarray, np.ndarray]] = []  # operation, lengths, children, weights

    def leaf(self, node: Node) -> int:
        """A variable or a number, which has one position however often it is added."""
        position = self._leaves.setdefault(node, self.count)
        if position == self.count:
            self._add(node.op, np.zeros(1, np.int64), _NONE, _NONE)
        return position

    def products(self, children: np.ndarray) -> np.ndarray:
        """The products of the rows of a matrix."""
        lengths = np.full(len(children), children.shape[1])
        return self._add(Op.PRODUCT, lengths, children.ravel(), _NONE)

    def sums(self, lengths: np.ndarray, children: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Weighted sums of so many terms each, one after the other."""
        return self._add(Op.SUM, lengths, children, weights)

    def _add(self, op: Op, lengths: np.ndarray, children: np.ndarray, weights: np.ndarray) -> np.ndarray:
        self._blocks.append((op, lengths.astype(np.int32), children.astype(np.int32), weights))
        self.count += len(lengths)
        return np.arange(self.count - len(lengths), self.count)

    def flat(self, root: int, weight: Number = 1) -> Flat:
        """The circuit of weight · root, without the nodes that it does not need."""
        needed = np.zeros(self.count, bool)
        needed[root] = True
        parts, stop = [], self.count
        for op, lengths, children, weights in reversed(self._blocks):
            live = needed[stop - len(lengths) : stop]
            edges = np.repeat(live, lengths)
            needed[children[edges]] = True
            numbers = weights[edges] if op is Op.SUM else weights
            parts.append((np.full(int(live.sum()), op, np.uint8), lengths[live], children[edges], numbers))
            stop -= len(lengths)
        position = np.cumsum(needed) - 1
        if weight != 1:
            parts.insert(0, (np.full(1, Op.SUM, np.uint8), np.ones(1, np.int32), np.full(1, root, np.int32), _NONE))
        ops, lengths, child, weights = (np.concatenate(of) for of in zip(*reversed(parts), strict=True))
        numbers = weights.tolist() + ([weight] if weight != 1 else [])
        leaves = {int(position[i]): node for node, i in self._leaves.items() if needed[i]}
        return Flat(
            ops,
            starts(lengths),
            position[child].astype(np.int32),
            numbers,
            {i: node.data for i, node in leaves.items()},
        )


def mixture_of_copies(template: Flat, table: np.ndarray, weights: np.ndarray) -> Flat:
    """Σ_c weights[c] · template_c, where the sum template_c has the number table[c, k] in place of the weight k.

    Copies share their variables, and nothing else. The sum and those in it become one: its weights are products of
    doubles, rounded once.

    Examples
    --------
    >>> build = FlatBuilder()
    >>> a, b = build.var("a"), build.var("b")
    >>> both = build.flat(build.weighted_sum((0, 1), (build.product((a, b)), a)))
    >>> mixed = mixture_of_copies(both, np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([0.5, 0.5]))
    >>> mixed.nodes, mixed.weights
    ([Var(a), Var(b), Product(2 children), Product(2 children), Sum(4 children)], [0.125, 0.375, 0.25, 0.25])
    """
    count, terms, columns = len(weights), int(template.lengths[-1]), np.array(template.weights)
    if template.op[-1] != Op.SUM:
        raise CircuitError("the copies that are mixed are sums")
    inner = template.op[:-1] >= Op.SUM
    leaves, nodes = np.flatnonzero(~inner), int(inner.sum())
    position = np.where(inner, len(leaves) + np.cumsum(inner), np.cumsum(~inner)) - 1
    child = position[template.child] + nodes * np.arange(count)[:, None] * inner[template.child]
    top = weights[:, None] * table[:, columns[-terms:]]
    numbers = np.append(table[:, columns[:-terms]], top)
    if not np.isfinite(numbers).all():
        raise CircuitError("the weights of a circuit are finite numbers")
    lengths = [np.zeros(len(leaves), np.int64), np.tile(template.lengths[:-1][inner], count), np.array([count * terms])]
    return Flat(
        np.append(template.op[leaves], np.append(np.tile(template.op[:-1][inner], count), Op.SUM)).astype(np.uint8),
        starts(np.concatenate(lengths)),
        np.append(child[:, :-terms], child[:, -terms:]).astype(np.int32),
        numbers.tolist(),
        {i: template.data[leaf] for i, leaf in enumerate(leaves.tolist())},
    )


def weighted_sum_of(parts: Sequence[Flat], weights: Sequence[Number]) -> Flat:
    """Σ_i weights[i] · parts[i]; what is equal in several parts is there once.

    Parts that are sums become one with it: of floats, their weights are multiplied with one rounding.

    Examples
    --------
    >>> build = FlatBuilder()
    >>> a, b = build.var("a"), build.var("b")
    >>> both, sum_ = build.flat(build.product((a, b))), build.flat(build.weighted_sum((0.5, 0.5), (a, b)))
    >>> mixed = weighted_sum_of([both, sum_], [0.25, 0.75])
    >>> mixed.nodes, mixed.weights
    ([Var(a), Var(b), Product(2 children), Sum(3 children)], [0.25, 0.375, 0.375])
    """
    leaves: dict[tuple, int] = {}
    data: dict[int, Any] = {}
    position = [np.zeros(len(part.op), np.int64) for part in parts]
    for part, place in zip(parts, position, strict=True):
        for i in np.flatnonzero(part.op < Op.SUM).tolist():
            place[i] = leaves.setdefault(identity(Op(part.op[i]), (), part.data[i]), len(leaves))
            data[place[i]] = part.data[i]
    count = len(leaves)
    ops, lengths = [np.zeros(count, np.uint8)], [np.zeros(count, np.int64)]
    children: list[np.ndarray] = []
    numbers: list[Number] = []
    top: dict[int, Number] = {}
    for part, place, weight in zip(parts, position, weights, strict=True):
        inner = part.op >= Op.SUM
        ops[0][place[~inner]] = part.op[~inner]
        body = len(part.op) - int(part.op[-1] == Op.SUM)  # without the sum that it is
        inner[body:] = False
        place[inner] = count + np.arange(inner.sum())
        count += int(inner.sum())
        data |= {int(place[i]): part.data[i] for i in part.data if inner[i]}
        ops.append(part.op[inner])
        lengths.append(part.lengths[inner])
        below, first = place[part.child], part.first_weight[body]
        terms, factors = (below[part.start[body] :], part.weights[first:]) if body < len(part.op) else (place[-1:], [1])
        children.append(below[: part.start[body]])
        numbers += part.weights[:first]
        for term, factor in zip(terms.tolist(), factors, strict=True):
            product = nearest_float(weight) * nearest_float(factor) if float in (type(weight), type(factor)) else None
            top[term] = as_number(top.get(term, 0) + (mul(weight, factor) if product is None else product))
    mixed = Flat(
        np.concatenate([*ops, [np.uint8(Op.SUM)]]),
        starts(np.concatenate([*lengths, np.array([len(top)])])),
        np.concatenate([*children, np.array([*top])]).astype(np.int32),
        [*numbers, *top.values()],
        data,
    )
    return _without_copies(mixed) if _may_have_copies(mixed) else mixed


def _may_have_copies(flat: Flat) -> bool:
    """Whether two nodes may be equal: then two are whose children are leaves, and have equal sums of random numbers."""
    inner = flat.op >= Op.SUM
    numbers = np.random.default_rng(0).random(len(inner))[flat.child]
    numbers[(flat.op == Op.SUM)[flat.parent]] *= flat.doubles
    found = np.bincount(flat.parent, numbers, len(inner))
    found = found[inner & (np.bincount(flat.parent, inner[flat.child], len(inner)) == 0)]
    return len(np.unique(found)) < len(found)


def _without_copies(flat: Flat) -> Flat:
    build, position = FlatBuilder(), list[int]()
    for op, children, data in flat.entries():
        position.append(build.add(op, tuple([position[c] for c in children]), data))
    return build.flat(position[-1])


_NONE = np.zeros(0)

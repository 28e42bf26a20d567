"""Flat circuits, built one node at a time, by readers and passes that make many nodes and look at few of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from pgcc.ir.flat import Flat, make_nodes, starts
from pgcc.ir.node import Node, Op, identity, postorder
from pgcc.ir.numbers import Number, as_number
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

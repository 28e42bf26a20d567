"""A circuit as flat arrays: what passes read that count, test, renumber or copy nodes, without touching one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from pgcc.ir.node import Node, Op, make_node
from pgcc.ir.numbers import Number


@dataclass(frozen=True, eq=False)
class Flat:
    """The nodes of a circuit by position: children before parents, the root last.

    Attributes
    ----------
    op : uint8 array
        The operation of each node.
    start : int64 array, one longer
        Its children are ``child[start[i]:start[i + 1]]``.
    child : int32 array
        The positions of children.
    weights : list
        The weights of all sums, one after another; those of node i begin at ``first_weight[i]``.
    data : dict
        By position, what else a node has: the number of a Const, (name, complement) of a Var, the matrices of a Det.
    """

    op: np.ndarray
    start: np.ndarray
    child: np.ndarray
    weights: list[Number]
    data: dict[int, Any]

    @staticmethod
    def of(order: Sequence[Node]) -> Flat:
        """The arrays of the nodes of a circuit, in this order."""
        position = {node: i for i, node in enumerate(order)}
        children = [node.children for node in order]
        start = np.zeros(len(order) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, children), np.int64, len(order)), out=start[1:])
        child = np.fromiter(map(position.__getitem__, chain.from_iterable(children)), np.int32, int(start[-1]))
        op = np.fromiter([node.op for node in order], np.uint8, len(order))
        weights = list(chain.from_iterable([node.data for node in order if node.op is Op.SUM]))
        others = np.flatnonzero((op != Op.SUM) & (op != Op.PRODUCT)).tolist()
        flat = Flat(op, start, child, weights, {i: order[i].data for i in others})
        flat.__dict__["nodes"] = order
        return flat

    @cached_property
    def nodes(self) -> Sequence[Node]:
        """The node at each position."""
        nodes: list[Node] = []
        child, start, first_weight = self.child.tolist(), self.start.tolist(), self.first_weight.tolist()
        for i, op in enumerate(self.op.tolist()):
            children = [nodes[c] for c in child[start[i] : start[i + 1]]]
            data = self.weights[first_weight[i] : first_weight[i + 1]] if op == Op.SUM else self.data.get(i)
            nodes.append(make_node(Op(op), children, data))
        return nodes

    @cached_property
    def lengths(self) -> np.ndarray:
        """How many children each node has."""
        return np.diff(self.start)

    @cached_property
    def first_weight(self) -> np.ndarray:
        """Where the weights of each node begin, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(np.where(self.op == Op.SUM, self.lengths, 0))])

    @cached_property
    def uses(self) -> np.ndarray:
        """The number of edges into each node."""
        return np.bincount(self.child, minlength=len(self.op))

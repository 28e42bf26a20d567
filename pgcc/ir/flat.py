"""A circuit as flat arrays, for passes that count, test, renumber or copy nodes: no `Node` is made for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from pgcc.ir.node import Node, Op, identity, intern
from pgcc.ir.numbers import Number, nearest_float
from pgcc.locks import cached_property

Entry = tuple[Op, tuple[int, ...], Any]  # operation, positions of the children, data


@dataclass(frozen=True, eq=False)
class Flat:
    """The nodes of a circuit by position, each once: children before parents, the root last.

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
        """The arrays of some nodes, in this order."""
        position = {node: i for i, node in enumerate(order)}
        children = [node.children for node in order]
        start = starts(np.fromiter(map(len, children), np.int64, len(order)))
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
        return make_nodes(self.entries())

    def entries(self) -> Iterator[Entry]:
        """Operation, children and data of each node, as `Node` has them; children are positions."""
        ops = list(Op)
        child, start, first = self.child.tolist(), self.start.tolist(), self.first_weight.tolist()
        for i, number in enumerate(self.op.tolist()):
            op = ops[number]
            data = tuple(self.weights[first[i] : first[i + 1]]) if op is Op.SUM else self.data.get(i)
            yield op, tuple(child[start[i] : start[i + 1]]), data

    def equals(self, other: Flat) -> bool:
        """Whether both have equal nodes at the same positions."""
        arrays = ((self.op, other.op), (self.start, other.start), (self.child, other.child))
        return (
            all(np.array_equal(mine, its) for mine, its in arrays)
            and self.weights == other.weights
            and list(map(type, self.weights)) == list(map(type, other.weights))
            and all(
                identity(Op(self.op[i]), (), self.data[i]) == identity(Op(self.op[i]), (), other.data[i])
                for i in self.data
            )
        )

    @cached_property
    def lengths(self) -> np.ndarray:
        """How many children each node has."""
        return np.diff(self.start)

    @cached_property
    def first_weight(self) -> np.ndarray:
        """Where the weights of each node begin, and where the last ones end."""
        return starts(np.where(self.op == Op.SUM, self.lengths, 0))

    @cached_property
    def parent(self) -> np.ndarray:
        """The node that each edge, in the order of `child`, comes from."""
        return np.repeat(np.arange(len(self.op)), self.lengths)

    @cached_property
    def doubles(self) -> np.ndarray:
        """The weights, rounded to doubles."""
        return doubles(self.weights)

    @cached_property
    def uses(self) -> np.ndarray:
        """The number of edges into each node."""
        return np.bincount(self.child, minlength=len(self.op))


def make_nodes(entries: Iterable[Entry]) -> list[Node]:
    """The nodes with these operations, children and data, which were checked before; children come before parents."""
    nodes: list[Node] = []
    for op, children, data in entries:
        nodes.append(intern(op, tuple([nodes[c] for c in children]), data))
    return nodes


def starts(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """The offsets of consecutive stretches of these lengths, and the end of the last one.

    >>> starts([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def spread(first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The positions in stretches that begin at `first` and have these lengths, one stretch after another.

    >>> spread(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    return np.repeat(first - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))


def doubles(numbers: Sequence[Number]) -> np.ndarray:
    """The doubles nearest to some numbers."""
    if Fraction not in set(map(type, numbers)):
        try:
            return np.array(numbers, np.float64)
        except OverflowError:  # an int beyond the range of doubles
            pass
    return np.array(list(map(nearest_float, numbers)), np.float64)

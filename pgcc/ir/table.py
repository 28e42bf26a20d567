"""A circuit as a flat table, for pickling and for files: no recursion, children before parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op, const, det, product, var, weighted_sum

Row = tuple[int, tuple[int, ...], Any]  # operation, positions of the children, data


def to_table(circuit: Circuit) -> tuple[tuple[str, ...], list[Row]]:
    """(variables, rows)."""
    position = {node: i for i, node in enumerate(circuit.order)}
    rows = [(int(node.op), tuple(position[c] for c in node.children), node.data) for node in circuit.order]
    return circuit.variables, rows


def from_table(variables: Sequence[str], rows: Sequence[Row]) -> Circuit:
    """The circuit whose root is the last row."""
    nodes: list[Node] = []
    for op, positions, data in rows:
        children = [nodes[p] for p in positions]
        nodes.append(make_node(Op(op), children, data))
    return Circuit(nodes[-1], variables)


def make_node(op: Op, children: Sequence[Node], data: Any) -> Node:
    """A node from its operation, children and data."""
    match op:
        case Op.CONST:
            return const(data)
        case Op.VAR:
            return var(*data)
        case Op.SUM:
            return weighted_sum(data, children)
        case Op.PRODUCT:
            return product(children)
        case Op.DET:
            half = len(children) // 2
            m0, u, v, size, counted = data
            return det(m0, u, v, children[:half], children[half:], size, counted)
    assert_never(op)

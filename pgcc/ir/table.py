"""A circuit as a flat table, for pickling and for files: no recursion, children before parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op, make_node

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

"""Circuits as graphs in the DOT language of Graphviz."""

from __future__ import annotations

from pgcc.draw.labels import labelled_edges, node_label
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op


def dot_text(circuit: Circuit) -> str:
    """The circuit as a graph in the DOT language of Graphviz: `dot -Tsvg` draws it.

    Edges carry the weights of sums; those of a determinant carry the place of the child, f1 f2 … and, where a
    complement is not 1, y1 y2 ….

    Examples
    --------
    >>> import pgcc
    >>> print(dot_text(pgcc.variables("a")[0] / 2))
    digraph circuit {
      node [shape=circle, fontname="Helvetica"];
      n0 [label="a", shape=box];
      n1 [label="+"];
      n1 -> n0 [label="1/2"];
    }
    """
    edges = {node: list(labelled_edges(node)) for node in circuit.order}
    drawn = {circuit.root, *(child for below in edges.values() for child, _ in below)}
    number = {node: i for i, node in enumerate(node for node in circuit.order if node in drawn)}
    lines = ["digraph circuit {", '  node [shape=circle, fontname="Helvetica"];']
    for node, i in number.items():
        lines.append(f"  n{i} [{_attributes(node)}];")
        for child, label in edges[node]:
            note = f' [label="{_escaped(label)}"]' if label else ""
            lines.append(f"  n{i} -> n{number[child]}{note};")
    return "\n".join([*lines, "}"])


_SHAPES = {
    Op.CONST: ", shape=plaintext",
    Op.VAR: ", shape=box",
    Op.SUM: "",  # a circle, by default
    Op.PRODUCT: "",
    Op.DET: ", shape=hexagon",
}


def _attributes(node: Node) -> str:
    return f'label="{_escaped(node_label(node))}"{_SHAPES[node.op]}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

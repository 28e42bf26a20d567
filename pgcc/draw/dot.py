"""Circuits as graphs in the DOT language of Graphviz."""

from __future__ import annotations

from pgcc.draw.labels import LOOKS, labelled_edges, node_label
from pgcc.draw.part import Around, Stub, check_most, neighbourhood, top, whole
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node

_DEFAULT_SHAPE = "circle"


def dot_text(circuit: Circuit, most_nodes: int | None = None, around: Around = None) -> str:
    """The circuit as a graph in the DOT language of Graphviz, which `dot -Tsvg` draws.

    Edges are labelled with the weights of sums; those of a determinant with the position of the child, f1 f2 …, and of
    complements other than 1, y1 y2 ….

    Parameters
    ----------
    circuit : Circuit
        The circuit to write.
    most_nodes : int, optional
        If the circuit has more nodes than this, only its top is written. By default, all of it is.
    around : str, Circuit or Node, optional
        Write the neighbourhood of this variable, or of this part of the circuit, instead of the top.

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
    limit = len(circuit.order) if most_nodes is None else check_most(most_nodes)
    if around is not None:
        part = neighbourhood(circuit, around, limit)
    else:
        part = whole(circuit) if len(circuit.order) <= limit else top(circuit, limit)
    drawn: list[Node | Stub] = [*part.nodes, *part.stubs]
    number = {one: i for i, one in enumerate(drawn)}
    lines = ["digraph circuit {", f'  node [shape={_DEFAULT_SHAPE}, fontname="Helvetica"];']
    if part.note:
        lines.append(f'  label="{_escaped(part.note)}";')
    for node in part.nodes:
        lines.append(f"  n{number[node]} [{_attributes(node)}];")
        for child, label in labelled_edges(node):
            if child in number:
                note = f' [label="{_escaped(label)}"]' if label else ""
                lines.append(f"  n{number[node]} -> n{number[child]}{note};")
    for stub in part.stubs:
        ends = (number[stub.node], number[stub]) if stub.below else (number[stub], number[stub.node])
        lines.append(f'  n{number[stub]} [label="{stub.label}", tooltip="{stub.title}", shape=plaintext];')
        lines.append(f"  n{ends[0]} -> n{ends[1]} [style=dashed];")
    return "\n".join([*lines, "}"])


def _attributes(node: Node) -> str:
    shape = LOOKS[node.op].dot_shape
    return f'label="{_escaped(node_label(node))}"' + (f", shape={shape}" if shape != _DEFAULT_SHAPE else "")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

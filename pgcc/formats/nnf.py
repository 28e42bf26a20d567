"""`.nnf`, `.ddnnf`: deterministic decomposable logic circuits (d-DNNF), as two families of compilers write them.

c2d, dsharp:
    nnf nodes edges variables
    L literal
    A count {child}*                                        A 0 is true
    O variable count {child}*                               O 0 0 is false; the variable may be 0
  Nodes are numbered by their lines, from 0; children stand before their parents and the root is last.

d4:
    o id 0      a id 0      t id 0      f id 0              or, and, true, false
    parent child {literal}* 0                               an edge: child and literals, all of them
  Nodes may be used before they are defined; the root is the first one.

The circuit is smooth with every weight 1, so that its total is the model count: that the children of an or exclude one
another is the promise of the format and is not checked. Variable i is called `x{i}`. The variables are x1 … xn, with n
from the header, or from the caller, or (d4) the largest in the file: d4 leaves out variables that do not matter.

Written is what c2d writes, for circuits whose coefficients are 0 and 1: every weight is 1, and the terms of every sum
are shown to exclude one another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import BinaryIO

from pgcc.collector import collector_paused
from pgcc.errors import FormatError
from pgcc.formats.io import shown
from pgcc.formats.logic import Lines, Nodes, over_literals, refuse_weights, signed_number, smoothed, variable_names
from pgcc.formats.weights import Weights, literal_weights, weighted
from pgcc.frontend.structure import structure
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.printer import describe

KINDS = {"o": "or", "a": "and", "t": "true", "f": "false"}


def read(path: str | os.PathLike[str], weights: Weights | None = None, variables: int | None = None) -> Circuit:
    """The circuit in an `.nnf` file.

    Parameters
    ----------
    path : str or path-like
    weights : mapping or path, optional
        See `pgcc.formats.weights.literal_weights`. The total is then the weighted model count.
    variables : int, optional
        How many variables there are, if the file does not say or does not mention them all.

    Raises
    ------
    FormatError
        With the file and the line.

    Examples
    --------
    >>> import pgcc, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "or.nnf")
    ...     with open(path, "w") as file:
    ...         _ = file.write("nnf 5 4 2\\nL 1\\nL -1\\nL 2\\nA 2 1 2\\nO 1 2 0 3\\n")
    ...     circuit = read(path, weights={1: "0.3", -1: "0.7"})
    >>> print(circuit)
    3/10*x1*(x2 + ~x2) + 7/10*~x1*x2
    >>> pgcc.compile(circuit, normalize=False).prob({}, exact=True)
    Fraction(13, 10)
    """
    path = Path(path)
    with collector_paused():
        lines = Lines(path)
        words = next(iter(lines), None)
        if words is None:
            raise FormatError(f"{path} is empty")
        circuit = _read_c2d(lines, variables) if words[0] == "nnf" else _read_d4(lines, variables)
        return weighted(circuit, literal_weights(weights))


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write a logic circuit as c2d does.

    Raises
    ------
    FormatError
        If it is no logic circuit; the reason is named.
    """
    full = over_literals(circuit, "an NNF")
    refuse_weights(full, "an NNF")
    report = structure(full)
    if report.deterministic is not True:
        doubt = "can be true together" if report.deterministic is False else "were not shown to exclude one another"
        node = report.offenders["deterministic"].node
        raise FormatError(f"the children of an or exclude one another in an NNF, and two of {describe(node)} {doubt}")
    below = [_chosen(node, links) for node, links in zip(full.order, full._links, strict=True)]
    lines = [f"nnf {len(below)} {sum(map(len, below))} {len(full.variables)}", *map(_line, full.order, below), ""]
    file.write("\n".join(lines).encode("ascii"))


def _chosen(node: Node, links: Sequence[int]) -> Sequence[int]:
    """The children of a node, without terms of weight 0."""
    return [c for w, c in zip(node.weights, links, strict=True) if w] if node.op is Op.SUM else links


def _line(node: Node, below: Sequence[int]) -> str:
    match node.op:
        case Op.VAR:
            return f"L {signed_number(node)}"
        case Op.CONST:
            return "A 0" if node.value else "O 0 0"
        case Op.PRODUCT | Op.SUM:
            return " ".join(["A" if node.op is Op.PRODUCT else "O 0", str(len(below)), *map(str, below)])
        case _:
            raise FormatError(f"an NNF has no {node!r}")


def _all_names(lines: Lines, largest: int, asked: int | None) -> list[str]:
    count = largest if asked is None else asked
    if not largest <= count <= lines.most_variables:
        wanted = f"{largest} to {lines.most_variables}"
        raise FormatError(f"{lines.path}: a circuit with {wanted} variables cannot have {count}")
    return variable_names(range(1, count + 1))


# -- c2d ------------------------------------------------------------------------------------------


def _read_c2d(lines: Lines, variables: int | None) -> Circuit:
    header, body = lines.need_header("nnf", "nnf nodes edges variables")
    claimed, _, largest = (lines.integer(word, "a count of the header") for word in header[1:])
    if largest > lines.most_variables:
        raise lines.error(f"a file of {lines.size:,} bytes cannot have {largest:,} variables")
    nodes = Nodes(lines)
    for i, words in enumerate(body):
        nodes.add(str(i), _c2d_node(nodes, words, largest))
    if len(nodes.by_id) != claimed:
        raise lines.error(f"the header counts {claimed} nodes, and the file has {len(nodes.by_id)}")
    return smoothed(nodes.circuit(nodes.root(claimed), _all_names(lines, largest, variables)))


def _c2d_node(nodes: Nodes, words: list[str], largest: int) -> int:
    lines = nodes.lines
    match words[0]:
        case "L":
            lines.need_length(words, 2, "L literal")
            return nodes.literal(lines.literal(words[1], largest))
        case "A":
            return nodes.conjunction(_c2d_children(nodes, words[1:], "A count {child}*"))
        case "O":
            decides = lines.integer(words[1], "the variable of an O") if len(words) > 1 else 0
            if decides > largest:
                raise lines.error(f"an O decides variable {decides}, and the header has {largest} variables")
            return nodes.disjunction(_c2d_children(nodes, words[2:], "O variable count {child}*"))
        case other:
            raise lines.error(f"a line of an NNF starts with L, A or O, not {shown(other)}")


def _c2d_children(nodes: Nodes, words: list[str], form: str) -> list[int]:
    lines = nodes.lines
    if not words:
        raise lines.error(f"this line is cut off: `{form}`")
    count = lines.integer(words[0], "the number of children")
    if count != len(words) - 1:
        raise lines.error(f"this line has {len(words) - 1} children and says that it has {count}")
    return nodes.get(words[1:])[1]


# -- d4 -------------------------------------------------------------------------------------------


class _Graph:
    """The nodes and edges of a file of d4, as they stand there."""

    def __init__(self, lines: Lines):
        self.lines = lines
        self.kind: dict[int, str] = {}
        self.line: dict[int, int] = {}
        self.edges: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self.largest = 0
        edge_lines: list[tuple[int, int, int]] = []
        for words in lines:
            if words[0] in KINDS:
                self._add_node(words)
            else:
                edge_lines.append((*self._add_edge(words), lines.number))
        for parent, child, line in edge_lines:
            self._check_edge(parent, child, line)

    def _add_node(self, words: list[str]) -> None:
        self.lines.need_length(words, 3, f"{words[0]} id 0")
        self._need_end(words)
        key = self.lines.integer(words[1], "the id of a node", low=1)
        if key in self.kind:
            raise self.lines.error(f"node {key} is defined twice")
        self.kind[key], self.line[key], self.edges[key] = words[0], self.lines.number, []

    def _add_edge(self, words: list[str]) -> tuple[int, int]:
        if len(words) < 3:
            raise self.lines.error("this line is neither a node, `o id 0`, nor an edge, `parent child {literal}* 0`")
        parent, child = (self.lines.integer(word, "the id of a node", low=1) for word in words[:2])
        self._need_end(words)
        literals = tuple(self.lines.literal(word) for word in words[2:-1])
        self.largest = max(self.largest, *map(abs, literals), 0)
        self.edges.setdefault(parent, []).append((child, literals))
        return parent, child

    def _need_end(self, words: list[str]) -> None:
        if words[-1] != "0":
            raise self.lines.error("this line is cut off: it does not end in 0")

    def _check_edge(self, parent: int, child: int, line: int) -> None:
        for key in (parent, child):
            if key not in self.kind:
                raise self.lines.error(f"there is no node {key}", line)
        if self.kind[parent] in "tf":
            raise self.lines.error(f"node {parent} is {KINDS[self.kind[parent]]}, which has no children", line)

    def order(self) -> Iterator[int]:
        """A topological order, children before parents; an error if there is a cycle."""
        below = {key: [child for child, _ in edges] for key, edges in self.edges.items()}
        try:
            yield from TopologicalSorter(below).static_order()
        except CycleError as error:
            stuck = error.args[1][0]
            raise self.lines.error(f"node {stuck} is above itself", self.line[stuck]) from None


def _read_d4(lines: Lines, variables: int | None) -> Circuit:
    graph = _Graph(lines)
    if not graph.kind:
        raise lines.error("the file has no node")
    nodes = Nodes(lines)
    for key in graph.order():
        lines.number = graph.line[key]
        nodes.add(str(key), _d4_node(graph, key, nodes))
    root = nodes.by_id[next(iter(graph.kind))]
    return smoothed(nodes.circuit(root, _all_names(lines, graph.largest, variables)))


def _d4_node(graph: _Graph, key: int, nodes: Nodes) -> int:
    kind = graph.kind[key]
    if kind in "tf":
        return nodes.build.one if kind == "t" else nodes.build.zero
    edges = ([*map(nodes.literal, literals), nodes.by_id[child]] for child, literals in graph.edges[key])
    branches = list(map(nodes.conjunction, edges))
    return nodes.disjunction(branches) if kind == "o" else nodes.conjunction(branches)

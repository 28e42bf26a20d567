"""Conversion between circuits and networkx graphs; a round trip changes nothing.

Generating and probabilistic circuits share one format, which `Circuit.from_networkx` documents. A graph says which of
the two it is, because the same nodes mean different things in each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from pgcc.errors import CircuitError, brief
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import ONE, Node, Op, const, det, product, var, weighted_sum
from pgcc.ir.numbers import Number, as_number

if TYPE_CHECKING:
    import networkx

# What the nodes of a graph mean.
GENERATING, PROBABILISTIC = "generating", "probabilistic"

_INNER, _LEAVES = ("sum", "product", "det", "copy"), ("literal", "bernoulli", "constant")
_KINDS = (*_INNER, *_LEAVES)


def from_graph(graph: networkx.DiGraph, meaning: str, signed: bool) -> tuple[Node, Sequence[str] | None]:
    """The root node, and the order of the variables if the graph has it as an attribute."""
    order = _bottom_up(graph)
    said = graph.graph.get("meaning", meaning)
    if said != meaning:
        other = "pgcc.pc.PC" if meaning == GENERATING else "pgcc.Circuit"
        raise CircuitError(f"the graph is of a {said} circuit, not of a {meaning} one: {other}.from_networkx reads it")
    reader = _GraphReader(graph, signed)
    for name in order:
        reader.visit(name)
    return reader.made[_root(graph)], graph.graph.get("variables")


def _bottom_up(graph: networkx.DiGraph) -> list[Hashable]:
    import networkx as nx

    if not isinstance(graph, nx.Graph) or not graph.is_directed() or graph.is_multigraph():
        raise CircuitError(f"a circuit is read from a networkx.DiGraph, not {type(graph).__name__}")
    if not len(graph):
        raise CircuitError("the graph has no nodes")
    try:
        return list(nx.topological_sort(graph))[::-1]
    except nx.NetworkXUnfeasible:
        around = nx.find_cycle(graph)[0][0]
        raise CircuitError(f"the graph has a cycle through node {around!r}") from None


def _root(graph: networkx.DiGraph) -> Hashable:
    roots = [name for name, degree in graph.in_degree if not degree]
    if len(roots) > 1:
        raise CircuitError(f"the graph has {len(roots)} roots, {roots[0]!r} and {roots[1]!r} among them: one is needed")
    return roots[0]


class _GraphReader:
    def __init__(self, graph: networkx.DiGraph, signed: bool):
        self.graph, self.signed = graph, signed
        self.made: dict[Hashable, Node] = {}

    def visit(self, name: Hashable) -> None:
        data = self.graph.nodes[name]
        kind = _attribute(data, "kind", f"node {name!r}")
        children = [self.made[c] for c in self.graph.successors(name)]
        if kind not in _KINDS:
            raise CircuitError(
                f"node {name!r} is of the unknown kind {kind!r}: it should be one of {', '.join(_KINDS)}"
            )
        if kind in _INNER and not children and data.get("children") != 0:
            raise CircuitError(f"node {name!r} is a {kind} without children")
        if kind in _LEAVES and children:
            raise CircuitError(f"node {name!r} is a {kind} and has an edge to {next(self.graph.successors(name))!r}")
        try:
            self.made[name] = self._make(name, kind, data, children)
        except CircuitError as error:
            text = str(error)
            raise CircuitError(text if repr(name) in text else f"node {name!r}: {text}") from None

    def _make(self, name: Hashable, kind: str, data: Mapping[str, Any], children: list[Node]) -> Node:
        where = f"node {name!r}"
        match kind:
            case "sum":
                edges = self.graph.adj[name]
                return weighted_sum([self._weight(name, child, edges[child]) for child in edges], children)
            case "product":
                return product(children)
            case "det":
                return self._det(name, data)
            case "copy":
                if len(children) > 1:
                    raise CircuitError(f"{where} is a copy of {len(children)} nodes; it should be a copy of one")
                return children[0]
            case "constant":
                return const(self._number(_attribute(data, "value", where), where))
            case "bernoulli":
                return bernoulli_node(_attribute(data, "variable", where), _attribute(data, "p", where))
        value = _attribute(data, "value", where)
        if value not in (0, 1):
            raise CircuitError(f"{where}: the value of a literal is 1 or 0, not {value!r}")
        return var(_attribute(data, "variable", where), complement=not value)

    def _det(self, name: Hashable, data: Mapping[str, Any]) -> Node:
        edges, where = self.graph.adj[name], f"node {name!r}"
        inside = [self.made[child] for child, edge in edges.items() if "outside" not in edge]
        outside = [ONE] * len(inside)
        for child, edge in edges.items():
            if "outside" in edge:
                column = edge["outside"]
                if type(column) is not int or not 0 <= column < len(inside):
                    raise CircuitError(f"{where}: the complement {child!r} is of child {column!r} of {len(inside)}")
                outside[column] = self.made[child]
        m0, u, v = (_attribute(data, key, where) for key in ("M0", "U", "V"))
        return det(m0, u, v, inside, outside, data.get("size"), data.get("counted"))

    def _weight(self, name: Hashable, child: Hashable, data: Mapping[str, Any]) -> Number:
        where = f"the edge from {name!r} to {child!r}"
        return self._number(_attribute(data, "weight", where), where)

    def _number(self, value: Any, where: str) -> Number:
        number = as_number(value)
        if number < 0 and not self.signed:
            raise CircuitError(f"{where} has the negative weight {brief(value)}")
        return number


def bernoulli_node(name: str, p: Any) -> Node:
    """p·x + (1 − p)·x̄"""
    number = as_number(p)
    if not 0 <= number <= 1:
        raise CircuitError(f"the probability of {name!r} is between 0 and 1, not {brief(p)}")
    return weighted_sum((number, 1 - number), (var(name), var(name, complement=True)))


def _attribute(data: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in data:
        raise CircuitError(f"{where} has no attribute {key!r}")
    return data[key]


def to_graph(circuit: Circuit, meaning: str) -> networkx.DiGraph:
    """The graph of a circuit; its nodes are positions in the circuit's order.

    A graph has at most one edge between two nodes, so a repeated child of a parent gets a copy.
    """
    import networkx as nx

    variables = list(circuit.variables) if circuit.domains is None else circuit.variables
    graph = nx.DiGraph(variables=variables, meaning=meaning)
    edges = [list(_edges(node, below)) for node, below in zip(circuit.order, circuit._links, strict=True)]
    used = {len(circuit.order) - 1, *(child for listed in edges for child, _ in listed)}
    for i in sorted(used):
        graph.add_node(i, **_attributes(circuit.order[i]))
        for j, (child, attributes) in enumerate(edges[i]):
            if graph.has_edge(i, child):
                copy = f"{i}.{j}"
                graph.add_node(copy, kind="copy")
                graph.add_edge(copy, child)
                graph.add_edge(i, copy, **attributes)
            else:
                graph.add_edge(i, child, **attributes)
    return graph


def _edges(node: Node, below: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The children of a node by their positions, with the attributes of their edges."""
    match node.op:
        case Op.SUM:
            yield from ((child, {"weight": weight}) for child, weight in zip(below, node.weights, strict=True))
        case Op.DET:
            k = len(below) // 2
            yield from ((child, {}) for child in below[:k])
            complements = enumerate(zip(below[k:], node.outside, strict=True))
            yield from ((child, {"outside": i}) for i, (child, y) in complements if y is not ONE)
        case Op.PRODUCT | Op.VAR | Op.CONST:
            yield from ((child, {}) for child in below)
        case _:
            assert_never(node.op)


def _attributes(node: Node) -> dict[str, Any]:
    match node.op:
        case Op.CONST:
            return {"kind": "constant", "value": node.value}
        case Op.VAR:
            return {"kind": "literal", "variable": node.name, "value": int(not node.is_complement)}
        case Op.SUM | Op.PRODUCT:
            return {"kind": node.op.name.lower(), **_childless(node)}
        case Op.DET:
            m0, u, v = map(_entries, node.matrices)
            sizes = {} if node.size is None else {"size": node.size, "counted": list(node.counted)}
            return {"kind": "det", "M0": m0, "U": u, "V": v, **sizes, **_childless(node)}
    assert_never(node.op)


def _childless(node: Node) -> dict[str, int]:
    """The attribute that marks an intentionally empty sum, product or determinant."""
    return {} if node.children else {"children": 0}


def _entries(matrix: Matrix) -> Any:
    """An array of floats, or rows of exact numbers."""
    return matrix.floats().copy() if matrix.is_float else matrix.numbers()

"""Probabilistic circuits as networkx graphs, in both directions. `PC.from_networkx` documents the attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op, const, product, var, weighted_sum
from pgcc.ir.numbers import Number, add, as_number

if TYPE_CHECKING:
    import networkx

_KINDS = ("sum", "product", "literal", "bernoulli", "constant")


def from_graph(graph: networkx.DiGraph, signed: bool) -> tuple[Node, Sequence[str] | None]:
    """The root, and the order of the variables if the graph has it as an attribute."""
    reader = _Reader(graph, signed)
    for name in _bottom_up(graph):
        reader.visit(name)
    return reader.made[_root(graph)], graph.graph.get("variables")


def _bottom_up(graph: networkx.DiGraph) -> list[Hashable]:
    import networkx as nx

    if not isinstance(graph, nx.Graph) or not graph.is_directed() or graph.is_multigraph():
        raise CircuitError(f"a probabilistic circuit is read from a networkx.DiGraph, not {type(graph).__name__}")
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


class _Reader:
    def __init__(self, graph: networkx.DiGraph, signed: bool):
        self.graph, self.signed = graph, signed
        self.made: dict[Hashable, Node] = {}

    def visit(self, name: Hashable) -> None:
        data = self.graph.nodes[name]
        kind = _attribute(data, "kind", f"node {name!r}")
        children = [self.made[c] for c in self.graph.successors(name)]
        if kind not in _KINDS:
            raise CircuitError(f"node {name!r} is of the kind {kind!r}: known are {', '.join(_KINDS)}")
        if kind in ("sum", "product") and not children:
            raise CircuitError(f"node {name!r} is a {kind} of nothing")
        if kind not in ("sum", "product") and children:
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
            case "constant":
                return const(self._number(_attribute(data, "value", where), where))
            case "bernoulli":
                return bernoulli_node(_attribute(data, "variable", where), _attribute(data, "p", where))
        value = _attribute(data, "value", where)
        if value not in (0, 1):
            raise CircuitError(f"{where}: the value of a literal is 1 or 0, not {value!r}")
        return var(_attribute(data, "variable", where), complement=not value)

    def _weight(self, name: Hashable, child: Hashable, data: Mapping[str, Any]) -> Number:
        where = f"the edge from {name!r} to {child!r}"
        return self._number(_attribute(data, "weight", where), where)

    def _number(self, value: Any, where: str) -> Number:
        number = as_number(value)
        if number < 0 and not self.signed:
            raise CircuitError(f"{where} has the negative weight {value!r}")
        return number


def bernoulli_node(name: str, p: Any) -> Node:
    """p·x + (1 − p)·x̄"""
    number = as_number(p)
    if not 0 <= number <= 1:
        raise CircuitError(f"the probability of {name!r} is between 0 and 1, not {p!r}")
    return weighted_sum((number, 1 - number), (var(name), var(name, complement=True)))


def _attribute(data: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in data:
        raise CircuitError(f"{where} has no attribute {key!r}")
    return data[key]


def to_graph(circuit: Circuit) -> networkx.DiGraph:
    """The graph of a circuit; its nodes are positions in the circuit's order.

    A graph has one edge between two nodes: equal terms of a sum are added up, and every further equal factor of a
    product stands in a product of its own.
    """
    import networkx as nx

    graph = nx.DiGraph(variables=list(circuit.variables))
    for i, node in enumerate(circuit.order):
        graph.add_node(i, **_attributes(node))
        for j, child in enumerate(circuit.links[i]):
            if node.op is Op.SUM:
                before = graph.edges[i, child]["weight"] if graph.has_edge(i, child) else 0
                graph.add_edge(i, child, weight=add(before, node.weights[j]))
            elif graph.has_edge(i, child):
                again = f"{i}.{j}"
                graph.add_node(again, kind="product")
                graph.add_edges_from([(i, again), (again, child)])
            else:
                graph.add_edge(i, child)
    return graph


def _attributes(node: Node) -> dict[str, Any]:
    match node.op:
        case Op.CONST:
            return {"kind": "constant", "value": node.value}
        case Op.VAR:
            return {"kind": "literal", "variable": node.name, "value": int(not node.is_complement)}
        case Op.SUM | Op.PRODUCT | Op.DET:
            return {"kind": node.op.name.lower()}
    assert_never(node.op)

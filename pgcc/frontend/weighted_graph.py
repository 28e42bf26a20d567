"""Weighted graphs: read from networkx, a list of edges or an adjacency matrix; and which nodes are connected."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from pgcc.arrays import as_array, is_frame, is_pandas, is_sparse
from pgcc.errors import CircuitError, brief
from pgcc.frontend.kernel import check_labels
from pgcc.ir.numbers import Number, as_number, nearest_float
from pgcc.ir.operands import need_sequence

Names: TypeAlias = "Mapping[tuple, str] | Callable[[tuple], str] | None"


@dataclass(frozen=True)
class Edge:
    """An edge, and the name of its variable; without directions, `tail` and `head` are just its two ends."""

    tail: Hashable
    head: Hashable
    weight: Number
    label: str


@dataclass(frozen=True)
class WeightedGraph:
    """A graph with weights ≥ 0, without self-loops."""

    nodes: list
    edges: list[Edge]

    @property
    def is_float(self) -> bool:
        """Whether all weights are doubles, given as floats or as integers."""
        return all(is_double(edge.weight) for edge in self.edges)


def is_double(x: Number) -> bool:
    """Whether a float, or an integer that is one, was given."""
    return not isinstance(x, Fraction) and (isinstance(x, float) or abs(x) <= 2**53)


Raw = tuple[Hashable, Hashable, Any, Any]  # tail, head, key (None: there is only one), weight as given


def is_hashable(value: Any) -> bool:
    """Whether a value can be a node or the name of an attribute; a tuple with a list in it is not."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def read_graph(G: Any, weight: str | None, names: Names, directed: bool, function: str) -> WeightedGraph:
    """Read a graph, for a public function of this name, which calls it directly."""
    if not is_hashable(weight):
        raise CircuitError(f"weight={weight!r} is not the name of an attribute of edges")
    multigraph = False
    if hasattr(G, "is_directed") and hasattr(G, "edges"):
        _check_direction(G, directed, function)
        nodes, raw, multigraph = list(G), _networkx_edges(G, weight), bool(G.is_multigraph())
    elif (matrix := G if is_sparse(G) else as_array(G, "the adjacency matrix")) is not None:
        nodes, raw = _adjacent(G, matrix, weight, directed)
    else:
        nodes, raw = _listed_edges(G, weight, function, directed)
    if not nodes:
        raise CircuitError(f"{function}: the graph has no nodes, so that it has no tree")
    loops = [_edge_name(u, v, directed) for u, v, _, _ in raw if u == v]
    if loops:
        more = f" and {len(loops) - 5} more" if len(loops) > 5 else ""
        warnings.warn(f"self-loops are in no tree and are ignored: {', '.join(loops[:5])}{more}", stacklevel=3)
    kept = [edge for edge in raw if edge[0] != edge[1]]
    labels = _labels(kept, names, directed, multigraph)
    edges = [
        Edge(u, v, _weight(w, f"the weight of edge {label!r}"), label)
        for (u, v, _, w), label in zip(kept, labels, strict=True)
    ]
    return WeightedGraph(nodes, edges)


def _check_direction(G: Any, directed: bool, function: str) -> None:
    if G.is_directed() and not directed:
        raise CircuitError(
            f"{function} takes an undirected graph, not a {type(G).__name__}: pgcc.arborescence(G, root) is for "
            "directed ones, and G.to_undirected() forgets the directions"
        )
    if directed and not G.is_directed():
        raise CircuitError(
            f"{function} takes a directed graph, not a {type(G).__name__}: pgcc.spanning_tree(G) is for undirected "
            "ones, and G.to_directed() has both directions of every edge"
        )


def _networkx_edges(G: Any, weight: str | None) -> list[Raw]:
    listed = (
        G.edges(keys=True, data=True)
        if G.is_multigraph()
        else ((u, v, None, data) for u, v, data in G.edges(data=True))
    )
    return [(u, v, key, 1 if weight is None else data.get(weight, 1)) for u, v, key, data in listed]


def _adjacent(G: Any, matrix: Any, weight: str | None, directed: bool) -> tuple[list, list[Raw]]:
    """The nodes and edges of an adjacency matrix, row by row; if it is symmetric, only those above the diagonal."""
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise CircuitError(
            f"an adjacency matrix has a row and a column for every node, not the shape {shape}; edges are given as "
            "tuples (u, v) or (u, v, weight)"
        )
    nodes = _frame_nodes(G) if is_frame(G) else list(range(shape[0]))
    rows, columns, weights = _nonzero(matrix)
    entries = {(i, j): w for i, j, w in zip(rows, columns, weights, strict=True)}
    if not directed:
        for (i, j), w in entries.items():
            if entries.get((j, i), 0) != w:
                raise CircuitError(
                    f"the adjacency matrix is not symmetric: the edge from {nodes[i]!r} to {nodes[j]!r} has the weight "
                    f"{w!r}, and the one back {entries.get((j, i), 0)!r}; pgcc.arborescence is for directed graphs"
                )
    kept = [(i, j) for i, j in entries if directed or i <= j]
    return nodes, [(nodes[i], nodes[j], None, 1 if weight is None else entries[i, j]) for i, j in kept]


def _nonzero(matrix: Any) -> tuple[list[int], list[int], list]:
    """Rows, columns and values of the entries that are not 0, in the order of rows."""
    if is_sparse(matrix):
        matrix = matrix.tocsr(copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix = matrix.tocoo()
        return matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist()
    rows, columns = np.nonzero(matrix)
    return rows.tolist(), columns.tolist(), matrix[rows, columns].tolist()


def _frame_nodes(frame: Any) -> list:
    """The nodes of a DataFrame: the labels of its columns, which must also be those of its rows."""
    columns = list(frame.columns)
    check_labels("the adjacency matrix", list(frame.index) if is_pandas(frame) else columns, columns, "nodes")
    return columns


def _listed_edges(G: Any, weight: str | None, function: str, directed: bool) -> tuple[list, list[Raw]]:
    """The edges of a list, with parallel edges numbered, and their nodes in order of appearance."""
    listed = need_sequence(G, f"{function} takes a networkx graph or a list of edges (u, v) or (u, v, weight)")
    nodes: dict[Hashable, None] = {}
    edges: list[Raw] = []
    count = Counter[Hashable]()
    for i, edge in enumerate(listed):
        if not isinstance(edge, (tuple, list)) or len(edge) not in (2, 3):
            raise CircuitError(f"edge {i} is {edge!r}, not (u, v) or (u, v, weight)")
        u, v = edge[:2]
        try:
            nodes.update({u: None, v: None})
        except TypeError:
            raise CircuitError(f"edge {i} is {edge!r}: a node has to be hashable") from None
        given = edge[2] if len(edge) == 3 else 1
        if isinstance(given, Mapping):
            given = given.get(weight, 1)
        ends = _ends(u, v, directed)
        edges.append((u, v, count[ends], 1 if weight is None else given))
        count[ends] += 1
    return list(nodes), edges


def _ends(u: Hashable, v: Hashable, directed: bool) -> Hashable:
    return (u, v) if directed else frozenset((u, v))


def _edge_name(u: Hashable, v: Hashable, directed: bool) -> str:
    return f"{u}{'->' if directed else '-'}{v}"


def _labels(edges: Sequence[Raw], names: Names, directed: bool, multigraph: bool) -> list[str]:
    between = Counter(_ends(u, v, directed) for u, v, _, _ in edges)
    labels: dict[str, tuple] = {}
    for u, v, key, _ in edges:
        parallel = between[_ends(u, v, directed)] > 1
        edge = (u, v, key) if multigraph or parallel else (u, v)
        default = _edge_name(u, v, directed) + (f"#{key}" if parallel else "")
        label = default if names is None else _named(names, edge, directed)
        if not isinstance(label, str) or not label or not label.isprintable():
            raise CircuitError(
                f"edge {edge!r} cannot be called {label!r}", advice="names=… chooses the names of variables"
            )
        if label in labels:
            raise CircuitError(
                f"the edges {labels[label]!r} and {edge!r} are both called {label!r}",
                advice="names=… chooses the names",
            )
        labels[label] = edge
    return list(labels)


def _named(names: Any, edge: tuple, directed: bool) -> Any:
    if callable(names):
        return names(edge)
    try:
        for known in (edge, edge[:2], *([] if directed else [(edge[1], edge[0], *edge[2:]), (edge[1], edge[0])])):
            if known in names:
                return names[known]
    except TypeError:
        raise CircuitError(f"names is a mapping from edges, or a function of them, not {names!r}") from None
    raise CircuitError(f"names has no name for the edge {edge!r}")


def _weight(value: Any, what: str) -> Number:
    if isinstance(value, str):
        raise CircuitError(f"{what} is the text {value!r}, not a number")
    try:
        number = as_number(value)
    except CircuitError as error:
        raise CircuitError(f"{what}: {error}") from None
    if number < 0:
        raise CircuitError(f"{what} is negative: {brief(value)}")
    return number


def read_rates(G: Any, nodes: list, killing: Any) -> dict[Hashable, Number]:
    """The killing rate of every node."""
    given: Mapping
    if isinstance(killing, str):
        if not hasattr(G, "nodes"):
            raise CircuitError(
                f"killing={killing!r} names an attribute of nodes, and a list of edges has none", argument="killing"
            )
        given = {node: data[killing] for node, data in G.nodes(data=True) if killing in data}
        if not given:
            raise CircuitError(f"killing={killing!r}: no node of the graph has this attribute", argument="killing")
    elif isinstance(killing, Mapping):
        given = killing
        unknown = [node for node in given if node not in set(nodes)]
        if unknown:
            raise CircuitError(f"killing has a rate for {unknown[0]!r}, which is not a node of the graph")
    else:
        given = dict.fromkeys(nodes, killing)
    return {node: _weight(given.get(node, 0), f"the killing rate of node {node!r}") for node in nodes}


# -- what can be reached -------------------------------------------------------------------------------------


def total_weights(graph: WeightedGraph) -> dict[Hashable, float]:
    """The weight of all edges at every node, about."""
    total: dict[Hashable, float] = dict.fromkeys(graph.nodes, 0.0)
    for edge in graph.edges:
        for node in (edge.tail, edge.head):
            total[node] += min(nearest_float(edge.weight), 1e300)
    return total


def _neighbours(graph: WeightedGraph, forward: bool = True, backward: bool = True) -> dict[Hashable, list]:
    """The neighbours of every node along edges of positive weight."""
    near: dict[Hashable, list] = {node: [] for node in graph.nodes}
    for edge in graph.edges:
        if edge.weight and forward:
            near[edge.tail].append(edge.head)
        if edge.weight and backward:
            near[edge.head].append(edge.tail)
    return near


def _reached(start: Hashable, near: Mapping[Hashable, list]) -> dict[Hashable, None]:
    found: dict[Hashable, None] = {start: None}
    stack = [start]
    while stack:
        for node in near[stack.pop()]:
            if node not in found:
                found[node] = None
                stack.append(node)
    return found


def connected_components(graph: WeightedGraph) -> Iterator[list]:
    """The nodes of every component, connected by edges of positive weight."""
    near = _neighbours(graph)
    seen: set = set()
    for node in graph.nodes:
        if node not in seen:
            component = _reached(node, near)
            seen.update(component)
            yield list(component)


def check_connected(graph: WeightedGraph) -> None:
    """Refuse a graph of several components."""
    components = list(connected_components(graph))
    if len(components) > 1:
        a, b = components[0][0], components[1][0]
        raise CircuitError(
            f"the graph is not connected: no path of edges with positive weight leads from {a!r} to {b!r} "
            f"({len(components)} components), and there is no spanning tree",
            advice="killing=RATE makes it rooted forests (pgcc.spanning_forest)",
        )


def check_reachable(graph: WeightedGraph, root: Hashable, away: bool) -> None:
    """Refuse a graph in which some node is not reached from the root (or, if not `away`, does not reach it)."""
    found = _reached(root, _neighbours(graph, forward=away, backward=not away))
    lost = [node for node in graph.nodes if node not in found]
    if lost:
        path = f"from the root {root!r} to {lost[0]!r}" if away else f"from {lost[0]!r} to the root {root!r}"
        raise CircuitError(f"no path of edges with positive weight leads {path}: there is no arborescence")

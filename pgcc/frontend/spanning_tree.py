"""Random spanning trees, forests and arborescences of weighted graphs: one variable per edge, and one determinant.

By the matrix-tree theorem, the polynomial Σ_T Π_{e∈T} w_e·z_e of the spanning trees T is det(Σ_e w_e·z_e·b_e·b_eᵀ),
where b_e = e_u − e_v for an edge u-v, without the coordinate of one node. With all coordinates, and rates q_v added on
the diagonal, it is the polynomial of the rooted forests, each weighted by the rates of its roots. In a directed graph,
where exactly one edge enters every node other than the root, e_v takes the place of the first b_e (Tutte).

Weights are multiplied into one of the two vectors. No square roots are taken, so exact weights stay exact.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pgcc.arrays import check_size
from pgcc.errors import CircuitError, plural
from pgcc.frontend.weighted_graph import (
    Names,
    WeightedGraph,
    check_connected,
    check_reachable,
    connected_components,
    is_double,
    is_hashable,
    read_graph,
    read_rates,
    total_weights,
)
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, det, var
from pgcc.ir.numbers import Number

if TYPE_CHECKING:
    import networkx

Graph: TypeAlias = "networkx.Graph | Iterable[tuple] | Any"  # Any: an adjacency matrix


def spanning_tree(G: Graph, weight: str | None = "weight", *, names: Names = None) -> Circuit:
    """A random spanning tree of an undirected graph: Pr(T) ∝ Π_{e ∈ T} w_e.

    Parameters
    ----------
    G : networkx.Graph, networkx.MultiGraph, iterable of (u, v) and (u, v, w), or adjacency matrix
        The graph, which must be connected by edges of positive weight. Self-loops are in no spanning tree, so they are
        left out, with a warning. An adjacency matrix is symmetric, and its nonzero entries are the weights of edges. It
        may be an array, a tensor, a sparse matrix, or a DataFrame, whose labels name the nodes; otherwise the nodes are
        0, 1, …
    weight : str or None
        The edge attribute that holds the weight: an integer, float or fraction. Edges without it have weight 1; with
        None, all edges do. An edge of weight 0 becomes a variable that is never in.
    names : mapping or callable, optional
        From edges, (u, v) or in a multigraph (u, v, key), to the names of their variables. By default an edge is called
        ``u-v``, in the order and orientation of ``G.edges``; parallel edges are called ``u-v#key``.

    Returns
    -------
    Circuit
        A circuit over the edges. Its total is the weighted number of spanning trees; `pgcc.compile` divides by it. A
        graph of one node has exactly one spanning tree, without edges, so it gives the constant 1.

    Raises
    ------
    CircuitError
        If the graph is empty, disconnected or directed, or a weight is negative or not a finite number.

    See Also
    --------
    pgcc.spanning_forest : random rooted forests
    pgcc.arborescence : random directed spanning trees
    pgcc.Model.mode : the most probable assignment

    Examples
    --------
    >>> import networkx, pgcc
    >>> model = pgcc.compile(pgcc.spanning_tree(networkx.complete_graph(4)))
    >>> model.variables
    ('0-1', '0-2', '0-3', '1-2', '1-3', '2-3')
    >>> model.prob({"0-1": 1}), model.prob({"0-1": 1, "2-3": 1})
    (0.5, 0.25)

    By an adjacency matrix:

    >>> import numpy as np
    >>> triangle = np.array([[0, 2, 1], [2, 0, 3], [1, 3, 0]])
    >>> pgcc.compile(pgcc.spanning_tree(triangle)).prob({"0-1": 1}, exact=True)
    Fraction(8, 11)
    """
    graph = read_graph(G, weight, names, directed=False, function="spanning_tree")
    check_connected(graph)
    if len(graph.nodes) == 1:
        return Circuit(ONE, [])
    # Any node may be left out; leaving out the heaviest gives the best-conditioned matrix.
    ground = graph.nodes.index(max(graph.nodes, key=total_weights(graph).__getitem__))
    kept = {node: i for i, node in enumerate(graph.nodes[:ground] + graph.nodes[ground + 1 :])}
    return _circuit(graph, [0] * len(kept), _incidence(graph, kept, weighted=True), _incidence(graph, kept))


def spanning_forest(G: Graph, killing: Any = 1.0, weight: str | None = "weight", *, names: Names = None) -> Circuit:
    """A random rooted spanning forest: Pr ∝ Π w_e over its edges · Π q_v over the roots of its trees.

    Equivalently, it is a random spanning tree of the graph with one extra node, to which every node v has an edge of
    weight q_v, where these extra edges are summed out.

    Parameters
    ----------
    G : networkx.Graph, networkx.MultiGraph, iterable of (u, v) and (u, v, w), or adjacency matrix
        As for `spanning_tree`.
    killing : number, mapping or str
        The rate q_v at which a random walk is killed at v: one number for all nodes, a mapping from nodes to numbers,
        or the name of a node attribute. Nodes without a rate have rate 0 and are never roots.
    weight, names
        As for `spanning_tree`.

    Returns
    -------
    Circuit
        A circuit over the edges. Its total is the weighted number of rooted forests.

    Raises
    ------
    CircuitError
        As for `spanning_tree`, and if a component of the graph has no node with a positive rate.

    See Also
    --------
    pgcc.spanning_tree : random spanning trees
    pgcc.arborescence : random directed spanning trees

    Examples
    --------
    Two nodes and an edge: either both are roots (q² = 1), or one of them is (2·w·q = 6).

    >>> import pgcc
    >>> pgcc.compile(pgcc.spanning_forest([("a", "b", 3)])).prob({"a-b": 1}, exact=True)
    Fraction(6, 7)
    """
    graph = read_graph(G, weight, names, directed=False, function="spanning_forest")
    rates = read_rates(G, graph.nodes, killing)
    for component in connected_components(graph):
        if not any(rates[node] for node in component):
            raise CircuitError(
                f"no root is possible in the component of node {component[0]!r} ({plural(len(component), 'node')}): "
                "give one of its nodes a positive killing rate"
            )
    kept = {node: i for i, node in enumerate(graph.nodes)}
    diagonal = [rates[node] for node in graph.nodes]
    return _circuit(graph, diagonal, _incidence(graph, kept, weighted=True), _incidence(graph, kept))


def arborescence(
    G: Graph, root: Hashable, weight: str | None = "weight", *, orientation: str = "out", names: Names = None
) -> Circuit:
    """A random spanning arborescence of a directed graph: Pr(T) ∝ Π_{e ∈ T} w_e.

    Parameters
    ----------
    G : networkx.DiGraph, networkx.MultiDiGraph, iterable of (u, v) and (u, v, w), or adjacency matrix
        The graph. Edges lead from u to v; in a matrix, that is the entry in row u and column v.
    root : node
        The root of every tree.
    weight : str or None
        As for `spanning_tree`.
    orientation : "out" or "in"
        Whether the edges of a tree point away from the root, so that exactly one enters every other node, or towards
        the root.
    names : mapping or callable, optional
        As for `spanning_tree`. By default an edge is called ``u->v``.

    Returns
    -------
    Circuit
        A circuit over the edges. Its total is the weighted number of arborescences.

    Raises
    ------
    CircuitError
        If a node cannot be reached from the root (or cannot reach it), the graph is empty or not directed, or a weight
        is negative or not a finite number.

    See Also
    --------
    pgcc.spanning_tree : random spanning trees
    pgcc.spanning_forest : random rooted forests

    Examples
    --------
    >>> import pgcc
    >>> edges = [("r", "a", 2), ("r", "b", 1), ("a", "b", 3), ("b", "a", 1)]
    >>> pgcc.compile(pgcc.arborescence(edges, root="r")).prob({"a->b": 1}, exact=True)  # of 2·1 + 2·3 + 1·1
    Fraction(2, 3)
    """
    if orientation not in ("out", "in"):
        raise CircuitError(
            f"orientation={orientation!r}: the edges of an arborescence point 'out' or 'in'", argument="orientation"
        )
    graph = read_graph(G, weight, names, directed=True, function="arborescence")
    if not is_hashable(root) or root not in set(graph.nodes):
        raise CircuitError(f"the root {root!r} is not a node of the graph")
    away = orientation == "out"
    check_reachable(graph, root, away)
    if len(graph.nodes) == 1:
        return Circuit(ONE, [])
    kept = {node: i for i, node in enumerate([node for node in graph.nodes if node != root])}
    # Every kept node has one edge that enters (or leaves) it: that one's end stands in U, both ends in V.
    ends = [(edge.head, edge.tail) if away else (edge.tail, edge.head) for edge in graph.edges]
    U = [[(end, edge.weight)] for edge, (end, _) in zip(graph.edges, ends, strict=True)]
    V: list[list[tuple[Hashable, Number]]] = [[(end, 1), (other, -1)] for end, other in ends]
    return _circuit(graph, [0] * len(kept), _columns(graph, kept, U), _columns(graph, kept, V))


# -- the determinant -----------------------------------------------------------------------------------------

Column = list[tuple[Hashable, Number]]  # the entries that are not 0, by node


def _incidence(graph: WeightedGraph, kept: Mapping[Hashable, int], weighted: bool = False) -> np.ndarray:
    """A column e_u − e_v, or w·(e_u − e_v), for every edge."""
    sized = [(edge, edge.weight if weighted else 1) for edge in graph.edges]
    return _columns(graph, kept, [[(edge.tail, w), (edge.head, -w)] for edge, w in sized])


def _columns(graph: WeightedGraph, kept: Mapping[Hashable, int], columns: Sequence[Column]) -> np.ndarray:
    check_size(len(kept), len(columns), "the incidence matrix of the graph")
    array = np.zeros((len(kept), len(columns)), np.float64 if graph.is_float else object)
    for j, column in enumerate(columns):
        for node, value in column:
            if node in kept:
                array[kept[node], j] = value
    return array


def _circuit(graph: WeightedGraph, diagonal: Sequence[Number], U: np.ndarray, V: np.ndarray) -> Circuit:
    check_size(len(diagonal), len(diagonal), "the matrix of the graph")
    is_float = graph.is_float and all(map(is_double, diagonal))
    M0 = np.diag(np.array(diagonal, np.float64 if is_float else object))
    labels = [edge.label for edge in graph.edges]
    return Circuit(det(M0, U, V, [var(label) for label in labels]), labels)

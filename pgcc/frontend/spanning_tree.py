"""Random spanning trees, forests and arborescences of weighted graphs: one variable per edge, and one determinant.

By the matrix-tree theorem, the polynomial Σ_T Π_{e∈T} w_e·z_e of the spanning trees T is det(Σ_e w_e·z_e·b_e·b_eᵀ),
where b_e = e_u − e_v for an edge u-v, without the coordinate of one node. With all coordinates, and rates q_v added on
the diagonal, it is the polynomial of the rooted forests, each weighted by the rates of its roots. In a directed graph,
where exactly one edge enters every node other than the root, e_v takes the place of the first b_e (Tutte).

Weights are multiplied into one of the two vectors. No square roots are taken, so exact weights stay exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pgcc.arrays import as_array, check_size, is_frame, is_pandas, is_sparse
from pgcc.errors import CircuitError, brief, plural
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, det, var
from pgcc.ir.numbers import Number, as_number, nearest_float

if TYPE_CHECKING:
    import networkx

Graph: TypeAlias = "networkx.Graph | Iterable[tuple] | Any"  # Any: an adjacency matrix
Names: TypeAlias = "Mapping[tuple, str] | Callable[[tuple], str] | None"


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
    graph = _read_graph(G, weight, names, directed=False, function="spanning_tree")
    _check_connected(graph)
    if len(graph.nodes) == 1:
        return Circuit(ONE, [])
    # Any node may be left out; leaving out the heaviest gives the best-conditioned matrix.
    ground = graph.nodes.index(max(graph.nodes, key=_total_weights(graph).__getitem__))
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
    graph = _read_graph(G, weight, names, directed=False, function="spanning_forest")
    rates = _rates(G, graph.nodes, killing)
    for component in _components(graph):
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
        raise CircuitError(f"orientation={orientation!r}: the edges of an arborescence point 'out' or 'in'")
    graph = _read_graph(G, weight, names, directed=True, function="arborescence")
    if not _is_hashable(root) or root not in set(graph.nodes):
        raise CircuitError(f"the root {root!r} is not a node of the graph")
    away = orientation == "out"
    _check_reachable(graph, root, away)
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


def _incidence(graph: _Graph, kept: Mapping[Hashable, int], weighted: bool = False) -> np.ndarray | list[list[Number]]:
    """A column e_u − e_v, or w·(e_u − e_v), for every edge."""
    sized = [(edge, edge.weight if weighted else 1) for edge in graph.edges]
    return _columns(graph, kept, [[(edge.tail, w), (edge.head, -w)] for edge, w in sized])


def _columns(graph: _Graph, kept: Mapping[Hashable, int], columns: Sequence[Column]) -> np.ndarray | list[list[Number]]:
    check_size(len(kept), len(columns), "the incidence matrix of the graph")
    if graph.is_float:
        array = np.zeros((len(kept), len(columns)))
        for j, node, value in _entries(kept, columns):
            array[node, j] = value
        return array
    rows: list[list[Number]] = [[0] * len(columns) for _ in kept]
    for j, node, value in _entries(kept, columns):
        rows[node][j] = value
    return rows


def _entries(kept: Mapping[Hashable, int], columns: Sequence[Column]) -> Iterator[tuple[int, int, Number]]:
    for j, column in enumerate(columns):
        for node, value in column:
            if node in kept:
                yield j, kept[node], value


def _circuit(graph: _Graph, diagonal: Sequence[Number], U: Any, V: Any) -> Circuit:
    check_size(len(diagonal), len(diagonal), "the matrix of the graph")
    M0: Any
    if graph.is_float and all(_is_double(x) for x in diagonal):
        M0 = np.diag(np.array(diagonal, dtype=np.float64))
    else:
        M0 = [[x if i == j else 0 for j in range(len(diagonal))] for i, x in enumerate(diagonal)]
    labels = [edge.label for edge in graph.edges]
    return Circuit(det(M0, U, V, [var(label) for label in labels]), labels)


# -- reading graphs ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Edge:
    tail: Hashable
    head: Hashable
    weight: Number
    label: str


@dataclass(frozen=True)
class _Graph:
    nodes: list
    edges: list[_Edge]

    @property
    def is_float(self) -> bool:
        """Whether all weights are doubles, given as floats or as integers."""
        return all(_is_double(edge.weight) for edge in self.edges)


def _is_double(x: Number) -> bool:
    return not isinstance(x, Fraction) and (isinstance(x, float) or abs(x) <= 2**53)


Raw = tuple[Hashable, Hashable, Any, Any]  # tail, head, key (None: there is only one), weight as given


def _is_hashable(value: Any) -> bool:
    """Whether a value can be a node or the name of an attribute; a tuple with a list in it is not."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _read_graph(G: Any, weight: str | None, names: Names, directed: bool, function: str) -> _Graph:
    if not _is_hashable(weight):
        raise CircuitError(f"weight={weight!r} is not the name of an attribute of edges")
    if hasattr(G, "is_directed") and hasattr(G, "edges"):
        _check_direction(G, directed, function)
        nodes, raw, multigraph = list(G), _networkx_edges(G, weight), bool(G.is_multigraph())
    elif (matrix := G if is_sparse(G) else as_array(G, "the adjacency matrix")) is not None:
        nodes, raw = _adjacent(G, matrix, weight, directed)
        multigraph = False
    else:
        nodes, raw = _listed_edges(G, weight, function, directed)
        multigraph = False
    if not nodes:
        raise CircuitError(f"{function}: the graph has no nodes, so that it has no tree")
    loops = [_edge_name(u, v, directed) for u, v, _, _ in raw if u == v]
    if loops:
        more = f" and {len(loops) - 5} more" if len(loops) > 5 else ""
        warnings.warn(f"self-loops are in no tree and are ignored: {', '.join(loops[:5])}{more}", stacklevel=3)
    kept = [edge for edge in raw if edge[0] != edge[1]]
    labels = _labels(kept, names, directed, multigraph)
    edges = [
        _Edge(u, v, _weight(w, f"the weight of edge {label!r}"), label)
        for (u, v, _, w), label in zip(kept, labels, strict=True)
    ]
    return _Graph(nodes, edges)


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
    rows = list(frame.index) if is_pandas(frame) else columns
    if rows != columns:
        i = next(i for i, (a, b) in enumerate(zip(rows, columns, strict=True)) if a != b)
        raise CircuitError(
            f"row {i} of the adjacency matrix is called {rows[i]!r}, but column {i} is {columns[i]!r}: rows and "
            "columns are the same nodes in the same order"
        )
    return columns


def _listed_edges(G: Any, weight: str | None, function: str, directed: bool) -> tuple[list, list[Raw]]:
    """The edges of a list, with parallel edges numbered, and their nodes in order of appearance."""
    try:
        listed = list(G) if not isinstance(G, (str, bytes)) else None
    except TypeError:
        listed = None
    if listed is None:
        raise CircuitError(f"{function} takes a networkx graph or a list of edges (u, v) or (u, v, weight), not {G!r}")
    nodes: dict[Hashable, None] = {}
    edges: list[Raw] = []
    count: dict[Hashable, int] = {}
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
        pair = (u, v) if directed else frozenset((u, v))
        edges.append((u, v, count.setdefault(pair, 0), 1 if weight is None else given))
        count[pair] += 1
    return list(nodes), edges


def _edge_name(u: Hashable, v: Hashable, directed: bool) -> str:
    return f"{u}{'->' if directed else '-'}{v}"


def _labels(edges: Sequence[Raw], names: Names, directed: bool, multigraph: bool) -> list[str]:
    between: dict[Hashable, int] = {}
    for u, v, _, _ in edges:
        pair = (u, v) if directed else frozenset((u, v))
        between[pair] = between.get(pair, 0) + 1
    labels: dict[str, tuple] = {}
    for u, v, key, _ in edges:
        parallel = between[(u, v) if directed else frozenset((u, v))] > 1
        edge = (u, v, key) if multigraph or parallel else (u, v)
        default = _edge_name(u, v, directed) + (f"#{key}" if parallel else "")
        label = default if names is None else _named(names, edge, directed)
        if not isinstance(label, str) or not label or not label.isprintable():
            raise CircuitError(
                f"edge {edge!r} cannot be called {label!r}: pass names= to choose the names of variables"
            )
        if label in labels:
            raise CircuitError(
                f"the edges {labels[label]!r} and {edge!r} are both called {label!r}: pass names= to choose the names"
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


def _rates(G: Any, nodes: list, killing: Any) -> dict[Hashable, Number]:
    given: Mapping
    if isinstance(killing, str):
        if not hasattr(G, "nodes"):
            raise CircuitError(f"killing={killing!r} names an attribute of nodes, and a list of edges has none")
        given = {node: data[killing] for node, data in G.nodes(data=True) if killing in data}
        if not given:
            raise CircuitError(f"killing={killing!r}: no node of the graph has this attribute")
    elif isinstance(killing, Mapping):
        given = killing
        unknown = [node for node in given if node not in set(nodes)]
        if unknown:
            raise CircuitError(f"killing has a rate for {unknown[0]!r}, which is not a node of the graph")
    else:
        given = dict.fromkeys(nodes, killing)
    return {node: _weight(given.get(node, 0), f"the killing rate of node {node!r}") for node in nodes}


# -- what can be reached -------------------------------------------------------------------------------------


def _total_weights(graph: _Graph) -> dict[Hashable, float]:
    total: dict[Hashable, float] = dict.fromkeys(graph.nodes, 0.0)
    for edge in graph.edges:
        for node in (edge.tail, edge.head):
            total[node] += min(nearest_float(edge.weight), 1e300)
    return total


def _neighbours(graph: _Graph, forward: bool = True, backward: bool = True) -> dict[Hashable, list]:
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


def _components(graph: _Graph) -> Iterator[list]:
    near = _neighbours(graph)
    seen: set = set()
    for node in graph.nodes:
        if node not in seen:
            component = _reached(node, near)
            seen.update(component)
            yield list(component)


def _check_connected(graph: _Graph) -> None:
    components = list(_components(graph))
    if len(components) > 1:
        a, b = components[0][0], components[1][0]
        raise CircuitError(
            f"the graph is not connected: no path of edges with positive weight leads from {a!r} to {b!r} "
            f"({len(components)} components); there is no spanning tree, but pgcc.spanning_forest"
        )


def _check_reachable(graph: _Graph, root: Hashable, away: bool) -> None:
    found = _reached(root, _neighbours(graph, forward=away, backward=not away))
    lost = [node for node in graph.nodes if node not in found]
    if lost:
        path = f"from the root {root!r} to {lost[0]!r}" if away else f"from {lost[0]!r} to the root {root!r}"
        raise CircuitError(f"no path of edges with positive weight leads {path}: there is no arborescence")

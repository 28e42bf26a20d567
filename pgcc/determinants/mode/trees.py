"""The heaviest spanning tree or arborescence of a graph: the exact mode of a determinant of a Laplacian.

In a Laplacian with κ = 0 (see `program.det_structure.Laplacian`), the coefficient of a set of edges is the product of
their weights if they form a spanning tree together with the ground, and 0 otherwise; Kruskal's algorithm finds the
largest. In a directed graph, every node is the tail of exactly one edge, or it is a root, with the weight κ; Edmonds'
algorithm finds the largest. `queries/mode_parts` calls `heaviest`.

An undirected graph with κ > 0 is not covered: the coefficient of a forest is Π w · Π_trees Σ_nodes κ, a sum over the
possible roots, which are not variables. Finding the largest is NP-hard: in a complete graph whose equal weights make
two trees optimal, it partitions the κ into two parts of equal sum, if that is possible. (With a variable for every root
it would be a heaviest tree, in which edges of weight κ lead to the ground.)
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.laplacian import find_root
from pgcc.ir.numbers import UNIT
from pgcc.program.det_structure import DetStructure, Laplacian


def heaviest(structure: DetStructure, weight: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray | None, float]:
    """The edges of a heaviest tree, by log w + weight, among those that agree with the codes, and a bound on all these.

    The bound is on the logarithms of trees, roundings included; without any tree, it is −inf, and there are no edges.

    Parameters
    ----------
    structure : DetStructure
        A determinant of trees.
    weight : float64 array
        The amount that an edge adds to the logarithm if it is in, besides log w.
    codes : int8 array
        Edges that are in (1), out (0) or free (−1).
    """
    graph = structure.laplacian
    assert graph is not None
    logs = np.log(graph.weight) + weight
    inside = _arborescence(graph, logs, codes) if graph.directed else _tree(graph, logs, codes)
    if inside is None:
        return None, -math.inf
    terms = logs[inside]
    if graph.directed and graph.kill.any():  # add the weights κ of the nodes that are roots
        has_edge = np.zeros(len(graph.kill), bool)
        has_edge[graph.tail[inside]] = True
        terms = np.concatenate([terms, np.log(graph.kill[~has_edge])])
    largest = float(np.abs(np.concatenate([logs, terms])).max(initial=0.0))
    return inside, math.fsum(terms.tolist()) + 8.0 * UNIT * structure.rank * (largest + 4.0)


def are_trees(structure: DetStructure) -> bool:
    """Whether `heaviest` applies: coefficients are products of weights, which fit in doubles.

    So it is if there are no roots (κ = 0), or if the graph is directed.
    """
    graph = structure.laplacian
    if graph is None or not structure.in_range or not (graph.directed or not graph.kill.any()):
        return False
    # without roots, every tree has as many edges as there are nodes: a size that counts all edges has to be this number
    counts_all = structure.counted is None or all(structure.counted)
    return structure.size is None or (structure.size == structure.rank and not graph.kill.any() and counts_all)


def _tree(graph: Laplacian, logs: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
    """Kruskal's algorithm: after the edges that must be in, take the heaviest edges that join two components."""
    parent, find = list(range(len(graph.kill) + 1)), find_root.py_func
    inside = codes == 1
    order = [*np.flatnonzero(inside).tolist(), *(e for e in np.argsort(-logs, kind="stable").tolist() if codes[e] < 0)]
    for edge in order:
        a, b = find(parent, int(graph.tail[edge])), find(parent, int(graph.head[edge]))
        if a != b:
            parent[a] = b
            inside[edge] = True
        elif codes[edge] == 1:
            return None  # the edges that must be in form a cycle
    return inside if int(inside.sum()) == len(parent) - 1 else None


def _arborescence(graph: Laplacian, logs: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
    """Edmonds' algorithm, towards the ground; a root has an arc of weight κ to the ground, which is not a variable."""
    r, k = len(graph.kill), len(logs)
    fixed: dict[int, int] = {}
    for edge in np.flatnonzero(codes == 1).tolist():
        if fixed.setdefault(int(graph.tail[edge]), edge) != edge:
            return None  # two edges that must be in have the same tail
    arcs: list[Arc] = [
        (int(graph.tail[e]), int(graph.head[e]), _as_integer(logs[e]), e)
        for e in range(k)
        if codes[e] == 1 or (codes[e] < 0 and int(graph.tail[e]) not in fixed)
    ]
    roots = [i for i in np.flatnonzero(graph.kill).tolist() if i not in fixed]
    arcs += [(i, r, _as_integer(np.log(graph.kill[i])), k + i) for i in roots]
    chosen = heaviest_arcs(r, arcs)
    if chosen is None:
        return None
    inside = np.zeros(k, bool)
    inside[[e for e in chosen if e < k]] = True
    return inside


def _as_integer(log: float) -> int:
    """log as a multiple of 2^-60, so that differences are exact, however deeply cycles are nested."""
    return round(math.ldexp(log, 60))


Arc = tuple[int, int, int, int]  # tail, head, weight, name


def heaviest_arcs(nodes: int, arcs: list[Arc]) -> list[int] | None:
    """The names of arcs, one out of each node 0, …, nodes − 1, that lead to node `nodes` and weigh most; or None.

    Take the heaviest arc out of every node. If these form cycles, contract each to one node; the weight of an arc out
    of a cycle is reduced by that of the arc of the cycle that it replaces.

    Examples
    --------
    >>> heaviest_arcs(2, [(0, 1, 5, 0), (1, 0, 5, 1), (0, 2, 1, 2), (1, 2, 2, 3)])
    [0, 3]
    """
    levels: list[tuple[list[Arc], dict[int, Arc], list[int]]] = []  # arcs, heaviest arcs, and nodes on cycles
    count = nodes  # of nodes, without the ground, which is node `count`
    while True:
        best: dict[int, Arc] = {}
        for arc in arcs:
            if arc[0] != arc[1] and (arc[0] not in best or arc[2] > best[arc[0]][2]):
                best[arc[0]] = arc
        if len(best) < count:
            return None
        cycles = _cycles(count, best)
        if not cycles:
            break
        inner = {node: number for number, cycle in enumerate(cycles) for node in cycle}
        renumber: dict[int, int] = {
            node: len(cycles) + i for i, node in enumerate(n for n in range(count) if n not in inner)
        }
        renumber |= inner
        smaller = len(cycles) + count - len(inner)
        renumber[count] = smaller
        contracted = []
        for position, (tail, head, weight, _) in enumerate(arcs):
            a, b = renumber[tail], renumber[head]
            if a != b:
                contracted.append((a, b, weight - (best[tail][2] if tail in inner else 0), position))
        levels.append((arcs, best, sorted(inner)))
        arcs, count = contracted, smaller
    chosen = {arc[0]: arc for arc in best.values()}
    for outer, outer_best, inner_nodes in reversed(levels):
        kept = {outer[position][0]: outer[position] for *_, position in chosen.values()}
        for node in inner_nodes:
            kept.setdefault(node, outer_best[node])
        chosen = kept
    return sorted(name for *_, name in chosen.values())


def _cycles(count: int, best: dict[int, Arc]) -> list[list[int]]:
    """The cycles formed by the heaviest arcs out of the nodes."""
    state, found = [0] * count, []
    for start in range(count):
        path, node = [], start
        while node < count and state[node] == 0:
            state[node] = 1
            path.append(node)
            node = best[node][1]
        if node < count and state[node] == 1:
            found.append(path[path.index(node) :])
        for seen in path:
            state[seen] = 2
    return found

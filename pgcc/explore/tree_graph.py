"""The graph of a random spanning tree, recovered from its determinant; nodes get their names from those of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pgcc.explore.places import stress_places
from pgcc.program.det_structure import Laplacian
from pgcc.program.program import DET, LEAF, Program

# Pictures of graphs with more edges than this are too tangled to read.
MOST_EDGES = 2_000


def find_graph(program: Program, names: Sequence[str]) -> dict[str, Any] | None:
    """The graph of the first determinant of spanning trees, forests or arborescences; None if there is none.

    Returns
    -------
    dict with ``nodes`` (their names), ``x`` and ``y`` (their places in the unit square), ``tail``, ``head``, ``weight``
    and ``variable`` of every edge, ``directed``, and ``trees``: whether the whole model is one determinant, and that of
    spanning trees.
    """
    for i in np.flatnonzero(program.op == DET).tolist():
        which, *slots = program.args[program.start[i] : program.start[i + 1]].tolist()
        one = program.structures[which]
        laplacian = one.laplacian
        edges = _edge_variables(program, slots[: one.children])
        if laplacian is None or edges is None or not 0 < len(edges) <= MOST_EDGES or not _has_pairs(laplacian):
            continue
        rooted = not laplacian.kill.any()
        count = one.rank + (1 if (laplacian.head == one.rank).any() else 0)
        called = [names[edge] for edge in edges]
        nodes = node_names(laplacian, called, count)
        ends = [
            _oriented(*pair, nodes)
            for pair in zip(laplacian.tail.tolist(), laplacian.head.tolist(), called, strict=True)
        ]
        places = stress_places(count, ends).round(4)
        return {
            "nodes": nodes,
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "tail": [tail for tail, _ in ends],
            "head": [head for _, head in ends],
            "weight": laplacian.weight.tolist(),
            "variable": edges,
            "directed": laplacian.directed,
            "trees": rooted and not laplacian.directed and one.size is None and i == program.value,
        }
    return None


def _oriented(one: int, other: int, edge: str, nodes: Sequence[str]) -> tuple[int, int]:
    """The ends of an edge, in the order of its name: a determinant does not tell which way an edge points."""
    return (one, other) if (nodes[one], nodes[other]) in _divisions(edge) else (other, one)


def _has_pairs(laplacian: Laplacian) -> bool:
    """Whether some edge joins two nodes other than the ground. (A diagonal kernel looks like a star.)"""
    return bool((laplacian.head < len(laplacian.kill)).any())


def _edge_variables(program: Program, slots: Sequence[int]) -> list[int] | None:
    """The variable of every child, if all of them are different plain variables."""
    found = []
    for slot in slots:
        leaf = int(program.args[program.start[slot]]) if program.op[slot] == LEAF else -1
        if leaf < 0 or program.leaf_variable[leaf] < 0 or program.leaf_numbers[leaf] != (0, 1):
            return None
        found.append(int(program.leaf_variable[leaf]))
    return found if len(set(found)) == len(found) else None


def node_names(laplacian: Laplacian, edges: Sequence[str], count: int) -> list[str]:
    """The names of nodes if every edge is named after its ends, ``u-v`` or ``u->v``, and otherwise numbers.

    Since names may contain dashes, this looks for a way to split the names of all edges such that every node has the
    same name in all of its edges.
    """
    found: list[set[str] | None] = [None] * count
    for tail, head, edge in zip(laplacian.tail.tolist(), laplacian.head.tolist(), edges, strict=True):
        ends = {part for pair in _divisions(edge) for part in pair}
        for node in (tail, head):
            known = found[node]
            found[node] = ends if known is None else known & ends
    _propagate(found, laplacian, edges)
    chosen = [next(iter(ends)) if ends is not None and len(ends) == 1 else None for ends in found]
    if None in chosen or len(set(chosen)) < count:
        return [str(i) for i in range(count)]
    return [name for name in chosen if name is not None]


def _propagate(found: list[set[str] | None], laplacian: Laplacian, edges: Sequence[str]) -> None:
    """Propagate names: the name of one end of an edge determines the other. In a lone edge, the tail comes first."""
    ends = list(zip(laplacian.tail.tolist(), laplacian.head.tolist(), edges, strict=True))
    changed = True
    while changed:
        changed = False
        for tail, head, edge in ends:
            for node, other in ((tail, head), (head, tail)):
                here, there = found[node], found[other]
                if here is None or there is None or len(here) != 1 or len(there) < 2:
                    continue
                (name,) = here
                left = {b if a == name else a for a, b in _divisions(edge) if name in (a, b)} & there
                if left and left != there:
                    found[other], changed = left, True
        if not changed:
            open_ends = [(tail, edge) for tail, _, edge in ends if len(found[tail] or ()) > 1]
            if open_ends:
                tail, edge = open_ends[0]
                first = {a for a, _ in _divisions(edge)} & (found[tail] or set())
                found[tail] = {min(first or found[tail] or {""})}
                changed = True


def _divisions(edge: str) -> list[tuple[str, str]]:
    """All ways to split the name of an edge into those of its ends.

    >>> _divisions("a-b#2"), _divisions("new-york-boston")
    ([('a', 'b')], [('new', 'york-boston'), ('new-york', 'boston')])
    """
    text = edge.rpartition("#")[0] or edge
    mark = "->" if "->" in text else "-"
    places = [i for i in range(1, len(text) - len(mark)) if text.startswith(mark, i)]
    return [(text[:i], text[i + len(mark) :]) for i in places]

"""Orders in which to eliminate variables."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import combinations

from pgcc.errors import CircuitError

MOST_NEIGHBOURS = 62


class WidthError(CircuitError):
    """A model too densely connected for exact elimination.

    Attributes
    ----------
    width : int
        The induced width of the order that was tried, or a lower bound on it.
    """

    def __init__(self, message: str, width: int):
        self.width = width
        super().__init__(message)

    def __reduce__(self) -> tuple:
        return type(self), (str(self), self.width)


def find_order(count: int, scopes: Sequence[Sequence[int]], kept: set[int]) -> dict[int, tuple[int, ...]]:
    """For each variable, in a min-fill order, its sorted neighbours at that time. Those not kept come first."""
    graph = _InteractionGraph(count, scopes)
    neighbours: dict[int, tuple[int, ...]] = {}
    for group in (set(range(count)) - kept, kept):
        _min_fill(graph, group, neighbours)
    return neighbours


class _InteractionGraph:
    """The graph in which two variables are neighbours if some table has both."""

    def __init__(self, count: int, scopes: Sequence[Sequence[int]]):
        self.near: list[set[int]] = [set() for _ in range(count)]
        for scope in scopes:
            for v in scope:
                self.near[v].update(scope)
        for v, near in enumerate(self.near):
            near.discard(v)

    def fill(self, v: int) -> int | None:
        """The fill of a variable: the edges that its neighbours lack; None if it has too many neighbours."""
        near = self.near[v]
        if len(near) > MOST_NEIGHBOURS:
            return None
        return (sum(len(near - self.near[u]) for u in near) - len(near)) // 2

    def remove(self, v: int) -> set[int]:
        """Eliminate a variable: connect its neighbours, and return the variables whose fill may have changed."""
        near = self.near[v]
        changed = set(near)
        for u in near:
            self.near[u].discard(v)
        for u, w in combinations(near, 2):
            if w not in self.near[u]:
                changed |= self.near[u] & self.near[w]  # common neighbours of u and w now lack one edge fewer
                self.near[u].add(w)
                self.near[w].add(u)
        return changed


def _min_fill(graph: _InteractionGraph, group: set[int], neighbours: dict[int, tuple[int, ...]]) -> None:
    """Eliminate a group of variables; a `WidthError` if all that remain have too many neighbours."""
    fill = {v: graph.fill(v) for v in sorted(group)}
    heap = [(f, v) for v, f in fill.items() if f is not None]
    heapq.heapify(heap)
    while heap:
        f, v = heapq.heappop(heap)
        if fill.get(v) != f:
            continue  # an outdated entry
        del fill[v]
        neighbours[v] = tuple(sorted(graph.near[v]))
        for u in graph.remove(v):
            if u in fill:
                now = graph.fill(u)
                if now != fill[u]:
                    fill[u] = now
                    if now is not None:
                        heapq.heappush(heap, (now, u))
    if fill:
        width = min(len(graph.near[v]) for v in fill)
        raise WidthError(
            f"the induced width of a min-fill order is at least {width}: tables of 2^{width + 1} entries (the limit is "
            f"2^{MOST_NEIGHBOURS + 1})",
            width,
        )

"""Orders in which to eliminate variables."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

from pgcc.errors import CircuitError

MOST_NEIGHBOURS = 62
# In how many ways ties are broken, and the cells per variable up to which any order will do.
_WAYS, _FEW = 3, 64


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


class Order(NamedTuple):
    """An elimination order.

    Attributes
    ----------
    neighbours : dict
        For each variable, in the order, its sorted neighbours at that time.
    cells : float
        The entries of all tables over a variable and its neighbours, zeros included.
    """

    neighbours: dict[int, tuple[int, ...]]
    cells: float

    @property
    def width(self) -> int:
        """The induced width: the most neighbours."""
        return max(map(len, self.neighbours.values()), default=0)


def find_orders(sizes: Sequence[int], scopes: Sequence[Sequence[int]], kept: set[int]) -> list[Order]:
    """Orders by several greedy rules, best first, by their cells. Variables that are not kept come first in all.

    No rule is best everywhere, and which of equal choices a rule makes matters as much: each makes them in a few ways.
    Where the first order has few cells, it is the only one.

    sizes : the number of states of each variable. scopes : the variables of each table.
    """
    found: dict[tuple[int, ...], Order] = {}
    for seed, rule in enumerate(_RULES * _WAYS):
        order = _greedy(_InteractionGraph(sizes, scopes), kept, rule, seed)
        if order.cells <= _FEW * len(sizes):
            return [order]
        found.setdefault(tuple(order.neighbours), order)
    return sorted(found.values(), key=lambda order: order.cells)


class _InteractionGraph:
    """The graph in which two variables are neighbours if some table has both."""

    def __init__(self, sizes: Sequence[int], scopes: Sequence[Sequence[int]]):
        self.sizes = sizes
        self.near: list[set[int]] = [set() for _ in sizes]
        for scope in scopes:
            for v in scope:
                self.near[v].update(scope)
        for v, near in enumerate(self.near):
            near.discard(v)

    def fill(self, v: int, weight: Sequence[int]) -> float:
        """The edges that the neighbours of a variable lack, counted twice.

        weight : by variable; an edge counts as much as the product of its ends' weights.
        """
        near = self.near[v]
        return sum(weight[u] * (sum([weight[w] for w in near - self.near[u]]) - weight[u]) for u in near)

    def log_cells(self, v: int) -> float:
        """The logarithm of the entries of a table over a variable and its neighbours."""
        return math.log(self.sizes[v]) + sum(math.log(self.sizes[u]) for u in self.near[v])

    def remove(self, v: int) -> set[int]:
        """Eliminate a variable: connect its neighbours, and return the variables whose costs may have changed."""
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


# The costs of eliminating a variable: the greedy rules. The first is min-fill.
_RULES: list[Callable[[_InteractionGraph, int], float]] = [
    lambda graph, v: graph.fill(v, [1] * len(graph.sizes)),
    lambda graph, v: graph.fill(v, graph.sizes),
    lambda graph, v: graph.fill(v, graph.sizes) / graph.sizes[v],
    lambda graph, v: graph.log_cells(v),
]


def _greedy(graph: _InteractionGraph, kept: set[int], rule: Callable, seed: int) -> Order:
    """Eliminate the variable that costs least, again and again; of those that cost the same, some one, by `seed`.

    A `WidthError` if all that remain have too many neighbours.
    """
    rank, log_cells = list(range(len(graph.sizes))), []
    if seed:
        random.Random(seed).shuffle(rank)

    def cost(v: int) -> float:
        return rule(graph, v) if len(graph.near[v]) <= MOST_NEIGHBOURS else math.inf

    neighbours: dict[int, tuple[int, ...]] = {}
    for group in (set(rank) - kept, kept):
        costs = {v: cost(v) for v in group}
        heap = [(c, rank[v], v) for v, c in costs.items()]
        heapq.heapify(heap)
        while heap:
            c, _, v = heapq.heappop(heap)
            if costs.get(v) != c:
                continue  # an outdated entry
            if c == math.inf:
                width = min(len(graph.near[u]) for u in costs)
                raise WidthError(
                    f"the induced width is at least {width}: tables of 2^{width + 1} entries or more", width
                )
            del costs[v]
            neighbours[v] = tuple(sorted(graph.near[v]))
            log_cells.append(graph.log_cells(v))
            for u in graph.remove(v):
                if u in costs and (now := cost(u)) != costs[u]:
                    costs[u] = now
                    heapq.heappush(heap, (now, rank[u], u))
    return Order(neighbours, sum(math.exp(min(x, 700.0)) for x in log_cells))

"""Graphical models over binary variables → probabilistic circuits, by variable elimination.

A model is a product of tables φ_f(x_f). To eliminate X, multiply all tables that mention it and sum over its values:

    m(s)  =  Σ_x  W(s, x) · lit_x · Π_j m_j(s, x)        s: the values of X's neighbours at that moment

W is the product of the given tables, a number. The messages m_j of earlier eliminations, and lit_1 = z, lit_0 = ȳ, are
circuit nodes. All entries of m mention the same variables, and different messages mention different ones, so the result
is smooth and decomposable. Its size is O(n · 2^width), where the width is the largest number of neighbours.

The order is min-fill: always eliminate the variable whose neighbours lack the fewest edges among themselves, and of
several the one with the lowest index. Variables that will not be asked about can be summed out as numbers (`keep`),
which is possible even for models whose width is too large for a circuit.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ZERO, Node, product, var, weighted_sum
from pgcc.ir.numbers import ldexp

MOST_NEIGHBOURS = 23  # one table of numbers has at most 2^(23 + 1) entries: 128 MB
MOST_ENTRIES = 1 << 21  # the most entries of all tables of nodes together: about 0.4 kB each
MOST_NUMBERS = 1 << 28  # the most entries of all tables of numbers together: seconds of work

# Numbers in tables are rescaled by a power of two when the largest leaves this range; the root gets it back.
_SMALL, _LARGE = 2.0**-100, 2.0**100
_TINY = 2.0**-1000  # below it, digits would be lost


@dataclass(frozen=True, eq=False)
class Factor:
    """A table over some variables: `table[x_0, x_1, …]` is its entry at those values of `scope`.

    Attributes
    ----------
    scope : tuple of int
        Different variables, by index.
    table : array
        Finite numbers ≥ 0, of shape (2,) · len(scope).
    """

    scope: tuple[int, ...]
    table: np.ndarray


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


# For each variable, in the order of elimination, its sorted neighbours at that time. Those to be summed out as numbers
# come first.
EliminationOrder = dict[int, tuple[int, ...]]


def eliminate(names: Sequence[str], factors: Sequence[Factor], keep: Iterable[str] | None = None) -> Circuit:
    """The probabilistic circuit of a product of tables.

    Parameters
    ----------
    names : sequence of str
        The variables; tables refer to them by their index.
    factors : sequence of Factor
        The tables.
    keep : iterable of str, optional
        The variables of the circuit; the others are summed out as numbers. By default, all are kept.

    Returns
    -------
    Circuit
        A smooth and decomposable circuit over literals. Its total is that of the model (up to a power of two, if tables
        leave the range 2^±100).

    Raises
    ------
    WidthError
        If the tables would be too large; the message names the induced width.

    Examples
    --------
    >>> import numpy as np
    >>> rain = Factor((0,), np.array([0.75, 0.25]))
    >>> wet = Factor((0, 1), np.array([[0.875, 0.125], [0.25, 0.75]]))
    >>> print(eliminate(["rain", "wet"], [rain, wet], keep=["wet"]))
    0.71875*~wet + 0.28125*wet
    """
    kept = _kept(names, keep)
    plan = make_plan(len(names), [f.scope for f in factors], kept)
    with collector_paused():
        root = _Elimination(names, factors, kept).run(plan)
    return Circuit(root, [name for v, name in enumerate(names) if v in kept])


def _kept(names: Sequence[str], keep: Iterable[str] | None) -> set[int]:
    if keep is None:
        return set(range(len(names)))
    index = {name: v for v, name in enumerate(names)}
    wanted = [keep] if isinstance(keep, str) else list(keep)
    if not wanted:
        raise CircuitError("keep= has to name at least one variable", argument="keep")
    unknown = [name for name in wanted if not isinstance(name, str) or name not in index]
    if unknown:
        raise CircuitError(f"cannot keep {unknown[0]!r}: the model has no such variable")
    return {index[name] for name in wanted}


# -- the order ----------------------------------------------------------------------------------------------


def make_plan(count: int, scopes: Sequence[Sequence[int]], kept: set[int]) -> EliminationOrder:
    """A min-fill order with its cost; a `WidthError` if it is too costly."""
    graph = _InteractionGraph(count, scopes)
    neighbours: EliminationOrder = {}
    for group in (set(range(count)) - kept, kept):
        _min_fill(graph, group, neighbours)
    width = max(map(len, neighbours.values()), default=0)
    numbers = sum(2 << len(near) for v, near in neighbours.items() if v not in kept)
    for what, size, limit in (
        ("nodes", _entries(neighbours, kept), MOST_ENTRIES),
        ("numbers", numbers, MOST_NUMBERS),
    ):
        if size > limit:
            raise WidthError(
                f"the induced width of a min-fill order is {width}: its tables of {what} have {size:,} entries in all "
                f"(the limit is {limit:,})",
                width,
            )
    return neighbours


def _entries(neighbours: EliminationOrder, kept: set[int]) -> int:
    """The entries of all tables of nodes, times the messages multiplied into them."""
    place = {v: i for i, v in enumerate(neighbours)}
    factors = dict.fromkeys(neighbours, 1)  # the literal, and one for each message
    total = 0
    for v, near in neighbours.items():
        if v in kept:
            total += factors[v] * 2 << len(near)
            if near:
                factors[min(near, key=place.__getitem__)] += 1
    return total


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


def _min_fill(graph: _InteractionGraph, group: set[int], neighbours: EliminationOrder) -> None:
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


# -- elimination --------------------------------------------------------------------------------------------


class _Elimination:
    """Bucket elimination: each table waits in the bucket of the first of its variables to be eliminated."""

    def __init__(self, names: Sequence[str], factors: Sequence[Factor], kept: set[int]):
        self.names, self.factors, self.kept = names, factors, kept
        self.tables: list[list[Factor]] = [[] for _ in names]  # of numbers
        self.messages: list[list[Factor]] = [[] for _ in names]  # of nodes; None stands for 0
        self.constants: list[np.ndarray] = []
        self.exponent = 0  # all numbers were divided by this power of two
        self.parts: list[Node | None] = []  # one for each connected component

    def run(self, plan: EliminationOrder) -> Node:
        self.place = {v: i for i, v in enumerate(plan)}
        for factor in self.factors:
            self.deliver(factor)
        for v, near in plan.items():
            bag = (*near, v)
            if v in self.kept:
                self.sum_nodes(v, bag)
            else:
                numbers = self.multiplied(self.tables[v], bag)
                self.deliver(Factor(near, np.broadcast_to(numbers, (2,) * len(bag)).sum(axis=-1)))
            self.tables[v], self.messages[v] = [], []
        return self.root()

    def deliver(self, factor: Factor) -> None:
        """Put a table of numbers into its bucket."""
        if factor.scope:
            self.tables[min(factor.scope, key=self.place.__getitem__)].append(factor)
        else:
            self.constants.append(factor.table)

    def sum_nodes(self, v: int, bag: tuple[int, ...]) -> None:
        """m(s) = Σ_x W(s, x) · lit_x · Π_j m_j(s, x); terms that are 0 are dropped."""
        weights = _spread(self.multiplied(self.tables[v], bag), bag)
        terms = _spread(self.products(v, bag), bag)
        entries = list(map(_sum, weights[0::2], weights[1::2], terms[0::2], terms[1::2]))
        near = bag[:-1]
        if near:
            table = _objects(entries).reshape((2,) * len(near))
            self.messages[min(near, key=self.place.__getitem__)].append(Factor(near, table))
        else:
            self.parts += entries

    def products(self, v: int, bag: tuple[int, ...]) -> np.ndarray:
        """The table lit_x · Π_j m_j(s, x), with an axis for every variable of the bag (see `aligned`)."""
        literals = _objects([var(self.names[v], complement=True), var(self.names[v])])
        messages = self.messages[v]
        own = {v}.union(*(m.scope for m in messages))
        scope = tuple(u for u in bag if u in own)
        columns = [_spread(aligned(m, scope), scope) for m in (Factor((v,), literals), *messages)]
        entries = [
            None if None in row else product(row) if len(row) > 1 else row[0] for row in zip(*columns, strict=True)
        ]
        return aligned(Factor(scope, _objects(entries).reshape((2,) * len(scope))), bag)

    def root(self) -> Node:
        parts = [part for part in self.parts if part is not None]
        constant = float(self.multiplied([Factor((), c) for c in self.constants], ()))
        if len(parts) < len(self.parts) or not constant:  # products of positive numbers do not underflow
            return ZERO
        root = parts[0] if len(parts) == 1 else product(parts)
        weight = ldexp(constant, self.exponent)
        return root if weight == 1 else weighted_sum((weight,), (root,))

    def multiplied(self, factors: Sequence[Factor], bag: tuple[int, ...]) -> np.ndarray:
        """The product of tables of numbers, with an axis for every variable of the bag."""
        result = np.ones((1,) * len(bag))
        for i, table in enumerate(sorted((aligned(f, bag) for f in factors), key=np.size)):  # small ones first
            result = self.rescaled(self.times(result, table) if i else table)
        return result

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        b = self.rescaled(b)
        with np.errstate(under="ignore"):
            result = a * b
        _check_range(result, a, b)
        return result

    def rescaled(self, table: np.ndarray) -> np.ndarray:
        """The table, multiplied by a power of two if its largest entry is very large or small."""
        top = float(table.max())
        if not top or _SMALL < top < _LARGE:
            return table
        exponent = int(np.frexp(top)[1])
        self.exponent += exponent
        with np.errstate(under="ignore"):
            result = np.ldexp(table, -exponent)
        _check_range(result, table)
        return result


def _sum(w0: float, w1: float, c0: Node | None, c1: Node | None) -> Node | None:
    if not w1 or c1 is None:
        return weighted_sum((w0,), (c0,)) if w0 and c0 is not None else None
    if not w0 or c0 is None:
        return weighted_sum((w1,), (c1,))
    return weighted_sum((w0, w1), (c0, c1))


def _objects(entries: Sequence[Any]) -> np.ndarray:
    table = np.empty(len(entries), dtype=object)
    table[:] = entries
    return table


def _spread(table: np.ndarray, bag: tuple[int, ...]) -> list:
    """All entries of a table, with the last variable of the bag changing fastest."""
    return np.broadcast_to(table, (2,) * len(bag)).ravel().tolist()


def aligned(factor: Factor, bag: tuple[int, ...]) -> np.ndarray:
    """The table of a factor with one axis for every variable of the bag, of length 1 if it does not depend on it.

    >>> aligned(Factor((5, 2), np.array([[1, 2], [3, 4]])), (2, 3, 5)).tolist()
    [[[1, 3]], [[2, 4]]]
    """
    place = {v: i for i, v in enumerate(bag)}
    axes = sorted(range(len(factor.scope)), key=lambda i: place[factor.scope[i]])
    own = set(factor.scope)
    return factor.table.transpose(axes).reshape([2 if v in own else 1 for v in bag])


def _check_range(result: np.ndarray, *factors: np.ndarray) -> None:
    """Refuse a product of positive numbers that underflows."""
    if result.min() >= _TINY:
        return
    positive = np.logical_and.reduce(np.broadcast_arrays(*(f > 0 for f in factors)))
    if ((result < _TINY) & positive).any():
        raise CircuitError("the numbers in the tables differ too much: a product of them is out of the range of floats")

"""Layers: a circuit as few *regions*, each with several states, whose values are arrays of rows × states.

A region is a set of variables. Its states are so many distributions over them, which matrices compute:

    indicator   whether each state of one variable is possible, given what is known of it (all 1 if it is missing)
    product     elementwise product of regions with equally many states, over different variables
    outer       all products of a state of one region and a state of another; side by side for several such pairs
    sum         rows × a @ a × b: every state is a mixture of the a states below, by a column of a *table*

The value of a product is divided by its sum in every row, and the logarithm of the divisor is kept for the row. Rows in
which the variables of a region are equal are computed once, if there are few different ones: its *patterns*.
(For an epoch of a hidden tree, 12,758 rows × 111 variables: 1.13 → 0.47 s with 128 states, 0.19 → 0.11 s with 32; see
`benchmarks/regions.py`.)
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import PgccError
from pgcc.ir.blocks import Blocks
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.flat_builder import FlatBlocks
from pgcc.ir.node import var

# Patterns of a region are listed if there are at most so many. The elements of a product before it is rescaled.
_MOST, _AT_ONCE = 64, 4
# The possible states of a binary variable that is 0, 1, or missing.
_BINARY = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
# No number is less, so that no row is impossible; in circuits, it is 0.
_TINY = np.finfo(np.float32).tiny


class Kind(enum.IntEnum):
    """How the states of a region are computed."""

    INDICATOR = 0
    PRODUCT = 1
    OUTER = 2
    SUM = 3


class Region(NamedTuple):
    """A region: the kind, the regions below it (of an outer product: pairs, one after another), the number of states.

    The block of an indicator, and the number of the table of a sum, are `at`.
    """

    kind: Kind
    below: tuple[int, ...]
    width: int
    at: int = -1


class Patterns(NamedTuple):
    """The different rows that a region sees in a batch.

    Attributes
    ----------
    number : array or None
        The pattern of every row; None if every row is a pattern of its own.
    length : int
        How many there are.
    below : list
        For each region below, its pattern in each of these patterns; None if they are the same.
    possible : array
        Of an indicator: patterns × states.
    """

    number: np.ndarray | None
    length: int
    below: tuple[np.ndarray | None, ...] = ()
    possible: np.ndarray = _BINARY


Batch = list[Patterns]
Values = list[np.ndarray]


class Layers:
    """Regions in topological order, the last of which is the root, a sum with one state.

    The numbers of all tables are one vector, whose precision is that of all computations.

    Parameters
    ----------
    blocks : Blocks
        The columns of the variables.

    Examples
    --------
    >>> layers = Layers(Blocks.of(["a", "b"]))
    >>> states = [layers.sum(layers.indicator(v), 2) for v in range(2)]
    >>> root = layers.sum(layers.product(states), 1)
    >>> numbers = np.array([0.1, 0.8, 0.9, 0.2, 0.3, 0.6, 0.7, 0.4, 0.25, 0.75])  # Pr(a | s), Pr(b | s), Pr(s)
    >>> batch = layers.encode(np.array([[1, 0], [-1, -1]], np.int8))
    >>> values, logs = layers.forward(numbers, batch)
    >>> np.exp(logs).round(4).tolist()                               # 0.25·0.9·0.3 + 0.75·0.2·0.6, and 1
    [0.1575, 1.0]
    >>> layers.flows(numbers, batch, values, np.ones(2))[-2:].round(4).tolist()
    [0.6786, 1.3214]
    """

    def __init__(self, blocks: Blocks):
        self.blocks, self.regions, self.shapes = blocks, list[Region](), list[tuple[int, int]]()

    # -- structure ----------------------------------------------------------------------------------------------

    def _add(self, region: Region) -> int:
        self.regions.append(region)
        return len(self.regions) - 1

    def indicator(self, block: int) -> int:
        """The states of a variable."""
        return self._add(Region(Kind.INDICATOR, (), int(self.blocks.states[self.blocks.first[block]]), block))

    def product(self, below: Sequence[int]) -> int:
        """The elementwise product of regions; a single one is its own product."""
        return (
            self._add(Region(Kind.PRODUCT, tuple(below), self.regions[below[0]].width)) if len(below) > 1 else below[0]
        )

    def outer(self, pairs: Sequence[tuple[int, int]]) -> int:
        """The outer products of pairs of regions, side by side."""
        width = sum(self.regions[one].width * self.regions[other].width for one, other in pairs)
        return self._add(Region(Kind.OUTER, tuple(i for pair in pairs for i in pair), width))

    def sum(self, below: int, width: int) -> int:
        """Mixtures of the states of a region."""
        self.shapes.append((self.regions[below].width, width))
        return self._add(Region(Kind.SUM, (below,), width, len(self.shapes) - 1))

    @property
    def size(self) -> int:
        """How many numbers all tables have."""
        return sum(a * b for a, b in self.shapes)

    def tables(self, numbers: np.ndarray) -> list[np.ndarray]:
        """The table of every sum, as views of the vector of all numbers."""
        views, first = list[np.ndarray](), 0
        for shape in self.shapes:
            views.append(numbers[first : first + shape[0] * shape[1]].reshape(shape))
            first += views[-1].size
        return views

    def normalized(self, counts: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
        """The M-step: the numbers for which expected counts are most likely; columns of tables add up to 1.

        So many rows are added to each column, evenly.
        """
        numbers = counts.copy()
        for table in self.tables(numbers):
            table += counts.dtype.type(smoothing / len(table))
            np.maximum(table, _TINY, out=table)
            table /= table.sum(axis=0)
            np.maximum(table, _TINY, out=table)
        return numbers

    # -- rows ---------------------------------------------------------------------------------------------------

    def encode(self, codes: np.ndarray) -> Batch:
        """The patterns of all regions in some rows."""
        columns, batch = np.ascontiguousarray(self.blocks.closed(codes).T, np.intp), Batch()
        for region in self.regions:
            match region.kind:
                case Kind.INDICATOR:
                    batch.append(self._states(columns, region))
                case Kind.SUM:
                    batch.append(batch[region.below[0]])
                case Kind.PRODUCT | Kind.OUTER:
                    batch.append(_joint([batch[i] for i in region.below], len(codes)))
                case _:
                    raise AssertionError(region)
        return batch

    def _states(self, columns: np.ndarray, region: Region) -> Patterns:
        """Which states of a variable are possible: a single one, all of them, or (rarely) some."""
        first, k = self.blocks.first[region.at], region.width
        if self.blocks.size[first] == 1:
            return Patterns(columns[first] % 3, 3)
        possible = columns[first : first + k] != 0
        if not possible.any(axis=0).all():
            raise PgccError(f"a row of the data has two states of one variable (columns {first + 1} to {first + k})")
        if np.isin(possible.sum(axis=0), (1, k)).all():
            number = np.where(possible.all(axis=0), k, possible.argmax(axis=0))
            return Patterns(number, k + 1, (), np.vstack([np.eye(k), np.ones(k)]))
        some, number = np.unique(possible, axis=1, return_inverse=True)
        return Patterns(number.reshape(-1), some.shape[1], (), some.T.astype(float))

    def forward(self, numbers: np.ndarray, batch: Batch) -> tuple[Values, np.ndarray]:
        """The values of all regions (patterns × states), and log p(row) of every row."""
        tables, values, logs = self.tables(numbers), Values(), Values()
        for region, patterns in zip(self.regions, batch, strict=True):
            match region.kind:
                case Kind.INDICATOR:
                    value, log = np.asarray(patterns.possible, numbers.dtype), np.zeros(patterns.length)
                case Kind.SUM:
                    value, log = values[region.below[0]] @ tables[region.at], logs[region.below[0]]
                case Kind.PRODUCT | Kind.OUTER:
                    places = zip(region.below, patterns.below, strict=True)
                    factors = [(_at(values[i], number), _at(logs[i], number)) for i, number in places]
                    value, log = (_product if region.kind is Kind.PRODUCT else _outer)(factors)
                case _:
                    raise AssertionError(region)
            values.append(value)
            logs.append(log)
        return values, _at(np.log(values[-1][:, 0]) + logs[-1], batch[-1].number)

    def flows(self, numbers: np.ndarray, batch: Batch, values: Values, row_weights: np.ndarray) -> np.ndarray:
        """Expected counts: how often each number is used, Σ weight(row) · ∂ log p(row) / ∂ log number."""
        counts = np.zeros_like(numbers)
        tables, used = self.tables(numbers), self.tables(counts)
        weights = row_weights.astype(numbers.dtype)[:, None]
        flows: list[np.ndarray | None] = [None] * len(self.regions)
        flows[-1] = _gathered(weights, batch[-1].number, batch[-1].length)
        for i in range(len(self.regions) - 1, -1, -1):
            region, patterns, flow = self.regions[i], batch[i], flows[i]
            flows[i] = None
            if flow is None or region.kind is Kind.INDICATOR:
                continue
            if region.kind is Kind.SUM:
                below, table = region.below[0], tables[region.at]
                share = flow / values[i]
                used[region.at] += table * (values[below].T @ share)
                if self.regions[below].kind is not Kind.INDICATOR:
                    _give(flows, below, values[below] * (share @ table.T))
                continue
            parts = [flow] * len(region.below) if region.kind is Kind.PRODUCT else self._marginals(region, flow)
            for below, number, part in zip(region.below, patterns.below, parts, strict=True):
                _give(flows, below, _gathered(part, number, batch[below].length))
        return counts

    def _marginals(self, region: Region, flow: np.ndarray) -> list[np.ndarray]:
        """The flows of the factors of outer products."""
        parts, first = [], 0
        for one, other in zip(region.below[::2], region.below[1::2], strict=True):
            a, b = self.regions[one].width, self.regions[other].width
            pair = flow[:, first : first + a * b].reshape(-1, a, b)
            parts += [pair.sum(axis=2), pair.sum(axis=1)]
            first += a * b
        return parts

    # -- the circuit --------------------------------------------------------------------------------------------

    def circuit(self, numbers: np.ndarray, names: Sequence[str]) -> Circuit:
        """The circuit over these columns."""
        build, tables, nodes = FlatBlocks(), self.tables(np.asarray(numbers, float)), list[np.ndarray]()
        with collector_paused():
            for region in self.regions:
                below = [nodes[i] for i in region.below]
                match region.kind:
                    case Kind.INDICATOR:
                        first = self.blocks.first[region.at]
                        shown = names[first : first + self.blocks.size[first]]
                        literals = [var(name) for name in shown]
                        if len(shown) == 1:
                            literals.insert(0, var(shown[0], complement=True))
                        nodes.append(np.array([build.leaf(one) for one in literals]))
                    case Kind.PRODUCT:
                        nodes.append(_distinct(build.products, np.stack(below, axis=1)))
                    case Kind.OUTER:
                        pairs = zip(below[::2], below[1::2], strict=True)
                        factors = [np.stack(np.meshgrid(*pair, indexing="ij"), -1).reshape(-1, 2) for pair in pairs]
                        nodes.append(_distinct(build.products, np.concatenate(factors)))
                    case Kind.SUM:
                        nodes.append(_distinct(partial(_sums, build, below[0]), tables[region.at].T))
                    case _:
                        raise AssertionError(region)
            return from_flat(build.flat(int(nodes[-1][0])), names)


def _sums(build: FlatBlocks, below: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sums with these rows of weights over the same nodes."""
    terms = weights > 2 * _TINY
    return build.sums(terms.sum(axis=1), np.broadcast_to(below, weights.shape)[terms], weights[terms])


def _distinct(build: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Build nodes from rows, one for equal rows."""
    different, number = np.unique(rows, axis=0, return_inverse=True)
    return build(different)[number.reshape(-1)]


# -- patterns -----------------------------------------------------------------------------------------------------


def _joint(parts: Sequence[Patterns], rows: int) -> Patterns:
    """The patterns of a region from those of the regions below it."""
    numbers = [part.number for part in parts if part.number is not None]
    if len(numbers) == len(parts):
        key, size = numbers[0], parts[0].length
        for number, part in zip(numbers[1:], parts[1:], strict=True):
            if size * part.length > 4 * rows:
                key, size, _ = _renumbered(key, size)
            key, size = key * part.length + number, size * part.length
        key, count, first = _renumbered(key, size)
        if count <= min(_MOST, rows // 2):
            return Patterns(key, count, tuple(number[first] for number in numbers))
    return Patterns(None, rows, tuple(part.number for part in parts))


def _renumbered(key: np.ndarray, size: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Numbers below `size` renumbered to those that occur: the new numbers, how many, and a place of each."""
    place = np.full(size, -1)
    place[key] = np.arange(len(key))
    found = np.flatnonzero(place >= 0)
    first = place[found]
    place[found] = np.arange(len(found))
    return place[key], len(found), first


def _at(array: np.ndarray, number: np.ndarray | None) -> np.ndarray:
    return array if number is None else array.take(number, axis=0)


def _gathered(flow: np.ndarray, number: np.ndarray | None, count: int) -> np.ndarray:
    """The sum of the flows of each pattern."""
    if number is None:
        return flow
    shown = np.zeros((count, len(number)), flow.dtype)
    shown[number, np.arange(len(number))] = 1
    return shown @ flow


def _give(flows: list[np.ndarray | None], below: int, part: np.ndarray) -> None:
    given = flows[below]
    flows[below] = part if given is None else given + part


# -- products -----------------------------------------------------------------------------------------------------


def _product(factors: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The elementwise product of values, each with the logarithm of its scale."""
    (value, log), *others = factors
    for i, (other, other_log) in enumerate(others, start=1):
        value, log = value * other, log + other_log
        if i % _AT_ONCE == 0 or i == len(others):
            value, log = _rescaled(value, log)
    return value, log


def _outer(factors: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Outer products side by side, with a common scale."""
    pairs = [
        ((one[:, :, None] * other[:, None, :]).reshape(len(one), -1), one_log + other_log)
        for (one, one_log), (other, other_log) in zip(factors[::2], factors[1::2], strict=True)
    ]
    log = np.max([log for _, log in pairs], axis=0)
    scaled = [value * np.exp(its - log).astype(value.dtype)[:, None] for value, its in pairs]
    return _rescaled(np.concatenate(scaled, axis=1), log)


def _rescaled(value: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A value whose rows add up to 1."""
    total = value @ np.ones(value.shape[1], value.dtype)
    return value * (1 / total)[:, None], log + np.log(total)

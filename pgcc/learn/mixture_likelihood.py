"""Mixtures of determinantal PGCs as arrays of parameters: likelihoods and gradients of tables of rows.

A row of `parameters` is a component: its factor B (m × m), the logits of its leaves and its own logit.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pgcc.evaluate.parallel import for_chunks
from pgcc.kernels.simd import LANES
from pgcc.learn.kernels import eight, mixtures
from pgcc.learn.kernels.eight import Eights
from pgcc.learn.kernels.mixtures import Work
from pgcc.learn.kernels.tables import Batch, Table, find_entries, gather
from pgcc.rings.float64.loop import aligned

# Rows that are scored at a time: they bound the memory.
_ROWS = 1 << 13
# Eight components at a time are faster than one (see `kernels.eight`) from so many components on, and up to so many
# groups: eight larger matrices do not fit into the cache.
_FEWEST, _MOST_GROUPS = 4, 96


def log_weights(parameters: np.ndarray) -> np.ndarray:
    """log π: the softmax of the components' logits."""
    logits = parameters[:, -1]
    top = logits.max()
    return logits - (top + np.log(np.exp(logits - top).sum()))


def log_leaf_tables(leaf: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities of all codes: the softmax of the logits of each leaf."""
    tables = np.empty_like(logits)
    for first, last in pairwise(leaf):
        part = logits[:, first:last] - logits[:, first:last].max(axis=1, keepdims=True)
        tables[:, first:last] = part - np.log(np.exp(part).sum(axis=1, keepdims=True))
    return tables


class Sorter:
    """Finds the distinct rows and patterns of mini-batches, and the `entries` of blocks if needed. Not thread-safe."""

    def __init__(self, table: Table, entries: bool = True):
        self.table, self._entries = table, entries
        self._mark_row = np.full(len(table.of_row), -1)
        self._mark_pattern = np.full(len(table.pattern) - 1, -1)

    def __call__(self, drawn: np.ndarray) -> Batch:
        size = len(drawn)
        rows, local, patterns, start = (np.empty(size + extra, np.int64) for extra in (0, 0, 0, 1))
        counts = np.empty(size)
        n, p = gather(self.table, drawn, self._mark_row, self._mark_pattern, rows, counts, local, patterns, start)
        patterns, start = patterns[:p], start[: -(-p // LANES) + 1]
        entries = np.empty(int(start[-1]) if self._entries else 0, np.uint32)
        if self._entries:
            find_entries(self.table, patterns, start, entries)
        return Batch(rows[:n], counts[:n], local[:n], patterns, start, entries)


class MixtureLikelihood:
    """Σ log p(row) of mini-batches of a table, and its gradient.

    Parameters
    ----------
    table : Table
    components : int
    threads : int
        Components are shared out among them; results do not depend on their number.
    """

    def __init__(self, table: Table, components: int, threads: int = 1):
        self.table, self.components, self.threads = table, components, threads
        by_eights = components >= _FEWEST and len(table.leaf) - 1 <= _MOST_GROUPS
        self._sorted = Sorter(table, entries=not by_eights)
        self._layout = (_EightAtATime if by_eights else _OneAtATime)(table, components)

    def gradient(
        self, parameters: np.ndarray, drawn: np.ndarray, prior: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The log-likelihood of the rows drawn, and its gradient (an array that the next call overwrites).

        `prior` has counts of codes, whose log-likelihood is added to the function that the gradient is of.
        """
        if prior is None:
            prior = np.zeros(int(self.table.leaf[-1]))
        batch = self._sorted(drawn)
        weights = log_weights(parameters)
        kernels, units, work = self._layout.kernels, self._layout.units, self._layout.workspace(batch)
        rows = (self.table, batch, parameters, weights)
        for_chunks(units, 1, self.threads, lambda some: kernels.forward(*rows, some.start, some.stop, work))
        total = kernels.share(batch.counts, work.scores, work.shares)
        for_chunks(units, 1, self.threads, lambda some: kernels.backward(*rows, some.start, some.stop, prior, work))
        return total, work.gradient


class _OneAtATime:
    """The layout for one component at a time, with patterns in the lanes of vectors."""

    kernels: Any = mixtures

    def __init__(self, table: Table, components: int):
        self.units = components
        m, codes = len(table.leaf) - 1, int(table.leaf[-1])
        self._fixed = [
            np.empty((components, size))
            for size in (m * m + 2, m * m, codes, codes, len(table.observation) - 1, m * m + codes + 1)
        ]
        self._swept = np.empty((components, 0))

    def workspace(self, batch: Batch) -> Work:
        """Arrays for the intermediate results of a batch, which overwrite those of the last one."""
        if batch.start[-1] > self._swept.shape[1]:
            self._swept = np.empty((self.units, int(batch.start[-1])))
        L, inverse, leaf, log_leaf, log_mass, gradient = self._fixed
        patterns, rows = LANES * (len(batch.start) - 1), len(batch.rows)
        logdet, scores, shares = (np.empty((self.units, n)) for n in (patterns, rows, rows))
        return Work(L, inverse, self._swept, logdet, leaf, log_leaf, log_mass, scores, shares, gradient)


class _EightAtATime:
    """The layout for eight components at a time, which are in the lanes of vectors."""

    kernels: Any = eight

    def __init__(self, table: Table, components: int):
        self.units = -(-components // LANES)
        m, codes, observations = len(table.leaf) - 1, int(table.leaf[-1]), len(table.observation) - 1
        triangle, columns = m * (m + 1) // 2, m * m + codes + 1
        self._fixed = {
            "parameters": self._lanes(columns),
            "L": self._lanes(triangle),
            "inverse": self._lanes(triangle),
            "square": self._lanes(m * m),
            "leaf": self._lanes(codes),
            "log_leaf": self._lanes(codes),
            "log_mass": self._lanes(observations),
            "on_observations": self._lanes(observations),
            "in_parameters": self._lanes(columns),
            "gradient": aligned(components * columns).reshape(components, columns),
        }
        self._swept, self._rows = self._lanes(0), 0

    def workspace(self, batch: Batch) -> Eights:
        """Arrays for the intermediate results of a batch, which overwrite those of the last one."""
        if LANES * batch.start[-1] > self._swept.shape[1]:
            self._swept = self._lanes(int(batch.start[-1]))
        if len(batch.rows) > self._rows:  # there are no more patterns than rows
            self._rows = len(batch.rows)
            for name in ("scores", "shares", "on_patterns"):
                self._fixed[name] = self._lanes(self._rows)
            self._fixed["logdet"] = self._lanes(self._rows + 1)
        return Eights(swept=self._swept, **self._fixed)

    def _lanes(self, size: int) -> np.ndarray:
        return aligned(self.units * LANES * size).reshape(self.units, -1)


def component_scores(table: Table, parameters: np.ndarray, threads: int = 1) -> np.ndarray:
    """log(π_c · p_c(row)) of all distinct rows of a table: components × rows."""
    rows, sort = len(table.of_row), Sorter(table)
    scores, weights = np.empty((len(parameters), rows)), log_weights(parameters)
    for first in range(0, rows, _ROWS):
        batch = sort(np.arange(first, min(first + _ROWS, rows)))
        part = np.empty((len(parameters), len(batch.rows)))

        def work(c: slice, batch: Batch = batch, part: np.ndarray = part) -> None:
            mixtures.score_only(table, batch, parameters, weights, c.start, c.stop, part)

        for_chunks(len(parameters), 1, threads, work)
        scores[:, first : first + _ROWS] = part
    return scores


def log_likelihoods(table: Table, parameters: np.ndarray, threads: int = 1) -> np.ndarray:
    """log p(row) of all distinct rows of a table; −inf where it underflows every component."""
    scores = component_scores(table, parameters, threads)
    top = scores.max(axis=0)
    shift = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(scores - shift).sum(axis=0))

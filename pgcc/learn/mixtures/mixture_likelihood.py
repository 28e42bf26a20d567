"""The log-likelihood of a mixture of determinantal PGCs as a function of an array of parameters, and its gradient.

A row of `parameters` holds one component: its factor B (m × m), the logits of its leaves, and the logit of its weight.
"""

from __future__ import annotations

import numpy as np

from pgcc.evaluate.parallel import for_chunks
from pgcc.kernels.simd import LANES
from pgcc.learn.kernels import mixtures
from pgcc.learn.kernels.encoded_tables import Batch, Table, find_entries, gather
from pgcc.learn.kernels.mixtures import Work

# The number of rows that are scored at a time, which bounds memory.
_ROWS = 1 << 13


class BatchMaker:
    """Makes a `Batch` of the rows of a table that were drawn. Not thread-safe."""

    def __init__(self, table: Table):
        self.table = table
        self._mark_row = np.full(len(table.of_row), -1)
        self._mark_pattern = np.full(len(table.pattern) - 1, -1)

    def __call__(self, drawn: np.ndarray) -> Batch:
        size = len(drawn)
        rows, local, patterns, start = (np.empty(size + extra, np.int64) for extra in (0, 0, 0, 1))
        counts = np.empty(size)
        n, p = gather(self.table, drawn, self._mark_row, self._mark_pattern, rows, counts, local, patterns, start)
        patterns, start = patterns[:p], start[: -(-p // LANES) + 1]
        entries = np.empty(int(start[-1]), np.uint32)
        find_entries(self.table, patterns, start, entries)
        return Batch(rows[:n], counts[:n], local[:n], patterns, start, entries)


class MixtureLikelihood:
    """Σ log p(row) of mini-batches of a table, and its gradient.

    Parameters
    ----------
    table : Table
    components : int
    threads : int
        The number of threads, which share the components; results do not depend on it.
    """

    def __init__(self, table: Table, components: int, threads: int = 1):
        self.table, self.components, self.threads = table, components, threads
        self._make_batch = BatchMaker(table)
        m, codes = len(table.leaf) - 1, int(table.leaf[-1])
        self._fixed = [
            np.empty((components, size))
            for size in (m * m + 2, m * m, codes, codes, len(table.observation) - 1, m * m + codes + 1)
        ]
        self._swept = np.empty((components, 0))

    def gradient(
        self, parameters: np.ndarray, drawn: np.ndarray, prior: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """The log-likelihood of the rows drawn, and the gradient (an array that the next call overwrites).

        `prior` has pseudo-counts of codes, which smooth the leaves: the gradient includes that of Σ prior · log leaf.
        """
        if prior is None:
            prior = np.zeros(int(self.table.leaf[-1]))
        batch = self._make_batch(drawn)
        weights = _log_weights(parameters)
        work, rows = self.workspace(batch, int(batch.start[-1])), (self.table, batch, parameters, weights)
        count, threads = self.components, self.threads
        for_chunks(count, 1, threads, lambda some: mixtures.forward(*rows, some.start, some.stop, True, work))
        total = mixtures.compute_responsibilities(batch.counts, work.scores, work.responsibilities)
        for_chunks(count, 1, threads, lambda some: mixtures.backward(*rows, some.start, some.stop, prior, work))
        return total, work.gradient

    def workspace(self, batch: Batch, minors: int) -> Work:
        """Arrays for the intermediate results of a batch, which overwrite those of the last one."""
        if minors > self._swept.shape[1]:
            self._swept = np.empty((self.components, minors))
        L, inverse, leaf, log_leaf, log_mass, gradient = self._fixed
        patterns, rows = LANES * (len(batch.start) - 1), len(batch.rows)
        logdet, scores, responsibilities = (np.empty((self.components, n)) for n in (patterns, rows, rows))
        return Work(L, inverse, self._swept, logdet, leaf, log_leaf, log_mass, scores, responsibilities, gradient)


def component_scores(table: Table, parameters: np.ndarray, threads: int = 1) -> np.ndarray:
    """log(π_c · p_c(row)) of all distinct rows of a table: components × rows."""
    rows, make_batch = len(table.of_row), BatchMaker(table)
    scores, weights = np.empty((len(parameters), rows)), _log_weights(parameters)
    for first in range(0, rows, _ROWS):
        batch = make_batch(np.arange(first, min(first + _ROWS, rows)))
        part = np.empty((len(parameters), len(batch.rows)))

        def work(c: slice, batch: Batch = batch, part: np.ndarray = part) -> None:
            own = MixtureLikelihood(table, 1).workspace(batch, int(np.diff(batch.start).max()))._replace(scores=part)
            mixtures.forward(table, batch, parameters, weights, c.start, c.stop, False, own)

        for_chunks(len(parameters), 1, threads, work)
        scores[:, first : first + _ROWS] = part
    return scores


def log_likelihoods(table: Table, parameters: np.ndarray, threads: int = 1) -> np.ndarray:
    """log p(row) of all distinct rows of a table; −inf if a row has probability 0 under every component."""
    return np.logaddexp.reduce(component_scores(table, parameters, threads), axis=0)


def _log_weights(parameters: np.ndarray) -> np.ndarray:
    """log π: the log-softmax of the logits of the components."""
    logits = parameters[:, -1]
    return logits - np.logaddexp.reduce(logits)

"""Missing values in mixtures of trees of one structure."""

from __future__ import annotations

import numpy as np

from pgcc.builders import parents_first
from pgcc.ir.blocks import Blocks
from pgcc.learn.kernels import missing_trees as kernels


class MissingTrees:
    """The part of the likelihood of rows that missing values make nonlinear, for many trees of one structure.

    Variables have states, two or more; the states of all variables are numbered in order. A table has
    Pr(state t | state s of the parent) at [t, s, component], states × (most states of a variable) × components; for a
    root, s = 0. Factors whose variable and parent are both observed are a matrix product (`LogLinear`); the others are
    added by `add_logs`, and counted by `add_flows`.

    Parameters
    ----------
    parents : array
        The parent of every variable; −1 for a root.
    blocks : Blocks
        The columns of every variable: one, which is 0 or 1 (the states 0 and 1), or one for each of its states.

    Examples
    --------
    >>> trees = MissingTrees(np.array([-1, 0]), Blocks.of(["x", "y"]))
    >>> table = np.zeros((4, 2, 1))
    >>> table[:2, 0, 0], table[2:, :, 0] = [0.4, 0.6], [[0.5, 0.1], [0.5, 0.9]]
    >>> logs = np.zeros((2, 1))
    >>> trees.add_logs(trees.possible(np.array([[0, 1], [-1, 1]], np.int8)), table, logs)
    >>> np.exp(logs[:, 0]).round(9).tolist()
    [1.0, 0.74]
    """

    def __init__(self, parents: np.ndarray, blocks: Blocks):
        self._blocks = blocks
        self._sizes = blocks.states[blocks.first]
        self._first = np.concatenate([[0], np.cumsum(self._sizes)])
        order = np.array(parents_first(parents.tolist()), np.int64)
        self._tree = kernels.Structure(order, parents.astype(np.int64), self._first)
        self._owner = np.repeat(np.arange(len(parents)), self._sizes)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a table without its last axis: all states × the most states of a variable."""
        return len(self._owner), int(self._sizes.max())

    def possible(self, codes: np.ndarray) -> np.ndarray:
        """The states that are possible in rows of codes (1, 0, and −1 if missing), rows × states."""
        alone = self._blocks.size == 1
        columns = np.repeat(np.arange(codes.shape[1]), np.where(alone, 2, 1))
        out = np.zeros(len(columns), bool)
        out[self._first[:-1]] = alone[self._blocks.first]
        return (codes[:, columns] != np.where(out, 1, 0)).astype(np.uint8)

    def add_logs(self, possible: np.ndarray, table: np.ndarray, logs: np.ndarray) -> None:
        """Add the logarithm of the factors that touch a missing variable, with these summed out, rows × components."""
        totals = np.ones_like(logs)
        kernels.walk_islands(self._tree, possible, table, _scale(table), self._work(table), totals, logs)
        with np.errstate(divide="ignore"):
            logs += np.log(totals)

    def add_flows(
        self, possible: np.ndarray, table: np.ndarray, responsibilities: np.ndarray, flows: np.ndarray
    ) -> None:
        """Add Σ responsibilities · Pr(t, s | what is known of a row) of these factors to flows[t, s, component]."""
        scale, work = _scale(table), self._work(table)
        kernels.count_islands(self._tree, possible, table, scale, work, responsibilities, flows)

    def _work(self, table: np.ndarray) -> kernels.Work:
        n, (states, _), width = len(self._sizes), self.shape, kernels.WIDTH
        arrays = [np.zeros(shape, table.dtype) for shape in (width, (1, width), width, *[(states, width)] * 2)]
        return kernels.Work(np.empty(n, np.int64), np.empty(n), *arrays)


def _scale(table: np.ndarray) -> kernels.Scale:
    """Numbers are kept above 2^−126 or 2^−1022, exact to probabilities of 2^−100 or 2^−820."""
    number, depth = table.dtype.type, -np.finfo(table.dtype).minexp
    bits = depth // 5
    with np.errstate(divide="ignore"):
        least = np.log2(table.min(axis=2), dtype=np.float64)
    return kernels.Scale(number(2.0**-bits), number(2.0**bits), float(bits), float(depth), least)

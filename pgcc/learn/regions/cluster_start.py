"""Tables to start EM from: states are clusters of rows instead of noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.learn.regions.layers import Kind, Layers
from pgcc.learn.tables.packed_rows import Rows

# The number of rows to find clusters from, and how sharp clusters are.
_SAMPLE, _SHARPNESS = 2000, 10.0


class ClusterStart:
    """Some rows, and some of them as the centers of soft clusters.

    Parameters
    ----------
    rows : Rows
    rng : Generator
    """

    def __init__(self, rows: Rows, rng: np.random.Generator):
        self._codes = rows.codes(np.sort(next(rows.draw(_SAMPLE, rng))))
        self._seen = np.where(self._codes < 0, 0.5, self._codes)
        self._different, self._rng = np.unique(self._seen, axis=0), rng
        self._scale = rows.total / len(self._codes)

    def centers(self, count: int) -> np.ndarray:
        """Different rows at random, as far as there are any."""
        return self._rng.permutation(self._different)[np.arange(count) % len(self._different)]

    def shares(self, centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The share of every cluster in every row, by the sum of the weights of columns in which row and center differ.

        >>> from pgcc.learn.tables.read_rows import read_rows
        >>> start = ClusterStart(read_rows([[0, 0], [0, 1]]), np.random.default_rng(0))
        >>> start.shares(np.array([[0, 0], [0, 1]]), np.array([1.0, 0.1])).round(2).tolist()
        [[0.73, 0.27], [0.27, 0.73]]
        """
        # Σ w_j · |x_j − c_j|, for c_j of 0 and 1
        far = (self._seen * weights) @ (1 - 2 * centers).T + centers @ weights
        near = np.exp(_SHARPNESS * (far.min(axis=1, keepdims=True) - far))
        return near / near.sum(axis=1, keepdims=True)

    def counts(self, layers: Layers, shares: Sequence[np.ndarray]) -> np.ndarray:
        """The counts of the tables of layers, if the states of each sum have these shares of the rows."""
        states, tables = list[np.ndarray](), list[np.ndarray]()
        for region, patterns in zip(layers.regions, layers.encode(self._codes), strict=True):
            below = [states[i] for i in region.below]
            match region.kind:
                case Kind.INDICATOR:
                    states.append(patterns.possible[patterns.number])
                case Kind.PRODUCT:
                    states.append(below[0])
                case Kind.OUTER:
                    pairs = zip(below[::2], below[1::2], strict=True)
                    parts = [(a[:, :, None] * b[:, None, :]).reshape(len(a), -1) for a, b in pairs]
                    states.append(np.concatenate(parts, axis=1))
                case Kind.SUM:
                    states.append(shares[region.at])
                    tables.append(below[0].T @ states[-1])
                case _:
                    raise AssertionError(region)
        return self._scale * np.concatenate([table.reshape(-1) for table in tables])

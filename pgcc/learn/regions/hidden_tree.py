"""HiddenTree: hidden variables along a Chow–Liu tree, whose tables are tied by a small net, or free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from pgcc.builders import parents_first
from pgcc.cluster import Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import State
from pgcc.learn.common.estimator import Estimator, check_choice, check_positive, check_whole
from pgcc.learn.common.optimizers import Adam, MiniBatches
from pgcc.learn.common.training import Run, RunPlan
from pgcc.learn.regions.layer_training import LayerEM, LayerLikelihood
from pgcc.learn.regions.layers import Layers
from pgcc.learn.regions.tied_tables import TiedBatches, TiedTables
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows
from pgcc.learn.trees.tree_estimators import ChowLiu

PARAMETERS = ("tied", "free")
# The decay of the moving average of its parameters, per mini-batch.
_EMA = 0.99


@dataclass(eq=False, repr=False)
class HiddenTree(Estimator):
    """docs"""

    n_states: int = 32
    parameters: str = "tied"
    _: KW_ONLY
    max_iter: int = 100
    n_iter_no_change: int = 10
    learning_rate: float = 0.02
    batch_size: int = 256
    smoothing: float = 1.0
    binarize: float | None = None
    exclude_empty: bool | str = "auto"
    random_state: Any = 0
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """One run, of Adam or of EM."""
        epochs, patience = (
            check_whole("max_iter", self.max_iter),
            check_whole("n_iter_no_change", self.n_iter_no_change),
        )
        batch = check_whole("batch_size", self.batch_size)
        rate = check_positive("learning_rate", self.learning_rate)
        smoothing = check_positive("smoothing", self.smoothing, zero=True)
        layers = self._layers(data)
        likelihood = LayerLikelihood(layers, data, batch)
        if check_choice("parameters", self.parameters, PARAMETERS) == "free":
            start = cluster_counts(layers, self._parents(data), data.rows, np.random.default_rng(seed))
            make_em = partial(LayerEM, likelihood, start, smoothing, _MINI, seed)
            return [RunPlan(make_em, epochs, patience, *LayerEM.shapes(layers))]
        tied = self._tied(data, layers)

        def make_adam(state: State | None) -> MiniBatches:
            adam = Adam(tied.start(np.random.default_rng(seed)), ema_decay=_EMA)
            if state is not None:
                adam.restore(state)
            return MiniBatches(TiedBatches(likelihood, tied), adam, rate, 0.05, epochs, seed)

        return [RunPlan(make_adam, epochs, patience, {"theta": (float, tied.size)}, Adam.shapes(tied.size))]

    def _layers(self, data: DataSplit) -> Layers:
        states = check_whole("n_states", self.n_states, most=1 << 12)
        return tree_layers(Blocks.of(data.rows.names), self._parents(data), states)

    def _parents(self, data: DataSplit) -> np.ndarray:
        return rooted_at_centroid(ChowLiu().fit(data).trees_.parents[0])

    def _tied(self, data: DataSplit, layers: Layers) -> TiedTables:
        return TiedTables(layers, column_means(data.rows))

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        layers, learned = self._layers(data), self._keep_history(runs[0])
        if self.parameters == "tied":
            numbers = self._tied(data, layers).numbers(learned["theta"])[0]
        else:
            numbers = layers.normalized(learned["counts"], self.smoothing)
        self.circuit_ = layers.circuit(layers.normalized(numbers), data.rows.names)


def rooted_at_centroid(parents: np.ndarray) -> np.ndarray:
    """The same tree with its root where no branch has more than half of the nodes, so that branches are small.

    >>> rooted_at_centroid(np.array([-1, 0, 1, 2, 3])).tolist()
    [1, 2, -1, 2, 3]
    """
    size = np.ones(len(parents), int)
    for v in reversed(parents_first(parents.tolist())):
        if parents[v] >= 0:
            size[parents[v]] += size[v]
    heavy = np.flatnonzero(2 * size >= len(parents))
    rooted, v, above = parents.copy(), int(heavy[np.argmin(size[heavy])]), -1
    while v >= 0:  # turn the edges from here to the old root
        rooted[v], above, v = above, v, int(parents[v])
    return rooted


def tree_layers(blocks: Blocks, parents: np.ndarray, states: int) -> Layers:
    """A hidden variable for each variable, along the edges of a tree.

    The tables of the variables come first, then those of the edges, and that of the root last.
    """
    layers = Layers(blocks)
    factors = [[layers.sum(layers.indicator(v), states)] for v in range(len(parents))]
    for v in reversed(parents_first(parents.tolist())):
        message = layers.sum(layers.product(factors[v]), states if parents[v] >= 0 else 1)
        if parents[v] >= 0:
            factors[parents[v]].append(message)
    return layers


def column_means(rows: Rows) -> np.ndarray:
    """How often each column is 1, among the rows in which it is known; not too close to 0 and 1."""
    ones, known = np.zeros(rows.n), np.zeros(rows.n)
    for block in rows.blocks():
        ones += block.counts @ (block.codes == 1)
        known += block.counts @ (block.codes >= 0)
    return np.clip(ones / np.maximum(known, 1), 0.01, 0.99)


_MINI, _DECAY, _BETA, _SAMPLE = 20, 0.5, 2.0, 2000


def cluster_counts(layers: Layers, parents: np.ndarray, rows: Rows, rng: np.random.Generator) -> np.ndarray:
    """Counts for the tables of `tree_layers` from soft clusters around random rows, instead of noise.

    The state k of a hidden variable means that a row is like the k-th of these rows, mostly near the variable.
    """
    codes = rows.codes(np.sort(rng.permutation(len(rows))[:_SAMPLE]))
    blocks, h = layers.blocks, layers.shapes[-1][0]
    seen = np.where(codes < 0, 0.5, codes)
    centers = seen[rng.permutation(len(seen))[np.arange(h) % len(seen)]]
    near = _DECAY ** distances(parents)[:, blocks.block]
    shares = []
    for weights in near:  # Σ_j w_j · |x_j − c_j|, for c of 0 and 1
        far = (seen * weights) @ (1 - 2 * centers).T + centers @ weights
        joint = np.exp(_BETA * (far.min(axis=1, keepdims=True) - far))
        shares.append(joint / joint.sum(axis=1, keepdims=True))
    batch = layers.encode(codes)
    counts = np.zeros(layers.size)
    order = [v for v in reversed(parents_first(parents.tolist())) if parents[v] >= 0]
    given = [batch[2 * v].possible[batch[2 * v].number].T @ shares[v] for v in range(len(parents))]
    given += [shares[v].T @ shares[parents[v]] for v in order]
    root = int(np.flatnonzero(parents < 0)[0])
    for table, count in zip(layers.tables(counts), [*given, shares[root].sum(axis=0)[:, None]], strict=True):
        table[...] = count * len(rows) / len(codes)
    return counts


def distances(parents: np.ndarray) -> np.ndarray:
    """The number of edges between any two nodes of a tree."""
    found = np.zeros((len(parents), len(parents)), int)
    order = parents_first(parents.tolist())
    for i, v in enumerate(order[1:], start=1):
        found[v, order[:i]] = found[order[:i], v] = found[parents[v], order[:i]] + 1
    return found

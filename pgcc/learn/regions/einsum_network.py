"""EinsumNetwork: random binary trees of variables, in which a region has several sums of outer products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from pgcc.cluster import Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.estimator import Estimator, check_positive, check_whole
from pgcc.learn.common.training import Run, RunPlan
from pgcc.learn.regions.cluster_start import ClusterStart
from pgcc.learn.regions.layer_training import LayerLikelihood, em_plan
from pgcc.learn.regions.layers import Layers
from pgcc.learn.tables.data_split import DataSplit


@dataclass(eq=False, repr=False)
class EinsumNetwork(Estimator):
    """Learn an einsum network (Peharz et al. 2020), whose structure is random.

    The variables are split at random into two halves, which are split again, and so on, several times over. Each of
    these sets has some sums, over all products of a sum of one half and a sum of the other. The numbers are learned by
    EM, from a start where each sum is a cluster of rows.

    Parameters
    ----------
    n_sums : int
        The number of sums (and of distributions over the smallest sets) of each set of variables.
    depth : int
        How often sets are split.
    n_repetitions : int
        The number of random trees.
    max_iter, n_iter_no_change : int
        The largest number of epochs, and the number of epochs without a better likelihood of the validation data after
        which to stop. EM uses mini-batches in the first eight epochs, and all rows together after that.
    smoothing : float
        The number of rows that are added to every sum, evenly.
    batch_size : int
        The number of rows of a mini-batch.
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
    exclude_empty : bool or "auto"
        Whether the distribution is that given that a row is not empty (`Circuit.exclude_empty`). "auto": if no row is,
        though at least ten would be if the variables were independent; not of variables with states.
    random_state : int, numpy Generator or RandomState, or None
        The same number gives the same model.
    verbose : bool, optional
        Report every epoch on standard error. By default, a bar shows the progress if that is a terminal; False shows
        nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    n_iter_ : int
        The number of epochs made.
    history_ : dict of lists
        For every epoch: the mean log-likelihood of the training data (during the epoch) and of the validation data, and
        the seconds it took.
    best_epoch_ : int
        The epoch, counted from 0, that was kept because it was the best on the validation data.

    See Also
    --------
    pgcc.learn.HiddenTree : a structure that is found in the data

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import EinsumNetwork
    >>> X = np.array([[0, 0, 0], [1, 1, 1]] * 50)
    >>> model = EinsumNetwork(n_sums=2, n_repetitions=2).fit(X)
    >>> bool(model.score(X) > np.log(0.4))
    True
    """

    n_sums: int = 10
    depth: int = 3
    n_repetitions: int = 10
    _: KW_ONLY
    max_iter: int = 100
    n_iter_no_change: int = 5
    smoothing: float = 0.1
    batch_size: int = 256
    binarize: float | None = None
    exclude_empty: bool | str = False
    random_state: Any = 0
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """One run of EM."""
        epochs, patience = self._limits()
        smoothing, self._seed = check_positive("smoothing", self.smoothing, zero=True), seed
        layers, tree = self._structure(data)
        likelihood = LayerLikelihood(layers, data, check_whole("batch_size", self.batch_size))

        start = ClusterStart(data.rows, np.random.default_rng(seed))
        evenly = np.ones(data.rows.n)
        clusters = [start.shares(start.centers(self.n_sums), evenly) for _ in range(tree[-1] + 1)]
        counts = start.counts(layers, [*(clusters[i] for i in tree), np.ones((len(clusters[0]), 1))])
        return [em_plan(likelihood, counts, smoothing, seed, epochs, patience)]

    def _structure(self, data: DataSplit) -> tuple[Layers, list[int]]:
        sums, depth = check_whole("n_sums", self.n_sums, most=1 << 8), check_whole("depth", self.depth, 0)
        repetitions = check_whole("n_repetitions", self.n_repetitions)
        rng = np.random.default_rng(self._seed)
        return random_layers(Blocks.of(data.rows.names), sums, depth, repetitions, rng)

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        layers, counts = self._structure(data)[0], self._keep_history(runs[0])["counts"]
        self.circuit_ = layers.circuit(layers.normalized(counts, self.smoothing), data.rows.names)


def random_layers(
    blocks: Blocks, sums: int, depth: int, repetitions: int, rng: np.random.Generator
) -> tuple[Layers, list[int]]:
    """Random binary trees of variables, which the sum at the root mixes; and the tree of every table but the last.

    >>> layers, tree = random_layers(Blocks.of(["a", "b", "c"]), 2, 1, 2, np.random.default_rng(0))
    >>> layers.shapes, tree
    ([(2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (8, 1)], [0, 0, 0, 1, 1, 1])
    """
    layers, n = Layers(blocks), len(blocks.first)
    leaves, tree = [layers.indicator(v) for v in range(n)], list[int]()

    def halves(variables: np.ndarray, deeper: int) -> tuple[int, int]:
        shuffled = rng.permutation(variables)
        return region(shuffled[: len(shuffled) // 2], deeper), region(shuffled[len(shuffled) // 2 :], deeper)

    def region(variables: np.ndarray, deeper: int) -> int:
        if deeper and len(variables) > 1:
            return layers.sum(layers.outer([halves(variables, deeper - 1)]), sums)
        return layers.product([layers.sum(leaves[v], sums) for v in variables])

    pairs = []
    for i in range(repetitions if depth and n > 1 else 0):
        pairs.append(halves(np.arange(n), depth - 1))
        tree += [i] * (len(layers.shapes) - len(tree))
    top = layers.outer(pairs) if pairs else region(np.arange(n), 0)
    layers.sum(top, 1)
    return layers, tree or [0] * n

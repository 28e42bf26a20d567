"""HiddenTree: hidden variables along a Chow–Liu tree, whose tables are free, or tied by a small net."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from pgcc.builders import parents_first
from pgcc.cluster import Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import State
from pgcc.learn.common.estimator import Estimator, check_choice, check_positive, check_whole
from pgcc.learn.common.optimizers import Adam, MiniBatches
from pgcc.learn.common.training import Run, RunPlan
from pgcc.learn.regions.cluster_start import ClusterStart
from pgcc.learn.regions.layer_training import LayerLikelihood, em_plan
from pgcc.learn.regions.layers import Layers
from pgcc.learn.regions.tied_tables import TiedTables, tied_batches
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows
from pgcc.learn.trees.tree_em import chow_liu_structure
from pgcc.learn.trees.tree_mixture import Trees

PARAMETERS = ("free", "tied")
# For Adam: the decay of the moving average of the parameters, per mini-batch, and the last learning rate as a share of
# the first.
_EMA, _LAST_RATE = 0.99, 0.05
# How fast the weight of a variable decreases with its distance in the tree.
_DECAY = 0.9


@dataclass(eq=False, repr=False)
class HiddenTree(Estimator):
    """Learn a hidden Chow–Liu tree (HCLT; Liu and Van den Broeck 2021), for data in which all variables are related.

    A hidden variable with many states stands for each variable of the Chow–Liu tree of the data: given the hidden ones,
    which form the same tree, variables are independent.

    Parameters
    ----------
    n_states : int
        The number of states of every hidden variable.
    parameters : str
        "free": all entries of the tables of the tree are learned, by EM, from a start where hidden states are clusters
        of rows that are alike near a variable. "tied": they are outputs of a small neural network, which Adam learns;
        that overfits less, and wins if rows are few. (It needs some eight states or more, or it may get stuck.)
    max_iter, n_iter_no_change : int
        The largest number of epochs, and the number of epochs without a better likelihood of the validation data after
        which to stop. EM uses mini-batches in the first eight epochs, and all rows together after that.
    smoothing : float
        For free parameters: the number of rows that are added to every column of a table, evenly.
    learning_rate : float
        For tied parameters: the learning rate of Adam, which falls along a cosine.
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
    pgcc.learn.ContinuousMixture : a mixture of thousands of products or trees, tied by a net
    pgcc.learn.EinsumNetwork : random binary trees of variables
    pgcc.learn.ChowLiu : the tree without hidden variables

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import HiddenTree
    >>> X = np.array([[0, 0, 0], [1, 1, 1]] * 50)
    >>> model = HiddenTree(n_states=2).fit(X)
    >>> bool(model.score(X) > np.log(0.45))
    True
    """

    n_states: int = 64
    parameters: str = "free"
    _: KW_ONLY
    max_iter: int = 100
    n_iter_no_change: int = 5
    smoothing: float = 0.3
    learning_rate: float = 0.02
    batch_size: int = 256
    binarize: float | None = None
    exclude_empty: bool | str = "auto"
    random_state: Any = 0
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """One run, of EM or of Adam."""
        (epochs, patience), rate = self._limits(), check_positive("learning_rate", self.learning_rate)
        smoothing, rng = check_positive("smoothing", self.smoothing, zero=True), np.random.default_rng(seed)
        kind, (parents, layers) = check_choice("parameters", self.parameters, PARAMETERS), self._structure(data)
        likelihood = LayerLikelihood(layers, data, check_whole("batch_size", self.batch_size))
        if kind == "free":
            start = cluster_counts(layers, parents, data.rows, rng)
            return [em_plan(likelihood, start, smoothing, seed, epochs, patience)]
        tied = self._tied(layers, data)
        first = tied.start(rng)

        def make_adam(state: State | None) -> MiniBatches:
            adam = Adam(first, state, ema_decay=_EMA)
            return MiniBatches(tied_batches(likelihood, tied), adam, rate, _LAST_RATE, epochs, seed)

        def scores(learned: State) -> np.ndarray:
            return likelihood.logs(layers.normalized(tied.numbers(learned["theta"])[0]), data.held_out)

        learned = {"theta": (float, tied.size)}
        return [RunPlan(make_adam, epochs, patience, learned, Adam.shapes(tied.size), scores=scores)]

    def _structure(self, data: DataSplit) -> tuple[np.ndarray, Layers]:
        """The tree, and its layers."""
        parents = rooted_at_centroid(chow_liu_structure(data.rows))
        states = check_whole("n_states", self.n_states, most=1 << 12)
        return parents, tree_layers(Blocks.of(data.rows.names), parents, states)

    def _tied(self, layers: Layers, data: DataSplit) -> TiedTables:
        """The nets whose outputs are the tables."""
        return TiedTables(layers, Trees.independent(data.rows).probs[0, :, 0])

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        layers, learned = self._structure(data)[1], self._keep_history(runs[0])
        if self.parameters == "free":
            numbers = layers.normalized(learned["counts"], self.smoothing)
        else:
            numbers = layers.normalized(self._tied(layers, data).numbers(learned["theta"])[0])
        self.circuit_ = layers.circuit(numbers, data.rows.names)


# -- the structure ------------------------------------------------------------------------------------------------


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

    The tables of the variables come first, then those of the edges, from the leaves to the root, and last the root's.
    The regions 2v and 2v + 1 are the variable v, and v given its hidden variable.
    """
    layers = Layers(blocks)
    factors = [[layers.sum(layers.indicator(v), states)] for v in range(len(parents))]
    for v in reversed(parents_first(parents.tolist())):
        message = layers.sum(layers.product(factors[v]), states if parents[v] >= 0 else 1)
        if parents[v] >= 0:
            factors[parents[v]].append(message)
    return layers


def cluster_counts(layers: Layers, parents: np.ndarray, rows: Rows, rng: np.random.Generator) -> np.ndarray:
    """Counts to start EM from: a hidden variable is in its k-th state if a row is like the k-th of some rows near it.

    Neighbours then mostly have the same state. (−12.6 on plants after twelve epochs; from random tables, −14.3.)
    """
    start, columns = ClusterStart(rows, rng), layers.blocks.block
    centers = start.centers(layers.shapes[-1][0])
    states = [start.shares(centers, _DECAY ** far[columns]) for far in distances(parents)]
    *others, _ = reversed(parents_first(parents.tolist()))
    return start.counts(layers, [*states, *(states[parents[v]] for v in others), np.ones((len(states[0]), 1))])


def distances(parents: np.ndarray) -> np.ndarray:
    """The number of edges between any two nodes of a tree.

    >>> distances(np.array([-1, 0, 1])).tolist()
    [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    """
    found, order = np.zeros((len(parents), len(parents)), int), parents_first(parents.tolist())
    for i, v in enumerate(order[1:], start=1):
        found[v, order[:i]] = found[order[:i], v] = found[parents[v], order[:i]] + 1
    return found

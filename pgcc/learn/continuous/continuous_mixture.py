"""ContinuousMixture: a mixture of thousands of products or trees, tied by a small neural network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from pgcc.cluster import Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import State
from pgcc.learn.common.estimator import Estimator, check_choice, check_positive, check_whole
from pgcc.learn.common.optimizers import Adam, MiniBatches
from pgcc.learn.common.training import Run, RunPlan
from pgcc.learn.continuous.log_linear import LogLinear
from pgcc.learn.continuous.tied_mixture import TiedBatches, TiedMixture, gaussian, improved_weights, sobol_points
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.trees.tree_em import chow_liu_structure
from pgcc.learn.trees.tree_mixture import Trees

STRUCTURES = ("product", "tree")
# The decay of the moving average of the parameters, per mini-batch.
_EMA = 0.995
# After training, the Gaussian has this many times as many points; components with less than this share of a mean weight
# are left out.
_REFINED, _LEAST = 4, 0.05


@dataclass(eq=False, repr=False)
class ContinuousMixture(Estimator):
    """Learn a continuous mixture of products or trees (Correia, Gala, Quaeghebeur, de Campos and Peharz 2023).

    There is a component for every point of a Gaussian of a few dimensions; a small neural network says which one. The
    likelihood is maximized by Adam, at quasi-random points that are others for every mini-batch. What is learned is a
    mixture of the components at more points, an ordinary circuit, with weights that are improved by EM.

    Parameters
    ----------
    structure : str
        What components are: "product", variables that are independent, or "tree", Chow–Liu trees of one structure.
    n_components : int
        The number of points for a mini-batch. The mixture that is learned has up to four times as many.
    latent_dim : int
        The dimension of the Gaussian.
    tree_seed : int, optional
        By default, trees have the structure of the Chow–Liu tree. A number gives them another one that is nearly as
        good, for ensembles of models that differ.
    max_iter, n_iter_no_change : int
        The largest number of epochs, and the number of epochs without a better likelihood of the validation data after
        which to stop.
    learning_rate, batch_size
        Of Adam.
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
    component_weights_ : array
        The weights of its components.
    parameters_ : array
        The parameters of the net.
    n_iter_ : int
        The number of epochs made.
    history_ : dict of lists
        For every epoch: the mean log-likelihood of the training data (during the epoch) and of the validation data, and
        the seconds it took.
    best_epoch_ : int
        The epoch, counted from 0, that was kept because it was the best on the validation data.

    See Also
    --------
    pgcc.learn.HiddenTree : for data in which variables depend on many others
    pgcc.learn.StackedEnsemble : learn the best mixture of several models

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import ContinuousMixture
    >>> X = np.array([[0, 0, 0], [1, 1, 1]] * 100)
    >>> model = ContinuousMixture(n_components=16, learning_rate=0.01).fit(X)
    >>> bool(model.score(X) > np.log(0.4))
    True
    """

    structure: str = "product"
    n_components: int = 1024
    latent_dim: int = 8
    _: KW_ONLY
    tree_seed: int | None = None
    max_iter: int = 500
    n_iter_no_change: int = 15
    learning_rate: float = 2e-3
    batch_size: int = 256
    binarize: float | None = None
    exclude_empty: bool | str = "auto"
    random_state: Any = 0
    verbose: bool | None = None

    _learns_nonempty = True

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """One run of Adam."""
        epochs, patience = self._limits()
        rate, batch = check_positive("learning_rate", self.learning_rate), check_whole("batch_size", self.batch_size)
        components = check_whole("n_components", self.n_components, most=1 << 20)
        mixture, often = self._mixture(data), Trees.independent(data.rows).probs[0, :, 0]
        objective = TiedBatches(mixture, data.rows, data.held_out, components, batch)

        def make_trainer(state: State | None) -> MiniBatches:
            adam = Adam(mixture.start(np.random.default_rng(seed), often), state, ema_decay=_EMA)
            return MiniBatches(objective, adam, rate, 1.0, epochs, seed)

        def scores(learned: State) -> np.ndarray:
            return objective.scores(learned["theta"], _REFINED * components)

        learned, state = {"theta": (float, mixture.net.size)}, Adam.shapes(mixture.net.size)
        return [RunPlan(make_trainer, epochs, patience, learned, state, scores=scores)]

    def _mixture(self, data: DataSplit) -> TiedMixture:
        blocks = Blocks.of(data.rows.names)
        parents = np.full(len(blocks.first), -1)
        tree_seed = None if self.tree_seed is None else check_whole("tree_seed", self.tree_seed, 0)
        if check_choice("structure", self.structure, STRUCTURES) == "tree":
            parents = chow_liu_structure(data.rows, tree_seed)
        latent = check_whole("latent_dim", self.latent_dim, most=64)
        return TiedMixture(LogLinear(blocks, parents), latent, self._excludes_empty(data))

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        self.parameters_ = self._keep_history(runs[0])["theta"]
        form, self.component_weights_, table = self._components(data)
        self.circuit_ = form.circuit(self.component_weights_, table, data.rows.names)

    def _components(self, data: DataSplit) -> tuple[LogLinear, np.ndarray, np.ndarray]:
        """The components of the mixture that was learned: their weights, and their table."""
        mixture = self._mixture(data)
        table = mixture.table(self.parameters_, gaussian(sobol_points(_REFINED * self.n_components, mixture.latent)))
        weights = improved_weights(mixture, table, data.rows)
        kept = np.flatnonzero(weights > _LEAST / len(weights))
        return mixture.form, weights[kept] / weights[kept].sum(), table[:, kept]

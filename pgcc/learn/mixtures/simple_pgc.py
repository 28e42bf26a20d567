"""SimplePGC: mixtures of determinantal PGCs over groups of variables that attract each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import partial, reduce, wraps
from operator import mul
from typing import Any

import numpy as np
from scipy.special import softmax

from pgcc.cluster import Crew
from pgcc.collector import collector_paused
from pgcc.errors import PgccError
from pgcc.frontend.det_pgc import det_pgc
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, var
from pgcc.learn.common.estimator import Estimator, check_choice, check_positive, check_whole, thread_count
from pgcc.learn.common.mixing import mixture_of_learned
from pgcc.learn.common.optimizers import Adam
from pgcc.learn.common.training import Run, RunPlan, best_of
from pgcc.learn.mixtures.encoding import leaf_starts
from pgcc.learn.mixtures.mixture_training import MixtureProblem, make_trainer
from pgcc.learn.mixtures.partition import LARGEST_GROUP, Exclusive, codes_of
from pgcc.learn.mixtures.recipes import RECIPES, Recipe
from pgcc.learn.tables.data_split import DataSplit
from pgcc.passes.building import product_of, sum_of


@dataclass(eq=False, repr=False)
class SimplePGC(Estimator):
    """Learn the paper's SimplePGC, a mixture of determinantal PGCs (Zhang, Juba, Van den Broeck 2021, Section 6).

    The variables are first partitioned greedily into groups of positively dependent variables. Each component of the
    mixture is a determinantal point process over the groups, with an arbitrary distribution over the non-empty subsets
    of each group. The likelihood is maximized by Adam. (The appendix of the paper has the details.)

    A variable with three states or more is independent of all others given the component.

    Parameters
    ----------
    max_group : int
        The largest number of variables in a group (the paper's K). 1 gives a mixture of determinantal point processes.
    n_components : int
        The number of components of the mixture (the paper's C).
    recipe : str
        How to train. "auto", the default, smooths the leaves, decays the learning rate, and makes three runs with
        different rates; "paper" trains as in the paper. Both start from a mixture found by EM.
    max_iter, batch_size, learning_rate, weight_decay, n_iter_no_change : optional
        Hyper-parameters that replace those of the recipe; see `pgcc.learn.mixtures.recipes.Recipe`. An iteration is an
        epoch. The weight decay is an L2 penalty on a mini-batch, weight_decay/2 · |parameters|²; it is not decoupled.
    n_init : int
        The number of runs of every recipe, with different seeds. The run that is best on the validation data is kept.
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
    exclude_empty : bool or "auto"
        Whether the distribution is that given that a row is not empty (`Circuit.exclude_empty`). "auto": if no row is,
        though at least ten would be if the variables were independent; not of variables with states.
    random_state : int, numpy Generator or RandomState, or None
        The same number gives the same model, whatever the number of threads.
    n_jobs : int, optional
        The number of threads; −1 means one per processor. Components are divided among them (eight at a time, unless
        there are few components or many groups), which pays off for kernels of many groups.
    verbose : bool, optional
        Report every epoch on standard error. By default, a bar shows the progress if that is a terminal; False shows
        nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    parameters_ : array
        The kernel, leaves and weight of every component, one row each. They are available even if the circuit could not
        be built.
    partition_ : list of lists of str
        The groups of variables.
    n_iter_ : int
        The number of epochs of the run that was kept.
    history_ : dict of lists
        For every epoch: the number of the run ("leg"), the mean log-likelihood of the training data (during the epoch)
        and of the validation data, and the seconds it took.
    best_epoch_ : int
        The epoch in the history whose parameters were kept, because it was the best on the validation data.

    See Also
    --------
    pgcc.learn.DPP : learn a determinantal point process
    pgcc.learn.StackedEnsemble : learn the best mixture of several models
    pgcc.det_pgc : a DPP over groups, each with a distribution of its own

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import SimplePGC
    >>> rng = np.random.default_rng(0)
    >>> twins = rng.integers(0, 2, (200, 1))
    >>> X = np.hstack([twins, twins, rng.integers(0, 2, (200, 1))])
    >>> model = SimplePGC(max_group=2, n_components=1, max_iter=20).fit(X)
    >>> model.partition_
    [['x1', 'x2'], ['x3']]
    >>> bool(abs(model.score(X) - 2 * np.log(0.5)) < 0.1)
    True
    """

    max_group: int = 5
    n_components: int = 7
    recipe: str = "auto"
    _: KW_ONLY
    max_iter: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    n_iter_no_change: int | None = None
    n_init: int = 1
    binarize: float | None = None
    exclude_empty: bool | str = "auto"
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """The recipes, with every seed. Workers do one run each."""
        components, most = check_whole("n_components", self.n_components), self._most()
        planned, parts = self._recipes(seed), data.grouped(most)
        groups = parts[0].groups
        shape = components, len(groups) ** 2 + int(leaf_starts(groups)[-1]) + 1
        shapes = {"theta": (float, *shape)}, Adam.shapes(*shape)
        problem = MixtureProblem(*parts, components, thread_count(self.n_jobs))
        return [
            RunPlan(
                partial(make_trainer, recipe, run_seed),
                recipe.max_iter,
                recipe.n_iter_no_change,
                *shapes,
                shared=problem,
                scores=problem.scores,
            )
            for recipe, run_seed in planned
        ]

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        best = best_of(runs)
        if best is None:
            raise PgccError(
                "no epoch gave the validation data a finite likelihood: training diverged",
                advice="a lower learning_rate=… takes smaller steps",
            )
        groups, names = data.grouped(self._most())[0].groups, data.rows.names
        # the parameters are kept even if the circuit cannot be built
        self.__dict__.pop("circuit_", None)
        self.history_, self.parameters_ = _joined_history(runs), best.best["theta"]
        self.n_iter_ = best.epochs
        self.best_epoch_ = best.best_epoch + sum(run.epochs for run in runs[: runs.index(best)])
        self.partition_: list[list[str]] = [
            (Exclusive if isinstance(group, Exclusive) else list)(names[i] for i in group) for group in groups
        ]
        self.circuit_ = simple_pgc_circuit(self.partition_, names, leaf_starts(groups), self.parameters_)

    def _settings(self, seed: int) -> dict[str, Any]:
        return super()._settings(seed) | {"runs": [(asdict(recipe), seed) for recipe, seed in self._recipes(seed)]}

    def _most(self) -> int:
        return check_whole("max_group", self.max_group, most=LARGEST_GROUP)

    def _recipes(self, seed: int) -> list[tuple[Recipe, int]]:
        """The recipe and the seed of every run."""
        chosen: dict[str, Any] = {
            name: check_whole(name, value)
            for name in ("max_iter", "batch_size", "n_iter_no_change")
            if (value := getattr(self, name)) is not None
        }
        if self.learning_rate is not None:
            chosen["learning_rate"] = check_positive("learning_rate", self.learning_rate)
        if self.weight_decay is not None:
            chosen["weight_decay"] = check_positive("weight_decay", self.weight_decay, zero=True)
        named = RECIPES[check_choice("recipe", self.recipe, RECIPES)]
        recipes = dict.fromkeys(replace(recipe, **chosen) for recipe in named)
        runs = check_whole("n_init", self.n_init)
        return [(recipe, seed + i) for i in range(runs) for recipe in recipes]


_construct = SimplePGC.__init__


@wraps(_construct)
def _with_components(self: SimplePGC, *args: Any, components: int | None = None, **params: Any) -> None:
    """`components` is n_components, which the contract of the public surface calls so."""
    _construct(self, *args, **params if components is None else {"n_components": components, **params})


SimplePGC.__init__ = _with_components  # type: ignore[method-assign]


@dataclass(eq=False, repr=False)
class DPP(SimplePGC):
    """Learn a determinantal point process (DPP) by maximum likelihood: `SimplePGC` with one component and no groups.

    The parameters are those of `SimplePGC`, except for the two that are fixed, `max_group` and `n_components`.

    See Also
    --------
    pgcc.dpp : determinantal point processes
    pgcc.learn.SimplePGC : learn the model of the paper

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import DPP
    >>> X = np.array([[1, 0], [0, 1], [0, 0], [0, 0]] * 50)  # never both
    >>> DPP(random_state=1).fit(X).model_.prob([1, 1]) < 0.05
    True
    """

    max_group: int = field(default=1, init=False)
    n_components: int = field(default=1, init=False)


def simple_pgc_circuit(
    groups: Sequence[Sequence[str]], names: Sequence[str], leaf: np.ndarray, parameters: np.ndarray
) -> Circuit:
    """The mixture of determinantal PGCs with these parameters (see `mixture_likelihood`), as a circuit."""
    m, inside = len(groups), sum(not isinstance(group, Exclusive) for group in groups)
    with collector_paused():
        monomials = [_monomials(group) for group in groups]
        tables = [softmax(logits, axis=1) for logits in np.split(parameters[:, m * m : -1], leaf[1:-1], axis=1)]
        parts = []
        for row, *shares in zip(parameters, *tables, strict=True):
            leaves = _leaves(monomials, shares)
            factor = row[: m * m].reshape(m, m)[:inside, :inside]
            kernel = [det_pgc(factor=factor, leaves=leaves[:inside])] if inside else []
            parts.append(reduce(mul, [*kernel, *leaves[inside:]]))
        return mixture_of_learned(softmax(parameters[:, -1]).tolist(), parts, names)


def _joined_history(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """The histories of all runs joined into one, with the number of the run."""
    joined: dict[str, list[Any]] = {"leg": [i for i, run in enumerate(runs) for _ in range(run.epochs)]}
    for name in runs[0].history:
        joined[name] = [value for run in runs for value in run.history[name]]
    return joined


def _monomials(group: Sequence[str]) -> list[Node]:
    """The monomials of the sets that a group may show, in the order of their codes."""
    literals = [var(name) for name in group]
    return [product_of([literals[i] for i in places]) for places in codes_of(group)]


def _leaves(monomials: list[list[Node]], tables: list[np.ndarray]) -> list[Circuit]:
    return [
        Circuit(sum_of(zip(table.tolist(), nodes, strict=True))) for table, nodes in zip(tables, monomials, strict=True)
    ]

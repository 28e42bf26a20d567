"""SimplePGC: mixtures of determinantal PGCs over groups of variables that attract each other."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np

from pgcc.cluster import Lost, Unfinished, crew
from pgcc.errors import PgccError
from pgcc.frontend.det_pgc import det_pgc
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, var
from pgcc.learn.base import Estimator, check_positive, check_whole
from pgcc.learn.checkpoint import EVERY, Checkpoint, Pause, Place
from pgcc.learn.encoding import Grouped, leaf_starts
from pgcc.learn.evaluator import log_leaf_tables, log_weights
from pgcc.learn.mixing import mixture_of_learned
from pgcc.learn.partition import check_group
from pgcc.learn.training import Leg, Progress, Recipe, Run, Training, epochs_of, join_legs, run_from, state_of
from pgcc.passes.building import product_of, sum_of

Data = tuple[Grouped, Grouped]  # for training, and for validation

# The paper's loss is a sum over the rows of a batch, so that its decay weighs 1/128 of what it would with a mean.
_PAPER = Recipe(
    rate=1e-3, last_rate=1.0, decay=1e-3, smoothing=0.0, memory=0.0, batch=128, epochs=50, patience=50
)  # fmt: skip
_AUTO = Recipe(rate=3e-3, last_rate=0.05, decay=3e-4, smoothing=30.0, memory=0.99, batch=128, epochs=60, patience=15)
# Where data are few, slow and noisy steps overfit least, and want little smoothing; where the mixture is hard to find,
# fast ones find better ones.
RECIPES = {
    "auto": (_AUTO, replace(_AUTO, rate=1e-3, smoothing=3.0, batch=64), replace(_AUTO, rate=1e-2, smoothing=10.0)),
    "paper": (_PAPER,),
}


class SimplePGC(Estimator):
    """A mixture of determinantal PGCs (Zhang, Juba, Van den Broeck 2021, Section 6 and appendix).

    Variables are partitioned into groups, greedily, by their positive dependence. Each component is a determinantal
    point process over the groups, with any distribution over the non-empty subsets of each. Maximum likelihood by Adam.

    Parameters
    ----------
    max_group : int
        The most variables in a group (the paper's K). 1 is a mixture of determinantal point processes.
    components : int
        Of the mixture (the paper's C).
    recipe : str
        "auto", the default, smooths the leaves, lets rates fall, and runs three times, with different rates; "paper"
        trains as the paper did. Both start from a mixture found by EM.
    epochs, batch, rate, decay, patience : optional
        Instead of what the recipe says; see `pgcc.learn.training.Recipe`.
    restarts : int
        Run so many times, with different seeds. Of all runs the best on the validation data is kept.
    seed : int
        The same seed gives the same model, on any number of threads.
    threads : int
        Components are shared out among them (by eights, unless they are few, or groups many): worth it for kernels of
        many groups.
    verbose : bool
        Tell of every epoch, on standard error.

    Attributes
    ----------
    circuit_ : Circuit
    parameters_ : array
        Kernel, leaves and weight of every component, a row each. They are there even if the circuit could not be built.
    partition_ : list of lists of str
        The groups.
    history_ : dict of lists
        Of every epoch: the run ("leg"), mean log-likelihood of the training data (as it went along) and of the
        validation data, seconds.
    best_epoch_ : int
        The epoch of the history whose parameters were kept: the best on the validation data.

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import SimplePGC
    >>> rng = np.random.default_rng(0)
    >>> twins = rng.integers(0, 2, (200, 1))
    >>> X = np.hstack([twins, twins, rng.integers(0, 2, (200, 1))])
    >>> model = SimplePGC(max_group=2, components=1, epochs=20).fit(X)
    >>> model.partition_
    [['x0', 'x1'], ['x2']]
    >>> bool(abs(model.score(X) - 2 * np.log(0.5)) < 0.1)
    True
    """

    def __init__(
        self,
        max_group: int = 5,
        components: int = 7,
        recipe: str = "auto",
        *,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        decay: float | None = None,
        patience: int | None = None,
        restarts: int = 1,
        seed: int = 0,
        threads: int = 1,
        verbose: bool = False,
    ):
        self.max_group = max_group
        self.components = components
        self.recipe = recipe
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.decay = decay
        self.patience = patience
        self.restarts = restarts
        self.seed = seed
        self.threads = threads
        self.verbose = verbose

    def fit(self, X: Any, validation: Any = None, *, checkpoint: Place | None = None, cluster: Any = None) -> Self:
        """Learn groups, kernels, leaves and weights from data.

        Parameters
        ----------
        X : array, list of rows, DataFrame or path
            0 and 1; −1, NaN or None for what is missing, which is summed out. A path is of a CSV file or an array in
            .npy, which is read in pieces: it may be longer than memory.
        validation : the same, optional
            The epoch with the largest likelihood of these data is kept. By default a tenth of the rows is put aside.
        checkpoint : path, optional
            Where the state of the run is written every few epochs. A run that was killed goes on from there, and ends
            with the same parameters.
        cluster : str or distributed.Client, optional
            The address of the scheduler of a Dask cluster. Its workers run the recipe's rates and the restarts at the
            same time; what is learned is the same.
        """
        components, seed = check_whole("components", self.components), check_whole("seed", self.seed, 0)
        threads = check_whole("threads", self.threads)
        check_group(self.max_group)
        legs = self._legs(seed)
        data = self._read(X, validation, seed).grouped(self.max_group)
        settings = {"model": "SimplePGC", "legs": [asdict(leg) for leg in legs], "C": components, "K": data[0].groups}
        kept = Checkpoint(checkpoint, {**settings, "layout": "by legs"}, *(part.rows for part in data))
        found = kept.read()
        run: Run = [None] * len(legs) if found is None else run_from(*found)
        if cluster is None:
            states = _train_in_turn(legs, run, data, components, threads)
        else:
            states = _train_apart(cluster, legs, run, data, components, threads, pausing=kept.place is not None)
        written = epochs_of(run)
        for i in states:
            if self.verbose:
                print(_tell(run, i, legs), file=sys.stderr, flush=True)
            if epochs_of(run) - written >= EVERY:
                kept.write(*state_of(run))
                written = epochs_of(run)
        if epochs_of(run) > written:
            kept.write(*state_of(run))
        progress = join_legs([one for one in run if one is not None])
        if progress.best_epoch < 0:
            raise PgccError(
                "no epoch gave the validation data a finite likelihood: training diverged, take a lower rate"
            )
        names, groups = self.feature_names_in_, data[0].groups
        # what was learned is kept, whatever becomes of the circuit
        self.__dict__.pop("circuit_", None)
        self.history_, self.best_epoch_, self.parameters_ = progress.history, progress.best_epoch, progress.best
        self.partition_ = [[names[i] for i in group] for group in groups]
        self.circuit_ = simple_pgc_circuit(self.partition_, names, leaf_starts(groups), progress.best)
        return self

    def _legs(self, seed: int) -> list[Leg]:
        if not isinstance(self.recipe, str) or self.recipe not in RECIPES:
            raise PgccError(f"recipe={self.recipe!r}: choose one of {', '.join(map(repr, RECIPES))}")
        said: dict[str, Any] = {
            name: check_whole(name, value)
            for name in ("epochs", "batch", "patience")
            if (value := getattr(self, name)) is not None
        }
        if self.rate is not None:
            said["rate"] = check_positive("rate", self.rate)
        if self.decay is not None:
            said["decay"] = check_positive("decay", self.decay, zero=True)
        recipes = dict.fromkeys(replace(recipe, **said) for recipe in RECIPES[self.recipe])
        restarts = check_whole("restarts", self.restarts)
        return [Leg(recipe, seed + i) for i in range(restarts) for recipe in recipes]


class DPP(SimplePGC):
    """A determinantal point process by maximum likelihood: `SimplePGC` with one component and no groups.

    Takes the parameters of `SimplePGC`, except the two that it fixes.

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import DPP
    >>> X = np.array([[1, 0], [0, 1], [0, 0], [0, 0]] * 50)  # never both
    >>> DPP(seed=1).fit(X).model_.prob([1, 1]) < 0.05
    True
    """

    def __init__(
        self,
        recipe: str = "auto",
        *,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        decay: float | None = None,
        patience: int | None = None,
        restarts: int = 1,
        seed: int = 0,
        threads: int = 1,
        verbose: bool = False,
    ):
        super().__init__(
            1, 1, recipe, epochs=epochs, batch=batch, rate=rate, decay=decay, patience=patience,
            restarts=restarts, seed=seed, threads=threads, verbose=verbose,
        )  # fmt: skip


def simple_pgc_circuit(
    groups: Sequence[Sequence[str]], names: Sequence[str], leaf: np.ndarray, parameters: np.ndarray
) -> Circuit:
    """The mixture of determinantal PGCs with these parameters (see `pgcc.learn.evaluator`), as a circuit."""
    m = len(groups)
    with collector_paused():
        monomials = [_monomials(group) for group in groups]
        tables = np.exp(log_leaf_tables(leaf, parameters[:, m * m : -1]))
        parts = [
            det_pgc(factor=row[: m * m].reshape(m, m), leaves=_leaves(monomials, np.split(table, leaf[1:-1])))
            for row, table in zip(parameters, tables, strict=True)
        ]
        weights = np.exp(log_weights(parameters))
        return mixture_of_learned(weights.tolist(), parts, names)


def _train_in_turn(legs: Sequence[Leg], run: Run, data: Data, components: int, threads: int) -> Iterator[int]:
    """One leg after another, from where the run has them; after every epoch the number of its leg."""
    training = Training(*data, components, threads)
    for i, leg in enumerate(legs):
        progress = run[i] = run[i] or training.begin(leg)
        for _ in training.epochs(leg, progress):
            yield i


def _train_apart(
    cluster: Any, legs: Sequence[Leg], run: Run, data: Data, components: int, threads: int, pausing: bool
) -> Iterator[int]:
    """Every leg by a worker of a cluster: no leg knows of another, so they end as they do one after another.

    Workers write no files: to have the state of a leg here from time to time, it pauses, and goes on from there.
    """
    with crew(cluster) as workers:
        on = [i for i, progress in enumerate(run) if _is_on(progress)]
        parts = [(legs[i], run[i]) for i in on]
        for k, came in workers.pursue(_train_leg, parts, workers.send(data), components, threads, pausing):
            if isinstance(came, Lost):
                raise PgccError(
                    f"run {on[k] + 1} of {len(legs)} was lost with its worker, again and again: {came.reason}"
                )
            _, run[on[k]] = came
            yield on[k]


def _train_leg(
    part: tuple[Leg, Progress | None], data: Data, components: int, threads: int, pausing: bool
) -> tuple[Leg, Progress] | Unfinished:
    """A leg to its end, or until it is time to pause."""
    (leg, before), pause = part, Pause()
    training = Training(*data, components, threads)
    progress = deepcopy(before) or training.begin(leg)  # what is at home may be the same object
    for _ in training.epochs(leg, progress):
        if pausing and pause.is_due() and progress.adam is not None:
            return Unfinished((leg, progress))
    return leg, progress


def _monomials(group: Sequence[str]) -> list[Node]:
    """Of the non-empty subsets, by their bits."""
    literals = [var(name) for name in group]
    return [
        product_of([literal for i, literal in enumerate(literals) if bits >> i & 1])
        for bits in range(1, 1 << len(group))
    ]


def _leaves(monomials: list[list[Node]], tables: list[np.ndarray]) -> list[Circuit]:
    return [
        Circuit(sum_of(zip(table.tolist(), nodes, strict=True))) for table, nodes in zip(tables, monomials, strict=True)
    ]


def _tell(run: Run, i: int, legs: Sequence[Leg]) -> str:
    """How far the run is, of which the i-th leg has just done an epoch."""
    progress = run[i]
    assert progress is not None
    history, done = progress.history, progress.epochs
    best = max(one.best_score for one in run if one is not None)
    left = sum(
        leg.recipe.epochs - (one.epochs if one else 0) for leg, one in zip(legs, run, strict=True) if _is_on(one)
    )
    seconds = left * math.fsum(history["seconds"]) / done
    which = f"run {i + 1}/{len(legs)}, " if len(legs) > 1 else ""
    return (
        f"{which}epoch {done}/{legs[i].recipe.epochs}: train {history['train'][-1]:.4f}, "
        f"validation {history['validation'][-1]:.4f}, best {best:.4f}, at most {seconds:.0f} s left"
    )


def _is_on(progress: Progress | None) -> bool:
    return progress is None or progress.adam is not None

"""The training objective of SimplePGC: the log-likelihood of a mixture of determinantal PGCs, regularized."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pgcc.learn.common.checkpoint import State
from pgcc.learn.common.optimizers import Adam, Function, MiniBatches
from pgcc.learn.kernels.encoded_tables import Table
from pgcc.learn.mixtures.encoding import Grouped
from pgcc.learn.mixtures.initialization import IndependentGroups, start_by_em
from pgcc.learn.mixtures.mixture_likelihood import MixtureLikelihood, log_likelihoods
from pgcc.learn.mixtures.partition import Exclusive
from pgcc.learn.mixtures.recipes import Recipe
from pgcc.locks import cached_property


class MixtureProblem:
    """What all runs of a fit share: the data, and the number of components.

    Parameters
    ----------
    data, validation : Grouped
    components, threads : int
    """

    def __init__(self, data: Grouped, validation: Grouped, components: int, threads: int):
        self.data, self.validation, self.components, self.threads = data, validation, components, threads
        self.start = lru_cache(maxsize=1)(self._start)  # runs with the same seed follow each other

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers of a cluster recompute everything that is derived from the data."""
        return MixtureProblem, (self.data, self.validation, self.components, self.threads)

    def _start(self, seed: int) -> np.ndarray:
        """The initial parameters."""
        return start_by_em(self._groups, self.components, np.random.default_rng(seed))

    @cached_property
    def _groups(self) -> IndependentGroups:
        return IndependentGroups(self.data.start, sum(not isinstance(group, Exclusive) for group in self.data.groups))

    def scores(self, learned: State) -> np.ndarray:
        """The log-likelihood of every distinct row of the validation data."""
        return self.validation.each(partial(log_likelihoods, parameters=learned["theta"], threads=self.threads))

    @cached_property
    def code_frequencies(self) -> np.ndarray:
        """The relative frequency of every code of a leaf, divided by the number of rows."""
        return self._groups.code_frequencies() / self.data.start.counts.sum()


def make_trainer(recipe: Recipe, seed: int, state: State | None, problem: MixtureProblem) -> MiniBatches:
    """The trainer for a recipe, new or restored from a state."""
    start = problem.start(seed) if state is None else state["theta"]
    adam = Adam(start, state, ema_decay=recipe.ema_decay)
    return MiniBatches(
        MixtureBatches(problem, recipe), adam, recipe.learning_rate, recipe.last_rate, recipe.max_iter, seed
    )


class MixtureBatches:
    """The objective Σ log p(row) of mini-batches, with smoothing of leaves and weight decay."""

    def __init__(self, problem: MixtureProblem, recipe: Recipe):
        self._problem, self._recipe = problem, recipe
        self.rows = problem.data.rows.epoch
        self.batch = recipe.batch_size
        self._likelihood: MixtureLikelihood | None = None

    def batches(self, rng: np.random.Generator) -> Iterator[Function]:
        """All rows once, in random order; see `Objective`."""
        for table, drawn in self._problem.data.batches(self.batch, rng):
            yield partial(self._value_and_gradient, table, drawn)

    def _value_and_gradient(self, table: Table, drawn: np.ndarray, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ log p(row), and the gradient of Σ log p(row) + Σ prior · log leaf − weight_decay/2 · |parameters|²."""
        if self._likelihood is None or self._likelihood.table is not table:
            self._likelihood = MixtureLikelihood(table, self._problem.components, self._problem.threads)
        prior = self._recipe.smoothing * len(drawn) * self._problem.code_frequencies
        value, gradient = self._likelihood.gradient(parameters, drawn, prior)
        gradient[:, :-1] -= self._recipe.weight_decay * parameters[:, :-1]  # not on the logits of the mixture weights
        return value, gradient

    def validate(self, theta: np.ndarray) -> float:
        """The mean log-likelihood of the validation data."""
        rows = self._problem.validation.rows
        return float(rows.counts @ self._problem.scores({"theta": theta})) / rows.total

"""The best of several settings of an estimator, on validation data."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Self

import numpy as np

from pgcc.errors import PgccError, brief
from pgcc.learn.base import Estimator, check_whole
from pgcc.learn.candidates import Failed, fit_each
from pgcc.learn.checkpoint import Place
from pgcc.learn.shared import Shared

# The grid of the paper, for SimplePGC.
PAPER_GRID = {"max_group": (1, 2, 5, 7), "components": (1, 4, 7, 10, 20)}


class GridSearch(Estimator):
    """Fit an estimator with every combination of some parameters, and keep the one that is best on validation data.

    Parameters
    ----------
    estimator : Estimator
        Copies of it are fitted.
    grid : dict of lists, optional
        Values of its parameters by name. By default those of the paper: K ∈ {1, 2, 5, 7} and C ∈ {1, 4, 7, 10, 20}.
    threads : int
        Candidates that are fitted at a time. What is found does not depend on it.
    seed : int
        Of the rows that are put aside where there is no validation data.
    verbose : bool
        Tell of every candidate, on standard error.

    Attributes
    ----------
    best_estimator_ : Estimator
    best_params_ : dict
    results_ : list of dicts
        Of every candidate, the best first: its parameters, "validation" (the mean log-likelihood of the validation
        data), and "failure" (None, or why it could not be fitted). Those that failed are last, with a NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import GridSearch, MixtureOfTrees
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 4))
    >>> GridSearch(MixtureOfTrees(), {"components": [1, 3]}).fit(X).best_params_.keys()
    dict_keys(['components'])
    """

    def __init__(
        self,
        estimator: Estimator,
        grid: Mapping[str, Sequence[Any]] | None = None,
        *,
        threads: int = 1,
        seed: int = 0,
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.grid = grid
        self.threads = threads
        self.seed = seed
        self.verbose = verbose

    def fit(self, X: Any, validation: Any = None, *, checkpoint: Place | None = None, cluster: Any = None) -> Self:
        """Fit every candidate to rows of 0 and 1; `validation` is data on which the choice is made.

        A candidate that fails is left out, with a warning. For the forms of data see `Estimator.fit`. `checkpoint` is a
        folder in which every candidate keeps the state of its run: after a crash those that were done are not fitted
        again, and the others go on. With the address of a Dask cluster, its workers fit the candidates.
        """
        if not isinstance(self.estimator, Estimator):
            raise PgccError(f"estimator={self.estimator!r}: a search is for the parameters of an estimator")
        threads, seed = check_whole("threads", self.threads), check_whole("seed", self.seed, 0)
        data = self._read(X, validation, seed)
        candidates = self._candidates()
        scores = [math.nan] * len(candidates)
        failures: list[str | None] = [None] * len(candidates)
        for i, candidate, score in fit_each(candidates, data, _validation_score, checkpoint, cluster, threads):
            if isinstance(score, Failed):
                failures[i] = score.reason
                continue
            candidates[i], scores[i] = candidate, score
            if self.verbose:
                print(f"{candidate}: {score:.6f}", file=sys.stderr, flush=True)
        order = np.argsort(-np.array(scores), kind="stable").tolist()
        best = candidates[order[0]]
        searched = list(self._grid())
        self.results_ = [
            {
                **{name: candidates[i].get_params()[name] for name in searched},
                "validation": scores[i],
                "failure": failures[i],
            }
            for i in order
        ]
        self.best_estimator_, self.best_params_ = best, {name: best.get_params()[name] for name in searched}
        self.circuit_ = best.circuit_
        return self

    def _grid(self) -> Mapping[str, Sequence[Any]]:
        grid = PAPER_GRID if self.grid is None else self.grid
        if not isinstance(grid, Mapping):
            raise PgccError(f"grid={brief(grid)}: it is a dict, of the values to be tried by the names of parameters")
        for name, values in grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise PgccError(f"grid[{name!r}] = {values!r}: the values to be tried are a list")
        return grid

    def _candidates(self) -> list[Estimator]:
        grid = self._grid()
        params = self.estimator.get_params()
        return [
            type(self.estimator)(**params).set_params(**dict(zip(grid, values, strict=True)))
            for values in product(*grid.values())
        ]


def _validation_score(fitted: Estimator, data: Shared) -> float:
    """The mean log-likelihood of the validation data: where the best epoch was chosen by it, it is known."""
    best = getattr(fitted, "best_epoch_", -1)
    return fitted.history_["validation"][best] if best >= 0 else fitted.score(data.held_out)  # type: ignore[attr-defined]

"""Choose the best of several settings of an estimator, on validation data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from itertools import product
from typing import Any

import numpy as np

from pgcc.errors import PgccError, brief
from pgcc.learn.common.checkpoint import CheckpointPath
from pgcc.learn.common.estimator import Estimator, seed_of, thread_count, with_parameters
from pgcc.learn.ensembles.candidates import Fitted, fit_all
from pgcc.learn.tables.data_split import DataSplit

# The grid of the paper, for SimplePGC.
PAPER_GRID = {"max_group": (1, 2, 5, 7), "n_components": (1, 4, 7, 10, 20)}


@with_parameters
class GridSearch(Estimator):
    """Fit an estimator with every combination of some parameters, and keep the one that is best on validation data.

    This works like scikit-learn's `GridSearchCV` (which accepts these estimators too), with a single split and without
    refitting. Work that candidates have in common is done once. A search can be interrupted and resumed
    (`checkpoint=`), and shared among the workers of a cluster (`cluster=`).

    Parameters
    ----------
    estimator : Estimator
        The estimator, of which copies are fitted.
    param_grid : dict of lists, optional
        The values to try for each parameter, by name. By default, those of the paper: K ∈ {1, 2, 5, 7} and
        C ∈ {1, 4, 7, 10, 20}.
    random_state : int, numpy Generator or RandomState, or None
        The seed for choosing the rows that are set aside if you give no validation data.
    n_jobs : int, optional
        The number of candidates to fit at a time; −1 means one per processor. It does not change the result.
    verbose : bool, optional
        Report every candidate on standard error. By default, a bar shows the progress if that is a terminal; False
        shows nothing.

    Attributes
    ----------
    best_estimator_ : Estimator
        The best candidate, fitted.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its mean log-likelihood of the validation data.
    best_index_ : int
        Its position in `cv_results_`.
    cv_results_ : dict of lists and arrays
        For every candidate, in the order of the grid: "params", "param_NAME" for every parameter that is searched,
        "split0_test_score" and "mean_test_score" (the mean log-likelihood of the validation data; both are the same,
        because there is a single split), "rank_test_score" (1 is the best), and "failure" (None, or the reason why it
        could not be fitted, in which case its score is NaN). `pandas.DataFrame(search.cv_results_)` turns it into a
        table.

    See Also
    --------
    pgcc.learn.SimplePGC : learn the model of the paper
    pgcc.learn.PGC : learn the best mixture of several models

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import GridSearch, MixtureOfTrees
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 4))
    >>> search = GridSearch(MixtureOfTrees(), {"n_components": [1, 3]}).fit(X)
    >>> search.cv_results_["params"]
    [{'n_components': 1}, {'n_components': 3}]
    >>> search.best_params_ == search.cv_results_["params"][search.best_index_]
    True
    """

    estimator: Estimator
    param_grid: Mapping[str, Sequence[Any]] | None = None
    _: KW_ONLY
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool | None = None

    def _fit(self, X: Any, validation: Any, checkpoint: CheckpointPath | None, cluster: Any) -> None:
        """Fit every candidate and keep the best. A candidate that fails is left out, with a warning.

        After a crash, finished candidates are not fitted again, and the others are resumed. Workers fit the candidates.
        """
        if not isinstance(self.estimator, Estimator):
            raise PgccError(f"estimator={self.estimator!r}: a search needs an estimator of pgcc.learn")
        threads, seed = thread_count(self.n_jobs), seed_of(self.random_state, checkpoint)
        data = self._read(X, validation, seed)
        settings = self._settings()
        candidates = [self.estimator._copy().set_params(**params) for params in settings]
        fitted = fit_all(
            candidates, data, _validation_score, checkpoint, cluster, self.verbose, "{:.6f}".format, threads
        )
        self.cv_results_ = _results(settings, fitted)
        self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
        self.best_estimator_, self.best_score_, _ = fitted[self.best_index_]
        self.best_params_ = settings[self.best_index_]
        self.circuit_ = self.best_estimator_.circuit_

    @property
    def _threshold(self) -> float | None:
        return self.estimator._threshold

    def _settings(self) -> list[dict[str, Any]]:
        """The parameters of every candidate."""
        grid = PAPER_GRID if self.param_grid is None else self.param_grid
        if not isinstance(grid, Mapping):
            raise PgccError(
                f"param_grid={brief(grid)}: expected a dict from names of parameters to lists of values to try"
            )
        for name, values in grid.items():
            if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or not len(values):
                raise PgccError(f"param_grid[{name!r}] = {values!r}: expected a list of values to try")
        if "binarize" in grid:
            raise PgccError(
                "param_grid['binarize']: candidates share the data, binarized by the threshold of the estimator"
            )
        return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()


def _results(settings: list[dict[str, Any]], fitted: Sequence[Fitted]) -> dict[str, Any]:
    """`cv_results_`: a column for every parameter, and the scores. Failed candidates rank last; equal scores tie."""
    scores = np.array([math.nan if one.failure else one.answer for one in fitted])
    failed = np.isnan(scores)
    better = [(~failed & (failed[i] | (scores > score))).sum() for i, score in enumerate(scores)]
    columns: dict[str, Any] = {f"param_{name}": [one[name] for one in settings] for name in settings[0]}
    return columns | {
        "params": settings,
        "split0_test_score": scores,
        "mean_test_score": scores,
        "rank_test_score": np.array(better) + 1,
        "failure": [one.failure for one in fitted],
    }


def _validation_score(fitted: Estimator, data: DataSplit) -> float:
    """The mean log-likelihood of the validation data, which is already known if the best epoch was chosen by it."""
    best = getattr(fitted, "best_epoch_", -1)
    return fitted.history_["validation"][best] if best >= 0 else fitted.score(data.held_out)  # type: ignore[attr-defined]

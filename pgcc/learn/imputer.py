"""Imputer: fill missing values in tables of 0 and 1 with what a model expects there, given the rest of the row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone

from pgcc.errors import PgccError, brief
from pgcc.evaluate.distinct import number_rows
from pgcc.learn.common.estimator import Estimator, NotLearnedError, check_choice, refuse_validation_as_target, seed_of
from pgcc.learn.trees.tree_estimators import MixtureOfTrees
from pgcc.model import Model

# A strategy: (model, codes of rows with gaps, random generator) → rows without gaps.
Fill = Callable[[Model, np.ndarray, Any], np.ndarray]


@dataclass(eq=False, repr=False)
class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing values in tables of 0 and 1: a scikit-learn transformer for the start of a pipeline.

    A density model is fitted to the data with their gaps, which are summed out, not guessed. Every missing entry is
    then filled with what the model says about it, given everything that is known about its row.

    Parameters
    ----------
    estimator : Estimator, optional
        The density model, of which a copy is fitted. By default, `MixtureOfTrees()`.
    strategy : str
        "most_frequent": the more probable value of each entry on its own (1 if both are equally probable), which makes
        the fewest mistakes on average. "mode": the most probable values of all gaps of a row together, as found by
        `Model.mode`. "sample": a draw from the joint distribution of all gaps of a row, so that tables keep their
        variety. "mean": the probability of a 1.
    random_state : int, numpy Generator or RandomState, or None
        For "sample": the same number gives the same values every time.

    Attributes
    ----------
    estimator_ : Estimator
        The model that was fitted.
    n_features_in_ : int
        The number of columns of the data.
    feature_names_in_ : array of str
        The names of the columns, if the data had any.

    See Also
    --------
    pgcc.learn.MixtureOfTrees : learn a mixture of trees by EM
    pgcc.Model.marginals : the probability of every variable

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import ChowLiu, Imputer
    >>> X = np.array([[0, 0], [1, 1]] * 20)                 # both or none
    >>> imputer = Imputer(ChowLiu()).fit(X)
    >>> imputer.transform([[1, np.nan], [np.nan, 0]])
    array([[1., 1.],
           [0., 0.]])
    >>> imputer.set_params(strategy="mean").transform([[1, np.nan]]).round(2)
    array([[1.  , 0.95]])
    """

    estimator: Estimator | None = None
    _: KW_ONLY
    strategy: str = "most_frequent"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Fit the model to data with gaps (−1, NaN, None).

        Parameters
        ----------
        X : array, sparse matrix, list of rows, DataFrame or path
            Rows of 0 and 1, with −1, NaN or None for missing values.
        y : ignored
            Accepted for compatibility with scikit-learn.
        **options
            The options of the estimator's `fit`: ``validation=``, ``checkpoint=``, ``cluster=``.
        """
        refuse_validation_as_target(y)
        check_choice("strategy", self.strategy, STRATEGIES)
        estimator = MixtureOfTrees() if self.estimator is None else self.estimator
        if not isinstance(estimator, Estimator):
            raise PgccError(f"estimator={brief(estimator)}: an Imputer takes an estimator of pgcc.learn")
        self.estimator_ = clone(estimator).fit(X, **options)
        self.__dict__.pop("feature_names_in_", None)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows with their gaps filled.

        Returns
        -------
        array
            Floats, or integers if X has integers and the strategy is not "mean"; a data frame if you chose one with
            `set_output`.
        """
        if not self.__sklearn_is_fitted__():
            raise NotLearnedError.of(self)
        fitted, fill = self.estimator_, STRATEGIES[check_choice("strategy", self.strategy, STRATEGIES)]
        generator = np.random.default_rng(seed_of(self.random_state))
        parts = [_filled(fitted.model_, codes, fill, generator) for codes in fitted._code_chunks(X)]
        return np.concatenate(parts).astype(self._kind(X))

    # -- inside -------------------------------------------------------------------------------------------------

    def _kind(self, X: Any) -> np.dtype:
        """The dtype that `transform` returns: that of the data, if it can hold the values."""
        kind = getattr(X, "dtype", None)
        if isinstance(kind, np.dtype) and (kind.kind == "f" or (kind.kind in "iu" and self.strategy != "mean")):
            return kind
        return np.dtype(np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


# -- strategies -----------------------------------------------------------------------------------------------------


def _filled(model: Model, codes: np.ndarray, fill: Fill, generator: np.random.Generator) -> np.ndarray:
    """Rows with their gaps filled; rows without gaps are left unchanged."""
    values = codes.astype(np.float64)
    gaps = np.flatnonzero((codes < 0).any(axis=1))
    if len(gaps):
        values[gaps] = np.where(codes[gaps] < 0, fill(model, codes[gaps], generator), codes[gaps])
    return values


def _mean(model: Model, codes: np.ndarray, generator: Any) -> np.ndarray:
    first, number = number_rows(codes)
    return np.asarray(model.marginals(codes[first]))[number]


def _most_frequent(model: Model, codes: np.ndarray, generator: Any) -> np.ndarray:
    return _mean(model, codes, generator) >= 0.5


def _mode(model: Model, codes: np.ndarray, generator: Any) -> np.ndarray:
    first, number = number_rows(codes)
    names = model.circuit.variables
    found = [[mode.assignment[name] for name in names] for mode in model.mode(codes[first])]
    return np.array(found, np.float64)[number]


def _sample(model: Model, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return model.sample(1, codes, rng=generator)[:, 0]


STRATEGIES: dict[str, Fill] = {"most_frequent": _most_frequent, "mode": _mode, "sample": _sample, "mean": _mean}

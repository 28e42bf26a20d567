"""Imputer: fill missing values in tables with what a model expects there, given the rest of the row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone

from pgcc.data.evidence import Evidence
from pgcc.errors import PgccError, brief
from pgcc.evaluate.distinct import number_rows
from pgcc.ir.domains import Domains
from pgcc.learn.common.estimator import Estimator, NotLearnedError, check_choice, refuse_validation_as_target, seed_of
from pgcc.learn.trees.tree_estimators import MixtureOfTrees
from pgcc.model import Model

# A strategy: (model, codes of rows with gaps, random generator) → rows without gaps.
Fill = Callable[[Model, np.ndarray, Any], np.ndarray]


@dataclass(eq=False, repr=False)
class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing values in tables of 0 and 1, or of labels: a scikit-learn transformer for the start of a pipeline.

    A density model is fitted to the data with their gaps, which are summed out, not guessed. Every missing entry is
    then filled with what the model says about it, given everything that is known about its row.

    Parameters
    ----------
    estimator : Estimator, optional
        The density model, of which a copy is fitted. By default, `MixtureOfTrees()`.
    strategy : str
        "most_frequent": the most probable value of each entry on its own (1 if 0 is equally probable), which makes
        the fewest mistakes on average. "mode": the most probable values of all gaps of a row together, as found by
        `Model.mode`. "sample": a draw from the joint distribution of all gaps of a row, so that tables keep their
        variety. "mean": the probability of a 1; not for tables of labels, for which `conditional_proba` of the
        estimator gives the probabilities of all states.
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

    Labels are filled with labels:

    >>> rows = [["sun", "dry"], ["rain", "wet"], ["snow", "wet"]] * 20
    >>> Imputer(ChowLiu()).fit(rows).transform([["sun", None], [None, "dry"]])
    array([['sun', 'dry'],
           ['sun', 'dry']], dtype=object)
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
            Rows of 0 and 1 or of labels, with −1, NaN or None for missing values.
        y : ignored
            Accepted for compatibility with scikit-learn.
        **options
            The options of the estimator's `fit`: ``validation=``, ``checkpoint=``, ``cluster=``.
        """
        refuse_validation_as_target(y)
        check_choice("strategy", self.strategy, STRATEGIES)
        estimator = MixtureOfTrees() if self.estimator is None else self.estimator
        if not isinstance(estimator, Estimator):
            raise PgccError(
                f"estimator={brief(estimator)}: an Imputer takes an estimator of pgcc.learn",
                advice="the modes of a model, model.mode(rows), fill gaps without learning",
            )
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
            Floats, or integers if X has integers and the strategy is not "mean"; labels if a variable has states. A
            data frame if you chose one with `set_output`.
        """
        if not self.__sklearn_is_fitted__():
            raise NotLearnedError.of(self)
        fitted, fill = self.estimator_, STRATEGIES[check_choice("strategy", self.strategy, STRATEGIES)]
        generator = np.random.default_rng(seed_of(self.random_state))
        if fitted.circuit_.domains is not None and self.strategy == "mean":
            raise PgccError("strategy='mean' is for 0 and 1: there is no mean of labels", argument="strategy")
        parts = [_filled(fitted.model_, codes, fill, generator) for codes in fitted._code_chunks(X)]
        return np.concatenate(parts).astype(object if fitted.circuit_.domains else self._kind(X))

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
    values, missing = codes.astype(np.float64), codes < 0
    if model.circuit.domains is not None:
        values, missing = _labels(model.circuit.domains, codes)
    gaps = np.flatnonzero(missing.any(axis=1))
    if len(gaps):
        values[gaps] = np.where(missing[gaps], fill(model, codes[gaps], generator), values[gaps])
    return values


def _labels(domains: Domains, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels of rows of codes, and where they are unknown."""
    states, missing = domains.states_in(codes), np.zeros((len(codes), len(domains)), bool)
    missing[:, domains.shown[0]] = codes < 0
    columns = [np.array(domain.states, object)[states[:, v]] for v, domain in enumerate(domains.values())]
    return np.stack(columns, axis=1), missing


def _rows(model: Model, codes: np.ndarray) -> Evidence:
    return Evidence.of_codes(model.circuit.variables, codes)


def _mean(model: Model, codes: np.ndarray, generator: Any) -> np.ndarray:
    first, number = number_rows(codes)
    return np.asarray(model.marginals(_rows(model, codes[first])))[number]


def _most_frequent(model: Model, codes: np.ndarray, generator: Any) -> np.ndarray:
    found, domains = _mean(model, codes, generator), model.circuit.domains
    if domains is None:
        return found >= 0.5
    widths = [1 if domain.is_plain else len(domain.states) if any(domain.columns) else 0 for domain in domains.values()]
    parts = zip(domains.values(), np.split(found, np.cumsum(widths)[:-1], axis=1), strict=True)
    best = [(d, p.argmax(axis=1) if p.shape[1] > 1 else (p.sum(axis=1) >= 0.5).astype(int)) for d, p in parts]
    return np.stack([np.array(domain.states, object)[states] for domain, states in best], axis=1)


def _mode(model: Model, codes: np.ndarray, generator: Any) -> np.ndarray:
    first, number = number_rows(codes)
    found = [[mode.assignment[name] for name in model.variables] for mode in model.mode(_rows(model, codes[first]))]
    return np.array(found, np.float64 if model.circuit.domains is None else object)[number]


def _sample(model: Model, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    found = model.sample(1, _rows(model, codes), rng=generator)[:, 0]
    domains = model.circuit.domains
    if domains is None:
        return found
    states = [[d.states[d.numbers.index(x)] for x in found[:, v]] for v, d in enumerate(domains.values())]
    return np.array(states, object).T


STRATEGIES: dict[str, Fill] = {"most_frequent": _most_frequent, "mode": _mode, "sample": _sample, "mean": _mean}

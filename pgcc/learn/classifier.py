"""Classifier: labels predicted from the joint distribution of rows and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pgcc.errors import EvidenceError, PgccError, brief
from pgcc.ir.domains import Domain, Domains, as_columns, domains_of
from pgcc.learn.common.estimator import Estimator, NotLearnedError, check_width, has_names
from pgcc.learn.tables.packed_rows import pack_rows
from pgcc.learn.tables.read_rows import read_chunks, read_rows, without_numbered_columns
from pgcc.learn.trees.tree_estimators import MixtureOfTrees


@dataclass(eq=False, repr=False)
class Classifier(ClassifierMixin, BaseEstimator):
    """Classify rows by a density model of rows and labels: Pr(label | row) = Pr(row, label) / Pr(row).

    A generative classifier, with the methods of scikit-learn's classifiers. What is missing in a row is summed out, in
    training and in prediction, and `estimator_.model_` answers every other question about rows and labels.

    Parameters
    ----------
    estimator : Estimator, optional
        The density model, of which a copy is fitted. By default, `MixtureOfTrees()`.

    Attributes
    ----------
    estimator_ : Estimator
        The model that was fitted: of the columns of the data, and last of the label.
    classes_ : array
        The labels, in ascending order.
    label_ : str
        The name of the label as a variable: "y", or that of the pandas Series. Its states are the labels if these are
        texts, and otherwise 0, 1, …, their places in `classes_`.
    n_features_in_ : int
        The number of columns of the data.
    feature_names_in_ : array of str
        The names of the columns, if the data had any.

    See Also
    --------
    pgcc.learn.Imputer : fill missing values with what a model expects

    Examples
    --------
    >>> from pgcc.learn import ChowLiu, Classifier
    >>> model = Classifier(ChowLiu()).fit([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, ["no", "no", "yes", "yes"] * 5)
    >>> model.predict([[1, -1], [0, 0]])
    array(['yes', 'no'], dtype='<U3')
    >>> model.predict_proba([[1, 0]]).round(2)
    array([[0.08, 0.92]])
    """

    estimator: Estimator | None = None

    def fit(self, X: Any, y: Any, **options: Any) -> Self:
        """Fit the model to rows and their labels.

        Parameters
        ----------
        X : array, sparse matrix, list of rows, DataFrame or path
            Rows of 0 and 1 or of labels, with −1, NaN or None for missing values.
        y : array
            The label of every row.
        **options
            The options of the estimator's `fit`: ``sample_weight=``, ``checkpoint=``, ``cluster=``.
        """
        estimator = MixtureOfTrees() if self.estimator is None else self.estimator
        if not isinstance(estimator, Estimator):
            raise PgccError(f"estimator={brief(estimator)}: a Classifier takes an estimator of pgcc.learn")
        if y is None:
            raise EvidenceError("a Classifier requires y to be passed, but the target y is None")
        X = without_numbered_columns(X)
        rows = read_rows(X, threshold=estimator._threshold)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        if len(labels) != len(rows):
            raise EvidenceError(f"y has {len(labels):,} labels, and X {len(rows):,} rows")
        self.classes_, states = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise EvidenceError(f"y has one class only, {brief(labels[0])}: there is nothing to tell apart")
        domains, name = domains_of(rows.names) or Domains.plain(rows.names), getattr(y, "name", None)
        self.label_ = name if isinstance(name, str) else "y"
        while self.label_ in domains or self.label_ in rows.names:
            self.label_ += "'"
        texts = all(isinstance(label, str) for label in self.classes_)
        label = Domain.of(self.label_, self.classes_.tolist() if texts else range(len(self.classes_)))
        shown = [i for i, column in enumerate(label.columns) if column]
        codes, stops = (states[:, None] == shown).astype(np.int8), np.cumsum([0, *map(len, rows.chunks())])
        parts = zip(rows.chunks(), np.split(codes, stops[1:-1]), strict=True)
        joint = pack_rows(as_columns(Domains({**domains, self.label_: label})), map(np.hstack, parts))
        self.estimator_ = clone(estimator).set_params(binarize=None).fit(joint, **options)
        self.n_features_in_ = len(domains)
        self.__dict__.pop("feature_names_in_", None)
        if has_names(X, rows):
            self.feature_names_in_ = np.array(rows.variables, dtype=object)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Pr(label | row), rows × `classes_`. Missing values are summed out; a row of probability 0 is an error."""
        if not self.__sklearn_is_fitted__():
            raise NotLearnedError.of(self)
        fitted, X = self.estimator_, without_numbered_columns(X)
        domains = {name: domain for name, domain in fitted._domains.items() if name != self.label_}
        check_width(self, X, len(domains))
        threshold = None if self.estimator is None else self.estimator._threshold
        columns = as_columns(Domains(domains))
        more = len(fitted.circuit_.variables) - len(columns)
        chunks = read_chunks(X, columns, threshold=threshold)[1]
        padded = (np.pad(codes, ((0, 0), (0, more)), constant_values=-1) for codes in chunks)
        return np.concatenate([fitted._given_others(codes, self.label_) for codes in padded])

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of every row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the rows whose label is predicted right."""
        return float(super().score(X, y, sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.classifier_tags.poor_score = True
        return tags

"""The base class of estimators: the interface of scikit-learn, without the need to install scikit-learn."""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import numpy as np

from pgcc.draw.html import estimator_html
from pgcc.errors import EvidenceError, PgccError
from pgcc.evaluate.distinct import number_rows
from pgcc.ir.circuit import Circuit
from pgcc.learn.common.checkpoint import CheckpointPath
from pgcc.learn.common.renamed import NEW_NAMES, new_names, with_new_names
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows, hold_out, slices
from pgcc.learn.tables.read_rows import default_names, read_chunks, read_rows
from pgcc.model import Model, compile

Kind = TypeVar("Kind", bound="type[Parameters]")


class Parameters:
    """scikit-learn's `get_params` and `set_params`: parameters are the constructor's arguments, stored unchanged.

    The estimators of pgcc declare them as the fields of a dataclass; see `with_parameters`.
    """

    @classmethod
    def _parameters(cls) -> dict[str, Any]:
        """The names of the parameters, and their default values."""
        arguments = inspect.signature(cls.__init__).parameters
        return {name: argument.default for name, argument in arguments.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor by name; if `deep`, those of nested estimators too, as `name__its_name`."""
        found = {name: getattr(self, name) for name in self._parameters()}
        if deep:
            for name, value in list(found.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    found |= {f"{name}__{inner}": setting for inner, setting in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; `name__its_name` changes one of a nested estimator."""
        names = list(self._parameters())
        for name, value in new_names(params, names).items():
            outer, nested, inner = name.partition("__")
            if outer not in names or (nested and not hasattr(getattr(self, outer), "set_params")):
                raise PgccError(f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(names)}")
            if nested:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def _copy(self) -> Self:
        """An estimator with the same parameters that has not been fitted, like scikit-learn's `clone`."""
        return type(self)(**self.get_params(deep=False))

    def _changed(self) -> dict[str, Any]:
        """The parameters that do not have their default values."""
        return {k: getattr(self, k) for k, v in self._parameters().items() if not _is_same(getattr(self, k), v)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._changed().items())})"

    def _repr_html_(self) -> str:
        """What notebooks show: scikit-learn's diagram of the estimator, or a table without scikit-learn."""
        try:
            from sklearn.utils import estimator_html_repr
        except ImportError:
            params, changed = self.get_params(deep=False), set(self._changed())
            return estimator_html(type(self).__name__, params, changed, self.__sklearn_is_fitted__())
        return estimator_html_repr(self)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the estimator has been fitted; scikit-learn calls this method."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # otherwise type checkers would believe that every attribute exists

        def __getattr__(self, name: str) -> Any:
            """Raise an error for old names of parameters and attributes that says the new name."""
            message = f"{type(self).__name__} has no attribute {name!r}"
            new = NEW_NAMES.get(name)
            raise AttributeError(message if new is None else f"{message}: it is called {new} now, as in scikit-learn")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def with_parameters(kind: Kind) -> Kind:
    """Make the constructor of a class: the annotated fields are its parameters, and their old names are refused."""
    dataclass(eq=False, repr=False)(kind)
    kind.__init__ = with_new_names(kind.__init__)  # type: ignore[method-assign]
    return kind


class Estimator(Parameters):
    """A model to learn: `fit` it to data, then `score` other data, `sample` from it, or use its `circuit_`.

    Parameters are the arguments of the constructor; they are stored unchanged and checked by `fit`. The names of
    learned attributes end with an underscore.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    n_features_in_ : int
        The number of columns of the data.
    feature_names_in_ : array of str
        The names of the columns, if the data had any. (Otherwise the variables of the circuit are x1, x2, …)
    """

    circuit_: Circuit
    n_features_in_: int
    feature_names_in_: np.ndarray
    binarize: float | None

    # -- fitting and scoring ------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        validation: Any = None,
        checkpoint: CheckpointPath | None = None,
        cluster: Any = None,
    ) -> Self:
        """Learn from data.

        Parameters
        ----------
        X : array, sparse matrix, list of rows, DataFrame or path
            Rows of 0 and 1, with −1, NaN or None for missing values, which are summed out. A path names a CSV file, or
            an array in .npy; it is read in pieces, so it may be larger than memory.
        y : ignored
            Accepted for compatibility with scikit-learn.
        validation : the same as X, optional
            Data for making choices: which step or epoch to keep, and which candidates with which weights. By default, a
            tenth of the rows is set aside for this, except by `CircuitMLE`, which then uses the training data.
        checkpoint : path, optional
            Where to write the state of the run every few steps: a file, or a folder for estimators with several
            candidates. A run that was killed continues from there and ends with the same model.
        cluster : str or distributed.Client, optional
            The address of the scheduler of a Dask cluster, whose workers share the work. The result is the same.
        """
        refuse_validation_as_target(y)
        self._fit(X, validation, checkpoint, cluster)
        return self

    def _fit(self, X: Any, validation: Any, checkpoint: CheckpointPath | None, cluster: Any) -> None:
        """Set `circuit_` and the other learned attributes. The arguments are those of `fit`."""
        raise NotImplementedError

    @property
    def model_(self) -> Model:
        """The compiled circuit: a `pgcc.Model` that you can ask any question."""
        circuit = self._learned()
        if self.__dict__.get("_compiled", (None,))[0] is not circuit:
            self._compiled = circuit, compile(circuit)
        return self._compiled[1]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "model_":  # its property raised an AttributeError, so Python asks here
                raise not_fitted(self)
            if not name.startswith("_") and hasattr(Model, name):
                raise AttributeError(f"{type(self).__name__} has no {name!r}: ask its model, estimator.model_.{name}")
            return super().__getattr__(name)

    def _learned(self) -> Circuit:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        return self.circuit_

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-likelihood of every row; missing values (−1, NaN) are summed out."""
        return np.concatenate(list(self._score_chunks(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the rows. A file is read in pieces; `y` is ignored."""
        rows = 0

        def logs() -> Iterator[float]:
            nonlocal rows
            for part in self._score_chunks(X):
                rows += len(part)
                yield from part.tolist()

        return math.fsum(logs()) / rows

    def _score_chunks(self, X: Any) -> Iterator[np.ndarray]:
        """The log-likelihoods of all rows, in chunks."""
        self._learned()
        if isinstance(X, Rows) and X.where is not None:  # score every distinct row once
            distinct = np.concatenate([self._score_codes(block.codes) for block in X.blocks()])
            yield from (distinct[X.where[part]] for part in slices(len(X), 1))
        else:
            yield from map(self._score_codes, self._code_chunks(X))

    def _code_chunks(self, X: Any) -> Iterator[np.ndarray]:
        """Rows over the variables of the circuit as int8 codes, in chunks."""
        variables = self._learned().variables
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if not hasattr(X, "columns") and len(shape) == 2 and shape[1] != len(variables):
            raise EvidenceError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {len(variables)} features as input"
            )
        return read_chunks(X, variables, threshold=self._threshold)[1]

    def _score_codes(self, codes: np.ndarray) -> np.ndarray:
        first, number = number_rows(codes)
        return np.asarray(self.model_.logprob(codes[first]))[number]

    @with_new_names
    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw rows from the learned distribution, as an array of 0 and 1.

        Parameters
        ----------
        n_samples : int
            The number of rows.
        random_state : int, numpy Generator or RandomState, optional
            The same number gives the same rows every time.
        """
        return self.model_.sample(n_samples, rng=generator_of(random_state))

    def conditional_proba(self, X: Any, column: str | int) -> np.ndarray:
        """Pr(column = 0) and Pr(column = 1) given the other entries of every row, like a classifier's `predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix, list of rows, DataFrame or path
            The entry in the column itself is ignored. Missing values (−1, NaN, columns that a DataFrame lacks) are
            summed out. A row of probability 0 is an error.
        column : str or int
            The variable to predict, by its name or by its number, counted from 0.

        Returns
        -------
        array, rows × 2
            Probabilities with the relative accuracy of all answers of pgcc.

        Examples
        --------
        >>> from pgcc.learn import ChowLiu
        >>> ChowLiu().fit([[0, 0], [0, 0], [1, 1], [1, 1]]).conditional_proba([[1, 0], [0, -1]], "x2")
        array([[0.25, 0.75],
               [0.75, 0.25]])
        """
        j = self._column(column)
        return np.concatenate([self._given_others(codes, j) for codes in self._code_chunks(X)])

    def _given_others(self, codes: np.ndarray, j: int) -> np.ndarray:
        given = codes.copy()
        given[:, j] = -1
        first, number = number_rows(given)
        asked = np.full((2, codes.shape[1]), -1, np.int8)
        asked[:, j] = 0, 1
        both = [np.asarray(self.model_.conditional(query, given=given[first])) for query in asked]
        return np.stack(both, axis=1)[number]

    def _column(self, column: str | int) -> int:
        variables = self._learned().variables
        if isinstance(column, str) and column in variables:
            return variables.index(column)
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(variables):
            return int(column)
        shown = ", ".join(variables[:8]) + (", …" if len(variables) > 8 else "")
        raise EvidenceError(f"column={column!r}: expected one of the variables {shown}, or its number, counted from 0")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled"}

    # -- for subclasses -----------------------------------------------------------------------------------------

    @property
    def _threshold(self) -> float | None:
        """The threshold above which numbers count as 1; None if data have to be 0 and 1."""
        return check_threshold(self.binarize)

    def _read(self, X: Any, validation: Any, seed: int) -> DataSplit:
        """Read training and validation data, and remember the names of the columns."""
        data = X if isinstance(X, DataSplit) else _read_both(X, validation, seed, self._threshold)
        self._keep_names(data.rows.names, data.named)
        return data

    def _keep_names(self, names: list[str], named: bool) -> None:
        self.n_features_in_ = len(names)
        self.__dict__.pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)

    # -- for scikit-learn ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "circuit_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="density_estimator",
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, allow_nan=True),
        )


def _read_both(X: Any, validation: Any, seed: int, threshold: float | None) -> DataSplit:
    rows = read_rows(X, threshold=threshold)
    named = has_names(X, rows)
    if validation is None:
        return DataSplit(*hold_out(rows, seed), named)
    given = validation if named or not hasattr(validation, "columns") else validation.to_numpy()
    return DataSplit(rows, read_rows(given, rows.names, "the validation data", threshold), named)


def has_names(X: Any, rows: Rows) -> bool:
    """Whether the columns of data have names of their own, and not x1, x2, …"""
    return hasattr(X, "columns") or rows.names != default_names(rows.n)


def _is_same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default value, or a copy of it (in an estimator from another process)."""
    return value is default or (type(value) is type(default) and value == default)


# -- errors -------------------------------------------------------------------------------------------------------


def not_fitted(estimator: object) -> PgccError:
    """The error for an estimator that has not been fitted; if scikit-learn is loaded, also a `NotFittedError`."""
    message = f"this {type(estimator).__name__} has not learned anything yet: call fit first"
    exceptions = sys.modules.get("sklearn.exceptions")
    return PgccError(message) if exceptions is None else _also(exceptions.NotFittedError)(message)


@cache
def _also(kind: type[Exception]) -> type[PgccError]:
    """A `PgccError` that is also an error of another class; after pickling it is a plain `PgccError`."""
    return type(kind.__name__, (PgccError, kind), {"__reduce__": lambda self: (PgccError, self.args)})


def refuse_validation_as_target(y: Any) -> None:
    """Refuse a table as the second argument of `fit`, which is ignored: it was probably meant as validation data."""
    row = y[0] if isinstance(y, list) and y else None
    shape: tuple[int, ...] = (len(y), len(row)) if isinstance(row, (list, tuple)) else getattr(y, "shape", ())
    if isinstance(y, (str, os.PathLike, Rows)) or (len(shape) > 1 and shape[1] > 1):
        raise PgccError(
            "y is ignored, as in all density estimators of scikit-learn: fit(X, validation=V) takes validation data"
        )


# -- parameters ---------------------------------------------------------------------------------------------------


def check_whole(name: str, value: Any, least: int = 1) -> int:
    """Check a parameter that has to be a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise PgccError(f"{name}={value!r}: expected a whole number, at least {least}")
    return int(value)


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Check a parameter that has to be a positive number, or possibly zero."""
    if not _is_finite(value) or value < 0 or (value == 0 and not zero):
        raise PgccError(f"{name}={value!r}: expected a finite number {'≥' if zero else '>'} 0")
    return float(value)


def check_threshold(value: Any) -> float | None:
    """Check the parameter `binarize`."""
    if value is None:
        return None
    if not _is_finite(value):
        raise PgccError(f"binarize={value!r}: expected a finite number, or None for data of 0 and 1")
    return float(value)


def _is_finite(value: Any) -> bool:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def seed_of(random_state: Any, checkpoint: CheckpointPath | None = None) -> int:
    """The seed for a `random_state`: the number itself, one drawn from a generator, or a random one for None.

    >>> seed_of(7), seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    (7, True)
    """
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return check_whole("random_state", random_state, 0)
    if checkpoint is not None:
        raise PgccError(f"random_state={random_state!r}: a run with a checkpoint needs a number, to be resumed")
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 31))
    raise PgccError(f"random_state={random_state!r}: expected a number ≥ 0, a numpy generator, or None")


def generator_of(random_state: Any) -> Any:
    """A `random_state` as the `rng` argument of `Model.sample`."""
    return seed_of(random_state) if isinstance(random_state, np.random.RandomState) else random_state


def thread_count(n_jobs: Any) -> int:
    """The number of threads for `n_jobs`: 1 for None, one per processor for −1, one fewer for −2, and so on.

    >>> thread_count(None), thread_count(3), thread_count(-1) == (os.cpu_count() or 1)
    (1, 3, True)
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise PgccError(f"n_jobs={n_jobs!r}: it is a number of threads, −1 for one a processor, or None for one")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))

"""The base class of estimators: the interface of scikit-learn, which is not needed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from pgcc.errors import PgccError
from pgcc.evaluate.distinct import number_rows
from pgcc.ir.circuit import Circuit
from pgcc.learn.checkpoint import Place
from pgcc.learn.data import default_names, read_chunks, read_rows
from pgcc.learn.rows import Rows, hold_out, slices
from pgcc.learn.shared import Shared
from pgcc.model import Model, compile


class Estimator:
    """A model to be learned: `fit` it to data, then `score` other data, `sample`, or take its `circuit_`.

    Parameters are the arguments of the constructor, kept as they are given and checked by `fit`. Learned attributes
    have names that end with an underscore.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    feature_names_in_ : list of str
        Its variables, in the order of the columns of the data.
    """

    circuit_: Circuit
    feature_names_in_: list[str]

    # -- parameters -----------------------------------------------------------------------------------------

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor."""
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise PgccError(f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(names)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        said = [f"{k}={v!r}" for k, v in self.get_params().items() if not _is_same(v, defaults[k].default)]
        return f"{type(self).__name__}({', '.join(said)})"

    # -- fitting and scoring ------------------------------------------------------------------------------------

    def fit(self, X: Any, validation: Any = None, *, checkpoint: Place | None = None, cluster: Any = None) -> Self:
        """Learn from data.

        Parameters
        ----------
        X : array, list of rows, DataFrame or path
            0 and 1; −1, NaN or None for what is missing, which is summed out. A path is of a CSV file or an array in
            .npy, which is read in pieces: it may be longer than memory.
        validation : the same, optional
            Data on which choices are made.
        checkpoint : path, optional
            The file with the state of the run: if it was killed, the same call goes on from there.
        cluster : str or distributed.Client, optional
            The address of the scheduler of a Dask cluster, whose workers share the work. What is learned is the same.
        """
        raise NotImplementedError

    @property
    def model_(self) -> Model:
        """The compiled circuit: ask it anything."""
        circuit = self._learned()
        if self.__dict__.get("_compiled", (None,))[0] is not circuit:
            self._compiled = circuit, compile(circuit)
        return self._compiled[1]

    def _learned(self) -> Circuit:
        if "circuit_" not in self.__dict__:
            raise PgccError(f"this {type(self).__name__} has not learned anything yet: call fit first")
        return self.circuit_

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-likelihood of every row; what is missing (−1, NaN) is summed out."""
        return np.concatenate(list(self._score_chunks(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the rows; of a file, in pieces."""
        rows = 0

        def logs() -> Iterator[float]:
            nonlocal rows
            for part in self._score_chunks(X):
                rows += len(part)
                yield from part.tolist()

        return math.fsum(logs()) / rows

    def _score_chunks(self, X: Any) -> Iterator[np.ndarray]:
        """The log-likelihoods of all rows, some at a time."""
        self._learned()
        if isinstance(X, Rows) and X.where is not None:  # score every distinct row only one time
            distinct = np.concatenate([self._score_codes(block.codes) for block in X.blocks()])
            yield from (distinct[X.where[part]] for part in slices(len(X), 1))
        else:
            _, chunks = read_chunks(X, self.feature_names_in_)
            yield from map(self._score_codes, chunks)

    def _score_codes(self, codes: np.ndarray) -> np.ndarray:
        first, number = number_rows(codes)
        return np.asarray(self.model_.logprob(codes[first]))[number]

    def sample(self, n_samples: int = 1, rng: Any = None) -> np.ndarray:
        """Rows drawn from the learned distribution."""
        return self.model_.sample(n_samples, rng=rng)

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the data."""
        return len(self.feature_names_in_)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled"}

    def _read(self, X: Any, validation: Any, seed: int) -> Shared:
        """Training and validation data; the names of the columns are kept."""
        data = X if isinstance(X, Shared) else _read_both(X, validation, seed)
        self.feature_names_in_ = data.rows.names
        return data


def _read_both(X: Any, validation: Any, seed: int) -> Shared:
    rows = read_rows(X)
    named = hasattr(X, "columns") or rows.names != default_names(rows.n)
    if validation is None:
        return Shared(*hold_out(rows, seed), named)
    given = validation if named or not hasattr(validation, "columns") else validation.to_numpy()
    return Shared(rows, read_rows(given, rows.names, "the validation data"), named)


def _is_same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default, also if it is a copy (of an estimator from another process)."""
    return value is default or (type(value) is type(default) and value == default)


def check_whole(name: str, value: Any, least: int = 1) -> int:
    """A parameter that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise PgccError(f"{name}={value!r}: it is a whole number, at least {least}")
    return int(value)


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A parameter that is a positive number, or perhaps zero."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise PgccError(f"{name}={value!r}: it is a finite number {'≥' if zero else '>'} 0")
    return float(value)

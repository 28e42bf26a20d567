"""The base class of estimators, which are estimators of scikit-learn."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from pgcc.cluster import Crew, crew
from pgcc.data.evidence import Evidence
from pgcc.data.tables import column_names
from pgcc.errors import EvidenceError, KnowsOtherWords, MissingPackageError, PgccError
from pgcc.evaluate.distinct import number_rows
from pgcc.evaluate.parallel import count_processors
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.learn.common.checkpoint import Checkpoint, CheckpointPath, State
from pgcc.learn.common.training import Run, RunPlan, despite_interrupt, train
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows, hold_out
from pgcc.learn.tables.read_rows import read_chunks, read_rows, without_numbered_columns
from pgcc.model import Model, compile
from pgcc.queries.gradient import GradientFunction
from pgcc.trainable.trainable_parameters import TrainableParameters, with_weights_only

try:
    from sklearn.base import BaseEstimator, DensityMixin
    from sklearn.exceptions import NotFittedError
    from threadpoolctl import threadpool_limits  # which scikit-learn installs
except ImportError as reason:
    raise MissingPackageError("pgcc.learn needs scikit-learn: pip install scikit-learn") from reason


# Parameters on which runs do not depend, or through the data and the seed only.
_NOT_SETTINGS = ("binarize", "random_state", "n_jobs", "verbose")


class Estimator(KnowsOtherWords, DensityMixin, BaseEstimator):
    """A model to learn: `fit` it to data, then `score` other data, `sample` from it, or use its `circuit_`.

    Parameters are the fields of a dataclass: arguments of the constructor, which are stored unchanged and checked by
    `fit`. The names of learned attributes end with an underscore.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    excludes_empty_ : bool
        Whether the empty set was taken away from the distribution (`Circuit.exclude_empty`).
    n_features_in_ : int
        The number of columns of the data.
    feature_names_in_ : array of str
        The names of the columns, if the data had any. (Otherwise the variables of the circuit are x1, x2, …)
    """

    circuit_: Circuit
    n_features_in_: int
    feature_names_in_: np.ndarray
    excludes_empty_: bool
    binarize: float | None
    exclude_empty: bool | str = False
    # Whether the likelihood of runs is that of rows given that they are not empty, where these do not occur.
    _learns_nonempty: ClassVar[bool] = False
    # Whether validation data choose: "always" (without them, a tenth of the rows is set aside), "if given", or "never".
    _validation: ClassVar[str] = "always"
    # Whether the total of `circuit_` is 1, up to rounding.
    _has_total_1: ClassVar[bool] = True

    # -- fitting and scoring ------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        validation: Any = None,
        checkpoint: CheckpointPath | None = None,
        cluster: Any = None,
        states: Mapping[str, Iterable[Any]] | None = None,
    ) -> Self:
        """Learn from data.

        Parameters
        ----------
        X : array, sparse matrix, list of rows, list of dicts, list of sets, DataFrame or path
            Rows of 0 and 1 or of labels, with −1, NaN or None for missing values, which are summed out; or sets of the
            names of what is 1. A path names a CSV file, or an array in .npy; it is read in pieces, so it may be larger
            than memory. A column of texts or of whole numbers is a variable with states (`Circuit.domains`): the
            categories of a pandas categorical, or else the different values in ascending order.
        y : ignored
            Accepted for compatibility with scikit-learn.
        sample_weight : array, optional
            A number ≥ 0 for every row, with which it counts: 2 is as if the row occurred twice.
        validation : the same as X, optional
            Data for making choices: which step or epoch to keep, and which candidates with which weights. By default, a
            tenth of the rows is set aside for this, except by `CircuitMLE`, which then uses the training data.
        checkpoint : path, optional
            Where to write the state of the run every few steps: a file, or a folder for estimators with several
            candidates. A run that was killed continues from there and ends with the same model.
        cluster : str or distributed.Client, optional
            The address of the scheduler of a Dask cluster, whose workers share the work. The result is the same.
        states : dict, optional
            The states of some variables, where not all of them occur in the data, or their order matters.

        Examples
        --------
        >>> from pgcc.learn import ChowLiu
        >>> rows = [{"weather": "sun", "wet": "no"}, {"weather": "rain", "wet": "yes"}, {"weather": "snow"}]
        >>> model = ChowLiu().fit(rows, states={"wet": ["no", "yes"]})
        >>> model.circuit_.domains
        <Domains: weather in {rain, snow, sun}, wet in {no, yes}>
        """
        refuse_validation_as_target(y)
        X, validation = without_numbered_columns(X), without_numbered_columns(validation)
        if states is not None:
            X = read_rows(X, states=states)
        self._fit(X if sample_weight is None else _Weighted(X, sample_weight), validation, checkpoint, cluster)
        return self

    def _fit(self, X: Any, validation: Any, checkpoint: CheckpointPath | None, cluster: Any) -> None:
        """Plan runs, train, and set `circuit_` and the other learned attributes. The arguments are those of `fit`."""
        seed = seed_of(getattr(self, "random_state", 0), checkpoint)
        data = self._read(X, validation, seed)
        saved_runs = Checkpoint(checkpoint, self._settings(seed), *data.tables, *self._arrays(data))
        with threadpool_limits(1, "blas"), crew(cluster) as workers:  # else sums depend on the number of threads
            plans = self._plans(data, seed, workers)
            runs = train(plans, saved_runs, workers, getattr(self, "verbose", False), type(self).__name__)
        despite_interrupt(lambda: self._conclude(runs, data))

    def _conclude(self, runs: Sequence[Run], data: DataSplit) -> None:
        """`_finish`, and take the empty set away if it does not occur."""
        self._finish(runs, data)
        self.excludes_empty_ = self._excludes_empty(data)
        if self.excludes_empty_:
            self.circuit_ = self.circuit_.exclude_empty()

    def _excludes_empty(self, data: DataSplit) -> bool:
        """Whether the distribution to learn is that given that a row is not empty."""
        chosen = self.exclude_empty
        if chosen != "auto" and not isinstance(chosen, (bool, np.bool_)):
            raise PgccError(f"exclude_empty={chosen!r}: choose 'auto', True or False", argument="exclude_empty")
        if chosen is True and data.has_empty:
            raise EvidenceError("exclude_empty=True, but some row of the data is empty: all its variables are 0")
        return data.never_empty if chosen == "auto" else bool(chosen)

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """Check the parameters, and plan the runs. The workers may share the rows of every epoch."""
        raise NotImplementedError

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        """Set `circuit_` and the other learned attributes from the best of these runs, some or all of those planned."""
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
                raise NotLearnedError.of(self)
            if not name.startswith("_") and hasattr(Model, name):
                raise AttributeError(f"{type(self).__name__} has no {name!r}: ask its model, estimator.model_.{name}")
            return super().__getattr__(name)

    def _learned(self) -> Circuit:
        if not self.__sklearn_is_fitted__():
            raise NotLearnedError.of(self)
        return self.circuit_

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-likelihood of every row; missing values (−1, NaN) are summed out."""
        return np.concatenate(list(self._score_chunks(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the rows. A file is read in pieces; `y` is ignored."""
        total, rows = self._log_likelihood(X)
        return total / rows

    def bic(self, X: Any) -> float:
        """The Bayesian information criterion, lower for better models: parameters · log rows − 2 · log-likelihood.

        Parameters
        ----------
        X : array, sparse matrix, list of rows, DataFrame or path
            The data that were learned from.

        Examples
        --------
        >>> from pgcc.learn import ChowLiu
        >>> X = [[0, 0], [0, 0], [1, 1], [1, 1]] * 10
        >>> round(ChowLiu().fit(X).bic(X), 2), round(ChowLiu().fit(X).aic(X), 2)
        (70.24, 65.17)
        """
        total, rows = self._log_likelihood(X)
        return self._parameter_count() * math.log(rows) - 2 * total

    def aic(self, X: Any) -> float:
        """The Akaike information criterion, lower for better models: 2 · parameters − 2 · log-likelihood."""
        return 2 * self._parameter_count() - 2 * self._log_likelihood(X)[0]

    def _parameter_count(self) -> int:
        """How many free numbers were learned: `parameters_`, or else the weights and matrices of the circuit."""
        if "parameters_" in self.__dict__:
            return int(self.__dict__["parameters_"].size)
        parameters = TrainableParameters(GradientFunction(with_weights_only(self._learned())).parametrized)
        return len(parameters.start) - len(parameters.sums)

    def _log_likelihood(self, X: Any) -> tuple[float, int]:
        """The log-likelihood of all rows together, and how many there are."""
        sums = [(math.fsum(part), len(part)) for part in self._score_chunks(X)]
        return math.fsum(total for total, _ in sums), sum(rows for _, rows in sums)

    def _score_chunks(self, X: Any) -> Iterator[np.ndarray]:
        """The log-likelihoods of all rows, in chunks."""
        return map(self._score_codes, self._code_chunks(X))

    def _code_chunks(self, X: Any) -> Iterator[np.ndarray]:
        """Rows over the variables of the circuit as int8 codes, in chunks."""
        circuit, X = self._learned(), without_numbered_columns(X)
        check_width(self, X, len(circuit.domains or circuit.variables))
        return read_chunks(X, circuit.variables, threshold=self._threshold)[1]

    def _score_codes(self, codes: np.ndarray, rtol: float | None = None) -> np.ndarray:
        first, number = number_rows(codes)
        rows = Evidence.of_codes(self.circuit_.variables, codes[first])
        return np.asarray(self.model_.logprob(rows, rtol=rtol))[number]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw rows from the learned distribution, as an array of 0 and 1, or of labels.

        Parameters
        ----------
        n_samples : int
            The number of rows.
        random_state : int, numpy Generator or RandomState, optional
            The same number gives the same rows every time.
        """
        return self.model_.sample(n_samples, rng=generator_of(random_state))

    def conditional_proba(self, X: Any, column: str | int) -> np.ndarray:
        """Pr(column = state | the other entries) for every row and state, like a classifier's `predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix, list of rows, DataFrame or path
            The entry in the column itself is ignored. Missing values (−1, NaN, columns that a DataFrame lacks) are
            summed out. A row of probability 0 is an error.
        column : str or int
            The variable to predict, by its name or by its number, counted from 0.

        Returns
        -------
        array, rows × 2, or rows × states
            Probabilities of 0 and 1, or of the states as `model_.states[column]` lists them, with the relative accuracy
            of all answers of pgcc.

        Examples
        --------
        >>> from pgcc.learn import ChowLiu
        >>> ChowLiu().fit([[0, 0], [0, 0], [1, 1], [1, 1]]).conditional_proba([[1, 0], [0, -1]], "x2")
        array([[0.25, 0.75],
               [0.75, 0.25]])
        """
        name = self._column(column)
        return np.concatenate([self._given_others(codes, name) for codes in self._code_chunks(X)])

    def _given_others(self, codes: np.ndarray, name: str) -> np.ndarray:
        given, columns, domain = codes.copy(), self.circuit_.variables, self._domains[name]
        given[:, [columns.index(c) for c in domain.columns if c]] = -1
        first, number = number_rows(given)
        rows = Evidence.of_codes(columns, given[first])
        each = [np.asarray(self.model_.conditional({name: state}, given=rows)) for state in domain.states]
        return np.stack(each, axis=1)[number]

    def _column(self, column: str | int) -> str:
        variables = list(self._domains)
        if isinstance(column, str) and column in variables:
            return column
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(variables):
            return variables[column]
        shown = ", ".join(variables[:8]) + (", …" if len(variables) > 8 else "")
        raise EvidenceError(f"column={column!r}: expected one of the variables {shown}, or its number, counted from 0")

    @property
    def _domains(self) -> Domains:
        """The states of every variable."""
        circuit = self._learned()
        return circuit.domains or Domains.plain(circuit.variables)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled"}

    # -- for subclasses -----------------------------------------------------------------------------------------

    @property
    def _threshold(self) -> float | None:
        """The threshold above which numbers count as 1; None if data have to be 0 and 1."""
        return check_threshold(self.binarize)

    def _limits(self) -> tuple[int, int]:
        """The checked parameters `max_iter` and `n_iter_no_change`, of estimators that have both."""
        limits = {name: check_whole(name, getattr(self, name)) for name in ("max_iter", "n_iter_no_change")}
        return limits["max_iter"], limits["n_iter_no_change"]

    def _columns(self) -> Sequence[str] | None:
        """The columns of the data, if they are known before."""

    def _read(self, X: Any, validation: Any, seed: int) -> DataSplit:
        """Read training and validation data, and remember the names of the columns."""
        data = X if isinstance(X, DataSplit) else self._split(X, validation, seed)
        self.n_features_in_ = len(data.rows.variables)
        self.__dict__.pop("feature_names_in_", None)
        if data.named:
            self.feature_names_in_ = np.array(data.rows.variables, dtype=object)
        return data

    def _split(self, X: Any, validation: Any, seed: int) -> DataSplit:
        threshold = self._threshold
        X, weights = X if isinstance(X, _Weighted) else (X, None)
        rows = read_rows(X, self._columns(), threshold=threshold)
        rows = rows if weights is None else rows.weighted(weights)
        named = has_names(X, rows)
        if self._validation == "never":
            return DataSplit(rows, None, named)
        if validation is None:
            rows, held_out = hold_out(rows, seed) if self._validation == "always" else (rows, None)
            return DataSplit(rows, held_out, named)
        given = validation if named or not hasattr(validation, "columns") else validation.to_numpy()
        return DataSplit(rows, read_rows(given, rows.names, "the validation data", threshold), named)

    def _settings(self, seed: int) -> dict[str, Any]:
        """What runs depend on beside the data: a checkpoint of a run with other settings is refused."""
        chosen = {name: value for name, value in self.get_params().items() if name not in _NOT_SETTINGS}
        return {"model": type(self).__name__, "seed": seed, **chosen}

    def _arrays(self, data: DataSplit) -> Iterable[np.ndarray]:
        """What else runs depend on."""
        return ()

    def _keep_history(self, run: Run) -> State:
        """Set the attributes that tell how a run went; return its best parameters."""
        self.history_, self.best_epoch_, self.n_iter_ = run.history, run.best_epoch, run.epochs
        return run.best

    # -- for scikit-learn ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "circuit_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


class _Weighted(NamedTuple):
    """Data with a weight for every row."""

    table: Any
    weights: Any


def has_names(X: Any, rows: Rows) -> bool:
    """Whether the columns of data have names of their own, and not x1, x2, …"""
    return hasattr(X, "columns") or rows.variables != column_names(len(rows.variables))


# -- errors -------------------------------------------------------------------------------------------------------


def check_width(estimator: object, X: Any, n: int) -> None:
    """Refuse an array of another number of columns than n."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if not hasattr(X, "columns") and len(shape) == 2 and shape[1] != n:
        raise EvidenceError(
            f"X has {shape[1]} features, but {type(estimator).__name__} is expecting {n} features as input"
        )


class NotLearnedError(PgccError, NotFittedError):
    """A question to an estimator that has not been fitted."""

    @classmethod
    def of(cls, estimator: object) -> Self:
        return cls(f"this {type(estimator).__name__} has not learned anything yet: call fit first")


def refuse_validation_as_target(y: Any) -> None:
    """Refuse a table as the second argument of `fit`, which is ignored: it was probably meant as validation data."""
    row = y[0] if isinstance(y, list) and y else None
    shape: tuple[int, ...] = (len(y), len(row)) if isinstance(row, (list, tuple)) else getattr(y, "shape", ())
    if isinstance(y, (str, os.PathLike, Rows)) or (len(shape) > 1 and shape[1] > 1):
        raise PgccError(
            "y is ignored, as in all density estimators of scikit-learn: fit(X, validation=V) takes validation data",
            argument="validation",
        )


# -- parameters ---------------------------------------------------------------------------------------------------


def check_whole(name: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """Check a parameter that has to be a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        bounds = f"at least {least}" + (f" and at most {most}" if most < math.inf else "")
        raise PgccError(f"{name}={value!r}: expected a whole number, {bounds}", argument=name)
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Check a parameter that has to be one of several words."""
    if not isinstance(value, str) or value not in choices:
        raise PgccError(f"{name}={value!r}: choose one of {', '.join(map(repr, choices))}", argument=name)
    return value


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Check a parameter that has to be a positive number, or possibly zero."""
    if not _is_finite(value) or value < 0 or (value == 0 and not zero):
        raise PgccError(f"{name}={value!r}: expected a finite number {'≥' if zero else '>'} 0", argument=name)
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
        raise PgccError(
            f"random_state={random_state!r}: a run with a checkpoint needs a number, to be resumed",
            argument="random_state",
        )
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 31))
    raise PgccError(
        f"random_state={random_state!r}: expected a number ≥ 0, a numpy generator, or None", argument="random_state"
    )


def generator_of(random_state: Any) -> Any:
    """A `random_state` as the `rng` argument of `Model.sample`."""
    return seed_of(random_state) if isinstance(random_state, np.random.RandomState) else random_state


def thread_count(n_jobs: Any) -> int:
    """The number of threads for `n_jobs`: 1 for None, one per processor for −1, one fewer for −2, and so on.

    >>> thread_count(None), thread_count(3), thread_count(-1) == count_processors()
    (1, 3, True)
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise PgccError(f"n_jobs={n_jobs!r}: it is a number of threads, −1 for one a processor", argument="n_jobs")
    return int(n_jobs) if n_jobs > 0 else max(1, count_processors() + 1 + int(n_jobs))

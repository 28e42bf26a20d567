"""Estimators in `.npz` files, without pickles: parameters, learned attributes and circuits as numbers and JSON.

The arrays of the learned circuit have the same names as in a circuit file (`pgcc.formats.npz`), so the file of an
estimator is also a file of its circuit, for `pgcc.load` and the command line. In addition, it has:

estimator       JSON as bytes: {"format", "version", "estimator"}; a value in it is null, true, a number or text, or an
                object with one key that says what it is:
                    {"list": [...]}, {"tuple": [...]}, {"dict": [[key, value], ...]}, {"names": [...]} (of texts)
                    {"array": name}      the array of that name in the file
                    {"circuit": prefix}  the circuit whose arrays have names with that prefix
                    {"trees": {...}}     the arrays of a mixture of trees
                    {"estimator": class, "parameters": {...}, "learned": {...}}
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator

from pgcc.errors import CircuitError, FormatError, brief
from pgcc.formats.io import DAMAGE, Archive, as_path, read_bytes, reading, reason_of, writing
from pgcc.formats.npz import circuit_in, to_arrays
from pgcc.ir.circuit import Circuit
from pgcc.learn.circuits.circuit_mle import CircuitMLE
from pgcc.learn.circuits.network_mle import BayesianNetworkMLE
from pgcc.learn.classifier import Classifier
from pgcc.learn.common.estimator import Estimator
from pgcc.learn.continuous.continuous_mixture import ContinuousMixture
from pgcc.learn.ensembles.stacked_ensemble import StackedEnsemble
from pgcc.learn.imputer import Imputer
from pgcc.learn.mixtures.simple_pgc import DPP, SimplePGC
from pgcc.learn.regions.einsum_network import EinsumNetwork
from pgcc.learn.regions.hidden_tree import HiddenTree
from pgcc.learn.strudel.strudel import Strudel
from pgcc.learn.trees.tree_estimators import ChowLiu, MixtureOfTrees
from pgcc.learn.trees.tree_mixture import Trees

FORMAT, VERSION = "pgcc estimator", 1
# The estimators that a file can hold. Nothing else is ever constructed from a file.
KINDS: dict[str, type[BaseEstimator]] = {
    kind.__name__: kind
    for kind in (
        SimplePGC,
        DPP,
        StackedEnsemble,
        ChowLiu,
        MixtureOfTrees,
        ContinuousMixture,
        HiddenTree,
        EinsumNetwork,
        Strudel,
        CircuitMLE,
        BayesianNetworkMLE,
        Imputer,
        Classifier,
    )
}
_ENTRY = "estimator"
# What parameters are, or lists and dicts of these; and what learned attributes are.
_PARAMETERS = (type(None), bool, int, float, str, Circuit, Estimator)
_LEARNED: dict[str, type] = {
    "circuit_": Circuit,
    "n_features_in_": int,
    "excludes_empty_": bool,
    "feature_names_in_": np.ndarray,
    "history_": dict,
    "n_iter_": int,
    "n_components_": int,
    "best_epoch_": int,
    "parameters_": np.ndarray,
    "partition_": list,
    "trees_": Trees,
    "weights_": np.ndarray,
    "component_weights_": np.ndarray,
    "validation_score_": float,
    "tables_": dict,
    "parents_": dict,
    "members_": list,
    "estimator_": Estimator,
    "classes_": np.ndarray,
    "label_": str,
}


# -- writing ----------------------------------------------------------------------------------------------------


def save(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write an estimator, fitted or not, to a file that `load` reads back.

    The file is written completely or not at all. It is also a file of the learned circuit, which `pgcc.load` and the
    command line (`pgcc query model.npz "tea=1"`) can read.

    Parameters
    ----------
    estimator : estimator of pgcc.learn
        The estimator to write.
    path : str or path-like
        A file name that ends with `.npz`.

    See Also
    --------
    pgcc.learn.load : read an estimator from a file
    pgcc.save : write a circuit to a file

    Examples
    --------
    >>> import os, tempfile
    >>> import pgcc.learn
    >>> model = pgcc.learn.ChowLiu().fit([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     pgcc.learn.save(model, path)
    ...     again, circuit = pgcc.learn.load(path), pgcc.load(path)
    >>> again.score([[1, 1]]) == model.score([[1, 1]])
    True
    >>> circuit == model.circuit_
    True
    """
    if KINDS.get(type(estimator).__name__) is not type(estimator):
        raise FormatError(f"{brief(estimator)} is not an estimator of pgcc.learn: only these are saved")
    place = as_path(path)
    if place.suffix.lower() != ".npz":
        raise FormatError(f"{place}: estimators are saved in .npz files")
    arrays: dict[str, np.ndarray] = {}
    header = {"format": FORMAT, "version": VERSION, "estimator": _Writer(arrays).value(estimator, "")}
    arrays[_ENTRY] = np.frombuffer(json.dumps(header, ensure_ascii=False).encode(), np.uint8)
    with writing(place) as file:
        np.savez_compressed(file, **cast(dict[str, Any], arrays))  # numbers only: nothing can be pickled


class _Writer:
    """Converts values to JSON; arrays and circuits go to `arrays`, under names that say where they belong."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays = arrays

    def value(self, value: Any, at: str) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else {"float": repr(value)}
            case np.bool_() | np.integer() | np.floating():
                return self.value(value.item(), at)
            case Circuit():
                self.arrays |= {f"{at}{name}": array for name, array in to_arrays(value).items()}
                return {"circuit": at}
            case Trees():
                return {"trees": {k: self.value(v, f"{at}{k}.") for k, v in value.arrays().items()}}
            case np.ndarray():
                return self._array(value, at)
            case list() | tuple():
                kind = "list" if isinstance(value, list) else "tuple"
                return {kind: [self.value(one, f"{at}{i}.") for i, one in enumerate(value)]}
            case dict():
                pairs = enumerate(value.items())
                return {"dict": [[self.value(k, ""), self.value(v, f"{at}{i}.")] for i, (k, v) in pairs]}
        if KINDS.get(type(value).__name__) is type(value):
            return self._estimator(value, at)
        raise _unsaved(value, at)

    def _array(self, array: np.ndarray, at: str) -> Any:
        if array.dtype.kind in "biuf":
            name = at.removesuffix(".")
            self.arrays[name] = array
            return {"array": name}
        if array.ndim == 1 and all(isinstance(name, str) for name in array):
            return {"names": array.tolist()}
        raise _unsaved(array, at)

    def _estimator(self, estimator: BaseEstimator, at: str) -> Any:
        parameters = estimator.get_params(deep=False)
        learned = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
        inside = {name: self.value(value, f"{at}{name}.") for name, value in learned.items() if name != "circuit_"}
        if "circuit_" in learned:  # at the top level, without a prefix: the names that `pgcc.load` expects
            inside["circuit_"] = self.value(learned["circuit_"], at)
        return {
            "estimator": type(estimator).__name__,
            "parameters": {name: self.value(value, f"{at}{name}.") for name, value in parameters.items()},
            "learned": inside,
        }


def _unsaved(value: Any, at: str) -> FormatError:
    return FormatError(f"{at.removesuffix('.')}={brief(value)} cannot be saved: it is neither a number nor a circuit")


# -- reading ----------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file that `save` wrote. Unlike a pickle, the file cannot run code.

    Raises
    ------
    FormatError
        If the file does not exist, is damaged, or holds something else.

    See Also
    --------
    pgcc.learn.save : write an estimator to a file
    pgcc.load : read a circuit from a file

    Examples
    --------
    >>> import pgcc.learn
    >>> pgcc.learn.load("nothing.npz")
    Traceback (most recent call last):
    pgcc.errors.FormatError: nothing.npz: there is no such file
    """
    place = as_path(path)
    with reading(place):
        data = read_bytes(place)
    try:
        archive = Archive(data)
        if _ENTRY not in archive.entries:
            raise FormatError("it does not hold an estimator; pgcc.load reads circuits")
        header = json.loads(archive.array(_ENTRY).tobytes().decode())
        if header["format"] != FORMAT or header["version"] != VERSION:
            raise FormatError(
                f"it has version {header['version']!r} of the format, and this pgcc reads version {VERSION}"
            )
        return _Reader(archive).estimator(header["estimator"])
    except FormatError as error:
        raise FormatError(f"{place}: {error}") from None
    except (*DAMAGE, AttributeError, CircuitError, RecursionError) as error:
        raise FormatError(f"{place} is damaged, or does not hold an estimator: {reason_of(error)}") from None


class _Reader:
    """Converts values back from JSON, with the arrays of the file."""

    def __init__(self, archive: Archive):
        self._unread = set(archive.entries)
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "float": lambda text: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text],
            "list": lambda values: [self.value(one) for one in values],
            "tuple": lambda values: tuple(self.value(one) for one in values),
            "dict": lambda pairs: {self.value(key): self.value(value) for key, value in pairs},
            "names": lambda names: np.array([str(name) for name in names], dtype=object),
            "array": lambda name: archive.array(self._once(name)).copy(),
            "circuit": lambda prefix: circuit_in(archive.part(self._once(f"{prefix}header").removesuffix("header"))),
            "trees": lambda arrays: Trees(**{name: self.value(array) for name, array in arrays.items()}).checked(),
        }

    def _once(self, name: str) -> str:
        """The name of an array that was not read before: many copies of one would take any amount of memory."""
        if name not in self._unread:
            raise FormatError(f"it has no array {name!r}, or names it twice")
        self._unread.remove(name)
        return name

    def value(self, encoded: Any) -> Any:
        if not isinstance(encoded, dict):
            return encoded
        if "estimator" in encoded:
            return self.estimator(encoded)
        ((kind, content),) = encoded.items()
        return self._kinds[kind](content)

    def estimator(self, encoded: dict[str, Any]) -> BaseEstimator:
        parameters = {name: self.value(value) for name, value in encoded["parameters"].items()}
        for name, value in parameters.items():
            if not _is_parameter(value):
                raise FormatError(f"{name!r} is {brief(value)}, which no parameter is")
        estimator = KINDS[encoded["estimator"]](**parameters)
        for name, value in encoded["learned"].items():
            found, kind = self.value(value), _LEARNED.get(name)
            if kind is None or not isinstance(found, kind) or isinstance(found, bool) != (kind is bool):
                raise FormatError(f"{name!r} is not a learned attribute, or not {brief(found)}")
            setattr(estimator, name, found)
        _check(estimator)
        return estimator


def _is_parameter(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return all(map(_is_parameter, value.values() if isinstance(value, dict) else value))
    return isinstance(value, _PARAMETERS)


def _check(estimator: BaseEstimator) -> None:
    """Refuse learned attributes that do not belong together."""
    learned = vars(estimator)
    if isinstance(estimator, (Imputer, Classifier)):
        inner = learned.get("estimator_")
        if inner is not None and "circuit_" not in vars(inner):
            raise FormatError("its estimator has not learned anything")
        if isinstance(estimator, Classifier) and inner is not None:
            states = inner._domains[learned["label_"]].states if learned.get("label_") in inner._domains else ()
            if learned.get("classes_", np.zeros(0)).shape != (len(states),) or not states:
                raise FormatError("its labels are not those of its estimator")
        return
    circuit = learned.get("circuit_")
    if circuit is None:
        return
    members, weights = learned.get("members_", []), learned.get("weights_", np.ones(0))
    variables = tuple(circuit.domains or circuit.variables)
    names = learned.get("feature_names_in_", np.array(variables, dtype=object))
    are_members = all(isinstance(one, Estimator) and "circuit_" in vars(one) for one in members)
    if not (
        learned.get("n_features_in_") == len(variables)
        and tuple(names.tolist()) == variables
        and are_members
        and all(one.circuit_.variables == circuit.variables for one in members)
        and (weights.shape, weights.dtype) == ((len(members),), np.dtype(float))
        and bool((weights >= 0.0).all())
        and bool(members) == isinstance(estimator, StackedEnsemble)
    ):
        raise FormatError("its learned attributes do not belong together")

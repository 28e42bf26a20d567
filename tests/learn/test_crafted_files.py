"""Checkpoints and saved models that somebody crafted: refused, or answered, with our errors only."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from how_many import some
from sklearn.base import clone

import pgcc
from pgcc.errors import FormatError, PgccError
from pgcc.learn import (
    ChowLiu,
    CircuitMLE,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    Imputer,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
    Strudel,
    load,
    save,
)
from pgcc.learn.common.training import Run

X = np.random.default_rng(0).integers(0, 2, (60, 3))
X[:, 1] |= X[:, 0]
GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.1, -1, X)
CIRCUIT = pgcc.parse(
    "0.4*(0.3*x1 + 0.7)*(0.5*x2 + 0.5)*(0.2*x3 + 0.8) + 0.6*(0.6*x1 + 0.4)*(0.1*x2 + 0.9)*(0.9*x3 + 0.1)"
)
KERNEL = pgcc.dpp(L=np.eye(3) + 0.1, names=["x1", "x2", "x3"])
RUNS = {
    "SimplePGC": SimplePGC(2, 2, "paper", max_iter=12, batch_size=32),
    "trees": MixtureOfTrees(2, max_iter=12, n_iter_no_change=12, smoothing=0.1),
    "tree": ChowLiu(),
    "continuous": ContinuousMixture("tree", 3, 1, max_iter=12, batch_size=32),
    "hidden": HiddenTree(2, max_iter=12),
    "tied": HiddenTree(2, "tied", max_iter=12),
    "einsum": EinsumNetwork(2, 1, 2, max_iter=12),
    "strudel": Strudel((1, 2), n_splits=1, max_iter=12),
    "em": CircuitMLE(CIRCUIT, "em", max_iter=12),
    "lbfgs": CircuitMLE(KERNEL, "lbfgs", max_iter=12),
    "adam": CircuitMLE(KERNEL, "adam", max_iter=12),
}
VALUES = [None, True, -1, 0, 7, 10**30, -1.5, float("nan"), float("inf"), "x", [], [1], {}, {"array": "theta"}]


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def changed_json(given: Any, rng: np.random.Generator) -> Any:
    """A copy with one value replaced, dropped, repeated or added."""
    given = deepcopy(given)
    places = list(all_places(given))
    where, key = places[rng.integers(len(places))]
    action = rng.integers(4)
    if action == 0:
        del where[key]
    elif action == 1 and isinstance(where, list):
        where.insert(key, deepcopy(where[key]))
    elif action == 1:
        where[f"{key}_"] = where.pop(key)
    else:
        where[key] = VALUES[rng.integers(len(VALUES))]
    return given


def all_places(given: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(given) if isinstance(given, dict) else range(len(given)) if isinstance(given, list) else []
    for key in keys:
        yield given, key
        yield from all_places(given[key])


def changed_arrays(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A copy with one array dropped, renamed, or changed in type, shape or values."""
    arrays = dict(arrays)
    if not arrays:
        return arrays
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays.pop(name)
    numbers = array.astype(float) if array.dtype.kind in "biuf" else np.zeros(1)
    spoiled = numbers.copy()
    if spoiled.size:
        spoiled.reshape(-1)[rng.integers(spoiled.size)] = [np.nan, np.inf, -1, 5, 1e300, 0][rng.integers(6)]
    others = [
        None, array.reshape(-1), array[None], array[..., None], np.array(3), np.zeros(0), np.zeros((0, 3)),
        numbers.astype(np.float32), numbers.astype(">f8"), np.where(np.isfinite(numbers), numbers, 0).astype(np.int8),
        numbers.astype(complex), numbers > 0, numbers.astype("U5"), np.concatenate([numbers.reshape(-1), [1.0]]),
        spoiled, spoiled.astype(array.dtype) if array.dtype.kind in "fi" else None, numbers.reshape(-1)[:-1], numbers.T,
        *(np.full_like(array, x) for x in (0, 1, 7)),
    ]  # fmt: skip
    other = others[rng.integers(len(others))] if rng.random() < 0.9 else array
    if other is not None:
        arrays[name if other is not array else f"{name}x"] = other
    return arrays


# -- checkpoints ------------------------------------------------------------------------------------------------


def interrupted(model, path, monkeypatch, epochs: int) -> None:
    with monkeypatch.context() as patch:
        record, done = Run.record, []

        def die(self, *args):
            record(self, *args)
            done.append(1)
            if len(done) == epochs:
                raise Killed

        patch.setattr(Run, "record", die)
        with suppress(Killed):
            clone(model).fit(GAPS if isinstance(model, ChowLiu) else X, checkpoint=path)


def parts_of(path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with np.load(path) as stored:
        arrays = dict(stored)
    return arrays, json.loads(arrays.pop("__rest__").tobytes())


def write(path, arrays, content) -> None:
    np.savez(path, **arrays, __rest__=np.frombuffer(json.dumps(content).encode(), np.uint8))


@pytest.mark.parametrize("epochs", [7, 1000])  # interrupted, ended
@pytest.mark.parametrize("kind", RUNS)
def test_crafted_checkpoints(kind, epochs, tmp_path, monkeypatch):
    """A missing theta was a KeyError, a number for the runs a TypeError; shapes that do not fit were broadcast."""
    path, model = tmp_path / "run.npz", RUNS[kind]
    data = GAPS if kind == "tree" else X
    interrupted(model, path, monkeypatch, epochs)
    arrays, content = parts_of(path)
    assert bool(arrays)
    whole, refused = clone(model).fit(data).circuit_, 0
    rng = np.random.default_rng(epochs)
    for i in range(some(120)):
        crafted = changed_arrays(arrays, rng) if i % 2 else arrays
        write(path, crafted, {**content, "rest": content["rest"] if i % 2 else changed_json(content["rest"], rng)})
        try:
            clone(model).fit(data, checkpoint=path)
        except PgccError:
            refused += 1
    assert refused > some(120) / 4
    write(path, arrays, content)
    assert clone(model).fit(data, checkpoint=path).circuit_ == whole


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("0.best.parents", np.array([[1, 0, 0], [-1, 0, 0]])),
        ("0.best.parents", np.array([[-1, 3, 0], [-1, 0, 0]])),
        ("0.best.probs", np.full((2, 3, 2), 1.5)),
        ("0.best.weights", np.array([1.5, -0.5])),
    ],
)
def test_what_is_no_tree(name, array, tmp_path, monkeypatch):
    """A parent beyond the variables would be read from memory that is not ours."""
    path = tmp_path / "run.npz"
    interrupted(RUNS["trees"], path, monkeypatch, 1000)
    arrays, content = parts_of(path)
    write(path, {**arrays, name: array}, content)
    with pytest.raises(FormatError, match="these are no trees"):
        clone(RUNS["trees"]).fit(X, checkpoint=path)


# -- saved models -----------------------------------------------------------------------------------------------

MODELS = {
    **RUNS,
    "ensemble": StackedEnsemble([ChowLiu(), MixtureOfTrees(2, max_iter=2)]),
    "imputer": Imputer(ChowLiu(), strategy="sample", random_state=0),
}


def ask(model) -> None:
    """Everything that a model answers."""
    repr(model)
    rows = np.array([[1, -1, 0], [-1, -1, -1]])
    if isinstance(model, Imputer):
        model.transform(rows)
        return
    rows = rows if model.model_.circuit.domains is None else [["sun", 1, None], [None, None, 0]]
    model.score(rows)
    model.score_samples(rows)
    model.sample(3, random_state=0)
    model.conditional_proba(rows, 0)


@pytest.mark.parametrize("kind", MODELS)
def test_crafted_models(kind, tmp_path):
    """A number for the circuit was an AttributeError at the first question."""
    path, crafted = tmp_path / "model.npz", tmp_path / "crafted.npz"
    labelled = [["sun" if x else ("rain", "snow")[z], y, z] for x, y, z in X.tolist()]
    save(clone(MODELS[kind]).fit(labelled if kind in ("tree", "ensemble") else X), path)
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(arrays.pop("estimator").tobytes())
    rng = np.random.default_rng(3)
    refused = 0
    for i in range(some(200)):
        said = header if i % 3 == 0 else changed_json(header, rng)
        others = changed_arrays(arrays, rng) if i % 3 == 0 else arrays
        np.savez(crafted, **others, estimator=np.frombuffer(json.dumps(said).encode(), np.uint8))
        try:
            model = load(crafted)
        except FormatError:
            refused += 1
            continue
        with suppress(PgccError):
            ask(model)
        with suppress(PgccError):
            save(model, crafted)
        with suppress(PgccError):
            clone(model).fit(X)
    assert refused > some(200) / 4


def test_an_array_that_is_named_again_and_again(tmp_path):
    """62 kB took 2.6 GB: forty copies of an array of zeros, which is packed well."""
    path = tmp_path / "model.npz"
    said = {"estimator": "ChowLiu", "parameters": {}, "learned": {"history_": {"list": [{"array": "zeros"}] * 40}}}
    text = json.dumps({"format": "pgcc estimator", "version": 1, "estimator": said}).encode()
    np.savez_compressed(path, zeros=np.zeros(10**6), estimator=np.frombuffer(text, np.uint8))
    with pytest.raises(FormatError, match="no array 'zeros', or names it twice"):
        load(path)

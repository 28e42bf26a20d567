"""Estimators in files: what is read is what was written, without pickles; damaged and hostile files are refused."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest

import pgcc
from pgcc.errors import FormatError
from pgcc.learn import (
    DPP,
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

X = np.random.default_rng(0).integers(0, 2, (60, 3))
X[:, 1] |= X[:, 0]
CIRCUIT = pgcc.parse("(0.4*a + 0.6)*(1/3*(0.3*b + 0.7)*(0.5*c + 0.5) + 2/3*(0.6*b + 0.4)*(0.1*c + 0.9))")
KINDS = {
    "SimplePGC": SimplePGC(2, 2, "paper", max_iter=2),
    "DPP": DPP("paper", max_iter=2, random_state=3),
    "ChowLiu": ChowLiu(2.5, binarize=0.5),
    "MixtureOfTrees": MixtureOfTrees(2, max_iter=2),
    "ContinuousMixture": ContinuousMixture("tree", 4, 1, max_iter=2),
    "HiddenTree": HiddenTree(2, max_iter=2),
    "EinsumNetwork": EinsumNetwork(2, 1, 2, max_iter=2),
    "Strudel": Strudel((1, 2), max_iter=2),
    "CircuitMLE": CircuitMLE(CIRCUIT, max_iter=2),
    "StackedEnsemble": StackedEnsemble([ChowLiu(), MixtureOfTrees(2, max_iter=1)]),
    "nested": StackedEnsemble((StackedEnsemble([ChowLiu()]), ChowLiu(2.0))),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


@EVERY
def test_what_is_read_is_what_was_written(kind, tmp_path):
    path = tmp_path / "model.npz"
    model = KINDS[kind]
    model = type(model)(**model.get_params(deep=False)).fit(X)
    save(model, path)
    again = load(path)
    assert repr(again) == repr(model)
    assert type(again) is type(model)
    assert again.circuit_ == model.circuit_ == pgcc.load(path)
    assert (again.score_samples(X) == model.score_samples(X)).all()
    learned = {name for name in vars(model) if name.endswith("_")}
    assert learned == {name for name in vars(again) if name.endswith("_")}
    for name in learned:
        assert same(getattr(again, name), getattr(model, name)), name
    assert again.fit(X).circuit_ == model.circuit_


def same(one, other) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if hasattr(one, "arrays"):
        return same(one.arrays(), other.arrays())
    if hasattr(one, "get_params"):
        return repr(one) == repr(other) and same(vars(one)["circuit_"], vars(other)["circuit_"])
    return one == other or (one != one and other != other)


@EVERY
def test_before_fit(kind, tmp_path):
    save(KINDS[kind], tmp_path / "model.npz")
    assert repr(load(tmp_path / "model.npz")) == repr(KINDS[kind])


def test_imputers_and_names(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["tea", "milk", "größe"])
    imputer = Imputer(ChowLiu(), strategy="mean").fit(frame)
    save(imputer, tmp_path / "imputer.npz")
    again = load(tmp_path / "imputer.npz")
    gaps = [[1, -1, 0]]
    assert (again.transform(gaps) == imputer.transform(gaps)).all()
    assert again.get_feature_names_out().tolist() == ["tea", "milk", "größe"]
    assert again.feature_names_in_.dtype == object


def test_failures_of_candidates_are_kept(tmp_path):
    with pytest.warns(UserWarning, match="left out"):
        stack = StackedEnsemble([ChowLiu(-1.0), ChowLiu()]).fit(X)
    save(stack, tmp_path / "stack.npz")
    again = load(tmp_path / "stack.npz")
    assert np.isnan(again.history_["validation"][0])
    assert again.history_["failure"] == stack.history_["failure"]


def test_a_weight_that_underflows(tmp_path):
    stack = StackedEnsemble([ChowLiu(), ChowLiu(5.0)]).fit(X)
    stack.weights_ = np.array([1.0, 0.0])[: len(stack.members_)]
    save(stack, tmp_path / "stack.npz")
    assert (load(tmp_path / "stack.npz").weights_ == stack.weights_).all()


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(FormatError, match=r"circuit=<function .* cannot be saved"):
        save(CircuitMLE(lambda names: CIRCUIT), tmp_path / "model.npz")
    with pytest.raises(FormatError, match=r"random_state=RandomState.* cannot be saved"):
        save(MixtureOfTrees(random_state=np.random.RandomState(0)), tmp_path / "model.npz")
    with pytest.raises(FormatError, match=r"candidates.0.smoothing=array.* cannot be saved"):
        save(StackedEnsemble([ChowLiu(np.array([1, None]))]), tmp_path / "model.npz")
    with pytest.raises(FormatError, match="not an estimator of"):
        save(CIRCUIT, tmp_path / "model.npz")

    class Mine(ChowLiu):
        pass

    with pytest.raises(FormatError, match="not an estimator of"):
        save(Mine(), tmp_path / "model.npz")
    with pytest.raises(FormatError, match=r"saved in \.npz files"):
        save(ChowLiu(), tmp_path / "model.pgc")
    with pytest.raises(FormatError, match="cannot be written"):
        save(ChowLiu(), tmp_path / "missing" / "model.npz")
    with pytest.raises(FormatError, match=r"pgcc\.learn\.save"):
        pgcc.save(ChowLiu(), tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


# -- files that nobody should trust ---------------------------------------------------------------------------


def write(path, said, **arrays):
    text = np.frombuffer(json.dumps({"format": "pgcc estimator", "version": 1, "estimator": said}).encode(), np.uint8)
    np.savez(path, estimator=text, **arrays)
    return path


HOSTILE = {
    "another class": {"estimator": "Popen", "parameters": {}, "learned": {}},
    "a parameter that is none": {"estimator": "ChowLiu", "parameters": {"depth": 1}, "learned": {}},
    "a method": {"estimator": "ChowLiu", "parameters": {}, "learned": {"fit": 1}},
    "what is private": {"estimator": "ChowLiu", "parameters": {}, "learned": {"__class__": 1}},
    "no such array": {"estimator": "ChowLiu", "parameters": {}, "learned": {"a_": {"array": "b"}}},
    "no such circuit": {"estimator": "ChowLiu", "parameters": {}, "learned": {"circuit_": {"circuit": "c."}}},
    "no such kind": {"estimator": "ChowLiu", "parameters": {}, "learned": {"a_": {"code": "1"}}},
    "two kinds": {"estimator": "ChowLiu", "parameters": {}, "learned": {"a_": {"list": [], "tuple": []}}},
    "trees without arrays": {"estimator": "ChowLiu", "parameters": {}, "learned": {"trees_": {"trees": {}}}},
    "keys that cannot be": {"estimator": "ChowLiu", "parameters": {}, "learned": {"a_": {"dict": [[{"list": []}, 1]]}}},
    "no estimator": {"list": []},
    "nothing": None,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files(what, tmp_path):
    with pytest.raises(FormatError, match=r"model\.npz"):
        load(write(tmp_path / "model.npz", HOSTILE[what]))


def test_pickles_are_not_read(tmp_path):
    said = {"estimator": "ChowLiu", "parameters": {}, "learned": {"a_": {"array": "evil"}}}
    path = write(tmp_path / "model.npz", said, evil=np.array([object()], dtype=object))
    with pytest.raises(FormatError, match=r"model\.npz"):
        load(path)


def test_damaged_files(tmp_path):
    path = tmp_path / "model.npz"
    save(ChowLiu().fit(X), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        with suppress(FormatError):  # nothing is raised for a bit of what nobody reads
            load(path)
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            load(path)
    pgcc.save(CIRCUIT, path)
    with pytest.raises(FormatError, match=r"pgcc\.load reads circuits"):
        load(path)
    with pytest.raises(FormatError, match="cannot be read"):
        load(tmp_path)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("estimator.npy", b"")
    path.write_bytes(content.getvalue())
    with pytest.raises(FormatError):
        load(path)

"""Runs that were killed: the same call goes on, and ends with the same model to the last bit."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import pgcc
from pgcc.errors import FormatError, PgccError
from pgcc.learn import (
    DPP,
    ChowLiu,
    CircuitMLE,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
)
from pgcc.learn.common.checkpoint import Checkpoint
from pgcc.learn.common.training import Run

NAMES = ["a", "b", "c", "d", "e"]


def data(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, 5)) < 0.4).astype(np.int8)
    X[:, 1] |= X[:, 0]
    return X


def some_circuit():
    """A mixture of independent variables: EM takes it, and so do the others."""
    rng = np.random.default_rng(1)
    parts = [
        " * ".join(f"({p:.3f}*{z} + {1 - p:.3f})" for p, z in zip(rng.random(5), NAMES, strict=True)) for _ in range(3)
    ]
    return pgcc.mixture([0.2, 0.3, 0.5], [pgcc.parse(part) for part in parts])


def estimators():
    kernels = [pgcc.dpp(L=np.eye(5) * x + 0.1, names=NAMES) for x in (0.3, 0.9)]
    return {
        "SimplePGC": SimplePGC(2, 3, max_iter=12, n_iter_no_change=12),
        "DPP": DPP(max_iter=8),
        "em": CircuitMLE(some_circuit(), "em", max_iter=17),
        "lbfgs": CircuitMLE(some_circuit(), "lbfgs", max_iter=40),
        "adam": CircuitMLE(some_circuit(), "adam", max_iter=12, batch_size=30),
        "determinants": CircuitMLE(pgcc.mixture([0.5, 0.5], kernels), "lbfgs", max_iter=14),
        "MixtureOfTrees": MixtureOfTrees(3, max_iter=22, n_iter_no_change=22),
        "ContinuousMixture": ContinuousMixture("tree", 4, 2, max_iter=12, batch_size=30),
        "HiddenTree": HiddenTree(2, max_iter=16, n_iter_no_change=16, batch_size=30),
        "tied": HiddenTree(2, "tied", max_iter=12, batch_size=50),
        "EinsumNetwork": EinsumNetwork(2, 1, 2, max_iter=16, n_iter_no_change=16, batch_size=30),
        "StackedEnsemble": StackedEnsemble(
            [MixtureOfTrees(2, max_iter=9), SimplePGC(2, 2, max_iter=6), MixtureOfTrees(3, max_iter=9)]
        ),
    }


class Killed(BaseException):
    pass


def die_after(monkeypatch, epochs):
    """Every epoch is counted; the last one that is let through raises."""
    seen = []

    def count(record):
        def counted(self, *args):
            seen.append(1)
            if len(seen) > epochs:
                raise Killed
            return record(self, *args)

        return counted

    monkeypatch.setattr(Run, "record", count(Run.record))
    return seen


@pytest.mark.parametrize("name", estimators())
def test_a_run_goes_on_where_it_stopped(name, tmp_path, monkeypatch):
    X, V, path = data(), data(60, 1), tmp_path / "run"
    with monkeypatch.context() as patch:
        all_epochs = die_after(patch, 10**9)
        whole = estimators()[name].fit(X, validation=V)
    with monkeypatch.context() as patch:
        die_after(patch, 2 * len(all_epochs) // 3)
        with pytest.raises(Killed):
            estimators()[name].fit(X, validation=V, checkpoint=path)
    with monkeypatch.context() as patch:
        rest = die_after(patch, 10**9)
        resumed = estimators()[name].fit(X, validation=V, checkpoint=path)
    assert len(rest) < len(all_epochs) / 3 + 6  # what was done is not done again
    assert resumed.circuit_ == whole.circuit_
    for kept in ("train", "validation", "candidate"):
        assert getattr(resumed, "history_", {}).get(kept) == getattr(whole, "history_", {}).get(kept)
    with monkeypatch.context() as patch:
        die_after(patch, 0)
        done = estimators()[name].fit(X, validation=V, checkpoint=path)  # nothing is left to do
    assert done.circuit_ == whole.circuit_


def test_trees_from_gaps_go_on(tmp_path, monkeypatch):
    X = data().astype(float)
    X[::3, 2] = np.nan
    path, write = tmp_path / "run.npz", Checkpoint.write

    def die(self, arrays, rest):
        write(self, arrays, rest)
        if len(rest["runs"][0]["history"]["train"]) == 20:
            raise Killed

    whole = ChowLiu().fit(X)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", die)
        with pytest.raises(Killed):
            ChowLiu().fit(X, checkpoint=path)
    assert path.exists()
    assert ChowLiu().fit(X, checkpoint=path).circuit_ == whole.circuit_


CHILD = """
import sys
sys.path.insert(0, {tests!r})
from test_learn_checkpoints import data, long_runs
long_runs()[sys.argv[1]].fit(data(500), checkpoint=sys.argv[2])
"""


def long_runs():
    return {
        "SimplePGC": SimplePGC(3, 4, recipe="paper", max_iter=200, n_iter_no_change=200),
        "CircuitMLE": CircuitMLE(some_circuit(), "adam", max_iter=150, n_iter_no_change=150),
        "StackedEnsemble": StackedEnsemble([MixtureOfTrees(n, max_iter=300, n_iter_no_change=300) for n in (2, 3, 5)]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", long_runs())
def test_kill_dash_nine(name, tmp_path):
    path = tmp_path / "run"
    child = subprocess.Popen([sys.executable, "-c", CHILD.format(tests=os.path.dirname(__file__)), name, str(path)])
    try:
        while not (list(path.glob("*.npz")) if path.is_dir() else path.exists()):
            assert child.poll() is None
            time.sleep(0.002)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    whole, resumed = long_runs()[name].fit(data(500)), long_runs()[name].fit(data(500), checkpoint=path)
    assert whole.circuit_ == resumed.circuit_


def test_checkpoints_of_others(tmp_path):
    path, quick = tmp_path / "run.npz", MixtureOfTrees(2, max_iter=3)
    quick.fit(data(), checkpoint=path)
    others = [
        (MixtureOfTrees(2, max_iter=3), data(seed=1)),
        (MixtureOfTrees(2, max_iter=3, random_state=1), data()),
        (SimplePGC(2, 2, max_iter=2), data()),
        (CircuitMLE(some_circuit(), "em", max_iter=3), data()),
    ]
    for model, X in others:
        with pytest.raises(FormatError, match="other data or parameters"):
            model.fit(X, checkpoint=path)
    with pytest.raises(FormatError, match="is a file"):
        StackedEnsemble([quick]).fit(data(), checkpoint=path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FormatError, match="damaged"):
        quick.fit(data(), checkpoint=path)
    for model in (quick, StackedEnsemble([quick])):
        with pytest.raises(PgccError, match="cannot be written"):
            model.fit(data(), checkpoint=tmp_path / "no" / "such" / "run.npz")


def test_damage_of_any_kind(tmp_path):
    """Bytes that are changed, lost or added: refused, or (where they say nothing) the same state."""
    path, rng = tmp_path / "run.npz", np.random.default_rng(0)
    arrays = {"theta": np.arange(3.0), "best": np.ones((2, 2))}
    Checkpoint(path, {}).write(arrays, {"epoch": 3})
    written, refused = path.read_bytes(), 0
    for _ in range(400):
        first = rng.choice([0, len(written) - 200])  # of all, or of the directory of the archive
        at, end, new = *sorted(rng.integers(first, len(written), 2)), rng.bytes(rng.integers(0, 4))
        end = at + len(new) if rng.random() < 0.7 else end
        path.write_bytes(written[:at] + new + written[end:])
        try:
            found, rest = Checkpoint(path, {}).read()
        except FormatError:
            refused += 1
        else:
            assert rest == {"epoch": 3}
            assert all((found[name] == array).all() for name, array in arrays.items())
    assert refused > 200


@pytest.mark.parametrize("name", ["SimplePGC", "em", "MixtureOfTrees", "StackedEnsemble"])
def test_where_nothing_can_be_written(name, tmp_path, monkeypatch):
    """It is said before the first epoch."""
    die_after(monkeypatch, 0)
    with pytest.raises(PgccError, match="cannot be written: No such file or directory"):
        estimators()[name].fit(data(), checkpoint=tmp_path / "no" / "run")


def test_what_was_compressed(tmp_path):
    """It was not written here, and a file of a kilobyte might hold a gigabyte."""
    path, state = tmp_path / "run.npz", Checkpoint(tmp_path / "run.npz", {})
    state.write({"theta": np.zeros(10)}, {})
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez_compressed(path, **arrays)
    with pytest.raises(FormatError, match="damaged"):
        state.read()


def test_another_circuit_is_another_run(tmp_path):
    """The same structure with one number changed in its last digit."""
    path = tmp_path / "run.npz"
    CircuitMLE(pgcc.parse("0.3*a*b + 0.7"), max_iter=2).fit([[1, 1], [0, 0]], checkpoint=path)
    with pytest.raises(FormatError, match="other data or parameters"):
        CircuitMLE(pgcc.parse("0.30000000000000001*a*b + 0.7"), max_iter=2).fit([[1, 1], [0, 0]], checkpoint=path)


def test_no_pickles(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, __rest__=np.array([{"run": 1}], dtype=object))
    with pytest.raises(FormatError, match="damaged"):
        ChowLiu().fit(data(), checkpoint=path)

"""What was learned is not lost: totals that cannot be computed, candidates that fail, data that lie."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pgcc
from pgcc.errors import EvidenceError, FormatError, PgccError, PrecisionError
from pgcc.learn import DPP, ChowLiu, MixtureOfTrees, SimplePGC, StackedEnsemble
from pgcc.learn.common.mixing import mixture_of_learned


def rows(count: int = 120, n: int = 5) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (count, n))


class Broken(ChowLiu):
    """Cannot be planned, or not be finished."""

    def __init__(self, error: Exception | None = None, late: bool = False):
        super().__init__()
        self.error, self.late = error, late

    def _plans(self, data, seed, workers):
        if not self.late:
            raise self.error
        return super()._plans(data, seed, workers)

    def _finish(self, runs, data):
        raise self.error


@pytest.mark.parametrize("make", [lambda: SimplePGC(2, 3, max_iter=2), lambda: DPP(max_iter=2)])
def test_a_fit_waits_for_no_total_in_balls(make, monkeypatch):
    def refuse(*arguments):
        raise PrecisionError("no total to 1e-12")

    monkeypatch.setattr("pgcc.frontend.combine.positive_total", refuse)
    X = rows()
    model = make().fit(X)
    assert model.model_.prob({}) == pytest.approx(1, rel=1e-9)
    stack = StackedEnsemble([make(), ChowLiu()]).fit(X)
    assert stack.model_.prob({}) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("log_total", [0.0, 5.5, -700.0, 800.0, 3000.0, -3000.0])
def test_weights_of_totals_beyond_the_floats(log_total):
    """Σ w·g/Z is the same, wherever Z is."""
    power = round(log_total / math.log(2))
    parts = [pgcc.parse(f"2**{power}*(a + 3)" if power >= 0 else f"(a + 3)/2**{-power}"), pgcc.parse("a/2 + 1/2")]
    mixed = mixture_of_learned([0.25, 0.75], parts, ["a"])
    assert pgcc.compile(mixed).prob({"a": 1}) == pytest.approx(0.25 / 4 + 0.75 / 2, rel=2e-9)


def test_parameters_stay_if_there_is_no_circuit(monkeypatch):
    def refuse(*arguments):
        raise PrecisionError("no circuit")

    model, X = SimplePGC(2, 2, max_iter=2), rows()
    parameters = SimplePGC(2, 2, max_iter=2).fit(X).parameters_
    model.fit(rows(100))
    monkeypatch.setattr("pgcc.learn.mixtures.simple_pgc.simple_pgc_circuit", refuse)
    with pytest.raises(PrecisionError, match="no circuit"):
        model.fit(X)
    assert (model.parameters_ == parameters).all()
    assert len(model.history_["train"]) >= 2
    with pytest.raises(PgccError, match="has not learned"):  # not the circuit of the fit before
        model.score(X)


FAILURES = {
    "precision": PrecisionError("too large"),
    "evidence": EvidenceError("gaps"),
    "any": PgccError("training diverged"),
    "arithmetic": FloatingPointError("overflow"),
    "linear algebra": np.linalg.LinAlgError("singular"),
    "memory": MemoryError("40 GB"),
}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("what", FAILURES)
def test_the_others_go_on(what, late):
    X, error = rows(), FAILURES[what]
    good = [ChowLiu(), MixtureOfTrees(2, max_iter=2)]
    with pytest.warns(UserWarning, match=f"left out: Broken.*{type(error).__name__}: {error}"):
        stacked = StackedEnsemble([good[0], Broken(error, late), good[1]]).fit(X)
    alone = StackedEnsemble(good).fit(X)
    assert stacked.circuit_ == alone.circuit_
    assert stacked.history_["failure"] == [None, f"{type(error).__name__}: {error}", None]
    assert math.isnan(stacked.history_["validation"][1])
    assert alone.history_["failure"] == [None, None]


def test_all_fail():
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(PrecisionError, match=r"every candidate failed; the first one was Broken.*one"),
    ):
        StackedEnsemble([Broken(PrecisionError("one")), Broken(PgccError("two"))]).fit(rows())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TypeError("a mistake in the program")])
def test_what_is_no_failure_of_a_candidate_is_raised(error):
    with pytest.raises(type(error)):
        StackedEnsemble([ChowLiu(), Broken(error)]).fit(rows())


def test_checkpoints_of_others_are_no_failure_of_a_candidate(tmp_path):
    StackedEnsemble([ChowLiu(), MixtureOfTrees(2, max_iter=2)]).fit(rows(), checkpoint=tmp_path / "run")
    with pytest.raises(FormatError, match="other data or parameters"):
        StackedEnsemble([ChowLiu(), MixtureOfTrees(3, max_iter=2)]).fit(rows(), checkpoint=tmp_path / "run")
    with pytest.raises(FormatError, match="a checkpoint is text or a path, not 3"):
        ChowLiu().fit(rows(), checkpoint=3)
    with pytest.raises(FormatError, match="a checkpoint is text or a path, not 3"):
        StackedEnsemble([ChowLiu()]).fit(rows(), checkpoint=3)


def test_the_model_is_written_though_it_cannot_be_scored(tmp_path, monkeypatch, capsys):
    from pgcc import cli

    def refuse(self, X, y=None):
        raise PrecisionError("row 3")

    path, out = tmp_path / "data.csv", tmp_path / "model.npz"
    path.write_text("a,b\n1,0\n0,1\n1,1\n")
    monkeypatch.setattr(ChowLiu, "score", refuse)
    monkeypatch.setattr(MixtureOfTrees, "score", refuse)
    assert cli.main(["fit", str(path), "--model", "chow-liu", "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.err == "pgcc: the model was written, but rows could not be scored: row 3\n"
    assert captured.out.startswith("wrote ")
    assert pgcc.load(out).variables == ("a", "b")

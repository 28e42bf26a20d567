"""Progress bars: on a terminal, one at a time, after a second, and gone at the end."""

from __future__ import annotations

import io
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest

import pgcc.progress
from pgcc.learn import ChowLiu, MixtureOfTrees, StackedEnsemble
from pgcc.progress import progress, waiting

X = np.random.default_rng(0).integers(0, 2, (40, 3))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def look_on(monkeypatch) -> Terminal:
    """A terminal as standard error. (Not a fixture: pytest has its own for every phase of a test.)"""
    monkeypatch.setattr(pgcc.progress, "_DELAY", 0.0)
    monkeypatch.delenv("PGCC_QUIET", raising=False)
    monkeypatch.setattr(sys, "stderr", found := Terminal())
    return found


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = look_on(monkeypatch)
    with progress("counting", 3, "number") as bar:
        for i in range(3):
            bar.at(i + 1, note="hello")
    assert "counting" in terminal.getvalue()
    assert "3" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")  # nothing of it is left


def test_none_elsewhere(monkeypatch):
    terminal = look_on(monkeypatch)
    monkeypatch.setenv("PGCC_QUIET", "1")
    with progress("counting", 3, "number") as bar:
        bar.at(1)
    monkeypatch.delenv("PGCC_QUIET")
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    with progress("counting", 3, "number") as bar:
        bar.at(1)
    monkeypatch.setattr(sys, "stderr", None)
    with progress("counting", 3, "number") as bar:
        bar.at(1)
    assert terminal.getvalue() == pipe.getvalue() == ""


def test_one_at_a_time_also_after_an_error(monkeypatch):
    terminal = look_on(monkeypatch)

    def work():
        with progress("outer", 1, "number"), progress("inner", 1, "number") as inner:
            inner.at(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert "inner" not in terminal.getvalue()
    with progress("later", 1, "number") as bar:
        bar.at(1)
    assert "later" in terminal.getvalue()


def test_waiting(monkeypatch):
    terminal = look_on(monkeypatch)
    with waiting("reading"), progress("inner", 1, "number") as inner:
        while "reading" not in terminal.getvalue():
            time.sleep(0.01)
        inner.at(1)
    assert "reading: 00:00" in terminal.getvalue()
    assert "inner" not in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")
    monkeypatch.setattr(pgcc.progress, "_DELAY", 60.0)
    terminal.truncate(0)
    with waiting("short"):
        pass
    monkeypatch.setenv("PGCC_QUIET", "1")
    with waiting("quiet"):
        pass
    assert terminal.getvalue() == ""


def test_fits_of_one_and_of_several_have_one(monkeypatch):
    terminal = look_on(monkeypatch)
    MixtureOfTrees(2, max_iter=3).fit(X)
    assert "MixtureOfTrees" in terminal.getvalue()
    terminal.truncate(0)
    StackedEnsemble([ChowLiu(), MixtureOfTrees(2, max_iter=3)]).fit(X)
    assert "StackedEnsemble" in terminal.getvalue()
    assert "MixtureOfTrees" not in terminal.getvalue()


@pytest.mark.parametrize("model", [MixtureOfTrees(2, max_iter=2), StackedEnsemble([ChowLiu()])])
def test_verbose_says_what_to_show(monkeypatch, model):
    terminal = look_on(monkeypatch)
    model.set_params(verbose=False).fit(X)
    assert terminal.getvalue() == ""
    model.set_params(verbose=True).fit(X)
    assert "\r" not in terminal.getvalue()
    assert terminal.getvalue().count("\n") >= 1


@pytest.mark.parametrize("threshold", ["_LONG_WORK", "_LARGE_CIRCUIT"])
def test_compiling_and_long_questions_say_what_they_do(monkeypatch, threshold):
    """Also questions about few rows of a large circuit: the first marginals of 600,000 edges were silent for 4 s."""
    said = []
    for module in ("pgcc.compiler", "pgcc.model"):
        monkeypatch.setattr(f"{module}.waiting", lambda what: said.append(what) or nullcontext())
    monkeypatch.setattr(f"pgcc.model.{threshold}", 0)
    pgcc.compile(pgcc.parse("0.4*a*b + 0.6")).marginals([[1, -1], [-1, 1]])
    assert any(what.startswith("compiling, stage homogenized: every term") for what in said)
    assert "computing the total g(1)" in said
    assert "marginals: 2 rows" in said


def test_proofs_say_what_they_do(monkeypatch):
    """A check of a DPP of 400 items was silent for eight seconds."""
    said = []
    monkeypatch.setattr("pgcc.validity.check.waiting", lambda what: said.append(what) or nullcontext())
    assert pgcc.check(pgcc.parse("0.4*a*b + 0.6")).ok
    assert said == ["looking for a proof that it is a distribution"]


def test_a_terminal_of_width_0(monkeypatch):
    """Some say that they have no columns, such as a new pseudo-terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as screen, open(theirs, "w") as terminal:
        monkeypatch.setattr(pgcc.progress, "_DELAY", 0.0)
        monkeypatch.delenv("PGCC_QUIET", raising=False)
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress("counting", 3, "number") as bar:
            bar.at(1)
        terminal.write("end of the test")
        terminal.flush()
        assert b"counting" in screen.read(10_000)


def test_a_search_for_the_mode_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    parts = [pgcc.dpp(factor=rng.normal(size=(40, 12))) for _ in range(4)]
    model = pgcc.compile(pgcc.mixture([0.25] * 4, parts))
    model.mode(time_limit=0.01)
    terminal = look_on(monkeypatch)
    model.mode(time_limit=1.5)
    assert "searching for the mode" in terminal.getvalue()

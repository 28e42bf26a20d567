"""Somebody who waits at a terminal is told that kernels are compiled; also after one was interrupted."""

from __future__ import annotations

import logging

import numba
import pytest

from pgcc.kernels import announce, cache
from pgcc.kernels.policy import kernel


@pytest.fixture
def said(monkeypatch):
    """A compilation that patience does not wait for, and what was said of it."""
    lines: list[str] = []
    compilation = announce.Compilation()
    monkeypatch.setattr(announce, "PATIENCE", 3600.0)
    monkeypatch.setattr(announce, "_say", lines.append)
    monkeypatch.setattr(cache, "compilation", compilation)
    return compilation, lines


def test_a_kernel_and_those_that_it_calls(said):
    compilation, lines = said
    compilation.begins("outer")
    compilation.begins("inner")
    compilation._tell()  # as the timer does
    compilation.ends()
    assert lines == ["compiling outer for this machine; it is kept for the next time"]
    compilation.ends()
    assert lines[1:] == ["compiled outer in 0.0 s"]
    compilation.begins("short")
    compilation.ends()
    compilation._tell()
    assert len(lines) == 2


def test_budgets_know_that_a_kernel_is_compiled(said, monkeypatch):
    compilation, _ = said
    monkeypatch.setattr(announce, "compilation", compilation)
    now = iter(range(100))
    monkeypatch.setattr(announce.time, "monotonic", lambda: float(next(now)))
    before = announce.search_clock()
    compilation.begins("kernel")
    during = [announce.search_clock() for _ in range(3)]
    compilation.ends()
    assert max(abs(time - before) for time in (*during, announce.search_clock())) <= 3


def test_the_next_one_is_announced_after_one_failed(said):
    compilation, lines = said
    compilation.begins("outer")
    compilation._tell()
    compilation.ends(failed=True)
    assert lines == ["compiling outer for this machine; it is kept for the next time"]
    compilation.begins("next")
    assert compilation._timer.is_alive()
    compilation._tell()
    assert lines[1:] == ["compiling next for this machine; it is kept for the next time"]
    compilation.ends()


@kernel
def twice(x):
    return 2.0 * x


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_numba_is_interrupted(said, monkeypatch, error, caplog):
    """An interrupted compilation stayed in the list of those that go on, and no later one was announced."""
    compilation, _ = said
    dispatcher = twice.dispatcher

    def stop(*_):
        assert [name for name, _ in compilation._began] == ["twice"]
        raise error

    monkeypatch.setattr(dispatcher._compiler, "compile", stop)
    monkeypatch.setattr(dispatcher._cache, "_enabled", False)
    with caplog.at_level(logging.DEBUG, "pgcc.kernels"), pytest.raises(error):
        dispatcher.compile((numba.float32,))
    assert compilation._began == []
    assert "gave up twice" in caplog.text
    monkeypatch.undo()


def test_functions_of_others_are_not_announced(said, monkeypatch):
    compilation, _ = said
    begun: list[str] = []
    monkeypatch.setattr(compilation, "begins", begun.append)
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert begun == []


def test_the_clock_of_searches_stands_still_while_kernels_are_compiled(said, monkeypatch):
    compilation, _ = said
    monkeypatch.setattr(announce, "compilation", compilation)
    times = iter([10.0, 100.0, 107.0, 110.0])
    monkeypatch.setattr(announce.time, "monotonic", lambda: next(times))
    began = announce.search_clock()  # 10
    compilation.begins("outer")  # 100
    compilation.begins("inner")
    compilation.ends()
    compilation.ends()  # 107
    assert announce.search_clock() - began == 110.0 - 10.0 - 7.0

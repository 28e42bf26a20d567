"""A child that is forked while other threads are at work answers, too: no lock stays locked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.locks import cached_property, importing, new_lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

# Each child asks what a thread of its parent asks at the moment of the fork; one that waits for ever is killed.
FORK = """
import os, signal, threading
{prepare}
ask()
ended = threading.Event()
def work():
    while not ended.is_set():
        ask()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
failed = 0
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        ask()
        os._exit(0)
    failed += os.waitpid(child, 0)[1] != 0
ended.set()
for thread in threads:
    thread.join()
print(failed)
"""
EXACT = """
import pgcc
model = pgcc.compile(pgcc.parse("*".join(f"(0.{i + 1}*x{i} + 0.5)" for i in range(60))))
def ask():
    model.prob({"x3": 1, "x5": 0}, exact=True)
"""
BALLS = """
import pgcc
model = pgcc.compile(pgcc.parse("*".join(f"(0.{i + 1}*x{i} + 0.5)" for i in range(60))))
def ask():
    model.prob({"x3": 1, "x5": 0}, method="ball")
"""
NODES = """
import pgcc
def ask():
    pgcc.parse("*".join(f"(0.{i + 1}*x{i} + 0.5)" for i in range(60)))
"""
SAMPLES = """
import pgcc
model = pgcc.compile(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))
def ask():
    model.sample(3, {"a": 1}, rng=0)
"""


COMPILED = """
import numba
import pgcc.kernels.numba_private
def ask():
    numba.njit(lambda x: x + 1.0)(1.0)
"""


@pytest.mark.parametrize(
    "prepare",
    [EXACT, BALLS, NODES, SAMPLES, pytest.param(COMPILED, marks=pytest.mark.slow)],
    ids=["exact", "balls", "nodes", "samples", "compiled"],
)
def test_a_fork_while_other_threads_ask(prepare: str) -> None:
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK.format(prepare=prepare)], capture_output=True, text=True
    )
    assert out.stdout == "0\n", out.stdout + out.stderr


def test_a_lock_of_the_thread_that_forks_stays_its_own() -> None:
    lock, other = new_lock(), new_lock()
    held, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with other:
            held.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with lock:
        child = os.fork()
        if child == 0:
            free = other.acquire(blocking=False)
            os._exit(0 if free and lock._is_owned() else 1)
        assert os.waitpid(child, 0)[1] == 0
    ended.set()
    thread.join()


def answers_in_a_child(ask) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        ask()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_a_property_that_another_thread_computes() -> None:
    """Python 3.11 has one lock for all objects of a class; a child that parsed a text sometimes waited for ever."""
    begun, ended = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits: bool):
            self.waits = waits

        @cached_property
        def value(self) -> int:
            if self.waits:
                begun.set()
                ended.wait()
            return 1

    thread = threading.Thread(target=lambda: Slow(True).value)
    thread.start()
    begun.wait()
    assert answers_in_a_child(lambda: Slow(False).value)
    ended.set()
    thread.join()
    assert isinstance(vars(Circuit)["root"], cached_property)


def test_a_fork_waits_for_imports() -> None:
    """A module that another thread had begun to import stayed locked in the child, and half imported."""
    begun, ended = threading.Event(), []

    def work() -> None:
        with importing:
            begun.set()
            time.sleep(0.2)
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    assert answers_in_a_child(lambda: importing.acquire(blocking=False) or os._exit(1))
    assert ended
    thread.join()


def test_no_property_has_a_lock_of_its_own() -> None:
    text = "from functools import cached_property"
    files = [path for path in Path(pgcc.__file__).parent.rglob("*.py") if text in path.read_text(encoding="utf-8")]
    assert [path.name for path in files] == ["locks.py"]

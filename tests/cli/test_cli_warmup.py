"""`pgcc warmup`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from pgcc.cli import warmup
from pgcc.kernels.policy import choose_tier


@pytest.mark.parametrize("name", warmup.JOBS)
def test_jobs_ask_what_can_be_asked(name):
    """Interpreted here, which asks the same kernels."""
    before = choose_tier("interpreted")
    try:
        warmup.JOBS[name]()
    finally:
        choose_tier(before)


@pytest.mark.slow
def test_every_job_is_done(run, monkeypatch, tmp_path):
    monkeypatch.setattr(warmup, "folder", lambda: tmp_path)
    monkeypatch.setattr(warmup, "writable", lambda: tmp_path)
    monkeypatch.setattr(warmup, "JOBS", {"numbers out of range": warmup.JOBS["numbers out of range"]})
    (tmp_path / "walk-0.kernel").touch()
    assert run("warmup", "--jobs", 1) == f"1 compiled kernels in {tmp_path}\n"


def test_nothing_can_be_kept(fail, monkeypatch):
    monkeypatch.setattr(warmup, "writable", lambda: None)
    assert "cannot be kept" in fail("warmup")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_an_interrupt_ends_its_processes(tmp_path):
    """They were waited for until all had compiled what they had to: a minute or two."""
    command = [sys.executable, "-c", INTERRUPTIBLE, "warmup", "--jobs", "2"]
    environment = {**os.environ, "PGCC_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as warming:
        while not any(tmp_path.iterdir()):  # they have begun
            assert warming.poll() is None
            time.sleep(0.1)
        warming.send_signal(signal.SIGINT)
        assert warming.communicate() == (b"", b"")  # returns when no process is left that could write
    assert warming.returncode == 130
    compiled = {path.name.partition("-")[0] for path in tmp_path.iterdir()}
    assert "run_staged" not in compiled  # which the first job compiles last


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_its_processes_end_with_it(tmp_path):
    """When it is killed, too."""
    command = [sys.executable, "-m", "pgcc", "warmup", "--jobs", "2"]
    environment = {**os.environ, "PGCC_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as warming:
        while not any(tmp_path.iterdir()):  # they have begun
            assert warming.poll() is None
            time.sleep(0.1)
        warming.kill()
        warming.communicate(timeout=120)  # returns when no process is left that could write


# Jobs in the background ignore interrupts.
INTERRUPTIBLE = """
import signal, sys
from pgcc.cli import main
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
"""

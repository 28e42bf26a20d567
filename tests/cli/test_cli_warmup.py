"""`pgcc warmup`."""

from __future__ import annotations

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

"""Scoring on a Dask cluster gives what scoring here does. (For learning: test_learn_stream.)"""

import subprocess
import sys

import numpy as np
import pytest

import pgcc
from pgcc.cluster import crew, logprobs
from pgcc.errors import PgccError, SemanticsError


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        yield client


def blocks(count, rows, columns):
    rng = np.random.default_rng(0)
    return [(i, rng.integers(-1, 2, (rows, columns), dtype=np.int8)) for i in range(count)]


def test_the_same_in_the_same_order(cluster):
    rng = np.random.default_rng(1)
    B = rng.standard_normal((6, 6))
    for circuit in (pgcc.dpp(L=B @ B.T), pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=6)):
        model = pgcc.compile(circuit)
        work = blocks(20, 50, 6)
        found = list(logprobs(cluster, model, work))
        assert [label for label, _ in found] == list(range(20))
        for (_, codes), (_, logs) in zip(work, found, strict=True):
            np.testing.assert_array_equal(logs, model.logprob(codes))


def test_errors_come_back(cluster):
    model = pgcc.compile(pgcc.parse("2*a - 1"))
    with pytest.raises(SemanticsError, match="negative"):
        list(logprobs(cluster, model, [(0, np.zeros((1, 1), np.int8))]))


def test_a_worker_is_lost_with_what_it_held(cluster):
    with crew(cluster) as workers:
        parts = workers.keep(abs, [-1, -2, -3])
        assert list(workers.map(pow, parts, 2)) == [1, 4, 9]
        cluster.cancel(parts)
        with pytest.raises(PgccError, match="lost a worker"):
            list(workers.map(pow, parts, 2))


def test_nobody_there(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("pgcc.cluster._TIMEOUT", 1)
    model = pgcc.compile(pgcc.parse("0.5*a + 0.5"))
    with pytest.raises(PgccError, match="no Dask scheduler answers"):
        list(logprobs("tcp://127.0.0.1:9", model, []))


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PgccError, match=r"pgcc\[dask\]"):
        list(logprobs("tcp://127.0.0.1:9", pgcc.compile(pgcc.parse("a")), []))


def test_the_command(tmp_path, run):
    """With workers that are processes of their own, which get the model as a pickle."""
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.random.default_rng(0).integers(0, 2, (500, 2)), fmt="%d", delimiter=",")
    expression = ["--expr", "0.4*a*b + 0.3*a + 0.2*b + 0.1"]
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        address = ["--cluster", cluster.scheduler_address]
        away = run("score", *expression, path, *address, "--rows")
        run("fit", path, "--model", "mixture-of-trees", "--epochs", 3, "-o", tmp_path / "away.npz", *address)
    run("fit", path, "--model", "mixture-of-trees", "--epochs", 3, "-o", tmp_path / "here.npz")
    assert pgcc.load(tmp_path / "away.npz") == pgcc.load(tmp_path / "here.npz")
    assert away == run("score", *expression, path, "--rows")


def test_the_command_starts_without_dask():
    code = "import sys, pgcc.cli.score; assert 'distributed' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

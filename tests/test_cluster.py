"""Scoring on a Dask cluster gives what scoring here does. (For learning: test_learn_stream.)"""

import os
import signal
import subprocess
import sys
from concurrent.futures import CancelledError

import numpy as np
import pytest

import pgcc
from pgcc.cluster import Lost, _DaskWorkers, _LostError, crew, logprobs
from pgcc.errors import PgccError, SemanticsError
from pgcc.learn import ChowLiu, CircuitMLE, MixtureOfTrees, SimplePGC, StackedEnsemble


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
    model = pgcc.compile(pgcc.parse("2*a - 1"), validate=False)
    with pytest.raises(SemanticsError, match="negative"):
        list(logprobs(cluster, model, [(0, np.zeros((1, 1), np.int8))]))


def test_what_a_worker_held_is_sent_again(cluster):
    with crew(cluster) as workers:
        parts, power = workers.keep(abs, [-1, -2, -3]), workers.send(2)
        for ask in (lambda: list(workers.stream(pow, parts, power)), lambda: [workers.total(pow, parts, power)]):
            expected = ask()
            cluster.cancel([parts[1].future, power.future])
            assert ask() == expected
        assert expected == [14]


def test_what_is_lost_again_and_again_is_told(cluster, monkeypatch):
    with crew(cluster) as workers:
        monkeypatch.setattr("pgcc.cluster._result_of", _always_lost)
        with pytest.raises(PgccError, match="lost a worker 4 times"):
            list(workers.stream(abs, [-1]))
        assert list(workers.as_completed(abs, [-1, -2])) == [(0, Lost("gone")), (1, Lost("gone"))]


def _always_lost(future):
    raise _LostError("gone")


def half(part):
    """Half of an even number; the process dies, once."""
    number, marker = part
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number // 2


@pytest.fixture
def processes():
    """Two workers that are processes, one of which can be killed."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        yield client


@pytest.mark.slow
def test_a_worker_dies(processes, tmp_path, monkeypatch):
    """What it had is done again, with the same result."""
    with crew(processes) as workers:
        found = list(workers.as_completed(half, [(16, tmp_path / "a"), (8, tmp_path / "b")]))
    assert sorted(found) == [(0, 8), (1, 4)]
    assert (tmp_path / "a").exists()
    assert (tmp_path / "b").exists()
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 6))
    circuit = pgcc.dpp(L=np.eye(6) + 0.1, names=[f"x{i}" for i in range(6)])
    for model in (CircuitMLE(circuit, "lbfgs", max_iter=4), MixtureOfTrees(3, max_iter=4)):
        here = clone(model).fit(X, validation=X)
        killer = Killer(processes)
        model.verbose = True
        monkeypatch.setattr("pgcc.learn.common.training.progress_line", killer)
        there = model.fit(X, validation=X, cluster=processes)
        assert killer.killed == 1
        assert there.circuit_ == here.circuit_


class Killer:
    """Kills a worker after the first epoch."""

    def __init__(self, client):
        self.client, self.killed = client, 0

    def __call__(self, plans, runs, i):
        if not self.killed:
            self.killed = 1
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)
        return f"run {i}"


def clone(model):
    return type(model)(**model.get_params())


@pytest.mark.slow
def test_a_cluster_without_workers(tmp_path, fail, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("pgcc.cluster._TIMEOUT", 1)
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,0\n0,1\n")
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        for model in (ChowLiu(), MixtureOfTrees(2), SimplePGC(1, 1), StackedEnsemble([ChowLiu()])):
            with pytest.raises(PgccError, match="has no workers"):
                model.fit(path, cluster=cluster)
        with pytest.raises(PgccError, match="has no workers"):
            list(logprobs(cluster, pgcc.compile(pgcc.parse("a")), []))
        assert address


@pytest.mark.parametrize("wrong", [5, 2.5, [], object(), "nowhere", "tcp://", ""])
def test_no_cluster(wrong, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("pgcc.cluster._TIMEOUT", 1)
    with pytest.raises(PgccError, match=r"cluster=|no Dask scheduler answers"):
        MixtureOfTrees(2).fit([[0, 1], [1, 0]], cluster=wrong)


def test_nobody_there(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("pgcc.cluster._TIMEOUT", 1)
    model = pgcc.compile(pgcc.parse("0.5*a + 0.5"))
    with pytest.raises(PgccError, match="no Dask scheduler answers"):
        list(logprobs("tcp://127.0.0.1:9", model, []))


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PgccError, match=r"pip install distributed"):
        list(logprobs("tcp://127.0.0.1:9", pgcc.compile(pgcc.parse("a")), []))


@pytest.mark.slow
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
    code = "import sys, pgcc.cli.questions; assert 'distributed' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_scheduler_that_is_gone():
    """While work is under way: Dask raises an OSError where it would wait for a worker."""
    pytest.importorskip("distributed")

    class Gone:
        status = "cancelled"

        def nthreads(self):
            return {}

        def submit(self, *args, **more):
            return self

        def result(self):
            raise CancelledError("lost the connection to the scheduler")

        def wait_for_workers(self, *args, **more):
            raise OSError("Timed out trying to connect after 10 s")

    with pytest.raises(PgccError, match="the Dask scheduler does not answer any more: Timed out"):
        list(_DaskWorkers(Gone()).stream(abs, [1]))

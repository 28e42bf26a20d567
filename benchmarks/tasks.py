"""Work that people do, by name, in the public names that versions of pgcc share: `benchmarks.against` times it.

Run as a script, it is one side of such a comparison: it reads a name and how many seconds to spend from every line of
standard input, and answers with the CPU seconds of one call, the fewest of several, or with the error.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import pgcc
from benchmarks.circuits import cancelling, random_circuit, random_evidence, variables_for
from benchmarks.common import DATA

Call = Callable[[], Any]


@cache
def _compiled(edges: int) -> pgcc.Model:
    return pgcc.compile(random_circuit(edges, variables_for(edges)), normalize=False)


@cache
def _psdd(name: str) -> pgcc.Model:
    return pgcc.compile(pgcc.load(DATA / "circuits" / f"{name}.psdd"))


@cache
def _rows(name: str) -> np.ndarray:
    return np.loadtxt(DATA / "sets" / name / f"{name}.test.data", delimiter=",", dtype=np.int8)


@cache
def _kernel(n: int, rank: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, rank)) / rank**0.5


@cache
def _dpp(kind: str) -> pgcc.Model:
    if kind == "factor":
        return pgcc.compile(pgcc.dpp(factor=_kernel(200, 10)))
    L = _kernel(60, 60) @ _kernel(60, 60).T
    L = (L + L.T) / 2
    if kind == "L":
        return pgcc.compile(pgcc.dpp(L=L))
    K = np.linalg.solve(np.eye(60) + L, L)
    return pgcc.compile(pgcc.dpp(K=(K + K.T) / 2))


def _pairs(n: int) -> list[tuple[str, str, int]]:
    rng = np.random.default_rng(0)
    around = [(f"v{i}", f"v{(i + 1) % n}", 1 + i % 3) for i in range(n)]
    return around + [(f"v{i}", f"v{(i + 2 + int(rng.integers(n - 4))) % n}", 1) for i in range(n)]


@cache
def _tree() -> pgcc.Model:
    return pgcc.compile(pgcc.spanning_tree(_pairs(40)))


@cache
def _chain() -> pgcc.Model:
    return pgcc.compile(pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=1000))


@cache
def _overlapping() -> pgcc.Model:
    factors = "*".join(f"(a{i} + b{i} + 1)" for i in range(12))
    shared = "*".join(f"(a{i} + 2)" for i in range(12))
    return pgcc.compile(pgcc.parse(f"{factors} + {shared} - ({shared} - 1)*(c + 1) + ({shared})*c"), normalize=False)


def _some(model: pgcc.Model, rows: int, free: float = 1 / 3) -> np.ndarray:
    return random_evidence(rows, len(model.circuit.variables), free=free)


def _sparse(model: pgcc.Model, rows: int, ones: int, zeros: int) -> np.ndarray:
    """Rows with so many ones and zeros, at random."""
    rank = np.random.default_rng(1).random((rows, len(model.circuit.variables))).argsort(axis=1).argsort(axis=1)
    return np.where(rank < ones, 1, np.where(rank < ones + zeros, 0, -1)).astype(np.int8)


def _asked(question: str, model: Callable[[], pgcc.Model], rows: Callable[[pgcc.Model], Any]) -> Callable[[], Call]:
    """A task that asks a question of a model about evidence; None: without it."""

    def make() -> Call:
        asked = getattr(model(), question)
        evidence = rows(model())
        return asked if evidence is None else lambda: asked(evidence)

    return make


def _sampled(model: Callable[[], pgcc.Model], count: int) -> Callable[[], Call]:
    return lambda: lambda: model().sample(count, rng=0)


def _compiling(name: str) -> Callable[[], Call]:
    """Load and compile a file, and ask a first question. (A circuit keeps what was found out about it.)"""
    path, row = DATA / "circuits" / f"{name}.psdd", {}
    return lambda: lambda: pgcc.compile(pgcc.load(path)).prob(row)


def _fitting(max_group: int, components: int) -> Callable[[], Call]:
    def make() -> Call:
        from pgcc.learn import SimplePGC

        rows = _rows("nltcs")[:2000]
        return lambda: SimplePGC(max_group, components, **{_epochs(): 3}).fit(rows)

    return make


def _scoring() -> Call:
    from pgcc.learn import SimplePGC

    rows = _rows("nltcs")
    learned = SimplePGC(5, 4, **{_epochs(): 3}).fit(rows[:500])
    return lambda: learned.score(rows)


def _epochs() -> str:
    """What versions call the number of epochs."""
    from inspect import signature

    from pgcc.learn import SimplePGC

    return next(name for name in ("max_iter", "epochs") if name in signature(SimplePGC).parameters)


def _tasks() -> dict[str, Callable[[], Call]]:
    tasks: dict[str, Callable[[], Call]] = {}
    for edges, rows in ((16, 100_000), (100, 100_000), (1_000, 20_000), (10_000, 5_000)):
        model = lambda edges=edges: _compiled(edges)  # noqa: E731
        for question in ("prob", "logprob"):
            tasks[f"{edges} edges: {question} of {rows} rows"] = _asked(question, model, lambda m, r=rows: _some(m, r))
    for name, many in (("nltcs", 50_000), ("plants", 5_000)):
        model = lambda name=name: _psdd(name)  # noqa: E731
        full = lambda m, name=name, many=many: np.resize(_rows(name), (many, _rows(name).shape[1]))  # noqa: E731
        tasks[f"{name}: load, compile, prob"] = _compiling(name)
        tasks[f"{name}: logprob of {many} rows"] = _asked("logprob", model, full)
        tasks[f"{name}: logprob of {many} rows, a third free"] = _asked("logprob", model, lambda m, r=many: _some(m, r))
        tasks[f"{name}: logprob of a row"] = _asked("logprob", model, lambda m, full=full: full(m)[:1])
        tasks[f"{name}: marginals of 500 rows"] = _asked("marginals", model, lambda m: _some(m, 500))
        tasks[f"{name}: marginals"] = _asked("marginals", model, lambda m: {})
        tasks[f"{name}: cardinality"] = _asked("cardinality", model, lambda m: None)
        tasks[f"{name}: 1000 samples"] = _sampled(model, 1000)
    small = lambda: _compiled(100)  # noqa: E731
    for question in ("prob", "logprob", "marginals"):
        tasks[f"100 edges: {question} of a dict"] = _asked(question, small, lambda m: {"x1": 1, "x3": 0})
        tasks[f"100 edges: {question} of a row"] = _asked(question, small, lambda m: _some(m, 1))
    for kind in ("L", "K", "factor"):
        model = lambda kind=kind: _dpp(kind)  # noqa: E731
        for rows in (1, 50, 2000):
            of = lambda m, rows=rows: _sparse(m, rows, 4, 4)  # noqa: E731
            tasks[f"DPP by {kind}: logprob of {rows} rows"] = _asked("logprob", model, of)
        for rows in (1, 50, 500):
            of = lambda m, rows=rows: _sparse(m, rows, 4, 4)  # noqa: E731
            tasks[f"DPP by {kind}: marginals of {rows} rows"] = _asked("marginals", model, of)
        tasks[f"DPP by {kind}: cardinality"] = _asked("cardinality", model, lambda m: None)
        tasks[f"DPP by {kind}: 100 samples"] = _sampled(model, 100)
    for rows in (1, 2000):
        tasks[f"tree: logprob of {rows} rows"] = _asked("logprob", _tree, lambda m, r=rows: _sparse(m, r, 4, 4))
    tasks["tree: marginals of 100 rows"] = _asked("marginals", _tree, lambda m: _sparse(m, 100, 3, 3))
    tasks["tree: 100 samples"] = _sampled(_tree, 100)
    for rows in (1, 500):
        tasks[f"HMM of 1000: logprob of {rows} rows"] = _asked("logprob", _chain, lambda m, r=rows: _some(m, r, 0.1))
    tasks["HMM of 1000: marginals of 10 rows"] = _asked("marginals", _chain, lambda m: _some(m, 10))
    tasks["overlapping: prob of 500 rows"] = _asked("prob", _overlapping, lambda m: _some(m, 500))
    tasks["cancelling: prob of a row"] = _asked("prob", lambda: pgcc.compile(cancelling(16)[0]), lambda m: _some(m, 1))
    tasks["SimplePGC(5, 4): fit, 3 epochs"] = _fitting(5, 4)
    tasks["SimplePGC(2, 1): fit, 3 epochs"] = _fitting(2, 1)
    tasks["SimplePGC: score of nltcs"] = _scoring
    return tasks


TASKS = _tasks()


def fewest_seconds(call: Call, seconds: float) -> float:
    """CPU time of a call, the least of as many measurements as the seconds allow, three at least."""
    calls, best = 1, float("inf")
    measured, end = 0, time.perf_counter() + seconds
    while measured < 3 or time.perf_counter() < end:
        start = time.process_time()
        for _ in range(calls):
            call()
        spent = time.process_time() - start
        if spent < 0.005:
            calls *= 4  # too short for the clock
            continue
        measured += 1
        best = min(best, spent / calls)
    return best


def _serve() -> None:
    calls: dict[str, Call] = {}
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, seconds = json.loads(line)
        try:
            if name not in calls:
                calls[name] = TASKS[name]()
                calls[name]()
            answer: Any = fewest_seconds(calls[name], seconds)
        except Exception as error:  # an older version may not have it
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _serve()

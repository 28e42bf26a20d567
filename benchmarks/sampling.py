"""Exact samples: DPPs beside DPPy, spanning trees beside networkx, a learned PSDD beside scoring it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pgcc
from benchmarks.common import DATA, Table, best_of

ITEMS = (20, 50, 100, 200)
SAMPLES = 4000
ROWS = 1_000_000


def run() -> Iterator[Table]:
    yield _dpps()
    yield _trees()
    yield _scoring()


def kernel(n: int, share: float) -> np.ndarray:
    """A symmetric L = c·B·Bᵀ, B normal, n×n, with c such that `share` of n items are expected."""
    B = np.random.default_rng(n).standard_normal((n, n)) / np.sqrt(n)
    values = np.linalg.eigvalsh(B @ B.T)
    low, high = 1e-6, 1e6
    for _ in range(100):
        c = np.sqrt(low * high)
        low, high = (c, high) if (c * values / (1 + c * values)).sum() < share * n else (low, c)
    return c * B @ B.T


def _dpps() -> Table:
    table = Table(
        f"sampling: DPP samples per second, L = c·B·Bᵀ of full rank, {SAMPLES:,} samples at a time",
        ["items", "expected", "pgcc", "pgcc ×2", "DPPy", "ratio", "ratio ×2", "off by"],
        notes=[
            "ratio: pgcc with one thread over DPPy's sample_exact, which keeps its eigendecomposition, both in CPU",
            "time (required ≥ 20). ×2: threads=2, by the clock. off by: the largest difference between a marginal",
            "and its share of the samples, in standard errors.",
        ],
    )
    dppy = _dppy()
    if dppy is None:
        table.notes.append("DPPy is not installed (pip install dppy): skipped")
    for n in ITEMS:
        for share in (0.1, 0.25):
            L = kernel(n, share)
            model = pgcc.compile(pgcc.dpp(L=L))
            calls: dict[str, Callable[[], Any]] = {"one": lambda m=model: m.sample(SAMPLES, rng=0)}
            if dppy is not None:
                calls["dppy"] = dppy(L)
            seconds = best_of(calls, 5, 5.0, time.process_time)
            two = best_of({"two": lambda m=model: m.sample(SAMPLES, rng=0, threads=2)}, 9, 5.0)["two"]
            one, theirs = SAMPLES / seconds["one"], _FEW / seconds["dppy"] if dppy else None
            cells = (theirs, one / theirs, SAMPLES / two / theirs) if theirs else (None, None, None)
            table.add(str(n), round(share * n), one, SAMPLES / two, *cells, _off(model, L))
    return table


_FEW = 50


def _dppy() -> Callable[[np.ndarray], Callable[[], None]] | None:
    try:
        from dppy.finite_dpps import FiniteDPP
    except ImportError:
        return None

    def sampler(L: np.ndarray) -> Callable[[], None]:
        process, state = FiniteDPP("likelihood", L=L), np.random.RandomState(0)

        def draw() -> None:
            for _ in range(_FEW):
                process.sample_exact(random_state=state)
            process.flush_samples()

        return draw

    return sampler


def _off(model: pgcc.Model, L: np.ndarray, n: int = 20_000) -> float:
    marginal = np.diag(np.linalg.solve(np.eye(len(L)) + L, L))
    found = model.sample(n, rng=1).mean(axis=0)
    return float((np.abs(found - marginal) / np.sqrt(marginal * (1 - marginal) / n)).max())


def _trees() -> Table:
    import networkx as nx

    nodes = 50
    table = Table(
        f"sampling: weighted spanning trees of a dense random graph with {nodes} nodes, per second",
        ["edges", "pgcc", "pgcc ×2", "networkx", "ratio"],
        notes=["required ≥ 1,000; networkx.random_spanning_tree draws one tree"],
    )
    rng = np.random.default_rng(0)
    graph = nx.gnp_random_graph(nodes, 0.8, seed=1)
    for edge in graph.edges.values():
        edge["weight"] = float(rng.uniform(0.1, 1.0))
    model = pgcc.compile(pgcc.spanning_tree(graph))
    seconds = best_of(
        {
            "one": lambda: model.sample(10_000, rng=0, threads=1),
            "two": lambda: model.sample(10_000, rng=0, threads=2),
        },
        5,
        5.0,
    )
    start = time.perf_counter()
    nx.random_spanning_tree(graph, weight="weight", seed=1)
    theirs = 1 / (time.perf_counter() - start)
    one, two = 10_000 / seconds["one"], 10_000 / seconds["two"]
    table.add(f"{graph.number_of_edges():,}", one, two, theirs, one / theirs)
    return table


def _scoring() -> Table:
    table = Table(
        f"sampling: {ROWS:,} samples of a learned PSDD beside scoring them",
        ["set", "sample s", "score s", "ratio", "×2 s", "evidence rows/s"],
        notes=[
            "required: ratio ≤ 5 (one thread, CPU time). ×2: sampling with threads=2, by the clock. evidence rows: one",
            "sample for each of 2,000 rows in which a random half is observed.",
        ],
    )
    for name in ("nltcs", "plants"):
        path = DATA / "circuits" / f"{name}.psdd"
        if not path.exists():
            table.notes.append(f"skipped {name}: no {path} (set PGCC_DATA)")
            continue
        model = pgcc.compile(pgcc.load(path))
        rows = ROWS if name == "nltcs" else ROWS // 20
        data = model.sample(rows, rng=0)
        calls = {
            "sample": lambda m=model, n=rows: m.sample(n, rng=0),
            "score": lambda m=model, x=data: m.logprob(x),
        }
        seconds = best_of(calls, 3, 20.0, time.process_time)
        two = best_of({"two": lambda m=model, n=rows: m.sample(n, rng=0, threads=2)}, 3, 10.0)["two"]
        hidden = np.where(np.random.default_rng(0).random((2000, data.shape[1])) < 0.5, -1, data[:2000])
        each = best_of({"rows": lambda m=model, x=hidden: m.sample(1, x, rng=0)}, 3, 5.0)["rows"]
        score = seconds["score"] * ROWS / rows
        sample = seconds["sample"] * ROWS / rows
        table.add(name, sample, score, sample / score, two * ROWS / rows, 2000 / each)
    return table

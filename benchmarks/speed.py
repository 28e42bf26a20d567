"""Rows per second on random decomposable circuits, against numpy, SymPy and the paper's evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pgcc
from benchmarks.baselines import Lambdified, LevelByLevel, best_block
from benchmarks.circuits import random_circuit, random_evidence, variables_for
from benchmarks.common import Table, best, best_of, time_limit
from pgcc.ir.circuit import Circuit
from pgcc.rings.paper import evaluate_literally

ROWS = 100_000
EDGES = (100, 1_000, 10_000)
SYMPY_SECONDS = 60  # to build the function
_BLOCKS = (64, 256, 1024, 4096, 10_000)
_POINTS = (1024, 4096, 16384, ROWS)


def run() -> Iterator[Table]:
    table = Table(
        f"speed: rows per second, {ROWS:,} rows of evidence (a third unobserved)",
        ["edges", "pgcc", "pgcc ×2", "numpy log", "ratio", "untuned", "ratio", "numpy", "ratio", "sympy", "ratio"],
        notes=[
            "ratio: pgcc with one thread over the alternative, both in CPU time (logprob against logarithms, prob",
            "against the others). pgcc ×2: threads=2, by the clock.",
            "numpy log: log-space, level by level, with the block of rows that is best for it (required ≥ 50);",
            f"untuned: the same with {_UNTUNED:,} rows at a time. numpy: the same in plain floats, which underflows.",
            "sympy: lambdify(cse=True) merely evaluates the polynomial at numbers (required ≥ 3); – if it is not built",
            f"in {SYMPY_SECONDS} s.",
        ],
    )
    for edges in EDGES:
        speeds = _speeds(random_circuit(edges, variables_for(edges)))
        one = speeds["pgcc"]
        cells: list[Any] = [one, speeds["pgcc ×2"]]
        for name in ("numpy log", "untuned", "numpy", "sympy"):
            ours = one if name in ("numpy log", "untuned") else speeds["prob"]
            cells += (speeds[name], ours / speeds[name]) if name in speeds else (None, None)
        table.add(f"{edges:,}", *cells)
    yield table
    yield _against_literal()


_UNTUNED = 10_000


def _speeds(circuit: Circuit) -> dict[str, float]:
    """Rows per second by name."""
    n = len(circuit.variables)
    model = pgcc.compile(circuit, normalize=False)
    rows = random_evidence(ROWS, n)
    calls: dict[str, Callable[[], Any]] = {
        "pgcc": lambda: model.logprob(rows),
        "prob": lambda: model.prob(rows),
        "pgcc ×2": lambda: model.logprob(rows, threads=2),
    }
    counts = dict.fromkeys(calls, ROWS)
    log, linear = LevelByLevel(circuit), LevelByLevel(circuit, log=False)
    np.testing.assert_allclose(log(rows[:1000], 256), model.logprob(rows[:1000]), rtol=1e-9)
    np.testing.assert_allclose(linear(rows[:1000], 256), model.prob(rows[:1000]), rtol=1e-9)
    some = rows[: max(_UNTUNED, ROWS * 1000 // max(1000, circuit.edges))]  # fewer rows where a row takes long
    tuned = {"numpy log": log, "numpy": linear}
    for name, function in tuned.items():
        block = best_block(function, rows, _BLOCKS)
        calls[name] = lambda function=function, block=block: function(some, block)
    calls["untuned"] = lambda: log(some, _UNTUNED)
    counts.update(dict.fromkeys(("numpy log", "numpy", "untuned"), len(some)))
    sympy = _sympy(circuit)
    if sympy is not None:
        points = np.random.default_rng(0).random((n, ROWS))
        block = min(_POINTS, key=lambda b: best(lambda: sympy(points, b), 2))
        calls["sympy"], counts["sympy"] = lambda: sympy(points, block), ROWS
    two = best_of({"pgcc ×2": calls.pop("pgcc ×2")}, 15, 10.0)
    seconds = best_of(calls, 15, 6.0, time.process_time) | two
    return {name: counts[name] / each for name, each in seconds.items()}


def _sympy(circuit: Circuit) -> Lambdified | None:
    try:
        with time_limit(SYMPY_SECONDS):
            return Lambdified(circuit)
    except (TimeoutError, RecursionError, MemoryError):
        return None


def _against_literal() -> Table:
    table = Table(
        "speed: the paper's evaluation in R[t] (numpy FFT products), 100 variables",
        ["edges", "pgcc rows/s", "paper rows/s", "ratio"],
        notes=["required ≥ 50"],
    )
    for edges in EDGES[1:]:
        circuit = random_circuit(edges, 100)
        model = pgcc.compile(circuit, normalize=False)
        rows = random_evidence(ROWS, 100)
        few = rows[:20]
        calls = {"pgcc": lambda m=model, x=rows: m.prob(x), "paper": lambda c=circuit, x=few: evaluate_literally(c, x)}
        seconds = best_of(calls, 5, 10.0, time.process_time)
        ours, theirs = ROWS / seconds["pgcc"], len(few) / seconds["paper"]
        table.add(f"{circuit.edges:,}", ours, theirs, ours / theirs)
    return table

"""How often float64 cannot promise enough, and what the promise then costs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import pgcc
from benchmarks.circuits import cancelling, random_circuit, random_evidence, variables_for
from benchmarks.common import Table, best

RTOL = 5e-10  # what prob() asks of its strategies by default


def run() -> Iterator[Table]:
    yield _signed()
    yield _cancelling()


def _signed() -> Table:
    table = Table(
        "escalation: random signed circuits, a tenth of the weights negative",
        ["edges", "rows", "escalated", "float64 µs/row", "ball ms/row"],
    )
    for edges in (100, 1_000, 10_000):
        n = variables_for(edges)
        compiled = pgcc.compile(random_circuit(edges, n, signed=True), normalize=False)._compiled
        rows = random_evidence(20_000, n)
        seconds = best(lambda c=compiled, x=rows: c.run("direct", x, RTOL), 3) / len(rows)
        bounds = compiled.run("direct", rows, RTOL).bound
        few = rows[:3]
        ball = best(lambda c=compiled, x=few: c.run("ball", x, RTOL), 3) / len(few)
        share = float(np.mean(~(bounds <= RTOL)))
        table.add(f"{edges:,}", len(rows), f"{share:.2%}", seconds * 1e6, ball * 1e3)
    return table


def _cancelling() -> Table:
    table = Table(
        "escalation: 64 factors, every product as ((x + y)² − (x − y)²)/4",
        ["observed 1", "method", "error", "bound", "bound true", "ms"],
    )
    circuit, chances = cancelling()
    model = pgcc.compile(circuit)
    rng = np.random.default_rng(1)
    for ones in (0, 5, 20, 40, 64):
        row = np.full(64, -1, np.int8)
        order = rng.permutation(64)
        row[order[:ones]], row[order[ones : ones + (64 - ones) // 2]] = 1, 0
        true = _true(row, chances)
        for method in ("top", "bottom", "auto"):
            value, bound = model.prob(row, bound=True, method=method)
            error = float(abs(Fraction(value) - true) / true)
            seconds = best(lambda x=row, m=method: model.prob(x, method=m), 3, 2.0)
            table.add(f"{ones}", method, error, bound, bool(error <= bound), seconds * 1e3)
    table.notes.append("required: auto's error below 1e-9; every bound true")
    return table


def _true(row: np.ndarray, chances: list[Fraction]) -> Fraction:
    value = Fraction(1)
    for code, p in zip(row.tolist(), chances, strict=True):
        value *= p if code == 1 else 1 - p if code == 0 else 1
    return value

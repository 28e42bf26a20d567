"""Rows whose probability float64 cannot hold."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import pgcc
from benchmarks.circuits import independent, random_circuit, random_evidence
from benchmarks.common import Table, best_of


def run() -> Iterator[Table]:
    yield _independent()
    yield _cost()


def _independent() -> Table:
    n, p = 100_000, 0.3
    table = Table(
        f"range: {n:,} independent variables, one row with all observed",
        ["observed 1", "log-probability", "rel. error"],
    )
    model = pgcc.compile(independent(n, p))
    for ones in (n, n // 2, 0):
        row = np.zeros((1, n), np.int8)
        row[0, :ones] = 1
        # What the circuit says: the weights are the doubles p and 1 − p, divided by their sum.
        true = ones * math.log(p) + (n - ones) * math.log(1.0 - p)
        found = float(model.logprob(row)[0])
        table.add(f"{ones:,}", found, abs(found / true - 1))
    table.notes.append("required: relative error of the log below 1e-12, below −50,000 nats")
    return table


def _cost() -> Table:
    table = Table(
        "range: scaled numbers against float64, the same circuit and rows",
        ["edges", "variables", "float64 µs/row", "scaled µs/row", "ratio"],
        notes=["scaled numbers are what rows out of range run on; here they are forced on rows that are not"],
    )
    for edges, n in ((1_000, 32), (10_000, 100), (100_000, 316)):
        compiled = pgcc.compile(random_circuit(edges, n))._compiled
        rows = random_evidence(1 << 15, n)
        few = rows[:256]
        seconds = best_of(
            {
                "float64": lambda c=compiled, x=rows: c.float64.evaluate(x, 1e-9),
                "scaled": lambda c=compiled, x=few: c.scaled.evaluate(x, 1e-9),
            },
            5,
            5.0,
        )
        linear, scaled = seconds["float64"] / len(rows) * 1e6, seconds["scaled"] / len(few) * 1e6
        table.add(f"{edges:,}", n, linear, scaled, scaled / linear)
    return table

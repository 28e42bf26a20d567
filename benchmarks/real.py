"""Circuits that others learned: average log-likelihood of their test sets, and rows per second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import pgcc
from benchmarks.baselines import LevelByLevel, best_block
from benchmarks.common import DATA, Table, best_of

REFERENCE = {"nltcs": -6.0447644580, "plants": -13.3542228965}


def run() -> Iterator[Table]:
    table = Table(
        "real: PSDDs learned by others",
        [
            "set",
            "edges",
            "off by",
            "read s",
            "compile s",
            "rows",
            "pgcc rows/s",
            "×2",
            "numpy log",
            "ratio",
            "ratio ×2",
        ],
        notes=[
            "off by: the average log-likelihood of the test set against the published one. half: a random half of the",
            "variables is hidden. numpy log: log-space, level by level, best block of rows, one thread. ×2: threads=2.",
        ],
    )
    for name, reference in REFERENCE.items():
        circuit_file, rows_file = DATA / "circuits" / f"{name}.psdd", DATA / "sets" / name / f"{name}.test.data"
        if not circuit_file.exists() or not rows_file.exists():
            table.notes.append(f"skipped {name}: no {circuit_file} or {rows_file} (set PGCC_DATA)")
            continue
        _add(table, name, reference, circuit_file, rows_file)
    yield table


def _add(table: Table, name: str, reference: float, circuit_file: Path, rows_file: Path) -> None:
    rows = np.loadtxt(rows_file, delimiter=",", dtype=np.int8)
    start = time.perf_counter()
    circuit = pgcc.load(circuit_file)
    read = time.perf_counter()
    model = pgcc.compile(circuit)
    done = time.perf_counter()
    off = abs(float(model.logprob(rows).mean()) - reference)
    many = np.tile(rows, (-(-50_000 // len(rows)), 1))[:50_000]
    hidden = np.where(np.random.default_rng(0).random(many.shape) < 0.5, -1, many).astype(np.int8)
    numpy = LevelByLevel(circuit)
    for kind, data in (("full", many), ("half", hidden)):
        ours, two, theirs = _speeds(model, numpy, data)
        table.add(
            name, circuit.edges, off, read - start, done - read, kind, ours, two, theirs, ours / theirs, two / theirs
        )  # fmt: skip


def _speeds(model: pgcc.Model, numpy: LevelByLevel, rows: np.ndarray) -> tuple[float, float, float]:
    """Rows per second: pgcc with one and with two threads, and numpy."""
    few = rows[:2048]
    block = best_block(numpy, few, (64, 256, 1024))
    seconds = best_of(
        {
            "one": lambda: model.logprob(rows),
            "two": lambda: model.logprob(rows, threads=2),
            "numpy": lambda: numpy(few, block),
        },
        5,
        10.0,
    )
    return len(rows) / seconds["one"], len(rows) / seconds["two"], len(few) / seconds["numpy"]

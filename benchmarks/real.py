"""Circuits that others learned: average log-likelihood of their test sets, and rows per second."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import pgcc
from benchmarks.baselines import LevelByLevel, best_block
from benchmarks.common import DATA, Table, best_of
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, product, var, weighted_sum

REFERENCE = {"nltcs": -6.0447644580, "plants": -13.3542228965}


def run() -> Iterator[Table]:
    table = Table(
        "real: PSDDs learned by others",
        ["set", "edges", "average log-lik.", "off by", "pgcc rows/s", "×2", "numpy log", "ratio"],
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
    circuit = read_psdd(circuit_file, rows.shape[1])
    model = pgcc.compile(circuit, normalize=False)
    average = float(model.logprob(rows).mean())
    many = np.tile(rows, (-(-50_000 // len(rows)), 1))[:50_000]
    numpy = LevelByLevel(circuit)
    few = rows[:2048]
    block = best_block(numpy, few, (64, 256, 1024))
    seconds = best_of(
        {
            "one": lambda: model.logprob(many),
            "two": lambda: model.logprob(many, threads=2),
            "numpy": lambda: numpy(few, block),
        },
        5,
        10.0,
    )
    ours, theirs = len(many) / seconds["one"], len(few) / seconds["numpy"]
    two = len(many) / seconds["two"]
    table.add(name, circuit.size, f"{average:.10f}", abs(average - reference), ours, two, theirs, ours / theirs)


def read_psdd(path: Path, n: int) -> Circuit:
    """A PSDD file: lines `L id vtree literal`, `T id vtree variable log p`, `D id vtree k (prime sub log w)*`."""
    nodes: dict[str, Node] = {}
    last = ""
    with collector_paused(), path.open() as lines:
        for line in lines:
            kind, *fields = line.split() or ["c"]
            if kind in ("L", "T", "D"):
                last = fields[0]
                nodes[last] = _READ[kind](nodes, fields[2:])
        return Circuit(nodes[last], [f"x{i + 1}" for i in range(n)])


def _literal(nodes: dict[str, Node], fields: list[str]) -> Node:
    literal = int(fields[0])
    return var(f"x{abs(literal)}", complement=literal < 0)


def _true(nodes: dict[str, Node], fields: list[str]) -> Node:
    name, p = f"x{int(fields[0])}", math.exp(float(fields[1]))
    return weighted_sum((p, 1.0 - p), (var(name), var(name, complement=True)))


def _decision(nodes: dict[str, Node], fields: list[str]) -> Node:
    terms = fields[1:]
    weights = [math.exp(float(w)) for w in terms[2::3]]
    return weighted_sum(weights, [product((nodes[p], nodes[s])) for p, s in zip(terms[::3], terms[1::3], strict=True)])


_READ = {"L": _literal, "T": _true, "D": _decision}

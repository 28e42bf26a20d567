"""Published Bayesian networks beside pyAgrum: python -m benchmarks networks; or python -m benchmarks.networks NAME…

The networks come inside pgmpy's wheel. Both libraries have the same tables, in double precision.
"""

from __future__ import annotations

import gzip
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import pgcc
from benchmarks.common import Table, best_of, in_child
from pgcc.compiler import MARGINALS, climb
from pgcc.frontend.elimination import Factor, eliminate
from pgcc.ir.domains import Domains

NAMES = ["alarm", "hepar2", "win95pts", "hailfinder", "insurance", "pathfinder", "water", "andes", "mildew", "pigs"]
SEEN = 0.1  # the share of the variables that is observed
ROWS, COMPLETE = 1000, 100_000
_SOME, _SOME_COMPLETE = 20, 1000  # rows that pyAgrum answers, which takes them one by one: its times are multiplied

_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{\s*type\s+discrete\s*\[\s*\d+\s*\]\s*\{([^}]*)\}")
_TABLE = re.compile(r"probability\s*\(\s*([^)|]*?)\s*(?:\|\s*([^)]*?))?\s*\)\s*\{([^}]*)\}")


@dataclass(frozen=True)
class Network:
    """The states of the variables, and a table for each of them, its last axis."""

    states: dict[str, list[str]]
    factors: list[Factor]

    @cached_property
    def domains(self) -> Domains:
        return Domains.of(self.states)

    def circuit(self) -> pgcc.Circuit:
        return eliminate(self.domains, self.factors)

    def sample(self, count: int, seed: int = 0) -> np.ndarray:
        """Rows of states, by the tables: possible by construction."""
        rng, found = np.random.default_rng(seed), np.full((count, len(self.states)), -1)
        left = list(self.factors)
        while left:
            for factor in [f for f in left if (found[:, f.scope[:-1]] >= 0).all()]:
                upto = np.broadcast_to(
                    factor.table[tuple(found[:, factor.scope[:-1]].T)].cumsum(-1), (count, factor.table.shape[-1])
                )
                found[:, factor.scope[-1]] = (upto <= rng.random((count, 1)) * upto[:, -1:]).sum(axis=1)
                left.remove(factor)
        return found

    def some_seen(self, count: int, share: float = SEEN, seed: int = 1) -> np.ndarray:
        """Samples of which only some states, at random, are known; the others are −1."""
        rows = self.sample(count, seed)
        return np.where(np.random.default_rng(seed).random(rows.shape) < share, rows, -1)

    def codes(self, rows: np.ndarray) -> np.ndarray:
        """Rows of states as rows of codes of the circuit's columns."""
        columns = [
            np.where(rows[:, v] < 0, -1, rows[:, v] == state)
            for v, domain in enumerate(self.domains.values())
            for state, column in sorted(enumerate(domain.columns), key=lambda item: domain.columns.index(item[1]))
            if column
        ]
        return np.array(columns, np.int8).T.copy()


def folder() -> Path | None:
    """Where pgmpy keeps its networks; None if it is not installed. (It is not imported: it needs much.)"""
    found = find_spec("pgmpy")
    return Path(found.origin).parent / "utils" / "example_models" if found and found.origin else None


def read(path: Path) -> Network:
    """A network of the plain `.bif` that these files are in."""
    text = gzip.decompress(path.read_bytes()).decode()
    states = {m[1]: [state.strip() for state in m[2].split(",")] for m in _VARIABLE.finditer(text)}
    index = {name: i for i, name in enumerate(states)}
    factors = []
    for child, given, body in _TABLE.findall(text):
        parents = [name.strip() for name in given.split(",")] if given else []
        table = np.full([len(states[name]) for name in (*parents, child)], np.nan)
        for line in filter(None, map(str.strip, body.split(";"))):
            if line.startswith("table"):
                table[:] = np.reshape([float(x) for x in line[5:].split(",")], table.shape)
            else:
                at, numbers = line[1:].split(")", 1)
                key = [states[p].index(state.strip()) for p, state in zip(parents, at.split(","), strict=True)]
                table[tuple(key)] = [float(x) for x in numbers.split(",")]
        factors.append(Factor(tuple(index[name] for name in (*parents, child)), table))
    return Network(states, factors)


def in_agrum(network: Network) -> Any:
    """The same network in pyAgrum, with variables v0, v1, …"""
    import pyagrum

    bayes = pyagrum.BayesNet()
    for i, states in enumerate(network.states.values()):
        bayes.add(pyagrum.LabelizedVariable(f"v{i}", "", [f"s{k}" for k in range(len(states))]), i)
    for factor in network.factors:
        for parent in factor.scope[:-1]:
            bayes.addArc(parent, factor.scope[-1])
    for factor in network.factors:
        cpt = bayes.cpt(factor.scope[-1])
        axes = [factor.scope.index(int(name[1:])) for name in cpt.names]
        cpt.fillWith(factor.table.transpose(axes[::-1]).ravel().tolist())  # the first variable changes fastest
    return bayes


def agrum_posteriors(engine: Any, rows: np.ndarray) -> list[list[Any]]:
    """The posteriors of all variables, row by row."""
    found = []
    for row in rows.tolist():
        engine.setEvidence({v: state for v, state in enumerate(row) if state >= 0})
        engine.makeInference()
        found.append([engine.posterior(v) for v in range(len(row))])
    return found


def agrum_log_probabilities(bayes: Any, rows: np.ndarray) -> list[float]:
    """log2 Pr of complete rows. (pyAgrum has no method for a table.)"""
    whole = bayes.completeInstantiation()
    place = [whole.pos(bayes.variable(v)) for v in range(bayes.size())]
    found = []
    for row in rows.tolist():
        for i, state in zip(place, row, strict=True):
            whole.chgVal(i, state)
        found.append(bayes.log2JointProbability(whole))
    return found


def posteriors(model: pgcc.Model, rows: np.ndarray) -> np.ndarray:
    """The probability of every state of every variable, for rows of codes."""
    return climb(MARGINALS[True], model._compiled, rows, 1e-9)[0].numbers


def measure(name: str) -> dict[str, float]:
    """CPU seconds of every line, by library."""
    import pyagrum

    where = folder()
    assert where is not None
    network = read(where / f"{name}.bif.gz")
    start = time.process_time()
    model = pgcc.compile(network.circuit())
    posteriors(model, np.full((1, len(model.circuit.variables)), -1, np.int8))
    compiling = time.process_time() - start
    bayes = in_agrum(network)
    engines = {"lazy": pyagrum.LazyPropagation(bayes), "shafer": pyagrum.ShaferShenoyInference(bayes)}
    few, complete = network.some_seen(_SOME), network.sample(COMPLETE)
    one, many, rows = network.codes(few), network.codes(network.some_seen(ROWS)), network.codes(complete)

    def row_by_row() -> None:
        for row in one:
            posteriors(model, row[None])

    calls: dict[str, Callable[[], Any]] = {
        "one": row_by_row,
        "many": lambda: posteriors(model, many),
        "complete": lambda: model.logprob(rows),
        "agrum complete": lambda: agrum_log_probabilities(bayes, complete[:_SOME_COMPLETE]),
    }
    for kind, engine in engines.items():
        calls[kind] = lambda engine=engine: agrum_posteriors(engine, few)
    found = best_of(calls, repeat=3, budget=10, clock=time.process_time)
    agrum = min(found["lazy"], found["shafer"]) / _SOME
    return {
        "edges": model.circuit.edges,
        "compile": compiling,
        "one": found["one"] / _SOME,
        "many": found["many"],
        "complete": found["complete"],
        "agrum": agrum,
        "agrum complete": found["agrum complete"] / _SOME_COMPLETE,
    }


def run(names: Sequence[str] = NAMES) -> Iterator[Table]:
    """Networks beside pyAgrum, each in a process of its own."""
    table = Table(
        "Bayesian networks beside the better of pyAgrum's LazyPropagation and ShaferShenoyInference (×: its time over "
        f"pgcc's); {SEEN:.0%} of the variables are observed (CPU time, one thread)",
        ["network", "edges", "compiling s", "one row ms", "pyAgrum ms", "×", f"{ROWS:,} rows s", "×",
         f"{COMPLETE:,} complete rows s", "×"],
        notes=["rows: posteriors of all variables; complete rows: log-probabilities",
               "required: × at least 1 everywhere; 1,000 rows: at least 50 on alarm, hepar2, insurance, water"],
    )  # fmt: skip
    missing = [module for module in ("pgmpy", "pyagrum") if find_spec(module) is None]
    if missing:
        table.notes = [f"skipped: install {' and '.join(missing)} (pip install --no-deps is enough)"]
        yield table
        return
    for name in names:
        code = "import json, sys; from benchmarks.networks import measure; print(json.dumps(measure(sys.argv[1])))"
        s = in_child(code, name)
        table.add(
            name, s["edges"], s["compile"], 1e3 * s["one"], 1e3 * s["agrum"], s["agrum"] / s["one"],
            s["many"], ROWS * s["agrum"] / s["many"], s["complete"], COMPLETE * s["agrum complete"] / s["complete"],
        )  # fmt: skip
    yield table


if __name__ == "__main__":
    for one in run(sys.argv[1:] or NAMES):
        print(one)

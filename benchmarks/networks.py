"""Published Bayesian networks beside pyAgrum: python -m benchmarks networks; or python -m benchmarks.networks NAME…

The networks come inside pgmpy's wheel. Both libraries have the same tables, in double precision.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import pgcc
from benchmarks.common import Table, best_of, in_child
from pgcc.frontend.network import Network

NAMES = ["alarm", "hepar2", "win95pts", "hailfinder", "insurance", "pathfinder", "water", "andes", "mildew", "pigs"]
SEEN = 0.1  # the share of the variables that is observed
ROWS, COMPLETE = 1000, 100_000
_SOME, _SOME_COMPLETE = 20, 1000  # rows that pyAgrum answers, which takes them one by one: its times are multiplied


def sample(network: Network, count: int, seed: int = 0) -> np.ndarray:
    """Rows of numbers of states, by the tables: possible by construction."""
    rng, found = np.random.default_rng(seed), np.full((count, len(network.domains)), -1)
    left = list(network.tables)
    while left:
        for table in [one for one in left if (found[:, one.scope[:-1]] >= 0).all()]:
            upto = table.table[tuple(found[:, table.scope[:-1]].T)].cumsum(-1)
            found[:, table.scope[-1]] = (upto <= rng.random((count, 1)) * upto[..., -1:]).sum(axis=1)
            left.remove(table)
    return found


def some_seen(network: Network, count: int, share: float = SEEN, seed: int = 1) -> np.ndarray:
    """Samples of which only some states, at random, are known; the others are −1."""
    rows = sample(network, count, seed)
    return np.where(np.random.default_rng(seed).random(rows.shape) < share, rows, -1)


def as_asked(network: Network, rows: np.ndarray) -> np.ndarray:
    """Rows of places of states as rows of the numbers that states have in arrays."""
    columns = zip(network.domains.values(), rows.T, strict=True)
    return np.array([np.where(column < 0, -1, np.take(one.numbers, column)) for one, column in columns]).T.copy()


def folder() -> Path | None:
    """Where pgmpy keeps its networks; None if it is not installed. (It is not imported: it needs much.)"""
    found = find_spec("pgmpy")
    return Path(found.origin).parent / "utils" / "example_models" if found and found.origin else None


def in_agrum(network: Network) -> Any:
    """The same network in pyAgrum, with variables v0, v1, …"""
    import pyagrum

    bayes = pyagrum.BayesNet()
    for i, domain in enumerate(network.domains.values()):
        bayes.add(pyagrum.LabelizedVariable(f"v{i}", "", [f"s{k}" for k in range(len(domain.states))]), i)
    for table in network.tables:
        for parent in table.scope[:-1]:
            bayes.addArc(parent, table.scope[-1])
    for table in network.tables:
        cpt = bayes.cpt(table.scope[-1])
        axes = [table.scope.index(int(name[1:])) for name in cpt.names]
        cpt.fillWith(table.table.transpose(axes[::-1]).ravel().tolist())  # the first variable changes fastest
    return bayes


def agrum_posteriors(engine: Any, rows: np.ndarray, read: Callable = id) -> list[list[Any]]:
    """The posteriors of all variables, row by row; what is not `read` from a tensor at once is lost."""
    found = []
    for row in rows.tolist():
        engine.setEvidence({v: state for v, state in enumerate(row) if state >= 0})
        engine.makeInference()
        found.append([read(engine.posterior(v)) for v in range(len(row))])
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


def measure(name: str) -> dict[str, float]:
    """CPU seconds of every line, by library."""
    import pyagrum

    where = folder()
    assert where is not None
    start = time.process_time()
    model = pgcc.compile(pgcc.load(where / f"{name}.bif.gz"))
    model.marginals({})
    compiling = time.process_time() - start
    network = model.circuit.network
    assert network is not None
    bayes = in_agrum(network)
    engines = {"lazy": pyagrum.LazyPropagation(bayes), "shafer": pyagrum.ShaferShenoyInference(bayes)}
    few, many, complete = some_seen(network, _SOME), some_seen(network, ROWS), sample(network, COMPLETE)

    one, thousand, table = (as_asked(network, rows) for rows in (few, many, complete))

    def row_by_row() -> None:
        for row in one:
            model.marginals(row)

    calls: dict[str, Callable[[], Any]] = {
        "one": row_by_row,
        "many": lambda: model.marginals(thousand),
        "complete": lambda: model.logprob(table),
        "modes": lambda: model.mode(thousand),
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
        "modes": found["modes"],
        "agrum": agrum,
        "agrum complete": found["agrum complete"] / _SOME_COMPLETE,
    }


def run(names: Sequence[str] = NAMES) -> Iterator[Table]:
    """Networks beside pyAgrum, each in a process of its own."""
    table = Table(
        "Bayesian networks beside the better of pyAgrum's LazyPropagation and ShaferShenoyInference (×: its time over "
        f"pgcc's); {SEEN:.0%} of the variables are observed (CPU time, one thread)",
        ["network", "edges", "compiling s", "one row ms", "pyAgrum ms", "×", f"{ROWS:,} rows s", "×",
         f"{COMPLETE:,} complete rows s", "×", f"MPE of {ROWS:,} s"],
        notes=["rows: posteriors of all variables; complete rows: log-probabilities; pyAgrum has no MPE",
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
            s["many"], ROWS * s["agrum"] / s["many"],
            s["complete"], COMPLETE * s["agrum complete"] / s["complete"], s["modes"],
        )  # fmt: skip
    yield table


if __name__ == "__main__":
    for one in run(sys.argv[1:] or NAMES):
        print(one)

"""The distribution of a count: how its cost grows, beside other ways, and for 100,000 variables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pgcc
from benchmarks.circuits import random_circuit
from benchmarks.common import DATA, Table, best, best_of, fitted_exponent
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Op, product, var, weighted_sum
from pgcc.passes.homogenize import homogenize

MANY = 100_000


def run() -> Iterator[Table]:
    yield _in_edges()
    yield _in_variables()
    yield _both()
    yield _alternatives()
    yield _real()
    yield _determinants()
    yield _long()


def _chain(length: int) -> Circuit:
    return pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=length)


def _independent(p: np.ndarray) -> Any:
    return product([weighted_sum((x, 1.0 - x), (var(f"z{i}"), ONE)) for i, x in enumerate(p.tolist())])


def _cpu(function: Callable[[], Any]) -> float:
    """Seconds in which others had the core do not count."""
    return best_of({"": function}, 7, 10.0, time.process_time)[""]


def _fit(table: Table, sizes: list[float], seconds: list[float], required: float) -> Table:
    table.notes.append(f"fitted exponent {fitted_exponent(sizes, seconds):.2f} (required ≤ {required})")
    return table


def _in_edges() -> Table:
    table = Table("cardinality: 64 of the variables of an HMM, growing circuit", ["edges", "CPU ms", "ns per edge · k"])
    sizes, times = [], []
    for n in (500, 1000, 2000, 4000, 8000):
        circuit = _chain(n)
        model, over = pgcc.compile(circuit), circuit.variables[:: n // 64][:64]
        seconds = _cpu(lambda m=model, t=over: m.cardinality(over=t))
        sizes.append(float(circuit.edges))
        times.append(seconds)
        table.add(circuit.edges, seconds * 1e3, seconds / circuit.edges / 64 * 1e9)
    return _fit(table, sizes, times, 1.1)


def _in_variables() -> Table:
    table = Table("cardinality: k of the 4,000 variables of an HMM", ["k", "CPU ms", "ns per edge · k"])
    circuit = _chain(4000)
    model = pgcc.compile(circuit)
    sizes, times = [], []
    for k in (250, 500, 1000, 2000, 4000):
        over = circuit.variables[:: 4000 // k]
        seconds = _cpu(lambda t=over: model.cardinality(over=t))
        sizes.append(float(k))
        times.append(seconds)
        table.add(k, seconds * 1e3, seconds / circuit.edges / k * 1e9)
    return _fit(table, sizes, times, 1.1)


def _both() -> Table:
    table = Table(
        "cardinality: all variables, growing circuits",
        ["circuit", "variables", "edges", "CPU ms", "ns per edge · k"],
        notes=["random: sums and products over a random tree of scopes, as in a learned PSDD"],
    )
    for name, make in (("HMM", _chain), ("random", lambda n: random_circuit(40 * n, n))):
        sizes, times = [], []
        for n in (250, 500, 1000, 2000):
            circuit = make(n)
            model = pgcc.compile(circuit)
            seconds = _cpu(lambda m=model: m.cardinality())
            sizes.append(float(circuit.edges) * n)
            times.append(seconds)
            table.add(name, n, circuit.edges, seconds * 1e3, seconds / circuit.edges / n * 1e9)
        table.notes.append(f"{name}: fitted exponent in edges · k {fitted_exponent(sizes, times):.2f} (required ≤ 1.1)")
    return table


def by_convolution(circuit: Circuit) -> Callable[[], np.ndarray]:
    """The same polynomials node by node with numpy.convolve, in plain doubles."""
    padded = homogenize(circuit)
    order, links = padded.order, padded._links

    def pmf() -> np.ndarray:
        at: list[np.ndarray] = []
        for node, children in zip(order, links, strict=True):
            below = [at[c] for c in children]
            if node.op is Op.CONST:
                value = np.array([float(node.value)])
            elif node.op is Op.VAR:
                value = np.ones(1) if node.is_complement else np.array([0.0, 1.0])
            elif node.op is Op.SUM:
                value = np.zeros(max(map(len, below)))
                for w, x in zip(node.weights, below, strict=True):
                    value[: len(x)] += float(w) * x
            else:
                value = np.ones(1)
                for x in below:
                    value = np.convolve(value, x)
            at.append(value)
        return at[-1] / at[-1].sum()

    return pmf


def by_sizes(circuit: Circuit) -> Callable[[], np.ndarray]:
    """n + 1 circuits of one size each, compiled before; the first three are timed for all."""
    n = len(circuit.variables)
    models = [pgcc.compile(circuit.observe(size=k), normalize=False) for k in (0, n // 2, n)]
    return lambda: np.array([model.prob() for model in models])


def _alternatives() -> Table:
    table = Table(
        "cardinality: all variables of an HMM, beside other ways",
        ["variables", "pgcc ms", "numpy.convolve ms", "ratio", "n+1 queries ms", "ratio", "agree"],
        notes=[
            "numpy.convolve: polynomials node by node in doubles, coefficients below 1e-308 lost",
            "n+1 queries: the compiled circuits of exactly k, of which three are measured and multiplied",
        ],
    )
    for n in (50, 100, 200, 400):
        circuit = _chain(n)
        model, theirs = pgcc.compile(circuit), by_convolution(circuit)
        ways: dict[str, Callable[[], Any]] = {"pgcc": model.cardinality, "numpy": theirs}
        if n <= 100:
            ways["queries"] = by_sizes(circuit)
        seconds = best_of(ways)
        ours, plain = seconds["pgcc"], seconds["numpy"]
        queries = seconds["queries"] / 3 * (n + 1) if "queries" in seconds else None
        agree = bool(np.allclose(model.cardinality(), theirs(), rtol=1e-9, atol=0))
        ratio = None if queries is None else queries / ours
        table.add(n, ours * 1e3, plain * 1e3, plain / ours, None if queries is None else queries * 1e3, ratio, agree)
    return table


def _real() -> Table:
    table = Table("cardinality: PSDDs learned by others", ["set", "variables", "edges", "one row ms", "rows/s"])
    for name in ("nltcs", "plants"):
        file = DATA / "circuits" / f"{name}.psdd"
        if not file.exists():
            table.notes.append(f"skipped {name}: no {file} (set PGCC_DATA)")
            continue
        circuit = pgcc.load(file)
        model, n = pgcc.compile(circuit), len(circuit.variables)
        rows = np.full((100, n), -1, np.int8)
        rows[np.arange(100), np.arange(100) % n] = 0
        one, many = best(lambda m=model: m.cardinality()), best(lambda m=model, r=rows: m.cardinality(evidence=r), 3)
        table.add(name, n, circuit.edges, one * 1e3, len(rows) / many)
    return table


def _determinants() -> Table:
    table = Table(
        "cardinality: DPPs by L, every entry to 1e-9, relatively",
        ["items", "CPU s", "balls s", "numpy s", "smallest entry", "numpy's error there"],
        notes=["numpy: Poisson-binomial of the eigenvalues in doubles. balls: without the eigenvalues."],
    )
    for n in (20, 50, 100, 200, 300):
        B = np.random.default_rng(0).standard_normal((n, n))
        L = B @ B.T / n
        model = pgcc.compile(pgcc.dpp(L=L))
        pmf = model.cardinality()
        plain = by_eigenvalues(L)
        balls = None
        if n <= 50:
            exact, codes = model._compiled.exact_counting, np.full(n, -1, np.int8)
            balls = best(lambda e=exact, c=codes: e.coefficients(c, np.ones(len(c), bool), 1e-9), 2)
        seconds = _cpu(model.cardinality)
        least = int(pmf.argmin())
        error = abs(plain[least] / pmf[least] - 1)
        table.add(n, seconds, balls, best(lambda L=L: by_eigenvalues(L), 2), pmf[least], error)
    return table


def by_eigenvalues(L: np.ndarray) -> np.ndarray:
    pmf = np.ones(1)
    for x in np.linalg.eigvalsh(L):
        pmf = np.convolve(pmf, [1 / (1 + x), x / (1 + x)])
    return pmf


def _long() -> Table:
    table = Table(
        f"cardinality: {MANY:,} variables, atol=1e-12",
        ["circuit", "compile s", "first s", "again s"],
        notes=["first: with what is prepared once for a model"],
    )
    rng = np.random.default_rng(0)
    parts = [_independent(low + 0.2 * rng.random(MANY)) for low in (0.1, 0.6)]
    for name, circuit in (
        ("independent", Circuit(_independent(rng.random(MANY)))),
        ("mixture of two", Circuit(weighted_sum((0.3, 0.7), parts))),
        ("HMM of two states", _chain(MANY)),
    ):
        start = time.perf_counter()
        model = pgcc.compile(circuit)
        compiled = time.perf_counter() - start
        start = time.perf_counter()
        model.cardinality(atol=1e-12)
        first = time.perf_counter() - start
        start = time.perf_counter()
        model.cardinality(atol=1e-12)
        again = time.perf_counter() - start
        table.add(name, compiled, first, again)
    return table

"""All marginals and gradients from one reverse pass, beside one query per variable and beside the likelihood alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import pgcc
from benchmarks.common import DATA, Table, best_of, fitted_exponent
from pgcc.queries.gradient import GradientFunction

# Rows of evidence for a kernel.
_ROWS = 128


def run() -> Iterator[Table]:
    """Real circuits, growing chains, kernels."""
    yield real_circuits()
    yield chains()
    yield kernels()


def half_observed(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """Data with half of the entries unobserved."""
    return np.where(np.random.default_rng(seed).random(rows.shape) < 0.5, -1, rows).astype(np.int8)


def real_circuits() -> Table:
    """1,000 rows of evidence each, one thread, seconds of the processor."""
    table = Table(
        "All marginals of learned circuits, 1,000 rows with half of the variables observed (one thread)",
        ["circuit", "likelihood s", "marginals s", "ratio", "× one query per variable", "gradient s", "ratio"],
        notes=["required: marginals at most 4 times the likelihood on plants"],
    )
    for name in ("nltcs", "plants"):
        path, data = DATA / "circuits" / f"{name}.psdd", DATA / "sets" / name / f"{name}.test.data"
        if not path.exists():
            table.notes.append(f"{name}: {path} is not there")
            continue
        circuit = pgcc.load(path)
        model = pgcc.compile(circuit)
        rows = half_observed(np.loadtxt(data, delimiter=",", dtype=np.int8)[:1000])
        gradient, share = GradientFunction(circuit), np.ones(len(rows))
        seconds = best_of(
            {
                "likelihood": lambda model=model, rows=rows: model.logprob(rows),
                "marginals": lambda model=model, rows=rows: model.marginals(rows),
                "gradient": lambda g=gradient, rows=rows, share=share: g.evaluate(rows, share),
                "queries": lambda model=model, rows=rows: each_variable(model, rows),
            },
            repeat=15,
            clock=time.process_time,
        )
        base = seconds["likelihood"]
        table.add(
            name, base, seconds["marginals"], seconds["marginals"] / base, seconds["queries"] / seconds["marginals"],
            seconds["gradient"], seconds["gradient"] / base,
        )  # fmt: skip
    return table


def each_variable(model: pgcc.Model, rows: np.ndarray) -> None:
    """What one would do without a reverse pass: a query per variable."""
    model._compiled.one_by_one.evaluate(rows, 1e-9)


def chains() -> Table:
    """Cost against edges: it should be linear."""
    table = Table(
        "Marginals of hidden Markov models of growing length, 64 rows (one thread)",
        ["variables", "edges", "likelihood s", "marginals s", "ratio"],
    )
    sizes, seconds = [], []
    for length in (250, 500, 1000, 2000, 4000):
        rng = np.random.default_rng(0)
        states = 4
        transition = rng.dirichlet(np.ones(states), states)
        circuit = pgcc.builders.hmm(np.full(states, 0.25), transition, rng.random(states), length=length)
        model = pgcc.compile(circuit)
        rows = np.full((64, length), -1, np.int8)
        rows[:, ::50] = rng.integers(0, 2, (64, len(range(0, length, 50))))
        found = best_of(
            {
                "likelihood": lambda model=model, rows=rows: model.logprob(rows),
                "marginals": lambda model=model, rows=rows: model.marginals(rows),
            },
            clock=time.process_time,
        )
        sizes.append(float(circuit.facts.edges))
        seconds.append(found["marginals"])
        table.add(length, circuit.facts.edges, *found.values(), found["marginals"] / found["likelihood"])
    table.notes.append(f"seconds of marginals ~ edges^{fitted_exponent(sizes, seconds):.2f} (a reverse pass is linear)")
    return table


def kernels() -> Table:
    """A DPP: one elimination and its borders, with bounds, against the inverse that numpy would take."""
    table = Table(
        "All marginals of a DPP given q observed items (one thread)",
        ["n", "q", "pgcc ms", "numpy conditional kernel ms", "×", "likelihood ms"],
        notes=["numpy: K_R − K_RQ·M⁻¹·K_QR by one solve, with neither bounds nor care for cancellation"],
    )
    for n in (20, 50, 100, 200):
        for q in (n // 10, n // 2):
            rng = np.random.default_rng(n + q)
            B = rng.standard_normal((n, n)) / np.sqrt(n)
            model, K = pgcc.compile(pgcc.dpp(L=B @ B.T)), np.linalg.solve(np.eye(n) + B @ B.T, B @ B.T)
            rows = np.full((_ROWS, n), -1, np.int8)
            for row in rows:
                row[rng.permutation(n)[:q]] = rng.random(q) < 0.3
            found = best_of(
                {
                    "pgcc": lambda model=model, rows=rows: model.marginals(rows),
                    "numpy": lambda K=K, rows=rows: [conditional_kernel(K, row) for row in rows],
                    "likelihood": lambda model=model, rows=rows: model.prob(rows),
                },
                clock=time.process_time,
            )
            pgcc_ms, numpy_ms, likelihood_ms = (found[name] / _ROWS * 1e3 for name in ("pgcc", "numpy", "likelihood"))
            table.add(n, q, pgcc_ms, numpy_ms, numpy_ms / pgcc_ms, likelihood_ms)
    return table


def conditional_kernel(K: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The diagonal of the kernel of what is left."""
    seen, rest = np.flatnonzero(row >= 0), np.flatnonzero(row < 0)
    block = K[np.ix_(seen, seen)] - np.diag((row[seen] == 0).astype(float))
    return np.diag(K)[rest] - np.einsum(
        "ij,ji->i", K[np.ix_(rest, seen)], np.linalg.solve(block, K[np.ix_(seen, rest)])
    )

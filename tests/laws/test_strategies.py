"""Every strategy against the Fraction interpreter, on random circuits: no value is off by more than its bound says."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.compiler import methods_for
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import probability
from pgcc.ir.node import det
from pgcc.testing import DET_KINDS, random_circuit, random_det

RTOL = 1e-9


def rows_for(rng: np.random.Generator, n: int, how_many: int) -> np.ndarray:
    """Random evidence, and the two extremes: nothing observed, everything in."""
    rows = rng.choice([1, 0, -1], size=(how_many, n), p=[0.4, 0.3, 0.3]).astype(np.int8)
    rows[0], rows[-1] = -1, 1
    return rows


def oracle(circuit: Circuit, rows: np.ndarray) -> list[Fraction]:
    return [
        probability(circuit, {v: c for v, c in zip(circuit.variables, row.tolist(), strict=True) if c >= 0})
        for row in rows
    ]


def assert_within(values: np.ndarray, bounds: np.ndarray, truth: list[Fraction], what: str) -> None:
    for value, bound, true in zip(values.tolist(), bounds.tolist(), truth, strict=True):
        if bound < np.inf:
            error = abs(Fraction(value) - true)
            # A value below the range of floats may be rounded to the nearest one there is.
            assert error <= Fraction(bound) * abs(true) + Fraction(5e-324), (what, value, float(true), bound)


def check(circuit: Circuit, rows: np.ndarray, methods: tuple[str, ...]) -> dict[str, int]:
    """Run every method; count the rows each certified to RTOL."""
    truth = oracle(circuit, rows)
    model = pgcc.compile(circuit, normalize=False)
    certified = {}
    for method in methods:
        values, bounds = model.prob(rows, method=method, bound=True)
        assert_within(values, bounds, truth, method)
        certified[method] = int((bounds <= RTOL).sum())
    values, bounds = model.prob(rows, bound=True)
    assert (bounds <= RTOL).all()
    assert_within(values, bounds, truth, "auto")
    for value, true in zip(values.tolist(), truth, strict=True):
        assert (value == 0.0) == (true == 0) or abs(true) < Fraction(5e-324)
    return certified


# A hundred circuits each.
BATCHES = [0, 1, *(pytest.param(batch, marks=pytest.mark.slow) for batch in (2, 3))]


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES)
def test_decomposable_circuits(batch: int) -> None:
    rng = np.random.default_rng(1000 + batch)
    certified = 0
    for _ in range(100):
        n = int(rng.integers(1, 13))
        circuit = random_circuit(
            rng, n, size=int(rng.integers(3, 30)), negative=bool(rng.integers(2)), exact=bool(rng.integers(4))
        )
        counts = check(circuit, rows_for(rng, n, 6), ("direct", "top", "bottom", "fft"))
        certified += counts["direct"]
    assert certified > 300  # float64 alone is enough for most of the 600 rows


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES)
def test_circuits_that_are_not_decomposable(batch: int) -> None:
    rng = np.random.default_rng(2000 + batch)
    tangled = certified = 0
    for _ in range(100):
        n = int(rng.integers(2, 13))
        circuit = random_circuit(
            rng, n, size=int(rng.integers(3, 20)), decomposable=False, negative=bool(rng.integers(2))
        )
        tangled += not circuit.simplify().facts.decomposable
        counts = check(circuit, rows_for(rng, n, 6), ("top", "bottom", "fft"))
        certified += counts["top"]
    assert tangled >= 90
    assert certified > 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", DET_KINDS)
@pytest.mark.parametrize("decomposable", [True, False])
def test_determinants(kind: str, decomposable: bool) -> None:
    rng = np.random.default_rng([DET_KINDS.index(kind), decomposable])
    for _ in range(12):
        circuit = random_det(rng, int(rng.integers(2, 6)), kind=kind, decomposable=decomposable)
        methods = tuple(methods_for(decomposable))
        check(circuit, rows_for(rng, len(circuit.variables), 8), methods)


@pytest.mark.slow
def test_all_queries_of_a_dpp_in_direct_float64() -> None:
    factor = np.random.default_rng(0).standard_normal((5, 5))
    kernel = factor @ factor.T
    names = pgcc.variables("a b c d e")
    circuit = Circuit(det(np.eye(5), np.eye(5), kernel.T.copy(), [v.root for v in names]))
    rows = np.array(list(itertools.product([1, 0, -1], repeat=5)), np.int8)
    assert check(circuit, rows, ("direct",))["direct"] == 3**5

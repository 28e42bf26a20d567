"""Right, or it says so: cancellation, tiny numbers, huge weights, exact zeros."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, const, det, product, var, weighted_sum
from pgcc.testing import polarize, random_circuit

FACTORS = 64
P = [Fraction(k, 1000) for k in np.random.default_rng(64).integers(1, 1000, FACTORS).tolist()]


def cancelling_tree() -> Circuit:
    """Π (p_i z_i + 1 − p_i) as a balanced tree in which x·y stands as ((x + y)² − (x − y)²)/4."""
    level = [weighted_sum((p, 1 - p), (var(f"z{i}"), ONE)) for i, p in enumerate(P)]
    while len(level) > 1:
        level = [polarize(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    return Circuit(level[0], [f"z{i}" for i in range(FACTORS)])


def product_probability(codes: np.ndarray) -> Fraction:
    chances = {1: lambda p: p, 0: lambda p: 1 - p, -1: lambda p: Fraction(1)}
    return math.prod((chances[c](p) for c, p in zip(codes.tolist(), P, strict=True)), start=Fraction(1))


def evidence_of_all_kinds(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = [np.full(n, code) for code in (1, 0, -1)]
    for share in (0.02, 0.1, 0.3, 0.6, 0.9):
        for rest in (0, -1, None):
            row = np.where(rng.random(n) < 0.5, 0, -1) if rest is None else np.full(n, rest)
            rows.append(np.where(rng.random(n) < share, 1, row))
    return np.array(rows, np.int8)


class TestCancellation:
    model = pgcc.compile(cancelling_tree())
    rows = evidence_of_all_kinds(FACTORS, 1)

    def test_is_not_decomposable(self) -> None:
        assert not self.model.circuit.simplify().facts.decomposable

    def test_auto_is_right_to_1e_9(self) -> None:
        values, bounds = self.model.prob(self.rows, bound=True)
        assert (bounds <= 1e-9).all()
        for codes, value in zip(self.rows, values.tolist(), strict=True):
            true = product_probability(codes)
            assert abs(Fraction(value) - true) <= Fraction(1, 10**9) * true

    @pytest.mark.parametrize("method", ["top", "bottom", "fft"])
    def test_float64_by_itself_does_not_lie(self, method: str) -> None:
        values, bounds = self.model.prob(self.rows, method=method, bound=True)
        wrong = 0
        for codes, value, bound in zip(self.rows, values.tolist(), bounds.tolist(), strict=True):
            error = abs(Fraction(value) / product_probability(codes) - 1)
            assert bound == math.inf or error <= Fraction(bound)
            wrong += error > 1e-9
        if method == "fft":
            assert wrong  # so that the bound had something to tell

    def test_log_probabilities(self) -> None:
        logs = self.model.logprob(self.rows)
        expected = [math.log(product_probability(codes)) for codes in self.rows]
        np.testing.assert_allclose(logs, expected, rtol=1e-12, atol=1e-12)

    def test_exact(self) -> None:
        codes = self.rows[5]
        named = {f"z{i}": int(c) for i, c in enumerate(codes) if c >= 0}
        assert self.model.prob(named, exact=True) == product_probability(codes)


class TestTinyNumbers:
    n = 100_000

    @pytest.mark.slow
    def test_a_product_of_100_000_variables(self) -> None:
        chances = np.random.default_rng(0).uniform(0.05, 0.95, self.n)
        factors = [weighted_sum((p, 1 - p), (var(f"z{i}"), ONE)) for i, p in enumerate(chances.tolist())]
        model = pgcc.compile(Circuit(product(factors), [f"z{i}" for i in range(self.n)]))
        rows = np.stack([(np.arange(self.n) % k == 0).astype(np.int8) for k in (1, 2, 3)])
        # p + (1 − p) is not 1 for every float p: the exact total is what the model divides by.
        totals = [math.log1p(math.fsum((p, 1 - p, -1.0))) for p in chances.tolist()]
        for row, log in zip(rows, model.logprob(rows), strict=True):
            parts = np.where(row == 1, np.log(chances), np.log(1 - chances))
            expected = math.fsum(parts.tolist()) - math.fsum(totals)
            assert expected < -50_000
            assert abs(log / expected - 1) < 1e-12

    def test_elementary_symmetric_polynomial(self) -> None:
        n, k = 60, 30
        table: list[Node | None] = [const(1)] + [None] * k  # e_0..e_k of the variables so far
        for i in range(n):
            z = var(f"z{i}")
            for j in range(k, 0, -1):
                grown = None if table[j - 1] is None else product((z, table[j - 1]))
                if grown is not None:
                    table[j] = grown if table[j] is None else weighted_sum((1, 1), (table[j], grown))
        root = table[k]
        assert root is not None
        model = pgcc.compile(Circuit(root, [f"z{i}" for i in range(n)]))
        # uniform over the subsets of size 30: Pr(A in, B out) = C(n − |A| − |B|, k − |A|) / C(n, k)
        for a, b in [(0, 0), (1, 0), (0, 1), (10, 10), (30, 0), (30, 30), (0, 30), (31, 0), (0, 31), (29, 30)]:
            row = np.full(n, -1)
            row[:a], row[a : a + b] = 1, 0
            rest = n - a - b
            ways = math.comb(rest, k - a) if 0 <= k - a <= rest else 0
            assert model.prob(row) == pytest.approx(ways / math.comb(n, k), rel=1e-12, abs=0)
            assert model.prob(row, exact=True) == Fraction(ways, math.comb(n, k))

    def test_log_probability_of_minus_20_000(self) -> None:
        n = 500
        tiny = Fraction(1, 10**18)
        factors = [weighted_sum((tiny, 1 - tiny), (var(f"z{i}"), ONE)) for i in range(n)]
        model = pgcc.compile(Circuit(product(factors)))
        assert model.logprob(np.ones(n, int)) == pytest.approx(-18 * n * math.log(10), rel=1e-14)
        assert model.prob(np.ones(n, int)) == 0.0


class TestRange:
    def test_an_underflow_that_would_have_mattered(self) -> None:
        # (1e-200 · a)(1e-200 · b) underflows before it meets 1e+300 · c
        a, b, c = pgcc.variables("a b c")
        huge = Fraction(10**300) * c
        small = (Fraction(1, 10**200) * a + 0) * (Fraction(1, 10**200) * b + 0)
        model = pgcc.compile(small * huge + Fraction(1, 10**150) * a, normalize=False)
        assert model.prob({"b": 1}) == pytest.approx(1e-100, rel=1e-9)

    def test_weights_beyond_the_range_of_floats(self) -> None:
        z, y = pgcc.variables("z y")
        circuit = (Fraction(10) ** 400 * z + 1) * (Fraction(1, 10**400) * y + 1)
        model = pgcc.compile(circuit, normalize=False)
        assert model.prob({"z": 1, "y": 1}) == pytest.approx(1.0, rel=1e-9)
        assert model.logprob({"z": 1}) == pytest.approx(400 * math.log(10), rel=1e-12)
        assert model.logprob({"z": 0, "y": 1}) == pytest.approx(-400 * math.log(10), rel=1e-12)

    def test_minus_infinity_exactly_where_it_is_zero(self) -> None:
        rng = np.random.default_rng(5)
        zeros = 0
        for seed in range(60):
            # a few random monomials: most subsets are impossible; every other circuit is written with squares
            sets = [[var(f"z{i}") for i in np.flatnonzero(rng.random(5) < 0.5)] for _ in range(4)]
            root = weighted_sum([Fraction(1, 4)] * 4, [product(s) for s in sets])
            root = polarize(root, ONE) if seed % 2 else root
            circuit = Circuit(root, [f"z{i}" for i in range(5)])
            model = pgcc.compile(circuit)
            rows = rng.choice([0, 1, -1], size=(20, 5)).astype(np.int8)
            logs = model.logprob(rows)
            for row, log in zip(rows, logs.tolist(), strict=True):
                named = dict(zip(circuit.variables, row.tolist(), strict=True))
                exact = model.prob(named, exact=True)
                assert (log == -math.inf) == (exact == 0)
                zeros += exact == 0
        assert zeros > 200

    def test_a_sum_that_cancels_to_exactly_zero(self) -> None:
        a, b = pgcc.variables("a b")
        third = Fraction(1, 3)
        circuit = (third * a + 1) * (b + 1) - third * a * (b + 1) - b
        model = pgcc.compile(circuit, normalize=False)
        assert model.logprob({"a": 1, "b": 1}) == -math.inf
        assert model.prob({"a": 0, "b": 0}) == 1.0


def test_rtol_is_kept_at_every_level() -> None:
    rng = np.random.default_rng(3)
    for seed in range(20):
        circuit = random_circuit(seed, 6, size=15, decomposable=bool(seed % 2), negative=False)
        model = pgcc.compile(circuit)
        row = rng.choice([0, 1, -1], size=6)
        named = dict(zip(circuit.variables, row.tolist(), strict=True))
        true = model.prob(named, exact=True)
        for rtol in (1e-3, 1e-9, 1e-13):
            value, bound = model.prob(named, rtol=rtol, bound=True)
            assert bound <= rtol
            assert abs(Fraction(value) - true) <= Fraction(bound) * true


def test_a_nearly_singular_determinant_is_escalated_not_guessed() -> None:
    n = 8
    hilbert = np.array([[Fraction(1, i + j + 1) for j in range(n)] for i in range(n)])
    names = [f"z{i}" for i in range(n)]
    eye = [[int(i == j) for j in range(n)] for i in range(n)]
    circuit = Circuit(det(eye, eye, hilbert.tolist(), [var(v) for v in names]))
    model = pgcc.compile(circuit, normalize=False)
    true = model.prob(np.ones(n, int), exact=True)
    assert float(true) == pytest.approx(2.73705011379151e-33, rel=1e-12)  # det of the 8×8 Hilbert matrix
    value, bound = model.prob(np.ones(n, int), bound=True)
    assert bound <= 1e-9
    assert abs(Fraction(value) - true) <= Fraction(bound) * true

"""Distributions of counts of thousands of variables, to an absolute error."""

import numpy as np
import pytest

import pgcc
from pgcc.evaluate.counting_long import LongCounting, multiply
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, product, var, weighted_sum
from pgcc.testing import random_circuit

ATOL = 1e-12


def bernoullis(p, first=0):
    leaves = [weighted_sum((x, 1.0 - x), (var(f"z{i}"), ONE)) for i, x in enumerate(p.tolist(), first)]
    return product(leaves)


def dyadic(rng, n, low=0.0, high=1.0):
    """Probabilities p with p and 1 − p doubles."""
    return np.round((low + (high - low) * rng.random(n)) * 2**20) / 2**20


def wide(rng, n, first=0):
    """A mixture whose count is small or large."""
    parts = [bernoullis(dyadic(rng, n, low, low + 0.2), first) for low in (0.05, 0.7)]
    return weighted_sum((0.25, 0.75), parts)


def bound(model, atol=ATOL):
    n = len(model.variables)
    return LongCounting(model._compiled.scaled, np.full(n, -1, np.int8), np.ones(n, bool), atol).run()


def two_wide(rng):
    return Circuit(product([wide(rng, 4000), wide(rng, 3600, 4000)]))


def sums_of_wide(rng):
    halves = [[wide(rng, 3200, first) for first in (0, 3200)] for _ in range(2)]
    return Circuit(weighted_sum((0.5, 0.25, 0.25), [*map(product, halves), bernoullis(dyadic(rng, 6400))]))


def chain(rng):
    return pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=2500)


CASES = {
    "independent": lambda rng: Circuit(bernoullis(dyadic(rng, 5000))),
    "two modes": lambda rng: Circuit(wide(rng, 3000)),
    "transforms": two_wide,
    "sums of transforms": sums_of_wide,
    "chain": chain,
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_direct_products(case):
    model = pgcc.compile(CASES[case](np.random.default_rng(1)))
    found, error = bound(model)
    expected = model.cardinality()
    assert error <= ATOL
    assert np.abs(found - expected).max() <= error
    np.testing.assert_array_equal(model.cardinality(atol=ATOL), found / found.sum())


def test_evidence_and_a_part_of_the_variables():
    model = pgcc.compile(two_wide(np.random.default_rng(2)))
    seen = {f"z{i}": int(i % 3 == 0) for i in range(500)}
    over = model.variables[100:7000]
    found, expected = model.cardinality(seen, over=over, atol=ATOL), model.cardinality(seen, over=over)
    assert np.abs(found - expected).max() <= ATOL
    assert (found[:133] == 0).all()  # so many are observed in


@pytest.mark.parametrize("seed", range(30))
def test_any_monotone_circuit(seed):
    """However short: nothing of it is negligible."""
    model = pgcc.compile(random_circuit(seed, 8, negative=False))
    found, error = bound(model)
    assert error <= ATOL
    np.testing.assert_allclose(found, model.cardinality(), rtol=1e-12)


def test_what_is_cut_off_is_within_the_bound():
    model = pgcc.compile(Circuit(bernoullis(dyadic(np.random.default_rng(0), 3000))))
    expected = model.cardinality()
    for atol in (1e-3, 1e-6, 1e-9):
        found, error = bound(model, atol)
        assert (found == 0).sum() > 1000
        assert np.abs(found - expected).max() <= error <= atol


def test_a_hundred_thousand_variables():
    p = dyadic(np.random.default_rng(0), 100_000)
    model = pgcc.compile(Circuit(bernoullis(p)))
    pmf = model.cardinality(atol=ATOL)
    k = np.arange(len(pmf))
    mean, variance = p.sum(), (p * (1 - p)).sum()
    assert pmf @ k == pytest.approx(mean, rel=1e-10)
    assert pmf @ (k - mean) ** 2 == pytest.approx(variance, rel=1e-8)
    # the normal approximation is right to about 1/σ², and so is the refined one to 1/σ³
    density = np.exp(-((k - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    assert np.abs(pmf - density).max() < 0.01 * density.max()


def test_the_bound_of_a_transform():
    rng = np.random.default_rng(0)
    for n in (5, 300, 3000):
        a, b = rng.random(n), rng.random(2 * n) ** 8
        product_, off = multiply(a, b)
        exact = np.convolve(a, b)
        assert np.linalg.norm(product_ - exact) <= off * a.sum() * b.sum()


def test_what_transforms_cannot_promise_is_computed_directly():
    model = pgcc.compile(Circuit(bernoullis(dyadic(np.random.default_rng(0), 3000))))
    assert bound(model, 1e-15)[1] > 1e-15
    np.testing.assert_array_equal(model.cardinality(atol=1e-15), model.cardinality())


def test_one_entry_and_parity_of_thousands():
    p = dyadic(np.random.default_rng(4), 3000, 0.2, 0.3)
    model = pgcc.compile(Circuit(bernoullis(p)))
    pmf = model.cardinality()
    for k in (0, 600, 750, 3000):
        assert model.exactly(k) == pytest.approx(pmf[k], rel=1e-9, abs=0)
    assert model.parity() == pytest.approx((1 - np.prod(1 - 2 * p)) / 2, rel=1e-9)

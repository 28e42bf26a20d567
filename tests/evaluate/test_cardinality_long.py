"""Distributions of counts of thousands of variables, to an absolute error: without their negligible tails."""

import math
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.evaluate.counting import Counting, _error
from pgcc.evaluate.direct import Float64, Scaled
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, product, var, weighted_sum
from pgcc.passes.homogenize import homogenize
from pgcc.program.lower import lower
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


def without_tails(counting, atol=ATOL):
    """The coefficients divided by their sum, and the bound on their absolute error."""
    n = counting.scaled.program.n_variables
    ((mantissa, exponent), error), lost = counting._directly(np.full(n, -1, np.int8), np.ones(n, bool), atol)
    found = np.ldexp(mantissa, (256 * np.clip(exponent - exponent[mantissa > 0].max(), -8, 0)).astype(np.int32))
    return found / found.sum(), _error((mantissa, exponent), error, lost)


def bound(model, atol=ATOL):
    return without_tails(model._compiled.counting, atol)


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


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_direct_products(case):
    model = pgcc.compile(CASES[case](np.random.default_rng(1)))
    found, error = bound(model)
    expected = model.cardinality()
    assert error <= ATOL
    assert np.abs(found - expected).max() <= error
    np.testing.assert_allclose(model.cardinality(atol=ATOL), found, rtol=1e-15, atol=0)


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_zeros_have_no_exponent_that_others_are_measured_by():
    """A leaf 10^-900·y, whose constant term is 0, became 0 itself: the result was off by 0.1 with a bound of 4e-10."""
    n, tiny = 40, Fraction(1, 10**900)
    names = [f"x{i}" for i in range(n)]
    parts = [
        product([leaf, *(weighted_sum((p, 1 - p), (var(x), ONE)) for x in names)])
        for leaf, p in ((weighted_sum((tiny,), (var("y"),)), Fraction(1, 2)), (var("y"), Fraction(1, 10)))
    ]
    circuit = Circuit(weighted_sum((1, tiny), parts), (*names, "y"))
    found, off = without_tails(Counting(Scaled(Float64(lower(homogenize(circuit)))), None), 1e-8)
    exact = [0.0] + [math.comb(n, k) * (0.5**n + 0.1**k * 0.9 ** (n - k)) / 2 for k in range(n + 1)]
    assert np.abs(found - exact).max() <= off <= 1e-8


@pytest.mark.slow
def test_a_sum_of_transforms_of_which_one_is_impossible():
    """0 has no sum that an error could be relative to."""
    rng = np.random.default_rng(3)
    halves = [[wide(rng, 3200, first) for first in (0, 3200)] for _ in range(2)]
    halves[1][0] = weighted_sum((1,), (product([halves[1][0], var("y")]),))
    model = pgcc.compile(Circuit(weighted_sum((0.5, 0.5), list(map(product, halves)))))
    found, expected = model.cardinality({"y": 0}, atol=ATOL), model.cardinality({"y": 0})
    assert np.abs(found - expected).max() <= ATOL


def test_small_factors_that_are_not_multiplied_out():
    """`simplify` keeps 10^-700·y as it is where a product would have too many digits: the result was off by 0.02."""
    n = 1100
    first, second = (" * ".join(f"({p}*x{i} + {1 - p})" for i in range(n)) for p in (Fraction(1, 2), Fraction(1, 10)))
    model = pgcc.compile(pgcc.parse(f"(1e-700*y) * (1e-700*w) * {first} + 1e-1400*{second}"))
    np.testing.assert_allclose(model.cardinality(atol=1e-8), model.cardinality(), rtol=0, atol=1e-8)


def test_what_rounding_does_not_allow_is_computed_in_balls():
    model = pgcc.compile(Circuit(bernoullis(dyadic(np.random.default_rng(0), 3000))))
    assert bound(model, 1e-15)[1] > 1e-15
    np.testing.assert_allclose(model.cardinality(atol=1e-15), model.cardinality(), rtol=1e-9, atol=1e-300)


def test_nothing_is_cut_off_where_terms_cancel():
    """The share that a factor loses is a share of its own sum, which may be far more than what is left of it."""
    n = 40
    heavy, light = (bernoullis(np.full(n, p)) for p in (0.75, 0.25))
    circuit = Circuit(weighted_sum((1, -1 + 2**-30), (heavy, weighted_sum((0.5, 0.5), (heavy, light)))))
    model = pgcc.compile(circuit, validate=False)
    plan = model._compiled.counting._directly(np.full(n, -1, np.int8), np.ones(n, bool), 1e-3)
    assert plan[1] == 0.0


def test_one_entry_and_parity_of_thousands():
    p = dyadic(np.random.default_rng(4), 3000, 0.2, 0.3)
    model = pgcc.compile(Circuit(bernoullis(p)))
    pmf = model.cardinality()
    for k in (0, 600, 750, 3000):
        assert model.cardinality(atol=1e-15)[k] == pytest.approx(pmf[k], rel=1e-9, abs=0)
    assert model.parity() == pytest.approx((1 - np.prod(1 - 2 * p)) / 2, rel=1e-9)

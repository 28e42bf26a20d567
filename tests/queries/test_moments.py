"""Moments of counts, from their distributions and from derivatives: brute force, closed forms, other ways."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import pgcc
from pgcc.queries import moments as moments_module
from pgcc.testing import random_circuit


def coins(p):
    z = pgcc.variables([f"z{i}" for i in range(len(p))])
    return pgcc.product([x * v + (1 - x) for x, v in zip(p, z, strict=True)])


def of_coins(p):
    """Mean, variance, skewness and kurtosis, by adding up cumulants."""
    variance = sum(x * (1 - x) for x in p)
    third = sum(x * (1 - x) * (1 - 2 * x) for x in p)
    fourth = sum(x * (1 - x) * (1 - 6 * x * (1 - x)) for x in p) + 3 * variance**2
    return float(sum(p)), float(variance), float(third) / float(variance) ** 1.5, float(fourth / variance**2)


def dyadic(n, seed=0):
    return [Fraction(int(x), 2**20) for x in np.random.default_rng(seed).integers(1, 2**20, n)]


NEGATIVE = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2)*(0.8*z3 + 0.2)"
MODELS = {
    "independent": lambda: coins(dyadic(6)),
    "random": lambda: random_circuit(3, 7, negative=False),
    "not decomposable": lambda: pgcc.parse(NEGATIVE),
    "DPP": lambda: pgcc.dpp(L=np.array([[2.0, 1, 0, 1], [1, 3, 1, 0], [0, 1, 1, 0], [1, 0, 0, 2]])),
    "DPP with linear algebra": lambda: pgcc.dpp(factor=np.random.default_rng(1).standard_normal((12, 4))),
    "tree": lambda: pgcc.spanning_tree(nx.complete_graph(4)),
}


@pytest.fixture
def by_derivatives(monkeypatch):
    monkeypatch.setattr(moments_module, "_LONG", 0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seen", [{}, {1: 1}, {0: 0, 2: 1}])
def test_derivatives_agree_with_distributions(name, seen, monkeypatch):
    model = pgcc.compile(MODELS[name]())
    evidence = {model.variables[i]: value for i, value in seen.items()}
    over = model.variables[:-1]
    expected = model.moments(evidence, over=over)
    monkeypatch.setattr(moments_module, "_LONG", 0)
    found = model.moments(evidence, over=over)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-9)
    if expected.variance > 0:
        np.testing.assert_allclose(found[2:], expected[2:], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_covariances_of_counts_agree_with_brute_force(name):
    model = pgcc.compile(MODELS[name]())
    names = model.variables
    groups = [names[:2], names[1:3], names[2:]]
    for evidence in ({}, {names[0]: 1}):
        sets = np.array([s for s in itertools.product((0, 1), repeat=len(names)) if not evidence or s[0]])
        weights = model.prob(sets.astype(np.int8))
        weights = weights / weights.sum()
        totals = np.array([[sum(s[names.index(v)] for v in group) for group in groups] for s in sets])
        centred = totals - weights @ totals
        expected = centred.T @ (centred * weights[:, None])
        found = model.covariance(evidence, counts=groups)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_one_covariance_matrix_per_row():
    model = pgcc.compile(coins(dyadic(4)))
    found = model.covariance(np.array([[-1, -1, -1, -1], [1, -1, -1, 0]]), counts=["z0, z1", ["z2", "z3"]])
    assert found.shape == (2, 2, 2)
    p = dyadic(4)
    assert found[1] == pytest.approx(np.diag([float(x * (1 - x)) for x in (p[1], p[2])]), rel=1e-12, abs=1e-12)


def test_a_count_that_is_certain_has_no_variance(by_derivatives):
    found = pgcc.compile(pgcc.spanning_tree(nx.complete_graph(4))).moments()
    assert found[:2] == (3.0, 0.0)
    assert all(map(math.isnan, found[2:]))


def test_two_thousand_coins_to_all_digits():
    """The smallest entries of the distribution took too many bits: the question failed."""
    p = dyadic(2000)
    found, expected = pgcc.compile(coins(p)).moments(rtol=1e-14), of_coins(p)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-14, abs=1e-14)


@pytest.mark.slow
def test_a_hundred_thousand_variables():
    """The whole distribution of the count has too many coefficients."""
    p = dyadic(100_000)
    model = pgcc.compile(coins(p))
    found = model.moments()
    assert found == pytest.approx(of_coins(p), rel=1e-9, abs=1e-9)
    assert found.mean == pytest.approx(model.marginals().sum(), rel=1e-12)
    halves = model.variables[:50_000], model.variables[50_000:]
    covariance = model.covariance(counts=halves)
    assert covariance.sum() == pytest.approx(found.variance, rel=1e-9)
    assert abs(covariance[0, 1]) <= 1e-9 * math.sqrt(covariance[0, 0] * covariance[1, 1])


def test_a_mixture_of_products():
    """Where the variance is far above that of independent variables, nothing is lost."""
    circuit = pgcc.mixture([0.5, 0.5], [coins([Fraction(1, 8)] * 1500), coins([Fraction(7, 8)] * 1500)])
    found = pgcc.compile(circuit).moments()
    assert found.mean == 750.0
    assert found.variance == pytest.approx(1500 * 7 / 64 + (1500 * 3 / 8) ** 2, rel=1e-12)
    assert found.skewness == pytest.approx(0.0, abs=1e-9)

"""Attacks on the reverse pass through determinants: constants below the range of doubles, and rows in company."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import pgcc


def assert_marginals(circuit, evidence):
    """Every posterior within 1e-9 of the fraction."""
    model = pgcc.compile(circuit)
    base = model.prob(evidence, exact=True)
    found = model.marginals(evidence, names=False)
    for name, x in zip(model.variables, found, strict=True):
        exact = Fraction(evidence[name]) if name in evidence else model.prob(evidence | {name: 1}, exact=True) / base
        assert x == pytest.approx(float(exact), rel=1e-9, abs=0)


KERNEL = [[1.0, 0.5], [0.5, 1.0]]


def test_a_child_below_the_range_of_doubles_is_not_impossible():
    children = [pgcc.parse("1e-400*a"), pgcc.parse("b")]
    assert_marginals(pgcc.determinant(np.eye(2), np.eye(2), KERNEL, children), {"a": 1})


def test_a_weight_below_the_range_of_doubles_is_not_impossible():
    assert_marginals(pgcc.parse("1e-400*c + 1") * pgcc.dpp(L=KERNEL, names=["a", "b"]), {"c": 1})


def test_a_child_below_the_range_of_doubles_under_a_large_matrix():
    """1e-250 + 1e-400·1e300·a: what is lost of the child is all of the total."""
    d = pgcc.determinant([[1e-250]], [[1e150]], [[1e150]], [pgcc.parse("1e-400*a")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = pgcc.compile(d)
        assert model.logprob({"a": 0}) == pytest.approx(-150 * math.log(10.0), rel=1e-12)
        assert model.prob({"a": 1}) == pytest.approx(1.0, rel=1e-9)
    mixture = pgcc.mixture([0.5, 0.5], [d * pgcc.parse("0.1*c + 0.9"), pgcc.parse("0.7*c*a + 0.3*a")])
    assert_marginals(mixture, {"a": 1})
    assert_marginals(mixture, {"a": 0})


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 1100])
def test_a_kernel_that_underflows_under_a_large_child(more):
    """Its diagonal entry of 1e-340 is no exact 0, by any form; times 1e200 it is a probability of 1e-140."""
    columns = np.hstack([[[1e-170, 1.0], [3e-170, 0.5]], np.full((2, more), 0.01)])
    children = [pgcc.parse("1e200*a"), pgcc.parse("b"), *(pgcc.parse(f"c{i}") for i in range(more))]
    model = pgcc.compile(pgcc.determinant(np.eye(2), columns, columns, children))
    for evidence in ({}, {"b": 1}, {"b": 0}):
        expected = model.prob(evidence | {"a": 1}) / model.prob(evidence)
        assert model.marginals(evidence, names=False)[0] == pytest.approx(expected, rel=1e-9, abs=0)
        assert 1e-141 < expected < 1e-138


def test_an_entry_that_underflows_beside_a_diagonal_of_zeros():
    """v_a·u_a = 0, and v_a·u_b·v_b·u_a is below the range of doubles until the children are counted in."""
    u, v = [[1e-170, 0.0, 1.0], [0.0, 1.0, 0.5]], [[0.0, -1.0, 1.0], [1e-170, 0.0, 0.5]]
    children = [pgcc.parse("1e250*a"), pgcc.parse("b"), pgcc.parse("c")]
    for m0 in (np.eye(2), [[1.0, 0.25], [0.0, 1.0]]):
        circuit = pgcc.determinant(m0, u, v, children)
        assert_marginals(circuit, {"c": 0})
        assert_marginals(circuit, {"b": 1})


def test_an_item_that_never_occurs_has_a_marginal_of_zero():
    model = pgcc.compile(pgcc.dpp(factor=[[1.0, 0.5], [0.0, 0.0], [0.25, 1.0]]))
    assert model.marginals({"x1": 1}, names=False)[1] == 0.0
    assert model.marginals({"x1": 0}, names=False)[1] == 0.0


def test_a_row_beside_one_that_leaves_the_range_has_the_same_bits():
    """Products of pivots are taken in one order, with an exponent of their own or without."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((12, 12)) * np.where(np.arange(12) < 6, 1e-20, 1.0)[:, None]
    children = [pgcc.parse(f"0.3*x{i}") for i in range(12)]
    model = pgcc.compile(pgcc.determinant(np.eye(12), B.T, B.T, children))
    rows = np.full((40, 12), -1)
    rows[::8, :6] = 1  # 1e-240
    rows[rows[:, 0] < 0, 6:] = rng.random((35, 6)) < 0.7
    together = model.logprob(rows)
    assert together.tolist() == [model.logprob(row[None])[0] for row in rows]
    np.testing.assert_array_equal(model.marginals(rows), np.vstack([model.marginals(row[None]) for row in rows]))


@pytest.mark.parametrize("symmetric", [True, False])
def test_tiny_entries_beside_an_ordinary_diagonal(symmetric):
    """A narrow kernel has entries from 1 to 1e-308: they are no reason for balls."""
    rng = np.random.default_rng(2)
    L = np.eye(6) + np.diag([1e-300, 5e-310, 2e-320, 1e-3, 1e-295], 1)
    L = L + L.T if symmetric else L - np.tril(L.T, -1) + np.diag(rng.random(6))
    model = pgcc.compile(pgcc.dpp(L=L, symmetric=symmetric))
    rows = rng.choice([-1, 0, 1], (40, 6)).astype(np.int8)
    exact = [model.prob(dict(zip(model.variables, row, strict=True)), exact=True) for row in rows.tolist()]
    found = model._compiled.values(rows, 1e-9, "direct")
    assert (found.bound <= 1e-9).all()
    total = model.prob({}, exact=True)
    assert total == 1
    np.testing.assert_allclose(model.prob(rows), np.array(exact, float), rtol=1e-12)

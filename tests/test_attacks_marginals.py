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
    found = model.marginals(evidence)
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

"""Mixtures built from arrays, against one circuit per component; certified at the speed of float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.builders import chow_liu
from pgcc.ir.domains import Domains, as_columns
from pgcc.learn.common.mixing import mixture_of_trees
from pgcc.passes.simplify import _is_folded, fold

PARENTS = [[-1, -1, -1, -1], [-1, 0, 1, 1], [2, -1, 1, -1], [-1, 0, 0, 2]]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(PARENTS), st.integers(1, 4), st.integers(0, 1 << 30))
def test_a_mixture_of_trees_is_that_of_its_trees(parents, components, seed):
    rng = np.random.default_rng(seed)
    probs, weights = rng.choice([0.0, 0.125, 0.5, 0.75, 1.0], (components, 4, 2)), rng.dirichlet(np.ones(components))
    probs[:, np.array(parents) < 0, 1] = probs[:, np.array(parents) < 0, 0]
    trees = [chow_liu(parents, table.tolist(), ["a", "b", "c", "d"]) for table in probs]
    wanted = pgcc.compile(pgcc.mixture(weights.tolist(), trees))
    model = pgcc.compile(mixture_of_trees(weights, parents, probs, ["a", "b", "c", "d"]))
    X = np.array(list(itertools.product([0, 1, -1], repeat=4)), np.int8)
    np.testing.assert_allclose(model.prob(X), wanted.prob(X), rtol=1e-12)


def test_variables_with_states():
    """Pr(w), Pr(wet | w) and Pr(s | wet) of two components, summed by hand."""
    names = as_columns(Domains.of({"w": ["sun", "rain", "snow"], "wet": ["no", "yes"], "s": list("xyz")}))
    rng = np.random.default_rng(0)
    w, wet, s = rng.dirichlet(np.ones(3), 2), rng.uniform(0, 1, (2, 3)), rng.dirichlet(np.ones(3), (2, 2))
    probs = np.zeros((2, 7, 3))
    probs[:, :3, 0], probs[:, 3], probs[:, 4:, :2] = w, wet, s.transpose(0, 2, 1)
    model = pgcc.compile(mixture_of_trees(np.array([0.25, 0.75]), [-1, 0, 1], probs, names))
    on = np.stack([1 - wet, wet], axis=2)
    joint = np.einsum("c,ci,cij,cjk->ijk", [0.25, 0.75], w, on, s)
    for i, j, k in np.ndindex(3, 2, 3):
        row = {"w": ["sun", "rain", "snow"][i], "wet": ["no", "yes"][j], "s": "xyz"[k]}
        assert model.prob(row) == pytest.approx(joint[i, j, k], rel=1e-12)


def test_probabilities_of_0_that_are_known_better():
    """1 − p would be 0 where p is 1 − 1e-20."""
    odd = mixture_of_trees(np.ones(1), [-1], np.ones((1, 1, 1)), ["a"], outs=np.full((1, 1, 1), 1e-20))
    assert pgcc.compile(odd).prob({"a": 0}) == pytest.approx(1e-20, rel=1e-12)


@pytest.mark.parametrize("parents", [[-1] * 20, [-1, *range(19)]])
def test_many_components_are_answered_by_the_kernel(parents):
    """They are simple as they are, and no row falls to balls, with values missing or not."""
    rng = np.random.default_rng(0)
    probs, weights = 1 / (1 + np.exp(-rng.normal(0, 3, (200, 20, 2)))), np.full(200, 1 / 200)
    circuit = mixture_of_trees(weights, parents, probs, [f"x{i}" for i in range(20)])
    assert _is_folded(circuit._flat)
    assert fold(circuit) is circuit
    X = rng.integers(-1, 2, (50, 20)).astype(np.int8)
    model = pgcc.compile(circuit)
    complete, given = np.maximum(X, 0).astype(int), np.maximum(parents, 0)
    p = np.stack([one[np.arange(20), complete[:, given] * (np.array(parents) >= 0)] for one in probs], axis=1)
    logs = np.log(np.where(complete[:, None] == 1, p, 1 - p)).sum(axis=2)
    np.testing.assert_allclose(model.logprob(complete), np.log(np.exp(logs).mean(axis=1)), rtol=1e-9)
    model.logprob(X)
    assert "exact" not in model._compiled.seconds

"""Continuous mixtures against brute force, finite differences and their circuits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pgcc
from pgcc.errors import PgccError
from pgcc.ir.blocks import Blocks
from pgcc.learn import ContinuousMixture
from pgcc.learn.continuous.log_linear import LogLinear
from pgcc.learn.continuous.tied_mixture import TiedMixture, gaussian, sobol_points

# Variables with one column, three and two columns more; each list of parents is a forest over four of them.
BLOCKS = Blocks(np.array([0, 1, 4, 5]), np.array([0, 1, 1, 1, 2, 3, 3, 3]))
FORESTS = [[-1] * 4, [-1, 0, 1, 1], [1, -1, 3, 0], [1, 2, -1, -1]]


def all_rows(blocks: Blocks) -> np.ndarray:
    """Every state of every variable."""
    sizes = np.diff([*blocks.first, len(blocks.block)])
    rows = []
    for states in itertools.product(*(range(max(size, 2)) for size in sizes)):
        row = np.zeros(len(blocks.block), np.int8)
        for first, size, state in zip(blocks.first, sizes, states, strict=True):
            row[first + (0 if size == 1 else state)] = state if size == 1 else 1
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("parents", FORESTS)
def test_components_are_distributions_and_folding_changes_nothing(parents):
    form, rows = LogLinear(BLOCKS, parents), all_rows(BLOCKS)
    table = form.table(np.random.default_rng(0).normal(size=(form.logits, 3)))
    logs = form.features(rows) @ table
    assert np.allclose(np.exp(logs).sum(axis=0), 1, rtol=1e-13)
    assert np.allclose(form.folded(rows) @ form.fold(table), logs, rtol=1e-12)


@pytest.mark.parametrize("parents", FORESTS)
def test_a_variable_depends_on_its_parent_alone(parents):
    """p(row) = Π p(variable | parent), with both taken from the joint distribution by counting."""
    form, rows = LogLinear(BLOCKS, parents), all_rows(BLOCKS)
    probs = np.exp(form.features(rows) @ form.table(np.random.default_rng(1).normal(size=(form.logits, 1))))[:, 0]
    parts = np.split(np.arange(rows.shape[1]), BLOCKS.first[1:])

    def marginal(row: np.ndarray, variables: list[int]) -> float:
        columns = np.concatenate([parts[v] for v in variables])
        return probs[(rows[:, columns] == row[columns]).all(axis=1)].sum()

    for row, prob in zip(rows, probs, strict=True):
        factors = [
            marginal(row, [v, u]) / marginal(row, [u]) if u >= 0 else marginal(row, [v]) for v, u in enumerate(parents)
        ]
        assert prob == pytest.approx(np.prod(factors), rel=1e-12)


@pytest.mark.parametrize("parents", FORESTS)
@pytest.mark.parametrize("nonempty", [False, True])
def test_the_gradient_is_that_of_finite_differences(parents, nonempty):
    rng, weights = np.random.default_rng(2), np.array([1.0, 2.0, 0.5])
    blocks = Blocks(np.arange(4), np.arange(4)) if nonempty else BLOCKS
    mixture = TiedMixture(LogLinear(blocks, parents), 2, nonempty)
    theta, points = mixture.start(rng, np.full(len(blocks.block), 0.3)), gaussian(sobol_points(8, 2))
    codes = all_rows(blocks)[[5, 11, 14]]
    value, gradient = mixture.value_and_gradient(theta, codes, weights, points)
    assert value == pytest.approx(
        weights @ mixture.scores(mixture.table(theta, points), codes, np.float64(-np.log(8))), rel=1e-13
    )
    along = rng.normal(size=len(theta))
    up, down = (mixture.value_and_gradient(theta + h * along, codes, weights, points)[0] for h in (1e-6, -1e-6))
    assert gradient @ along == pytest.approx((up - down) / 2e-6, rel=1e-6)


def fitted(structure: str, X, **params) -> ContinuousMixture:
    return ContinuousMixture(structure, 8, 2, max_iter=3, batch_size=16, verbose=False, **params).fit(X)


@pytest.mark.parametrize("structure", ["product", "tree"])
@pytest.mark.parametrize("labels", [False, True])
def test_the_circuit_has_the_likelihood_of_the_layers(structure, labels):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (60, 5))
    if labels:
        X = [
            dict(zip("abcde", map(str, row), strict=True)) | {"w": w}
            for row, w in zip(X, rng.choice(list("xyz"), 60), strict=True)
        ]
    model = fitted(structure, X)
    blocks = Blocks.of(model.circuit_.variables)
    rows = all_rows(blocks)
    form, weights, table = model._components(model._read(X, None, 0))
    expected = np.logaddexp.reduce(form.features(rows) @ table + np.log(weights), axis=1)
    scored = model._score_codes(rows)
    assert scored == pytest.approx(expected, abs=1e-9)
    assert np.exp(expected).sum() == pytest.approx(1, rel=1e-12)
    assert pgcc.check(model.circuit_).ok


@pytest.mark.parametrize("structure", ["product", "tree"])
def test_more_components_fit_better(structure):
    rng = np.random.default_rng(4)
    center = rng.integers(0, 2, (4, 6))[rng.integers(0, 4, 400)]
    X = np.where(rng.random((400, 6)) < 0.1, 1 - center, center)
    model = ContinuousMixture(structure, 64, 2, learning_rate=0.01, verbose=False).fit(X[:300])
    independent = X[:300].mean(axis=0)
    alone = np.log(np.where(X[300:] == 1, independent, 1 - independent)).sum(axis=1).mean()
    assert model.score(X[300:]) > alone + 0.5
    assert model.history_["validation"][model.best_epoch_] == max(model.history_["validation"])


def test_a_tree_with_a_seed_differs():
    rng = np.random.default_rng(6)
    X = np.cumsum(rng.random((200, 8)) < 0.5, axis=1) % 2
    data = ContinuousMixture("tree")._read(X, None, 0)
    found = [ContinuousMixture("tree", tree_seed=seed)._mixture(data).form.parents.tolist() for seed in (None, 0, 0, 1)]
    assert found[1] == found[2]
    assert found[0] != found[1] != found[3]
    with pytest.raises(PgccError, match="tree_seed='x'"):
        ContinuousMixture("tree", tree_seed="x").fit(X)


@pytest.mark.parametrize("parents", FORESTS)
def test_missing_values_are_summed_out(parents):
    """Likelihoods against sums over complete rows, and the gradient against finite differences."""
    rng, rows = np.random.default_rng(5), all_rows(BLOCKS)
    mixture = TiedMixture(LogLinear(BLOCKS, parents), 2, False)
    theta, points = mixture.start(rng, np.full(8, 0.3)), gaussian(sobol_points(4, 2))
    table = mixture.table(theta, points)
    complete = np.exp(mixture.scores(table, rows, -np.log(4)))
    codes = rows[rng.integers(len(rows), size=40)]
    for row in codes:
        row[(rng.random(4) < 0.5)[BLOCKS.block]] = -1
    expected = [complete[((row < 0) | (rows == row)).all(axis=1)].sum() for row in codes]
    assert mixture.scores(table, codes, -np.log(4)) == pytest.approx(np.log(expected), abs=1e-12)
    along, weights = rng.normal(size=len(theta)), rng.random(40)
    _, gradient = mixture.value_and_gradient(theta, codes, weights, points)
    up, down = (mixture.value_and_gradient(theta + h * along, codes, weights, points)[0] for h in (1e-6, -1e-6))
    assert gradient @ along == pytest.approx((up - down) / 2e-6, rel=1e-4)

"""Sets that do not occur: learned distributions given that a row is not empty."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import pgcc
from pgcc.errors import EvidenceError, PgccError
from pgcc.learn import ChowLiu, CircuitMLE, ContinuousMixture, MixtureOfTrees, SimplePGC, StackedEnsemble
from pgcc.learn.regions.hidden_tree import HiddenTree
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.read_rows import read_rows

EVERY = np.array(list(itertools.product([0, 1], repeat=6)))


def baskets(count: int = 400) -> np.ndarray:
    """Rows of three kinds, none of them empty."""
    rng = np.random.default_rng(0)
    X = (
        rng.random((2 * count, 6))
        < np.array([[0.3] * 6, [0.1, 0.4] * 3, [0.05] * 5 + [0.4]])[rng.integers(3, size=2 * count)]
    )
    return X[X.any(axis=1)][:count].astype(int)


MODELS = [
    ContinuousMixture(n_components=8, max_iter=3),
    ContinuousMixture("tree", n_components=8, max_iter=3),
    MixtureOfTrees(2, max_iter=3),
    ChowLiu(),
    HiddenTree(2, max_iter=2),
    SimplePGC(2, 2, max_iter=2),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda one: f"{type(one).__name__}")
def test_it_is_found_in_the_data(model):
    X = baskets()
    model.fit(X)
    assert model.excludes_empty_
    probs = np.exp(model.score_samples(EVERY))
    assert probs[0] < 1e-9
    assert math.fsum(probs) == pytest.approx(1, rel=1e-9)
    assert model.model_.standing.certain
    with_empty = np.vstack([X, [[0] * 6]])
    assert not model.fit(with_empty).excludes_empty_
    assert math.exp(model.score_samples(EVERY)[0]) > 1e-3


@pytest.mark.parametrize("structure", ["product", "tree"])
def test_validation_scores_are_those_of_the_circuit(structure):
    data = DataSplit(read_rows(baskets()[:300]), read_rows(baskets()[300:]), False)
    model = ContinuousMixture(structure, n_components=8, max_iter=3)
    (plan,) = model._plans(model._read(data, None, 0), 0, None)
    model.fit(data)
    codes = np.concatenate([block.codes for block in data.held_out.blocks()])
    scored = plan.scores({"theta": model.parameters_})
    assert scored.mean() == pytest.approx(model.score_samples(codes).mean(), abs=0.05)  # before the last step of EM


def test_a_stack_of_them():
    X = baskets()
    stack = StackedEnsemble([MixtureOfTrees(2, max_iter=3), ContinuousMixture(n_components=8, max_iter=3)]).fit(X)
    assert stack.excludes_empty_
    assert "no row is empty" in stack.summary()
    probs = np.exp(stack.score_samples(EVERY))
    assert probs[0] < 1e-9
    assert math.fsum(probs) == pytest.approx(1, rel=1e-9)
    assert stack.model_.standing.certain
    held_out = stack.validation_score_
    assert held_out > StackedEnsemble([MixtureOfTrees(2, max_iter=3)], exclude_empty=False).fit(X).validation_score_


def test_said():
    X = baskets(30)  # too few to tell
    assert not ChowLiu().fit(X).excludes_empty_
    assert ChowLiu(exclude_empty=True).fit(X).excludes_empty_
    assert not ChowLiu(exclude_empty=False).fit(baskets()).excludes_empty_
    circuit = pgcc.parse(" * ".join(f"(0.5*x{i} + 0.5)" for i in range(1, 7)))
    assert not CircuitMLE(circuit).fit(baskets()).excludes_empty_
    with pytest.raises(EvidenceError, match="is empty"):
        ChowLiu(exclude_empty=True).fit(np.vstack([X, [[0] * 6]]))
    with pytest.raises(PgccError, match="exclude_empty='yes'"):
        ChowLiu(exclude_empty="yes").fit(X)


def test_missing_values_and_states():
    X = baskets()
    X[:50, 0] = -1  # where all others are 0, nobody knows
    assert ChowLiu().fit(X).excludes_empty_
    rows = [{"w": "abc"[i % 3], "late": "no" if i % 2 else "yes"} for i in range(90)]
    assert not ChowLiu().fit(rows).excludes_empty_


def test_saved(tmp_path):
    model = ChowLiu().fit(baskets())
    pgcc.learn.save(model, tmp_path / "model.npz")
    again = pgcc.learn.load(tmp_path / "model.npz")
    assert again.excludes_empty_
    assert (again.score_samples(EVERY) == model.score_samples(EVERY)).all()

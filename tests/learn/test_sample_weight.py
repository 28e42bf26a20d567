"""Weights of rows: a row of weight 2 counts as two rows, and one of weight 0 as none."""

from __future__ import annotations

import numpy as np
import pytest

import pgcc
from pgcc.errors import EvidenceError
from pgcc.learn import (
    BayesianNetworkMLE,
    ChowLiu,
    CircuitMLE,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
)
from pgcc.learn.tables.packed_rows import Rows, pack, pack_rows

MIXTURE = pgcc.parse(
    "0.5*(0.4*x1 + 0.6)*(0.5*x2 + 0.5)*(0.9*x3 + 0.1) + 0.5*(0.5*x1 + 0.5)*(0.3*x2 + 0.7)*(0.2*x3 + 0.8)"
)
EXACT = {
    "ChowLiu": ChowLiu(),
    "CircuitMLE": CircuitMLE(MIXTURE, "em", max_iter=10),
    "lbfgs": CircuitMLE(MIXTURE, "lbfgs", max_iter=10),
    "BayesianNetworkMLE": BayesianNetworkMLE([("x1", "x2")]),
}


def rows(count=60, gaps=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (count, 3))
    X[:, 1] |= X[:, 0]
    return np.where(rng.random(X.shape) < gaps, -1, X)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("kind", EXACT)
def test_whole_weights_are_repeated_rows(kind, gaps):
    X, weights = rows(gaps=gaps), np.random.default_rng(1).integers(0, 4, 60)
    weighted = EXACT[kind].fit(X, sample_weight=weights).model_.logprob(rows(8, seed=2))
    repeated = EXACT[kind].fit(np.repeat(X, weights, axis=0)).model_.logprob(rows(8, seed=2))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7)


def test_a_mixture_starts_at_random_but_its_steps_are_those_of_repeated_rows():
    """With equal weights of 2, the responsibilities at the start are the same, and so is all that follows."""
    X, V = rows(), rows(30, seed=1)
    twice = MixtureOfTrees(2, max_iter=5, smoothing=20).fit(X, sample_weight=np.full(60, 2.0), validation=V)
    once = MixtureOfTrees(2, max_iter=5, smoothing=10).fit(X, validation=V)
    assert twice.history_["train"] == pytest.approx(once.history_["train"], rel=1e-2)
    weighted = MixtureOfTrees(1, max_iter=1).fit(X, sample_weight=np.arange(60), validation=V)
    repeated = MixtureOfTrees(1, max_iter=1).fit(np.repeat(X, np.arange(60), axis=0), validation=V)
    np.testing.assert_allclose(weighted.score_samples(V), repeated.score_samples(V), rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        SimplePGC(1, 1, max_iter=10),
        MixtureOfTrees(2, max_iter=5),
        CircuitMLE(MIXTURE, "adam", max_iter=20, batch_size=16),
        ContinuousMixture(n_components=16, max_iter=15, learning_rate=0.01),
        HiddenTree(2, max_iter=12),
        HiddenTree(8, "tied", max_iter=30, batch_size=64),
        EinsumNetwork(2, 2, 2, max_iter=12),
        StackedEnsemble([ChowLiu(), MixtureOfTrees(2, max_iter=2)]),
    ],
)
def test_what_weighs_more_becomes_more_probable(model):
    X = rows(400)
    heavy = np.where(X[:, 2] == 1, 3.5, 0.5)
    plain, weighted = (model.fit(X, sample_weight=w).model_.prob({"x3": 1}) for w in (None, heavy))
    assert plain == pytest.approx(0.5, abs=0.12)
    assert weighted == pytest.approx(3.5 / 4, abs=0.12)


@pytest.mark.parametrize("few", [True, False])
def test_rows_are_drawn_in_proportion(few):
    codes, weights = rows(50).astype(np.int8), np.random.default_rng(3).integers(0, 4, 50).astype(float)
    some = pack_rows(["a", "b", "c"], [codes]) if few else Rows(["a", "b", "c"], pack(codes), None)
    weighted = some.weighted(weights)
    assert weighted.total == weights.sum() == weighted.epoch
    drawn = np.concatenate(list(weighted.draw(7, np.random.default_rng(0), times=2)))
    kept = weights[weights > 0]
    assert (np.bincount(drawn) == 2 * kept).all()
    fractions = some.weighted(weights / 10)
    drawn = np.concatenate([np.concatenate(list(fractions.draw(7, np.random.default_rng(i)))) for i in range(200)])
    assert len(drawn) == 200 * len(kept)
    np.testing.assert_allclose(np.bincount(drawn) / 200, len(kept) * kept / kept.sum(), atol=0.15)
    assert weighted.fingerprint() != some.fingerprint() != fractions.fingerprint()


@pytest.mark.parametrize("wrong", [[1.0], np.ones((60, 1)), [-1.0] * 60, [np.nan] * 60, "heavy", 2.0])
def test_weights_that_are_none(wrong):
    with pytest.raises(EvidenceError, match="sample_weight: expected 60 finite numbers ≥ 0"):
        ChowLiu().fit(rows(), sample_weight=wrong)


def test_weights_of_zero():
    with pytest.raises(EvidenceError, match="every weight is zero"):
        ChowLiu().fit(rows(), sample_weight=np.zeros(60))
    X, some = rows(), np.arange(60) % 3 > 0
    for model in (MixtureOfTrees(2, max_iter=3), SimplePGC(1, 1, "paper", max_iter=2)):
        assert model.fit(X, sample_weight=some).circuit_ == model.fit(X[some]).circuit_


def test_columns_that_are_numbered_have_no_names():
    pd = pytest.importorskip("pandas")
    X = rows()
    model = ChowLiu().fit(pd.DataFrame(X), sample_weight=pd.Series(np.ones(60)))
    assert model.circuit_ == ChowLiu().fit(X).circuit_
    assert model.score(pd.DataFrame(X)) == model.score(X)
    assert not hasattr(model, "feature_names_in_")

"""Expectation–maximization, by hand: what its iterations report, and what smoothing adds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pgcc
from pgcc.learn import ChowLiu, CircuitMLE, MixtureOfTrees
from pgcc.learn.tables import packed_rows

ROWS = np.array(list(product([0, 1], repeat=5)) * 2 + [[1, 1, 0, 0, 1]] * 9)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("entries", [5 * 3, 1 << 21])
def test_an_iteration_reports_the_likelihood_of_all_rows(entries, gaps, monkeypatch):
    """Also where these are many blocks, whose contributions are added up."""
    monkeypatch.setattr(packed_rows, "BLOCK", entries)
    X = ROWS.copy()
    X[::3, 0] = -1 if gaps else X[::3, 0]
    for epochs in (1, 3):
        model = MixtureOfTrees(2, max_iter=epochs, n_iter_no_change=epochs).fit(X, validation=X)
        assert model.history_["train"] == pytest.approx(model.history_["validation"], rel=1e-12)
        assert model.history_["train"][model.best_epoch_] == pytest.approx(model.score(X), rel=1e-9)


def test_blocks_change_nothing(monkeypatch):
    X = ROWS.copy()
    X[::4, 1] = -1
    whole = MixtureOfTrees(2, max_iter=4).fit(X), ChowLiu().fit(X)
    monkeypatch.setattr(packed_rows, "BLOCK", 15)
    parts = MixtureOfTrees(2, max_iter=4).fit(X, validation=X), ChowLiu().fit(X)
    for one, other in zip(whole[1:], parts[1:], strict=True):
        assert (one.trees_.parents == other.trees_.parents).all()
        np.testing.assert_allclose(one.trees_.probs, other.trees_.probs, rtol=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 10.0, 1000.0])
def test_smoothing_adds_rows_like_the_start(smoothing):
    """Six of ten rows have x1, and so have three tenths of the rows that are added."""
    X = np.array([[1]] * 6 + [[0]] * 4)
    model = CircuitMLE(pgcc.parse("0.3*x1 + 0.7"), "em", smoothing=smoothing, max_iter=3).fit(X)
    assert model.model_.prob({"x1": 1}) == pytest.approx((6 + 0.3 * smoothing) / (10 + smoothing), rel=1e-9)


def test_what_is_validated_is_what_is_kept():
    X = np.array([[1]] * 6 + [[0]] * 4)
    model = CircuitMLE(pgcc.parse("0.3*x1 + 0.7"), "em", smoothing=0.0, max_iter=1).fit(X, validation=X)
    assert model.history_["train"] == pytest.approx(model.history_["validation"], rel=1e-12)
    assert model.score(X) == pytest.approx(0.6 * np.log(0.3) + 0.4 * np.log(0.7), rel=1e-12)


def test_smoothing_of_trees_adds_rows_like_the_data():
    """With many rows added, every component is the one tree of all data."""
    X = np.array([[0, 0], [1, 1]] * 20 + [[0, 1]] * 5)
    model = MixtureOfTrees(2, smoothing=1e9, max_iter=3).fit(X, validation=X)
    expected = ChowLiu(0.0).fit(X).score_samples([[0, 0], [1, 1], [0, 1]])
    np.testing.assert_allclose(model.score_samples([[0, 0], [1, 1], [0, 1]])[:2], expected[:2], atol=0.2)
    assert np.ptp(model.trees_.probs, axis=0).max() < 1e-6


@pytest.mark.parametrize("row", [[-1, 1, 0], [0, -1, 1], [-1, -1, 1], [1, 0, -1]])
def test_rows_with_gaps_by_adding_up(row):
    model = MixtureOfTrees(2, max_iter=3).fit(ROWS[:, :3], validation=[row])
    fills = [full for full in product([0, 1], repeat=3) if all(x in (-1, v) for x, v in zip(row, full, strict=True))]
    gaps = np.log(np.exp(model.score_samples(fills)).sum())
    assert model.history_["validation"][model.best_epoch_] == pytest.approx(gaps, rel=1e-9)

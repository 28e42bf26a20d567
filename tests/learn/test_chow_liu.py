"""ChowLiu: the best of all trees, against all spanning trees of few variables and counts by hand."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from pgcc.errors import CircuitError, PgccError
from pgcc.learn import ChowLiu

N = 5


def some_rows(seed: int) -> np.ndarray:
    """Rows of a random tree."""
    rng = np.random.default_rng(seed)
    X = np.zeros((60, N), np.int64)
    for i in range(N):
        low, high = rng.uniform(0.05, 0.95, 2)
        X[:, i] = rng.random(60) < np.where(X[:, rng.integers(max(i, 1))], high, low)
    return X


def spanning_trees(n: int) -> list[list[tuple[int, int]]]:
    pairs = itertools.combinations(itertools.combinations(range(n), 2), n - 1)
    return [list(e) for e in pairs if nx.is_tree(nx.Graph(list(e))) and len(nx.Graph(list(e))) == n]


def tree_information(X: np.ndarray, smoothing: float, edges: list[tuple[int, int]]) -> float:
    """Σ over the edges of the mutual information of smoothed frequencies."""
    total = 0.0
    for i, j in edges:
        table = np.array([[np.sum((X[:, i] == x) & (X[:, j] == y)) + smoothing for y in (0, 1)] for x in (0, 1)])
        table = table / table.sum()
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        seen = table > 0
        total += float((table[seen] * np.log(table[seen] / independent[seen])).sum())
    return total


@pytest.mark.parametrize("smoothing", [0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_best_tree(seed: int, smoothing: float) -> None:
    X = some_rows(seed)
    model = ChowLiu(smoothing=smoothing).fit(X)
    (parents,), (probs,) = model.trees_.parents, model.trees_.probs
    assert (parents < 0).sum() == 1
    mine = [(i, int(p)) for i, p in enumerate(parents) if p >= 0]
    best = max(tree_information(X, smoothing, edges) for edges in spanning_trees(N))
    assert tree_information(X, smoothing, mine) == pytest.approx(best, abs=1e-9)
    rows = np.array(list(itertools.product((0, 1), repeat=N)))
    given = np.where(parents < 0, 0, rows[:, parents])
    p = probs[np.arange(N), given]
    np.testing.assert_allclose(model.model_.prob(rows), np.where(rows == 1, p, 1 - p).prod(axis=1), rtol=1e-9)


def test_pseudo_counts() -> None:
    trees = ChowLiu(smoothing=0.5).fit([[0, 0], [0, 1], [1, 1], [1, 1], [1, 1]]).trees_
    (parents,), (probs,) = trees.parents, trees.probs
    assert parents.tolist() == [-1, 0]
    assert probs[0, 1] == pytest.approx((3 + 2 * 0.5) / (5 + 4 * 0.5))
    assert probs[1].tolist() == pytest.approx([(1 + 0.5) / (2 + 1), (3 + 0.5) / (3 + 1)])


def test_constant_columns_and_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 1, 1], "b": [0, 1, 0], "c": [1, 1, 1]})
    model = ChowLiu(smoothing=0).fit(frame)
    assert model.circuit_.variables == ("a", "b", "c")
    assert model.model_.prob({"a": 1, "b": 1, "c": 1}) == pytest.approx(1 / 3)


def test_smoothing_beyond_the_range_of_doubles_is_refused() -> None:
    assert ChowLiu(smoothing=1e307).fit([[0, 1], [1, 1]]).trees_.probs.tolist() == [[[0.5, 0.5]] * 2]
    with pytest.raises(CircuitError, match=r"Laplace smoothing by 1e\+308 rows is beyond the range of doubles"):
        ChowLiu(smoothing=1e308).fit([[0, 1], [1, 1]])
    with pytest.raises(PgccError, match="smoothing=-1"):
        ChowLiu(smoothing=-1).fit([[0, 1]])

"""Grid search: the best of several settings, each as if it were fitted alone."""

import numpy as np
import pytest

import pgcc
from pgcc.errors import EvidenceError, PgccError
from pgcc.learn import PGC, ChowLiu, CircuitMLE, GridSearch, MixtureOfTrees, SimplePGC
from pgcc.learn.mixtures import encoding
from pgcc.learn.mixtures.encoding import tabulate


def rows(n, seed):
    x = np.random.default_rng(seed).integers(0, 2, (n, 4))
    x[:, 1] |= x[:, 0]
    return x


def test_grid_search_keeps_the_best():
    X, valid = rows(300, 1), rows(200, 2)
    search = GridSearch(MixtureOfTrees(), {"n_components": [1, 2, 4]}, n_jobs=2).fit(X, validation=valid)
    results = search.cv_results_
    assert results["params"] == [{"n_components": n} for n in (1, 2, 4)]
    assert results["param_n_components"] == [1, 2, 4]
    by_rank = np.argsort(results["rank_test_score"])
    assert results["mean_test_score"][by_rank].tolist() == sorted(results["mean_test_score"], reverse=True)
    assert results["failure"] == [None] * 3
    assert search.best_params_ == results["params"][search.best_index_]
    assert search.best_score_ == max(results["split0_test_score"])
    again = MixtureOfTrees(**{**MixtureOfTrees().get_params(), **search.best_params_}).fit(X, validation=valid)
    assert search.score(valid) == pytest.approx(again.score(valid), abs=1e-12)
    assert search.score(valid) == pytest.approx(search.best_score_, abs=1e-12)
    assert pgcc.compile(search.circuit_).prob({}) == pytest.approx(1.0)


def test_candidates_share_work_and_are_as_if_fitted_alone(monkeypatch):
    """To the last bit, on any number of threads."""
    X, valid, encoded = rows(300, 1), rows(200, 2), []
    grid = {"max_group": [1, 2, 3], "n_components": [1, 2]}
    monkeypatch.setattr(encoding, "tabulate", lambda *a: encoded.append(a) or tabulate(*a))
    one, two = (GridSearch(SimplePGC(max_iter=3), grid, n_jobs=n).fit(X, validation=valid) for n in (1, 2))
    assert len(encoded) == 2 * 2 * 3  # searches, tables, sizes of groups
    for name, column in one.cv_results_.items():
        assert list(column) == list(two.cv_results_[name])
    assert one.circuit_ == two.circuit_
    for i, params in enumerate(one.cv_results_["params"]):
        alone = SimplePGC(**params, max_iter=3).fit(X, validation=valid)
        assert alone.history_["validation"][alone.best_epoch_] == one.cv_results_["mean_test_score"][i]
        if i == one.best_index_:
            assert alone.circuit_ == one.circuit_
            assert (alone.parameters_ == one.best_estimator_.parameters_).all()


def test_columns_of_a_circuit_are_found_by_name():
    pd = pytest.importorskip("pandas")
    X = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 0]])
    circuit = CircuitMLE(pgcc.parse("(0.5*a + 0.5)*(0.5*b + 0.5)*(0.5*c + 0.5)"), smoothing=0)
    named = GridSearch(circuit, {"smoothing": [0.0]}).fit(pd.DataFrame(X, columns=["c", "a", "b"]), validation=X)
    assert named.circuit_.variables == ("c", "a", "b")
    np.testing.assert_allclose(named.model_.marginals(), X.mean(axis=0), atol=1e-9)
    by_place = PGC([circuit, ChowLiu()]).fit(X, validation=X)
    assert by_place.circuit_.variables == ("x1", "x2", "x3")
    with pytest.raises(EvidenceError, match="have the columns"):
        GridSearch(circuit, {"smoothing": [0.0]}).fit(pd.DataFrame(X, columns=["c", "a", "z"]), validation=X)


def test_grid_search_refuses():
    with pytest.raises(PgccError, match="has no parameter 'depth'"):
        GridSearch(ChowLiu(), {"depth": [1]}).fit(rows(20, 0))
    with pytest.raises(PgccError, match="expected a list"):
        GridSearch(ChowLiu(), {"smoothing": 1.0}).fit(rows(20, 0))
    with pytest.raises(PgccError, match="an estimator"):
        GridSearch("trees").fit(rows(20, 0))

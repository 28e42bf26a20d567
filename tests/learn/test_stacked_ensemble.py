"""Candidates of an ensemble share work, and each is as if it were fitted alone."""

import numpy as np
import pytest
from sklearn.base import clone

import pgcc
from pgcc.errors import EvidenceError
from pgcc.learn import ChowLiu, CircuitMLE, SimplePGC, StackedEnsemble
from pgcc.learn.ensembles.stacking import stacking_weights
from pgcc.learn.mixtures import encoding
from pgcc.learn.mixtures.encoding import tabulate


def rows(n, seed):
    x = np.random.default_rng(seed).integers(0, 2, (n, 4))
    x[:, 1] |= x[:, 0]
    return x


def test_candidates_share_work_and_are_as_if_fitted_alone(monkeypatch):
    X, valid, encoded = rows(300, 1), rows(200, 2), []
    candidates = [SimplePGC(max_group, n, "paper", max_iter=2) for max_group in (1, 2, 3) for n in (1, 2)]
    monkeypatch.setattr(encoding, "tabulate", lambda *a: encoded.append(a) or tabulate(*a))
    stack = StackedEnsemble(candidates).fit(X, validation=valid)
    assert len(encoded) == 2 * 3  # tables, sizes of groups
    for candidate, score in zip(candidates, stack.history_["validation"], strict=True):
        assert clone(candidate).fit(X, validation=valid).score(valid) == pytest.approx(score, rel=1e-12)
    for member in stack.members_:
        assert (clone(member).fit(X, validation=valid).parameters_ == member.parameters_).all()


def test_columns_of_a_circuit_are_found_by_name():
    pd = pytest.importorskip("pandas")
    X = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 0]])
    circuit = CircuitMLE(pgcc.parse("(0.5*a + 0.5)*(0.5*b + 0.5)*(0.5*c + 0.5)"), smoothing=0)
    named = StackedEnsemble([circuit]).fit(pd.DataFrame(X, columns=["c", "a", "b"]), validation=X)
    assert named.circuit_.variables == ("c", "a", "b")
    np.testing.assert_allclose(named.model_.marginals(), X.mean(axis=0), atol=1e-9)
    by_place = StackedEnsemble([circuit, ChowLiu()]).fit(X, validation=X)
    assert by_place.circuit_.variables == ("x1", "x2", "x3")
    with pytest.raises(EvidenceError, match="have the columns"):
        StackedEnsemble([circuit]).fit(pd.DataFrame(X, columns=["c", "a", "z"]), validation=X)


@pytest.mark.parametrize("seed", range(5))
def test_weights_have_the_largest_likelihood(seed):
    """Of all weights of two models, on a grid."""
    logs = np.random.default_rng(seed).normal(-5.0, 2.0, (2, 40))
    grid = np.linspace(0.0, 1.0, 2001)[:, None]
    likelihoods = np.log(grid * np.exp(logs[0]) + (1 - grid) * np.exp(logs[1])).mean(axis=1)
    assert stacking_weights(logs)[0] == pytest.approx(grid[likelihoods.argmax(), 0], abs=1e-3)

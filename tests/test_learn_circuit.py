"""CircuitMLE: any circuit from data; its parameters, gradients and optimisers."""

import math

import numpy as np
import pytest

import pgcc
from pgcc.errors import PgccError
from pgcc.learn import CircuitMLE
from pgcc.learn.descent import LBFGS
from pgcc.learn.likelihood import Likelihood
from pgcc.testing import brute_force


def rows(n, columns, seed=0, p=0.4):
    return (np.random.default_rng(seed).random((n, columns)) < p).astype(np.int8)


def circuits():
    rng = np.random.default_rng(3)
    B = rng.standard_normal((4, 4)) / 2
    A = rng.standard_normal((4, 4)) / 4
    names = ["a", "b", "c", "d"]
    leaves = [pgcc.parse("0.5*a*b + 0.25*a + 0.25*b"), pgcc.parse("c"), pgcc.parse("d")]
    return {
        "sums": pgcc.parse("0.3*(0.5*a + 0.5)*(0.25*b + 0.75)*c + 0.7*(0.6*a*b + 0.4)*(0.5*d + 0.5)"),
        "chow-liu": pgcc.builders.chow_liu_from_data(rows(50, 4), names=names),
        "L": pgcc.dpp(L=B @ B.T + np.eye(4) / 9, names=names),
        "nonsymmetric": pgcc.dpp(L=B @ B.T + np.eye(4) / 2 + A - A.T, names=names, symmetric=False),
        "factor": pgcc.dpp(factor=rng.standard_normal((4, 3)) / 2, names=names),
        "mixture": pgcc.mixture([0.4, 0.6], [pgcc.dpp(L=B @ B.T + np.eye(4) * x, names=names) for x in (0.1, 0.5)]),
        "det_pgc": pgcc.det_pgc(np.eye(3) + 0.1, leaves),
    }


@pytest.mark.parametrize("name", circuits())
def test_gradients_by_finite_differences(name):
    circuit = circuits()[name]
    X = rows(30, len(circuit.variables), 1)
    X[0, 0] = -1
    if name == "factor":
        X = X[X.sum(axis=1) <= 3]
    if name == "sums":
        X = X[np.isfinite(pgcc.compile(circuit).logprob(X))]
    likelihood = Likelihood(circuit, X)
    theta = likelihood.parameters.start + 0.05 * np.random.default_rng(0).standard_normal(
        len(likelihood.parameters.start)
    )
    value, gradient = likelihood.mean(theta)
    assert math.isfinite(value)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-5
        slope = (likelihood.mean(theta + step)[0] - likelihood.mean(theta - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", circuits())
def test_what_is_learned_is_a_distribution(name):
    circuit = circuits()[name]
    X = rows(60, len(circuit.variables), 2)
    if name == "factor":
        X = X[X.sum(axis=1) <= 3]
    X = X[np.isfinite(pgcc.compile(circuit).logprob(X))]
    before = float(np.mean(pgcc.compile(circuit).logprob(X)))
    for optimizer in ("auto", "adam"):
        learned = CircuitMLE(circuit, optimizer, epochs=20).fit(X)
        table = brute_force(learned.circuit_)
        total = sum(table.values())
        assert all(p >= -1e-12 * total for p in table.values())
        expected = [math.log(table[frozenset(np.array(circuit.variables)[row == 1].tolist())] / total) for row in X]
        np.testing.assert_allclose(learned.score_samples(X), expected, rtol=1e-9, atol=1e-9)
        assert learned.score(X) > before
        assert learned.history_["train"][learned.best_epoch_] == pytest.approx(learned.score(X), abs=0.05)


def test_em_improves_every_time_and_finds_counts():
    """Of a Bayesian network whose every variable is seen, one step of EM is the counts."""
    X = rows(500, 3, 5)
    X[:, 1] |= X[:, 0]
    circuit = pgcc.builders.chow_liu_from_data(rows(100, 3, 6), names=["a", "b", "c"])
    fitted = CircuitMLE(circuit, "em", smoothing=0, epochs=30).fit(X)
    assert (np.diff(fitted.history_["train"]) >= -1e-12).all()
    assert fitted.history_["train"][1] == pytest.approx(fitted.history_["train"][-1], abs=1e-9)
    mixture = pgcc.mixture(
        [0.5, 0.5],
        [
            pgcc.parse("(0.2*a + 0.8)*(0.3*b + 0.7)*(0.6*c + 0.4)"),
            pgcc.parse("(0.7*a + 0.3)*(0.5*b + 0.5)*(0.1*c + 0.9)"),
        ],
    )
    by_em = CircuitMLE(mixture, "em", smoothing=0, epochs=400, patience=400).fit(X)
    assert (np.diff(by_em.history_["train"]) >= -1e-12).all()
    by_lbfgs = CircuitMLE(mixture, "lbfgs", epochs=200).fit(X)
    assert by_lbfgs.score(X) == pytest.approx(by_em.score(X), abs=2e-3)


def test_missing_values_are_summed_out():
    """With a column that is never seen, the likelihood is that of the others."""
    X = rows(200, 3, 7).astype(float)
    X[:, 2] = np.nan
    circuit = pgcc.parse("(0.2*a + 0.8)*(0.3*b + 0.7)*(0.6*c + 0.4)")
    fitted = CircuitMLE(circuit, smoothing=0).fit(X)
    model = fitted.model_
    np.testing.assert_allclose(model.marginals()[:2], np.nanmean(X[:, :2], axis=0), atol=1e-6)


def test_dpp_reaches_the_likelihood_of_the_dpp_that_made_the_data():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 5)) / 2
    truth = pgcc.compile(pgcc.dpp(L=B @ B.T))
    X = truth.sample(3000, rng=1)
    start = pgcc.dpp(L=np.eye(5) + 0.1 * np.ones((5, 5)))
    fitted = CircuitMLE(start, "lbfgs", epochs=200).fit(X)
    assert fitted.score(X) > float(np.mean(truth.logprob(X))) - 0.01


def test_lbfgs_on_a_quadratic():
    A = np.diag([1.0, 10.0, 100.0])
    ascent = LBFGS(lambda x: (float(-x @ A @ x / 2 + x.sum()), 1 - A @ x), np.zeros(3), 1e-14)
    values = list(iter(ascent.advance, None))
    np.testing.assert_allclose(ascent.theta, [1.0, 0.1, 0.01], atol=1e-6)
    assert 1 < len(values) < 100
    assert values == sorted(values)


def test_same_seed_same_model():
    circuit = circuits()["mixture"]
    X = rows(100, 4, 8)
    first, second = (CircuitMLE(circuit, "adam", epochs=3, seed=5).fit(X).circuit_ for _ in range(2))
    assert first == second


def test_what_is_refused():
    X = rows(10, 2)
    with pytest.raises(PgccError, match="nothing to learn"):
        CircuitMLE(pgcc.parse("a*b")).fit(np.ones((3, 2), int))
    with pytest.raises(PgccError, match="CircuitMLE learns"):
        CircuitMLE("a").fit(X)
    with pytest.raises(PgccError, match="choose one of"):
        CircuitMLE(pgcc.parse("0.5*a*b + 0.5"), "sgd").fit(X)
    with pytest.raises(PgccError, match="EM needs"):
        CircuitMLE(pgcc.dpp(L=np.eye(2)), "em").fit(X)
    for optimizer in ("em", "adam", "lbfgs"):
        with pytest.raises(PgccError, match="probability 0"):
            CircuitMLE(pgcc.parse("0.5*a*b + 0.5"), optimizer).fit([[1, 0]])
    with pytest.raises(PgccError, match="patience"):
        CircuitMLE(pgcc.parse("0.5*a*b + 0.5"), patience=0).fit(X)

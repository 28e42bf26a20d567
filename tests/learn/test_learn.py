"""Estimators: what they learn is a circuit, the same for the same seed, also after a kill; bad data are refused."""

from __future__ import annotations

import os
import pickle
from itertools import product

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import EvidenceError, PgccError
from pgcc.learn import DPP, ChowLiu, CircuitMLE, ContinuousMixture, MixtureOfTrees, SimplePGC, StackedEnsemble
from pgcc.learn.common.estimator import thread_count
from pgcc.learn.trees.tree_mixture import Trees
from pgcc.learn.trees.tree_rows import TreeRows
from pgcc.testing import brute_force

QUICK = {"max_iter": 4}
EVERY_KIND = [
    SimplePGC(max_group=3, n_components=2, **QUICK),
    SimplePGC(max_group=2, n_components=3, recipe="paper", **QUICK),
    DPP(**QUICK),
    ChowLiu(),
    MixtureOfTrees(n_components=3, **QUICK),
    ContinuousMixture(n_components=4, **QUICK),
    StackedEnsemble([ChowLiu(), SimplePGC(2, 2, **QUICK)]),
]
IDS = ["SimplePGC", "paper", "DPP", "ChowLiu", "MixtureOfTrees", "ContinuousMixture", "StackedEnsemble"]


def test_scikit_learn_clones_them():
    base = pytest.importorskip("sklearn.base")
    for model in (
        SimplePGC(2, 3, max_iter=4),
        DPP(random_state=3),
        ChowLiu(),
        MixtureOfTrees(7),
        ContinuousMixture("tree", 8),
        StackedEnsemble(random_state=1),
    ):
        assert repr(base.clone(model)) == repr(model)
        assert base.clone(model) is not model


def clone(estimator):
    """What `sklearn.base.clone` asks of an estimator, which is not needed for these tests."""
    params = estimator.get_params(deep=False)
    new = type(estimator)(**params)
    assert all(new.get_params()[name] is value for name, value in params.items())
    return new


def some_data(rows: int = 150, n: int = 6, seed: int = 0) -> np.ndarray:
    """Pairs that attract each other, within two clusters."""
    rng = np.random.default_rng(seed)
    cluster = rng.random((rows, 1)) < 0.4
    half = rng.random((rows, n // 2)) < np.where(cluster, 0.7, 0.2)
    return np.hstack([half, half ^ (rng.random(half.shape) < 0.1)]).astype(np.int8)


def everything(n: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=n)), np.int8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVERY_KIND, ids=IDS)
def test_what_is_learned_is_a_circuit(kind):
    X = some_data()
    model = clone(kind).fit(X[:100], validation=X[100:])
    assert model.circuit_.variables == tuple(f"x{i}" for i in range(1, 7))
    rows = everything(6)
    by_hand = brute_force(model.circuit_)
    coefficients = np.array([float(by_hand[frozenset(f"x{i + 1}" for i in np.flatnonzero(row))]) for row in rows])
    assert sum(by_hand.values()) == pytest.approx(1, rel=1e-9)
    assert np.exp(model.score_samples(rows)) == pytest.approx(coefficients / coefficients.sum(), rel=1e-9)
    assert model.score(X) == pytest.approx(pgcc.compile(model.circuit_).logprob(X).mean(), rel=1e-12)
    assert model.n_features_in_ == 6


@pytest.mark.parametrize("kind", EVERY_KIND, ids=IDS)
def test_manners(kind):
    X = some_data()
    model, again = clone(kind), clone(kind)
    with pytest.raises(PgccError, match="call fit first"):
        model.score(X)
    assert model.fit(X) is model
    assert (again.fit(X.tolist()).score_samples(X) == model.score_samples(X)).all()
    revived = pickle.loads(pickle.dumps(model))
    assert (revived.score_samples(X) == model.score_samples(X)).all()
    assert type(model).__name__ in repr(model)
    name, value = next(iter(model.get_params().items()))
    assert model.set_params(**{name: value}).get_params() == kind.get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        model.set_params(nonsense=1)


def test_only_what_differs_is_in_the_repr():
    assert repr(SimplePGC(2, random_state=5)) == "SimplePGC(max_group=2, random_state=5)"
    assert (
        repr(pickle.loads(pickle.dumps(SimplePGC(2, random_state=500)))) == "SimplePGC(max_group=2, random_state=500)"
    )
    assert repr(MixtureOfTrees(smoothing=float("10"))) == "MixtureOfTrees()"


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=some(10), deadline=None)
def test_trained_models_are_distributions(seed, n, most, components):
    X = np.random.default_rng(seed).integers(-1, 2, size=(30, n))
    model = SimplePGC(most, components, max_iter=2, random_state=seed).fit(X)
    assert np.exp(model.score_samples(everything(n))).sum() == pytest.approx(1, rel=1e-9)


def test_circuit_has_the_likelihood_that_was_trained():
    X = some_data(300)
    model = SimplePGC(3, 2, max_iter=5).fit(X[:200], validation=X[200:])
    assert model.score(X[200:]) == pytest.approx(max(model.history_["validation"]), rel=1e-12)
    assert model.history_["validation"][model.best_epoch_] == max(model.history_["validation"])


def test_it_learns():
    X = some_data(2000)
    model = SimplePGC(2, 2, max_iter=40).fit(X)
    independent = sum(np.log(np.where(x, x.mean(), 1 - x.mean())).mean() for x in X.T)
    single = ChowLiu().fit(X).score(X)
    assert model.score(X) > single > independent
    assert MixtureOfTrees(2).fit(X).score(X) > single
    assert [len(group) for group in model.partition_] == [2, 2, 2]


def test_dpp_finds_repulsion():
    rng = np.random.default_rng(0)
    one = rng.random(2000) < 0.5
    X = np.stack([one & (rng.random(2000) < 0.6), ~one & (rng.random(2000) < 0.6)], axis=1)
    model = DPP(max_iter=40).fit(X).model_
    assert model.prob([1, 1]) < 0.02
    assert model.marginals() == pytest.approx(X.mean(axis=0), abs=0.03)


def test_samples():
    model = SimplePGC(2, 2, max_iter=20).fit(some_data(2000))
    rows = model.sample(20_000, random_state=0)
    assert rows.shape == (20_000, 6)
    assert rows.mean(axis=0) == pytest.approx(model.model_.marginals(), abs=0.02)


def test_stacking():
    X = some_data(600)
    kinds = [MixtureOfTrees(2, random_state=1), SimplePGC(2, 2, **QUICK), ChowLiu()]
    model = StackedEnsemble(kinds).fit(X[:400], validation=X[400:])
    assert model.weights_.sum() == pytest.approx(1)
    assert all(member is not kind for member in model.members_ for kind in kinds)
    assert model.score(X[400:]) >= max(model.history_["validation"]) - 1e-9
    mixed = np.log(np.exp([member.score_samples(X) for member in model.members_]).T @ model.weights_)
    assert model.score_samples(X) == pytest.approx(mixed, rel=1e-9)
    for wrong in ([], ["ChowLiu"], [ChowLiu], ChowLiu(), iter([ChowLiu()])):
        with pytest.raises(PgccError, match="candidates are a list of estimators"):
            StackedEnsemble(wrong).fit(X)


def test_threads_change_nothing():
    X = some_data(200)
    one, two = (SimplePGC(2, 5, max_iter=3, n_jobs=t).fit(X) for t in (1, 2))
    assert (one.parameters_ == two.parameters_).all()
    a, b = (MixtureOfTrees(5, max_iter=5, n_jobs=t).fit(X) for t in (1, 2))
    assert (a.trees_.probs == b.trees_.probs).all()


def test_seeds_matter():
    X = some_data(200)
    one, two = (SimplePGC(2, 3, max_iter=2, random_state=s).fit(X) for s in (0, 1))
    assert (one.parameters_ != two.parameters_).any()


# -- gaps ---------------------------------------------------------------------------------------------------


def test_gaps_are_summed_out():
    X = some_data(200).astype(float)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    model = SimplePGC(3, 2, max_iter=5).fit(X[:150], validation=X[150:])
    table = dict(zip(map(tuple, everything(6)), np.exp(model.score_samples(everything(6))), strict=True))
    for row, found in zip(X[:20], model.score_samples(X[:20]), strict=True):
        total = sum(
            p for full, p in table.items() if all(np.isnan(x) or x == f for x, f in zip(row, full, strict=True))
        )
        assert found == pytest.approx(np.log(total), rel=1e-9)
    assert model.score(X[150:]) == pytest.approx(max(model.history_["validation"]), rel=1e-12)


def test_gaps_lose_little():
    X = some_data(3000)
    gaps = X.copy()
    gaps[np.random.default_rng(1).random(X.shape) < 0.2] = -1
    model = SimplePGC(2, 2, max_iter=30)
    assert clone(model).fit(gaps[:2000]).score(X[2000:]) > clone(model).fit(X[:2000]).score(X[2000:]) - 0.05


@pytest.mark.parametrize("kind", [ChowLiu(), MixtureOfTrees(2)], ids=["ChowLiu", "MixtureOfTrees"])
def test_trees_from_gaps(kind):
    X = some_data(3000)
    gaps = X.copy()
    gaps[np.random.default_rng(1).random(X.shape) < 0.2] = -1
    assert clone(kind).fit(gaps[:2000]).score(X[2000:]) > clone(kind).fit(X[:2000]).score(X[2000:]) - 0.05


def test_steps_of_trees_never_lose():
    X = some_data(500)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = -1
    train = MixtureOfTrees(3, smoothing=1e-9, max_iter=30, n_iter_no_change=30).fit(X, validation=X).history_["train"]
    assert (np.diff(train) > -1e-6).all()


def as_rows(codes, trees):
    return TreeRows(codes, np.full(len(codes), 2.0), trees.blocks)


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=some(20), deadline=None)
def test_pairs_given_what_is_known(seed, n):
    rng = np.random.default_rng(seed)
    parents = np.array([[-1, *(rng.integers(0, i) for i in range(1, n))]])
    probs = rng.random((1, n, 2))
    probs[0, 0, 1] = probs[0, 0, 0]
    trees = Trees(np.ones(1), parents, probs)
    row = rng.integers(-1, 2, (1, n)).astype(np.int8)
    full = everything(n)
    p = np.exp(as_rows(full, trees).log_likelihoods(trees))
    assert p == pytest.approx(pgcc.compile(trees.circuit([f"x{i}" for i in range(n)])).prob(full), rel=1e-9)
    fits = ((row < 0) | (row == full)).all(axis=1)
    posterior = np.where(fits, p, 0) / p[fits].sum()
    found = as_rows(row, trees).expect(trees)
    assert (found.rows.tolist(), found.log_likelihood) == ([2.0], pytest.approx(2 * np.log(p[fits].sum())))
    assert found.both[0] == pytest.approx(2 * (full.T * posterior) @ full, rel=1e-9, abs=1e-12)


def test_counts_of_pairs_in_batches(monkeypatch):
    """However rows are put together, counts are the same; and every part of the rows is counted."""
    X = some_data(500)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = -1
    trees = MixtureOfTrees(3, max_iter=3).fit(X).trees_
    one, *each = (as_rows(rows, trees).expect(trees, 2) for rows in (X, *X[:, None]))
    monkeypatch.setattr("pgcc.learn.trees.tree_rows._BATCH_SUMS", 100)
    monkeypatch.setattr("pgcc.learn.trees.tree_rows._ROWS", 100)
    for other in (sum(each[1:], each[0]), as_rows(X, trees).expect(trees, 2)):
        np.testing.assert_allclose(other.both, one.both, rtol=1e-12)
        np.testing.assert_allclose(other.rows, one.rows, rtol=1e-12)
        assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)


# -- bad data and bad parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            [[0.5, 1.0]],
            r"column 'x1' of the data has 1 different value, such as 0.5: states are texts or whole numbers",
        ),
        ([[0, 1], [1]], r"the rows of the data have different lengths: 1, 2"),
        ([], r"not of shape \(0,\)"),
        (np.empty((0, 3)), r"not of shape \(0, 3\)"),
        (np.empty((3, 0)), r"0 feature.*shape=\(3, 0\)"),
        ([0, 1, 1], r"not of shape \(3,\)"),
        (np.array([0, 1, 1]), r"not of shape \(3,\)"),
        ("0,1", r"0,1 cannot be read: No such file"),
        (b"0,1", r"not bytes"),
        (7, r"not int"),
        ((row for row in [[0, 1]]), r"not generator"),
        ({"a": [0, 1]}, r"not dict"),
        ([["a", "b"]], r"every column of the data has a single value: there is nothing to learn"),
    ],
)
@pytest.mark.parametrize("kind", [SimplePGC(**QUICK), ChowLiu()], ids=["SimplePGC", "ChowLiu"])
def test_bad_data(kind, X, message):
    with pytest.raises(PgccError, match=message):
        clone(kind).fit(X)


def test_bad_validation_data():
    with pytest.raises(EvidenceError, match="does not fit"):
        SimplePGC(**QUICK).fit(some_data(), validation=[[0, 1]])
    with pytest.raises(EvidenceError, match="the validation data are a table"):
        SimplePGC(**QUICK).fit(some_data(), validation=np.empty((0, 6)))


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((20, 3), int),
        np.ones((20, 3), int),
        np.array([[0, 1, 0], [0, 1, 1]] * 10),  # constant columns
        np.random.default_rng(0).integers(0, 2, (5, 12)),  # more variables than rows
        np.array([[1]]),
        np.array([[1, 0]]),
        np.full((4, 2), -1),
    ],
    ids=["zeros", "ones", "constant", "wide", "one entry", "one row", "nothing known"],
)
@pytest.mark.parametrize("kind", EVERY_KIND, ids=IDS)
def test_odd_data(kind, X):
    model = clone(kind).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.exp(model.score_samples(everything(X.shape[1]))).sum() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_group": 0}, "max_group=0"),
        ({"max_group": 40}, "max_group=40"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 2.5}, "n_components=2.5"),
        ({"recipe": "grandma's"}, "recipe="),
        ({"recipe": []}, "recipe="),
        ({"max_iter": 0}, "max_iter=0"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0"),
        ({"weight_decay": float("nan")}, "weight_decay=nan"),
        ({"random_state": -1}, "random_state=-1"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(PgccError, match=message):
        SimplePGC(**params).fit(some_data())


@pytest.mark.filterwarnings("ignore")
def test_divergence_is_told():
    with pytest.raises(PgccError, match="a lower learning_rate="):
        SimplePGC(2, 2, learning_rate=1e200, max_iter=2).fit(some_data())


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(some_data(), columns=list("abcdef"))
    model = SimplePGC(2, 2, **QUICK).fit(frame)
    assert model.circuit_.variables == tuple("abcdef")
    turned = frame[list("fedcba")]
    assert (model.score_samples(turned) == model.score_samples(frame)).all()
    assert (model.score_samples(frame.to_numpy()) == model.score_samples(frame)).all()
    with pytest.raises(EvidenceError, match="column 'z'"):
        model.score(frame.rename(columns={"a": "z"}))


def test_many_variables_that_are_mostly_in():
    """The total det(I + L) of such a kernel is beyond the range of floats: every variable has odds of a hundred."""
    X = (np.random.default_rng(0).random((60, 180)) < 0.999).astype(np.int8)
    model = DPP("paper", max_iter=1).fit(X, validation=X)
    assert model.history_["validation"][0] == pytest.approx(model.score(X), rel=1e-9)


@pytest.mark.parametrize(
    ("model", "lines"),
    [
        (SimplePGC(2, 2, max_iter=3, n_init=2, verbose=True), 18),
        (MixtureOfTrees(2, max_iter=3, n_iter_no_change=3, verbose=True), 3),
        (CircuitMLE(pgcc.parse("(0.3*a + 0.7)*(0.5*b + 0.5)"), "em", max_iter=4, n_iter_no_change=4, verbose=True), 4),
    ],
    ids=["SimplePGC", "MixtureOfTrees", "CircuitMLE"],
)
def test_what_is_told(model, lines, capsys, monkeypatch):
    """An epoch takes a second here: what is left is a second for each that is left, in all runs."""
    ticks = iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    model.fit(some_data()[:, :2])
    told = capsys.readouterr().err.splitlines()
    assert len(told) == lines
    assert [line.split(", ")[-1] for line in told] == [f"at most {lines - i - 1} s left" for i in range(lines)]
    assert all("train -" in line and "validation -" in line and "best -" in line for line in told)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_threads_are_those_of_the_processors_that_may_be_used():
    """Learning counted all processors, and models those on which the process may run."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert thread_count(-1) == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (ChowLiu(), 2 * 5 - 1),
        (MixtureOfTrees(3, max_iter=3), 3 * (2 * 5 - 1) + 2),
        (StackedEnsemble([ChowLiu()]), 2 * 5 - 1),
    ],
)
def test_information_criteria_count_free_parameters(model, count):
    X = np.random.default_rng(0).integers(0, 2, (200, 5))
    log_likelihood = model.fit(X).score_samples(X).sum()
    assert model.bic(X) == pytest.approx(count * np.log(200) - 2 * log_likelihood)
    assert model.aic(X) == pytest.approx(2 * count - 2 * log_likelihood)

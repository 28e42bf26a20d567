"""Strudel: deterministic circuits that grow by splits, compared with counts and with all assignments."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import DATA

import pgcc
from pgcc.errors import FormatError, PgccError
from pgcc.learn import ChowLiu, Strudel, load, save
from pgcc.learn.common import training
from pgcc.learn.strudel.decisions import Decisions
from pgcc.learn.strudel.growth import CompleteRows, Growth
from pgcc.learn.tables.read_rows import read_rows

RNG = np.random.default_rng(0)


def some_rows(n, variables, seed=0):
    """Rows of a chain with an exclusive or, which no tree can express."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, variables))
    x[:, 1] |= x[:, 0]
    x[:, 2] = x[:, 0] ^ x[:, 1] ^ (rng.random(n) < 0.1)
    return x


def assignments(n):
    return np.array(list(product((0, 1), repeat=n)))


@st.composite
def trees(draw):
    n = draw(st.integers(1, 6))
    parents = [-1, *(draw(st.integers(0, v - 1)) for v in range(1, n))]
    return parents, [draw(st.integers(2, 3)) for _ in range(n)]


def leads(decisions, row):
    """The elements that a row takes from the root down; an error if there is not exactly one of each node."""
    taken, nodes = {}, [decisions.root]
    for n in nodes:
        (e,) = (e for e in decisions.elements[n] if agrees(decisions, e, row))
        taken[decisions.literal[e][0]] = e
        nodes += decisions.factors[e]
    return taken


def agrees(decisions, e, row):
    v, state = decisions.literal[e]
    return row[v] == state and all(
        any(agrees(decisions, below, row) for below in decisions.elements[n]) for n in decisions.factors[e]
    )


@given(trees(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_every_row_takes_one_way_and_splits_say_which(tree, random):
    decisions = Decisions(*tree)
    rows = list(product(*map(range, decisions.states)))
    taken = {row: leads(decisions, row) for row in rows}
    for _ in range(4):
        choices = [
            (e, y)
            for e, node in enumerate(decisions.node)
            for y in decisions.below[decisions.literal[e][0]]
            if node >= 0 and len({row[y] for row in rows if e in taken[row].values()}) > 1
        ]
        if not choices:
            break
        element, variable = random.choice(choices)
        found = decisions.split(element, variable)
        for row in rows:
            if element in taken[row].values():
                copies = found[row[variable]]
                assert taken[row] | {v: copies[e] for v, e in taken[row].items() if e in copies} == leads(
                    decisions, row
                )
            taken[row] = leads(decisions, row)
    again = Decisions(*tree, decisions.splits)
    assert (again.node, again.literal, again.factors) == (decisions.node, decisions.literal, decisions.factors)


@pytest.mark.parametrize("components", [1, 3])
def test_the_learned_circuit_is_a_distribution(components):
    X = some_rows(300, 5)
    model = Strudel(components, max_iter=12, n_splits=2).fit(X)
    probs = model.model_.prob(assignments(5))
    assert probs.sum() == pytest.approx(1, rel=1e-12)
    assert (probs > 0).all()
    assert pgcc.check(model.circuit_).ok
    structure = pgcc.pc.structure(model.circuit_)
    assert structure.smooth
    assert structure.structured_decomposable
    assert structure.deterministic == (components == 1)
    assert model.n_components_ == components
    valid = Strudel(components, max_iter=12, n_splits=2).fit(X, validation=X[:50])
    assert valid.score(X[:50]) == pytest.approx(max(valid.history_["validation"]), rel=1e-9)
    assert valid.score(X) == pytest.approx(valid.history_["train"][valid.best_epoch_], rel=1e-9)


def test_without_smoothing_and_with_all_splits_it_is_the_data():
    """Every parameter is a frequency; when nothing is left to split, so is every row."""
    X = some_rows(60, 4)
    model = Strudel(1, smoothing=0, n_iter_no_change=500).fit(X, validation=X)
    rows, counts = np.unique(X, axis=0, return_counts=True)
    np.testing.assert_allclose(model.model_.prob(rows), counts / len(X), rtol=1e-9)
    others = [row for row in assignments(4) if row.tolist() not in rows.tolist()]
    np.testing.assert_array_equal(model.model_.prob(np.array(others)), 0)


def test_the_first_circuit_is_the_tree():
    """With one row of smoothing spread over the terms of every sum, as in the paper."""
    X = some_rows(200, 5)
    tree = ChowLiu(smoothing=0).fit(X)
    first = Strudel(1, smoothing=0, max_iter=1).fit(X, validation=X)
    assert first.score(X) == pytest.approx(tree.score(X), rel=1e-9)
    one = Strudel(1, smoothing=1.0).fit([[1], [1], [0]], validation=[[1]])
    np.testing.assert_allclose(one.model_.marginals(), [2.5 / 4])


@given(st.integers(0, 10**6), st.integers(1, 3))
@settings(max_examples=10, deadline=None)
def test_growth_never_lowers_the_likelihood(seed, components):
    X = np.random.default_rng(seed).integers(0, 2, (50, 5))
    rows = CompleteRows.of(read_rows(X), read_rows(X), 0)
    growth = Growth(components, 0.0, 1, seed, None, rows)
    logs = []
    while len(logs) < 30 and (log := growth.advance()) is not None:
        logs.append(log)
    assert (np.diff(logs) > -1e-12).all()


def test_modes_are_exact():
    """Also where there are too many assignments to try them all."""
    X = some_rows(400, 6)
    model = Strudel(1, n_splits=3).fit(X).model_
    everything = assignments(6)
    probs = model.prob(everything)
    mode = model.mode()
    assert mode.exact
    assert mode.logprob == pytest.approx(np.log(probs.max()), rel=1e-9)
    given = everything[:, 2] == 1
    assert model.mode({"x3": 1}).logprob == pytest.approx(np.log(probs[given].max()), rel=1e-9)
    wide = np.hstack([some_rows(400, 20, seed) for seed in range(2)])
    assert Strudel(1, max_iter=10).fit(wide).model_.mode().exact


def test_it_expresses_what_a_tree_cannot():
    X = RNG.integers(0, 2, (500, 3))
    X[:, 2] = X[:, 0] ^ X[:, 1]
    model = Strudel(1).fit(X)
    assert ChowLiu().fit(X).score(X) < -2.0
    assert model.score(X) > -1.45


def test_the_number_of_components_is_chosen_on_validation_data():
    clusters = (RNG.random((400, 8)) < np.repeat([[0.9], [0.1]], 200, axis=0)).astype(int)
    model = Strudel((1, 2), max_iter=1).fit(clusters, validation=clusters)
    scores = [Strudel(k, max_iter=1).fit(clusters, validation=clusters).score(clusters) for k in (1, 2)]
    assert model.n_components_ == 1 + int(np.argmax(scores))
    assert model.score(clusters) == pytest.approx(max(scores), rel=1e-12)
    few = Strudel((1, 20)).fit([[0, 1], [1, 0]] * 10)  # no more clusters than there are different rows
    assert few.n_components_ in (1, 2)


def test_variables_with_states():
    rows = [("sun", "dry", 0)] * 40 + [("rain", "wet", 1)] * 30 + [("snow", "wet", 0)] * 20 + [("snow", "dry", 1)] * 10
    model = Strudel(1, smoothing=0, n_iter_no_change=100).fit(rows, validation=rows)
    asked = model.model_
    assert asked.prob({"x1": "snow", "x2": "wet", "x3": 0}) == pytest.approx(0.2, rel=1e-9)
    assert asked.prob({"x1": "sun", "x2": "wet"}) == 0
    smoothed = Strudel(1).fit(rows)
    assert sum(smoothed.model_.marginals()) > 0
    assert pgcc.check(smoothed.circuit_).ok
    assert smoothed.model_.mode().exact


def test_gaps_are_filled_from_a_tree():
    X = some_rows(400, 4)
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.1, -1, X)
    model, whole = Strudel(1).fit(gaps), Strudel(1).fit(X)
    assert abs(model.score(X) - whole.score(X)) < 0.1
    assert (model.score_samples(gaps) == Strudel(1).fit(gaps).score_samples(gaps)).all()
    labels = [["sun", "dry"], ["rain", "wet"], [None, "wet"], ["sun", None]] * 20
    assert Strudel(1).fit(labels).model_.prob({"x1": "sun", "x2": "dry"}) > 0.3


@pytest.mark.parametrize("components", [1, 2])
def test_weights_of_rows_are_how_often_they_occur(components):
    X, valid = some_rows(120, 5), some_rows(60, 5, seed=1)
    often = np.random.default_rng(2).integers(0, 4, len(X))
    model = Strudel(components, max_iter=8, n_splits=3)
    weighted = model.fit(X, sample_weight=often, validation=valid).model_.prob(assignments(5))
    repeated = model.fit(np.repeat(X, often, axis=0), validation=valid).model_.prob(assignments(5))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)
    gaps = np.where(np.random.default_rng(3).random(X.shape) < 0.1, -1, X)
    shares = np.random.default_rng(4).random(len(X))
    assert Strudel(components, n_iter_no_change=50).fit(gaps, sample_weight=shares).score(X) < 0


def test_many_rows_are_drawn(monkeypatch):
    monkeypatch.setattr("pgcc.learn.strudel.growth.FEW", 200)
    X = some_rows(500, 10)
    rows = CompleteRows.of(read_rows(X), read_rows(X[:15]), 3)
    assert (rows.training, len(rows.codes)) == (20, 35)


@pytest.mark.parametrize("components", [1, 2])
def test_an_interrupted_run_ends_with_the_same_bits(components, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    X, path = some_rows(300, 6), tmp_path / "run.npz"
    model = Strudel(components, max_iter=14, n_splits=2, n_iter_no_change=14)
    whole, epochs = model.fit(X).model_.logprob(assignments(6)), 0
    record = training.Run.record

    def killed(self, *numbers):
        nonlocal epochs
        epochs += 1
        if epochs == 8:
            raise Killed
        record(self, *numbers)

    with monkeypatch.context() as patch:
        patch.setattr(training.Run, "record", killed)
        with pytest.raises(Killed):
            model.fit(X, checkpoint=path)
    assert (model.fit(X, checkpoint=path).model_.logprob(assignments(6)) == whole).all()
    with pytest.raises(FormatError, match="other data or parameters"):
        Strudel(components, n_splits=3).fit(X, checkpoint=path)


def test_it_is_saved(tmp_path):
    X = some_rows(100, 4)
    model = Strudel((1, 2), max_iter=3).fit(X)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.get_params() == model.get_params()
    assert again.n_components_ == model.n_components_
    assert again.score(X) == model.score(X)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_components": 0}, "n_components=0: expected a whole number"),
        ({"n_components": ()}, "n_components is empty"),
        ({"n_components": (1, 2.5)}, "n_components=2.5: expected a whole number"),
        ({"n_splits": 0}, "n_splits=0"),
        ({"smoothing": -1}, "smoothing=-1: expected a finite number ≥ 0"),
    ],
)
def test_parameters_that_mean_nothing(parameters, said):
    with pytest.raises(PgccError, match=said):
        Strudel(**parameters).fit([[0, 1], [1, 0]])


def test_validation_data_that_are_impossible():
    with pytest.raises(PgccError, match="no circuit gives all validation data a positive probability"):
        Strudel(1, smoothing=0).fit([[1, 1], [0, 0]] * 10, validation=[[0, 1]])


@pytest.mark.parametrize("splits", [[(0, 1)], [(99, 1)], [(-1, 0)], [(8, 2), (8, 2)], [(8, 7)]])
def test_splits_of_no_circuit(splits):
    with pytest.raises(FormatError, match="there is no element"):
        Decisions([-1, 0, 1], [2, 2, 2], splits)


def test_parameters_of_no_circuit():
    for parents in ([1, 0], [-1, -1], [-2, 0], [-1, 2], [-1, 1]):
        with pytest.raises(FormatError, match="its own ancestor"):
            Decisions(parents, [2, 2])
    chain = Decisions([-1, 0], [2, 2])
    for theta in (
        np.full((5, 1), 0.5),
        np.full((6, 1), 0.4),
        np.full((6, 1), np.nan),
        np.tile([[1.5], [-0.5]], (3, 1)),
    ):
        with pytest.raises(FormatError, match="no parameters"):
            chain.circuit(theta, np.ones(1), ["a", "b"])


@pytest.mark.parametrize(
    ("name", "published"),
    [pytest.param("nltcs", -6.07, marks=pytest.mark.slow), ("amzn_gifts", -3.39), ("amzn_moms", -3.52)],
)
def test_the_published_likelihoods(name, published):
    """Within 1 % of the column Strudel of the paper, with the defaults."""
    if not (folder := DATA / "sets" / name).is_dir():
        pytest.skip(f"there is no {folder}")
    train, valid, test = (
        np.loadtxt(folder / f"{name}.{part}.data", np.int8, delimiter=",") for part in ("train", "valid", "test")
    )
    assert Strudel().fit(train, validation=valid).score(test) > 1.01 * published

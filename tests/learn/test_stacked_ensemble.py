"""Candidates of an ensemble share work, and each is as if it were fitted alone."""

import math
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import pgcc
from pgcc.cluster import HERE
from pgcc.errors import EvidenceError, PgccError
from pgcc.evaluate.parallel import for_chunks
from pgcc.interrupts import StoppableThread, Stopped, end_if_unwanted
from pgcc.learn import (
    DPP,
    ChowLiu,
    CircuitMLE,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
    Strudel,
)
from pgcc.learn.common.training import Run
from pgcc.learn.ensembles import race
from pgcc.learn.ensembles.entrants import Clock, enter
from pgcc.learn.ensembles.race import Leg, Threads, _shares
from pgcc.learn.ensembles.stacking import additions, potentials, stacked_score, stacking_weights
from pgcc.learn.mixtures import encoding
from pgcc.learn.mixtures.encoding import tabulate
from pgcc.learn.tables.packed_rows import batches


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


@pytest.mark.parametrize(
    "candidate",
    [
        ContinuousMixture("tree", 4, 2, max_iter=2),
        EinsumNetwork(2, 1, 2, max_iter=2),
        EinsumNetwork(2, 1, 2, max_iter=2, random_state=3),
        HiddenTree(2, max_iter=2),
        HiddenTree(8, "tied", max_iter=2),
        Strudel(1, max_iter=2),
    ],
    ids=repr,
)
def test_every_learner_is_a_candidate_that_is_as_if_fitted_alone(candidate):
    X, valid = rows(120, 1), rows(60, 2)
    stack = StackedEnsemble([candidate], verbose=False).fit(X, validation=valid)
    assert stack.circuit_ == clone(candidate).fit(X, validation=valid).circuit_


def test_a_candidate_without_a_seed_is_built_as_it_was_planned():
    """The structure of an einsum network is drawn once, by the plan."""
    stack = StackedEnsemble([EinsumNetwork(2, 1, 2, max_iter=2, random_state=None)], verbose=False)
    stack.fit(rows(120, 1), validation=rows(60, 2))
    assert stack.score(rows(60, 2)) == pytest.approx(stack.history_["validation"][0], abs=1e-4)


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


# -- the race ---------------------------------------------------------------------------------------------------


def many(n=8, count=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (count, n))
    X[:, 1::2] |= X[:, ::2] & (rng.random((count, n // 2)) < 0.9)
    return X


def field():
    return [
        MixtureOfTrees(3, max_iter=12),
        SimplePGC(1, 1, max_iter=8),
        SimplePGC(2, 3, max_iter=8, random_state=1),
        ContinuousMixture(n_components=16, max_iter=8),
        ChowLiu(),
    ]


def test_any_number_of_threads_gives_the_same_model():
    models = [StackedEnsemble(field(), n_jobs=n_jobs).fit(many()) for n_jobs in (1, 3)]
    assert models[0].circuit_ == models[1].circuit_
    assert models[0].history_["epochs"] == models[1].history_["epochs"]


def test_the_hopeless_do_not_go_on():
    """A DPP beside trees, on data that are a tree: it is out after the second rung."""
    X = np.repeat(np.random.default_rng(0).integers(0, 2, (500, 3)), 2, axis=1)
    model = StackedEnsemble([MixtureOfTrees(2, max_iter=30), DPP("paper", max_iter=50)]).fit(X)
    assert model.history_["weight"][1] == 0.0
    assert model.history_["epochs"][1] < 15
    assert model.history_["failure"] == [None, None]


def test_hidden_trees_of_other_parameters_are_another_kind():
    """A first one that was no good kept all others of its class out, though these are learned in another way."""
    data = StackedEnsemble()._read(many(), None, 0)
    tied, em, larger = enter([HiddenTree(2, "tied"), HiddenTree(2), HiddenTree(3, random_state=1)], data, None)
    assert tied.kind != em.kind == larger.kind


def test_parts_that_differ_are_kept_though_they_are_worse():
    """The worse of two models is kept where it says what the other does not: what it adds counts, not its score."""
    logs = np.log([[0.9, 0.9, 0.9, 0.9, 1e-3], [0.5, 0.5, 0.5, 0.5, 0.5], [0.4, 0.4, 0.4, 0.4, 1e-3]])
    counts = np.ones(5)
    worth = potentials(logs, counts, np.zeros(3))
    assert worth == pytest.approx(0, abs=1e-3)
    assert additions(logs, counts)[1] > 0.5 > additions(logs, counts)[2]
    assert potentials(logs, counts, np.full(3, 0.1))[2] == pytest.approx(0, abs=1e-3)
    assert potentials(logs, counts, np.full(3, 0.1))[1] > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_counted_rows_are_rows_that_occur_so_often(seed):
    rng = np.random.default_rng(seed)
    logs, counts = rng.normal(-5, 2, (3, 20)), rng.integers(1, 4, 20)
    repeated = np.repeat(logs, counts, axis=1)
    weights = stacking_weights(logs, counts.astype(float))
    assert weights == pytest.approx(stacking_weights(repeated), abs=1e-6)
    assert stacked_score(weights, logs, counts) == pytest.approx(np.log(weights @ np.exp(repeated)).mean(), rel=1e-12)


def test_a_stack_of_stacks_is_a_stack_of_all():
    inner = StackedEnsemble([ChowLiu(), MixtureOfTrees(2, max_iter=3)])
    nested = StackedEnsemble([inner, SimplePGC(1, 2, "paper", max_iter=3)]).fit(many())
    flat = StackedEnsemble([*inner.candidates, SimplePGC(1, 2, "paper", max_iter=3)]).fit(many())
    assert nested.circuit_ == flat.circuit_


def test_the_mixture_has_the_weights():
    X = many()
    model = StackedEnsemble(field()).fit(X, validation=many(seed=1))
    assert model.weights_.sum() == pytest.approx(1)
    logs = np.array([one.score_samples(X) for one in model.members_])
    mixed = np.log(model.weights_ @ np.exp(logs))
    np.testing.assert_allclose(model.model_.logprob(X), mixed, rtol=1e-9)
    assert model.model_.prob({}) == pytest.approx(1, rel=1e-12)
    assert model.validation_score_ == pytest.approx(model.score(many(seed=1)), abs=0.1)


def test_one_column_given_the_others():
    rng = np.random.default_rng(5)
    rows = [{"a": str(a), "b": int(b), "c": ["no", "yes"][c]} for a, b, c in rng.integers(0, [3, 2, 2], (60, 3))]
    stack = StackedEnsemble([ChowLiu(), SimplePGC(2, 2, max_iter=3), MixtureOfTrees(2, max_iter=3)]).fit(rows)
    asked = [{"a": "1", "b": 1}, {"a": "2"}, {"b": 0, "c": "yes"}]
    for name, states in stack.model_.states.items():
        others = [{other: state for other, state in row.items() if other != name} for row in asked]
        given = [[stack.model_.conditional({name: state}, row) for state in states] for row in others]
        np.testing.assert_allclose(stack.conditional_proba(asked, name), given, rtol=2e-9)
    either = StackedEnsemble([CircuitMLE(pgcc.parse("0.5*x1*x2 + 0.5*x3"))]).fit([[1, 1, 0], [0, 0, 1]] * 5)
    assert either.conditional_proba([[0, 1, 0]], "x1").tolist() == [[0, 1]]
    with pytest.raises(PgccError, match="probability 0"):
        either.conditional_proba([[1, 0, 0]], "x3")


def test_a_circuit_whose_total_is_not_1():
    """`CircuitMLE` keeps the total of the circuit; the weights of the mixture are those of distributions."""
    X = many(2)
    twice = pgcc.parse("(1*x1 + 1)*(0.5*x2 + 0.5)")
    model = StackedEnsemble([CircuitMLE(twice, "em", max_iter=5), ChowLiu(30.0)]).fit(X)
    logs = np.array([one.score_samples(X) for one in model.members_])
    np.testing.assert_allclose(model.model_.logprob(X), np.log(model.weights_ @ np.exp(logs)), rtol=1e-9)


def test_a_summary():
    model = StackedEnsemble([ChowLiu(), ChowLiu(-1.0), MixtureOfTrees(2, max_iter=2)])
    with pytest.raises(PgccError, match="call fit first"):
        model.summary()
    with pytest.warns(UserWarning, match="left out"):
        lines = model.fit(many()).summary().splitlines()
    assert lines[0].split() == ["weight", "validation", "adds", "epochs", "seconds", "candidate"]
    assert "failed: PgccError: smoothing=-1.0" in lines[3]
    assert lines[-1].endswith(f"validation {model.validation_score_:.4f}")


# -- a budget, and interrupts -----------------------------------------------------------------------------------


def test_a_budget_gives_a_model():
    X = many()
    model = StackedEnsemble(field(), budget=1.0, n_jobs=2).fit(X)
    assert model.score(X) < 0
    assert sum(model.history_["epochs"]) > 0
    assert max(model.history_["weight"]) > 0


def test_a_budget_that_is_too_small_says_so():
    with pytest.raises(PgccError, match="larger budget="):
        StackedEnsemble(field(), budget=1e-9).fit(many())
    for bad in (0, -1.0, math.nan, "60"):
        with pytest.raises(PgccError, match="budget="):
            StackedEnsemble(field(), budget=bad).fit(many())
    with pytest.raises(PgccError, match="on a cluster"):
        StackedEnsemble(field(), budget=1.0).fit(many(), cluster="tcp://127.0.0.1:1")


def test_seconds_go_where_a_doubling_is_worth_most():
    one, two, done = (
        SimpleNamespace(seconds=s, plan=SimpleNamespace(epochs=100), run=SimpleNamespace(epochs=e), epoch_seconds=1.0)
        for s, e in ((1.0, 0), (1.0, 0), (50.0, 98))
    )
    shares, need = _shares([one, two, done], np.array([0.3, 0.1, 0.1]), 38.0, 100.0)
    assert shares == pytest.approx([29.0, 9.0, 0.0], abs=1e-6)
    assert need.tolist() == [100.0, 100.0, 2.0]
    shares, _ = _shares([one, two, done], np.array([0.3, 0.1, 0.0]), 1000.0, 60.0)
    assert shares == pytest.approx([60.0, 60.0, 0.0])


@pytest.mark.parametrize(
    "work",
    [
        lambda step: [step() for _ in batches(10**6, 1, np.random.default_rng(0))],
        lambda step: for_chunks(10**5, 1, 1, lambda part: step(), most_rows=1),
        lambda step: for_chunks(10**5, 1, 2, lambda part: step(), most_rows=1),
        lambda step: HERE.total(lambda part: step(), range(10**6)),
    ],
)
def test_long_work_ends_soon_in_a_thread_that_is_not_wanted(work):
    began, ended = threading.Event(), []

    def step():
        began.set()
        time.sleep(1e-3)
        return 0

    def run():
        try:
            work(step)
        except Stopped:
            ended.append(True)

    thread = StoppableThread(target=run, daemon=True)
    thread.start()
    assert began.wait(10)
    thread.is_wanted = False
    thread.join(10)
    assert ended == [True]
    end_if_unwanted()  # this thread is


def test_a_run_that_is_stopped_keeps_what_it_had_found():
    data = StackedEnsemble()._read(many(count=4000), None, 0)
    (entrant,) = enter([SimplePGC(2, 2, "paper", max_iter=10**6, batch_size=8)], data, None)
    threads = Threads(1, Clock())
    threads.go(iter([Leg(entrant, 1), None]).__next__, lambda: None)
    found = entrant.found
    threads._start(Leg(entrant, 10**6))
    (thread, _), *_ = threads.running.values()
    threads.stop([entrant])
    thread.join(10)
    assert not thread.is_alive()
    assert not threads.running
    assert entrant.failure is None
    assert found is not None
    assert math.isfinite(entrant.score)


def interrupt_after(monkeypatch, epochs):
    """The process is interrupted as by Ctrl-C when so many epochs are done."""
    seen, record = [], Run.record

    def counted(self, *args):
        record(self, *args)
        seen.append(1)
        if len(seen) == epochs:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Run, "record", counted)


@pytest.mark.parametrize("budget", [None, 60.0])
@pytest.mark.parametrize("after", [3, 10, 25])
def test_interrupted_a_stack_has_a_model(monkeypatch, budget, after):
    X = many()
    interrupt_after(monkeypatch, after)
    with pytest.warns(UserWarning, match="fit was interrupted after"):
        model = StackedEnsemble(field(), budget).fit(X)
    assert model.score(X) < 0
    assert sum(model.history_["epochs"]) < 60
    assert model.model_.prob({}) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MixtureOfTrees(3, max_iter=50, n_iter_no_change=50),
        lambda: SimplePGC(2, 2, max_iter=30),
        lambda: CircuitMLE(pgcc.parse("0.5*(0.4*x1 + 0.6)*(0.5*x2 + 0.5) + 0.5*(0.5*x1 + 0.5)*(0.3*x2 + 0.7)"), "adam"),
    ],
)
def test_interrupted_a_fit_keeps_the_best_so_far(monkeypatch, make):
    X = many(2) if isinstance(make(), CircuitMLE) else many()
    interrupt_after(monkeypatch, 3)
    with pytest.warns(UserWarning, match="fit was interrupted after 3 epochs"):
        model = make().fit(X, validation=X)
    assert len(model.history_["validation"]) == 3
    if isinstance(model, MixtureOfTrees):
        assert model.score(X) == pytest.approx(model.history_["validation"][model.best_epoch_], rel=1e-9)


def test_interrupted_before_the_first_epoch_there_is_none(monkeypatch):
    monkeypatch.setattr(Run, "record", lambda self, *args: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        MixtureOfTrees(2).fit(many())
    monkeypatch.setattr("pgcc.learn.ensembles.stacked_ensemble.enter", lambda *args: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        StackedEnsemble(field()).fit(many())


def test_an_interrupt_at_the_end_does_not_lose_the_model(monkeypatch):
    finish, calls = ChowLiu._finish, []

    def interrupted(self, runs, data):
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        finish(self, runs, data)

    monkeypatch.setattr(ChowLiu, "_finish", interrupted)
    with pytest.warns(UserWarning, match="about to end"):
        model = ChowLiu().fit(many())
    assert model.score(many()) < 0


def test_a_race_goes_on_where_it_was_killed(tmp_path, monkeypatch):
    """After every rung, with the same decisions."""

    class Killed(BaseException):
        pass

    X, whole = many(), StackedEnsemble(field()).fit(many())
    worth, rungs = race.worth, []

    def die(*args):
        rungs.append(1)
        if len(rungs) == 3:
            raise Killed
        return worth(*args)

    with monkeypatch.context() as patch:
        patch.setattr(race, "worth", die)
        with pytest.raises(Killed):
            StackedEnsemble(field()).fit(X, checkpoint=tmp_path / "race")
    assert StackedEnsemble(field(), n_jobs=2).fit(X, checkpoint=tmp_path / "race").circuit_ == whole.circuit_

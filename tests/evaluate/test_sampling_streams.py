"""Samples: shapes, seeds, threads and errors; every one is possible."""

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import DATA

import pgcc
from pgcc.errors import PgccError, SemanticsError
from pgcc.evaluate.top_down import TopDown
from pgcc.kernels.random import STATE, start_streams, uniforms
from pgcc.testing import random_circuit, random_evidence

SIGNED = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"
L = [[2, 1, 0], [1, 3, 1], [0, 1, 1]]


CIRCUITS = {
    "monotone": pgcc.parse("0.4*a*b + 0.3*a + 0.3*c"),
    "signed": pgcc.parse(SIGNED),
    "dpp": pgcc.dpp(L=L),
    "tree": pgcc.spanning_tree([(0, 1, 2), (1, 2, 3), (0, 2, 1), (2, 3, 1), (0, 3, 5)]),
}


@pytest.fixture(params=CIRCUITS)
def model(request):
    return pgcc.compile(CIRCUITS[request.param])


@pytest.fixture
def simple():
    return pgcc.compile(CIRCUITS["monotone"])


# -- seeds and threads ---------------------------------------------------------------------------------------


def test_a_sample_depends_on_nothing_but_its_number(model):
    samples = model.sample(10_000, rng=7)
    assert np.array_equal(samples, model.sample(10_000, rng=7))
    assert np.array_equal(samples, model.sample(10_000, rng=7, threads=2))
    assert np.array_equal(samples[:5], model.sample(5, rng=7))
    assert not np.array_equal(samples, model.sample(10_000, rng=8))


def test_rows_of_evidence(model):
    first = model.variables[0]
    rows = [{first: 1}, {}, {first: 0}, {model.variables[1]: 0}] * 20
    samples = model.sample(4, rows, rng=1)
    assert samples.shape == (80, 4, len(model.variables))
    assert (samples[0::4, :, 0] == 1).all()
    assert (samples[2::4, :, 0] == 0).all()
    assert (samples[3::4, :, 1] == 0).all()
    assert np.array_equal(samples, model.sample(4, rows, rng=1, threads=2))
    assert np.array_equal(samples[:7], model.sample(4, rows[:7], rng=1))
    assert np.array_equal(samples[0], model.sample(4, rows[0], rng=1))
    assert len(np.unique(samples[1::4].reshape(80, -1), axis=0)) > 1  # equal rows have samples of their own


def test_generators(simple):
    a, b = np.random.default_rng(3), np.random.default_rng(3)
    first = simple.sample(100, rng=a)
    assert np.array_equal(first, simple.sample(100, rng=b))
    assert not np.array_equal(first, simple.sample(100, rng=a))  # a generator moves on
    assert not np.array_equal(simple.sample(100), simple.sample(100))
    assert np.array_equal(simple.sample(10, rng=np.int64(5)), simple.sample(10, rng=5))


def test_streams_are_uniform_and_distinct():
    states, u = np.empty((100_000, STATE), np.uint64), np.empty(100_000)
    start_streams(np.uint64(1), 0, 0, states)
    assert len(np.unique(states[:, 0])) == 100_000
    drawn = []
    for _ in range(4):
        uniforms(states, u)
        drawn.append(u.copy())
    table = np.array(drawn)
    assert ((table >= 0) & (table < 1)).all()
    counts = np.histogram(table, 100, (0, 1))[0]
    assert abs(((counts - 4000) ** 2 / 4000).sum() - 99) < 5 * np.sqrt(2 * 99)
    along = np.corrcoef(table)[np.triu_indices(4, 1)]  # within a stream
    across = [np.corrcoef(row[:-1], row[1:])[0, 1] for row in table]  # between neighbours
    assert np.abs([*along, *across]).max() < 5 / np.sqrt(100_000)
    other = np.empty_like(states)
    start_streams(np.uint64(1), 1, 0, other)
    assert not np.intersect1d(states[:, 0], other[:, 0]).size


# -- odd cases -----------------------------------------------------------------------------------------------


def test_shapes(simple):
    assert simple.sample(0).shape == (0, 3)
    assert simple.sample(2, np.zeros((0, 3), int)).shape == (0, 2, 3)
    assert pgcc.compile(pgcc.parse("a")).sample(3).tolist() == [[1]] * 3
    assert pgcc.compile(pgcc.parse("1")).sample(3).shape == (3, 0)


def test_given_a_size(simple):
    samples = simple.sample(1000, rng=0, size=1)
    assert (samples.sum(axis=1) == 1).all()
    assert abs(samples[:, 0].mean() - 0.5) < 0.1  # 0.3*a + 0.3*c
    counted = pgcc.compile(CIRCUITS["dpp"]).sample(1000, {"x1": 1}, rng=0, size=(1, 2), over=["x1", "x2", "x3"])
    assert set(counted.sum(axis=1)) == {1, 2}


def test_everything_observed():
    model = pgcc.compile(pgcc.dpp(L=L))
    assert model.sample(2, [1, 0, 1]).tolist() == [[1, 0, 1]] * 2


def test_groups_that_are_all_decided():
    """The determinant has nothing left to choose, its leaves have."""
    leaves = [pgcc.parse("1/2*a*b + 1/4*a + 1/4*b"), pgcc.parse("1/2*c*d + 1/4*c + 1/4*d")]
    samples = pgcc.compile(pgcc.det_pgc([[1, 0.5], [0.5, 1]], leaves)).sample(2000, {"a": 1, "c": 1}, rng=0)
    assert (samples[:, [0, 2]] == 1).all()
    assert np.abs(samples[:, [1, 3]].mean(axis=0) - 2 / 3).max() < 0.06


@pytest.mark.parametrize("n", [-1, 1.5, True, "3"])
def test_a_number_of_samples_is_a_number(simple, n):
    with pytest.raises(PgccError, match=r"n=.*integer, 0 or more"):
        simple.sample(n)


@pytest.mark.parametrize("rng", [-1, 0.5, True, "seed", np.random.RandomState(0)])
def test_what_is_no_seed(simple, rng):
    with pytest.raises(PgccError, match="a numpy Generator"):
        simple.sample(1, rng=rng)


@pytest.mark.parametrize(("kind", "evidence"), [("monotone", {"b": 1, "c": 1}), ("tree", {"0-1": 0, "1-2": 0})])
def test_what_cannot_be(kind, evidence):
    with pytest.raises(SemanticsError, match="probability 0"):
        pgcc.compile(CIRCUITS[kind]).sample(1, evidence)


def test_too_many_samples_to_hold(simple):
    with pytest.raises(PgccError, match="more than 16 GiB: draw fewer at a time"):
        simple.sample(10**11)


@pytest.mark.parametrize("normalize", [True, False])
def test_a_polynomial_that_is_no_distribution(normalize):
    model = pgcc.compile(pgcc.parse("a + b - 1/2*a*b"), normalize=normalize, validate=False)
    with pytest.raises(SemanticsError, match="negative"):
        model.sample(1000, rng=0)


def test_rows_that_doubles_cannot_prepare(monkeypatch):
    """They are drawn one variable after another."""
    model = pgcc.compile(pgcc.dpp(L=L))
    monkeypatch.setattr(TopDown, "prepare", lambda self, codes: None)
    samples = model.sample(20_000, {"x1": 1}, rng=0)
    exact = model.prob([{"x1": 1, "x2": 1}, {"x1": 1, "x3": 1}]) / model.prob({"x1": 1})
    assert np.abs(samples[:, 1:].mean(axis=0) - exact).max() < 5 * 0.5 / np.sqrt(20_000)


@pytest.mark.parametrize("distance", [1e-3, 1e-6])
@pytest.mark.parametrize("kind", ["factor", "L"])
def test_near_duplicates_that_are_both_in(kind, distance):
    """Their determinant is lost to rounding in doubles; what is sampled is right, or comes from certified queries."""
    B = np.random.default_rng(0).standard_normal((6, 6))
    B[1] = B[0] + distance * B[1]
    model = pgcc.compile(pgcc.dpp(factor=B) if kind == "factor" else pgcc.dpp(L=B @ B.T))
    seen = {"x1": 1, "x2": 1}
    exact = model.prob([{**seen, f"x{i}": 1} for i in range(3, 7)]) / model.prob(seen)
    samples = model.sample(4000, seen, rng=0)
    assert np.abs(samples[:, 2:].mean(axis=0) - exact).max() < 5 * 0.5 / np.sqrt(4000)


def test_samplers_say_what_they_are():
    found = {kind: repr(pgcc.compile(circuit)._compiled.sampler) for kind, circuit in CIRCUITS.items()}
    assert found["signed"] == "None"
    assert found["dpp"] == "<TopDown: 8 nodes, determinants by eigenvectors>"
    assert found["tree"].endswith("determinants by random walks>")


# -- laws ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 9), st.booleans())
@settings(max_examples=some(40), deadline=None)
def test_every_sample_is_possible(seed, n, decomposable):
    circuit = random_circuit(seed, n=n, negative=False, decomposable=decomposable)
    model = pgcc.compile(circuit)
    evidence = random_evidence(seed, circuit)
    samples = model.sample(20, evidence, rng=seed)
    assert (model.prob(samples) > 0).all()
    for name, value in evidence.items():
        assert (samples[:, circuit.variables.index(name)] == value).all()


@pytest.mark.skipif(not (DATA / "circuits" / "nltcs.psdd").exists(), reason="no nltcs.psdd")
def test_a_learned_psdd():
    model = pgcc.compile(pgcc.load(DATA / "circuits" / "nltcs.psdd"))
    n = 100_000
    for evidence in ({}, dict.fromkeys(model.variables[:3], 1)):
        samples = model.sample(n, evidence, rng=0).astype(float)
        assert np.isfinite(model.logprob(samples[:1000])).all()
        rows = [{**evidence, a: 1, b: 1} for a in model.variables for b in model.variables]
        pairs = model.prob(rows).reshape(16, 16) / model.prob(evidence)
        found = samples.T @ samples / n
        assert (np.abs(found - pairs) <= 5 * np.sqrt(pairs * (1 - pairs).clip(0) / n) + 1e-12).all()


def test_kernels_come_back_soon_and_the_pieces_do_not_matter(monkeypatch):
    """Only between two calls of a kernel is Ctrl-C heard: a call is short, however large the determinant."""
    B = np.random.default_rng(0).standard_normal((60, 60)) / 4
    model = pgcc.compile(pgcc.dpp(L=B @ B.T))
    whole = model.sample(500, rng=3)
    drawn, draw = [], TopDown.draw

    def noted(self, ready, seed, row, begin, out):
        drawn.append((len(out), ready.size * out.shape[1]))
        draw(self, ready, seed, row, begin, out)
        if sum(count for count, _ in drawn) >= 1000:
            raise KeyboardInterrupt

    monkeypatch.setattr(TopDown, "draw", noted)
    monkeypatch.setattr("pgcc.evaluate.top_down._MOST_WORK", 1 << 23)
    assert (model.sample(500, rng=3) == whole).all()
    assert len(drawn) > 10
    assert all(count == 1 or count * work <= 1 << 23 for count, work in drawn)
    with pytest.raises(KeyboardInterrupt):
        model.sample(100_000, rng=3)
    assert sum(count for count, _ in drawn) < 1100

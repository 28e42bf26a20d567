"""The most probable sets: against all of them, and bounds that hold whatever the time."""

import math
import time
from itertools import product

import networkx as nx
import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import SemanticsError


def kernel(rng, n, rank=None):
    B = rng.standard_normal((n, n if rank is None else rank)) * rng.uniform(0.3, 1.5)
    return B @ B.T


def all_rows(n):
    return np.array(list(product((0, 1), repeat=n)), np.int8)


def best_of(model, evidence=None):
    """The largest log-probability of an assignment that agrees with the evidence, by all of them."""
    rows = all_rows(len(model.variables))
    for name, value in (evidence or {}).items():
        rows = rows[rows[:, model.variables.index(name)] == value]
    return np.sort(model.logprob(rows))[::-1]


def tree_of(rng, n, edges):
    graph = nx.gnm_random_graph(n, edges, seed=int(rng.integers(1 << 30)))
    graph.add_edges_from(nx.path_graph(n).edges)
    return nx.Graph([(a, b, {"weight": float(rng.integers(1, 5))}) for a, b in graph.edges])


FAMILIES = {
    "L": lambda rng: pgcc.dpp(L=kernel(rng, 7)),
    "factor": lambda rng: pgcc.dpp(factor=rng.standard_normal((7, 3))),
    "factor of full rank": lambda rng: pgcc.dpp(factor=rng.standard_normal((6, 8))),
    "K": lambda rng: pgcc.dpp(K=np.linalg.solve(np.eye(6) + (L := kernel(rng, 6)), L), symmetric=False),
    "nonsymmetric": lambda rng: pgcc.dpp(L=kernel(rng, 6) + (A := rng.standard_normal((6, 6))) - A.T, symmetric=False),
    "projection": lambda rng: pgcc.dpp(K=(Q := np.linalg.qr(rng.standard_normal((6, 3)))[0]) @ Q.T, rank=3),
    "k-DPP": lambda rng: pgcc.dpp(L=kernel(rng, 7)).observe(size=3),
    "tree": lambda rng: pgcc.spanning_tree(tree_of(rng, 5, 7)),
    "forest": lambda rng: pgcc.spanning_forest(tree_of(rng, 4, 5), killing=float(rng.uniform(0.3, 2))),
    "arborescence": lambda rng: pgcc.arborescence(
        nx.DiGraph([(a, b, {"weight": float(rng.integers(1, 9))}) for a in range(4) for b in range(1, 4) if a != b]),
        root=0,
    ),
    "mixture": lambda rng: pgcc.mixture(
        [0.3, 0.7], [pgcc.dpp(L=kernel(rng, 6)), pgcc.dpp(L=kernel(rng, 6)).observe(size=2)]
    ),
    "product": lambda rng: (
        pgcc.dpp(L=kernel(rng, 3), names=["a", "b", "c"])
        * pgcc.spanning_tree([("u", "v", 2.0), ("v", "w", 3.0), ("u", "w", 1.0)])
    ),
    "sums": lambda rng: pgcc.parse("(0.3*a + 0.7)*(0.2*b*c + 0.5*b + 0.3) + 0.5*a*c*d"),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(2))
def test_against_all_assignments(family, seed):
    rng = np.random.default_rng(seed)
    model = pgcc.compile(FAMILIES[family](rng))
    picked = rng.choice(model.variables, 2, replace=False).tolist()
    for evidence in ({}, {picked[0]: 1}, {picked[0]: 0, picked[1]: 1}):
        if model.logprob(evidence) == -math.inf:
            with pytest.raises(SemanticsError, match="probability 0"):
                model.mode(evidence)
            continue
        logs = best_of(model, evidence)
        found = model.mode(evidence, time_limit=60)
        assert found.exact
        assert found.logprob == pytest.approx(logs[0], abs=1e-8)
        assert found.bound >= logs[0] - 1e-12
        assert evidence.items() <= found.assignment.items()
        listed = model.top(4, evidence, time_limit=60)
        expected = logs[logs > -math.inf][:4]
        np.testing.assert_allclose([one.logprob for one in listed], expected, atol=1e-8)
        assert [one.rank for one in listed] == list(range(1, len(expected) + 1))


@settings(max_examples=some(15), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(FAMILIES)), st.sampled_from([1e-9, 0.01]))
def test_no_assignment_exceeds_the_bound(seed, family, seconds):
    """Also where there is no time at all."""
    rng = np.random.default_rng(seed)
    model = pgcc.compile(FAMILIES[family](rng))
    found = model.mode(time_limit=seconds)
    logs = best_of(model)
    assert found.bound >= logs[0] - 1e-12
    assert found.logprob <= logs[0] + 1e-9
    assert found.logprob > -math.inf


@pytest.mark.parametrize("size", [0, 2, 6, (1, 3)])
def test_given_a_size(size):
    rng = np.random.default_rng(3)
    model = pgcc.compile(pgcc.dpp(L=kernel(rng, 6)))
    least, most = size if isinstance(size, tuple) else (size, size)
    rows = all_rows(6)
    rows = rows[(rows.sum(axis=1) >= least) & (rows.sum(axis=1) <= most)]
    found = model.mode(size=size)
    assert found.exact
    joint = model.logprob(rows)
    assert model.logprob(found.assignment) == pytest.approx(joint.max(), abs=1e-8)
    assert found.logprob == pytest.approx(joint.max() - np.logaddexp.reduce(joint), abs=1e-8)
    assert len(model.top(3, size=size)) == min(3, len(rows))


def test_size_over_some():
    rng = np.random.default_rng(4)
    model = pgcc.compile(pgcc.dpp(L=kernel(rng, 6)))
    rows = all_rows(6)
    rows = rows[rows[:, :3].sum(axis=1) == 2]
    found = model.mode(size=2, over=["x1", "x2", "x3"])
    assert found.exact
    assert model.logprob(found.assignment) == pytest.approx(model.logprob(rows).max(), abs=1e-8)


def test_trees_of_equal_weight():
    """They were within 22 nats of each other."""
    model = pgcc.compile(pgcc.spanning_tree(nx.complete_graph(7)))
    found = model.mode()
    assert found.exact
    assert found.logprob == pytest.approx(-5 * math.log(7), abs=1e-8)
    assert [one.exact for one in model.top(3)] == [True] * 3
    evidence = dict(zip(model.variables[:2], (0, 1), strict=True))
    assert model.mode(evidence).logprob == pytest.approx(found.logprob, abs=1e-8)


def test_a_large_tree():
    rng = np.random.default_rng(0)
    graph = tree_of(rng, 40, 120)
    model = pgcc.compile(pgcc.spanning_tree(graph))
    found = model.mode()
    heaviest = nx.maximum_spanning_tree(
        nx.Graph([(a, b, {"weight": math.log(d["weight"])}) for a, b, d in graph.edges(data=True)])
    )
    names = {frozenset(edge) for edge in heaviest.edges}
    row = [int(frozenset(map(int, name.split("-"))) in names) for name in model.variables]
    assert found.exact
    assert found.logprob == pytest.approx(float(model.logprob(row)), abs=1e-8)


@pytest.mark.slow
def test_a_k_dpp_of_many_items_returns():
    """It did not, in ten minutes."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((60, 60)) / 8
    model = pgcc.compile(pgcc.dpp(L=B @ B.T).observe(size=8))
    found = model.mode(time_limit=0.5)
    assert found.gap < 10
    assert found.logprob >= model.logprob(model.sample(50, rng=0)).max()
    assert sum(found.assignment.values()) == 8


def test_the_same_answer_again():
    model = pgcc.compile(pgcc.dpp(L=kernel(np.random.default_rng(5), 8)))
    assert model.mode() == model.mode()


def test_a_table_shares_the_time(monkeypatch):
    model = pgcc.compile(FAMILIES["L"](np.random.default_rng(0)))
    asked = []
    monkeypatch.setattr(
        "pgcc.queries.mode._Finder.best", lambda self, codes, log, deadline: asked.append(deadline) or stop()
    )
    now = time.monotonic()
    with pytest.raises(StopAskingError):
        model.mode([{"x1": 1}] * 4, time_limit=100.0)
    assert asked[0] < now + 60.0


class StopAskingError(Exception):
    pass


def stop():
    raise StopAskingError


def test_fewer_assignments_than_asked_for():
    listed = pgcc.compile(pgcc.parse("0.25*a + 0.75*b")).top(5)
    assert [(one.assignment, one.exact) for one in listed] == [({"a": 0, "b": 1}, True), ({"a": 1, "b": 0}, True)]


def test_many_sets_by_parts(monkeypatch):
    """Lawler's parts, where not all sets are looked at."""
    monkeypatch.setattr("pgcc.queries.mode._MOST_LISTED", 1)
    for family in ("L", "tree", "sums", "mixture"):
        model = pgcc.compile(FAMILIES[family](np.random.default_rng(7)))
        listed = model.top(5)
        logs = best_of(model)
        np.testing.assert_allclose([one.logprob for one in listed], logs[logs > -math.inf][:5], atol=1e-8)
        assert all(one.exact for one in listed)
    listed = pgcc.compile(FAMILIES["L"](np.random.default_rng(7))).top(4, time_limit=1e-9)
    assert 1 <= len(listed) <= 4
    assert all(one.bound >= one.logprob for one in listed)


SIGNED = (
    "3/10 + 3/10*"
    + "*".join(f"z{i}" for i in range(8))
    + " + a*(2/5*"
    + "*".join(f"(z{i} + 1)/2" for i in range(8))
    + " + 3/5*(z0 - z1)*(z2 - z3)*(z4 - z5)*(z6 - z7))"
)


@pytest.mark.parametrize("how", [{"validate": False}, {"normalize": False}])
def test_a_mode_says_what_it_takes_for_granted(how):
    """{} of 0.3 was "the most probable", where another set has 0.6: bounds hold for nonnegative coefficients."""
    found = pgcc.compile(pgcc.parse(SIGNED), **how).mode()
    assert not found.exact
    assert found.condition == "no coefficient is negative, which is not proved"
    assert "if no coefficient is negative, which is not proved>" in repr(found)
    assert pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"), **how).mode().exact


def mixture_of_products(seed, parts=40, n=40):
    rng = np.random.default_rng(seed)
    names = pgcc.variables([f"z{i}" for i in range(n)])
    products = [
        pgcc.product([float(x) * z + (1 - float(x)) for x, z in zip(row, names, strict=True)])
        for row in rng.beta(0.5, 0.5, (parts, n))
    ]
    return pgcc.mixture(rng.dirichlet(np.ones(parts)).tolist(), products)


@pytest.mark.parametrize("seed", range(3))
def test_short_lists_are_sorted_and_the_mode_is_their_best(seed, monkeypatch):
    """Parts that were not searched to the end held better sets than those listed before."""
    monkeypatch.setattr("pgcc.queries.mode._MOST_BRANCHED", 1)  # the search ends early, without a proof
    model = pgcc.compile(mixture_of_products(seed))
    listed = model.top(4, time_limit=1)
    logs = [one.logprob for one in listed]
    assert logs == sorted(logs, reverse=True)
    assert [one.rank for one in listed] == [1, 2, 3, 4]
    assert all(one.bound >= one.logprob for one in listed)
    assert all(one.bound >= logs[0] for one in listed[:1])
    assert model.mode(time_limit=3).logprob >= logs[0] - 1e-9

"""BayesianNetworkMLE: counts of complete data, and EM against sums over all rows."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import pgcc
from pgcc.errors import CircuitError, EvidenceError, PgccError
from pgcc.ir.domains import Domains
from pgcc.learn import BayesianNetworkMLE, Imputer, load, save
from pgcc.learn.circuits.network_mle import NetworkEM, TableCounts
from pgcc.learn.tables.read_rows import read_rows

LAWN = pgcc.builders.bayesian_network(
    {
        "weather": {"sun": 0.6, "rain": 0.3, "snow": 0.1},
        "sprinkler": (["weather"], {"sun": 0.4, "rain": 0, "snow": 0}),
        "lawn": (
            ["sprinkler", "weather"],
            {
                (s, w): {"dry": p, "wet": 1 - p, "flooded": 0}
                for (s, w), p in zip(
                    itertools.product((0, 1), ("sun", "rain", "snow")), (0.9, 0.2, 0.3, 0.1, 0.5, 0.5), strict=True
                )
            },
        ),
    }
)


def sampled(rows: int, gaps: float = 0.0, seed: int = 0) -> pd.DataFrame:
    table = pgcc.compile(LAWN).sample(rows, rng=seed, names=True).astype(object)
    return table.mask(np.random.default_rng(seed).random(table.shape) < gaps) if gaps else table


FORMS = {
    "edges": [("weather", "sprinkler"), ("sprinkler", "lawn"), ("weather", "lawn")],
    "dict": {"lawn": ["sprinkler", "weather"], "sprinkler": "weather"},
    "graph": networkx.DiGraph([("sprinkler", "lawn"), ("weather", "sprinkler"), ("weather", "lawn")]),
    "circuit": LAWN,
}


@pytest.mark.parametrize("form", FORMS)
def test_complete_data_are_counted(form: str) -> None:
    data = sampled(300)
    model = BayesianNetworkMLE(FORMS[form], smoothing=0).fit(data)
    assert model.parents_ == {"weather": [], "sprinkler": ["weather"], "lawn": ["sprinkler", "weather"]}
    assert model.n_iter_ == 1
    domains = model.circuit_.domains
    for i, state in enumerate(domains["weather"].states):
        some = data[data["weather"] == state]
        assert model.tables_["weather"][i] == pytest.approx(len(some) / 300)
        assert model.tables_["sprinkler"][i, 1] == pytest.approx((some["sprinkler"] == 1).mean())
        for j, lawn in enumerate(domains["lawn"].states):
            dry = some[some["sprinkler"] == 0]
            assert model.tables_["lawn"][0, i, j] == pytest.approx((dry["lawn"] == lawn).mean())
    rain = list(domains["weather"].states).index("rain")
    assert model.tables_["lawn"][1, rain] == pytest.approx(
        np.full(len(domains["lawn"].states), 1 / len(domains["lawn"].states))
    )
    assert model.score(data) > np.mean(pgcc.compile(LAWN).logprob(data))
    smooth = BayesianNetworkMLE(FORMS[form], smoothing=2).fit(data)
    assert smooth.tables_["sprinkler"][rain] == pytest.approx(
        [((data["weather"] == "rain").sum() + 2) / ((data["weather"] == "rain").sum() + 4),
         2 / ((data["weather"] == "rain").sum() + 4)]
    )  # fmt: skip
    assert model.circuit_.network.is_bayesian
    done = pgcc.compile(model.circuit_.do({"sprinkler": 1})).marginals()["weather"]
    assert done["sun"] == pytest.approx(model.model_.marginals()["weather"]["sun"])


def brute_force_step(tables: list[np.ndarray], scopes: list[tuple[int, ...]], states: np.ndarray, seen: np.ndarray):
    """The log-likelihood of rows of states (−1: missing), and the expected counts of every table."""
    p = np.prod([t[tuple(states[:, v] for v in scope)] for t, scope in zip(tables, scopes, strict=True)], axis=0)
    counts, total = [np.zeros(t.shape) for t in tables], 0.0
    for row in seen:
        possible = np.where(((row < 0) | (row == states)).all(axis=1), p, 0.0)
        total += np.log(possible.sum())
        for count, scope in zip(counts, scopes, strict=True):
            np.add.at(count, tuple(states[:, v] for v in scope), possible / possible.sum())
    return total, counts


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=5), st.integers(0, 10**6), st.sampled_from([0.0, 0.5]))
def test_em_against_sums_over_all_rows(sizes: list[int], seed: int, smoothing: float) -> None:
    """The expected counts are exact, and no step decreases the likelihood of the data (with that of the prior)."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(len(sizes))]
    domains = Domains.of({n: [f"s{s}" for s in range(size)] for n, size in zip(names, sizes, strict=True)})
    scopes = [(*(u for u in range(v) if rng.random() < 0.6), v) for v in range(len(sizes))]
    states = np.array(list(itertools.product(*map(range, sizes))))
    drawn = states[rng.choice(len(states), 30, p=rng.dirichlet(np.full(len(states), 0.3)))]
    seen = np.where((rng.random(drawn.shape) < 0.3) & (np.array(sizes) > 1), -1, drawn)
    frame = pd.DataFrame(
        [[domains[n].states[x] if x >= 0 else None for n, x in zip(names, row, strict=True)] for row in seen],
        columns=names,
    )
    if not domains.columns:
        return
    rows = read_rows(frame, states={name: domain.states for name, domain in domains.items()})
    em = NetworkEM(counts := TableCounts(rows, domains, scopes), smoothing, None)
    values = []
    for _ in range(6):
        theta = em.learned()["theta"]
        tables = counts.shaped(theta)
        total, expected = brute_force_step(tables, scopes, states, seen)
        found, cells = counts.expected(theta)
        assert found == pytest.approx(total, rel=1e-9)
        assert cells == pytest.approx(np.concatenate([count.ravel() for count in expected]), rel=1e-7, abs=1e-9)
        with np.errstate(divide="ignore"):
            values.append(total + (smoothing * np.log(theta).sum() if smoothing else 0.0))
        if em.advance() is None:
            break
    assert (np.diff(values) > -1e-9).all()


def test_gaps_saving_and_gaps_filled(tmp_path) -> None:
    data = sampled(400, gaps=0.2)
    estimator = BayesianNetworkMLE(FORMS["edges"], max_iter=30)
    model = clone(estimator).fit(data, states={"weather": ["sun", "rain", "snow"]})
    assert (np.diff(model.history_["train"]) > -1e-9).all()
    assert model.model_.marginals()["weather"]["sun"] == pytest.approx(0.6, abs=0.1)
    path = tmp_path / "model.npz"
    save(model, path)
    again = load(path)
    assert again.get_params() == model.get_params()
    assert again.circuit_ == model.circuit_
    assert all((again.tables_[name] == table).all() for name, table in model.tables_.items())
    assert again.score(data) == model.score(data)
    run = tmp_path / "run.npz"
    kept = clone(estimator).fit(data, checkpoint=run)
    assert kept.score(data) == clone(estimator).fit(data, checkpoint=run).score(data)
    filled = Imputer(estimator).fit(data).transform(data)
    assert not pd.DataFrame(filled).isna().any().any()
    plain = BayesianNetworkMLE([("a", "b")]).fit(pd.DataFrame({"a": [1, 0, None, 1], "b": [1, 0, 1, None]}))
    assert plain.circuit_.domains is None
    assert plain.circuit_.variables == ("a", "b")


@pytest.mark.parametrize(
    ("network", "error", "message"),
    [
        ([("weather", "lwan")], CircuitError, "'lwan'.*did you mean 'lawn'"),
        ([("weather", "lawn"), ("lawn", "weather")], CircuitError, "no directed cycle"),
        ([("weather", "lawn", "x")], PgccError, "which is no edge: edges are pairs"),
        (["weather"], PgccError, "'weather', which is no edge"),
        ([1], PgccError, "has 1, which is no edge"),
        ({"weather": 5}, PgccError, "the parents of 'weather' are a list of names, not 5"),
        ("weather", PgccError, "network='weather': expected edges"),
        (7, PgccError, "network=7: expected edges"),
        (pgcc.parse("0.5*a + 0.5"), PgccError, "not compiled from a Bayesian network"),
        ({"lawn": ["weather", "weather"]}, CircuitError, "has a variable twice"),
    ],
)
def test_bad_networks(network, error, message) -> None:
    with pytest.raises(error, match=message):
        BayesianNetworkMLE(network).fit(sampled(20))


def test_bad_data() -> None:
    with pytest.raises(EvidenceError, match="'weather' is 'hail'"):
        BayesianNetworkMLE(LAWN).fit(sampled(20).assign(weather="hail"))
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 30, (300, 6)), columns=list("abcdef"))
    with pytest.raises(PgccError, match="more than 1,048,576 cells"):
        BayesianNetworkMLE({"f": list("abcde")}).fit(wide)

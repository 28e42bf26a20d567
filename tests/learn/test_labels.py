"""Tables of labels: the states that are found, and estimators over variables with states, against sums over rows."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import pgcc
from pgcc import cli
from pgcc.errors import EvidenceError, PgccError
from pgcc.ir.domains import Domains, as_columns
from pgcc.learn import (
    ChowLiu,
    CircuitMLE,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    Imputer,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
    load,
    save,
)
from pgcc.learn.mixtures.encoding import encode
from pgcc.learn.mixtures.mixture_likelihood import log_likelihoods
from pgcc.learn.tables.read_rows import MOST_STATES, read_rows
from pgcc.learn.trees.tree_mixture import Trees
from pgcc.learn.trees.tree_rows import TreeRows

ROWS = [
    ["sun", "dry", 3, 1], ["rain", "wet", 1, 0], ["snow", "wet", 2, 0], ["sun", "wet", 3, 1], ["rain", None, 1, None],
    [None, "dry", 2, 1], ["rain", "wet", None, 0],
]  # fmt: skip
NAMES = ["weather", "lawn", "rooms", "late"]
CODES = [
    [0, 0, 1, 0, 0, 0, 1, 1], [1, 0, 0, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0, 1, 1],
    [1, 0, 0, -1, 1, 0, 0, -1], [-1, -1, -1, 0, 0, 1, 0, 1], [1, 0, 0, 1, -1, -1, -1, 0],
]  # fmt: skip
FRAME = pd.DataFrame(ROWS, columns=NAMES)


def all_rows(domains: Domains) -> pd.DataFrame:
    return pd.DataFrame(itertools.product(*(d.states for d in domains.values())), columns=list(domains))


def random_table(seed: int, sizes: list[int], rows: int = 60, gaps: float = 0.0) -> pd.DataFrame:
    """Labels that depend on each other, some of them missing; every state occurs."""
    rng = np.random.default_rng(seed)
    last, columns = rng.integers(0, 6, rows), {}
    for i, size in enumerate(sizes):
        last = np.where(rng.random(rows) < 0.6, last, rng.integers(0, 6, rows))
        states = last % size
        states[:size] = np.arange(size)
        columns[f"v{i}"] = np.array([f"s{state}" for state in states], object)
    table = pd.DataFrame(columns)
    return table.mask(rng.random(table.shape) < gaps) if gaps else table


# -- reading ---------------------------------------------------------------------------------------


def test_every_form_has_the_same_states(tmp_path) -> None:
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, index=False)
    spaced = tmp_path / "spaced.csv"
    spaced.write_text(path.read_text().replace(",", " ; "))
    forms = [
        FRAME,
        FRAME.astype({"lawn": "category"}),
        FRAME.astype({"weather": "string"}),
        FRAME.astype({"rooms": "Int64"}),
        path,
    ]
    forms += [[dict(zip(NAMES, row, strict=True)) for row in ROWS], np.array(ROWS, object), ROWS]
    for form in forms:
        rows = read_rows(form)
        assert rows.codes(np.arange(7)).tolist() == CODES
        states = [tuple(map(str, d.states)) for d in ChowLiu().fit(form).circuit_.domains.values()]
        assert states == [("rain", "snow", "sun"), ("dry", "wet"), ("1", "2", "3"), ("0", "1")]
    assert [*ChowLiu().fit(path).feature_names_in_] == NAMES
    assert not hasattr(ChowLiu().fit(ROWS), "feature_names_in_")
    assert ChowLiu().fit(ROWS).n_features_in_ == 4
    with pytest.warns(UserWarning, match="without the blanks"):
        assert read_rows(spaced).codes(np.arange(7)).tolist() == CODES


def test_states_in_an_order_of_their_own() -> None:
    ordered = pd.Categorical(FRAME["weather"], categories=["snow", "rain", "sun", "hail"])
    domains = ChowLiu().fit(FRAME.assign(weather=ordered)).circuit_.domains
    assert domains["weather"].states == ("snow", "rain", "sun", "hail")
    model = ChowLiu().fit(FRAME, states={"lawn": ["wet", "dry", "flooded"]})
    assert model.circuit_.domains["lawn"].states == ("wet", "dry", "flooded")
    assert 0 < model.model_.prob({"lawn": "flooded"}) < 0.2
    with pytest.raises(EvidenceError, match="'lawn' is 'flooded'"):
        ChowLiu().fit(FRAME).score(pd.DataFrame({"lawn": ["flooded"]}))


def test_columns_of_0_and_1_stay_plain(tmp_path) -> None:
    for X in (pd.DataFrame({"a": [True, False, None], "b": [1.0, np.nan, 0.0]}), [[1, 0], [0, 1], [-1, None]]):
        assert ChowLiu().fit(X).circuit_.domains is None
    mixed = ChowLiu().fit(pd.DataFrame({"a": [1.0, np.nan, 0.0], "b": ["x", "y", "z"], "c": ["only"] * 3}))
    assert mixed.circuit_.domains["a"].is_plain
    assert mixed.circuit_.variables == ("a", "b=x", "b=y", "b=z")
    assert mixed.model_.marginals({"b": "x"})["c"] == {"only": 1.0}
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\nyes,true,1.0\nno,false,0.0\n")
    domains = ChowLiu().fit(path).circuit_.domains
    assert [domain.is_plain for domain in domains.values()] == [False, True, True]
    path.write_text("a,b\nyes,true\nyes,false\n")
    with pytest.raises(EvidenceError, match="'a' is 'yes'"):
        ChowLiu().fit(path)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"x": np.linspace(0, 1, 50)}, "column 'x' of the data has 50 different values, such as .*pandas.cut"),
        ({"x": [f"name{i}" for i in range(65)]}, "column 'x' of the data has 65 different values.*states={'x'"),
        ({"x": range(3, 103)}, "column 'x' of the data has 100 different values, and more than 64"),
        ({"x": ["a", 1, 2]}, "column 'x' of the data has texts and other values, such as 'a'"),
        ({"x": ["a", ["b"]]}, "a column of the data holds what is no label: unhashable type: 'list'"),
        ({"x": ["a", "a"]}, "every column of the data has a single value"),
        ({"x": ["1", 1]}, "texts and other values"),
    ],
)
def test_what_is_no_table_of_labels(X, message) -> None:
    assert MOST_STATES == 64
    with pytest.raises(EvidenceError, match=message):
        ChowLiu().fit(pd.DataFrame(X))


def test_intervals_and_masks() -> None:
    """The message on numbers recommends pandas.cut, so its intervals have to be labels."""
    ages = pd.Series([3, 17, 40, 65, 80, np.nan] * 4)
    frame = pd.DataFrame({"age": pd.cut(ages, [0, 18, 60, 100]), "late": [1, 0] * 12})
    model = ChowLiu().fit(frame)
    assert model.circuit_.domains["age"].states == ("(0, 18]", "(18, 60]", "(60, 100]")
    masked = np.ma.masked_equal([[1, 2], [3, 7], [2, 2]], 7)
    assert [d.states for d in ChowLiu().fit(masked).circuit_.domains.values()] == [(1, 2, 3), (2,)]


@pytest.mark.parametrize(
    ("X", "states", "message"),
    [
        ([["a"], ["b"]], [1], r"states=\[1\]: expected the states of each variable, a dict of lists"),
        ([["a"], ["b"]], {"x1": 3}, "a dict of lists"),
        ([{"a"}, {"b"}], {"a": [0, 1]}, "have no columns of labels"),
        ([{"a": 1}, [2]], None, "no columns of labels|rows"),
    ],
)
def test_bad_states(X, states, message) -> None:
    with pytest.raises(EvidenceError, match=message):
        ChowLiu().fit(X, states=states)


def test_bad_states_and_columns(tmp_path) -> None:
    twice = pd.DataFrame([["a", "b"], ["c", "d"]], columns=["x", "x"])
    with pytest.raises(EvidenceError, match="'x' of the data occurs twice"):
        ChowLiu().fit(twice)
    with pytest.raises(EvidenceError, match="states of 'lwan': the data have no such column: did you mean 'lawn'"):
        ChowLiu().fit(FRAME, states={"lwan": ["dry", "wet"]})
    with pytest.raises(PgccError, match="'lawn' has the state 'dry' twice"):
        ChowLiu().fit(FRAME, states={"lawn": ["dry", "dry"]})
    model, path = ChowLiu().fit(FRAME), tmp_path / "data.csv"
    path.write_text("lawn,weather\nwet,sun\n\nwet,rian\n")
    with pytest.raises(EvidenceError, match=r"data.csv, line 4: variable 'weather' is 'rian': did you mean 'rain'"):
        model.score(path)
    with pytest.raises(EvidenceError, match=r"row 0, variable 'weather' is 'rian': did you mean 'rain'"):
        model.score([["rian", "wet", 1, 0]])
    with pytest.raises(EvidenceError, match="X has 8 features, but ChowLiu is expecting 4"):
        model.score(np.zeros((2, 8)))
    with pytest.raises(EvidenceError, match="'weather' is 'hail'"):
        MixtureOfTrees(2).fit(FRAME, validation=FRAME.assign(weather="hail"))


# -- trees -----------------------------------------------------------------------------------------


def smoothed(table: pd.DataFrame, smoothing: float, *names: str) -> np.ndarray:
    """Frequencies of the states of some variables: 4 · smoothing rows are spread evenly over all of them."""
    states = [sorted(table[name].unique()) for name in names]
    counts = np.array([(table[list(names)] == cell).all(axis=1).sum() for cell in itertools.product(*states)], float)
    counts += 4 * smoothing / len(counts)
    return (counts / counts.sum()).reshape([len(s) for s in states])


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(2, 4), min_size=2, max_size=5), st.integers(0, 10**6), st.sampled_from([0.25, 1.0]))
def test_chow_liu_is_the_maximum_spanning_tree(sizes: list[int], seed: int, smoothing: float) -> None:
    table = random_table(seed, sizes)
    model = ChowLiu(smoothing=smoothing).fit(table)
    names, graph = list(table), nx.Graph()
    for u, v in itertools.combinations(names, 2):
        joint = smoothed(table, smoothing, u, v)
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        graph.add_edge(u, v, weight=float((joint * np.log(joint / apart)).sum()))
    best = nx.maximum_spanning_tree(graph)
    mine = [(names[v], names[p]) for v, p in enumerate(model.trees_.parents[0]) if p >= 0]
    weight = sum(graph.edges[edge]["weight"] for edge in mine)
    assert nx.is_tree(nx.Graph(mine)) or len(names) == 1
    assert weight == pytest.approx(best.size("weight"), abs=1e-9)
    rows = all_rows(model.circuit_.domains)
    states = {name: list(d.states) for name, d in model.circuit_.domains.items()}
    expected = np.ones(len(rows))
    root = smoothed(table, smoothing, names[0])
    expected *= [root[states[names[0]].index(x)] for x in rows[names[0]]]
    for v, u in mine:
        joint = smoothed(table, smoothing, u, v)
        joint = joint / joint.sum(axis=1, keepdims=True)
        expected *= [joint[states[u].index(x), states[v].index(y)] for x, y in zip(rows[u], rows[v], strict=True)]
    np.testing.assert_allclose(np.exp(model.score_samples(rows)), expected, rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=2, max_size=4), st.integers(0, 10**6))
def test_kernels_of_trees_against_sums_over_all_rows(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    domains = Domains.of({f"v{i}": [f"s{s}" for s in range(size)] for i, size in enumerate(sizes)})
    first = np.unique(domains.shown[0], return_index=True)[1]
    probs = rng.dirichlet(np.ones(2), (1, len(domains.columns), max(2, *[len(d.columns) for d in domains.values()])))[
        ..., 0
    ]
    for f, domain in zip(first, domains.values(), strict=True):
        if domain.is_block:
            probs[:, f : f + len(domain.columns)] /= probs[:, f : f + len(domain.columns)].sum(axis=1, keepdims=True)
    parents = np.array([[-1, *(int(rng.integers(i)) for i in range(1, len(sizes)))]])
    probs[0, : (first[1])] = probs[0, : first[1], :1]
    trees = Trees(np.ones(1), parents, probs, None if len(first) == len(domains.columns) else first)
    states = np.array(list(itertools.product(*map(range, sizes))))
    full = domains.codes(states)
    p = np.exp(TreeRows(full, np.ones(len(full)), trees.blocks).log_likelihoods(trees))
    assert p.sum() == pytest.approx(1, rel=1e-9)
    circuit = trees.circuit(as_columns(domains))
    assert p == pytest.approx(np.exp(pgcc.compile(circuit).logprob(all_rows(domains))), rel=1e-9)
    known = np.where(rng.random(len(sizes)) < 0.5, states[rng.integers(len(states))], -1)
    row = domains.codes(known[None])
    fits = ((known < 0) | (known == states)).all(axis=1)
    found = TreeRows(row, np.array([2.0]), trees.blocks).expect(trees)
    assert np.exp(found.log_likelihood / 2) == pytest.approx(p[fits].sum(), rel=1e-9)
    posterior = np.where(fits, p, 0) / p[fits].sum()
    owner = domains.shown[0]
    expected = 2 * (full.T * posterior) @ full
    apart = owner[:, None] != owner
    both = found.both[0]
    assert both[apart] == pytest.approx(expected[apart], rel=1e-9, abs=1e-12)
    assert np.diag(both) == pytest.approx(np.diag(expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_em_for_trees_never_decreases_the_likelihood(seed: int) -> None:
    table = random_table(seed, [3, 2, 4, 3], gaps=0.2)
    model = MixtureOfTrees(2, smoothing=1e-9, max_iter=15, n_iter_no_change=15).fit(table, validation=table)
    history = np.array(model.history_["train"])
    assert (np.diff(history) > -1e-9).all()
    assert model.score(table) == pytest.approx(max(model.history_["validation"]), rel=1e-9)


# -- all estimators --------------------------------------------------------------------------------


def weights(size: int, k: int) -> dict[str, Fraction]:
    shares = [1 + (s + k) % 2 for s in range(size)]
    return {f"s{s}": Fraction(share, sum(shares)) for s, share in enumerate(shares)}


START = pgcc.mixture(
    [0.5, 0.5],
    [
        math.prod(
            (pgcc.pc.categorical(f"v{i}", weights(size, k)).to_pgc() for i, size in enumerate((3, 4))),
            start=pgcc.pc.bernoulli("v2", 0.25 + k / 2).to_pgc(),
        )
        for k in (0, 1)
    ],
)
KINDS = {
    "ChowLiu": ChowLiu(),
    "MixtureOfTrees": MixtureOfTrees(2, max_iter=4),
    "ContinuousMixture": ContinuousMixture("tree", 4, 1, max_iter=2),
    "HiddenTree": HiddenTree(2, max_iter=2),
    "EinsumNetwork": EinsumNetwork(2, 1, 2, max_iter=2),
    "SimplePGC": SimplePGC(2, 2, max_iter=3, recipe="paper"),
    "StackedEnsemble": StackedEnsemble([ChowLiu(), SimplePGC(1, 2, "paper", max_iter=2)]),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


@EVERY
def test_learned_distributions(kind: str, tmp_path) -> None:
    table = random_table(1, [3, 2, 4, 2], gaps=0.1)
    model = clone(KINDS[kind]).fit(table)
    domains = model.circuit_.domains
    assert [len(d.states) for d in domains.values()] == [3, 2, 4, 2]
    rows = all_rows(domains)
    p = np.exp(model.score_samples(rows))
    assert p.sum() == pytest.approx(1, rel=1e-9)
    some = table.iloc[:12]
    fits = np.array([((rows == row) | row.isna()).all(axis=1) for _, row in some.iterrows()])
    assert np.exp(model.score_samples(some)) == pytest.approx(fits @ p, rel=1e-9)
    assert model.score(some) == pytest.approx(np.log(fits @ p).mean(), rel=1e-9)
    others = np.array([((rows == row) | row.isna()).drop(columns="v2").all(axis=1) for _, row in some.iterrows()])
    by_state = np.array([[p[o & (rows["v2"] == state)].sum() for state in domains["v2"].states] for o in others])
    found = model.conditional_proba(some, "v2")
    np.testing.assert_allclose(found, by_state / by_state.sum(axis=1, keepdims=True), rtol=1e-8)
    assert (found == model.conditional_proba(some.to_numpy(object), 2)).all()
    drawn = model.sample(200, random_state=0)
    assert drawn.shape == (200, 4)
    assert set(drawn[:, 2]) <= set(domains["v2"].states)
    assert np.isfinite(model.score_samples(pd.DataFrame(drawn, columns=list(domains)))).all()
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.circuit_ == model.circuit_ == pgcc.load(tmp_path / "model.npz")
    assert (again.score_samples(some) == model.score_samples(some)).all()
    assert again.feature_names_in_.tolist() == list(domains)


def test_simple_pgc_learns_what_its_kernels_compute() -> None:
    table = random_table(2, [3, 2, 4, 2], gaps=0.1)
    model = SimplePGC(2, 2, "paper", max_iter=3).fit(table)
    columns = model.circuit_.variables
    groups = [type(group)(columns.index(name) for name in group) for group in model.partition_]
    assert sorted(map(sorted, groups)) == sorted(map(sorted, [[0, 1, 2], [4, 5, 6, 7], *groups[:-2]]))
    data = encode(read_rows(table, columns).codes(np.arange(len(table))), groups)
    expected = log_likelihoods(data.table, model.parameters_)[data.where]
    np.testing.assert_allclose(model.score_samples(table), expected, rtol=1e-9)


def test_simple_pgc_over_states_alone_is_a_mixture_of_products() -> None:
    model = SimplePGC(2, 3, "paper", max_iter=2).fit(random_table(3, [3, 4]))
    assert model.model_._compiled.blocks is not None


@pytest.mark.parametrize("optimizer", ["em", "lbfgs"])
def test_circuit_mle(optimizer: str) -> None:
    table = random_table(4, [3, 4, 2], gaps=0.1).assign(v2=lambda t: t["v2"].map({"s0": 0, "s1": 1}))
    start = pgcc.compile(START)
    model = CircuitMLE(START, optimizer, max_iter=20, smoothing=0.0).fit(table)
    assert model.circuit_.domains == START.domains
    assert (np.diff(model.history_["train"]) > -1e-9).all()
    assert model.score(table[list(START.domains)]) > start.logprob(table[list(START.domains)]).mean()
    assert np.exp(model.score_samples(all_rows(START.domains))).sum() == pytest.approx(1, rel=1e-9)


def test_a_plain_circuit_learns_from_two_labels() -> None:
    plain = pgcc.parse("0.5*(0.4*a + 0.6)*b + 0.5*(0.5*a + 0.5)")
    frame = pd.DataFrame({"a": ["m", "f", "m", "f"], "b": [1, 0, 1, 0]})
    model = CircuitMLE(plain, smoothing=0).fit(frame, validation=frame)
    assert model.circuit_.domains["a"].states == ("f", "m")
    assert model.score(frame) == pytest.approx(
        CircuitMLE(plain, smoothing=0).fit([[1, 1], [0, 0]] * 2).score([[1, 1], [0, 0]])
    )


def test_columns_that_show_other_states_are_refused() -> None:
    """Of right and left in this order the column shows left, and in ascending order right."""
    circuit = pgcc.parse("0.4*(0.5*hand + 0.5)*(0.2*b + 0.8) + 0.6*(0.1*hand + 0.9)*(0.5*b + 0.5)").with_states(
        {"hand": ["right", "left"]}
    )
    frame = pd.DataFrame({"hand": ["left", "right", "left", "right"] * 5, "b": [1, 0, 0, 1] * 5})
    assert CircuitMLE(circuit, max_iter=2).fit(frame).circuit_.domains["hand"].states == ("right", "left")
    with (
        pytest.warns(UserWarning, match="the data have other states than the circuit"),
        pytest.raises(EvidenceError, match="every candidate failed"),
    ):
        StackedEnsemble([CircuitMLE(circuit, max_iter=2)]).fit(frame)
    model = StackedEnsemble([CircuitMLE(circuit, max_iter=2)]).fit(frame, states={"hand": ["right", "left"]})
    assert model.circuit_.domains["hand"].states == ("right", "left")


# -- scikit-learn, imputer, command line -----------------------------------------------------------


def test_scikit_learn_takes_labels() -> None:
    table = random_table(5, [3, 2, 3], rows=90, gaps=0.1)
    scores = cross_val_score(ChowLiu(), table, cv=3, error_score="raise")
    assert np.isfinite(scores).all()
    pipe = make_pipeline(Imputer(ChowLiu()).set_output(transform="pandas"), MixtureOfTrees(2, max_iter=2))
    assert pipe.fit(table).score(table) < 0


@pytest.mark.parametrize("strategy", ["most_frequent", "mode", "sample"])
def test_imputer(strategy: str) -> None:
    table = random_table(6, [3, 2, 4], gaps=0.2)
    imputer = Imputer(ChowLiu(), strategy=strategy, random_state=0).fit(table)
    filled = imputer.transform(table)
    known = table.notna().to_numpy()
    assert (filled[known] == table.to_numpy()[known]).all()
    model = imputer.estimator_
    rows = all_rows(model.circuit_.domains)
    p = np.exp(model.score_samples(rows))
    for (_, row), full in zip(table.iterrows(), filled, strict=True):
        possible = np.where(((rows == row) | row.isna()).all(axis=1), p, 0)
        if strategy == "mode":
            assert possible[(rows == full).all(axis=1)].sum() == pytest.approx(possible.max())
        elif strategy == "most_frequent":
            for name, value in zip(table, full, strict=True):
                shares = {state: possible[rows[name] == state].sum() for state in model.circuit_.domains[name].states}
                assert shares[value] == pytest.approx(max(shares.values()))
        else:
            assert possible[(rows == full).all(axis=1)].sum() > 0
    with pytest.raises(PgccError, match="there is no mean of labels"):
        imputer.set_params(strategy="mean").transform(table)


def test_the_command_line_learns_from_labels(tmp_path, capsys) -> None:
    data, model = tmp_path / "survey.csv", tmp_path / "model.npz"
    FRAME.to_csv(data, index=False)
    arguments = ["fit", str(data), "-o", str(model), "--model", "chow-liu", "--validation", str(data), "--json"]
    assert cli.main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["variables"] == 4
    assert told["train"] == told["validation"] == pytest.approx(ChowLiu().fit(FRAME).score(FRAME))
    assert pgcc.load(model) == ChowLiu().fit(FRAME).circuit_

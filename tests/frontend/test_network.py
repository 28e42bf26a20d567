"""Networks: from objects of Python and of other libraries, interventions, and what is left out; against brute force."""

from __future__ import annotations

import gzip
import itertools
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from networks import joint, posteriors, public_bif, random_network

import pgcc
from pgcc.builders import bayesian_network
from pgcc.errors import CircuitError, EvidenceError
from pgcc.formats import bif
from pgcc.frontend.network import Network, Table, Tables
from pgcc.ir.domains import Domains

DOMAINS = Domains.of({"a": ["x", "y", "z"], "b": ["no", "yes"], "c": ["r", "s", "t"]})
P_A, P_B = np.array([0.5, 0.25, 0.25]), np.array([0.75, 0.25])
P_C = np.array([[[0.5, 0.25, 0.25], [0.125, 0.5, 0.375]], [[1, 0, 0], [0, 1, 0]], [[0.25, 0.5, 0.25], [0, 0.5, 0.5]]])
EXPECTED = Network.bayesian(
    DOMAINS,
    {
        "a": Tables(DOMAINS).conditional((0,), P_A),
        "b": Tables(DOMAINS).conditional((1,), P_B),
        "c": Tables(DOMAINS).conditional((0, 1, 2), P_C),
    },
)
STATES = {name: list(domain.states) for name, domain in DOMAINS.items()}


def rows_of_c(make: Callable[[np.ndarray], Any], order: tuple[int, int] = (0, 1)) -> dict[tuple, Any]:
    cells = itertools.product(range(3), range(2))
    return {tuple((STATES["a"][i], STATES["b"][j])[k] for k in order): make(P_C[i, j]) for i, j in cells}


def labelled(name: str) -> Callable[[np.ndarray], dict]:
    return lambda row: dict(zip(STATES[name], row.tolist(), strict=True))


def graph(c: Any, with_states: bool = True, **attributes: Any) -> nx.DiGraph:
    G = nx.DiGraph()
    G.add_node("a", cpt=labelled("a")(P_A))
    G.add_node("b", cpt=P_B, states=["no", "yes"])
    G.add_node("c", cpt=c, **({"states": STATES["c"]} if with_states else {}), **attributes)
    G.add_edges_from([("b", "c"), ("a", "c")] if attributes else [("a", "c"), ("b", "c")])
    return G


def frame(swapped: bool = False) -> Any:
    pandas = pytest.importorskip("pandas")
    columns = pandas.MultiIndex.from_product([STATES["a"], STATES["b"]], names=["a", "b"])
    table = pandas.DataFrame(P_C.reshape(6, 3).T, index=STATES["c"], columns=columns)
    return table.swaplevel(axis=1).sort_index(axis=1) if swapped else table


def fake_pgmpy() -> Any:
    """What is used of a DiscreteBayesianNetwork; the table of c has the states of a in another order."""
    turned = {**STATES, "a": ["z", "y", "x"]}
    tables = [("a", [], P_A), ("c", ["b", "a"], P_C[::-1].transpose(2, 1, 0)), ("b", [], P_B)]
    cpds = [
        SimpleNamespace(variable=v, variables=[v, *above], values=t, state_names=turned if v == "c" else STATES)
        for v, above, t in tables
    ]
    return SimpleNamespace(nodes=lambda: ["a", "b", "c"], get_cpds=lambda: cpds)


def real_pgmpy() -> Any:
    pytest.importorskip("pgmpy", exc_type=ImportError)
    models = pytest.importorskip("pgmpy.models", exc_type=ImportError)
    from pgmpy.factors.discrete import TabularCPD

    model = models.DiscreteBayesianNetwork()
    model.add_nodes_from("abc")
    model.add_edges_from(["ac", "bc"])
    model.add_cpds(
        TabularCPD("c", 3, P_C.reshape(6, 3).T, evidence=["a", "b"], evidence_card=[3, 2], state_names=STATES),
        TabularCPD("a", 3, P_A[:, None], state_names={"a": STATES["a"]}),
        TabularCPD("b", 2, P_B[:, None], state_names={"b": STATES["b"]}),
    )
    return model


def real_pyagrum() -> Any:
    pyagrum = pytest.importorskip("pyagrum")
    net = pyagrum.BayesNet()
    for name, states in STATES.items():
        net.add(pyagrum.LabelizedVariable(name, name, states))
    net.addArc("b", "c")
    net.addArc("a", "c")
    net.cpt("a").fillWith(P_A.tolist())
    net.cpt("b").fillWith(P_B.tolist())
    for i, j in itertools.product(range(3), range(2)):
        net.cpt("c")[{"a": i, "b": j}] = P_C[i, j].tolist()
    return net


SAME: dict[str, Callable[[], Any]] = {
    "a dict": lambda: {
        "a": labelled("a")(P_A),
        "b": labelled("b")(P_B),
        "c": (["a", "b"], rows_of_c(labelled("c"))),
    },
    "a dict of dicts and frames": lambda: {
        "a": {(): labelled("a")(P_A)},
        "b": pytest.importorskip("pandas").Series(P_B, index=["no", "yes"]),
        "c": (("a", "b"), frame()),
    },
    "a graph with a dict of lists": lambda: graph(rows_of_c(np.ndarray.tolist)),
    "a graph with an array": lambda: graph(P_C),
    "a graph with nested lists": lambda: graph(P_C.tolist()),
    "a graph with dicts": lambda: graph(rows_of_c(labelled("c")), with_states=False),
    "a graph with other parents": lambda: graph(P_C, parents=["a", "b"]),
    "a graph with a frame": lambda: graph(frame(), with_states=False),
    "a frame with swapped levels": lambda: graph(frame(swapped=True)),
    "something like pgmpy": fake_pgmpy,
    "pgmpy": real_pgmpy,
    "pyAgrum": real_pyagrum,
}


@pytest.mark.parametrize("kind", SAME)
def test_a_network_in_every_form(kind: str) -> None:
    circuit = bayesian_network(SAME[kind]())
    network = circuit.network
    assert network.domains == DOMAINS
    np.testing.assert_allclose(joint(network), joint(EXPECTED), rtol=1e-15)
    assert pgcc.compile(circuit).prob({"c": "s", "a": "z"}) == pytest.approx(joint(EXPECTED)[2, :, 1].sum(), rel=1e-14)


def test_one_parent_in_a_frame_or_a_dict() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"no": [0.25, 0.75], "yes": [0.5, 0.5]}, index=["dry", "wet"])
    by_frame = bayesian_network({"rain": {"yes": 0.25, "no": 0.75}, "lawn": (["rain"], table)})
    by_dict = bayesian_network(
        {"rain": {"yes": 0.25, "no": 0.75}, "lawn": ("rain", {"no": {"wet": 0.75, "dry": 0.25}, "yes": [0.5, 0.5]})}
    )
    assert by_frame.domains == Domains.of({"rain": ["yes", "no"], "lawn": ["dry", "wet"]})
    assert pgcc.compile(by_frame).prob({"rain": "no", "lawn": "wet"}) == 0.75 * 0.75
    assert pgcc.compile(by_dict).prob({"rain": "no", "lawn": "wet"}) == 0.75 * 0.75


def test_plain_binary_variables_stay_plain() -> None:
    circuit = bayesian_network({"a": 0.2, "b": (["a"], {0: 0.1, 1: {1: 0.9, 0: 0.1}}), "c": {1: 0.5, 0: 0.5}})
    assert circuit.domains is None
    assert pgcc.compile(circuit).prob("a=1, b=1, c=0") == pytest.approx(0.09, rel=1e-15)


@pytest.mark.parametrize("name", ["alarm", "child", "insurance"])
def test_tables_of_other_libraries(name: str) -> None:
    """pgmpy reads files as doubles; pyAgrum keeps tables in single precision where they come from a .bif file."""
    pytest.importorskip("pgmpy.models", exc_type=ImportError)
    from pgmpy.readwrite import BIFReader

    for path in public_bif(name):
        network = bif.read_network(path)
        other = bayesian_network(BIFReader(string=gzip.decompress(path.read_bytes()).decode()).get_model()).network
        names, others = list(network.domains), list(other.domains)
        for table in network.tables:
            twin = next(t for t in other.tables if others[t.scope[-1]] == names[table.scope[-1]])
            axes = [[others[v] for v in twin.scope].index(names[v]) for v in table.scope]
            np.testing.assert_allclose(twin.table.transpose(axes), table.table, rtol=1e-15)


# -- interventions -----------------------------------------------------------------------------------------------------


def truncated(network: Network, states: dict[str, int]) -> np.ndarray:
    """The product of all tables but those of the variables that are set, where these have their states."""
    names = list(network.domains)
    others = tuple(table for table in network.tables if names[table.scope[-1]] not in states)
    weights = joint(Network(network.domains, others))
    for name, state in states.items():
        at = np.arange(weights.shape[names.index(name)]) == state
        weights = weights * at.reshape([-1 if other == name else 1 for other in names])
    return weights


@pytest.mark.parametrize("seed", range(15))
def test_do_is_the_truncated_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(5, rng)
    names = rng.permutation(list(network.domains))[: rng.integers(1, 4)].tolist()
    states = {name: int(rng.integers(len(network.domains[name].states))) for name in names}
    labels = {name: network.domains[name].states[state] for name, state in states.items()}
    weights = truncated(network, states)
    done = network.circuit().do(labels)
    assert done.network.is_bayesian
    assert done.domains == network.domains
    for name, expected in posteriors(network, weights).items():
        for state, p in zip(network.domains[name].states, expected, strict=True):
            assert pgcc.compile(done).prob({name: state}) == pytest.approx(p, rel=1e-12, abs=1e-15)
    other = next(name for name in network.domains if name not in states)
    seen = int(posteriors(network, weights)[other].argmax())
    part = network.asked(names[0], {other: network.domains[other].states[seen]}).circuit().do(labels)
    expected = np.take(weights, seen, axis=list(network.domains).index(other)).sum()
    assert pgcc.compile(part, normalize=False).prob() == pytest.approx(expected, rel=1e-12)


def test_what_cannot_be_done() -> None:
    circuit = EXPECTED.circuit()
    for states, error, message in (
        ({"d": "x"}, CircuitError, "cannot set 'd': the network has no such variable: the variables are a, b, c"),
        ({"a": "w"}, EvidenceError, "variable 'a' is 'w': the states are x, y, z"),
        ({"a": {"x", "y"}}, EvidenceError, "variable 'a' is {"),
    ):
        with pytest.raises(error) as caught:
            circuit.do(states)
        assert message in str(caught.value)
    markov = Network(DOMAINS, (Table((0, 2), np.ones((3, 3))),)).circuit()
    with pytest.raises(CircuitError, match="only in a Bayesian network does a variable have causes"):
        markov.do({"a": "x"})
    for other in (pgcc.parse("a/2 + 1/2"), circuit.observe({"b": "yes"}), circuit.marginalize(["a"]), circuit * 1):
        assert other.network is None
        with pytest.raises(CircuitError, match="compiled from a Bayesian network"):
            other.do({"b": "yes"})


def test_a_network_stays_with_its_circuit() -> None:
    circuit = EXPECTED.asked(["a", "c"], {"b": "yes"}).circuit()
    copy = pickle.loads(pickle.dumps(circuit))
    assert (copy, copy.network) == (circuit, circuit.network)
    named = circuit.relabel({"a": "first"})
    assert named.domains == named.network.circuit().domains
    assert named.network.keep == ("first", "c")
    assert pgcc.compile(named.do({"first": "y"})).prob({"first": "y"}) == 1
    assert circuit.network != EXPECTED
    assert repr(EXPECTED) == "<Network: 3 variables, Bayesian: Pr(a) Pr(b) Pr(c | a, b)>"


# -- what is left out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(15))
def test_barren_variables_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(6, rng, zeros=0)
    kept, seen = rng.permutation(list(network.domains))[:2].tolist()
    state = int(rng.integers(len(network.domains[seen].states)))
    part = network.asked([kept], {seen: network.domains[seen].states[state]}).circuit()
    weights = np.take(joint(network), [state], axis=list(network.domains).index(seen))
    assert pgcc.compile(part, normalize=False).prob() == pytest.approx(weights.sum(), rel=1e-12)
    for label, p in zip(network.domains[kept].states, posteriors(network, weights)[kept], strict=True):
        assert pgcc.compile(part).prob({kept: label}) == pytest.approx(p, rel=1e-12)


def test_a_wide_network_below_what_is_asked() -> None:
    """Many variables that all depend on one another's parents: none of them matters to the first two."""
    rng = np.random.default_rng(0)
    G = {"a": 0.25, "b": (["a"], {0: 0.5, 1: 0.125})}
    G |= {f"r{i}": 0.5 for i in range(30)}
    for i in range(40):
        parents = ["a", *(f"r{j}" for j in rng.permutation(30)[:5])]
        G[f"c{i}"] = (parents, rng.random((2,) * 6))
    with pytest.raises(pgcc.CircuitError, match=r"induced width .*; keep=NAMES .*, and evidence="):
        bayesian_network(G)
    circuit = bayesian_network(G, keep=["b"])
    assert pgcc.compile(circuit).prob({"b": 1}) == 0.75 * 0.5 + 0.25 * 0.125
    assert bayesian_network(G, keep=["b"], evidence={"c3": 1}).variables == ("b",)
    with pytest.raises(pgcc.CircuitError, match=r"induced width .*\)$"):
        bayesian_network(G, keep=[f"c{i}" for i in range(40)], evidence={"a": 0})


# -- what is wrong is named --------------------------------------------------------------------------------------------

A = {"x": 0.5, "y": 0.5}
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown parent": (lambda: {"a": A, "b": (["aa"], {})}, "unknown variable 'aa': did you mean 'a'?"),
    "cycle": (lambda: {"a": (["b"], {}), "b": (["c"], {}), "c": (["a"], {})}, " → "),
    "own parent": (lambda: {"a": (["a"], {0: 1, 1: 0})}, "no directed cycle: a → a"),
    "row missing": (lambda: {"a": A, "b": (["a"], {"x": 0.5})}, "values of a: ('y',) is missing"),
    "unknown state of a parent": (lambda: {"a": A, "b": (["a"], {"x": 0.5, "u": 1})}, "the parent 'a' is 'u'"),
    "too many states in a key": (lambda: {"a": A, "b": (["a"], {("x", "y"): 0.5})}, "('x', 'y') is none"),
    "a state missing": (
        lambda: graph(dict.fromkeys(rows_of_c(list), A)),
        "a state of 'c' is 'x': the states are r, s, t",
    ),
    "a number for three": (lambda: graph(dict.fromkeys(rows_of_c(list), 0.5)), "a sequence is needed, not 0.5"),
    "a list too short": (
        lambda: graph({k: [0.5, 0.5] for k in rows_of_c(list)}),
        "each of its states, r, s, t, given a=x, b=no",
    ),
    "shape": (lambda: graph(P_C.reshape(2, 3, 3)), "shape (2, 3, 3); with 2 parents it needs the shape (3, 2, 3)"),
    "the sum": (lambda: {"a": {"x": 0.5, "y": 0.4}}, "the probabilities of 'a' add up to 0.9: 0.1 less than 1"),
    "the sum of a row": (
        lambda: {"a": A, "b": (["a"], {"x": {0: 0.5, 1: 0.5}, "y": {0: 0.5, 1: 0.6}})},
        "the probabilities of 'b' given a=y add up to 1.1: 0.1 more than 1",
    ),
    "negative": (lambda: {"a": {"x": -0.5, "y": 1.5}}, "Pr(a=x) is -0.5, not a number between 0 and 1"),
    "no number": (lambda: {"a": {"x": "much", "y": 0.5}}, "Pr(a=x) is 'much'"),
    "too small": (lambda: {"a": {"x": "1e-400", "y": 1}}, "below the range of float64"),
    "states no list": (lambda: _with_states("rst"), "the attribute `states` of 'c' is a sequence"),
    "equal states": (lambda: _with_states(["r", "s", "r"]), "variable 'c' has the state 'r' twice"),
    "state no label": (lambda: _with_states([("r",), ("s",), ("t",)]), "no name of a state"),
    "equal columns": (lambda: {"a": A, "b": (["a"], _equal_columns())}, "two equal columns"),
    "many parents": (
        lambda: {f"p{i}": 0.5 for i in range(30)} | {"c": ([f"p{i}" for i in range(30)], {0: 1})},
        "'c' has 30 parents: a table of 1,073,741,824 rows is too large",
    ),
    "a table of pgmpy is missing": (
        lambda: SimpleNamespace(nodes=lambda: ["a"], get_cpds=list),
        "variable 'a' has no table",
    ),
    "nothing": (dict, "at least one variable"),
}


def _with_states(states: Any) -> nx.DiGraph:
    G = graph(P_C)
    G.nodes["c"]["states"] = states
    return G


def _equal_columns() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame([[0.5, 0.5], [0.5, 0.5]], columns=["x", "x"])


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    build, message = MISTAKES[mistake]
    with pytest.raises(CircuitError) as caught:
        bayesian_network(build())
    assert message in str(caught.value)


def test_what_was_observed_is_a_state_or_several() -> None:
    sets = EXPECTED.asked(None, {"a": ["x", "z"]}), EXPECTED.asked(None, {"a": {"x", "z"}})
    assert sets[0] == sets[1]
    for evidence, message in (
        ("a=x", "a dict of states, not 'a=x'"),
        ({"a": {"x": 0.5}}, "or one of a set, not"),
        ({"a": []}, "is empty"),
    ):
        with pytest.raises(EvidenceError) as caught:
            bayesian_network(graph(P_C), evidence=evidence)
        assert message in str(caught.value)
    with pytest.raises(CircuitError, match="keep= is a sequence of names, not 3"):
        bayesian_network(graph(P_C), keep=3)


def test_a_name_of_a_variable_that_was_summed_out() -> None:
    """The circuit may have it; its network would have it twice."""
    circuit = EXPECTED.asked(["a"], None).circuit()
    assert circuit.relabel({"a": "b"}).network is None
    assert circuit.relabel({"a": "b"}).variables == ("b=x", "b=y", "b=z")


@pytest.mark.parametrize("entry", [-0.5, np.nan, np.inf])
def test_an_array_of_no_probabilities(entry: float) -> None:
    table = P_C.copy()
    table[1, 1] = [entry, 1.5, 0]
    with pytest.raises(CircuitError, match=r"no probabilities|add up to inf|not a number between"):
        bayesian_network(graph(table))
    with pytest.raises(CircuitError, match=r"no probabilities|add up to inf"):
        Tables(DOMAINS).conditional((0, 1, 2), table)


def test_tables_come_back_as_they_were_given() -> None:
    """`cpt` gives what `bayesian_network` takes, for no parent, one and two; the other way round by the names."""
    pandas = pytest.importorskip("pandas")
    tables = {name: (list(above), EXPECTED.cpt(name)) for name, above in EXPECTED.parents.items()}
    assert pgcc.builders.bayesian_network(tables).network == EXPECTED
    turned = {name: (above, t.T if above else t) for name, (above, t) in tables.items()}
    assert pgcc.builders.bayesian_network(turned).network == EXPECTED
    nameless = pandas.DataFrame(tables["c"][1].T.to_numpy(), index=pandas.MultiIndex.from_product([[0, 1], [0, 1, 2]]))
    with pytest.raises(CircuitError, match="'c' has lines for the states of its parents"):
        pgcc.builders.bayesian_network({**tables, "c": (["a", "b"], nameless)})
    with pytest.raises(CircuitError, match="no table of 'aa': did you mean 'a'"):
        EXPECTED.cpt("aa")


def test_arrays_with_states() -> None:
    names = {name: domain.states for name, domain in EXPECTED.domains.items()}
    tables = {
        name: (list(above), t.table) for (name, above), t in zip(EXPECTED.parents.items(), EXPECTED.tables, strict=True)
    }
    assert pgcc.builders.bayesian_network(tables, states=names).network == EXPECTED
    with pytest.raises(CircuitError, match=r"states=\{'c': \[...\]\} says what"):
        pgcc.builders.bayesian_network(tables, states={"a": names["a"], "b": names["b"]})
    with pytest.raises(CircuitError, match="unknown variable 'cc': did you mean 'c'"):
        pgcc.builders.bayesian_network(tables, states={"cc": [0, 1]})


def test_an_intervention_as_text() -> None:
    circuit = EXPECTED.circuit()
    state = EXPECTED.domains["a"].states[1]
    assert circuit.do(f"a={state}").network == circuit.do({"a": state}).network
    with pytest.raises(CircuitError, match="a dict from variables to states"):
        circuit.do(["a"])  # type: ignore[arg-type]

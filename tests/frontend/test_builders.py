"""The builders against brute force on small models, and against closed forms on large ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest

import pgcc
from pgcc.builders import (
    bayesian_network,
    chow_liu,
    cutset_network,
    hmm,
    naive_bayes,
)
from pgcc.errors import CircuitError
from pgcc.frontend.elimination import WidthError
from pgcc.ir.circuit import Circuit

SEEDS = range(12)


def everything(n: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n)))


def check(circuit: Circuit, joint: Callable[[np.ndarray], float], seed: int = 0) -> None:
    """The circuit's probabilities of full and partial rows are those of `joint`, which takes a full row."""
    facts = circuit.facts
    assert facts.smooth
    assert facts.decomposable
    assert facts.monotone
    rows = everything(len(circuit.variables))
    expected = np.array([joint(row) for row in rows])
    model = pgcc.compile(circuit, normalize=False)
    assert model.prob() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(model.prob(rows), expected, rtol=1e-10, atol=0)
    rng = np.random.default_rng(seed)
    for partial in rng.integers(-1, 2, (20, rows.shape[1])):
        agree = ((partial < 0) | (rows == partial)).all(axis=1)
        assert model.prob([partial])[0] == pytest.approx(expected[agree].sum(), rel=1e-10, abs=0)


def bern(p: Any, x: int) -> float:
    return float(p if x else 1 - p)


def random_probs(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Some of them 0 or 1."""
    p = rng.random(shape)
    return np.where(rng.random(shape) < 0.1, np.round(p), p)


def random_forest(n: int, rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
    """Parents, in no particular order of indices, and probabilities."""
    order = rng.permutation(n)
    parents = [-1] * n
    for place in range(1, n):
        if rng.random() < 0.85:
            parents[order[place]] = int(order[rng.integers(place)])
    probs = random_probs(rng, (n, 2))
    for i, parent in enumerate(parents):
        if parent < 0:
            probs[i, 1] = probs[i, 0]
    return parents, probs


def tree_joint(parents: list[int], probs: np.ndarray, row: np.ndarray) -> float:
    return float(np.prod([bern(probs[i][row[p] if p >= 0 else 0], row[i]) for i, p in enumerate(parents)]))


# -- Chow–Liu trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_chow_liu_agrees_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents, probs = random_forest(int(rng.integers(1, 9)), rng)
    check(chow_liu(parents, probs), lambda row: tree_joint(parents, probs, row))


def test_chow_liu_keeps_fractions() -> None:
    tree = chow_liu([None, 0], [Fraction(1, 3), (Fraction(1, 7), "0.1")], names=["a", "b"])
    assert pgcc.compile(tree).prob({"a": 0, "b": 1}, exact=True) == Fraction(2, 21)
    assert pgcc.compile(tree).prob({"b": 1}, exact=True) == Fraction(2, 21) + Fraction(1, 30)


@pytest.mark.slow
def test_chow_liu_of_5000_variables_agrees_with_its_closed_form() -> None:
    rng = np.random.default_rng(1)
    n = 5000
    parents = [-1] + [int(rng.integers(max(0, i - 50), i)) for i in range(1, n)]
    probs = rng.uniform(0.05, 0.95, (n, 2))
    probs[0, 1] = probs[0, 0]
    tree = chow_liu(parents, probs)
    assert tree.edges < 10 * n
    rows = rng.integers(0, 2, (4, n))
    given = np.where(np.array(parents) < 0, 0, rows[:, parents])
    p = probs[np.arange(n), given]
    expected = np.log(np.where(rows == 1, p, 1 - p)).sum(axis=1)
    model = pgcc.compile(tree)
    np.testing.assert_allclose(model.logprob(rows), expected, rtol=1e-9)
    ones = np.zeros(n)  # Pr(x_i = 1), from the root down
    for i, parent in enumerate(parents):
        ones[i] = probs[i, 0] if parent < 0 else probs[i] @ [1 - ones[parent], ones[parent]]
    for i in (0, 1, 777, n - 1):
        assert model.prob({f"x{i + 1}": 1}) == pytest.approx(ones[i], rel=1e-10)


def test_chow_liu_size_is_linear() -> None:
    def size(n: int) -> int:
        return chow_liu([i - 1 for i in range(n)], [0.3] + [(0.2, 0.6 + 0.1 / (i + 1)) for i in range(n - 1)]).edges

    assert size(2000) - size(1000) == size(3000) - size(2000) == 8000


# -- mixtures and hidden Markov models ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_naive_bayes_agrees_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 5), rng.integers(1, 9)
    weights, probs = rng.dirichlet(np.ones(k)), random_probs(rng, (k, n))
    check(
        naive_bayes(weights, probs),
        lambda row: sum(
            w * np.prod([bern(p, x) for p, x in zip(ps, row, strict=True)])
            for w, ps in zip(weights, probs, strict=True)
        ),
    )


def random_hmm(k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k), random_probs(rng, k)


@pytest.mark.parametrize("seed", SEEDS)
def test_hmm_agrees_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    initial, transition, emission = random_hmm(k, rng)

    def joint(row: np.ndarray) -> float:
        total = 0.0
        for states in itertools.product(range(k), repeat=n):
            steps = [transition[a, b] for a, b in itertools.pairwise(states)]
            seen = [bern(emission[s], x) for s, x in zip(states, row, strict=True)]
            total += initial[states[0]] * np.prod(steps) * np.prod(seen)
        return float(total)

    check(hmm(initial, transition, emission, n), joint)


def forward(initial: np.ndarray, transition: np.ndarray, emission: np.ndarray, row: np.ndarray) -> float:
    """log Pr(row) in log space; −1 is unobserved."""
    alpha = np.log(initial)
    for t, x in enumerate(row):
        if t:
            alpha = np.logaddexp.reduce(alpha[:, None] + np.log(transition), axis=0)
        if x >= 0:
            alpha = alpha + np.log(emission if x else 1 - emission)
    return float(np.logaddexp.reduce(alpha))


@pytest.mark.slow
def test_hmm_of_2000_observations_agrees_with_the_forward_algorithm() -> None:
    rng = np.random.default_rng(2)
    k, n = 16, 2000
    initial, transition = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    emission = rng.uniform(0.05, 0.95, k)
    circuit = hmm(initial, transition, emission, n)
    assert circuit.edges <= n * (k * k + 4 * k)
    rows = rng.integers(0, 2, (3, n))
    hidden = rng.random((2, n)) < 0.5
    rows = np.concatenate([rows, np.where(hidden, -1, rows[:2])])
    expected = [forward(initial, transition, emission, row) for row in rows]
    np.testing.assert_allclose(pgcc.compile(circuit).logprob(rows), expected, rtol=1e-9)


def test_hmm_size_is_linear_in_its_length() -> None:
    initial, transition, emission = random_hmm(5, np.random.default_rng(0))
    sizes = [hmm(initial, transition, emission, n).edges for n in (100, 200, 300)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] <= 100 * (25 + 20)


# -- cutset networks ------------------------------------------------------------------------------------------------


def random_cutset(names: list[str], rng: np.random.Generator) -> Any:
    if not names:
        return None
    if rng.random() < 0.6:
        chosen = names[rng.integers(len(names))]
        rest = [name for name in names if name != chosen]
        return (chosen, random_probs(rng, ()).item(), random_cutset(rest, rng), random_cutset(rest, rng))
    shuffled = [names[i] for i in rng.permutation(len(names))]
    parents, probs = random_forest(len(names), rng)
    return {"names": shuffled, "parents": parents, "probs": probs}


def cutset_joint(spec: Any, values: dict[str, int]) -> float:
    if spec is None:
        return 1.0
    if isinstance(spec, tuple):
        x = values[spec[0]]
        return bern(spec[1], x) * cutset_joint(spec[2 + x], values)
    return tree_joint(spec["parents"], spec["probs"], np.array([values[name] for name in spec["names"]]))


@pytest.mark.parametrize("seed", SEEDS)
def test_cutset_networks_agree_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = list("abcdefgh")[: rng.integers(1, 9)]
    spec = random_cutset(names, rng)
    circuit = cutset_network(spec, names=names)
    assert circuit.variables == tuple(names)
    check(circuit, lambda row: cutset_joint(spec, dict(zip(names, row, strict=True))))


def test_deep_and_shared_cutset_networks() -> None:
    spec: Any = None
    for i in range(1500):
        spec = (f"x{i}", 0.25, spec, spec)  # as a tree, 2^1500 leaves
    circuit = cutset_network(spec)
    assert circuit.edges == 6 * 1500 - 4
    assert pgcc.compile(circuit).logprob([[1] * 1500])[0] == pytest.approx(1500 * np.log(0.25), rel=1e-10)


def test_a_cutset_network_that_stops_early_in_one_branch() -> None:
    spec: Any = None
    for i in range(100):
        rest = [f"x{j}" for j in range(i)]
        leaf = {"names": rest, "parents": [-1] * i, "probs": [0.25] * i} if rest else None
        spec = (f"x{i}", 0.5, spec, leaf)
    assert pgcc.compile(cutset_network(spec)).prob({"x99": 1, "x0": 1}) == pytest.approx(0.125)


# -- Bayesian networks ------------------------------------------------------------------------------------------------


def random_network(n: int, rng: np.random.Generator, as_dict: bool) -> nx.DiGraph:
    G = nx.DiGraph()
    order = [f"v{i}" for i in rng.permutation(n)]
    G.add_nodes_from(order)
    for place, child in enumerate(order):
        parents = [order[i] for i in rng.permutation(place)[: rng.integers(0, 4)]]
        G.add_edges_from((p, child) for p in parents)
        table = random_probs(rng, (2,) * len(parents))
        cells = itertools.product((0, 1), repeat=len(parents))
        G.nodes[child]["cpt"] = {cell: float(table[cell]) for cell in cells} if as_dict else table
        if rng.random() < 0.5:
            G.nodes[child]["parents"] = parents
    return G


def network_joint(G: nx.DiGraph, values: dict[str, int]) -> float:
    total = 1.0
    for node in G:
        parents = G.nodes[node].get("parents", list(G.predecessors(node)))
        total *= bern(G.nodes[node]["cpt"][tuple(values[p] for p in parents)], values[node])
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_bayesian_networks_agree_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    G = random_network(int(rng.integers(1, 9)), rng, as_dict=seed % 2 == 0)
    circuit = bayesian_network(G)
    assert circuit.variables == tuple(G)
    check(circuit, lambda row: network_joint(G, dict(zip(G, row, strict=True))))


def test_a_bayesian_network_over_part_of_its_variables() -> None:
    G = random_network(7, np.random.default_rng(3), as_dict=False)
    some = list(G)[2:5]
    whole, part = pgcc.compile(bayesian_network(G)), pgcc.compile(bayesian_network(G, keep=some))
    assert part.variables == tuple(some)
    for values in itertools.product((0, 1), repeat=3):
        evidence = dict(zip(some, values, strict=True))
        assert part.prob(evidence) == pytest.approx(whole.prob(evidence), rel=1e-10, abs=1e-300)


def test_a_long_bayesian_chain_is_linear() -> None:
    def size(n: int) -> int:
        G = nx.path_graph(n, create_using=nx.DiGraph)
        for i in G:
            G.nodes[i]["cpt"] = [0.25, 0.5 + 0.25 / (i + 1)] if i else 0.5
        return bayesian_network(G).edges

    assert size(2000) <= 2.01 * size(1000) < 20_000


def test_a_dense_bayesian_network_is_refused_with_its_width() -> None:
    G = nx.DiGraph((i, 100 + 30 * i + j) for i in range(30) for j in range(30))
    G.add_edges_from((i, 100 + 30 * k + i) for i in range(30) for k in range(30) if i != k)
    for node in G:
        G.nodes[node]["cpt"] = np.full((2,) * G.in_degree(node), 0.5)
    with pytest.raises(WidthError, match="induced width"):
        bayesian_network(G)


# -- what is wrong is named -----------------------------------------------------------------------------------------


def graph(**cpts: Any) -> nx.DiGraph:
    G = nx.DiGraph([("a", "b")])
    for node, cpt in cpts.items():
        G.nodes[node]["cpt"] = cpt
    return G


LEAF = {"names": ["b"], "parents": [-1], "probs": [0.5]}
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "no variables": (lambda: chow_liu([], []), "at least one variable"),
    "too few probabilities": (lambda: chow_liu([-1, 0], [0.5]), "2 variables, but probabilities for 1"),
    "no sequence": (lambda: chow_liu(3, [0.5]), "a sequence is needed"),
    "parent out of range": (lambda: chow_liu([-1, 2], [0.5, (0.5, 0.5)]), "the parent of 'x2' is 2"),
    "parent no integer": (lambda: chow_liu([-1, 0.0], [0.5, (0.5, 0.5)]), "whole number"),
    "cycle": (lambda: chow_liu([-1, 2, 1], [0.5, (0.5, 0.5), (0.5, 0.5)]), "the parents of 'x2' form a cycle"),
    "own parent": (lambda: chow_liu([0], [(0.5, 0.5)]), "cycle"),
    "above one": (lambda: chow_liu([-1, 0], [0.5, (0.5, 1.5)]), "Pr(x2 = 1 | parent = 1) is 1.5"),
    "not a number": (lambda: chow_liu([-1], [float("nan")]), "not a number between 0 and 1"),
    "one for a child": (lambda: chow_liu([-1, 0], [0.5, 0.5]), "'x2' has a parent"),
    "three for a child": (lambda: chow_liu([-1, 0], [0.5, (0.5, 0.5, 0.5)]), "two probabilities"),
    "root with two": (lambda: chow_liu([-1], [(0.5, 0.6)]), "'x1' is a root"),
    "names too few": (lambda: chow_liu([-1, 0], [0.5, (0.5, 0.5)], names=["a"]), "2 variables, but 1 name"),
    "names equal": (lambda: chow_liu([-1, -1], [0.5, 0.5], names=["a", "a"]), "called 'a'"),
    "name no text": (lambda: chow_liu([-1], [0.5], names=[3]), "name"),
    "weights": (lambda: naive_bayes([0.5, 0.6], [[0.5], [0.5]]), "add up to 1.1"),
    "components": (lambda: naive_bayes([0.5, 0.5], [[0.5]]), "2 weights, but probabilities for 1"),
    "ragged": (lambda: naive_bayes([0.5, 0.5], [[0.5], [0.5, 0.5]]), "different numbers"),
    "component": (lambda: naive_bayes([1], [[-0.5]]), "Pr(x1 = 1 | component 0) is -0.5"),
    "no components": (lambda: naive_bayes([], []), "add up to 0.0"),
    "length": (lambda: hmm([1], [[1]], [0.5], 0), "at least one observation"),
    "length no integer": (lambda: hmm([1], [[1]], [0.5], 2.5), "whole number"),
    "initial": (lambda: hmm([0.5, 0.4], np.eye(2), [0.5, 0.5], 3), "initial probabilities add up to 0.9"),
    "transition": (lambda: hmm([0.5, 0.5], [[1, 0], [0.5, 0.4]], [0.5, 0.5], 3), "from state 1 add up to 0.9"),
    "transition shape": (lambda: hmm([0.5, 0.5], [[1], [1]], [0.5, 0.5], 3), "2×2"),
    "emission": (lambda: hmm([0.5, 0.5], np.eye(2), [0.5], 3), "2 emissions"),
    "emission range": (lambda: hmm([1], [[1]], [2], 3), "Pr(observation = 1 | state 0) is 2"),
    "decision": (lambda: cutset_network(("a", 0.5, None)), "not 3 items"),
    "branches differ": (lambda: cutset_network(("a", 0.5, None, LEAF)), "only one branch has the variable 'b'"),
    "again": (lambda: cutset_network(("b", 0.5, LEAF, LEAF)), "the variable occurs again"),
    "leaf": (lambda: cutset_network(("a", 0.5, 3, 3)), "a leaf of a cutset network"),
    "a list": (lambda: cutset_network(["a", 0.5, None, None]), "a leaf of a cutset network"),
    "leaf lacks": (lambda: cutset_network({"names": ["b"]}), "names, parents and probs"),
    "decision p": (lambda: cutset_network(("a", 7, None, None)), "Pr(a = 1) is 7"),
    "decision name": (lambda: cutset_network(([], 0.5, None, None)), "name"),
    "cutset names": (lambda: cutset_network(("a", 0.5, None, None), names=["b"]), "not those of the network: 'a'"),
    "nothing": (lambda: cutset_network(None), "at least one variable"),
    "not a graph": (
        lambda: bayesian_network([("a", 0.5)]),
        "networkx.DiGraph, a dict of tables, or a network of pgmpy or",
    ),
    "undirected": (lambda: bayesian_network(nx.path_graph(2)), "not Graph"),
    "directed cycle": (lambda: bayesian_network(nx.DiGraph([("a", "b"), ("b", "a")])), "a → b"),
    "no table": (lambda: bayesian_network(graph(a=0.5)), "'b' has no table"),
    "a cell is missing": (lambda: bayesian_network(graph(a=0.5, b={(0,): 0.5})), "(1,) is missing"),
    "table shape": (
        lambda: bayesian_network(graph(a=0.5, b=[0.5] * 3)),
        "the table of 'b' has the shape (3,); with 1 parent it needs the shape (2,): Pr(x = 1) for all values of its",
    ),
    "table pair": (
        lambda: bayesian_network(graph(a=[0.5, 0.5], b=[0, 1])),
        "the table of 'a' has the shape (2,); with no parents it needs one number, Pr(x = 1)",
    ),
    "table range": (lambda: bayesian_network(graph(a=0.5, b=[0.5, 3])), "Pr(b=1 | a=1) is 3"),
    "equal names": (lambda: bayesian_network(nx.DiGraph([(1, "1")])), "called '1'"),
    "keep": (lambda: bayesian_network(graph(a=0.5, b=[0, 1]), keep=["c"]), "cannot keep 'c'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    build, message = MISTAKES[mistake]
    with pytest.raises(CircuitError) as caught:
        build()
    assert message in str(caught.value)

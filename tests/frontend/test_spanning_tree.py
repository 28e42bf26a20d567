"""Spanning trees, forests and arborescences against enumeration over all sets of edges, and closed forms."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.determinants import forms
from pgcc.determinants.forms import FloatDeterminant
from pgcc.ir.interpret import probability
from pgcc.program.det_structure import DetStructure

# -- the oracle: all sets of edges, and union-find -----------------------------------------------------------


def components(nodes, edges) -> list[set] | None:
    """The trees of a forest; None if there is a cycle."""
    parts = {node: {node} for node in nodes}
    for u, v in edges:
        if parts[u] is parts[v]:
            return None
        parts[u] |= parts[v]
        for node in parts[v]:
            parts[node] = parts[u]
    return list({id(part): part for part in parts.values()}.values())


def tree_weights(nodes, edges) -> dict[frozenset[int], Fraction]:
    """Π w for every spanning tree, as a set of indices of edges (u, v, w)."""
    found = {}
    for members in combinations(range(len(edges)), len(nodes) - 1):
        if components(nodes, [edges[i][:2] for i in members]) is not None:
            found[frozenset(members)] = math.prod((Fraction(edges[i][2]) for i in members), start=Fraction(1))
    return found


def forest_weights(nodes, edges, rates) -> dict[frozenset[int], Fraction]:
    found = {}
    for size in range(len(nodes)):
        for members in combinations(range(len(edges)), size):
            parts = components(nodes, [edges[i][:2] for i in members])
            if parts is not None:
                weight = math.prod((Fraction(edges[i][2]) for i in members), start=Fraction(1))
                roots = math.prod((sum(Fraction(rates[v]) for v in part) for part in parts), start=Fraction(1))
                found[frozenset(members)] = weight * roots
    return found


def arborescence_weights(nodes, edges, root, away) -> dict[frozenset[int], Fraction]:
    """Every node but the root has one edge that enters (leaves) it, and the edges are a tree."""
    found = {}
    for members, weight in tree_weights(nodes, edges).items():
        ends = [edges[i][1 if away else 0] for i in members]
        if sorted(ends) == sorted(set(nodes) - {root}):
            found[members] = weight
    return found


def check(circuit: pgcc.Circuit, weights: dict[frozenset[int], Fraction], rng: random.Random, rtol=1e-12) -> None:
    """Queries of three kinds: the total, every edge alone, and random evidence on some edges."""
    k = len(circuit.variables)
    total = sum(weights.values())
    assert probability(circuit, {}) == total
    rows = [[-1] * k]
    rows += [[value if i == j else -1 for j in range(k)] for i in range(k) for value in (0, 1)]
    if k <= 6:
        rows = [list(row) for row in product((1, 0, -1), repeat=k)]
    else:
        rows += [[rng.choice((1, 0, -1, -1)) for _ in range(k)] for _ in range(60)]
        rows += [[int(i in members) for i in range(k)] for members in list(weights)[:20]]
    expected = []
    for row in rows:
        fits = (w for m, w in weights.items() if all(x < 0 or x == (i in m) for i, x in enumerate(row)))
        expected.append(float(sum(fits, Fraction(0)) / total))
    got = pgcc.compile(circuit).prob(np.array(rows, dtype=np.int8).reshape(len(rows), k))
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=0)


def random_weight(rng: random.Random, kind: str):
    match kind:
        case "one":
            return 1
        case "integer":
            return rng.randint(1, 9)
        case "fraction":
            return Fraction(rng.randint(1, 9), rng.randint(1, 9))
        case "wide":
            return 10 ** rng.uniform(-20, 20)
    return rng.uniform(0.1, 3)


def random_edges(rng: random.Random, n: int, kind: str, parallel: bool) -> list[tuple]:
    """A random tree and up to 8 more edges; in a multigraph some run beside others."""
    edges = [(rng.randrange(v), v) for v in range(1, n)]
    for _ in range(rng.randint(0, 8)):
        u, v = sorted(rng.sample(range(n), 2))
        if parallel or (u, v) not in edges:
            edges.append((u, v))
    if parallel:
        edges.append(rng.choice(edges))
    return [(u, v, random_weight(rng, kind)) for u, v in edges]


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_on_a_sum_over_trees(seed):
    """Star–mesh elimination alone: its bound covers what it is off."""
    rng = random.Random(seed)
    edges = random_edges(rng, 9, "float", True)
    circuit = pgcc.spanning_tree(edges)
    (structure,) = pgcc.compile(circuit)._compiled.float64.program.structures
    mantissa, exponent, off = FloatDeterminant(structure, np.ones(structure.children)).total
    exactly = sum(tree_weights(range(9), edges).values())
    assert 0.0 < off < 1e-13
    assert abs(Fraction(mantissa) * Fraction(2) ** exponent / exactly - 1) <= Fraction(off)


KINDS = ["one", "integer", "fraction", "float", "wide"]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed):
    rng = random.Random(seed)
    n = rng.randint(2, 7)
    parallel = bool(seed % 2)
    edges = random_edges(rng, n, KINDS[seed % 5], parallel)
    G = nx.MultiGraph() if parallel else nx.Graph()
    G.add_nodes_from(range(n))
    for u, v, w in edges:
        G.add_edge(u, v, weight=w)
    circuit = pgcc.spanning_tree(G)
    ordered = [(u, v, w) for u, v, w in G.edges(data="weight")]
    assert len(circuit.variables) == len(ordered)
    check(circuit, tree_weights(range(n), ordered), rng, rtol=1e-9 if KINDS[seed % 5] == "wide" else 1e-12)
    assert pgcc.spanning_tree(ordered).edges == circuit.edges


@pytest.mark.parametrize("seed", range(10))
def test_random_forests(seed):
    rng = random.Random(100 + seed)
    n = rng.randint(1, 5)
    edges = random_edges(rng, n, KINDS[seed % 4], bool(seed % 2)) if n > 1 else []
    rates = {v: rng.choice([0, 1, Fraction(1, 3), 2.5]) for v in range(n)}
    rates[rng.randrange(n)] = 2
    G = nx.MultiGraph()
    G.add_nodes_from((v, {"q": q}) for v, q in rates.items())
    G.add_edges_from((u, v, {"weight": w}) for u, v, w in edges)
    ordered = [(u, v, w) for u, v, w in G.edges(data="weight")]
    circuit = pgcc.spanning_forest(G, killing=rates)
    check(circuit, forest_weights(range(n), ordered, rates), rng)
    assert pgcc.spanning_forest(G, killing="q") == circuit
    check(pgcc.spanning_forest(G), forest_weights(range(n), ordered, dict.fromkeys(range(n), 1)), rng)


@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_random_arborescences(seed, away):
    rng = random.Random(200 + seed)
    n = rng.randint(2, 5)
    root = rng.randrange(n)
    order = [root, *(v for v in range(n) if v != root)]
    edges = [(order[rng.randrange(i)], order[i]) for i in range(1, n)]
    edges += [tuple(rng.sample(range(n), 2)) for _ in range(rng.randint(0, 7))]
    ends = edges if away else [(v, u) for u, v in edges]
    G = nx.MultiDiGraph()
    G.add_nodes_from(range(n))
    G.add_edges_from((u, v, {"weight": random_weight(rng, KINDS[seed % 4])}) for u, v in ends)
    ordered = [(u, v, w) for u, v, w in G.edges(data="weight")]
    circuit = pgcc.arborescence(G, root, orientation="out" if away else "in")
    check(circuit, arborescence_weights(list(range(n)), ordered, root, away), rng)


def test_against_networkx():
    G = nx.gnm_random_graph(6, 10, seed=3)
    trees = list(nx.SpanningTreeIterator(G))
    assert probability(pgcc.spanning_tree(G), {}) == len(trees)
    model = pgcc.compile(pgcc.spanning_tree(G))
    for u, v in G.edges:
        share = sum(T.has_edge(u, v) for T in trees) / len(trees)
        assert model.prob({f"{u}-{v}": 1}) == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_cayley(n):
    assert probability(pgcc.spanning_tree(nx.complete_graph(n)), {}) == n ** (n - 2)


@pytest.mark.parametrize("n", [10, 25])
def test_cayley_and_forests_of_large_graphs(n):
    """Trees of K_n that contain a forest with m components of sizes c_i: Π c_i · n^(m − 2)."""
    circuit = pgcc.spanning_tree(nx.complete_graph(n))
    raw = pgcc.compile(circuit, normalize=False)
    assert raw.logprob({}) == pytest.approx((n - 2) * math.log(n), rel=1e-12)
    model = pgcc.compile(circuit)
    forest = ["0-1", "1-2", "3-4", "5-6", "6-7"]
    sizes = [3, 2, 3] + [1] * (n - 8)
    expected = math.prod(sizes) * float(Fraction(n) ** (len(sizes) - n))
    assert model.prob(dict.fromkeys(forest, 1)) == pytest.approx(expected, rel=1e-11)
    assert model.prob({"0-1": 1}) == pytest.approx(2 / n, rel=1e-12)
    assert model.prob({"0-1": 1, "0-2": 1, "1-2": 1}) == 0


def test_a_path_with_a_tiny_edge():
    model = pgcc.compile(pgcc.spanning_tree([("a", "b", 1.0), ("b", "c", 1e-20), ("c", "d", 3.0)]))
    assert model.prob([[1, 1, 1]]) == [1.0]
    assert model.prob({"b-c": 0}) == 0


def test_bridges_are_always_in():
    model = pgcc.compile(pgcc.spanning_tree(nx.barbell_graph(3, 0)))
    assert model.prob({"2-3": 1}) == 1
    assert model.prob({"2-3": 0}) == 0


def test_the_kernel_of_the_trees():
    """The tree measure is the projection DPP with kernel W^½ Bᵀ L⁻¹ B W^½."""
    edges = [(0, 1, 0.5), (1, 2, 2.0), (2, 0, 1.0), (2, 3, 4.0), (3, 0, 0.25)]
    B = np.zeros((3, 5))
    for j, (u, v, _) in enumerate(edges):
        for node, sign in ((u, 1), (v, -1)):
            if node < 3:
                B[node, j] = sign
    W = np.diag([w for _, _, w in edges])
    root = np.sqrt(W)
    K = root @ B.T @ np.linalg.solve(B @ W @ B.T, B @ root)
    trees, items = pgcc.compile(pgcc.spanning_tree(edges)), pgcc.compile(pgcc.dpp(K=(K + K.T) / 2))
    rows = np.array(list(product((1, 0, -1), repeat=5)), dtype=np.int8)
    np.testing.assert_allclose(trees.prob(rows), items.prob(rows), rtol=1e-10, atol=1e-14)


# -- details -------------------------------------------------------------------------------------------------


def test_names():
    assert pgcc.spanning_tree(nx.path_graph(["a", "b", "c"])).variables == ("a-b", "b-c")
    G = nx.MultiGraph([("a", "b", "road"), ("a", "b", "rail"), ("b", "c")])
    assert pgcc.spanning_tree(G).variables == ("a-b#road", "a-b#rail", "b-c")
    assert pgcc.spanning_tree([(1, 2), (2, 1), (2, 3)]).variables == ("1-2#0", "2-1#1", "2-3")
    assert pgcc.arborescence([(1, 2), (2, 1)], root=1).variables == ("1->2", "2->1")
    assert pgcc.spanning_tree([(1, 2), (2, 3)], names={(2, 1): "p", (2, 3): "q"}).variables == ("p", "q")
    assert pgcc.spanning_tree([(1, 2), (2, 3)], names=lambda edge: f"e{edge[0]}").variables == ("e1", "e2")
    assert pgcc.spanning_tree(G, names=lambda edge: str(edge[2])).variables == ("road", "rail", "0")


def test_weights():
    G = nx.Graph()
    G.add_edge("a", "b", weight=2, cost=5)
    G.add_edge("b", "c")
    G.add_edge("c", "a", weight=3)
    assert probability(pgcc.spanning_tree(G), {}) == 2 * 1 + 1 * 3 + 3 * 2
    assert probability(pgcc.spanning_tree(G, weight="cost"), {}) == 5 + 1 + 5
    assert probability(pgcc.spanning_tree(G, weight=None), {}) == 3
    assert probability(pgcc.spanning_tree([("a", "b", {"weight": 7})]), {}) == 7
    U, V = pgcc.spanning_tree([(0, 1, np.float32(0.5)), (1, 2, np.int64(3))]).root.matrices[1:]
    assert U.is_float
    assert V.is_float
    exact = pgcc.spanning_tree([(0, 1, Fraction(1, 3)), (1, 2, 0.5)])
    assert probability(exact, {}) == Fraction(1, 6)
    assert probability(pgcc.spanning_tree([(0, 1, 2**60 + 1)]), {}) == 2**60 + 1


def test_edges_of_weight_zero_are_never_in():
    model = pgcc.compile(pgcc.spanning_tree([(0, 1), (1, 2), (0, 2, 0)]))
    assert model.prob({"0-2": 1}) == 0
    assert model.prob({"0-1": 1, "1-2": 1, "0-2": 0}) == 1


def test_edges_into_the_root_are_never_in():
    model = pgcc.compile(pgcc.arborescence([("r", "a"), ("a", "r")], root="r"))
    assert model.prob({"a->r": 1}) == 0


def test_one_node():
    G = nx.Graph()
    G.add_node("a")
    for circuit in (pgcc.spanning_tree(G), pgcc.arborescence(G.to_directed(), "a")):
        assert circuit.variables == ()
        assert probability(circuit, {}) == 1
        assert pgcc.compile(circuit).prob({}) == 1
    assert probability(pgcc.spanning_forest(G, killing=3), {}) == 3


@pytest.mark.parametrize("function", ["spanning_tree", "spanning_forest", "arborescence"])
def test_self_loops_are_ignored_with_a_word(function):
    arguments = {"root": "a"} if function == "arborescence" else {}
    arrow = "->" if function == "arborescence" else "-"
    with pytest.warns(UserWarning, match=f"no tree and are ignored: b{arrow}b") as caught:
        circuit = getattr(pgcc, function)([("a", "b"), ("b", "b", 5)], **arguments)
    assert circuit.variables == (f"a{arrow}b",)
    assert caught[0].filename == __file__


def test_forests_of_several_components():
    circuit = pgcc.spanning_forest([("a", "b"), ("c", "d", 2)], killing={"a": 1, "d": 3})
    assert probability(circuit, {}) == 1 * 2 * 3
    assert pgcc.compile(circuit).prob({"a-b": 1, "c-d": 1}) == 1


# -- what is refused -----------------------------------------------------------------------------------------

TREE, FOREST, ARBORESCENCE = "spanning_tree", "spanning_forest", "arborescence"
PATH = [("ann", "bob"), ("bob", "cat")]


def of_weight(w) -> list:
    return [("ann", "bob", w), ("bob", "cat", 1)]


MALFORMED = {
    "empty": (TREE, ([],), {}, "spanning_tree: the graph has no nodes"),
    "empty graph": (TREE, (nx.Graph(),), {}, "the graph has no nodes"),
    "directed": (TREE, (nx.DiGraph(PATH),), {}, r"not a DiGraph: pgcc.arborescence\(G, root\)"),
    "directed forest": (FOREST, (nx.MultiDiGraph(PATH),), {}, "spanning_forest takes an undirected graph"),
    "undirected": (ARBORESCENCE, (nx.Graph(PATH), "ann"), {}, r"not a Graph: pgcc.spanning_tree\(G\)"),
    "disconnected": (
        TREE,
        ([("ann", "bob"), ("cat", "dan")],),
        {},
        "not connected: .* from 'ann' to 'cat' .*2 components",
    ),
    "disconnected by a zero": (TREE, ([*PATH, ("cat", "dan", 0)],), {}, "not connected: .* from 'ann' to 'dan'"),
    "an isolated node": (TREE, (nx.empty_graph(2),), {}, "from 0 to 1"),
    "negative": (TREE, (of_weight(-2),), {}, "the weight of edge 'ann-bob' is negative: -2"),
    "nan": (TREE, (of_weight(math.nan),), {}, "the weight of edge 'ann-bob': nan is not"),
    "inf": (TREE, (of_weight(math.inf),), {}, "the weight of edge 'ann-bob': inf is not"),
    "complex": (TREE, (of_weight(1j),), {}, "the weight of edge 'ann-bob': 1j .* not a real number"),
    "text": (TREE, (of_weight("heavy"),), {}, "the weight of edge 'ann-bob' is the text 'heavy'"),
    "nothing": (TREE, (of_weight(None),), {}, "the weight of edge 'ann-bob': None"),
    "a list": (TREE, (of_weight([1]),), {}, r"the weight of edge 'ann-bob': \[1\]"),
    "negative arc": (ARBORESCENCE, (of_weight(-1), "ann"), {}, "the weight of edge 'ann->bob' is negative"),
    "four values": (TREE, ([("ann", "bob", 1, 2)],), {}, r"edge 0 is \('ann', 'bob', 1, 2\), not \(u, v\)"),
    "one value": (TREE, ([*PATH, ("dan",)],), {}, r"edge 2 is \('dan',\)"),
    "no tuple": (TREE, (["ab"],), {}, "edge 0 is 'ab', not"),
    "no list": (TREE, (7,), {}, "takes a networkx graph or a list of edges .* not 7"),
    "only text": (TREE, ("ann bob",), {}, "takes a networkx graph or a list of edges"),
    "unhashable": (TREE, ([([1], [2])],), {}, "a node has to be hashable"),
    "a root that is no node at all": (ARBORESCENCE, (PATH, ["a"]), {}, r"the root \['a'\] is not a node"),
    "no name of an attribute": (TREE, (PATH, ["w"]), {}, r"weight=\['w'\] is not the name of an attribute"),
    "no such root": (ARBORESCENCE, (PATH, "zoe"), {}, "the root 'zoe' is not a node"),
    "unreachable": (ARBORESCENCE, (PATH, "bob"), {}, "leads from the root 'bob' to 'ann'"),
    "not reaching": (ARBORESCENCE, (PATH, "ann"), {"orientation": "in"}, "leads from 'bob' to the root 'ann'"),
    "sideways": (ARBORESCENCE, (PATH, "ann"), {"orientation": "up"}, "orientation='up'"),
    "no killing": (FOREST, (PATH,), {"killing": 0}, "no root is possible in the component of node 'ann'"),
    "killing elsewhere": (
        FOREST,
        ([*PATH, ("dan", "eve")],),
        {"killing": {"ann": 1}},
        r"no root is possible in the component of node 'dan' \(2 nodes\)",
    ),
    "killing a stranger": (FOREST, (PATH,), {"killing": {"zoe": 1}}, "a rate for 'zoe', which is not a node"),
    "negative killing": (FOREST, (PATH,), {"killing": {"bob": -1}}, "the killing rate of node 'bob' is negative"),
    "nan killing": (FOREST, (PATH,), {"killing": math.nan}, "the killing rate of node 'ann': nan"),
    "no attribute": (FOREST, (nx.Graph(PATH),), {"killing": "rate"}, "killing='rate': no node of the graph has"),
    "attribute of a list": (FOREST, (PATH,), {"killing": "rate"}, "a list of edges has none"),
    "unprintable": (TREE, ([("a\n", "b")],), {}, r"cannot be called 'a\\n-b'; names="),
    "clash": (TREE, ([("a-b", "c"), ("a", "b-c"), ("c", "a")],), {}, "are both called 'a-b-c'; names="),
    "no name": (TREE, (PATH,), {"names": {("ann", "bob"): "x"}}, r"names has no name for the edge \('bob', 'cat'\)"),
    "names that are none": (TREE, (PATH,), {"names": 3}, "names is a mapping from edges"),
    "a name that is none": (TREE, (PATH,), {"names": lambda edge: 5}, "cannot be called 5"),
    "equal names": (TREE, (PATH,), {"names": lambda edge: "x"}, "are both called 'x'"),
    "too large": (TREE, (nx.star_graph(9000),), {}, "9,000×9,000 entries, and the limit is"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_malformed(what):
    function, arguments, options, message = MALFORMED[what]
    with pytest.raises(pgcc.PgccError, match=message):
        getattr(pgcc, function)(*arguments, **options)


def test_there_are_enough_of_them():
    assert len(MALFORMED) >= 25


@pytest.mark.parametrize("prefers_trees", [False, True])
def test_large_graphs_by_elimination(monkeypatch, prefers_trees):
    """Values of a grid of 529 nodes took 25 s: its base was found in multiple precision, and errors grew with r²."""
    graph = nx.grid_2d_graph(5, 5)
    for i, edge in enumerate(graph.edges.values()):
        edge["weight"] = 10.0 ** (i % 7 - 3)
    circuit = pgcc.spanning_tree(graph)
    rows = np.full((40, len(circuit.variables)), -1, np.int8)
    rows[np.arange(40), np.arange(40)] = 1
    rows[1:, 0] = 0
    rows[20:, 39] = 0
    expected = pgcc.compile(circuit).prob(rows)
    exactly = [float(pgcc.compile(circuit).prob(row, exact=True)) for row in rows[:3]]
    monkeypatch.setattr(forms, "_MOST_PRODUCTS", 0 if prefers_trees else 10**9)
    model = pgcc.compile(circuit)
    found = model.prob(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(found[:3], exactly, rtol=1e-9)
    if prefers_trees:
        assert all(one.free is None for one in model._compiled.float64.staged.dets.each)
        model.marginals(rows[:2])  # which find the base
        np.testing.assert_array_equal(model.prob(rows), found)


def test_errors_of_elimination_grow_with_neighbours():
    """On a path of 2,000 nodes every node has at most two neighbours."""
    path = [(i, i + 1, 1.0 + i % 3) for i in range(2000)]
    one = forms.FloatDeterminant(DetStructure.of(pgcc.spanning_tree(path).root), np.ones(2000))
    mantissa, exponent, error = one.total
    assert error < 2e-11 / 4.0
    expected = math.prod(Fraction(w) for *_, w in path)
    assert abs(Fraction(mantissa) * Fraction(2) ** exponent / expected - 1) <= Fraction(error)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_nodes_are_eliminated_in_an_order_of_all(seed, n):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(n, float(rng.uniform(0.2, 1.0)), seed=seed)
    nx.add_path(graph, range(n))
    one = forms.FloatDeterminant(DetStructure.of(pgcc.spanning_tree(graph).root), np.ones(graph.number_of_edges()))
    assert sorted(one.elimination_order.tolist()) == list(range(n - 1))

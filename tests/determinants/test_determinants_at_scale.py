"""DPPs and spanning trees past what can be enumerated: ball arithmetic and closed forms; and mixtures of everything."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, product

import flint
import networkx as nx
import numpy as np
import pytest

import pgcc
from pgcc import pc

# -- DPPs against ball arithmetic ----------------------------------------------------------------------------------


class Reference:
    """Pr(A in, B out) of the L-ensemble with exactly these entries, as a ball."""

    def __init__(self, L: np.ndarray, bits: int = 600):
        self.bits = bits
        with flint.ctx.workprec(bits):
            n = len(L)
            exact = flint.arb_mat(n, n, [flint.arb(x) for x in L.ravel().tolist()])
            shifted = exact + flint.arb_mat(n, n, np.eye(n, dtype=int).ravel().tolist())
            self.L, self.K, self.total = exact.tolist(), shifted.solve(exact).tolist(), shifted.det()

    def __call__(self, row: np.ndarray) -> flint.arb:
        inside, outside = np.flatnonzero(row == 1).tolist(), np.flatnonzero(row == 0).tolist()
        with flint.ctx.workprec(self.bits):
            if len(inside) + len(outside) == len(row):
                value = flint.arb_mat([[self.L[i][j] for j in inside] for i in inside]).det() / self.total
            else:  # in: a row of K; out: a row of I − K
                rows = [[self.K[i][j] for j in inside + outside] for i in inside]
                rows += [[int(i == j) - self.K[i][j] for j in inside + outside] for i in outside]
                value = flint.arb_mat(rows).det()
            assert value.rel_accuracy_bits() > 70
            return value


def assert_right(model: pgcc.Model, reference: Callable[[np.ndarray], flint.arb], rows: np.ndarray) -> None:
    """`prob` to 1e-9 relative, within its bound; `logprob` too, where `prob` is below the range of floats."""
    probs, bounds = model.prob(rows, bound=True)
    logs = model.logprob(rows)
    for row, prob, bound, log in zip(rows, probs.tolist(), bounds.tolist(), logs.tolist(), strict=True):
        true = reference(row)
        if true.log() > -690:
            error = abs(prob / true - 1)
            assert error < 1e-9
            assert error <= bound
        assert abs(log - true.log()) < 1e-9 + 1e-15 * abs(log)


def random_queries(count: int, n: int, most: int, seed: int) -> np.ndarray:
    """From 1 to `most` variables in, as many out, the rest free; every fifth row is full."""
    rng = np.random.default_rng(seed)
    ones, zeros = rng.integers(1, most + 1, (2, count, 1))
    zeros[::5] = n
    rank = rng.random((count, n)).argsort(axis=1).argsort(axis=1)
    return np.where(rank < ones, 1, np.where(rank < ones + zeros, 0, -1)).astype(np.int8)


def random_psd(n: int, seed: int = 0) -> np.ndarray:
    B = np.random.default_rng(seed).standard_normal((n, n))
    return B @ B.T / n


def rbf(n: int, dimensions: int, length: float) -> np.ndarray:
    points = np.random.default_rng(0).random((n, dimensions))
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * length**2)) + 1e-10 * np.eye(n)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("kind", ["random", "rbf 3-d", "rbf 2-d"])
def test_kernels_at_scale(kind, n):
    L = {"random": random_psd(n), "rbf 3-d": rbf(n, 3, 0.3), "rbf 2-d": rbf(n, 2, 0.5)}[kind]
    assert_right(pgcc.compile(pgcc.dpp(L=L)), Reference(L), random_queries(40, n, n // 10, seed=n))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_scaled_kernels(scale):
    L = random_psd(40) * scale
    assert_right(pgcc.compile(pgcc.dpp(L=L)), Reference(L), random_queries(40, 40, 20, seed=1))


@pytest.mark.parametrize("scale", [1e-12, 1e-30])
def test_far_below_the_range_of_floats(scale):
    L = random_psd(40) * scale
    rows = random_queries(20, 40, 30, seed=2)
    rows[0] = 1
    model = pgcc.compile(pgcc.dpp(L=L))
    assert model.logprob(rows[0]) < -700
    assert_right(model, Reference(L), rows)


def test_near_duplicates():
    rng = np.random.default_rng(3)
    B = rng.standard_normal((12, 12))
    B[1] = B[0] + 1e-12 * rng.standard_normal(12)
    B[2] = B[0] + 1e-9 * rng.standard_normal(12)
    model = pgcc.compile(pgcc.dpp(factor=B))
    with flint.ctx.workprec(600):
        exact = flint.arb_mat([[flint.arb(x) for x in row] for row in B.tolist()])
        gram = (exact * exact.transpose()).tolist()
        identity = flint.arb_mat(12, 12, np.eye(12, dtype=int).ravel().tolist())
        total = (exact * exact.transpose() + identity).det()

    def reference(row: np.ndarray) -> flint.arb:
        """det(diag(not out)·L + diag(not in)) / det(I + L)"""
        with flint.ctx.workprec(600):
            mixed = [
                [int(row[i] != 0) * x + int(i == j and row[i] != 1) for j, x in enumerate(line)]
                for i, line in enumerate(gram)
            ]
            return flint.arb_mat(mixed).det() / total

    rows = random_queries(60, 12, 6, seed=4)
    rows[:30, :3] = 1
    assert_right(model, reference, rows)


# -- spanning trees: closed forms ------------------------------------------------------------------------------------


def log_probability_of_forest(n: int, edges: list[tuple[int, int]]) -> float:
    """log of Π component sizes · n^(m − 2) / n^(n − 2): the trees of K_n that contain a forest with m components."""
    graph = nx.empty_graph(n)
    graph.add_edges_from(edges)
    sizes = [len(part) for part in nx.connected_components(graph)]
    assert len(sizes) == n - len(edges)
    return sum(map(math.log, sizes)) - len(edges) * math.log(n)


def random_forest(n: int, count: int, seed: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    tree = [tuple(sorted((order[i], order[int(rng.integers(i))]))) for i in range(1, n)]
    return [tree[i] for i in rng.choice(n - 1, count, replace=False)]


def edge(u: int, v: int) -> str:
    return f"{u}-{v}"


@pytest.mark.slow
def test_cayley():
    model = pgcc.compile(pgcc.spanning_tree(nx.complete_graph(200)), normalize=False)
    assert model.logprob({}) == pytest.approx(198 * math.log(200), rel=1e-12, abs=0)


@pytest.mark.slow
def test_forests_in_the_complete_graph():
    n = 200
    model = pgcc.compile(pgcc.spanning_tree(nx.complete_graph(n)))
    assert model.prob({"0-1": 1}) == pytest.approx(2 / n, rel=1e-12, abs=0)
    assert model.prob({"17-120": 0}) == pytest.approx(1 - 2 / n, rel=1e-12, abs=0)
    for count in (2, 10, 50, 150, n - 1):
        forest = random_forest(n, count, seed=count)
        expected = log_probability_of_forest(n, forest)
        inside = {edge(u, v): 1 for u, v in forest}
        assert model.logprob(inside) == pytest.approx(expected, rel=1e-12, abs=0)
        if count < 100:
            assert model.prob(inside) == pytest.approx(math.exp(expected), rel=1e-12, abs=0)
        # The last edge out: Pr(rest) − Pr(all).
        u, v = forest[-1]
        without = log_probability_of_forest(n, forest[:-1])
        expected = without + math.log1p(-math.exp(log_probability_of_forest(n, forest) - without))
        assert model.logprob(inside | {edge(u, v): 0}) == pytest.approx(expected, rel=1e-12, abs=0)
    cycle = {"0-1": 1, "1-2": 1, "0-2": 1}
    assert model.prob(cycle) == 0.0


@pytest.mark.parametrize("nodes", [3, 30])
def test_path_with_a_tiny_edge(nodes):
    graph = nx.path_graph(nodes)
    rng = np.random.default_rng(0)
    weights = [*rng.uniform(0.5, 2.0, nodes - 2).tolist(), 1e-20]
    for (_, _, data), weight in zip(graph.edges(data=True), rng.permutation(weights).tolist(), strict=True):
        data["weight"] = weight
    circuit = pgcc.spanning_tree(graph)
    model = pgcc.compile(circuit)
    for name in circuit.variables:
        assert model.prob({name: 1}) == pytest.approx(1.0, rel=1e-15, abs=0)
        assert model.prob({name: 0}) == 0.0
    total = math.prod(map(Fraction, weights))
    raw = pgcc.compile(circuit, normalize=False)
    assert raw.prob({}) == pytest.approx(float(total), rel=1e-14, abs=0)
    assert raw.prob({}, exact=True) == total


def trees_of(graph: nx.Graph) -> dict[tuple[int, ...], Fraction]:
    """Π w of each spanning tree, by the row of 0 and 1 of its edges."""
    edges = list(graph.edges(data="weight"))
    found = {}
    for chosen in combinations(range(len(edges)), len(graph) - 1):
        tree = nx.Graph([edges[i][:2] for i in chosen])
        if len(tree) == len(graph) and nx.is_connected(tree):
            row = tuple(int(i in chosen) for i in range(len(edges)))
            found[row] = math.prod((Fraction(edges[i][2]) for i in chosen), start=Fraction(1))
    return found


def answer(table: dict[tuple[int, ...], Fraction], row: np.ndarray) -> Fraction:
    """The sum over what agrees with a row of evidence."""
    seen = [(i, x) for i, x in enumerate(row.tolist()) if x >= 0]
    return sum((w for key, w in table.items() if all(key[i] == x for i, x in seen)), Fraction(0))


@pytest.mark.parametrize("seed", range(3))
def test_weights_across_forty_orders_of_magnitude(seed):
    rng = np.random.default_rng(seed)
    graph = nx.complete_graph(6)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(1, 10) * 10.0 ** rng.integers(-20, 20))
    table = trees_of(graph)
    total = sum(table.values())
    rows = rng.choice(np.array([1, 0, -1, -1], np.int8), (100, 15))
    rows[:15], rows[15:30] = -1, -1
    rows[np.arange(15), np.arange(15)], rows[np.arange(15, 30), np.arange(15)] = 1, 0
    rows[30:60] = np.where(rng.random((30, 15)) < 0.3, np.array(list(table))[rng.integers(len(table), size=30)], -1)
    got = pgcc.compile(pgcc.spanning_tree(graph)).prob(rows)
    for row, value in zip(rows, got.tolist(), strict=True):
        true = answer(table, row) / total
        assert abs(Fraction(value) - true) <= true * Fraction(1, 10**12)


@pytest.mark.parametrize("seed", range(4))
def test_trees_are_a_projection_process(seed):
    """The kernel is W^½ Bᵀ L⁻¹ B W^½; the paper doubts that there is one."""
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(8, 16, seed=seed)
    while not nx.is_connected(graph):
        graph = nx.gnm_random_graph(8, 16, seed=int(rng.integers(10**6)))
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.1, 3.0))
    edges = list(graph.edges(data="weight"))
    incidence = np.zeros((len(graph), len(edges)))
    for i, (u, v, weight) in enumerate(edges):
        incidence[u, i], incidence[v, i] = math.sqrt(weight), -math.sqrt(weight)
    reduced = incidence[1:]
    K = reduced.T @ np.linalg.solve(reduced @ reduced.T, reduced)
    trees = pgcc.compile(pgcc.spanning_tree(graph))
    process = pgcc.compile(pgcc.dpp(K=(K + K.T) / 2, names=list(trees.variables)))
    rows = rng.choice(np.array([1, 0, -1, -1, -1], np.int8), (300, len(edges)))
    np.testing.assert_allclose(process.prob(rows), trees.prob(rows), rtol=1e-9, atol=1e-14)
    assert (trees.prob(rows) > 0).any()


# -- everything mixed with everything ----------------------------------------------------------------------------------


def weights_of_dpp(L: np.ndarray) -> dict[tuple[int, ...], float]:
    """det L_S for every set."""
    rows = product((0, 1), repeat=len(L))
    return {row: float(np.linalg.det(L[np.ix_(np.flatnonzero(row), np.flatnonzero(row))])) for row in rows}


def random_pc(names: tuple[str, ...], seed: int) -> tuple[pgcc.Circuit, dict[tuple[int, ...], float]]:
    """A mixture of three products of Bernoullis, and its table."""
    rng = np.random.default_rng(seed)
    weights, chances = rng.dirichlet(np.ones(3)), rng.uniform(0.05, 0.95, (3, len(names)))
    parts = [
        math.prod((pc.bernoulli(name, float(p)) for name, p in zip(names[1:], ps[1:], strict=True)),
                  start=pc.bernoulli(names[0], float(ps[0])))
        for ps in chances
    ]  # fmt: skip
    circuit = float(weights[0]) * parts[0] + float(weights[1]) * parts[1] + float(weights[2]) * parts[2]
    table = {}
    for row in product((0, 1), repeat=len(names)):
        table[row] = float(weights @ np.where(row, chances, 1 - chances).prod(axis=1))
    return circuit.to_pgc(), table


def as_array(table: dict[tuple[int, ...], float], n: int) -> np.ndarray:
    array = np.zeros((2,) * n)
    for row, weight in table.items():
        array[row] = weight
    return array


def assert_same(circuit: pgcc.Circuit, names: tuple[str, ...], array: np.ndarray, seed: int) -> None:
    """Random queries, from one variable to all, against the array of all probabilities."""
    rng = np.random.default_rng(seed)
    model = pgcc.compile(circuit)
    order = [names.index(name) for name in model.variables]
    array = array.transpose(order) / array.sum()
    observed = rng.random((200, 1)) ** 0.5
    rows = np.where(rng.random((200, len(names))) < observed, rng.integers(0, 2, (200, len(names))), -1)
    expected = [array[tuple(slice(None) if x < 0 else int(x) for x in row)].sum() for row in rows]
    np.testing.assert_allclose(model.prob(rows.astype(np.int8)), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_mixture_of_dpp_pc_and_trees(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(6, 10, seed=seed)
    while not nx.is_connected(graph):
        graph = nx.gnm_random_graph(6, 10, seed=int(rng.integers(10**6)))
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.1, 3.0))
    trees = pgcc.spanning_tree(graph)
    names = trees.variables
    L = random_psd(10, seed)
    process = pgcc.dpp(L=L, names=list(names))
    leaves, table = random_pc(names, seed)
    tree_table = {row: float(weight) for row, weight in trees_of(graph).items()}
    mixed = 0.3 * process / pgcc.compile(process, normalize=False).prob({})
    mixed = mixed + 0.5 * leaves + 0.2 * trees / pgcc.compile(trees, normalize=False).prob({})
    arrays = [as_array(t, 10) for t in (weights_of_dpp(L), table, tree_table)]
    array = sum(w * a / a.sum() for w, a in zip((0.3, 0.5, 0.2), arrays, strict=True))
    assert_same(mixed, names, array, seed)


@pytest.mark.parametrize("seed", range(4))
def test_unnormalised_sum(seed):
    """Without the division, the weights are those of the polynomials; and a second DPP is taken away again."""
    L = random_psd(6, seed) + np.eye(6)
    names = tuple(f"v{i}" for i in range(6))
    leaves, table = random_pc(names, seed)
    small = 0.2 * np.diag(np.diag(L)) / np.abs(L).sum(axis=1).max()
    big = as_array(weights_of_dpp(L), 6)
    tiny = as_array(weights_of_dpp(small), 6)
    array = 2 * big + 3 * as_array(table, 6) - 0.001 * tiny
    assert (array > 0).all()
    circuit = 2 * pgcc.dpp(L=L, names=list(names)) + 3 * leaves - pgcc.dpp(L=small, names=list(names)) / 1000
    assert_same(circuit, names, array, seed)


@pytest.mark.parametrize("seed", range(6))
def test_determinantal_circuit_with_pc_leaves(seed):
    """A DPP chooses among groups of variables, and each group that is chosen has its own distribution."""
    sizes = [(1, 2, 3), (2, 2, 2, 2), (1, 1, 2, 3, 3), (4, 3), (5, 5), (3, 3, 3)][seed]
    k, n = len(sizes), sum(sizes)
    names = tuple(f"v{i}" for i in range(n))
    ends = np.cumsum([0, *sizes]).tolist()
    L = random_psd(k, seed) + 0.1 * np.eye(k)
    leaves, tables = zip(*(random_pc(names[a:b], seed + a) for a, b in pairwise(ends)), strict=True)
    circuit = pgcc.determinant(np.eye(k), np.eye(k), L.T, list(leaves))
    choices = weights_of_dpp(L)
    array = np.zeros((2,) * n)
    for row in product((0, 1), repeat=n):
        groups = [row[a:b] for a, b in pairwise(ends)]
        for chosen, weight in choices.items():
            parts = [t[g] if c else float(not any(g)) for c, g, t in zip(chosen, groups, tables, strict=True)]
            array[row] += weight * math.prod(parts)
    assert_same(circuit, names, array, seed)
    # The same in a mixture with a PC over all of the variables.
    other, table = random_pc(names, seed + 100)
    assert_same(0.01 * circuit + 0.7 * other, names, 0.01 * array + 0.7 * as_array(table, n), seed)

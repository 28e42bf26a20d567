"""Samples have the distribution they should: every sampler against brute force, and biased ones are caught."""

import math
from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import pgcc
from pgcc.testing import brute_force, random_circuit, random_pc

SAMPLES = 100_000
SUSPICIOUS = 1e-4


def p_value(samples, probabilities):
    """Of Pearson's χ² test (by Wilson and Hilferty's approximation) that rows of bits have these probabilities.

    Cells with fewer than 5 expected samples are put together. A sample that is impossible has p = 0.
    """
    n, bits = samples.shape
    counts = np.bincount(samples.astype(np.int64) @ (1 << np.arange(bits)), minlength=1 << bits)
    if counts[probabilities == 0.0].any():
        return 0.0
    expected = n * probabilities
    large = expected >= 5
    cells = [*zip(counts[large], expected[large], strict=True)]
    if expected[~large].sum() > 1:
        cells.append((counts[~large].sum(), expected[~large].sum()))
    freedom = len(cells) - 1
    if freedom < 1:
        return 1.0
    ratio = sum((c - e) ** 2 / e for c, e in cells) / freedom
    z = (ratio ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return math.erfc(z / math.sqrt(2)) / 2


def by_brute_force(circuit, evidence=None):
    """The probability of every set given the evidence; set S stands at Σ_{i ∈ S} 2^i."""
    table = np.zeros(1 << len(circuit.variables))
    place = {name: 1 << i for i, name in enumerate(circuit.variables)}
    for members, value in brute_force(circuit).items():
        if all((name in members) == bool(x) for name, x in (evidence or {}).items()):
            table[sum(place[name] for name in members)] = value
    assert (table >= 0).all()
    return table / table.sum()


def by_query(model, evidence=None):
    """The same by a query for every set: what is certified, and has nothing in common with sampling."""
    n = len(model.variables)
    sets = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.int8)
    table = model.prob(sets)
    for name, x in (evidence or {}).items():
        table[sets[:, model.variables.index(name)] != x] = 0.0
    return table / table.sum()


def by_minors(L, size=None):
    """Pr(S) ∝ det L_S in floats."""
    n = len(L)
    table = np.zeros(1 << n)
    for k in range(n + 1) if size is None else [size]:
        for members in combinations(range(n), k):
            table[sum(1 << i for i in members)] = max(0.0, np.linalg.det(L[np.ix_(members, members)]))
    return table / table.sum()


def kernel_of(model):
    """How the sampler draws: from the root down, and the sets of determinants by what; "None" if by variable."""
    return repr(model._compiled.sampler if model._compiled.decomposable else None)


# -- the families --------------------------------------------------------------------------------------------

RNG = np.random.default_rng(20)
GRAM = (lambda B: B @ B.T)(RNG.integers(-2, 3, (6, 6)))
SINGULAR = (lambda B: B @ B.T)(RNG.integers(-2, 3, (6, 3)))
SKEW = (lambda A: A - A.T)(RNG.integers(-2, 3, (6, 6)))
HALF = Fraction(1, 2)


def ints(matrix):
    return matrix.tolist()


def graph(directed=False):
    kind = nx.DiGraph if directed else nx.Graph
    g = kind()
    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (2, 4), (0, 4)]
    g.add_weighted_edges_from((u, v, 1 + (3 * u + 5 * v) % 7) for u, v in edges)
    if directed:
        g.add_weighted_edges_from([(3, 1, 2), (4, 2, 5)])
        g.remove_edge(0, 4)
    return g


def leaves():
    return [pgcc.parse("1/2*a*b + 3/10*a + 1/5*b"), pgcc.parse("c"), pgcc.parse("2/5*d*e + 3/5*f")]


def dpp(L, **options):
    return pgcc.dpp(L=ints(L), **options)


def small_kernel():
    return [[HALF, Fraction(1, 4), 0], [Fraction(1, 4), Fraction(2, 3), Fraction(1, 8)], [0, Fraction(1, 8), HALF]]


FAMILIES = {
    "expression": (lambda: pgcc.parse("0.4*a*b*c + 0.3*a*(0.2*b + 0.8*c) + 0.3"), {"b": 0}, "TopDown"),
    "monotone": (lambda: random_circuit(3, n=7, size=40, negative=False), {"z1": 1, "z4": 0}, "TopDown"),
    "pc": (lambda: random_pc(5, n=6).to_pgc(), {"z2": 1}, "TopDown"),
    "dpp L": (lambda: dpp(GRAM), {"x1": 1, "x3": 0, "x6": 1}, "eigenvectors"),
    "dpp singular L": (lambda: dpp(SINGULAR), {"x1": 1, "x3": 0}, "eigenvectors"),
    "dpp K": (lambda: pgcc.dpp(K=small_kernel()), {"x2": 1}, "eigenvectors"),
    "dpp factor": (lambda: pgcc.dpp(factor=RNG.integers(-2, 3, (7, 3)).tolist()), {"x1": 1, "x4": 0}, "eigenvectors"),
    "nonsymmetric L": (lambda: dpp(GRAM + SKEW, symmetric=False), {"x2": 1, "x4": 0}, "elimination"),
    "skew L": (lambda: dpp(SKEW, symmetric=False), {"x2": 1, "x4": 0}, "elimination"),
    "k-dpp": (lambda: dpp(GRAM).observe(size=3), {"x1": 1, "x3": 0}, "eigenvectors"),
    "at most": (lambda: dpp(SINGULAR[:5, :5]).observe(size=(0, 2)), {"x1": 1}, "eigenvectors"),
    "conditioned": (lambda: dpp(GRAM).observe({"x1": 1, "x2": 0}), {"x3": 1}, "eigenvectors"),
    "conditioned k-dpp": (lambda: dpp(GRAM).observe({"x1": 1, "x2": 0}, size=3), {"x3": 1}, "eigenvectors"),
    "conditioned nonsymmetric": (
        lambda: dpp(GRAM + SKEW, symmetric=False).observe({"x1": 1, "x2": 0}), {"x3": 1}, "elimination"
    ),
    "nested": (
        lambda: pgcc.det_pgc(
            ints(GRAM[:3, :3]), [dpp(GRAM[3:5, 3:5]), pgcc.parse("c"), pgcc.spanning_tree([(0, 1, 2), (1, 2), (0, 2)])]
        ),
        {"x1": 1, "0-1": 0}, "random walks",
    ),
    "forest of fixed size": (lambda: pgcc.spanning_forest(graph()).observe(size=2), {"0-1": 1}, "eigenvectors"),
    "thinned": (lambda: dpp(GRAM).thin({"x1": HALF}), {"x1": 0, "x2": 1}, "eigenvectors"),
    "complement": (lambda: dpp(GRAM).complement(), {"x1": 1}, "eigenvectors"),
    "tree": (lambda: pgcc.spanning_tree(graph()), {"0-1": 1, "1-3": 0, "2-3": 1}, "random walks"),
    "forest": (lambda: pgcc.spanning_forest(graph(), killing={0: 2, 3: 1}), {"0-1": 1, "1-2": 0}, "random walks"),
    "arborescence": (lambda: pgcc.arborescence(graph(True), root=0), {"1->2": 0, "2->4": 1}, "random walks"),
    "arborescence in": (
        lambda: pgcc.arborescence(graph(True), root=4, orientation="in"), {"1->3": 0, "0->1": 1}, "random walks"
    ),
    "mixture": (lambda: pgcc.mixture([HALF, HALF], [dpp(GRAM), dpp(SINGULAR)]), {"x2": 1, "x5": 0}, "eigenvectors"),
    "product": (lambda: dpp(GRAM[:3, :3]) * pgcc.spanning_tree(graph()), {"x2": 1, "0-2": 1}, "and random walks"),
    "det_pgc": (lambda: pgcc.det_pgc(ints(GRAM[:3, :3]), leaves()), {"a": 1, "f": 0}, "eigenvectors"),
    "det_pgc K": (lambda: pgcc.det_pgc(K=small_kernel(), leaves=leaves()), {"c": 0, "b": 0}, "eigenvectors"),
    "signed": (lambda: pgcc.parse("(0.1*(z1+1)*(6*z2+1) - 0.4*z1*z2)*(0.8*z3+0.2)"), {"z2": 0}, "None"),
    "entangled": (lambda: random_circuit(4, n=5, negative=False, decomposable=False), {"z1": 1}, "None"),
    "unproven": (lambda: dpp(np.array([[1, 3, 0], [0, 1, 3], [1, 0, 1]]), symmetric=False), {"x2": 1}, "None"),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_have_the_distribution(family):
    make, evidence, sampler = FAMILIES[family]
    circuit = make()
    model = pgcc.compile(circuit)
    assert sampler in kernel_of(model)
    for given in ({}, evidence):
        samples = model.sample(SAMPLES, given, rng=1)
        assert samples.shape == (SAMPLES, len(circuit.variables))
        assert samples.dtype == np.int8
        exact = by_query(model, given) if circuit.facts.dets else by_brute_force(circuit, given)
        assert p_value(samples, exact) > SUSPICIOUS


@pytest.mark.parametrize("kernel", [GRAM, SINGULAR, GRAM + SKEW, SKEW])
def test_minors(kernel):
    """Pr(S) ∝ det L_S, by the definition."""
    symmetric = np.array_equal(kernel, kernel.T)
    samples = pgcc.compile(dpp(kernel, symmetric=symmetric)).sample(SAMPLES, rng=2)
    table = by_minors(kernel.astype(float))
    assert p_value(samples, np.where(table > 1e-12, table, 0.0)) > SUSPICIOUS


@pytest.mark.parametrize("rank", [2, 4])
def test_projections(rank):
    """Of a projection kernel K = Q·Qᵀ, Pr(S) = det K_S for |S| = rank."""
    Q, _ = np.linalg.qr(np.random.default_rng(rank).standard_normal((7, rank)))
    K = Q @ Q.T
    samples = pgcc.compile(pgcc.dpp(K=(K + K.T) / 2)).sample(SAMPLES, rng=3)
    assert p_value(samples, by_minors(K, rank)) > SUSPICIOUS


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("size", [1, 3, 6, 7])
def test_sizes_that_are_not_typical(size, scale):
    B = np.random.default_rng(5).standard_normal((7, 7))
    L = B @ B.T
    samples = pgcc.compile(pgcc.dpp(L=scale * L).observe(size=size)).sample(SAMPLES, rng=4)
    assert p_value(samples, by_minors(L, size)) > SUSPICIOUS


def test_a_mixture_whose_determinants_are_far_apart():
    """10^600 and 1: values leave the range of doubles, ratios do not."""
    n = 200
    big = pgcc.dpp(L=np.diag(np.full(n, 1e3))) * Fraction(1, 1001**n)
    small = pgcc.dpp(L=np.diag(np.full(n, 1e-3))) * (Fraction(1000, 1001) ** n)
    samples = pgcc.compile(pgcc.mixture([HALF / 2, 3 * HALF / 2], [big, small])).sample(20_000, rng=0)
    heavy = samples.mean(axis=1) > 0.5
    assert abs(heavy.mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 20_000)
    assert abs(samples[heavy].mean() - 1000 / 1001) < 1e-3


def test_values_below_the_range_of_doubles():
    """Evidence of probability 10^-3000; what is left is a fair coin."""
    n = 1000
    names = [f"z{i}" for i in range(n)]
    text = "*".join(f"(1/1000*{name} + 999/1000)" for name in names)
    model = pgcc.compile(pgcc.parse(f"(1/2*({text}) + 1/2*({text.replace('1/1000*', '1/500*')}))*(1/2*a + 1/2)"))
    samples = model.sample(1000, dict.fromkeys(names, 1), rng=0)
    column = model.variables.index("a")
    assert abs(samples[:, column].mean() - 0.5) < 0.1
    assert (np.delete(samples, column, axis=1) == 1).all()


# -- trees ---------------------------------------------------------------------------------------------------


def test_weights_of_all_sizes():
    """Walks would stay between the nodes of a heavy edge for ever: another method takes their place."""
    weights = {(0, 1): 1e12, (1, 2): 3.0, (0, 2): 1.0, (2, 3): 1e-9, (1, 3): 3e-9}
    edges = [(u, v, w) for (u, v), w in weights.items()]
    model = pgcc.compile(pgcc.spanning_tree(edges))
    samples = model.sample(20_000, rng=1)
    assert p_value(samples, by_query(model)) > SUSPICIOUS


@pytest.mark.parametrize("weight", [1.7e308, 1e-280])
def test_weights_at_the_ends_of_the_range(weight):
    """They overflow where they are added up, or lose their digits where they are multiplied by the odds of an edge."""
    U = weight * np.array([[1.0, 0.0, 0.6], [-1.0, 0.3, 0.0]])
    V = np.array([[1.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    odds = 1.0 if weight > 1.0 else 3.7e-43
    children = [odds * x for x in pgcc.variables("a b c")]
    model = pgcc.compile(pgcc.determinant(np.zeros((2, 2)), U, V, children))
    assert "random walks" in kernel_of(model)
    assert p_value(model.sample(20_000, rng=1), by_query(model)) > SUSPICIOUS


def test_a_kernel_from_a_matrix_that_is_nearly_singular():
    """The entries of N⁻¹ are large, those of VᵀN⁻¹U are not; they are off by the condition of N all the same."""
    M0, U, V = np.eye(4), np.zeros((4, 3)), np.zeros((4, 3))
    M0[:2, :2] = [[1.0, 1.0], [1.0, 1.0 + 2.0**-51]]
    U[:2, 0] = V[:2, 0] = 1.7e-8, -1.7e-8
    U[2:, 1:], V[2:, 1:] = np.eye(2), [[1.0, -0.7], [0.5, 1.0]]
    model = pgcc.compile(pgcc.determinant(M0, U, V, ["a", "b", "c"]))
    assert p_value(model.sample(20_000, rng=1), by_query(model)) > SUSPICIOUS


def test_edges_of_weight_zero():
    edges = [("a", "b", 2), ("b", "c", 0), ("a", "c", 1), ("c", "d", 3), ("b", "d", 1)]
    model = pgcc.compile(pgcc.spanning_tree(edges))
    assert "random walks" in kernel_of(model)
    assert p_value(model.sample(SAMPLES, rng=1), by_query(model)) > SUSPICIOUS
    assert p_value(model.sample(SAMPLES, {"c-d": 1}, rng=1), by_query(model, {"c-d": 1})) > SUSPICIOUS


def test_a_lollipop():
    """A clique with a path: a walk takes long, a tree is right all the same."""
    model = pgcc.compile(pgcc.spanning_tree(nx.lollipop_graph(20, 20)))
    samples = model.sample(2000, rng=0)
    assert (samples.sum(axis=1) == 39).all()
    assert np.abs(samples.mean(axis=0) - one_by_one(model)).max() < 5 * math.sqrt(0.25 / 2000)


def test_samples_are_trees():
    g = nx.random_regular_graph(4, 30, seed=1)
    model = pgcc.compile(pgcc.spanning_tree(g))
    edges = list(g.edges)
    for sample in model.sample(50, {"-".join(map(str, edges[0])): 1, "-".join(map(str, edges[7])): 0}, rng=2):
        assert nx.is_tree(nx.Graph([edge for edge, taken in zip(edges, sample, strict=True) if taken]))
        assert (sample[0], sample[7]) == (1, 0)


# -- a hundred variables -------------------------------------------------------------------------------------


def one_by_one(model, evidence=None):
    """Marginals, by one query for each."""
    names = model.variables
    evidence = evidence or {}
    rows = [{**evidence, name: 1} if name not in evidence else evidence for name in names]
    observed = np.array([evidence.get(name, 1) for name in names])
    return observed * model.prob(rows) / model.prob(evidence)


def large(kind):
    rng = np.random.default_rng(7)
    B = rng.standard_normal((100, 100)) / 10
    skew = rng.standard_normal((100, 100)) / 10
    match kind:
        case "dpp L":
            return pgcc.dpp(L=B @ B.T)
        case "dpp factor":
            return pgcc.dpp(factor=3 * B[:, :12])
        case "dpp K":
            L = B @ B.T
            K = np.linalg.solve(np.eye(100) + L, L)
            return pgcc.dpp(K=(K + K.T) / 2)
        case "nonsymmetric":
            return pgcc.dpp(L=0.5 * B @ B.T + 0.5 * (skew - skew.T), symmetric=False)
        case "tree":
            return pgcc.spanning_tree(nx.random_regular_graph(4, 50, seed=2))
        case _:
            return random_circuit(8, n=100, size=300, negative=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dpp L", "dpp factor", "dpp K", "nonsymmetric", "tree", "monotone"])
def test_marginals_of_a_hundred_variables(kind):
    circuit = large(kind)
    model = pgcc.compile(circuit)
    drawn = model.sample(1, rng=3)[0]
    evidence = {name: int(x) for name, x in zip(circuit.variables[:10], drawn[:10], strict=True)}
    n = 4000
    for given in ({}, evidence):
        exact = one_by_one(model, given)
        found = model.sample(n, given, rng=5).mean(axis=0)
        # 5 standard errors of each; the 1/n for those that hardly ever vary
        assert (np.abs(found - exact) <= 5 * np.sqrt(exact * (1 - exact).clip(0) / n) + 2 / n).all()


def test_marginals_of_a_hundred_items_of_fixed_size():
    """Pr(i) = Σ_j q_ij² · Pr(vector j is chosen), and that is μ_j · e_39(others) / e_40."""
    B = np.random.default_rng(7).standard_normal((100, 100)) / 10
    mu, Q = np.linalg.eigh(B @ B.T)

    def e(values, k):
        row = np.eye(1, k + 1)[0]
        for x in values:
            row[1:] += x * row[:-1].copy()
        return row[k]

    chosen = np.array([x * e(np.delete(mu, j), 39) for j, x in enumerate(mu)]) / e(mu, 40)
    exact = Q**2 @ chosen
    samples = pgcc.compile(pgcc.dpp(L=B @ B.T).observe(size=40)).sample(4000, rng=5)
    assert (samples.sum(axis=1) == 40).all()
    assert (np.abs(samples.mean(axis=0) - exact) <= 5 * np.sqrt(exact * (1 - exact) / 4000)).all()


# -- the test itself -----------------------------------------------------------------------------------------


def without_projection(K, n, rng):
    """A spectral sampler that forgets to make the rows orthogonal to those of the items it has taken."""
    values, Q = np.linalg.eigh(K)
    samples = np.zeros((n, len(K)), np.int8)
    for sample in samples:
        vectors = Q[:, rng.random(len(K)) < values]
        squares = (vectors**2).sum(axis=1)
        for _ in range(vectors.shape[1]):
            item = rng.choice(len(K), p=squares / squares.sum())
            sample[item], squares[item] = 1, 0.0
    return samples


def test_biased_samplers_are_caught():
    circuit = dpp(GRAM)
    exact = by_minors(GRAM.astype(float))
    samples = pgcc.compile(circuit).sample(SAMPLES, rng=1)
    assert p_value(samples, exact) > SUSPICIOUS
    rng = np.random.default_rng(0)
    dropped = samples * (rng.random(samples.shape) >= 0.01)
    assert p_value(dropped, exact) < SUSPICIOUS
    L = GRAM.astype(float)
    K = np.linalg.solve(np.eye(6) + L, L)
    assert p_value(without_projection((K + K.T) / 2, 5000, rng), exact) < SUSPICIOUS


def test_a_sum_that_the_evidence_rules_out_is_not_visited():
    model = pgcc.compile(pgcc.parse("0.5*(0.5*a*b + 0.25*a*c + 0.25*a)*d + 0.25*b + 0.25"))
    samples = model.sample(50, {"a": 0}, rng=0)
    assert not samples[:, [0, 2, 3]].any()
    assert set(samples[:, 1].tolist()) == {0, 1}

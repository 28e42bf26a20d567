"""Determinants whose size counts some of their children: the distribution given |S ∩ T| = k, against brute force."""

import pickle
from fractions import Fraction
from functools import lru_cache

import networkx as nx
import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.draw.dot import dot_text
from pgcc.errors import CircuitError, FormatError, ParseError
from pgcc.formats import npz
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import probability
from pgcc.ir.node import ONE, ZERO, Op, det, var
from pgcc.testing import brute_force
from pgcc.validity.stability import prove_stable

A, B, C = var("a"), var("b"), var("c")
IDENTITY = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
L = [[2, 1, 0], [1, 3, 1], [0, 1, 4]]


def counting(size, counted, children=(A, B, C), complements=None):
    return det(IDENTITY, IDENTITY, L, children, complements, size, counted)


def psd(rng, n, rank=None):
    B = rng.integers(-3, 4, size=(n, rank or n))
    return [[Fraction(int(x), 4) for x in row] for row in B @ B.T + np.eye(n, dtype=int)]


def marginal_kernel(L):
    """K = L·(I + L)⁻¹, in fractions."""
    import sympy

    M = sympy.Matrix([[sympy.Rational(x.numerator, x.denominator) for x in row] for row in L])
    K = M * (sympy.eye(len(L)) + M).inv()
    return [[Fraction(int(x.p), int(x.q)) for x in K.row(i)] for i in range(len(L))]


def tree():
    graph = nx.cycle_graph(4)
    for i, edge in enumerate(graph.edges):
        graph.edges[edge]["weight"] = Fraction(i + 1, 2)
    return pgcc.spanning_tree(graph, weight="weight")


FAMILIES = {
    "L": lambda rng: pgcc.dpp(L=psd(rng, 4)),
    "K": lambda rng: pgcc.dpp(K=marginal_kernel(psd(rng, 3))),
    "factor": lambda rng: pgcc.dpp(factor=[[Fraction(int(x), 3) for x in row] for row in rng.integers(-3, 4, (4, 2))]),
    "nonsymmetric": lambda rng: pgcc.dpp(
        L=[[x + Fraction((i > j) - (i < j), 2) for j, x in enumerate(row)] for i, row in enumerate(psd(rng, 3))],
        symmetric=False,
    ),
    "tree": lambda rng: tree(),
    "mixture": lambda rng: pgcc.dpp(L=psd(rng, 3)) / 3 + pgcc.dpp(L=psd(rng, 3, 2)) / 5,
    "product": lambda rng: pgcc.dpp(L=psd(rng, 3)) * pgcc.parse("0.3*p*q + 0.2*q + 0.5"),
    "evidence": lambda rng: pgcc.dpp(L=psd(rng, 5)).observe({"x1": 1, "x5": 0}),
    "summed out": lambda rng: pgcc.dpp(L=psd(rng, 4)).marginalize(["x3"]),
    "tilted": lambda rng: pgcc.dpp(L=psd(rng, 3)).tilt({"x1": 3, "x2": "1/2"}),
    "swapped": lambda rng: pgcc.dpp(L=psd(rng, 3)).complement(),
    "leaf that does not count": lambda rng: pgcc.dpp(L=psd(rng, 3)).compose({"x3": pgcc.parse("0.5*p*q + 0.5*p")}),
}
families = pytest.mark.parametrize("family", FAMILIES)


def make(family, seed):
    circuit = FAMILIES[family](np.random.default_rng(seed))
    names = [name for name in circuit.variables if name not in ("p", "q")] if "leaf" in family else circuit.variables
    return circuit, [name for i, name in enumerate(names) if (seed >> i) % 3 != 1] or list(names[:1])


coefficients = lru_cache(maxsize=100)(brute_force)


def given_count(circuit, over, sizes):
    """The coefficients of the sets with so many of these variables, 0 for the others: the definition."""
    return {s: (c if len(s & set(over)) in sizes else 0) for s, c in coefficients(circuit).items()}


# -- against brute force ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@families
def test_exactly_at_most_and_between(family):
    circuit, over = make(family, 46)
    n = len(over)
    for k in range(n + 1):
        part = circuit.observe(size=k, over=over)
        assert brute_force(part) == given_count(circuit, over, {k})
    assert brute_force(circuit.observe(size=(0, 1), over=over)) == given_count(circuit, over, {0, 1})
    model = pgcc.compile(circuit).condition(size=(1, n), over=over)
    expected = given_count(circuit, over, range(1, n + 1))
    assert model.prob({}, exact=True) == 1
    empty = dict.fromkeys(circuit.variables, 0)
    assert model.prob(empty, exact=True) == expected[frozenset()] == 0


@families
def test_in_float64(family):
    """Probabilities, marginals and the count of another set, all given |S ∩ T| = k."""
    rng = np.random.default_rng(8)
    circuit, over = make(family, 46)
    k = len(over) // 2
    table = given_count(circuit, over, {k})
    total = sum(table.values())
    if not total:
        k, table = k + 1, given_count(circuit, over, {k + 1})
        total = sum(table.values())
    model = pgcc.compile(circuit).condition(size=k, over=over)
    for _ in range(12):
        seen = pgcc.testing.random_evidence(int(rng.integers(10**6)), circuit)
        ins, outs = ({name for name, x in seen.items() if x == value} for value in (1, 0))
        expected = sum(c for s, c in table.items() if ins <= s and not outs & s) / total
        assert model.prob(seen) == pytest.approx(float(expected), rel=1e-9, abs=0)
        assert model.prob(seen, exact=True) == expected
    marginals = [float(sum(c for s, c in table.items() if name in s) / total) for name in circuit.variables]
    assert list(model.marginals()) == pytest.approx(marginals, rel=1e-9)
    others = circuit.variables[::2]
    counts = [
        float(sum(c for s, c in table.items() if len(s & set(others)) == j) / total) for j in range(len(others) + 1)
    ]
    assert list(model.cardinality(over=others)) == pytest.approx(counts, rel=1e-9)


@families
def test_no_points_are_interpolated(family):
    """No signed sum: the rules prove it, as long as they prove the whole."""
    circuit, over = make(family, 5)
    for k in range(len(over) + 1):
        part = circuit.observe(size=k, over=over)
        assert all(min(node.weights) >= 0 for node in part.order if node.op is Op.SUM and node.weights)
        assert pgcc.check(part).nonnegative.proved


# -- laws ------------------------------------------------------------------------------------------------------------


@settings(max_examples=some(12), deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.sampled_from([5, 46, 0]), st.data())
def test_laws(family, seed, data):
    circuit, over = make(family, seed)
    seen = data.draw(pgcc.testing.evidence(circuit))
    parts = [circuit.observe(size=k, over=over) for k in range(len(over) + 1)]
    assert sum(probability(part, seen) for part in parts) == probability(circuit, seen)
    k = data.draw(st.integers(0, len(over)))
    assert parts[k].observe(size=k, over=over) == parts[k]
    ins, rest = sum(seen.get(name) == 1 for name in over), [name for name in over if name not in seen]
    if 0 <= k - ins <= len(rest):
        after = circuit.observe(seen).observe(size=k - ins, over=rest)
        assert probability(after, {}) == probability(parts[k], seen)
    else:
        assert probability(parts[k], seen) == 0


# -- the node --------------------------------------------------------------------------------------------------------


def test_what_is_counted_is_part_of_the_node():
    node = counting(1, [1, 0, 1])
    assert node is counting(1, (True, False, True))
    assert (node.size, node.counted) == (1, (True, False, True))
    assert counting(1, [1, 1, 1]) is counting(1, None)
    assert counting(None, None).counted == (True, True, True)
    assert pickle.loads(pickle.dumps(Circuit(node))).root is node
    assert Circuit(node).facts.degree == 2


@pytest.mark.parametrize(
    ("size", "counted", "message"),
    [
        (3, [1, 0, 1], "of 2 counted children is a number from 0 to 2, not 3"),
        (1, [1, 0], "a list of 3 numbers 0 or 1"),
        (1, [1, 0, 2], "a list of 3 numbers 0 or 1"),
        (None, [1, 0, 1], "with a size only"),
    ],
)
def test_what_is_counted_is_some_of_the_children(size, counted, message):
    with pytest.raises(CircuitError, match=message):
        counting(size, counted)


def test_text_and_drawings():
    for circuit in (
        Circuit(counting(1, [1, 0, 1])),
        Circuit(counting(1, [0, 1, 1], complements=(ONE, ZERO, C)), "abc"),
    ):
        assert pgcc.parse(str(circuit)).root is circuit.root
        assert "det 3×3, size 1 of 2" in dot_text(circuit)
    assert pgcc.parse("det([[1]], [[1]], [[1]], [counted], size=0, counted = [0]) + counted").variables == ("counted",)


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("size=1, counted=[0]", "from 0 to 0, not 1"),
        ("size=1, counted=[1, 1]", "a list of 1 numbers"),
        ("size=1, counted=[a]", r"counted\[0\] is not a number"),
        ("size=1, counted=1", "a list of numbers 0 or 1"),
        ("counted=[1], size=1", "the size comes last, and what it counts after it"),
        ("counted=[1]", "the size comes last, and what it counts after it"),
        ("size=1, counted=[1], counted=[1]", "what is counted is given twice"),
    ],
)
def test_errors_in_text(tail, message):
    with pytest.raises(ParseError, match=message):
        pgcc.parse(f"det([[1]], [[1]], [[1]], [a], {tail})")


def test_npz(tmp_path):
    circuit = Circuit(counting(1, [1, 0, 1])) / 2 + Circuit(counting(None, None)) / 2
    pgcc.save(circuit, tmp_path / "circuit.npz")
    assert pgcc.load(tmp_path / "circuit.npz") == circuit
    arrays = npz.to_arrays(circuit)
    for damaged, message in (([1, 0, 1], "does not fit"), ([0] * 6, "from 0 to 0")):
        arrays["counted"] = np.array(damaged, np.bool_)
        np.savez_compressed(tmp_path / "damaged.npz", **arrays)
        with pytest.raises(FormatError, match=message):
            pgcc.load(tmp_path / "damaged.npz")


@pytest.mark.parametrize(
    ("root", "left"),
    [
        (counting(0, [1, 0, 1]), {None}),  # a and c are out
        (counting(2, [1, 0, 1]), {None}),  # a and c are in
        (counting(1, [1, 0, 1], complements=(ZERO, ONE, ONE)), {None}),  # a is in, so that c is out
        (counting(1, [1, 0, 1], (ZERO, B, C)), {None}),  # c is in
        (counting(1, [1, 0, 1], complements=(ONE, ZERO, ONE)), {1}),
        (counting(1, [1, 0, 1], (A, ZERO, C)), {1}),
    ],
)
def test_the_size_is_settled(root, left):
    circuit = Circuit(root, "abc")
    simplified = circuit.simplify()
    assert brute_force(simplified) == brute_force(circuit)
    assert {node.size for node in simplified.order if node.op is Op.DET} == left


def test_given_a_part_it_is_not_strongly_rayleigh():
    """(a + u)·(b + v) is: one of a, u, and one of b, v. Given that one of a, b is in, a and v go together."""
    kernel = np.kron(np.eye(2), np.full((2, 2), 0.5))
    circuit = pgcc.dpp(K=kernel, names=["a", "u", "b", "v"])
    part = circuit.observe(size=1, over=["a", "b"])
    assert prove_stable(circuit) is not None
    assert prove_stable(part) is None
    assert pgcc.compile(part).prob({"a": 1, "v": 1}) == pytest.approx(0.5)


# -- at scale --------------------------------------------------------------------------------------------------------


def large(family, n, rng):
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    match family:
        case "L":
            return pgcc.dpp(L=3.0 * (basis * rng.uniform(0.0, 3.0, n)) @ basis.T)
        case "K":
            return pgcc.dpp(K=(basis * rng.uniform(0.02, 0.98, n)) @ basis.T)
        case "factor":
            return pgcc.dpp(factor=rng.normal(size=(n, 20)) / 4)
    graph = nx.gnm_random_graph(n // 3, n, seed=4)
    return pgcc.spanning_tree(graph)


@pytest.mark.parametrize("family", ["L", "K", "factor", "tree"])
def test_at_scale(family):
    rng, n = np.random.default_rng(1), 45
    circuit = large(family, n, rng)
    over = list(rng.permutation(circuit.variables)[:22])
    whole = pgcc.compile(circuit)
    pmf = whole.cardinality(over=over)
    k = int(np.argmax(pmf))
    part = circuit.observe(size=k, over=over)
    assert pgcc.check(part).nonnegative.proved
    model = pgcc.compile(part)
    rows = np.full((4, n), -1, np.int8)
    for row in rows[1:]:
        row[rng.permutation(n)[:3]] = 0
    rows[3, np.flatnonzero(rows[3] < 0)[0]] = 1
    names = list(circuit.variables)
    counted = np.isin(names, over)
    for row in rows:
        seen = {name: int(x) for name, x in zip(names, row, strict=True) if x >= 0}
        ins = int((row[counted] == 1).sum())
        rest = [name for name in over if name not in seen]
        expected = whole.prob(seen) * whole.cardinality(over=rest, evidence=seen)[k - ins] / pmf[k]
        assert model.prob(seen) == pytest.approx(expected, rel=1e-8)
    assert model.logprob(rows) == pytest.approx(model.logprob(rows, method="ball"), abs=2e-9)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["L", "K", "factor", "tree"])
def test_a_hundred_variables_are_proved(family):
    circuit = large(family, 100, np.random.default_rng(2))
    assert pgcc.check(circuit.observe(size=7, over=circuit.variables[::2])).nonnegative.proved
    assert pgcc.check(circuit.observe(size=(0, 1), over=circuit.variables[::3])).nonnegative.proved


# -- samples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["L", "K", "factor", "tree", "mixture", "summed out", "swapped"])
def test_samples(family):
    circuit, over = make(family, 46)
    over = over[:2]
    k = 2 if family == "tree" else 1
    model = pgcc.compile(circuit).condition(size=k, over=over)
    table = {s: c for s, c in given_count(circuit, over, {k}).items() if c}
    total, n = sum(table.values()), 100_000
    samples = model.sample(n, rng=7)
    found = {}
    keys, counts = np.unique(samples, axis=0, return_counts=True)
    for row, count in zip(keys, counts, strict=True):
        found[frozenset(name for name, x in zip(circuit.variables, row, strict=True) if x)] = int(count)
    assert set(found) <= set(table)
    expected = {s: float(c / total) * n for s, c in table.items()}
    chi2 = sum((found.get(s, 0) - e) ** 2 / e for s, e in expected.items())
    dof = len(expected) - 1
    assert chi2 < dof + 5 * np.sqrt(2 * max(dof, 1)) + 5
    shifted = sum((found.get(s, 0) - e) ** 2 / e for s, e in zip(expected, list(expected.values())[::-1], strict=True))
    assert dof == 0 or len(set(expected.values())) == 1 or shifted > 100  # a biased sampler is caught


def test_samples_with_evidence():
    rng = np.random.default_rng(3)
    circuit = large("L", 30, rng)
    over, seen = (
        list(circuit.variables[:12]),
        {circuit.variables[2]: 1, circuit.variables[20]: 1, circuit.variables[5]: 0},
    )
    model = pgcc.compile(circuit).condition(size=5, over=over)
    samples = model.sample(20_000, seen, rng=1)
    assert (samples[:, :12].sum(axis=1) == 5).all()
    assert (samples[:, [2, 20]] == 1).all()
    assert not samples[:, 5].any()
    assert samples.mean(axis=0) == pytest.approx(
        np.array(list(model.marginals(seen, names=False))), abs=5 * 0.5 / np.sqrt(20_000)
    )


def test_more_than_the_determinant_s_variables():
    """Leaves that count to a higher degree are still taken apart at points, or refused."""
    circuit = Circuit(counting(None, None)).compose({"a": pgcc.parse("0.5*p*q + 0.5*p")})
    assert brute_force(circuit.observe(size=2, over=["p", "q", "b"])) == given_count(circuit, ["p", "q", "b"], {2})


def test_beside_equal_nodes_at_two_positions():
    """The count of d was that of u: columns of a determinant were looked up by positions of another order."""

    def block(i):
        one = pgcc.parse(f"1/2*a{i}*b{i} + 1/2*c{i}")
        other = pgcc.parse(f"1/3*(a{i}*b{i}*~c{i}) + 2/3*(c{i}*~a{i}*~b{i})")
        x, y = pgcc.variables(f"x{i} y{i}")
        return one * x / 2 + other * y / 2

    dets = pgcc.dpp(L=[[2]], names=["d"]).normalize() * pgcc.dpp(L=[[3]], names=["e"]).normalize()
    model = pgcc.compile(block(0) * block(1) * block(2) * pgcc.parse("1/10*u + 9/10") * dets)
    for name, p in (("d", 2 / 3), ("e", 3 / 4), ("u", 1 / 10), ("x0", 1 / 2)):
        np.testing.assert_allclose(model.cardinality(over=name), [1 - p, p], rtol=1e-9)

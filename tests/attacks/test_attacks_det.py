"""Attacks on determinants: ranges beyond doubles, and sums that cancel before they are eliminated."""

from __future__ import annotations

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import pgcc
from pgcc.determinants.kernels.laplacian import new_nodes, tree_sum
from pgcc.program.det_structure import Laplacian


def assert_right(circuit, evidence, **options):
    """prob within its bound, and logprob within 1e-9, of the fraction."""
    model = pgcc.compile(circuit, **options)
    exact = model.prob(evidence, exact=True)
    value, bound = model.prob(evidence, bound=True)
    log = model.logprob(evidence)
    assert exact > 0
    assert log == pytest.approx(math.log(exact.numerator) - math.log(exact.denominator), rel=1e-12, abs=2e-9)
    if math.isfinite(bound):
        assert abs(Fraction(float(value)) - exact) <= Fraction(float(bound)) * exact


def test_scaled_children_that_are_variables_count_their_exponent_once():
    a, b = pgcc.variables("a b")
    d = pgcc.determinant(np.eye(2), np.eye(2), [[1.0, 0.5], [0.5, 1.0]], [a * 1e-180, b * 1e-180])
    assert_right(d, {"a": 1, "b": 1})


def test_scaled_children_above_one_are_no_free_edges():
    a, b, c = pgcc.variables("a b c")
    d = pgcc.determinant([[0.0]], [[1.0, 1.0]], [[1.0, 1.0]], [(a + b) * 1e150, c * 1e-170])
    assert_right(d, {"c": 1})


def test_star_mesh_shares_that_underflow():
    heavy, light = 1.7e170, 1.3e-170
    graph = nx.Graph()
    graph.add_nodes_from("acb")
    graph.add_edge("a", "b", weight=heavy)
    graph.add_edge("b", "c", weight=light)
    graph.add_edge("a", "c", weight=light * 1e-5)
    circuit = pgcc.spanning_tree(graph)
    for name in circuit.variables:
        assert_right(circuit, {name: 0})


def test_star_mesh_shares_that_are_subnormal_beside_large_weights():
    """Of a directed graph: a share of 10⁻³²⁰ times 10³⁰⁰ is an ordinary number, with few digits."""
    U, V = [[1.3e-20, 0.0, 1e-20], [0.0, 1e300, 0.0]], [[1, 0, 1], [-1, 1, 0]]
    d = pgcc.determinant(np.zeros((2, 2)), U, V, ["a", "b", "c"])
    assert_right(d, {"a": 1})
    assert_right(d, {"c": 1})


def test_star_mesh_elimination_knows_of_its_subnormal_shares():
    """Node 0 reaches the ground by an edge of 10⁻²⁰, or by node 1, whose edge of 10³⁰⁰ makes its share subnormal."""
    tail, head = np.array([0, 1, 0]), np.array([1, 2, 2])
    for weight, known in ((1.3e-20, False), (1.3e20, True)):
        graph = Laplacian(tail, head, np.array([weight, 1e300, weight]), np.zeros(2), True)
        value, exponent, error = tree_sum(graph, np.ones(3), np.ones(3), new_nodes(2))
        assert known == (error < 1e-12)
        if known:
            exact = 2 * Fraction(weight) * Fraction(1e300)
            assert abs(Fraction(value) * Fraction(2) ** exponent - exact) <= Fraction(error) * exact


def test_children_below_the_base_whose_product_with_it_is_subnormal():
    """φ·(φ − f), near 2⁻¹⁰⁷⁴, was divided by."""
    n, scale = 5, 2.0**536
    A = np.random.default_rng(0).normal(size=(n, n))
    L = scale * np.rint(64 * (A @ A.T + np.eye(n))) / 64
    children = [(0.375 * z + 0.625) * (1 / scale) for z in pgcc.variables("z1 z2 z3 z4 z5")]
    d = pgcc.determinant(np.eye(n), np.eye(n), L, children)
    model = pgcc.compile(d)
    given = model.marginals({"z1": 0, "z3": 0})  # makes the base at which everything is free
    joint, of = model.prob({"z1": 0, "z3": 0, "z2": 1}, exact=True), model.prob({"z1": 0, "z3": 0}, exact=True)
    assert given["z2"] == pytest.approx(float(joint / of), rel=1e-9)
    value, bound = model.prob({"z1": 0, "z3": 0}, bound=True)
    assert abs(Fraction(value) - of) <= Fraction(bound) * of


def test_edge_weights_whose_product_is_subnormal():
    a, b = pgcc.variables("a b")
    d = pgcc.determinant([[0.0]], [[1e-160, 1.0]], [[1.37e-160, 1.0]], [a * 1e200, b])
    assert_right(d, {"b": 0})
    assert_right(d, {"a": 1})


def test_edges_whose_weight_times_value_underflows():
    a, b = pgcc.variables("a b")
    d = pgcc.determinant([[0.0]], [[1e-100, 1e-100]], [[1e-100, 1e-100]], [a * 1e-150, b * 3e-150])
    assert_right(d, {"b": 0})
    assert_right(d, {"b": 1})


def test_products_of_pivots_and_factors_that_are_subnormal():
    a, b = pgcc.variables("a b")
    L = np.array([[1.7e-117, 0.3e-117], [0.3e-117, 1.7e-117]])
    assert_right(pgcc.determinant(np.eye(2), np.eye(2), L, [a * 1e-205, b * 1.1e-205]), {"a": 1, "b": 1})


def test_subnormal_coefficients_of_children():
    a, b = pgcc.variables("a b")
    d = pgcc.determinant(np.eye(2), np.eye(2), [[1.0, 0.5], [0.5, 1.0]], [a * Fraction(1, 10**320), b])
    assert_right(d, {"a": 1, "b": 1})


def test_entries_of_m1_that_cancel():
    n = 14
    names = [f"x{i}" for i in range(n)]
    start = (2**40 + 12345) / 2**43
    q = 1e12 * np.random.default_rng(0).random(n) - 5e11
    q[-1] = -q[:-1].sum()
    V = [(q + np.arange(1, n + 1) * 0.1) / 3, q]
    d = pgcc.determinant([[start, 3 * start], [1, 3]], [[1] * n, [0] * n], V, names)
    assert_right(d, {}, normalize=False)
    assert_right(d, {**dict.fromkeys(names, 0), "x0": 1})


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_extreme_kernels_do_not_warn():
    a, b = pgcc.variables("a b")
    d = pgcc.determinant([[0.0]], [[1.0, 1.0]], [[1.0, 1.0]], [a * 1e150, b * 1e-170])
    assert_right(d, {"b": 1})


def test_columns_of_u_that_are_proportional_only_to_rounding():
    V = np.array([[6.0, -1, -2, 1], [4, -16, -13, 18], [-10, -12, -19, 14], [13, -11, 11, -18]])
    d = pgcc.determinant(1e-10 * np.eye(4), V * [1 / 3, 1 / 7, 0.7, 0.3], V, list("abcd"))
    for name in "abcd":
        assert_right(d, {name: 0})


def test_long_walks_are_not_interpreted(monkeypatch):
    """Between two of three nodes a walk goes to and fro 1e200 times: in Python, 3·10⁶ steps of trying took a minute."""
    from pgcc.determinants import samplers
    from pgcc.kernels import policy

    asked, count_steps = [], samplers.count_steps

    def counted(*arguments):
        asked.append((arguments[-1], policy._tier.work <= policy.TO_COMPILE.work))
        return -1 if arguments[-1] > 10_000 else count_steps(*arguments)

    monkeypatch.setattr(samplers, "count_steps", counted)
    monkeypatch.setattr(policy, "_chosen", "auto")
    monkeypatch.setattr(policy, "_seconds", 0.0)
    model = pgcc.compile(pgcc.spanning_forest([(0, 1, 0.5), (0, 2, 1e200)], killing={0: 0.125, 2: 1 / 3}))
    assert model.sample(1, rng=0).tolist() == [[1, 1]]
    assert [most for most, _ in asked] == [1_000, 3_000_000]
    assert [interpreted for _, interpreted in asked] == [True, False]

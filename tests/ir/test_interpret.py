"""The interpreter is the definition of the semantics; here it meets SymPy, which knows nothing of it."""

from fractions import Fraction
from itertools import product as cartesian

import numpy as np
import pytest
import sympy
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

from pgcc.ir.circuit import Circuit, variables
from pgcc.ir.interpret import Poly, determinant, evaluate, probability
from pgcc.ir.node import ONE, Op, const, det, product, var, weighted_sum
from pgcc.testing import DET_KINDS, circuits, random_circuit, random_det


def rational(x):
    return sympy.Rational(Fraction(x).numerator, Fraction(x).denominator)


def by_sympy(circuit):
    """The circuit as a SymPy expression, with SymPy's own determinant."""
    at = {}
    for node in circuit.order:
        below = [at[c] for c in node.children]
        match node.op:
            case Op.CONST:
                at[node] = rational(node.value)
            case Op.VAR:
                at[node] = sympy.Integer(1) if node.is_complement else sympy.Symbol(node.name)
            case Op.SUM:
                at[node] = sympy.Add(*(rational(w) * c for w, c in zip(node.weights, below, strict=True)))
            case Op.PRODUCT:
                at[node] = sympy.Mul(*below)
            case Op.DET:
                m0, u, v = (
                    sympy.Matrix(*m.shape, [rational(x) for row in m.exact() for x in row]) for m in node.matrices
                )
                k, s = len(below) // 2, sympy.Integer(1) if node.size is None else sympy.Dummy("s")
                f = sympy.diag(*(s * x if c else x for x, c in zip(below[:k], node.counted, strict=True)))
                y = sympy.diag(*below[k:])
                blocks = sympy.BlockMatrix([[m0, u * f], [-v.T, y]]) if k else m0
                at[node] = sympy.Matrix(blocks).det(method="berkowitz")
                if node.size is not None:
                    at[node] = sympy.expand(at[node]).coeff(s, node.size)
        at[node] = sympy.expand(at[node])
    return sympy.Poly(at[circuit.root], *map(sympy.Symbol, circuit.variables))


def coefficients(poly):
    return {powers: Fraction(int(c.p), int(c.q)) for powers, c in poly.terms() if c}


def expected_probability(poly, names, evidence):
    """Sum over the monomials that agree with the evidence: not the lemma, the definition."""
    terms = coefficients(poly)
    assert all(max(powers, default=0) <= 1 for powers in terms), "the polynomial is multiaffine"
    return sum(
        (c for powers, c in terms.items() if all(powers[names.index(n)] == v for n, v in evidence.items())),
        Fraction(0),
    )


@settings(max_examples=some(60), deadline=None)
@given(circuits(max_variables=4, multiaffine=False, dets=True, max_size=6), st.data())
def test_values_are_those_of_sympy(circuit, data):
    at = {name: data.draw(st.fractions(-3, 3, max_denominator=5), label=name) for name in circuit.variables}
    poly = by_sympy(circuit)
    assert evaluate(circuit, at) == Fraction(str(poly.eval([rational(at[name]) for name in circuit.variables])))


@settings(max_examples=some(60), deadline=None)
@given(circuits(max_variables=4, max_size=6), st.data())
def test_probabilities_are_sums_of_coefficients(circuit, data):
    values = data.draw(st.tuples(*[st.sampled_from([None, 0, 1])] * len(circuit.variables)))
    evidence = {name: v for name, v in zip(circuit.variables, values, strict=True) if v is not None}
    assert probability(circuit, evidence) == expected_probability(by_sympy(circuit), circuit.variables, evidence)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DET_KINDS)
@pytest.mark.parametrize("complements", [False, True])
def test_determinants_are_those_of_sympy(kind, complements):
    for seed in range(4):
        circuit = random_det(seed, n=3, kind=kind, complements=complements)
        poly = by_sympy(circuit)
        for values in cartesian([None, 0, 1], repeat=3):
            evidence = {name: v for name, v in zip(circuit.variables, values, strict=True) if v is not None}
            assert probability(circuit, evidence) == expected_probability(poly, circuit.variables, evidence)


def test_without_complements_it_is_the_determinant_people_write():
    rng = np.random.default_rng(0)
    for r, k in ((0, 0), (1, 2), (2, 1), (3, 3)):
        m0, u, v = (rng.integers(-3, 4, size=s) for s in ((r, r), (r, k), (r, k)))
        at = {f"x{i}": Fraction(int(rng.integers(-4, 5)), 3) for i in range(k)}
        circuit = Circuit(det(m0.tolist(), u.tolist(), v.tolist(), [var(name) for name in at]), list(at))
        plain = sympy.Matrix(r, r, m0.ravel().tolist())
        for i, x in enumerate(at.values()):
            plain += rational(x) * sympy.Matrix(r, 1, u[:, i].tolist()) * sympy.Matrix(1, r, v[:, i].tolist())
        assert evaluate(circuit, at) == Fraction(str(plain.det()))


def test_a_complement_of_zero_says_that_the_child_is_in():
    L = [[2, 1], [1, 3]]
    free = Circuit(det([[1, 0], [0, 1]], [[1, 0], [0, 1]], L, [var("a"), var("b")]))
    chosen = Circuit(det([[1, 0], [0, 1]], [[1, 0], [0, 1]], L, [ONE, var("b")], [const(0), ONE]), ["b"])
    assert probability(free, {"a": 1, "b": 1}) == probability(chosen, {"b": 1}) == 5
    assert probability(free, {"a": 1, "b": 0}) == probability(chosen, {"b": 0}) == 2


@given(
    st.integers(0, 5).flatmap(
        lambda n: st.lists(st.lists(st.integers(-4, 4), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_bird_is_a_determinant(rows):
    assert determinant([[Fraction(x) for x in row] for row in rows], Fraction) == int(sympy.Matrix(rows).det())


def test_the_empty_sum_and_product():
    assert evaluate(Circuit(weighted_sum((), ())), {}) == 0
    assert evaluate(Circuit(product(())), {}) == 1


def test_a_complement_is_one():
    assert evaluate(Circuit(var("a", complement=True)), {"a": Fraction(7)}) == 1


def test_squares_that_cancel():
    (z,) = variables("z")
    g = (z + 1) ** 2 - z**2  # 2z + 1
    assert [probability(g, {"z": v}) for v in (0, 1, -1)] == [1, 2, 3]


def test_evidence_that_cannot_be():
    (z,) = variables("z")
    assert probability(Circuit(z.root, ["z", "never"]), {"never": 1}) == 0
    assert probability(Circuit(z.root, ["z", "never"]), {"never": 0}) == 1


def test_the_running_example_of_the_paper():
    z1, z2, z3 = variables("z1 z2 z3")
    tenth = Fraction(1, 10)
    g = (tenth * (z1 + 1) * (6 * z2 + 1) - 4 * tenth * z1 * z2) * (8 * tenth * z3 + 2 * tenth)
    assert probability(g, {"z1": 0, "z2": 1, "z3": 1}) == Fraction(48, 100)
    assert probability(g, {"z2": 0, "z3": 0}) == Fraction(4, 100)
    assert probability(g, {}) == 1


polys = st.lists(st.fractions(-3, 3, max_denominator=4), max_size=5).map(Poly)


@given(polys, polys, st.fractions(-2, 2, max_denominator=3))
def test_polynomials_are_a_ring(p, q, t):
    def at(poly):
        return sum((c * t**k for k, c in enumerate(poly.coefficients)), Fraction(0))

    assert at(p + q) == at(p) + at(q)
    assert at(p * q) == at(p) * at(q)
    assert (p * q).coefficient(99) == 0
    assert not any((p + p * Poly([Fraction(-1)])).coefficients)


def test_a_deep_circuit_is_interpreted_without_recursion():
    node = var("a")
    for _ in range(20_000):
        node = weighted_sum((1, 1), (node, ONE))
    assert evaluate(Circuit(node), {"a": Fraction(5)}) == 20_005


def test_random_circuits_have_the_total_they_promise():
    for seed in range(20):
        circuit = random_circuit(seed, 5, 10, negative=False)
        assert probability(circuit, {}) == 1

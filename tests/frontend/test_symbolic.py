"""To SymPy and back; SymPy and the interpreter agree exactly."""

import subprocess
import sys
from fractions import Fraction

import pytest
import sympy
from any_circuits import any_circuits, exact_numbers
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.frontend.symbolic import EXPANDED_CHILDREN, to_sympy
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import const, det, var, weighted_sum

x, y, z = sympy.symbols("x y z")
R = sympy.Rational


def rational(value):
    return R(value.numerator, value.denominator)


def points(circuit):
    for k in (3, 8):
        yield {name: Fraction(7 * k + i, i * i - 5 * k) for i, name in enumerate(circuit.variables)}


def agrees(circuit, expr):
    """Whether SymPy's value of the expression is the interpreter's value of the circuit."""
    for point in points(circuit):
        substituted = expr.xreplace({sympy.Symbol(name): rational(v) for name, v in point.items()}).doit()
        if substituted != rational(evaluate(circuit, point)):
            return False
    return True


@given(any_circuits(steps=4, numbers=exact_numbers))
@settings(max_examples=some(100), deadline=None)
def test_to_sympy_is_the_same_polynomial(circuit):
    assert agrees(circuit, circuit.to_sympy())


@given(any_circuits(steps=4))
@settings(max_examples=some(100), deadline=None)
def test_there_and_back(circuit):
    expr = circuit.to_sympy()
    again = pgcc.from_sympy(expr, variables=circuit.variables)
    assert again.variables == circuit.variables
    for point in points(circuit):
        assert evaluate(again, point) == evaluate(circuit, point)


expressions = st.recursive(
    st.sampled_from([x, y, z, sympy.Integer(2), R(-3, 4), sympy.Integer(0), sympy.Float(0.1)]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: sympy.Add(*parts)),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: sympy.Mul(*parts)),
        st.tuples(inner, st.integers(0, 3)).map(lambda pair: pair[0] ** pair[1]),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: pair[0] / pair[1]),
    ),
    max_leaves=10,
)


@given(expressions)
@settings(max_examples=some(120), deadline=None)
def test_from_sympy_is_the_same_polynomial(expr):
    exact = expr.replace(lambda e: e.is_Float, lambda e: rational(Fraction(float(e))))
    assert agrees(pgcc.from_sympy(expr, variables=["x", "y", "z"]), exact)


def test_the_nodes_are_compact():
    assert pgcc.from_sympy(3 * x / 4).root is weighted_sum((Fraction(3, 4),), (var("x"),))
    assert pgcc.from_sympy(2 * x - 3 * y).edges == 2


def test_floats():
    """A double stays a float, and a longer Float is the rational that it is."""
    assert pgcc.from_sympy(sympy.Float(0.1) * x).root is weighted_sum((0.1,), (var("x"),))
    assert pgcc.from_sympy(sympy.Float(0.5)).root is const(0.5)
    weight = pgcc.from_sympy(sympy.Float("0.1", 40) * x).root.weights[0]
    assert type(weight) is Fraction
    assert 0 < abs(weight - Fraction(1, 10)) < Fraction(1, 10**40)
    assert pgcc.from_sympy(sympy.Float("1e400") * x).root.weights[0] > 10**399
    assert (0.1 * pgcc.variables("x")[0]).to_sympy() == rational(Fraction(0.1)) * x


def test_numbers_and_polys():
    assert pgcc.from_sympy(3).root is const(3)
    assert pgcc.from_sympy(sympy.Poly(x**2 + y)).variables == ("x", "y")
    half = sympy.Pow(2, -1, evaluate=False)
    assert pgcc.from_sympy(sympy.Mul(half, x, evaluate=False)).root is weighted_sum((Fraction(1, 2),), (var("x"),))


def test_variables():
    names = sympy.symbols("z10 z9 a z1")
    assert pgcc.from_sympy(sympy.Add(*names)).variables == ("a", "z1", "z9", "z10")
    assert pgcc.from_sympy(sympy.Add(*names), names).variables == ("z10", "z9", "a", "z1")
    assert pgcc.from_sympy(x, ["y", "x"]).variables == ("y", "x")
    with pytest.raises(pgcc.CircuitError, match="'y' occurs"):
        pgcc.from_sympy(x + y, ["x"])
    with pytest.raises(pgcc.CircuitError, match="not one string"):
        pgcc.from_sympy(x + y, "xy")


REFUSED = [
    (sympy.sin(x) + y, r"sin\(x\) is not a number"),
    (sympy.I * x, "not a polynomial"),
    (sympy.pi * x, "pi is not a number"),
    (sympy.sqrt(x), r"sqrt\(x\): an exponent is a whole number"),
    (sympy.sqrt(2) * x, r"sqrt\(2\): an exponent is a whole number"),
    (y / x, "1/x: an exponent is not negative"),
    (x**y, r"x\*\*y: an exponent is a whole number"),
    (x**1001, r"x\*\*1001: the exponent is too large"),
    (sympy.oo, "not a polynomial"),
    (sympy.nan, "not a polynomial"),
    (sympy.zoo * x, "not a polynomial: zoo"),
    (x + sympy.Symbol("x", positive=True), "two different symbols"),
    (sympy.Dummy("x") + x, "two different symbols"),
    (sympy.Symbol("a", commutative=False), "commute"),
    (sympy.Float("1e50000") * x, "the number is too large"),
    (sympy.Float("1e50000", 15) * x, "too large or too small"),
    (sympy.Integer(10) ** 50_000 * x, "the number is too large"),
    (sympy.Symbol("a\nb"), "printable"),
    (sympy.Determinant(sympy.MatrixSymbol("A", 2, 2)), "explicit matrix"),
    (sympy.Eq(x, y), "expected a SymPy expression"),
    (sympy.Matrix([x]), "expected a SymPy expression"),
    ("x + 1", "text is read by pgcc.parse"),
    (None, "expected a SymPy expression"),
]


@pytest.mark.parametrize(("expr", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_name_the_part(expr, message):
    with pytest.raises(pgcc.CircuitError, match=message) as caught:
        pgcc.from_sympy(expr)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("children", [0, 1, EXPANDED_CHILDREN, EXPANDED_CHILDREN + 1])
@pytest.mark.parametrize("complements", [False, True])
def test_determinants(children, complements):
    names = [var(f"z{i}") for i in range(children)]
    m0 = [[Fraction(3 * i - 2 * j + (i == j), 1 + j) for j in range(3)] for i in range(3)]
    u = [[(i + 2 * k) % 5 - 2 for k in range(children)] for i in range(3)]
    v = [[(2 * i - k) % 7 - 3 for k in range(children)] for i in range(3)]
    outside = [const(Fraction(k + 2, 3)) for k in range(children)] if complements else None
    circuit = Circuit(det(m0, u, v, names, outside))
    expr = circuit.to_sympy()
    assert expr.has(sympy.Determinant) == (children > EXPANDED_CHILDREN)
    assert agrees(circuit, expr)
    assert agrees(pgcc.from_sympy(expr, circuit.variables), expr)


def test_a_determinant_from_sympy():
    expr = sympy.Determinant(sympy.Matrix([[x, 1], [2, y + z]]))
    circuit = pgcc.from_sympy(expr)
    assert circuit.facts.dets == 1
    assert sympy.expand(circuit.to_sympy() - (x * (y + z) - 2)) == 0


def test_shared_parts_are_read_once():
    """2^200 terms when expanded."""
    expr = x
    for _ in range(200):
        expr = sympy.Mul(expr + 1, expr + 2, evaluate=False)
    assert pgcc.from_sympy(expr).edges == 6 * 200


def test_a_deep_circuit_is_no_recursion_error():
    node = var("x")
    for i in range(1500):
        node = weighted_sum((i, 1), (node, var("y")))
    try:
        result = to_sympy(Circuit(node))
    except pgcc.CircuitError as error:
        result = error
    assert isinstance(result, (sympy.Expr, pgcc.CircuitError))


def test_pgcc_does_not_import_sympy():
    code = "import sys, pgcc; pgcc.parse('z + 1'); pgcc.load; pgcc.from_sympy; assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

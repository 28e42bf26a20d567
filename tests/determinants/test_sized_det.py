"""Determinants of a given size (k-DPPs), wherever determinants are handled: against the sum over subsets."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import sympy
from flint import arb, arb_mat, fmpq, fmpq_mat
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st
from test_exact_det import by_subsets
from well_formed import verify

import pgcc
from pgcc.codegen.emit import emit
from pgcc.determinants.kernels.sized import tridiagonal
from pgcc.determinants.spectrum import BITS, find_spectrum
from pgcc.draw.dot import dot_text
from pgcc.errors import CircuitError, FormatError, ParseError, PgccError
from pgcc.exact.balls import ball
from pgcc.exact.pencil import BALLS, Determinant, Layout
from pgcc.exact.precision import precision
from pgcc.formats import npz
from pgcc.frontend.symbolic import to_sympy
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate, probability
from pgcc.ir.node import ONE, ZERO, Op, const, det, product, rebuild, var, weighted_sum
from pgcc.ir.numbers import UNIT
from pgcc.passes.expand_det import expand_det
from pgcc.passes.homogenize import homogenize
from pgcc.passes.sizes import of_size
from pgcc.passes.total import total
from pgcc.rings.paper import evaluate_literally
from pgcc.testing import brute_force, circuits, random_det

A, B, C = var("a"), var("b"), var("c")
IDENTITY = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
L = [[2, 1, 0], [1, 3, 1], [0, 1, 4]]


def dpp(size=None, children=(A, B, C), complements=None):
    return det(IDENTITY, IDENTITY, L, children, complements, size)


def value(circuit, seed):
    """The value at a point without structure, by the interpreter."""
    at = {name: Fraction(3 * i + seed % 7 - 5, i + 2) for i, name in enumerate(circuit.variables)}
    return evaluate(circuit, at)


seeds = st.integers(0, 10**6)
sized_dets = st.builds(
    lambda seed, n, decomposable, complements: random_det(
        seed, n, decomposable=decomposable, complements=complements, sized=True
    ),
    seeds,
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
)


# -- the definition ----------------------------------------------------------------------------------------------


@settings(max_examples=some(100), deadline=None)
@given(seeds, st.integers(1, 4))
def test_the_interpreter_sums_over_subsets(seed, n):
    root = random_det(seed, n, complements=True, alone=True, sized=True).root
    at = {f"z{i + 1}": Fraction(i - 1, 3) for i in range(n)}
    f, y = ([evaluate(Circuit(c, at), at) for c in children] for children in (root.inside, root.outside))
    assert evaluate(Circuit(root, at), at) == by_subsets(root, f, y)


@settings(max_examples=some(30), deadline=None)
@given(seeds, st.integers(1, 4))
def test_the_sizes_add_up(seed, n):
    root = random_det(seed, n, complements=True, alone=True, sized=False).root
    k = len(root.inside)
    parts = [det(*root.matrices, root.inside, root.outside, size=size) for size in range(k + 1)]
    names = [f"z{i + 1}" for i in range(n)]
    assert value(Circuit(weighted_sum([1] * (k + 1), parts), names), seed) == value(Circuit(root, names), seed)


# -- the node ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, 4, True, 1.0, "2", Fraction(1, 2)])
def test_a_size_is_a_number_of_children(size):
    with pytest.raises(CircuitError, match="the size of a determinant of 3 children is a number from 0 to 3"):
        dpp(size)


def test_the_size_is_part_of_the_node():
    two = dpp(2)
    assert two is dpp(2)
    assert two not in (dpp(1), dpp())
    assert (two.size, dpp().size, len(two.matrices)) == (2, None, 3)
    assert rebuild(two, [C, B, A, ONE, ONE, ONE]) is dpp(2, (C, B, A))
    assert verify(Circuit(two)).facts.degree == 2
    assert pickle.loads(pickle.dumps(Circuit(two))).root is two


# -- text and files ------------------------------------------------------------------------------------------------


def test_printing_and_parsing():
    bordered = Circuit(dpp(2, complements=(ONE, ZERO, C)), "abc")
    for circuit in (Circuit(dpp(2)), bordered):
        assert str(circuit).endswith("size=2)")
        assert pgcc.parse(str(circuit)).root is circuit.root
    assert "det 3×3, size 2" in dot_text(bordered)


def test_size_is_still_a_name():
    circuit = pgcc.parse("det([[1]], [[1]], [[1]], [size], size = 2 - 1) + size")
    assert circuit.variables == ("size",)
    assert circuit.root.children[0].size == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("det([[1]], [[1]], [[1]], [a], size=2)", "size of a determinant of 1 child is a number from 0 to 1, not 2"),
        ("det([[1]], [[1]], [[1]], [a], size=1/2)", "is a number from 0 to 1, not 1/2"),
        ("det([[1]], [[1]], [[1]], [a], size=a)", "the size is not a number"),
        ("det([[1]], [[1]], [[1]], [a], size=[1])", "the size is not a number"),
        ("det([[1]], [[1]], [[1]], size=1, [a])", "the size comes last"),
        ("det([[1]], [[1]], [[1]], [a], size=1, size=1)", "the size is given twice"),
        ("det([[1]], [[1]], size=1)", "this one has 2 arguments"),
        ("det([[1]], [[1]], [[1]], [a], length=1)", "found '='"),
        ("det([[1]], [[1]], [[1]], [size=1])", "found '='"),
        ("det([[1]], [[1]], [[1]], [a], 2*size=1)", "found '='"),
        ("(size=1)", "found '='"),
        ("det([[1]], [[1]], [[1]], [a], size=)", "expected a number"),
    ],
)
def test_errors_in_text(text, message):
    with pytest.raises(ParseError, match=message):
        pgcc.parse(text)


def test_npz(tmp_path):
    for seed in range(40):
        circuit = random_det(seed, 5, complements=True, exact=seed % 2 == 0)
        pgcc.save(circuit, tmp_path / "circuit.npz")
        assert pgcc.load(tmp_path / "circuit.npz") == circuit


def test_a_size_that_is_none(tmp_path):
    arrays = npz.to_arrays(Circuit(dpp(2)))
    arrays["size"] = np.array([4], dtype=np.int32)
    np.savez_compressed(tmp_path / "damaged.npz", **arrays)
    with pytest.raises(FormatError, match="no such size"):
        pgcc.load(tmp_path / "damaged.npz")


# -- passes --------------------------------------------------------------------------------------------------------


@settings(max_examples=some(60), deadline=None)
@given(sized_dets, seeds)
def test_passes_keep_the_polynomial(circuit, seed):
    expected = value(circuit, seed)
    assert value(circuit.simplify(), seed) == expected
    expanded = expand_det(circuit)
    assert expanded.facts.dets == 0
    assert value(expanded, seed) == expected
    if circuit.facts.decomposable:
        assert value(homogenize(circuit), seed) == expected


@settings(max_examples=some(60), deadline=None)
@given(circuits(max_variables=4, dets=True, multiaffine=False, max_size=6), seeds)
def test_simplify_whatever_is_constant(circuit, seed):
    assert value(circuit.simplify(), seed) == value(circuit, seed)


@pytest.mark.parametrize(
    ("root", "simple"),
    [
        (dpp(2, (ZERO, B, C)), "3*b and 4*c, both in"),
        (dpp(2, complements=(ZERO, ZERO, ONE)), "a and b are in, c is out"),
        (dpp(1, complements=(ZERO, ZERO, ONE)), "0"),
        (dpp(2, (ZERO, ZERO, C)), "0"),
        (dpp(0), "1"),
        (dpp(3), "all are in"),
        (det([[1]], [[1, 2, 3]], [[1, 1, 1]], [A, B, C], size=2), "0"),
        (dpp(1, complements=(A, ONE, ONE)), "a size that says something"),
    ],
)
def test_the_size_is_settled(root, simple):
    circuit = Circuit(root, "abc")
    simplified = circuit.simplify()
    assert value(simplified, 3) == value(circuit, 3)
    if simple.isdigit():
        assert simplified.root is const(int(simple))
    else:
        sizes = {node.size for node in simplified.order if node.op is Op.DET}
        assert sizes == ({1} if simple == "a size that says something" else {None})


@pytest.mark.slow
@settings(max_examples=some(60), deadline=None)
@given(sized_dets, st.data())
def test_condition_and_marginalize(circuit, data):
    seen = data.draw(pgcc.testing.evidence(circuit))
    more = {name: data.draw(st.integers(0, 1)) for name in circuit.variables if name not in seen}
    conditioned = circuit.observe(seen)
    assert probability(conditioned, more) == probability(circuit, {**seen, **more})
    assert evaluate(conditioned, dict.fromkeys(conditioned.variables, Fraction(1))) == probability(circuit, seen)
    assert probability(circuit.marginalize(more), seen) == probability(circuit, seen)


# -- SymPy and the paper's evaluation ---------------------------------------------------------------------------------


@settings(max_examples=some(20), deadline=None)
@given(seeds)
def test_to_sympy(seed):
    circuit = random_det(seed, 3, complements=True, sized=True)
    at = {name: Fraction(i + 2, 3) for i, name in enumerate(circuit.variables)}
    expression = to_sympy(circuit).subs({name: sympy.Rational(x.numerator, x.denominator) for name, x in at.items()})
    assert expression.doit() == sympy.Rational(*evaluate(circuit, at).as_integer_ratio())


@pytest.mark.parametrize("complement", [ONE, var("y")])
def test_to_sympy_of_a_large_one(complement):
    n = 7
    one = [[int(i == j) for j in range(n)] for i in range(n)]
    kernel = [[2 * (i == j) + Fraction(1, 1 + i + j) for j in range(n)] for i in range(n)]
    children = [var(f"z{i}") for i in range(n)]
    circuit = Circuit(det(one, one, kernel, children, [complement] + [ONE] * (n - 1), size=3))
    at = {name: Fraction(i, 2) for i, name in enumerate(circuit.variables)}
    expression = to_sympy(circuit).subs({name: sympy.Rational(x.numerator, x.denominator) for name, x in at.items()})
    assert expression.doit() == sympy.Rational(*evaluate(circuit, at).as_integer_ratio())
    too_large = Circuit(det([[1]], [[1] * n], [[1] * n], children, size=2))
    assert to_sympy(too_large) == 0


@settings(max_examples=some(30), deadline=None)
@given(sized_dets, st.data())
def test_the_paper_s_evaluation(circuit, data):
    seen = data.draw(pgcc.testing.evidence(circuit))
    codes = np.array([[seen.get(name, -1) for name in circuit.variables]], dtype=np.int8)
    values = evaluate_literally(circuit, codes)
    assert abs(values.mantissa[0] - float(probability(circuit, seen))) < 1e-7


def test_emit_refuses_a_size_and_says_what_to_do():
    with pytest.raises(PgccError, match=r"determinant of a given size.*expand_det"):
        emit(Circuit(dpp(2)))


# -- of_size -----------------------------------------------------------------------------------------------------------


def homogeneous_part(circuit, k):
    return {s: (c if len(s) == k else 0) for s, c in brute_force(circuit).items()}


@settings(max_examples=some(60), deadline=None)
@given(circuits(max_variables=5, max_size=10), st.data())
def test_of_size_is_the_homogeneous_part(circuit, data):
    k = data.draw(st.integers(0, len(circuit.variables)))
    assert brute_force(circuit.observe(size=k)) == homogeneous_part(circuit, k)


@settings(max_examples=some(40), deadline=None)
@given(circuits(max_variables=4, max_size=8, multiaffine=False), st.integers(0, 4))
def test_of_size_of_any_polynomial(circuit, k):
    """Homogeneous of degree k: g(λ·z) = λ^k·g(z); and the parts add up, if the degree is not above n."""
    k = min(k, len(circuit.variables))
    part = circuit.observe(size=k)
    at = {name: Fraction(2 * i - 3, 5) for i, name in enumerate(circuit.variables)}
    twice = {name: 2 * x for name, x in at.items()}
    assert evaluate(part, twice) == 2**k * evaluate(part, at)
    if circuit.facts.degree <= len(circuit.variables):
        parts = [evaluate(circuit.observe(size=j), at) for j in range(len(circuit.variables) + 1)]
        assert sum(parts) == evaluate(circuit, at)


@pytest.mark.parametrize("k", range(4))
def test_of_size_of_a_dpp(k):
    g = Circuit(dpp())
    part = g.observe(size=k)
    assert part == Circuit(dpp(k))
    assert brute_force(part) == homogeneous_part(g, k)
    assert part.observe(size=k) == part
    assert part.observe(size=k - 1 if k else 1).root is ZERO


@pytest.mark.slow
def test_of_size_of_mixtures_conditions_and_weights():
    g = Circuit(dpp())
    weighted = Circuit(dpp(children=(weighted_sum([2], [A]), B, C)))
    mixed = (g / 2 + weighted / 3) * pgcc.parse("0.3*d + 0.7")
    for circuit in (weighted, mixed, g.observe({"a": 1}), g.observe({"a": 0}), mixed.observe({"b": 1, "d": 0})):
        for k in range(len(circuit.variables) + 1):
            assert brute_force(circuit.observe(size=k)) == homogeneous_part(circuit, k)


def test_of_size_refuses():
    g = Circuit(dpp())
    for k in (-1, 4, True, 1.5, "2"):
        with pytest.raises(CircuitError, match="size="):
            g.observe(size=k)
    assert g.observe(size=np.int64(2)).root is dpp(2)
    for children in ((product((A, var("d"))), B, C), (weighted_sum([1, 1], [A, ONE]), B, C)):
        circuit = Circuit(dpp(children=children))  # other circuits in a determinant: by interpolation
        assert brute_force(circuit.observe(size=1)) == homogeneous_part(circuit, 1)


def test_of_size_is_iterative_and_shares():
    names = [f"z{i}" for i in range(3000)]
    root = ONE
    for name in names[:1500]:
        root = weighted_sum([1, 1], [product((root, var(name))), root])
    assert of_size(Circuit(root, names), 2).edges < 50_000
    wide = product([weighted_sum([1, 1], [var(name), ONE]) for name in names])
    part = of_size(Circuit(wide), 2)
    assert part.edges < 50_000
    assert evaluate(part, dict.fromkeys(names, 1), int) == math.comb(3000, 2)


# -- the tridiagonal form ------------------------------------------------------------------------------------


def stuck(m):
    """Sums of its squares always round down: 1, and beside it numbers whose squares are just less than half a unit."""
    S = np.eye(m)
    S[-1, : m - 1] = S[: m - 1, -1] = 2.0**-27 * 0.99
    S[-1, m - 2] = S[m - 2, -1] = 1.0
    return S


def gram(m, seed):
    B = np.random.default_rng(seed).standard_normal((m, m + 20))
    return B @ B.T / (m + 20)


def one_direction(m):
    """All of one sign, with one large eigenvalue."""
    x = np.linspace(0.9, 1.1, m)
    return np.exp(-((x - x[:, None]) ** 2))


def tiny_rows(m):
    """Rows beside the diagonal whose squares underflow."""
    S = np.eye(m)
    for i, scale in enumerate(np.logspace(-200, -100, m)):
        S[i, :i] = S[:i, i] = scale
    return S


@pytest.mark.parametrize("S", [stuck(40), gram(30, 0), gram(60, 1), one_direction(40), tiny_rows(30), np.eye(5)])
def test_a_tridiagonal_form_is_as_far_off_as_it_says(S):
    S = (S + S.T) / 2
    m = len(S)
    diagonal, beside, error = tridiagonal(S.copy())
    with precision(BITS):
        T = np.diag(diagonal) + np.diag(beside[1:], 1) + np.diag(beside[1:], -1)
        found, true = (find_spectrum(arb_mat(m, m, A.ravel().tolist()), 0.0) for A in (T, S))
    assert error < 1e-11 * np.linalg.norm(S)
    # no eigenvalue moves farther than the matrix does
    assert (np.abs(found.value - true.value) <= error + found.off + true.off + 4 * UNIT * np.abs(true.value)).all()


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e-170, 1e-200])
def test_eigenvalues_of_tiny_kernels_are_within_their_bounds(scale):
    """Squares of entries below 1e-162 underflow in a norm, which was 0: nothing was said to be off."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    S = scale * (Q @ np.diag([1.0, 1e-3, 1e-9, 1e-25]) @ Q.T)
    S = np.tril(S) + np.tril(S, -1).T
    with precision(BITS):
        found = find_spectrum(arb_mat(4, 4, S.ravel().tolist()), 0.0)
    ratios = [Fraction(x).as_integer_ratio() for x in S.ravel().tolist()]
    characteristic = fmpq_mat(4, 4, [fmpq(*x) for x in ratios]).charpoly()
    for value in found.value.tolist():
        off = Fraction(found.off) + 2 * Fraction(UNIT) * abs(Fraction(value))
        ends = [characteristic(fmpq(*(Fraction(value) + d).as_integer_ratio())) for d in (-off, off)]
        assert ends[0] * ends[1] <= 0  # a change of sign


def test_sums_of_sizes_are_within_their_bounds():
    """Of kernels whose items are partly in and out, against the same sum in balls."""
    rng = np.random.default_rng(5)
    for n, k in ((6, 3), (25, 12), (60, 7)):
        L = gram(n, n)
        model = pgcc.compile(pgcc.dpp(L=L).observe(size=k))
        rows = rng.choice([-1, -1, -1, 0, 1], (12, n))
        rows[(rows == 1).sum(axis=1) > k] = -1
        values, bounds = model.prob(rows, bound=True, method="direct")
        assert (bounds < 1e-9).all()
        exact = pgcc.compile(pgcc.dpp(L=L).observe(size=k)).prob(rows, rtol=1e-14)
        assert (np.abs(values - exact) <= (bounds + 2e-14) * np.abs(exact)).all()


def test_the_total_of_a_k_dpp_of_many_items():
    """Its size is no reason for thousands of bits: by interpolation at 0, 1, …, 100 this took minutes."""
    values = np.linspace(0.1, 3.0, 100)
    e = np.zeros(11)
    e[0] = 1.0
    for x in values:
        e[1:] += x * e[:-1]
    assert total(pgcc.dpp(L=np.diag(values)).observe(size=10)) == pytest.approx(e[10], rel=1e-11)


@settings(max_examples=some(30))
@given(st.integers(0, 10**6))
def test_totals_of_sizes_in_balls(seed):
    """With complements, with children that are not counted, and where nothing of that size is left."""
    rng = np.random.default_rng(seed)
    r, k = int(rng.integers(0, 4)), int(rng.integers(1, 5))
    m0, u, v = (rng.integers(-3, 4, shape).astype(float) for shape in ((r, r), (r, k), (r, k)))
    counted = rng.integers(0, 2, k).astype(bool)
    size = int(rng.integers(0, counted.sum() + 1))
    y = rng.choice([0.0, 0.5, 1.0, 1.0], k).tolist()
    f = rng.choice([0.0, 0.5, 1.0, 3.0], k).tolist()
    node = det(m0, u, v, [const(x) for x in f], [const(x) for x in y], size=size, counted=counted)
    exact = det(
        m0.astype(int).tolist(),
        u.astype(int).tolist(),
        v.astype(int).tolist(),
        node.inside,
        node.outside,
        size=size,
        counted=counted,
    )
    true = evaluate(Circuit(exact), {})
    with precision(256):
        found = Determinant(Layout(node), BALLS).at([arb(x) for x in f], [arb(x) for x in y])
        assert arb(found).contains(ball(true))

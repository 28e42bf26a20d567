"""Derivatives of log-probabilities, against exact difference quotients in fractions."""

from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.determinants.cofactors import cofactors
from pgcc.errors import PgccError, PrecisionError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Op, const, det, product, rebuild, var, weighted_sum
from pgcc.queries.gradient import GradientFunction
from pgcc.testing import oracle_probability, random_circuit, random_det, random_evidence

STEP = Fraction(1, 10**12)


def replaced(circuit, node, other):
    """The circuit with another node in the place of one."""
    new = []
    for each, below in zip(circuit.order, circuit._links, strict=True):
        new.append(other if each is node else rebuild(each, [new[c] for c in below]))
    return Circuit(new[-1], circuit.variables)


def moved(node, place, by):
    """The node with one of its numbers moved."""
    if node.op is Op.CONST:
        return const(Fraction(node.value) + by)
    if node.op is Op.SUM:
        weights = [Fraction(w) for w in node.weights]
        weights[place] += by
        return weighted_sum(weights, node.children)
    which, i, j = place
    matrices = [[[Fraction(x) for x in row] for row in m.numbers()] for m in node.matrices]
    matrices[which][i][j] += by
    return det(*matrices, node.inside, node.outside, node.size, None if node.size is None else node.counted)


def quotient(circuit, evidence, node, place, normalize):
    """∂ log Pr by a difference quotient: exact but for the step."""

    def log_slope(seen):
        ahead, behind = (replaced(circuit, node, moved(node, place, sign * STEP)) for sign in (1, -1))
        rise = oracle_probability(ahead, seen) - oracle_probability(behind, seen)
        return rise / (2 * STEP) / oracle_probability(circuit, seen)

    return float(log_slope(evidence) - log_slope({}) if normalize else log_slope(evidence))


def places(node):
    if node.op is Op.SUM:
        return range(len(node.weights))
    if node.op is Op.CONST:
        return [0]
    return [(w, i, j) for w, m in enumerate(node.matrices) for i in range(m.shape[0]) for j in range(m.shape[1])]


def got(gradient, node, place):
    found = gradient[node]
    if node.op is Op.CONST:
        return found
    return found[place] if node.op is Op.SUM else found[place[0]][place[1:]]


def assert_right(circuit, evidence, rng, normalize=False, most=12):
    mass, total = oracle_probability(circuit, evidence), oracle_probability(circuit, {})
    if mass <= 0 or (normalize and total <= 0):
        return 0
    if normalize and mass > total:
        with pytest.raises(SemanticsError, match="above 1"):
            pgcc.grad(circuit, evidence)
        return 0
    if normalize and oracle_probability(circuit, evidence) > oracle_probability(circuit, {}):
        with pytest.raises(SemanticsError, match="above 1"):
            pgcc.grad(circuit, evidence)
        return 0
    gradient = pgcc.grad(circuit, evidence, normalize=normalize)
    pairs = [(node, place) for node in gradient for place in places(node)]
    scale = max(1.0, max(abs(got(gradient, *pair)) for pair in pairs))
    for k in rng.permutation(len(pairs))[:most]:
        expected = quotient(circuit, evidence, *pairs[k], normalize)
        assert got(gradient, *pairs[k]) == pytest.approx(expected, rel=1e-8, abs=1e-11 * scale), pairs[k]
    return 1


@pytest.mark.slow
@pytest.mark.parametrize("normalize", [False, True])
def test_circuits(normalize):
    rng = np.random.default_rng(1)
    done = 0
    for seed in range(50):
        circuit = random_circuit(seed, n=int(rng.integers(1, 7)), negative=bool(seed % 2))
        done += assert_right(circuit, random_evidence(rng, circuit), rng, normalize)
    assert done > 20


@pytest.mark.parametrize("complements", [False, True])
def test_determinants(complements):
    rng = np.random.default_rng(2)
    done = 0
    for seed in range(40):
        circuit = random_det(seed, n=int(rng.integers(1, 6)), complements=complements, sized=False)
        done += assert_right(circuit, random_evidence(rng, circuit), rng, most=5)
    assert done > 10


@pytest.mark.slow
def test_kernels_and_trees():
    rng = np.random.default_rng(3)
    for seed in range(4):
        B = np.random.default_rng(seed).integers(-2, 3, (4, 4))
        circuits = [
            pgcc.dpp(L=(B @ B.T).tolist()),
            pgcc.dpp(factor=B[:, :2]),
            pgcc.spanning_tree([("a", "b", 2), ("b", "c", 3), ("a", "c", 1), ("c", "d", 1), ("b", "d", 5)]),
            pgcc.mixture([0.25, 0.75], [pgcc.dpp(L=(B @ B.T).tolist()), pgcc.dpp(L=np.eye(4).tolist())]),
        ]
        for circuit in circuits:
            assert_right(circuit, random_evidence(rng, circuit), rng, normalize=True, most=4)


def test_a_singular_determinant_in_a_mixture():
    """One component cannot have made the set, and still tells how it could: the adjugate, not the inverse."""
    rank_one = pgcc.dpp(L=[[1, 1], [1, 1]])
    circuit = Fraction(1, 2) * rank_one + Fraction(1, 2) * pgcc.dpp(L=[[1, 0], [0, 1]])
    rng = np.random.default_rng(4)
    assert assert_right(circuit, {"x1": 1, "x2": 1}, rng, most=50)


def test_circuits_that_are_not_decomposable():
    """A derivative is that of the coefficient of t^|A|, whether or not the moved circuit still has no squares."""
    rng = np.random.default_rng(6)
    done = 0
    for seed in range(40):
        circuit = random_circuit(seed, n=int(rng.integers(1, 5)), decomposable=False, negative=bool(seed % 2))
        done += assert_right(circuit, random_evidence(rng, circuit), rng, normalize=bool(seed % 3), most=6)
    circuit = pgcc.parse("0.3*(a + 1)*(a + 1) - 0.3*a*a + 0.2*b*c + 0.1*(b + 1)**2 - 0.1*b**2")
    for evidence in ({"a": 1, "b": 0}, {"b": 1, "c": 1}, {"a": 1, "c": 1}):
        done += assert_right(circuit, evidence, rng, normalize=True, most=99)
    assert done > 15


@pytest.mark.slow
def test_determinants_of_one_size():
    rng = np.random.default_rng(7)
    done = 0
    for seed in range(20):
        circuit = random_det(seed, n=int(rng.integers(1, 5)), sized=True)
        done += assert_right(circuit, random_evidence(rng, circuit), rng, most=5)
    B = rng.integers(-2, 3, (5, 5))
    whole = pgcc.dpp(L=(B @ B.T).tolist())
    for circuit in (
        whole.observe(size=2),
        pgcc.mixture([0.5, 0.5], [whole.observe(size=2), whole]),
        whole.observe(size=1, over=["x1", "x2"]),
    ):
        done += assert_right(circuit, {"x1": 1, "x3": 0}, rng, normalize=True, most=8)
    assert done > 8


def test_a_large_set_of_one_size():
    """The derivative of log Pr(S) of a k-DPP by L_S is L_S⁻¹, less what e_k(L) has."""
    rng = np.random.default_rng(8)
    B = rng.standard_normal((40, 40))
    L = B @ B.T
    circuit, members = pgcc.dpp(L=L).observe(size=12), np.sort(rng.permutation(40)[:12])
    gradient = pgcc.grad(circuit, {f"x{i + 1}": int(i in members) for i in range(40)}, normalize=False)
    node = next(each for each in circuit.order if each.op is Op.DET)
    np.testing.assert_allclose(
        gradient[node][2].T[np.ix_(members, members)],
        np.linalg.inv(L[np.ix_(members, members)]).T,
        rtol=1e-8,
        atol=1e-10,
    )


def test_zeros_in_products():
    circuit = pgcc.parse("(2*a + 3*b)*(5*c + 7) + 11*d")
    rng = np.random.default_rng(5)
    for evidence in ({"a": 0, "b": 0}, {"a": 0, "b": 0, "c": 0}, {"d": 0, "a": 1}, {"d": 0, "b": 0}):
        assert assert_right(circuit, evidence, rng, most=99)


def test_rows_add_up_with_their_weights():
    circuit = pgcc.parse("0.4*a*b + 0.3*a + 0.3")
    rows = np.array([[1, 1], [1, -1], [0, 0]])
    together = pgcc.grad(circuit, rows, weights=[1.0, 2.0, 0.5])
    parts = [pgcc.grad(circuit, row) for row in rows]
    for node in together.weights:
        expected = parts[0][node] + 2 * parts[1][node] + 0.5 * parts[2][node]
        np.testing.assert_allclose(together[node], expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(together.logprob, pgcc.compile(circuit).logprob(rows), rtol=1e-12, atol=1e-14)


def test_far_below_the_range_of_floats():
    """Every weight of a long chain of independent variables: log p has the derivative 1/p."""
    n = 4000
    circuit = pgcc.product([pgcc.parse(f"p*x{i} + q".replace("p", "0.25").replace("q", "0.75")) for i in range(n)])
    gradient = pgcc.grad(circuit, np.ones(n, int))
    assert gradient.logprob == pytest.approx(n * np.log(0.25), rel=1e-12)
    for weights in gradient.weights.values():
        np.testing.assert_allclose(weights, [4.0 - 1.0, -0.75], rtol=1e-10)


def test_the_bound_on_underflow_follows_the_weights():
    """Weights that become subnormal: the bound is that of a circuit which has them from the beginning."""

    def differentiator(tiny):
        names = ["a", "b", "c", "d"]
        leaves = [
            weighted_sum((w,), (var(name),)) for w, name in zip((tiny, 1e200, 1e-160, 1e-160), names, strict=True)
        ]
        pairs = [product(leaves[:2]), product(leaves[2:])]
        return GradientFunction(Circuit(product(pairs), names), normalize=False).differentiator

    given = differentiator(1e-309)
    for before in (0.0, 0.5, 1e-320):
        changed = differentiator(before)
        assert changed.floor is not None
        changed.update(given.program.weights, [])
        assert changed.floor == given.floor


@pytest.mark.slow
def test_large_determinants():
    """L = 10⁻³·(1 + noise) of 300 items: the determinant is about 10⁻⁹⁰⁰, its derivative is L⁻¹ − (I + L)⁻¹."""
    noise = np.random.default_rng(0).random((300, 300)) * 1e-7
    L = 1e-3 * np.eye(300) + noise + noise.T
    circuit = pgcc.dpp(L=L)
    gradient = pgcc.grad(circuit, np.ones(300, int))
    expected = np.linalg.inv(L) - np.linalg.inv(np.eye(300) + L)
    np.testing.assert_allclose(gradient[circuit][2].T, expected, rtol=1e-8, atol=1e-8)


def test_cofactors_of_every_rank():
    rng = np.random.default_rng(6)
    for n in range(1, 6):
        for rank in range(n + 1):
            W = (rng.integers(-3, 4, (1, n, rank)) @ rng.integers(-3, 4, (1, rank, n))).astype(float)
            value, C, exponent = cofactors(W)
            minors = np.array(
                [
                    [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(W[0], i, 0), j, 1)) for j in range(n)]
                    for i in range(n)
                ]
            )
            np.testing.assert_allclose(C[0] * 2.0 ** exponent[0], minors, atol=1e-10 * max(1, np.abs(minors).max()))
            assert value[0] * 2.0 ** exponent[0] == pytest.approx(np.linalg.det(W[0]), abs=1e-9)


def test_cancellation_is_said():
    circuit = pgcc.parse("(a + 1e9)*(b + 1e9) - 1e9*a - 1e9*b - 999999999999999997")  # a*b + 3
    with pytest.raises(PrecisionError, match=r"cancel|positive"):
        pgcc.grad(circuit, {"a": 0, "b": 0})


def test_a_derivative_that_cancels_where_the_value_does_not():
    """The weight 0 hides a sum that is 0, of which float64 leaves 0.555."""
    with pytest.raises(PrecisionError, match="lost"):
        pgcc.grad(pgcc.parse("1 + b + 0*(1e16*(0.1*a + 0.2*a - 0.3*a + 0*b))"), {})


def test_a_determinant_that_cancels_where_the_value_does_not():
    """w·10¹⁴·D + 1 + v with D = 1 − (1 − 10⁻¹⁴)·v and w = 10⁻¹⁴: by w it is 1/2, of which float64 loses 4e-4."""
    node = det([[1]], [[1]], [[-(1 - Fraction(1, 10**14))]], [var("v")])
    terms = [weighted_sum([10**14], [node]), weighted_sum([1, 1], [var("v"), const(1)])]
    circuit = Circuit(weighted_sum([Fraction(1, 10**14), 1], terms))
    with pytest.raises(PrecisionError, match="lost"):
        pgcc.grad(circuit, {}, normalize=False)
    assert pgcc.grad(circuit, {"v": 0}, normalize=False)[circuit][1] == pytest.approx(0.5)


def test_a_value_that_cancels_is_named():
    """Evidence whose value float64 has lost: 1 − (1 − 1e-10)·v where v is free."""
    circuit = pgcc.determinant([[1]], [[1]], [[-(1 - Fraction(1, 10**10))]], ["v"])
    with pytest.raises(PrecisionError, match="the terms of no evidence cancel"):
        pgcc.grad(circuit, {}, normalize=False)


def test_what_has_no_derivative():
    circuit = pgcc.parse("0.4*a*b + 0.6")
    with pytest.raises(SemanticsError, match=r"a=1, b=0 has probability 0"):
        pgcc.grad(circuit, {"a": 1, "b": 0})
    with pytest.raises(SemanticsError, match="negative value"):
        pgcc.grad(pgcc.parse("2 - a"), {"a": 1}, normalize=False)
    with pytest.raises(PgccError, match="3 finite numbers"):
        pgcc.grad(circuit, np.ones((3, 2), int), weights=[1.0])
    with pytest.raises(PgccError, match="Circuit"):
        pgcc.grad("z1")
    with pytest.raises(PgccError, match="not in this circuit"):
        pgcc.grad(circuit, {"a": 1, "b": 1})[pgcc.parse("z9")]
    assert "derivatives" in repr(pgcc.grad(circuit, {}))


def test_derivatives_beside_a_determinant_that_cancels_are_not_noise():
    """Of its value, 1e-13, doubles know three digits; that of the circuit does not show it."""
    circuit = pgcc.parse("1/10**15*det([[1]], [[1]], [[-9999999999999/10000000000000]], [v]) + 1/10**20*(v + 1)")
    with pytest.raises(PrecisionError, match="determinant cancels"):
        pgcc.grad(circuit, {}, normalize=False)

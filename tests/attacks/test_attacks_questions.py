"""What broke questions once: minimal examples, each with an oracle of its own."""

import math
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.determinants.cofactors import cofactors
from pgcc.errors import EvidenceError, PgccError, PrecisionError, SemanticsError
from pgcc.rings.values import Values

EXAMPLE = pgcc.parse("0.4*a*b + 0.3*a + 0.3")


def model(text, **settings):
    return pgcc.compile(pgcc.parse(text), **settings)


# -- numbers below and above the range of doubles ---------------------------------------------------


@pytest.mark.parametrize(
    ("text", "evidence", "expected"),
    [
        ("a + 1e-400", {"a": 0}, [0.0]),  # was: probability 0
        ("0*a + 1e-400", {}, [0.0]),
        ("1e-400*a + 1e-300", {}, [1e-100]),  # was: 0
        ("(1e-400*a + 1e-400)*(b + 1)", {"b": 1}, [0.5, 1.0]),
        ("1e-320*a + 1e-310", {}, [Fraction(1, 10**10 + 1)]),
    ],
)
def test_weights_that_are_no_doubles(text, evidence, expected):
    asked = model(text)
    expected = [float(p) for p in expected]
    assert asked.marginals(evidence, names=False).tolist() == pytest.approx(expected, rel=1e-12, abs=0)
    conditional = [asked.conditional({name: 1}, evidence) for name in asked.variables]
    assert conditional == pytest.approx(expected, rel=1e-12, abs=0)  # the last one was inf


@pytest.mark.parametrize("shift", range(-320, 330, 40))
def test_small_posteriors_of_rows_that_left_the_range(shift):
    """Where the root of scaled numbers was small, what is divided by it fell below the least double before."""
    asked = pgcc.compile(Fraction(10) ** (shift - 400) * pgcc.parse("1e-290*a + 1"))
    assert asked.marginals()[0] == pytest.approx(1e-290, rel=1e-12, abs=0)
    assert asked.pairwise()[0, 0] == pytest.approx(1e-290, rel=1e-12, abs=0)


def test_quotients_of_mantissas_of_any_size():
    exactly = np.zeros(1)
    tiny = Values(np.array([5e-324]), np.array([0]), exactly)
    one = Values(np.ones(1), np.array([-1074]), exactly)
    assert tiny.over(one).tolist() == one.over(tiny).tolist() == [1.0]


# -- polynomials that are no distributions ----------------------------------------------------------


@pytest.mark.parametrize("text", ["-0.5*a*b - 0.5", "a*b - 0.25*a + 0.5"])
@pytest.mark.parametrize("question", ["mode", "entropy", "pairwise"])
def test_negative_coefficients_of_a_raw_polynomial(text, question):
    with pytest.raises(SemanticsError, match="negative"):
        getattr(model(text, normalize=False), question)()


def test_a_negative_total_has_no_posteriors():
    raw = model("-0.5*a*b - 0.5", normalize=False)
    for ask in (raw.marginals, raw.log_odds, lambda: raw.kl(raw), lambda: raw.conditional({"a": 1}), raw.condition):
        with pytest.raises(SemanticsError, match="negative"):
            ask() if ask != raw.condition else ask({})
    with pytest.raises(SemanticsError, match="negative"):
        raw.mutual_information("a", "b")


# -- information ------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1e-3, 1e-12, 1e-100, 1e-300])
def test_the_entropy_of_what_is_nearly_certain(x):
    exact = math.log1p(x) - x / (1 + x) * math.log(x)
    assert model(f"{x!r}*a + 1").entropy() == pytest.approx(exact, rel=1e-9, abs=0)


def test_entropy_of_one_possibility_is_a_plain_zero():
    assert math.copysign(1.0, pgcc.compile(EXAMPLE).entropy({"a": 1, "b": 1})) == 1.0


def test_mutual_information_given_very_improbable_evidence():
    """Was NaN: the evidence has probability 1e-1200."""
    many = pgcc.product([pgcc.parse(f"1e-3*x{i} + 1") for i in range(400)])
    given = dict.fromkeys(many.variables, 1)
    expected = pgcc.compile(EXAMPLE).mutual_information("a", "b")
    assert pgcc.compile(many * EXAMPLE).mutual_information("a", "b", given) == pytest.approx(expected, rel=1e-9)


def test_mutual_information_of_two_rare_variables():
    """Was inf: the product of their probabilities is below the range of doubles."""
    p = 1e-200
    assert model("1e-200*a*b + 1").mutual_information("a", "b") == pytest.approx(p * (1 - math.log(p)), rel=1e-9, abs=0)


@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-6, 1e-7])
def test_divergences_of_what_is_close(eps):
    step = Fraction(eps)
    near = pgcc.compile((1 + step) * pgcc.parse("a") + (1 - step))
    expected = math.atanh(eps) * eps + math.log1p(-eps * eps) / 2 if eps > 1e-5 else eps * eps / 2
    assert near.kl(model("a + 1")) == pytest.approx(expected, rel=1e-8, abs=0)


def test_a_divergence_from_below_the_range_of_doubles():
    assert model("1e-310*a + 1").kl(model("a + 1e-310")) == pytest.approx(310 * math.log(10), rel=1e-12)


def test_a_standard_error_knows_what_samples_cannot_see():
    """10,000 samples see nothing but the empty set as a rule: their scatter is 0, the entropy is not."""
    x, n = 1e-6, 20
    factors = [pgcc.parse(f"1e-6*x{i} + 1") for i in range(n)]
    pair = pgcc.parse("1e-12*x0*x1 + 1e-6*x0 + 1e-6*x1 + 1")
    both = [pgcc.product(factors), pgcc.product([pair, *factors[2:]])]  # the same: no longer deterministic
    rare = pgcc.compile(pgcc.mixture(["1/2", "1/2"], both))
    exact = n * (math.log1p(x) - x / (1 + x) * math.log(x))
    for seed in range(5):
        found = rare.entropy(rng=seed)
        assert 0.0 < abs(found - exact) <= found.standard_error


# -- tables without rows, arguments without sense ---------------------------------------------------


def test_no_rows():
    asked, none = pgcc.compile(EXAMPLE), np.zeros((0, 2), int)
    assert asked.conditional(none, none).shape == asked.conditional(none, {"a": 1}).shape == (0,)
    assert asked.marginals(none).shape == asked.log_odds(none).shape == (0, 2)
    assert asked.pairwise(none).shape == (0, 2, 2)
    for circuit in (EXAMPLE, pgcc.dpp(L=[[1.0, 0.5], [0.5, 1.0]])):
        assert pgcc.grad(circuit, none).logprob.shape == (0,)


def test_arguments_are_checked():
    asked = pgcc.compile(EXAMPLE)
    for seconds in (-1, 0, "all", None, True, float("nan")):
        with pytest.raises(PgccError, match="time_limit="):
            asked.mode(time_limit=seconds)
    for k in (0, -1, 2.5, "all", None, True):
        with pytest.raises(PgccError, match="k="):
            asked.top(k)
    for weights in ("x", [None], [1j], [[1.0]]):
        with pytest.raises(PgccError, match="1 finite numbers"):
            pgcc.grad(EXAMPLE, {"a": 1}, weights=weights)
    for ask in (asked.marginals, asked.sample):
        with pytest.raises(EvidenceError, match="size"):
            ask(over=["a"])


# -- gradients --------------------------------------------------------------------------------------


def test_gradients_of_rows_that_leave_the_range():
    """Were NaN: 0·inf of a row that float64 could not hold was added to the sum."""
    circuit = pgcc.parse("a*(1e200*b + 1e200)*(1e200*c + 1)")
    found = pgcc.grad(circuit, {"a": 1}, normalize=False)
    elasticities = sorted(
        float(w) * d for node in found.weights for w, d in zip(node.weights, found[node], strict=True)
    )
    assert elasticities == pytest.approx([1e-200, 0.5, 0.5, 1.0], rel=1e-12, abs=0)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_adjoints_that_leave_the_range_though_the_root_does_not(order):
    factors = [pgcc.parse(text) for text in ("1e300*a + 1", "1e-200*b + 0", "1e-130*c + 0")]
    circuit = pgcc.product([factors[i] for i in order])
    found = pgcc.grad(circuit, {"a": 1, "b": 1, "c": 1}, normalize=False)
    for node in found.weights:
        assert found[node][0] * float(node.weights[0]) == pytest.approx(1.0, rel=1e-12)  # was 0 for 1e300


def test_derivatives_beyond_all_doubles():
    assert pgcc.grad(pgcc.parse("1e-250*a*(1e-300*b)"), {"a": 1, "b": 1}, normalize=False).logprob < -1000
    with pytest.raises(PrecisionError, match="range of doubles"):
        pgcc.grad(pgcc.parse("1e-400*a + 1"), {"a": 1})


@pytest.mark.parametrize("spread", [4, 10, 50, 150])
def test_gradients_of_kernels_with_items_of_very_different_size(spread):
    """∂ log det L = L⁻ᵀ, exact for D·A·D with D a power of two; was wrong by 1e-8, then said to have probability 0."""
    A = np.array([[3.0, 1.0, 1.0], [1.0, 2.0, 0.0], [1.0, 0.0, 1.0]])
    D = np.diag(2.0 ** np.array([-spread, 0, spread]))
    circuit = pgcc.dpp(L=D @ A @ D)
    found = pgcc.grad(circuit, {"x1": 1, "x2": 1, "x3": 1}, normalize=False)[circuit][2].T
    inverse = np.array([[2.0, -1.0, -2.0], [-1.0, 2.0, 1.0], [-2.0, 1.0, 5.0]]) / 3  # of A
    assert found == pytest.approx(np.linalg.inv(D) @ inverse @ np.linalg.inv(D), rel=1e-10, abs=0)


def test_cofactors_of_a_graded_singular_matrix():
    W = np.array([[[1e40, 1e20, 1.0], [1e20, 1.0, 1e-20], [1.0, 1e-20, 2e-40]]])  # the first two rows are parallel
    value, C, exponent = cofactors(W)
    assert abs(value[0]) * 2.0 ** exponent[0] < 1e-12
    assert C[0, 0, 0] * 2.0 ** exponent[0] == pytest.approx(1e-40, rel=1e-9, abs=0)
    assert C[0, 1, 1] * 2.0 ** exponent[0] == pytest.approx(1.0, rel=1e-9)
    assert C[0, 0, 1] * 2.0 ** exponent[0] == pytest.approx(-1e-20, rel=1e-9, abs=0)


def test_a_negative_value_has_no_derivative():
    with pytest.raises(SemanticsError, match="negative value"):
        pgcc.grad(pgcc.parse("2 - a"), {"a": 1}, normalize=False)


# -- derivatives ------------------------------------------------------------------------------------


BESIDE = {
    "a determinant": "det([[1, 0.5], [0.5, 1]], [[1, 0], [0, 1]], [[1, 0.2], [0.2, 1]], [x, y])",
    "one of a size": "det([[1, 0.5], [0.5, 1]], [[1, 0], [0, 1]], [[1, 0.2], [0.2, 1]], [x, y], size=1)",
    "a square that cancels": "((x + 1)*(x + 1) - x*x)",
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE.keys())
def test_derivatives_are_not_lost_beside_what_has_no_bounds(beside):
    """∂ log g/∂(1e-30) is B/(1e-30·B + 1), off by 2e-4: B = 1e20·(p − q) cancels, and 1e-30·B does not show in g."""
    tiny = "1e20*(0.1*(a + 1)) - 1e20*(0.1*(a + 1.000000000001))"
    g = pgcc.parse(f"(1e-30*({tiny}) + 1) * {beside}")
    with pytest.raises(PrecisionError, match="cancel"):
        pgcc.grad(g, {}, normalize=False)
    plain = pgcc.parse(f"(1e-5*(0.3*(a + 1) - 0.1*(a + 1.25)) + 1) * {beside}")
    assert np.isfinite(pgcc.grad(plain, {}, normalize=False).logprob)


# -- errors that were tracebacks --------------------------------------------------------------------


HUGE = Fraction(10) ** 6000
PART = pgcc.parse("y/2 + 1/2")
TOO_LONG = {
    "exact": lambda: pgcc.compile(pgcc.parse("1e400*x - 1e400*y + 1"), validate=False).prob({"x": 0}, exact=True),
    "floats": lambda: pgcc.mixture([1e308, 1e308], [EXAMPLE, PART]),
    "weights": lambda: pgcc.mixture([HUGE, 0], [EXAMPLE, PART]),
    "negative": lambda: pgcc.mixture([-HUGE, 0], [EXAMPLE, PART]),
    "total": lambda: pgcc.mixture([1], [HUGE * PART], normalize=False),
    "normalize": lambda: (-HUGE * PART).normalize(),
    "compose": lambda: PART.compose({"y": HUGE * PART}),
    "tilt": lambda: PART.tilt({"y": -HUGE}),
    "probability": lambda: pgcc.pc.bernoulli("a", HUGE),
    "evidence": lambda: pgcc.compile(PART).prob({"y": HUGE}),
    "size": lambda: pgcc.compile(PART).prob(size=int(HUGE)),
    "samples": lambda: pgcc.compile(PART).sample(int(HUGE)),
    "time": lambda: pgcc.compile(PART).mode(time_limit=int(HUGE)),
    "subsets": lambda: pgcc.subsets("a b", int(HUGE)),
}


@pytest.mark.parametrize("wrong", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_numbers_of_any_length_in_errors(wrong):
    """Python writes no number of more than 4,300 digits, and makes no double of one above 1.8e308."""
    with pytest.raises(PgccError):
        wrong()


# -- numbers that were rounded in silence -----------------------------------------------------------


def test_a_bayesian_network_of_fractions():
    """Pr(a = 0) was 1 − fl(p): 0 where it is 1e-30; and 1e-400 was 0."""
    networkx = pytest.importorskip("networkx")
    G = networkx.DiGraph([("a", "b")])
    G.nodes["a"]["cpt"] = 1 - Fraction(1, 10**30)
    G.nodes["b"]["cpt"] = {(0,): Fraction(1, 3), (1,): Fraction(1, 10**20)}
    asked = pgcc.compile(pgcc.builders.bayesian_network(G))
    assert asked.prob({"a": 0}) == pytest.approx(1e-30, rel=1e-12)
    assert asked.prob({"a": 0, "b": 0}) == pytest.approx(2e-30 / 3, rel=1e-12)
    G.nodes["b"]["cpt"] = {(0,): Fraction(1, 3), (1,): Fraction(1, 10**400)}
    with pytest.raises(PgccError, match="below the range of float64"):
        pgcc.builders.bayesian_network(G)

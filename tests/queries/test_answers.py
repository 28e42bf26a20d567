"""Answers are as accurate as is said: logarithms near 0, estimates, moments, modes; against closed forms."""

import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import pgcc
from pgcc.compiler import Compiled
from pgcc.queries import mode
from pgcc.queries.information import Estimate
from pgcc.validity.support import least_log_coefficient

F = Fraction


def product(text, n, names="v"):
    return pgcc.product([pgcc.parse(text.replace("x", f"{names}{i}")) for i in range(n)])


def log(q):
    """The logarithm of a fraction."""
    with mpmath.workdps(400):
        return float(mpmath.log(mpmath.mpf(q.numerator) / q.denominator))


# -- logarithms near 0 ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["1e-60", "1e-150", "1e-250", "1e200"])
def test_logarithms_of_a_small_value_by_a_small_total(scale):
    """The total comes from balls, as m·2^-498, and the value from float64: two logarithms of 345 were subtracted."""
    for eps in ("3e-4", "1e-4", "2e-5", "1e-5"):
        cancels = "1e9*(z*(w + 1)*(v + 1) - 0.99999999999999999*z*(w*v + w + v + 1))*a"
        model = pgcc.compile(pgcc.parse(f"{scale}*(a + {eps} + {cancels})"))
        row = {"a": 1, "z": 0}
        assert model.logprob(row) == pytest.approx(log(model.prob(row, exact=True)), rel=1e-9, abs=0)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"normalize": False}, {"rtol": 1e-13}], ids=str)
@pytest.mark.parametrize("eps", [F(1, 10**k) for k in (1, 6, 12, 16, 300)])
def test_logprob_near_one(eps, settings):
    """At p = 1 − 1e-12 it had a relative error of 2e-5."""
    rtol = settings.get("rtol", 1e-9)
    for circuit, q in (
        (eps * pgcc.parse("a") + (1 - eps), 1 - eps),
        ((eps * pgcc.parse("a") + (1 - eps)) * (eps * pgcc.parse("b") + (1 - eps)), (1 - eps) ** 2),
        (pgcc.parse("(a + 1)**2 - a**2") * eps / 3 + (1 - eps), None),  # not decomposable: 2/3·ε·a + ε/3 + 1 − ε
        (pgcc.parse("a*b + a + 1") * eps / 3 + (1 - eps), 1 - eps + eps / 3),
    ):
        q = 1 - 2 * eps / 3 if q is None else q
        model = pgcc.compile(circuit, **settings)
        out = dict.fromkeys(circuit.variables, 0)
        assert model.logprob(out) == pytest.approx(log(q), rel=rtol, abs=0)
        rows = np.zeros((2000, len(circuit.variables)), np.int8)
        np.testing.assert_allclose(model.logprob(rows), log(q), rtol=rtol, atol=0)
        assert model.logprob({}) == 0.0


def test_logprob_near_one_of_determinants():
    for eps in (1e-6, 1e-9, 1e-12):
        L = [[F(eps), F(eps) / 3], [F(eps) / 3, F(eps)]]
        model = pgcc.compile(pgcc.dpp(L=L, names=["a", "b"]))
        total = 1 + 2 * F(eps) + F(eps) ** 2 * F(8, 9)
        assert model.logprob({"a": 0, "b": 0}) == pytest.approx(log(1 / total), rel=1e-9, abs=0)
        assert model.logprob({"a": 0}) == pytest.approx(log((1 + F(eps)) / total), rel=1e-9, abs=0)


def test_what_is_certain_has_the_logarithm_0():
    model = pgcc.compile(pgcc.parse("a*(0.3*b + 0.7)*(0.1*c + 0.9)"))
    assert model.logprob({"a": 1}) == 0.0
    assert model.logprob([[1, -1, -1], [-1, -1, -1]]).tolist() == [0.0, 0.0]


def test_raw_polynomials_near_one():
    raw = pgcc.compile(pgcc.parse("1.000000000001*a + 0.5"), normalize=False)
    assert raw.logprob({"a": 1}) == pytest.approx(math.log1p(1e-12), rel=1e-9, abs=0)
    assert pgcc.compile(pgcc.parse("a + 0.5"), normalize=False).logprob({"a": 1}) == 0.0


# -- log-odds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [F(0), F(1, 10**6), F(-1, 10**11), F(1, 10**15), F(1, 10**40)])
def test_log_odds_near_one_half(shift):
    p = F(1, 2) + shift
    circuit = (p * pgcc.parse("a") + (1 - p)) * pgcc.parse("(b + 3)/4")
    found = pgcc.compile(circuit).log_odds()
    assert found[0] == pytest.approx(log(p / (1 - p)), rel=1e-9, abs=0)
    assert found[1] == pytest.approx(-math.log(3), rel=1e-12)


def test_log_odds_beside_a_singular_determinant():
    """Balls of a singular matrix are as wide with however many bits; rationals know that it is 0."""
    t = F(1, 10**170)
    u, v = [[1, 1, 0], [0, 0, -2], [-2, -1, -2]], [[2, 1, -2], [2, 0, 0], [-2, -1, 1]]
    matrices = [[[x * t for x in row] for row in m] for m in (u, v)]
    singular = pgcc.determinant([[1, 0, 0], [0, 0, 0], [0, 0, 0]], *matrices, ["a", "b", "c"])
    model = pgcc.compile(2**2255 * singular + F(27, 2) * pgcc.parse("(a + 1)*(b + 1)*(c + 1)"))
    assert 0 < model.prob({"a": 1, "b": 1}, exact=True) - model.prob({"a": 0, "b": 1}, exact=True) < F(1, 10**330)
    assert model.log_odds({"b": 1}, names=False).tolist() == [0.0, math.inf, 0.0]  # ±1e-342


# -- improbable evidence ----------------------------------------------------------------------------


@pytest.mark.slow
def test_information_given_evidence_of_a_log_probability_of_ten_million():
    """Differences of logarithms of −10⁷ keep nine digits, and the sum of what they make is not 1."""
    example = pgcc.parse("0.4*a*b + 0.3*a + 0.3")
    weight = F(1, 2**1000)
    many = pgcc.product([weight * v + (1 - weight) for v in pgcc.variables([f"x{i}" for i in range(14_500)])])
    given = dict.fromkeys(many.variables, 1)
    model, alone = pgcc.compile(many * example), pgcc.compile(example, rtol=1e-13)
    assert model.logprob(given) < -1e7
    assert model.entropy(given) == pytest.approx(float(alone.entropy()), rel=2e-12)
    assert model.mutual_information("a", "b", given) == pytest.approx(alone.mutual_information("a", "b"), rel=1e-11)
    assert model.kl(model, given) == 0.0


# -- estimates --------------------------------------------------------------------------------------

N = 20
ALL_IN = product("x", N)


def test_a_divergence_whose_infinity_no_sample_meets():
    """Was −1e-06 ± 0."""
    p = pgcc.compile((1 - F(1, 10**6)) * ALL_IN + F(1, 10**6) * product("0*x + 1", N))
    found = p.kl(pgcc.compile(ALL_IN), rng=0)
    assert found >= 0.0
    assert math.isinf(found) or math.isinf(found.standard_error)
    assert "not bounded" in repr(found)
    assert pickle.loads(pickle.dumps(found)).scatter == found.scatter


def test_a_divergence_to_what_cancels():
    """Two assignments that q excludes, by a part with negative coefficients: was 0 ± 0.0018."""
    n = 15
    even = pgcc.parse("1/4*(a + 1)*(b + 1)") * product("(x + 1)/2", n)
    q = pgcc.compile(even + pgcc.parse("1/4*(1 + a*b - a - b)") * product("x/2", n))
    found = pgcc.compile(even).kl(q, rng=0)
    assert math.isinf(found) or math.isinf(found.standard_error)


@pytest.mark.parametrize("share", [F(1, 10**6), F(1, 10**4), F(33, 10**4), F(1, 10)])
def test_estimates_know_what_samples_cannot_see(share):
    """Of N variables all are in, or, rarely, each is in or not; was 0.00033 ± 5e-22 where it is 0.012."""
    model = pgcc.compile((1 - share) * ALL_IN + share * product("(x + 1)/2", N))
    u, others = float(share), 2.0**N - 1
    rest = u / 2**N
    entropy = -(1 - u + rest) * math.log1p(rest - u) - others * rest * math.log(rest)
    uniform = pgcc.compile(product("(x + 1)/2", N))
    far = 0
    for seed in range(40):
        found = model.entropy(samples=1000, rng=seed)
        far += abs(found - entropy) > 2 * found.standard_error
        assert abs(found - entropy) <= 5 * found.standard_error
        divergence = model.kl(uniform, samples=1000, rng=seed)
        assert divergence >= 0
        assert abs(divergence - (N * math.log(2) - entropy)) <= 5 * divergence.standard_error
    assert far <= 8


def test_a_divergence_from_a_kernel_and_to_it():
    rng = np.random.default_rng(0)
    p = rng.random(N)
    kernel = pgcc.compile(pgcc.dpp(L=np.diag(p / (1 - p)), names=[f"v{i}" for i in range(N)]))
    even = pgcc.compile(product("(x + 1)/2", N))
    exact = float((p * np.log(2 * p) + (1 - p) * np.log(2 * (1 - p))).sum())
    back = float((0.5 * np.log(0.5 / p) + 0.5 * np.log(0.5 / (1 - p))).sum())
    for found, expected in ((kernel.kl(even, rng=1), exact), (even.kl(kernel, rng=1), back)):
        assert math.isfinite(found.standard_error)
        assert abs(found - expected) < 4 * found.standard_error


def smallest(circuit):
    raw = pgcc.compile(circuit, normalize=False)
    return min(float(raw.prob(row, exact=True)) for row in np.ndindex(*[2] * len(circuit.variables)))


@pytest.mark.parametrize(
    ("text", "tight"),
    [("(0.1*a + 0.9)*(0.2*b + 0.8)", True), ("0.3*a*(0.3*b + 0.7) + 0.5*(0.6*b + 0.4)", True), ("0.5*a*b + 0.5", False),
     ("0.2*a*b + 0.3*a + 0.1*b + 0.4", False), ("(a + 1)*(b + 1) - 0.5*a*b", False), ("a*b", False), ("3", True),
     ("1/4*(a + 1)*(b + 1)*(c/2 + 1/2) + 1/8*c*(1 + a*b - a - b)", False),
     ("(a + 1)*(b/2 + 1/2) + a*(0 - 1/2)*b", False),
     ("(a + 1)*(b/2 + 1/2) + 1/2*det([[0]], [[1]], [[-1]], [a])", False), ("det([[1]], [[1]], [[1]], [a], [a])", False),
     ("det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[2, 1], [1, 2]], [a, b])", False)],
)  # fmt: skip
def test_a_bound_of_the_least_coefficient(text, tight):
    circuit = pgcc.parse(text)
    bound = math.exp(least_log_coefficient(Compiled(circuit)))
    assert bound <= smallest(circuit)
    assert not tight or bound == pytest.approx(smallest(circuit), rel=1e-6)


def test_a_bound_of_the_least_minor():
    L = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 0.4]])
    circuit = pgcc.dpp(L=L)
    assert 0 < math.exp(least_log_coefficient(Compiled(circuit))) <= smallest(circuit)
    assert least_log_coefficient(Compiled(pgcc.dpp(factor=np.ones((3, 1))))) == -math.inf


def test_an_exact_estimate_prints_as_a_number():
    assert repr(Estimate(0.5)) == "0.5"
    assert Estimate(0.5).standard_error == Estimate(0.5).scatter == 0.0


# -- modes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rtol", [1e-7, 1e-9, 1e-12, 1e-14])
def test_a_mode_is_proved_to_rtol(rtol):
    """Whatever rtol was, assignments within 1e-8 of the best one were taken for as good."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weights = [1 + F(int(k), 10**4) * F(rtol) * 3 for k in rng.integers(0, 10**4, 8)]
        names, one = pgcc.variables("a b c"), pgcc.parse("1")
        terms = [
            w * pgcc.product([one, *(v for i, v in enumerate(names) if bits >> i & 1)])
            for bits, w in enumerate(weights)
        ]
        found = pgcc.compile(sum(terms[1:], start=terms[0]), rtol=rtol).mode()
        value = weights[sum(found.assignment[name] << i for i, name in enumerate("abc"))]
        assert found.exact
        assert float(max(weights) / value - 1) <= found.tolerance
        assert found.tolerance <= rtol + 1e-13
        assert found.bound >= float(math.log(max(weights) / sum(weights)))


def test_a_mode_beside_a_branch_that_is_likelier_as_a_whole(monkeypatch):
    """a = 1 is likelier than a = 0 by 2e-9, but falls apart: a search that starts there has to look at the other."""
    start = np.array([1, 0, 0, 0], np.int8)
    monkeypatch.setattr(mode, "by_structure", lambda *_: None)
    monkeypatch.setattr(mode, "greedy", lambda *_: (start, math.log(0.5 - 4e-9)))
    model = pgcc.compile(pgcc.parse("(1/2 - 4e-9)*a + 5e-9*a*d + (1/2 - 1e-9)*b*c"), rtol=1e-12)
    assert model.mode().assignment == {"a": 0, "b": 1, "c": 1, "d": 0}


# -- moments and covariances ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_moments_keep_their_errors(seed):
    rng = np.random.default_rng(seed)
    size = 10.0 ** -rng.integers(0, 30, 6).astype(float)
    p = [F(float(x)) for x in size * rng.random(6)]
    found = pgcc.compile(
        pgcc.product([x * v + (1 - x) for x, v in zip(p, pgcc.variables("a b c d e f"), strict=True)])
    ).moments()
    mean, variance = sum(p), sum(x * (1 - x) for x in p)
    third = sum(x * (1 - x) * (1 - 2 * x) for x in p)
    fourth = sum(x * (1 - x) * (1 - 6 * x * (1 - x)) for x in p) + 3 * variance**2
    assert found.mean == pytest.approx(float(mean), rel=1e-9, abs=0)
    assert found.variance == pytest.approx(float(variance), rel=1e-9, abs=0)
    kurtosis = float(fourth / variance**2)
    assert found.kurtosis == pytest.approx(kurtosis, rel=1e-9, abs=0)
    assert found.skewness == pytest.approx(float(third) / float(variance) ** 1.5, rel=0, abs=1e-9 * math.sqrt(kurtosis))


@pytest.mark.parametrize("p", [F(1, 10), F(1, 10**6), F(1, 10**12), F(1, 10**200), 1 - F(1, 10**9)])
def test_covariances_of_rare_pairs(p):
    """Pr(a, b) = p, Pr(a)·Pr(b) = p²: an error of rtol·p was said to be below 3·rtol·p²."""
    found = pgcc.compile(p * pgcc.parse("a*b") + (1 - p)).covariance()
    assert np.abs(found - float(p * (1 - p))).max() <= 3e-9 * float(p)


# -- threads ----------------------------------------------------------------------------------------


def test_counts_of_methods_do_not_depend_on_threads():
    from pgcc.data.evidence import Evidence
    from pgcc.queries.distribution import Distribution
    from pgcc.queries.probability import probabilities

    compiled = Compiled(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"))
    rows = Evidence(compiled.circuit.variables, np.random.default_rng(0).integers(-1, 2, (300_000, 3)).astype(np.int8))
    one, four = (probabilities(Distribution(compiled.given, compiled, None, 2e-9, threads), rows) for threads in (1, 4))
    assert four.used == one.used
    assert sum(count for method, count in four.used.items() if method != "ball") == 300_000
    np.testing.assert_array_equal(four.numbers, one.numbers)

"""Ways in which a bound once lied or a query once broke, each found by someone who tried. One test per way."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.compiler import methods_for
from pgcc.errors import PrecisionError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import MOST_DEGREE
from pgcc.ir.interpret import probability
from pgcc.ir.node import Node, const, det, product, var, weighted_sum

F = Fraction
Z1, Z2, Z3 = (var(f"z{i}") for i in (1, 2, 3))


def assert_truthful(
    circuit: Circuit, evidence: dict[str, int], methods: tuple[str, ...] = ("auto",), **options
) -> None:
    """The bound holds, by every method that can be asked; one of them has one, unless the number is none of doubles."""
    true = probability(circuit, evidence)
    model = pgcc.compile(circuit, normalize=False, **options)
    bounded = 0
    for method in methods:
        value, bound = model.prob(evidence, bound=True, method=method)
        if bound < math.inf:
            bounded += 1
            assert abs(F(value) - true) <= F(bound) * abs(true), (method, value, bound, float(true))
    in_range = true == 0 or F(1, 2**1022) <= abs(true) < 2**1024
    assert bounded or not in_range, f"no method has a bound for {float(true)}"


ALL = ("auto", "top", "bottom", "fft", "ball")


def test_a_weight_times_a_mantissa_may_be_one_step_higher() -> None:
    n = 1400

    def factors(span: range, p: F) -> Node:
        return product([weighted_sum([p, 1 - p], [var(f"z{i}"), const(1)]) for i in span])

    low, high = range(129), range(129, n)
    a, c, b, d = factors(low, F(1, 2)), factors(low, F(1, 5)), factors(high, F(1, 2)), factors(high, F(1, 4))
    pairs = [product(p) for p in ((a, b), (a, d), (c, b), (c, d))]
    model = pgcc.compile(Circuit(weighted_sum([4, 4, 1, 1], pairs)))
    ones = {f"z{i}": 1 for i in range(n)}
    exact = model.prob(ones, exact=True)
    expected = math.log(exact.numerator) - math.log(exact.denominator)
    assert model.logprob(ones) == pytest.approx(expected, rel=1e-12)


def test_a_child_tiny_beside_its_complement_but_not_beside_the_matrix() -> None:
    child = weighted_sum([1e-250], [var("z")])
    assert_truthful(Circuit(det([[1.0]], [[1e300]], [[1.0]], [child])), {}, ("auto", "direct"))


def test_an_inverse_that_elimination_gets_wrong() -> None:
    b = np.array(
        [
            [-7230384817750.796, 436644760719.6148, -7230384844686.078],
            [12346022720031.895, -18403836974628.9, 12346022766024.414],
            [-20249898135211.703, -410088732832.7153, -20249898210648.453],
        ]
    )
    circuit = Circuit(det(np.eye(3), b, b, [var("v0"), var("v1"), var("v2")]))
    for evidence in ({"v0": 1}, {"v1": 1}, {"v2": 1}, {}, {"v0": 1, "v2": 1}):
        assert_truthful(circuit, evidence, ("auto", "direct"))


@pytest.mark.parametrize("seed", range(20))
def test_near_duplicate_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 3
    b = rng.standard_normal((n, n)) * 10.0 ** rng.integers(-8, 14)
    b[:, 2] = b[:, 0] * (1 + 10.0 ** -rng.integers(6, 15))
    circuit = Circuit(det(np.eye(n) * 10.0 ** -rng.integers(0, 37), b, b, [var(f"v{i}") for i in range(n)]))
    for _ in range(6):
        codes = rng.choice([1, 0, -1], n).tolist()
        evidence = {f"v{i}": c for i, c in enumerate(codes) if c >= 0}
        assert_truthful(circuit, evidence, ("auto", "direct"))


def test_normalising_does_not_underflow() -> None:
    for k in (160, 200, 300):
        model = pgcc.compile(pgcc.parse(f"1e-{k}*z + 1e{k}"))
        assert model.logprob({"z": 1}) == pytest.approx(-2 * k * math.log(10), rel=1e-14)


@pytest.mark.slow
def test_degrees_do_not_wrap() -> None:
    (z,) = pgcc.variables("z")
    nothing = (z + 1) * (z - 1) - z * z + 1
    circuit = (z / 2 + F(1, 2)) * (1 + nothing) ** (2**63)
    model = pgcc.compile(circuit, normalize=False)
    assert model.prob({"z": 1}) == pytest.approx(0.5, rel=1e-9)
    for power, least in ((2**10, 3), (2**64, 0)):  # of the larger one nothing can be known, and nothing is claimed
        raw = pgcc.compile((z + 1) ** power, validate=False, normalize=False)
        answered = 0
        for method in ("auto", "top", "fft", "ball"):
            try:
                value, bound = raw.prob({"z": 1}, method=method, bound=True)
            except pgcc.PgccError:
                continue
            answered += bound < math.inf
            assert bound == math.inf or value == pytest.approx(power, rel=1e-9)
        assert answered >= least


def test_subnormal_weights() -> None:
    big = weighted_sum([1e300, 1e299], [Z1, Z2])
    circuit = Circuit(weighted_sum([F(1, 10**320), F(3, 10**320)], [big, product([big, Z3])]))
    assert_truthful(circuit, {}, (*ALL, "direct"))


def test_products_that_underflow_in_another_order() -> None:
    x = weighted_sum([F(1, 10**200), F(1, 10**201)], [Z1, Z2])
    y = weighted_sum([1e290, 1e289], [Z1, Z3])
    terms = [product([x, y]), product([var("q"), var("q2")])]
    circuit = Circuit(weighted_sum([F(1, 10**200), 1e-109], terms))
    assert_truthful(circuit, {}, ALL, validate=False)


def test_many_products_of_long_series_add_up() -> None:
    k, length = 64, 17
    ulp = F(1, 2**53)
    rows = []
    for i in range(k):
        f = product([weighted_sum([1, 1], [var(f"a{j}"), const(1)]) for j in range(length)])
        g = weighted_sum([ulp * F(999, 1000), 1], [var(f"b{i}"), const(1)])
        rows.append(product([f, g, weighted_sum([1, 0], [f, const(1)])]))
    circuit = Circuit(weighted_sum([1, *[ulp * F(49, 100)] * (k - 1)], rows))
    evidence = {f"a{j}": 1 for j in range(length)}
    assert_truthful(circuit, evidence, ("auto", "top", "bottom"), validate=False)


def test_subnormal_matrices() -> None:
    z = var("z")
    assert_truthful(Circuit(det([[F(1, 10**320)]], [[0]], [[0]], [z])), {}, ("auto", "direct"))
    child = weighted_sum([1.1 * 2.0**-100], [z])
    assert_truthful(Circuit(det([[0]], [[1e-290]], [[1]], [child])), {"z": 1}, ("auto", "direct"))


@pytest.mark.parametrize("text", ["1e-400*z + 1", "1e-320*z + 1", "1e400*z + 1"])
def test_a_bound_is_of_the_float_that_is_returned(text: str) -> None:
    assert_truthful(pgcc.parse(text), {"z": 1}, ("auto", "direct", "ball"))


def test_towers_of_squares() -> None:
    skipped = 0
    for height in (60, 66, 69, 72):
        n = const(F(1, 2))
        for _ in range(height):
            n = product([n, n])
        circuit = Circuit(weighted_sum([1, 1], [product([n, var("z")]), const(1)]))
        model = pgcc.compile(circuit, normalize=False)
        try:
            log = model.logprob({"z": 1})
        except pgcc.PrecisionError:
            skipped += 1
            continue
        assert log == pytest.approx(-math.log(2) * 2.0**height, rel=1e-9)
    assert skipped < 4


def test_expanding_determinants_of_floats_is_exact() -> None:
    inner = det([[1] * 3] * 3, [[-0.5], [1e20], [1.0]], [[1.5], [-0.9], [0.8]], [const(-0.6)])
    circuit = Circuit(weighted_sum([1, 1], [inner, var("z")]))
    assert_truthful(circuit, {"z": 0}, ("auto", "top", "bottom", "ball"))


def test_a_tiny_coefficient() -> None:
    assert_truthful(pgcc.parse("1e-567*v0 - 1e-323"), {"v0": 1}, ("bottom", "auto", "fft"))


def test_odds_of_a_million_to_one() -> None:
    for p in (F(1, 10**6), F(10**6)):
        factors = [p * v + 1 for v in pgcc.variables([f"z{i}" for i in range(120)])]
        x, y = (functools.reduce(lambda a, b: a * b, half) for half in (factors[:60], factors[60:]))
        model = pgcc.compile(((x + y) ** 2 - (x - y) ** 2) / 4, normalize=False)
        for observed in (60, 119, 120):
            evidence = {f"z{i}": 1 for i in range(observed)}
            free = math.log(1 + p) * (120 - observed)
            expected = observed * (math.log(p.numerator) - math.log(p.denominator)) + free
            assert model.logprob(evidence) == pytest.approx(expected, rel=1e-9)
            value, bound = model.prob(evidence, method="bottom", bound=True)
            assert bound == math.inf or math.log(value) == pytest.approx(expected, rel=1e-6)


def test_more_observed_than_the_degree() -> None:
    circuit = Circuit(pgcc.parse("z*z + w").root, ["z", "w", "q"])
    model = pgcc.compile(circuit, normalize=False, validate=False)
    for method in methods_for(decomposable=False):
        assert model.prob({"z": 1, "w": 1, "q": 1}, method=method) == pytest.approx(0.0, abs=1e-12)


class TestEvidence:
    model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))

    @pytest.mark.parametrize(
        "given",
        [
            {"a": 10**400},
            {"a": F(10**400)},
            {"a": F(10**30 + 1, 10**30)},
            {"a": np.longdouble(1) + np.longdouble(2) ** -60},
            np.array([[1, 0]], dtype="m8[s]"),
            np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"),
            [[10**400, 0]],
            [[1j, 0]],
        ],
    )
    def test_numbers_that_are_none_of_the_three(self, given: object) -> None:
        with pytest.raises(pgcc.EvidenceError):
            self.model.prob(given)

    def test_masked_is_unobserved(self) -> None:
        for dtype in (int, float, bool, np.uint8):
            masked = np.ma.array(np.array([[1, 0]]).astype(dtype), mask=[[1, 0]])
            assert self.model.prob(masked)[0] == pytest.approx(0.6)

    def test_series_go_by_name(self) -> None:
        pandas = pytest.importorskip("pandas")
        row = pandas.Series([1, 0], index=["b", "a"])
        assert self.model.prob(row) == 0.0
        assert self.model.prob([row, row]).tolist() == [0.0, 0.0]
        assert self.model.prob({"a": pandas.NA, "b": 1}) == pytest.approx(0.4)
        with pytest.raises(pgcc.EvidenceError, match="twice"):
            self.model.prob(pandas.Series([1, 0], index=["a", "a"]))


@pytest.mark.slow
def test_exact_rationals_of_a_deep_chain_are_dropped_when_dead() -> None:
    import tracemalloc

    node: Node = const(1)
    for i in range(3000):
        node = weighted_sum((F(1, 3), F(2, 7)), (product((node, var(f"z{i}"))), node))
    model = pgcc.compile(Circuit(node))
    tracemalloc.start()
    assert 0 < model.prob({"z5": 1}, exact=True) < 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_work_without_end_is_refused() -> None:
    """The coefficient of z in (z + 1)^20000 takes two coefficients of each node; beside 6,000 others, too many."""
    model = pgcc.compile(pgcc.parse("z + 1") ** 20_000, validate=False, normalize=False)
    assert model.prob({"z": 1}, exact=True) == 20_000
    others = pgcc.product([pgcc.parse(f"(x{i} + 1)/2") for i in range(6_000)])
    model = pgcc.compile(others * pgcc.parse("z + 1") ** 2, validate=False, normalize=False)
    with pytest.raises(pgcc.PrecisionError, match="too many"):
        model.prob({f"x{i}": 1 for i in range(6_000)}, exact=True)


@pytest.mark.filterwarnings("error")
def test_what_overflows_says_so_by_its_bound():
    """No warnings of numpy about what happens inside."""
    model = pgcc.compile(pgcc.parse("1e300*((z + 1e300*y)**2 - (z - 1e300*y)**2)*(x + 1) + z + 1"), normalize=False)
    for method in ("fft", "top", "bottom"):
        assert model.prob({"x": 1, "y": 1}, method=method, bound=True)[1] == math.inf
    assert model.prob({"z": 1, "y": 0}) == 1
    huge = pgcc.mixture(
        [0.5, 0.5], [pgcc.parse("x0"), pgcc.dpp(L=1e9 * np.eye(40), names=[f"x{i}" for i in range(40)])]
    )
    with pytest.raises(PrecisionError, match="outside of the range of doubles"):
        pgcc.grad(huge, np.ones(40, int))


MERSENNE = 2**61 - 1  # the prime that the identity test once computed with


def power_of_p(lines=()):
    """z to the power p = 2⁶¹ − 1, which is z modulo p: the product of z^(2^i), i < 61."""
    squares = ["a0 = z", *(f"a{i} = a{i - 1}*a{i - 1}" for i in range(1, 61))]
    return "\n".join([*squares, "fermat = " + "*".join(f"a{i}" for i in range(61)), *lines])


@pytest.mark.parametrize(
    "text",
    [
        *(power_of_p([last]) for last in ("0.5*fermat + 0.5", "0.5*fermat - 0.5*z + y", "(fermat - z)*y*z + y")),
        f"{MERSENNE}*z**2 - {MERSENNE}*z + z",
        f"({MERSENNE}*z + 1)*(z + 1)/2 - {MERSENNE}*z/2",
        f"y*(z + 1)/2 + {MERSENNE}*{MERSENNE}*(z*z - z)*y",
    ],
)
def test_squares_that_are_none_modulo_a_prime_one_knows(text):
    g = pgcc.parse(text)
    for normalize in (True, False):
        with pytest.raises(SemanticsError, match="'z' occurs to a power above 1"):
            pgcc.compile(g, normalize=normalize).prob({"z": 1})
    report = pgcc.check(g)
    assert not report.ok
    assert report.multiaffine.state == "refuted"


def test_denominators_that_are_a_prime_one_knows():
    g = pgcc.parse(f"((z + 1)**2 - z**2)/{MERSENNE} + {MERSENNE - 3}/{MERSENNE}")
    assert pgcc.check(g).multiaffine.proved
    assert pgcc.compile(g).prob({"z": 1}, exact=True) == F(2, MERSENNE)


def test_powers_that_no_point_can_tell():
    """u² − (u + 1)(u − 1) = 1, for u = z to the power of 2¹⁰⁰: that no square is seen says nothing."""
    squares = ["a0 = z", *(f"a{i} = a{i - 1}*a{i - 1}" for i in range(1, 101))]
    g = pgcc.parse("\n".join([*squares, "0.5*z*(a100*a100 - (a100 + 1)*(a100 - 1)) + 0.5"]))
    with pytest.raises(SemanticsError, match="cannot be tested"):
        pgcc.compile(g)
    assert pgcc.check(g).multiaffine.state == "not proven"


def test_powers_that_a_long_prime_can_tell():
    squares = ["a0 = z", *(f"a{i} = a{i - 1}*a{i - 1}" for i in range(1, 61))]
    for rest, verdict in (("0.5", "proved"), ("0.5*z*z", "refuted")):
        g = pgcc.parse("\n".join([*squares, f"0.5*z*(a60*a60 - (a60 + 1)*(a60 - 1)) + {rest}"]))
        report = pgcc.check(g, time=0.5)
        assert report.multiaffine.state == verdict
        assert report.verify()["multiaffine"] == (verdict == "proved")


def test_a_negative_coefficient_that_is_a_multiple_of_a_prime_one_knows():
    """Among a thousand zeros by cancellation, of which fractions are not computed one by one."""
    n, names = 11, [f"z{i}" for i in range(11)]
    plus, minus = ("*".join(f"({sign}1 + z{i})" for i in range(n)) for sign in ("", "-"))
    g = pgcc.parse(f"({plus})/2 + ({minus})/2 - {MERSENNE}/10**40*" + "*".join(names[1:]))
    report = pgcc.check(g, normalize=True)
    assert report.nonnegative.state == "refuted"
    assert report.witness == {name: int(name != "z0") for name in names}


def test_formal_degrees_beyond_p():
    """Products that are written as differences of squares, one after another: every one is found to be affine."""
    p = [F(i, 100) for i in range(1, 71)]
    lines = ["a0 = 0.01*z0 + 0.99"]
    for i in range(1, 70):
        factor = f"({p[i]}*z{i} + {1 - p[i]})"
        lines.append(f"a{i} = 1/4*(a{i - 1} + {factor})**2 - 1/4*(a{i - 1} - {factor})**2")
    g = pgcc.parse("\n".join(lines))
    assert g.facts.degree == MOST_DEGREE
    assert pgcc.check(g).multiaffine.state == "proved"
    assert pgcc.compile(g).prob({"z3": 1, "z60": 0}) == pytest.approx(float(p[3] * (1 - p[60])), rel=1e-9)


@pytest.mark.parametrize("squarings", [1100, 15000])
def test_degrees_of_thousands_of_digits(squarings):
    """Right answers or clear errors, and nothing that Python refuses to write."""
    g = pgcc.parse("\n".join(["a0 = z + 1", *(f"a{i} = a{i - 1}*a{i - 1}" for i in range(1, squarings))]))
    model = pgcc.compile(g, validate=False, normalize=False)
    assert "formal degree" in str(model.explain())
    assert pgcc.check(g).multiaffine.witness == "z"
    assert model.logprob({"z": 1}) == pytest.approx((squarings - 1) * math.log(2), rel=1e-12)
    for ask in (model.marginals, model.cardinality):
        with pytest.raises(PrecisionError):
            ask()

"""`pgcc.check`: no false verdict, power, certificates; every witness is checked by exact evaluation."""

from __future__ import annotations

from fractions import Fraction
from itertools import product as cartesian

import networkx as nx
import numpy as np
import pytest
from check_cases import check, expand, invalid_mixture, random_case, truth, witness_holds
from how_many import some
from hypothesis import given, settings

import pgcc
from pgcc.compiler import Compiled
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import ONE, const, det, product, var, weighted_sum
from pgcc.testing import brute_force, circuits, oracle_probability, random_circuit, random_pc
from pgcc.validity.coefficients import Scan, all_rows, magnitudes, scan_coefficients
from pgcc.validity.provenance import EXPANSION, RULES, prove_nonnegative
from pgcc.validity.semidefinite import find_witness
from pgcc.validity.verdict import Verdict

BETA = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"
RNG = np.random.default_rng


# -- verdicts ----------------------------------------------------------------------------------------------------


def test_the_paper():
    report = check(pgcc.parse(BETA))
    assert report.ok
    assert report.state == "proved"
    assert report.witness is None
    assert report.total == 1
    assert str(report).count("proved") == 3


def test_a_negative_coefficient():
    report = check(pgcc.parse("1.5*x - 0.5"))
    assert not report.ok
    assert report.state == "refuted"
    assert report.witness == {"x": 0}
    assert report.nonnegative.value == Fraction(-1, 2)
    assert report.multiaffine.proved
    assert report.normalized.proved


def test_a_report_of_long_numbers_has_a_repr():
    """Python refuses to write numbers of more than 4,300 digits: `repr` raised a ValueError."""
    report = pgcc.check(pgcc.parse("x - 10**-10000*y"))
    assert repr(report) == "<Report: not a distribution: 2 variables, 2 edges>"
    assert repr(report.nonnegative).endswith("witness={'x': 0, 'y': 1}, value=<about -2**-33219>)")
    assert "witness=<about 2**16609>" in repr(Verdict("refuted", "too large", Fraction(10**5000)))
    assert repr(pgcc.check(pgcc.parse("1.5*x - 0.5")).nonnegative).endswith("witness={'x': 0}, value=Fraction(-1, 2))")


def test_a_square_is_named():
    report = check(pgcc.parse("0.5*a*b*(b + 1)"))
    assert report.multiaffine.refuted
    assert report.witness == "b"
    assert report.nonnegative.proved  # squares and all
    assert str(report.multiaffine) == "refuted: 'b' occurs to a power above 1"


def test_squares_that_cancel():
    report = check(pgcc.parse("((z + 1)**2 - z**2 + 1) / 4"))
    assert report.ok
    assert "wrong with probability below" in report.multiaffine.reason


def test_signed_squares_are_not_judged():
    report = check(pgcc.parse("x*x - 0.5*x*y + 0.5*y"), time=0.1)
    assert report.multiaffine.refuted
    assert str(report.nonnegative).startswith("not proven")


def test_totals():
    report = check(pgcc.parse("x/3 + 1/3"))
    assert report.normalized.refuted
    assert report.normalized.witness == report.witness == Fraction(2, 3)
    assert check(pgcc.parse("x/3 + 1/3"), normalize=True).ok
    assert check(pgcc.parse("x - x"), normalize=True).normalized.refuted
    assert check(pgcc.parse("0 - 2"), normalize=True).normalized.refuted
    assert not check(pgcc.parse("x/3 + 1/3 + 1/3 + 1/10**30")).normalized.proved  # exact numbers, exactly


def test_floats_have_a_tolerance():
    x = var("x")
    assert check(Circuit(weighted_sum([0.1, 0.2, 0.7], [x, x, ONE]))).ok
    almost = check(Circuit(weighted_sum([0.5, 0.5 + 1e-6], [x, ONE])))
    assert almost.normalized.refuted
    cancelled = Circuit(weighted_sum([0.3, -0.1, -0.2, 1.0], [x, x, x, ONE]))  # −2.8e-17·x + 1
    report = check(cancelled)
    assert report.ok
    assert "tolerated of floats" in report.nonnegative.reason
    assert check(cancelled, tolerance=0).nonnegative.refuted
    below = check(Circuit(weighted_sum([-1e-9, 1.0], [x, ONE])))
    assert below.nonnegative.refuted
    assert below.witness == {"x": 1}


def test_no_variables():
    assert check(pgcc.parse("1")).ok
    assert check(pgcc.parse("0 - 1")).witness == {}
    assert not check(pgcc.parse("0")).ok


def test_variables_that_do_not_occur():
    report = check(Circuit(pgcc.parse("1.5*x - 0.5").root, ["w", "x", "y"]))
    assert report.witness == {"w": 0, "x": 0, "y": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("z/2 + 1/2",), "check takes a Circuit, not str"),
        ((pgcc.pc.pos("x"),), "to_pgc"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(PgccError, match=message):
        check(*arguments)


@pytest.mark.parametrize("options", [{"time": -1}, {"time": "long"}, {"tolerance": 2}, {"tolerance": -1}])
def test_bad_options(options):
    with pytest.raises(PgccError, match=next(iter(options))):
        check(pgcc.parse("z"), **options)


def test_tolerance_of_totals_beyond_doubles():
    """A total of about 10^18024: a coefficient of −10^300 is tolerated of floats, one of −10^18015 is not."""
    whole = product([weighted_sum([1.5e300, 1e300], [var(f"v{i}"), ONE]) for i in range(60)])
    for below, fine in ((-1e300, True), (-(10**18011), True), (-(10**18015), False), (-(10**18030), False)):
        circuit = Circuit(weighted_sum([1.0, below], [whole, product([var("a"), var("b")])]))
        report = check(circuit, normalize=True, time=0.5)
        assert report.nonnegative.refuted is not fine
        assert not report.nonnegative.proved


def test_numbers_of_more_digits_than_python_writes():
    report = check(Circuit(weighted_sum([10**4400, -1], [var("x"), ONE])))
    assert report.nonnegative.refuted
    assert report.total == 10**4400 - 1
    assert report.as_dict()["normalized"]["witness"] == "9" * 4400


def test_a_search_beyond_doubles():
    """Coefficients of −10^−400 and of −10^400, which as doubles are −0 and −inf."""
    names = [var(f"v{i}") for i in range(24)]
    for scale in (Fraction(1, 10**400), Fraction(10**400)):
        whole = product([weighted_sum([1, 1], [v, ONE]) for v in names])
        circuit = Circuit(weighted_sum([scale, -2 * scale], [whole, product(names)]))
        assert check(circuit, time=1.0, normalize=True).witness == dict.fromkeys(circuit.variables, 1)


# -- no false verdict ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 40, *(pytest.param(n, marks=pytest.mark.slow) for n in range(80, 240, 40))])
def test_no_false_verdict(first):
    for seed in range(first, first + 40):
        circuit = random_case(seed, most=8)
        report, true = check(circuit, time=1.0), truth(circuit, seed)
        for name, holds in true.items():
            verdict = getattr(report, name)
            assert not (verdict.proved and not holds), (seed, name, verdict)
            assert not (verdict.refuted and holds), (seed, name, verdict)
        assert witness_holds(circuit, report), seed
        assert report.ok == all(true.values()) or report.state == "not proven", seed


@settings(max_examples=some(100), deadline=None)
@given(circuits(max_variables=3, multiaffine=False, max_size=6))
def test_any_dag_at_all(circuit):
    terms = expand(circuit)
    report = check(circuit, time=0.2)
    squared = any(power > 1 for m in terms for _, power in m)
    negative = any(x < 0 for x in terms.values())
    assert not (report.multiaffine.proved and squared)
    assert not (report.multiaffine.refuted and not squared)
    assert not (report.nonnegative.proved and negative)
    assert not (report.nonnegative.refuted and not negative)
    assert report.normalized.proved == (sum(terms.values()) == 1)


# -- power -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (10, 20, 30))])
def test_invalid_mixtures_are_refuted(first):
    for seed in range(first, first + 10):
        circuit, planted = invalid_mixture(seed)
        assert oracle_probability(circuit, planted) < 0
        report = check(circuit, time=3.0)
        assert report.nonnegative.refuted, seed
        assert witness_holds(circuit, report)


def test_search_in_disguise():
    circuit, _ = invalid_mixture(5, n=24)
    x = Circuit(var("z1"))
    report = check(circuit * x - x * circuit + circuit, time=3.0)
    assert report.nonnegative.refuted
    hidden = ((x + 1) * (x + 1) - x * x) * pgcc.parse("0.5*y + 0.5") - x * pgcc.parse("y + 1")  # (y + 1)/2
    report = check(hidden * circuit.relabel({"z1": "w"}), time=5.0)
    assert report.multiaffine.proved
    assert report.nonnegative.refuted


def test_search_with_a_determinant():
    rng = RNG(0)
    B = rng.integers(-2, 3, size=(26, 26))
    kernel = pgcc.dpp(L=(B @ B.T).tolist())
    total = check(kernel).total
    leaves = product([weighted_sum([Fraction(1, 2)] * 2, [var(name), ONE]) for name in kernel.variables])
    circuit = Circuit(weighted_sum([Fraction(2) / total, -1], [kernel.root, leaves]), kernel.variables)
    report = check(circuit, time=3.0)
    assert report.nonnegative.refuted
    assert pgcc.compile(circuit, normalize=False).prob(report.witness, exact=True) == report.nonnegative.value


def test_what_is_found_is_repeatable():
    circuit, _ = invalid_mixture(7, n=30)
    assert check(circuit).witness == check(circuit).witness


# -- all coefficients ------------------------------------------------------------------------------------------------


def signed_distribution(n: int, decomposable: bool, size: int = 100) -> Circuit:
    """A distribution that no rule proves: what is subtracted is less than what is there."""
    g = random_circuit(3, n, size, decomposable=decomposable, negative=False)
    half, fifth = Fraction(1, 2), Fraction(1, 5)
    big = product([weighted_sum([half, half], [var(v), ONE]) for v in g.variables])
    small = product([weighted_sum([2 * fifth, 3 * fifth], [var(v), ONE]) for v in g.variables])
    w = Fraction(1, int(1.2**n) + 2)
    return Circuit(weighted_sum([half, half * (1 + w), -w / 2], [g.root, big, small]), g.variables)


@pytest.mark.slow
@pytest.mark.parametrize("decomposable", [True, False])
def test_all_coefficients_of_20_variables(decomposable):
    assert check(signed_distribution(14, decomposable, size=100), time=60).ok
    circuit = signed_distribution(20, decomposable, size=300)
    assert circuit.edges > 900
    report = pgcc.check(circuit, time=60)  # to verify a million coefficients takes minutes
    assert report.ok
    assert "by all 1,048,576 coefficients" in report.nonnegative.reason


def test_many_zeros_by_cancellation():
    """Half of the coefficients cancel to 0, which float64 cannot tell: residues do."""
    names = [f"z{i}" for i in range(13)]
    x = [weighted_sum([Fraction(1, 3), Fraction(2, 3)], [var(v), ONE]) for v in names]
    y = [weighted_sum([Fraction(1, 3), Fraction(-2, 3)], [var(v), ONE]) for v in names]
    circuit = Circuit(weighted_sum([Fraction(1, 2), Fraction(1, 2)], [product(x), product(y)]), names)
    report = check(circuit, time=20)
    assert report.nonnegative.proved
    assert "0 modulo random primes" in report.nonnegative.reason
    assert not check(circuit - pgcc.parse("z0*z1/10**9")).nonnegative.proved


def test_many_zeros_of_a_determinant_that_cannot_be_expanded():
    """The 924 minors of six rows of a matrix of rank one: there is no program to run modulo primes."""
    one = np.identity(12, dtype=int)
    circuit = Circuit(det(one, one, np.ones((12, 12), dtype=int), [var(f"z{i}") for i in range(12)], size=6))
    assert scan_coefficients(Compiled(circuit), Fraction(0), 20.0) == Scan(None, 0, 0)


def test_time_runs_out():
    circuit = signed_distribution(20, True)
    report = check(circuit, time=0)
    assert str(report.nonnegative).startswith("not proven")


@pytest.mark.parametrize("seed", range(20))
def test_scan_agrees_with_brute_force(seed):
    circuit = random_circuit(seed, 6, 15, decomposable=seed % 2 == 0)
    least = min(brute_force(circuit).values())
    found = scan_coefficients(Compiled(circuit), Fraction(0), 5.0)
    assert (found.negative is not None) == (least < 0)
    assert found.undecided == 0
    slack = -least if least < 0 else Fraction(0)
    assert scan_coefficients(Compiled(circuit), slack, 5.0).negative is None  # ≥ −slack, and equal to it once


def test_rows():
    rows = np.concatenate([rows for _, rows in all_rows(5, size=7)])
    assert [tuple(row[::-1]) for row in rows.tolist()] == list(cartesian((0, 1), repeat=5))


def test_magnitudes():
    assert str(magnitudes(pgcc.parse("a*(b - 2) - 3"))) == "a*(b + 2) + 3"


# -- provenance ------------------------------------------------------------------------------------------------------


def proved(circuit: Circuit) -> bool:
    report = check(circuit, time=0, normalize=True)
    assert report.certificate.proved == report.nonnegative.proved
    return report.ok and report.certificate.proved


def random_kernel(seed: int, n: int, rank: int | None = None) -> np.ndarray:
    B = RNG(seed).normal(size=(n, rank or n))
    return B @ B.T


@pytest.mark.parametrize("n", [1, 5, 60, pytest.param(200, marks=pytest.mark.slow)])
def test_dpps(n):
    L = random_kernel(n, n)
    Q = np.linalg.qr(RNG(0).normal(size=(n, n)))[0][:, : (n + 1) // 2]
    skew = RNG(1).normal(size=(n, n))
    assert proved(pgcc.dpp(L=L))
    assert proved(pgcc.dpp(K=Q @ Q.T))
    assert proved(pgcc.dpp(K=L / (1 + np.linalg.eigvalsh(L)[-1])))
    assert proved(pgcc.dpp(factor=RNG(2).normal(size=(n, 3))))
    assert proved(pgcc.dpp(L=L + skew - skew.T, symmetric=False))
    assert proved(pgcc.dpp(L=L).observe(size=min(3, n)))


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
def test_conditioned_dpps(exact):
    L, K = random_kernel(0, 5), np.full((4, 4), 0.2) + np.eye(4) * 0.125
    L, K = (L.round(1) * 10).astype(int) + 50 * np.eye(5, dtype=int) if exact else L, K
    kernels = [pgcc.dpp(L=L.tolist()), pgcc.dpp(K=[[Fraction(x).limit_denominator(1000) for x in row] for row in K])]
    for kernel in kernels if exact else [pgcc.dpp(L=L), pgcc.dpp(K=K)]:
        a, b, *_ = kernel.variables
        for evidence in ({a: 0}, {a: 1}, {a: 0, b: 0}, {a: 0, b: 1}, {a: 1, b: 1}):
            circuit = kernel.observe(evidence)
            assert proved(circuit)
            assert min(brute_force(circuit).values()) >= 0
            assert dependence(circuit).proved


def test_exact_kernels_of_low_rank():
    assert proved(pgcc.dpp(L=[[1, 1, 0], [1, 1, 0], [0, 0, 2]]))
    third = Fraction(1, 3)
    assert proved(pgcc.dpp(K=[[third] * 3] * 3))  # a projection
    indefinite = Circuit(det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [2, 1]], [var("a"), var("b")]))
    assert not prove_nonnegative(indefinite).proved
    assert check(indefinite).witness == {"a": 1, "b": 1}


def test_trees():
    assert proved(pgcc.spanning_tree(nx.random_regular_graph(4, 60, seed=1)))
    assert proved(pgcc.spanning_forest(nx.path_graph(5)))
    graph = nx.DiGraph([(0, 1), (1, 2), (0, 2), (2, 1)])
    assert proved(pgcc.arborescence(graph, 0))


def test_dpps_of_circuits():
    leaves = [pgcc.parse(text) for text in ("0.3*a*b + 0.7", "0.2*c + 0.8", "d")]
    L = [[2, 1, 0], [1, 2, 1], [0, 1, 2]]
    one = np.eye(3, dtype=int).tolist()
    assert proved(Circuit(det(one, one, L, [leaf.root for leaf in leaves])))
    signed = Circuit(det(one, one, L, [var("a"), var("b"), pgcc.parse("2*c - 1").root]))
    assert not prove_nonnegative(signed).proved


def test_probabilistic_circuits_and_builders():
    for seed in range(20):
        assert proved(random_pc(seed, 8, 20).to_pgc())
        assert proved(random_circuit(seed, 8, 20, negative=False, exact=seed % 2 == 0))
    assert proved(pgcc.builders.naive_bayes([0.4, 0.6], RNG(0).random((2, 10))))
    assert proved(pgcc.builders.chow_liu([None, 0, 0], [0.3, (0.2, 0.9), (0.5, 0.1)]))


def test_closure_operations():
    a = pgcc.parse(BETA)
    b = pgcc.dpp(L=[[2, 1], [1, 2]], names=["x", "y"])
    mixed = pgcc.mixture([Fraction(1, 3), Fraction(2, 3)], [a, b])
    both = pgcc.product([a, b])
    for circuit in (mixed, both, a.compose({"z1": mixed.relabel({v: f"m{v}" for v in mixed.variables})})):
        assert proved(circuit)
    for circuit in (a, b, mixed, both):
        for result in (
            circuit.thin(Fraction(1, 3)),
            circuit.tilt({circuit.variables[0]: 3}),
            circuit.complement(),
            circuit.observe(size=2),
            circuit.observe(size=(0, 1)),
            circuit.observe({circuit.variables[0]: 0}),
        ):
            assert proved(result)
    assert proved(pgcc.superpose([pgcc.parse("0.5*q + 0.5"), pgcc.parse("0.3*q + 0.7")]))
    assert proved(pgcc.det_pgc([[2, 1], [1, 2]], [pgcc.parse("0.5*q*r + 0.5"), pgcc.parse("0.3*s + 0.7")]))
    assert proved(pgcc.subsets("a b c d e f", 3))


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
def test_a_hundred_thousand_edges(exact):
    numbers = RNG(0).integers(1, 999, size=(100, 350))
    probs = [[Fraction(int(p), 1000) for p in row] for row in numbers] if exact else numbers / 1000
    circuit = pgcc.builders.naive_bayes([Fraction(1, 100) if exact else 0.01] * 100, probs)
    assert circuit.edges > 100_000
    assert check(circuit).ok


@pytest.mark.slow
def test_depth_does_not_matter():
    node = ONE
    for i in range(30_000):
        node = product((weighted_sum([Fraction(1, 3), Fraction(2, 3)], [var(f"v{i}"), ONE]), node))
    assert check(Circuit(node)).ok


def test_signs():
    assert prove_nonnegative(pgcc.parse("(0 - x)*(0 - y)")).proved
    assert prove_nonnegative(Circuit(weighted_sum([-1], [const(-2)]))).proved
    assert not prove_nonnegative(Circuit(weighted_sum([-1], [var("x")]))).proved
    small = prove_nonnegative(pgcc.parse("(x + 1)*(y + 1) - 1"))
    assert small.proved
    assert EXPANSION in small.rules


def test_certificate():
    certificate = check(pgcc.parse(BETA)).certificate
    text = str(certificate)
    assert len(certificate.rules) == len(certificate.circuit.order)
    assert "multiplied out (1): its coefficients, computed exactly" in text
    assert "product z1*z2: product" in text
    gap = check(Circuit(weighted_sum([2, -1], [ONE, var("x")]))).certificate
    assert not gap.proved
    assert "no rule: sum 2*1 + -1*x" in str(gap)


def test_every_rule_has_a_law():
    for rules in RULES.values():
        for rule in rules:
            assert rule.name
            assert rule.law


def test_semidefinite():
    for seed in range(60):
        B = RNG(seed).integers(-3, 4, size=(4, 1 + seed % 5))
        shift = [0, 0, 1, -1][seed % 4] * Fraction(1, 10**9)
        rows = [
            [int(x) + (shift if i == j else 0) for j, x in enumerate(row)] for i, row in enumerate((B @ B.T).tolist())
        ]
        lowest = np.linalg.eigvalsh((B @ B.T).astype(float))[0]
        assert bool(find_witness(rows)) == (shift >= 0 or lowest > 1e-6), seed
    assert not find_witness([[1, 2], [3, 10]])


# -- negative dependence ---------------------------------------------------------------------------------------------


def dependence(circuit: Circuit, **options):
    report = check(circuit, normalize=True, **options)
    verdict = report.negative_dependence
    assert report.verify().get("negative_dependence") == {"proved": True, "refuted": False}.get(verdict.state)
    return verdict


def test_strongly_rayleigh():
    dpp = pgcc.dpp(L=random_kernel(0, 6))
    independent = pgcc.parse("(0.3*u + 0.7)*(0.2*v + 0.8)")
    tree = pgcc.spanning_tree(nx.complete_graph(5))
    for circuit in (dpp, independent, tree, dpp * independent, dpp.observe(size=3), pgcc.parse("0.2*a + 0.3*b + 0.5")):
        verdict = dependence(circuit)
        assert str(verdict).startswith("proved: strongly Rayleigh")
    assert dependence(dpp.observe({dpp.variables[0]: 1})).proved
    graph = nx.DiGraph([(0, 1), (1, 2), (0, 2), (2, 1)])
    assert not dependence(pgcc.arborescence(graph, 0), time=0.1).proved
    nonsymmetric = pgcc.dpp(L=[[1, 2], [-2, 1]], symmetric=False)
    assert dependence(nonsymmetric).refuted


def test_positive_correlation():
    verdict = dependence(pgcc.parse("0.5*a*b + 0.5"))
    assert verdict.refuted
    assert verdict.witness == {"pair": ("a", "b")}
    assert verdict.value == Fraction(1, 4)
    assert "Pr(a, b) = 1/2 is more than Pr(a)·Pr(b) = 1/4" in verdict.reason


def test_rayleigh_violation_under_weights():
    """Pairwise negatively correlated, and yet not Rayleigh: given c, a and b go together."""
    circuit = pgcc.parse("(20*a + 20*b + a*b*c + c + a*c/10 + b*c/10) / 42.2")
    report = check(circuit)
    assert report.ok
    verdict = report.negative_dependence
    assert report.verify()["negative_dependence"] is False
    assert verdict.refuted
    i, j = verdict.witness["pair"]
    point = {name: Fraction(w) for name, w in verdict.witness["point"].items()}
    at = circuit.tilt(point)

    def marginal(**inside: int) -> Fraction:
        return oracle_probability(at, inside)

    assert evaluate(at, dict.fromkeys(at.variables, Fraction(1))) == marginal()
    assert marginal() * marginal(**{i: 1, j: 1}) - marginal(**{i: 1}) * marginal(**{j: 1}) == verdict.value > 0


def test_strongly_rayleigh_is_never_refuted():
    """What is proved by provenance has no violation that the search finds."""
    from pgcc.validity.dependence import _violation

    for seed in range(10):
        dpp = pgcc.dpp(L=random_kernel(seed, 5))
        point = {v: Fraction(2) ** int(e) for v, e in zip(dpp.variables, RNG(seed).integers(-5, 6, 5), strict=True)}
        for circuit in (dpp, dpp.observe(size=2), dpp * pgcc.parse("(0.3*u + 0.7)")):
            assert _violation(circuit.tilt(point), point) is None


def test_not_a_distribution():
    assert not check(pgcc.parse("1.5*x - 0.5")).negative_dependence.proved
    many = pgcc.builders.naive_bayes([0.5, 0.5], RNG(0).random((2, 61)))
    assert "60 variables" in dependence(many).reason


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("2*a + 3*b", "a distribution, up to the factor 5"),
        ("0.5*a + 0.25", "a distribution, up to the factor 3/4"),
        ("0.5*a + 0.5", "a distribution"),
        ("2*a - b", "not a distribution"),
        ("-2*a", "not a distribution"),
        ("2*a*a", "not a distribution"),
    ],
)
def test_weights_that_do_not_add_up_to_1_are_no_defect(text, headline):
    """The report of our own example, roads.edges, began with "not a distribution"."""
    report = pgcc.check(pgcc.parse(text))
    assert report.headline == headline
    assert str(report).startswith(f"{headline}: ")
    assert report.ok == (headline == "a distribution")
    assert headline.capitalize() in report._repr_html_()

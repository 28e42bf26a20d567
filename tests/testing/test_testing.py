"""The makers make what they promise."""

from collections import Counter
from fractions import Fraction

import networkx
import numpy as np
import pytest
from how_many import some
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from well_formed import verify

import pgcc
import pgcc.testing as testing
from pgcc.errors import CircuitError, PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate, probability
from pgcc.ir.node import Op, const, product, var, weighted_sum
from pgcc.model import Model
from pgcc.testing import (
    assert_laws,
    assert_same_distribution,
    assert_valid,
    brute_force,
    circuits,
    evidence,
    graphs,
    kernels,
    pcs,
    polynomials,
    random_circuit,
    random_det,
    random_evidence,
    random_pc,
)


def is_multiaffine(circuit, rng):
    """Second differences vanish: g(z+1) − 2·g(z) + g(z−1) = 0 in every variable, at a random point."""
    point = {name: Fraction(int(rng.integers(-50, 50)), 7) for name in circuit.variables}
    for name in circuit.variables:
        low, middle, high = (evaluate(circuit, {**point, name: point[name] + d}) for d in (-1, 0, 1))
        if high - 2 * middle + low:
            return False
    return True


def has_shared_inner_node(circuit):
    parents = Counter(c for node in circuit.order for c in node.children)
    return any(count > 1 and node.children for node, count in parents.items())


def has_a_square(circuit):
    products = [node.children for node in circuit.order if node.op is Op.PRODUCT]
    return any(len(set(children)) < len(children) for children in products)


def test_is_multiaffine_can_say_no():
    rng = np.random.default_rng(0)
    assert not is_multiaffine(Circuit(product((var("x"), var("x")))), rng)
    assert is_multiaffine(Circuit(product((var("x"), var("y")))), rng)


@pytest.mark.parametrize("decomposable", [True, False])
@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_random_circuit(decomposable, negative, exact):
    rng = np.random.default_rng(1)
    shared = unsmooth = signed = above = 0
    for _ in range(25):
        n = int(rng.integers(1, 7))
        g = verify(random_circuit(rng, n, 12, decomposable=decomposable, negative=negative, exact=exact))
        assert g.variables == tuple(f"z{i}" for i in range(1, n + 1))
        assert g.facts.decomposable == decomposable
        assert is_multiaffine(g, rng)
        assert g.facts.exact == exact
        if decomposable:
            assert g.facts.degree == n
            assert g.facts.monotone or negative
        if not negative and exact:
            coefficients = brute_force(g).values()
            assert min(coefficients) >= 0
            assert sum(coefficients) == 1
        shared += has_shared_inner_node(g)
        unsmooth += not g.facts.smooth
        signed += not g.facts.monotone
        above += g.facts.degree > n
    assert shared > 15
    assert unsmooth > 20
    assert signed > 15 or (not negative and decomposable)
    assert above > 10 or decomposable


def test_size_is_about_the_number_of_operations():
    for size in (10, 100, 1000):
        g = random_circuit(0, 20, size)
        inner = sum(bool(node.children) for node in g.order)
        assert size / 2 <= inner <= 2 * size + 60


def test_the_same_seed_gives_the_same_circuit():
    assert random_circuit(7, 5, 20) == random_circuit(np.random.default_rng(7), 5, 20)
    assert random_circuit(7, 5, 20) != random_circuit(8, 5, 20)
    assert random_det(7, 4) == random_det(7, 4)
    g = random_circuit(7, 5, 20)
    assert random_evidence(3, g) == random_evidence(3, g)


@pytest.mark.parametrize("kind", testing.DET_KINDS)
@pytest.mark.parametrize("decomposable", [True, False])
def test_random_det(kind, decomposable):
    rng = np.random.default_rng(2)
    exact, y = True, False
    for _ in range(6):
        g = verify(random_det(rng, 4, kind, decomposable=decomposable, exact=exact, complements=y, alone=True))
        assert g.root.op is Op.DET
        assert g.facts.decomposable == decomposable
        assert g.facts.exact == exact
        assert is_multiaffine(g, rng)
        m0, u, v = (np.array(m.exact()) for m in g.root.matrices)
        if kind in ("psd", "low rank"):
            assert (m0 == np.identity(len(m0), dtype=int)).all()
        if kind == "psd":
            assert (v == v.T).all()
        if kind == "kernel":
            assert (m0 + v.T == np.identity(len(m0), dtype=int)).all()
        if kind in ("low rank", "singular"):
            assert (u == v).all()
        if kind == "singular":
            assert not m0.any()
        exact, y = not exact, not y


def test_random_det_stands_in_other_circuits_and_has_complements():
    made = [random_det(seed, 4, complements=True) for seed in range(40)]
    assert {g.root.op for g in made} == {Op.DET, Op.SUM}
    dets = [node for g in made for node in g.order if node.op is Op.DET]
    assert any(y.op is not Op.CONST for node in dets for y in node.outside)
    plain = [random_det(seed, 4) for seed in range(20)]
    assert all(y is const(1) for g in plain for node in g.order if node.op is Op.DET for y in node.outside)


def test_random_evidence_is_partial():
    g = random_circuit(0, 12, 5)
    seen = [random_evidence(seed, g) for seed in range(40)]
    counts = Counter(e.get(name) for e in seen for name in g.variables)
    assert counts.keys() == {0, 1, None}
    assert min(counts.values()) > 100


@pytest.mark.parametrize("decomposable", [True, False])
def test_the_strategy_keeps_its_word(decomposable):
    @settings(max_examples=some(40), deadline=None, suppress_health_check=list(HealthCheck))
    @given(circuits(max_variables=4, decomposable=decomposable, dets=True, negative=False))
    def test(g):
        assert g.facts.decomposable == decomposable
        assert len(g.variables) <= 4
        assert is_multiaffine(verify(g), np.random.default_rng(0))
        if decomposable and not g.facts.dets:
            assert g.facts.monotone

    test()


def test_the_strategy_reaches_everything():
    def reaches(strategy, wanted):
        quick = settings(max_examples=some(3000), database=None, deadline=None, phases=[Phase.generate])
        return wanted(find(strategy, wanted, settings=quick))

    assert reaches(circuits(dets=True), lambda g: g.facts.dets == 1)
    assert reaches(circuits(), lambda g: not g.facts.decomposable)
    assert reaches(circuits(), lambda g: g.facts.decomposable and has_shared_inner_node(g))
    assert reaches(circuits(floats=True), lambda g: not g.facts.exact)
    assert reaches(circuits(multiaffine=False), lambda g: weighted_sum((), ()) in g.order)
    assert reaches(circuits(multiaffine=False), has_a_square)


def test_the_strategy_without_dets_and_floats_has_none():
    @settings(max_examples=some(40), deadline=None)
    @given(st.one_of(circuits(), circuits(multiaffine=False)))
    def test(g):
        assert g.facts.dets == 0
        assert g.facts.exact

    test()


@settings(max_examples=some(30), deadline=None)
@given(st.data())
def test_evidence_is_about_the_circuit(data):
    g = data.draw(circuits())
    e = data.draw(evidence(g))
    assert set(e) <= set(g.variables)
    assert set(e.values()) <= {0, 1}


@settings(max_examples=some(25), deadline=None)
@given(circuits(max_variables=4, dets=True, max_size=5))
def test_brute_force_is_the_probability_of_full_evidence(g):
    for subset, c in brute_force(g).items():
        assert type(c) is Fraction
        assert c == probability(g, {name: int(name in subset) for name in g.variables})


def test_brute_force_of_constants_unused_variables_and_too_many():
    assert brute_force(Circuit(const(3))) == {frozenset(): 3}
    g = Circuit(var("a"), ["a", "b"])
    assert brute_force(g) == {frozenset(): 0, frozenset("a"): 1, frozenset("b"): 0, frozenset("ab"): 0}
    with pytest.raises(CircuitError, match="2\\^17"):
        brute_force(random_circuit(0, 17, 1))


# -- the other strategies --------------------------------------------------------------------------------------------

few = settings(max_examples=some(40), deadline=None, suppress_health_check=list(HealthCheck))
steady = settings(max_examples=some(2000), database=None, deadline=None, derandomize=True)


def reached(strategy, wanted):
    """The smallest example that hypothesis finds."""
    return find(strategy, wanted, settings=steady)


@few
@given(polynomials(max_variables=3))
def test_polynomials_are_distributions(g):
    assert g.facts.exact
    assert g.facts.decomposable
    assert len(g.variables) <= 3
    assert_valid(g)
    assert_laws(g, queries=4)


@few
@given(polynomials(valid=False))
def test_polynomials_of_any_kind_are_multiaffine_and_exact(g):
    assert g.facts.exact
    assert is_multiaffine(verify(g), np.random.default_rng(0))


def test_polynomials_shrink_and_reach():
    assert str(reached(polynomials(), lambda g: True)) == "1"
    assert str(reached(polynomials(), lambda g: g.facts.degree == 2)) == "z1*z2"
    assert str(reached(polynomials(valid=False), lambda g: min(brute_force(g).values()) < 0)) == "-1"
    assert not any(brute_force(reached(polynomials(valid=False), lambda g: not any(brute_force(g).values()))).values())
    assert len(reached(polynomials(max_variables=7), lambda g: len(g.variables) == 7).variables) == 7


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("floats", [True, False])
def test_pcs(smooth, floats):
    @few
    @given(pcs(smooth=smooth, max_variables=3, floats=floats))
    def test(p):
        report = p.structure()
        assert report.decomposable
        assert report.smooth == smooth
        assert len(p.variables) <= 3
        g = p.to_pgc()
        assert_valid(g, normalize=True)
        values = {s: p.evaluate({x: int(x in s) for x in p.variables}) for s in brute_force(g)}
        assert values == brute_force(g) or floats

    test()


def test_pcs_are_both_by_default_and_small():
    assert reached(pcs(), lambda p: p.structure().smooth).edges <= 2
    assert reached(pcs(), lambda p: not p.structure().smooth).edges <= 5


def as_dpp(kind, kernel):
    if kind in ("projection", "marginal"):
        return pgcc.dpp(K=kernel)
    return pgcc.dpp(L=kernel, symmetric=kind == "psd")


@pytest.mark.parametrize("kind", testing.KERNEL_KINDS)
@pytest.mark.parametrize("floats", [True, False])
def test_kernels_are_dpps(kind, floats):
    @few
    @given(kernels(kind, max_items=3, floats=floats))
    def test(kernel):
        assert kernel.ndim == 2
        assert 1 <= len(kernel) <= 3
        assert kernel.dtype == (float if floats else object if kind in ("projection", "marginal") else int)
        if kind != "nonsymmetric":
            assert (kernel == kernel.T).all()
        if kind == "projection" and not floats:
            assert (kernel @ kernel == kernel).all()
        assert_valid(as_dpp(kind, kernel), normalize=kind in ("psd", "nonsymmetric"))

    test()


def test_kernels_reach_and_shrink():
    assert (reached(kernels("nonsymmetric"), lambda L: (L != L.T).any()).shape) == (2, 2)
    assert reached(kernels("psd"), lambda L: len(L) > 2 and np.linalg.matrix_rank(L) == 1).shape == (3, 3)
    assert reached(kernels("marginal"), lambda K: 0 < K[0, 0] < 1).shape == (1, 1)
    assert reached(kernels("projection"), lambda K: K[0, 0] not in (0, 1)).shape == (2, 2)
    with pytest.raises(PgccError, match="'low rank': choose one of 'psd', 'projection'"):
        kernels("low rank")


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("multigraph", [True, False])
def test_graphs_have_trees(weighted, multigraph):
    @few
    @given(graphs(max_nodes=4, weighted=weighted, multigraph=multigraph))
    def test(G):
        assert networkx.is_connected(G)
        assert G.is_multigraph() == multigraph
        assert not list(networkx.selfloop_edges(G))
        assert sorted(G) == list(range(len(G)))
        assert all(("weight" in data) == weighted for *_, data in G.edges(data=True))
        assert_valid(pgcc.spanning_tree(G), normalize=True)

    test()


def test_graphs_reach_and_shrink():
    assert list(reached(graphs(), lambda G: True)) == [0]
    assert list(reached(graphs(), lambda G: len(G) == 3).edges) == [(0, 1), (0, 2)]
    assert list(reached(graphs(max_nodes=3, multigraph=True), lambda G: G.size() > len(G)).edges) == [
        (0, 1, i) for i in range(3)
    ]
    heavy = reached(graphs(weighted=True), lambda G: any(w > 5 for *_, w in G.edges(data="weight")))
    assert list(heavy.edges(data="weight")) == [(0, 1, 6)]

    @settings(database=None, derandomize=True)
    @given(graphs(weighted=True))
    def fails(G):
        assert len(G) < 2

    with pytest.raises(AssertionError) as caught:
        fails()
    assert "G=graph_of([(0, 1, 1)])" in "".join(caught.value.__notes__)


# -- the assertions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5*rain - 0.5", "not a distribution: .*\nnonnegative: refuted: the coefficient of rain=0 is -1/2"),
        ("0.5*rain + 0.4", "normalized: refuted: g\\(1\\) = 9/10"),
        ("0.5*rain*(rain + 1)", "multiaffine: refuted: 'rain' occurs to a power above 1"),
    ],
)
def test_assert_valid_refutes(text, message):
    with pytest.raises(AssertionError, match=message) as caught:
        assert_valid(pgcc.parse(text))
    assert "proved" not in str(caught.value)
    with pytest.raises(AssertionError):
        assert_valid(pgcc.parse(text), allow_unproven=True)


def unproven():
    """Nonnegative, but by no rule, and with too many variables to list its coefficients."""
    even, uneven = ([pgcc.parse(f"{p}*x{i} + {1 - p}") for i in range(24)] for p in (Fraction(1, 2), Fraction(51, 100)))
    return 2 * pgcc.product(even) - pgcc.product(uneven)


def test_assert_valid_says_that_it_is_not_proven():
    wide = unproven()
    assert pgcc.check(wide, time=0.05).state == "not proven"
    with pytest.raises(
        AssertionError, match=r"not proven to be a distribution(.|\n)*nonnegative: not proven(.|\n)*allow"
    ):
        assert_valid(wide, time=0.05)
    assert_valid(wide, time=0.05, allow_unproven=True)


def test_assert_valid_passes():
    assert_valid(pgcc.parse("0.4*a*b + 0.6"))
    kernel = pgcc.dpp(L=[[2, 1], [1, 2]])
    assert_valid(kernel, normalize=True)
    with pytest.raises(AssertionError, match="g\\(1\\) = 8"):
        assert_valid(kernel)
    with pytest.raises(PgccError, match="takes a Circuit"):
        assert_valid("0.4*a + 0.6")


def test_same_distribution_passes():
    a = pgcc.parse("0.5*a*b + 0.5*a")
    assert_same_distribution(a, pgcc.parse("b*a + a"))
    assert_same_distribution(a, pgcc.compile(a))
    p = random_pc(3, 4)
    assert_same_distribution(p, p.smooth(), rtol=0)
    assert_same_distribution(Circuit(const(1)), Circuit(const(2)))
    wide = random_circuit(1, 15, 30, negative=False)
    assert_same_distribution(wide, Circuit(wide.root, wide.variables[::-1]))
    L = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert_same_distribution(pgcc.dpp(L=L), pgcc.dpp(K=L @ np.linalg.inv(L + np.eye(2))))


def test_same_distribution_fails_with_the_assignment_and_both_numbers():
    a, b = pgcc.parse("0.5*wet*cold + 0.5"), pgcc.parse("0.25*wet*cold + 0.25*wet + 0.5")
    told = r"Pr\(wet=1, cold=0\) is 0.0 in the first and 0.25 in the second; 2 of 4 queries differ"
    with pytest.raises(AssertionError, match=told):
        assert_same_distribution(a, b)
    with pytest.raises(AssertionError, match=r"Pr\(cold=0, wet=1\) is 1/4 in the first and 0 in the second"):
        assert_same_distribution(Circuit(b.root, ["cold", "wet"]), a, rtol=0)
    with pytest.raises(
        AssertionError, match="different variables: 'wet' only in the first and 'x', 'y' only in the sec"
    ):
        assert_same_distribution(pgcc.parse("0.5*wet*z + 0.5"), pgcc.parse("0.5*x*y*z + 0.5"))


def test_same_distribution_tolerates_what_it_is_told_to():
    a, b = pgcc.parse("0.5*x + 0.5"), pgcc.parse("0.500001*x + 0.499999")
    with pytest.raises(AssertionError):
        assert_same_distribution(a, b)
    assert_same_distribution(a, b, rtol=1e-5)
    assert_same_distribution(a, b, atol=1e-5)


def test_same_distribution_of_many_variables():
    n = 30
    chance = [Fraction(i + 1, n + 2) for i in range(n)]
    leaves = [weighted_sum((p, 1 - p), (var(f"x{i}"), const(1))) for i, p in enumerate(chance)]
    other = weighted_sum((Fraction(1, 2), Fraction(1, 2)), (var("x7"), const(1)))
    a, b = Circuit(product(leaves)), Circuit(product([*leaves[:7], other, *leaves[8:]]))
    assert_same_distribution(a, a)
    with pytest.raises(AssertionError, match=r"Pr\(.*x7=[01].*\) is .* in the first and .* in the second"):
        assert_same_distribution(a, b)


@pytest.mark.parametrize("decomposable", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_laws_hold(decomposable, exact):
    for seed in range(3):
        assert_laws(random_circuit(seed, 5, 12, decomposable=decomposable, negative=False, exact=exact), queries=8)


def test_laws_hold_of_determinants_and_constants():
    assert_laws(pgcc.dpp(L=[[2, 1], [1, 2]]), normalize=True)
    assert_laws(pgcc.dpp(K=[[0.5, 0.25], [0.25, 0.5]]))
    assert_laws(pgcc.spanning_tree(networkx.complete_graph(4)), normalize=True)
    assert_laws(Circuit(const(1)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5*rain + 0.4", r"Pr\(\) = 9/10 is not 1; normalize=True divides by it"),
        ("1.5*rain - 0.5", r"Pr\(rain=1\) = 3/2 is above 1"),
        ("0.8*wet - 0.1*rain + 0.3", r"Pr\(rain=1\) = -1/10 is below 0"),
        ("0.5*rain*(rain + 1)", "there is nothing to ask: .*rain"),
    ],
)
def test_laws_fail_on_what_is_no_distribution(text, message):
    with pytest.raises(AssertionError, match=message):
        assert_laws(pgcc.parse(text))


def broken_prob(when, change):
    """Model.prob, but for answers that are changed when that is asked."""
    prob = Model.prob

    def wrong(self, given=None, **options):
        answer = prob(self, given, **options)
        return change(answer) if when(given, options) else answer

    return wrong


GOOD = "0.3*a*b*c + 0.2*a*b + 0.1*c + 0.4"


def test_laws_see_marginals_that_do_not_add_up(monkeypatch):
    def half(answer):
        return (answer[0] / 2, answer[1]) if isinstance(answer, tuple) else answer / 2

    monkeypatch.setattr(Model, "prob", broken_prob(lambda e, o: len(e) == 1, half))
    with pytest.raises(AssertionError, match=r"Pr\(.*\) = .*, but Pr\(.*=1.*\) = .* and Pr\(.*=0.*\) = .* add up to"):
        assert_laws(pgcc.parse(GOOD))


def test_laws_see_floats_that_are_off(monkeypatch):
    off = broken_prob(lambda e, o: o.get("bound"), lambda pair: (pair[0] * (1 + 1e-6), pair[1]))
    monkeypatch.setattr(Model, "prob", off)
    with pytest.raises(AssertionError, match=r"as a float and .* exactly: they are .* apart"):
        assert_laws(pgcc.parse(GOOD))


def test_laws_see_wrong_conditioning_and_marginals(monkeypatch):
    observe, marginalize = Circuit.observe, Circuit.marginalize
    with monkeypatch.context() as patch:
        flipped = lambda self, e: observe(self, {x: 1 - v for x, v in e.items()})  # noqa: E731
        patch.setattr(Circuit, "observe", flipped)
        with pytest.raises(AssertionError, match=r"by the circuit conditioned on [abc]=[01].*, asked for Pr"):
            assert_laws(pgcc.parse(GOOD))
    with monkeypatch.context() as patch:
        dropped = lambda self, names: observe(self, dict.fromkeys(names, 0))  # noqa: E731
        patch.setattr(Circuit, "marginalize", dropped)
        with pytest.raises(AssertionError, match=r"by the circuit without [abc].*, asked for Pr"):
            assert_laws(pgcc.parse(GOOD))
    assert Circuit.marginalize is marginalize
    assert_laws(pgcc.parse(GOOD))


def test_every_name_is_there():
    assert all(hasattr(testing, name) for name in testing.__all__)
    assert callable(testing.entangle)
    assert callable(testing.polarize)

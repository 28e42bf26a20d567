"""Operations on distributions, each against what it does to a table of 2ⁿ probabilities, in exact fractions."""

import math
import pickle
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from how_many import some
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from well_formed import verify

import pgcc
from pgcc.builders import chow_liu, hmm
from pgcc.errors import CircuitError, EvidenceError, PgccError, PrecisionError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import ONE, Op, det, product, var, weighted_sum
from pgcc.passes.total import total
from pgcc.testing import brute_force, circuits, random_det

MANY = settings(max_examples=some(60), deadline=None)
SOME = settings(max_examples=some(20), deadline=None)

fractions = st.fractions(min_value=0, max_value=1, max_denominator=12)
positive = st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9)


def named(circuit, letter):
    """The same circuit with other names."""
    return circuit.relabel({name: letter + name[1:] for name in circuit.variables})


def distributions(letter="z", n=4, decomposable=None, max_size=6):
    """Exact distributions over up to n variables."""
    made = circuits(max_variables=n, decomposable=decomposable, negative=False, max_size=max_size)
    return made.map(lambda circuit: named(circuit, letter))


@st.composite
def dpps(draw, letter="z", n=3):
    """Exact DPPs; their totals are not 1."""
    k = draw(st.integers(1, n))
    B = [[draw(st.integers(-2, 2)) for _ in range(k)] for _ in range(k)]
    L = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in B] for r in B]
    return pgcc.dpp(L=L, names=[f"{letter}{i}" for i in range(1, k + 1)])


def anything(letter="z", n=4):
    """Distributions, and DPPs, which are multiples of one."""
    return distributions(letter, n) | dpps(letter, min(n, 3))


def divided(table):
    """The table of a distribution."""
    whole = sum(table.values())
    return {s: p / whole for s, p in table.items()}


def nonzero(table):
    return {s: p for s, p in table.items() if p}


def multiplied(a, b):
    """The product of two polynomials without common variables."""
    found = {}
    for s, p in a.items():
        for t, q in b.items():
            found[s | t] = found.get(s | t, 0) + p * q
    return found


def added(terms):
    found = {}
    for table in terms:
        for s, p in table.items():
            found[s] = found.get(s, 0) + p
    return found


def scaled(w, table):
    return {s: w * p for s, p in table.items()}


def compiles(circuit):
    """The compiled circuit agrees with the table on every full assignment."""
    table = divided(brute_force(circuit))
    model = pgcc.compile(circuit)
    rows = np.array([[int(v in s) for v in circuit.variables] for s in table]).reshape(len(table), -1)
    np.testing.assert_allclose(model.prob(rows), [float(p) for p in table.values()], rtol=1e-9, atol=0)


# -- mixtures and products -------------------------------------------------------------------------------------------


@st.composite
def shares(draw, count):
    sizes = [draw(st.integers(0, 9)) for _ in range(count)]
    assume(sum(sizes))
    return [Fraction(x, sum(sizes)) for x in sizes]


@pytest.mark.slow
@MANY
@given(st.lists(anything("z", 4) | anything("y", 3), min_size=1, max_size=3), st.data())
def test_mixture(parts, data):
    weights = data.draw(shares(len(parts)))
    mixed = verify(pgcc.mixture(weights, parts))
    expected = added(scaled(w, divided(brute_force(g))) for w, g in zip(weights, parts, strict=True))
    assert nonzero(brute_force(mixed)) == nonzero(expected)
    assert mixed.variables == tuple(dict.fromkeys(v for g in parts for v in g.variables))
    assert total(mixed) == 1


@MANY
@given(anything("a", 2), anything("b", 2), distributions("c", 2, max_size=3))
def test_product(f, g, h):
    found = verify(pgcc.product([f, g, h]))
    assert nonzero(brute_force(found)) == nonzero(
        multiplied(multiplied(brute_force(f), brute_force(g)), brute_force(h))
    )
    assert found.variables == f.variables + g.variables + h.variables


def test_float_weights_are_kept():
    a, b = pgcc.parse("x/2 + 1/2"), pgcc.parse("y")
    assert pgcc.mixture([0.3, 0.7], [a, b]).root.weights == (0.3, 0.7)
    assert pgcc.mixture(np.array([0.1] * 10), [a] * 10).root.weights == (0.1,) * 10
    assert pgcc.compile(pgcc.mixture([0.3, 0.7], [a, b])).prob({"x": 1}) == pytest.approx(0.15, rel=1e-15)
    assert pgcc.mixture([1, 0], [a, b]).root is a.root
    assert pgcc.mixture([1, 0], [a, b]).variables == ("x", "y")
    with pytest.raises(CircuitError, match=r"add up to 0\.99999999\d*, not to 1"):
        pgcc.mixture([0.5, 0.49999999], [a, b])
    with pytest.raises(CircuitError, match="add up to 1000000000001/1000000000000"):
        pgcc.mixture([Fraction(1, 2), Fraction(500000000001, 1000000000000)], [a, b])


def test_a_mixture_of_dpps_by_floats():
    rng = np.random.default_rng(0)
    models, parts = [], []
    for n in (3, 8, 40):
        B = rng.normal(size=(n, n))
        parts.append(pgcc.dpp(L=B @ B.T / n))
        models.append(pgcc.compile(parts[-1]))
    mixed = pgcc.compile(pgcc.mixture([0.5, 0.25, 0.25], parts))
    for evidence in ({"x1": 1}, {"x1": 0, "x3": 1}, {"x2": 1, "x3": 1, "x1": 0}):
        expected = sum(w * m.prob(evidence) for w, m in zip([0.5, 0.25, 0.25], models, strict=True))
        assert mixed.prob(evidence) == pytest.approx(expected, rel=1e-12)
    assert total(pgcc.mixture([0.5, 0.25, 0.25], parts)) == pytest.approx(1, abs=1e-12)


def test_product_of_nothing_and_of_one():
    assert pgcc.product([]) == Circuit(ONE)
    g = pgcc.parse("x/2 + 1/2")
    assert pgcc.product([g]) == g
    assert pgcc.product(iter([g])) == g


# -- composition -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@MANY
@given(anything("g", 3), st.lists(st.booleans(), min_size=3, max_size=3), st.data())
def test_compose(g, chosen, data):
    """Proposition 3: Σ_S α_S Π_{i∈S} f_i"""
    replaced = [name for name, there in zip(g.variables, chosen, strict=False) if there]
    leaves = {name: data.draw(distributions(f"{letter}", 2)) for name, letter in zip(replaced, "abc", strict=False)}
    found = verify(g.compose(leaves))
    tables = {name: brute_force(leaves[name]) if name in leaves else {frozenset([name]): 1} for name in g.variables}
    terms = []
    for s, p in brute_force(g).items():
        term = {frozenset(): p}
        for name in s:
            term = multiplied(term, tables[name])
        terms.append(term)
    assert nonzero(brute_force(found)) == nonzero(added(terms))
    assert total(found) == total(g)


@SOME
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_compose_goes_through_determinants(seed, complements, sized):
    g = random_det(seed, n=3, complements=complements, sized=sized)
    leaf = pgcc.parse("0.3*a*b + 0.7*a")
    found = g.compose({"z1": leaf})
    at = {"a": Fraction(2, 3), "b": Fraction(-5, 2), "z2": Fraction(3, 7), "z3": Fraction(9)}
    inner = {**at, "z1": evaluate(leaf, at)}
    assert evaluate(found, at) == evaluate(g, inner)


def test_compose_keeps_the_order_and_takes_literals():
    g = chow_liu([-1, 0], ["1/4", ("1/8", "3/4")], names=["rain", "wet"])
    leaf = pgcc.parse("0.5*a*b + 0.5*a")
    found = g.compose({"rain": leaf})
    assert found.variables == ("a", "b", "wet")
    assert nonzero(brute_force(found)) == nonzero(
        {
            frozenset("ab"): Fraction(1, 32),
            frozenset("a"): Fraction(1, 32),
            frozenset(["a", "b", "wet"]): Fraction(3, 32),
            frozenset(["a", "wet"]): Fraction(3, 32),
            frozenset(): Fraction(21, 32),
            frozenset(["wet"]): Fraction(3, 32),
        }
    )
    compiles(found)
    assert g.compose({}) == g
    again = g.compose({"rain": pgcc.parse("rain/2 + 1/2")})  # a leaf may have the variable that it replaces
    assert nonzero(brute_force(again)) == nonzero(brute_force(g.thin({"rain": "1/2"})))


def test_float_leaves_are_one_to_rounding():
    g = pgcc.parse("x*y")
    tenths = weighted_sum([0.1] * 10, [var("a"), *[ONE] * 9])
    assert g.compose({"x": Circuit(tenths)}).variables == ("a", "y")
    with pytest.raises(SemanticsError, match=r"the leaf for 'x' has the total 1\.00001, not 1"):
        g.compose({"x": Circuit(weighted_sum([0.1, 0.90001], [var("a"), ONE]))})
    with pytest.raises(SemanticsError, match="'x' has the total 999999999999/1000000000000, not 1"):
        g.compose({"x": pgcc.parse("0.5*a + 0.499999999999")})


# -- thinning, tilting, complement -----------------------------------------------------------------------------------


@MANY
@given(anything(), st.lists(fractions, min_size=4, max_size=4), st.booleans())
def test_thin(g, ps, alike):
    given_ps = dict.fromkeys(g.variables, ps[0]) if alike else dict(zip(g.variables, ps, strict=False))
    found = verify(g.thin(ps[0] if alike else given_ps))
    terms = []
    for s, p in brute_force(g).items():
        term = {frozenset(): p}
        for name in s:
            q = given_ps[name]
            term = multiplied(term, {frozenset([name]): q, frozenset(): 1 - q})
        terms.append(term)
    assert nonzero(brute_force(found)) == nonzero(added(terms))
    assert found.variables == g.variables
    assert total(found) == total(g)


@MANY
@given(anything(), st.lists(positive, min_size=4, max_size=4))
def test_tilt(g, ws):
    weights = dict(zip(g.variables[1:], ws, strict=False))
    found = verify(g.tilt(weights))
    expected = {s: p * math.prod(weights.get(v, 1) for v in s) for s, p in brute_force(g).items()}
    assert brute_force(found) == expected


@MANY
@given(distributions(decomposable=True) | dpps(), st.data())
def test_complement(g, data):
    over = data.draw(st.none() | st.sets(st.sampled_from(g.variables)))
    found = verify(g.complement(over))
    swapped = frozenset(g.variables if over is None else over)
    assert brute_force(found) == {s ^ swapped: p for s, p in brute_force(g).items()}
    assert brute_force(found.complement(over)) == brute_force(g)
    assert found.variables == g.variables


@SOME
@given(st.integers(0, 10**6), st.booleans())
def test_complement_of_determinants(seed, complements):
    g = random_det(seed, n=3, complements=complements)
    everything = frozenset(g.variables)
    assert brute_force(g.complement()) == {everything - s: p for s, p in brute_force(g).items()}


def test_what_is_made_compiles():
    d = pgcc.dpp(L=[[2, 1, 0], [1, 3, 1], [0, 1, 4]], names=["a", "b", "c"])
    f = pgcc.parse("0.25*d*e + 0.5*d + 0.25")
    for circuit in (
        d.complement(),
        d.complement(["a"]),
        d.thin("1/3"),
        d.tilt({"a": 5}),
        d.compose({"b": f}),
        d.compose({"b": f}).complement(),
        d.compose({"b": f}).observe(size=2, over=["a", "d", "e"]),
        d.observe(size=(0, 1), over=["a", "b"]),
        pgcc.mixture([0.25, 0.75], [d, f]),
        pgcc.product([d, f]),
        pgcc.superpose([d, pgcc.parse("(a/2 + 1/2)*(b/3 + 2/3)")]),
        pgcc.subsets("a b c d", 2),
    ):
        compiles(circuit)


def test_a_variable_that_never_occurs():
    g = Circuit(var("a"), ["a", "b"])
    assert nonzero(brute_force(g.complement())) == {frozenset("b"): 1}
    assert nonzero(brute_force(g.thin({"b": "1/2"}))) == {frozenset("a"): 1}
    assert nonzero(brute_force(g.observe(size=1, over=["a"]))) == {frozenset("a"): 1}
    assert nonzero(brute_force(g.observe(size=1, over=["b"]))) == {}


def test_a_float_is_thinned_without_rounding():
    g = pgcc.parse("a").thin(0.1)
    assert sum(brute_force(g).values()) == 1


def test_thinning_keeps_literals():
    g = hmm(["0.5", "0.5"], [["0.9", "0.1"], ["0.2", "0.8"]], ["0.1", "0.7"], length=6)
    assert g.facts.smooth
    assert g.thin("0.3").facts.smooth
    assert g.complement().edges == g.edges


# -- how many --------------------------------------------------------------------------------------------------------


@MANY
@given(anything(n=5), st.data())
def test_exactly_and_at_most(g, data):
    over = data.draw(st.none() | st.sets(st.sampled_from(g.variables)))
    counted = set(g.variables if over is None else over)
    k = data.draw(st.integers(0, len(counted)))
    table = brute_force(g)
    assert brute_force(verify(g.observe(size=k, over=over))) == {
        s: p * (len(s & counted) == k) for s, p in table.items()
    }
    assert brute_force(verify(g.observe(size=(0, k), over=over))) == {
        s: p * (len(s & counted) <= k) for s, p in table.items()
    }


@pytest.mark.slow
@settings(max_examples=some(40), deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sets(st.sampled_from(["z1", "z2", "z3"])), st.data())
def test_exactly_in_determinants(seed, complements, over, data):
    g = random_det(seed, n=3, complements=complements)
    k = data.draw(st.integers(0, len(over)))
    table = brute_force(g)
    assert brute_force(g.observe(size=k, over=over)) == {s: p * (len(s & over) == k) for s, p in table.items()}
    assert brute_force(g.observe(size=(0, k), over=over)) == {s: p * (len(s & over) <= k) for s, p in table.items()}


@pytest.mark.slow
def test_at_most_in_a_dpp_of_floats():
    """A determinant of which some of the variables count: against sums of probabilities."""
    B = np.random.default_rng(3).normal(size=(6, 6))
    d = pgcc.dpp(L=B @ B.T)
    counted = {"x1", "x3", "x5", "x6"}
    table = {s: float(p) for s, p in brute_force(d).items()}
    for made, holds in (
        (d.observe(size=(0, 2), over=counted), lambda s: len(s & counted) <= 2),
        (d.observe(size=3, over=counted), lambda s: len(s & counted) == 3),
    ):
        kept = {s: p for s, p in table.items() if holds(s)}
        model, whole = pgcc.compile(made), sum(kept.values())
        for evidence in ({"x1": 1}, {"x2": 0, "x3": 1}, {"x1": 1, "x3": 1, "x5": 0}):
            share = sum(p for s, p in kept.items() if all((v in s) == bool(x) for v, x in evidence.items()))
            assert model.prob(evidence) == pytest.approx(share / whole, rel=1e-9)


def test_a_determinant_that_is_too_large_to_count_in():
    d = pgcc.dpp(L=np.eye(260) * 2 + 1).thin("1/2")
    with pytest.raises(CircuitError, match="up to 256 of the variables to count stand in one determinant"):
        d.observe(size=3, over=d.variables[:256])
    assert d.observe(size=3, over=d.variables[:5]).variables == d.variables


def test_all_variables_are_counted_by_default():
    d = pgcc.dpp(L=[[2, 1, 0], [1, 3, 1], [0, 1, 4]])
    assert d.observe(size=np.int64(2), over=["x1", "x2", "x3"]) == d.observe(size=2)


def test_what_does_not_count_stays_as_it_is():
    inner = weighted_sum([Fraction(1, 2)] * 2, [product([var("c"), var("d")]), ONE])
    g = Circuit(product([weighted_sum([Fraction(1, 2)] * 2, [var("a"), ONE]), inner]))
    assert inner in g.observe(size=1, over=["a"]).order


@pytest.mark.parametrize("n", range(6))
def test_subsets(n):
    names = [f"v{i}" for i in range(n)]
    for k in range(n + 1):
        table = nonzero(brute_force(pgcc.subsets(names, k)))
        assert table == {frozenset(s): Fraction(1, math.comb(n, k)) for s in combinations(names, k)}


def test_conditional_bernoulli():
    weights = {"a": 2, "b": 3, "c": 5, "d": 7}
    table = divided(brute_force(pgcc.subsets("a, b, c, d", 2).tilt(weights)))
    whole = sum(weights[x] * weights[y] for x, y in combinations("abcd", 2))
    assert nonzero(table) == {
        frozenset(s): Fraction(weights[s[0]] * weights[s[1]], whole) for s in combinations("abcd", 2)
    }
    every = pgcc.product([pgcc.parse(f"{w}/{w + 1}*{v} + 1/{w + 1}") for v, w in weights.items()])
    assert divided(brute_force(every.observe(size=2))) == table


# -- unions ----------------------------------------------------------------------------------------------------------


def union(a, b):
    """The table of the union of two independent sets."""
    return multiplied(a, b)  # frozensets are united there, whether or not they are disjoint


@st.composite
def independents(draw, names):
    """A product of some p·z + 1 − p, perhaps with another total than 1."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    scale = draw(st.sampled_from([1, 3, Fraction(1, 2)]))
    factors = []
    for name in chosen:
        p = draw(fractions)
        factors.append(weighted_sum([scale * p, scale * (1 - p)], [var(name), ONE]))
    return Circuit(weighted_sum([scale], [product(factors)]) if draw(st.booleans()) else product(factors))


@MANY
@given(distributions("z", 3, decomposable=True) | dpps("z"), independents(["z1", "z2", "z3", "y"]), st.booleans())
def test_superpose_with_noise(g, noise, swapped):
    parts = [noise, g] if swapped else [g, noise]
    found = verify(pgcc.superpose(parts))
    assert nonzero(brute_force(found)) == nonzero(union(brute_force(g), brute_force(noise)))


@MANY
@given(st.lists(independents(["a", "b", "c"]), min_size=1, max_size=4))
def test_superpose_of_independent_variables(parts):
    table = {frozenset(): Fraction(1)}
    for part in parts:
        table = union(table, brute_force(part))
    assert nonzero(brute_force(pgcc.superpose(parts))) == nonzero(table)


def test_superpose_shares_factors():
    """Two circuits may each be entangled, in different variables."""
    f = pgcc.parse("(0.5*a*b + 0.5) * (c/4 + 3/4)")
    g = pgcc.parse("(0.25*c*d + 0.75) * (a/8 + 7/8)")
    assert nonzero(brute_force(pgcc.superpose([f, g]))) == nonzero(union(brute_force(f), brute_force(g)))
    h = pgcc.parse("0.5*x + 0.5")
    assert pgcc.superpose([f, h]) == pgcc.product([f, h])


# -- restriction and names -------------------------------------------------------------------------------------------


@SOME
@given(anything(n=4), st.data())
def test_restrict(g, data):
    kept = data.draw(st.lists(st.sampled_from(g.variables), unique=True))
    found = g.restrict(kept)
    assert found.variables == tuple(kept)
    expected = {}
    for s, p in brute_force(g).items():
        expected[s & set(kept)] = expected.get(s & set(kept), 0) + p
    assert nonzero(brute_force(found)) == nonzero(expected)


def test_relabel():
    g = pgcc.parse("0.25*a*b + 0.5*a + 0.25")
    assert brute_force(g.relabel({"a": "b", "b": "a"}))[frozenset("b")] == Fraction(1, 2)
    with pytest.raises(CircuitError, match="'b' is listed twice"):
        g.relabel({"a": "b"})
    with pytest.raises(CircuitError, match="cannot rename 'x': the variables are a, b"):
        g.relabel({"x": "y"})


# -- determinantal PGCs ----------------------------------------------------------------------------------------------


@st.composite
def kernels(draw, m):
    entries = st.integers(-20, 20).map(lambda x: x / 10)
    B = np.array(draw(st.lists(entries, min_size=m * m, max_size=m * m))).reshape(m, m)
    return B @ B.T


@pytest.mark.slow
@settings(max_examples=some(40), deadline=None)
@given(kernels(3), distributions("a", 3), distributions("b", 2), distributions("c", 2))
def test_the_two_formulas_of_the_paper(L, f, g, h):
    """Inside group i: Pr_L(i)·Pr_i(X, Y). Across groups: Pr(X, Y) ≤ Pr(X)·Pr(Y). Both to 1e-12."""
    leaves = [f, g, h]
    delta = pgcc.compile(pgcc.det_pgc(L, leaves))
    process = pgcc.compile(pgcc.dpp(L=L))
    for i, leaf in enumerate(leaves):
        group = pgcc.compile(leaf)
        inside = process.prob({f"x{i + 1}": 1})
        for x, y in combinations(leaf.variables, 2):
            both = {x: 1, y: 1}
            assert delta.prob(both) == pytest.approx(inside * group.prob(both), rel=1e-12, abs=1e-300)
    for one, other in combinations(leaves, 2):
        for x in one.variables:
            for y in other.variables:
                alone = delta.prob({x: 1}) * delta.prob({y: 1})
                assert delta.prob({x: 1, y: 1}) <= alone * (1 + 1e-12)


@MANY
@given(st.lists(st.integers(-2, 2), min_size=4, max_size=4), anything("a", 2), anything("b", 2), st.sampled_from("LKf"))
def test_det_pgc_is_the_composition(entries, f, g, form):
    a, b, c, d = entries
    L = [[a * a + b * b, a * c + b * d], [a * c + b * d, c * c + d * d]]
    # K = L·(I + L)⁻¹, exactly
    whole = (1 + L[0][0]) * (1 + L[1][1]) - L[0][1] ** 2
    gram = L[0][0] * L[1][1] - L[0][1] ** 2
    K = [[Fraction(L[0][0] + gram, whole), Fraction(L[0][1], whole)], [Fraction(L[0][1], whole), 0]]
    K[1][1] = Fraction(L[1][1] + gram, whole)
    kernel = {"L": {"L": L}, "K": {"K": K}, "f": {"factor": [[a, b], [c, d]]}}[form]
    found = divided(brute_force(verify(pgcc.det_pgc(leaves=[f, g], **kernel))))
    p, q = divided(brute_force(f)), divided(brute_force(g))
    terms = [{frozenset(): Fraction(1)}, scaled(L[0][0], p), scaled(L[1][1], q), scaled(gram, multiplied(p, q))]
    assert nonzero(found) == nonzero(divided(added(terms)))


def test_det_pgc_attracts_and_repels():
    """The paper's separating example: strictly positive inside, strictly negative across."""
    twins = [pgcc.parse(f"0.9*{x}1*{x}2 + 0.05*{x}1 + 0.05*{x}2") for x in "ab"]
    model = pgcc.compile(pgcc.det_pgc([[1, "0.9"], ["0.9", 1]], twins))
    p = {name: model.prob({name: 1}, exact=True) for name in model.variables}
    assert model.prob({"a1": 1, "a2": 1}, exact=True) > p["a1"] * p["a2"]
    assert model.prob({"a1": 1, "b2": 1}, exact=True) < p["a1"] * p["b2"]


def test_det_pgc_of_names_is_a_dpp():
    L = [[2.0, 1.0], [1.0, 2.0]]
    assert pgcc.det_pgc(L, ["a", "b"]) == pgcc.dpp(L=L, names=["a", "b"])
    zero = pgcc.det_pgc(np.zeros((2, 2)), ["a", pgcc.parse("b")])
    assert zero.variables == ("a", "b")
    assert pgcc.compile(zero).prob({"a": 0, "b": 0}) == 1


# -- totals ----------------------------------------------------------------------------------------------------------


@MANY
@given(circuits(max_variables=5, dets=True))
def test_total_is_exact(g):
    assert total(g) == evaluate(g, dict.fromkeys(g.variables, Fraction(1)))
    assert type(total(g)) is not float


@MANY
@given(circuits(max_variables=5, dets=True, floats=True))
def test_total_of_floats(g):
    expected = evaluate(g, dict.fromkeys(g.variables, Fraction(1)))
    try:
        found = total(g)
    except PrecisionError:  # what cancels to next to nothing may be refused
        assert abs(expected) < 1e-9
    else:
        assert abs(Fraction(found) - expected) <= Fraction(1, 10**12) * abs(expected)


@pytest.mark.parametrize("n", [5, 60, 300])
def test_total_of_a_dpp(n):
    rng = np.random.default_rng(n)
    B = rng.normal(size=(n, n + 5))
    d = pgcc.dpp(L=B @ B.T / n)
    assert math.log(total(d)) == pytest.approx(np.linalg.slogdet(np.eye(n) + B @ B.T / n)[1], abs=1e-11)


def test_long_numbers_that_only_ones_multiply_stay_exact():
    assert total(pgcc.parse("x") * 10**2000) == 10**2000
    long = 10**2000 * 3**1000
    factors = (weighted_sum([10**2000], [var("x")]), weighted_sum([3**1000], [var("y")]))
    assert 0 < abs(total(Circuit(product(factors))) - long) < long // 10**12
    assert total(pgcc.parse("x") * 10**100 * pgcc.parse("y") * 3**50) == 10**100 * 3**50


def test_totals_that_cannot_be_had():
    g = pgcc.dpp(L=1e300 * np.eye(140))
    with pytest.raises(PrecisionError, match=r"circuit 1 of the mixture: its total .* more than 39,000 digits"):
        pgcc.mixture([0.5, 0.5], [pgcc.parse("a"), g])
    zero = Circuit(weighted_sum([0.3, -0.1, -0.2], [var("a")] * 3))  # not 0 in binary: 0.3 − 0.1 − 0.2 = −2.8e-17
    assert total(zero) == pytest.approx(float(Fraction(0.3) - Fraction(0.1) - Fraction(0.2)), rel=1e-12)
    rng = np.random.default_rng(0)
    B = rng.integers(-1000, 1000, (80, 80)) / 1024
    B[-1] = B[0] + B[1]
    singular = Circuit(det(np.zeros((80, 80)), B, B, [var(f"x{i}") for i in range(80)]))
    with pytest.raises(PrecisionError):
        singular.normalize()
    too_few = Circuit(det(np.zeros((80, 80)), B[:, 1:], B[:, 1:], [var(f"x{i}") for i in range(79)]))
    with pytest.raises(SemanticsError, match=r"the total 0\.0"):  # of rank 79 at most, whatever the numbers are
        too_few.normalize()


@pytest.mark.parametrize("scale", [1e9, 1e-30])
def test_totals_beyond_the_range_of_floats(scale, tmp_path):
    """Independent variables, as a determinant scale·I + diag(z)·L of another total than 1: all is known."""
    n, p = 40, scale / (1 + scale)
    names = [f"x{i}" for i in range(n)]
    many = pgcc.dpp(L=scale * np.eye(n), names=names)
    if scale < 1:
        many = Circuit(det(scale * np.eye(n), np.eye(n), scale * scale * np.eye(n), [var(name) for name in names]))
    assert not 1e-300 < total(many) < 1e300
    g = pgcc.mixture([0.25, 0.75], [pgcc.parse("x0"), many])
    for same in (g, pickle.loads(pickle.dumps(g)), _saved(g, tmp_path / "g.npz"), _saved(g, tmp_path / "g.pgc")):
        model = pgcc.compile(same)
        assert model.prob({}) == pytest.approx(1, rel=1e-12)
        first = np.zeros(n, int)
        first[0] = 1
        alone = p * (1 - p) ** (n - 1)
        assert model.logprob(first) == pytest.approx(math.log(0.25 + 0.75 * alone), rel=1e-12)
        assert model.logprob(np.ones(n, int)) == pytest.approx(math.log(0.75) + n * math.log(p), rel=1e-12)
        assert model.marginals()[0] == pytest.approx(0.25 + 0.75 * p, rel=1e-12)
    assert many.normalize().compose({"x0": pgcc.parse("y")}).variables[0] == "y"
    assert total(many.normalize()) == pytest.approx(1, rel=1e-12)


def _saved(circuit, path):
    pgcc.save(circuit, path)
    return pgcc.load(path)


def test_normalize():
    assert total(pgcc.dpp(L=[[2, 1], [1, 2]]).normalize()) == 1
    assert total(pgcc.dpp(L=[[2.0, 1.0], [1.0, 2.0]]).normalize()) == pytest.approx(1, abs=1e-15)
    g = pgcc.parse("a/2 + 1/2")
    assert g.normalize() is g


# -- malformed input -------------------------------------------------------------------------------------------------

X, Y = pgcc.parse("0.5*x + 0.5"), pgcc.parse("0.9*y + 0.1")
D = pgcc.dpp(L=[[2, 1], [1, 2]], names=["p", "q"])
SQUARES = pgcc.parse("(x + y)*(x + y) - x*x - y*y + 1 - 2*x*y + x*y*0")
ENTANGLED = pgcc.parse("0.5*x*w + 0.5")

MALFORMED = [
    (lambda: pgcc.mixture([0.5, 0.6], [X, Y]), CircuitError, "add up to 1.1, not to 1"),
    (lambda: pgcc.mixture([1.5, -0.5], [X, Y]), CircuitError, "weight 1 of the mixture is -0.5"),
    (lambda: pgcc.mixture([float("nan"), 1], [X, Y]), CircuitError, "weight 0 of the mixture is nan"),
    (lambda: pgcc.mixture([float("inf"), 1], [X, Y]), CircuitError, "weight 0 of the mixture is inf"),
    (lambda: pgcc.mixture([None, 1], [X, Y]), CircuitError, "weight 0 of the mixture is None"),
    (lambda: pgcc.mixture([1], [X, Y]), CircuitError, "2 circuits needs as many weights, not 1"),
    (lambda: pgcc.mixture([], []), CircuitError, "at least one circuit"),
    (lambda: pgcc.mixture([1], ["x"]), CircuitError, "at position 0 is a circuit, not 'x'"),
    (lambda: pgcc.mixture([1], X), CircuitError, "sequence of circuits, not a single one"),
    (lambda: pgcc.mixture(1, [X]), CircuitError, "weights of a mixture are a sequence, not 1"),
    (lambda: pgcc.mixture([1], [pgcc.pc.pos("x")]), CircuitError, r"to_pgc\(\) makes one"),
    (lambda: pgcc.mixture([0.5, 0.5], [X, Y - 3]), SemanticsError, "circuit 1 of the mixture has the total -2"),
    (lambda: pgcc.mixture([0.5, 0.5], [X, D], normalize=False), SemanticsError, "circuit 1 .* total 8, not 1"),
    (lambda: pgcc.product([X, Y, X * Y]), SemanticsError, "circuit 0 and circuit 2 share the variable 'x'"),
    (lambda: pgcc.product([X, 3]), CircuitError, "at position 1 is a circuit, not 3"),
    (lambda: pgcc.product(X), CircuitError, "not a single one"),
    (lambda: X.compose({"w": Y}), CircuitError, "cannot replace 'w'"),
    (lambda: X.compose([Y]), CircuitError, "a mapping from variables to circuits"),
    (lambda: X.compose({"x": "y"}), CircuitError, "the leaf for 'x' is a circuit, not 'y'"),
    (lambda: X.compose({"x": D}), SemanticsError, "the leaf for 'x' has the total 8, not 1: divide by it"),
    (lambda: X.compose({"x": Y - 3}), SemanticsError, "the leaf for 'x' has the total -2"),
    (lambda: (X * Y).compose({"x": Y}), SemanticsError, "the circuit itself and the leaf for 'x' share .* 'y'"),
    (
        lambda: D.compose({"p": X, "q": X}),
        SemanticsError,
        "the leaf for 'p' and the leaf for 'q' share the variable 'x'",
    ),
    (lambda: X.thin(1.5), CircuitError, r"Pr\(a member stays\) is 1.5"),
    (lambda: X.thin({"x": -1}), CircuitError, r"Pr\(x stays\) is -1"),
    (lambda: X.thin({"w": 0.5}), CircuitError, "cannot change 'w'"),
    (lambda: X.thin("much"), CircuitError, "not a number between 0 and 1"),
    (lambda: X.tilt({"x": 0}), CircuitError, "the weight of x is 0, not a number above 0"),
    (lambda: X.tilt({"x": float("inf")}), CircuitError, "the weight of x is inf"),
    (lambda: X.tilt({"w": 1}), CircuitError, "cannot change 'w'"),
    (lambda: X.tilt(2), CircuitError, "a mapping from variables to weights, not 2"),
    (lambda: X.complement(["w"]), CircuitError, "cannot swap 'w'"),
    (lambda: X.complement(3), CircuitError, "variables to swap are a sequence of names, not 3"),
    (lambda: SQUARES.complement(), CircuitError, "decomposable circuit, and here two factors of product .* share 'x'"),
    (lambda: X.restrict(["w"]), CircuitError, "cannot keep 'w'"),
    (lambda: X.observe(size=2), CircuitError, "size=2: of the 1 variables that are counted, 0 to 1 can be in"),
    (
        lambda: (X * Y).observe(size=(0, 2), over=["x"]),
        CircuitError,
        "0, 2.: of the 1 variables that are counted, 0 to 1",
    ),
    (lambda: X.observe(size=True), CircuitError, "size=True"),
    (lambda: X.observe(size=0.5), CircuitError, "size=0.5"),
    (lambda: X.observe(size=1, over=["w"]), EvidenceError, "unknown variable 'w'"),
    (lambda: pgcc.subsets("a b", 3), CircuitError, "k=3: a subset of 2 variables has 0 to 2 members"),
    (lambda: pgcc.subsets(["a", "a"], 1), CircuitError, "two variables are called 'a'"),
    (lambda: pgcc.subsets([1, 2], 1), CircuitError, "name is a non-empty printable string"),
    (lambda: pgcc.subsets(7, 1), CircuitError, "the names are a sequence, not 7"),
    (
        lambda: pgcc.superpose([ENTANGLED, pgcc.parse("0.5*x*v + 0.5")]),
        SemanticsError,
        "circuit 0 and circuit 1 share the variable 'x', and in both it depends on others",
    ),
    (lambda: pgcc.superpose([SQUARES, X]), CircuitError, "in a decomposable circuit"),
    (lambda: pgcc.superpose([pgcc.parse("2*x - 1"), X]), SemanticsError, "no distribution of 'x'"),
    (lambda: pgcc.det_pgc([[1, 0], [0, 1]], [X]), CircuitError, "the kernel has 2 rows, but the list has 1 leaf"),
    (lambda: pgcc.det_pgc([[1, 0], [0, 1]], [X, X]), SemanticsError, "leaf 0 and leaf 1 share the variable 'x'"),
    (lambda: pgcc.det_pgc([[1, 2], [2, 1]], [X, Y]), SemanticsError, "to which 'leaf 0' and 'leaf 1' contribute"),
    (lambda: pgcc.det_pgc([[1, 0], [0, 1]], [X, 3]), CircuitError, "leaf 1 is a circuit, not 3"),
    (lambda: pgcc.det_pgc([[1, 0], [0, 1]], [X, Y - 2]), SemanticsError, "leaf 1 has the total -1"),
    (lambda: pgcc.det_pgc([[1]], "x"), CircuitError, "the leaves are a sequence of circuits and names"),
    (lambda: pgcc.det_pgc(leaves=[X]), CircuitError, "exactly one of L, K and factor"),
    (lambda: pgcc.parse("x - x").normalize(), SemanticsError, "the circuit has the total 0"),
]


@pytest.mark.parametrize(("attempt", "kind", "message"), MALFORMED)
def test_malformed(attempt, kind, message):
    with pytest.raises(PgccError, match=message) as caught:
        attempt()
    assert type(caught.value) is kind


# -- scale -----------------------------------------------------------------------------------------------------------


def chain(depth):
    """A mixture of a mixture of a mixture …"""
    g = pgcc.parse("0.5*x0 + 0.5")
    for i in range(1, depth):
        g = pgcc.mixture([0.25, 0.75], [pgcc.parse(f"x{i}"), g])
    return g


def leaf(i):
    a, b, c = pgcc.variables([f"a{i}", f"b{i}", f"c{i}"])
    return pgcc.mixture([0.25, 0.75], [a * b, c])


@pytest.mark.slow
def test_a_hundred_thousand_edges():
    g = pgcc.product(leaf(i) for i in range(20_000))
    assert g.edges == 100_000
    half = {f"a{i}": Circuit(var(f"y{i}")) for i in range(0, 20_000, 2)}
    for made in (g.thin(0.5), g.complement(), g.compose(half), g.observe(size=(0, 2), over=["a0", "a1", "a2"])):
        assert len(made.variables) == 60_000
        assert 60_000 < made.edges < 500_000


def test_chains_do_not_grow_with_their_square():
    """A mixture of a mixture of a mixture …: every level adds as many edges as the first."""
    g = chain(4_000)
    assert g.edges <= 5 * 4_000
    assert total(g) == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
def test_deep_circuits_need_no_stack():
    names = [f"x{i}" for i in range(8_000)]
    root = ONE
    for name in names:
        root = weighted_sum([Fraction(1, 2), Fraction(1, 2)], [product((root, var(name))), ONE])
    g = Circuit(root, names)
    for made in (
        g.thin("1/2"),
        g.tilt({"x7": 2}),
        g.compose({"x9": pgcc.parse("y")}),
        g.observe(size=(0, 1), over=["x3", "x4"]),
        pgcc.superpose([g, pgcc.parse("x5/2 + 1/2")]),
    ):
        assert len(made.variables) == 8_000
    assert total(g) == 1


def test_subsets_are_small():
    g = pgcc.subsets([f"x{i}" for i in range(500)], 50)
    assert g.edges < 4 * 500 * 50
    assert total(g) == 1
    assert sum(node.op is Op.VAR for node in g.order) == 500

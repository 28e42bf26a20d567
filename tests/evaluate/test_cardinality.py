"""The distribution of a count against all 2ⁿ probabilities, closed forms and laws."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from families import FAMILIES, cases
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import EvidenceError, PgccError, PrecisionError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, product, var, weighted_sum
from pgcc.testing import circuits, evidence, kernels, random_circuit

TIGHT = 1e-10


def close(found, expected, rtol=TIGHT):
    """Relative accuracy, and zeros that are zeros."""
    np.testing.assert_allclose(found, [float(x) for x in expected], rtol=rtol, atol=0)


def some_of(names, seed):
    rng = np.random.default_rng(seed)
    return [name for name in names if rng.random() < 0.7]


def counted(table, seen, over):
    """Pr(|S ∩ T| = k | evidence), from the list of all sets."""
    pmf = [Fraction(0)] * (len(over) + 1)
    for s, p in table.given(seen).items():
        pmf[len(s & set(over))] += p
    return [p / sum(pmf) for p in pmf]


def bernoullis(probabilities):
    """Independent variables."""
    leaves = [weighted_sum((p, 1 - p), (var(f"z{i}"), ONE)) for i, p in enumerate(probabilities)]
    return Circuit(product(leaves), [f"z{i}" for i in range(len(leaves))])


def poisson_binomial(probabilities):
    """In exact fractions."""
    pmf = [Fraction(1)]
    for p in map(Fraction, probabilities):
        pmf = [(1 - p) * a + p * b for a, b in zip([*pmf, 0], [0, *pmf], strict=True)]
    return pmf


@pytest.mark.parametrize("family", FAMILIES)
def test_against_all_sets(family):
    for i, (circuit, table, seen) in enumerate(cases(family, seed=11)):
        model, over = pgcc.compile(circuit), some_of(circuit.variables, i)
        if table.prob(seen) == 0:
            with pytest.raises(SemanticsError, match="probability 0"):
                model.cardinality(seen, over=over)
            continue
        close(model.cardinality(seen, over=over), counted(table, seen, over))
        np.testing.assert_allclose(
            model.cardinality(seen, over=over, atol=1e-12),
            [float(x) for x in counted(table, seen, over)],
            atol=1e-12,
            rtol=0,
        )


@pytest.mark.parametrize("family", ["monotone", "entangled", "dpp_by_k", "tree", "mixture"])
def test_a_table_is_its_rows(family):
    circuit, table, _ = next(iter(cases(family, seed=12)))
    model = pgcc.compile(circuit)
    rows = np.random.default_rng(0).integers(-1, 2, (20, len(circuit.variables))).astype(np.int8)
    rows = rows[[table.prob({v: int(c) for v, c in zip(table.variables, r, strict=True) if c >= 0}) > 0 for r in rows]]
    found = model.cardinality(rows, over=circuit.variables[:3], threads=2)
    np.testing.assert_allclose(found, [model.cardinality(row, over=circuit.variables[:3]) for row in rows], rtol=1e-12)


@settings(max_examples=some(40), deadline=None)
@given(st.data())
def test_laws(data):
    circuit = data.draw(circuits(max_variables=6, negative=False))
    model = pgcc.compile(circuit)
    over = data.draw(st.lists(st.sampled_from(circuit.variables), unique=True))
    seen = data.draw(evidence(circuit))
    try:
        pmf = model.cardinality(seen, over=over)
    except SemanticsError:
        assert model.prob(seen) == 0
        return
    assert pmf.sum() == pytest.approx(1, abs=1e-14)
    columns = [circuit.variables.index(name) for name in over]
    assert pmf @ np.arange(len(over) + 1) == pytest.approx(model.marginals(seen, names=False)[columns].sum(), rel=1e-9)
    if circuit.facts.decomposable:
        mirror, unseen = pgcc.compile(circuit.complement()), {name: 1 - value for name, value in seen.items()}
        np.testing.assert_allclose(mirror.cardinality(unseen, over=over), pmf[::-1], rtol=1e-9)


def rational(matrix):
    ratios = [Fraction(x) for x in np.asarray(matrix, dtype=object).ravel()]
    return flint.fmpq_mat(*np.shape(matrix), [flint.fmpq(x.numerator, x.denominator) for x in ratios])


def elementary(L):
    """e_k of the eigenvalues of a matrix of fractions: the coefficients of det(I + t·L)."""
    return [Fraction(int(c.p), int(c.q)) for c in (L * flint.fmpq(-1)).charpoly().coeffs()[::-1]]


@settings(max_examples=some(30), deadline=None)
@given(kernels("psd", max_items=6))
def test_a_dpp_counts_as_its_eigenvalues_do(L):
    e = elementary(rational(L))
    close(pgcc.compile(pgcc.dpp(L=np.array(L, dtype=object).tolist())).cardinality(), [x / sum(e) for x in e])


@pytest.mark.parametrize("seed", range(4))
def test_a_larger_dpp_given_evidence(seed):
    """Both ways, by eigenvalues and in balls, and given a set in and a set out."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((18, 4 if seed % 2 else 18)) * np.exp(rng.uniform(-2, 2, 18))[:, None]
    model = pgcc.compile(pgcc.dpp(factor=B) if seed % 2 else pgcc.dpp(L=B @ B.T))
    seen = {"x1": 1, "x5": 0, "x9": 1, "x12": 0}
    over = [f"x{i}" for i in range(1, 16)]
    codes = model._distribution().read(seen).chunk(slice(None))[0]
    mask = np.array([name in over for name in model.variables])
    certified = model._compiled.exact_counting.coefficients(codes, mask, 1e-12).floats()
    assert model._compiled.counting._by_enclosures(codes, mask, 1e-9) is not None
    found = model.cardinality(seen, over=over)
    assert (found[:2] == 0).all()  # two are observed in, and two out
    assert (found[-2:] == 0).all()
    close(found[2:-2], certified / certified.sum())
    assert np.count_nonzero(found) == (3 if seed % 2 else 12)


@pytest.mark.parametrize("seed", range(12))
def test_eigenvalues_of_every_size(seed):
    """From 1e-30 to 1e10, or next to 0 and 1, and fewer than there are items: each against fractions."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(9, 13))
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    if seed % 3 < 2:
        rank = n if seed % 3 else 4
        B = Q[:, :rank] * 10.0 ** rng.uniform(-15, 5, rank)
        L, circuit = rational(B) * rational(B.T), pgcc.dpp(factor=B)
    else:
        small = 10.0 ** rng.uniform(-14, 0, n)
        K = (Q * np.where(rng.random(n) < 0.5, small, 1 - small)) @ Q.T
        K = (K + K.T) / 2
        one = rational(np.eye(n))
        L, circuit = (one - rational(K)).solve(rational(K)), pgcc.dpp(K=K)
    e = elementary(L)
    if min(e) < 0:  # rounding made it no distribution
        with pytest.raises(PgccError):
            pgcc.compile(circuit).cardinality()
    else:
        close(pgcc.compile(circuit).cardinality(), [x / sum(e) for x in e])


@pytest.mark.parametrize("size", [1e300, 3e307, 8.9e307, 1e308])
@pytest.mark.parametrize("n", [1, 2])
def test_kernels_at_the_end_of_the_range(size, n):
    """The error of (I + L)⁻¹ underflowed, so that Pr(nothing) = 1e-308 was 8e-17."""
    expected = elementary(rational(size * np.eye(n)))
    whole = sum(expected)
    close(pgcc.compile(pgcc.dpp(L=size * np.eye(n))).cardinality(), [x / whole for x in expected])


def test_identical_items_make_clusters_of_eigenvalues():
    block = np.array([[2.0, 1.0], [1.0, 3.0]])
    pmf = pgcc.compile(pgcc.dpp(L=np.kron(np.eye(5), block))).cardinality()
    one = [Fraction(1), Fraction(5), Fraction(5)]
    expected = [Fraction(1)]
    for _ in range(5):
        expected = [
            sum(one[j] * expected[k - j] for j in range(3) if 0 <= k - j < len(expected))
            for k in range(len(expected) + 2)
        ]
    close(pmf, [x / sum(expected) for x in expected])


def test_trees_have_one_size():
    import networkx as nx

    graph = nx.grid_2d_graph(4, 4)
    graph = nx.convert_node_labels_to_integers(graph)
    model = pgcc.compile(pgcc.spanning_tree(graph))
    assert model.cardinality().tolist() == [0.0] * 15 + [1.0] + [0.0] * 9
    half = model.variables[:10]
    assert model.cardinality(over=half) @ np.arange(11) == pytest.approx(model.marginals()[:10].sum(), rel=1e-9)
    assert model.cardinality(over=half)[10] == 0.0  # they hold a cycle


@pytest.mark.parametrize(
    "probabilities",
    [[1e-200] * 5, [1e-200, 0.5, 1 - 2**-53, 0.25], [0.0, 1.0, 0.5], [1e-300] * 40, [Fraction(1, 10**400)] * 3],
)
def test_poisson_binomial_far_below_doubles(probabilities):
    exact = list(map(Fraction, probabilities))
    expected = poisson_binomial(exact)
    found = pgcc.compile(bernoullis(exact)).cardinality()
    for x, y in zip(found, expected, strict=True):
        small = y < Fraction(1, 10**305)
        assert x == pytest.approx(float(y), rel=1e-12) if not small else x <= 1e-304
    assert (found[[y == 0 for y in expected]] == 0).all()
    # given that there are two, the probabilities are in range again
    if len(probabilities) <= 5 and expected[2]:
        pair = pgcc.compile(bernoullis(exact)).cardinality(evidence={"z0": 1, "z1": 1} if exact[0] else {"z1": 1})
        rest = poisson_binomial(exact[2:]) if exact[0] else poisson_binomial([exact[0], *exact[2:]])
        assert pair[2 if exact[0] else 1] == pytest.approx(float(rest[0]), rel=1e-12)


def test_thousands_of_variables_to_a_relative_error():
    rng = np.random.default_rng(0)
    p = rng.integers(1, 2**20, 1500) / 2.0**20
    found = pgcc.compile(bernoullis(p.tolist())).cardinality()
    with flint.ctx.workprec(200):
        pmf = flint.arb_poly([1])
        for x in p.tolist():
            pmf *= flint.arb_poly([1 - flint.arb(x), flint.arb(x)])
        expected = np.array([float(c) for c in pmf.coeffs()])
    fine = expected > 1e-300
    assert fine.sum() > 1000
    np.testing.assert_allclose(found[fine], expected[fine], rtol=1e-10)


def test_signed_circuits_whose_coefficients_cancel():
    tiny = Fraction(1, 10**30)
    g = pgcc.parse("(a + 1)*(b + 1)*(c + 1)") - (1 - tiny) * pgcc.parse("a*b*c")
    total = 7 + tiny
    close(pgcc.compile(g).cardinality(), [1 / total, 3 / total, 3 / total, tiny / total])
    zero = pgcc.parse("(a + 1)*(b + 1) - a*b")
    assert pgcc.compile(zero).cardinality()[2] == 0.0


def test_what_is_refused():
    model = pgcc.compile(random_circuit(0, 4, negative=False))
    with pytest.raises(EvidenceError, match="nobody"):
        model.cardinality(over=["nobody"])
    with pytest.raises(EvidenceError, match="twice"):
        model.cardinality(over=["z1", "z1"])
    with pytest.raises(PrecisionError, match="atol"):
        model.cardinality(atol=0.0)
    with pytest.raises(PgccError, match="negative"):
        pgcc.compile(pgcc.parse("2*a*b - a + 1"), validate=False).cardinality()


def test_no_variables_to_count():
    model = pgcc.compile(random_circuit(0, 4, negative=False))
    assert model.cardinality(over=[]).tolist() == [1.0]
    assert model.cardinality([{"z1": 1}, {"z2": 0}], over=[]).tolist() == [[1.0], [1.0]]

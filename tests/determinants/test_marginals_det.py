"""Derivatives of determinants by their children: every form and every bound, against exact rationals."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from families import FAMILIES, cases, minor

import pgcc
from pgcc.compiler import MARGINALS, climb
from pgcc.determinants.forms import FloatDeterminant, lay_out
from pgcc.determinants.kernels.partials import partial_rows
from pgcc.determinants.kernels.plan import FREE, OUT, RANK, Children, Found
from pgcc.ir.node import Op
from pgcc.program.det_structure import DetStructure

RTOL = 1e-9
FORMS = {"free": FREE, "out": OUT, "rank": RANK}


def exact_derivative(structure, f, y, i):
    """det [[M0, U·diag(f)], [−Vᵀ, diag(y)]] with f_i = 1 and y_i = 0."""
    m0, u, v = (m.exact() for m in structure.matrices)
    r, k = structure.rank, structure.children
    f, y = [Fraction(x) for x in f], [Fraction(x) for x in y]
    f[i], y[i] = Fraction(1), Fraction(0)
    rows = [[*m0[a], *(u[a][c] * f[c] for c in range(k))] for a in range(r)]
    rows += [[*(-v[a][c] for a in range(r)), *(y[c] if b == c else Fraction(0) for b in range(k))] for c in range(k)]
    return minor(rows, range(r + k))


def values(rng, k, soft, most_in):
    """Children that are in, out, or worth something."""
    f, y = rng.uniform(0.2, 1.0, k) if soft else np.ones(k), np.ones(k)
    kinds = rng.choice(4, k, p=[0.15, 0.25, 0.3, 0.3])
    y[np.flatnonzero(kinds == 0)[:most_in]] = 0.0
    f[kinds == 1] = 0.0
    f[kinds == 2] = 1.0
    return f, y


def partials(structure, form, f, y):
    """(which are known, numbers, errors) by one form; None where it does not have it."""
    one = FloatDeterminant(structure, np.ones(structure.children))
    one.find_free_base()
    layout = lay_out([one], [one.total])
    has = layout.plan[0].has
    if not has[form]:
        return None
    has[:] = 0
    has[form] = 1
    k = structure.children
    found = mantissa, exponent, error = Found(np.empty((k, 1)), np.empty((k, 1), np.int64), np.empty((k, 1)))
    slots = np.arange(2 * k, dtype=np.int32)
    children = Children(slots[:k], slots[k:], np.concatenate([f, y]), 1, np.zeros(0, np.uint8), 0, 1)
    partial_rows(layout, 0, children, 1e-12, found)
    known = error[:, 0] < np.inf
    powers = [Fraction(2) ** int(e) for e in exponent[:, 0]]
    numbers = [Fraction(m) * power for m, power in zip(mantissa[:, 0], powers, strict=True)]
    return (
        known,
        numbers,
        [Fraction(x) * power for x, power in zip(np.where(known, error[:, 0], 0), powers, strict=True)],
    )


def structures(rng, n, near):
    """Determinants of all kinds; near : how far two items are from being the same."""
    B = rng.standard_normal((n, n)) / np.sqrt(n)
    B[1] = B[0] + near * B[1]
    L, skew = B @ B.T, rng.standard_normal((n, n)) / n
    graph = nx.gnm_random_graph(n, 2 * n, seed=int(rng.integers(1 << 30)))
    nx.add_path(graph, range(n))
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.exponential())
    yield pgcc.dpp(L=L)
    yield pgcc.dpp(L=L + skew - skew.T, symmetric=False)
    yield pgcc.dpp(K=np.linalg.solve(np.eye(n) + L, L))
    yield pgcc.dpp(factor=B[:, : n // 2 + 1])
    yield pgcc.spanning_tree(graph, weight="weight")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("near", [1.0, 1e-3, 1e-7])
def test_no_bound_lies(form, near):
    rng = np.random.default_rng(int(-np.log10(near)))
    asked = known = 0
    for n in (1, 2, 3, 6):
        for circuit in structures(rng, n + 1, near):
            node = next(x for x in circuit.order if x.op is Op.DET)
            structure = DetStructure.of(node)
            for soft in (False, True):
                f, y = values(rng, structure.children, soft, structure.rank)
                found = partials(structure, FORMS[form], f, y)
                if found is None:
                    continue
                for i in np.flatnonzero(f > 0.0).tolist():
                    exact = exact_derivative(structure, f, y, i)
                    if found[0][i]:
                        assert abs(found[1][i] - exact) <= found[2][i]
                        known += exact != 0 and found[2][i] <= RTOL * abs(exact)
                    asked += exact != 0
    assert asked > 40
    assert known >= (0.6 if near == 1.0 else 0.2) * asked


WITH_DETERMINANTS = [
    name for name in FAMILIES if "dpp_by" in name or name in ("nonsymmetric_dpp", "tree", "mixture", "det_pgc")
]


@pytest.mark.parametrize("family", WITH_DETERMINANTS)
def test_the_reverse_pass_answers_nearly_all(family):
    """What it is certain of is right, and that is most of what is not 0."""
    asked = certain = 0
    for circuit, table, evidence in cases(family, many=10, seed=5):
        if table.prob(evidence) == 0:
            continue
        codes = np.array([[evidence.get(v, -1) for v in table.variables]], np.int8)
        found, _ = climb(MARGINALS[True][:2], pgcc.compile(circuit)._compiled, codes, RTOL)
        for i, v in enumerate(table.variables):
            exact = table.expectation(evidence, lambda s, v=v: int(v in s))
            if found.certain[0, i]:
                assert found.numbers[0, i] == pytest.approx(float(exact), rel=RTOL, abs=0)
            if exact != 0 and codes[0, i] < 0:
                asked += 1
                certain += found.certain[0, i]
    assert certain > 0.9 * asked > 0


def test_half_of_many_items_observed():
    """Beside the conditional kernel in doubles; an error here is one of numpy's too."""
    n = 80
    rng = np.random.default_rng(0)
    B = rng.standard_normal((n, n)) / np.sqrt(n)
    K = np.linalg.solve(np.eye(n) + B @ B.T, B @ B.T)
    model, row = pgcc.compile(pgcc.dpp(L=B @ B.T)), np.full(n, -1, np.int8)
    row[::2] = rng.random(n // 2) < 0.2
    seen, rest = np.flatnonzero(row >= 0), np.flatnonzero(row < 0)
    block = K[np.ix_(seen, seen)] - np.diag(row[seen] == 0)
    expected = np.diag(K)[rest] - np.diag(K[np.ix_(rest, seen)] @ np.linalg.solve(block, K[np.ix_(seen, rest)]))
    np.testing.assert_allclose(model.marginals(row[None])[0, rest], expected, rtol=1e-8)


def test_composed_leaves_that_are_neither_in_nor_out():
    """Every child of the determinant is observed in part: all are left out of the elimination in turn."""
    rng = np.random.default_rng(3)
    B = rng.standard_normal((9, 9))
    leaves = [pgcc.parse(f"0.3*a{i}*b{i} + 0.2*a{i} + 0.1*b{i} + 0.4*c{i}") for i in range(9)]
    model = pgcc.compile(pgcc.det_pgc(B @ B.T / 9, leaves))
    evidence = {f"a{i}": 0 for i in range(9)}
    codes = np.array([[evidence.get(v, -1) for v in model.variables]], np.int8)
    found, _ = climb(MARGINALS[True][:2], model._compiled, codes, RTOL)
    assert found.certain.all()
    base = model.prob(evidence)
    for i, v in enumerate(model.variables):
        expected = evidence.get(v, model.prob(evidence | {v: 1}) / base)
        assert found.numbers[0, i] == pytest.approx(expected, rel=1e-12, abs=0)

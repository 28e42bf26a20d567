"""`pgcc.dpp` against brute force over all sets, and what it says about kernels that are none."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import pgcc
from pgcc.ir.interpret import determinant, probability

L_BETA = [[1, 2, 0], [2, 6, 0], [0, 0, 4]]
K_BETA = [["0.3", "0.2", 0], ["0.2", "0.8", 0], [0, 0, "0.8"]]
BETA = {"000": 2, "001": 8, "010": 12, "011": 48, "100": 2, "101": 8, "110": 4, "111": 16}  # in percent


# -- the oracle: all sets, in fractions ----------------------------------------------------------------------


def minor(L, members) -> Fraction:
    return determinant([[Fraction(L[i][j]) for j in members] for i in members], Fraction)


def weights_by_l(L) -> np.ndarray:
    """det L_S for all S, at the index of S as a row of 0 and 1."""
    n = len(L)
    weights = np.empty((2,) * n, dtype=object)
    for row in product((0, 1), repeat=n):
        weights[row] = minor(L, [i for i in range(n) if row[i]])
    return weights


def weights_by_factor(B) -> np.ndarray:
    exact = [[Fraction(x) for x in row] for row in B]
    return weights_by_l([[sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0)) for b in exact] for a in exact])


def weights_by_k(K) -> np.ndarray:
    """Pr(S) = Σ_{T ⊇ S} (−1)^|T − S| · det K_T"""
    weights = weights_by_l(K)
    for axis in range(weights.ndim):
        inside, anything = weights.take(1, axis), weights.take(0, axis)
        weights = np.stack([anything - inside, inside], axis)
    return weights


def queries(n: int) -> np.ndarray:
    """All 3^n rows of evidence: 1, 0 and −1 for unobserved."""
    return np.array(list(product((1, 0, -1), repeat=n)), dtype=np.int8)


def answers(weights: np.ndarray) -> list[float]:
    """The probability of each of `queries`."""
    for axis in range(weights.ndim):
        out, inside = weights.take(0, axis), weights.take(1, axis)
        weights = np.stack([inside, out, inside + out], axis)
    return [float(x / weights[(2,) * weights.ndim]) for x in weights.ravel()]


def check(circuit: pgcc.Circuit, weights: np.ndarray, rtol: float = 1e-12, atol: float = 0.0) -> None:
    got = pgcc.compile(circuit).prob(queries(weights.ndim))
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, answers(weights), rtol=rtol, atol=atol)


def random_factor(seed: int, n: int = 6, r: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, r))


def matrices(circuit: pgcc.Circuit):
    return circuit.root.matrices


# -- the paper -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"L": L_BETA}, {"K": K_BETA}, {"L": np.array(L_BETA)}], ids=["L", "K", "integers"])
def test_the_table_of_the_paper(given):
    circuit = pgcc.dpp(**given)
    model = pgcc.compile(circuit)
    for row, percent in BETA.items():
        evidence = dict(zip(("x1", "x2", "x3"), map(int, row), strict=True))
        assert model.prob(evidence, exact=True) * 100 == percent
        assert model.prob(evidence) == pytest.approx(percent / 100, rel=1e-14)
    total = probability(circuit, {})
    assert probability(circuit, {"x1": 1, "x2": 0, "x3": 1}) / total == Fraction(8, 100)


def test_the_paper_in_floats():
    check(pgcc.dpp(np.array(L_BETA, dtype=float)), weights_by_l(L_BETA))
    check(pgcc.dpp(K=np.array(K_BETA, dtype=float)), weights_by_k(np.array(K_BETA, dtype=float)))


# -- all 3^6 queries -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_positive_definite(seed):
    B = random_factor(seed)
    L = B @ B.T
    check(pgcc.dpp(L), weights_by_l(L))
    check(pgcc.dpp(factor=B), weights_by_factor(B))
    K = L @ np.linalg.inv(np.eye(6) + L)
    K = (K + K.T) / 2
    check(pgcc.dpp(K=K), weights_by_k(K))


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_rank_deficient(rank):
    B = random_factor(rank, r=rank)
    weights = weights_by_factor(B)
    check(pgcc.dpp(factor=B), weights)
    L = B @ B.T
    circuit = pgcc.dpp(L)
    assert matrices(circuit)[0].shape == (rank, rank)
    check(circuit, weights, rtol=1e-10)
    K = L @ np.linalg.inv(np.eye(6) + L)
    # Rounding errors of some BLAS leave a K that is a DPP as it stands, of full rank: these do not.
    circuit = pgcc.dpp(K=(K + K.T) / 2 - 1e-15 * np.eye(6))
    assert matrices(circuit)[0].shape == (rank, rank)
    check(circuit, weights, rtol=1e-9)


def test_impossible_sets_have_probability_zero():
    B = random_factor(11, n=7, r=3)
    model = pgcc.compile(pgcc.dpp(B @ B.T))
    rows = np.array([row for row in product((0, 1), repeat=7) if sum(row) > 3], dtype=np.int8)
    assert not model.prob(rows).any()


def test_a_factor_may_be_wide_or_have_zero_columns():
    B = random_factor(5, n=4, r=7)
    check(pgcc.dpp(factor=B), weights_by_factor(B))
    B[:, 2] = 0
    check(pgcc.dpp(factor=B), weights_by_factor(B))
    model = pgcc.compile(pgcc.dpp(factor=np.zeros((3, 0))))
    assert model.prob({"x1": 0, "x2": 0, "x3": 0}) == 1
    assert model.prob({"x1": 1}) == 0


@pytest.mark.parametrize("rank", [1, 3, 5, 6])
def test_projections(rank):
    Q = np.linalg.qr(random_factor(rank, r=rank))[0]
    circuit = pgcc.dpp(K=Q @ Q.T)
    M0, _, _ = matrices(circuit)
    assert M0.shape == (rank, rank)
    assert not M0.floats().any()
    check(circuit, weights_by_projection(Q), rtol=1e-10)


def weights_by_projection(Q) -> np.ndarray:
    """det of the rows of S, squared (Cauchy–Binet), for sets of the size of the rank."""
    n, rank = Q.shape
    weights = np.full((2,) * n, Fraction(0), dtype=object)
    for members in combinations(range(n), rank):
        index = tuple(int(i in members) for i in range(n))
        weights[index] = determinant([[Fraction(x) for x in Q[i]] for i in members], Fraction) ** 2
    return weights


def test_spectra_between():
    """Eigenvalues at 0, at 1 and between them."""
    Q = np.linalg.qr(random_factor(9))[0]
    eigenvalues = np.array([0.0, 0.0, 1.0, 1.0, 0.3, 0.7])
    K = (Q * eigenvalues) @ Q.T
    circuit = pgcc.dpp(K=(K + K.T) / 2)
    assert sorted(np.diag(matrices(circuit)[0].floats()).round(9)) == [0, 0, 0.3, 0.7]
    check(circuit, weights_by_k(K), rtol=1e-9, atol=1e-14)
    every = np.array([row for row in product((0, 1), repeat=6) if sum(row) > 4], dtype=np.int8)
    assert not pgcc.compile(circuit).prob(every).any()


def test_exact_kernels_are_kept():
    L = [[1, 1], [1, 1]]
    M0, U, V = matrices(pgcc.dpp(L))
    assert (M0.exact(), U.exact(), V.exact()) == ([[1, 0], [0, 1]], [[1, 0], [0, 1]], L)
    half = Fraction(1, 2)
    M0, U, V = matrices(pgcc.dpp(K=[[half, half], [half, half]]))
    assert M0.exact() == [[half, -half], [-half, half]]
    assert pgcc.compile(pgcc.dpp(L)).prob({"x1": 1, "x2": 1}, exact=True) == 0


def test_i_minus_k_is_exact():
    K = np.array([[0.1, 0.05], [0.05, 0.75]])
    M0, _, _ = matrices(pgcc.dpp(K=K))
    assert M0.exact() == [[1 - Fraction(0.1), -Fraction(0.05)], [-Fraction(0.05), Fraction(1, 4)]]
    M0, _, _ = matrices(pgcc.dpp(K=np.array([[0.5, 0.25], [0.25, 0.5]])))
    assert M0.is_float


def test_items_of_different_scales_are_not_noise():
    for scale in (1e-20, 1e20):
        L = np.array([[1.0, 0.5], [0.5, 1.0]]) * np.outer([1, scale], [1, scale])
        circuit = pgcc.dpp(L)
        assert matrices(circuit)[2].floats().tolist() == L.T.tolist()
        check(circuit, weights_by_l(L))
    K = np.array([[0.5, 1e-13], [1e-13, 1e-20]])
    check(pgcc.dpp(K=K), weights_by_k(K), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_scaled_kernels(scale):
    B = random_factor(3) * np.sqrt(scale)
    check(pgcc.dpp(B @ B.T), weights_by_l(B @ B.T), rtol=1e-9)
    low = B[:, :3]
    assert matrices(pgcc.dpp(low @ low.T))[0].shape == (3, 3)


def test_items_that_are_never_or_always_in():
    L = np.diag([1.0, 0.0, 3.0])
    M0, _, V = matrices(pgcc.dpp(L))
    assert M0.shape == (3, 3)
    assert V.floats().tolist() == L.tolist()
    K = np.diag([1.0, 0.0, 0.25])
    check(pgcc.dpp(K=K), weights_by_k(K))
    assert pgcc.compile(pgcc.dpp(K=np.zeros((2, 2)))).prob({"x1": 0, "x2": 0}) == 1
    assert pgcc.compile(pgcc.dpp(np.zeros((2, 2)))).prob({"x1": 0, "x2": 0}) == 1
    assert pgcc.compile(pgcc.dpp(K=np.eye(2))).prob({"x1": 1, "x2": 1}) == 1


@pytest.mark.parametrize("given", [{"L": [[2.0]]}, {"L": [[2]]}, {"factor": [[0.5]]}, {"K": [[0.3]]}], ids=str)
def test_one_item(given):
    ((what, ((x,),)),) = given.items()
    chance = {"L": Fraction(x) / (1 + Fraction(x)), "factor": Fraction(1, 5), "K": Fraction(x)}[what]
    check(pgcc.dpp(**given), np.array([1 - chance, chance], dtype=object))


@pytest.mark.parametrize("seed", range(3))
def test_nonsymmetric(seed):
    rng = np.random.default_rng(seed)
    B, C = rng.normal(size=(2, 6, 6))
    L = B @ B.T + C - C.T
    check(pgcc.dpp(L, symmetric=False), weights_by_l(L), rtol=1e-11)
    K = L @ np.linalg.inv(np.eye(6) + L)
    check(pgcc.dpp(K=K, symmetric=False), weights_by_k(K), rtol=1e-11)


def test_nonsymmetric_without_the_sufficient_condition():
    L = [[1, 5], [-5, 0]]  # L + Lᵀ ⪰ 0
    check(pgcc.dpp(L, symmetric=False), weights_by_l(L))
    L = [[1, 3], [Fraction(1, 4), 1]]  # not so, but the minors are 1, 1 and 1/4
    assert pgcc.compile(pgcc.dpp(L, symmetric=False)).prob({"x1": 1, "x2": 1}, exact=True) == Fraction(1, 13)
    K = [[0.5, 0.4], [-0.4, 0.5]]
    check(pgcc.dpp(K=K, symmetric=False), weights_by_k(K))


def test_large_nonsymmetric_kernels_are_accepted():
    n = 14
    L = np.eye(n) + np.triu(np.full((n, n), 9.0), 1)  # all minors are 1, and L + Lᵀ is indefinite
    assert np.linalg.eigvalsh(L + L.T)[0] < -1
    pgcc.dpp(L, symmetric=False)
    pgcc.dpp(K=0.5 * np.eye(n) + np.triu(np.full((n, n), 9.0), 1), symmetric=False)


# -- ways to give a matrix -----------------------------------------------------------------------------------


def test_frames_name_the_items():
    frame = pd.DataFrame(L_BETA, columns=list("abc"))
    assert pgcc.dpp(frame).variables == ("a", "b", "c")
    assert pgcc.dpp(frame.set_index(pd.Index(list("abc")))).variables == ("a", "b", "c")
    assert pgcc.dpp(factor=pd.DataFrame(np.ones((2, 1)), index=["p", "q"])).variables == ("p", "q")
    assert pgcc.dpp(frame, names=["p", "q", "r"]).variables == ("p", "q", "r")


def test_any_real_matrix():
    expected = pgcc.dpp(np.array(L_BETA, dtype=float))
    for dtype in (np.float32, np.float16, np.longdouble, ">f8", complex):
        assert pgcc.dpp(np.array(L_BETA).astype(dtype)) == expected
    assert pgcc.dpp([[1, 2.0, 0], [2.0, 6, 0], [0, 0, 4]]) == expected
    assert pgcc.dpp(np.asfortranarray(np.array(L_BETA, dtype=float))) == expected
    exact = pgcc.dpp(L_BETA)
    assert exact != expected
    for same in (np.array(L_BETA), np.array(L_BETA, dtype=object), [[str(x) for x in row] for row in L_BETA]):
        assert pgcc.dpp(same) == exact
    assert pgcc.dpp([["1/3"]]).facts.exact


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long doubles are doubles here")
def test_long_doubles_keep_their_digits():
    longer = np.longdouble(1) + np.longdouble(2) ** -60
    L = np.array([[longer, 0], [0, 1]], np.longdouble)
    exact = Fraction(2**60 + 1, 2**60)
    (x1,) = pgcc.variables("x1")
    for circuit in (pgcc.dpp(L), pgcc.determinant(np.eye(2), np.eye(2), L, ["x1", "x2"]), x1 * longer + 1):
        assert pgcc.compile(circuit).prob({"x1": 1}, exact=True) == exact / (1 + exact)
    with pytest.raises(pgcc.CircuitError, match="is nan"):
        pgcc.dpp(np.array([[np.nan]], np.longdouble))


def test_a_rounded_kernel_is_symmetrized():
    L = np.array([[2.0, 1.0], [1.0 + 1e-13, 2.0]])
    V = matrices(pgcc.dpp(L))[2].floats()
    assert V[0, 1] == V[1, 0] == pytest.approx(1 + 5e-14, abs=1e-16)


def test_nearest():
    L = np.array([[1.0, 2.0], [2.0, 1.0]])  # 3 and −1
    circuit = pgcc.dpp(L, nearest=True)
    check(circuit, weights_by_l([[1.5, 1.5], [1.5, 1.5]]), rtol=1e-12, atol=1e-15)
    K = np.diag([1.5, 0.5, -0.5])
    check(pgcc.dpp(K=K, nearest=True), weights_by_k(np.diag([1.0, 0.5, 0.0])))
    exact = pgcc.dpp([[1, 0], [0, -1]], nearest=True)
    check(exact, weights_by_l([[1, 0], [0, 0]]))
    assert pgcc.compile(pgcc.dpp([[-1.0]], nearest=True)).prob({"x1": 1}) == 0


def test_composition_with_other_circuits():
    d = pgcc.dpp(L_BETA)
    mixed = pgcc.compile(d / 100 + pgcc.parse("x1/2"))
    assert mixed.prob({"x1": 1, "x2": 0, "x3": 0}, exact=True) == Fraction(1, 100) + Fraction(1, 2)


# -- what is refused -----------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
ABC = ["ant", "bee", "cat"]
MALFORMED = {
    "nothing": ({}, "exactly one of L, K and factor, not by none"),
    "two kernels": ({"L": [[1]], "K": [[1]]}, "not by L and K"),
    "a vector": ({"L": np.ones(3)}, "L has to be a matrix: it has 1 dimension, not 2"),
    "a tensor": ({"K": np.ones((2, 2, 2))}, "K has to be a matrix: it has 3 dimensions, not 2"),
    "a number": ({"L": 3}, "L has to be a matrix, such as a list of rows, not 3"),
    "text": ({"L": "[[1]]"}, "L has to be a matrix"),
    "rows of text": ({"L": ["12", "21"]}, "L has to be a matrix"),
    "a list of numbers": ({"factor": [1.0, 2.0]}, "factor has to be a matrix"),
    "ragged": ({"L": [[1, 2], [2]]}, "row 1 of L has 1 entry, but row 0 has 2"),
    "not square": ({"L": np.ones((3, 2))}, "L has to be square: it has 3 rows and 2 columns; .* its factor"),
    "K not square": ({"K": np.ones((2, 3))}, "K has to be square: it has 2 rows and 3 columns$"),
    "empty": ({"L": np.zeros((0, 0))}, "L is empty: a DPP has at least one item"),
    "empty list": ({"L": []}, "L is empty"),
    "empty factor": ({"factor": np.zeros((0, 3))}, "factor is empty"),
    "nan": ({"L": [[1.0, NAN], [NAN, 1.0]], "names": ["a", "b"]}, r"L\['a', 'b'\]: nan"),
    "nan in an array": ({"L": np.diag([1, NAN]), "names": ["a", "b"]}, r"L\['b', 'b'\] is nan: .* finite"),
    "inf": ({"factor": np.array([[1.0, 2.0], [0.0, INF]])}, r"factor\['x2', 1\] is inf"),
    "out of range": ({"L": [[10**400]]}, r"L\['x1', 'x1'\] is inf"),
    "complex": ({"L": np.array([[1, 2j], [-2j, 1]])}, r"L\['x1', 'x2'\] is 2j: .* real"),
    "complex list": ({"L": [[1, 1j], [1j, 1]]}, r"L\['x1', 'x2'\]: 1j \(complex\) is not a real number"),
    "an entry of text": ({"L": [[1, "two"], [2, 1]]}, r"L\['x1', 'x2'\]: 'two' is not a finite number"),
    "no entry": ({"L": [[1, None], [None, 1]]}, r"L\['x1', 'x2'\]: None"),
    "dates": ({"L": np.zeros((1, 1), dtype="M8[s]")}, r"L\['x1', 'x1'\]"),
    "asymmetric": (
        {"L": [[1, 0, 0], [0, 1, 0.5], [0, 0.4, 1]], "names": ABC},
        r"not symmetric: L\['bee', 'cat'\] is 0\.5, but L\['cat', 'bee'\] is 0\.4, .* of 0\.1; symmetric=False",
    ),
    "exactly asymmetric": ({"K": [["1/2", "1/4"], ["1/3", "1/2"]]}, r"K\['x1', 'x2'\] is 0\.25, .* 0\.333333"),
    "indefinite": (
        {"L": [[1, 0, 0], [0, 1, 3], [0, 3, 1]], "names": ABC},
        "not positive semi-definite: it has the eigenvalue -2, to which 'bee' and 'cat' contribute most; nearest=True",
    ),
    "negative": ({"L": [[-1.0]], "names": ["ant"]}, "eigenvalue -1, to which 'ant' contributes most"),
    "K too large": (
        {"K": np.diag([0.5, 1.5]), "names": ["a", "b"]},
        "between 0 and 1: .* eigenvalue 1.5, to which 'b'",
    ),
    "K negative": (
        {"K": [[0.5, 0.6], [0.6, 0.5]]},
        "between 0 and 1: it has the eigenvalue -0.1, to which 'x1' and 'x2'",
    ),
    "minor": (
        {"L": [[1, 2], [2, 1]], "symmetric": False, "names": ["a", "b"]},
        r"no DPP: the minor of L for \{a, b\} is -3, and probabilities are not negative",
    ),
    "negative item": ({"L": [[1, 9], [-9, -2]], "symmetric": False}, r"the minor of L for \{x2\} is -2"),
    "large with a bad pair": (
        {"L": np.eye(20) + 2 * np.eye(20, k=1) + 2 * np.eye(20, k=-1), "symmetric": False},
        r"the minor of L for \{x1, x2\} is -3",
    ),
    "K nonsymmetric": (
        {"K": [[0.5, 0.6], [0.6, 0.5]], "symmetric": False, "names": ["a", "b"]},
        r"the set \{a, b\} would have probability -0\.11",
    ),
    "K nonsymmetric, nothing": ({"K": [[0.9, 0.9], [-0.9, 0.9]], "symmetric": False}, r"the set \{x1\} would have"),
    "large K with a bad item": (
        {"K": np.diag([0.5] * 13 + [1.5]), "symmetric": False},
        "x14=0' would have probability",
    ),
    "large K with a bad pair": (
        {"K": np.diag([0.5] * 14) + 0.6 * np.eye(14, k=13) - 0.6 * np.eye(14, k=-13), "symmetric": False},
        r"x1=1, x14=0' would have probability -0\.11",
    ),
    "too few names": ({"L": L_BETA, "names": ["a", "b"]}, "3 items, but 2 names"),
    "equal names": ({"L": L_BETA, "names": ["a", "b", "a"]}, "two items are called 'a'"),
    "names that are none": ({"L": L_BETA, "names": [1, 2, 3]}, "a non-empty printable string, not 1"),
    "an empty name": ({"L": L_BETA, "names": ["a", "", "c"]}, "a non-empty printable string, not ''"),
    "names as text": ({"L": L_BETA, "names": "abc"}, "one for each item, not 'abc'"),
    "names as a number": ({"L": L_BETA, "names": 3}, "one for each item, not 3"),
    "equal columns": ({"L": pd.DataFrame([[1, 0], [0, 1]], columns=["a", "a"])}, "two items are called 'a'"),
    "rows in another order": (
        {"L": pd.DataFrame([[1, 0], [0, 1]], columns=["a", "b"], index=["b", "a"])},
        "row 0 of the DataFrame L is called 'b', but column 0 is 'a'",
    ),
    "nearest factor": ({"factor": [[1.0]], "nearest": True}, "nearest=True: a factor is always valid"),
    "nearest nonsymmetric": ({"L": [[1.0]], "nearest": True, "symmetric": False}, "only known for symmetric ones"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_malformed(what):
    given, message = MALFORMED[what]
    with pytest.raises(pgcc.PgccError, match=message):
        pgcc.dpp(**given)


def test_there_are_enough_of_them():
    assert len(MALFORMED) >= 25


def test_a_huge_kernel_is_refused_before_it_is_made():
    huge = np.broadcast_to(np.float64(0), (10**5, 10**5))
    with pytest.raises(pgcc.CircuitError, match="the limit is"):
        pgcc.dpp(huge)

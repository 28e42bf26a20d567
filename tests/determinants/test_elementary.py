"""Elementary symmetric polynomials of eigenvalues by products of slices, against flint at thousands of bits."""

import math

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.determinants import elementary
from pgcc.determinants.elementary import elementary_symmetric
from pgcc.exact.ball_coefficients import elementary_symmetric as in_balls

BITS = 4000


def exactly(A: np.ndarray) -> list[arb]:
    """e_0, …, e_n by Newton's identities."""
    n = len(A)
    return in_balls(arb_mat(n, n, [arb(x) for x in A.ravel().tolist()]), n)


def symmetric(A: np.ndarray) -> np.ndarray:
    return np.tril(A) + np.tril(A, -1).T


FAMILIES = {
    "plain": lambda rng, n: rng.normal(size=(n, n)),
    "low rank": lambda rng, n: rng.normal(size=(n, max(1, n // 2))),
    "unequal": lambda rng, n: rng.normal(size=(n, n)) * 10.0 ** rng.integers(-9, 9, (n, 1)),
    "near duplicates": lambda rng, n: np.ones((n, n)) + 1e-8 * rng.normal(size=(n, n)),
    "orthogonal": lambda rng, n: np.linalg.qr(rng.normal(size=(n, n)))[0],  # eigenvalues that are all equal
    "huge": lambda rng, n: 1e150 * rng.normal(size=(n, n)),
    "tiny": lambda rng, n: 1e-150 * rng.normal(size=(n, n)),
    "wide": lambda rng, n: np.diag(10.0 ** rng.integers(-150, 150, n)),
}


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9))
def test_bounds_are_bounds(family, seed, n):
    B = FAMILIES[family](np.random.default_rng(seed), n)
    A = symmetric(B @ B.T)
    with ctx.workprec(BITS):
        truth = exactly(A)
        for k in range(1, n + 1):
            found = elementary_symmetric(A, k)
            if found is not None:
                mantissa, exponent, error = found
                distance = arb(mantissa) * arb(2) ** exponent - truth[k]
                assert abs(distance) <= error * abs(truth[k])
            if family in ("plain", "orthogonal", "huge", "tiny") and (n < 6 or k < n // 2):
                assert found is not None
                assert found[2] < 1e-11


@pytest.mark.parametrize(
    "A",
    [
        np.zeros((3, 3)),
        np.array([[np.inf, 0.0], [0.0, 1.0]]),
        np.array([[1.0, 1.0], [1.0, 1.0]]),  # singular
        np.array([[1.0, 2.0], [2.0, 1.0]]),  # indefinite: e_2 = −3
        np.diag([1.0, -1e-30]),
    ],
)
def test_what_is_not_known(A):
    assert elementary_symmetric(A, len(A)) is None


def test_eigenvectors_that_are_far_off(monkeypatch):
    """Whatever the eigenvectors are, the residual tells what is off."""
    rng = np.random.default_rng(3)
    B = rng.normal(size=(8, 8))
    A = symmetric(B @ B.T)
    values, vectors = np.linalg.eigh(A)
    with ctx.workprec(BITS):
        truth = exactly(A)
        for size in (1e-12, 1e-9, 1e-7, 1e-5, 1e-3):
            noise = size * rng.normal(size=(8, 8))
            monkeypatch.setattr(elementary, "eigh", lambda A, noise=noise: (values / 2.0**6, vectors + noise))
            for k in range(1, 9):
                found = elementary_symmetric(A, k)
                if found is not None:
                    mantissa, exponent, error = found
                    assert abs(arb(mantissa) * arb(2) ** exponent / truth[k] - 1) <= error
                    assert error > size**2


def test_the_total_of_a_large_k_dpp_needs_no_balls(monkeypatch):
    """Balls took ten seconds for 500 items, and a time limit did not count them."""
    B = np.random.default_rng(0).normal(size=(160, 160)) / math.sqrt(160)
    model = pgcc.compile(pgcc.dpp(L=symmetric(B @ B.T)))
    monkeypatch.setattr("pgcc.rings.exact_values.Exact.evaluate", None)
    found = model.mode(size=12, time_limit=0.5)
    assert sum(found.assignment.values()) == 12
    assert found.logprob <= found.bound < 0.0
    assert model.prob(size=12) == 1.0
    few = [0, 40, 80, 120]
    inside = np.zeros(160, np.int8)
    inside[few] = 1
    expected = np.linalg.slogdet(model.circuit.root.matrices[2].floats()[np.ix_(few, few)])[1]
    mantissa, exponent, error = elementary_symmetric(model.circuit.root.matrices[2].floats(), 4)
    assert error < 1e-12
    expected -= math.log(mantissa) + exponent * math.log(2.0)
    assert model.logprob(inside, size=4) == pytest.approx(expected, rel=1e-9)

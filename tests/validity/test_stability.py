"""Strongly Rayleigh polynomials stay so, however what was made of them is written: sizes, weights, products, swaps.

The oracle is the definition: g·∂ij g ≤ ∂i g·∂j g at real points, from the coefficients alone.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import ProofError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import ONE, const, product, var, weighted_sum
from pgcc.validity.proof.steps import follow
from pgcc.validity.stability import prove_stable

F = Fraction
COINS = pgcc.parse("(1 + 2*a)*(1 + 3*b)*(1 + 5*c)*(1 + 7*d)")
DPP = pgcc.dpp(L=[[2, 1, 0], [1, 2, 1], [0, 1, 3]], names=["x", "y", "z"])
TREE = pgcc.spanning_tree({(0, 1): 1, (1, 2): 3, (0, 2): 2})
PAIR = pgcc.parse("0.5*p*q + 0.5")


def rayleigh_violations(circuit: Circuit, points: int = 40) -> int:
    """At how many of some real points g·∂ij g > ∂i g·∂j g for some pair; g is multiaffine."""
    names, n, rng = circuit.variables, len(circuit.variables), np.random.default_rng(0)
    corners = np.empty((2,) * n, object)
    for corner in np.ndindex(corners.shape):
        corners[corner] = evaluate(circuit, {name: F(x) for name, x in zip(names, corner, strict=True)})
    found = 0
    for at in rng.integers(-40, 41, (points, n)).tolist():
        for pair in combinations(range(n), 2):
            g = corners
            for axis in reversed(range(n)):
                if axis not in pair:
                    off, on = np.moveaxis(g, axis, 0)
                    g = off + (on - off) * F(at[axis], 8)
            # g = g00 + di·zi + dj·zj + both·zi·zj, so that ∂i g·∂j g − g·∂ij g = di·dj − g00·both
            di, dj = g[1, 0] - g[0, 0], g[0, 1] - g[0, 0]
            found += di * dj < g[0, 0] * (g[1, 1] - g[1, 0] - g[0, 1] + g[0, 0])
    return found


def is_proved(circuit: Circuit) -> bool:
    report = pgcc.check(circuit, normalize=True, time=0.05)
    assert report.ok
    proved = report.negative_dependence.proved
    assert not proved or report.verify()["negative_dependence"]
    return proved


STAYS = {
    "one size": COINS.observe(size=2),
    "two sizes": COINS.observe(size=(2, 3)),
    "all": COINS.observe(size=4),
    "none": COINS.observe(size=(0, 1)),
    "subsets": pgcc.subsets("a b c d e", 2).tilt({"a": 5, "b": 7}),
    "floats": pgcc.parse("(0.1*a + 0.9)*(0.2*b + 0.8)*(0.3*c + 0.7)").observe(size=2).tilt({"a": 0.7}),
    "coins and a determinant": (COINS * DPP).observe(size=3),
    "coins and a determinant, two sizes": (COINS * DPP).observe(size=(3, 4)).tilt({"x": F(1, 3), "a": 9}),
    "two determinants": (DPP * pgcc.dpp(L=[[2, 1], [1, 2]], names=["v", "w"])).observe(size=3),
    "observed": (COINS * DPP).observe(size=3).observe({"x": 1, "a": 1, "b": 0}),
    "a factor": COINS.observe(size=2) * TREE * DPP.observe(size=1),
    "swapped determinant": DPP.complement(),
    "swapped form": pgcc.parse("0.2*a + 0.3*b + 0.5").complement(),
    "swapped size": (COINS * DPP).observe(size=3).complement(),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_strongly_rayleigh(name):
    assert rayleigh_violations(STAYS[name], 10) == 0
    assert is_proved(STAYS[name])


FAILS = {
    "three sizes": COINS.observe(size=(1, 3)),
    "two sizes that do not follow each other": COINS.observe(size=1) / 200 + COINS.observe(size=3),
    "an inner pair": (PAIR * COINS).observe(size=3),
    "some are swapped": COINS.observe(size=2).complement(["a"]),
    "the size of a part": pgcc.parse("(a + u)*(b + v)").observe(size=1, over=["a", "b"]),
    "a mixture of two weights": COINS.observe(size=2) + COINS.tilt({"a": 99, "b": 99}).observe(size=2) / 99,
}


@pytest.mark.parametrize("name", FAILS)
def test_what_does_not(name):
    assert rayleigh_violations(FAILS[name]) > 0
    assert not is_proved(FAILS[name])


WEIGHTS = st.lists(st.fractions(F(1, 9), 9, max_denominator=9), min_size=3, max_size=5)


@settings(max_examples=some(40), deadline=None)
@given(WEIGHTS, WEIGHTS, st.data())
def test_random_weights(ones, others, data):
    """Any coins of any sizes: proved if the sizes are at most two, and those that are proved have no violation."""
    coins = pgcc.product(
        [w * z + 1 for w, z in zip(ones, pgcc.variables([f"a{i}" for i in range(len(ones))]), strict=True)]
    )
    low = data.draw(st.integers(0, len(ones)))
    high = data.draw(st.integers(low, len(ones)))
    circuit = coins.observe(size=(low, high)).tilt({f"a{i}": w for i, w in enumerate(others[: len(ones)])})
    proved = prove_stable(circuit) is not None
    assert proved or high - low >= 2
    assert not proved or rayleigh_violations(circuit, 10) == 0


# -- the checker -----------------------------------------------------------------------------------------------------

X, Y = var("x"), var("y")
TWO = Circuit(product([weighted_sum([1, 2], [ONE, X]), weighted_sum([1, 3], [ONE, Y])]))  # 1 + 2x + 3y + 6xy
FORM, BOTH, SIX = weighted_sum([2, 3], [X, Y]), product([X, Y]), const(6)


def image(root, parts, swapped=False, h=TWO, steps=None):
    circuit = Circuit(root)
    steps = prove_stable(h).data["steps"] if steps is None else steps
    return follow(circuit, [(len(circuit.order) - 1, "image of a stable polynomial", None, (h, steps, parts, swapped))])


def test_right_images():
    last = image(FORM, [(1, 1)])
    assert last.stable == {len(last.circuit.order) - 1}
    image(weighted_sum([1, 1], [FORM, BOTH]), [(1, 1), (2, F(1, 6))])
    image(weighted_sum([6, 3, 2, 1], [ONE, X, Y, BOTH]), None, swapped=True)
    image(weighted_sum([3, 2], [X, Y]), [(1, 1)], swapped=True)


@pytest.mark.parametrize(
    ("root", "parts", "options"),
    [
        (FORM, [(2, 1)], {}),  # another part
        (FORM, [(1, 2)], {}),  # another factor
        (FORM, [(1, 1)], {"swapped": True}),
        (FORM, [], {}),
        (FORM, [(True, 1)], {}),
        (weighted_sum([-1], [FORM]), [(1, -1)], {}),
        (weighted_sum([1, 6], [ONE, BOTH]), [(0, 1), (2, 1)], {}),  # not consecutive
        (weighted_sum([1, 1, 6], [ONE, FORM, BOTH]), [(0, 1), (1, 1), (2, 1)], {}),  # three
        (FORM, [(1, 1)], {"steps": []}),  # h is not shown to be stable
        (BOTH, None, {"h": Circuit(BOTH), "steps": [(0, "image of a stable polynomial", None, ())]}),  # nested
        (product([X, X]), [(1, 1)], {"h": Circuit(product([X, X]))}),  # no bound on the degree
    ],
)
def test_wrong_images(root, parts, options):
    with pytest.raises(ProofError):
        image(root, parts, **options)

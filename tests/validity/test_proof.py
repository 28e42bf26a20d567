"""The checker of proofs: it follows what is right, and refuses whatever is not, for every rule that it knows."""

from __future__ import annotations

import ast
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from check_cases import check, expand
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import ProofError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, const, det, product, var, weighted_sum
from pgcc.validity import proof as checker
from pgcc.validity.proof import CLAIMS, Proof, verify
from pgcc.validity.proof.coefficient_tables import Interval, all_coefficients, as_fraction, as_object
from pgcc.validity.proof.determinants import DET_RULES
from pgcc.validity.proof.exact_arithmetic import coefficient, random_ring
from pgcc.validity.proof.exact_arithmetic import total as exact_total
from pgcc.validity.proof.steps import RULES, follow
from pgcc.validity.provenance import (
    DETERMINANTS,
    EXPANSION,
    EXTRACTION,
    LESS,
    prove_nonnegative,
)
from pgcc.validity.provenance import RULES as PROVER_RULES
from pgcc.validity.stability import IMAGE, STABLE, prove_stable

F = Fraction
X, Y, Z = var("x"), var("y"), var("z")
I2 = [[1, 0], [0, 1]]
KERNEL, GRAM, TREE, MARGINAL = (
    "positive semidefinite kernel", "Gram determinant", "matrix-tree theorem", "marginal kernel",
)  # fmt: skip


def refused(circuit: Circuit, *proofs: Proof, **options) -> bool:
    with pytest.raises(ProofError):
        verify(circuit, proofs, **options)
    return True


def by_steps(circuit: Circuit, steps, claim: str = "nonnegative") -> Proof:
    return Proof(claim, True, "steps", circuit, {"steps": steps})


def multiaffine(circuit: Circuit) -> Proof:
    return Proof("multiaffine", True, "structure", circuit)


def node_steps(root, rule, sign, witness=None, leaves=True):
    """The steps for everything below the root that needs no thought, and this one for the root."""
    circuit = Circuit(root)
    certificate = prove_nonnegative(circuit)
    last = len(circuit.order) - 1
    known = [step for step in certificate.steps if step[0] != last] if leaves else []
    return circuit, [*known, (last, rule, sign, witness)]


# -- steps: what is right is followed, what is wrong is refused ----------------------------------------------------

RIGHT = [
    (const(2), "number", 1, None),
    (const(0), "number", 0, None),
    (X, "variable", 1, None),
    (weighted_sum([2, F(1, 3), 0], [X, Y, weighted_sum([1, -1], [X, Y])]), "weighted sum", 1, None),
    (weighted_sum([-1], [weighted_sum([-1], [X])]), "weighted sum", 1, None),
    (product([X, weighted_sum([1, 1], [Y, ONE])]), "product", 1, None),
    (product([weighted_sum([1, -1], [X, Y]), const(0)]), "product", 0, None),
    (weighted_sum([1, F(-1, 2)], [weighted_sum([1, F(1, 2)], [X, ONE]), ONE]), "less a constant", 1, 0),
    (weighted_sum([1, F(-1, 2)], [weighted_sum([1, 1], [X, ONE]), ONE]), "less a constant", 1, 64),
    (det([[0]], [[1]], [[1]], [X]), TREE, 1, None),
    (det([[1, 0], [-1, 1]], [[1], [-1]], [[1], [-1]], [X]), TREE, 1, None),
    (det([[1, 1], [1, 1]], [[2], [4]], [[1], [2]], [X]), GRAM, 1, None),
    (det([[1, 2], [2, 5]], [[0], [0]], [[1], [2]], [X]), GRAM, 1, [[1], [-2, 1]]),
    (det(I2, I2, [[1, 5], [-5, 1]], [X, Y]), KERNEL, 1, None),
    (det([[0]], [[1, 1]], [[1, 1]], [X, Y]), KERNEL, 1, None),
    (det(I2, I2, [[1, 2], [2, 4]], [X, Y]), KERNEL, 1, [[1], [-2, 1]]),
    (det([[F(1, 2)]], [[1]], [[F(1, 2)]], [X]), MARGINAL, 1, [None, None]),
]  # fmt: skip

WRONG = [
    (weighted_sum([1, -1], [weighted_sum([1, F(1, 2)], [X, ONE]), ONE]), "less a constant", 1, 0),
    (weighted_sum([1, -1, 1], [weighted_sum([1, 2], [X, ONE]), ONE, weighted_sum([-1], [X])]), "less a constant", 1, 0),
    (weighted_sum([1, -1, -3], [weighted_sum([1, 2], [X, ONE]), ONE, X]), "less a constant", 1, 0),
    (weighted_sum([1, F(-1, 3)], [weighted_sum([-1, F(1, 3)], [X, ONE]), ONE]), "less a constant", 1, 64),
    (weighted_sum([1, -1], [weighted_sum([-1, 2], [X, ONE]), ONE]), "less a constant", 1, "0"),
    (weighted_sum([1, -1], [weighted_sum([-1, 2], [X, ONE]), ONE]), "less a constant", 1, 1 << 40),
    (const(-1), "number", 1, None),
    (const(2), "number", 0, None),
    (X, "variable", 0, None),
    (X, "number", 1, None),
    (weighted_sum([1, -1], [X, Y]), "weighted sum", 1, None),
    (weighted_sum([-1], [X]), "weighted sum", 1, None),
    (weighted_sum([1], [X]), "weighted sum", 0, None),
    (weighted_sum([1, 1], [weighted_sum([1, -1], [X, Y]), Y]), "weighted sum", 1, None),
    (product([weighted_sum([-1], [X]), Y]), "product", 1, None),
    (product([X, Y]), "product", 0, None),
    (product([weighted_sum([1, -1], [X, Y]), Z]), "product", 1, None),
    (weighted_sum([1, -1], [X, Y]), "product", 1, None),
    (det([[0]], [[1]], [[-1]], [X]), TREE, 1, None),
    (det([[0, 1], [1, 0]], [[], []], [[], []], []), TREE, 1, None),
    (det([[-1]], [[]], [[]], []), TREE, 1, None),
    (det([[0, 0], [-1, 1]], [[1], [0]], [[1], [-2]], [X]), TREE, 1, None),
    (det([[0]], [[1]], [[1]], [weighted_sum([-1], [X])]), TREE, 1, None),
    (det([[0]], [[1]], [[1]], [X]), TREE, -1, None),
    (det([[1]], [[1]], [[-1]], [X]), GRAM, 1, None),
    (det(I2, I2, [[0, 1], [1, 0]], [X, Y]), GRAM, 1, None),
    (det([[-1]], [[1]], [[1]], [X]), GRAM, 1, None),
    (det([[1, 2], [2, 1]], [[0], [0]], [[1], [2]], [X]), GRAM, 1, None),
    (det([[1, 2], [2, 1]], [[0], [0]], [[1], [2]], [X]), GRAM, 1, [[1], [-2, 1]]),
    (det([[1, 2], [2, 1]], [[0], [0]], [[1], [2]], [X]), GRAM, 1, [[1], [0, 0]]),
    (det([[1, 2], [2, 1]], [[0], [0]], [[1], [2]], [X]), GRAM, 1, [[1]]),
    (det([[0, 0], [-3, 0]], [[1, 0], [0, 1]], [[1, 0], [0, 1]], [X, weighted_sum([1, -1], [Y, Y])]), GRAM, 1, None),
    (det([[1, -3], [-1, 1]], [[0], [0]], [[1], [2]], [X]), GRAM, 1, None),
    (det([[1, 1], [100, 100]], [[1], [2]], [[1], [2]], [X]), GRAM, 1, None),  # dominant, but not symmetric: −98·x
    (det([[1, -3], [0, 1]], [[1, 1], [1, 1]], [[1, 1], [1, 1]], [X, Y]), GRAM, 1, [[1], [0, 1]]),
    (det([[1, 1], [0, 0]], [[2], [1]], [[2], [1]], [X]), GRAM, 1, None),  # −x, though M0 is dominant
    (det(I2, I2, [[1, 2], [2, 1]], [X, Y]), KERNEL, 1, None),
    (det(I2, I2, [[1, 2], [2, 1]], [X, Y]), KERNEL, 1, [[1], [-2, 1]]),
    (det([[1]], [[-1]], [[1]], [X]), KERNEL, 1, None),
    (det(I2, [[1, 0], [1, 1]], [[1, 0], [-1, 1]], [X, Y]), KERNEL, 1, None),
    (det([[-1]], [[1]], [[1]], [X]), KERNEL, 1, None),
    (det([[0, 1], [1, 0]], I2, I2, [X, Y]), KERNEL, 1, None),
    (det([[-1]], [[1]], [[2]], [X]), MARGINAL, 1, [None, None]),
    (det([[2]], [[1]], [[-1]], [X]), MARGINAL, 1, [None, None]),
    (det([[F(1, 2)]], [[1]], [[-1]], [X]), MARGINAL, 1, [None, None]),
    (det([[F(1, 2)]], [[-1]], [[F(1, 2)]], [X]), MARGINAL, 1, [None, None]),
    (det([[F(1, 2)]], [[1]], [[F(1, 2)]], [weighted_sum([-1], [X])]), MARGINAL, 1, [None, None]),
    (X, "by decree", 1, None),
]  # fmt: skip


@pytest.mark.parametrize(("root", "rule", "sign", "witness"), RIGHT)
def test_right_steps_are_followed(root, rule, sign, witness):
    circuit, steps = node_steps(root, rule, sign, witness)
    assert verify(circuit, [by_steps(circuit, steps)]) == {"nonnegative": True}


@pytest.mark.parametrize(("root", "rule", "sign", "witness"), WRONG)
def test_wrong_steps_are_refused(root, rule, sign, witness):
    circuit, steps = node_steps(root, rule, sign, witness)
    assert refused(circuit, by_steps(circuit, steps))
    assert prove_nonnegative(circuit).proved <= (min(expand(circuit).values(), default=0) >= 0)  # nor by the prover


def test_a_sign_that_was_not_shown():
    for root, rule in ((weighted_sum([1], [X]), "weighted sum"), (product([X]), "product"),
                       (det([[0]], [[1]], [[1]], [X]), TREE)):  # fmt: skip
        circuit, steps = node_steps(root, rule, 1, leaves=False)
        assert refused(circuit, by_steps(circuit, steps))


def test_the_root_has_to_be_shown():
    circuit = Circuit(weighted_sum([1, -1], [X, Y]))
    assert refused(circuit, by_steps(circuit, [(0, "variable", 1, None)]))
    assert refused(circuit, by_steps(circuit, []))
    negative = Circuit(const(-1))
    assert refused(negative, by_steps(negative, [(0, "number", -1, None)]))


def test_steps_about_another_polynomial():
    other = Circuit(X)
    assert refused(Circuit(weighted_sum([1, -1], [X, ONE])), by_steps(other, [(0, "variable", 1, None)]))
    same = Circuit(weighted_sum([2, -1], [X, X]))
    assert verify(same, [by_steps(other, [(0, "variable", 1, None)])])


def test_damage_is_an_error_of_its_own():
    circuit = Circuit(X)
    for steps in ([(7, "variable", 1, None)], [(-1, "variable", 1, None)], [("x", "variable", 1, None)], [()], None, [
        (0, "terms", None, []), (0, "multiplied out", 1, 0)
    ]):  # fmt: skip
        assert refused(circuit, by_steps(circuit, steps))
    assert refused(circuit, Proof("nonnegative", True, "steps", circuit))
    assert refused(circuit, Proof("nonnegative", True, "trust me", circuit))
    assert refused(circuit, Proof("beautiful", True, "steps", circuit))


@pytest.mark.parametrize("holds", [True, False])
def test_damaged_numbers_are_an_error_of_its_own(holds):
    circuit = Circuit(weighted_sum([0.5, 0.5], [X, ONE]))
    for number in (math.inf, math.nan, None, [], "1/0", "inf", {}):
        assert refused(circuit, Proof("normalized", holds, "total", circuit, {"exact": True, "total": number}))
    assert refused(circuit, Proof("normalized", True, ["total"], circuit, {"exact": True}))
    assert refused(circuit, Proof("nonnegative", True, "steps", None, {"steps": []}))


def test_signs_are_numbers():
    """mock.ANY equals every sign."""
    circuit = Circuit(const(-1))
    assert refused(circuit, by_steps(circuit, [(0, "number", ANY, None)]))
    rule = Proof("nonnegative", False, "negative coefficient", Circuit(X), {"row": {"x": ANY}, "value": ANY})
    assert refused(Circuit(X), multiaffine(Circuit(X)), rule)


def test_a_circuit_keeps_what_is_not_so():
    """An order that is not that of the root: steps about its one node proved x − y."""
    circuit = Circuit(weighted_sum([1, -1], [X, Y]))
    for variables in (["x", "y"], ["y", "x"]):
        forged = Circuit(circuit.root, variables)
        forged.__dict__.update(order=[X], links=[()])
        assert refused(circuit, by_steps(forged, [(0, "variable", 1, None)]))


def test_primes_are_longer_than_what_they_test():
    """A constant of 2^40 bits has degree 0, and may have very many prime factors."""
    tower = const(3)
    for _ in range(40):
        tower = product([tower, tower])
    prime, _ = random_ring(Circuit(weighted_sum([1, 1], [tower, X])), Circuit(X))
    assert prime > 1 << 128 + 40
    small, _ = random_ring(Circuit(const(F(3, 7**500))))
    assert small > 1 << 128 + 10  # a number of 1,400 bits


# -- multiplied out -------------------------------------------------------------------------------------------------


def test_multiplied_out():
    circuit = pgcc.parse("(x + 1)*(y + 1) - 1")
    steps = prove_nonnegative(circuit).steps
    assert {"terms", EXPANSION.name} <= {step[1] for step in steps}
    assert verify(circuit, [by_steps(circuit, steps)])
    for k, (i, rule, _, space) in enumerate(steps):
        if rule == "terms":  # every one of them is needed
            assert refused(circuit, by_steps(circuit, steps[:k] + steps[k + 1 :]))
            assert refused(circuit, by_steps(circuit, [*steps[:k], (i, rule, 1, space), *steps[k + 1 :]]))
        if rule == EXPANSION.name:
            assert refused(circuit, by_steps(circuit, [*steps[:k], (i, rule, 0, space), *steps[k + 1 :]]))
    for text in ("(x + 1)*(y + 1) - 2", "x*x - x"):
        signed = pgcc.parse(text)
        forged = [(i, "terms", None, 0) for i in range(len(signed.order))]
        for sign in (0, 1):
            assert refused(signed, by_steps(signed, [*forged, (len(forged) - 1, "multiplied out", sign, 0)]))


def test_parts_are_shown_before():
    part = weighted_sum([1, -1], [X, Y])
    circuit = Circuit(weighted_sum([1], [part]))
    at = circuit.order.index(part)
    forged = [(at, "part", None, 0), (at + 1, "terms", None, 0), (at + 1, "multiplied out", 1, 0)]
    assert refused(circuit, by_steps(circuit, forged))
    determinant = Circuit(det([[1]], [[1]], [[-1]], [X]))
    forged = [(i, "terms", None, 0) for i in range(len(determinant.order))]
    assert refused(determinant, by_steps(determinant, [*forged, (len(forged) - 1, "multiplied out", 1, 0)]))


def test_no_name_is_taken_for_a_part():
    """A variable called #19 was taken for node 19."""
    large = product([weighted_sum([1, 1], [var(f"x{i}"), ONE]) for i in range(9)])
    for k in range(24):
        for name in (f"#{k}", str(k)):
            circuit = Circuit(product([weighted_sum([1, -1], [large, var(name)]), ONE]))
            assert not prove_nonnegative(circuit).proved


def test_powers_and_complements():
    """(x − 1)² has a negative coefficient; x·x̄ is x."""
    for text in ("(x - 1)*(x - 1)", "(x*x - x)*x", "x*y - 2*y*x"):
        assert not prove_nonnegative(pgcc.parse(text)).proved
    square = Circuit(weighted_sum([1, -1], [product([X, X]), X]))
    forged = [(i, "terms", None, 0) for i in range(len(square.order))]
    assert refused(square, by_steps(square, [*forged, (len(forged) - 1, "multiplied out", 0, 0)]))
    both = Circuit(weighted_sum([1, -1], [product([X, var("x", complement=True)]), X]))
    certificate = prove_nonnegative(both)
    assert certificate.proved
    assert verify(both, [certificate.proof])


def test_the_prover_takes_constants_off():
    """A polynomial with too many terms to be multiplied out."""
    circuit = pgcc.parse(" * ".join(f"(x{i}/3 + 2/3)" for i in range(12))).exclude_empty()
    certificate = prove_nonnegative(circuit)
    assert certificate.rules[-1] is LESS
    assert verify(circuit, [certificate.proof])
    assert not prove_nonnegative(circuit - F(1, 10**30)).proved


# -- parts of determinants ---------------------------------------------------------------------------------------


def combination(weights, children):
    dets = [det([[1]], [[1]], [[1]], [child]) for child in children]
    return Circuit(weighted_sum(weights, dets))


def scaled(*powers):
    """Σ_m s^m·(variable m) at s = 1, 2"""
    return [weighted_sum([s**m for m in powers], [var(f"v{m}") for m in powers]) for s in (1, 2)]


def extraction(circuit, sign=1):
    steps = [step for step in prove_nonnegative(circuit).steps if step[0] < len(circuit.order) - 1]
    return by_steps(circuit, [*steps, (len(circuit.order) - 1, EXTRACTION.name, sign, [KERNEL, None])])


def test_parts_of_determinants():
    right = combination([-1, 1], scaled(1))  # [s^1], which is v1
    assert min(expand(right).values()) >= 0
    assert verify(right, [extraction(right)])
    zero = combination([1, -1], [X, weighted_sum([1], [X])])
    assert verify(zero, [extraction(zero, 0)])


@pytest.mark.parametrize(
    "circuit",
    [
        pgcc.parse("-1/2*det([[1]],[[1]],[[1]],[-4*x + x]) + 2*det([[1]],[[1]],[[1]],[-3*x + 2*x])"),
        combination([1, -1], scaled(1)),
        combination([3, -2], scaled(0, 1)),
        combination([-1, 1], [weighted_sum([-1], [X]), weighted_sum([-2], [X])]),
        combination([-1, 1], [weighted_sum([s], [weighted_sum([-1], [X])]) for s in (1, 2)]),
        combination([-1, 1], [weighted_sum([1, 1], [X, Y]), weighted_sum([2], [X])]),
        combination([-1, 1], [weighted_sum([1], [X]), weighted_sum([F(1, 2)], [X])]),
        combination([2, -1], [weighted_sum([1], [X]), weighted_sum([3], [X])]),
        combination([1, 1], [weighted_sum([1, -1], [X, Y])] * 2),
        combination([-1, 1], [weighted_sum([s], [product([weighted_sum([1, -1], [X, Y]), Z])]) for s in (1, 2)]),
        Circuit(weighted_sum([-1, 1], [det([[k]], [[1]], [[1]], [c]) for k, c in zip((3, 1), scaled(1), strict=True)])),
        Circuit(weighted_sum([-1, 1], [det([[-1]], [[1]], [[-1]], [c]) for c in scaled(1)])),
        Circuit(weighted_sum([1, -1], [det([[1]], [[1]], [[1]], [X], [c]) for c in scaled(1)])),
        Circuit(weighted_sum([-3, 1], [det([[1]], [[1]], [[1]], [c]) for c in scaled(2)])),
    ],
)
def test_wrong_parts_of_determinants(circuit):
    assert min(expand(circuit).values()) < 0
    assert not prove_nonnegative(circuit).proved
    for sign in (0, 1):
        assert refused(circuit, extraction(circuit, sign))


# -- stability ----------------------------------------------------------------------------------------------------

SYMMETRIC = det(I2, I2, [[2, 1], [1, 2]], [X, Y])
STABLE_RIGHT = [
    (const(2), "stable number", None),
    (X, "stable variable", None),
    (weighted_sum([1, 2], [X, ONE]), "linear form", None),
    (weighted_sum([3, 0], [SYMMETRIC, X]), "multiple", None),
    (product([SYMMETRIC, Z]), "stable product", None),
    (SYMMETRIC, "symmetric determinant", [KERNEL, None]),
    (det(I2, I2, I2, [X, Y], size=1), "symmetric determinant", [GRAM, None]),
    (det([[F(1, 2)]], [[1]], [[F(1, 2)]], [X]), "symmetric determinant", [MARGINAL, [None, None]]),
]
BOTH = weighted_sum([F(1, 2), F(1, 2)], [product([X, Y]), ONE])
STABLE_WRONG = [
    (const(-1), "stable number", None),
    (weighted_sum([1, -1], [X, Y]), "linear form", None),
    (BOTH, "linear form", None),
    (BOTH, "multiple", None),
    (weighted_sum([1], [BOTH]), "multiple", None),
    (weighted_sum([-1], [SYMMETRIC]), "multiple", None),
    (product([BOTH, Z]), "stable product", None),
    (det(I2, I2, [[1, 2], [-2, 1]], [X, Y]), "symmetric determinant", [KERNEL, None]),
    (det(I2, I2, [[1, 2], [2, 1]], [X, Y]), "symmetric determinant", [KERNEL, None]),
    (det([[1, 0], [-1, 1]], [[1, 0], [0, 1]], [[1, 0], [-1, 1]], [X, Y]), "symmetric determinant", [TREE, None]),
    (det(I2, I2, [[2, 1], [1, 2]], [BOTH, Z]), "symmetric determinant", [KERNEL, None]),
    (det(I2, I2, [[2, 1], [1, 2]], [X, Y], [Z, ONE]), "symmetric determinant", [KERNEL, None]),
    (det(I2, I2, [[2, 1], [1, 2]], [X, Y], [const(-1), ONE]), "symmetric determinant", [KERNEL, None]),
    (det(I2, I2, [[2, 1], [1, 2]], [X, Y], size=1, counted=[1, 0]), "symmetric determinant", [KERNEL, None]),
]


def stability(root, rule, witness):
    """Steps for all leaves and symmetric kernels below the root, and one for the root."""
    circuit, steps = Circuit(root), []
    for i, node in enumerate(circuit.order[:-1]):
        names = {const(0).op: "stable number", X.op: "stable variable"}
        if not node.children and node is not const(-1):
            steps.append((i, names[node.op], None, None))
        elif node is SYMMETRIC:
            steps.append((i, "symmetric determinant", None, [KERNEL, None]))
    return circuit, by_steps(circuit, [*steps, (len(circuit.order) - 1, rule, None, witness)], "negative_dependence")


@pytest.mark.parametrize(("root", "rule", "witness"), STABLE_RIGHT)
def test_right_stability(root, rule, witness):
    circuit, proof = stability(root, rule, witness)
    premises = [multiaffine(circuit), prove_nonnegative(circuit).proof]
    assert verify(circuit, [*premises, proof])["negative_dependence"]
    assert refused(circuit, proof)
    assert refused(circuit, premises[0], proof)
    assert refused(circuit, premises[1], proof)
    i, name, _, data = proof.data["steps"][-1]
    assert refused(circuit, *premises, by_steps(circuit, [(i, name, 1, data)], "negative_dependence"))
    assert refused(circuit, *premises, by_steps(circuit, [], "negative_dependence"))


@pytest.mark.parametrize(("root", "rule", "witness"), STABLE_WRONG)
def test_wrong_stability(root, rule, witness):
    circuit, proof = stability(root, rule, witness)
    with pytest.raises(ProofError, match=f"{rule!r} does not show"):
        follow(proof.circuit, proof.data["steps"])
    assert prove_stable(circuit) is None


def test_stability_of_another_polynomial():
    circuit = Circuit(BOTH)
    _, proof = stability(SYMMETRIC, "symmetric determinant", [KERNEL, None])
    assert refused(circuit, multiaffine(circuit), prove_nonnegative(circuit).proof, proof)


def test_symmetric_only_as_doubles():
    """M0 whose doubles are symmetric: no proof of negative dependence, as the two may be positively correlated."""
    a, tiny = F(1, 2), F(1, 10**30)
    m0 = [[1, a], [a + tiny, 1]]
    circuit = Circuit(det(m0, I2, I2, [X, Y]))
    assert prove_stable(circuit) is None
    assert prove_stable(Circuit(det(m0, [[2, 0], [0, 2]], I2, [X, Y]))) is None
    assert check(circuit, normalize=True).nonnegative.proved


# -- claims -------------------------------------------------------------------------------------------------------


def test_multiaffine():
    square = pgcc.parse("x*x")
    assert refused(square, multiaffine(square))
    assert refused(square, multiaffine(pgcc.parse("x")))
    assert refused(square, Proof("multiaffine", True, "identity test", square))
    assert verify(square, [Proof("multiaffine", False, "square", square, {"variable": "x"})]) == {"multiaffine": False}
    hidden = pgcc.parse("(x + 1)*(x + 1) - x*x")
    assert verify(hidden, [Proof("multiaffine", True, "identity test", hidden)])
    assert verify(hidden, [multiaffine(pgcc.parse("2*x + 1"))])
    assert refused(hidden, Proof("multiaffine", False, "square", hidden, {"variable": "x"}))
    assert refused(hidden, Proof("multiaffine", False, "square", hidden, {"variable": "q"}))
    pair = Circuit(det(I2, I2, I2, [X, X]))
    assert refused(pair, multiaffine(pair))
    one_child = Circuit(det([[1]], [[1]], [[1]], [X], [X]))
    assert verify(one_child, [multiaffine(one_child)])
    tower = X
    for _ in range(200):
        tower = product([tower, tower])
    high = Circuit(weighted_sum([1, -1, 1], [tower, tower, ONE]))
    assert refused(high, Proof("multiaffine", True, "identity test", high))


def total(circuit, holds=True, **data):
    return Proof("normalized", holds, "total", circuit, data)


def test_totals():
    half, one = pgcc.parse("x/2"), pgcc.parse("x/2 + 1/2")
    assert verify(one, [total(one, exact=True, total="1")])
    assert refused(one, total(one, exact=True, total="2"))
    assert refused(half, total(half, exact=True, total="1/2"))
    assert refused(half, total(half, exact=False))
    assert verify(half, [total(half, False, exact=True, total="1/2")]) == {"normalized": False}
    assert refused(half, total(half, False, exact=True, total="1/3"))
    assert verify(half, [total(half, False, exact=False)]) == {"normalized": False}
    assert refused(one, total(one, False, exact=True, total="1"))
    assert verify(half, [total(half, exact=False)], normalize=True)
    assert refused(half, total(half, False, exact=False), normalize=True)
    minus = pgcc.parse("x/2 - 1")
    assert refused(minus, total(minus, exact=True, total="-1/2"), normalize=True)
    assert verify(minus, [total(minus, False, exact=True, total="-1/2")], normalize=True)
    nearly = Circuit(weighted_sum([0.5, 0.5 + 1e-10], [X, ONE]))
    assert verify(nearly, [total(nearly, exact=False)])
    off = Circuit(weighted_sum([0.5, 0.5 + 2e-9], [X, ONE]))
    assert refused(off, total(off, exact=False))
    exactly_off = pgcc.parse("x/2 + 1/2 + 1/10**30")
    assert refused(exactly_off, total(exactly_off, exact=False))


def test_balls_around_zero():
    """A ball that holds 0 is not 0, and not other than 0 either: such a child is not left away."""
    third = F(1, 3)
    around = weighted_sum([third, -third], [X, X])
    for size, expected in ((None, 5), (0, 5), (1, 0)):
        circuit = Circuit(det([[1]], [[1]], [[1]], [around], [const(5)], size))
        ball = exact_total(circuit, 256)
        assert ball.contains(expected)
        assert ball.rad() < 1e-9
        assert exact_total(circuit, 0) == expected


def test_positive_coefficients():
    circuit = Circuit(SYMMETRIC)
    row = Proof("normalized", True, "positive coefficient", circuit, {"row": {"x": 1, "y": 1}})
    premises = [multiaffine(circuit), prove_nonnegative(circuit).proof]
    assert verify(circuit, [*premises, row], normalize=True)["normalized"]
    assert refused(circuit, *premises, row)
    assert refused(circuit, premises[0], row, normalize=True)
    assert refused(circuit, premises[1], row, normalize=True)
    minus = pgcc.parse("x - 2")
    assert refused(minus, multiaffine(minus), row._replace(data={"row": {"x": 1}}), normalize=True)
    sized = Circuit(det(I2, I2, I2, [X, Y], size=1))
    premises = [multiaffine(sized), prove_nonnegative(sized).proof]
    assert refused(sized, *premises, row, normalize=True)
    assert verify(sized, [*premises, row._replace(data={"row": {"x": 1, "y": 0}})], normalize=True)


def everything(circuit, tolerated=None):
    return Proof("nonnegative", True, "all coefficients", circuit, {"tolerated": tolerated})


def many(n, least):
    """A multiaffine polynomial of n variables whose last coefficient is `least`, by cancellation of a whole one."""
    names = [var(f"v{i}") for i in range(n)]
    whole = product([weighted_sum([F(1, 2), F(1, 2)], [v, ONE]) for v in names])
    return Circuit(weighted_sum([1, F(least) - F(1, 2**n)], [whole, product(names)]))


@pytest.mark.parametrize("n", [3, 14])
def test_all_coefficients(n):
    for least, fine in ((F(1, 10**9), True), (0, True), (F(-1, 10**40), False)):
        circuit = many(n, least)
        if fine:
            assert verify(circuit, [multiaffine(circuit), everything(circuit)])
            assert refused(circuit, everything(circuit))
        else:
            assert refused(circuit, multiaffine(circuit), everything(circuit))


@pytest.mark.parametrize("n", [3, 14])
def test_all_coefficients_of_what_shares_variables(n):
    for least, fine in ((F(1, 10**9), True), (0, True), (F(-1, 10**40), False)):
        circuit = many(n, least)
        v = Circuit(var("v0"))
        shared = circuit * (v + 1) - circuit * v
        proofs = [Proof("multiaffine", True, "identity test", shared), everything(shared)]
        assert verify(shared, proofs) if fine else refused(shared, *proofs)


@pytest.mark.parametrize("n", [2, 14])
def test_all_coefficients_of_floats(n):
    """A tolerance is one of floats, is relative to the total, and is that of the question."""
    names = [var(f"v{i}") for i in range(n)]
    whole = product([weighted_sum([0.5, 0.5], [v, ONE]) for v in names])
    for below, fine in ((-(2.0**-n) - 1e-13, True), (-(2.0**-n) - 1e-9, False)):
        circuit = Circuit(weighted_sum([1.0, below], [whole, product(names)]))
        for exact in (True, False):
            proofs = [multiaffine(circuit), everything(circuit, exact)]
            assert verify(circuit, proofs) if fine else refused(circuit, *proofs)
            assert refused(circuit, *proofs, tolerance=0)
        assert refused(circuit, multiaffine(circuit), everything(circuit))
    exact = Circuit(weighted_sum([1, F(-1, 10**13)], [ONE, X]))  # nothing is tolerated of it
    for told in (True, False, None):
        assert refused(exact, multiaffine(exact), everything(exact, told))


def test_slack_that_is_no_double():
    """A slack of 0.7·2^−1074, the double nearest to which is larger: a coefficient of −2^−1074 is below it."""
    n, tiny = 14, F(1, 2**1074)
    names = [var(f"v{i}") for i in range(n)]
    others = [product(names[:i] + names[i + 1 :]) for i in range(n)]
    circuit = Circuit(weighted_sum([5e-324 * 9, -5e-324], [weighted_sum([1] * n, others), product(names)]))
    tolerance = float(F(7, 10) / (9 * n - 1))
    assert F(1, 2) * tiny < F(tolerance) * (9 * n - 1) * tiny < tiny
    assert refused(circuit, multiaffine(circuit), everything(circuit, True), tolerance=tolerance)


def test_tables_with_determinants():
    """Signed determinants, a size, complements that are circuits: against brute force."""
    rng = np.random.default_rng(0)
    for seed in range(30):
        k = 3
        m0, u, v = (rng.integers(-2, 3, (2, n)).tolist() for n in (2, k, k))
        size = [None, 1, 2][seed % 3]
        outside = [ONE, weighted_sum([1, 2], [X, ONE]), var("x", complement=True)]
        inside = [Y, X, weighted_sum([1, -1], [Z, ONE])] if seed % 2 else [Y, X, Z]
        outside[0] = var("y", complement=True)
        circuit = Circuit(
            det(m0, u, v, inside, [outside[0], outside[1], ONE], size, [1, 0, 1] if seed % 5 and size == 1 else None)
        )
        terms = expand(circuit)
        table = all_coefficients(circuit, as_object)
        interval = all_coefficients(circuit, Interval.lift)
        for row in np.ndindex(*table.shape):
            monomial = frozenset((name, 1) for name, x in zip(circuit.variables, row, strict=True) if x)
            expected = terms.get(monomial, F(0))
            assert as_fraction(table[row]) == expected
            assert interval.low[row] <= expected <= interval.high[row]
            assert as_fraction(
                coefficient(circuit, dict(zip(circuit.variables, row, strict=True)))
            ) == expected  # fmt: skip


def test_negative_coefficients():
    circuit = pgcc.parse("3/2*x - 1/2")
    data = {"row": {"x": 0}, "value": "-1/2", "tolerated": None}

    def proof(**changes):
        return Proof("nonnegative", False, "negative coefficient", circuit, {**data, **changes})

    assert verify(circuit, [multiaffine(circuit), proof()])["nonnegative"] is False
    assert refused(circuit, proof())
    for changes in ({"value": "-1/3"}, {"row": {"x": 1}, "value": "3/2"}, {"row": {}}, {"row": {"x": 2}}):
        assert refused(circuit, multiaffine(circuit), proof(**changes))
    floats = Circuit(weighted_sum([-1e-14, 1.0], [X, ONE]))
    tiny = Proof("nonnegative", False, "negative coefficient", floats,
                 {"row": {"x": 1}, "value": str(F(-1e-14)), "tolerated": False})  # fmt: skip
    assert refused(floats, multiaffine(floats), tiny)
    untold = tiny._replace(data={**tiny.data, "tolerated": None})  # a forged one that knows of no tolerance
    assert refused(floats, multiaffine(floats), untold)
    assert verify(floats, [multiaffine(floats), tiny], tolerance=1e-15)


def test_correlated_pairs():
    circuit = pgcc.parse("0.5*a*b + 0.5")
    data = {"pair": ("a", "b"), "point": {"a": "1", "b": "1"}, "excess": "1/4"}

    def proof(on=circuit, **changes):
        return Proof("negative_dependence", False, "correlated pair", on, {**data, **changes})

    assert verify(circuit, [multiaffine(circuit), proof()])["negative_dependence"] is False
    assert refused(circuit, proof())
    for changes in ({"pair": ("a", "a")}, {"pair": ("a", "q")}, {"excess": "1/5"}, {"point": {"a": "-1", "b": "-1"}}):
        assert refused(circuit, multiaffine(circuit), proof(**changes))
    independent = pgcc.parse("(0.5*a + 0.5)*(0.5*b + 0.5)")
    assert refused(independent, multiaffine(independent), proof(independent, excess="0"))


def test_every_rule_is_tested():
    """The tables of the checker, of the prover and of these tests have the same rules."""
    mine = {rule for _, rule, _, _ in RIGHT} | {rule for _, rule, _ in STABLE_RIGHT} | {IMAGE}
    assert mine | {"part", "terms", EXPANSION.name, EXTRACTION.name} == set(RULES)
    proving = {rule.name for rules in PROVER_RULES.values() for rule in rules}
    stable = {*chain(*STABLE.values()), IMAGE}  # in test_stability.py
    assert proving | stable | {"part", "terms", EXPANSION.name, EXTRACTION.name, LESS.name} == set(RULES)
    assert set(DETERMINANTS) == set(DET_RULES)
    assert {rule for rules in CLAIMS.values() for rule in rules} == {
        "structure", "identity test", "square", "total", "positive coefficient", "steps", "all coefficients",
        "negative coefficient", "correlated pair",
    }  # fmt: skip


# -- reports ------------------------------------------------------------------------------------------------------


def test_a_verdict_is_what_its_proof_shows():
    good, bad = check(pgcc.parse("x/2 + 1/2")), check(pgcc.parse("1.5*x - 0.5"))
    square, off = check(pgcc.parse("x*x/2 + 1/2")), check(pgcc.parse("x/2"))
    for forged in (
        replace(good, nonnegative=replace(good.nonnegative, proof=None)),
        replace(good, nonnegative=bad.nonnegative),
        replace(bad, nonnegative=good.nonnegative),
        replace(bad, nonnegative=replace(bad.nonnegative, witness={"x": 1})),
        replace(bad, nonnegative=replace(bad.nonnegative, value=F(-1, 3))),
        replace(square, multiaffine=replace(square.multiaffine, witness="y")),
        replace(off, normalized=replace(off.normalized, witness=F(1, 3))),
        replace(off, normalized=good.normalized),
        replace(bad, nonnegative=replace(bad.nonnegative, state="proved")),
        replace(bad, nonnegative=replace(bad.nonnegative, state="not proven")),
    ):
        with pytest.raises(ProofError):
            forged.verify()


def test_dependence_is_what_its_proof_shows():
    report = check(pgcc.parse("0.5*a*b + 0.5"))
    verdict = report.negative_dependence
    assert report.verify()["negative_dependence"] is False
    for changes in ({"value": F(1, 3)}, {"witness": {"pair": ("b", "a")}}, {"proof": None}, {"state": "proved"}):
        report.__dict__["negative_dependence"] = replace(verdict, **changes)
        with pytest.raises(ProofError):
            report.verify()


def test_proofs_are_plain_data():
    B = np.random.default_rng(0).normal(size=(5, 5))
    leaves = [pgcc.parse(f"(3*a{i}*b{i} + 4*a{i} + 3*b{i})/10") for i in range(2)]
    for circuit in (pgcc.dpp(L=B @ B.T), pgcc.dpp(K=[[F(1, 3)] * 3] * 3), pgcc.parse("(x + 1)*(y + 1)/3 - 1/3"),
                    pgcc.det_pgc([[2, 1], [1, 2]], leaves).observe(size=2), pgcc.parse("1.5*x - 0.5")):  # fmt: skip
        report = check(circuit, normalize=True)
        again = [proof._replace(data=json.loads(json.dumps(proof.data))) for proof in report.proofs]
        assert verify(circuit, again, normalize=True) == report.verify()
        copied = pickle.loads(pickle.dumps(report))
        assert copied.verify() == report.verify()


def test_the_checker_stands_alone():
    """It imports the circuit and numbers of pgcc, and nothing of the prover."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(checker.__file__).parent.glob("*.py")]
    assert len(trees) == 5
    modules = {node.module for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    used = {name for name in modules if name.startswith("pgcc")}
    assert {name for name in used if not name.startswith("pgcc.validity.proof.")} == {
        "pgcc.exact.precision", "pgcc.errors", "pgcc.ir.circuit", "pgcc.ir.matrix", "pgcc.ir.node", "pgcc.ir.numbers",
    }  # fmt: skip


# -- attack -------------------------------------------------------------------------------------------------------

SIZES = [F(0), F(1), F(-1), F(1, 3), F(-2), F(1, 10**400), F(-1, 10**400), F(10**400), F(3), F(1, 2), 0.1, -0.3, 1e-300]
NUMBERS = st.sampled_from(SIZES)
POSITIVE = st.sampled_from([x for x in SIZES if x >= 0])


@st.composite
def signed(draw, depth=3, free=("x", "y", "z")):
    """A node over some of these variables: duplicates of children, weights of 0, complements, determinants."""
    names = list(free)
    kind = draw(st.sampled_from(["leaf", "sum", "sum", "product", "det", "det"] if depth else ["leaf"]))
    if kind == "leaf" or not names:
        if not names or draw(st.booleans()):
            return const(draw(NUMBERS))
        return var(draw(st.sampled_from(names)), complement=draw(st.integers(0, 5)) == 0)
    if kind == "sum":
        some = draw(st.lists(signed(depth - 1, free), min_size=1, max_size=2))
        children = [draw(st.sampled_from(some)) for _ in range(draw(st.integers(1, 4)))]
        return weighted_sum([draw(NUMBERS) for _ in children], children)
    cut = draw(st.integers(0, len(names)))
    parts = [draw(signed(depth - 1, tuple(group))) for group in (names[:cut], names[cut:])]
    if kind == "product":
        return product(parts)
    return draw(matrices(parts))


@st.composite
def matrices(draw, parts):
    """A determinant near one of those that are proved: one entry may be off."""
    a, b, s = draw(POSITIVE), draw(POSITIVE), draw(NUMBERS)
    k = len(parts)
    v = [[draw(NUMBERS) for _ in range(k)] for _ in range(2)]
    kind = draw(st.integers(0, 4))
    off = draw(st.sampled_from([0, 0, F(1, 10**30), s]))
    if kind == 0:  # Gram
        m0, u = [[a, off], [0, b]], [[F(x) * F(a) for x in row] for row in v]
    elif kind == 1:  # kernel
        m0, u, v = [[1, 0], [0, b]], I2, [[a, s], [F(s) + F(off), b]]
    elif kind == 2:  # marginal kernel
        p = F(1, 3)
        m0, u, v = [[1 - p, F(off) - p], [-p, 1 - p]], I2, [[p, p], [p, p]]
    elif kind == 3:  # Laplacian
        m0, u, v = [[a, 0], [off, b]], [[1, 1], [-1, 0]], [[a, 1], [-F(a), -1]]
    else:
        m0, u = [[a, s], [s, b]], I2
    size = draw(st.sampled_from([None, None, 0, 1]))
    outside = [draw(st.sampled_from([ONE, ONE, const(draw(NUMBERS))])) for _ in parts]
    return det(m0, u, v, parts, outside, size)


@pytest.mark.slow
@settings(max_examples=some(250), deadline=None)
@given(signed())
def test_nothing_false_is_proved(root):
    """Against all coefficients: what is proved is so, what is refuted is not, and the checker follows both."""
    circuit = Circuit(root, ["x", "y", "z"])
    terms = expand(circuit)
    certificate = prove_nonnegative(circuit)
    if certificate.proved:
        assert all(x >= 0 for x in terms.values())
        assert verify(circuit, [certificate.proof]) == {"nonnegative": True}
    report = check(circuit, time=0.05)
    exact, sum_ = circuit.facts.exact, sum(terms.values(), F(0))
    slack = 0 if exact else F(1e-12) * abs(sum_)
    assert not report.nonnegative.proved or all(x >= -slack for x in terms.values())
    assert not report.nonnegative.refuted or any(x < -slack for x in terms.values())
    assert not report.multiaffine.proved or all(power == 1 for m in terms for _, power in m)
    assert report.normalized.proved == (abs(sum_ - 1) <= (0 if exact else F(1e-9)))
    stable = prove_stable(circuit) is not None
    if stable and certificate.proved and report.multiaffine.proved and sum_ > 0:
        for i, j in (("x", "y"), ("x", "z"), ("y", "z")):
            both, one, other = (sum((c for m, c in terms.items() if want <= {n for n, _ in m}), F(0))
                                for want in ({i, j}, {i}, {j}))  # fmt: skip
            assert both * sum_ <= one * other


@settings(max_examples=some(100), deadline=None)
@given(signed(), st.data())
def test_damaged_proofs_prove_nothing_false(root, data):
    """Steps that are changed at random: refused, or what they show is so."""
    circuit = Circuit(root, ["x", "y", "z"])
    steps = prove_nonnegative(circuit).steps
    for _ in range(4):
        forged = list(steps)
        k = data.draw(st.integers(0, len(circuit.order) - 1))
        rule = data.draw(st.sampled_from(sorted(RULES)))
        sign, witness = (
            data.draw(st.sampled_from([0, 1, None])),
            data.draw(st.sampled_from([None, 8, [None, None], [GRAM, None]])),
        )
        forged.append((k, rule, sign, witness))
        forged.append((len(circuit.order) - 1, data.draw(st.sampled_from(sorted(RULES))), 1, witness))
        try:
            verify(circuit, [by_steps(circuit, forged)])
        except ProofError:
            continue
        assert all(x >= 0 for x in expand(circuit).values())


def test_totals_beyond_doubles():
    """A circuit of floats with a total of 10^400 was an OverflowError."""
    report = check(Circuit(weighted_sum([0.1, 10**400, -1e300], [X, ONE, Y])))
    assert report.nonnegative.proved
    assert report.normalized.refuted


def test_coefficients_below_doubles():
    """A total of −10^−401 beside a float: its only coefficient was taken for a 0 that is tolerated."""
    circuit = Circuit(det([[1]], [[0]], [[0]], [const(0.1)], [const(F(-1, 10**400))]), ["x"])
    assert check(circuit).nonnegative.refuted
    assert check(Circuit(weighted_sum([-1, 0.1], [const(F(1, 10**400)), const(0)]), ["x"])).nonnegative.refuted


def test_signs_that_underflow():
    """10^800·det(…) + 2 = 2 − z, where t = 10^−400 is 0 as a double."""
    t = F(1, 10**400)
    circuit = Circuit(weighted_sum([10**800, 2], [det([[0]], [[-t]], [[t]], [Z]), ONE]))
    report = check(circuit)
    assert report.nonnegative.refuted
    assert report.witness == {"z": 1}
    assert check(Circuit(weighted_sum([10**800], [det([[0]], [[t]], [[t]], [Z])]))).ok


def test_what_cannot_be_verified_is_not_proven():
    """The checker refuses identities of 3^(2^110); verify() raised for what check() called proved."""
    x = const(3)
    for _ in range(110):
        x = product((x, x))
    a = var("a")
    up = weighted_sum((1, 1), (a, x))
    cancels = weighted_sum((1, -1, -2), (product((up, up)), product((a, a)), product((x, a))))
    for root in (cancels, weighted_sum((1, 1), (cancels, product((a, weighted_sum((0, 1), (a, ONE))))))):
        report = pgcc.check(pgcc.Circuit(root), time=0.5)
        assert report.multiaffine.state == "not proven"
        assert "multiaffine" not in report.verify()

"""Parts of determinants whose counted variables stand in circuits of their own: exact, and proved but never falsely."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from check_cases import check

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Op, weighted_sum
from pgcc.testing import oracle_probability
from pgcc.validity.provenance import prove_nonnegative


def grouped(groups, seed=0):
    """A determinantal PGC over groups of two variables."""
    B = np.random.default_rng(seed).integers(-2, 3, (groups, groups))
    leaves = [pgcc.parse(f"(3*a{i}*b{i} + 4*a{i} + 3*b{i})/10") for i in range(groups)]
    return pgcc.det_pgc((B @ B.T + np.eye(groups, dtype=int)).tolist(), leaves)


def coefficients(circuit):
    """All of them, exactly."""
    names = circuit.variables
    rows = itertools.product((0, 1), repeat=len(names))
    return [oracle_probability(circuit, dict(zip(names, row, strict=True))) for row in rows]


@pytest.mark.parametrize("over", [None, ["a0", "b1"], ["a0", "b0", "a1", "c"]])
def test_parts_are_those_of_brute_force(over):
    circuit = grouped(2) * pgcc.parse("c/2 + 1/2")
    counted = set(circuit.variables if over is None else over)
    whole = coefficients(circuit)
    sizes = [sum(v in counted for v, x in zip(circuit.variables, row, strict=True) if x)
             for row in itertools.product((0, 1), repeat=len(circuit.variables))]  # fmt: skip
    for k in range(len(counted) + 1):
        expected = [x if size == k else 0 for x, size in zip(whole, sizes, strict=True)]
        assert coefficients(circuit.observe(size=k, over=over)) == expected
        assert check(circuit.observe(size=k, over=over), normalize=True).nonnegative.proved or not any(expected)


def test_proved_at_any_size():
    circuit = grouped(30)
    for part in (circuit.observe(size=17), circuit.observe(size=(0, 3), over=["a0", "b0", "a7", "a8"])):
        assert prove_nonnegative(part).proved
    thinned = pgcc.dpp(L=np.eye(40) + 0.1).thin(0.5)
    assert prove_nonnegative(thinned.observe(size=3, over=thinned.variables[:20])).proved


def combination(circuit):
    """The node that is a combination of determinants, and the weights of it."""
    return next(n for n in circuit.order if n.op is Op.SUM and all(c.op is Op.DET for c in n.children))


@pytest.mark.slow
def test_nothing_is_proved_falsely():
    """Any combination of the same determinants: what is proved has no negative coefficient, and some are proved."""
    rng = np.random.default_rng(1)
    proved = refuted = 0
    circuit = grouped(2)
    dets = combination(circuit.observe(size=2)).children
    for _ in range(60):
        chosen = circuit.observe(size=int(rng.integers(1, 4))) if rng.random() < 0.5 else None
        weights = [Fraction(int(w), 6) for w in rng.integers(-6, 7, len(dets))]
        if chosen is not None:  # right weights, and perhaps one of them moved
            weights = list(combination(chosen).weights)
            if rng.random() < 0.5:
                weights[int(rng.integers(len(weights)))] += Fraction(int(rng.integers(-2, 3)), 3)
        other = Circuit(weighted_sum(weights, dets), circuit.variables)
        negative = min(coefficients(other)) < 0
        if prove_nonnegative(other).proved:
            assert not negative
            proved += 1
        refuted += negative
    assert proved > 5
    assert refuted > 5


def test_a_negative_component_is_no_proof():
    B = [[2, 1], [1, 2]]
    leaves = [pgcc.parse("2*a*b - a/2 - b/2"), pgcc.parse("c/2 + d/2")]
    circuit = pgcc.determinant([[1, 0], [0, 1]], [[1, 0], [0, 1]], B, leaves)
    part = circuit.observe(size=1)
    assert min(coefficients(part)) < 0
    assert not prove_nonnegative(part).proved


def test_many_variables_are_answered():
    """Beside the count of the whole."""
    circuit = grouped(9)
    model, whole = pgcc.compile(circuit.observe(size=6)), pgcc.compile(circuit)
    share = whole.cardinality(evidence={"a0": 1})[6] * whole.prob({"a0": 1}) / whole.cardinality()[6]
    assert model.prob({"a0": 1}) == pytest.approx(share, rel=1e-9)

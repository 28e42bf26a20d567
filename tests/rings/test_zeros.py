"""Zeros that are proved: exact fractions are the oracle, and rows with proved zeros climb no further."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.evaluate.all_marginals import with_outs
from pgcc.frontend.elimination import Table, eliminate
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.interpret import probability
from pgcc.rings.posteriors import Posteriors
from pgcc.testing import circuits, pcs
from tests.frontend.test_elimination import networks

TINY = "0." + "0" * 200


def all_rows(n: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1, -1], repeat=n)), np.int8).reshape(-1, n)


def truth(circuit: Circuit, row: np.ndarray) -> Fraction:
    return probability(circuit, {v: c for v, c in zip(circuit.variables, row.tolist(), strict=True) if c >= 0})


def compiled(circuit: Circuit) -> pgcc.compiler.Compiled:
    return pgcc.compile(circuit, normalize=False)._compiled


@settings(deadline=None)
@given(circuits(max_variables=4, decomposable=True, dets=True))
def test_what_is_proved_to_be_0_is_0_and_the_reverse_if_nothing_is_negative(circuit: Circuit) -> None:
    made, rows = compiled(circuit), all_rows(len(circuit.variables))
    zero = made.zeros.find(rows)[:, 0]
    for proved, row in zip(zero.tolist(), rows, strict=True):
        value = truth(circuit, row)
        assert value == 0 or not proved
        if not made.program.signed and not made.program.has_det:
            assert proved == (value == 0)


@settings(deadline=None)
@given(pcs(max_variables=4))
def test_posteriors_are_proved_to_be_0_if_and_only_if_they_are(pc: pgcc.pc.PC) -> None:
    circuit = pc.to_pgc()
    made, rows = compiled(circuit), all_rows(len(circuit.variables))
    zero = made.reverse_zeros.find(rows)
    for proved, row in zip(zero.tolist(), rows, strict=True):
        assert proved[-1] == (truth(circuit, row) == 0)
        for i in np.flatnonzero(row < 0).tolist():
            joint = row.copy()
            joint[i] = 1
            assert proved[i] == (truth(circuit, joint) == 0)


@settings(deadline=None)
@given(networks(most=4), st.integers(0, 2**32 - 1))
def test_one_row_at_a_time_has_the_same_zeros(network: tuple[Domains, list[Table]], seed: int) -> None:
    """A few posteriors are asked about one by one, many by the reverse pass."""
    circuit = eliminate(*network)
    made, columns = compiled(circuit), len(circuit.variables)
    if not columns:
        return
    rows = made.closed(np.random.default_rng(seed).choice([-1, -1, -1, 0, 1], (20, columns)).astype(np.int8))
    zero = made.reverse_zeros.find(rows)
    for row, expected in zip(rows, zero, strict=True):
        asked = with_outs(row[None], made.outs)
        found = made.reverse_zeros.settle_posteriors(row[None], Posteriors.of_observed(asked))
        assert found.impossible[0] == expected[-1]
        if not expected[-1]:
            free = asked[0] < 0
            np.testing.assert_array_equal(found.certain[0, free], expected[:-1][free])
            assert not found.numbers[0, free & expected[:-1]].any()


def chain(n: int, tiny: str) -> Circuit:
    """x0 … of which all are in or none, the former with a tiny probability; z needs y, which is as improbable."""
    all_in = "*".join(f"x{i}" for i in range(n))
    all_out = "*".join(f"~x{i}" for i in range(n))
    return pgcc.parse(f"({tiny}1*{all_in} + {all_out}) * ({tiny}1*y*(z + ~z) + ~y)")


def test_zeros_do_not_climb_and_what_underflows_does() -> None:
    circuit = chain(3, TINY)
    names = list(circuit.variables)
    model = pgcc.compile(circuit)
    contradiction = {"x0": 1, "x1": 0}
    assert model.prob(contradiction) == 0.0
    assert model.logprob(contradiction) == -np.inf
    rows = np.full((1000, len(names)), -1, np.int8)
    rows[:, names.index("x0")] = 0
    found = model.marginals(rows)
    assert found[:, names.index("x1")].max() == 0.0
    assert "scaled" not in model._compiled.seconds
    assert "scaled_reverse" not in model._compiled.seconds
    assert model.logprob({"x0": 1, "y": 1}) == pytest.approx(np.log(2.0) - 402 * np.log(10.0), rel=1e-9)
    assert "scaled" in model._compiled.seconds
    assert model.marginals({"x0": 1, "y": 1}) == {**dict.fromkeys(names, 1.0), "z": 0.5}
    assert "scaled_reverse" in model._compiled.seconds


def test_impossible_evidence_is_found_at_once() -> None:
    model = pgcc.compile(chain(3, TINY))
    with pytest.raises(pgcc.PgccError, match="probability 0"):
        model.marginals({"x0": 1, "x1": 0, "y": 1})
    assert "scaled_reverse" not in model._compiled.seconds


def test_a_weight_that_underflows_is_not_0() -> None:
    made = compiled(pgcc.parse(f"{TINY}{TINY[2:]}1*a + 0.5*b"))
    assert made.zeros.find(np.array([[1, 0], [1, 1], [0, 1]], np.int8))[:, 0].tolist() == [False, True, False]


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_every_row_has_its_own_bit(rows: int) -> None:
    circuit = chain(3, "0.")
    made = compiled(circuit)
    codes = np.random.default_rng(rows).choice([0, 1, -1], size=(rows, len(circuit.variables))).astype(np.int8)
    assert made.zeros.find(codes)[:, 0].tolist() == [truth(circuit, row) == 0 for row in codes]


def test_determinants_and_negative_numbers_prove_nothing_that_is_not_so() -> None:
    dpp = compiled(pgcc.dpp(L=[[2, 1], [1, 2]]))
    assert not dpp.zeros.find(all_rows(2)).any()
    assert dpp.reverse_zeros is None
    signed = compiled(pgcc.parse("(2*a + 1)*(b + 3) - (a + 1)*(2*b + 1)"))
    assert signed.reverse_zeros is None
    assert not signed.zeros.find(all_rows(2)).any()  # 0 by cancellation

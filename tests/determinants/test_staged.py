"""Blocks of rows of programs with determinants."""

from __future__ import annotations

import numpy as np
import pytest

import pgcc
from pgcc.compiler import Compiled
from pgcc.determinants.kernels import forms
from pgcc.determinants.kernels import staged as kernels
from pgcc.kernels.policy import choose_tier
from pgcc.rings.float64.kernels.packed_evidence import STEP


@pytest.mark.parametrize("sparse", [0, 2, 5])
def test_no_block_is_computed_twice(sparse: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one for which the base FREE is needed begins twice, but no determinant of it is computed before."""
    factor = np.random.default_rng(0).standard_normal((9, 9))
    compiled = Compiled(pgcc.dpp(L=factor @ factor.T))
    rows = np.random.default_rng(1).integers(0, 2, (6 * STEP, 9)).astype(np.int8)
    rows[sparse * STEP :, 1:] = -1
    begun, run_tail, computed, run_groups = [], kernels.run_tail, [], forms._run_groups

    def counted(*args):
        begun.append(args[5])
        return run_tail(*args)

    def noted(layout, d, children, *rest):
        computed.append(children.start // 9)
        return run_groups(layout, d, children, *rest)

    monkeypatch.setattr(kernels, "run_tail", counted)
    monkeypatch.setattr(forms, "_run_groups", noted)
    before = choose_tier("interpreted")
    try:
        staged = compiled.float64.staged
        computed.clear()  # by planning
        values = staged.run(1e-9, rows, STEP)[0][0]
    finally:
        choose_tier(before)
    assert begun == sorted([*range(0, len(rows), STEP), sparse * STEP])
    assert computed == list(range(0, len(rows), STEP))
    expected = compiled.values(rows, 1e-12, "ball").floats()
    np.testing.assert_allclose(values * 2.0**compiled.float64.staged.exponent, expected, rtol=1e-9)

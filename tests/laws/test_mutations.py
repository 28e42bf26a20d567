"""The mutants of `mutations` can be made, and a few of them, others for every version of the code, are noticed."""

from __future__ import annotations

import random

import mutations
import pytest

EVERYTHING = [*mutations.MUTANTS, *mutations.BOUNDS]
# Files of tests that take some seconds. What compiles kernels anew, or asks the adversary, takes a minute: that is for
# `python tests/mutations.py`.
FILES = {
    "certify/test_bounds.py",
    "validity/test_proof.py",
    "ir/test_ir.py",
    "rings/test_paper.py",
    "frontend/test_dpp_forms.py",
    "frontend/test_expression.py",
}
QUICK = [m for m in EVERYTHING if m.tests in FILES and (m.tests == "certify/test_bounds.py" or "kernels" not in m.file)]
SAMPLED = random.Random(mutations.digest_of_code()).sample(QUICK, 2)


def test_names_are_different():
    assert len({m.name for m in EVERYTHING}) == len(EVERYTHING)


@pytest.mark.parametrize("mutant", EVERYTHING, ids=lambda m: m.name)
def test_a_mutant_can_be_made(mutant):
    assert mutations.problem(mutant) is None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SAMPLED, ids=lambda m: m.name)
def test_a_mutant_is_noticed(mutant):
    assert mutations.killer(mutant), f"no test of {mutant.tests!r}, {mutant.adversary!r} fails on {mutant.name!r}"

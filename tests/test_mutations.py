"""The mutants of `mutations` can be made, and a few of them, others for every version of the code, are noticed."""

from __future__ import annotations

import hashlib
import random

import mutations
import pytest

EVERYTHING = [*mutations.MUTANTS, *mutations.BOUNDS]
# Mutants of kernels have to be compiled anew, which takes a minute: they are for `python tests/mutations.py`.
QUICK = [m for m in EVERYTHING if "kernels" not in m.file]
SAMPLE = 2


def seed() -> str:
    """Of the code as it is: another change, another sample."""
    found = hashlib.sha256()
    for path in sorted((mutations.HOME / "pgcc").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def test_names_are_different():
    assert len({m.name for m in EVERYTHING}) == len(EVERYTHING)


@pytest.mark.parametrize("mutant", EVERYTHING, ids=lambda m: m.name)
def test_a_mutant_can_be_made(mutant):
    assert mutations.problem(mutant) is None


@pytest.mark.parametrize("mutant", random.Random(seed()).sample(QUICK, SAMPLE), ids=lambda m: m.name)
def test_a_mutant_is_noticed(mutant):
    assert mutations.killer(mutant), f"no test of {mutant.tests!r}, {mutant.adversary!r} fails on {mutant.name!r}"

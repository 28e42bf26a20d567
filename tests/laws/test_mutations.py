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


TEXT = """
class A:
    def f(x):
        # a comment
        y = g(x,
              1 + x)  # another
        y = g(x, 2)
        return y
def f(x): return g(x, 1 + x)
"""


def test_code_is_found_in_the_tree():
    found = mutations.replaced(TEXT, "A.f", "g(x, 1+x)", "g(x, 1 - x)")
    assert "g(x, 1 - x)" in found
    assert "return g(x, 1 + x)" in found
    assert mutations.replaced("def f(x):\n    x()", "f", "x()\n", "") == "def f(x):\n    pass"
    assert mutations.replaced("def f(x):\n    x()\n    y = 1", "f", "x()\ny = 1", "z") == "def f(x):\n    z"


@pytest.mark.parametrize(
    ("where", "code", "becomes", "told"),
    [
        ("", "1 + x", "1 - x", "2 times"),
        ("A.g", "1 + x", "1 - x", "A.g is defined 0 times"),
        ("A.f", "x + 1", "1 - x", "0 times"),
        ("A.f", "1 + x", "(1 + x)", "nothing changes"),
    ],
)
def test_code_that_is_not_there_once(where, code, becomes, told):
    with pytest.raises(LookupError, match=told):
        mutations.replaced(TEXT, where, code, becomes)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SAMPLED, ids=lambda m: m.name)
def test_a_mutant_is_noticed(mutant):
    assert mutations.killer(mutant), f"no test of {mutant.tests!r}, {mutant.adversary!r} fails on {mutant.name!r}"

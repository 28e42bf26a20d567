"""Programs with determinants, cut in two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.passes.homogenize import homogenize
from pgcc.program.lower import lower
from pgcc.program.program import DET, LEAF, SUM
from pgcc.program.split import split_at_determinants
from pgcc.testing import random_circuit

CODES = (0, 1, -1)


def kernel(n: int, seed: int) -> list[list[float]]:
    b = np.random.default_rng(seed).normal(size=(n, n))
    return (b @ b.T).tolist()


def renamed(circuit: Circuit, names: str) -> Circuit:
    return circuit.compose(dict(zip(circuit.variables, pgcc.variables(" ".join(names)), strict=True)))


def subsets(names: str, seed: int) -> Circuit:
    """A sum over all subsets of some variables but none of them."""
    weights = iter(np.random.default_rng(seed).dirichlet(np.ones(2 ** len(names) - 1)).tolist())
    z = pgcc.variables(" ".join(names))
    terms = []
    for choice in itertools.product((0, 1), repeat=len(names)):
        if any(choice):
            term = next(weights) * next(v for v, there in zip(z, choice, strict=True) if there)
            for v in [v for v, there in zip(z, choice, strict=True) if there][1:]:
                term = term * v
            terms.append(term)
    return sum(terms[1:], terms[0])


def cases() -> dict[str, Circuit]:
    abc, de = pgcc.dpp(L=kernel(3, 0), names=list("abc")), pgcc.dpp(L=kernel(2, 1), names=list("de"))
    fgh = subsets("fgh", 2)
    leaves = [subsets("abc", 3), subsets("def", 4), subsets("gh", 5)]
    composed = pgcc.det_pgc(kernel(3, 6), leaves)
    # a determinant of a determinant, which is no leaf of the head
    nested = pgcc.det_pgc(kernel(2, 7), [de.normalize() * pgcc.parse("a"), subsets("fgh", 8)])
    early = subsets("abcde", 1)
    plain = renamed(random_circuit(9, 8, size=30, negative=False), "abcdefgh")
    return {
        "a determinant alone": abc,
        "a product with what needs none": abc * fgh,
        "a sum whose first terms need none": 0.25 * plain + 0.5 * (abc * (de * fgh)) + 0.25 * (early * fgh),
        "composed": composed,
        "a mixture of composed ones": 0.5 * composed + 0.5 * pgcc.det_pgc(kernel(3, 9), leaves),
        "nested": nested,
    }


@pytest.mark.parametrize("name", cases())
def test_both_parts_are_the_whole(name: str) -> None:
    circuit = cases()[name]
    model = pgcc.compile(circuit, normalize=False)
    n = len(circuit.variables)
    every = np.array(list(itertools.product(CODES, repeat=n)), np.int8)
    rows = every[np.random.default_rng(0).permutation(len(every))[:200]]
    found = model.prob(rows)
    staged = model._compiled.float64.staged
    assert staged is not None
    assert not (staged.program.op == LEAF).any()
    assert (staged.head.op < DET).sum() + (staged.head.op > DET).sum() == len(staged.head.op)
    for row, value in zip(rows[:60], found, strict=False):
        given = {v: int(code) for v, code in zip(circuit.variables, row, strict=True) if code >= 0}
        exact = model.prob(given, exact=True)
        assert abs(value - exact) <= 1e-9 * abs(exact)


def test_what_only_determinants_name_is_not_computed() -> None:
    program = lower(homogenize(pgcc.dpp(L=kernel(4, 0))))
    head, tail = split_at_determinants(program, program.op == LEAF)
    assert len(head.op) == len(head.kept) == 0
    assert tail.slots == 2  # the determinant, and how far to trust it


def test_a_sum_that_goes_on_with_a_determinant_is_late() -> None:
    # some terms of a SUM read only what is early, and others a determinant: all of it is late
    program = lower(homogenize(cases()["a sum whose first terms need none"]))
    _, tail = split_at_determinants(program, np.zeros(program.instructions, bool))
    late: set[int] = set()
    for i in np.flatnonzero(program.op != LEAF).tolist():
        read = program.args[program.start[i] : program.start[i + 1]].tolist()
        if program.op[i] >= DET or late.intersection(read):
            late.add(int(program.target[i]))
    is_late = np.isin(program.target, list(late)) & (program.op == SUM)
    partly = [i for i in np.flatnonzero(is_late).tolist() if not late.issuperset(program.terms(i)[0].tolist())]
    assert partly
    expected = zip(program.alone[is_late], np.diff(program.first_weight)[is_late], strict=True)
    sums = tail.op == SUM
    found = zip(tail.alone[sums], np.diff(tail.first_weight)[sums], strict=True)
    assert sorted(found) == sorted(expected)

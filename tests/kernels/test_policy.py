"""Calls of kernels: arguments of one type in all of them."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import pgcc
from pgcc.kernels.policy import Kernel, kernel


@kernel
def total(numbers):
    found = 0.0
    for i in range(len(numbers)):
        found += numbers[i]
    return found


def test_arguments_of_other_types_are_noticed():
    assert total.call_alike(np.ones(3)) == 3.0
    assert total.call_alike(np.ones(4)) == 4.0
    for other in (np.ones(6)[::2], np.ones(3, np.int64)):
        with pytest.raises(AssertionError, match=r"total> was called with arguments of other types"):
            total.call_alike(other)


def compiled_kernels() -> dict[str, int]:
    """How many types of arguments each kernel was compiled for so far."""
    found = [one for one in gc.get_objects() if type(one) is Kernel and one._dispatcher is not None]
    return {repr(one): len(one.dispatcher.overloads) for one in found}


@pytest.mark.parametrize(
    "circuit",
    [
        pgcc.parse("0.4*a*b + 0.3*a + 0.3*c"),
        pgcc.dpp(L=[[1, 2, 0], [2, 6, 0], [0, 0, 4]]),
        pgcc.parse("(a + b)**2*c/8 - (a**2 + b**2)*c/8 + 3*c/4"),
    ],
    ids=["circuit", "determinant", "products that share variables"],
)
def test_nothing_is_compiled_anew_for_arrays_that_cannot_be_written(circuit):
    model = pgcc.compile(circuit)
    rows = np.resize(np.array([[0, 0, 1], [-1, 0, 1], [-1, -1, -1]], np.int8), (20_000, 3))
    frozen, before = rows.copy(), []
    frozen.flags.writeable = False
    for given in (rows, frozen):
        answers = model.prob(given), model.logprob(given), model.marginals(given[:50]), model.cardinality(given[:50])
        before.append((compiled_kernels(), answers))
    assert before[0][0] == before[1][0]
    for writable, read_only in zip(before[0][1], before[1][1], strict=True):
        np.testing.assert_array_equal(writable, read_only)

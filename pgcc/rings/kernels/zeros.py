"""Whether a value has a term that is not 0, for 64 rows of evidence at a time: bit r of a word stands for row r.

A sum may be other than 0 if a term with a weight other than 0 may be, and a product if all factors may be. So a bit
that is 0 proves that the value is exactly 0, whatever was rounded to 0 on the way, and also where terms have different
signs. A bit that is 1 proves that it is not 0 if nothing is negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.kernels.walk import Operations, number_system, walk

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
NONE = np.uint64(0)


class Possible(NamedTuple):
    """The number system.

    Attributes
    ----------
    weights : uint64 array
        `ALL` for every weight that is not 0, and `NONE` for one that is.
    leaf_variable : int32 array
        The column of the variable of each leaf a·ȳ + b·z; −1 for a constant.
    leaves : uint64 array, m × 2
        The same for a and b of every leaf.
    out, into : uint64 arrays
        By variable, the rows where it is not observed in, and those where it is not observed out.
    words : uint64 array
        By slot, the rows where its value may be other than 0.
    """

    weights: np.ndarray
    leaf_variable: np.ndarray
    leaves: np.ndarray
    out: np.ndarray
    into: np.ndarray
    words: np.ndarray


def _leaf(system, i, at, number):
    v, a, b = system.leaf_variable[number], system.leaves[number, 0], system.leaves[number, 1]
    system.words[at] = a | b if v < 0 else (a & system.out[v]) | (b & system.into[v])


def _one(system, i, at):
    system.words[at] = ALL


def _times(system, at, x):
    system.words[at] &= system.words[x]


def _zero(system, i, at):
    system.words[at] = NONE


def _add(system, at, k, x):
    system.words[at] |= system.weights[k] & system.words[x]


def _add_product(system, at, k, x, y):
    words = system.words
    words[at] |= system.weights[k] & words[x] & words[y]


def _determinant(system, i, at, op, args):
    system.words[at] = ALL  # nothing is known


number_system(Possible, Operations(_leaf, _one, _times, _zero, _add, _add_product, determinant=_determinant))


@kernel
def run_possible(code, system, out, into, roots, found):
    """found[r, block] = the word of slot roots[r]; out, into : blocks × variables, in place of those of the system."""
    for block in range(found.shape[1]):
        here = Possible(system.weights, system.leaf_variable, system.leaves, out[block], into[block], system.words)
        walk(code, here, 0, len(code.op))
        for r in range(len(roots)):
            found[r, block] = system.words[roots[r]]

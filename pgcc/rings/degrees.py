"""Formal degrees, as a number system in Python: degrees of factors add up, and a sum has that of its largest term."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.kernels.walk import Operations, number_system, walk_in_python
from pgcc.program.program import DET, DETMAG, Program

HUGE = 1 << 49  # stands for all degrees from here on


class FormalDegrees:
    """The formal degree of every value of a program that shares no slots.

    Parameters
    ----------
    program : Program
    counted : sequence of bool
        The variables in which the degree is taken.
    affine : bool array, optional
        By slot, whether a value is known to be multiaffine, so that its degree is at most n.

    Attributes
    ----------
    degree : list of int
        By slot.
    highest : int
        The highest degree of a value that is known to be multiaffine, computed from the degrees of its arguments
        before it is capped at n; at least 1.
    """

    def __init__(self, program: Program, counted: Sequence[bool] | np.ndarray, affine: np.ndarray | None = None):
        self.leaves = [int(v >= 0 and bool(counted[v])) for v in program.leaf_variable.tolist()]
        self.affine, self.most, self.highest = affine, program.n_variables, 1
        self.degree = [0] * program.slots
        walk_in_python(program, self)


def _leaf(system: FormalDegrees, i: int, at: int, number: int) -> None:
    system.degree[at] = system.leaves[number]


def _constant(system: FormalDegrees, i: int, at: int) -> None:
    system.degree[at] = 0


def _times(system: FormalDegrees, at: int, x: int) -> None:
    system.degree[at] += system.degree[x]


def _add(system: FormalDegrees, at: int, k: int, x: int) -> None:
    system.degree[at] = max(system.degree[at], system.degree[x])


def _add_product(system: FormalDegrees, at: int, k: int, x: int, y: int) -> None:
    system.degree[at] = max(system.degree[at], system.degree[x] + system.degree[y])


def _complete(system: FormalDegrees, i: int, at: int) -> None:
    if system.affine is not None and system.affine[at]:
        system.highest = max(system.highest, system.degree[at])
        system.degree[at] = min(system.degree[at], system.most)
    system.degree[at] = min(system.degree[at], HUGE)


def _determinant(system: FormalDegrees, i: int, at: int, op: int, args: list[int]) -> None:
    """Every term of a determinant has one factor of each pair (f, y). A bound on its error (DETMAG) has no degree."""
    if op == DET:
        k = len(args) // 2
        pairs = zip(args[1 : 1 + k], args[1 + k :], strict=True)
        system.degree[at] = sum(max(system.degree[f], system.degree[y]) for f, y in pairs)
    elif op == DETMAG:
        system.degree[at] = 0
    else:
        raise ValueError("there is no rule for the degree of an instruction of this kind")
    _complete(system, i, at)


number_system(
    FormalDegrees,
    Operations(_leaf, _constant, _times, _constant, _add, _add_product, _complete, _complete, _determinant),
)

"""Is it multiaffine? A randomised identity test modulo a large prime, on exact coefficients.

A polynomial is affine in z_i iff its second difference in z_i vanishes. At random points modulo p = 2⁶¹ − 1 a nonzero
second difference of degree D vanishes with probability at most D/p (Schwartz–Zippel). So "it has a square" is certain,
and "it has none" is wrong with probability at most n·D/p per node, for coefficients that were not chosen as multiples
of p. D is the formal degree of a node over parts that have no squares, which have degree n at most. Where it is next to
p nothing is shown: z^p = z for all numbers modulo p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgcc.backend.kernels.modular import PRIME, run_modular
from pgcc.errors import SemanticsError
from pgcc.ir.numbers import Number, exact
from pgcc.lowering.program import DET, LEAF, SUM, TIMES, Program

_POINTS = 3  # a second difference needs three values of z_i
_SEED = 20210713
_MOST_CHANCE = 1e-6  # of being wrong: a test that is no better is none


@dataclass(frozen=True)
class Multiaffinity:
    """What the test found.

    Attributes
    ----------
    instructions : bool array
        For every instruction, whether its value has no square of any variable.
    squared : list of int
        The variables, by column, of which the root has a square.
    chance : float
        That a value has a square all the same: at most that.
    """

    instructions: np.ndarray
    squared: list[int]
    chance: float


def find_squares(program: Program, suspects: Sequence[int]) -> Multiaffinity:
    """Test every value of a program (as `lower` makes it) for squares of the suspect variables.

    Raises
    ------
    SemanticsError
        If none is found, and degrees are so high that this says nothing.
    """
    rng = np.random.default_rng(_SEED)
    constants = _residue_arrays(program)
    base = rng.integers(1, PRIME, size=program.n_variables, dtype=np.uint64)
    affine = np.ones(program.slots, bool)
    squared = []
    # Many variables at a time share the walk over the instructions, within a bounded workspace.
    step = max(1, min(64, 2**24 // max(1, program.slots * _POINTS)))
    for first in range(0, len(suspects), step):
        some = list(suspects[first : first + step])
        differences = _second_differences(program, constants, base, some, rng)
        affine &= (differences == 0).all(axis=1)
        squared += [v for v, nonzero in zip(some, differences[program.value] != 0, strict=True) if nonzero]
    chance = program.n_variables * _tested_degree(program, affine) / PRIME
    if not squared and chance > _MOST_CHANCE:
        raise SemanticsError(
            "whether a variable occurs to a power above 1 cannot be tested: there are powers of more than "
            f"{_MOST_CHANCE * PRIME / program.n_variables:.0e}; validate=False compiles it all the same"
        )
    return Multiaffinity(affine[program.target], squared, chance)


def _tested_degree(program: Program, affine: np.ndarray) -> int:
    """The highest formal degree of what was found to be affine, over parts that were: these have degree n at most."""
    degree, tested = [0] * program.slots, 1
    start, target, args = program.start.tolist(), program.target.tolist(), program.args.tolist()
    for i, op in enumerate(program.op.tolist()):
        at, mine = target[i], args[start[i] : start[i + 1]]
        if op == LEAF:
            found = int(program.leaf_variable[mine[0]] >= 0)
        elif op == TIMES:
            found = sum(degree[x] for x in mine)
        elif op == DET:
            k = len(mine) // 2
            found = sum(max(degree[f], degree[y]) for f, y in zip(mine[1 : 1 + k], mine[1 + k :], strict=True))
        else:
            found = max((degree[x] for x in mine), default=0) if op == SUM else 0
        if affine[at]:
            tested = max(tested, found)
            found = min(found, program.n_variables)
        degree[at] = min(found, PRIME)
    return tested


def _second_differences(
    program: Program, constants: tuple, base: np.ndarray, variables: list[int], rng: np.random.Generator
) -> np.ndarray:
    """slots × variables: zero where the value is affine in the variable."""
    points = np.repeat(base[:, None], _POINTS * len(variables), axis=1)
    steps = rng.integers(1, PRIME // 4, size=len(variables), dtype=np.uint64)
    for j, v in enumerate(variables):
        for k in range(_POINTS):
            points[v, _POINTS * j + k] = (int(base[v]) + k * int(steps[j])) % PRIME
    work = np.zeros((program.slots, points.shape[1]), np.uint64)
    weights, table, det_data = constants
    run_modular(
        program.op, program.target, program.start, program.args, program.first_weight, weights,
        program.leaf_variable, table, program.det_shape, program.det_start, det_data, points, work,
    )  # fmt: skip
    f0, f1, f2 = work[:, 0::3], work[:, 1::3], work[:, 2::3]
    # f0 − 2 f1 + f2 = 0 mod p; every term is below 2⁶¹, so the sum stays below 2⁶³
    return (f0 + f2 + 2 * (np.uint64(PRIME) - f1)) % np.uint64(PRIME)


def _residue_arrays(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pairs = [residue(x) for pair in program.leaf_numbers for x in pair]
    return (
        np.array([residue(x) for x in program.numbers], np.uint64),
        np.array(pairs, np.uint64).reshape(-1, 2),
        np.array([residue(x) for x in program.det_numbers], np.uint64),
    )


def residue(number: Number) -> int:
    """A rational modulo p.

    >>> residue(-1) == PRIME - 1, residue(0.5) * 2 % PRIME
    (True, 1)
    """
    if type(number) is int:
        return number % PRIME
    ratio = exact(number)
    if ratio.denominator % PRIME == 0:
        raise SemanticsError(f"the denominator of a weight is a multiple of {PRIME}: use validate=False")
    return ratio.numerator * pow(ratio.denominator, -1, PRIME) % PRIME

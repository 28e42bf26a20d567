"""Is it multiaffine? A randomised identity test modulo a large prime, on exact coefficients.

A polynomial is affine in z_i iff its second difference in z_i vanishes. At random points modulo p = 2⁶¹ − 1 a nonzero
second difference of degree D vanishes with probability at most D/p (Schwartz–Zippel). So "it has a square" is certain,
and "it has none" is wrong with probability at most n·D/p per node, for coefficients that were not chosen as multiples
of p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgcc.backend.kernels.modular import PRIME, run_modular
from pgcc.errors import SemanticsError
from pgcc.ir.numbers import Number, exact
from pgcc.lowering.program import Program

_POINTS = 3  # a second difference needs three values of z_i
_SEED = 20210713


@dataclass(frozen=True)
class Multiaffinity:
    """What the test found.

    Attributes
    ----------
    instructions : bool array
        For every instruction, whether its value has no square of any variable.
    squared : list of int
        The variables, by column, of which the root has a square.
    """

    instructions: np.ndarray
    squared: list[int]


def find_squares(program: Program, suspects: Sequence[int]) -> Multiaffinity:
    """Test every value of a program (as `lower` makes it) for squares of the suspect variables."""
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
    return Multiaffinity(affine[program.target], squared)


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

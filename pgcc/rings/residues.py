"""A program modulo random primes: what is 0 for some of them is 0, but for a small chance.

A fixed prime would not do: whoever knows it can write a coefficient that is a multiple of it. Of the primes between 2⁴⁹
and 2⁵⁰, of which there are more than 2⁴³, a number with b bits has at most b/49 as factors; so it is 0 modulo a random
one with probability b / (49·2⁴³) at most, and modulo several with the product of these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pgcc.kernels.simd import LANES
from pgcc.program.program import LOWERED, Program
from pgcc.rings.kernels.modular import MOST_BITS, divide_mod, run_modular
from pgcc.rings.kernels.walk import instructions_of

LEAST_PRIME = 1 << (MOST_BITS - 1)
ROUNDS = 3
# Between x and 2x are more than 3x / (5 ln x) primes (Rosser and Schoenfeld 1962): 9.9e12 here, 1.6e13 in fact. Those
# that divide a denominator are passed over; they are far fewer than the difference.
_LEAST_CHOICE = 1 << (MOST_BITS - 7)
# Numerators of coefficients have fewer bits, more than two million digits. That is assumed: a formal bound is no use,
# as it doubles with every square that cancels.
_COEFFICIENT_BITS = 1 << 23


def chance_of_zero(degree: int) -> float:
    """That a polynomial of this degree that is not 0 vanishes in all rounds, each at a random point: at most that.

    Either the prime divides all of its coefficients, or the point is a zero modulo the prime (Schwartz and Zippel).
    """
    divides = _COEFFICIENT_BITS / (MOST_BITS - 1) / _LEAST_CHOICE
    return min(1.0, divides + min(degree, LEAST_PRIME) / LEAST_PRIME) ** ROUNDS


class Residues:
    """A program, with its numbers modulo one prime."""

    def __init__(self, program: Program, prime: int, numbers: np.ndarray):
        self.program, self.prime = program.expect(*LOWERED), prime
        leaves, dets = len(program.numbers), len(program.numbers) + 2 * len(program.leaf_numbers)
        self.weights, self.det_data = numbers[:leaves], numbers[dets:]
        self.leaf_table = numbers[leaves:dets].reshape(-1, 2)

    def run(self, points: np.ndarray, work: np.ndarray) -> None:
        """Every value at points (variables × a multiple of eight points, residues as doubles), into slots × points."""
        program = self.program
        run_modular(
            instructions_of(program), self.weights, program.leaf_variable, self.leaf_table,
            (program.det_shape, program.det_start, self.det_data), float(self.prime), points, work,
        )  # fmt: skip


def rounds(program: Program, rng: np.random.Generator) -> Iterator[Residues]:
    """The program modulo `ROUNDS` random primes, none of which divides a denominator."""
    numbers = [*program.numbers, *(x for pair in program.leaf_numbers for x in pair), *program.det_numbers]
    ratios = [x.as_integer_ratio() for x in numbers]
    done = 0
    while done < ROUNDS:
        prime = random_prime(rng)
        found = residues(ratios, prime)
        if found is not None:
            yield Residues(program, prime, found)
            done += 1


def random_prime(rng: np.random.Generator) -> int:
    """Any prime between 2⁴⁹ and 2⁵⁰, all with the same probability.

    >>> 2**49 < random_prime(np.random.default_rng()) < 2**50
    True
    """
    from flint import fmpz

    while True:  # one odd number in 17 is prime: 32 at a time are enough, six times out of seven
        for half in rng.integers(LEAST_PRIME // 2, LEAST_PRIME, size=32).tolist():
            if fmpz(2 * half + 1).is_prime():
                return 2 * half + 1


def residues(ratios: list[tuple[int, int]], prime: int) -> np.ndarray | None:
    """Rationals (numerator, denominator) modulo a prime, as doubles; None if it divides a denominator.

    >>> residues([(-1, 1), (1, 2)], 7), residues([(1, 4)], 2)
    (array([6., 4.]), None)
    """
    rest = {below: below % prime for below in {below for _, below in ratios}}
    if 0 in rest.values():
        return None
    size = len(ratios) + -len(ratios) % LANES
    above, below = np.zeros(size), np.ones(size)
    above[: len(ratios)] = [number % prime for number, _ in ratios]
    below[: len(ratios)] = [rest[number] for _, number in ratios]
    if len(rest) > 1 or 1 not in rest:
        divide_mod(above, below, float(prime))
    return above[: len(ratios)]

"""A program modulo random primes: a value that is 0 modulo some of them is 0, except with a small probability.

A fixed prime would not do: whoever knows it can write a coefficient that is a multiple of it. There are more than 2⁴³
primes between 2⁴⁹ and 2⁵⁰, and a nonzero number of b bits is divisible by at most b/49 of them. So it is 0 modulo a
random one with probability at most b / (49·2⁴³), and modulo several with at most the product of such probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pgcc.kernels.simd import LANES
from pgcc.kernels.walk import instructions_of
from pgcc.program.program import LOWERED, Program
from pgcc.rings.kernels.modular import MOST_BITS, divide_mod, run_modular

LEAST_PRIME = 1 << (MOST_BITS - 1)
ROUNDS = 3
# Between x and 2x there are more than 3x / (5 ln x) primes (Rosser and Schoenfeld 1962): 9.9e12 here, 1.6e13 in fact.
# Primes that divide a denominator are passed over; they are far fewer than the difference to this bound.
_LEAST_CHOICE = 1 << (MOST_BITS - 7)
# We assume that numerators of coefficients have fewer bits: that is two and a half million digits. A formal bound would
# be of no use, as it doubles with every square that cancels.
_COEFFICIENT_BITS = 1 << 23


def chance_of_zero(degree: int) -> float:
    """A bound on the probability that a nonzero polynomial of this degree vanishes at a random point in every round.

    In a round, either the prime divides all coefficients, or the point is a zero modulo the prime (Schwartz–Zippel).
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
        """Write all values (slots × points) at points (variables × points; their number is a multiple of eight)."""
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
    """A random prime between 2⁴⁹ and 2⁵⁰, with uniform probability.

    >>> 2**49 < random_prime(np.random.default_rng()) < 2**50
    True
    """
    from flint import fmpz

    while True:  # one odd number in 17 is prime, so 32 candidates have a prime among them six times out of seven
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

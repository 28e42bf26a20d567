"""A program modulo random primes: a value that is 0 modulo some of them is 0, except with a small probability.

A fixed prime would not do: whoever knows it can write a coefficient that is a multiple of it. There are more than 2⁴³
primes between 2⁴⁹ and 2⁵⁰, and a nonzero number of b bits is divisible by at most b/49 of them. So it is 0 modulo a
random one with probability at most b / (49·2⁴³), and modulo several with at most the product of such probabilities.
How many bits the coefficients of a program may have follows from its numbers and its powers (`formal_bits`).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator

import numpy as np
from flint import fmpz

from pgcc.kernels.simd import LANES
from pgcc.kernels.walk import Operations, instructions_of, number_system, walk_in_python
from pgcc.program.program import DET, DETMAG, LOWERED, Program
from pgcc.rings.kernels.modular import MOST_BITS, divide_mod, run_modular

LEAST_PRIME = 1 << (MOST_BITS - 1)
ROUNDS = 3
MOST_CHANCE = 1e-6  # the largest probability of error that is accepted
# Between x and 2x there are more than 3x / (5 ln x) primes (Rosser and Schoenfeld 1962): 9.9e12 here, 1.6e13 in fact.
# Primes that divide a denominator are passed over; they are far fewer than the difference to this bound.
_LEAST_CHOICE = 1 << (MOST_BITS - 7)
_HUGE = 1 << 96  # stands for all powers from here on


def rounds_of_test(program: Program, tests: int) -> tuple[Iterable[Residues | LongResidues], float]:
    """Rounds of which one at least shows that a value, or a second difference, is not the polynomial 0, if it is not.

    The probability that they miss one of so many of them is returned, too.

    In a round, either the prime divides all coefficients, or the point is a zero modulo the prime (Schwartz–Zippel). If
    coefficients may have so many bits that fifty of the prime are too few, one long prime is taken.
    """
    rng = np.random.default_rng()  # not seeded: no adversary can know the primes and the points
    bits, degree = formal_bits(program)
    chance = min(1.0, bits / (MOST_BITS - 1) / _LEAST_CHOICE + degree / LEAST_PRIME) ** ROUNDS
    if tests * chance <= MOST_CHANCE or degree >= _HUGE or program.has_det:
        return rounds(program, rng), min(1.0, tests * chance)
    return [LongResidues(program, bits.bit_length() + 128)], tests * 2.0**-126


def formal_bits(program: Program) -> tuple[int, int]:
    """(b, u): the coefficients of all values, and of second differences, have numerators of at most b bits; degrees are
    at most u.

    With D for the common denominator of all numbers, a value is P/Dᵘ, where u adds up in a product, is one more in a
    sum, and one more in a determinant for every row. The absolute coefficients of P have a sum below 2^(u·c): with each
    u, a number times D, and one of the terms of a sum, are multiplied. A second difference has 2·u bits more.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> formal_bits(lower(pgcc.parse("(a + b)*(a - b) + 1/3*b**2")))
    (50, 5)
    """
    ratios = _ratios(program)
    powers_of_two = [q & -q for _, q in ratios]
    odd = {q // two for (_, q), two in zip(ratios, powers_of_two, strict=True)}
    denominator = max(powers_of_two, default=1).bit_length() + sum(map(int.bit_length, odd))
    numerator = max((p.bit_length() for p, _ in ratios), default=1)
    terms = max(2, int(np.diff(program.start).max(initial=0)), int(program.det_shape.sum(axis=1).max(initial=0)))
    size = max(_FormalSize(program).size, default=0)
    return size * (numerator + denominator + terms.bit_length() + 2), size


class _FormalSize:
    """u of every value, as a number system in Python."""

    def __init__(self, program: Program):
        self.rows = program.det_shape.sum(axis=1).tolist()
        self.size = [0] * program.slots
        walk_in_python(program, self)


def _leaf(system: _FormalSize, i: int, at: int, number: int) -> None:
    system.size[at] = 1


def _begin(system: _FormalSize, i: int, at: int) -> None:
    system.size[at] = 0


def _times(system: _FormalSize, at: int, x: int) -> None:
    system.size[at] += system.size[x]


def _add(system: _FormalSize, at: int, k: int, x: int) -> None:
    system.size[at] = max(system.size[at], system.size[x])


def _add_product(system: _FormalSize, at: int, k: int, x: int, y: int) -> None:
    system.size[at] = max(system.size[at], system.size[x] + system.size[y])


def _end_product(system: _FormalSize, i: int, at: int) -> None:
    system.size[at] = min(system.size[at], _HUGE)


def _end_sum(system: _FormalSize, i: int, at: int) -> None:
    system.size[at] = min(system.size[at] + 1, _HUGE)


def _determinant(system: _FormalSize, i: int, at: int, op: int, args: list[int]) -> None:
    """Every term has one number of each row, and one factor of each pair (f, y). A bound on its error is not tested."""
    if op == DET:
        k = len(args) // 2
        pairs = zip(args[1 : 1 + k], args[1 + k :], strict=True)
        system.size[at] = system.rows[args[0]] + sum(max(system.size[f], system.size[y]) for f, y in pairs)
    elif op == DETMAG:
        system.size[at] = 0
    else:
        raise ValueError("there is no rule for the size of an instruction of this kind")
    _end_product(system, i, at)


number_system(
    _FormalSize,
    Operations(_leaf, _begin, _times, _begin, _add, _add_product, _end_product, _end_sum, _determinant),
)


class Residues:
    """A program, with its numbers modulo one prime."""

    kind: type = float

    def __init__(self, program: Program, prime: int, numbers: np.ndarray, rng: np.random.Generator):
        self.program, self.prime, self.rng = program.expect(*LOWERED), prime, rng
        leaves, dets = len(program.numbers), len(program.numbers) + 2 * len(program.leaf_numbers)
        self.weights, self.det_data = numbers[:leaves], numbers[dets:]
        self.leaf_table = numbers[leaves:dets].reshape(-1, 2)

    def random(self, *shape: int) -> np.ndarray:
        """Random residues."""
        return self.rng.integers(self.prime, size=shape).astype(float)

    def run(self, points: np.ndarray, work: np.ndarray) -> None:
        """Write all values (slots × points) at points (variables × points; their number is a multiple of eight)."""
        program = self.program
        run_modular(
            instructions_of(program), self.weights, program.leaf_variable, self.leaf_table,
            (program.det_shape, program.det_start, self.det_data), float(self.prime), points, work,
        )  # fmt: skip


class LongResidues:
    """A program without determinants, modulo one random prime of so many bits, in Python's integers."""

    kind: type = object

    def __init__(self, program: Program, bits: int):
        self.program = program.expect(*LOWERED)
        ratios = _ratios(program)
        while True:
            self.prime = secrets.randbits(bits - 1) | 1 << (bits - 1) | 1
            if fmpz(self.prime).is_probable_prime() and all(q % self.prime for _, q in ratios):
                break
        residues = [p * pow(q, -1, self.prime) % self.prime for p, q in ratios]
        self.weights, leaves = residues[: len(program.numbers)], residues[len(program.numbers) :]
        self.leaves = list(zip(leaves[::2], leaves[1::2], strict=True))

    def random(self, *shape: int) -> np.ndarray:
        """Random residues."""
        return np.array([secrets.randbelow(self.prime) for _ in range(math.prod(shape))], object).reshape(shape)

    def run(self, points: np.ndarray, work: np.ndarray) -> None:
        """Write all values (slots × points) at points (variables × points)."""
        self.points, self.values = points, work
        walk_in_python(self.program, self)


def _long_leaf(system: LongResidues, i: int, at: int, number: int) -> None:
    a, b = system.leaves[number]
    variable = int(system.program.leaf_variable[number])
    system.values[at] = (a + b * system.points[variable] if variable >= 0 else a + b) % system.prime


def _long_one(system: LongResidues, i: int, at: int) -> None:
    system.values[at] = 1


def _long_times(system: LongResidues, at: int, x: int) -> None:
    system.values[at] = system.values[at] * system.values[x] % system.prime


def _long_zero(system: LongResidues, i: int, at: int) -> None:
    system.values[at] = 0


def _long_add(system: LongResidues, at: int, k: int, x: int) -> None:
    system.values[at] = (system.values[at] + system.weights[k] * system.values[x]) % system.prime


def _long_add_product(system: LongResidues, at: int, k: int, x: int, y: int) -> None:
    product = system.values[x] * system.values[y] % system.prime
    system.values[at] = (system.values[at] + system.weights[k] * product) % system.prime


number_system(LongResidues, Operations(_long_leaf, _long_one, _long_times, _long_zero, _long_add, _long_add_product))


def rounds(program: Program, rng: np.random.Generator) -> Iterator[Residues]:
    """The program modulo `ROUNDS` random primes, none of which divides a denominator."""
    ratios = _ratios(program)
    done = 0
    while done < ROUNDS:
        prime = random_prime(rng)
        found = residues(ratios, prime)
        if found is not None:
            yield Residues(program, prime, found, rng)
            done += 1


def _ratios(program: Program) -> list[tuple[int, int]]:
    """All numbers of a program: weights, those of leaves, and entries of matrices."""
    numbers = [*program.numbers, *(x for pair in program.leaf_numbers for x in pair), *program.det_numbers]
    return [x.as_integer_ratio() for x in numbers]


def random_prime(rng: np.random.Generator) -> int:
    """A random prime between 2⁴⁹ and 2⁵⁰, with uniform probability.

    >>> 2**49 < random_prime(np.random.default_rng()) < 2**50
    True
    """
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

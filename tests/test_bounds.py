"""Every term of the formulas of error bounds: each is compared with the worst that it has to cover, in fractions.

Errors of random computations are far below their bounds, so that a bound without one of its terms would hold in
nearly every test. Here the worst case itself is computed: all errors at their limits, and of the same sign.
"""

from __future__ import annotations

import math
from fractions import Fraction as Exact

import numpy as np
import pytest
from flint import arb

from pgcc.certify.kernels.bounds import certify, divide, posteriors
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import const, product, var, weighted_sum
from pgcc.passes.padding import homogenize
from pgcc.program.lower import lower
from pgcc.program.program import LEAF, SUM, TIMES, Program
from pgcc.program.reverse import reverse
from pgcc.rings.precision import ball_parts
from pgcc.rings.values import Values, rounding_bound

UNIT = Exact(1, 2**53)


def worst_relative(v: float, m: float, gamma: float, floor: float) -> Exact:
    """The relative error of v, if the true value is as far away as γ·M + floor, and M as large as it can be."""
    g, f = Exact(gamma), Exact(floor)
    error = g * (Exact(m) + f) / (1 - g) + f
    return error / (abs(Exact(v)) - error)


@pytest.mark.parametrize("gamma", [1e-15, 1e-9, 0.1, 0.4])
@pytest.mark.parametrize("floor", [0.0, 1e-6, 0.01])
def test_a_bound_covers_rounding_and_underflow(gamma, floor):
    rng = np.random.default_rng(0)
    value = rng.uniform(0.5, 1.0, 50) * rng.choice([-1, 1], 50)
    magnitude = np.abs(value) * rng.uniform(1.0, 1.2, 50)
    bound = np.empty(50)
    certify(value, magnitude, gamma, floor, bound)
    for v, m, b in zip(value.tolist(), magnitude.tolist(), bound.tolist(), strict=True):
        worst = worst_relative(v, m, gamma, floor)
        assert b == math.inf if worst < 0 else worst <= Exact(b) <= worst * Exact(1.002), (v, m, b)


def test_a_bound_of_zero():
    bound = np.empty(1)
    for floor, expected in ((0.0, 0.0), (1e-300, math.inf)):
        certify(np.zeros(1), np.zeros(1), 1e-15, floor, bound)
        assert bound[0] == expected


@pytest.mark.parametrize("by_bound", [0.0, 1e-15, 1e-3, 0.3])
@pytest.mark.parametrize("size", [1.0, 2.0**600])  # near 1, or the range has to be looked after
def test_a_quotient_has_the_errors_of_both(by_bound, size):
    """(1 + b)/(1 − c)·(1 + u) − 1, for b the bound of what is divided and c of what divides."""
    rng = np.random.default_rng(1)
    mantissa, exponent, bound = (
        rng.uniform(0.5, 1.0, 40) * size,
        np.zeros(40, np.int64),
        10.0 ** rng.uniform(-17, -2, 40),
    )
    before = bound.copy()
    divide(mantissa, exponent, bound, 0.7, 0, by_bound)
    for b, after in zip(before.tolist(), bound.tolist(), strict=True):
        worst = (1 + Exact(b)) / (1 - Exact(by_bound)) * (1 + UNIT) - 1
        assert worst <= Exact(after) <= 2 * worst + 8 * UNIT


def test_posteriors_have_the_errors_of_both():
    gamma, floor, rtol = 0.01, np.array([0.001]), 1.0
    read, sizes = np.array([[0.3], [0.6]]), np.array([[0.31], [0.62]])
    evidence = np.full((1, 1), -1, np.int8)
    worst = [worst_relative(read[i, 0], sizes[i, 0], gamma, floor[0]) for i in (0, 1)]
    least, most = worst[0] + worst[1], (worst[0] + worst[1]) * Exact(1.01)
    for rtol, certain in ((float(least) * 0.999, False), (float(most), True)):
        numbers, found, impossible = np.empty((1, 1)), np.empty((1, 1), bool), np.empty(1, bool)
        posteriors(read, sizes, evidence, gamma, floor, rtol, numbers, found, impossible)
        assert found[0, 0] == certain
        assert numbers[0, 0] == pytest.approx(0.5)


def test_floats_below_the_normal_numbers():
    for power in (-1000, -1030, -1060, -1073, -1080):
        values = Values(np.array([0.7123456789]), np.array([power]), np.array([1e-15]))
        number, bound = float(values.floats()[0]), float(values.float_bounds()[0])
        true = Exact(0.7123456789) * Exact(2) ** power
        if number == 0.0:
            assert bound == math.inf
        else:
            assert abs(Exact(number) - true) / true + Exact(1e-15) <= Exact(bound) * (1 + Exact(1e-9))


@pytest.mark.parametrize("count", [1, 10, 10**6, 10**12, 10**15])
def test_roundings_come_to_powers(count):
    """(1 + u)^k − 1 is more than k·u, by (k·u)²/2."""
    ku = count * UNIT
    bound = rounding_bound(count)
    assert Exact(bound) >= ku + ku**2 / 2
    assert bound <= 1.1 * float(ku) / (1 - float(ku))
    assert rounding_bound(1e17) == math.inf


@pytest.mark.parametrize("radius", [0.0, 1e-20, 1e-3, 0.3])
def test_balls_as_doubles_keep_their_radius(radius):
    """(r + u·m)/(m − r) of a midpoint that is rounded."""
    middle = 1.2345678901234567
    mantissa, exponent, bound = ball_parts(arb(middle, radius))
    assert math.ldexp(mantissa, exponent) == pytest.approx(middle)
    lowest = (Exact(radius) / (Exact(middle) - Exact(radius))) if radius else Exact(0)
    assert lowest <= Exact(bound) <= lowest * Exact(1.001) + 4 * UNIT


# -- roundings of programs ---------------------------------------------------------------------------------------------


def rounding_counts(program: Program, length: int = 1) -> np.ndarray:
    from pgcc.certify.certificate import Walk

    return Walk(program.slots).run(program, length=length).state.rounds


def least_counts(program: Program, length: int = 1) -> list[int]:
    """How many roundings a term of each slot may really pass, by the operations of the kernels, one by one.

    A leaf's numbers are rounded, and their sum. A weight is rounded, and multiplied; of k terms the first passes k − 1
    additions. A coefficient of a product of series is a sum of up to `length` products.
    """
    count = [0] * program.slots
    for i in range(program.instructions):
        args = program.args[program.start[i] : program.start[i + 1]].tolist()
        at = int(program.target[i])
        match int(program.op[i]):
            case op if op == LEAF:
                count[at] = 2
            case op if op == TIMES:
                count[at] = sum(count[x] for x in args) + (len(args) - 1) * length
            case op if op == SUM:  # values, then pairs: what comes later passes fewer additions
                values, pairs = (part.tolist() for part in program.terms(i))
                terms = [count[x] + 2 + (len(values) - 1) + len(pairs) * length for x in values]
                terms += [count[x] + count[y] + 2 + length + len(pairs) * length - 1 for x, y in pairs]
                count[at] = max(terms)
            case op:
                raise AssertionError(f"operation {op} has no count here")
    return count


def programs() -> list[Program]:
    x, y, z, w = (weighted_sum([i, 1], [var(n), const(1)]) for i, n in enumerate("xyzw", 2))
    flat = weighted_sum(
        [1, 2, 3, 4, 5, 6, 7], [product([a, b]) for a, b in [(x, y)] * 1 + [(x, z), (x, w), (y, z)] * 2]
    )
    chains = [
        product([x, y, z, w]),
        weighted_sum([1, 2, 3], [product([x, y, z, w]), product([x, y]), x]),
        product([weighted_sum([1, 2], [product([x, y]), weighted_sum([3], [x])]), weighted_sum([1, 2], [z, w])]),
        flat,
    ]
    lowered = [lower(homogenize(Circuit(c))) for c in chains]
    return [*lowered, *(reverse(p) for p in lowered)]


@pytest.mark.parametrize("length", [1, 5])
def test_no_rounding_is_left_out(length):
    for program in programs():
        counted = rounding_counts(program, length)
        for slot, least in enumerate(least_counts(program, length)):
            assert least <= counted[slot] <= 3 * least + 3 * length, (slot, least, counted[slot])

"""Vectors in plain Python do what the instructions do."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from pgcc.kernels.simd import _fused


def exactly(x: float, y: float, z: float) -> float:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact) if exact else x * y + z
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def test_a_fused_multiplication_rounds_once():
    rng = random.Random(1)
    for _ in range(5_000):
        k = rng.choice((1, 50, 300, 600, 1000))
        x, y = (rng.uniform(-1, 1) * 2.0 ** rng.randint(-k, k) for _ in "xy")
        if rng.random() < 0.3:  # whole numbers, as residues are
            x, y = float(rng.randint(-(2**50), 2**50)), float(rng.randint(-(2**50), 2**50))
        p = x * y
        for z in (-p, -p * (1 + 2**-50), rng.uniform(-1, 1) * 2.0 ** rng.randint(-k, k), 0.0, -0.0):
            if math.isfinite(z):
                found, expected = _fused(x, y, z), exactly(x, y, z)
                assert (found, math.copysign(1, found)) == (expected, math.copysign(1, expected)), (x, y, z)


def test_a_fused_multiplication_of_zeros_and_what_is_no_number():
    for x in (0.0, -0.0, 3.0, math.inf):
        for y in (0.0, -0.0, -2.0, math.inf):
            for z in (0.0, -0.0, 5e-324, math.inf):
                found, expected = _fused(x, y, z), x * y + z
                assert found == expected or (math.isnan(found) and math.isnan(expected))

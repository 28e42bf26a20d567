"""Evaluate at roots of unity of a well-chosen radius and take one coefficient of the inverse Fourier transform.

The coefficient of t^k comes out with an absolute error of about ε · M(ρ)/ρ^k, where M(ρ) is the magnitude at the
radius ρ: log M is convex in log ρ, so that the best radius is found on a grid. Cheap when many coefficients would be
needed; the relative error is what M(ρ)/ρ^k says it is, no better.

What is rounded, in units u = 2⁻⁵³, relative to M. A complex product is off by √5·u at most (Brent, Percival, Zimmermann
2007), a sum by u: `_COMPLEX` for every rounding of the program. An angle 2π·k/n with k ≤ n/2 is computed with three
roundings and a π that is off by u/2: it is off by at most 3.5·π·u = 11·u. Its cosine and sine are off by 4 units in the
last place, that is 8·u, at most, and the product with ρ by u: a point t is off by 20·u. So a leaf a + b·t, with
the roundings of a and b, a product and a sum, is off by 25·u: `_LEAF` roundings.
Of the transform only one coefficient is needed, which is a sum of products with numbers that are off by 19·u; these
are added up without error. Twice that, and two divisions, are `_TRANSFORM` roundings.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from pgcc.certify.certificate import Certificate, Walk, leaf_states
from pgcc.certify.kernels.analysis import COMPLEX_LOSS, ENDLESS
from pgcc.certify.kernels.bounds import certify
from pgcc.program.program import LOWERED, Program
from pgcc.program.schedule import schedule
from pgcc.rings.kernels.points import Constants, run_points
from pgcc.rings.kernels.walk import instructions_of
from pgcc.rings.values import Values, rounding_bound

_POINTS_AT_A_TIME = 256
# More are not tried: the degree is too high.
_MOST_POINTS = 1 << 20
# Roundings that a complex one counts for, and so those of a leaf and of the transform.
_COMPLEX = 4.0
_LEAF, _TRANSFORM = 7.0, 12.0


class Roots:
    """The evaluator at points of a program, as `lower` makes it.

    Parameters
    ----------
    degree : int or None
        A bound on the degree in t; None if it is |A| because the polynomial is multiaffine.
    """

    def __init__(self, program: Program, degree: int | None = None):
        self.unscheduled, self.degree = program.expect(*LOWERED), degree

    @cached_property
    def program(self) -> Program:
        """The program with shared slots."""
        return schedule(self.unscheduled)

    def evaluate(self, evidence: np.ndarray) -> Values:
        """Values for int8 rows of evidence (1, 0, −1)."""
        values = Values.empty(len(evidence))
        for row, codes in enumerate(evidence):
            values.mantissa[row], values.bound[row] = self._coefficient(codes)
        return values

    def _coefficient(self, codes: np.ndarray) -> tuple[float, float]:
        wanted = int((codes == 1).sum())
        n_points = (wanted if self.degree is None else max(self.degree, wanted)) + 1
        if n_points > _MOST_POINTS:
            return 0.0, np.inf
        radius = self._best_radius(codes, wanted)
        with np.errstate(all="ignore"):
            scale = float(np.float64(radius) ** wanted)
        if not 1e-290 < scale < 1e290:
            return 0.0, np.inf
        # A real polynomial: half of the points are conjugates of the others.
        half = np.arange(n_points // 2 + 1)
        with np.errstate(all="ignore"):
            found = self.at_points(codes, radius * unit_roots(half, n_points))
            terms = (found * np.conj(unit_roots(half * wanted, n_points))).real
            terms[1 : (n_points + 1) // 2] *= 2.0
            value = _exact_sum(terms) / n_points / scale
        if self.program.has_det:
            return value, np.inf  # nothing is known of a determinant's rounding at a complex point
        certificate = self._certificate(codes, radius)
        with np.errstate(all="ignore"):
            magnitude = self.magnitudes(codes, np.array([radius])) / scale
            # each of the products with roots of unity and the divisions lose something, too
            floor = (certificate.floor + 2.0**-1070) / scale + 2.0**-1070
        bound = np.empty(1)
        certify(np.array([value]), magnitude, certificate.gamma, floor, bound)
        return value, float(bound[0])

    def _best_radius(self, codes: np.ndarray, wanted: int) -> float:
        """The radius that minimises M(ρ)/ρ^k: a coarse grid of powers of two, then a fine one."""
        if wanted == 0 or self.program.has_det:
            return 1.0
        centre, width = 0.0, 30.0
        for _ in range(3):
            exponents = np.linspace(centre - width, centre + width, 31)
            with np.errstate(all="ignore"):
                cost = np.log2(self.magnitudes(codes, np.exp2(exponents))) - wanted * exponents
            if not np.isfinite(cost).any():
                return 1.0
            centre = float(exponents[np.nanargmin(np.where(np.isfinite(cost), cost, np.nan))])
            width /= 15.0
        return float(np.exp2(centre))

    def at_points(self, codes: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The polynomial in t at complex points."""
        return self._run(codes, points, self.program.value)

    def magnitudes(self, codes: np.ndarray, radii: np.ndarray) -> np.ndarray:
        """The magnitude at radii."""
        return self._run(codes, radii, self.program.magnitude).real

    def _run(self, codes: np.ndarray, points: np.ndarray, root: int) -> np.ndarray:
        program, points = self.program, points.astype(np.complex128)
        constants = Constants(program.weights, program.leaf_variable, program.leaf_table, *program.dets)
        out = np.empty(len(points), np.complex128)
        work = np.empty((self.program.slots, min(len(points), _POINTS_AT_A_TIME)), np.complex128)
        for first in range(0, len(points), _POINTS_AT_A_TIME):
            some = points[first : first + _POINTS_AT_A_TIME]
            here = out[first : first + len(some)]
            run_points(instructions_of(program), constants, codes, some, work[:, : len(some)], root, here)
        return out

    def _certificate(self, codes: np.ndarray, radius: float) -> Certificate:
        """Of values at points of one radius, and of their magnitudes there."""
        program = self.program
        leaves = leaf_states(program, _LEAF)
        a, b = np.abs(program.leaf_table[:, :2]).T
        code = np.where(program.leaf_variable < 0, -1, codes[program.leaf_variable]) if len(codes) else -1
        with np.errstate(divide="ignore", over="ignore"):
            largest = np.log(np.where(code == 1, a + b * radius, np.where(code == 0, a, a + b)))
        lost = COMPLEX_LOSS + math.log(1.0 + radius)  # of a, b and b·t
        states = leaves._replace(
            high=np.where(np.isfinite(largest), largest, leaves.high + math.log(1.0 + radius)),
            low=np.full(len(a), -ENDLESS), error=np.full(len(a), lost),
        )  # fmt: skip
        walk = Walk(program.slots, loss=COMPLEX_LOSS, weight_first=True).run(program, states)
        found = walk.certificate([program.value], [program.magnitude])
        count = float(walk.state.rounds[[program.value, program.magnitude]].max()) + _TRANSFORM
        return Certificate(rounding_bound(_COMPLEX * count), found.floor)


def unit_roots(powers: np.ndarray, n: int) -> np.ndarray:
    """exp(2πi·k/n) for whole numbers k.

    >>> unit_roots(np.array([0, 4]), 4).tolist()
    [(1+0j), (1+0j)]
    """
    powers = powers % n
    angle = 2.0 * np.pi * np.where(2 * powers > n, powers - n, powers) / n
    return np.cos(angle) + 1j * np.sin(angle)


def _exact_sum(terms: np.ndarray) -> float:
    """Σ, rounded once; NaN where a term is not finite."""
    return math.fsum(terms.tolist()) if np.isfinite(terms).all() else math.nan

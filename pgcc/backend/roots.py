"""Evaluate at roots of unity of a well-chosen radius and take one inverse FFT.

The coefficient of t^k comes out with an absolute error of about ε · M(ρ)/ρ^k, where M(ρ) is the magnitude at the
radius ρ: log M is convex in log ρ, so that the best radius is found on a grid. Cheap when many coefficients would be
needed; the relative error is what M(ρ)/ρ^k says it is, no better.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pgcc.backend.direct import roundings, underflow_floor
from pgcc.backend.kernels.bounds import certify
from pgcc.backend.kernels.points import run_points
from pgcc.backend.values import Values, rounding_bound
from pgcc.lowering.program import Program
from pgcc.lowering.schedule import schedule

_POINTS_AT_A_TIME = 256
# More are not tried: the degree is too high.
_MOST_POINTS = 1 << 20
# A complex product rounds like four real ones, √5 of them at most.
_COMPLEX = 4.0


class Roots:
    """The evaluator at points of a plain program (as `lower` makes it).

    Parameters
    ----------
    degree : int or None
        A bound on the degree in t; None if it is |A| because the polynomial is multiaffine.
    """

    def __init__(self, program: Program, degree: int | None = None):
        self.unscheduled, self.degree = program, degree

    @cached_property
    def program(self) -> Program:
        """The program with shared slots."""
        return schedule(self.unscheduled)

    @cached_property
    def gamma(self) -> float:
        """The relative error of a value at a point, relative to its magnitude."""
        return rounding_bound(_COMPLEX * (roundings(self.unscheduled) + 64.0))

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
        points = radius * np.exp(2j * np.pi * np.arange(n_points // 2 + 1) / n_points)
        with np.errstate(all="ignore"):
            value = np.fft.irfft(np.conj(self.at_points(codes, points)), n_points)[wanted] / scale
        if self.program.has_det:
            return float(value), np.inf  # nothing is known of a determinant's rounding at a complex point
        with np.errstate(all="ignore"):
            magnitude = self.magnitudes(codes, np.array([radius])) / scale
            floor = max(self._floor(codes, radius) / scale, 5e-324)
        bound = np.empty(1)
        certify(np.array([value]), magnitude, self.gamma, floor, bound)
        return float(value), float(bound[0])

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
        points = points.astype(np.complex128)
        out = np.empty(len(points), np.complex128)
        work = np.empty((self.program.slots, min(len(points), _POINTS_AT_A_TIME)), np.complex128)
        for first in range(0, len(points), _POINTS_AT_A_TIME):
            some = points[first : first + _POINTS_AT_A_TIME]
            here = out[first : first + len(some)]
            run_points(*self.program.arrays, *self.program.dets, codes, some, work[:, : len(some)], root, here)
        return out

    def _floor(self, codes: np.ndarray, radius: float) -> float:
        program = self.unscheduled
        a, b = np.abs(program.leaf_table[:, 0]), np.abs(program.leaf_table[:, 1])
        code = np.where(program.leaf_variable < 0, -1, codes[program.leaf_variable]) if len(codes) else -1
        with np.errstate(divide="ignore"):
            leaves = np.log(np.where(code == 1, a + b * radius, np.where(code == 0, a, a + b)))
        return underflow_floor(program, leaves)

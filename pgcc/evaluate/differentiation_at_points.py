"""Gradients at complex points: for circuits that are not decomposable, and for determinants of a given size.

A coefficient of a polynomial is a mean over points on a circle, [t^k] F = mean over |t| = ρ of F(t)·t^-k, and so is its
derivative by any number of the circuit. The forward and the reverse pass run at complex points t, which replace the
variables observed 1, and at complex points s for the size of a determinant. The rounding error of a coefficient is
proportional to M(ρ)/ρ^k, with M the magnitude of F, so we take the radius ρ that minimises it. The error is estimated
by turning the points by half a step: the means over both sets of points should agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from pgcc.determinants.cofactors import Derivatives, Matrices, determinant_derivatives, determinant_logs
from pgcc.errors import PgccError
from pgcc.evaluate.differentiation import Differentiator, Gradients, WeightedRows
from pgcc.kernels.walk import Operations, number_system, walk_in_python
from pgcc.program.det_structure import DetStructure
from pgcc.program.program import DET, DETBAR, Program
from pgcc.rings.series import degree_in

# Radii are searched between 2^-40 and 2^40, on grids of 17 exponents.
_WIDEST, _GRID = 40.0, 17
# Radii within a factor of 2^2 of the least error are taken to be equally good.
_NEARLY = 2.0
# Points on the unit circle at which the magnitude of a polynomial is measured.
_DIRECTIONS = np.exp(2j * np.pi * np.arange(8) / 8)
# The most points on a circle.
_MOST_POINTS = 1 << 12


class PointDifferentiator(Differentiator):
    """A program and its reverse pass at complex points.

    Parameters
    ----------
    program : Program
        As `parametrize` makes it.
    homogeneous : bool
        Whether the circuit is decomposable: then only the sizes of determinants need points.
    """

    def __init__(self, program: Program, homogeneous: bool):
        super().__init__(program)
        self.homogeneous = homogeneous

    @property
    def points(self) -> PointDifferentiator:
        """The evaluator of the rung of this name."""
        return self

    def evaluate(self, rows: WeightedRows, rtol: float) -> Gradients:
        """The gradients of all rows, one row after another; `spread` is an estimate of their errors."""
        found, numbers = self.zeros(len(rows))
        for row, (codes, share) in enumerate(zip(rows.codes, rows.share, strict=True)):
            halves = [self._coefficients(codes, turn) for turn in (0.0, 0.5)]
            root = sum(half[0] for half in halves) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                found.logs[row] = np.log(root)
            if not root > 0.0 or share == 0.0:
                continue
            for total, *parts in zip((numbers, *chain(*found.matrices)), *(half[1] for half in halves), strict=True):
                slopes = [part / root for part in parts]
                off = np.abs(slopes[0] - slopes[1]) / np.maximum(1.0, np.abs(slopes[0]))
                found.spread = max(found.spread, float(off.max(initial=0.0)))
                total += share * (slopes[0] + slopes[1]) / 2
        return found

    def _coefficients(self, codes: np.ndarray, turn: float) -> tuple[float, list[np.ndarray]]:
        """[t^|A|] of the value, and of its derivatives by the numbers and matrices, in the order of `evaluate`."""
        wanted = 0 if self.homogeneous else int((codes == 1).sum())
        points, shares = circle(partial(self._magnitudes, codes), self._degree(codes), wanted, turn)
        work, derivatives = self._values(self.reversed, codes, points, turn)
        numbers = np.zeros(len(self.program.weights) + self.program.slots)
        numbers[self.place] = ((work[self.above] * work[self.child]) @ shares).real
        result = [numbers]
        for which, derivative in enumerate(derivatives):
            above = work[self.adjoint[self._slot_of[which]]] * shares
            result += [np.tensordot(above, part, 1).real for part in derivative.by_matrices]
        return float((work[self.program.value] @ shares).real), result

    @property
    def _slot_of(self) -> np.ndarray:
        """The slot of every determinant."""
        return self.program.target[self.program.op == DET]

    def _degree(self, codes: np.ndarray) -> int:
        """A bound on the degree in t of any value and derivative."""
        return 0 if self.homogeneous else degree_in(self.program, codes)

    def _magnitudes(self, codes: np.ndarray, points: np.ndarray) -> np.ndarray:
        """|F| at points, with the absolute values of all weights and leaves."""
        program = self.program
        sizes = replace(program, weights=np.abs(program.weights), leaf_table=np.abs(program.leaf_table))
        return np.abs(self._values(sizes, codes, points, 0.0)[0][program.value])

    def _values(
        self, program: Program, codes: np.ndarray, points: np.ndarray, turn: float
    ) -> tuple[np.ndarray, list[Derivatives]]:
        """All slots of the program, or of its reverse pass, at points; and the derivatives of its determinants."""
        system = _AtPoints(self, program, self._leaves(program, codes, points), len(points), turn)
        with np.errstate(all="ignore"):
            walk_in_python(program, system)
        return system.work, system.derivatives

    def _leaves(self, program: Program, codes: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The leaves × points: z is t for variables observed 1 (1 if homogeneous), 0 for observed 0, 1 for others."""
        zero, one, free = program.leaf_table.T[:, :, None]
        code = np.where(program.leaf_variable < 0, -1, np.append(codes, -1)[program.leaf_variable])[:, None]
        inside = one + np.zeros(len(points)) if self.homogeneous else zero + one * points
        return np.where(code == 1, inside, np.where(code == 0, zero, free))


class _AtPoints:
    """The number system of values at complex points: an array per slot. Determinants keep their derivatives."""

    def __init__(self, of: PointDifferentiator, program: Program, leaves: np.ndarray, points: int, turn: float):
        self.structures, self.matrices, self.weights = of.program.structures, of.matrices, program.weights
        self.leaves, self.turn = leaves, turn
        self.work = np.zeros((program.slots, points), np.complex128)
        self.derivatives: list[Derivatives] = []


def _leaf(system: _AtPoints, i: int, at: int, number: int) -> None:
    system.work[at] = system.leaves[number]


def _one(system: _AtPoints, i: int, at: int) -> None:
    system.work[at] = 1.0


def _times(system: _AtPoints, at: int, x: int) -> None:
    system.work[at] *= system.work[x]


def _zero(system: _AtPoints, i: int, at: int) -> None:
    system.work[at] = 0.0


def _add(system: _AtPoints, at: int, k: int, x: int) -> None:
    system.work[at] += system.weights[k] * system.work[x]


def _add_product(system: _AtPoints, at: int, k: int, x: int, y: int) -> None:
    system.work[at] += system.weights[k] * (system.work[x] * system.work[y])


def _determinant(system: _AtPoints, i: int, at: int, op: int, args: list[int]) -> None:
    which, *children = args
    if op == DET:
        structure, k = system.structures[which], system.structures[which].children
        below = system.work[children].T
        f, y = below[:, :k], below[:, k:].real
        if structure.size is None:
            found = unscaled(determinant_derivatives(system.matrices[which], f, y))
        else:
            found = sized_derivatives(structure, system.matrices[which], f, y, system.turn)
        system.derivatives.append(found)
        system.work[at] = found.value
    elif op == DETBAR:
        found = system.derivatives[which]
        parts = np.concatenate([found.by_inside, found.by_outside], axis=1).T
        system.work[at : at + len(children)] = parts
    else:
        raise ValueError("an instruction has no value at points")


number_system(_AtPoints, Operations(_leaf, _one, _times, _zero, _add, _add_product, determinant=_determinant))


def circle(
    magnitudes: Callable[[np.ndarray], np.ndarray], degree: int, wanted: int, turn: float
) -> tuple[np.ndarray, np.ndarray]:
    """(points, shares) such that Σ share·F(point) is the coefficient of t^wanted, for F of at most this degree.

    magnitudes : the magnitude of F at points, to choose the radius: log max |F| is convex in log ρ.
    """
    if degree >= _MOST_POINTS:
        raise PgccError(f"a polynomial of degree {degree} in t has too many points (at most {_MOST_POINTS})")
    if degree == 0:
        return np.ones(1, np.complex128), np.ones(1)
    centre = _best_exponent(magnitudes, wanted) if 0 < wanted < degree else 0.0
    points = np.exp2(centre) * np.exp(2j * np.pi * (np.arange(degree + 1) + turn) / (degree + 1))
    return points, points**-wanted / (degree + 1)


def _best_exponent(magnitudes: Callable[[np.ndarray], np.ndarray], wanted: int) -> float:
    """log₂ of a radius: of those where M(ρ)/ρ^k is nearly minimal, the one that is closest to 1.

    For the highest coefficient, all large radii are equally good in theory, but determinants of huge numbers are not.
    """
    centre, width = 0.0, _WIDEST
    while width > 0.05:
        exponents = np.linspace(centre - width, centre + width, _GRID)
        points = np.outer(np.exp2(exponents), _DIRECTIONS).ravel()
        with np.errstate(all="ignore"):
            cost = np.log2(magnitudes(points).reshape(_GRID, -1).max(axis=1)) - wanted * exponents
        if not np.isfinite(cost).any():
            break
        near = exponents[cost <= np.min(cost[np.isfinite(cost)]) + _NEARLY]
        centre = float(near[np.abs(near).argmin()])
        width /= _GRID // 4
    return centre


def unscaled(found: Derivatives) -> Derivatives:
    """The derivatives as ordinary numbers, without exponents."""
    return _weighted(found, np.eye(len(found.value)))


def _weighted(found: Derivatives, shares: np.ndarray) -> Derivatives:
    """Weighted sums of rows of derivatives; shares : results × rows."""
    with np.errstate(over="ignore"):
        scaled = shares * np.exp2(found.exponent.astype(np.float64))

    def of(numbers: np.ndarray) -> np.ndarray:
        return np.tensordot(scaled, numbers, 1)

    m0, u, v = (of(part) for part in found.by_matrices)
    none = np.zeros(len(shares), np.int64)
    return Derivatives(of(found.value), of(found.by_inside), of(found.by_outside), (m0, u, v), none)


def sized_derivatives(
    structure: DetStructure, matrices: Matrices, f: np.ndarray, y: np.ndarray, turn: float
) -> Derivatives:
    """The coefficient of s^size where the counted f are s·f, and its derivatives, for rows of f and y (rows × k)."""
    rows, k = f.shape
    counted = np.ones(k, bool) if structure.counted is None else np.array(structure.counted)
    assert structure.size is not None

    def times(points: np.ndarray) -> np.ndarray:
        return np.where(counted, points[:, None], 1.0)

    def totals(points: np.ndarray) -> np.ndarray:
        return np.exp2(determinant_logs(matrices, times(points) * f[0], np.repeat(y[:1], len(points), 0)))

    points, shares = circle(totals, int(counted.sum()), structure.size, turn)
    inside = (times(points) * f[:, None]).reshape(-1, k)
    found = determinant_derivatives(matrices, inside, np.repeat(y, len(points), 0))
    found.by_inside *= np.tile(times(points), (rows, 1))  # ∂/∂f of what is s·f
    return _weighted(found, np.kron(np.eye(rows), shares))

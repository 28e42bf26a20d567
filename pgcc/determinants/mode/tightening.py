"""The best bound of a concave relaxation, by projected gradients; `sets` calls `tighten` for every region.

Every point has a bound that is proved (see `relaxation`), so nothing here has to be accurate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgcc.determinants.mode.region import Region
from pgcc.determinants.mode.relaxation import Dual, Relaxation

# The duality gap at which the scale is changed first; the shortest and the longest step; and the number of steps
# without a better bound after which the iteration ends.
_FIRST_DISTANCE, _STEPS, _PATIENCE = 0.1, (1e-3, 1e3), 6


@dataclass(frozen=True)
class Tight:
    """The best bound found, and where the search for it ended.

    Attributes
    ----------
    bound : float
    dual : Dual
    x : float64 array
        A point of the convex hull: the nearer to 0 or 1, the more certain it is whether an item is in the best sets.
    log_scale : float64 array
    """

    bound: float
    dual: Dual
    x: np.ndarray
    log_scale: np.ndarray


def tighten(
    relaxation: Relaxation,
    region: Region,
    start: tuple[np.ndarray, np.ndarray],
    steps: int,
    done: Callable[[float], bool],
) -> Tight | None:
    """Lower the bound by projected gradients (with Barzilai–Borwein steps), starting from a point and a scale.

    done : called with the bound after every step; returns whether that is good enough.
    """
    x, log_scale = region.project(start[0]), start[1]
    best: Tight | None = None
    distance, step, waited = _FIRST_DISTANCE, 1.0, 0
    before: tuple[np.ndarray, np.ndarray] | None = None
    for _ in range(steps):
        found = relaxation.at(x, log_scale)
        if found is None:
            break
        bound = found.bound(region)
        waited = 0 if best is None or bound < best.bound - 1e-3 * distance else waited + 1
        if best is None or bound < best.bound:
            best = Tight(bound, found, x, log_scale)
        if done(best.bound) or waited >= _PATIENCE:
            break
        gradient = relaxation.gradient(found, log_scale)
        highest = region.best(gradient)
        if highest is None:
            break
        if highest[0] - float(gradient @ x) < distance:
            log_scale, distance, before = found.log_scale, distance / 2, None
            gradient = relaxation.gradient(found, log_scale)
        if before is not None:
            moved, turned = x - before[0], before[1] - gradient
            curvature = float(moved @ turned)
            step = float(moved @ moved) / curvature if curvature > 0.0 else 2.0 * step
            step = min(max(step, _STEPS[0]), _STEPS[1])
        before = x, gradient
        x = region.project(x + step * gradient)
    return best

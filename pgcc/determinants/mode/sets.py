"""The set with the largest coefficient of a determinant (MAP of a DPP): local search, then branch and bound.

Local search is that of `climber`; the bounds are those of `upper_bounds`. `queries/mode_parts` calls `find_best`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgcc.determinants.mode.climber import Climber
from pgcc.determinants.mode.region import Region
from pgcc.determinants.mode.tightening import Tight, tighten
from pgcc.determinants.mode.upper_bounds import Bounds, find_bounds
from pgcc.kernels.announce import search_clock
from pgcc.program.det_structure import DetStructure

# The share of the time that local search may take.
_SHARE = 0.3
# Steps of projected gradients at the root, and at every other region.
_ROOT_STEPS, _STEPS = 80, 12
# The search ends if the gap does not shrink by a tenth within this many regions.
_REGIONS = 400


@dataclass(frozen=True)
class Best:
    """The best set found, and a bound on all sets.

    Attributes
    ----------
    inside : bool array
    bound : float
        An upper bound on log c_S + Σ_S weight of every set of the region.
    """

    inside: np.ndarray
    bound: float


def find_best(
    structure: DetStructure,
    weight: np.ndarray,
    region: Region,
    deadline: float,
    start: Callable[[], np.ndarray | None],
    slack: float,
) -> Best | None:
    """The set of the region with the largest log c_S + Σ_S weight, or the best one found before the deadline.

    Parameters
    ----------
    structure : DetStructure
        A determinant whose coefficients are known to be nonnegative.
    weight : float64 array
        The amount that each item adds if it is in.
    region : Region
        A region with a set whose coefficient is not 0.
    deadline : float
        The time at which to stop, by `search_clock`.
    start : function
        Returns a set of the region with c_S ≠ 0, or None; called if adding items one by one finds none.
    slack : float
        How much better sets may be and still count as equal.
    """
    now = search_clock()
    climber = Climber(structure, weight, region)
    # changes for which the quotient of coefficients overflows or is NaN are not considered
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if not (climber.start_from_below() or climber.start_at(start())):
            return None
        climber.search(now + _SHARE * (deadline - now))
        search = _Regions(find_bounds(structure, weight), climber, slack)
        search.run(region, deadline)
    return Best(climber.best, search.bound)


class _Regions:
    """Best-first search: the region with the largest bound is split in two, at the least certain item.

    Attributes
    ----------
    bound : float
        An upper bound on all sets: the largest bound of a region that is open or was closed.
    """

    def __init__(self, bounds: Bounds, climber: Climber, slack: float):
        self.bounds, self.climber, self.slack = bounds, climber, slack
        self.closed = -np.inf  # the largest bound of a region that was pruned or is a single set
        self.open: list[tuple[float, int, Region, Tight | None]] = []  # −bound, number, region, its dual bound
        self.count = 0
        self.tried: set[bytes] = set()  # the sets from which local search has started

    @property
    def bound(self) -> float:
        return max(self.closed, -self.open[0][0]) if self.open else self.closed

    @property
    def threshold(self) -> float:
        """The value that the bound of a region must exceed; regions with a smaller bound are pruned."""
        return self.climber.value + self.slack

    def run(self, region: Region, deadline: float) -> None:
        """Split regions until all are pruned, time runs out, or the gap stops closing."""
        self._bound_region(region.with_codes(region.codes), np.inf, None, _ROOT_STEPS, deadline)
        gap, regions = np.inf, 0
        while self.open and search_clock() < deadline:
            if regions % _REGIONS == 0:
                if not self.bound - self.climber.value < 0.9 * gap:
                    return
                gap = self.bound - self.climber.value
            regions += 1
            negative, _, part, tight = heapq.heappop(self.open)
            if -negative <= self.threshold:
                self.closed = max(self.closed, -negative)
            else:
                self._split(part, -negative, tight, deadline)

    def _split(self, region: Region, bound: float, tight: Tight | None, deadline: float) -> None:
        """Decide the items that the dual bound decides, and then branch on the item whose x is nearest to ½."""
        if tight is not None:
            region, left_out = tight.dual.decide(region, self.climber.value)
            self.closed = max(self.closed, left_out)
        if not region.free.any():
            self._bound_region(region, bound, tight, _STEPS, deadline)
            return
        x = np.full(len(region.codes), 0.5) if tight is None else tight.x
        item = int(np.where(region.free, np.abs(x - 0.5), np.inf).argmin())
        for code in (1, 0):
            codes = region.codes.copy()
            codes[item] = code
            self._bound_region(region.with_codes(codes), bound, tight, _STEPS, deadline)

    def _bound_region(self, region: Region, bound: float, above: Tight | None, steps: int, deadline: float) -> None:
        """Bound a region, given the bound and the dual of one that contains it, and keep it unless it can be pruned."""
        if above is not None:
            bound = min(bound, above.dual.bound(region))
        if bound > self.threshold and self.bounds.hadamard is not None:
            bound = min(bound, self.bounds.hadamard.bound(region))
        tight, relaxation = above, self.bounds.relaxation
        if bound > self.threshold and relaxation is not None:
            start = (region.middle(), relaxation.first_scale()) if above is None else (above.x, above.log_scale)
            found = tighten(
                relaxation, region, start, steps, lambda b: b <= self.threshold or search_clock() > deadline
            )
            if found is not None:
                tight, bound = found, min(bound, found.bound)
        if tight is not None:
            self._try(region, tight, deadline)
        if bound <= self.threshold or not region.free.any():
            self.closed = max(self.closed, bound)
        else:
            heapq.heappush(self.open, (-bound, self.count, region, tight))
            self.count += 1

    def _try(self, region: Region, tight: Tight, deadline: float) -> None:
        """Start local search from the set that maximizes the dual bound, unless this was done before."""
        suggested = region.best(tight.dual.gains)
        if suggested is not None and suggested[1].tobytes() not in self.tried:
            self.tried.add(suggested[1].tobytes())
            self.climber.consider(suggested[1], deadline)

"""The sets of children among which the mode of a determinant is sought.

`sets` splits regions, and bounds (`relaxation`, `hadamard`) hold for all sets of one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Region:
    """The sets under consideration: the items that are in (1), out (0) or free (−1), and the size, if that is fixed.

    Attributes
    ----------
    codes : int8 array
        1, 0 or −1 for every item.
    size : int, optional
        How many of the `counted` items are in.
    counted : bool array
        The items that `size` counts.
    most : int
        The rank: all sets with more items have the coefficient 0.
    """

    codes: np.ndarray
    size: int | None
    counted: np.ndarray
    most: int

    def with_codes(self, codes: np.ndarray) -> Region:
        """The region with these codes, in which the items that the size or the rank determines are decided, too."""
        found = Region(codes, self.size, self.counted, self.most)
        among = found.free & self.counted if self.size is not None else found.free
        all_out = (found.capacity if found.remaining is None else found.remaining) == 0
        all_in = found.remaining is not None and found.remaining == int(among.sum())
        if all_out or all_in:
            return Region(np.where(among, np.int8(all_in), codes), self.size, self.counted, self.most)
        return found

    @property
    def free(self) -> np.ndarray:
        """The items that are not decided."""
        return self.codes < 0

    @property
    def remaining(self) -> int | None:
        """How many of the free counted items are in; None without a size."""
        return None if self.size is None else self.size - int((self.codes[self.counted] == 1).sum())

    @property
    def capacity(self) -> int:
        """How many free items may be in."""
        return self.most - int((self.codes == 1).sum())

    def best(self, gains: np.ndarray) -> tuple[float, np.ndarray] | None:
        """The largest sum of gains of a set of the region, and its indicator; None if there is no set."""
        chosen = (self.codes == 1) | (self.free & (gains > 0.0))
        if self.remaining is not None:
            among = np.flatnonzero(self.free & self.counted)
            if not 0 <= self.remaining <= len(among):
                return None
            chosen[among] = False
            chosen[among[np.argsort(-gains[among], kind="stable")[: self.remaining]]] = True
        elif self.capacity >= 0:
            among = np.flatnonzero(self.free & chosen)
            chosen[among[np.argsort(-gains[among], kind="stable")[self.capacity :]]] = False
        else:
            return None
        return float(gains[chosen].sum()), chosen

    def project(self, x: np.ndarray) -> np.ndarray:
        """The projection onto the convex hull of the region, without regard to `most`."""
        found = np.where(self.free, np.clip(x, 0.0, 1.0), self.codes)
        if self.remaining is not None:
            among = self.free & self.counted
            found[among] = _with_sum(x[among], self.remaining)
        return found

    def middle(self) -> np.ndarray:
        """A point that prefers no free item."""
        among = int((self.free & self.counted).sum())
        share = 0.5 if self.remaining is None else self.remaining / max(among, 1)
        return self.project(np.where(self.counted, share, 0.5))


def _with_sum(x: np.ndarray, total: float) -> np.ndarray:
    """The projection onto {0 ≤ y ≤ 1, Σ y = total}: x − τ, clipped, with τ by bisection."""
    low, high = x.min(initial=0.0) - 1.0, x.max(initial=0.0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(x - middle, 0.0, 1.0).sum() > total else (low, middle)
    return np.clip(x - (low + high) / 2, 0.0, 1.0)

"""A good set of children of a determinant, by local search; `sets` proves how good it is.

In det(M0 + U·diag(f)·Vᵀ), the set S has the coefficient c_S = det W_S, W_S = [[M0, U_S], [−V_Sᵀ, 0]]. At a set with
c_S ≠ 0 there is a matrix G, the *principal pivot transform* at S, such that for every set T of items

    c_{S △ T} / c_S = det G_TT,

so that single changes of S can be read off its diagonal, and exchanges of two items are 2 × 2 minors. After a change, G
is updated with O(n²) operations.
"""

from __future__ import annotations

import numpy as np

from pgcc.determinants.mode.region import Region
from pgcc.kernels.announce import search_clock
from pgcc.program.det_structure import DetStructure

# The smallest increase of the logarithm that counts as an improvement, and not as rounding.
_BETTER = 1e-9
# Iterated local search: the number of random changes before climbing again, the number of restarts, and the seed.
_PERTURBATION, _RESTARTS, _SEED = 4, 24, 0


class Climber:
    """Local search: the current set with its G, and the best set so far.

    Attributes
    ----------
    best : bool array
    value : float
        log c_S + Σ_S weight of the best set, in doubles.
    """

    def __init__(self, structure: DetStructure, weight: np.ndarray, region: Region):
        self.structure, self.weight, self.region = structure, weight, region
        self.best, self.value = np.zeros(len(weight), bool), -np.inf
        self.inside, self.here = self.best, -np.inf
        self.G = np.zeros((0, 0))

    def start_from_below(self) -> bool:
        """Start with the items observed to be in, and add the best items, one by one, until the size is reached."""
        if not self._go_to(self.region.codes == 1):
            return False
        for _ in range(self.region.remaining or 0):
            gains = np.where(self.region.free & self.region.counted & ~self.inside, self._gains(), -np.inf)
            top = int(gains.argmax())
            if not np.isfinite(gains[top]) or not self._change([top], float(gains[top])):
                return False
        return self.start_at(self.inside)

    def start_at(self, inside: np.ndarray | None) -> bool:
        """Start at a set of the region, which becomes the best one so far; return whether its coefficient is not 0."""
        if inside is None or not self._go_to(inside):
            return False
        self.best, self.value = self.inside.copy(), self.here
        return True

    def search(self, deadline: float) -> None:
        """Iterated local search: climb, then repeatedly make a few random changes to the best set and climb again."""
        rng = np.random.default_rng(_SEED)
        self.climb(deadline)
        for _ in range(_RESTARTS):
            if search_clock() > deadline or not self.region.free.any():
                return
            if not self._go_to(self.best):
                return
            for _ in range(_PERTURBATION):
                self._change_at_random(rng)
            self.climb(deadline)

    def climb(self, deadline: float) -> None:
        """Make the best change of one or two items until none improves the set; keep the best set."""
        while search_clock() < deadline:
            move = self._best_move()
            if move is None or not self._change(*move):
                break
        if self.here > self.value + _BETTER and self._go_to(self.inside) and self.here > self.value:
            self.best, self.value = self.inside.copy(), self.here

    def consider(self, inside: np.ndarray, deadline: float) -> None:
        """Climb from a set, if it is better than the best one."""
        value = log_coefficient(self.structure, inside) + float(self.weight[inside].sum())
        if value > self.value + _BETTER and self._go_to(inside):
            self.climb(deadline)

    def _go_to(self, inside: np.ndarray) -> bool:
        """Move to a set and compute G there; return False if its coefficient is 0, or numerically 0."""
        found = exchanges(self.structure, inside)
        if found is None:
            return False
        self.G, value = found
        self.inside, self.here = inside.copy(), value + float(self.weight[inside].sum())
        return True

    @property
    def _signs(self) -> np.ndarray:
        return np.where(self.inside, -1.0, 1.0)

    def _gains(self) -> np.ndarray:
        """The amount that changing each single item adds to the logarithm."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.diag(self.G) > 0.0, np.log(np.diag(self.G)), -np.inf) + self._signs * self.weight

    def _best_move(self) -> tuple[list[int], float] | None:
        """The best change of one item, or else of two, with its gain; None if none is an improvement."""
        region, gains = self.region, self._gains()
        single = region.free if region.size is None else region.free & ~region.counted
        if single.any():
            gains = np.where(single, gains, -np.inf)
            top = int(gains.argmax())
            if gains[top] > _BETTER:
                return [top], float(gains[top])
        best: tuple[list[int], float] | None = None
        for rows, columns in self._pairs():
            found = self._best_pair(rows, columns)
            if found is not None and (best is None or found[1] > best[1]):
                best = found
        return best if best is not None and best[1] > _BETTER else None

    def _pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pairs of arrays: an item of the first may be changed together with one of the second."""
        free, counted = self.region.free, self.region.counted
        if self.region.size is None:
            return [(np.flatnonzero(free), np.flatnonzero(free))]
        others = np.flatnonzero(free & ~counted)
        return [
            (np.flatnonzero(free & counted & self.inside), np.flatnonzero(free & counted & ~self.inside)),
            (others, others),
        ]

    def _best_pair(self, rows: np.ndarray, columns: np.ndarray) -> tuple[list[int], float] | None:
        """The best change of two items, one of `rows` and one of `columns`, by 2 × 2 minors of G."""
        if not (len(rows) and len(columns)):
            return None
        G, diagonal, change = self.G, np.diag(self.G), np.exp(np.clip(self._signs * self.weight, -300.0, 300.0))
        minors = np.outer(diagonal[rows], diagonal[columns])
        minors -= G[np.ix_(rows, columns)] * G[np.ix_(columns, rows)].T
        minors *= np.outer(change[rows], change[columns])
        minors[rows[:, None] == columns] = 0.0
        i, j = np.unravel_index(int(minors.argmax()), minors.shape)
        return ([int(rows[i]), int(columns[j])], float(np.log(minors[i, j]))) if minors[i, j] > 0.0 else None

    def _change(self, items: list[int], gain: float) -> bool:
        """Move to S △ T by a principal pivot transform of G; return False if its pivot is numerically singular."""
        try:
            pivot = np.linalg.inv(self.G[np.ix_(items, items)])
        except np.linalg.LinAlgError:
            return False
        left = self.G[:, items] @ pivot
        across = self.G[items]
        G = self.G - left @ across
        G[:, items], G[items] = left, -pivot @ across
        G[np.ix_(items, items)] = pivot
        inside = self.inside.copy()
        inside[items] ^= True
        self.G, self.inside, self.here = G, inside, self.here + gain
        return True

    def _change_at_random(self, rng: np.random.Generator) -> None:
        """Make a random change, unless it makes the coefficient far smaller."""
        pairs = [(rows, columns) for rows, columns in self._pairs() if len(rows) and len(columns)]
        if not pairs:
            return
        rows, columns = pairs[rng.integers(len(pairs))]
        i, j = int(rng.choice(rows)), int(rng.choice(columns))
        if i == j and self.region.size is not None and self.region.counted[i]:
            return
        items = [i] if i == j else [i, j]
        ratio = float(np.linalg.det(self.G[np.ix_(items, items)]))
        if ratio > 1e-6:
            self._change(items, float(np.log(ratio) + (self._signs * self.weight)[items].sum()))


def log_coefficient(structure: DetStructure, inside: np.ndarray) -> float:
    """log c_S, in doubles."""
    sign, log = np.linalg.slogdet(_bordered(structure, np.flatnonzero(inside)))
    return float(log) if sign > 0.0 else -np.inf


def _bordered(structure: DetStructure, items: np.ndarray) -> np.ndarray:
    """The bordered matrix W_S."""
    m0, u, v = structure.floats
    return np.block([[m0, u[:, items]], [-v[:, items].T, np.zeros((len(items), len(items)))]])


def exchanges(structure: DetStructure, inside: np.ndarray) -> tuple[np.ndarray, float] | None:
    """G at a set, and log c_S; None if c_S is 0, or numerically 0.

    Examples
    --------
    >>> from pgcc.ir.matrix import Matrix
    >>> one, L = np.eye(2), np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> G, log = exchanges(DetStructure((Matrix(one), Matrix(one), Matrix(L))), np.array([True, False]))
    >>> round(float(np.exp(log)), 6), round(float(G[1, 1]), 6)  # {1} has 2, {1, 2} has 5
    (2.0, 2.5)
    """
    _, u, v = structure.floats
    r, items = structure.rank, np.flatnonzero(inside)
    s, n = len(items), len(inside)
    W = _bordered(structure, items)
    right, left = np.zeros((r + s, n)), np.zeros((n, r + s))
    right[:r], left[:, :r] = u, v.T
    right[:, items], left[items] = 0.0, 0.0
    right[r + np.arange(s), items], left[items, r + np.arange(s)] = 1.0, 1.0
    sign, log = np.linalg.slogdet(W)
    if not sign > 0.0:
        return None
    try:
        G = left @ np.linalg.solve(W, right)
    except np.linalg.LinAlgError:
        return None
    return (G, float(log)) if np.isfinite(G).all() else None

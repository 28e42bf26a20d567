"""Branch and bound for the most probable assignment of any circuit, by marginals; and local search.

A partial assignment e is extended by one variable after another. With the marginals p_i given e, no completion of e is
more probable than

    Pr(e) · min_i max(p_i, 1 − p_i)

so that e is pruned if this does not exceed the probability of the best known assignment. The same holds where only some
variables are to be assigned, and the others are summed out. `mode` calls this.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.kernels.announce import search_clock
from pgcc.queries.distribution import Distribution
from pgcc.queries.marginals import marginals

# Upper bounds on the log-probabilities of all completions of partial assignments, and a good completion of each.
Upper = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
# The most partial assignments that are expanded together.
_MOST_EXPANDED = 64
# The most free variables with which exchanges of two variables are tried, too.
_MOST_SWAPS = 100
# The shares of the remaining time that one batch of expansions may take, and that `greedy` may take before the search.
_SHARE, _GREEDY_SHARE = 0.25, 0.5


class Search:
    """Best-first search: the partial assignment with the largest bound is expanded next.

    Parameters
    ----------
    distribution : Distribution
    codes : int8 array
        The evidence, which must be possible.
    logprob : float
        The log-probability of the evidence.
    best : (int8 array, float)
        An assignment that agrees with the evidence, to start with, and its log-probability.
    tolerance : float
        How much log-probabilities may differ and still count as equal.
    deadline : float
        The time at which to stop, by `search_clock`.
    over : mask
        The variables to be assigned; the others are summed out.
    upper : Upper, optional
        Further bounds.

    Attributes
    ----------
    best : int8 array
    logprob : float
        Its log-probability.
    """

    def __init__(
        self,
        distribution: Distribution,
        codes: np.ndarray,
        logprob: float,
        best: tuple[np.ndarray, float],
        tolerance: float,
        deadline: float,
        over: np.ndarray,
        upper: Upper | None = None,
    ):
        self.distribution, self.codes, self.deadline = distribution, codes, deadline
        self.over, self.upper = over, upper
        self.best, self.logprob = best
        self.slack = budget.of_pruning(tolerance)
        self.per_row = 0.0  # the seconds that it takes to expand a partial assignment
        self.count = 0
        self.left_out = -np.inf  # the largest bound of a pruned or complete assignment
        self.open: list[tuple[float, int, float, np.ndarray]] = []  # −bound, number, log-probability, codes
        self._push(logprob, logprob, codes)

    @property
    def bound(self) -> float:
        """An upper bound on the log-probability of every assignment."""
        return max(self.left_out, -self.open[0][0] if self.open else -np.inf) + self.slack

    def _push(self, bound: float, logprob: float, codes: np.ndarray) -> None:
        """Add a partial assignment to the heap, or prune it."""
        if bound > self.logprob + self.slack:
            heapq.heappush(self.open, (-bound, self.count, logprob, codes))
            self.count += 1
        else:
            self.left_out = max(self.left_out, bound)

    def run(self) -> None:
        """Search until every partial assignment is pruned or time runs out."""
        while self.open and -self.open[0][0] > self.logprob + self.slack:
            left = self.deadline - search_clock()
            if left <= self.per_row:
                return
            most = _MOST_EXPANDED if not self.per_row else max(1, int(_SHARE * left / self.per_row))
            most = min(most, max(1, 2 * self.count), _MOST_EXPANDED, len(self.open))
            batch = [heapq.heappop(self.open) for _ in range(most)]
            start = search_clock()
            self._expand(np.stack([codes for *_, codes in batch]), np.array([log for _, _, log, _ in batch]))
            self.per_row = (search_clock() - start) / most

    def _expand(self, codes: np.ndarray, logprob: np.ndarray) -> None:
        """Bound partial assignments by their marginals, and branch on the least certain variable of each."""
        given = Evidence.of_codes(self.distribution.variables, codes)
        posterior = marginals(self.distribution, given)[:, : codes.shape[1]]
        self._try(np.where(self.over, (posterior > 0.5).astype(np.int8), codes))
        larger = np.where((codes < 0) & self.over, np.maximum(posterior, 1.0 - posterior), np.inf)
        uncertain, rows = larger.argmin(axis=1), np.arange(len(codes))
        bounds = np.tile(logprob + np.log(larger[rows, uncertain]), 2)
        children = np.tile(codes, (2, 1))
        children[rows, uncertain], children[len(codes) + rows, uncertain] = 1, 0
        logs = self.distribution.logprobs(children)
        if self.upper is not None:
            above, rows = self.upper(children)
            bounds = np.minimum(bounds, above)
            self._try(rows)
        whole = (children[:, self.over] >= 0).all(axis=1)
        if whole.any():
            self._try(children[whole])
            self.left_out = max(self.left_out, float(logs[whole].max()))
        for child, log, bound in zip(children[~whole], logs[~whole].tolist(), bounds[~whole].tolist(), strict=True):
            self._push(min(log, bound), log, child)

    def _try(self, rows: np.ndarray) -> None:
        """Keep the best of these assignments if it is better than the best known."""
        logs = self.distribution.logprobs(rows)
        top = int(logs.argmax())
        if logs[top] > self.logprob:
            start = rows[top], float(logs[top])
            self.best, self.logprob = climb(self.distribution, self.codes, start, self.deadline, self.over)


def greedy(
    distribution: Distribution, codes: np.ndarray, deadline: float, over: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """A good assignment, by local search from two starts: the most certain variables first; and, if possible, all 0.

    From all 0, the best single changes add one item after another; for a DPP, this is greedy MAP inference. The result
    is None if neither start is available.
    """
    now = search_clock()
    deadline = now + _GREEDY_SHARE * (deadline - now)
    starts = np.stack([*_most_certain_first(distribution, codes, deadline, over), np.maximum(codes, 0)])
    starts = np.where(over, starts, codes)
    logs = distribution.logprobs(starts).tolist()
    ends = [
        climb(distribution, codes, (row, log), deadline, over)
        for row, log in zip(starts, logs, strict=True)
        if log > -np.inf
    ]
    return max(ends, key=lambda end: end[1], default=None)


def _most_certain_first(
    distribution: Distribution, codes: np.ndarray, deadline: float, over: np.ndarray
) -> list[np.ndarray]:
    """The assignment found by deciding the most certain variables first; an empty list if there is no time."""
    decided = codes.copy()
    while (free := (decided < 0) & over).any():
        start = search_clock()
        posterior = marginals(distribution, Evidence.of_codes(distribution.variables, decided))[0, : len(codes)]
        certainty = np.where(free, np.abs(posterior - 0.5), -1.0)
        now = certainty == 0.5  # all variables that are certain
        now[certainty.argmax()] = True
        decided[now] = posterior[now] > 0.5
        last = search_clock()
        left = int(((decided < 0) & over).sum())
        if last + (last - start) * left > deadline and left:
            return []
    return [decided]


def climb(
    distribution: Distribution, codes: np.ndarray, start: tuple[np.ndarray, float], deadline: float, over: np.ndarray
) -> tuple[np.ndarray, float]:
    """Make the best change of one unobserved variable, or exchange of two, until none improves the assignment."""
    free, (row, logprob) = np.flatnonzero((codes < 0) & over), start
    while len(free) and search_clock() < deadline:
        near = neighbours(row, free)
        logs = distribution.logprobs(near)
        top = int(logs.argmax())
        if not logs[top] > logprob + 4 * distribution.rtol:  # smaller differences may be errors, and lead to cycles
            break
        row, logprob = near[top], float(logs[top])
    return row, logprob


def neighbours(row: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The assignments that differ in one free variable, or exchange two (if there are not too many)."""
    flips = np.repeat(row[None], len(free), axis=0)
    flips[np.arange(len(free)), free] ^= 1
    if len(free) > _MOST_SWAPS:
        return flips
    ins, outs = free[row[free] == 1], free[row[free] == 0]
    i, j = (pairs.ravel() for pairs in np.meshgrid(ins, outs, indexing="ij"))
    swaps = np.repeat(row[None], len(i), axis=0)
    swaps[np.arange(len(i)), i], swaps[np.arange(len(i)), j] = 0, 1
    return np.concatenate([flips, swaps])

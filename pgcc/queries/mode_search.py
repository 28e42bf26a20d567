"""Branch and bound for the most probable assignments of any circuit, by marginals.

With marginals p_i given what is decided so far (e), no completion is more probable than

    Pr(e) · min_i max(p_i, 1 − p_i)

so a search that decides one variable after another can prune whatever cannot be better than the best it knows.
"""

from __future__ import annotations

import heapq
import time

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.queries.distribution import Distribution
from pgcc.queries.marginals import marginals

# The most partial assignments to expand together.
_TOGETHER = 64
# Up to this many variables, exchanging one that is in for one that is out is tried too.
_MOST_SWAPS = 100
# The share of the time that is left which one batch of questions may take, and the share of that before branching.
_SHARE, _BEFORE = 0.25, 0.5


class Search:
    """Best-first search: the partial assignment with the largest bound is expanded next.

    Parameters
    ----------
    distribution : Distribution
    codes : int8 array
        The evidence, which must be possible.
    logprob : float
        The log-probability of the evidence.
    best : int8 array
        An assignment that agrees with the evidence, to start with.
    tolerance : float
        How much log-probabilities may differ and still count as equal.
    deadline : float
        The time at which to stop, by `time.monotonic`.

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
    ):
        self.distribution, self.codes, self.deadline = distribution, codes, deadline
        self.best, self.logprob = best
        self.slack = budget.of_pruning(tolerance)
        self.per_row = 0.0  # seconds that one partial assignment takes
        self.count = 0
        self.left_out = -np.inf  # the largest bound that was left out
        self.open: list[tuple[float, int, float, np.ndarray]] = []  # −bound, tie, log Pr, codes
        self._push(logprob, logprob, codes)

    @property
    def bound(self) -> float:
        """An upper bound on the log-probability of every assignment."""
        return max(self.left_out, -self.open[0][0] if self.open else -np.inf) + self.slack

    def _push(self, bound: float, logprob: float, codes: np.ndarray) -> None:
        if bound > self.logprob + self.slack:
            heapq.heappush(self.open, (-bound, self.count, logprob, codes))
            self.count += 1
        else:
            self.left_out = max(self.left_out, bound)

    def run(self) -> None:
        """Search until nothing is left or time runs out."""
        while self.open and -self.open[0][0] > self.logprob + self.slack:
            left = self.deadline - time.monotonic()
            if left <= self.per_row:
                return
            most = _TOGETHER if not self.per_row else max(1, int(_SHARE * left / self.per_row))
            most = min(most, max(1, 2 * self.count), _TOGETHER, len(self.open))
            batch = [heapq.heappop(self.open) for _ in range(most)]
            start = time.monotonic()
            self._expand(np.stack([codes for *_, codes in batch]), np.array([log for _, _, log, _ in batch]))
            self.per_row = (time.monotonic() - start) / most

    def _expand(self, codes: np.ndarray, logprob: np.ndarray) -> None:
        """Bound partial assignments by their marginals, and branch on the least certain variable of each."""
        posterior = marginals(self.distribution, Evidence(self.distribution.variables, codes))
        self._try((posterior > 0.5).astype(np.int8))
        larger = np.where(codes < 0, np.maximum(posterior, 1.0 - posterior), np.inf)
        doubtful, rows = larger.argmin(axis=1), np.arange(len(codes))
        bounds = np.tile(logprob + np.log(larger[rows, doubtful]), 2)
        children = np.tile(codes, (2, 1))
        children[rows, doubtful], children[len(codes) + rows, doubtful] = 1, 0
        logs = self.distribution.logprobs(children)
        whole = (children >= 0).all(axis=1)
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
            self.best, self.logprob = climb(self.distribution, self.codes, (rows[top], float(logs[top])), self.deadline)


def greedy(distribution: Distribution, codes: np.ndarray, deadline: float) -> tuple[np.ndarray, float] | None:
    """A good assignment, in two ways: decide the most certain variables first; and, if possible, start with nothing in.

    Starting with nothing in, the best single changes add one item after another; for a DPP, this is the greedy MAP. The
    result is None if there is no time for either.
    """
    now = time.monotonic()
    deadline = now + _BEFORE * (deadline - now)
    starts = np.stack([*_least_doubtful_first(distribution, codes, deadline), np.maximum(codes, 0)])
    logs = distribution.logprobs(starts).tolist()
    ends = [
        climb(distribution, codes, (row, log), deadline) for row, log in zip(starts, logs, strict=True) if log > -np.inf
    ]
    return max(ends, key=lambda end: end[1], default=None)


def _least_doubtful_first(distribution: Distribution, codes: np.ndarray, deadline: float) -> list[np.ndarray]:
    """The assignment found by deciding the most certain variables first; None if there is no time."""
    decided = codes.copy()
    while (decided < 0).any():
        start = time.monotonic()
        posterior = marginals(distribution, Evidence(distribution.variables, decided))[0]
        certainty = np.where(decided < 0, np.abs(posterior - 0.5), -1.0)
        now = certainty == 0.5  # what is certain anyhow
        now[certainty.argmax()] = True
        decided[now] = posterior[now] > 0.5
        last = time.monotonic()
        if last + (last - start) * int((decided < 0).sum()) > deadline and (decided < 0).any():
            return []
    return [decided]


def climb(
    distribution: Distribution, codes: np.ndarray, start: tuple[np.ndarray, float], deadline: float
) -> tuple[np.ndarray, float]:
    """Make the best change of one unobserved variable, or exchange of two, until none improves the assignment."""
    free, (row, logprob) = np.flatnonzero(codes < 0), start
    while len(free) and time.monotonic() < deadline:
        near = neighbours(row, free)
        logs = distribution.logprobs(near)
        top = int(logs.argmax())
        if not logs[top] > logprob + 4 * distribution.rtol:  # what is the same but for errors leads round in circles
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

"""The most probable assignment: branch and bound from a greedy start.

To find it is NP-hard. With marginals p_i given what is decided so far (e), no completion is more probable than

    Pr(e) · min_i max(p_i, 1 − p_i)

so that a search that decides one variable after another can leave out what cannot be better than the best it knows. It
stops when nothing is left, or after so many partial assignments, and then says how much better an answer could be.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.errors import PgccError
from pgcc.ir.numbers import UNIT
from pgcc.queries.distribution import Distribution
from pgcc.queries.marginals import marginals

# Partial assignments that are looked at together.
_TOGETHER = 64
# Variables for which exchanging one that is in for one that is out is tried too.
_MOST_SWAPS = 100


@dataclass(frozen=True)
class Mode:
    """The answer of `Model.mode`.

    Attributes
    ----------
    assignment : dict
        Every variable's value.
    logprob : float
        Its log-probability (with the evidence, not given it).
    bound : float
        No assignment has a larger log-probability.
    tolerance : float
        How much log-probabilities may differ and still count as the same: `rtol`, and what rounding them takes.
    """

    assignment: dict[str, int]
    logprob: float
    bound: float
    tolerance: float = 0.0

    @property
    def gap(self) -> float:
        """How much larger, at most, the best log-probability is."""
        return max(0.0, self.bound - self.logprob)

    @property
    def exact(self) -> bool:
        """Whether it is proved that nothing is more probable (by more than `tolerance`)."""
        return self.bound <= self.logprob + self.tolerance

    def __repr__(self) -> str:
        inside = [name for name, value in self.assignment.items() if value]
        shown = ", ".join(inside[:12]) + (", …" if len(inside) > 12 else "")
        best = "the most probable" if self.exact else f"within {self.gap:.4g} nats of the most probable"
        return f"<Mode: {{{shown}}}, log-probability {self.logprob:.6g}, {best}>"


def mode(distribution: Distribution, given: Evidence, nodes: int) -> list[Mode]:
    """The most probable assignment that agrees with each row, after at most so many partial assignments."""
    if isinstance(nodes, bool) or not isinstance(nodes, (int, np.integer)) or nodes < 0:
        raise PgccError(f"nodes={nodes!r} is not how many partial assignments to look at: a number ≥ 0")
    base = distribution.possible(given)
    tolerance, distribution = (
        distribution.rtol,
        replace(distribution, rtol=budget.of_search(distribution.rtol)),
    )
    return [
        _Search(distribution, given.chunk(slice(row, row + 1))[0], float(base[row]), tolerance).run(nodes)
        for row in range(given.rows)
    ]


class _Search:
    """Best first: the partial assignment that promises most is looked at next."""

    def __init__(self, distribution: Distribution, codes: np.ndarray, logprob: float, tolerance: float):
        self.distribution, self.codes = distribution, codes
        self.best, self.logprob = greedy(distribution, codes)
        # The errors of logarithms grow with their size.
        self.tolerance = tolerance + 64 * UNIT * abs(self.logprob)
        self.slack = budget.of_pruning(self.tolerance)
        self.count = 0
        self.open: list[tuple[float, int, float, np.ndarray]] = []  # −bound, tie, log Pr, codes
        self._push(logprob, logprob, codes)

    def _push(self, bound: float, logprob: float, codes: np.ndarray) -> None:
        if bound > self.logprob + self.slack:
            heapq.heappush(self.open, (-bound, self.count, logprob, codes))
            self.count += 1

    def run(self, nodes: int) -> Mode:
        """Search until nothing is left or `nodes` partial assignments were looked at."""
        while self.open and nodes > 0 and -self.open[0][0] > self.logprob + self.slack:
            batch = [heapq.heappop(self.open) for _ in range(min(_TOGETHER, nodes, len(self.open)))]
            nodes -= len(batch)
            self._expand(np.stack([codes for *_, codes in batch]), np.array([log for _, _, log, _ in batch]))
        names = self.distribution.variables
        assignment = dict(zip(names, self.best.tolist(), strict=True))
        logprob = float(self.distribution.logprobs(self.best[None], relative=True)[0])
        left = -self.open[0][0] + self.slack if self.open else -np.inf
        return Mode(assignment, logprob, max(logprob + self.tolerance, left), self.tolerance)

    def _expand(self, codes: np.ndarray, logprob: np.ndarray) -> None:
        """Bound partial assignments by their marginals, and decide the most doubtful variable of each, both ways."""
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
        for child, log, bound in zip(children[~whole], logs[~whole].tolist(), bounds[~whole].tolist(), strict=True):
            self._push(min(log, bound), log, child)

    def _try(self, rows: np.ndarray) -> None:
        """Keep the best of these assignments if it is better than what is known."""
        logs = self.distribution.logprobs(rows)
        top = int(logs.argmax())
        if logs[top] > self.logprob:
            self.best, self.logprob = climb(self.distribution, self.codes, rows[top], float(logs[top]))


def greedy(distribution: Distribution, codes: np.ndarray) -> tuple[np.ndarray, float]:
    """Two ways to a good assignment: decide the least doubtful first; and, where it can be, start with nothing in.

    From nothing, the best single changes add one item after another: for a DPP, its greedy MAP.
    """
    decided = codes.copy()
    while (decided < 0).any():
        posterior = marginals(distribution, Evidence(distribution.variables, decided))[0]
        certainty = np.where(decided < 0, np.abs(posterior - 0.5), -1.0)
        now = certainty == 0.5  # what is certain anyhow
        now[certainty.argmax()] = True
        decided[now] = posterior[now] > 0.5
    starts = np.stack([decided, np.maximum(codes, 0)])
    logs = distribution.logprobs(starts).tolist()
    ends = [climb(distribution, codes, row, log) for row, log in zip(starts, logs, strict=True) if log > -np.inf]
    return max(ends, key=lambda end: end[1])


def climb(distribution: Distribution, codes: np.ndarray, row: np.ndarray, logprob: float) -> tuple[np.ndarray, float]:
    """Make the best change of one unobserved variable, or exchange of two, until none is an improvement."""
    free = np.flatnonzero(codes < 0)
    while len(free):
        neighbours = _neighbours(row, free)
        logs = distribution.logprobs(neighbours)
        top = int(logs.argmax())
        if not logs[top] > logprob + 4 * distribution.rtol:  # what is the same but for errors leads round in circles
            break
        row, logprob = neighbours[top], float(logs[top])
    return row, logprob


def _neighbours(row: np.ndarray, free: np.ndarray) -> np.ndarray:
    flips = np.repeat(row[None], len(free), axis=0)
    flips[np.arange(len(free)), free] ^= 1
    if len(free) > _MOST_SWAPS:
        return flips
    ins, outs = free[row[free] == 1], free[row[free] == 0]
    i, j = (pairs.ravel() for pairs in np.meshgrid(ins, outs, indexing="ij"))
    swaps = np.repeat(row[None], len(i), axis=0)
    swaps[np.arange(len(i)), i], swaps[np.arange(len(i)), j] = 0, 1
    return np.concatenate([flips, swaps])

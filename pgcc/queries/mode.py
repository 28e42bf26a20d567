"""The most probable assignments (`Model.mode`, `Model.top`): an assignment, with an upper bound on all others.

Circuits that are proved to be deterministic have their modes in one pass (`evaluate.max_product`), many rows at a time,
and the next assignments in order. Otherwise, finding the most probable assignment is NP-hard, even for DPPs. The
structure of the circuit is exploited first: by the same pass, in which some sums stay sums, or, where there are
determinants, by `mode_parts`; for spanning trees and arborescences the result is then exact. Otherwise branch and bound
with these bounds and marginals (`mode_search`) runs until the gap is closed or time runs out. The k best assignments
follow by Lawler's procedure. The same search finds the most probable assignment of some variables, with the others
summed out.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence, read_names
from pgcc.errors import PgccError, brief
from pgcc.evaluate.max_product import MaxProduct, MaxSum
from pgcc.ir.domains import Domains
from pgcc.ir.numbers import UNIT, as_index
from pgcc.kernels.announce import search_clock
from pgcc.locks import cached_property
from pgcc.progress import waiting
from pgcc.queries.assignments import Assignments
from pgcc.queries.distribution import Distribution
from pgcc.queries.mode_parts import Structure, by_structure
from pgcc.queries.mode_search import Search, Upper, greedy, neighbours
from pgcc.queries.sampling import draw
from pgcc.validity.standing import by_signs

# The most free variables with which a circuit is searched by marginals, although its structure has given a bound.
_MOST_BRANCHED = 64
# The most assignments of which all are tried to find the most probable ones.
_MOST_LISTED = 1 << 12
# Where a search for one assignment ends early, the mode is the best of so many; and the seconds to look for the others.
_SHORT_LIST, _LEAST_AGAIN = 4, 0.05
_ROWS_AT_ONCE = 1 << 14  # of deterministic circuits
_SEED = 0


@dataclass(frozen=True)
class Mode:
    """A most probable assignment, as returned by `Model.mode` and `Model.top`.

    Attributes
    ----------
    assignment : dict
        The value of every variable, or of those that were asked about: 1 or 0, or its state.
    logprob : float
        Its log-probability (jointly with the evidence, not conditional on it).
    bound : float
        An upper bound on the log-probability of every assignment; in `Model.top`, of every one not listed before.
    tolerance : float
        How much log-probabilities may differ and still count as equal: `rtol`, plus the rounding of logarithms.
    rank : int
        1 for the most probable assignment, 2 for the next, and so on.
    condition : str or None
        What the bound takes for granted, where that is not proved (see `Model.standing`): that no coefficient is
        negative. A search leaves assignments out because of what their parts have together.
    domains : Domains or None
        The states of the variables, if some have states.

    Examples
    --------
    >>> import pgcc
    >>> best = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).mode()
    >>> best.assignment, round(best.logprob, 6), best.exact
    ({'a': 1, 'b': 1}, -0.916291, True)
    """

    assignment: dict[str, Any]
    logprob: float
    bound: float
    tolerance: float = 0.0
    rank: int = 1
    condition: str | None = None
    domains: Domains | None = field(default=None, repr=False, compare=False)

    @property
    def inside(self) -> list[str]:
        """What is in, in words: the variables that are 1, and the states of those that have some."""
        plain = {name for name, domain in (self.domains or {}).items() if domain.is_plain}
        plain = plain if self.domains is not None else set(self.assignment)
        return [
            name if name in plain else f"{name}={v}" for name, v in self.assignment.items() if v or name not in plain
        ]

    @property
    def gap(self) -> float:
        """An upper bound on how much larger the best log-probability is."""
        return max(0.0, self.bound - self.logprob)

    @property
    def exact(self) -> bool:
        """Whether it is proved, without a condition, that no assignment is more probable (by more than `tolerance`)."""
        return self._is_closed and self.condition is None

    @property
    def _is_closed(self) -> bool:
        return self.bound <= self.logprob + self.tolerance

    def _repr_html_(self) -> str:
        """What notebooks show: the set, its probability, and whether it is proved to be the best."""
        from pgcc.draw.html import mode_html

        return mode_html(self)

    def __repr__(self) -> str:
        inside = self.inside
        shown = ", ".join(inside[:12]) + (", …" if len(inside) > 12 else "")
        place = "the most probable" if self.rank == 1 else f"number {self.rank} of the most probable"
        best = place if self._is_closed else f"within {self.gap:.4g} nats of {place}"
        best += "" if self.condition is None else f" if {self.condition}"
        return f"<Mode: {{{shown}}}, log-probability {self.logprob:.6g}, {best}>"


@waiting("searching for the mode")
def mode(distribution: Distribution, given: Evidence, deadline: float, over: Any = None) -> list[Mode]:
    """The most probable assignment that agrees with each row; the rows share the time until the deadline.

    over : the names of some variables, to be assigned while the others are summed out.
    """
    finder, found = _Finder(distribution, over), []
    if finder.largest is not None and finder.over.all():
        for rows in _blocks(given.rows):
            found += finder.all_modes(given.chunk(rows), given, rows.start)
        return found
    for row, codes, share in _with_deadlines(given, deadline):
        one = finder.mode(codes, share)
        if one is None:
            raise distribution.impossible(given, row)
        found.append(one)
    return found


@waiting("searching for the most probable sets")
def top(distribution: Distribution, given: Evidence, k: int, deadline: float) -> list[list[Mode]]:
    """The k most probable assignments that agree with each row, the most probable first."""
    finder, found = _Finder(distribution), []
    for row, codes, share in _with_deadlines(given, deadline):
        listed = finder.list_best(codes, k, share)
        if not listed:
            raise distribution.impossible(given, row)
        found.append([replace(one, rank=rank) for rank, one in enumerate(listed, 1)])
    return found


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(first, min(first + _ROWS_AT_ONCE, rows)) for first in range(0, rows, _ROWS_AT_ONCE))


def _with_deadlines(given: Evidence, deadline: float) -> Iterator[tuple[int, np.ndarray, float]]:
    """(row number, codes, deadline) for the rows of evidence; the remaining time is divided evenly among them."""
    for row in range(given.rows):
        now = search_clock()
        yield row, given.chunk(slice(row, row + 1))[0], now + (deadline - now) / (given.rows - row)


def labelled(distribution: Distribution, rows: np.ndarray, asked: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The values of variables, all by default, in complete rows of codes: 1 or 0, or its state."""
    domains, names = distribution.circuit.domains, list(distribution.column) if asked is None else asked
    if domains is None:
        values = rows[:, distribution.places(names)].tolist()
        return [dict(zip(names, row, strict=True)) for row in values]
    labels = [domains[name].states for name in names]
    states = domains.states_in(rows)[:, np.array([distribution.column[name] for name in names], np.int64)].tolist()
    return [{name: of[i] for name, of, i in zip(names, labels, row, strict=True)} for row in states]


class _Best(NamedTuple):
    """The best assignment found that agrees with some codes, and an upper bound on all that do."""

    row: np.ndarray
    logprob: float
    bound: float


class _Finder:
    """Searches for the most probable assignments of one distribution."""

    def __init__(self, distribution: Distribution, over: Any = None):
        self.rtol, self.asked = distribution.rtol, distribution
        self.distribution = replace(distribution, rtol=budget.of_search(distribution.rtol))
        compiled = distribution.compiled
        asked = None if over is None else set(read_names(over, distribution.column))
        self.names = None if asked is None else [name for name in distribution.column if name in asked]
        self.over = np.zeros(len(distribution.variables), bool)
        self.over[distribution.columns_of(self.names)] = True
        standing = distribution.standing
        is_proved = (standing is not None and standing.proved) or by_signs(compiled) is not None
        self.condition = None if is_proved else "no coefficient is negative, which is not proved"
        self.largest: MaxProduct | None = compiled.max_product if compiled.decomposable else None

    @cached_property
    def structure(self) -> Structure | None:
        """The structure of a circuit with determinants, where it says something of the question."""
        compiled = self.distribution.compiled
        is_read = compiled.decomposable and compiled.program.has_det and self.over.all()
        return Structure(compiled.homogenized) if is_read else None

    @cached_property
    def upper(self) -> Upper | None:
        """Upper bounds, of a circuit without determinants and negative numbers."""
        compiled = self.distribution.compiled
        if not compiled.decomposable or compiled.program.signed or compiled.program.has_det:
            return None
        sums = MaxSum(compiled.homogenized, self.over, self.largest is not None)

        def upper(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            logs, rows = sums.best(self.distribution.compiled.closed(codes))
            return self._divided(sums.upper(logs)), np.where(self.over, rows, codes)

        return upper

    def _divided(self, upper: np.ndarray) -> np.ndarray:
        """Upper bounds on log-probabilities, from those on the logarithms of values, which are divided by the total."""
        total = self.distribution.total
        log = 0.0 if total is None else float(total.logs()[0])
        with np.errstate(invalid="ignore"):
            error = 8.0 * UNIT * (np.abs(upper) + abs(log)) - math.log1p(-budget.of_total(self.rtol))
            return np.where(np.isneginf(upper), -np.inf, upper - log + error)

    def tolerance(self, logprob: float) -> float:
        """The difference up to which log-probabilities count as equal: errors of logarithms grow with their size."""
        return self.rtol + 64 * UNIT * abs(logprob)

    @property
    def highest(self) -> float:
        """An upper bound on every log-probability; a raw polynomial has none."""
        return math.inf if self.distribution.total is None else self.above(0.0)

    def above(self, logprob: float) -> float:
        """An upper bound on a log-probability that was computed to its share of the relative error `rtol`."""
        share = budget.of_value(self.rtol)
        return logprob - math.log1p(-share) + 8.0 * UNIT * abs(logprob)

    def answer(self, best: _Best, bound: float) -> Mode:
        """The `Mode` of an assignment, with its log-probability recomputed to a relative error."""
        return self.answers(best.row[None], np.array([bound]))[0]

    def answers(self, rows: np.ndarray, bounds: np.ndarray) -> list[Mode]:
        """The `Mode` of each assignment, with a bound on the log-probabilities of all others."""
        distribution, likelihood = self.distribution, self.distribution.log_likelihood
        logs = (distribution.logprobs(rows, relative=True) + likelihood).tolist()
        named, found = labelled(distribution, rows, self.names), []
        for assignment, logprob, bound in zip(named, logs, (bounds + likelihood).tolist(), strict=True):
            tolerance = self.tolerance(logprob) + 64 * UNIT * abs(likelihood)
            upper = max(logprob + tolerance, bound)
            domains = distribution.circuit.domains
            found.append(Mode(assignment, logprob, upper, tolerance, condition=self.condition, domains=domains))
        return found

    # -- deterministic circuits --------------------------------------------------------------------------------------

    def all_modes(self, codes: np.ndarray, given: Evidence, first: int) -> list[Mode]:
        """The most probable assignment that agrees with each row of codes, the rows of the evidence from `first` on."""
        assert self.largest is not None
        logs, rows = self.largest.best(self.distribution.compiled.closed(codes))
        for row in np.flatnonzero(np.isneginf(logs))[:1].tolist():
            raise self.distribution.impossible(given, first + row)
        return self.answers(rows, self._divided(self.largest.upper(logs)))

    def _list_largest(self, codes: np.ndarray, k: int, deadline: float) -> list[Mode]:
        """The k most probable assignments, in order; fewer if time runs out."""
        assert self.largest is not None
        logs, rows = [], []
        for log, row in islice(self.largest.largest(self.distribution.compiled.closed(codes[None])[0]), k):
            logs.append(log)
            rows.append(row)
            if search_clock() > deadline:
                break
        if not rows:
            return []
        found = self.answers(np.stack(rows), self._divided(self.largest.upper(np.array(logs))))
        return sorted(found, key=lambda one: -one.logprob)

    # -- one assignment ----------------------------------------------------------------------------------------------

    def mode(self, codes: np.ndarray, deadline: float) -> Mode | None:
        """The most probable assignment that agrees with the codes; None if none is possible.

        All assignments are tried if there are few and some variables are summed out. If the search ends without a
        proof, it goes on from the next ones for as long again: it may have missed them.
        """
        if not self.over.all() and self._all(codes).count <= _MOST_LISTED:
            return next(iter(self._list_all(codes, 1)), None)
        start = search_clock()
        best = self.best(codes, self.highest, deadline)
        if best is None:
            return None
        now = search_clock()
        if best.bound <= best.logprob + self.tolerance(best.logprob) or now >= deadline or not self.over.all():
            return self.answer(best, best.bound)
        again = min(deadline, now + max(now - start, _LEAST_AGAIN))
        return _Partition(self, _SHORT_LIST).run(_Part(codes, best.bound, best), again)[0]

    def best(self, codes: np.ndarray, above: float, deadline: float) -> _Best | None:
        """The most probable assignment that agrees with the codes; None if none is possible.

        above : a known upper bound on its log-probability. The probability of the codes themselves, which may take
        longer than the search, is computed only if the structure of the circuit does not give a final result.
        """
        best, bound = self._by_structure(codes, above, deadline)
        if bound == -np.inf:
            return None
        if best is not None and (bound <= best[1] + self.tolerance(best[1]) or self._is_final(bound, codes)):
            return _Best(*best, bound)
        distribution, logprob = self.distribution, self._logprob(codes)
        if logprob == -np.inf:
            return None
        bound = min(bound, self.above(logprob))
        if best is not None and self.upper is None and bound < logprob and int((codes < 0).sum()) > _MOST_BRANCHED:
            return _Best(*best, bound)
        ends = [best, greedy(distribution, codes, deadline, self.over)]
        best = max((end for end in ends if end is not None), key=lambda end: end[1], default=None)
        if best is None:
            row = np.where(self.over, self._draw(codes), codes)
            best = row, float(distribution.logprobs(row[None])[0])
        search = Search(distribution, codes, logprob, best, self.tolerance(best[1]), deadline, self.over, self.upper)
        search.run()
        return _Best(search.best, search.logprob, min(bound, search.bound))

    def _is_final(self, bound: float, codes: np.ndarray) -> bool:
        """Whether a search by marginals is not worthwhile: the circuit is one large determinant with a finite bound."""
        is_det = self.structure is not None and self.structure.is_det
        return is_det and bound < np.inf and int((codes < 0).sum()) > _MOST_BRANCHED

    def _by_structure(
        self, codes: np.ndarray, above: float, deadline: float
    ) -> tuple[tuple[np.ndarray, float] | None, float]:
        """An assignment and an upper bound from the structure of the circuit; at worst None and the known bound."""
        if self.upper is not None:
            bounds, rows = self.upper(codes[None])
            row, bound = rows[0], float(bounds[0])
        elif self.structure is not None:
            now, share = search_clock(), 1.0 if self.structure.is_det else 0.5
            until, slack = now + share * (deadline - now), budget.of_pruning(self.rtol)
            found = by_structure(self.structure, codes, until, lambda: self._start(codes), slack)
            if found is None:
                return None, above
            row, bound = found.row, float(self._divided(np.array(found.bound)))
        else:
            return None, above
        if bound == -np.inf:
            return None, -np.inf
        log = float(self.distribution.logprobs(row[None])[0])
        return (row, log) if log > -np.inf else None, min(bound, above)

    def _logprob(self, codes: np.ndarray) -> float:
        """The log-probability of the codes."""
        if self.distribution.total is not None and (codes < 0).all():
            return 0.0
        return float(self.asked.logprobs(codes[None], budget.of_value(self.rtol))[0])

    def _start(self, codes: np.ndarray) -> np.ndarray | None:
        """Some possible assignment that agrees with the codes; None if there is none."""
        return None if self._logprob(codes) == -np.inf else self._draw(codes)

    def _draw(self, codes: np.ndarray) -> np.ndarray:
        """A sample that agrees with the codes, which are possible."""
        out = np.empty((1, len(codes)), np.int8)
        draw(self.distribution, codes, _SEED, 0, out, 1, lambda _: None)
        return out[0]

    # -- several assignments -----------------------------------------------------------------------------------------

    def list_best(self, codes: np.ndarray, k: int, deadline: float) -> list[Mode]:
        """The k most probable assignments, or all possible ones if there are fewer."""
        if self.largest is not None:
            return self._list_largest(codes, k, deadline)
        if self._all(codes).count <= _MOST_LISTED:
            return self._list_all(codes, k)
        return _Partition(self, k).run(_Part(codes, self.highest), deadline)

    def _all(self, codes: np.ndarray) -> Assignments:
        """All assignments that agree with the codes."""
        return Assignments.of(self.distribution.circuit, codes, np.flatnonzero(self.over))

    def _list_all(self, codes: np.ndarray, k: int) -> list[Mode]:
        """The k most probable assignments, by enumeration."""
        everything = self._all(codes)
        rows = everything.rows(slice(0, everything.count))
        logs = self.distribution.logprobs(rows)
        order = np.argsort(-logs, kind="stable")[:k].tolist()
        order = [i for i in order if logs[i] > -np.inf]
        listed = self.answers(rows[order], np.full(len(order), -np.inf)) if order else []
        return [replace(one, condition=None) for one in listed]  # all were looked at


class _Part(NamedTuple):
    """The assignments that agree with some codes; none of them is listed yet."""

    codes: np.ndarray
    bound: float
    best: _Best | None = None  # None: not searched yet


class _Partition:
    """Lawler's procedure: when the best assignment of a part is listed, the part is split, one part per free variable.

    The other assignments of the part are divided by the first variable in which they differ from the best one.
    """

    def __init__(self, finder: _Finder, k: int):
        self.finder, self.k = finder, k
        self.count = 0
        self.unseen: list[tuple[float, int, _Part]] = []  # a heap of parts not searched yet: −bound, number
        self.seen: list[tuple[float, int, _Part]] = []  # of searched parts: −logprob of the best assignment, number

    def run(self, everything: _Part, deadline: float) -> list[Mode]:
        """The assignments, the most probable first, until time runs out; after that, neighbours of those listed.

        One bound holds for all of them: that on what is not listed.
        """
        listed: list[_Best] = []
        self._put(everything)
        while len(listed) < self.k:
            part = self._next(deadline, self.k - len(listed), is_first=not listed)
            if part is None or part.best is None:
                break
            listed.append(part.best)
            self._divide(part.codes, part.best)
        bound = max((part.bound for *_, part in self.unseen + self.seen), default=-math.inf)
        if len(listed) < self.k and self.unseen:
            listed += self._neighbours(everything.codes, [best.row for best in listed], self.k - len(listed))
        # parts that were not searched to the end may hold better assignments than those before them
        return sorted((self.finder.answer(best, bound) for best in listed), key=lambda one: -one.logprob)

    def _put(self, part: _Part) -> None:
        heap, top = (self.unseen, part.bound) if part.best is None else (self.seen, part.best.logprob)
        heapq.heappush(heap, (-top, self.count, part))
        self.count += 1

    def _next(self, deadline: float, wanted: int, is_first: bool) -> _Part | None:
        """The part with the best known assignment of all, removed from the heap."""
        while self.unseen and (not self.seen or -self.unseen[0][0] > -self.seen[0][0]):
            now = search_clock()
            if now > deadline and (self.seen or not is_first):  # the first part is searched in any case
                break
            _, _, part = heapq.heappop(self.unseen)
            share = now + (deadline - now) / (wanted * min(len(self.unseen) + 1, 8))
            best = self.finder.best(part.codes, part.bound, share)
            if best is not None:
                self._put(_Part(part.codes, best.bound, best))
        return heapq.heappop(self.seen)[-1] if self.seen else None

    def _divide(self, codes: np.ndarray, best: _Best) -> None:
        """Split the part of the assignment that was just listed."""
        free = np.flatnonzero(codes < 0)
        parts = np.repeat(codes[None], len(free), axis=0)
        for i, variable in enumerate(free.tolist()):
            parts[i, free[:i]] = best.row[free[:i]]
            parts[i, variable] = 1 - best.row[variable]
        for part in parts:
            self._put(_Part(part, best.bound))

    def _neighbours(self, codes: np.ndarray, rows: list[np.ndarray], wanted: int) -> list[_Best]:
        """If time has run out: the best assignments that differ from a listed one by one change or exchange."""
        known = {row.tobytes() for row in rows}
        near = {other.tobytes(): other for row in rows for other in neighbours(row, np.flatnonzero(codes < 0))}
        found = [row for name, row in near.items() if name not in known]
        if not found:
            return []
        logs = self.finder.distribution.logprobs(np.stack(found))
        order = [i for i in np.argsort(-logs, kind="stable").tolist() if logs[i] > -math.inf][:wanted]
        return [_Best(found[i], float(logs[i]), math.inf) for i in order]


def until(time_limit: Any) -> float:
    """The deadline of a question that is asked now, by `search_clock`."""
    try:
        seconds = -1.0 if isinstance(time_limit, (bool, np.bool_, str)) else float(time_limit)
    except (TypeError, ValueError, OverflowError):
        seconds = -1.0
    if not seconds > 0.0:
        raise PgccError(
            f"time_limit={brief(time_limit)} is not how long to search: a number of seconds, above 0",
            argument="time_limit",
        )
    return search_clock() + seconds


def as_count(k: Any) -> int:
    """How many assignments to list."""
    count = as_index(k)
    if count is None or count < 1:
        raise PgccError(f"k={brief(k)} is not how many assignments to list: a number, 1 or more", argument="k")
    return count

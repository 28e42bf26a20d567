"""A race of runs: all begin with a few epochs, and those go on that may add something to the stack of all.

Without a budget there are rungs: all do the same part of their epochs, and then those are out that would add nothing to
the stack even if they gained as much again. What happens depends on the data and the seed only. With a budget, seconds
go to those that may add most to the stack, and the learning rates of their last epochs fall to the end within it.
"""

from __future__ import annotations

import math
import queue
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pgcc.cluster import HERE, Crew, Lost
from pgcc.interrupts import StoppableThread, Stopped
from pgcc.learn.common.checkpoint import Checkpoint
from pgcc.learn.common.estimator import Estimator
from pgcc.learn.common.training import Run, write_runs
from pgcc.learn.ensembles.entrants import Clock, Entrant
from pgcc.learn.ensembles.stacking import potentials, stacking_weights
from pgcc.learn.tables.data_split import DataSplit

# The parts of its epochs after which an entrant may be out, and the nats that it may add with which it is not.
_RUNGS, _HOPELESS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0), 2e-4
# What an entrant is expected to gain at least while its learning rate falls; and if nothing is known about its gain.
_LEAST_GAIN, _UNKNOWN_GAIN = 0.02, 1.0
# With a budget: the first epochs of those that begin, the part of what is left that these may take, if their kind
# has at least so much weight, or less; the part after which one without an epoch is given up.
_FIRST, _SHARE, _PROMISING, _LITTLE, _LATE = 3, 0.1, 0.2, 0.02, 0.15
# How many times as long the first of its kind runs at first as others.
_NEW_KIND = 4.0
# The part of a budget that an entrant runs, at least.
_LEAST_LEG = 0.01
# Seconds between two looks.
_TICK = 0.25


def worth(entrants: Sequence[Entrant], counts: np.ndarray) -> np.ndarray:
    """What each would add to the stack, in nats, if it gained as much again as in the second half of its epochs."""
    known = [i for i, one in enumerate(entrants) if one.found]
    gains = [_UNKNOWN_GAIN if entrants[i].gain == math.inf else max(entrants[i].gain, _LEAST_GAIN) for i in known]
    found = np.zeros(len(entrants))
    if known:
        found[known] = potentials(np.array([e.found.logs for e in entrants if e.found]), counts, np.array(gains))
    return found


# -- without a budget -----------------------------------------------------------------------------------------------


def race_by_rungs(
    entrants: Sequence[Entrant],
    counts: np.ndarray,
    saved: Checkpoint,
    go: Callable[[list[Leg]], None],
) -> None:
    """Run all to the next rung, drop the hopeless, and so on. `go` runs legs."""
    _, rest = saved.read() or ({}, {"rung": 0, "out": []})
    for i in rest["out"]:
        entrants[i].leave()
    for rung in range(rest["rung"], len(_RUNGS)):
        go([Leg(one, max(2, math.ceil(_RUNGS[rung] * one.plan.epochs))) for one in entrants if one.is_live])
        for one, worthy in zip(entrants, worth(entrants, counts) >= _HOPELESS, strict=True):
            if one.is_live and not worthy:
                one.leave()
        saved.write({}, {"rung": rung + 1, "out": [i for i, one in enumerate(entrants) if one.out]})


def go_on_threads(threads: Threads, tell: Callable[[], None], legs: Sequence[Leg]) -> None:
    """Run legs on threads."""
    threads.go(partial(next, iter(legs), None), tell)


def go_on_workers(workers: Crew, data: DataSplit, tell: Callable[[], None], legs: Sequence[Leg]) -> None:
    """Run legs on the workers of a cluster; what they did is written to our disk."""
    parts = [(leg.entrant.candidate, leg.entrant.number, leg.entrant.seed, leg.entrant.run, leg.epochs) for leg in legs]
    for i, found in workers.as_completed(_go_there, parts, workers.send(data)):
        entrant = legs[i].entrant
        if isinstance(found, Lost):
            entrant.fail(found.reason)
        else:
            entrant.run, entrant.found, entrant.failure, entrant.out, entrant.seconds = found
            write_runs(entrant.saved, [entrant.run])
        tell()


def _go_there(part: tuple[Estimator, int, int, Run, int], data: DataSplit) -> tuple[Any, ...]:
    candidate, number, seed, run, epochs = part
    plan = candidate._plans(candidate._read(data, None, seed), seed, HERE)[number]
    # if the worker is lost, another starts from the same run
    entrant = Entrant(candidate, number, seed, plan, data, Checkpoint(None, {}), deepcopy(run))
    entrant.go(Clock(), epochs)
    entrant.run.trainer = None
    return entrant.run, entrant.found, entrant.failure, entrant.out, entrant.seconds


# -- with a budget --------------------------------------------------------------------------------------------------


def race_by_seconds(
    entrants: Sequence[Entrant], counts: np.ndarray, threads: Threads, tell: Callable[[], None]
) -> None:
    """Give seconds to those that may add most, until the time is up."""
    clock = threads.clock

    def look() -> None:
        late = [e for e, (_, left) in threads.running.items() if not e.run.epochs and clock.left < left * (1 - _LATE)]
        threads.stop(late)
        for one in late:
            one.leave()
        clock.building = math.fsum(one.building for one in entrants)
        tell()

    threads.go(lambda: _next_leg(entrants, counts, threads), look)


def _next_leg(entrants: Sequence[Entrant], counts: np.ndarray, threads: Threads) -> Leg | None:
    """Who runs next, and how long."""
    clock = threads.clock
    idle = [one for one in entrants if one.is_live and one not in threads.running]
    begun, least = [one for one in idle if one.found], _LEAST_LEG * clock.budget
    seconds = threads.count * clock.left - math.fsum(min(one.seconds, clock.left) for one in threads.running)
    shares, need = _shares(begun, worth(entrants, counts)[[entrants.index(one) for one in begun]], seconds, clock.left)
    useful = shares >= np.minimum(least, need)
    for one, weight in _fresh(idle, entrants, counts, threads):
        part = 1.0 if not useful.any() else _SHARE if weight > _PROMISING else _LITTLE
        if _FIRST * _cost(one, entrants)[0] < part * clock.left:
            return Leg(one, _FIRST, least * (_NEW_KIND if weight == 1.0 else 1.0))
    if not useful.any():
        return None
    best = int(np.argmax(np.where(useful, shares, -1.0)))
    one, step = begun[best], max(begun[best].seconds, least)
    last = shares[best] < min(1.5 * step, need[best])
    return Leg(one, seconds=one.seconds + (shares[best] if last else step), last=last)


def _fresh(
    idle: Sequence[Entrant], entrants: Sequence[Entrant], counts: np.ndarray, threads: Threads
) -> list[tuple[Entrant, float]]:
    """Those that have not begun, in the order in which they should, with the weight of their kind in the stack so far.

    First one of every kind, the cheapest; then those of the kinds that have most weight.
    """
    kinds = {one.kind: 0.0 for one in entrants if one.run.epochs or one in threads.running}
    found = [one for one in entrants if one.found]
    if found:
        weights = stacking_weights(np.array([one.found.logs for one in found if one.found]), counts)
        for one, weight in zip(found, weights.tolist(), strict=True):
            kinds[one.kind] += weight
    of_kind = [(one, kinds.get(one.kind, 1.0)) for one in idle if not one.run.epochs]
    return sorted(of_kind, key=lambda pair: (-pair[1], *_cost(pair[0], entrants)))


def _cost(entrant: Entrant, entrants: Sequence[Entrant]) -> tuple[float, int]:
    """The seconds that an epoch takes at least, as far as others of its kind tell, and how many numbers it learns."""
    alike = [one for one in entrants if one.kind == entrant.kind and one.run.epochs]
    return max((one.epoch_seconds * min(1.0, entrant.size / one.size) for one in alike), default=0.0), entrant.size


def _shares(begun: Sequence[Entrant], worth: np.ndarray, seconds: float, most: float) -> tuple[np.ndarray, np.ndarray]:
    """How to divide seconds so that Σ worth · log(seconds spent by then) is largest: doublings are worth the same.

    Each gets λ · worth − what it has spent, but no less than nothing, and no more than it needs; this is returned too.
    """
    worth = np.where(worth < _HOPELESS, 0.0, worth)
    spent = np.array([one.seconds for one in begun])
    need = np.array([(one.plan.epochs - one.run.epochs) * one.epoch_seconds for one in begun])
    low, high = 0.0, (seconds + spent.sum()) / _HOPELESS
    for _ in range(60):
        middle = (low + high) / 2
        if np.clip(middle * worth - spent, 0.0, np.minimum(need, most)).sum() > seconds:
            high = middle
        else:
            low = middle
    return np.clip(low * worth - spent, 0.0, np.minimum(need, most)), need


# -- threads --------------------------------------------------------------------------------------------------------


class Leg(NamedTuple):
    """What an entrant does next; see `Entrant.go`."""

    entrant: Entrant
    epochs: int = 0
    seconds: float = 0.0
    last: bool = False


class Threads:
    """Threads in which entrants run. An interrupt, or the end of the budget, does not wait for their epochs."""

    def __init__(self, count: int, clock: Clock):
        self.count, self.clock = count, clock
        # the threads that are wanted, and how much time was left when they began
        self.running: dict[Entrant, tuple[StoppableThread, float]] = {}
        self._done: queue.SimpleQueue[tuple[Entrant, BaseException | None]] = queue.SimpleQueue()

    def go(self, next_leg: Callable[[], Leg | None], tell: Callable[[], None]) -> None:
        """Run legs until there are no more, or the time is up. An error that is no failure of an entrant is raised."""
        while self.clock.left > 0:
            while len(self.running) < self.count and (leg := next_leg()) is not None:
                self._start(leg)
            if not self.running:
                return
            try:
                entrant, error = self._done.get(timeout=min(_TICK, max(self.clock.left, 0.0)))
                self.running.pop(entrant, None)
                if error is not None:
                    raise error
            except queue.Empty:
                pass
            tell()

    def _start(self, leg: Leg) -> None:
        def run() -> None:
            error = None
            try:
                leg.entrant.go(self.clock, *leg[1:])
            except Stopped:
                return
            except BaseException as other:
                error = other
            self._done.put((leg.entrant, error))

        thread = StoppableThread(target=run, daemon=True)
        self.running[leg.entrant] = thread, self.clock.left
        thread.start()

    def stop(self, entrants: Iterable[Entrant]) -> None:
        """Do not wait for these any more: their threads end in the middle of an epoch."""
        for entrant in list(entrants):
            thread, _ = self.running.pop(entrant)
            thread.is_wanted = False

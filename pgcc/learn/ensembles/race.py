"""A race of runs: all begin with a few epochs, and those go on that may add something to the stack of all.

Without a budget there are rungs: all do the same part of their epochs, and then those are out that would add nothing to
the stack even if they gained as much again. What happens depends on the data and the seed only. With a budget, seconds
go to those that may add most to the stack, and the learning rates of their last epochs fall to the end within it.
"""

from __future__ import annotations

import ctypes
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from pgcc.cluster import HERE, Crew, Lost
from pgcc.learn.common.checkpoint import Checkpoint
from pgcc.learn.common.estimator import Estimator
from pgcc.learn.common.training import Run, write_runs
from pgcc.learn.ensembles.entrants import Entrant
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
# The parts of a budget that are kept for the end, at least; that it may be late; and that an entrant runs, at least.
_RESERVE, _GRACE, _LEAST_LEG = 0.04, 0.04, 0.01
# Seconds between two looks.
_TICK = 0.25


class Clock:
    """A budget in seconds, some of which are kept for the circuits at the end."""

    def __init__(self, budget: float, began: float):
        self.budget, self.began, self.reserve = budget, began, _RESERVE * budget

    @property
    def left(self) -> float:
        """The seconds that are left for training."""
        return self.began + self.budget - self.reserve - time.perf_counter()

    def has(self, seconds: float) -> bool:
        """Whether most of something that takes so long would be in time."""
        return self.left > 0.6 * seconds

    def has_until_the_end(self, seconds: float) -> bool:
        """Whether something that takes so long would end before the budget does, or a little later."""
        return self.left + self.reserve + _GRACE * self.budget > seconds


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
    go: Callable[[list[tuple[Entrant, int]]], Any],
) -> None:
    """Run all to the next rung, drop the hopeless, and so on. `go` runs entrants, each up to a number of epochs."""
    _, rest = saved.read() or ({}, {"rung": 0, "out": []})
    for i in rest["out"]:
        entrants[i].leave()
    for rung in range(rest["rung"], len(_RUNGS)):
        go([(one, max(2, math.ceil(_RUNGS[rung] * one.plan.epochs))) for one in entrants if one.is_live])
        for one, worthy in zip(entrants, worth(entrants, counts) >= _HOPELESS, strict=True):
            if one.is_live and not worthy:
                one.leave()
        saved.write({}, {"rung": rung + 1, "out": [i for i, one in enumerate(entrants) if one.out]})


def go_on_workers(
    workers: Crew, data: DataSplit, legs: Sequence[tuple[Entrant, int]], tell: Callable[[], None]
) -> None:
    """Run entrants on the workers of a cluster; what they did is written to our disk."""
    parts = [(one.candidate, one.number, one.seed, one.run, until) for one, until in legs]
    for i, found in workers.as_completed(_go_there, parts, workers.send(data)):
        entrant = legs[i][0]
        if isinstance(found, Lost):
            entrant.fail(found.reason)
        else:
            entrant.run, entrant.found, entrant.failure, entrant.out = found
            entrant.seconds = math.fsum(entrant.run.history["seconds"])
            write_runs(entrant.saved, [entrant.run])
        tell()


def _go_there(part: tuple[Estimator, int, int, Run, int], data: DataSplit) -> tuple[Any, ...]:
    candidate, number, seed, run, until = part
    plan = candidate._plans(candidate._read(data, None, seed), seed, HERE)[number]
    # if the worker is lost, another starts from the same run
    entrant = Entrant(candidate, number, seed, plan, data, Checkpoint(None, {}), deepcopy(run))
    entrant.go(until)
    entrant.run.trainer = None
    return entrant.run, entrant.found, entrant.failure, entrant.out


# -- with a budget --------------------------------------------------------------------------------------------------


def race_by_seconds(
    entrants: Sequence[Entrant], counts: np.ndarray, clock: Clock, threads: Threads, tell: Callable[[], None]
) -> None:
    """Give seconds to those that may add most, until the time is up."""
    while clock.left > 0:
        while threads.are_free and (leg := _next_leg(entrants, counts, clock, threads)) is not None:
            threads.start(*leg)
        if not threads.running:
            return
        threads.wait(min(_TICK, max(clock.left, 0.0)))
        late = [one for one, left in threads.running.items() if not one.run.epochs and clock.left < left * (1 - _LATE)]
        threads.stop(late)
        for one in late:
            one.leave()
        clock.reserve = max(_RESERVE * clock.budget, 1.2 * math.fsum(one.building for one in entrants))
        tell()


def _next_leg(
    entrants: Sequence[Entrant], counts: np.ndarray, clock: Clock, threads: Threads
) -> tuple[Entrant, int, Clock, bool, float] | None:
    """Who runs next, and how: the arguments of `Entrant.go`."""
    idle = [one for one in entrants if one.is_live and one not in threads.running]
    begun, least = [one for one in idle if one.found], _LEAST_LEG * clock.budget
    seconds = threads.count * clock.left - math.fsum(min(one.seconds, clock.left) for one in threads.running)
    shares, need = _shares(begun, worth(entrants, counts)[[entrants.index(one) for one in begun]], seconds, clock.left)
    useful = shares >= np.minimum(least, need)
    for one, weight in _fresh(idle, entrants, counts, threads):
        part = 1.0 if not useful.any() else _SHARE if weight > _PROMISING else _LITTLE
        if _FIRST * _cost(one, entrants)[0] < part * clock.left:
            return one, _FIRST, clock, False, least * (_NEW_KIND if weight == 1.0 else 1.0)
    if not useful.any():
        return None
    best = int(np.argmax(np.where(useful, shares, -1.0)))
    one, step = begun[best], max(begun[best].seconds, least)
    last = shares[best] < min(1.5 * step, need[best])
    return one, one.run.epochs + max(1, int((shares[best] if last else step) / one.epoch_seconds)), clock, last, 0.0


def _fresh(
    idle: Sequence[Entrant], entrants: Sequence[Entrant], counts: np.ndarray, threads: Threads
) -> list[tuple[Entrant, float]]:
    """Those that have not begun, in the order in which they should, with the weight of their kind in the stack so far.

    First one of every kind, the cheapest; then those of the kinds that have most weight.
    """
    kinds = {type(one.candidate): 0.0 for one in entrants if one.run.epochs or one in threads.running}
    found = [one for one in entrants if one.found]
    if found:
        weights = stacking_weights(np.array([one.found.logs for one in found if one.found]), counts)
        for one, weight in zip(found, weights.tolist(), strict=True):
            kinds[type(one.candidate)] += weight
    of_kind = [(one, kinds.get(type(one.candidate), 1.0)) for one in idle if not one.run.epochs]
    return sorted(of_kind, key=lambda pair: (-pair[1], *_cost(pair[0], entrants)))


def _cost(entrant: Entrant, entrants: Sequence[Entrant]) -> tuple[float, int]:
    """The seconds that an epoch takes at least, as far as others of its kind tell, and how many numbers it learns."""
    alike = [one for one in entrants if type(one.candidate) is type(entrant.candidate) and one.run.epochs]
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


class _Stopped(BaseException):
    """Raised in a thread that nobody waits for any more."""


class Threads:
    """Threads in which entrants run. An interrupt, or the end of the budget, does not wait for their epochs."""

    def __init__(self, count: int):
        self.count = count
        self.running: dict[Entrant, float] = {}  # and how much time was left when they began
        self._threads: dict[Entrant, threading.Thread] = {}
        self._done: queue.SimpleQueue[tuple[Entrant, BaseException | None]] = queue.SimpleQueue()

    @property
    def are_free(self) -> bool:
        """Whether one more can run."""
        return len(self.running) < self.count

    def start(
        self, entrant: Entrant, until: int, clock: Clock | None = None, last: bool = False, seconds: float = 0.0
    ) -> None:
        """Let an entrant run; see `Entrant.go`."""
        self.running[entrant] = math.inf if clock is None else clock.left
        self._threads[entrant] = threading.Thread(
            target=self._run, args=(entrant, until, clock, last, seconds), daemon=True
        )
        self._threads[entrant].start()

    def _run(self, entrant: Entrant, *how: Any) -> None:
        error = None
        try:
            entrant.go(*how)
        except BaseException as other:
            error = other
        if not isinstance(error, _Stopped):
            self._done.put((entrant, error))

    def wait(self, seconds: float | None = None) -> None:
        """Wait until one of them is done, so long at most. An error of its thread that is no failure is raised."""
        try:
            entrant, error = self._done.get(timeout=seconds)
        except queue.Empty:
            return
        self.running.pop(entrant, None)
        if error is not None:
            raise error

    def go(self, legs: Sequence[tuple[Entrant, int]], tell: Callable[[], None]) -> None:
        """Run entrants up to a number of epochs each."""
        waiting = list(reversed(legs))
        while waiting or self.running:
            while waiting and self.are_free:
                self.start(*waiting.pop())
            self.wait(_TICK)
            tell()

    def stop(self, entrants: Iterable[Entrant]) -> None:
        """End the threads of these, in the middle of an epoch if need be."""
        for entrant in list(entrants):
            self.running.pop(entrant, None)
            which = ctypes.c_ulong(self._threads[entrant].ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(which, ctypes.py_object(_Stopped))

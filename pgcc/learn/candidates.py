"""Several estimators fitted to the same data: here, one or some at a time, or by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pgcc.cluster import Unfinished, crew
from pgcc.learn.base import Estimator
from pgcc.learn.checkpoint import Carried, PausedError, Place, part_of
from pgcc.learn.shared import Shared

Ask = Callable[[Estimator, Shared], Any]
Part = tuple[Estimator, Place | None]


def fit_each(
    candidates: Sequence[Estimator], data: Shared, ask: Ask, checkpoint: Place | None, cluster: Any, threads: int = 1
) -> Iterator[tuple[int, Estimator, Any]]:
    """Fit every candidate. Yields its number, itself, and what `ask` finds of it, as they come.

    Each keeps the state of its run in the folder `checkpoint`. Workers of a cluster write no files: they send home the
    state from time to time, where it is written.
    """
    places = [part_of(checkpoint, i) for i in range(len(candidates))]
    away = cluster is not None
    if away:
        places = [Carried(place) if isinstance(place, Path) else place for place in places]
    parts = list(zip(candidates, places, strict=True))
    with crew(cluster, threads) as workers:
        for i, (candidate, place, *found) in workers.pursue(
            _fit_away if away else _fit, parts, workers.send(data), ask
        ):
            if away and isinstance(place, Carried):
                place.save()
            if found:
                yield i, candidate, found[0]


def _fit(part: Part, data: Shared, ask: Ask) -> tuple[Estimator, Place | None, Any]:
    candidate, place = part
    return candidate, place, ask(candidate.fit(data, checkpoint=place), data)


def _fit_away(part: Part, data: Shared, ask: Ask) -> tuple[Estimator, Place | None, Any] | Unfinished:
    """By a worker: to the end, or until it is time to send home the state."""
    candidate, place = part
    if isinstance(place, Carried):
        place = place.sent()
    try:
        return _fit((candidate, place), data, ask)
    except PausedError:
        return Unfinished((candidate, place))

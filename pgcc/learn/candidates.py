"""Several estimators fitted to the same data: here, one or some at a time, or by the workers of a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pgcc.cluster import Lost, Unfinished, crew
from pgcc.errors import CircuitError, EvidenceError, FormatError, PgccError, PrecisionError, SemanticsError
from pgcc.learn.base import Estimator
from pgcc.learn.checkpoint import Carried, CheckpointError, PausedError, Place, part_of
from pgcc.learn.shared import Shared

Ask = Callable[[Estimator, Shared], Any]
Part = tuple[Estimator, Place | None]

# What one candidate may fail with while others do not: it cannot be learned, or from other data, or is too large.
_FAILURES = (PgccError, ArithmeticError, np.linalg.LinAlgError, MemoryError)
_KINDS: tuple[type[PgccError], ...] = (CircuitError, EvidenceError, FormatError, PrecisionError, SemanticsError)


class Failed(NamedTuple):
    """What is found of a candidate that could not be fitted."""

    reason: str
    kind: type[PgccError]


def fit_each(
    candidates: Sequence[Estimator], data: Shared, ask: Ask, checkpoint: Place | None, cluster: Any, threads: int = 1
) -> Iterator[tuple[int, Estimator, Any]]:
    """Fit every candidate. Yields its number, itself, and what `ask` finds of it, as they come.

    A candidate that fails is `Failed`, with a warning, and the others go on; if all of them do, that is an error of
    the kind of the first. What is wrong with checkpoints or with the cluster is one at once.

    Each keeps the state of its run in the folder `checkpoint`. Workers of a cluster write no files: they send home the
    state from time to time, where it is written.
    """
    places = [part_of(checkpoint, i) for i in range(len(candidates))]
    away = cluster is not None
    if away:
        places = [Carried(place) if isinstance(place, Path) else place for place in places]
    parts = list(zip(candidates, places, strict=True))
    failed: list[Failed] = []
    with crew(cluster, threads) as workers:
        for i, came in workers.pursue(_fit_away if away else _fit, parts, workers.send(data), ask):
            lost = isinstance(came, Lost)
            candidate, place, *found = (candidates[i], None, Failed(came.reason, PgccError)) if lost else came
            if away and isinstance(place, Carried):
                place.save()
            if found and isinstance(found[0], Failed):
                failed.append(Failed(f"{candidate}: {found[0].reason}", found[0].kind))
                warnings.warn(f"a candidate failed, and is left out: {failed[-1].reason}", stacklevel=3)
            if found:
                yield i, candidate, found[0]
    if len(failed) == len(candidates):
        raise failed[0].kind(f"every candidate failed; the first one was {failed[0].reason}")


def _fit(part: Part, data: Shared, ask: Ask) -> tuple[Estimator, Place | None, Any]:
    candidate, place = part
    try:
        return candidate, place, ask(candidate.fit(data, checkpoint=place), data)
    except CheckpointError:
        raise
    except _FAILURES as error:
        kind = next((kind for kind in _KINDS if type(error) is kind), PgccError)
        return candidate, place, Failed(f"{type(error).__name__}: {error}", kind)


def _fit_away(part: Part, data: Shared, ask: Ask) -> tuple[Estimator, Place | None, Any] | Unfinished:
    """By a worker: to the end, or until it is time to send home the state."""
    candidate, place = part
    if isinstance(place, Carried):
        place = place.sent()
    try:
        return _fit((candidate, place), data, ask)
    except PausedError:
        return Unfinished((candidate, place))

"""Fit several estimators to the same data, one after another, or on the workers of a cluster."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pgcc.cluster import Crew, Lost, crew
from pgcc.errors import CircuitError, EvidenceError, FormatError, PgccError, PrecisionError, SemanticsError
from pgcc.learn.common.checkpoint import CheckpointError, CheckpointPath, Files, part_of
from pgcc.learn.common.estimator import Estimator
from pgcc.learn.tables.data_split import DataSplit
from pgcc.progress import progress

Evaluation = Callable[[Estimator, DataSplit], Any]

# Errors that concern one candidate only: it cannot be learned (from these data), or is too large.
_FAILURES = (PgccError, ArithmeticError, np.linalg.LinAlgError, MemoryError)
_KINDS: tuple[type[PgccError], ...] = (CircuitError, EvidenceError, FormatError, PrecisionError, SemanticsError)


class Failed(NamedTuple):
    """The result of a candidate that could not be fitted or evaluated."""

    reason: str
    kind: type[PgccError]


class Fitted(NamedTuple):
    """A candidate, and the result of its evaluation; if it failed, None and the reason."""

    candidate: Estimator
    answer: Any = None
    failure: str | None = None


def fit_all(
    candidates: Sequence[Estimator],
    data: DataSplit,
    evaluate: Evaluation,
    checkpoint: CheckpointPath | None,
    cluster: Any,
    verbose: bool | None,
    report: Callable[[Any], str],
) -> list[Fitted]:
    """Fit every candidate, and evaluate it.

    A candidate that fails is left out, with a warning, and the others continue. If all fail, an error of the kind of
    the first is raised. Errors of checkpoints and of the cluster are raised at once.

    Each candidate keeps the state of its run in the folder `checkpoint`. Workers of a cluster do not see that folder:
    they are sent its files, and the files that they write come back with the fitted candidate. If `verbose`, a line on
    standard error says of every candidate what `report` makes of its result; None shows a bar, on a terminal.
    """
    places = [part_of(checkpoint, i) for i in range(len(candidates))]
    results = [Fitted(candidate) for candidate in candidates]
    failed: list[Failed] = []
    bar = progress("candidates", len(candidates), "candidate", None if verbose is None else False)
    with crew(cluster) as workers, bar as shown:
        common = workers.send(data), evaluate
        if cluster is None:
            done = workers.as_completed(_fit, list(zip(candidates, places, strict=True)), *common)
        else:
            done = _fit_on_workers(workers, candidates, places, *common)
        for count, (i, found) in enumerate(done, 1):
            shown.at(count)
            candidate, answer = (candidates[i], Failed(found.reason, PgccError)) if isinstance(found, Lost) else found
            if isinstance(answer, Failed):
                failed.append(Failed(f"{name_of(candidate)}: {answer.reason}", answer.kind))
                warnings.warn(f"a candidate failed and is left out: {failed[-1].reason}", stacklevel=4)
                results[i] = Fitted(candidates[i], failure=answer.reason)
                continue
            results[i] = Fitted(candidate, answer)
            if verbose:
                print(f"{name_of(candidate)}: {report(answer)}", file=sys.stderr, flush=True)
    if len(failed) == len(candidates):
        raise failed[0].kind(f"every candidate failed; the first one was {failed[0].reason}")
    return results


def name_of(candidate: Estimator) -> str:
    """An estimator with the parameters that were set, on one line."""
    return " ".join(repr(candidate).split())


def _fit(part: tuple[Estimator, Path | None], data: DataSplit, evaluate: Evaluation) -> tuple[Estimator, Any]:
    candidate, place = part
    try:
        return candidate, evaluate(candidate.fit(data, checkpoint=place), data)
    except CheckpointError:
        raise
    except _FAILURES as error:
        kind = next((kind for kind in _KINDS if type(error) is kind), PgccError)
        return candidate, Failed(f"{type(error).__name__}: {error}", kind)


def _fit_on_workers(
    workers: Crew, candidates: Sequence[Estimator], places: Sequence[Path | None], *common: Any
) -> Iterator[tuple[int, Any]]:
    """Fit every candidate on a worker; when it is done, the files of its checkpoint are written to our disk."""
    parts = [
        (candidate, None if place is None else (place.parent, Files(place)))
        for candidate, place in zip(candidates, places, strict=True)
    ]
    for i, found in workers.as_completed(_fit_with_files, parts, *common):
        place = places[i]
        if isinstance(found, Lost):
            yield i, found
            continue
        fitted, files = found
        if place is not None:
            files.write(place.parent)
        yield i, fitted


def _fit_with_files(
    part: tuple[Estimator, tuple[Path, Files] | None], data: DataSplit, evaluate: Evaluation
) -> tuple[tuple[Estimator, Any], Files | None]:
    """Runs on a worker: fit with a checkpoint in a temporary folder, and return its files too."""
    candidate, kept = part
    if kept is None:
        return _fit((candidate, None), data, evaluate), None
    home, files = kept
    with tempfile.TemporaryDirectory(prefix="pgcc-") as folder:
        place = files.write(Path(folder))
        try:
            return _fit((candidate, place), data, evaluate), Files(place)
        except CheckpointError as error:  # show the path of the file on our disk
            raise CheckpointError(str(error).replace(folder, str(home))) from None

"""Runs that survive being killed: their state on disk, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pgcc.backend.learning import Adam
from pgcc.errors import FormatError, PgccError
from pgcc.frontend.formats.atomic import replacing
from pgcc.learn.training import Progress

# Epochs from one checkpoint to the next.
EVERY = 5
_ARRAYS = ("parameters", "mean", "square", "average", "best")


def fingerprint(settings: Mapping[str, Any], *tables: np.ndarray) -> str:
    """Of everything that a run depends on."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for table in tables:
        digest.update(str(table.shape).encode())
        digest.update(np.ascontiguousarray(table).tobytes())
    return digest.hexdigest()


def write_checkpoint(path: str | Path, progress: Progress, run: str) -> None:
    """The state between two epochs."""
    adam = progress.adam
    scalars = {
        "run": run,
        "steps": adam.steps,
        "leg": progress.leg,
        "best_score": progress.best_score,
        "best_epoch": progress.best_epoch,
        "history": progress.history,
    }
    try:
        with replacing(Path(path)) as file:
            np.savez(
                file,
                parameters=adam.parameters,
                mean=adam.mean,
                square=adam.square,
                average=adam.average,
                best=progress.best,
                rest=np.frombuffer(json.dumps(scalars).encode(), np.uint8),
            )
    except OSError as error:
        raise PgccError(f"the checkpoint {path} cannot be written: {error.strerror or error}") from None


def read_checkpoint(path: str | Path, run: str) -> Progress | None:
    """The state that was written, or None if there is no file.

    Raises
    ------
    FormatError
        If the file is no checkpoint, or one of a run with other data or parameters.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            parameters, mean, square, average, best = (stored[name] for name in _ARRAYS)
            rest = json.loads(stored["rest"].tobytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise FormatError(f"{path} is not a checkpoint, or it is damaged: delete it to start anew") from None
    if rest.get("run") != run:
        raise FormatError(
            f"the checkpoint {path} is of a run with other data or parameters: delete it, or name another file"
        )
    adam = Adam(parameters)
    adam.mean, adam.square, adam.average, adam.steps = mean, square, average, rest["steps"]
    return Progress(adam, rest["leg"], best, rest["best_score"], rest["best_epoch"], rest["history"])

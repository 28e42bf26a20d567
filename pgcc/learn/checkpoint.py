"""Runs that survive being killed: their state on disk, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pgcc.errors import FormatError, PgccError
from pgcc.frontend.formats.atomic import replacing
from pgcc.learn.rows import Rows

State = dict[str, np.ndarray]
# Epochs from one checkpoint to the next.
EVERY = 5


class Checkpoint:
    """The file in which a run keeps its state: arrays, and a dictionary of what JSON can say.

    Parameters
    ----------
    path : path or None
        Without one nothing is kept.
    settings : mapping
        With the data, all that the run depends on: the state of a run with others is refused.
    data : Rows or arrays

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.npz"
    >>> Checkpoint(path, {"seed": 0}).write({"theta": np.ones(2)}, {"epoch": 3})
    >>> Checkpoint(path, {"seed": 0}).read()
    ({'theta': array([1., 1.])}, {'epoch': 3})
    """

    def __init__(self, path: str | Path | None, settings: Mapping[str, Any], *data: Rows | np.ndarray):
        self.path = None if path is None else Path(path)
        self.run = "" if path is None else _fingerprint(settings, data)

    def write(self, arrays: State, rest: Mapping[str, Any]) -> None:
        """Replace what the file has."""
        if self.path is None:
            return
        text = json.dumps({"run": self.run, "rest": rest}).encode()
        stored: dict[str, Any] = {**arrays, "__rest__": np.frombuffer(text, np.uint8)}
        try:
            with replacing(self.path) as file:
                np.savez(file, **stored)  # numbers only: nothing can be pickled
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def read(self) -> tuple[State, dict[str, Any]] | None:
        """What was written, or None if there is no file.

        Raises
        ------
        FormatError
            If the file is no checkpoint, or one of a run with other data or parameters.
        """
        if self.path is None:
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            said = json.loads(arrays.pop("__rest__").tobytes())
            run, rest = said["run"], said["rest"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile):
            raise FormatError(f"{self.path} is not a checkpoint, or it is damaged: delete it to start anew") from None
        if run != self.run:
            raise FormatError(
                f"the checkpoint {self.path} is of a run with other data or parameters: delete it, or name another file"
            )
        return arrays, rest


def refuse_cluster(checkpoint: str | Path | None, cluster: Any) -> None:
    """Of estimators whose parts are trained apart, each by a worker."""
    if checkpoint is not None and cluster is not None:
        raise PgccError("checkpoint and cluster do not go together: workers of a cluster write no files")


def part_of(folder: str | Path | None, i: int) -> Path | None:
    """Where the i-th part of a run of several parts keeps its state: in a folder, made if it is not there."""
    if folder is None:
        return None
    try:
        Path(folder).mkdir(exist_ok=True)
    except FileExistsError:
        raise FormatError(
            f"{folder} is a file: a run of several models keeps their checkpoints in a folder; name another"
        ) from None
    except OSError as error:
        raise _unwritable(Path(folder), error) from None
    return Path(folder) / f"{i}.npz"


def _unwritable(path: Path, error: OSError) -> PgccError:
    return PgccError(f"the checkpoint {path} cannot be written: {error.strerror or error}")


def _fingerprint(settings: Mapping[str, Any], data: tuple[Rows | np.ndarray, ...]) -> str:
    """Of everything that a run depends on."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for table in data:
        if isinstance(table, Rows):
            digest.update(table.fingerprint().encode())
        else:
            digest.update(f"{table.dtype}{table.shape}".encode())
            digest.update(np.ascontiguousarray(table).tobytes())
    return digest.hexdigest()

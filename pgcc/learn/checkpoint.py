"""Runs that survive being killed: their state on disk, written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Mapping
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pgcc.errors import FormatError
from pgcc.formats.io import DAMAGE, Archive, as_path, read_bytes, replacing
from pgcc.learn.rows import Rows

State = dict[str, np.ndarray]
# Epochs from one checkpoint to the next.
EVERY = 5
# Seconds that a worker of a cluster runs before it sends home the state.
PERIOD = 30.0


class Pause:
    """When a worker of a cluster, which writes no files, sends home the state of what it runs.

    >>> Pause().is_due()
    False
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def is_due(self) -> bool:
        """Whether it has run for long enough."""
        return time.monotonic() - self._began >= PERIOD


class CheckpointError(FormatError):
    """A checkpoint that is damaged, of another run, or cannot be written: whatever is fitted, it is not the model's."""


class PausedError(Exception):
    """The state was written, and it is time to send it home."""


class Carried:
    """The files of a run that is fitted by a worker of a cluster: carried there in memory, and back.

    It stands in the place of the path of a checkpoint.

    Parameters
    ----------
    path : Path
        Of the checkpoint at home: a file, or a folder of several.
    """

    def __init__(self, path: Path):
        self.path = path
        self.pause: Pause | None = None
        self._files: dict[Path, bytes] = {}
        self._new: set[Path] = set()
        try:
            for file in [path] if path.is_file() else path.rglob("*.npz"):
                if file.is_file():
                    self._files[file] = read_bytes(file)
        except OSError as error:
            raise CheckpointError(f"the checkpoint {path} cannot be read: {error.strerror or error}") from None

    def __str__(self) -> str:
        return str(self.path)

    def part(self, i: int) -> Carried:
        """Of the i-th part of a run of several."""
        if self.path in self._files:
            raise _not_a_folder(self.path)
        inner = copy(self)  # which shares the files
        inner.path = self.path / _name_of(i)
        return inner

    def read(self) -> bytes:
        """What was written, or FileNotFoundError."""
        if self.path not in self._files:
            raise FileNotFoundError(str(self.path))
        return self._files[self.path]

    def write(self, content: bytes) -> None:
        """Replace what there is; raise PausedError if it is time."""
        self._files[self.path] = content
        self._new.add(self.path)
        if self.pause is not None and self.pause.is_due():
            raise PausedError

    def save(self) -> None:
        """At home: what was written away is written to disk."""
        for path in self._new:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as file:
                    file.write(self._files[path])
            except OSError as error:
                raise _unwritable(path, error) from None

    def sent(self) -> Carried:
        """A copy to be worked with from now on, of which nothing is new."""
        other = copy(self)
        other._files, other._new, other.pause = dict(self._files), set(), Pause()
        return other


Place = str | Path | Carried


class Checkpoint:
    """The file in which a run keeps its state: arrays, and a dictionary of what JSON can say.

    Parameters
    ----------
    place : path or Carried, optional
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

    def __init__(self, place: Place | None, settings: Mapping[str, Any], *data: Rows | np.ndarray):
        self.place = place if place is None or isinstance(place, Carried) else as_path(place, "a checkpoint")
        self.run = "" if place is None else _fingerprint(settings, data)

    def write(self, arrays: State, rest: Mapping[str, Any]) -> None:
        """Replace what the file has."""
        if self.place is None:
            return
        text = json.dumps({"run": self.run, "rest": rest}).encode()
        stored: dict[str, Any] = {**arrays, "__rest__": np.frombuffer(text, np.uint8)}
        if isinstance(self.place, Carried):
            np.savez(content := BytesIO(), **stored)
            self.place.write(content.getvalue())
            return
        try:
            with replacing(self.place) as file:
                np.savez(file, **stored)  # numbers only: nothing can be pickled
        except OSError as error:
            raise _unwritable(self.place, error) from None

    def read(self) -> tuple[State, dict[str, Any]] | None:
        """What was written, or None if there is no file.

        Raises
        ------
        FormatError
            If the file is no checkpoint, or one of a run with other data or parameters.
        """
        if self.place is None:
            return None
        try:
            stored = Archive(self.place.read() if isinstance(self.place, Carried) else read_bytes(self.place))
            if any(entry.compress_type for entry in stored.entries.values()):
                raise ValueError("what was compressed was not written here, and may be of any size")
            arrays = {name: stored.array(name).copy() for name in stored.entries}
            said = json.loads(arrays.pop("__rest__").tobytes())
            run, rest = said["run"], said["rest"]
        except FileNotFoundError:
            if isinstance(self.place, Path):
                _check_folder(self.place)
            return None
        except (OSError, AttributeError, FormatError, *DAMAGE):
            raise CheckpointError(
                f"{self.place} is not a checkpoint, or it is damaged: delete it to start anew"
            ) from None
        if run != self.run:
            other = "of a run with other data or parameters: delete it, or name another file"
            raise CheckpointError(f"the checkpoint {self.place} is {other}")
        return arrays, rest


def part_of(folder: Place | None, i: int) -> Place | None:
    """Where the i-th part of a run of several parts keeps its state: in a folder, made if it is not there."""
    if folder is None:
        return None
    if isinstance(folder, Carried):
        return folder.part(i)
    path = as_path(folder, "a checkpoint")
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise _not_a_folder(path) from None
    except OSError as error:
        raise _unwritable(path, error) from None
    return path / _name_of(i)


def _name_of(i: int) -> str:
    return f"{i}.npz"


def _not_a_folder(path: str | Path) -> CheckpointError:
    return CheckpointError(
        f"{path} is a file: a run of several models keeps their checkpoints in a folder; name another"
    )


def _check_folder(path: Path) -> None:
    """Where nothing can be written, that is said before the work, not after some of it."""
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise _unwritable(path, OSError(0, os.strerror(errno.EACCES if folder.is_dir() else errno.ENOENT)))


def _unwritable(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(f"the checkpoint {path} cannot be written: {error.strerror or error}")


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

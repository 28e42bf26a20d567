"""Checkpoints: the state of training on disk, written atomically, from which a killed run can be resumed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pgcc.errors import FormatError
from pgcc.formats.io import DAMAGE, Archive, as_path, read_bytes, replacing
from pgcc.learn.tables.packed_rows import Rows

State = dict[str, np.ndarray]
# What the arrays of a state are: by name, float or int, and the shape (None: any length).
Shapes = Mapping[str, tuple[type | int | None, ...]]
CheckpointPath = str | Path
# The number of epochs between checkpoints.
EVERY = 5
# The version of the file layout, part of every fingerprint: files in an older layout are refused.
_LAYOUT = "runs"


def fits(state: State, shapes: Shapes) -> bool:
    """Whether a state has exactly these arrays.

    >>> fits({"theta": np.zeros((2, 3))}, {"theta": (float, 2, None)}), fits({}, {"theta": (float, 2, None)})
    (True, False)
    """
    return state.keys() == shapes.keys() and all(
        state[name].dtype == np.dtype(kind)  # type: ignore[arg-type]
        and state[name].ndim == len(shape)
        and all(wanted in (None, length) for wanted, length in zip(shape, state[name].shape, strict=True))
        for name, (kind, *shape) in shapes.items()
    )


class CheckpointError(FormatError):
    """A checkpoint that is damaged, belongs to another run, or cannot be written: not a failure of the model."""


class Checkpoint:
    """The file in which a run keeps its state: arrays, and a dictionary that is stored as JSON.

    Parameters
    ----------
    place : path, optional
        The file. Without one, nothing is written or read.
    settings : mapping
        The settings that the run depends on.
    data : Rows or arrays
        The data that the run depends on. The checkpoint of a run with other settings or data is refused.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.npz"
    >>> Checkpoint(path, {"seed": 0}).write({"theta": np.ones(2)}, {"epoch": 3})
    >>> Checkpoint(path, {"seed": 0}).read()
    ({'theta': array([1., 1.])}, {'epoch': 3})
    """

    def __init__(self, place: CheckpointPath | None, settings: Mapping[str, Any], *data: Rows | np.ndarray):
        self.place = None if place is None else as_path(place, "a checkpoint")
        self.run = "" if place is None else _fingerprint(settings, data)

    def write(self, arrays: State, rest: Mapping[str, Any]) -> None:
        """Replace the contents of the file."""
        if self.place is None:
            return
        text = json.dumps({"run": self.run, "rest": rest}).encode()
        stored: dict[str, Any] = {**arrays, "__rest__": np.frombuffer(text, np.uint8)}
        try:
            with replacing(self.place) as file:
                np.savez(file, **stored)  # numbers only: nothing can be pickled
        except OSError as error:
            raise _unwritable(self.place, error) from None

    def read(self) -> tuple[State, dict[str, Any]] | None:
        """The arrays and the dictionary of the last `write`, or None if there is no file.

        Raises
        ------
        FormatError
            If the file is no checkpoint, or one of a run with other data or parameters.
        """
        if self.place is None:
            return None
        try:
            stored = Archive(read_bytes(self.place))
            if any(entry.compress_type for entry in stored.entries.values()):
                raise ValueError("a compressed file was not written here, and may unpack to any size")
            arrays = {name: stored.array(name).copy() for name in stored.entries}
            content = json.loads(arrays.pop("__rest__").tobytes())
            run, rest = content["run"], content["rest"]
        except FileNotFoundError:
            _check_folder(self.place)
            return None
        except (OSError, AttributeError, FormatError, *DAMAGE):
            raise self.damaged() from None
        if run != self.run:
            other = "of a run with other data or parameters: delete it, or name another file"
            raise CheckpointError(f"the checkpoint {self.place} is {other}")
        return arrays, rest

    def damaged(self) -> CheckpointError:
        """The error for a file that does not hold what was written."""
        return CheckpointError(f"{self.place} is not a checkpoint, or it is damaged: delete it to start over")


def part_of(folder: CheckpointPath | None, name: int | str) -> Path | None:
    """The checkpoint of one of several runs, by its number or name, in a folder that is created if necessary."""
    if folder is None:
        return None
    path = as_path(folder, "a checkpoint")
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise CheckpointError(
            f"{path} is a file: a run of several models keeps their checkpoints in a folder; name another"
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from None
    return path / f"{name}.npz"


def _check_folder(path: Path) -> None:
    """Refuse a path that cannot be written, before any work is done."""
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise _unwritable(path, OSError(0, os.strerror(errno.EACCES if folder.is_dir() else errno.ENOENT)))


def _unwritable(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(f"the checkpoint {path} cannot be written: {error.strerror or error}")


def _fingerprint(settings: Mapping[str, Any], data: tuple[Rows | np.ndarray, ...]) -> str:
    """A digest of everything that a run depends on."""
    settings = {"layout": _LAYOUT, **settings}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for table in data:
        if isinstance(table, Rows):
            digest.update(table.fingerprint().encode())
        else:
            digest.update(f"{table.dtype}{table.shape}".encode())
            digest.update(np.ascontiguousarray(table).tobytes())
    return digest.hexdigest()

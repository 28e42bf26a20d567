"""Evidence as an array in a .npy file, read in chunks of rows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import numpy as np

from pgcc.data.evidence import as_codes
from pgcc.data.text import rows_at_a_time
from pgcc.errors import EvidenceError, FormatError, PgccError, plural
from pgcc.formats.io import DAMAGE, as_path, read_array_header, reason_of

_CHUNK = 1 << 20  # bytes that are read at a time where the length of the file is not known


def is_npy(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file ends in .npy."""
    return os.fspath(path).endswith(".npy")


class Npy:
    """A table in an open .npy file.

    It is read and not mapped into memory: if a mapped file became shorter, the process would be killed.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, [[1, 0], [0, -1]])
    >>> _ = file.seek(0)
    >>> [codes.tolist() for codes in Npy(file, "data.npy").chunks(["a", "b"])]
    [[[1, 0], [0, -1]]]
    """

    def __init__(self, file: IO[bytes], path: str):
        self._file, self._path = file, path
        self.rows, self.columns, self._kind = _header(file, path)
        self._begun = self._first_row()

    def _first_row(self) -> bytes:
        """Check that the file holds the rows that its header claims, before memory is allocated for them.

        The length of a pipe is not known, so its first row is read and returned.
        """
        width = self.columns * self._kind.itemsize
        left = _bytes_left(self._file)
        if left is not None:
            if left < self.rows * width:
                raise self._cut_off(left // width)
            return b""
        begun = bytearray()
        while len(begun) < width:
            piece = self._file.read(min(width - len(begun), _CHUNK))
            if not piece:
                raise self._cut_off(0)
            begun += piece
        return bytes(begun)

    def _cut_off(self, rows: int) -> FormatError:
        return FormatError(f"{self._path} ends after {rows:,} of its {self.rows:,} rows: it is damaged")

    def chunks(self, variables: Sequence[str]) -> Iterator[np.ndarray]:
        """The rows as int8 codes, in chunks."""
        path, n = self._path, self.columns
        if len(variables) != n:
            needed = f"one for each of the {len(variables)} variables is needed"
            raise EvidenceError(f"{path} has {plural(n, 'column')}: {needed}")
        step = rows_at_a_time(variables)
        for first in range(0, self.rows, step):
            size = (min(first + step, self.rows) - first) * n * self._kind.itemsize
            text = self._begun + self._file.read(size - len(self._begun))
            self._begun = b""
            if len(text) < size:
                raise self._cut_off(first + len(text) // (n * self._kind.itemsize))
            try:
                yield as_codes(np.frombuffer(text, self._kind).reshape(-1, n), variables, first)
            except EvidenceError as error:
                raise EvidenceError(f"{path}: {error}") from None


def _header(file: IO[bytes], path: str) -> tuple[int, int, np.dtype]:
    """Rows, columns and type of the array in a .npy file."""
    try:
        shape, columns_first, kind = read_array_header(file)
    except DAMAGE as error:
        raise FormatError(f"{path} is not an array in .npy: {reason_of(error)}") from None
    if len(shape) != 2 or min(shape) < 1 or kind.kind not in "biuf":
        raise FormatError(f"{path} is an array of shape {shape} and type {kind}: expected rows and columns of 0 and 1")
    if columns_first and min(shape) > 1:
        raise FormatError(f"{path} has its columns first (Fortran order): np.save(path, np.ascontiguousarray(X))")
    return shape[0], shape[1], kind


def _bytes_left(file: IO[bytes]) -> int | None:
    """The number of bytes from here to the end of a regular file; None if that is not known."""
    try:
        here = file.tell()
        status = os.fstat(file.fileno())
        return status.st_size - here if stat.S_ISREG(status.st_mode) else None
    except (OSError, ValueError):  # a pipe, or no file of the system
        return None


@contextmanager
def reading(path: str) -> Iterator[IO[bytes]]:
    """A file that is open for reading; an error at the end if it was changed meanwhile."""
    try:
        with open(as_path(path), "rb") as file:
            before = os.fstat(file.fileno())
            yield file
            after = os.fstat(file.fileno())
    except OSError as error:
        raise PgccError(f"{path} cannot be read: {error.strerror or error}") from None
    if stat.S_ISREG(before.st_mode) and (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise PgccError(f"{path} was changed while it was read: read it again")

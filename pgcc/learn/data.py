"""Ways in for data: arrays, data frames, and files that are read in pieces."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from pgcc.errors import CircuitError, EvidenceError, FormatError, PgccError
from pgcc.frontend.formats.damage import DAMAGE, reason_of
from pgcc.ir.node import var
from pgcc.learn.rows import Rows, pack_rows, slices
from pgcc.queries.evidence import Evidence, as_codes
from pgcc.queries.evidence_text import find_names, read_csv, rows_at_a_time


def read_rows(X: Any, names: Sequence[str] | None = None, what: str = "the data") -> Rows:
    """Data of any form.

    Parameters
    ----------
    X : array, list of rows, DataFrame or path
        1, 0, and −1, NaN or None for what is missing. A path is of a CSV file (see `read_csv_rows`), or by its
        extension of an array in .npy; it is read once, in pieces.
    names : sequence of str, optional
        The variables, by which the columns of a DataFrame or of a CSV file with a first line of names are found; by
        default these names themselves, or x0, x1, …
    what : str
        What to call the data in messages.

    Examples
    --------
    >>> rows = read_rows([[1, 0], [float("nan"), 1]])
    >>> rows.codes([0, 1]).tolist(), rows.names
    ([[1, 0], [-1, 1]], ['x0', 'x1'])
    """
    if isinstance(X, Rows):
        return X if names is None else _rearranged(X, list(names), what)
    found, chunks = read_chunks(X, names, what)
    return pack_rows(found, chunks, what)


def read_chunks(
    X: Any, names: Sequence[str] | None = None, what: str = "the data"
) -> tuple[list[str], Iterator[np.ndarray]]:
    """The names of the columns, and the rows as int8 codes, some at a time; for the arguments see `read_rows`."""
    if isinstance(X, Rows):
        return X.names, X.chunks()
    if isinstance(X, (str, os.PathLike)):
        pieces = (_read_npy if os.fspath(X).endswith(".npy") else _read_csv)(os.fspath(X), names)
        return next(pieces), pieces
    found = _names(X, what) if names is None else list(names)
    given = Evidence(found, X)
    if given.single or not given.rows or not found:
        raise EvidenceError(f"{what} are a table of rows and columns, with at least one of both")
    return found, (given.chunk(part) for part in slices(given.rows, len(found)))


def _rearranged(rows: Rows, names: list[str], what: str) -> Rows:
    """Rows with their columns in the order of the names, if they have these; else the columns are as they stand."""
    if rows.n != len(names):
        raise EvidenceError(f"{what} have {rows.n} columns: one for each of the {len(names)} variables is needed")
    if rows.names == names or set(rows.names) != set(names):
        return rows
    columns = [rows.names.index(name) for name in names]
    return pack_rows(names, (codes[:, columns] for codes in rows.chunks()), what)


# -- arrays and data frames ---------------------------------------------------------------------------------


def _names(X: Any, what: str) -> list[str]:
    if hasattr(X, "columns"):
        unnamed = [name for name in X.columns if not isinstance(name, str)]
        if unnamed:
            raise EvidenceError(f"column {unnamed[0]!r} of {what} has no name that is text")
        return _checked(list(X.columns), what)
    return default_names(_width(X, what))


def _checked(names: list[str], what: str) -> list[str]:
    """Names that variables can have: said before the work, not after it."""
    for i, name in enumerate(names):
        try:
            var(name)
        except CircuitError as error:
            raise EvidenceError(f"column {i + 1} of {what}: {error}") from None
    return names


def default_names(n: int) -> list[str]:
    """Of columns that have none: x0, x1, …"""
    return [f"x{i}" for i in range(n)]


def _width(X: Any, what: str) -> int:
    if isinstance(X, (bytes, Mapping)) or not (hasattr(X, "shape") or isinstance(X, Collection)):
        raise EvidenceError(
            f"{what} are a table of 0, 1 and −1 or NaN for missing, or the path of one, not {type(X).__name__}"
        )
    shape = getattr(X, "shape", None)
    if shape is None:
        lengths = {len(row) if isinstance(row, Sequence) or hasattr(row, "__len__") else -1 for row in X}
        if len(lengths) > 1:
            raise EvidenceError(f"the rows of {what} have different lengths: {', '.join(map(str, sorted(lengths)))}")
        shape = (len(X), *lengths)
    if len(shape) != 2 or shape[0] < 1 or shape[1] < 1:
        raise EvidenceError(f"{what} are a table of rows and columns, with at least one of both; not of shape {shape}")
    return int(shape[1])


# -- files --------------------------------------------------------------------------------------------------


def read_csv_chunks(
    lines: Iterable[str], names: Sequence[str] | None, where: str
) -> tuple[list[str], Iterator[np.ndarray]]:
    """The names of the columns of a CSV table, and its rows, some at a time.

    A first line of nothing but 1, 0, ? and gaps is data; any other names the columns.

    >>> names, chunks = read_csv_chunks(["b,a\\n", "1,0\\n", "?,1\\n"], None, "x.csv")
    >>> names, [codes.tolist() for codes in chunks]
    (['b', 'a'], [[[1, 0], [-1, 1]]])
    """
    if names is None:
        names, lines = find_names(lines, where)
    found = _checked(list(names), where)
    return found, _some_rows(read_csv(lines, found, rows_at_a_time(found), where, header=None), where)


def _some_rows(chunks: Iterable[tuple[int, np.ndarray]], where: str) -> Iterator[np.ndarray]:
    rows = 0
    for _, codes in chunks:
        rows += len(codes)
        yield codes
    if not rows:
        raise EvidenceError(f"{where} has no rows")


def _read_csv(path: str, names: Sequence[str] | None) -> Iterator[Any]:
    """First the names of the columns, then the rows, some at a time."""
    with _open(path) as file, open(file.fileno(), encoding="utf-8", newline="", closefd=False) as text:
        found, chunks = read_csv_chunks(text, names, path)
        yield found
        yield from chunks


def _read_npy(path: str, names: Sequence[str] | None) -> Iterator[Any]:
    """First the names of the columns, then the rows, some at a time.

    Read, not mapped: if a file that is mapped becomes shorter, the process dies.
    """
    with _open(path) as file:
        rows, n, kind = _npy_header(file, path)
        found = default_names(n) if names is None else list(names)
        if len(found) != n:
            raise EvidenceError(f"{path} has {n} columns: one for each of the {len(found)} variables is needed")
        yield found
        for part in slices(rows, n):
            size = (part.stop - part.start) * n * kind.itemsize
            text = file.read(size)
            if len(text) < size:
                last = part.start + len(text) // (n * kind.itemsize)
                raise FormatError(f"{path} ends after {last:,} of its {rows:,} rows: it is damaged")
            try:
                yield as_codes(np.frombuffer(text, kind).reshape(-1, n), found, part.start)
            except EvidenceError as error:
                raise EvidenceError(f"{path}: {error}") from None


def _npy_header(file: IO[bytes], path: str) -> tuple[int, int, np.dtype]:
    """Rows, columns and type of the array in a .npy file."""
    try:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, columns_first, kind = header(file)
    except DAMAGE as error:
        raise FormatError(f"{path} is not an array in .npy: {reason_of(error)}") from None
    if len(shape) != 2 or min(shape) < 1 or kind.kind not in "biuf":
        raise FormatError(
            f"{path} is an array of shape {shape} and type {kind}: rows and columns of 0 and 1 are needed"
        )
    if columns_first and min(shape) > 1:
        raise FormatError(f"{path} has its columns first (Fortran order): np.save(path, np.ascontiguousarray(X))")
    return shape[0], shape[1], kind


@contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    """A file to read once, from which nothing may be taken away and to which nothing may be added meanwhile."""
    try:
        with open(path, "rb") as file:
            before = os.fstat(file.fileno())
            yield file
            after = os.fstat(file.fileno())
    except OSError as error:
        raise PgccError(f"{path} cannot be read: {error.strerror or error}") from None
    if stat.S_ISREG(before.st_mode) and (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise PgccError(f"{path} was changed while it was read: read it again")

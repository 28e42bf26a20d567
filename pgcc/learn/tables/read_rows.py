"""Reading data: arrays, data frames, and files that are read in pieces."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pgcc.arrays import is_sparse
from pgcc.data.evidence import Evidence
from pgcc.data.npy import Npy, is_npy, reading
from pgcc.data.text import find_names, read_csv, rows_at_a_time
from pgcc.errors import CircuitError, EvidenceError, plural
from pgcc.ir.names import default_names as names_of
from pgcc.ir.node import var
from pgcc.learn.tables.packed_rows import Rows, pack_rows, slices

# The largest number of variables of a model.
MOST_COLUMNS = 1 << 20


def read_rows(
    X: Any, names: Sequence[str] | None = None, what: str = "the data", threshold: float | None = None
) -> Rows:
    """Read data in any form.

    Parameters
    ----------
    X : array, sparse matrix, list of rows, DataFrame or path
        Rows of 1 and 0, with −1, NaN or None for missing values. A path names a CSV file (see `read_csv_rows`) or, by
        its extension, an array in .npy; it is read once, in pieces.
    names : sequence of str, optional
        The variables, for finding the columns of a DataFrame or of a CSV file whose first line has names. By default,
        the names in the data, or x1, x2, …
    what : str
        What to call the data in messages.
    threshold : float, optional
        Numbers above it count as 1, others as 0 (so that −1 is not missing; only NaN and None are).

    Examples
    --------
    >>> rows = read_rows([[1, 0], [float("nan"), 1]])
    >>> rows.codes([0, 1]).tolist(), rows.names
    ([[1, 0], [-1, 1]], ['x1', 'x2'])
    """
    if isinstance(X, Rows):
        return X if names is None else _rearranged(X, list(names), what)
    found, chunks = read_chunks(X, names, what, threshold)
    return pack_rows(found, chunks, what)


def read_chunks(
    X: Any, names: Sequence[str] | None = None, what: str = "the data", threshold: float | None = None
) -> tuple[list[str], Iterator[np.ndarray]]:
    """The names of the columns, and the rows as int8 codes in chunks; for the arguments see `read_rows`."""
    if isinstance(X, Rows):
        return X.names, X.chunks()
    if isinstance(X, (str, os.PathLike)):
        if threshold is not None:
            raise EvidenceError(f"{X}: files must contain 0 and 1; binarize={threshold:g} is for arrays")
        pieces = (_read_npy if is_npy(X) else _read_csv)(os.fspath(X), names)
        return next(pieces), pieces
    if hasattr(X, "__array__") and not hasattr(X, "shape"):  # objects that convert themselves to an array
        X = np.asarray(X)
    found = _column_names(X, what) if names is None else list(names)
    if is_sparse(X):
        rows = X.tocsr()
        return found, (_codes(found, rows[part].toarray(), threshold) for part in slices(X.shape[0], len(found)))
    given = Evidence(found, X if threshold is None else above(X, threshold))
    if given.single or not given.rows or not found:
        raise EvidenceError(
            f"{what} are a table of rows and columns, with at least one of both. Reshape your data if they are one "
            "row: X.reshape(1, -1)"
        )
    return found, (given.chunk(part) for part in slices(given.rows, len(found)))


def _rearranged(rows: Rows, names: list[str], what: str) -> Rows:
    """Rows with their columns in the order of the names, if they have these names; otherwise unchanged."""
    if rows.n != len(names):
        raise EvidenceError(
            f"{what} have {plural(rows.n, 'column')}: one for each of the {len(names)} variables is needed"
        )
    if rows.names == names or set(rows.names) != set(names):
        return rows
    columns = [rows.names.index(name) for name in names]
    return pack_rows(names, (codes[:, columns] for codes in rows.chunks()), what)


# -- arrays and data frames ---------------------------------------------------------------------------------


def _column_names(X: Any, what: str) -> list[str]:
    if hasattr(X, "columns"):
        unnamed = [name for name in X.columns if not isinstance(name, str)]
        if unnamed:
            raise EvidenceError(f"column {unnamed[0]!r} of {what} has no name that is text")
        return _checked(list(X.columns), what)
    return default_names(_width(X, what))


def _checked(names: list[str], what: str) -> list[str]:
    """Check that these can be names of variables, before any work is done."""
    for i, name in enumerate(names):
        try:
            var(name)
        except CircuitError as error:
            raise EvidenceError(f"column {i + 1} of {what}: {error}") from None
    return names


def default_names(n: int) -> list[str]:
    """The names of columns without names: x1, x2, …"""
    if n > MOST_COLUMNS:
        raise EvidenceError(f"a table of {n:,} columns: at most {MOST_COLUMNS:,} variables can be learned")
    return names_of(n)


def _width(X: Any, what: str) -> int:
    is_other = isinstance(X, (bytes, Mapping)) and not is_sparse(X)  # some sparse matrices are mappings
    if is_other or not (hasattr(X, "shape") or isinstance(X, Collection)):
        raise EvidenceError(
            f"{what} are a table of 0, 1 and −1 or NaN for missing, or the path of one, not {type(X).__name__}"
        )
    shape = getattr(X, "shape", None)
    if shape is None:
        lengths = {len(row) if isinstance(row, Sequence) or hasattr(row, "__len__") else -1 for row in X}
        if len(lengths) > 1:
            raise EvidenceError(f"the rows of {what} have different lengths: {', '.join(map(str, sorted(lengths)))}")
        shape = (len(X), *(lengths - {-1}))
    if len(shape) == 2 and shape[0] > 0 and shape[1] == 0:
        raise EvidenceError(f"{what} have 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required.")
    if len(shape) != 2 or min(shape) < 1:
        raise EvidenceError(f"{what} are a table of rows and columns, with at least one of both; not of shape {shape}")
    return int(shape[1])


# -- sparse matrices, and numbers that become 0 and 1 -----------------------------------------------------------


def _codes(names: list[str], table: np.ndarray, threshold: float | None) -> np.ndarray:
    return Evidence(names, table if threshold is None else above(table, threshold)).chunk(slice(None))


class NoNumberError(EvidenceError, TypeError):
    """A table with an entry that is not a number."""


def above(X: Any, threshold: float) -> Any:
    """Numbers as codes: 1 above the threshold, 0 elsewhere, −1 for NaN and None. A DataFrame stays one.

    >>> above([[0.5, -2], [None, 3]], 0).tolist()
    [[1, 0], [-1, 1]]
    """
    if isinstance(X, np.ma.MaskedArray):
        X = np.where(np.ma.getmaskarray(X), np.nan, X.data)
    named = hasattr(X, "columns") and hasattr(X, "iloc")
    try:
        table = np.asarray(X.astype(object).where(X.notna(), None) if named else X)
        if table.dtype.kind == "c":
            raise EvidenceError("Complex data not supported: numbers are needed that lie above a threshold or not")
        numbers = table.astype(np.float64)
    except (ValueError, TypeError) as error:
        kind = EvidenceError if isinstance(error, ValueError) else NoNumberError
        raise kind(f"a table of numbers is needed, for binarize={threshold:g}: {error}") from None
    codes = np.where(np.isnan(numbers), -1, numbers > threshold).astype(np.int8)
    return type(X)(codes, index=X.index, columns=X.columns) if named else codes


# -- files --------------------------------------------------------------------------------------------------


def read_csv_chunks(
    lines: Iterable[str], names: Sequence[str] | None, where: str
) -> tuple[list[str], Iterator[np.ndarray]]:
    """The names of the columns of a CSV table, and its rows in chunks.

    A first line with only 1, 0, ? and empty entries is data; any other line names the columns.

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
    """Yields the names of the columns first, then chunks of rows."""
    with reading(path) as file, open(file.fileno(), encoding="utf-8", newline="", closefd=False) as text:
        found, chunks = read_csv_chunks(text, names, path)
        yield found
        yield from chunks


def _read_npy(path: str, names: Sequence[str] | None) -> Iterator[Any]:
    """Yields the names of the columns first, then chunks of rows."""
    with reading(path) as file:
        table = Npy(file, path)
        found = default_names(table.columns) if names is None else list(names)
        yield found
        yield from table.chunks(found)

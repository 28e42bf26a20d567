"""Reading data: arrays, data frames, lists of sets, and files that are read in pieces."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from pgcc.arrays import is_frame, is_sparse
from pgcc.data.evidence import Evidence, as_code
from pgcc.data.tables import CELLS, Csv, Labels, column_names, open_table
from pgcc.errors import CircuitError, EvidenceError, brief, plural
from pgcc.ir.names import hint
from pgcc.ir.node import var
from pgcc.learn.tables.packed_rows import Rows, pack_rows, slices


def read_rows(
    X: Any,
    names: Sequence[str] | None = None,
    what: str = "the data",
    threshold: float | None = None,
    labels: Labels | None = None,
) -> Rows:
    """Read data in any form.

    Parameters
    ----------
    X : array, sparse matrix, list of rows, list of sets, DataFrame, path or Csv
        Rows of 1 and 0, with −1, NaN or None for missing values; or sets of the names of what is 1. A path names a CSV
        file (see `Csv`) or, by its extension, an array in .npy; it is read in pieces.
    names : sequence of str, optional
        The variables, for finding the columns of a DataFrame or of a CSV file whose first line has names. By default,
        the names in the data, or x1, x2, …
    what : str
        What to call the data in messages.
    threshold : float, optional
        Numbers above it count as 1, others as 0 (so that −1 is not missing; only NaN and None are).
    labels : mapping, optional
        The labels of columns with labels of their own. Without it, a column of exactly two other values is taken as 0
        and 1, in ascending order, with a warning, and `Rows.labels` says so.

    Examples
    --------
    >>> rows = read_rows([[1, 0], [float("nan"), 1]])
    >>> rows.codes([0, 1]).tolist(), rows.names
    ([[1, 0], [-1, 1]], ['x1', 'x2'])
    """
    if isinstance(X, Rows):
        return X if names is None else _rearranged(X, list(names), what)
    try:
        found, chunks = read_chunks(X, names, what, threshold, labels)
        return replace(pack_rows(found, chunks, what), labels=dict(labels or {}))
    except EvidenceError:
        mine = find_labels(X, names, what) if labels is None and threshold is None else {}
        if not mine:
            raise
    told = ", ".join(f"{name} ({no!r} is 0, {yes!r} is 1)" for name, (no, yes) in list(mine.items())[:8])
    more = ", …" if len(mine) > 8 else ""
    warnings.warn(f"labels in {what} were taken for 0 and 1, in ascending order: {told}{more}", stacklevel=2)
    return read_rows(X, names, what, labels=mine)


def read_chunks(
    X: Any,
    names: Sequence[str] | None = None,
    what: str = "the data",
    threshold: float | None = None,
    labels: Labels | None = None,
) -> tuple[list[str], Iterator[np.ndarray]]:
    """The names of the columns, and the rows as int8 codes in chunks; for the arguments see `read_rows`."""
    if isinstance(X, Rows):
        return X.names, X.chunks()
    if isinstance(X, Csv):
        return _checked(X.variables, what), _some_rows(X, what)
    if isinstance(X, (str, os.PathLike)):
        if threshold is not None:
            raise EvidenceError(f"{X}: files must contain 0 and 1; binarize={threshold:g} is for arrays")
        pieces = _read_file(X, names, labels)
        return next(pieces), pieces
    if _is_sets(X):
        return _read_sets(X, names, what)
    if hasattr(X, "__array__") and not hasattr(X, "shape"):  # objects that convert themselves to an array
        X = np.asarray(X)
    found = _column_names(X, what) if names is None else list(names)
    if is_sparse(X):
        rows = X.tocsr()
        return found, (_codes(found, rows[part].toarray(), threshold) for part in slices(X.shape[0], len(found)))
    given = Evidence(found, coded(X, found, labels) if labels else X if threshold is None else above(X, threshold))
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
    return column_names(_width(X, what))


def _checked(names: list[str], what: str) -> list[str]:
    """Check that these can be names of variables, before any work is done."""
    for i, name in enumerate(names):
        try:
            var(name)
        except CircuitError as error:
            raise EvidenceError(f"column {i + 1} of {what}: {error}") from None
    return names


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
            baskets = all(isinstance(name, str) for row in X if isinstance(row, Sequence) for name in row)
            raise EvidenceError(
                f"the rows of {what} have different lengths: {', '.join(map(str, sorted(lengths)))}"
                + (". Rows of names are read as sets: [set(row) for row in rows]" if baskets else "")
            )
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


# -- sets -------------------------------------------------------------------------------------------------------


def _is_sets(X: Any) -> bool:
    """Whether rows are sets of the names of what is 1 in them, such as baskets of items."""
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(row, Set) for row in X)


def _read_sets(X: Sequence[Set], names: Sequence[str] | None, what: str) -> tuple[list[str], Iterator[np.ndarray]]:
    unnamed = next((name for row in X for name in row if not isinstance(name, str)), None)
    if unnamed is not None:
        raise EvidenceError(f"{what} are sets, and {unnamed!r} in one of them is no name: names are text")
    found = _checked(sorted(set().union(*X)), what) if names is None else list(names)
    if not found:
        raise EvidenceError(f"{what} are sets without anything in them")
    column = {name: i for i, name in enumerate(found)}

    def codes(part: slice) -> np.ndarray:
        table = np.zeros((len(X[part]), len(found)), np.int8)
        for i, row in enumerate(X[part]):
            for name in row:
                if name not in column:
                    raise EvidenceError(f"row {part.start + i} of {what} has the unknown {name!r}{hint(name, found)}")
                table[i, column[name]] = 1
        return table

    return found, map(codes, slices(len(X), len(found)))


# -- labels -----------------------------------------------------------------------------------------------------


def find_labels(X: Any, names: Sequence[str] | None, what: str = "the data") -> dict[str, tuple[str, str]]:
    """The two labels, in ascending order, of every column that has text other than 0 and 1 (or yes and no).

    >>> find_labels([["red", 1], ["blue", 0], [None, 1]], None)
    {'x1': ('blue', 'red')}
    """
    numbers = getattr(getattr(X, "dtype", None), "kind", "O") not in "OUT"
    if numbers or isinstance(X, Csv) or is_sparse(X) or _is_sets(X):
        return {}
    if isinstance(X, (str, os.PathLike)):
        with open_table(X, names) as table:
            if not isinstance(table, Csv):
                return {}
            columns = dict(zip(table.variables, table.values(), strict=True))
    else:
        columns = {name: _values(column) for name, column in _columns(X, names, what)}
    return {name: pair for name, values in columns.items() if (pair := _two_labels(name, values, what))}


def _columns(X: Any, names: Sequence[str] | None, what: str) -> Iterator[tuple[str, list[Any]]]:
    """The columns of a table in memory, with their names."""
    if is_frame(X):
        for name in X.columns:
            yield name, np.asarray(X[name], dtype=object).tolist()
        return
    try:
        table = np.array(X, dtype=object)
    except ValueError:  # lists of several depths
        return
    if table.ndim == 2:
        found = _column_names(X, what) if names is None else names
        yield from zip(found, table.T.tolist(), strict=False)


def _values(column: list[Any]) -> set[str]:
    """Up to three of the texts in a column; none if it has other values than texts and missing ones."""
    found: set[str] = set()
    for value in column:
        if _is_missing(value):
            continue
        if not isinstance(value, str):
            return set()
        found.update([value] if len(found) < 3 else [])
    return found


def _two_labels(name: str, values: set[str], what: str) -> tuple[str, str] | None:
    """The labels in a column; None if it has no text."""
    if not values:
        return None
    if len(values) != 2:
        shown = ", ".join(sorted(map(repr, values))) + (", …" if len(values) > 2 else "")
        raise EvidenceError(
            f"column {name!r} of {what} has the values {shown}: a variable is 0 or 1, or has two labels. For others, "
            "make a column of each value (pandas.get_dummies)"
        )
    no, yes = sorted(values)
    return no, yes


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return CELLS.get(value.strip().lower()) == -1
    try:
        return as_code(value, "") < 0
    except EvidenceError:
        return False


def coded(X: Any, names: Sequence[str], labels: Labels) -> Any:
    """A table in memory with 0 and 1 for labels."""
    columns = dict(_columns(X, names, "the data"))
    for name, pair in labels.items():
        for i, value in enumerate(columns.get(name, ())):
            if isinstance(value, str):
                if value not in pair and not _is_missing(value):
                    raise EvidenceError(f"row {i}: {name!r} is {brief(value)}, neither {pair[0]!r} nor {pair[1]!r}")
                columns[name][i] = pair.index(value) if value in pair else None
    return type(X)(columns) if is_frame(X) else np.array(list(columns.values()), dtype=object).T


# -- files --------------------------------------------------------------------------------------------------


def _some_rows(table: Any, where: str) -> Iterator[np.ndarray]:
    rows = 0
    for _, codes in table.chunks():
        rows += len(codes)
        yield codes
    if not rows:
        raise EvidenceError(f"{where} has no rows")


def _read_file(path: Any, names: Sequence[str] | None, labels: Labels | None) -> Iterator[Any]:
    """Yields the names of the columns first, then chunks of rows."""
    with open_table(path, names, labels=labels) as table:
        yield _checked(table.variables, os.fspath(path))
        yield from _some_rows(table, os.fspath(path))

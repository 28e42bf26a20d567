"""Reading data: arrays, data frames, lists of sets, and files that are read in pieces."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.arrays import is_frame, is_sparse
from pgcc.data.evidence import Evidence, is_missing
from pgcc.data.tables import Csv, column_names, open_table
from pgcc.data.text import CELLS
from pgcc.errors import CircuitError, EvidenceError, brief, plural
from pgcc.formats.io import number_in
from pgcc.ir.domains import Columns, Domain, Domains, as_columns
from pgcc.ir.names import hint
from pgcc.ir.node import var
from pgcc.learn.tables.packed_rows import Rows, pack_rows, slices

# The most states that are found in a column; more have to be given.
MOST_STATES = 64
_PLAIN = Domain((0, 1), (None, "x"))


def read_rows(
    X: Any,
    names: Sequence[str] | None = None,
    what: str = "the data",
    threshold: float | None = None,
    states: Mapping[str, Iterable[Any]] | None = None,
) -> Rows:
    """Read data in any form.

    Parameters
    ----------
    X : array, sparse matrix, list of rows, list of dicts, list of sets, DataFrame, path or Csv
        Rows of 1 and 0, or of labels, with −1, NaN or None for missing values; or sets of the names of what is 1. A
        path names a CSV file (see `Csv`) or, by its extension, an array in .npy; it is read in pieces.
    names : sequence of str, optional
        The columns of a circuit, which know the domains of variables with states. By default, the names in the data,
        or x1, x2, …, with the states that are found (see `find_domains`).
    what : str
        What to call the data in messages.
    threshold : float, optional
        Numbers above it count as 1, others as 0 (so that −1 is not missing; only NaN and None are).
    states : mapping, optional
        The states of some variables, in the order in which they are wanted.

    Examples
    --------
    >>> rows = read_rows([[1, 0], [float("nan"), 1]])
    >>> rows.codes([0, 1]).tolist(), rows.names
    ([[1, 0], [-1, 1]], ['x1', 'x2'])
    >>> rows = read_rows([{"weather": "sun", "wet": 0}, {"weather": "rain", "wet": 1}, {"weather": "snow"}])
    >>> rows.codes([0, 1, 2]).tolist(), rows.variables
    ([[0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, -1]], ['weather', 'wet'])
    """
    if isinstance(X, Rows):
        return X if names is None else _rearranged(X, names, what)
    try:
        if states is None:
            return pack_rows(*read_chunks(X, names, what, threshold), what)
    except EvidenceError:
        if threshold is not None or isinstance(names, Columns) or isinstance(X, Csv) or is_sparse(X) or _is_sets(X):
            raise
        domains = find_domains(X, names, what, {})
        if all(domain.is_plain for domain in domains.values()):
            raise
    else:
        domains = find_domains(X, names, what, states)
    columns = as_columns(domains)
    if not columns:
        raise EvidenceError(f"every column of {what} has a single value: there is nothing to learn")
    return pack_rows(*read_chunks(X, columns, what), what)


def read_chunks(
    X: Any,
    names: Sequence[str] | None = None,
    what: str = "the data",
    threshold: float | None = None,
) -> tuple[Sequence[str], Iterator[np.ndarray]]:
    """The names of the columns, and the rows as int8 codes in chunks; for the arguments see `read_rows`."""
    if isinstance(X, Rows):
        return X.names, X.chunks()
    if isinstance(X, Csv):
        return _checked(X.variables if names is None else names, what), _some_rows(X, what)
    if isinstance(X, (str, os.PathLike)):
        if threshold is not None:
            raise EvidenceError(f"{X}: files must contain 0 and 1; binarize={threshold:g} is for arrays")
        pieces = _read_file(X, names)
        return next(pieces), pieces
    if _is_sets(X):
        return _read_sets(X, names, what)
    if hasattr(X, "__array__") and not hasattr(X, "shape"):  # objects that convert themselves to an array
        X = np.asarray(X)
    found = _checked(_column_names(X, what) if names is None else names, what)
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


def _rearranged(rows: Rows, names: Sequence[str], what: str) -> Rows:
    """Rows with their columns in the order of the names, if they have these names; otherwise unchanged."""
    if rows.n != len(names):
        raise EvidenceError(
            f"{what} have {plural(rows.n, 'column')}: one for each of the {len(names)} variables is needed"
        )
    if list(rows.names) == list(names) or set(rows.names) != set(names):
        return rows
    columns = [rows.names.index(name) for name in names]
    return pack_rows(names, (codes[:, columns] for codes in rows.chunks()), what)


# -- arrays and data frames ---------------------------------------------------------------------------------


def _column_names(X: Any, what: str) -> list[str]:
    if hasattr(X, "columns"):
        unnamed = [name for name in X.columns if not isinstance(name, str)]
        if unnamed:
            raise EvidenceError(f"column {unnamed[0]!r} of {what} has no name that is text")
        return list(X.columns)
    if isinstance(X, Sequence) and X and all(isinstance(row, Mapping) for row in X):
        return list(dict.fromkeys(name for row in X for name in row))
    return column_names(_width(X, what))


def without_numbered_columns(X: Any) -> Any:
    """A DataFrame whose columns are numbered 0, 1, … as an array: they have no names. Other data as they are."""
    return X.to_numpy() if is_frame(X) and list(X.columns) == list(range(len(X.columns))) else X


def _checked(names: Sequence[str], what: str) -> Sequence[str]:
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


def _codes(names: Sequence[str], table: np.ndarray, threshold: float | None) -> np.ndarray:
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


def _read_sets(X: Sequence[Set], names: Sequence[str] | None, what: str) -> tuple[Sequence[str], Iterator[np.ndarray]]:
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


def find_domains(X: Any, names: Sequence[str] | None, what: str, states: Mapping[str, Iterable[Any]]) -> Domains:
    """The states of every variable of a table of labels: those that are given, or else those that occur, in ascending
    order, or in that of the categories of a pandas categorical. A column of 0 and 1 is plain.

    >>> find_domains([["red", 1], ["blue", 0], [None, 1], ["green", None]], None, "the data", {})
    <Domains: x1 in {blue, green, red}, x2 in {0, 1}>
    """
    if not isinstance(states, Mapping) or not all(isinstance(labels, Iterable) for labels in states.values()):
        raise EvidenceError(f"states={brief(states)}: expected the states of each variable, a dict of lists")
    try:
        columns = dict(_columns(X, names, what))
    except TypeError as error:
        raise EvidenceError(f"a column of {what} holds what is no label: {error}") from None
    unknown = next((name for name in states if name not in columns), None)
    if unknown is not None:
        raise EvidenceError(f"states of {unknown!r}: {what} have no such column{hint(unknown, columns)}")
    _checked(list(columns), what)
    given = {name: Domain.of(name, labels) for name, labels in states.items()}
    found = Domains({n: given.get(n) or _domain(n, v, f"column {n!r} of {what}") for n, v in columns.items()})
    _checked(found.columns, what)
    return found


def _columns(X: Any, names: Sequence[str] | None, what: str) -> Iterator[tuple[str, Any]]:
    """The names of the columns of a table, with the different values of each, or its categories."""
    if isinstance(X, (str, os.PathLike)):
        with open_table(X, names) as table:
            if isinstance(table, Csv):
                yield from ((name, _cells(values)) for name, values in table.values().items())
        return
    found = _column_names(X, what) if names is None else names
    if len(set(found)) < len(found):
        twice = next(name for name in found if list(found).count(name) > 1)
        raise EvidenceError(f"column {twice!r} of {what} occurs twice")
    if is_frame(X):
        for name in found:
            categories = getattr(getattr(X[name], "cat", None), "categories", None)
            yield name, list(X[name].unique()) if categories is None else categories
    elif isinstance(X, Sequence) and all(isinstance(row, Mapping) for row in X):
        yield from ((name, {row.get(name) for row in X}) for name in found)
    else:
        X = np.where(np.ma.getmaskarray(X), np.array(None), X.data) if isinstance(X, np.ma.MaskedArray) else X
        array = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
        if array.ndim != 2:
            raise EvidenceError(
                f"{what} have no columns of labels: they are rows of equal length, dicts, or a DataFrame"
            )
        for name, column in zip(found, array.T, strict=False):
            yield name, set(column.tolist()) if array.dtype.kind == "O" else np.unique(column).tolist()


def _cells(texts: set[str]) -> set[Any]:
    """The values in a column of CSV: numbers, if all are, or texts."""
    known = {text for text in texts if not is_missing(text, _PLAIN)}
    if {text.lower() for text in known} != {"yes", "no"} and all(text.lower() in CELLS for text in known):
        return {0, 1}
    numbers = {number_in(text) for text in known}
    return known if None in numbers else numbers


def _domain(name: str, values: Any, where: str) -> Domain:
    """The domain of a variable with these values; see `find_domains`."""
    if not isinstance(values, (set, list)):  # categories
        return Domain.of(name, [value if isinstance(value, (str, int, float)) else str(value) for value in values])
    known = {value.item() if hasattr(value, "item") else value for value in values if not is_missing(value, _PLAIN)}
    if not all(isinstance(value, str) for value in known):
        wrong = next((value for value in known if not isinstance(value, (int, float, Fraction))), None)
        if wrong is not None:
            kinds = "texts and other values" if isinstance(wrong, str) else "values that are neither texts nor numbers"
            raise EvidenceError(
                f"{where} has {kinds}, such as {brief(wrong)}: states={{{name!r}: […]}} gives its states"
            )
        if known <= {0, 1}:
            return Domain((0, 1), (None, name))
        broken = next((value for value in known if value % 1 != 0), None)
        if broken is not None:
            raise EvidenceError(
                f"{where} has {plural(len(known), 'different value')}, such as {broken}: states are texts or whole "
                "numbers. pandas.cut makes intervals of numbers, and binarize=… makes 0 and 1"
            )
        known = set(map(int, known))
    if len(known) > MOST_STATES:
        raise EvidenceError(
            f"{where} has {len(known):,} different values, and more than {MOST_STATES} are not taken for states: leave "
            f"the column out, merge values (pandas.cut makes intervals of numbers), or give states={{{name!r}: […]}}"
        )
    return Domain.of(name, sorted(known)) if known else Domain((0, 1), (None, name))


# -- files --------------------------------------------------------------------------------------------------


def _some_rows(table: Any, where: str) -> Iterator[np.ndarray]:
    rows = 0
    for _, codes in table.chunks():
        rows += len(codes)
        yield codes
    if not rows:
        raise EvidenceError(f"{where} has no rows")


def _read_file(path: Any, names: Sequence[str] | None) -> Iterator[Any]:
    """Yields the names of the columns first, then chunks of rows."""
    with open_table(path, names, labels=names is None) as table:
        yield _checked(table.variables if names is None else names, os.fspath(path))
        yield from _some_rows(table, os.fspath(path))

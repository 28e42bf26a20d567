"""Tables of data: rows of 1, 0 and −1 (missing), and the names of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pgcc.backend.distinct import number_rows
from pgcc.errors import EvidenceError
from pgcc.queries.evidence import Evidence


def read_table(X: Any, names: Sequence[str] | None = None, what: str = "the data") -> tuple[np.ndarray, list[str]]:
    """Data of any form as int8 codes, and the names of the columns.

    Parameters
    ----------
    X : array, list of rows or DataFrame
        1, 0, and −1, NaN or None for what is missing.
    names : sequence of str, optional
        The variables, by which the columns of a DataFrame are found; by default the columns of the DataFrame, or x0,
        x1, …
    what : str
        What to call the data in messages.

    Examples
    --------
    >>> codes, names = read_table([[1, 0], [float("nan"), 1]])
    >>> codes.tolist(), names
    ([[1, 0], [-1, 1]], ['x0', 'x1'])
    """
    if names is None:
        names = _names(X, what)
    given = Evidence(names, X)
    if given.single or not given.rows or not names:
        raise EvidenceError(f"{what} are a table of rows and columns, with at least one of both")
    return given.chunk(slice(None)), list(names)


def _names(X: Any, what: str) -> list[str]:
    if hasattr(X, "columns"):
        unnamed = [name for name in X.columns if not isinstance(name, str)]
        if unnamed:
            raise EvidenceError(f"column {unnamed[0]!r} of {what} has no name that is text")
        return list(X.columns)
    return [f"x{i}" for i in range(_width(X, what))]


def _width(X: Any, what: str) -> int:
    if isinstance(X, (str, bytes)) or not (hasattr(X, "shape") or isinstance(X, Iterable)):
        raise EvidenceError(f"{what} are a table of 0, 1 and −1 or NaN for missing, not {type(X).__name__}")
    shape = getattr(X, "shape", None)
    if shape is None:
        lengths = {len(row) if isinstance(row, Sequence) or hasattr(row, "__len__") else -1 for row in X}
        if len(lengths) > 1:
            raise EvidenceError(f"the rows of {what} have different lengths: {', '.join(map(str, sorted(lengths)))}")
        shape = (len(X), *lengths)
    if len(shape) != 2 or shape[0] < 1 or shape[1] < 1:
        raise EvidenceError(f"{what} are a table of rows and columns, with at least one of both; not of shape {shape}")
    return int(shape[1])


def distinct_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows, in ascending order, and for every row the position of its like.

    >>> rows, where = distinct_rows(np.array([[1, 0], [0, 1], [1, 0]], np.int8))
    >>> rows.tolist(), where.tolist()
    ([[0, 1], [1, 0]], [1, 0, 1])
    """
    first, number = number_rows(codes)
    order = np.lexsort(codes[first].T[::-1])
    return codes[first[order]], np.argsort(order)[number]

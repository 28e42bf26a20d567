"""Kernels of determinantal point processes as users give them: read, checked, and with a name for every item."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.arrays import as_array, check_size, is_frame, is_pandas
from pgcc.errors import CircuitError, brief, plural
from pgcc.ir.matrix import as_doubles
from pgcc.ir.numbers import Number, as_number, nearest_float
from pgcc.ir.operands import model_names

STACK_LEVEL = 5  # of a warning: the line that called `dpp`, through its decorator


@dataclass(frozen=True)
class NamedKernel:
    """A matrix as it was given, with a name for each row."""

    what: str  # L, K or factor
    items: list[str]
    floats: np.ndarray
    rows: np.ndarray | None  # the numbers as Python objects, where they are not simply the floats
    rounding: float  # relative, of the type of the entries
    note: str = ""  # how its numbers were changed, for `Model.explain`

    def noted(self, change: str) -> NamedKernel:
        """The same kernel with a note on how its numbers were changed, which is also issued as a warning."""
        warnings.warn(change, stacklevel=STACK_LEVEL)
        return replace(self, note=f"{self.note}; {change}" if self.note else change)

    @property
    def numbers(self) -> np.ndarray:
        """The numbers as they were given: doubles, or Python objects."""
        return self.floats if self.rows is None else self.rows

    def entry(self, i: int, j: int) -> str:
        return _entry(self.what, self.items, i, j)

    def set(self, members: Iterable[int]) -> str:
        return "{" + ", ".join(self.items[i] for i in members) + "}"

    def replaced(self, floats: np.ndarray) -> NamedKernel:
        return replace(self, floats=floats, rows=None)


def _entry(what: str, items: Sequence[str], i: int, j: int) -> str:
    """The name of an entry: by its items or, in a factor, by its item and column."""
    return f"{what}[{items[i]!r}, {j if what == 'factor' or j >= len(items) else repr(items[j])}]"


def read_kernel(what: str, matrix: Any, names: Iterable[str] | None) -> NamedKernel:
    """Read a kernel from anything that holds an array, or from nested lists; `what` is "L", "K" or "factor"."""
    if is_frame(matrix) and names is None:
        names = _frame_names(what, matrix)
    entries = read_matrix(what, matrix)
    if not len(entries):
        raise CircuitError(f"{what} is empty: a DPP has at least one item")
    check_size(entries.shape[0], entries.shape[1], what)
    return _numbers(what, model_names(names, len(entries), "item"), entries)


def read_matrix(what: str, matrix: Any) -> np.ndarray:
    """A matrix as an array: of anything, if it was given as nested sequences."""
    array = as_array(matrix, what)
    entries = _nested(what, matrix) if array is None else array
    if entries.ndim != 2:
        raise CircuitError(f"{what} has to be a matrix: it has {plural(entries.ndim, 'dimension')}, not 2")
    return entries


def _frame_names(what: str, frame: Any) -> list[str] | None:
    """The items of a DataFrame: its columns, and its rows if they have names; for a factor, only its rows."""
    labels = frame.index if is_pandas(frame) else range(len(frame))
    rows, columns = [str(x) for x in labels], [str(x) for x in frame.columns]
    counted = rows == [str(i) for i in range(len(rows))]  # rows without names
    if what == "factor":
        return None if counted else rows
    if not counted and len(rows) == len(columns):
        check_labels(f"the DataFrame {what}", rows, columns, "items")
    return columns if len(rows) == len(columns) else None


def check_labels(what: str, rows: list, columns: list, members: str) -> None:
    """Refuse a square DataFrame whose rows have other labels than its columns."""
    for i, (row, column) in enumerate(zip(rows, columns, strict=True)):
        if row != column:
            raise CircuitError(
                f"row {i} of {what} is called {row!r}, but column {i} is {column!r}: rows and columns are the same "
                f"{members} in the same order"
            )


def _nested(what: str, matrix: Any) -> np.ndarray:
    """Nested sequences as an array of Python objects."""
    try:
        rows = [list(row) for row in matrix] if not isinstance(matrix, (str, bytes, dict)) else None
    except TypeError:
        rows = None
    if rows is None or any(isinstance(row, (str, bytes)) for row in matrix):
        raise CircuitError(f"{what} has to be a matrix, such as a list of rows, not {brief(matrix)}")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise CircuitError(
                f"row {i} of {what} has {plural(len(row), 'entry', 'entries')}, but row 0 has {len(rows[0])}"
            )
    entries = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            entries[i, j] = x
    return entries


def _numbers(what: str, items: list[str], entries: np.ndarray) -> NamedKernel:
    if entries.dtype.kind == "c":
        return _numbers(what, items, _real(what, items, entries))
    floats = as_doubles(entries) if entries.dtype.kind == "f" else None
    if floats is not None:
        rounding = float(np.finfo(entries.dtype).eps)
        _check_finite(what, items, floats)
        return NamedKernel(what, items, floats, None, max(rounding, float(np.finfo(np.float64).eps)))
    numbers = entries.astype(object)
    for (i, j), x in np.ndenumerate(numbers):
        numbers[i, j] = _number(what, items, i, j, x)
    floats = np.array(list(map(nearest_float, numbers.ravel())), np.float64).reshape(entries.shape)
    _check_finite(what, items, floats)
    kinds = set(map(type, numbers.ravel()))
    # [[1, 0.5], [0.5, 1]] is a matrix of floats, as in numpy.
    is_float = float in kinds and Fraction not in kinds and bool((numbers == floats).all())
    return NamedKernel(what, items, floats, None if is_float else numbers, float(np.finfo(np.float64).eps))


def _real(what: str, items: list[str], entries: np.ndarray) -> np.ndarray:
    if entries.imag.any():
        i, j = np.argwhere(entries.imag != 0)[0]
        raise CircuitError(f"{_entry(what, items, i, j)} is {entries[i, j]}: the entries of a kernel are real")
    return entries.real


def _number(what: str, items: list[str], i: int, j: int, value: Any) -> Number:
    try:
        if isinstance(value, complex) and not value.imag:
            value = value.real
        return as_number(value)
    except CircuitError as error:
        raise CircuitError(f"{_entry(what, items, i, j)}: {error}") from None


def _check_finite(what: str, items: list[str], floats: np.ndarray) -> None:
    if not np.isfinite(floats).all():
        i, j = np.argwhere(~np.isfinite(floats))[0]
        raise CircuitError(f"{_entry(what, items, i, j)} is {floats[i, j]}: the entries of a kernel are finite")

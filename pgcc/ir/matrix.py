"""Constant matrices of a `Det` node: immutable, hashable, exact or float64."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.errors import CircuitError
from pgcc.ir.numbers import Number, as_number, nearest_float


def as_doubles(array: np.ndarray) -> np.ndarray | None:
    """The same numbers as doubles; None if they are long doubles with more digits or a wider range.

    >>> as_doubles(np.ones(1, np.longdouble)), as_doubles(np.ones(1, np.longdouble) + np.longdouble(2) ** -60)
    (array([1.]), None)
    """
    with np.errstate(over="ignore", under="ignore"):
        doubles = array.astype(np.float64)
    return doubles if array.dtype.itemsize <= 8 or np.array_equal(doubles, array, equal_nan=True) else None


class Matrix:
    """A constant matrix. One of floats alone is a float64 array; anything else is held as numbers of either kind.

    note : where the matrix comes from, in words, for readers of the circuit. Matrices that differ only in it are equal.

    >>> Matrix([[1, "1/3"], [0, 2]]).exact()[0][1]
    Fraction(1, 3)
    """

    __slots__ = ("_array", "_hash", "_rows", "note", "shape")

    shape: tuple[int, int]
    note: str
    _hash: int

    def __init__(
        self,
        entries: Matrix | np.ndarray | Sequence[Sequence[Any]],
        shape: tuple[int, int] | None = None,
        note: str = "",
    ):
        self._array: np.ndarray | None = None
        self.note = note or (entries.note if isinstance(entries, Matrix) else "")
        self._rows: tuple[tuple[Number, ...], ...] | None = None
        if isinstance(entries, Matrix):
            self._array, self._rows = entries._array, entries._rows
            self.shape, self._hash = entries.shape, entries._hash
            return
        doubles = as_doubles(entries) if isinstance(entries, np.ndarray) and entries.dtype.kind == "f" else None
        if doubles is not None and (doubles.size or doubles.ndim != 2):
            self._init_floats(doubles)
        else:
            self._init_exact(entries, entries.shape if isinstance(entries, np.ndarray) else shape)

    def _init_floats(self, array: np.ndarray) -> None:
        if array.ndim != 2:
            raise CircuitError(f"a matrix has two dimensions, not {array.ndim}")
        array = np.array(array, dtype=np.float64, order="C")
        if not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise CircuitError(f"matrix entry [{row}, {column}] is {array[row, column]}: entries are finite")
        array += 0.0  # −0.0 and 0.0 are one number and must have one identity
        array.setflags(write=False)
        self._array, self.shape = array, array.shape
        self._hash = hash((array.shape, array.tobytes()))

    def _init_exact(self, entries: Iterable[Iterable[Any]], shape: tuple[int, int] | None) -> None:
        rows = tuple(tuple(as_number(x) for x in row) for row in entries)
        width = len(rows[0]) if rows else (shape[1] if shape else 0)
        if any(len(row) != width for row in rows):
            raise CircuitError("the rows of a matrix must have one length")
        if width and rows and all(type(x) is float for row in rows for x in row):
            self._init_floats(np.array(rows))
            return
        self._rows, self.shape = rows, (len(rows), width)
        self._hash = hash((self.shape, rows))

    @property
    def is_float(self) -> bool:
        """Whether the entries were given as float64."""
        return self._array is not None

    @property
    def is_exact(self) -> bool:
        """Whether no entry was given as a float."""
        return self._rows is not None and float not in {type(x) for row in self._rows for x in row}

    def numbers(self) -> list[list[Number]]:
        """The entries as they are held."""
        return self._array.tolist() if self._array is not None else [list(row) for row in self._rows or ()]

    def exact(self) -> list[list[Fraction]]:
        """The entries as rationals."""
        return [[Fraction(x) for x in row] for row in self.numbers()]

    def floats(self) -> np.ndarray:
        """The entries as the nearest doubles (read-only)."""
        if self._array is not None:
            return self._array
        array = np.array([[nearest_float(x) for x in row] for row in self._rows or ()], dtype=np.float64)
        array = array.reshape(self.shape)
        array.setflags(write=False)
        return array

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matrix):
            return NotImplemented
        return self._hash == other._hash and self._identity() == other._identity()

    def _identity(self) -> tuple[Any, ...]:
        if self._array is not None:
            return self.shape, self._array.tobytes()
        return self.shape, self._rows, [[type(x) for x in row] for row in self._rows or ()]

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its entries: the hash is computed again, since another process has other hashes."""
        return Matrix, (self._rows if self._array is None else self._array, self.shape, self.note)

    def __repr__(self) -> str:
        return f"Matrix({self.shape[0]}×{self.shape[1]}, {'float64' if self.is_float else 'exact'})"

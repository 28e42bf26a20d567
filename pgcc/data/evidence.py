"""Evidence in every form people have it → rows of int8 codes: 1 observed in, 0 observed out, −1 unobserved."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pgcc.errors import EvidenceError
from pgcc.rings.float64.kernels.evidence import are_codes

# Tables of at most this many entries are checked by numpy: loading a compiled kernel would take longer.
_SMALL = 10_000
_MEANING = "1 (in), 0 (out) or −1 / None / NaN (unobserved)"


class Evidence:
    """Rows of evidence, converted a chunk at a time.

    Parameters
    ----------
    variables : sequence of str
        The columns.
    given : mapping, array, DataFrame, or sequence of these
        A dict of names (others are unobserved); an array of integers, booleans or floats with one column per
        variable; a DataFrame with named columns; a list of dicts.
    column : dict, optional
        The number of each variable, where that is known already.

    Attributes
    ----------
    rows : int
    single : bool
        Whether one piece of evidence was given rather than a table of them.

    Examples
    --------
    >>> Evidence(["a", "b"], {"b": 1}).chunk(slice(None)).tolist()
    [[-1, 1]]
    """

    def __init__(self, variables: Sequence[str], given: Any, column: dict[str, int] | None = None):
        self.variables = tuple(variables)
        self.single = self._checked = False
        if column is not None:
            self.column = column
        self._table: np.ndarray | _Frame
        if type(given) is np.ndarray:  # the fast path for small queries: the tests below take microseconds
            self._table = self._from_array(given)
            self.rows = len(self._table)
            return
        if given is None:
            given = {}
        if isinstance(given, np.ma.MaskedArray):  # masked entries are unobserved
            given = np.where(np.ma.getmaskarray(given), -1, given.data.astype(np.float64))
        if isinstance(given, Mapping):
            self.single = self._checked = True
            self._table = self._from_dict(given, "")[None]
        elif hasattr(given, "columns") and hasattr(given, "iloc"):
            self._table = _Frame(self.column, given)
        elif _is_series(given):
            self.single, self._table = True, self._from_dict(_named(given), "")[None]
        elif isinstance(given, Sequence) and given and all(isinstance(e, Mapping) or _is_series(e) for e in given):
            self._table = np.stack([self._from_dict(_named(e), f" (row {i})") for i, e in enumerate(given)])
        else:
            self._table = self._from_array(given)
        self.rows = len(self._table)

    @cached_property
    def column(self) -> dict[str, int]:
        """The number of each variable."""
        return {name: i for i, name in enumerate(self.variables)}

    def chunk(self, rows: slice, checked: bool = True) -> np.ndarray:
        """The rows as a C-contiguous int8 array; one that was given as such need not be `checked`."""
        table = self._table[rows]
        if self._checked:
            return table
        if not checked and table.dtype == np.int8 and table.flags.c_contiguous:
            return table
        return as_codes(table, self.variables, rows.indices(self.rows)[0])

    def describe(self, row: int) -> str:
        """One row in words, for messages."""
        codes = self.chunk(slice(row, row + 1))[0]
        seen = [f"{name}={code}" for name, code in zip(self.variables, codes.tolist(), strict=True) if code >= 0]
        text = ", ".join(seen[:8]) + (f", … ({len(seen)} observed)" if len(seen) > 8 else "")
        return (f"evidence {text}" if seen else "no evidence") + ("" if self.single else f" (row {row})")

    def _from_dict(self, given: Mapping[Any, Any], where: str) -> np.ndarray:
        codes = np.full(len(self.variables), -1, np.int8)
        for name, value in given.items():
            column = self.column.get(name) if isinstance(name, str) else None
            if column is None:
                raise EvidenceError(f"unknown variable {name!r}{where}{self._suggest(name)}")
            codes[column] = as_code(value, f"variable {name!r}{where}")
        return codes

    def _suggest(self, name: Any) -> str:
        import difflib

        close = difflib.get_close_matches(str(name), self.variables, 1) if len(self.variables) < 10_000 else []
        if close:
            return f": did you mean {close[0]!r}?"
        shown = ", ".join(self.variables[:8]) + (", …" if len(self.variables) > 8 else "")
        return f": the variables are {shown}" if shown else ": the circuit has no variables"

    def _from_array(self, given: Any) -> np.ndarray:
        try:
            table = np.asarray(given)
        except (ValueError, TypeError):
            raise EvidenceError("the rows of evidence have different lengths") from None
        n = len(self.variables)
        if table.dtype.kind not in "biuf" and table.size:
            table = _from_objects(table)
        if table.ndim == 1 and (len(table) == n or not len(table)):
            if len(table) == n:
                self.single, table = True, table[None]
            else:
                table = table.reshape(0, n)
        if table.ndim != 2 or table.shape[1] != n:
            raise EvidenceError(
                f"evidence of shape {table.shape} does not fit: one column for each of the {n} variables is needed"
            )
        return table


class _Frame:
    """A DataFrame, read a chunk at a time by column name; columns that are missing are unobserved."""

    def __init__(self, column: dict[str, int], frame: Any):
        self.frame, self.column = frame, column
        seen: set[Any] = set()
        for name in frame.columns:
            if name not in column:
                raise EvidenceError(f"column {name!r} of the table is not a variable of the circuit")
            if name in seen:
                raise EvidenceError(f"column {name!r} stands twice in the table: which one is meant?")
            seen.add(name)

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, rows: slice) -> np.ndarray:
        part = self.frame.iloc[rows]
        table = np.full((len(part), len(self.column)), -1.0)
        for name in self.frame.columns:
            values = part[name]
            if values.dtype.kind in "biuf" and values.dtype.__class__.__module__.startswith("numpy"):
                table[:, self.column[name]] = values.to_numpy()
            else:  # nullable and object columns: None and NA are unobserved
                objects = values.astype(object).where(values.notna(), None).to_numpy()
                first = rows.indices(len(self))[0]
                table[:, self.column[name]] = [
                    as_code(v, f"row {first + i}, variable {name!r}") for i, v in enumerate(objects)
                ]
        return table


def _is_series(given: Any) -> bool:
    """Whether it is a pandas Series (pandas is not imported for that)."""
    return hasattr(given, "index") and hasattr(given, "items") and hasattr(given, "iloc")


def _named(given: Any) -> Mapping[Any, Any]:
    """A dict, or a Series with distinct names as one."""
    if isinstance(given, Mapping):
        return given
    named = dict(given.items())
    if len(named) < len(given):
        raise EvidenceError("a name stands twice in the index of the series: which one is meant?")
    return named


def as_code(value: Any, where: str) -> int:
    """One observation as 1, 0 or −1.

    >>> as_code(True, ""), as_code(None, ""), as_code(0.0, "")
    (1, -1, 0)
    """
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, whose comparisons are NA again
        return -1
    if isinstance(value, (numbers.Real, np.bool_)) and not isinstance(value, np.timedelta64):  # numpy: an integer
        if value != value:  # NaN
            return -1
        if value in (0, 1, -1):
            return int(value)  # type: ignore[arg-type]
    raise EvidenceError(f"{where} is {value!r}: evidence is {_MEANING}")


def _from_objects(table: np.ndarray) -> np.ndarray:
    """A table of Python objects, entry by entry."""
    codes = np.empty(table.shape, np.int8)
    for index in np.ndindex(table.shape):
        codes[index] = as_code(table[index], f"entry {index}")
    return codes


def as_codes(table: np.ndarray, variables: Sequence[str], first_row: int) -> np.ndarray:
    """Numbers to codes, checked; the first bad entry is named."""
    kind = table.dtype.kind
    if kind == "b":  # converted, not viewed: the bytes of a boolean array may be others than 0 and 1
        return np.ascontiguousarray(table, dtype=np.int8)
    if (
        table.dtype == np.int8
        and table.size > _SMALL
        and table.flags.c_contiguous
        and are_codes(_flat(table), 0, table.size)
    ):
        return table
    if kind == "f":
        table = np.where(np.isnan(table), -1.0, table)
        good: np.ndarray | bool = (table == 0.0) | (table == 1.0) | (table == -1.0)
    elif table.size and (table.max() > 1 or (kind == "i" and table.min() < -1)):
        good = (table <= 1) & (table >= -1) if kind == "i" else table <= 1
    else:
        good = True
    if not np.all(good):
        row, column = np.argwhere(~np.asarray(good))[0]
        raise EvidenceError(
            f"row {first_row + row}, variable {variables[column]!r} is {table[row, column]}: evidence is {_MEANING}"
        )
    return np.ascontiguousarray(table, dtype=np.int8)


def _flat(table: np.ndarray) -> np.ndarray:
    """A table of codes as one array of bytes."""
    return table.reshape(-1).view(np.uint8)

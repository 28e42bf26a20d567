"""`.npy`, `.csv` and `.npz`: the kernel of a determinantal point process; read only.

`.npy`  one array of numbers
`.csv`  a row of the matrix per line. Cells are decimals (floats), whole numbers or fractions p/q (both exact). A first
        line without a number names the items; as pandas writes it, the first column may name them too. Cells are
        separated by commas, semicolons, tabs or, where there are none of these, by blanks; # starts a comment.
`.npz`  an array called L, K or factor, and perhaps one called names

Nothing is unpickled, and nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pgcc.arrays import MOST_ENTRIES
from pgcc.errors import FormatError
from pgcc.formats.io import (
    Archive,
    array_in,
    csv_rows,
    errors_in,
    number_in,
    read_bytes,
    read_text,
    separator_of,
    shown,
    unpacked_name,
)
from pgcc.frontend.dpp import dpp
from pgcc.ir.circuit import Circuit
from pgcc.ir.numbers import Number

KINDS = ("L", "K", "factor")
MOST_BYTES = 8 * MOST_ENTRIES + 4096

_OBSERVATIONS = {"0", "1", "0.0", "1.0", "-1", "-1.0", "", "?", "na", "nan", "true", "false"}
_NUMERAL = re.compile(r"[+-]?(?:[0-9.][0-9.eE/+-]*|nan|inf|infinity)", re.ASCII | re.IGNORECASE)  # meant as a number


class Kernel(NamedTuple):
    """A matrix, what it is ("L", "K" or "factor"), and the names of its items, if it has them."""

    kind: str
    matrix: Any
    names: Iterable[str] | None


def process_in(
    read_file: Callable[[Path, str | None], Kernel | Circuit],
    path: Path,
    kernel: str | None = None,
    symmetric: bool = True,
    nearest: bool = False,
    rank: int | str | None = None,
    names: Iterable[str] | None = None,
) -> Circuit:
    """The determinantal point process of the kernel in a file.

    Parameters
    ----------
    read_file : function
        What reads the file, if its kernel is of the kind that the option kernel= says, if any.
    path : Path
    kernel : {"L", "K", "factor"}
        What the matrix is; L by default.
    symmetric, nearest, rank, names
        As for `pgcc.dpp`. Names come before those of the file.

    Raises
    ------
    FormatError
        If the file is damaged, or no kernel.
    """
    if kernel is not None and kernel not in KINDS:
        raise FormatError(f"{path}: kernel={kernel!r} is not one of {', '.join(KINDS)}", argument="kernel")
    found = read_file(path, kernel)
    if isinstance(found, Circuit):
        if kernel is not None or names is not None or rank is not None or nearest or not symmetric:
            raise FormatError(f"{path} holds a circuit: options of kernels mean nothing for it")
        return found
    with errors_in(path):
        given: dict[str, Any] = {found.kind: found.matrix}
        called = found.names if names is None else names
        return dpp(**given, names=called, symmetric=symmetric, nearest=nearest, rank=rank)


def _read_matrix(path: Path, kernel: str | None) -> Kernel:
    kind = kernel or "L"
    if unpacked_name(path).suffix.lower() == ".csv":
        return Kernel(kind, *_read_csv(path, kind))
    return Kernel(kind, _need_numbers(array_in(read_bytes(path, MOST_BYTES), str(path)), str(path)), None)


read = partial(process_in, _read_matrix)


def kernel_in(archive: Archive, kernel: str | None) -> Kernel | None:
    """The array L, K or factor of an `.npz` file, and the one called names; None if it has no such array."""
    there = [kind for kind in KINDS if kind in archive.entries]
    if not there or "header" in archive.entries:
        return None
    chosen = _choose(there, kernel)
    matrix = _need_numbers(archive.array(chosen), f"the array {chosen!r}")
    return Kernel(chosen, matrix, _item_names(archive.array("names")) if "names" in archive.entries else None)


def _choose(there: list[str], kernel: str | None) -> str:
    if kernel is not None and kernel not in there:
        raise FormatError(f"it has no array {kernel!r}, but {', '.join(there)}")
    if kernel is None and len(there) > 1:
        raise FormatError(
            f"it has the arrays {' and '.join(there)}", advice=f"kernel={there[0]!r} says which one is meant"
        )
    return kernel or there[0]


# -- arrays --------------------------------------------------------------------------------------------------


def _need_numbers(array: np.ndarray, where: str) -> np.ndarray:
    if array.dtype.kind not in "fiubcU":  # dpp says which text is no number
        raise FormatError(f"{where} holds {array.dtype}, not numbers")
    return array


def _item_names(array: np.ndarray) -> list[str]:
    if array.dtype.kind != "U" or array.ndim != 1:
        raise FormatError("the array 'names' has to be a list of text")
    return array.tolist()


# -- text ----------------------------------------------------------------------------------------------------


def _read_csv(path: Path, kernel: str) -> tuple[list[list[Number]], list[str] | None]:
    """The matrix, and the names of its items, if there are any."""
    lines = list(_cells(path))
    if not lines:
        raise FormatError(f"{path} is empty: it should hold a matrix, a row per line")
    header: list[str] | None = None
    if not lines[0][1][0] or not any(_NUMERAL.fullmatch(cell) for cell in lines[0][1]):
        _, header = lines.pop(0)
    if kernel != "factor":
        _refuse_observations(path, [cells for _, cells in lines])
    rows: list[list[Number]] = []
    labels: list[str] = []
    for number, cells in lines:
        where = f"{path}, line {number}"
        start = 0
        if header and not header[0]:
            labels.append(cells[0])
            start = 1
        width = len(header) if header else len(lines[0][1])
        if len(cells) != width:
            raise FormatError(f"{where} has {len(cells)} cells, and the first line has {width}")
        rows.append([_cell(cells[j], where, j + 1) for j in range(start, width)])
        if len(rows) * width > MOST_ENTRIES:
            raise FormatError(f"{where}: a kernel has at most {MOST_ENTRIES:,} entries")
    if header is None:
        return rows, None
    if kernel == "factor":
        return rows, labels or None  # its columns are no items
    columns = header if header[0] else header[1:]
    for i, (row, column) in enumerate(zip(labels, columns, strict=False), start=1):
        if row != column:
            raise FormatError(f"{path}: row {i} is called {shown(row)}, but column {i} {shown(column)}")
    return rows, columns


def _refuse_observations(path: Path, rows: list[list[str]]) -> None:
    """Refuse a table of observations, which is another thing that `.csv` files hold: no kernel, if it is not square."""
    width = max(map(len, rows), default=0)
    if len(rows) != width and all(cell.lower() in _OBSERVATIONS for cells in rows for cell in cells):
        raise FormatError(
            f"{path} is a table of observations ({len(rows)} rows of {width} columns); a kernel of a DPP is square. To "
            f"learn a model from data: pgcc fit {path} -o model.npz, or an estimator of pgcc.learn"
        )


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines that are neither empty nor comments, with their numbers."""
    text = read_text(path, MOST_BYTES)
    separator: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if separator is None:
            separator = separator_of(line)
        if separator == "," and "," not in line:
            yield number, line.split()
            continue
        for _, cells in csv_rows([line], str(path), lines_before=number - 1, delimiter=separator, strict=True):
            yield number, [cell.strip() for cell in cells]


def _cell(cell: str, where: str, column: int) -> Number:
    number = number_in(cell)
    if number is None:
        raise FormatError(f"{where}, column {column}: {shown(cell)} is not a finite number")
    return number

"""Tables of observations in files, read in chunks of rows: CSV, and arrays in .npy."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from pgcc.data.evidence import as_codes, as_states
from pgcc.data.text import CELLS, MEANING
from pgcc.errors import EvidenceError, FormatError, PgccError, plural
from pgcc.formats.io import (
    DAMAGE,
    as_path,
    bounded_lines,
    csv_rows,
    number_in,
    read_array_header,
    reason_of,
    separator_of,
)
from pgcc.ir.domains import domains_of
from pgcc.ir.names import default_names

# The most rows, and the most entries, of a table that are read at a time: they bound the memory.
_ROWS, _AT_A_TIME = 1 << 15, 1 << 20
_CHUNK = 1 << 20  # bytes that are read at a time where the length of the file is not known
# The largest number of variables of a model.
MOST_COLUMNS = 1 << 20
# The most different values of a column that are gathered.
_MOST_VALUES = 1 << 12

# In a table that may have labels, yes and no are labels, and no codes.
_NUMBERS = {text: code for text, code in CELLS.items() if text not in ("yes", "no")}
_IN_QUOTES = re.compile(r'"((?:[^"]|"")*+)"')  # an entry of CSV


@contextmanager
def open_table(
    path: str | os.PathLike[str],
    variables: Sequence[str] | None = None,
    header: bool | None = None,
    labels: bool = False,
) -> Iterator[Csv | Npy]:
    """The table in a file: an array if its name ends in .npy, otherwise CSV. The arguments are those of `Csv`.

    There is an error at the end if the file was changed while it was read.
    """
    where = os.fspath(path)
    try:
        with open(as_path(path), "rb") as file:
            before = os.fstat(file.fileno())
            if where.endswith(".npy"):
                yield Npy(file, where, variables)
            else:
                with open(file.fileno(), encoding="utf-8", newline="", closefd=False) as text:
                    yield Csv(text, where, variables, header, labels)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise PgccError(f"{path} cannot be read: {error.strerror or error}") from None
    if stat.S_ISREG(before.st_mode) and (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise PgccError(f"{path} was changed while it was read: read it again")


def column_names(n: int) -> list[str]:
    """The names of columns without names: x1, x2, …"""
    if n > MOST_COLUMNS:
        raise EvidenceError(f"a table of {n:,} columns: a model has at most {MOST_COLUMNS:,} variables")
    return default_names(n)


def _rows_at_a_time(variables: Sequence[str]) -> int:
    return max(1, min(_ROWS, _AT_A_TIME // max(1, len(variables))))


# -- CSV ------------------------------------------------------------------------------------------------------


class Csv:
    """A table in CSV. Its cells are separated by commas or, where the first line has none, by semicolons or tabs.

    Parameters
    ----------
    lines : text file, or other lines
        An entry is 1, 0, or (for unobserved) nothing, `?` or −1; see `pgcc.data.text.CODES`. Blank lines are skipped.
    where : str
        The name of the file, for messages.
    variables : sequence of str, optional
        The columns of `chunks`; those that the table lacks are unobserved. If they know the domains of variables with
        states (`pgcc.ir.domains.Columns`), the table has labels, and a column per variable. By default, the names in
        the first line, or x1, x2, … if it has none. (Blanks around a name are part of it inside quotes; without quotes
        they are dropped, with a warning.)
    header : bool, optional
        Whether the first line names the columns. With None, the line itself decides: if it contains only observations,
        it is data, in the order of `variables`.
    labels : bool
        Whether yes and no are labels, so that they are refused where 1 and 0 are expected.

    Examples
    --------
    >>> table = Csv(["b,a\\n", "1,0\\n", "?,1\\n"], "x.csv")
    >>> table.variables, [(place, codes.tolist()) for place, codes in table.chunks()]
    (['b', 'a'], [('line 2', [[1, 0], [-1, 1]])])
    >>> [codes.tolist() for _, codes in Csv(["1;?\\n"], "x.csv", ["a", "b"]).chunks()]
    [[[1, -1]]]
    """

    def __init__(
        self,
        lines: Iterable[str],
        where: str,
        variables: Sequence[str] | None = None,
        header: bool | None = None,
        labels: bool = False,
    ):
        self._lines, self._where = bounded_lines(lines, where, EvidenceError), where
        read: list[str] = []  # for the first row that is not blank
        recorded = _recorded(self._lines, read)
        first = list(islice((line for line in recorded if line.strip("\r\n")), 1))
        self._separator = separator_of(*first)
        entries = self._row(chain(list(read), recorded), skipinitialspace=True)
        written = self._row(read)  # the same with the blanks before them
        spellings = list(zip(written if len(written) == len(entries) else entries, entries, strict=True))
        self._domains = None if variables is None else domains_of(variables)
        variables = variables if self._domains is None else list(self._domains)
        is_data = bool(entries) and all(entry.strip().lower() in CELLS for entry in entries)
        self._before = len(read)  # lines that were read
        if variables is None and not entries:
            raise EvidenceError(f"{where} is empty")
        if is_data and (variables is None or header is None):
            self._lines, self._before = chain(read, self._lines), 0
            self.variables = column_names(len(entries)) if variables is None else list(variables)
            self._columns = list(range(len(self.variables)))
        else:
            self.variables = self._names(spellings, read) if variables is None else list(variables)
            self._columns = self._find_columns(spellings)
        self._cells = _NUMBERS if labels else CELLS

    def _row(self, lines: Iterable[str], **options: bool) -> list[str]:
        """The cells of the first row that is not blank."""
        rows = csv_rows(lines, self._where, error=EvidenceError, delimiter=self._separator, **options)
        return next(rows, (0, []))[1]

    def _names(self, spellings: list[tuple[str, str]], read: list[str]) -> list[str]:
        """The names in the first row: without the blanks around those that are not in quotes."""
        quoted = set(_IN_QUOTES.findall("".join(read)))
        names = [entry if entry.replace('"', '""') in quoted else entry.strip() for _, entry in spellings]
        dropped = [w for (w, _), n in zip(spellings, names, strict=True) if w != n and not w.lstrip().startswith('"')]
        if dropped:
            warnings.warn(
                f"{self._where}: column {dropped[0]!r} is called {dropped[0].strip()!r}, without the blanks around it: "
                "to keep them, put the name in quotes",
                stacklevel=2,
            )
        return names

    def _find_columns(self, spellings: list[tuple[str, str]]) -> list[int]:
        """The variable of every name in the first row: with the blanks around it, or else without them."""
        where = f"{self._where}, line {max(1, self._before)}"
        if not spellings:
            raise EvidenceError(f"{where}: expected the names of the columns")
        known = {name: i for i, name in enumerate(self.variables)}
        if len(known) < len(self.variables):
            twice = next(name for i, name in enumerate(self.variables) if known[name] != i)
            raise EvidenceError(f"{where}: column {twice!r} occurs twice")
        columns: dict[int, None] = {}
        for written, entry in spellings:
            column = next((known[name] for name in (written, entry, entry.strip()) if name in known), None)
            if column is None:
                raise EvidenceError(f"{where}: column {entry.strip()!r} is not a variable of the circuit")
            if column in columns:
                raise EvidenceError(f"{where}: column {self.variables[column]!r} occurs twice")
            columns[column] = None
        return list(columns)

    def chunks(self) -> Iterator[tuple[str, np.ndarray]]:
        """The place where some rows start, and these rows as int8 codes, with one column per variable."""
        step = _rows_at_a_time(self.variables)
        while self._domains is None and (some := list(islice(self._lines, step))):
            codes = _single_character_codes(some, len(self._columns), self._separator)
            if codes is None:
                self._lines = chain(some, self._lines)
                break
            yield f"line {self._before + 1}", self._spread(codes)
            self._before += len(some)
        rows = self.cells()
        while found := list(islice(rows, step)):
            yield f"line {found[0][0]}", self._read(found)

    def cells(self) -> Iterator[tuple[int, list[str]]]:
        """The line and the cells of every row that is left."""
        options: dict[str, Any] = {"delimiter": self._separator, "skipinitialspace": True}
        for line, cells in csv_rows(
            self._lines, self._where, lines_before=self._before, error=EvidenceError, **options
        ):
            if len(cells) != len(self._columns):
                count = plural(len(cells), "entry", "entries")
                width = plural(len(self._columns), "column")
                raise EvidenceError(f"{self._where}, line {line}: {count}, but the table has {width}")
            yield line, cells

    def _read(self, rows: list[tuple[int, list[str]]]) -> np.ndarray:
        """The codes of rows of cells."""
        if self._domains is None:
            return self._spread([self._codes(line, cells) for line, cells in rows])
        states = np.full((len(rows), len(self.variables)), -1, np.int64)
        for place, column in zip(self._columns, zip(*(cells for _, cells in rows), strict=True), strict=True):
            name = self.variables[place]
            read = str.strip if isinstance(self._domains[name].states[0], str) else _number_or_text
            try:
                states[:, place] = as_states(np.array([*map(read, column)], object), self._domains[name], name, 0)
            except EvidenceError as error:
                row, told = re.fullmatch(r"row (\d+), (.*)", str(error), re.DOTALL).groups()  # type: ignore[union-attr]
                raise EvidenceError(f"{self._where}, line {rows[int(row)][0]}: {told}") from None
        return self._domains.codes(states)

    def _spread(self, codes: np.ndarray | list[list[int]]) -> np.ndarray:
        """The codes of the columns, spread out to all variables."""
        spread = np.full((len(codes), len(self.variables)), -1, np.int8)
        spread[:, self._columns] = codes
        return spread

    def _codes(self, line: int, cells: list[str]) -> list[int]:
        try:
            return [self._cells[cell] for cell in cells]
        except KeyError:
            return [self._code(line, cell, column) for cell, column in zip(cells, self._columns, strict=True)]

    def _code(self, line: int, cell: str, column: int) -> int:
        code = self._cells.get(cell.strip().lower())
        if code is None:
            name = self.variables[column]
            raise EvidenceError(f"{self._where}, line {line}: {name!r} is {cell!r}: evidence is {MEANING}")
        return code

    def values(self) -> dict[str, set[str]]:
        """The different values of every column, in the rows that are left; of very many, the first."""
        found: dict[str, set[str]] = {name: set() for name in self.variables}
        rows, step = self.cells(), _rows_at_a_time(self.variables)
        while some := list(islice(rows, step)):
            for place, column in zip(self._columns, zip(*(cells for _, cells in some), strict=True), strict=True):
                values = found[self.variables[place]]
                values.update(map(str.strip, column) if len(values) < _MOST_VALUES else ())
        return found


@lru_cache(_MOST_VALUES)
def _number_or_text(cell: str) -> Any:
    """The number that a cell holds, or else its text."""
    number = number_in(cell.strip())
    return cell.strip() if number is None else number


def _recorded(lines: Iterator[str], read: list[str]) -> Iterator[str]:
    """The lines; those that were read are appended to `read`."""
    for line in lines:
        read.append(line)
        yield line


# The code of each byte; −2 for all but 1, 0 and ?
_CODE_OF_BYTE = np.full(256, -2, np.int8)
_CODE_OF_BYTE[[ord("1"), ord("0"), ord("?")]] = 1, 0, -1


def _single_character_codes(lines: list[str], width: int, separator: str) -> np.ndarray | None:
    """The fast path, by array operations, for lines of only 1, 0 and ? between separators; None for other lines."""
    text = "".join(lines).replace("\r\n", "\n")
    text += "" if text.endswith("\n") else "\n"
    if len(text) != 2 * width * len(lines) or not text.isascii():
        return None
    grid = np.frombuffer(text.encode(), np.uint8).reshape(len(lines), 2 * width)
    codes = _CODE_OF_BYTE[grid[:, ::2]]
    separated = (grid[:, 1:-1:2] == ord(separator)).all() and (grid[:, -1] == ord("\n")).all()
    return codes if separated and codes.min() >= -1 else None


# -- arrays ---------------------------------------------------------------------------------------------------


class Npy:
    """A table in an open .npy file; the values of variables with states are as in any array (`Domain.numbers`).

    It is read and not mapped into memory: if a mapped file became shorter, the process would be killed.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, [[1, 0], [0, -1]])
    >>> _ = file.seek(0)
    >>> [(place, codes.tolist()) for place, codes in Npy(file, "data.npy").chunks()]
    [('row 0', [[1, 0], [0, -1]])]
    """

    def __init__(self, file: IO[bytes], path: str, variables: Sequence[str] | None = None):
        self._file, self._path = file, path
        self.rows, self.columns, self._kind = _header(file, path)
        self._begun = self._first_row()
        self._shown = column_names(self.columns) if variables is None else variables
        self.variables = list(domains_of(self._shown) or self._shown)
        if len(self.variables) != self.columns:
            needed = f"one for each of the {len(self.variables)} variables is needed"
            raise EvidenceError(f"{path} has {plural(self.columns, 'column')}: {needed}")

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

    def chunks(self) -> Iterator[tuple[str, np.ndarray]]:
        """The number of the first of some rows, and these rows as int8 codes."""
        path, n = self._path, self.columns
        step = _rows_at_a_time(self.variables)
        for first in range(0, self.rows, step):
            size = (min(first + step, self.rows) - first) * n * self._kind.itemsize
            text = self._begun + self._file.read(size - len(self._begun))
            self._begun = b""
            if len(text) < size:
                raise self._cut_off(first + len(text) // (n * self._kind.itemsize))
            try:
                yield f"row {first}", as_codes(np.frombuffer(text, self._kind).reshape(-1, n), self._shown, first)
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

"""Evidence as text: `z1=1, z3=0` on a command line, and tables in CSV files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from pgcc.errors import EvidenceError, plural
from pgcc.formats.io import bounded_lines, csv_rows
from pgcc.ir.names import default_names

# Every way to write an observation. The longer ones are how pandas and R write columns with gaps.
CODES = {
    "1": 1, "1.0": 1, "true": 1,
    "0": 0, "0.0": 0, "false": 0,
    "?": -1, "-1": -1, "-1.0": -1, "nan": -1, "na": -1,
}  # fmt: skip
_CELLS = {"": -1, **CODES}  # in a table, an empty cell is unobserved
_MEANING = "1 (in), 0 (out) or ? (unobserved)"

# The most rows, and the most entries, of a table that are read at a time: they bound the memory.
_ROWS, _AT_A_TIME = 1 << 15, 1 << 20

# `name = value`; a name with spaces, commas or equals signs stands in quotes, in which \ escapes a quote.
_QUOTED = r"""\s*+ (?: "(?P<double>(?:[^"\\]|\\.)++)" | '(?P<single>(?:[^'\\]|\\.)++)' | (?P<bare>[^\s,="']++) ) \s*+"""
_ITEM = re.compile(_QUOTED + r"""= \s*+ (?P<value>[^\s,="']++) \s*+ (?:,|\Z)""", re.VERBOSE)
_NAME = re.compile(_QUOTED + r"""(?:,|\Z)""", re.VERBOSE)
_IN_QUOTES = re.compile(r'"((?:[^"]|"")*+)"')  # an entry of CSV
_ESCAPED = re.compile(r"\\(.)")


def parse_evidence(text: str, variables: Sequence[str] = ()) -> dict[str, int]:
    """Read evidence such as `z1=1, z3=0` as a dict.

    Parameters
    ----------
    text : str
        Items of the form `name=value`, separated by commas. The value is 1, 0, or `?` for unobserved. Names that
        contain spaces, commas, quotes or equals signs are put in quotes. An empty text means no evidence.
    variables : sequence of str
        Names to use in errors, in an example of what evidence looks like.

    Returns
    -------
    dict
        From names to 1, 0 or −1.

    Raises
    ------
    EvidenceError
        If the text has another form, a value is something else, or a name has two values.

    Examples
    --------
    >>> parse_evidence('z1=1, "a, b" = 0, z3=?')
    {'z1': 1, 'a, b': 0, 'z3': -1}
    >>> parse_evidence("z1=1, z1=0")
    Traceback (most recent call last):
    pgcc.errors.EvidenceError: 'z1' is both 1 and 0 in 'z1=1, z1=0'
    """
    found: dict[str, int] = {}
    at, end = 0, len(text.rstrip())
    while at < end:
        item = _ITEM.match(text, at)
        if item is None:
            raise EvidenceError(f"cannot read {_short(text[at:].strip())}: evidence looks like {_example(variables)}")
        name = _unquoted(item)
        code = CODES.get(item["value"].lower())
        if code is None:
            raise EvidenceError(f"{name!r} is {item['value']!r} in {_short(text)}: evidence is {_MEANING}")
        if found.setdefault(name, code) != code:
            raise EvidenceError(f"{name!r} is both {_value(found[name])} and {_value(code)} in {_short(text)}")
        at = item.end()
    return found


def parse_names(text: str) -> list[str]:
    """Read names such as `z1, "a, b"`, written as in evidence, as a list.

    >>> parse_names('z1, "a, b"')
    ['z1', 'a, b']
    """
    found: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        item = _NAME.match(text, at)
        if item is None:
            raise EvidenceError(f"cannot read {_short(text[at:].strip())}: names look like 'z1, z3'")
        found.append(_unquoted(item))
        at = item.end()
    return found


def _example(variables: Sequence[str]) -> str:
    """Example evidence that uses these names.

    >>> _example(["rain", "two words", "wet"]), _example([])
    ("'rain=1, wet=0'", "'z1=1, z3=0'")
    """
    names = [name for name in variables[:100] if _NAME.fullmatch(name)] or ["z1", "z3"]
    return repr(", ".join(f"{name}={value}" for name, value in zip(names, (1, 0), strict=False)))


def _unquoted(item: re.Match[str]) -> str:
    return item["bare"] or _ESCAPED.sub(r"\1", item["double"] or item["single"])


def _value(code: int) -> str:
    return "?" if code < 0 else str(code)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def rows_at_a_time(variables: Sequence[str]) -> int:
    """How many rows of a table to hold in memory."""
    return max(1, min(_ROWS, _AT_A_TIME // max(1, len(variables))))


def find_names(lines: Iterable[str], where: str) -> tuple[list[str], Iterator[str]]:
    """The names of the columns of a CSV table whose variables are not known, and all its lines.

    The names are those of the first line, or x1, x2, … if that holds observations. Blanks around a name are part of it
    inside quotes; without quotes they are dropped, with a warning.

    >>> names, lines = find_names(["1,?\\n", "0,1\\n"], "x.csv")
    >>> names, len(list(lines))
    (['x1', 'x2'], 2)
    >>> find_names(['a," b"\\n'], "x.csv")[0]
    ['a', ' b']
    """
    lines = bounded_lines(lines, where, EvidenceError)
    entries, read = _first_row(lines, where)
    if not entries:
        raise EvidenceError(f"{where} is empty")
    if _is_data(entries):
        return default_names(len(entries)), chain(read, lines)
    written, quoted = _as_written(entries, read), set(_IN_QUOTES.findall("".join(read)))
    names = [entry if entry.replace('"', '""') in quoted else entry.strip() for entry in entries]
    dropped = [w for w, name in zip(written, names, strict=True) if w != name and not w.lstrip().startswith('"')]
    if dropped:
        warnings.warn(
            f"{where}: column {dropped[0]!r} is called {dropped[0].strip()!r}, without the blanks around it: to keep "
            "them, put the name in quotes",
            stacklevel=2,
        )
    return names, chain(read, lines)


def _first_row(lines: Iterator[str], where: str) -> tuple[list[str], list[str]]:
    """The entries of the first line that is not blank, and the lines that were read for it."""
    read: list[str] = []
    rows = csv_rows(_recorded(lines, read), where, error=EvidenceError, skipinitialspace=True)
    _, entries = next(rows, (0, []))
    return entries, read


def _recorded(lines: Iterator[str], read: list[str]) -> Iterator[str]:
    """The lines; those that were read are appended to `read`."""
    for line in lines:
        read.append(line)
        yield line


def _as_written(entries: list[str], read: list[str]) -> list[str]:
    """The same entries with the blanks before them; `entries` itself if the line has another number of them."""
    _, written = next(csv_rows(read, "", error=EvidenceError), (0, []))
    return written if len(written) == len(entries) else entries


def _is_data(entries: list[str]) -> bool:
    """Whether a first line has no names: all of it can be read as observations."""
    return all(entry.strip().lower() in _CELLS for entry in entries)


def read_csv(
    lines: Iterable[str], variables: Sequence[str], rows: int, where: str, header: bool | None = True
) -> Iterator[tuple[int, np.ndarray]]:
    """Read the rows of a CSV file as codes, in chunks.

    Parameters
    ----------
    lines : text file, or other lines
        The first line names the variables of the columns; variables without a column are unobserved. An entry is 1,
        0, or (for unobserved) nothing, `?` or −1. Blank lines are skipped.
    variables : sequence of str
        All variables, in the order of the columns that are returned.
    rows : int
        How many rows to read at a time, which bounds the memory.
    where : str
        The name of the file, for messages.
    header : bool, optional
        Whether the first line names the variables. With None, the line itself decides: if it contains only
        observations, it is data, in the order of `variables`.

    Yields
    ------
    (line, codes)
        The line of the file where the rows start, and an int8 array of 1, 0 and −1 with one column per variable.

    Examples
    --------
    >>> import io
    >>> [(line, codes.tolist()) for line, codes in read_csv(io.StringIO("b,a\\n1,0\\n?,1\\n"), ["a", "b"], 10, "x.csv")]
    [(2, [[0, 1], [1, -1]])]
    """
    lines = bounded_lines(lines, where, EvidenceError)
    columns, lines, line = _columns(lines, variables, where, header)
    while some := list(islice(lines, rows)):
        codes = _single_character_codes(some, len(columns))
        if codes is None:
            yield from _read_rows(chain(some, lines), line, columns, variables, rows, where)
            return
        yield line + 1, _spread(codes, columns, len(variables))
        line += len(some)


def _columns(
    lines: Iterator[str], variables: Sequence[str], where: str, header: bool | None
) -> tuple[list[int], Iterator[str], int]:
    """The columns of the table, the lines that are left, and how many were read."""
    entries, read = _first_row(lines, where)
    if header is None and entries and _is_data(entries):
        return list(range(len(variables))), chain(read, lines), 0
    where = f"{where}, line {max(1, len(read))}"
    return _header(entries, _as_written(entries, read), variables, where), lines, len(read)


# The code of each byte; −2 for all but 1, 0 and ?
_CODE_OF_BYTE = np.full(256, -2, np.int8)
_CODE_OF_BYTE[[ord("1"), ord("0"), ord("?")]] = 1, 0, -1


def _single_character_codes(lines: list[str], width: int) -> np.ndarray | None:
    """The fast path, by array operations, for lines of only 1, 0 and ? between commas; None for other lines."""
    text = "".join(lines).replace("\r\n", "\n")
    text += "" if text.endswith("\n") else "\n"
    if len(text) != 2 * width * len(lines) or not text.isascii():
        return None
    grid = np.frombuffer(text.encode(), np.uint8).reshape(len(lines), 2 * width)
    codes = _CODE_OF_BYTE[grid[:, ::2]]
    separated = (grid[:, 1:-1:2] == ord(",")).all() and (grid[:, -1] == ord("\n")).all()
    return codes if separated and codes.min() >= -1 else None


def _spread(codes: np.ndarray | list[list[int]], columns: list[int], n: int) -> np.ndarray:
    """The codes of some columns, spread out to all n variables."""
    spread = np.full((len(codes), n), -1, np.int8)
    spread[:, columns] = codes
    return spread


def _read_rows(
    lines: Iterator[str], before: int, columns: list[int], variables: Sequence[str], rows: int, where: str
) -> Iterator[tuple[int, np.ndarray]]:
    """Any rows, entry by entry; `before` lines were read."""
    table = csv_rows(lines, where, lines_before=before, error=EvidenceError, skipinitialspace=True)
    while some := list(islice(table, rows)):
        codes = [_codes(line, row, columns, variables, where) for line, row in some]
        yield some[0][0], _spread(codes, columns, len(variables))


def _header(entries: list[str], written: list[str], variables: Sequence[str], where: str) -> list[int]:
    """The column of every name in the first line: with the blanks around it, or else without them."""
    if not entries:
        raise EvidenceError(f"{where}: expected the names of the columns")
    known = {name: i for i, name in enumerate(variables)}
    columns: dict[int, None] = {}
    for spellings in zip(written, entries, map(str.strip, entries), strict=True):
        column = next((known[name] for name in spellings if name in known), None)
        if column is None:
            raise EvidenceError(f"{where}: column {spellings[-1]!r} is not a variable of the circuit")
        if column in columns:
            raise EvidenceError(f"{where}: column {variables[column]!r} occurs twice")
        columns[column] = None
    return list(columns)


def _codes(line: int, entries: list[str], columns: list[int], variables: Sequence[str], where: str) -> list[int]:
    if len(entries) != len(columns):
        count = plural(len(entries), "entry", "entries")
        raise EvidenceError(f"{where}, line {line}: {count}, but the table has {plural(len(columns), 'column')}")
    try:
        return [_CELLS[entry] for entry in entries]
    except KeyError:
        return [
            _code(entry, f"{where}, line {line}: {variables[column]!r}")
            for entry, column in zip(entries, columns, strict=True)
        ]


def _code(entry: str, where: str) -> int:
    code = _CELLS.get(entry.strip().lower())
    if code is None:
        raise EvidenceError(f"{where} is {entry!r}: evidence is {_MEANING}")
    return code

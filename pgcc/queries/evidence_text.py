"""Evidence as text: `z1=1, z3=0` on a command line, and tables in CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TextIO

import numpy as np

from pgcc.errors import EvidenceError

# Every way to write an observation. The longer ones are how pandas and R write columns with gaps.
CODES = {
    "1": 1, "1.0": 1, "true": 1,
    "0": 0, "0.0": 0, "false": 0,
    "?": -1, "-1": -1, "-1.0": -1, "nan": -1, "na": -1,
}  # fmt: skip
_ENTRIES = {"": -1, **CODES}  # of a table
_MEANING = "1 (in), 0 (out) or ? (unobserved)"

# `name = value`; a name with spaces, commas or equals signs stands in quotes, in which \ escapes a quote.
_ITEM = re.compile(
    r"""\s*+ (?: "(?P<double>(?:[^"\\]|\\.)++)" | '(?P<single>(?:[^'\\]|\\.)++)' | (?P<bare>[^\s,="']++) )
        \s*+ = \s*+ (?P<value>[^\s,="']++) \s*+ (?:,|\Z)""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")


def parse_evidence(text: str) -> dict[str, int]:
    """`z1=1, z3=0` as a dict.

    Parameters
    ----------
    text : str
        `name=value` separated by commas; the value is 1, 0, or `?` for unobserved. Names that hold spaces, commas,
        quotes or equals signs stand in quotes. An empty text is no evidence.

    Returns
    -------
    dict
        Names and 1, 0 or −1.

    Raises
    ------
    EvidenceError
        For text of another form, another value, and a name with two values.

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
            raise EvidenceError(f"cannot read {_short(text[at:].strip())}: evidence looks like 'z1=1, z3=0'")
        name = item["bare"] or _ESCAPED.sub(r"\1", item["double"] or item["single"])
        code = CODES.get(item["value"].lower())
        if code is None:
            raise EvidenceError(f"{name!r} is {item['value']!r} in {_short(text)}: evidence is {_MEANING}")
        if found.setdefault(name, code) != code:
            raise EvidenceError(f"{name!r} is both {_value(found[name])} and {_value(code)} in {_short(text)}")
        at = item.end()
    return found


def _value(code: int) -> str:
    return "?" if code < 0 else str(code)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def read_csv(file: TextIO, variables: Sequence[str], rows: int, where: str) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of a CSV file as codes, some at a time.

    Parameters
    ----------
    file : text file
        Its first line names the variables of the columns; variables without a column are unobserved. An entry is 1,
        0, or nothing or `?` or −1 for unobserved. Blank lines are skipped.
    variables : sequence of str
        All variables, in the order of the columns that are returned.
    rows : int
        How many rows to read at a time: what bounds the memory.
    where : str
        The name of the file, for messages.

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
    reader = csv.reader(file, skipinitialspace=True)
    try:
        columns = _header(next(reader, None), variables, where)
        lines = _entries(reader, len(columns), where)
        while some := list(islice(lines, rows)):
            codes = np.full((len(some), len(variables)), -1, np.int8)
            codes[:, columns] = [_codes(line, entries, columns, variables, where) for line, entries in some]
            yield some[0][0], codes
    except csv.Error as error:
        raise EvidenceError(f"{where}, line {reader.line_num}: not CSV: {error}") from None
    except UnicodeDecodeError:
        raise EvidenceError(f"{where} is not text in UTF-8") from None


def _header(names: list[str] | None, variables: Sequence[str], where: str) -> list[int]:
    """The column of every name in the first line."""
    if not names:
        raise EvidenceError(f"{where}, line 1: expected the names of the columns")
    known = {name: i for i, name in enumerate(variables)}
    columns: list[int] = []
    names[0] = names[0].removeprefix("\ufeff")  # a byte order mark
    for name in map(str.strip, names):
        if name not in known:
            raise EvidenceError(f"{where}, line 1: column {name!r} is not a variable of the circuit")
        columns.append(known[name])
    if len(set(columns)) < len(columns):
        twice = next(column for i, column in enumerate(columns) if column in columns[:i])
        raise EvidenceError(f"{where}, line 1: column {variables[twice]!r} stands twice")
    return columns


def _entries(reader: Iterator[list[str]], width: int, where: str) -> Iterator[tuple[int, list[str]]]:
    """(line, entries) of every row."""
    for entries in reader:
        line: int = reader.line_num  # type: ignore[attr-defined]
        if not entries:
            continue
        if len(entries) != width:
            raise EvidenceError(f"{where}, line {line}: {len(entries)} entries, but there are {width} columns")
        yield line, entries


def _codes(line: int, entries: list[str], columns: list[int], variables: Sequence[str], where: str) -> list[int]:
    try:
        return [_ENTRIES[entry] for entry in entries]
    except KeyError:
        return [
            _code(entry, f"{where}, line {line}: {variables[column]!r}")
            for entry, column in zip(entries, columns, strict=True)
        ]


def _code(entry: str, where: str) -> int:
    code = _ENTRIES.get(entry.strip().lower())
    if code is None:
        raise EvidenceError(f"{where} is {entry!r}: evidence is {_MEANING}")
    return code

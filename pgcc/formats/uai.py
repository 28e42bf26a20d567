"""`.uai`: Bayesian and Markov networks over binary variables, compiled by variable elimination.

    MARKOV                  or BAYES
    3                       variables: here they are called x1, x2, x3
    2 2 2                   how many values each has: 2
    2                       tables
    2 0 1                   each with the number of its variables, and which, from 0 (x1); the last changes fastest
    2 1 2                   in the table. In a Bayesian network it is the child
    4 1.0 2.0 0.5 1.0       each table's size and its entries, for (0, 0), (0, 1), (1, 0), (1, 1)
    4 …

Only white space separates; lines mean nothing. A circuit no longer knows the tables that it was read from: `uai_writer`
writes those of its factors.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pgcc.errors import CircuitError, FormatError
from pgcc.formats.io import DECIMAL, read_text, shown
from pgcc.formats.uai_writer import write
from pgcc.frontend.elimination import MOST_NEIGHBOURS, Factor, WidthError, eliminate
from pgcc.ir.circuit import Circuit
from pgcc.ir.names import default_names

__all__ = ["read", "read_network", "write"]

KINDS = ("BAYES", "MARKOV")
MOST_IN_TABLE = MOST_NEIGHBOURS + 1  # variables
ROUNDING = 0.01  # the probabilities of a Bayesian network may add up to 1 as badly as this

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


def read(path: Path, keep: Iterable[str] | None = None) -> Circuit:
    """The probabilistic circuit of a `.uai` network, over x1, x2, …

    Parameters
    ----------
    path : Path
    keep : iterable of str, optional
        The variables to be asked about. The others are summed out while reading, as numbers, which takes far less
        memory: a network of large width may only be readable in this way.

    Raises
    ------
    FormatError
        If the file is damaged, has a variable that is not binary, or its induced width is too large.
    """
    names, factors = read_network(path)
    try:
        return eliminate(names, factors, keep)
    except WidthError as error:
        advice = "keep=NAMES sums out the other variables while reading" if keep is None else None
        raise FormatError(f"{path}: the network is too dense for a circuit: {error}", advice=advice) from None
    except CircuitError as error:
        raise FormatError(f"{path}: {error}") from None


def read_network(path: Path) -> tuple[list[str], list[Factor]]:
    """The names of the variables, and the tables."""
    tokens = _Tokens(path)
    kind = tokens.word("BAYES or MARKOV").upper()
    if kind not in KINDS:
        raise tokens.error(f"a network begins with {' or '.join(KINDS)}, not with {shown(kind)}")
    names = _read_variables(tokens)
    scopes = _read_scopes(tokens, len(names))
    factors = [Factor(scope, _read_table(tokens, i, scope, kind)) for i, scope in enumerate(scopes)]
    tokens.finish()
    return names, factors


def _read_variables(tokens: _Tokens) -> list[str]:
    count = tokens.count("the number of variables")
    if count == 0:
        raise tokens.error("a network without variables")
    tokens.promise(count, "values of variables")
    names = default_names(count)
    for name in names:
        values = tokens.count(f"the number of values of {name}")
        if values != 2:
            raise tokens.error(f"variable {name} has {values} values; only binary variables (2) are supported")
    return names


def _read_scopes(tokens: _Tokens, variables: int) -> list[tuple[int, ...]]:
    count = tokens.count("the number of tables")
    tokens.promise(count, "tables", words=3)
    scopes = []
    for i in range(count):
        size = tokens.count(f"the number of variables of table {i}")
        if size > min(variables, MOST_IN_TABLE):
            most = f"the network has {variables}" if size > variables else f"the limit is {MOST_IN_TABLE}"
            raise tokens.error(f"table {i} has {size} variables, but {most}")
        scopes.append(tuple(_read_member(tokens, i, variables) for _ in range(size)))
        if len(set(scopes[-1])) < size:
            twice = next(v for v in scopes[-1] if scopes[-1].count(v) > 1)
            raise tokens.error(f"table {i} has the variable {twice} twice")
    return scopes


def _read_member(tokens: _Tokens, table: int, variables: int) -> int:
    v = tokens.count(f"a variable of table {table}")
    if v >= variables:
        raise tokens.error(f"table {table} has the variable {v}; they are numbered 0 to {variables - 1}")
    return v


def _read_table(tokens: _Tokens, i: int, scope: tuple[int, ...], kind: str) -> np.ndarray:
    size = tokens.count(f"the size of table {i}")
    if size != 1 << len(scope):
        raise tokens.error(f"table {i} has {len(scope)} binary variables, so its size is {1 << len(scope)}, not {size}")
    tokens.promise(size, f"entries of table {i}")
    table = np.array([tokens.number(f"an entry of table {i}") for _ in range(size)]).reshape((2,) * len(scope))
    if kind == "BAYES" and scope:
        worst = float(np.abs(table.sum(axis=-1) - 1).max())
        if worst > ROUNDING:
            raise tokens.error(
                f"table {i} of a Bayesian network holds no probabilities of x{scope[-1] + 1}: they add up to 1 only "
                f"within {worst:.3g} (a MARKOV network may have any numbers)"
            )
    return table


class _Tokens:
    """The words of a file, one after the other, and the line of the last."""

    def __init__(self, path: Path):
        self.path = path
        lines = [line.split() for line in read_text(path).split("\n")]
        self.words = [word for line in lines for word in line]
        self.ends: list[int] = np.cumsum([len(line) for line in lines]).tolist()  # words up to the end of each line
        self.next = 0

    def error(self, message: str) -> FormatError:
        line = bisect_right(self.ends, max(self.next - 1, 0)) + 1
        return FormatError(f"{self.path}, line {min(line, len(self.ends))}: {message}")

    def word(self, what: str) -> str:
        if self.next == len(self.words):
            raise self.error(f"the file ends before {what}")
        self.next += 1
        return self.words[self.next - 1]

    def count(self, what: str) -> int:
        word = self.word(what)
        if not _COUNT.fullmatch(word):
            raise self.error(f"{what} is a whole number, not {shown(word)}")
        return int(word)

    def number(self, what: str) -> float:
        word = self.word(what)
        if not DECIMAL.fullmatch(word):
            raise self.error(f"{what} is a number, not {shown(word)}")
        value = float(word)
        if value < 0:
            raise self.error(f"{what} is negative: {shown(word)}")
        if not math.isfinite(value) or (value == 0 and re.search("[1-9]", re.split("[eE]", word)[0])):
            raise self.error(f"{what} is out of the range of floats: {shown(word)}")
        return value

    def promise(self, count: int, what: str, words: int = 1) -> None:
        """Refuse a count of items, each of at least `words` words, that the rest of the file is too short for.

        Memory is only allocated after that.
        """
        left = len(self.words) - self.next
        if count * words > left:
            raise self.error(f"the file ends before all {count} {what}")

    def finish(self) -> None:
        if self.next < len(self.words):
            extra = self.words[self.next]
            self.next += 1
            raise self.error(f"the network is complete, but {shown(extra)} follows")

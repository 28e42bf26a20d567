"""`.uai`: Bayesian and Markov networks, compiled by variable elimination; `.uai.evid`: what was observed in them.

    MARKOV                  or BAYES
    3                       variables: here they are called x1, x2, x3
    2 2 3                   how many states each has: they are called 0, 1, …
    2                       tables
    2 0 1                   each with the number of its variables, and which, from 0 (x1); the last changes fastest
    2 1 2                   in the table. In a Bayesian network it is the child
    4 1.0 2.0 0.5 1.0       each table's size and its entries, for (0, 0), (0, 1), (1, 0), (1, 1)
    6 …

A file of evidence has the number of observed variables, and for each of them its number and its state: `2 0 1 2 2`. (In
some, the number 1 stands in front: of pieces of evidence.)

Only white space separates; lines mean nothing. A circuit no longer knows the tables that it was read from: `uai_writer`
writes those of its factors.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pgcc.errors import CircuitError, FormatError
from pgcc.formats.io import DECIMAL, read_text, shown, unpacked_name
from pgcc.formats.uai_writer import write
from pgcc.frontend.elimination import Factor, WidthError, eliminate
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.names import default_names

__all__ = ["read", "read_evidence", "read_network", "write"]

KINDS = ("BAYES", "MARKOV")
MOST_STATES = 10_000
MOST_IN_TABLE = 32  # variables: an array of numpy has no more axes
ROUNDING = 0.01  # the probabilities of a Bayesian network may add up to 1 as badly as this

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


def read(
    path: Path,
    keep: Iterable[str] | None = None,
    evidence: Mapping[str, Any] | str | os.PathLike[str] | bool | None = None,
) -> Circuit:
    """The probabilistic circuit of a `.uai` network, over x1, x2, …

    Parameters
    ----------
    path : Path
    keep : iterable of str, optional
        The variables to be asked about. The others are summed out while reading, as numbers, which takes far less
        memory: a network of large width may only be readable in this way.
    evidence : dict, True or path, optional
        What was observed: ``{"x1": 1}``, or True for the file `.evid` beside, or another such file. The circuit is over
        the variables that were not observed, and its total is that of the evidence. It is often far smaller.

    Raises
    ------
    FormatError
        If the file is damaged, or the network has too many live terms for a circuit.
    """
    domains, factors = read_network(path)
    beside = Path(f"{unpacked_name(path)}.evid")
    if evidence is True:
        evidence = beside
    observed = read_evidence(Path(evidence), domains) if isinstance(evidence, (str, os.PathLike)) else evidence or {}
    try:
        return eliminate(domains, factors, keep, observed)
    except WidthError as error:
        ways = ["keep=NAMES sums out the other variables while reading"] if keep is None else []
        if not observed:
            there = f"evidence=True, which reads {beside.name}," if beside.exists() else "evidence={...}"
            ways.append(f"{there} leaves out what was observed")
        message = f"{path}: the network is too dense for a circuit: {error}"
        raise FormatError(message, advice=", and ".join(ways) or None) from None
    except CircuitError as error:
        raise FormatError(f"{path}: {error}") from None


def read_network(path: Path) -> tuple[Domains, list[Factor]]:
    """The variables with their states, and the tables."""
    tokens = _Tokens(path)
    kind = tokens.word("BAYES or MARKOV").upper()
    if kind not in KINDS:
        raise tokens.error(f"a network begins with {' or '.join(KINDS)}, not with {shown(kind)}")
    domains = _read_variables(tokens)
    sizes = [len(domain.states) for domain in domains.values()]
    scopes = _read_scopes(tokens, len(sizes))
    factors = [
        Factor(scope, _read_table(tokens, i, scope, [sizes[v] for v in scope], kind)) for i, scope in enumerate(scopes)
    ]
    tokens.finish("network")
    return domains, factors


def read_evidence(path: Path, domains: Domains) -> dict[str, int]:
    """The observed states of variables, in a file of evidence."""
    tokens = _Tokens(path)
    names = list(domains)
    if len(tokens.words) % 2 == 0 and tokens.count("the number of pieces of evidence") != 1:
        raise tokens.error("a file of evidence has one piece of evidence: 1")
    count = tokens.count("the number of observed variables")
    tokens.promise(count, "observed variables", words=2)
    observed: dict[str, int] = {}
    for _ in range(count):
        v = tokens.member("an observed variable", "evidence", len(names))
        state = tokens.count(f"the state of {names[v]}")
        if state >= len(domains[names[v]].states):
            raise tokens.error(f"{names[v]} has {len(domains[names[v]].states)} states, from 0, and no state {state}")
        if observed.setdefault(names[v], state) != state:
            raise tokens.error(f"{names[v]} is observed in two states, {observed[names[v]]} and {state}")
    tokens.finish("evidence")
    return observed


def _read_variables(tokens: _Tokens) -> Domains:
    count = tokens.count("the number of variables")
    if count == 0:
        raise tokens.error("a network without variables")
    tokens.promise(count, "numbers of states")
    states = {}
    for name in default_names(count):
        number = tokens.count(f"the number of states of {name}")
        if not 0 < number <= MOST_STATES:
            raise tokens.error(f"variable {name} has {number} states, which are from 1 to {MOST_STATES:,}")
        states[name] = range(number)
    return Domains.of(states)


def _read_scopes(tokens: _Tokens, variables: int) -> list[tuple[int, ...]]:
    count = tokens.count("the number of tables")
    tokens.promise(count, "tables", words=3)
    scopes = []
    for i in range(count):
        size = tokens.count(f"the number of variables of table {i}")
        if size > min(variables, MOST_IN_TABLE):
            most = f"the network has {variables}" if size > variables else f"the limit is {MOST_IN_TABLE}"
            raise tokens.error(f"table {i} has {size} variables, but {most}")
        scopes.append(tuple(tokens.member(f"a variable of table {i}", f"table {i}", variables) for _ in range(size)))
        if len(set(scopes[-1])) < size:
            twice = next(v for v in scopes[-1] if scopes[-1].count(v) > 1)
            raise tokens.error(f"table {i} has the variable {twice} twice")
    return scopes


def _read_table(tokens: _Tokens, i: int, scope: tuple[int, ...], shape: list[int], kind: str) -> np.ndarray:
    size, need = tokens.count(f"the size of table {i}"), math.prod(shape)
    if size != need:
        states = f"{len(scope)} variables of {' · '.join(map(str, shape))} states" if scope else "no variables"
        raise tokens.error(f"table {i} has {states}, so its size is {need}, not {size}")
    tokens.promise(size, f"entries of table {i}")
    table = np.array([tokens.number(f"an entry of table {i}") for _ in range(size)]).reshape(shape)
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

    def member(self, what: str, where: str, variables: int) -> int:
        """The number of a variable."""
        v = self.count(what)
        if v >= variables:
            raise self.error(f"{where} has the variable {v}; they are numbered 0 to {variables - 1}")
        return v

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

    def finish(self, what: str) -> None:
        if self.next < len(self.words):
            extra = self.words[self.next]
            self.next += 1
            raise self.error(f"the {what} is complete, but {shown(extra)} follows")

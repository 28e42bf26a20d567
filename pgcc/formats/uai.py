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

Only white space separates; lines mean nothing. Comments begin with #. A circuit that was compiled from a network is
written with the tables of that network; of others, `uai_writer` writes tables of the factors.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path

from pgcc.formats.io import read_text, shown
from pgcc.formats.networks import compiled
from pgcc.formats.uai_writer import write
from pgcc.formats.words import Words
from pgcc.frontend.network import MOST_AXES, Network, Table, Tables
from pgcc.ir.domains import Domains
from pgcc.ir.names import default_names

__all__ = ["read", "read_network", "write"]

KINDS = ("BAYES", "MARKOV")
MOST_STATES = 10_000
FREE_STATES = 1 << 16  # a file may have so many states, and one for each of its words, as variables need no tables


def read_network(path: Path) -> Network:
    """The variables x1, x2, … with their states, and the tables."""
    words = Words(path, re.sub(r"(?<!\S)#[^\n]*+", "", read_text(path)))
    kind = words.word("BAYES or MARKOV").upper()
    if kind not in KINDS:
        raise words.error(f"a network begins with {' or '.join(KINDS)}, not with {shown(kind)}")
    domains = _read_variables(words)
    scopes = _read_scopes(words, len(domains))
    make = Tables(domains)
    tables = [_read_table(words, i, scope, make, kind) for i, scope in enumerate(scopes)]
    words.finish("network")
    if kind == "MARKOV":
        return Network(domains, tuple(tables))
    names = list(domains)
    by_child = {names[table.scope[-1]]: table for table in tables}
    if len(by_child) < len(tables):
        raise words.error("in a Bayesian network every variable has one table (a MARKOV network may have any)")
    with words.located():
        return Network.bayesian(domains, by_child)


read = partial(compiled, read_network)


def _read_variables(words: Words) -> Domains:
    count = words.count("the number of variables")
    if count == 0:
        raise words.error("a network without variables")
    words.promise(count, "numbers of states")
    states, total = {}, 0
    for name in default_names(count):
        number = words.count(f"the number of states of {name}")
        if not 0 < number <= MOST_STATES:
            raise words.error(f"variable {name} has {number} states, which are from 1 to {MOST_STATES:,}")
        states[name], total = range(number), total + number
        if total > FREE_STATES + len(words.words):
            raise words.error(f"the variables up to {name} have {total:,} states, far more than the file")
    return Domains.of(states)


def _read_scopes(words: Words, variables: int) -> list[tuple[int, ...]]:
    count = words.count("the number of tables")
    words.promise(count, "tables", words=3)
    scopes = []
    for i in range(count):
        size = words.count(f"the number of variables of table {i}")
        if size > min(variables, MOST_AXES):
            most = f"the network has {variables}" if size > variables else f"the limit is {MOST_AXES}"
            raise words.error(f"table {i} has {size} variables, but {most}")
        scopes.append(tuple(words.member(f"a variable of table {i}", f"table {i}", variables) for _ in range(size)))
        if len(set(scopes[-1])) < size:
            twice = next(v for v in scopes[-1] if scopes[-1].count(v) > 1)
            raise words.error(f"table {i} has the variable {twice} twice")
    return scopes


def _read_table(words: Words, i: int, scope: tuple[int, ...], make: Tables, kind: str) -> Table:
    shape = make.shape(scope)
    size, need = words.count(f"the size of table {i}"), math.prod(shape)
    if size != need:
        states = f"{len(scope)} variables of {' · '.join(map(str, shape))} states" if scope else "no variables"
        raise words.error(f"table {i} has {states}, so its size is {need}, not {size}")
    table = words.numbers(size, f"table {i}").reshape(shape)
    if kind == "MARKOV":
        return Table(scope, table)
    if not scope:
        raise words.error(f"table {i} has no variables: in a Bayesian network, it is of its last (MARKOV has any)")
    with words.located(" (a MARKOV network may have any numbers)"):
        return make.conditional(scope, table)

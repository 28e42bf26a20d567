r"""`.bif`: Bayesian networks with names, in the Bayesian interchange format.

    network "asia" { }                                   comments begin with //, /* or #
    variable smoke { type discrete [ 2 ] { yes, no }; }
    variable lung { type discrete [ 2 ] { yes, no }; property "ignored"; }
    probability ( smoke ) { table 0.5, 0.5; }
    probability ( lung | smoke ) {
      (yes) 0.1, 0.9;                                    rows in any order
      default 0.01, 0.99;                                all others
    }

Lines and commas mean nothing, and the bar after the child may be left out. Names are in quotes if they have other
characters than letters, digits and signs like . - _ < =. A table for all states of the parents at once begins with all
numbers of the child's first state, and the last parent changes fastest. States are text; those of plain binary
variables and others numbered from 0, as in `.uai`, are numbers, where the property "states are numbers" says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pgcc.errors import FormatError
from pgcc.formats.io import read_text, shown
from pgcc.formats.networks import Draft, compiled, network_in
from pgcc.formats.words import Words
from pgcc.frontend.network import Network
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Label

WORD = re.compile(r'"[^"\n]*+"|[{}()\[\];|"]|[^\s{}()\[\];,|"]++')
COMMENT = re.compile(r'("[^"\n]*+")|(?<![^\s{}()\[\];,|])(?:(?://|#)[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))')
NUMBERED = '"states are numbers"'
# Where a default fills a table, the file does not have all its entries: how many tables may have for each of its words.
ENTRIES_PER_WORD, FREE_ENTRIES = 16, 1 << 20


def read_network(path: Path) -> Network:
    """The variables with their states, and the tables."""
    text = COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), read_text(path))
    return network_in(Words(path, text, WORD), _read)


read = partial(compiled, read_network)


def _read(words: Words, draft: Draft) -> None:
    places = []
    while words.next < len(words.words):
        match (block := words.word("a block")).lower():
            case "network":
                words.until("{", "the network")
                words.until("}", "the network")
            case "variable":
                _read_variable(words, draft)
            case "probability":
                places.append(words.next)
                words.until("}", "the probabilities")
            case ";":
                pass
            case _:
                raise words.error(f"expected network, variable or probability, not {shown(block)}")
    room = FREE_ENTRIES + ENTRIES_PER_WORD * len(words.words)
    for place in places:
        words.next = place
        room -= _read_probabilities(words, draft, room)


def _read_variable(words: Words, draft: Draft) -> None:
    name = _unquoted(words, words.word("the name of a variable"))
    _expect(words, "{")
    labels: list[Label] = []
    while (word := words.word(f"the end of variable {name!r}").lower()) != "}":
        if word == "property":
            numbered = words.until(";", "a property") == [NUMBERED]
            labels = list(range(len(labels))) if numbered and labels == [*map(str, range(len(labels)))] else labels
        elif word == "type" and not labels:
            labels = _read_states(words, name)
        elif word != ";":
            raise words.error(f"expected the type of variable {name!r}, not {shown(word)}")
    draft.add_variable(name, labels)


def _read_states(words: Words, name: str) -> list[Label]:
    for mark in ("discrete", "["):
        _expect(words, mark)
    count = words.count(f"the number of states of {name!r}")
    for mark in ("]", "{"):
        _expect(words, mark)
    labels: list[Label] = [_unquoted(words, word) for word in words.until("}", "the states")]
    if len(labels) != count:
        listed = ", ".join(map(str, labels[:8]))
        advice = "" if len(labels) < count else " (those with spaces stand in quotes)"
        raise words.error(f"variable {name!r} has {count} states, but {len(labels)} are listed: {listed}{advice}")
    return labels


def _read_probabilities(words: Words, draft: Draft, room: int) -> int:
    """Read a table, and return its size."""
    _expect(words, "(")
    header = words.until(")", "the variables")
    if header[1:2] == ["|"]:
        del header[1]
    if not header:
        raise words.error("probabilities of no variable")
    name, *parents = (_unquoted(words, word) for word in header)
    scope = draft.begin_table(name, parents)
    size = math.prod(draft.make.shape(scope))
    if size > room:
        raise words.error(f"the table of {name!r} has {size:,} entries, far more than the file")
    _expect(words, "{")
    draft.add_table(name, scope, _read_rows(words, name, [draft.make.items[v][1] for v in scope]))
    return size


def _read_rows(words: Words, name: str, of: Sequence[Domain]) -> np.ndarray:
    shape = tuple(len(domain.states) for domain in of)
    table, default = np.full(shape, np.nan), None
    while (word := words.word(f"the end of the table of {name!r}").lower()) != "}":
        where: tuple[int, ...] = ()
        match word:
            case "property":
                words.until(";", "a property")
                continue
            case "table":
                numbers = _numbers(words, name, table.size).reshape(shape[-1:] + shape[:-1])
                numbers = np.moveaxis(numbers, 0, -1)
            case "default":
                if default is not None:
                    raise words.error(f"the table of {name!r} has two defaults")
                default = _numbers(words, name, shape[-1])
                continue
            case "(":
                where = _read_states_of_parents(words, name, of[:-1])
                numbers = _numbers(words, name, shape[-1])
            case _:
                raise words.error(f"expected a row of the table of {name!r}, not {shown(word)}")
        if not np.isnan(table[where]).all():
            raise words.error(f"the table of {name!r} has two rows for the same states")
        table[where] = numbers
    missing = np.isnan(table[..., 0])
    if default is not None:
        table[missing] = default
    elif missing.any():
        row = zip(of[:-1], np.argwhere(missing)[0], strict=True)
        states = ", ".join(str(domain.states[i]) for domain, i in row)
        raise words.error(f"the table of {name!r} has no row for ({states})" if states else f"{name!r} has no numbers")
    return table


def _read_states_of_parents(words: Words, name: str, of: Sequence[Domain]) -> tuple[int, ...]:
    listed = [_unquoted(words, word) for word in words.until(")", "a row")]
    if len(listed) != len(of):
        raise words.error(f"a row of the table of {name!r} has {len(listed)} states, but it has {len(of)} parents")
    return tuple(domain.number(state, f"a parent of {name!r}") for domain, state in zip(of, listed, strict=True))


def _numbers(words: Words, name: str, count: int) -> np.ndarray:
    start = words.next
    given = words.until(";", "a row")
    numbers = words.entries(given, start, f"the table of {name!r}")
    if len(given) != count:
        raise words.error(f"a row of the table of {name!r} has {len(given)} numbers and needs {count}")
    return numbers


def _expect(words: Words, mark: str) -> None:
    word = words.word(repr(mark))
    if word.lower() != mark:
        raise words.error(f"expected {mark!r}, not {shown(word)}")


def _unquoted(words: Words, word: str) -> str:
    """A name; marks that are no part of one are refused."""
    if word[0] == '"' and len(word) > 1:
        return word[1:-1]
    if word in '{}()[];|"':
        raise words.error(f"expected a name, not {shown(word)}")
    return word


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write the network that a circuit was compiled from.

    Raises
    ------
    FormatError
        If it was compiled from none, or only for some variables or evidence.
    """
    network: Network | None = circuit.network
    if network is None or not (network.is_bayesian and network.is_whole):
        what = "a part of one, by keep= or evidence=" if network and network.is_bayesian else "no Bayesian network"
        raise FormatError(
            f"a .bif file holds a Bayesian network, and this circuit was compiled from {what}: .pgc and .npz keep it"
        )
    blocks = ["network unknown {\n}\n", *map(_variable, network.domains, network.domains.values())]
    items = list(network.domains.items())
    blocks += [_probabilities([items[v] for v in table.scope], table.table) for table in network.tables]
    file.write("".join(blocks).encode())


def _variable(name: str, domain: Domain) -> str:
    numbered = f"  property {NUMBERED};\n" if domain.states == tuple(range(len(domain.states))) else ""
    states = ", ".join(map(_quoted, domain.states))
    return f"variable {_quoted(name)} {{\n  type discrete [ {len(domain.states)} ] {{ {states} }};\n{numbered}}}\n"


def _probabilities(variables: Sequence[tuple[str, Domain]], table: np.ndarray) -> str:
    names = [_quoted(name) for name, _ in variables]
    lines = [f"probability ( {names[-1]}{' | ' * (len(names) > 1)}{', '.join(names[:-1])} ) {{"]
    for row in np.ndindex(table.shape[:-1]):
        states = ", ".join(_quoted(domain.states[i]) for (_, domain), i in zip(variables, row, strict=False))
        lines.append(f"  {f'({states})' if row else 'table'} {', '.join(map(repr, table[row].tolist()))};")
    return "\n".join([*lines, "}", ""])


def _quoted(label: Label) -> str:
    text = str(label)
    if '"' in text or "\n" in text:
        raise FormatError(f"a name in a .bif file has no quotes or line breaks: {shown(text)}")
    return text if re.fullmatch(r"[\w.<=>+-]+", text) else f'"{text}"'

"""Variables with states: which columns of a circuit show the state of each variable.

A variable with k states is k binary columns of which exactly one is in (*one-hot*), and the polynomial is linear in
each such block:

    Σ_s Pr(weather = s, …) · z_{weather=s} · …

Two states need only one column, which is in or out; one state needs none. A plain binary variable is one with the
states 0 and 1. Below this module's readers (`pgcc.data`) nothing knows of states: there are only columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from pgcc.errors import CircuitError, EvidenceError, brief
from pgcc.ir.names import hint
from pgcc.ir.node import Node, const, var
from pgcc.locks import cached_property

Label: TypeAlias = str | int | float | bool

# Of two states, one of these has the column: people count what is "yes".
_AFFIRMED = frozenset({"1", "1.0", "true", "yes", "y", "t"})
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", re.ASCII)
_DENIED = frozenset({"0", "0.0", "false", "no", "n", "f"})


@dataclass(frozen=True)
class Domain:
    """The states of a variable, and the columns that show them.

    Attributes
    ----------
    states : tuple of str or numbers
        The labels, all different, also when written as text.
    columns : tuple of str or None
        For every state, the column that is in exactly in this state. At most one state has none: all columns are out.
    numbers : tuple of numbers
        How an array writes each state: as its label, if all labels are numbers; otherwise, of two states, as 1 if it
        has a column and 0 if not; otherwise as 0, 1, 2, … Where a label is a number, also as text, it is this number
        that means the state, and never another's: "1", "2", "3+" are 1, 2 and 0.

    Examples
    --------
    >>> Domain.of("weather", ["sun", "rain", "snow"]).columns
    ('weather=sun', 'weather=rain', 'weather=snow')
    >>> Domain.of("smoker", ["yes", "no"]).columns
    ('smoker', None)
    """

    states: tuple[Label, ...]
    columns: tuple[str | None, ...]
    numbers: tuple[int | float, ...] = field(init=False, repr=False, compare=False)
    _index: dict[Any, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = _numbers(self.states, self.columns)
        object.__setattr__(self, "numbers", numbers)
        index: dict[Any, int] = {number: i for i, number in enumerate(numbers)}
        index |= {str(state): i for i, state in enumerate(self.states)}
        index |= {state: i for i, state in enumerate(self.states)}
        object.__setattr__(self, "_index", index)

    @staticmethod
    def of(name: str, states: Iterable[Any]) -> Domain:
        """The domain of a variable, with a column per state for three states or more, one for two, and none for one."""
        var(name)  # refuses what cannot be a name
        labels = tuple(map(as_label, states))
        texts = [str(label) for label in labels]
        if not labels:
            raise CircuitError(f"variable {name!r} has no states")
        if len(set(texts)) < len(texts):
            twice = next(label for label, text in zip(labels, texts, strict=True) if texts.count(text) > 1)
            raise CircuitError(f"variable {name!r} has the state {twice!r} twice")
        if len(labels) > 2:
            return Domain(labels, tuple(f"{name}={text}" for text in texts))
        return Domain(labels, (None,) if len(labels) == 1 else _two_columns(name, texts))

    @property
    def is_plain(self) -> bool:
        """Whether it is a plain binary variable, whose answers are numbers and not numbers for each state."""
        return self.states == (0, 1) and type(self.states[0]) is int and self.columns[0] is None

    @property
    def is_block(self) -> bool:
        """Whether every state has a column: exactly one of several columns is in."""
        return None not in self.columns

    @property
    def affirmed(self) -> int | None:
        """The number of the state that means yes, if it has two of which one does."""
        return _affirmed(list(map(str, self.states)))

    def leaf(self, state: int) -> Node:
        """The literal of a state, by its number: its column, or that the only other state's column is out."""
        column = self.columns[state]
        if column is not None:
            return var(column)
        others = [one for one in self.columns if one is not None]
        if len(others) > 1:
            raise CircuitError(f"the state {self.states[state]!r} has no leaf: it is that none of {others} is in")
        return var(others[0], complement=True) if others else const(1)

    def number(self, label: Any, where: str) -> int:
        """The number of the state with this label; a text means the state that is written so.

        What is no label may mean yes or no, or be a number as arrays have it.
        """
        found = self._index.get(label) if label.__hash__ else None
        if found is not None and isinstance(label, (bool, np.bool_)) and len(self.states) > 2:
            found = None  # to Python, True is 1
        if found is None and not isinstance(label, str):
            found = self._index.get(str(label))
        yes = self.affirmed if found is None else None
        if yes is not None and str(label).lower() in _AFFIRMED | _DENIED:
            found = yes if str(label).lower() in _AFFIRMED else 1 - yes
        if found is None:
            raise EvidenceError(f"{where} is {brief(label)}{hint(label, [*map(str, self.states)], 'states')}")
        return found

    def among(self, possible: Iterable[int]) -> Any:
        """The label of the only state that is possible, or the set of labels if there are several."""
        labels = [self.states[i] for i in sorted(possible)]
        return labels[0] if len(labels) == 1 else set(labels)


def as_label(state: Any) -> Label:
    """A label as a Python object."""
    state = state.item() if hasattr(state, "item") and not isinstance(state, (str, int, float)) else state
    named = state.isprintable() if isinstance(state, str) else isinstance(state, (int, float)) and state - state == 0
    if not named:
        raise CircuitError(f"{brief(state)} is no name of a state: it is a printable text or a finite number")
    return state


def _numbers(states: tuple[Label, ...], columns: tuple[str | None, ...]) -> tuple[int | float, ...]:
    """`Domain.numbers`.

    >>> _numbers(("low", "high"), ("x", None)), _numbers(("2", "1", "0.5"), ("a", "b", "c"))
    ((1, 0), (2, 1, 0.5))
    """
    written = [float(s) if _NUMBER.fullmatch(str(s)) and not isinstance(s, bool) else None for s in states]
    if all(type(state) in (int, float) for state in states):
        return states  # type: ignore[return-value]
    plain = [int(c is not None) for c in columns] if len(states) == 2 and None in columns else list(range(len(states)))
    if all(number in (None, place) for number, place in zip(written, plain, strict=True)):
        return tuple(plain)
    unused = (number for number in range(2 * len(states)) if number not in written)
    own = [
        number if number is not None and number not in written[:i] else next(unused) for i, number in enumerate(written)
    ]
    return tuple(int(number) if number == int(number) else number for number in own)


def _two_columns(name: str, texts: list[str]) -> tuple[str | None, str | None]:
    """The column of two states: that of the one that means yes, or else of the second."""
    return (name, None) if _affirmed(texts) == 0 else (None, name)


def _affirmed(texts: list[str]) -> int | None:
    """Which of two labels means yes: letters do so only beside their opposite ("F" and "T", not "M" and "F")."""
    lower = [text.lower() for text in texts]
    for i, (text, other) in enumerate(zip(lower, reversed(lower), strict=True)):
        if text in _AFFIRMED and len(texts) == 2 and (other in _DENIED or len(text) > 1):
            return i
    return None


@lru_cache(maxsize=1 << 14)
def plain_domain(name: str) -> Domain:
    """The domain of a plain binary variable."""
    return Domain((0, 1), (None, name))


class Domains(Mapping[str, Domain]):
    """The variables of a circuit in their order, each with its states and columns.

    Examples
    --------
    >>> domains = Domains.of({"weather": ["sun", "rain", "snow"], "wet": ["no", "yes"]})
    >>> domains
    <Domains: weather in {sun, rain, snow}, wet in {no, yes}>
    >>> domains.columns
    ('weather=sun', 'weather=rain', 'weather=snow', 'wet')
    """

    def __init__(self, domains: Mapping[str, Domain]):
        self._domains = dict(domains)
        self.columns: tuple[str, ...] = tuple(c for domain in self._domains.values() for c in domain.columns if c)
        if len(set(self.columns)) < len(self.columns):
            twice = next(c for c in self.columns if self.columns.count(c) > 1)
            raise CircuitError(f"the column {twice!r} shows states of two variables, or two states: rename one")

    @classmethod
    def of(cls, states: Mapping[str, Iterable[Any]]) -> Domains:
        """The domains of variables, from their states."""
        if not isinstance(states, Mapping):
            raise CircuitError(f"states are a dict from names of variables to labels, not {brief(states)}")
        return cls({name: Domain.of(name, labels) for name, labels in states.items()})

    @classmethod
    def plain(cls, names: Iterable[str]) -> Domains:
        """Plain binary variables."""
        return cls({name: plain_domain(name) for name in names})

    def __getitem__(self, name: str) -> Domain:
        return self._domains[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._domains)

    def __len__(self) -> int:
        return len(self._domains)

    def __hash__(self) -> int:
        return hash(tuple(self._domains.items()))

    def __repr__(self) -> str:
        return f"<Domains: {', '.join(f'{name} in {_listed(domain)}' for name, domain in self.items())}>"

    @cached_property
    def at(self) -> dict[str, int]:
        """The number of each column."""
        return {column: i for i, column in enumerate(self.columns)}

    @cached_property
    def shown(self) -> tuple[np.ndarray, np.ndarray]:
        """For every column, the number of the variable and of the state that it shows."""
        found = [(v, i) for v, domain in enumerate(self.values()) for i, c in enumerate(domain.columns) if c]
        owner, state = np.array(found, np.int64).reshape(-1, 2).T
        return owner, state

    @cached_property
    def outs(self) -> np.ndarray:
        """The columns of variables with two states one of which is that the column is out."""
        two = [d for d in self.values() if not d.is_plain and None in d.columns]
        return np.array(sorted(self.at[c] for d in two for c in d.columns if c), np.int64)

    @cached_property
    def axis(self) -> list[tuple[str, Label | None, int]]:
        """The numbers of an answer about variables: one for a plain variable, and one for each state of all others.

        Each is the variable, the state (None of a plain variable), and the place among all columns followed by `outs`.
        A variable with a single state has none: its probability is 1.
        """
        out = {int(c): len(self.columns) + i for i, c in enumerate(self.outs)}
        found: list[tuple[str, Label | None, int]] = []
        for name, domain in self.items():
            at = [self.at[c] for c in domain.columns if c]
            if domain.is_plain:
                found.append((name, None, at[0]))
            elif at:
                places = (out[at[0]] if c is None else self.at[c] for c in domain.columns)
                found += [(name, state, place) for state, place in zip(domain.states, places, strict=True)]
        return found

    def codes(self, states: np.ndarray) -> np.ndarray:
        """Rows of codes from rows of numbers of states, of which −1 is unknown.

        >>> Domains.of({"w": ["sun", "rain", "snow"], "wet": ["no", "yes"]}).codes(np.array([[1, -1], [2, 0]])).tolist()
        [[0, 1, 0, -1], [0, 0, 1, 0]]
        """
        owner, state = self.shown
        seen = states.take(owner, axis=1)  # C-contiguous, which kernels expect
        return np.where(seen < 0, np.int8(-1), (seen == state).astype(np.int8))

    def states_in(self, codes: np.ndarray) -> np.ndarray:
        """The numbers of the states, rows × variables, that complete rows of codes show.

        >>> domains = Domains.of({"w": ["sun", "rain", "snow"], "wet": ["yes", "no"]})
        >>> domains.states_in(np.array([[0, 1, 0, 0]])).tolist()
        [[1, 1]]
        """
        without = [domain.columns.index(None) if None in domain.columns else 0 for domain in self.values()]
        found = np.tile(np.array(without, np.int64), (len(codes), 1))
        for column, (v, state) in enumerate(zip(*self.shown, strict=True)):
            found[codes[:, column] == 1, v] = state
        return found

    @cached_property
    def unit(self) -> dict[str, str]:
        """The variable of every column that belongs to a block: the two of them are one variable to `Scopes`."""
        return {column: name for name, domain in self.items() if domain.is_block for column in domain.columns if column}

    def renamed(self, names: Mapping[str, str]) -> Domains:
        """The same with other names of variables; their columns are renamed, too."""
        renamed: dict[str, Domain] = {}
        for name, domain in self.items():
            new = names.get(name, name)
            if new in renamed:
                raise CircuitError(f"variable {new!r} is listed twice")
            columns = tuple(c and new + c.removeprefix(name) for c in domain.columns)
            renamed[new] = replace(domain, columns=columns)
        return Domains(renamed)

    def given(self, observed: Mapping[str, int]) -> Domains:
        """What is left once columns are observed: without known variables, and without states that are ruled out."""
        left: dict[str, Domain] = {}
        for name, domain in self.items():
            seen = [observed.get(column, -1) if column else -1 for column in domain.columns]
            shown = [(s, c) for s, c, code in zip(domain.states, domain.columns, seen, strict=True) if code < 0]
            if 1 not in seen and (any(c for _, c in shown) or len(shown) == len(seen)):
                left[name] = Domain(*map(tuple, zip(*shown, strict=True)))
        return Domains(left)


class Columns(tuple[str, ...]):
    """The columns of a circuit some of whose variables have states: a tuple of names that knows its `domains`."""

    domains: Domains

    def __reduce__(self) -> tuple:
        return as_columns, (self.domains,)


def as_columns(variables: Iterable[str]) -> tuple[str, ...]:
    """The columns of a circuit: a tuple of names, with domains if some variables have states.

    >>> as_columns(["a", "b"]), as_columns(Domains.of({"c": ["x", "y", "z"]}))
    (('a', 'b'), ('c=x', 'c=y', 'c=z'))
    """
    if isinstance(variables, Columns):
        return variables
    if not isinstance(variables, Domains):
        return tuple(variables)
    if all(domain.is_plain for domain in variables.values()):
        return variables.columns
    columns = Columns(variables.columns)
    columns.domains = variables
    return columns


def domains_of(columns: Sequence[str]) -> Domains | None:
    """The domains of a circuit's columns; None if they are plain binary variables."""
    return columns.domains if isinstance(columns, Columns) else None


def kept_columns(names: Iterable[str], *sources: tuple[str, ...]) -> tuple[str, ...]:
    """Some columns of circuits, as those of a new one: a variable of which columns are missing has no states any more.

    >>> weather = as_columns(Domains.of({"w": ["sun", "rain", "snow"]}))
    >>> domains_of(kept_columns(["a", *weather], weather, ("a", "b")))
    <Domains: a in {0, 1}, w in {sun, rain, snow}>
    >>> domains_of(kept_columns(["w=sun", "a"], weather, ("a", "b"))) is None
    True
    """
    left = dict.fromkeys(names)
    kept: dict[str, Domain] = {}
    owner = {c: item for d in map(domains_of, sources) if d for item in d.items() for c in item[1].columns if c}
    for column in left:
        name, domain = owner.get(column, (column, None))
        if domain is None or not all(other in left for other in domain.columns if other):
            name, domain = column, Domain((0, 1), (None, column))
        kept[name] = domain
    return as_columns(Domains(kept))


def joined(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The columns of several circuits together, each once; a variable in two of them has the same states in both.

    >>> joined([("a", "b"), as_columns(Domains.of({"c": ["x", "y", "z"]})), ("b",)])
    ('a', 'b', 'c=x', 'c=y', 'c=z')
    """
    parts = list(parts)
    if not any(isinstance(part, Columns) for part in parts):
        return tuple(dict.fromkeys(column for part in parts for column in part))
    whole: dict[str, Domain] = {}
    for part in parts:
        for name, domain in (domains_of(part) or Domains.plain(part)).items():
            if whole.setdefault(name, domain) != domain:
                raise CircuitError(f"variable {name!r} has the states {_listed(whole[name])} and {_listed(domain)}")
    return as_columns(Domains(whole))


def _listed(domain: Domain) -> str:
    return "{" + ", ".join(map(str, domain.states)) + "}"

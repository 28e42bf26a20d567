"""Answers in the form of the evidence: evidence with names gets answers with names.

    evidence           one number     one per variable     a matrix, samples
    none               float          array, by name too   array
    an array           float, array   array                array
    dict, text         float          dict                 array
    list of these      array          list of dicts        array
    Series             float          Series               array
    DataFrame          Series         DataFrame            DataFrame

The index of a DataFrame labels the rows. ``names=True`` gives names in any case (dicts, and DataFrames for answers with
two axes); ``names=False`` gives none.

A variable with states has a number for each of them: in a dict, a dict from labels to numbers; in an array or
DataFrame, several columns, ``weather=sun`` and so on (`Domains.axis`). Samples are labels, or numbers
(`Domain.numbers`) without names and where the evidence is an array.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from pgcc.arrays import need_pandas
from pgcc.data.evidence import Evidence, Form
from pgcc.errors import EvidenceError, PgccError
from pgcc.ir.domains import Domains
from pgcc.ir.names import find_variable, hint


class Axes(Enum):
    """The axes of the answer to a single piece of evidence."""

    NUMBER = "one number, or one object"
    COUNTS = "a number for each size 0, 1, 2, …"
    VARIABLES = "a number for each variable"
    PAIRS = "a number for each pair of variables"
    SAMPLES = "rows of variables"

    @property
    def is_named(self) -> bool:
        """Whether the answer has an axis of variables."""
        return self in (Axes.VARIABLES, Axes.PAIRS, Axes.SAMPLES)


# Members of enumerations are looked up by name, which takes a while in a small query.
_UNNAMED, _FRAME, _VARIABLES = (Form.NOTHING, Form.ARRAY), Form.FRAME, Axes.VARIABLES


class ByVariable(np.ndarray):
    """A number for each variable: an array, whose entries have the names of the variables, too.

    >>> found = ByVariable.of(np.array([0.7, 0.4]), {"a": 0, "b": 1})
    >>> found["b"], found[:1], 1 - found
    (0.4, array([0.7]), array([0.3, 0.6]))
    """

    column: Mapping[str, int] = MappingProxyType({})
    domains: Domains | None = None

    @classmethod
    def of(cls, numbers: np.ndarray, column: Mapping[str, int], domains: Domains | None = None) -> ByVariable:
        found = numbers.view(cls)
        found.column, found.domains = column, domains
        return found

    def __array_wrap__(self, array: np.ndarray, *_: Any) -> Any:
        return np.asarray(array)[()]  # what is computed from them is a plain array, or a number

    def __getitem__(self, key: Any) -> Any:
        size = len(self.column if self.domains is None else self.domains.axis)
        if isinstance(key, (str, tuple)) and self.shape == (size,):
            variable = find_variable(key, self.column)
            if variable is not None and self.domains is not None:
                return by_state(self.domains, self.tolist())[variable]
            if variable is not None:
                return float(self[self.column[variable]])
            if isinstance(key, str):
                raise EvidenceError(f"unknown variable {key!r}{hint(key, list(self.column))}")
        return self.view(np.ndarray)[key]

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def in_form(answers: Any, given: Evidence, axes: Axes, names: bool | None) -> Any:
    """The answers to all rows of evidence: unwrapped for a single piece, and labelled if there are names."""
    if isinstance(answers, tuple):
        parts = (in_form(part, given, axes, names) for part in answers)
        return answers._make(parts) if hasattr(answers, "_make") else tuple(parts)
    form = given.form
    if given.domains is not None and axes.is_named:
        answers = _of_states(answers, given.domains, axes, form is not Form.ARRAY if names is None else bool(names))
    if names is None:
        if axes is _VARIABLES and form is Form.NOTHING:
            return ByVariable.of(answers[0], given.column, given.domains)
        names = form is _FRAME or (axes is _VARIABLES and form not in _UNNAMED)
    elif not isinstance(names, (bool, np.bool_)):
        raise PgccError(f"names={names!r}: True for answers by name, False for arrays")
    if names and form is _FRAME:
        return _framed(answers, given, axes, given.index)
    if names and axes is _VARIABLES:
        if form is Form.SERIES:
            heads = entries(given.variables, given.domains)
            return need_pandas().Series(dict(zip(heads, answers[0].tolist(), strict=True)))
        if given.domains is None:
            found = [dict(zip(given.variables, row, strict=True)) for row in answers.tolist()]
        else:
            found = [by_state(given.domains, row) for row in answers.tolist()]
        return found[0] if given.single else found
    if names and axes is not Axes.NUMBER:
        return _framed(answers, given, axes, None)
    if not given.single:
        return answers
    answer = answers[0]
    return float(answer) if type(answer) is np.float64 else answer


def by_state(domains: Domains, numbers: list[float]) -> dict[str, Any]:
    """Numbers in the order of `Domains.axis` as a dict: of a variable with states, a dict from its states.

    >>> by_state(Domains.of({"w": ["sun", "rain", "snow"], "here": ["always"]}), [0.5, 0.25, 0.25])
    {'w': {'sun': 0.5, 'rain': 0.25, 'snow': 0.25}, 'here': {'always': 1.0}}
    """
    found: dict[str, Any] = {name: {d.states[0]: 1.0} if len(d.states) == 1 else {} for name, d in domains.items()}
    for (name, state, _), number in zip(domains.axis, numbers, strict=True):
        if state is None:
            found[name] = number
        else:
            found[name][state] = number
    return found


def _of_states(answers: np.ndarray, domains: Domains, axes: Axes, labels: bool) -> np.ndarray:
    """Answers about columns, and `outs`, as answers about variables and their states."""
    if axes is Axes.SAMPLES:
        states = domains.states_in(answers.reshape(math.prod(answers.shape[:-1]), answers.shape[-1]))
        meanings = [domain.states if labels else domain.numbers for domain in domains.values()]
        tables = [np.array(meaning, object if labels else None) for meaning in meanings]
        found = np.stack([table[states[:, v]] for v, table in enumerate(tables)], axis=1)
        return found.reshape(*answers.shape[:-1], len(domains))
    places = [place for _, _, place in domains.axis]
    return answers[..., places] if axes is Axes.VARIABLES else answers[..., places, :][..., places]


def entries(variables: Iterable[str], domains: Domains | None) -> list[str]:
    """The names of the numbers of an answer about variables.

    >>> entries(["w", "wet"], Domains.of({"w": ["sun", "rain", "snow"], "wet": [0, 1]}))
    ['w=sun', 'w=rain', 'w=snow', 'wet']
    """
    if domains is None:
        return list(variables)
    return [name if state is None else f"{name}={state}" for name, state, _ in domains.axis]


def joined(parts: list[Any]) -> Any:
    """The answers to rows from those to parts of them.

    >>> joined([[1, 2], [3]]), joined([(np.ones(1), np.zeros(1)), (np.ones(1), np.zeros(1))])
    ([1, 2, 3], (array([1., 1.]), array([0., 0.])))
    """
    first = parts[0]
    if isinstance(first, tuple):
        columns = map(joined, map(list, zip(*parts, strict=True)))
        return first._make(columns) if hasattr(first, "_make") else tuple(columns)
    return np.concatenate(parts) if isinstance(first, np.ndarray) else [one for part in parts for one in part]


def _framed(answers: Any, given: Evidence, axes: Axes, index: Any) -> Any:
    """The answers as pandas objects, with rows labelled by `index` or numbered."""
    pandas = need_pandas()
    if axes is Axes.NUMBER:
        kept = answers if isinstance(answers, np.ndarray) else pandas.array(answers, dtype=object)
        return pandas.Series(kept, index=index)
    columns: Any = list(given.variables) if axes is Axes.SAMPLES else entries(given.variables, given.domains)
    columns = range(answers.shape[-1]) if axes is Axes.COUNTS else columns
    if answers.ndim == 2:
        return pandas.DataFrame(answers, index=index, columns=columns)
    inner = columns if axes is Axes.PAIRS else range(answers.shape[1])
    if given.single:
        return pandas.DataFrame(answers[0], index=inner, columns=columns)
    outer = range(len(answers)) if index is None else index
    rows = pandas.MultiIndex.from_product([outer, inner])
    return pandas.DataFrame(answers.reshape(-1, answers.shape[-1]), index=rows, columns=columns)

"""Evidence in every form that users have it → rows of int8 codes: 1 observed in, 0 observed out, −1 unobserved.

Codes are about the columns of a circuit. Evidence about variables with states (`pgcc.ir.domains`) is read as the
numbers of states, and becomes codes of all columns that show them.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from pgcc.arrays import as_array, is_frame, is_pandas, is_sparse
from pgcc.data.text import CELLS, example, is_missing, parse_counted, parse_evidence, parse_names
from pgcc.errors import EvidenceError, brief
from pgcc.evaluate.soft import SoftRows
from pgcc.ir.domains import Domain, Domains, domains_of, plain_domain
from pgcc.ir.names import find_variable, hint, some
from pgcc.locks import cached_property

_MOST_RANKED = 1 << 16  # the largest range of integers that are numbered by a table
_MEANING = "1 (in), 0 (out) or −1 / None / NaN (unobserved)"


class Form(Enum):
    """The form in which evidence was given, and in which answers about variables are returned."""

    NOTHING = "nothing is observed"
    ARRAY = "numbers in columns"
    NAMES = "by name: a dict or text, or a list of them"
    SERIES = "a pandas Series"
    FRAME = "a pandas DataFrame"


class Evidence:
    """Rows of evidence, converted a chunk at a time.

    Parameters
    ----------
    columns : sequence of str
        The columns of the circuit, which know the domains of variables with states.
    given : mapping, text, array, DataFrame, or sequence of mappings or texts
        A dict of names (others are unobserved), or the same as text, ``"a=1, b=0"``; an array of integers, booleans or
        floats with one column per variable; a DataFrame of pandas or polars; a list of dicts or texts. The value of a
        variable with states is a label, a set of labels, or its number (see `Domain.numbers`).
    column : dict, optional
        The number of each variable, if that is already known.

    Attributes
    ----------
    variables : sequence of str
        The names of the variables.
    domains : Domains or None
        Their states; None if all are plain binary variables, and the columns are the variables.
    rows : int
        The number of rows.
    single : bool
        Whether a single piece of evidence was given rather than a table.
    form : Form
        The form in which it was given.
    index : pandas Index or None
        The labels of the rows of a DataFrame.
    soft : float64 array or None
        Likelihoods, rows × columns × 2 (see `pgcc.evaluate.soft`), if there is soft evidence.
    first : int
        The number of the first row, if this is a part of a table.

    Examples
    --------
    >>> Evidence(["a", "b"], {"b": 1}).chunk(slice(None)).tolist()
    [[-1, 1]]
    >>> Evidence(["a", "b"], ["a=1", "a=0, b=1"]).chunk(slice(None)).tolist()
    [[1, -1], [0, 1]]
    """

    form = Form.ARRAY
    index: Any = None
    single = False
    soft: np.ndarray | None = None
    first = 0
    _checked = False  # whether the table is known to hold codes only

    def __init__(self, columns: Sequence[str], given: Any, column: dict[str, int] | None = None):
        self.columns = columns if isinstance(columns, tuple) else tuple(columns)
        self.domains = domains_of(self.columns)
        if column is not None:
            self.column = column
        self._likelihoods: dict[tuple[int, int], tuple[float, float]] = {}  # by row and column
        self._table: np.ndarray | _Frame | _Sparse
        # The fast paths for small queries: the tests below take microseconds.
        if type(given) is np.ndarray:
            self._table = self._from_array(given)
            self.rows = len(self._table)
            return
        if type(given) is dict:  # 1.1 times for a model of 100 edges
            self._table, self.rows, self.form = self._from_dict(given, "")[None], 1, Form.NAMES
            self.single = self._checked = True
            self._soften()
            return
        if isinstance(given, np.ma.MaskedArray):  # masked entries are unobserved
            given = np.ma.filled(given.astype(np.float64 if given.dtype.kind in "biuf" else object), np.nan)
        if given is None or _is_by_name(given):
            self.single = self._checked = True
            self.form = Form.NOTHING if given is None else Form.SERIES if _is_series(given) else Form.NAMES
            self._table = self._by_name({} if given is None else given, "")[None]
        elif is_frame(given):
            self._table = _Frame(self, given)
            if is_pandas(given):
                self.form, self.index = Form.FRAME, given.index
        elif isinstance(given, Sequence) and given and all(map(_is_by_name, given)):
            self._refuse_names(given)
            self._table = np.stack([self._by_name(one, f" (row {i})", i) for i, one in enumerate(given)])
            self._checked, self.form = True, Form.NAMES
        elif is_sparse(given) and len(given.shape) == 2:
            self._check_shape(given.shape)
            self._table = _Sparse(given)
        else:
            self._table = self._from_array(given)
        self.rows = len(self._table)
        self._soften()

    @classmethod
    def of_codes(cls, columns: tuple[str, ...], codes: np.ndarray, column: dict[str, int] | None = None) -> Evidence:
        """Evidence that is known to be int8 codes of the columns."""
        found = cls(columns, None, column)
        found._table = np.atleast_2d(codes)
        found.rows, found.form, found.single = len(found._table), Form.ARRAY, False
        return found

    @property
    def variables(self) -> Sequence[str]:
        """The names of the variables."""
        return self.columns if self.domains is None else tuple(self.domains)

    @cached_property
    def column(self) -> dict[str, int]:
        """The number of each variable."""
        return {name: i for i, name in enumerate(self.variables)}

    @cached_property
    def _known(self) -> Domains:
        """The states of all variables, plain ones too."""
        return Domains.plain(self.columns) if self.domains is None else self.domains

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def chunk(self, rows: slice, checked: bool = True) -> np.ndarray:
        """The rows as a C-contiguous int8 array; an array that was given in this form need not be `checked`."""
        if self.soft is not None:
            raise EvidenceError(
                "soft evidence (likelihoods) cannot be used here",
                advice="model.condition(evidence) is the model of what is known then",
            )
        return self.codes(rows, checked)

    def asked(self, rows: slice) -> np.ndarray | SoftRows:
        """The rows as `chunk` gives them, with their likelihoods if there are some."""
        return self.chunk(rows) if self.soft is None else SoftRows(self.codes(rows), self.soft[rows])

    def part(self, rows: slice) -> Evidence:
        """What some rows observe, without their likelihoods; the rows keep their numbers."""
        found = Evidence.of_codes(self.columns, self.codes(rows), self.column)
        found.form, found.single, found.first = self.form, self.single, self.first + rows.start
        return found

    def _soften(self) -> None:
        """Gather the likelihoods."""
        if self._likelihoods:
            self.soft = np.ones((self.rows, len(self.columns), 2))
            for place, pair in self._likelihoods.items():
                self.soft[place] = pair

    def codes(self, rows: slice, checked: bool = True) -> np.ndarray:
        """`chunk` without regard to likelihoods."""
        table = self._table[rows]
        if self._checked:
            return table
        if self.domains is not None and isinstance(self._table, _Frame):
            return self.domains.codes(table)
        if not table.flags.writeable:  # another type to Numba, for which it would compile every kernel anew
            table = table.copy()
        if not checked and self.domains is None and table.dtype == np.int8 and table.flags.c_contiguous:
            return table
        return as_codes(table, self.columns, rows.indices(self.rows)[0])

    def values(self, row: int) -> dict[str, Any]:
        """What a row observes, by variable: 1 or 0, or the label of a state, or the set of those that are possible."""
        codes = self.codes(slice(row, row + 1))[0]
        if self.domains is None:
            return {name: code for name, code in zip(self.columns, codes.tolist(), strict=True) if code >= 0}
        found = {}
        for name, domain in self.domains.items():
            possible = _possible(domain, {c: int(codes[self.domains.at[c]]) for c in domain.columns if c})
            if len(possible) < len(domain.states):
                found[name] = domain.among(possible)
        return found

    def describe(self, row: int) -> str:
        """A row in words, for messages."""
        seen = [_told(name, value) for name, value in self.values(row).items()]
        if self.soft is not None:
            pairs = zip(self.columns, self.codes(slice(row, row + 1))[0].tolist(), self.soft[row].tolist(), strict=True)
            seen += [f"{name}={{0: {o:g}, 1: {i:g}}}" for name, code, (o, i) in pairs if code < 0 and (o, i) != (1, 1)]
        text = ", ".join(seen[:8]) + (f", … ({len(seen)} observed)" if len(seen) > 8 else "")
        return (f"evidence {text}" if seen else "no evidence") + ("" if self.single else f" (row {self.first + row})")

    def observed(self) -> dict[str, int]:
        """The columns that a single piece of evidence observes, and their codes."""
        if not self.single:
            raise EvidenceError("expected one piece of evidence, not a table of them")
        codes = self.chunk(slice(None))[0].tolist()
        return {name: code for name, code in zip(self.columns, codes, strict=True) if code >= 0}

    def _by_name(self, given: Any, where: str, row: int = 0) -> np.ndarray:
        """One row of codes, from a dict, a Series or text."""
        if isinstance(given, str):
            self._refuse_names([given])
            given = parse_evidence(given, self.variables, self.domains)
        return self._from_dict(_named(given), where, row)

    def _from_dict(self, values: Mapping[Any, Any], where: str, row: int = 0) -> np.ndarray:
        """One row of codes."""
        if not values.keys() <= self.column.keys():
            values = self._with_known_names(values, where)
        codes = np.full(len(self.columns), -1, np.int8)
        for name, value in values.items():
            if self.domains is None and type(value) is int and -1 <= value <= 1:  # the fast path for small queries
                codes[self.column[name]] = value
            else:
                self._observe(codes, name, value, f"variable {name!r}{where}", row)
        return codes

    def _observe(self, codes: np.ndarray, name: str, value: Any, where: str, row: int) -> None:
        """Put what is known of a variable into a row of codes: a label, a set of labels, or likelihoods by label."""
        domain, likelihoods = plain_domain(name) if self.domains is None else self.domains[name], None
        if isinstance(value, Mapping):
            likelihoods = as_likelihoods(domain, value, where)
            possible = {i for i, likelihood in enumerate(likelihoods) if likelihood}
        elif isinstance(value, (set, frozenset)) or (not domain.is_plain and is_several(value)):
            read = as_code if domain.is_plain else domain.number
            possible = {read(label, where) for label in value}
            if min(possible, default=-1) < 0:
                raise EvidenceError(f"{where} is {brief(value)}: no state is possible, or an unknown one")
        elif (state := as_state(domain, value, where)) < 0:
            return
        else:
            possible = {state}
        absent = 1.0 if likelihoods is None or None not in domain.columns else likelihoods[domain.columns.index(None)]
        for i, column in enumerate(domain.columns):
            if column is not None:
                at = (self.column if self.domains is None else self.domains.at)[column]
                codes[at] = 0 if i not in possible else 1 if len(possible) == 1 else -1
                if likelihoods is not None:
                    self._likelihoods[row, at] = (absent, likelihoods[i])

    def _with_known_names(self, values: Mapping[Any, Any], where: str) -> dict[str, Any]:
        """The same values by the actual names of the variables (see `find_variable`)."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            variable = find_variable(name, self.column)
            if variable is None:
                raise EvidenceError(f"unknown variable {brief(name)}{where}{hint(name, self.variables)}")
            if variable in found:
                raise EvidenceError(f"variable {variable!r} is observed twice{where}: {name!r} is the same")
            found[variable] = value
        return found

    def _refuse_names(self, given: Sequence[Any]) -> None:
        """Refuse names of variables without values: they say what to ask about, not what is observed."""
        names = [one for one in given if isinstance(one, str)]
        if names and all(find_variable(name, self.column) for name in names):
            raise EvidenceError(
                f"{some(names)}: names without values are not evidence. Evidence looks like "
                f"{example(names[:1], self.domains)}",
                advice="over=… gives the variables to count",
            )

    def _from_array(self, given: Any) -> np.ndarray:
        array = as_array(given, "the evidence", EvidenceError)
        try:
            table = np.asarray(given) if array is None else array
        except (ValueError, TypeError):
            raise EvidenceError("the rows of evidence have different lengths") from None
        n = len(self.column)
        if not table.ndim:
            raise EvidenceError(f"{brief(given)} is not evidence: give a dict, text, an array or a DataFrame")
        if table.ndim == 1 and (len(table) == n or not len(table)):
            if len(table) == n:
                self.single, table = True, table[None]
            else:
                table = table.reshape(0, n)
        self._check_shape(table.shape)
        return table

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        n = len(self.column)
        if len(shape) != 2 or shape[1] != n:
            raise EvidenceError(
                f"evidence of shape {shape} does not fit: one column for each of the {n} variables is needed"
            )


class _Frame:
    """A DataFrame of pandas or polars, read a chunk at a time by column name; variables without one are unobserved."""

    def __init__(self, given: Evidence, frame: Any):
        column, self.frame, self.width = given.column, frame, len(given.column)
        self.plain, self.domains = given.domains is None, list(given._known.items())
        places: dict[int, None] = {}  # of the columns of the frame, among the variables
        for name in frame.columns:
            variable = find_variable(name, column)
            if variable is None:
                raise EvidenceError(f"column {name!r} of the table is not a variable{hint(name, column)}")
            if column[variable] in places:
                raise EvidenceError(f"column {variable!r} occurs twice in the table, so it is ambiguous")
            places[column[variable]] = None
        self.places = list(places)

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, rows: slice) -> np.ndarray:
        part = self.frame.iloc[rows] if is_pandas(self.frame) else self.frame[rows]
        table, first = np.full((len(part), self.width), -1.0 if self.plain else -1), rows.indices(len(self))[0]
        for column, place in zip(self.frame.columns, self.places, strict=True):
            name, domain = self.domains[place]
            numbers = part[column].to_numpy() if self.plain else None
            if numbers is not None and numbers.dtype.kind in "biuf":  # these are checked together
                table[:, place] = numbers
            else:
                table[:, place] = as_states(part[column], domain, name, first, labels=not self.plain)
        return table


class _Sparse:
    """A scipy sparse matrix, made dense a chunk at a time; entries that are not stored are 0 (out)."""

    def __init__(self, matrix: Any):
        self.rows = matrix.tocsr()

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.rows[rows].toarray()


def _is_by_name(given: Any) -> bool:
    """Whether this is a single piece of evidence with names: a dict, text or a Series."""
    return isinstance(given, (dict, str, Mapping)) or _is_series(given)


def _is_series(given: Any) -> bool:
    """Whether this is a pandas Series (without importing pandas)."""
    return hasattr(given, "iloc") and hasattr(given, "items") and not hasattr(given, "columns")


def _named(given: Any) -> Mapping[Any, Any]:
    """A dict, or a Series with distinct names as a dict."""
    if isinstance(given, Mapping):
        return given
    named = dict(given.items())
    if len(named) < len(given):
        raise EvidenceError("a name occurs twice in the index of the series, so it is ambiguous")
    return named


def read_names(names: Iterable[str] | str | None, column: Mapping[str, Any]) -> list[str]:
    """Distinct names of variables, from a sequence of names or from text, ``"a, b"``; all variables for None.

    >>> read_names("a, c", {"a": 0, "b": 1, "c": 2})
    ['a', 'c']
    """
    if names is None:
        return list(column)
    if hasattr(names, "keys"):
        raise EvidenceError(f"{brief(names)} is evidence, but names of variables are expected here")
    if isinstance(names, str):
        names = [names] if find_variable(names, column) else parse_names(names)
    try:
        listed = list(names)
    except TypeError:
        raise EvidenceError(f"{names!r} is not a sequence of names") from None
    found: dict[str, None] = {}
    for name in listed:
        variable = find_variable(name, column)
        if variable is None:
            raise EvidenceError(f"unknown variable {brief(name)}{hint(name, column)}")
        if variable in found:
            raise EvidenceError(f"variable {variable!r} occurs twice in {some(listed)}")
        found[variable] = None
    return list(found)


def read_counted(
    names: Iterable[str] | Mapping[str, Any] | str | None, columns: tuple[str, ...], column: Mapping[str, Any]
) -> list[str]:
    """The columns to count: of variables that are yes or no, or of given states, ``{"weather": "rain"}``.

    >>> from pgcc.ir.domains import Domains, as_columns
    >>> columns = as_columns(Domains.of({"w": ["sun", "rain", "snow"], "wet": ["no", "yes"]}))
    >>> read_counted({"w": {"rain", "snow"}}, columns, {}), read_counted("wet, w=rain", columns, {})
    (['w=rain', 'w=snow'], ['wet', 'w=rain'])
    """
    domains = domains_of(columns)
    if domains is None:
        return read_names(names, column)
    if isinstance(names, str) and find_variable(names, domains) is None:
        names = parse_counted(names)
    if isinstance(names, Mapping):
        states = {read_names([name], domains)[0]: labels for name, labels in names.items()}
    else:
        states = dict.fromkeys(read_names(names, domains))
    return [found for name, labels in states.items() for found in _counted(name, domains[name], labels)]


def _counted(name: str, domain: Domain, labels: Any) -> list[str]:
    """The columns of the states of a variable that count."""
    if labels is not None:
        listed = labels if isinstance(labels, (set, frozenset, list, tuple)) else [labels]
        counted = {domain.number(label, f"variable {name!r}") for label in listed}
    elif domain.is_plain or domain.affirmed is not None:
        counted = {1 if domain.affirmed is None else domain.affirmed}
    else:
        raise EvidenceError(
            f"{name!r} is neither in nor out: its states are {some([*map(str, domain.states)])}",
            argument="over",
            advice=f"over={f'{name}={domain.states[-1]}'!r} counts a state",
        )
    found = [column for i in sorted(counted) if (column := domain.columns[i])]
    if len(found) < len(counted):
        out = domain.states[domain.columns.index(None)]
        raise EvidenceError(f"{name!r} has no column that is in where it is {out!r}: count the other state")
    return found


def as_code(value: Any, where: str) -> int:
    """One observation as 1, 0 or −1.

    >>> as_code(True, ""), as_code(None, ""), as_code(0.0, "")
    (1, -1, 0)
    """
    if type(value) is int and -1 <= value <= 1:  # the fast path for small queries
        return value
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, whose comparisons are NA again
        return -1
    if isinstance(value, (numbers.Real, np.bool_)) and not isinstance(value, np.timedelta64):  # numpy: an integer
        if value != value:  # NaN
            return -1
        if value in (0, 1, -1):
            return int(value)  # type: ignore[arg-type]
    raise EvidenceError(f"{where} is {brief(value)}: evidence is {_MEANING}")


def is_several(value: Any) -> bool:
    """Whether a value is a list, a tuple or an array of labels."""
    return isinstance(value, (list, tuple)) or bool(getattr(value, "ndim", False))


def as_state(domain: Domain, value: Any, where: str) -> int:
    """The number of the state that a value means; −1 if it is unknown."""
    if domain.is_plain:
        return as_code(value, where)
    return -1 if is_missing(value, domain) else domain.number(value, where)


def as_likelihoods(domain: Domain, value: Mapping[Any, Any], where: str) -> list[float]:
    """The likelihood of every state; 0 for what is not named.

    >>> as_likelihoods(Domain((0, 1), (None, "a")), {True: 2}, "variable 'a'")
    [0.0, 2.0]
    """
    found, seen = [0.0] * len(domain.states), set[int]()
    for label, likelihood in value.items():
        state = as_state(domain, label, where)
        if state < 0:
            raise EvidenceError(
                f"{where}: likelihoods are given for {some([*map(str, domain.states)])}, not for {brief(label)}"
            )
        if state in seen:
            raise EvidenceError(f"{where}: the state {domain.states[state]!r} has two likelihoods")
        seen.add(state)
        found[state] = as_likelihood(likelihood, f"{where} = {brief(label)}")
    if not any(found):
        raise EvidenceError(f"{where}: all likelihoods are 0, so no state is possible")
    if len(found) == 1 and found != [1.0]:
        raise EvidenceError(f"{where} has a single state, so its likelihood says nothing: leave it out")
    return found


def as_likelihood(value: Any, where: str) -> float:
    """One likelihood as a double."""
    try:
        number = math.nan if isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0.0 <= number < math.inf or (number == 0.0 and value != 0):
        raise EvidenceError(f"the likelihood of {where} is {brief(value)}: it must be a finite double, 0 or more")
    return number


def as_states(values: Any, domain: Domain, name: str, first_row: int, labels: bool = True) -> np.ndarray:
    """The numbers of the states of a column of labels or numbers; −1 where there is none.

    Every different value is looked up once. In a table of labels, text says of a plain variable what it says in files.
    """
    try:
        if hasattr(values, "factorize"):
            which, different = values.factorize()
            different = list(different)
        else:
            different, which = _different(np.asarray(values))
    except TypeError as error:
        raise EvidenceError(f"variable {name!r}: a table of labels holds what is none: {error}") from None
    states = np.empty(len(different) + 1, np.int64)
    states[-1] = -1  # pandas numbers what is missing −1
    for i, value in enumerate(different):
        try:
            is_text = labels and domain.is_plain and isinstance(value, str)
            code = CELLS.get(value.strip().lower()) if is_text else None
            states[i] = as_state(domain, value if code is None else code, f"variable {name!r}")
        except EvidenceError as error:
            row = int(np.argmax(np.asarray(which) == i))
            raise EvidenceError(f"row {first_row + row}, {error}") from None
    return states[which]


def _different(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The different values, and the number of each value among them.

    >>> _different(np.array([3, 1, 3])), _different(np.array(["b", None], object))
    (([1, 3], array([1, 0, 1])), (['b', None], array([0, 1])))
    """
    if len(values) == 1:  # a tenth of the time of what follows
        return values.tolist(), np.zeros(1, np.int64)
    if values.dtype.kind in "iu" and len(values) and int(values.max()) - int(values.min()) < _MOST_RANKED:
        shifted = values.astype(np.int64) - int(values.min())
        present = np.flatnonzero(np.bincount(shifted))
        number = np.zeros(len(present) and present[-1] + 1, np.int64)
        number[present] = np.arange(len(present))
        return (present + int(values.min())).tolist(), number[shifted]
    if values.dtype.kind in "biuf":
        different, which = np.unique(values, return_inverse=True)
        return different.tolist(), which
    numbers: dict[Any, int] = {}
    which = np.array([numbers.setdefault(value, len(numbers)) for value in values.tolist()], np.int64)
    return list(numbers), which


def _possible(domain: Domain, codes: Mapping[str, int]) -> set[int]:
    """The numbers of the states that codes of its columns allow."""
    into = [i for i, column in enumerate(domain.columns) if column and codes[column] == 1]
    if into:
        return set(into)
    return {i for i, column in enumerate(domain.columns) if column is None or codes[column] != 0}


def _told(name: str, value: Any) -> str:
    return f"{name} in {{{', '.join(sorted(map(str, value)))}}}" if isinstance(value, set) else f"{name}={value}"


def as_codes(table: np.ndarray, variables: Sequence[str], first_row: int) -> np.ndarray:
    """Convert numbers, or labels of states, to codes and check them; an error names the first bad entry."""
    kind, domains = table.dtype.kind, domains_of(variables)
    labels = domains is not None
    if kind not in "biuf" and domains is None:
        domains = Domains.plain(variables)
    if domains is not None:
        states = np.empty(table.shape, np.int64)
        for v, (name, domain) in enumerate(domains.items()):
            states[:, v] = as_states(table[:, v], domain, name, first_row, labels)
        return domains.codes(states)
    if kind == "b":  # converted, not viewed: the bytes of a boolean array may be others than 0 and 1
        return np.ascontiguousarray(table, dtype=np.int8)
    if kind == "f":
        table = np.where(np.isnan(table), -1.0, table)
        good = (table == 0.0) | (table == 1.0) | (table == -1.0)
    elif table.size and (table.max() > 1 or (kind == "i" and table.min() < -1)):
        good = (table <= 1) & (table >= -1) if kind == "i" else table <= 1
    else:
        return np.ascontiguousarray(table, dtype=np.int8)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise EvidenceError(
            f"row {first_row + row}, variable {variables[column]!r} is {table[row, column]}: evidence is {_MEANING}"
        )
    return np.ascontiguousarray(table, dtype=np.int8)

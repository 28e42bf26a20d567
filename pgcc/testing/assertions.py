"""Assertions about circuits; their messages name an assignment and the numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.locks import cached_property
from pgcc.model import Model, compile
from pgcc.pc import PC
from pgcc.validity.check import TOTAL_TOLERANCE, check
from pgcc.validity.verdict import short_text

# With at most this many variables, all assignments are compared.
MOST_COMPARED = 12
# Numbers that have to agree to less than this are compared as fractions.
_SMALLEST_RTOL = 4e-14

Number = float | Fraction


def assert_valid(
    circuit: Circuit, normalize: bool = False, *, allow_unproven: bool = False, time: float = 5.0, rng: Any = 0
) -> None:
    """Assert that a circuit is a probability distribution, by `pgcc.check`.

    Parameters
    ----------
    circuit : Circuit
        The circuit to check.
    normalize : bool
        Judge g / g(1), so that any positive total is accepted.
    allow_unproven : bool
        Whether to accept circuits that are neither proved nor refuted.
    time, rng
        As for `pgcc.check`.

    Raises
    ------
    AssertionError
        If the circuit is refuted or not proven. The message says what is refuted, by which assignment, squared variable
        or total, or what could not be proved.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.testing import assert_valid
    >>> assert_valid(pgcc.parse("0.4*a*b + 0.6"))
    >>> assert_valid(pgcc.parse("1.5*rain - 0.5"))
    Traceback (most recent call last):
    AssertionError: not a distribution: 1 variable, 2 edges
    nonnegative: refuted: the coefficient of rain=0 is -1/2
    """
    report = check(circuit, time=time, normalize=normalize, rng=rng)
    if report.ok or (allow_unproven and report.state != "refuted"):
        return
    head, *claims = str(report).split("\n")
    wanted = "refuted" if report.state == "refuted" else "not proven"
    failing = [line for line in claims if line.split(": ")[1] == wanted]
    hint = [] if wanted == "refuted" else ["(allow_unproven=True lets it pass; a longer time may decide it)"]
    raise AssertionError("\n".join([head, *failing, *hint]))


def assert_same_distribution(
    a: Circuit | PC | Model,
    b: Circuit | PC | Model,
    rtol: float = 1e-9,
    *,
    atol: float = 0.0,
    queries: int = 500,
    seed: int = 0,
) -> None:
    """Assert that two circuits give the same probabilities, each divided by its total.

    With at most 12 variables, all 2ⁿ assignments are compared; with more, the marginal of every variable and `queries`
    random queries. The order of the variables does not matter.

    Parameters
    ----------
    a, b : Circuit, PC or Model
        The distributions to compare.
    rtol, atol : float
        How far apart two numbers may be: atol + rtol · the larger. With rtol=0 they are compared as fractions. Use atol
        for two computations in floats, which may differ where one of them is 0.
    queries, seed : int
        The number of random queries, and the seed they are drawn with.

    Raises
    ------
    AssertionError
        If the distributions differ. The message names the assignment where they differ most, with both numbers.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.testing import assert_same_distribution
    >>> assert_same_distribution(pgcc.parse("0.5*a*b + 0.5*a"), pgcc.parse("a*(b + 1)"))
    >>> assert_same_distribution(pgcc.parse("0.25*a + 0.75"), pgcc.parse("0.5*a + 0.5"))
    Traceback (most recent call last):
    AssertionError: Pr(a=0) is 0.75 in the first and 0.5 in the second; 2 of 2 queries differ
    """
    first, second = _model(a), _model(b)
    _assert_same_variables(first.variables, second.variables)
    rows = _all_rows(len(first.variables))
    if rows is None:
        rows = _random_rows(np.random.default_rng(seed), len(first.variables), queries)
    columns = [first.variables.index(name) for name in second.variables]
    left, right = _numbers(first, rows, rtol), _numbers(second, rows[:, columns], rtol)
    apart = [
        (_distance(x, y), i) for i, (x, y) in enumerate(zip(left, right, strict=True)) if not _close(x, y, rtol, atol)
    ]
    if apart:
        _, i = max(apart, key=lambda pair: (pair[0], -pair[1]))
        event = _event(_as_dict(first.variables, rows[i]))
        raise AssertionError(
            f"{event} is {_text(left[i])} in the first and {_text(right[i])} in the second; "
            f"{len(apart):,} of {len(rows):,} queries differ"
        )


def assert_laws(
    circuit: Circuit, normalize: bool = False, *, rtol: float = 1e-9, queries: int = 20, seed: int = 0
) -> None:
    """Assert that the answers about a circuit are consistent with each other.

    - Pr() = 1, and no probability is below 0 or above 1;
    - Pr(e) = Pr(e, x=1) + Pr(e, x=0);
    - the float answer is within its bound, and within rtol, of the exact one;
    - `Circuit.observe` and `Circuit.marginalize` give circuits that agree with the queries.

    Parameters
    ----------
    circuit : Circuit
        The circuit to ask about.
    normalize : bool
        Ask about g / g(1).
    rtol : float
        The accuracy required of float answers, and of sums of exact answers if weights are floats.
    queries, seed : int
        The number of random pieces of evidence e, and the seed they are drawn with.

    Raises
    ------
    AssertionError
        If a law is broken. The message names the law, the assignment and the numbers, or says why no question can be
        asked.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.testing import assert_laws
    >>> assert_laws(pgcc.parse("0.4*a*b + 0.6"))
    >>> assert_laws(pgcc.parse("1.5*rain - 0.5"))
    Traceback (most recent call last):
    AssertionError: Pr(rain=1) = 3/2 is above 1
    """
    try:
        model = compile(circuit, normalize=normalize, rtol=rtol)
    except PgccError as error:
        if not isinstance(circuit, Circuit):
            raise
        raise AssertionError(f"there is nothing to ask: {error}") from error
    rng = np.random.default_rng(seed)
    laws = _Laws(model, normalize, rtol, rng)
    laws.total()
    for row in _law_rows(rng, len(model.variables), queries):
        given = _as_dict(model.variables, row)
        laws.is_probability(given)
        laws.adds_up(given)
        laws.float_is_exact(given)
        laws.conditions(given)
        laws.marginalizes(given)


# -- the laws --------------------------------------------------------------------------------------------------------


@dataclass
class _Laws:
    model: Model
    normalize: bool
    rtol: float
    rng: np.random.Generator

    @property
    def circuit(self) -> Circuit:
        return self.model.circuit

    def pr(self, given: Mapping[str, int]) -> Fraction:
        return self.model.prob(dict(given), exact=True)

    def agree(self, x: Fraction, y: Fraction) -> bool:
        """Whether two numbers are equal, or nearly equal if weights are floats."""
        if self.circuit.facts.exact:
            return x == y
        return _close(x, y, self.rtol, self.slack)

    @cached_property
    def mass(self) -> Fraction:
        """The total g(1), by which the model divides."""
        return compile(self.circuit, normalize=False).prob({}, exact=True) if self.normalize else Fraction(1)

    @property
    def slack(self) -> float:
        return 0.0 if self.circuit.facts.exact else 1e-12

    def total(self) -> None:
        total = self.pr({})
        if abs(total - 1) > (0 if self.circuit.facts.exact else Fraction(TOTAL_TOLERANCE)):
            hint = "; normalize=True divides by it" if total > 0 else ""
            raise AssertionError(f"Pr() = {short_text(total)} is not 1{hint}")

    def is_probability(self, given: Mapping[str, int]) -> None:
        value = self.pr(given)
        slack = Fraction(self.slack + TOTAL_TOLERANCE) if self.slack else Fraction(0)
        if value < -slack or value > 1 + slack:
            side = "below 0" if value < 0 else "above 1"
            raise AssertionError(f"{_event(given)} = {short_text(value)} is {side}")

    def adds_up(self, given: Mapping[str, int]) -> None:
        free = [name for name in self.circuit.variables if name not in given]
        if not free:
            return
        name = free[int(self.rng.integers(len(free)))]
        whole, one, zero = self.pr(given), self.pr({**given, name: 1}), self.pr({**given, name: 0})
        if not self.agree(whole, one + zero):
            raise AssertionError(
                f"{_event(given)} = {short_text(whole)}, but {_event({**given, name: 1})} = {short_text(one)} and "
                f"{_event({**given, name: 0})} = {short_text(zero)} add up to {short_text(one + zero)}"
            )

    def float_is_exact(self, given: Mapping[str, int]) -> None:
        exact = self.pr(given)
        number, bound = self.model.prob(dict(given), bound=True)
        if bound == math.inf and number == 0 and abs(exact) < Fraction(1, 10**300):
            return  # too small for a float, and reported as 0
        allowed = bound if bound <= self.rtol else self.rtol
        if not _close(number, exact, allowed, 0.0):
            raise AssertionError(
                f"{_event(given)} is {number!r} as a float and {short_text(exact)} exactly: they are "
                f"{float(_distance(number, exact)):.3g} apart, and the bound on the relative error was {bound:.3g}"
            )

    def conditions(self, given: Mapping[str, int]) -> None:
        """Condition on half of the evidence, and ask the conditioned model for the probability of the other half."""
        known = {name: value for name, value in given.items() if self.rng.integers(2)}
        rest = {name: value for name, value in given.items() if name not in known}
        self._part(self.circuit.observe(known), rest, given, f"conditioned on {_assignment(known)}")

    def marginalizes(self, given: Mapping[str, int]) -> None:
        free = [name for name in self.circuit.variables if name not in given]
        dropped = [name for name in free if self.rng.integers(2)]
        self._part(self.circuit.marginalize(dropped), given, given, f"without {', '.join(dropped) or 'nothing'}")

    def _part(self, part: Circuit, asked: Mapping[str, int], given: Mapping[str, int], how: str) -> None:
        found = compile(part, normalize=False).prob(dict(asked), exact=True) / self.mass
        whole = self.pr(given)
        if not self.agree(found, whole):
            raise AssertionError(
                f"{_event(given)} = {short_text(whole)}, but {short_text(found)} by the circuit {how}, "
                f"asked for {_event(asked)}"
            )


def _law_rows(rng: np.random.Generator, n: int, queries: int) -> np.ndarray:
    """The evidence to compare: none, single variables, random rows, and all complete rows if there are few."""
    rows = [np.full((1, n), -1, np.int8), _random_rows(rng, n, queries)[-queries - min(n, queries) :]]
    complete = _all_rows(n) if 1 << min(n, 30) <= queries else None
    return np.concatenate(rows if complete is None else [*rows, complete])


# -- rows and numbers ------------------------------------------------------------------------------------------------


def _model(given: Any) -> Model:
    if isinstance(given, Model):
        return given
    return compile(given.to_pgc() if isinstance(given, PC) else given)


def _assert_same_variables(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    parts = [("first", [x for x in first if x not in second]), ("second", [x for x in second if x not in first])]
    differences = [f"{', '.join(map(repr, names))} only in the {which}" for which, names in parts if names]
    if differences:
        raise AssertionError(f"they are over different variables: {' and '.join(differences)}")


def _all_rows(n: int) -> np.ndarray | None:
    if n > MOST_COMPARED:
        return None
    return np.array(list(product((0, 1), repeat=n)), np.int8).reshape(1 << n, n)


def _random_rows(rng: np.random.Generator, n: int, count: int) -> np.ndarray:
    """Rows that observe one variable each, then random rows that observe one to four variables, about half, or all."""
    alone = np.where(np.eye(n, dtype=bool), 1, -1)
    values = rng.integers(0, 2, (count, n))
    few = np.minimum(rng.integers(1, 5, count) / max(n, 1), 1.0)
    share = np.choose(rng.integers(0, 3, count), [few, np.full(count, 0.5), np.ones(count)])
    return np.concatenate([alone, np.where(rng.random((count, n)) < share[:, None], values, -1)]).astype(np.int8)


def _numbers(model: Model, rows: np.ndarray, rtol: float) -> list[Number]:
    if rtol < _SMALLEST_RTOL:
        return model.prob(rows, exact=True)
    return model.prob(rows, rtol=min(rtol / 4, 1e-9)).tolist()


def _close(x: Number, y: Number, rtol: float, atol: float) -> bool:
    if x == y:
        return True
    if not (math.isfinite(x) and math.isfinite(y)):
        return False
    return _distance(x, y) <= Fraction(atol) + Fraction(rtol) * max(abs(Fraction(x)), abs(Fraction(y)))


def _distance(x: Number, y: Number) -> Number:
    return abs(Fraction(x) - Fraction(y)) if math.isfinite(x) and math.isfinite(y) else math.inf


def _as_dict(names: tuple[str, ...], row: np.ndarray) -> dict[str, int]:
    return {name: int(value) for name, value in zip(names, row, strict=True) if value >= 0}


def _assignment(given: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items()) or "nothing"


def _event(given: Mapping[str, int]) -> str:
    return f"Pr({_assignment(given) if given else ''})"


def _text(x: Number) -> str:
    return short_text(x) if isinstance(x, Fraction) else repr(x)

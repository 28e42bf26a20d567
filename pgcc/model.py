"""`compile` and the `Model` it returns: the questions people ask."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pgcc.certify import budget
from pgcc.compiler import Compiled
from pgcc.data.evidence import Evidence
from pgcc.errors import PgccError, PrecisionError
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.program.strategy import METHODS
from pgcc.queries.distribution import Distribution
from pgcc.queries.explain import Explanation, explain
from pgcc.queries.probability import Answers, exact_probability, probabilities, total_mass
from pgcc.questions import Questions
from pgcc.rings.values import Values
from pgcc.validity.standing import BY_RULES, CONDITIONED, RAW, Standing, find_standing, follows_from_rules

# The smallest relative error that float64 results can promise.
_SMALLEST_RTOL = 1e-14


@dataclass(frozen=True)
class _Settings:
    method: str
    rtol: float
    normalize: bool
    validate: bool
    threads: int


class Model(Questions):
    """A compiled circuit: ask it for probabilities. Made by `pgcc.compile`.

    Thread-safe, and picklable: a worker process compiles it again from the circuit.
    """

    def __init__(self, circuit: Circuit, settings: _Settings, standing: Standing | None = None):
        self.circuit = circuit
        self._settings = settings
        self._compiled = Compiled(circuit, settings.validate)
        self._total = total_mass(self._compiled, budget.of_total(settings.rtol)) if settings.normalize else None
        if self._total is None:
            self._standing = RAW
        else:
            self._standing = standing or find_standing(circuit, self._compiled, self._total)

    @property
    def standing(self) -> Standing:
        """Whether it is proved that no probability is negative, and by what; rules that take long are tried here.

        Examples
        --------
        >>> import pgcc
        >>> print(pgcc.compile(pgcc.parse("0.4*a*b + 0.6")).standing)
        proved: there are no negative numbers
        """
        if not (self._standing.proved or self._standing is RAW) and follows_from_rules(self.circuit, self._compiled):
            self._standing = BY_RULES
        return self._standing

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order of the columns of data."""
        return self.circuit.variables

    def prob(
        self,
        evidence: Any = None,
        *,
        bound: bool = False,
        exact: bool = False,
        method: str | None = None,
        rtol: float | None = None,
        threads: int | None = None,
    ) -> Any:
        """Pr(evidence): the probability that what is observed is so, everything else summed out.

        Parameters
        ----------
        evidence : dict, array, DataFrame or list of dicts
            A dict names what is observed, ``{"z1": 1, "z3": 0}``. An array has one column per variable, in the order of
            `variables`: 1 in, 0 out, −1 (or NaN) unobserved.
        bound : bool
            Also return a bound on the relative error of the number returned (inf where a positive probability is too
            small for a float and comes out as 0: ask `logprob`).
        exact : bool
            Return a `Fraction` (of the weights as they were given; a float is the dyadic rational that it is).
        method : str, optional
            "auto", or one strategy, taken at its word: it does not fall back on another, so look at the bound.
        rtol : float, optional
            The relative error that is promised (for "auto").
        threads : int, optional
            Threads for many rows; −1 for all cores.

        Returns
        -------
        float, or array with one entry per row; with ``bound=True`` a pair (value, bound).

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> model.prob({"a": 1})
        0.7
        >>> model.prob([[1, 0], [-1, 1]])
        array([0.3, 0.4])
        >>> model.prob({"a": 1, "b": 0}, exact=True)
        Fraction(3, 10)
        """
        given = Evidence(self.variables, evidence)
        if exact:
            return self._exact(given, bound)
        answers = self._answers(given, method, rtol, threads, bounds=bound)
        if not given.single:
            return (answers.numbers, answers.bounds) if bound else answers.numbers
        number = float(answers.numbers[0])
        return (number, float(answers.bounds[0])) if answers.bounds is not None else number

    def logprob(
        self,
        evidence: Any = None,
        *,
        method: str | None = None,
        rtol: float | None = None,
        threads: int | None = None,
    ) -> Any:
        """Natural logarithm of Pr(evidence), right far below the range of floats and near 0; −inf exactly for 0.

        Takes what `prob` takes.

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("(0.001*z + 0.999)"))
        >>> round(model.logprob({"z": 1}), 6)
        -6.907755
        """
        given = Evidence(self.variables, evidence)
        answers = self._answers(given, method, rtol, threads, logs=True)
        logs = answers.numbers
        if answers.settled < given.rows and np.isnan(logs).any():
            row = int(np.flatnonzero(np.isnan(logs))[0])
            raise PgccError(f"no logarithm: the value of {given.describe(row)} is negative")
        return float(logs[0]) if given.single else logs

    def _answers(
        self,
        given: Evidence,
        method: str | None,
        rtol: float | None,
        threads: int | None,
        *,
        logs: bool = False,
        bounds: bool = False,
    ) -> Answers:
        settings = self._settings
        rtol = settings.rtol if rtol is None else _check_rtol(rtol)
        return probabilities(
            self._compiled,
            given,
            self._total_to(budget.of_total(rtol)),
            method=_check_method(method or settings.method),
            rtol=budget.of_value(rtol),
            threads=settings.threads if threads is None else _count_threads(threads),
            logs=logs,
            bounds=bounds,
            proved=self._standing.proved,
            relative=logs,
        )

    def _distribution(self, rtol: float | None = None, threads: int | None = None) -> Distribution:
        settings = self._settings
        rtol = settings.rtol if rtol is None else _check_rtol(rtol)
        threads = settings.threads if threads is None else _count_threads(threads)
        total = self._total_to(budget.of_total(rtol))
        return Distribution(self.circuit, self._compiled, total, rtol, threads, self._standing.proved)

    def _compile(self, circuit: Circuit) -> Model:
        """A part of this distribution, given something, with the settings of this model."""
        return Model(circuit, self._settings, CONDITIONED if self._standing.proved else None)

    def _total_to(self, rtol: float) -> Values | None:
        if self._total is not None and not self._total.bound[0] <= rtol:
            self._total = total_mass(self._compiled, rtol)
        return self._total

    def _exact(self, given: Evidence, bound: bool) -> Any:
        rows = [exact_probability(self._compiled, given, row, self._exact_total) for row in range(given.rows)]
        result = rows[0] if given.single else rows
        return (result, 0.0 if given.single else np.zeros(len(rows))) if bound else result

    @cached_property
    def _exact_total(self) -> Fraction | None:
        if self._total is None:
            return None
        return self._compiled.exact.rational([-1] * len(self.variables))

    def explain(self, evidence: Any = None) -> Explanation:
        """What was compiled and how queries are answered; with evidence, how that one was.

        Examples
        --------
        >>> import pgcc
        >>> print(pgcc.compile(pgcc.parse("z/2 + 1/2")).explain())  # doctest: +ELLIPSIS
        1 variable, 2 edges, depth 1, formal degree 1
        ...
        """
        given = None if evidence is None else Evidence(self.variables, evidence)
        return explain(self.circuit, self._compiled, self._total, self._settings.rtol, given, self.standing)

    def __getstate__(self) -> dict[str, Any]:
        return {"circuit": self.circuit, "settings": self._settings, "standing": self._standing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["circuit"], state["settings"], state["standing"])  # type: ignore[misc]

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return self.explain().as_html(repr(self).strip("<>"))

    def __repr__(self) -> str:
        facts = self._compiled.circuit.facts
        n = len(self.variables)
        how = "one number per node" if facts.decomposable else "polynomials in t"
        doubt = "" if self._standing.proved or self._standing is RAW else ", not proven to be a distribution"
        return f"<Model: {n} variable{'s' if n != 1 else ''}, {facts.edges} edges, {how}{doubt}>"


def compile(
    circuit: Circuit,
    *,
    method: str = "auto",
    rtol: float = 1e-9,
    normalize: bool = True,
    validate: bool = True,
    threads: int = 1,
) -> Model:
    """Compile a circuit to an evaluator of its probabilities.

    Parameters
    ----------
    circuit : Circuit
    method : str
        "auto" chooses per query; see `pgcc.program.strategy.METHODS` for the strategies by name.
    rtol : float
        Every number returned has a relative error below this; what float64 cannot promise is recomputed with balls or
        exact rationals.
    normalize : bool
        Divide by the total g(1), which must be positive. Without it the raw coefficients are returned.
    validate : bool
        Refuse a circuit in which a variable is squared (structure decides where it can; otherwise a randomised identity
        test on the exact coefficients, modulo primes that are drawn anew every time), or in which a negative
        coefficient is found: by all of them if they are few, else by a short search (not with ``normalize=False``).
        Without it, or where neither the rules of `pgcc.check` nor that decides, `repr` and `explain` say so, and every
        answer is looked at: a probability that certainly is above 1 or below 0 is an error.
    threads : int
        Threads for batches of rows; −1 for all cores.

    Returns
    -------
    Model

    Examples
    --------
    >>> import pgcc
    >>> pgcc.compile(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")).prob({"z2": 0, "z3": 0})
    0.04
    """
    if not isinstance(circuit, Circuit):
        how = "its method to_pgc()" if hasattr(circuit, "to_pgc") else "pgcc.parse makes one from text, pgcc.load"
        raise PgccError(f"compile takes a Circuit, not {type(circuit).__name__}: {how} gives one")
    settings = _Settings(
        method=_check_method(method),
        rtol=_check_rtol(rtol),
        normalize=bool(normalize),
        validate=bool(validate),
        threads=_count_threads(threads),
    )
    with collector_paused():
        return Model(circuit, settings)


def _check_method(method: str) -> str:
    if method != "auto" and method not in METHODS:
        raise PgccError(f"unknown method {method!r}: choose 'auto' or one of {', '.join(map(repr, METHODS))}")
    return method


def _check_rtol(rtol: float) -> float:
    if not (isinstance(rtol, (int, float)) and _SMALLEST_RTOL <= rtol < 1):
        raise PrecisionError(f"rtol={rtol!r} is not between {_SMALLEST_RTOL} and 1; exact=True gives fractions")
    return float(rtol)


def _count_threads(threads: int) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int) or threads == 0 or threads < -1:
        raise PgccError(f"threads={threads!r} is neither a number ≥ 1 nor −1 (all cores)")
    if threads > 0:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

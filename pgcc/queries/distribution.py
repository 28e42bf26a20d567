"""The distribution that answers a question: a compiled circuit with its total, its accuracy and its threads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.certify import budget
from pgcc.compiler import Compiled
from pgcc.data.evidence import Evidence, read_names
from pgcc.errors import SemanticsError
from pgcc.evaluate.parallel import for_chunks
from pgcc.evaluate.soft import SoftRows
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.locks import cached_property
from pgcc.queries.probability import ProbabilityPlan, probabilities
from pgcc.rings.posteriors import shares
from pgcc.rings.values import Values
from pgcc.validity.standing import Standing

# The most bytes of codes for queries that are asked together.
_MOST_CODES = 1 << 26


@dataclass(frozen=True)
class Distribution:
    """A compiled circuit as questions see it.

    Attributes
    ----------
    circuit : Circuit
        The circuit as it was given.
    compiled : Compiled
        The compiled circuit.
    total : Values or None
        g(1), by which values are divided; None for a raw polynomial.
    rtol : float
        The relative error that is guaranteed for every number returned.
    threads : int
        The number of threads to use.
    standing : Standing or None
        What is known about the signs of the coefficients; None if nothing is.
    log_likelihood : float
        The logarithm of the probability of soft evidence that this distribution is given: see `Model.mode`.
    plans : dict
        How probabilities are computed, for every kind of question asked so far (see `probabilities`).
    """

    circuit: Circuit
    compiled: Compiled
    total: Values | None
    rtol: float
    threads: int
    standing: Standing | None = None
    log_likelihood: float = 0.0
    plans: dict[tuple[Any, ...], ProbabilityPlan] = field(default_factory=dict, init=False, repr=False)

    @property
    def proved(self) -> bool:
        """Whether it is proved that no coefficient is negative; otherwise every answer is checked."""
        return self.standing is not None and self.standing.certain

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the polynomial: of a variable with states, its columns."""
        return self.circuit.variables

    @cached_property
    def column(self) -> dict[str, int]:
        """The number of each variable, by the names that people use."""
        return {name: i for i, name in enumerate(self.circuit.domains or self.variables)}

    @cached_property
    def outs(self) -> np.ndarray:
        """The columns for which being out is a state: answers about variables have them after all columns."""
        return self.compiled.outs

    @cached_property
    def exact_total(self) -> Fraction | None:
        """g(1) as a fraction; None for a raw polynomial."""
        return None if self.total is None else self.compiled.exact.rational([-1] * len(self.variables))

    def read(self, evidence: Any) -> Evidence:
        """Read evidence in any form."""
        return evidence if isinstance(evidence, Evidence) else Evidence(self.variables, evidence, self.column)

    def places(self, columns: Iterable[str]) -> np.ndarray:
        """The numbers of columns."""
        at = self.column if self.circuit.domains is None else self.circuit.domains.at
        return np.array([at[name] for name in columns], np.int64)

    def columns_of(self, names: Iterable[str] | str | None) -> np.ndarray:
        """All columns of the named variables."""
        domains = self.circuit.domains or Domains.plain(self.variables)
        return self.places(c for name in read_names(names, domains) for c in domains[name].columns if c)

    def logprobs(self, rows: np.ndarray | Evidence, rtol: float | None = None, *, relative: bool = False) -> np.ndarray:
        """log Pr(row) for evidence or codes, to a relative error `rtol` of the probability, or of the logarithm."""
        evidence = rows if isinstance(rows, Evidence) else Evidence.of_codes(self.variables, rows)
        logs = probabilities(self, evidence, rtol=rtol, logs=True, relative=relative).numbers
        for row in np.flatnonzero(np.isnan(logs))[:1].tolist():
            raise self.no_distribution(evidence, row)  # the logarithm of a raw polynomial's coefficient
        return logs

    def possible(self, given: Evidence) -> np.ndarray:
        """log Pr(row) of the evidence; an error naming the first row whose probability is 0."""
        logs = self.logprobs(given, budget.of_value(self.rtol))
        impossible = np.flatnonzero(np.isneginf(logs))
        if len(impossible):
            raise self.impossible(given, int(impossible[0]))
        return logs

    def impossible(self, given: Evidence, row: int) -> SemanticsError:
        """The error for conditioning on impossible evidence."""
        return SemanticsError(f"{given.describe(row)} has probability 0: nothing can be conditioned on it")

    def no_distribution(self, given: Evidence, row: int, number: float = math.nan) -> SemanticsError:
        """The error for a polynomial that is none, as a negative 'probability' or a number above 1 shows."""
        size = f"{number:.6g}, above 1" if number > 1.0 else "negative"
        return SemanticsError(
            f"a 'probability' given {given.describe(row)} is {size}: the polynomial has negative coefficients and is "
            "no distribution"
        )

    def shares(
        self, part: Values, whole: Values, given: Evidence, rows: np.ndarray, *, logs: bool = False
    ) -> np.ndarray:
        """part / whole, which is at most 1, or its logarithm: `part` observes everything that `whole` does, and more.

        rows : the row of evidence of each, for errors: a part is negative, or the whole is 0 or less than its part.
        """
        found = shares(part, whole)
        for bad in np.flatnonzero(np.isnan(found))[:1].tolist():
            impossible = np.broadcast_to(whole.mantissa, found.shape)[bad] == 0.0 and part.mantissa[bad] >= 0.0
            raise (self.impossible if impossible else self.no_distribution)(given, int(rows[bad]))
        for bad in np.flatnonzero(found > 1.0)[:1].tolist():
            raise self.no_distribution(given, int(rows[bad]), float(found[bad]))
        return np.minimum(part.log_over(whole), 0.0) if logs else found

    def log_shares(self, codes: np.ndarray, whole: Values, given: Evidence, row: int) -> np.ndarray:
        """log(Pr(codes[j]) / Pr(row)), to an absolute error `rtol`; whole : the value of that row of evidence."""
        logs = np.empty(len(codes))
        for some in self.portions(len(codes)):
            part = self.values(codes[some], budget.of_quotient(self.rtol))
            logs[some] = self.shares(part, whole, given, np.full(len(part.mantissa), row), logs=True)
        return logs

    def values(self, codes: np.ndarray | SoftRows, rtol: float | None = None) -> Values:
        """g of every row, to `rtol` and not divided by the total."""
        rows = codes if isinstance(codes, SoftRows) else np.ascontiguousarray(codes, np.int8)
        return self.compiled.values(rows, self.rtol if rtol is None else rtol)

    def ratios(self, codes: np.ndarray, given: Evidence, row: int) -> np.ndarray:
        """Pr(codes[j]) / Pr(codes[0]) for j ≥ 1; codes[0] is row `row` of the evidence."""
        values = self.values(codes, budget.of_quotient(self.rtol))
        return self.shares(values[1:], values[:1], given, np.full(len(codes) - 1, row))

    def portions(self, queries: int) -> Iterator[slice]:
        """The numbers 0, …, queries − 1, in portions whose codes fit in memory."""
        step = max(1, _MOST_CODES // max(1, len(self.variables)))
        return (slice(first, min(first + step, queries)) for first in range(0, queries, step))

    def for_chunks(self, rows: int, work: Any) -> None:
        """Run `work(slice)` for chunks of rows, on the given number of threads."""
        for_chunks(rows, len(self.variables), self.threads, work)

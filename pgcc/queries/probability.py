"""Pr(evidence): values with bounds, in chunks of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from pgcc.certify import budget
from pgcc.compiler import SOFT_VALUES, Compiled, Rung, climb
from pgcc.data.evidence import Evidence
from pgcc.errors import PgccError, SemanticsError
from pgcc.evaluate.distinct import number_rows
from pgcc.evaluate.parallel import for_chunks
from pgcc.evaluate.soft import SoftRows
from pgcc.ir.numbers import UNIT, nearest_float
from pgcc.kernels.policy import tier
from pgcc.rings.float64.kernels.rows import Answer
from pgcc.rings.values import Values

if TYPE_CHECKING:
    from pgcc.queries.distribution import Distribution

# Up to this many probabilities are answered by the ladder, sooner than a kernel is loaded.
_FEW = 1000
# The rows and bytes of a chunk that one kernel answers, which computes one number for a row.
_ROWS, _BYTES = 1 << 17, 1 << 20
# Logarithms below this in size are recomputed, at least.
_NEAR = 0.01
# More than the relative errors of exp and log, and of the product with the total.
_ROUNDED = 2.0**-40
# Bytes of the rows that are evaluated together for logarithms near 0.
_COMPLEMENT_BYTES = 1 << 22


@dataclass
class Answers:
    """Numbers and, if they were asked for, bounds on their relative errors; and how many rows each method answered.

    "kernel" : the float64 kernel certified and wrote them by itself, without a ladder.
    """

    numbers: np.ndarray
    bounds: np.ndarray | None
    used: dict[str, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def add_used(self, used: dict[str, int]) -> None:
        """Count rows by the method that answered them. (Threads answer different rows at the same time.)"""
        with self._lock:
            for name, count in used.items():
                self.used[name] = self.used.get(name, 0) + count


def prob(
    distribution: Distribution, given: Evidence, method: str, bound: bool
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Pr(row) for every row; with `bound`, also bounds on the relative errors."""
    answers = probabilities(distribution, given, method=method, bounds=bound)
    return answers.numbers if answers.bounds is None else (answers.numbers, answers.bounds)


def logprob(distribution: Distribution, given: Evidence, method: str) -> np.ndarray:
    """log Pr(row) for every row, to a relative error."""
    answers = probabilities(distribution, given, method=method, logs=True, relative=True)
    logs = answers.numbers
    if answers.used.get("kernel") != given.rows and np.isnan(logs).any():
        row = int(np.flatnonzero(np.isnan(logs))[0])
        raise PgccError(f"no logarithm: the value of {given.describe(row)} is negative")
    return logs


def exact_prob(
    distribution: Distribution, given: Evidence, bound: bool
) -> list[Fraction] | tuple[list[Fraction], np.ndarray]:
    """Pr(row) for every row as a fraction; with `bound` also 0 for each."""
    compiled, total = distribution.compiled, distribution.exact_total
    found, soft = [], given.soft
    for row, codes in enumerate(given.codes(slice(None)).tolist()):
        value = (compiled if soft is None else compiled.reweighted.by(soft[row])).exact.rational(codes)
        if total is not None and not 0 <= value <= (total if soft is None else value):  # the total is positive
            raise _refusal(nearest_float(value / total), given.describe(row))
        found.append(value if total is None else value / total)
    return (found, np.zeros(given.rows)) if bound else found


@dataclass(frozen=True)
class ProbabilityPlan:
    """How probabilities, or their logarithms, are computed for any rows of evidence.

    Attributes
    ----------
    compiled : Compiled
        The compiled circuit.
    total : Values or None
        g(1), by which values are divided; None for a raw polynomial.
    proved : bool
        Whether it is proved that no coefficient is negative. Otherwise, probabilities above 1 are looked for. (Those of
        soft evidence are means of likelihoods, which may be above 1.)
    ladder : list of Rung
        The rungs that the rows climb.
    rtol : float
        The relative error that these must guarantee.
    logs : bool
        Whether the answers are logarithms.
    near_zero : bool
        Whether logarithms near 0 are recomputed, so that all of them have a small relative error.
    at_once : Answer or None
        What one float64 kernel writes straight to the answers, for the rows that it certifies. None if it cannot: it
        is for decomposable circuits without determinants, and writes no bounds.
    """

    compiled: Compiled
    total: Values | None
    proved: bool
    ladder: list[Rung]
    rtol: float
    logs: bool
    near_zero: bool
    at_once: Answer | None

    def answer(self, evidence: Evidence, answers: Answers, threads: int) -> None:
        """Fill in the answers to all rows, one chunk of rows at a time."""
        # A few probabilities are the same by the ladder, sooner than the kernel is loaded. Logarithms always take the
        # kernel where they can: it answers a row in a third of the time.
        if self.at_once is None or not (self.logs or evidence.rows > _FEW):
            for_chunks(evidence.rows, evidence.width, threads, partial(self._climb, evidence, answers))
        else:
            work = partial(self._run_kernel, evidence, answers)
            for_chunks(evidence.rows, evidence.width, threads, work, _ROWS, _BYTES)

    def _run_kernel(self, evidence: Evidence, answers: Answers, rows: slice) -> None:
        """Answer the rows that a float64 kernel certifies by that kernel, and the others by the ladder.

        These begin at the first rung, which is float64 again, because the kernel does not say why a row is not
        certified. Float64 may well be good enough (an exact 0, a logarithm near 0, a value above 1), and where it is
        not, its magnitudes tell which rung is next.
        """
        # codes that are no evidence are not certified, and refused below
        codes = self.compiled.closed(evidence.chunk(rows, checked=False))
        assert self.at_once is not None
        numbers = answers.numbers[rows]
        left = self.compiled.float64.write_certified(codes, self.at_once, numbers)
        if self.logs:
            np.log(numbers, out=numbers)
        answers.add_used({"kernel": len(codes) - len(left)})
        if len(left):
            self._climb(evidence, answers, rows, left)

    def _climb(self, evidence: Evidence, answers: Answers, rows: slice, some: np.ndarray | None = None) -> None:
        """Answer the rows, or `some` of them, by the ladder."""
        codes = evidence.asked(rows)
        if some is not None:
            codes = codes[some]
        with tier(self.compiled.work * len(codes)):
            values, used = climb(self.ladder, self.compiled, codes, self.rtol)
        if self.total is not None:
            bad = self._divide_by_total(values)
            if bad >= 0:
                where = evidence.describe(rows.start + (bad if some is None else int(some[bad])))
                raise _refusal(float(values.floats()[bad]), where)
        numbers = values.logs() if self.logs else values.floats()
        if self.near_zero:
            numbers = relative_logs(self.compiled, codes, values, self.total, self.rtol, numbers)
        answers.numbers[rows][slice(None) if some is None else some] = numbers
        if answers.bounds is not None:
            answers.bounds[rows] = values.bound if self.logs else values.float_bounds()
        answers.add_used(used)

    def _divide_by_total(self, values: Values) -> int:
        """Make probabilities of values. Returns the first that is none, or −1."""
        assert self.total is not None
        negative = values.divide_by(self.total)
        if negative >= 0 or self.proved:
            return negative
        above = np.flatnonzero(values.floats() > (1.0 + values.bound) * (1.0 + 4.0 * UNIT))
        return int(above[0]) if len(above) else -1


def probabilities(
    distribution: Distribution,
    evidence: Evidence,
    *,
    method: str = "auto",
    rtol: float | None = None,
    logs: bool = False,
    bounds: bool = False,
    relative: bool = False,
) -> Answers:
    """Pr(row) for every row, or its logarithm, computed from evidence to answers one chunk of rows at a time.

    With a total, the values are probabilities. Unless the circuit is proved to be a distribution, a value that is
    certainly negative or certainly above 1 is refused, naming its row. Logarithms have the absolute error that follows
    from `rtol`, or, with `relative`, are themselves accurate to a relative error `rtol`.
    """
    asked = method, rtol, logs, bounds, relative, evidence.soft is not None
    plan = distribution.plans.get(asked)
    if plan is None:
        plan = _make_plan(distribution, *asked)
        if rtol is None:
            distribution.plans[asked] = plan
    answers = Answers(np.empty(evidence.rows), np.empty(evidence.rows) if bounds else None)
    plan.answer(evidence, answers, distribution.threads)
    return answers


def describe_shortcut(distribution: Distribution) -> str:
    """Which questions the float64 kernel answers before any rung, in words; empty if it answers none."""
    if _at_once(distribution, distribution.rtol, False) is None:
        return ""
    return (
        f"logarithms, and more than {_FEW:,} rows: one float64 kernel evaluates, certifies and divides; "
        "rows that it does not certify climb the rungs"
    )


def _make_plan(
    distribution: Distribution, method: str, rtol: float | None, logs: bool, bounds: bool, relative: bool, soft: bool
) -> ProbabilityPlan:
    """The plan for the arguments of `probabilities`; soft : whether there are likelihoods."""
    if soft and method != "auto":
        raise PgccError(f"method {method!r} does not take soft evidence: leave it out", argument="method")
    compiled = distribution.compiled
    rtol = budget.of_value(distribution.rtol if rtol is None else rtol)
    takes_kernel = method in ("auto", "direct") and not (bounds or soft)
    return ProbabilityPlan(
        compiled,
        distribution.total,
        distribution.proved or soft,
        SOFT_VALUES[compiled.decomposable] if soft else compiled.ladder(method),
        rtol,
        logs,
        relative and method == "auto",
        _at_once(distribution, rtol, relative) if takes_kernel else None,
    )


def _at_once(distribution: Distribution, rtol: float, relative: bool) -> Answer | None:
    """What the float64 kernel writes; None if there is no such kernel for this circuit."""
    compiled, total = distribution.compiled, distribution.total
    divisor = 1.0 if total is None else total.divisor()
    if divisor is None or not compiled.decomposable or compiled.program.has_det or compiled.is_large:
        return None
    # The interval of values that the ladder answers in any case.
    kernel_rtol, left_from, left_to = rtol, math.inf, math.inf
    if relative:  # logarithms near 0 are recomputed
        near = _near_zero(compiled, total, rtol)
        kernel_rtol, left_from = near * rtol, divisor * math.exp(-near) * (1.0 - _ROUNDED)
        left_to = math.exp(near) * (1.0 + _ROUNDED) if total is None else math.inf
    elif not (distribution.proved or total is None):  # probabilities above 1 are refused
        left_from = divisor * (1.0 + rtol)
    certificate = compiled.float64.certificate
    return Answer(certificate.gamma, certificate.floor, kernel_rtol, divisor, left_from, left_to)


# -- logarithms near 0 -----------------------------------------------------------------------------------------------


def _near_zero(compiled: Compiled, total: Values | None, rtol: float) -> float:
    """The threshold below which logarithms are recomputed; all others are accurate once float64 certifies them.

    A relative error ε of p is an absolute error of log p, so p is certified to near·rtol.
    """
    of_total = 0.0 if total is None else 4.0 * float(total.bound[0])
    known = 4.0 * compiled.float64.certificate.gamma + of_total + 16.0 * UNIT
    return min(1.0, max(_NEAR, known / rtol))


def relative_logs(
    compiled: Compiled,
    asked: np.ndarray | SoftRows,
    values: Values,
    total: Values | None,
    rtol: float,
    logs: np.ndarray,
) -> np.ndarray:
    """The logarithms of values (divided by the total), to a relative error of `rtol` even near 0.

    Near 1, log p keeps only the absolute error of p. It is log(1 − c), where c = Pr(something observed is otherwise) is
    a sum without cancellation: Σ_i Pr(the first i − 1 of the observed variables are as observed, the i-th is not).
    """
    size = np.abs(logs)
    if size.min(initial=math.inf) >= 1.0:  # as accurate as the probability
        return logs
    doubtful = np.flatnonzero(~(values.bound + 4.0 * UNIT <= rtol * size) & (size < 1.0))
    if not len(doubtful):
        return logs
    codes, soft = asked if isinstance(asked, SoftRows) else (asked, None)
    first, number = number_rows((codes if soft is None else np.hstack([codes, soft.reshape(len(soft), -1)]))[doubtful])
    distinct = doubtful[first]
    if total is not None and compiled.multiaffine and soft is None:
        step = max(1, _COMPLEMENT_BYTES // max(1, codes.shape[1]) ** 2)
        parts = [distinct[i : i + step] for i in range(0, len(distinct), step)]
        found = np.concatenate([_logs_of_complements(compiled, codes[part], total, rtol) for part in parts])
    else:
        free = None if total is None else [-1] * codes.shape[1]
        circuits = (compiled if soft is None else compiled.reweighted.by(soft[row]) for row in distinct.tolist())
        found = np.array(
            [
                circuit.exact.log_quotient(codes[row].tolist(), free, rtol, compiled.exact)
                for circuit, row in zip(circuits, distinct.tolist(), strict=True)
            ]
        )
    logs[doubtful] = found[number]
    return logs


def _logs_of_complements(compiled: Compiled, codes: np.ndarray, total: Values, rtol: float) -> np.ndarray:
    """log(1 − c) for rows of codes: see `relative_logs`."""
    row, variable = np.nonzero(codes >= 0)
    others = codes[row]
    others[np.arange(codes.shape[1]) > variable[:, None]] = -1
    others[np.arange(len(row)), variable] ^= 1  # not as observed
    values = compiled.values(others, budget.of_value(rtol))
    negative = values.divide_by(total)
    if negative >= 0:
        where = Evidence.of_codes(compiled.given.variables, others[negative : negative + 1]).describe(0)
        raise _refusal(float(values.floats()[negative]), where.removesuffix(" (row 0)"))
    return np.log1p(0.0 - np.bincount(row, values.floats(), minlength=len(codes)))


def _refusal(value: float, where: str) -> SemanticsError:
    return SemanticsError(
        f"the 'probability' of {where} is {value:.6g}{', above 1' if value > 1 else ''}: the polynomial has negative "
        "coefficients and is no distribution",
        advice="normalize=False gives its coefficients as they are (prob, logprob)",
    )

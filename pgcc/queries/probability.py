"""Pr(evidence): values with bounds, in chunks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from threading import Lock

import numpy as np

from pgcc.certify import budget
from pgcc.compiler import Compiled
from pgcc.data.evidence import Evidence
from pgcc.errors import SemanticsError
from pgcc.evaluate.parallel import for_chunks
from pgcc.ir.numbers import UNIT
from pgcc.rings.values import Values

_FEW = 1000
# Of a chunk of rows that take the short way, which computes one number for a row.
_ROWS, _BYTES = 1 << 17, 1 << 20
# Logarithms below this in size are looked at again, at least.
_NEAR = 0.01


@dataclass
class Answers:
    """Numbers, and where they were asked for bounds on their relative errors.

    settled : how many rows float64 certified at once. Nothing is amiss with those.
    used : how many of the others each method answered.
    """

    numbers: np.ndarray
    bounds: np.ndarray | None
    used: dict[str, int]
    settled: int = 0


def probabilities(
    compiled: Compiled,
    evidence: Evidence,
    total: Values | None,
    *,
    method: str = "auto",
    rtol: float = 1e-9,
    threads: int = 1,
    logs: bool = False,
    bounds: bool = False,
    proved: bool = False,
    relative: bool = False,
) -> Answers:
    """Values for every row, divided by `total`; a chunk of rows at a time, from evidence to answers.

    With a total, the values are probabilities: one that certainly is negative is refused with its row, and so is one
    that certainly is above 1, unless it is `proved` that there are none. Logarithms have the absolute error that `rtol`
    makes of them, or, where `relative` ones are asked for, are right to `rtol` themselves.
    """
    answers = Answers(np.empty(evidence.rows), np.empty(evidence.rows) if bounds else None, {})
    # What float64 certifies at once takes the short way; nothing does where bounds are asked for. A few probabilities
    # are the same by the long way, sooner than the kernel of the short one is loaded. (Logarithms might be rounded
    # differently.)
    short = method in ("auto", "direct") and not bounds and (logs or evidence.rows > _FEW)
    by = (1.0 if total is None else total.plain()) if short else None
    near = _near_zero(compiled, total, rtol) if by is not None and relative else 0.0
    settled_rtol = min(rtol, near * rtol) if near else rtol
    lock = Lock()

    def answer(rows: slice) -> None:
        if by is None:
            codes = evidence.chunk(rows)
            answer_with_bounds(rows, np.arange(len(codes)), codes)
            return
        codes = evidence.chunk(rows, checked=False)  # what is no evidence is left, and refused below
        numbers = answers.numbers[rows]
        left = compiled.settle(codes, settled_rtol, by, logs, numbers)
        if len(left) == len(codes):
            pass  # then nothing was written
        elif near:
            if not numbers.max() <= -near:  # NaN where it is left
                left = np.flatnonzero(~((np.abs(numbers) if total is None else -numbers) >= near))
        elif not (proved or total is None):
            refuse_above_one(rows, np.arange(len(codes)), np.exp(numbers) if logs else numbers, 2.0 * rtol)
        with lock:
            answers.settled += len(codes) - len(left)
        if len(left):
            answer_with_bounds(rows, left, evidence.chunk(rows)[left])

    def answer_with_bounds(rows: slice, some: np.ndarray, codes: np.ndarray) -> None:
        """The codes of `some` of the rows."""
        values, counts = compiled.run_auto(codes, rtol) if method == "auto" else (compiled.run(method, codes, rtol), {})
        if total is not None:
            negative = values.divide_by(total)
            if negative >= 0:
                where = evidence.describe(rows.start + int(some[negative]))
                raise SemanticsError(_negative(values.floats()[negative], where))
            if not proved:
                refuse_above_one(rows, some, values.floats(), values.bound)
        answers.numbers[rows][some] = values.logs() if logs else values.floats()
        if relative and method == "auto":
            answers.numbers[rows][some] = relative_logs(
                compiled, codes, values, total, rtol, answers.numbers[rows][some]
            )
        if answers.bounds is not None:
            answers.bounds[rows] = values.bound if logs else values.float_bounds()
        with lock:
            for name, count in (counts or {method: len(codes)}).items():
                answers.used[name] = answers.used.get(name, 0) + count

    def refuse_above_one(rows: slice, some: np.ndarray, numbers: np.ndarray, bound: np.ndarray | float) -> None:
        for bad in np.flatnonzero(numbers > (1.0 + bound) * (1.0 + 4.0 * UNIT))[:1].tolist():
            raise SemanticsError(_above_one(float(numbers[bad]), evidence.describe(rows.start + int(some[bad]))))

    for_chunks(evidence.rows, len(evidence.variables), threads, answer, *((_ROWS, _BYTES) if short else ()))
    return answers


def exact_probability(compiled: Compiled, evidence: Evidence, row: int, total: Fraction | None) -> Fraction:
    """The value of one row as a fraction."""
    value = compiled.exact.rational(evidence.chunk(slice(row, row + 1))[0].tolist())
    if total is None:
        return value
    if value < 0:  # the total is positive
        raise SemanticsError(_negative(float(value / total), evidence.describe(row)))
    if value > total:
        raise SemanticsError(_above_one(float(value / total), evidence.describe(row)))
    return value / total


def total_mass(compiled: Compiled, rtol: float) -> Values:
    """g(1) to a relative error of `rtol`; it must be positive."""
    values, _ = compiled.run_auto(np.full((1, len(compiled.circuit.variables)), -1, np.int8), rtol)
    if values.mantissa[0] <= 0.0:
        size = "0" if values.mantissa[0] == 0.0 else f"{values.floats()[0]:.6g}"
        raise SemanticsError(
            f"the total g(1) is {size}: it must be positive to be a distribution; "
            "normalize=False keeps the polynomial as it is"
        )
    return values


# -- logarithms near 0 -----------------------------------------------------------------------------------------------


def _near_zero(compiled: Compiled, total: Values | None, rtol: float) -> float:
    """Logarithms that are nearer to 0 are looked at: what float64 certifies at once is certified for all the others.

    A relative error ε of p is an absolute one of log p, so that it is certified to near·rtol.
    """
    if not compiled.decomposable:
        return _NEAR
    known = (
        4.0 * compiled.direct.certificate.gamma + (0.0 if total is None else 4.0 * float(total.bound[0])) + 16.0 * UNIT
    )
    return min(1.0, max(_NEAR, known / rtol))


def relative_logs(
    compiled: Compiled, codes: np.ndarray, values: Values, total: Values | None, rtol: float, logs: np.ndarray
) -> np.ndarray:
    """The logarithms of values (divided by the total), those near 0 to a relative error of `rtol`, too.

    Near 1, log p keeps only the absolute error of p. It is log(1 − c), where c = Pr(something observed is otherwise) is
    a sum without cancellation: Σ_i Pr(the first i − 1 of the observed variables are as observed, the i-th is not).
    """
    doubtful = np.flatnonzero(~(values.bound + 4.0 * UNIT <= rtol * np.abs(logs)) & (np.abs(logs) < 1.0))
    free = None if total is None else [-1] * codes.shape[1]
    for row in doubtful.tolist():
        if total is not None and compiled.multiaffine:
            logs[row] = _log_of_rest(compiled, codes[row], total, rtol)
        else:
            logs[row] = compiled.exact.log_quotient(codes[row].tolist(), free, rtol)
    return logs


def _log_of_rest(compiled: Compiled, codes: np.ndarray, total: Values, rtol: float) -> float:
    seen = np.flatnonzero(codes >= 0)
    if not len(seen):
        return 0.0
    others = np.full((len(seen), len(codes)), -1, np.int8)
    for i, variable in enumerate(seen.tolist()):
        others[i, seen[:i]] = codes[seen[:i]]
        others[i, variable] = 1 - codes[variable]
    values, _ = compiled.run_auto(others, budget.of_value(rtol))
    negative = values.divide_by(total)
    if negative >= 0:
        where = Evidence(compiled.circuit.variables, others[negative : negative + 1]).describe(0)
        raise SemanticsError(_negative(values.floats()[negative], where.removesuffix(" (row 0)")))
    return float(np.log1p(-values.floats().sum()))


def _above_one(value: float, where: str) -> str:
    return (
        f"the 'probability' of {where} is {value:.6g}, above 1: the polynomial has negative coefficients "
        "and is no distribution; normalize=False gives its coefficients as they are"
    )


def _negative(value: float, where: str) -> str:
    return (
        f"the 'probability' of {where} is {value:.6g}: the polynomial has negative coefficients "
        "and is no distribution; normalize=False gives its coefficients as they are"
    )

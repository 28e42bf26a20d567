"""Pr(evidence): values with bounds, in chunks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgcc.backend.compiled import Compiled
from pgcc.backend.parallel import for_chunks
from pgcc.backend.values import Values
from pgcc.errors import SemanticsError
from pgcc.queries.evidence import Evidence

_FEW = 1000
# Of a chunk of rows that take the short way, which computes one number for a row.
_ROWS, _BYTES = 1 << 17, 1 << 20


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
) -> Answers:
    """Values for every row, divided by `total`; a chunk of rows at a time, from evidence to answers.

    With a total, the values are probabilities: a certainly negative one is refused with its row.
    """
    answers = Answers(np.empty(evidence.rows), np.empty(evidence.rows) if bounds else None, {})
    # What float64 certifies at once takes the short way; nothing does where bounds are asked for. A few probabilities
    # are the same by the long way, sooner than the kernel of the short one is loaded. (Logarithms might be rounded
    # differently.)
    short = method in ("auto", "direct") and not bounds and (logs or evidence.rows > _FEW)
    by = (1.0 if total is None else total.plain()) if short else None

    def answer(rows: slice) -> None:
        if by is None:
            codes = evidence.chunk(rows)
            answer_with_bounds(rows, np.arange(len(codes)), codes)
            return
        codes = evidence.chunk(rows, checked=False)  # what is no evidence is left, and refused below
        left = compiled.settle(codes, rtol, by, logs, answers.numbers[rows])
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
        answers.numbers[rows][some] = values.logs() if logs else values.floats()
        if answers.bounds is not None:
            answers.bounds[rows] = values.bound if logs else values.float_bounds()
        for name, count in (counts or {method: len(codes)}).items():
            answers.used[name] = answers.used.get(name, 0) + count

    for_chunks(evidence.rows, len(evidence.variables), threads, answer, *((_ROWS, _BYTES) if short else ()))
    return answers


def exact_probability(compiled: Compiled, evidence: Evidence, row: int, total: Fraction | None) -> Fraction:
    """The value of one row as a fraction."""
    value = compiled.exact.rational(evidence.chunk(slice(row, row + 1))[0].tolist())
    if total is None:
        return value
    if value < 0 < total or total < 0 < value:
        raise SemanticsError(_negative(float(value / total), evidence.describe(row)))
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


def _negative(value: float, where: str) -> str:
    return (
        f"the 'probability' of {where} is {value:.6g}: the polynomial has negative coefficients "
        "and is no distribution; normalize=False gives its coefficients as they are"
    )

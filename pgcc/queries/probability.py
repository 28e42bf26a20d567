"""Pr(evidence): values with bounds, in chunks of rows."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from pgcc.backend.compiled import Compiled
from pgcc.backend.parallel import chunks
from pgcc.backend.values import Values
from pgcc.errors import SemanticsError
from pgcc.queries.evidence import Evidence

# Rows converted and answered at a time: it bounds the memory, whatever the number of rows.
_ROWS = 1 << 17


def probabilities(
    compiled: Compiled, evidence: Evidence, total: Values | None, method: str, rtol: float, threads: int
) -> tuple[Values, Counter[str]]:
    """Values for every row, divided by `total`, and how many rows each method answered.

    With a total, the values are probabilities: a certainly negative one is refused with its row.
    """
    result, used = Values.empty(evidence.rows), Counter[str]()
    for rows in chunks(evidence.rows, _ROWS):
        codes = evidence.chunk(rows)
        if method == "auto":
            values, counts = compiled.run_auto(codes, rtol, threads)
        else:
            values, counts = compiled.run(method, codes, rtol, threads), {method: len(codes)}
        used.update(counts)
        if total is not None:
            values = values.divided_by(total)
            _refuse_negative(values, evidence, rows.start)
        result.put(rows, values)
    return result, used


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
    values, _ = compiled.run_auto(np.full((1, len(compiled.circuit.variables)), -1, np.int8), rtol, 1)
    if values.mantissa[0] <= 0.0:
        size = "0" if values.mantissa[0] == 0.0 else f"{values.floats()[0]:.6g}"
        raise SemanticsError(
            f"the total g(1) is {size}: it must be positive to be a distribution; "
            "normalize=False keeps the polynomial as it is"
        )
    return values


def _refuse_negative(values: Values, evidence: Evidence, first: int) -> None:
    negative = np.flatnonzero((values.mantissa < 0.0) & (values.bound < 1.0))
    if len(negative):
        row = int(negative[0])
        raise SemanticsError(_negative(values.floats()[row], evidence.describe(first + row)))


def _negative(value: float, where: str) -> str:
    return (
        f"the 'probability' of {where} is {value:.6g}: the polynomial has negative coefficients "
        "and is no distribution; normalize=False gives its coefficients as they are"
    )

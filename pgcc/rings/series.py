"""Truncated polynomials in t, for circuits that are not decomposable: their top or their bottom coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.certify.certificate import Analysis, Certificate
from pgcc.certify.kernels.bounds import certify
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node
from pgcc.kernels.walk import instructions_of, walk_in_python
from pgcc.passes.expand_det import expand_small
from pgcc.program.lower import lower
from pgcc.program.program import ARITHMETIC, Program
from pgcc.rings.kernels.series import Degrees, Numbers, run_series, top_lengths
from pgcc.rings.values import Values

# The most bytes for the coefficients of all values of a row.
_MOST_BYTES = 1 << 30


def degree_in(program: Program, codes: np.ndarray) -> int:
    """A bound on the degree in t of the value of a program that shares no slots, for a row of evidence."""
    degree, uncapped = np.zeros(program.slots, np.int64), np.zeros(program.instructions + 1, np.int64)
    walk_in_python(program, Degrees(program.leaf_variable, uncapped, uncapped[:0], codes, degree))
    return int(degree[program.value])


class Series:
    """The evaluator over truncated polynomials in t.

    Parameters
    ----------
    program : Program
        As `lower` makes it, without determinants.
    caps : sequence of (instruction, columns)
        The instructions whose values are known to be multiaffine, with the variables of their scopes.
    """

    def __init__(self, program: Program, caps: Sequence[tuple[int, Sequence[int]]] = ()):
        self.program = program.expect(*ARITHMETIC)
        counts = np.zeros(program.instructions + 1, np.int64)
        for instruction, scope in caps:
            counts[instruction + 1] = len(scope)
        self._caps = np.cumsum(counts), np.array([v for _, scope in sorted(caps) for v in scope], np.int32)
        self._certificates: dict[int, Certificate] = {}

    @staticmethod
    def of(circuit: Circuit, lowered: tuple[Program, list[Node]], caps: Sequence[tuple[int, Sequence[int]]]) -> Series:
        """The evaluator of a circuit, given its program; all determinants are expanded."""
        return Series(lower(expand_small(circuit))) if circuit.facts.dets else Series(lowered[0], caps)

    @property
    def _roots(self) -> np.ndarray:
        return np.array([self.program.value, self.program.magnitude])

    def certificate(self, length: int) -> Certificate:
        """The certificate of a coefficient, if values have `length` coefficients.

        No coefficient of a magnitude is larger than the sum of all, its value at t = 1.
        """
        if length not in self._certificates:
            analysis = Analysis(self.program.slots, weight_first=True).run(self.program, length=length)
            self._certificates[length] = analysis.certificate([self.program.value], [self.program.magnitude])
        return self._certificates[length]

    def lengths(self, evidence: np.ndarray) -> np.ndarray:
        """The number of top coefficients that each row needs."""
        out, program = np.empty(len(evidence), np.int64), self.program
        code = instructions_of(program)
        top_lengths(code, program.leaf_variable, self._caps, evidence, self._roots, program.slots, out)
        return out

    def top(self, evidence: np.ndarray) -> Values:
        """Values computed from the top coefficients, as many of them as each row needs."""
        return self._run(evidence, True)

    def bottom(self, evidence: np.ndarray) -> Values:
        """Values computed from the bottom coefficients, up to that of t^|A|."""
        return self._run(evidence, False)

    def _run(self, evidence: np.ndarray, top: bool) -> Values:
        program, limit = self.program, max(1, _MOST_BYTES // (8 * self.program.slots))
        numbers = Numbers(program.weights, program.leaf_variable, program.leaf_table)
        out, lengths = np.zeros((2, len(evidence))), np.zeros(len(evidence), np.int64)
        run_series(
            instructions_of(program),
            numbers,
            self._caps,
            top,
            evidence,
            self._roots,
            program.slots,
            limit,
            out,
            lengths,
        )
        return self._certified(out, lengths)

    def _certified(self, out: np.ndarray, lengths: np.ndarray) -> Values:
        """Values with bounds, given values and magnitudes, and the number of coefficients each row kept."""
        values = Values.empty(len(lengths))
        values.mantissa[:] = out[0]
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            # 0: the degree is below |A|, and the value exactly 0; −1: too many coefficients, nothing was computed
            bound = np.full(len(rows), 0.0 if length == 0 else np.inf)
            if length > 0:
                certificate = self.certificate(length)
                certify(out[0, rows], out[1, rows], certificate.gamma, certificate.floor, bound)
            values.bound[rows] = bound
        return values

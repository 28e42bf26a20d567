"""All marginals of a program with determinants, from one forward and one reverse pass in float64.

The derivatives of determinants, between the two passes, are computed by `kernels/partials`. Rows whose error bounds are
too large are reported as uncertain. `evaluate/marginals` calls this.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from pgcc.certify import budget
from pgcc.certify.certificate import Analysis, Certificate
from pgcc.certify.kernels.bounds import smallest
from pgcc.determinants.kernels.partials import write_partials
from pgcc.determinants.kernels.plan import Children
from pgcc.determinants.kernels.staged import run_tail
from pgcc.determinants.staged import Staged, padded
from pgcc.ir.numbers import add
from pgcc.program.program import DETIN, DETMAG, Program
from pgcc.program.reverse import result_slots, reverse, variables_in_complements
from pgcc.rings.float64.kernels.evidence import STEP, Rows, pack_block
from pgcc.rings.float64.kernels.interpreter import run_block
from pgcc.rings.float64.loop import new_block, uncondensed_program
from pgcc.rings.posteriors import Posteriors, read_posteriors

# The rows per block, in steps of 32, and the bytes of values and adjoints that a block should not exceed.
_STEPS, _BYTES = 4, 1 << 21
_NO_UNDERFLOW = 2.0**-300


def has_partials(program: Program) -> bool:
    """Whether `StagedMarginals` covers this program.

    Its determinants must have no size, magnitudes of children must be their values, and no complement y may contain a
    variable z (but only ȳ), as in `Circuit.complement` of a determinant: derivatives are taken by the children f alone,
    and there those by y would be needed, too.
    """
    trusts = np.flatnonzero(program.op == DETMAG)
    steady = (np.diff(program.start)[trusts] == 2).all()
    if not steady or not all(s.size is None and s.children for s in program.structures):
        return False
    return not variables_in_complements(program)


class StagedMarginals:
    """The evaluator of all marginals of a homogenised program with determinants."""

    def __init__(self, staged: Staged):
        self.staged = staged

    @cached_property
    def program(self) -> Program:
        """The forward and reverse passes: values, derivatives of determinants and adjoints have slots of their own."""
        self.staged.dets.find_free_bases()
        return reverse(self.staged.unscheduled)

    @cached_property
    def _analysis(self) -> Analysis:
        return self.staged.analysis(self.program)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the joint probabilities and the root."""
        read = result_slots(self.program)
        return self._analysis.certificate(read[: len(read) // 2], read[len(read) // 2 :])

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Posteriors:
        """Posteriors for int8 rows of evidence (1, 0, −1)."""
        found = Posteriors.empty(*evidence.shape)
        for first, read, least in self._run(evidence, rtol):
            rows = slice(first, first + len(least))
            floor = np.where(least > self._safe, 0.0, self.certificate.floor)
            read_posteriors(read, evidence[rows], True, self.certificate.gamma, floor, rtol, found[rows])
        return found

    @cached_property
    def _safe(self) -> float:
        """If all nonzero numbers of a row exceed this, nothing has underflowed: products of three are still normal."""
        program = self.program
        numbers = [*program.numbers, *(x for a, b in program.leaf_numbers for x in (a, b, add(a, b)))]
        doubles = np.abs(np.append(program.weights, program.leaf_table)).tolist()
        lost = any(x != 0 and not y > _NO_UNDERFLOW for x, y in zip(numbers, doubles, strict=True))
        return np.inf if lost else _NO_UNDERFLOW

    def _run(self, evidence: np.ndarray, rtol: float) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """(first row, the result slots of every row, the smallest nonzero number of every row), block by block."""
        program, staged, n = self.program, self.staged, evidence.shape[1]
        wanted = budget.of_determinant(rtol)
        staged.dets.refine(wanted)
        lanes = STEP * max(1, min(_STEPS, _BYTES // (8 * STEP * program.slots), -(-len(evidence) // STEP)))
        given, flat = Rows(evidence.reshape(-1).view(np.uint8), n), Rows(padded(evidence), n)
        code, block, unknown = (
            uncondensed_program(program),
            new_block(None, program.slots, n, lanes),
            np.zeros(lanes, bool),
        )
        work = block.work
        work[:] = 0.0
        read = result_slots(program)
        inside = np.flatnonzero(program.op == DETIN)
        for first in range(0, len(evidence), lanes):
            rows = min(lanes, len(evidence) - first)
            pack_block(given, first, lanes, block.columns)
            run_tail(code, 0, int(inside[0]), staged.determinants(wanted), flat, first, block, unknown)
            for i in inside.tolist():
                self._put_partials(i, flat.codes, first * n, rows, lanes, wanted, work)
            run_block(code, int(inside[-1]) + 1, program.instructions, lanes, block)
            least = np.empty(rows)
            smallest(work, lanes, least)
            yield first, work.reshape(-1, lanes)[read], least

    def _put_partials(
        self, i: int, flat: np.ndarray, start: int, rows: int, lanes: int, wanted: float, work: np.ndarray
    ) -> None:
        """Write the derivatives of a determinant and their magnitudes to the slots of instruction i."""
        program = self.program
        args = program.args[program.start[i] : program.start[i + 1]]
        d, k = int(args[0]), len(args) // 2
        children = Children(args[1 : 1 + k], args[1 + k :], work, lanes, flat, start, rows)
        write_partials(self.staged.determinants(wanted), d, children, int(program.target[i]))
        # the certificate assumes that magnitudes, which include the errors of derivatives, are within these bounds
        sizes = slice(int(program.target[i]) + k, int(program.target[i]) + 2 * k)
        here = work.reshape(-1, lanes)[sizes]
        here[~(here <= np.exp(np.minimum(self._analysis.state.high[sizes], 709.0))[:, None])] = np.nan

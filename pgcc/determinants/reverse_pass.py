"""All marginals of a program with determinants, from one forward and one reverse pass in float64.

The derivatives of determinants, between the two passes, are computed by `kernels/partials`. Rows whose error bounds are
too large are reported as uncertain. `evaluate/all_marginals` calls this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pgcc.certify import budget
from pgcc.certify.certificate import Analysis, Certificate
from pgcc.certify.kernels.bounds import smallest
from pgcc.determinants.kernels.partials import write_partials
from pgcc.determinants.kernels.plan import Children
from pgcc.determinants.kernels.staged import run_tail
from pgcc.determinants.staged import Staged, padded
from pgcc.ir.numbers import add
from pgcc.locks import cached_property
from pgcc.program.program import DETIN, DETMAG, DetInstruction, Program
from pgcc.program.reverse import result_slots, reverse, variables_in_complements
from pgcc.rings.float64.kernels.interpreter import FloatProgram, run_block
from pgcc.rings.float64.kernels.packed_evidence import STEP, Rows, pack_block
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
    magnitudes_are_values = all(len(one.slots) == 1 for one in program.det_instructions if one.op == DETMAG)
    if not magnitudes_are_values or not all(s.size is None and s.children for s in program.structures):
        return False
    return not variables_in_complements(program)


class StagedMarginals:
    """The evaluator of all marginals of a homogenized program with determinants."""

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
        code, staged, n = self._code, self.staged, evidence.shape[1]
        slots, instructions = self.program.slots, self.program.instructions
        wanted = budget.of_determinant(rtol)
        staged.dets.refine(wanted)
        lanes = STEP * max(1, min(_STEPS, _BYTES // (8 * STEP * slots), -(-len(evidence) // STEP)))
        given, flat = Rows(evidence.reshape(-1).view(np.uint8), n), Rows(padded(evidence), n)
        block, unknown = new_block(None, slots, n, lanes), np.zeros(lanes, bool)
        work = block.work
        work[:] = 0.0
        partials = self._partials
        for first in range(0, len(evidence), lanes):
            rows = min(lanes, len(evidence) - first)
            pack_block.call_alike(given, first, lanes, block.columns)
            dets = staged.determinants(wanted)
            run_tail.call_alike(code, 0, partials[0][0].place, dets, flat, first, block, unknown)
            for one, slots_of_magnitudes, most in partials:
                children = Children(one.inside, one.outside, work, lanes, flat.codes, first * n, rows)
                write_partials.call_alike(dets, one.det, children, one.target)
                magnitudes = work.reshape(-1, lanes)[slots_of_magnitudes]
                magnitudes[~(magnitudes <= most)] = np.nan
            run_block.call_alike(code, partials[-1][0].place + 1, instructions, lanes, block)
            least = np.empty(rows)
            smallest(work, lanes, least)
            yield first, work.reshape(-1, lanes)[self._results], least

    @cached_property
    def _code(self) -> FloatProgram:
        return uncondensed_program(self.program)

    @cached_property
    def _results(self) -> np.ndarray:
        return result_slots(self.program)

    @cached_property
    def _partials(self) -> list[tuple[DetInstruction, slice, np.ndarray]]:
        """The instructions DETIN, one after another between the forward and the reverse pass.

        Each with the slots of the magnitudes of the derivatives, which include their errors, and with what the
        certificate assumes that each magnitude does not exceed.
        """
        high, found = self._analysis.state.high, []
        for one in self.program.det_instructions:
            if one.op == DETIN:
                first = one.target + len(one.inside)
                magnitudes = slice(first, first + len(one.inside))
                found.append((one, magnitudes, np.exp(np.minimum(high[magnitudes], 709.0))[:, None]))
        return found

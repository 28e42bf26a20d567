"""All marginals of a homogenised program, from one forward and one reverse pass.

Rows run in float64 first, as flows where nothing can cancel and as adjoints otherwise; those that leave its range run
over scaled numbers. What is still uncertain is said to be. Determinants have a module of their own (`marginals_det`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pgcc.certify.certificate import gamma_of
from pgcc.compiler import Compiled
from pgcc.determinants.marginals import StagedMarginals, has_partials
from pgcc.program.flows import flows
from pgcc.program.program import ARITHMETIC, Program
from pgcc.program.reverse import readings, reverse
from pgcc.program.schedule import schedule
from pgcc.rings.direct import split_constants
from pgcc.rings.float64.kernels.linear import STEP
from pgcc.rings.float64.loop import Loop
from pgcc.rings.kernels.scaled import RADIX, Constants, run_scaled
from pgcc.rings.kernels.walk import instructions_of
from pgcc.rings.posteriors import Posteriors, read_posteriors

# Flows divide, so that roundings add up along a path; where the bound would be above this, adjoints are better.
_MOST_ROUNDING = 1e-11
# Rows per block; the fewer, the more of the values stay in the cache, the more, the less reading an instruction costs.
_LANES = 2 * STEP
# Where underflow may add more, adjoints are better, too: they divide by nothing.
_MOST_UNDERFLOW = 2.0**-900


def find_marginals(compiled: Compiled) -> Marginals | StagedMarginals | None:
    """The reverse pass of a circuit; None where there is none to be had.

    That is: if it is not decomposable, and with determinants of one size, or of others or of negative numbers.
    """
    if not compiled.decomposable:
        return None
    if not compiled.circuit.facts.dets:
        return Marginals(compiled.direct.unscheduled)
    return StagedMarginals(compiled.direct) if has_partials(compiled.direct.unscheduled) else None


class Marginals:
    """The evaluator of all marginals of a homogenised program (as `lower` makes it)."""

    def __init__(self, program: Program):
        self.forward = program

    @cached_property
    def _loop(self) -> Loop:
        """What runs in float64: joint probabilities, and the root.

        Flows where nothing cancels, unless they divide by what may be too small, or round too much.
        """
        if not self.forward.signed:
            loop = self._loop_of(flows(self.forward))
            if loop.certificate.gamma <= _MOST_ROUNDING and loop.certificate.floor <= _MOST_UNDERFLOW:
                return loop
        return self._loop_of(reverse(self.forward))

    def _loop_of(self, program: Program) -> Loop:
        return Loop(program, readings(program).tolist(), self.forward.signed, _LANES)

    @cached_property
    def _scaled(self) -> Program:
        return schedule(reverse(self.forward).expect(*ARITHMETIC))

    @cached_property
    def _scaled_gamma(self) -> float:
        return gamma_of(self._scaled, readings(self._scaled))

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Posteriors:
        """Posteriors for int8 rows of evidence (1, 0, −1)."""
        signed = self.forward.signed
        certificate = self._loop.certificate
        floor = np.full(len(evidence), certificate.floor)
        read, found = self._loop.values(evidence)[:, : len(evidence)], Posteriors.empty(*evidence.shape)
        read_posteriors(read, evidence, signed, certificate.gamma, floor, rtol, found)
        wanted = np.flatnonzero(~found.certain.all(axis=1))
        if len(wanted):
            some = evidence[wanted]
            again, floor = Posteriors.empty(*some.shape), np.zeros(len(some))
            read_posteriors(self._run_scaled(some), some, signed, self._scaled_gamma, floor, rtol, again)
            found.numbers[wanted], found.certain[wanted] = again.numbers, again.certain
            found.impossible[wanted] = again.impossible
        return found

    def _run_scaled(self, evidence: np.ndarray) -> np.ndarray:
        """The same over scaled numbers, those of every row divided by a power of two that makes its root about 1."""
        program, read = self._scaled, readings(self._scaled)
        mantissas, exponents = np.empty((len(read), len(evidence))), np.empty((len(read), len(evidence)), np.int64)
        code = instructions_of(program)
        run_scaled(code, self.scaled_constants, evidence, read, mantissas, exponents, program.slots)
        root = evidence.shape[1]
        gap = np.clip(exponents - exponents[root], -8, 8) * RADIX - np.frexp(mantissas[root])[1]
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(mantissas, gap.astype(np.int32))

    @cached_property
    def scaled_constants(self) -> Constants:
        return split_constants(self._scaled)

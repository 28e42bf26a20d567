"""All marginals of a homogenised program, from one forward and one reverse pass.

Rows run in float64 first, as flows where nothing can cancel and as adjoints otherwise; those that leave its range run
over scaled numbers. What is still uncertain is said to be. Determinants have a module of their own (`marginals_det`).
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from pgcc.backend.compiled import Compiled
from pgcc.backend.direct import log_leaves_of, log_weights_of, rounding_counts, split_constants, underflow_floor
from pgcc.backend.kernels.analysis import log_least, log_values
from pgcc.backend.kernels.linear import STEP
from pgcc.backend.kernels.scaled import RADIX, run_scaled
from pgcc.backend.loop import Loop
from pgcc.backend.marginals_det import StagedMarginals, has_partials
from pgcc.backend.posteriors import Posteriors, read_posteriors
from pgcc.backend.values import rounding_bound
from pgcc.lowering.flows import flows
from pgcc.lowering.program import QUOTIENT, Program
from pgcc.lowering.reverse import readings, reverse
from pgcc.lowering.schedule import schedule

# Flows divide, so that roundings add up along a path; where the bound would be above this, adjoints are better.
_MOST_ROUNDING = 1e-11
# Rows per block; the fewer, the more of the values stay in the cache, the more, the less reading an instruction costs.
_LANES = 2 * STEP
# Values below 2⁻¹⁰²² are taken for 0 by flows, where others lose 2⁻¹⁰⁷⁴.
_FLUSHED = 2.0**60


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
    def _adjoints(self) -> Program:
        return reverse(self.forward)

    @cached_property
    def _unscheduled(self) -> Program:
        """What runs in float64."""
        if not self.forward.signed:
            program = flows(self.forward)
            if _gamma(program) <= _MOST_ROUNDING:
                return program
        return self._adjoints

    @cached_property
    def _scaled(self) -> Program:
        return schedule(self._adjoints)

    @cached_property
    def _floor(self) -> float:
        """What underflow can add up to; 0 if there can be none."""
        program = self._unscheduled
        divides = bool((program.op == QUOTIENT).any())
        if not self.forward.signed and _least(program, self.forward) > -1020 * math.log(2.0):
            return 0.0
        analysed = self._adjoints
        return underflow_floor(analysed, log_leaves_of(analysed)) * (_FLUSHED if divides else 1.0)

    @cached_property
    def _gammas(self) -> tuple[float, float]:
        return _gamma(self._unscheduled), _gamma(self._adjoints)

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Posteriors:
        """Posteriors for int8 rows of evidence (1, 0, −1)."""
        signed = self.forward.signed
        floor = np.full(len(evidence), self._floor)
        read, found = self._loop.values(evidence)[:, : len(evidence)], Posteriors.empty(*evidence.shape)
        read_posteriors(read, evidence, signed, self._gammas[0], floor, rtol, found)
        wanted = np.flatnonzero(~found.certain.all(axis=1))
        if len(wanted):
            some = evidence[wanted]
            again, floor = Posteriors.empty(*some.shape), np.zeros(len(some))
            read_posteriors(self._run_scaled(some), some, signed, self._gammas[1], floor, rtol, again)
            found.numbers[wanted], found.certain[wanted] = again.numbers, again.certain
            found.impossible[wanted] = again.impossible
        return found

    @cached_property
    def _loop(self) -> Loop:
        """What runs in float64: joint probabilities, and the root."""
        return Loop(self._unscheduled, readings(self._unscheduled).tolist(), _LANES)

    def _run_scaled(self, evidence: np.ndarray) -> np.ndarray:
        """The same over scaled numbers, those of every row divided by a power of two that makes its root about 1."""
        program, read = self._scaled, readings(self._scaled)
        mantissas, exponents = np.empty((len(read), len(evidence))), np.empty((len(read), len(evidence)), np.int64)
        weights, weight_exponents, table, table_exponents = self.scaled_constants
        op, target, start, args, first_weight, _, leaf_variable, _ = program.arrays
        run_scaled(
            op, target, start, args, first_weight, weights, leaf_variable, table, weight_exponents, table_exponents,
            evidence, read, mantissas, exponents, program.slots,
        )  # fmt: skip
        root = evidence.shape[1]
        gap = np.clip(exponents - exponents[root], -8, 8) * RADIX - np.frexp(mantissas[root])[1]
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(mantissas, gap.astype(np.int32))

    @cached_property
    def scaled_constants(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return split_constants(self._scaled)


def _gamma(program: Program) -> float:
    """A relative error that no reading of a program exceeds, relative to its magnitude."""
    return rounding_bound(float(rounding_counts(program)[readings(program)].max()))


def _least(program: Program, forward: Program) -> float:
    """log of the least number above 0 that a program without negative numbers ever computes."""
    with np.errstate(divide="ignore"):
        table = np.log(program.leaf_table)
        leaves = np.where(np.isfinite(table), table, np.inf).min(axis=1)
        lost = (program.leaf_table[:, :2] == 0.0) & np.array([[x != 0 for x in pair] for pair in program.leaf_numbers])
        leaves[lost.any(axis=1)] = -np.inf  # below the least double
        largest = np.log(np.maximum(forward.leaf_table[:, 0], 0) + np.maximum(forward.leaf_table[:, 1], 0))
    weights = log_weights_of(program)
    common = (forward.op, forward.target, forward.start, forward.args, forward.first_weight)
    log_largest = np.zeros(program.slots)
    log_values(*common, weights[: len(forward.weights)], largest, np.zeros(0), log_largest)
    least = np.zeros(program.slots)
    common = (program.op, program.target, program.start, program.args, program.first_weight)
    return float(log_least(*common, weights, leaves, log_largest, least))

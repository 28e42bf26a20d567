"""One number per node: any marginal of a homogenised circuit is one evaluation at numbers.

Rows run in float64 first. Those that leave its range run over scaled numbers.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from pgcc.backend.kernels.analysis import count_roundings, log_sensitivities, log_values
from pgcc.backend.kernels.bounds import certify
from pgcc.backend.kernels.linear import STEP
from pgcc.backend.kernels.scaled import RADIX, run_scaled
from pgcc.backend.kernels.scaled_staged import run_scaled_staged
from pgcc.backend.loop import Loop
from pgcc.backend.staged import Staged
from pgcc.backend.values import Values, rounding_bound
from pgcc.ir.numbers import Number, absolute, add, exact
from pgcc.lowering.program import Program
from pgcc.lowering.schedule import schedule

# What the slots may take of a second-level cache, beside the matrices of determinants.
_BESIDE_MATRICES = 5 << 18
_NO_DETS = np.zeros(0)
_NO_ROWS = np.zeros(0, np.int64)


class Direct:
    """The evaluator of a homogenised program (as `lower` makes it).

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program: Program):
        self.unscheduled = program

    @cached_property
    def program(self) -> Program:
        """The program with shared slots."""
        return schedule(self.unscheduled)

    @cached_property
    def gamma(self) -> float:
        """A relative error that no value exceeds, relative to its magnitude."""
        return rounding_bound(roundings(self.unscheduled))

    @cached_property
    def floor(self) -> float:
        """What gradual underflow can add up to at the root (float64 only)."""
        program = self.unscheduled if self.staged is None else self.staged.unscheduled
        return underflow_floor(program, log_leaves_of(program), self.staged.log_totals if self.staged else _NO_DETS)

    @cached_property
    def staged(self) -> Staged | None:
        """How to run a program with determinants."""
        return Staged(self.unscheduled) if self.unscheduled.has_det else None

    @cached_property
    def loop(self) -> Loop:
        """How to run one without."""
        return Loop(self.unscheduled, roots_of(self.unscheduled).tolist())

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Values:
        """Values for int8 rows of evidence (1, 0, −1), in float64; over scaled numbers where only range is amiss."""
        values, magnitude, hopeless = self._run_linear(evidence, rtol)
        wanted = values.uncertain(rtol)
        if len(wanted):
            # More range does not help where rounding alone is too much.
            size = magnitude[wanted]
            useless = np.isfinite(size) & (size > 1e3 * self.floor / self.gamma)
            if hopeless is not None:
                useless |= hopeless[wanted]
            wanted = wanted[~useless]
            values.put(wanted, self._run_scaled(evidence[wanted], rtol))
        return values

    def settle(self, evidence: np.ndarray, rtol: float, total: float, logs: bool, numbers: np.ndarray) -> np.ndarray:
        """Write value / total, or its logarithm, of the rows that float64 certifies at once; the numbers of the others.

        What is written is what `evaluate` would say of them. Evidence need not have been checked.
        """
        if self.staged is not None:
            return np.arange(len(evidence))
        settled = self.loop.settle(evidence, self.gamma, self.floor, rtol, total, logs, numbers)
        return _NO_ROWS if settled else np.flatnonzero(np.isnan(numbers))

    def _run_linear(self, evidence: np.ndarray, rtol: float) -> tuple[Values, np.ndarray, np.ndarray | None]:
        """Values in float64, their magnitudes, and for which of them float64 is not enough, whatever the range."""
        exponent, hopeless = 0, None
        if self.staged is None:
            out = self.loop.values(evidence)
        else:
            out, hopeless = self._staged_values(evidence, rtol)
            exponent = self.staged.exponent
        value, magnitude = out[0, : len(evidence)], out[-1, : len(evidence)]
        bound = np.empty(len(evidence))
        certify(value, magnitude, self.gamma, self.floor, bound)
        # The magnitude of a monotone circuit is its value: keep it from being divided with it.
        return Values(value.copy(), np.full(len(evidence), exponent), bound), magnitude, hopeless

    def _staged_values(self, evidence: np.ndarray, rtol: float) -> tuple[np.ndarray, np.ndarray]:
        """Value and, if signed, magnitude of every row with determinants; and for which one of these is hopeless."""
        assert self.staged is not None
        # Rows per block: determinants of one size are computed together; but slots should stay in the cache.
        most = STEP * max(1, min(32, _BESIDE_MATRICES // (8 * STEP * self.staged.program.slots)))
        out, hopeless = self.staged.run(rtol, evidence, min(most, -(-len(evidence) // STEP) * STEP))
        return out, hopeless[: len(evidence)]

    def _run_scaled(self, evidence: np.ndarray, rtol: float) -> Values:
        program = self.program
        roots = np.array([program.value, program.magnitude])
        mantissas, exponents = np.empty((2, len(evidence))), np.empty((2, len(evidence)), np.int64)
        weights, weight_exponents, table, table_exponents = self.scaled_constants
        op, target, start, args, first_weight, _, leaf_variable, _ = program.arrays
        common = (
            op, target, start, args, first_weight, weights, leaf_variable, table, weight_exponents, table_exponents
        )  # fmt: skip
        rows = (evidence, roots, mantissas, exponents, program.slots)
        if self.staged is None:
            run_scaled(*common, *rows)
        else:
            run_scaled_staged(*common, *self.staged.dets.arrays, self.staged.degree, rtol / 8, *rows)
        # Compare both on the value's scale; a gap past the range of doubles is hopeless, or 0 over 0.
        gap = np.clip(exponents[1] - exponents[0], -3, 3) * RADIX
        with np.errstate(over="ignore", invalid="ignore"):
            magnitude = np.ldexp(mantissas[1], gap.astype(np.int32))
        bound = np.empty(len(evidence))
        certify(mantissas[0], magnitude, self.gamma, 0.0, bound)
        mantissa, binary = np.frexp(mantissas[0])
        exponent = np.where(mantissa == 0.0, 0, exponents[0] * RADIX + binary)
        return Values(mantissa, exponent, bound)

    @cached_property
    def scaled_constants(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return split_constants(self.program)


def roots_of(program: Program) -> np.ndarray:
    """The slots of the value and, if something may cancel, of its magnitude."""
    return np.array([program.value, program.magnitude] if program.signed else [program.value])


def roundings(program: Program, length: int = 1) -> float:
    """The rounding count at the roots; `length` coefficients per value."""
    return float(rounding_counts(program, length)[[program.value, program.magnitude]].max())


def rounding_counts(program: Program, length: int = 1) -> np.ndarray:
    """The rounding count of every value (of a program that shares slots: of the last one in each)."""
    count = np.zeros(program.slots)
    count_roundings(program.op, program.target, program.start, program.args, length, count)
    return count


def underflow_floor(program: Program, log_leaves: np.ndarray, log_dets: np.ndarray = _NO_DETS) -> float:
    """What gradual underflow can add up to at the root, when leaf l is at most exp(log_leaves[l]) in magnitude.

    log_dets : logarithms of the largest values of the determinants.

    Every product loses at most 2⁻¹⁰⁷⁴, which reaches the root times the derivative there; all are largest at the
    largest leaves, because the magnitude is monotone. The program must not reuse slots.
    """
    log_weights = log_weights_of(program)
    common = (program.op, program.target, program.start, program.args, program.first_weight, log_weights)
    log_value, log_adjoint = np.empty(program.slots), np.empty(program.slots)
    log_values(*common, log_leaves, log_dets, log_value)
    total = log_sensitivities(*common, log_value, program.magnitude, log_adjoint)
    return float(np.exp(min(total, 700.0 + 1074 * np.log(2.0)) - 1074 * np.log(2.0)))


def log_weights_of(program: Program) -> np.ndarray:
    """log |w| of every weight, also of those that are 0 or inf as doubles."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(program.weights))
    for k in np.flatnonzero(~np.isfinite(logs)).tolist():
        logs[k] = _log_size(program.numbers[k])
    return logs


def log_leaves_of(program: Program) -> np.ndarray:
    """log(|a| + |b|) of every leaf a·ȳ + b·z, likewise: the largest that it can be."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(program.leaf_table[:, :2]).sum(axis=1))
    for k in np.flatnonzero(~np.isfinite(logs)).tolist():
        logs[k] = _log_size(add(*map(absolute, program.leaf_numbers[k])))
    return logs


def _log_size(number: Number) -> float:
    ratio = abs(exact(number))
    return math.log(ratio.numerator) - math.log(ratio.denominator) if ratio else -math.inf


def split_constants(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The weights and the table of leaves as scaled numbers: mantissas and exponents of each."""
    weights, weight_exponents = split_numbers(program.numbers)
    table = [x for a, b in program.leaf_numbers for x in (a, b, add(a, b))]
    leaves, leaf_exponents = split_numbers(table)
    return weights, weight_exponents, leaves.reshape(-1, 3), leaf_exponents.reshape(-1, 3)


def split_numbers(numbers: list[Number]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as m · 2^(256·e) with m in [2⁻¹²⁸, 2¹²⁸), of any size; 0 has the exponent of nothing at all."""
    mantissas, exponents = np.zeros(len(numbers)), np.full(len(numbers), -(2**60), np.int64)
    for i, number in enumerate(numbers):
        if number:
            mantissas[i], exponents[i] = split_number(number)
    return mantissas, exponents


def split_doubles(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for doubles."""
    fraction, binary = np.frexp(numbers)
    exponents = (binary.astype(np.int64) + RADIX // 2) // RADIX
    mantissas = np.ldexp(fraction, binary - exponents * RADIX)
    return mantissas, np.where(fraction == 0.0, -(2**60), exponents)


def split_number(number: Number) -> tuple[float, int]:
    """One nonzero number as (m, e) with number ≈ m · 2^(256·e) to one rounding."""
    if isinstance(number, float) and 2.0**-128 <= abs(number) < 2.0**128:
        return number, 0
    ratio = exact(number)
    e = (ratio.numerator.bit_length() - ratio.denominator.bit_length() + RADIX // 2) // RADIX
    shift = e * RADIX
    scaled = ratio / (1 << shift) if shift >= 0 else ratio * (1 << -shift)
    return float(scaled), e

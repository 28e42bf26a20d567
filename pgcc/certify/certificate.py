"""Bounds on the rounding and underflow errors of a program, computed from the program that runs and stored with it.

The error of the float64 value of a program is at most γ·M + floor, where M is its magnitude: the value of the same
program with absolute numbers. γ bounds the effect of all roundings, and floor that of underflow. Both depend on the
order of operations, so the bounds of one program say nothing about another that computes the same values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pgcc.certify.kernels.analysis import ENDLESS, LEAST_NORMAL, LOSS, ErrorAnalysis, State, nothing_known
from pgcc.certify.kernels.bounds import LEAST_DET
from pgcc.errors import PgccError
from pgcc.ir.numbers import UNIT, Number, absolute, add, exact
from pgcc.kernels.walk import instructions_of, walk
from pgcc.program.condense import Condensed
from pgcc.program.det_structure import DetStructure
from pgcc.program.program import DET, DETIN, DETMAG, NAMES, Code, DetInstruction, Program

# The largest ratio magnitude / value of a known determinant: its error, at most a tenth of it, in units of roundings.
MOST_UNITS = 0.2 / UNIT


def rounding_bound(count: float) -> float:
    """γ = (1 + u)^count − 1 ≤ count·u / (1 − count·u), the relative error after `count` roundings."""
    total = count * UNIT * 1.01
    return total / (1.0 - total) if total < 0.5 else np.inf


@dataclass(frozen=True)
class Certificate:
    """The error of a result is at most gamma · (its true magnitude) + floor.

    gamma is inf if there are too many roundings. floor is 0 only if nothing can underflow, and inf if it is unknown.
    """

    gamma: float
    floor: float


class DetBounds(Protocol):
    """Bounds on the determinants of a program, for the error analysis."""

    def children(self, d: int, values: State) -> State:
        """The states of the inputs of determinant d, given those of the slots that it names."""

    def log_bound(self, d: int, children: State) -> float:
        """log of a bound on the absolute value of determinant d, given the states of its children (f, then y)."""

    def is_positive(self, d: int, children: State) -> bool:
        """Whether determinant d is never negative, given the states of its children."""

    def log_units(self, d: int) -> float:
        """log of an upper bound on magnitude / value of determinant d."""


class Analysis:
    """The error analysis of programs that run one after another over the same slots: the states of all slots."""

    def __init__(self, slots: int, dets: DetBounds | None = None, weight_first: bool = False):
        self.state = nothing_known(slots)
        self.dets, self.weight_first = dets, weight_first

    def run(self, program: Program, length: int = 1) -> Analysis:
        """Analyse a program made by `lower`, `reverse` or `schedule`.

        length : the number of coefficients per value.
        """
        leaves = leaf_states(program)
        if length > 1:  # a coefficient may be arbitrarily small
            leaves = leaves._replace(low=np.full(len(leaves.low), -ENDLESS))
        self._run(program, leaves, 0, length)
        return self

    def run_condensed(self, condensed: Condensed) -> Analysis:
        """Analyse a condensed program and the programs that fill its tables."""
        tables = [condensed.tables, *condensed.wide]
        found = [_picked(Analysis(one.program.slots).run(one.program).state, one.roots) for one in tables]
        self._run(condensed, State(*map(np.concatenate, zip(*found, strict=True))), len(condensed.tables.roots), 1)
        return self

    def certificate(self, values: Sequence[int] | np.ndarray, magnitudes: Sequence[int] | np.ndarray) -> Certificate:
        """A certificate that holds for the values in some slots, with their magnitudes in others.

        Let E be the error of a value by underflow, and E' that of its magnitude. The true magnitude is at most
        (m + E')/(1 − γ), with m the computed one, and rounding acts on E as well: 2·E + 2·γ·E' covers both for γ < ½.
        The factor e in place of 2 covers the rounding errors of the logarithms.
        """
        slots = np.concatenate([np.asarray(values), np.asarray(magnitudes)]).astype(np.int64)
        gamma = rounding_bound(float(self.state.rounds[slots].max(initial=0.0)))
        error, beside = (float(self.state.error[list(s)].max(initial=-math.inf)) for s in (values, magnitudes))
        if max(error, beside) == -math.inf:
            return Certificate(gamma, 0.0)
        return Certificate(gamma, _bounded_exp(error + 1.0) + min(gamma, 1.0) * _bounded_exp(beside + 1.0) + 2.0**-1074)

    def _run(self, program: Code, leaves: State, lookups: int, length: int) -> None:
        log_weights, negative = log_weights_of(program), program.weights < 0.0
        system = ErrorAnalysis(
            log_weights, negative, leaves, lookups, self.state, length, math.log(length), self.weight_first, np.zeros(1)
        )
        code = instructions_of(program)
        for begin, end, det in program.segments():
            walk(code, system, begin, end)
            if det is not None:
                self._determinant(det)

    def _determinant(self, det: DetInstruction) -> None:
        """The state of a determinant. (Its magnitude covers the relative errors of its children: see `run_staged`.)"""
        _, op, which, slots, at = det
        below = _picked(self.state, slots)
        if op == DETMAG and len(slots) == 1:  # a computed determinant times its error in roundings
            self._put(at, below.rounds.max() + 1.0, below.high[0], below.error[0], self._log_units(which), True)
            return
        if self.dets is not None:
            below = self.dets.children(which, below)
        count = float(below.rounds.max(initial=0.0)) + 1.0
        bound = ENDLESS if self.dets is None else self.dets.log_bound(which, below)
        off = bound + _log_growth(below)
        if op == DET:
            self._put(at, count, bound, off, 0.0, self.dets is not None and self.dets.is_positive(which, below))
        elif op == DETMAG:
            self._put(at, count, bound, off, self._log_units(which), True)
        elif op == DETIN:  # the bound on D is affine in f, so ∂D/∂f is at most bound / f at the largest f
            k = len(det.inside)
            for j, child in enumerate(below.high[:k].tolist()):
                less = child if child > -math.inf else math.inf
                self._put(at + j, count, bound - less, off - less, 0.0, False)
                self._put(at + k + j, count, bound - less, off - less, self._log_units(which), True)
        else:
            raise PgccError(f"the errors of an instruction {NAMES[op]} are not known")

    def _log_units(self, which: int) -> float:
        return ENDLESS if self.dets is None else self.dets.log_units(which)

    def _put(self, at: int, count: float, high: float, error: float, log_units: float, positive: bool) -> None:
        """Set the state of a determinant. Kernels write 0, `LEAST_DET` or more in absolute value, or NaN."""
        state = self.state
        if high == -math.inf:
            error = -math.inf
        state.rounds[at], state.high[at], state.positive[at] = count, min(high + log_units, ENDLESS), positive
        state.error[at] = min(error + log_units, ENDLESS)
        state.low[at] = ENDLESS if high == -math.inf else math.log(LEAST_DET) if error == -math.inf else -ENDLESS


def rounding_counts(program: Program) -> np.ndarray:
    """By slot, a bound on the number of roundings in any term of its final value."""
    return Analysis(program.slots).run(program).state.rounds


def leaf_states(program: Program) -> State:
    """The states of the leaves a·ȳ + b·z of a program: a, b and a + b are rounded."""
    size, positive = np.abs(program.leaf_table), np.all(program.leaf_table[:, :2] >= 0.0, axis=1).astype(np.uint8)
    small = size < 2.0**-1022
    lost = np.zeros(len(size), bool)
    for k in np.flatnonzero(small.any(axis=1)).tolist():  # 0, or rounded to it: only the numbers say which
        a, b = program.leaf_numbers[k]
        lost[k] = any(is_small and number != 0 for is_small, number in zip(small[k], (a, b, add(a, b)), strict=True))
        positive[k] = a >= 0 and b >= 0
    with np.errstate(divide="ignore"):
        least = np.log(np.where(size > 0.0, size, np.inf)).min(axis=1, initial=np.inf)
    return State(
        np.full(len(size), 2.0),
        log_leaves_of(program),
        np.where(lost, -ENDLESS, np.minimum(least, ENDLESS)),
        np.where(lost, LOSS, -math.inf),
        positive,
    )


def log_weights_of(program: Code) -> np.ndarray:
    """log |w| of every weight, including those that are inf, subnormal or 0 as doubles."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(program.weights))
    for k in np.flatnonzero(~((logs >= LEAST_NORMAL) & (logs < math.inf))).tolist():
        logs[k] = _log_size(program.numbers[k])
    return logs


def log_leaves_of(program: Program) -> np.ndarray:
    """log(|a| + |b|) of every leaf a·ȳ + b·z, an upper bound on its logarithm, also beyond the range of doubles."""
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(np.abs(program.leaf_table[:, :2]).sum(axis=1))
    for k in np.flatnonzero(~((logs >= LEAST_NORMAL) & (logs < math.inf))).tolist():
        logs[k] = _log_size(add(*map(absolute, program.leaf_numbers[k])))
    return logs


def log_determinant_bound(structure: DetStructure, log_f: np.ndarray, log_y: np.ndarray) -> float:
    """log of a bound on |det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]|, given upper bounds on log |f| and log |y|.

    This is Hadamard's bound, the product of the lengths of the columns. The coefficient of the determinant at a size is
    a mean of such determinants, with children multiplied by complex numbers of absolute value 1, so it is no larger.
    """
    if not structure.in_range:
        return ENDLESS
    with np.errstate(divide="ignore"):
        m0, u, v = (np.log(np.abs(m)) for m in structure.floats)
        first = np.logaddexp(_log_squares(m0, 0), _log_squares(v, 1))
        second = np.logaddexp(_log_squares(u, 0) + 2.0 * log_f, 2.0 * log_y)
    return 0.5 * float(first.sum() + second.sum())


def _log_squares(logs: np.ndarray, axis: int) -> np.ndarray:
    """log Σ x², from the logarithms of x."""
    return np.logaddexp.reduce(2.0 * logs, axis=axis, initial=-np.inf)


def _log_growth(children: State) -> float:
    """log(Π(1 + e_i/h_i) − 1): the relative change of a function that is affine in every child, by errors e_i."""
    off = children.error > -math.inf
    if not off.any():
        return -math.inf
    log_sum = float(np.logaddexp.reduce(children.error[off] - children.high[off]))
    # Π(1 + r_i) − 1 ≤ exp(Σ r_i) − 1, which is at most 1.72·Σ r_i up to 1
    return log_sum + 0.55 if log_sum < 0.0 else min(math.exp(min(log_sum, 30.0)), ENDLESS)


def _log_size(number: Number) -> float:
    ratio = abs(exact(number))
    return math.log(ratio.numerator) - math.log(ratio.denominator) if ratio else -math.inf


def _bounded_exp(log: float) -> float:
    return math.exp(log) if log < 709.0 else math.inf


def _picked(state: State, slots: Sequence[int] | np.ndarray) -> State:
    return State(*(column[np.asarray(slots, np.int64)] for column in state))

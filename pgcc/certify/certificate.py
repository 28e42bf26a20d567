"""Bounds on the rounding and underflow errors of a program, computed from the program that runs and stored with it.

The float64 value of a program is off by at most γ·M + floor, where M is its magnitude: the value of the same program
with absolute numbers. γ comes from the number of roundings, and the floor from products below the normal numbers. Both
depend on the order of operations, so the bounds of one program say nothing about another that computes the same values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pgcc.certify.kernels.analysis import ENDLESS, LEAST_NORMAL, LOSS, Arithmetic, Read, State, nothing_known, walk
from pgcc.determinants.kernels.staged import LEAST
from pgcc.errors import PgccError
from pgcc.ir.numbers import UNIT, Number, absolute, add, exact
from pgcc.program.condense import Condensed
from pgcc.program.determinant import DetStructure
from pgcc.program.program import DET, DETBAR, DETIN, DETMAG, NAMES, Code, Program
from pgcc.rings.kernels.walk import instructions_of
from pgcc.rings.values import rounding_bound

# A determinant that is known at all is off by a tenth of itself at most; its magnitude counts that in roundings.
MOST_UNITS = 0.2 / UNIT


@dataclass(frozen=True)
class Certificate:
    """A result is off by at most gamma · (its true magnitude) + floor.

    gamma is inf if there are too many roundings. floor is 0 only if nothing can underflow, and inf if it is unknown.
    """

    gamma: float
    floor: float


class DetBounds(Protocol):
    """What a walk has to know about the determinants of a program."""

    def children(self, d: int, values: State) -> State:
        """The states of the inputs of determinant d, given those of the slots that it names."""

    def log_bound(self, d: int, children: State) -> float:
        """log of the largest absolute value of determinant d, if its children, f and then y, are at most this large."""

    def is_positive(self, d: int, children: State) -> bool:
        """Whether determinant d is never negative for such children."""

    def log_units(self, d: int) -> float:
        """log of an upper bound on magnitude / value of determinant d."""


class Walk:
    """The states of all slots of programs that run one after another over the same slots."""

    def __init__(self, slots: int, dets: DetBounds | None = None, weight_first: bool = False):
        self.state = nothing_known(slots)
        self.dets, self.weight_first = dets, weight_first

    def run(self, program: Program, length: int = 1) -> Walk:
        """Walk through a program made by `lower`, `reverse`, `flows` or `schedule`.

        length : the coefficients per value.
        """
        leaves = leaf_states(program)
        if length > 1:  # of a coefficient nobody knows how small it may be
            leaves = leaves._replace(low=np.full(len(leaves.low), -ENDLESS))
        self._run(program, leaves, nothing_known(0), length)
        return self

    def run_condensed(self, condensed: Condensed) -> Walk:
        """Walk through a condensed program, whose tables were filled by other programs."""
        tables = [condensed.tables, *condensed.wide]
        found = [_picked(Walk(one.program.slots).run(one.program).state, one.roots) for one in tables]
        wide = State(*map(np.concatenate, zip(nothing_known(0), *found[1:], strict=True)))
        self._run(condensed, found[0], wide, 1)
        return self

    def certificate(self, values: Sequence[int] | np.ndarray, magnitudes: Sequence[int] | np.ndarray) -> Certificate:
        """The certificate of the values in some slots with their magnitudes in others: the worst of all.

        Let E be the error of a value apart from rounding, and E' that of its magnitude. The true magnitude is then at
        most (m + E')/(1 − γ), and rounding acts on E as well: 2·E + 2·γ·E' covers both for γ below 1/2. The rest is for
        the logarithms.
        """
        slots = np.concatenate([np.asarray(values), np.asarray(magnitudes)]).astype(np.int64)
        gamma = rounding_bound(float(self.state.rounds[slots].max(initial=0.0)))
        error, beside = (float(self.state.error[list(s)].max(initial=-math.inf)) for s in (values, magnitudes))
        if max(error, beside) == -math.inf:
            return Certificate(gamma, 0.0)
        return Certificate(gamma, _bounded_exp(error + 1.0) + min(gamma, 1.0) * _bounded_exp(beside + 1.0) + 2.0**-1074)

    def _run(self, program: Code, leaves: State, lookups: State, length: int) -> None:
        read = Read(log_weights_of(program), program.weights < 0.0, leaves, lookups)
        arithmetic, code = Arithmetic(length, self.weight_first), instructions_of(program)
        begin, end = 0, program.instructions
        for i in [*_determinants(program), end]:
            stopped = walk(code, begin, i, read, arithmetic, self.state)
            if stopped < i:
                raise PgccError(f"the errors of an instruction {NAMES[program.op[stopped]]} are not known")
            if i < end:
                self._determinant(program, i)
            begin = i + 1

    def _determinant(self, program: Code, i: int) -> None:
        """The effect of the children's relative errors on a determinant is in its magnitude (see `run_staged`)."""
        op, at = int(program.op[i]), int(program.target[i])
        which, *slots = program.args[program.start[i] : program.start[i + 1]].tolist()
        below = _picked(self.state, slots)
        if op == DETMAG and len(slots) == 1:  # times what it is off by, in roundings
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
        elif op == DETIN:  # ∂D/∂f ≤ D/f at the largest f, for the bound is that of what is affine in f
            k = len(slots) // 2
            for j, child in enumerate(below.high[:k].tolist()):
                less = child if child > -math.inf else math.inf
                self._put(at + j, count, bound - less, off - less, 0.0, False)
                self._put(at + k + j, count, bound - less, off - less, self._log_units(which), True)
        else:
            raise PgccError(f"the errors of an instruction {NAMES[op]} are not known")

    def _log_units(self, which: int) -> float:
        return ENDLESS if self.dets is None else self.dets.log_units(which)

    def _put(self, at: int, count: float, high: float, error: float, log_units: float, positive: bool) -> None:
        """Kernels of determinants write 0, at least `LEAST`, or NaN for unknown."""
        state = self.state
        if high == -math.inf:
            error = -math.inf
        state.rounds[at], state.high[at], state.positive[at] = count, min(high + log_units, ENDLESS), positive
        state.error[at] = min(error + log_units, ENDLESS)
        state.low[at] = ENDLESS if high == -math.inf else math.log(LEAST) if error == -math.inf else -ENDLESS


def rounding_counts(program: Program) -> np.ndarray:
    """The number of roundings in the terms of the final value of every slot of a program."""
    return Walk(program.slots).run(program).state.rounds


def gamma_of(program: Program, slots: Sequence[int] | np.ndarray) -> float:
    """The error that rounding alone causes in some values, relative to their magnitudes."""
    return rounding_bound(float(rounding_counts(program)[list(slots)].max(initial=0.0)))


def leaf_states(program: Program) -> State:
    """The states of the leaves a·ȳ + b·z of a program, whose numbers are rounded, as is their sum."""
    table = program.leaf_table
    kept = np.array([[a != 0, b != 0] for a, b in program.leaf_numbers], bool).reshape(-1, 2)
    both = np.array([add(a, b) != 0 for a, b in program.leaf_numbers], bool).reshape(-1, 1)
    size = np.abs(table)
    lost = (np.concatenate([kept, both], axis=1) & (size < 2.0**-1022)).any(axis=1)
    with np.errstate(divide="ignore"):
        least = np.log(np.where(size > 0.0, size, np.inf)).min(axis=1, initial=np.inf)
    return State(
        np.full(len(table), 2.0),
        log_leaves_of(program),
        np.where(lost, -ENDLESS, np.minimum(least, ENDLESS)),
        np.where(lost, LOSS, -math.inf),
        np.array([a >= 0 and b >= 0 for a, b in program.leaf_numbers], np.uint8),
    )


def log_weights_of(program: Code) -> np.ndarray:
    """log |w| of every weight, including those that are inf, subnormal or 0 as doubles."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(program.weights))
    for k in np.flatnonzero(~((logs >= LEAST_NORMAL) & (logs < math.inf))).tolist():
        logs[k] = _log_size(program.numbers[k])
    return logs


def log_leaves_of(program: Program) -> np.ndarray:
    """log(|a| + |b|) of every leaf a·ȳ + b·z, likewise: an upper bound on its logarithm."""
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(np.abs(program.leaf_table[:, :2]).sum(axis=1))
    for k in np.flatnonzero(~((logs >= LEAST_NORMAL) & (logs < math.inf))).tolist():
        logs[k] = _log_size(add(*map(absolute, program.leaf_numbers[k])))
    return logs


def log_determinant_bound(structure: DetStructure, log_f: np.ndarray, log_y: np.ndarray) -> float:
    """log of a bound on |det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]| for all |f| and |y| up to these.

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
    """log(Π(1 + e_i/h_i) − 1): how much a function that is affine in every child can grow if child i is off by e_i."""
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


def _determinants(program: Code) -> Iterator[int]:
    return iter(np.flatnonzero((program.op >= DET) & (program.op <= DETBAR) | (program.op == DETIN)).tolist())

"""Gradients of Σ share[row] · log F(row) by every weight and every entry of a matrix of a program, by a reverse pass.

A reverse pass runs in float64, a block of rows at a time (`Float64Gradients`, for programs without determinants), or
over scaled numbers (`ScaledGradients`). The ladder `compiler.GRADIENTS` says which rows run in which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from pgcc.certify.certificate import Analysis, log_leaves_of, log_weights_of, rounding_bound, rounding_counts
from pgcc.certify.kernels.analysis import LOSS
from pgcc.determinants.cofactors import Derivatives, Matrices, determinant_derivatives
from pgcc.errors import PgccError, PrecisionError
from pgcc.evaluate.direct import split_constants
from pgcc.evaluate.kernels.gradients import add_float64_gradients, add_scaled_gradients
from pgcc.ir.numbers import UNIT, absolute
from pgcc.ir.scaled_numbers import split_doubles
from pgcc.kernels.walk import instructions_of
from pgcc.locks import cached_property
from pgcc.program.program import ARITHMETIC, DET, DETBAR, NAMES, DetInstruction, Program
from pgcc.program.reverse import adjoints, terms_of
from pgcc.rings.float64.kernels.interpreter import run_block
from pgcc.rings.float64.kernels.packed_evidence import STEP, Rows, pack_block
from pgcc.rings.float64.loop import new_block, uncondensed_program
from pgcc.rings.kernels.scaled import RADIX, Constants, run_scaled_rows

_KNOWN = (*ARITHMETIC, DET, DETBAR)  # operations
# Rows per block, in steps of 32, unless their values and adjoints take more than this many bytes.
_STEPS, _BYTES = 4, 1 << 23
# Derivatives of a determinant, and the scale (rows × k): pairs of its children were divided by 2^scale.
_Rescaled = tuple[Derivatives, np.ndarray]
# The most scaled numbers, slots times rows, that are computed together.
_MOST_NUMBERS = 1 << 23


class WeightedRows(NamedTuple):
    """Rows of int8 evidence, and the share of each in the sum that is differentiated."""

    codes: np.ndarray
    share: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: np.ndarray) -> WeightedRows:  # type: ignore[override]
        return WeightedRows(np.ascontiguousarray(self.codes[rows]), self.share[rows])


@dataclass
class Gradients:
    """log F of every row, and Σ share · ∂ log F by every number of the program.

    Attributes
    ----------
    logs : array
        log F; −inf where F is 0. Such a row adds nothing to the sums.
    weights, constants, matrices
        The sums, by every weight, by every constant (indexed by slot), and by the matrices of every determinant.
    left : int array
        The rows whose values left the range of the number system, and which have added nothing to the sums.
    spread : float
        The largest difference between two ways of computing a derivative (if there are two), relative to it or to 1.
    """

    logs: np.ndarray
    weights: np.ndarray
    constants: np.ndarray
    matrices: list[Matrices]
    left: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    spread: float = 0.0

    @property
    def sums(self) -> list[np.ndarray]:
        """The arrays that are added up over rows."""
        return [self.weights, self.constants, *chain(*self.matrices)]

    def uncertain(self, rtol: float) -> np.ndarray:
        """The rows whose values left the range of the number system."""
        return self.left

    def put(self, where: np.ndarray, other: Gradients) -> None:
        """Add the gradients of the rows `where`, which had left the range."""
        self.logs[where], self.left = other.logs, where[other.left]
        self.spread = max(self.spread, other.spread)
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine += theirs

    def __add__(self, other: Gradients) -> Gradients:
        """The gradients of the rows of both."""
        matrices = [(a + x, b + y, c + z) for (a, b, c), (x, y, z) in zip(self.matrices, other.matrices, strict=True)]
        logs = np.concatenate([self.logs, other.logs])
        return Gradients(logs, self.weights + other.weights, self.constants + other.constants, matrices)

    def times(self, share: float) -> Gradients:
        """The gradients with every share multiplied by one number."""
        matrices = [(a * share, b * share, c * share) for a, b, c in self.matrices]
        return Gradients(self.logs, self.weights * share, self.constants * share, matrices, self.left, self.spread)

    def __isub__(self, other: Gradients) -> Gradients:
        self.spread = max(self.spread, other.spread)
        with np.errstate(invalid="ignore"):  # inf − inf is NaN, which `grad` refuses
            for mine, theirs in zip(self.sums, other.sums, strict=True):
                mine -= theirs
        return self


class Differentiator:
    """A program and its reverse pass, whose numbers may be changed (see `update`).

    Parameters
    ----------
    program : Program
        As `parametrize` makes it: no two terms share a weight.

    Attributes
    ----------
    program, reversed : Program
        The program, and its reverse pass, which includes it.
    matrices : list
        The matrices of every determinant.
    adjoint : int array
        By slot, the slot of its adjoint: the derivative of the root by its value.
    above, child, place : int arrays
        ∂F/∂θ for the number θ = place[i] (weights first, then constants by slot) is slot above[i] times slot child[i].
    """

    def __init__(self, program: Program):
        self.program = program
        self.matrices: list[Matrices] = [structure.floats for structure in program.structures]
        found = adjoints(program)
        self.reversed, self.adjoint, self._source = found.program.expect(*_KNOWN), found.slot, found.weight
        # the derivative by the weight of a term w·x of a sum p is p'·x, that by a constant c is c'·1 (' : adjoints)
        terms = terms_of(program)
        weighted = terms.weight >= 0
        slots, numbers = program.leaves
        constants = slots[program.leaf_variable[numbers] < 0]
        one = np.full(len(constants), self.reversed.args[-1])
        self.child = np.concatenate([terms.x[weighted], one]).astype(np.int64)
        self.above = self.adjoint[np.concatenate([terms.of[weighted], constants])]
        self.place = np.concatenate([terms.weight[weighted], len(program.weights) + constants])

    def absolute(self) -> Differentiator:
        """The same program with the absolute values of all its numbers, if it has no determinants.

        Rounding errors are bounded relative to the values and adjoints of this one.
        """
        program = self.program
        numbers = [absolute(x) for x in program.numbers]
        leaves = [(absolute(a), absolute(b)) for a, b in program.leaf_numbers]
        zero, one = np.abs(program.leaf_table[:, :2]).T
        table = np.stack([zero, one, zero + one], axis=1)
        weights = np.abs(program.weights)
        return Differentiator(
            replace(program, weights=weights, numbers=numbers, leaf_table=table, leaf_numbers=leaves)
        )  # fmt: skip

    @property
    def gamma(self) -> float:
        """A bound on the rounding error of any value or adjoint, relative to the same in `absolute()`."""
        return rounding_bound(float(rounding_counts(self.reversed).max(initial=0.0)))

    def update(self, weights: np.ndarray, matrices: list[Matrices]) -> None:
        """Replace the weights and matrices by others; constants stay."""
        self.program.weights[:] = weights
        copies = self._source >= 0
        self.reversed.weights[copies] = weights[self._source[copies]]
        for program in (self.program, self.reversed):  # the bound on underflow reads the numbers of subnormal weights
            for k in np.flatnonzero(np.abs(program.weights) < 2.0**-1022).tolist():
                program.numbers[k] = float(program.weights[k])
        self.matrices = matrices
        leaves = self.constants[2:]
        self.__dict__.pop("floor", None)
        self.constants = Constants(*split_doubles(self.reversed.weights, RADIX), *leaves)

    @contextmanager
    def roundings(self, count: int, rng: np.random.Generator) -> Iterator[None]:
        """A context in which every weight and entry of a matrix is changed, up or down, by `count` rounding errors."""

        def off(shape: tuple[int, ...]) -> np.ndarray:
            return 1.0 + count * UNIT * rng.choice([-1.0, 1.0], shape)

        weights, constants, matrices = self.reversed.weights.copy(), self.constants, self.matrices
        factors = np.append(off(self.program.weights.shape), 1.0)[self._source]  # −1: the last
        self.reversed.weights[:] *= factors
        self.constants = constants._replace(weights=constants.weights * factors)
        self.matrices = [tuple(m * off(m.shape) for m in each) for each in matrices]
        try:
            yield
        finally:
            self.reversed.weights[:], self.constants, self.matrices = weights, constants, matrices

    @cached_property
    def floor(self) -> float:
        """A bound on the errors by underflow in float64, of the root and of θ·∂F/∂θ for every weight or constant θ.

        ∂F/∂θ is the product of an adjoint and a value.
        """
        analysis = Analysis(self.reversed.slots).run(self.reversed)
        high, error = analysis.state.high, analysis.state.error
        found = self.above >= 0
        above, child, place = self.above[found], self.child[found], self.place[found]
        constants = np.full(self.program.slots, -np.inf)
        slots, numbers = self.program.leaves
        constants[slots] = log_leaves_of(self.program)[numbers]
        sizes = np.concatenate([log_weights_of(self.program), constants])[place]
        off = np.logaddexp(np.logaddexp(high[above] + error[child], error[above] + high[child]), LOSS)
        off = np.logaddexp(off, error[above] + error[child])
        worst = max(float((sizes + off).max(initial=-np.inf)), float(error[self.program.value]))
        return float(np.exp(min(worst + 1.0, 700.0)))

    @cached_property
    def constants(self) -> Constants:
        """Weights and leaves of the reverse pass as scaled numbers."""
        return split_constants(self.reversed)

    def totals(self) -> np.ndarray:
        """The values of all slots of a program without determinants, if nothing is observed."""
        program = self.program
        block = new_block(None, program.slots, program.n_variables, STEP)
        block.columns[:] = 255
        run_block(uncondensed_program(program), 0, program.instructions, STEP, block)
        return block.work[::STEP].copy()

    def zeros(self, rows: int) -> tuple[Gradients, np.ndarray]:
        """Gradients that are 0, for this many rows; and their weights and constants as one array (see `place`)."""
        shapes = [(s.rank, s.children) for s in self.program.structures]
        matrices = [(np.zeros((r, r)), np.zeros((r, k)), np.zeros((r, k))) for r, k in shapes]
        numbers = np.zeros(len(self.program.weights) + self.program.slots)
        weights, constants = np.split(numbers, [len(self.program.weights)])
        return Gradients(np.empty(rows), weights, constants, matrices), numbers

    @property
    def float64(self) -> Float64Gradients | None:
        """The reverse pass in float64; None if there are determinants."""
        return None if self.program.has_det else Float64Gradients(self)

    @property
    def scaled(self) -> ScaledGradients:
        """The reverse pass over scaled numbers."""
        return ScaledGradients(self)


class Float64Gradients:
    """The reverse pass in float64 of a program without determinants."""

    def __init__(self, differentiator: Differentiator):
        self.differentiator = differentiator

    def evaluate(self, rows: WeightedRows, rtol: float) -> Gradients:
        """The gradients of all rows, except those that underflow may have changed by more than `rtol`."""
        of = self.differentiator
        program, (evidence, share), (found, numbers) = of.reversed, rows, of.zeros(len(rows))
        n = evidence.shape[1]
        fitting = max(1, min(_STEPS, _BYTES // (8 * STEP * program.slots)))
        lanes = STEP * max(1, min(fitting, -(-len(evidence) // STEP)))
        code, flat = uncondensed_program(program), Rows(evidence.reshape(-1).view(np.uint8), n)
        memory = new_block(None, program.slots, n, lanes)
        work = memory.work
        total, part, left = np.zeros(len(of.place)), np.zeros(lanes), []
        for first in range(0, len(evidence), lanes):
            pack_block(flat, first, lanes, memory.columns)
            run_block(code, 0, program.instructions, lanes, memory)
            block = slice(first, min(first + lanes, len(evidence)))
            root = work[of.program.value * lanes :][: block.stop - first]
            good = (np.abs(root) * rtol > of.floor) & np.isfinite(root)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                found.logs[block] = np.log(root)
                part[: len(root)] = np.where(good, share[block] / root, 0.0)
                part[len(root) :] = 0.0
            work.reshape(-1, lanes)[:, : len(root)][:, ~good] = 0.0  # their share is 0, and 0·inf would be NaN
            sums = np.zeros(len(total))
            add_float64_gradients(of.above, of.child, work, lanes, part, sums)
            if np.isfinite(sums).all():
                total += sums
                left.append(first + np.flatnonzero(~good))
            else:  # an adjoint has left the range, although the root has not
                left.append(np.arange(block.start, block.stop))
        numbers[of.place] += total
        found.left = np.concatenate(left)
        return found


class ScaledGradients:
    """The reverse pass over scaled numbers. Determinants are differentiated in float64, with rescaled children."""

    def __init__(self, differentiator: Differentiator):
        self.differentiator = differentiator

    def evaluate(self, rows: WeightedRows, rtol: float) -> Gradients:
        """The gradients of all rows, without bounds."""
        found, numbers = self.differentiator.zeros(len(rows))
        step = max(1, _MOST_NUMBERS // max(1, self.differentiator.reversed.slots))
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            self._run(WeightedRows(rows.codes[some], rows.share[some]), some, found, numbers)
        return found

    def _run(self, some: WeightedRows, at: slice, found: Gradients, numbers: np.ndarray) -> None:
        of = self.differentiator
        program, (evidence, share) = of.reversed, some
        codes = np.ascontiguousarray(evidence)
        m, e = np.zeros((len(codes), program.slots)), np.zeros((len(codes), program.slots), np.int64)
        derivatives: dict[int, _Rescaled] = {}  # by determinant
        for begin, end, det in program.segments():
            run_scaled_rows(instructions_of(program), of.constants, begin, end, codes, m, e)
            if det is not None:
                self._run_determinant(det, derivatives, m, e)
        root = of.program.value
        with np.errstate(divide="ignore", invalid="ignore"):
            found.logs[at] = np.log(m[:, root]) + np.where(m[:, root] == 0.0, 0.0, e[:, root] * RADIX * np.log(2.0))
        alive = np.flatnonzero(m[:, root] != 0.0)
        total = np.zeros(len(of.place))
        add_scaled_gradients(of.above, of.child, m[alive], e[alive], root, share[alive], total)
        numbers[of.place] += total
        for which, (derivative, _) in derivatives.items():
            self._add_matrices(which, derivative, m, e, alive, share, found)

    def _run_determinant(
        self, det: DetInstruction, derivatives: dict[int, _Rescaled], m: np.ndarray, e: np.ndarray
    ) -> None:
        """Write a determinant, and keep its derivatives; or write those."""
        if det.op == DET:
            found, _ = derivatives[det.det] = self._differentiate(det.det, det.slots, m, e)
            _put(found.value[:, None], 0, det.target, found.exponent, m, e)
        elif det.op == DETBAR:
            found, scale = derivatives[det.det]
            parts = np.concatenate([found.by_inside, found.by_outside], axis=1)
            _put(parts, np.tile(scale, 2), det.target, found.exponent, m, e)
        else:
            raise PgccError(f"internal error: there is no rule to differentiate {NAMES[det.op]}; please report it")

    def _differentiate(self, which: int, children: np.ndarray, m: np.ndarray, e: np.ndarray) -> _Rescaled:
        """A determinant and its derivatives by what its children were, without the scale of these.

        It is linear in every pair (f, y). So each pair is divided by a power of two, and the result is multiplied by
        all of these powers.
        """
        k = len(children) // 2
        fraction, binary = np.frexp(m[:, children])
        binary = np.where(fraction == 0.0, -(2**40), binary + np.clip(e[:, children], -(2**30), 2**30) * RADIX)
        scale = np.maximum(binary[:, :k], binary[:, k:])
        scale = np.where(scale <= -(2**40), 0, scale)
        numbers = np.ldexp(fraction, np.maximum(binary - np.tile(scale, 2), -2000).astype(np.int32))
        if ((np.abs(numbers) < 2.0**-1022) & (fraction != 0.0)).any():
            raise PrecisionError(
                "a child of a determinant and its complement are more than 1e300 apart, and derivatives are computed "
                "in float64: put a factor into the matrices (M0, U, V) of the determinant"
            )
        found = determinant_derivatives(self.differentiator.matrices[which], numbers[:, :k], numbers[:, k:])
        found.exponent += scale.sum(axis=1)
        return found, scale

    def _add_matrices(
        self, which: int, derivative: Derivatives, m: np.ndarray, e: np.ndarray, alive: np.ndarray, share: np.ndarray,
        found: Gradients,
    ) -> None:  # fmt: skip
        """Add Σ share · D' · ∂D/∂M / F over rows, with D' the adjoint of the determinant D."""
        of, program = self.differentiator, self.differentiator.program
        above, root = of.adjoint[program.dets[which].target], program.value
        gap = (e[alive, above] - e[alive, root]) * RADIX + derivative.exponent[alive]
        with np.errstate(over="ignore", under="ignore"):
            factor = share[alive] * np.ldexp(
                m[alive, above] / m[alive, root], np.clip(gap, -5000, 5000).astype(np.int32)
            )
        for total, part in zip(found.matrices[which], derivative.by_matrices, strict=True):
            total += np.tensordot(factor, part[alive], 1)


def _put(
    numbers: np.ndarray, less: np.ndarray | int, first: int, exponent: np.ndarray, m: np.ndarray, e: np.ndarray
) -> None:
    """Write numbers · 2^(exponent − less), rows × slots, as scaled numbers from slot `first` on."""
    span = slice(first, first + numbers.shape[1])
    m[:, span], e[:, span] = split_doubles(numbers, RADIX, exponent[:, None] - less)

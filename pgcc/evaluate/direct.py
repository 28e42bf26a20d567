"""One number per node: g(row) of a homogenized circuit is a single evaluation, in float64 or over scaled numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.certify import budget
from pgcc.certify.certificate import Certificate, rounding_bound, rounding_counts
from pgcc.certify.kernels.bounds import absolute_errors, certify
from pgcc.determinants.kernels.scaled_staged import run_scaled_staged
from pgcc.determinants.staged import Staged
from pgcc.evaluate.soft import SoftRows
from pgcc.ir.numbers import Number, add
from pgcc.ir.scaled_numbers import ZERO_EXPONENT, split_doubles, split_numbers, split_rounded
from pgcc.kernels.walk import instructions_of
from pgcc.locks import cached_property
from pgcc.program.program import LOWERED, Program
from pgcc.program.schedule import schedule
from pgcc.rings.float64.kernels.packed_evidence import STEP
from pgcc.rings.float64.kernels.rows import Answer
from pgcc.rings.float64.loop import Loop
from pgcc.rings.kernels.scaled import RADIX, Constants, run_scaled
from pgcc.rings.values import Values

# Bytes of the second-level cache that the slots of a block may take; matrices of determinants need the rest.
_BESIDE_MATRICES = 5 << 18
_NO_ROWS = np.zeros(0, np.int64)
_ANY = 0.5  # the relative error asked of determinants where only a bound on the absolute error is needed


class Float64:
    """The evaluator in float64 of a homogenized program.

    Parameters
    ----------
    program : Program
        As `lower` makes it.
    """

    def __init__(self, program: Program):
        self.program = program.expect(*LOWERED)
        # The certificate of the form of the program that runs.
        self.certificate: Certificate = self.loop.certificate if self.staged is None else self.staged.certificate

    @cached_property
    def staged(self) -> Staged | None:
        """The evaluator of a program with determinants; None if there are none."""
        return Staged(self.program) if self.program.has_det else None

    @cached_property
    def loop(self) -> Loop:
        """The evaluator of a program without determinants."""
        return Loop(self.program, roots_of(self.program).tolist(), self.program.signed)

    @property
    def size(self) -> tuple[int, int]:
        """Operations per row, and slots, of the form of the program that runs."""
        if self.staged is None:
            return self.loop.condensed.operations, self.loop.condensed.slots
        return self.staged.head.operations + self.staged.program.operations, self.staged.program.slots

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Values:
        """Values for int8 rows of evidence (1, 0, −1); `lost` are the rows where rounding alone exceeds `rtol`."""
        values, magnitude, lost = self._run(evidence, rtol)
        if len(values.uncertain(rtol)):
            certificate = self.certificate
            values.lost = np.isfinite(magnitude) & (magnitude > 1e3 * certificate.floor / certificate.gamma)
            if lost is not None:
                values.lost |= lost
        return values

    def absolute_errors(self, evidence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values in float64 and bounds on their absolute errors, also where not even the sign is certain."""
        values, magnitude, _ = self._run(evidence, _ANY)
        errors = np.empty(len(evidence))
        certificate = self.certificate
        absolute_errors(values.mantissa, magnitude, certificate.gamma, certificate.floor, errors)
        scale = np.ldexp(1.0, np.clip(values.exponent, -2000, 2000).astype(np.int32))
        return values.floats(), np.where(np.isnan(errors), np.inf, errors) * scale

    def write_certified(self, evidence: np.ndarray, answer: Answer, numbers: np.ndarray) -> np.ndarray:
        """Write value / total for the rows that float64 certifies; return the other rows.

        Only for programs without determinants. The numbers are those that `evaluate` computes, written by one kernel
        without arrays in between. Evidence need not have been checked: no row with a code other than 1, 0 and −1 is
        certified.
        """
        every = self.loop.write_certified(evidence, answer, numbers)
        return _NO_ROWS if every else np.flatnonzero(np.isnan(numbers))

    def _run(self, evidence: np.ndarray, rtol: float) -> tuple[Values, np.ndarray, np.ndarray | None]:
        """Values, their magnitudes, and the rows with a determinant that loses all its digits in float64."""
        exponent, lost = 0, None
        if self.staged is None:
            out = self.loop.values(evidence)
        else:
            out, lost = self._staged_values(evidence, rtol)
            exponent = self.staged.exponent
        value, magnitude = out[0, : len(evidence)], out[-1, : len(evidence)]
        bound = np.empty(len(evidence))
        certificate = self.certificate
        certify(value, magnitude, certificate.gamma, certificate.floor, bound)
        # A copy: the magnitude of a monotone circuit is the same array, and values will be divided in place.
        return Values(value.copy(), np.full(len(evidence), exponent), bound), magnitude, lost

    def _staged_values(self, evidence: np.ndarray, rtol: float) -> tuple[np.ndarray, np.ndarray]:
        """Value and, if the program is signed, magnitude of every row; and the rows with an unknown determinant."""
        assert self.staged is not None
        # Rows per block: many, as determinants of the same size are computed together; but slots should stay in cache.
        most = STEP * max(1, min(32, _BESIDE_MATRICES // (8 * STEP * self.staged.program.slots)))
        out, lost = self.staged.run(rtol, evidence, min(most, -(-len(evidence) // STEP) * STEP))
        return out, lost[: len(evidence)]


class ScaledProgram:
    """A program over scaled numbers m · 2^(256·e).

    Parameters
    ----------
    float64 : Float64
        The evaluator in float64, for its determinants.
    program : Program
        The program; values may share slots.
    roots : slots
        The results, and their magnitudes.
    """

    def __init__(self, float64: Float64, program: Program, roots: Sequence[int] | np.ndarray):
        self.float64, self.program, self.roots = float64, program, np.array(roots)

    @cached_property
    def constants(self) -> Constants:
        """Weights and leaves as scaled numbers."""
        return split_constants(self.program)

    def gamma(self, evidence: np.ndarray | SoftRows) -> float:
        """The relative error by rounding, relative to magnitudes. Scaled numbers do not underflow.

        Weighing a leaf takes two roundings more. A term has one leaf of each variable.
        """
        soft = isinstance(evidence, SoftRows)
        return rounding_bound(self._roundings + 2.0 * self.program.n_variables + 1.0 if soft else self._roundings)

    @cached_property
    def _roundings(self) -> float:
        """The most roundings of a term of a result."""
        return float(rounding_counts(self.program)[self.roots].max(initial=0.0))

    def run(self, evidence: np.ndarray | SoftRows, rtol: float) -> tuple[np.ndarray, np.ndarray]:
        """Mantissas and exponents of the results, roots × rows."""
        if isinstance(evidence, SoftRows):
            return self._run_soft(evidence)
        staged, shape = self.float64.staged, (len(self.roots), len(evidence))
        mantissas, exponents = np.empty(shape), np.empty(shape, np.int64)
        common = instructions_of(self.program), self.constants
        rows = (evidence, self.roots, mantissas, exponents, self.program.slots)
        if staged is None:
            run_scaled(*common, *rows)
        else:
            wanted = budget.of_determinant(rtol)
            staged.dets.refine(wanted)
            run_scaled_staged(*common, staged.determinants(wanted), *rows)
        return mantissas, exponents

    def _run_soft(self, rows: SoftRows) -> tuple[np.ndarray, np.ndarray]:
        """`run` of rows with likelihoods, by which the leaves are weighed; only for programs without determinants."""
        code, shape = instructions_of(self.program), (len(self.roots), 1)
        found = np.empty((len(rows), *shape)), np.empty((len(rows), *shape), np.int64)
        for row, likelihoods in enumerate(rows.likelihoods):
            constants, codes = weighed_leaves(self.constants, likelihoods), rows.codes[row : row + 1]
            run_scaled(code, constants, codes, self.roots, found[0][row], found[1][row], self.program.slots)
        mantissas, exponents = (np.ascontiguousarray(part[:, :, 0].T) for part in found)
        return mantissas, exponents


class Scaled(ScaledProgram):
    """The evaluator over scaled numbers: for rows that leave the range of doubles.

    Parameters
    ----------
    float64 : Float64
        The evaluator in float64, with the program and its determinants.
    """

    def __init__(self, float64: Float64):
        program = schedule(float64.program)
        super().__init__(float64, program, (program.value, program.magnitude))

    def evaluate(self, evidence: np.ndarray | SoftRows, rtol: float) -> Values:
        """Values for int8 rows of evidence (1, 0, −1), or rows with likelihoods."""
        mantissas, exponents = self.run(evidence, rtol)
        # The magnitude with the exponent of the value. If they are more than the range of doubles apart, it becomes inf
        # (then nothing is known) or 0.
        gap = np.clip(exponents[1] - exponents[0], -3, 3) * RADIX
        with np.errstate(over="ignore", invalid="ignore"):
            magnitude = np.ldexp(mantissas[1], gap.astype(np.int32))
        bound = np.empty(len(evidence))
        certify(mantissas[0], magnitude, self.gamma(evidence), 0.0, bound)
        mantissa, binary = np.frexp(mantissas[0])
        exponent = np.where(mantissa == 0.0, 0, exponents[0] * RADIX + binary)
        return Values(mantissa, exponent, bound)


def roots_of(program: Program) -> np.ndarray:
    """The slots of the value and, if terms may cancel, of its magnitude."""
    return np.array([program.value, program.magnitude] if program.signed else [program.value])


def split_constants(program: Program) -> Constants:
    """The weights and the table of leaves as scaled numbers: mantissas and exponents of each."""
    weights, weight_exponents = split_numbers(program.numbers, RADIX)

    def leaf(i: int) -> Number:
        pair = program.leaf_numbers[i // 3]
        return add(*pair) if i % 3 == 2 else pair[i % 3]

    leaves, leaf_exponents = split_rounded(program.leaf_table.ravel(), leaf, RADIX)
    table, table_exponents = leaves.reshape(-1, 3), leaf_exponents.reshape(-1, 3)
    return Constants(weights, weight_exponents, program.leaf_variable, table, table_exponents)


def weighed_leaves(constants: Constants, likelihoods: np.ndarray) -> Constants:
    """The constants of a program in which λ0·ȳ is put for every ȳ, and λ1·z for every z (see `evaluate.soft`)."""
    variable = constants.leaf_variable
    at = np.flatnonzero((variable >= 0) & (likelihoods != 1.0).any(axis=1)[variable])
    factor, shift = split_doubles(likelihoods[variable[at]], RADIX)
    table, exponents = constants.leaf_table.copy(), constants.leaf_exponents.copy()
    terms, of_terms = table[at, :2] * factor, exponents[at, :2] + shift
    top = of_terms.max(axis=1, keepdims=True)
    total = np.ldexp(terms, RADIX * np.clip(of_terms - top, -6, 0).astype(np.int32)).sum(axis=1, keepdims=True)
    table[at], exponents[at] = split_doubles(
        np.hstack([terms, total]), RADIX, RADIX * np.maximum(np.hstack([of_terms, top]), ZERO_EXPONENT // RADIX)
    )
    return constants._replace(leaf_table=table, leaf_exponents=exponents)

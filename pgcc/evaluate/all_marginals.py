"""All marginals of a circuit: from one forward and one reverse pass of a homogenized program, or one by one.

A reverse pass runs in float64 or over scaled numbers. A marginal whose bound is too large is marked as uncertain.
Programs with determinants are in `determinants.reverse_pass`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pgcc.certify import budget
from pgcc.determinants.reverse_pass import StagedMarginals, has_partials
from pgcc.evaluate.direct import Float64, ScaledProgram
from pgcc.evaluate.soft import SoftRows
from pgcc.ir.scaled_numbers import split_doubles
from pgcc.locks import cached_property
from pgcc.program.program import ARITHMETIC, Program
from pgcc.program.reverse import result_slots, reverse
from pgcc.program.schedule import schedule
from pgcc.rings.float64.kernels.packed_evidence import STEP
from pgcc.rings.float64.loop import Loop
from pgcc.rings.kernels.scaled import RADIX
from pgcc.rings.posteriors import Posteriors, literals, read_posteriors, shares
from pgcc.rings.values import Values
from pgcc.rings.zeros import ReverseZeros, Zeros

# Rows per block. With fewer, more values stay in the cache; with more, decoding an instruction costs less.
_LANES = 2 * STEP
# The most queries that are evaluated together, and their bytes.
_QUERIES, _MOST_BYTES = 1 << 13, 1 << 26


def find_reverse(float64: Float64, outs: np.ndarray) -> Reverse | StagedMarginals | None:
    """The reverse pass in float64; None if there are determinants that it cannot differentiate (`has_partials`)."""
    if not float64.program.has_det:
        return Reverse(float64.program, outs)
    if len(outs) or not has_partials(float64.program):
        return None
    assert float64.staged is not None
    return StagedMarginals(float64.staged)


def find_reverse_zeros(
    reverse: Reverse | StagedMarginals | None, zeros: Zeros, closed: Callable[[np.ndarray], np.ndarray]
) -> ReverseZeros | None:
    """The joint probabilities that are exactly 0; None if there are determinants, or numbers below 0.

    (A joint probability that is 0 makes a posterior 0 if the evidence is possible. Without negative numbers it is, if
    it has a possible term.)
    """
    if not isinstance(reverse, Reverse) or reverse.forward.signed:
        return None
    return ReverseZeros(reverse.program, result_slots(reverse.program).tolist(), zeros, reverse.outs, closed)


def find_scaled_reverse(float64: Float64, reverse: Reverse | StagedMarginals | None) -> ScaledReverse | None:
    """The reverse pass over scaled numbers; None if there are determinants."""
    return ScaledReverse(float64, reverse.program, reverse.outs) if isinstance(reverse, Reverse) else None


def with_outs(evidence: np.ndarray, outs: np.ndarray) -> np.ndarray:
    """Rows of codes, with a further column for each of `outs`: 1 where it is out, 0 where it is in."""
    codes = evidence[:, outs]
    return np.hstack([evidence, np.where(codes < 0, codes, 1 - codes)]) if len(outs) else evidence


class Reverse:
    """All marginals of a homogenized program without determinants (as `lower` makes it), in float64.

    outs : the variables for which the probability of being out is wanted, too, after those of all variables.
    """

    def __init__(self, program: Program, outs: np.ndarray):
        self.forward, self.outs = program, outs

    @cached_property
    def program(self) -> Program:
        """The reverse pass, which computes joint probabilities and the root."""
        return reverse(self.forward, self.outs.tolist()).expect(*ARITHMETIC)

    @cached_property
    def _loop(self) -> Loop:
        return Loop(self.program, result_slots(self.program).tolist(), self.forward.signed, _LANES)

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Posteriors:
        """Posteriors for int8 rows of evidence (1, 0, −1)."""
        certificate = self._loop.certificate
        floor = np.full(len(evidence), certificate.floor)
        asked = with_outs(evidence, self.outs)
        read, found = self._loop.values(evidence)[:, : len(evidence)], Posteriors.empty(*asked.shape)
        read_posteriors(read, asked, self.forward.signed, certificate.gamma, floor, rtol, found)
        return found


class ScaledReverse(ScaledProgram):
    """All marginals of a homogenized program without determinants, over scaled numbers: a reverse pass by adjoints."""

    def __init__(self, float64: Float64, program: Program, outs: np.ndarray):
        self.outs, program = outs, schedule(program)
        super().__init__(float64, program, result_slots(program))

    def evaluate(self, evidence: np.ndarray | SoftRows, rtol: float) -> Posteriors:
        """Posteriors for int8 rows of evidence (1, 0, −1), or rows with likelihoods."""
        codes, likelihoods = evidence if isinstance(evidence, SoftRows) else (evidence, None)
        asked, (mantissas, exponents) = with_outs(codes, self.outs), self.run(evidence, rtol)
        n = asked.shape[1]
        if likelihoods is not None:  # Pr(evidence, X_i = 1) is λ1·∂F/∂z_i, and Pr(evidence, X_i = 0) is λ0·∂F/∂ȳ_i
            of_results = np.hstack([likelihoods[:, :, 1], likelihoods[:, self.outs, 0]])
            factor, shift = split_doubles(of_results.T, RADIX)
            for first in range(0, len(mantissas), n + 1):
                mantissas[first : first + n] *= factor
                exponents[first : first + n] += shift
        found, floor = Posteriors.empty(*asked.shape), np.zeros(len(codes))
        read = self._near_one(mantissas, exponents, n)
        read_posteriors(read, asked, self.float64.program.signed, self.gamma(evidence), floor, rtol, found)
        return found

    @staticmethod
    def _near_one(mantissas: np.ndarray, exponents: np.ndarray, root: int) -> np.ndarray:
        """The results as doubles; each row is divided by a power of two, so that its root is about 2^512.

        What is so small that it loses digits here is too small for a double once it is divided by the root.
        """
        gap = np.clip(exponents - exponents[root], -16, 8) * RADIX - np.frexp(mantissas[root])[1] + 512
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(mantissas, gap.astype(np.int32))


class OneByOne:
    """Marginals as quotients of two values, one variable at a time: for every kind of circuit.

    (It need not be slow: some determinants have one row per observed variable, and n of those may cost less than one
    inverse.)

    Parameters
    ----------
    values : function
        g of int8 rows of evidence, to a relative error.
    """

    def __init__(self, values: Callable[[np.ndarray, float], Values], outs: np.ndarray):
        self._values, self._outs = values, outs

    def evaluate(self, evidence: np.ndarray, rtol: float, known: Posteriors | None = None) -> Posteriors:
        """Posteriors for int8 rows of evidence (1, 0, −1); those that are `known` to be certain are kept.

        NaN where a value is negative, because the polynomial is no distribution.
        """
        found = Posteriors.of_observed(with_outs(evidence, self._outs)) if known is None else known
        step = max(1, _QUERIES // max(1, evidence.shape[1]))
        for first in range(0, len(evidence), step):
            rows = slice(first, first + step)
            self._put(evidence[rows], rtol, found[rows])
        return found

    def _put(self, codes: np.ndarray, rtol: float, found: Posteriors) -> None:
        """Compute the posteriors of some rows that are not certain yet."""
        base = self._values(codes, budget.of_quotient(rtol))
        found.impossible[:] = base.mantissa == 0.0
        where = np.argwhere(~found.certain)
        step = max(1, _MOST_BYTES // max(1, codes.shape[1]))
        for first in range(0, len(where), step):
            row, variable = where[first : first + step].T
            queries = codes[row]
            column, code = (of_all[variable] for of_all in literals(codes.shape[1], self._outs))
            asked = np.arange(len(queries)), column
            contradicted = queries[asked] == 1 - code
            queries[asked] = np.where(contradicted, 1 - code, code)
            joint = self._values(queries, budget.of_quotient(rtol))
            found.numbers[row, variable] = np.where(contradicted, 0.0, shares(joint, base[row]))
        found.certain[:] = True

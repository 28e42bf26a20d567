"""Values that are proved to be exactly 0, because no term is possible: which float64 cannot tell from underflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pgcc.ir.numbers import Number
from pgcc.kernels.walk import instructions_of
from pgcc.locks import cached_property
from pgcc.program.program import Program
from pgcc.rings.kernels.zeros import ALL, NONE, Possible, run_possible
from pgcc.rings.posteriors import Posteriors, literals
from pgcc.rings.values import Values

WORD = 64


class Zeros:
    """Which of some values of a program are exactly 0.

    Parameters
    ----------
    program : Program
        As `lower` or `reverse` makes it. Of a determinant nothing is known.
    roots : slots, optional
        The values; by default, the magnitude, which is as good: if it has no possible term, the value has none.
    """

    def __init__(self, program: Program, roots: Sequence[int] | None = None):
        self.program, self.roots = program, np.array([program.magnitude] if roots is None else roots, np.int64)

    @cached_property
    def _system(self) -> Possible:
        program = self.program
        leaves = [number for pair in program.leaf_numbers for number in pair]
        nothing = np.zeros(0, np.uint64)
        return Possible(
            _nonzero(program.weights, program.numbers),
            program.leaf_variable,
            _nonzero(program.leaf_table[:, :2].ravel(), leaves).reshape(-1, 2),
            nothing, nothing, nothing,
        )  # fmt: skip

    def settle_values(self, evidence: np.ndarray, known: Values) -> Values:
        """The values that are `known`, and 0 where the only root is certainly 0."""
        zero = self.find(evidence)[:, 0]
        known.mantissa[zero], known.exponent[zero], known.bound[zero] = 0.0, 0, 0.0
        return known

    def find(self, evidence: np.ndarray) -> np.ndarray:
        """Which values are certainly 0, rows × roots (a mask), for int8 rows of evidence (1, 0, −1)."""
        out, into = _packed(evidence != 1), _packed(evidence != 0)
        found = np.empty((len(self.roots), len(out)), np.uint64)
        system = self._system._replace(words=np.empty(self.program.slots, np.uint64))
        run_possible(instructions_of(self.program), system, out, into, self.roots, found)
        return np.unpackbits(found.view(np.uint8), axis=1, bitorder="little")[:, : len(evidence)].T == 0


class ReverseZeros(Zeros):
    """Which joint probabilities of each variable with the evidence are exactly 0; only if nothing is negative.

    Parameters
    ----------
    program : Program
        As `reverse` makes it. Its roots are the joint probabilities, and that of the evidence.
    forward : Zeros
        Which values are 0.
    outs : int array
        As `reverse` has them.
    closed : function
        Rows of evidence with all that they imply.
    """

    def __init__(
        self, program: Program, roots: Sequence[int], forward: Zeros, outs: np.ndarray,
        closed: Callable[[np.ndarray], np.ndarray],
    ):  # fmt: skip
        super().__init__(program, roots)
        self.forward, self.outs, self.closed = forward, outs, closed

    def settle_posteriors(self, evidence: np.ndarray, known: Posteriors) -> Posteriors:
        """The posteriors that are `known`, and 0 where that is certain."""
        row, which = np.nonzero(~known.certain)
        count = len(evidence)
        if _words(count + len(row)) <= 2 * _words(count):  # the reverse pass has three times as many operations
            asked = np.concatenate([evidence, evidence[row]])
            column, code = literals(evidence.shape[1], self.outs)
            asked[count + np.arange(len(row)), column[which]] = code[which]
            zero = self.forward.find(self.closed(asked))[:, 0]
            joint, known.impossible = np.zeros_like(known.certain), zero[:count]
            joint[row, which] = zero[count:]
        else:
            zero = self.find(evidence)
            joint, known.impossible = zero[:, :-1] & ~known.certain, zero[:, -1]
        known.numbers[joint] = 0.0
        known.certain |= joint | known.impossible[:, None]
        return known


def _nonzero(floats: np.ndarray, numbers: Iterable[Number]) -> np.ndarray:
    """`ALL` for every number that is not 0, which may be rounded to 0 as a double; `NONE` for the others."""
    return np.where([bool(x) or n != 0 for x, n in zip(floats.tolist(), numbers, strict=True)], ALL, NONE)


def _words(bits: int) -> int:
    return -(-bits // WORD)


def _packed(mask: np.ndarray) -> np.ndarray:
    """Bits of rows as words: blocks of 64 rows × columns."""
    blocks = _words(len(mask))
    padded = np.zeros((blocks * WORD, mask.shape[1]), bool)
    padded[: len(mask)] = mask
    packed = np.packbits(padded.reshape(blocks, WORD, mask.shape[1]), axis=1, bitorder="little")
    return np.ascontiguousarray(packed.transpose(0, 2, 1)).view(np.uint64)[:, :, 0]

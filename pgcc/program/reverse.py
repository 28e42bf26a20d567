"""The reverse pass of a program is a program too.

With F the root, every value v has an adjoint v' = ∂F/∂v:

    p = Σ w·x·y    gives  x' += w·p'·y,  y' += w·p'·x
    p = Σ w·x      gives  x' += w·p'

so an adjoint is again a sum of weighted products of adjoints and values, and derivatives are run, scheduled and
bounded like any other program. Products of more than two factors are first written as products of two. So the reverse
pass need not divide by a factor, which may be 0; it costs twice as much as the forward pass.

F is homogenized: F = z_i·A + ȳ_i·B, and A = ∂F/∂z_i = Σ b·l' over the leaves l = a·ȳ_i + b·z_i is Pr(evidence, X_i = 1)
for an unobserved X_i: all marginals from one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgcc.ir.flat import starts
from pgcc.ir.numbers import Number
from pgcc.program.builder import Builder
from pgcc.program.program import DET, DETBAR, DETIN, DETMAG, LOWERED, SUM, TIMES, Code, Program
from pgcc.program.reachability import needed_slots


@dataclass(frozen=True)
class Terms:
    """The terms of all values: weight·x·y, or weight·x if y is −1, is a term of the value `of`.

    of, x, y : slots. weight : positions in the weights of a program; −1 for 1.
    """

    of: np.ndarray
    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray


def reverse(program: Program, outs: Sequence[int] = ()) -> Program:
    """Values and adjoints of a program, in slots of their own.

    outs : variables for which Pr(evidence, X_i = 0) is wanted, too.

    The children of its determinants must have no negative numbers, so that the magnitude of a child f is f, and their
    complements y must depend on no variable z (see `variables_in_complements`). A determinant D adds D'·∂D/∂f to the
    adjoint of child f, and likewise for magnitudes. The arguments of the last instruction are the slots of all results
    (`result_slots`): Pr(evidence, X_i = 1) for every variable i, Pr(evidence, X_i = 0) for those of `outs`, and the
    root; then their magnitudes if the program is signed.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> len(result_slots(reverse(lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25")))))
    3
    """
    if variables_in_complements(program):
        raise ValueError("a program whose determinants have variables in complements has no derivatives by f alone")
    forward = binarized(program)
    writer = _Reverse(forward)
    writer.differentiate_by_inside()
    roots = [forward.value, forward.magnitude] if forward.signed else [forward.value]
    return writer.finish([slot for root in roots for slot in (*writer.joints(root, outs), root)])


def variables_in_complements(program: Program) -> bool:
    """Whether a complement y of a determinant's child depends on a variable z: not on ȳ and constants alone.

    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> from pgcc.passes.homogenize import homogenize
    >>> d = pgcc.dpp(L=[[2, 1], [1, 3]])
    >>> [variables_in_complements(lower(homogenize(c))) for c in (d, d.complement())]
    [False, True]
    """
    if not program.structures:
        return False
    complements = np.concatenate([det.outside for det in program.dets])
    return bool(needed_slots(program.expect(*LOWERED), complements)[program.literals].any())


@dataclass(frozen=True)
class Adjoints:
    """The program of values and adjoints, in slots of their own.

    slot : by slot of the given program, the slot of the adjoint of its value; −1 where there is none. weight : by
    weight of the new program, the position of the same weight in the given program; −1 for 1.
    """

    program: Program
    slot: np.ndarray
    weight: np.ndarray


def adjoints(program: Program) -> Adjoints:
    """The derivatives of a program's value by every other value.

    A determinant D adds D'·∂D/∂x to the adjoint of every child x; DETBAR computes ∂D/∂x. The arguments of the last
    instruction are the root and a constant 1.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> adjoints(lower(pgcc.parse("0.5*a + 0.5"))).slot.tolist()
    [1]
    """
    forward = binarized(program)
    writer = _Reverse(forward)
    writer.differentiate_by_children()
    slots = writer.adjoints(forward.value, constants=True)[: program.slots]
    whole = writer.finish([forward.value, writer.one])
    sources = np.concatenate([np.arange(len(program.weights)), *writer.sources])
    weight = np.full(len(whole.weights), -1)
    weight[: len(sources)] = sources
    return Adjoints(whole, slots, weight)


def result_slots(program: Program) -> np.ndarray:
    """The slots of the results of a reverse pass: a joint probability per variable, and the root (see `reverse`)."""
    return program.args[program.start[-2] :].astype(np.int64)


def binarized(program: Program) -> Program:
    """The same program with a product of k ≥ 2 as k − 1 products of two, each in a slot of its own."""
    lengths = np.diff(program.start)
    copies = np.where(program.op == TIMES, np.maximum(lengths - 1, 1), 1)
    if (copies == 1).all():
        return program
    source = np.repeat(np.arange(program.instructions), copies)
    step = np.arange(len(source)) - np.repeat(np.cumsum(copies) - copies, copies)
    partial = step < copies[source] - 1  # not yet the whole product
    target = program.target[source].copy()
    target[partial] = program.slots + np.arange(partial.sum())
    chained = copies[source] > 1
    length = np.where(chained, 2, lengths[source])
    start = starts(length)
    within = np.arange(start[-1]) - np.repeat(start[:-1], length)
    owner = np.repeat(np.arange(len(source)), length)
    # the product so far, and the next factor
    place = program.start[source[owner]] + within + np.where(chained[owner], step[owner], 0)
    so_far = chained[owner] & (within == 0) & (step[owner] > 0)
    args = np.where(so_far, target[owner - 1], program.args[place])
    code = Code.assemble(
        program.op[source], target, length, args,
        np.diff(program.first_weight)[source], program.weights, program.numbers,  # a product has no weights
        program.slots + int(partial.sum()),
    )  # fmt: skip
    return replace(program, **code.columns)


def terms_of(program: Program, choices: bool = False) -> Terms:
    """The terms of sums, and of products of at most two factors: a binarized program has no other products.

    choices : instead, what a walk from the root down chooses from: the terms of sums, every factor of a product by
    itself, and the pairs f, y of a determinant.
    """
    op, lengths, weights = program.op, np.diff(program.start), np.diff(program.first_weight)
    factors, pairs = (lengths, lengths // 2) if choices else (lengths > 0, 0)
    counts = np.select([op == SUM, op == TIMES, op == DET], [weights, factors, pairs], 0)
    owner = np.repeat(np.arange(program.instructions), counts)
    j = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    kind, length = op[owner], lengths[owner]
    alone = np.select(
        [kind == SUM, kind == TIMES], [program.alone[owner], np.where(choices | (length == 1), length, 0)], 0
    )
    paired = j >= alone
    first = program.start[owner] + np.where(paired, 2 * j - alone, j)
    second = np.where(paired, first + 1, 0)
    det = kind == DET  # its number, then all f, then all y
    first[det] = (program.start[owner] + 1 + j)[det]
    second[det] = (first + length // 2)[det]
    x, y = program.args[first], np.where(paired, program.args[second], -1)
    weight = np.where(kind == SUM, program.first_weight[owner] + j, -1)
    return Terms(*(column.astype(np.int64) for column in (program.target[owner], x, y, weight)))


class _Reverse:
    """Writes adjoints after the instructions of a program.

    Attributes
    ----------
    born : int array
        By slot, the instruction that writes it.
    sources : list of int arrays
        Which weight of the program each weight of an adjoint is; −1 for 1.
    determinants : Terms
        The determinants as terms of a sum: D = 1·x·y for every child x that it is differentiated by, with y = ∂D/∂x.
        (The adjoint of x gets D'·y; that of y gets nothing, as y is no value of the forward pass.)
    one : int
        The slot of a constant 1, the adjoint of the root.
    written : list of (adjoints, values)
        The slots of adjoints, and those of their values.
    """

    def __init__(self, program: Program):
        self.program, self.terms = program.expect(*LOWERED), terms_of(program)
        self.builder = Builder(program.n_variables, program)
        self.born = np.zeros(program.slots, np.int64)
        self.born[program.target] = np.arange(program.instructions)
        self.sources: list[np.ndarray] = []
        self.determinants = Terms(*np.zeros((4, 0), np.int64))
        self.one = self.builder.leaf(-1, 1, 0)
        self.written: list[tuple[np.ndarray, np.ndarray]] = []

    def differentiate_by_children(self) -> None:
        """Compute the derivatives of every determinant by its children f and their complements y."""
        for det in self.program.dets:
            first = self.builder.emit(DETBAR, [det.det, *det.slots.tolist()], width=len(det.slots))
            self._differentiate(det.target, det.slots, first)

    def differentiate_by_inside(self) -> None:
        """Compute the derivatives of every determinant by its children f, and the magnitudes of these derivatives.

        The derivative of the magnitude of a determinant by f is the magnitude of its derivative by f.
        """
        magnitude = {int(one.slots[0]): one.target for one in self.program.det_instructions if one.op == DETMAG}
        for det in self.program.dets:
            k = len(det.inside)
            first = self.builder.emit(DETIN, [det.det, *det.slots.tolist()], width=2 * k)
            self._differentiate(det.target, det.inside, first)
            self._differentiate(magnitude[det.target], det.inside, first + k)

    def _differentiate(self, at: int, children: np.ndarray, first: int) -> None:
        """The derivatives of the value in slot `at` by these children are in as many slots from `first` on."""
        k, known = len(children), self.determinants
        columns = (np.full(k, at), children, first + np.arange(k), np.full(k, -1))
        self.determinants = Terms(*map(np.append, (known.of, known.x, known.y, known.weight), columns))

    def joints(self, root: int, outs: Sequence[int]) -> list[int]:
        """Slots of ∂root/∂z_i for every variable i: Σ b·l' over the leaves l = a·ȳ_i + b·z_i; and of ∂root/∂ȳ_i."""
        program, adjoint = self.program, self.adjoints(root)
        slots, numbers = program.leaves
        results = program.n_variables + len(outs)
        place = {v: program.n_variables + i for i, v in enumerate(outs)}
        read: list[list[int]] = [[] for _ in range(results)]
        weights: list[list[Number]] = [[] for _ in range(results)]
        columns = (adjoint[slots], program.leaf_variable[numbers], numbers)
        for above, v, leaf in zip(*(column.tolist() for column in columns), strict=True):
            if v >= 0 and above >= 0:
                a, b = program.leaf_numbers[leaf]
                for to, number in ((v, b), (place.get(v, -1), a)):
                    if to >= 0 and number != 0:
                        read[to].append(above)
                        weights[to].append(number)
        return list(map(self.builder.sum, read, weights))

    def adjoints(self, root: int, constants: bool = False) -> np.ndarray:
        """Instructions for the adjoint of every value that the root depends on; their slots, −1 for others."""
        adjoint, contributions = self._contributions(root, constants)
        to, of, other, weight = contributions
        paired = other >= 0
        order = np.lexsort((paired, -self.born[to]))  # parents first; single values before pairs
        to, of, other, weight, paired = (a[order] for a in (to, of, other, weight, paired))
        begin = np.flatnonzero(np.append(True, to[1:] != to[:-1])[: len(to)])
        counts = np.diff(np.append(begin, len(to)))
        product = (counts == 1) & paired[begin] & (weight[begin] < 0)  # 1·x·y
        width = np.where(paired, 2, 1)
        args = np.empty(int(width.sum()), np.int64)
        at = np.cumsum(width) - width
        args[at] = adjoint[of]
        args[at[paired] + 1] = other[paired]
        lengths = np.add.reduceat(width, begin) if len(begin) else begin
        weight = weight[~np.repeat(product, counts)]  # a product has none
        numbers = self.program.numbers
        self.sources.append(weight)
        self.builder.emit_all(
            np.where(product, TIMES, SUM), adjoint[to[begin]], lengths, args, np.where(product, 0, counts),
            np.append(self.program.weights, 1.0)[weight],  # may differ from the numbers by powers of two (`Staged`)
            [1 if w < 0 else numbers[w] for w in weight.tolist()],
        )  # fmt: skip
        return adjoint

    def _contributions(self, root: int, constants: bool) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The slots of adjoints, and (to, of, other, weight): the adjoint of `to` gets weight · (that of `of`) · other.

        constants : whether the adjoints of constants are wanted.
        """
        program, terms, dets = self.program, self.terms, self.determinants
        second = terms.y >= 0
        of = np.concatenate([terms.of, terms.of[second], dets.of])
        to = np.concatenate([terms.x, terms.y[second], dets.x])
        other = np.concatenate([terms.y, terms.x[second], dets.y])
        weight = np.concatenate([terms.weight, terms.weight[second], dets.weight])
        needed = self._reachable(root, of, to) if program.signed else np.ones(program.slots, bool)
        if not constants:
            slots, numbers = program.leaves
            needed[slots[program.leaf_variable[numbers] < 0]] = False
            needed[root] = True
        adjoint = np.full(program.slots, -1)
        adjoint[needed] = self.builder.new_slots(int(needed.sum())) + np.arange(needed.sum())
        self.written.append((adjoint[needed], np.flatnonzero(needed)))
        adjoint[root] = self.one
        kept = needed[to] & needed[of] & (to != root)
        return adjoint, (to[kept], of[kept], other[kept], weight[kept])

    def _reachable(self, root: int, of: np.ndarray, to: np.ndarray) -> np.ndarray:
        """The values that the root depends on: those that a path of edges of[j] → to[j] leads to."""
        reached = bytearray(self.program.slots)
        reached[root] = 1
        order = np.argsort(-self.born[of])  # parents first
        for above, below in zip(of[order].tolist(), to[order].tolist(), strict=True):
            if reached[above]:
                reached[below] = 1
        return np.frombuffer(reached, np.bool_).copy()

    def finish(self, read: list[int]) -> Program:
        """The program; `read` : the slots of what it computes."""
        total = self.builder.sum(read, [1] * len(read))
        adjoint_of = np.full(self.builder.slots, -2)
        adjoint_of[: self.one + 1] = -1
        for adjoints, values in self.written:
            adjoint_of[adjoints] = values
        return self.builder.finish(total, total, adjoint_of)

"""The reverse pass of a program is a program too.

With F the root, every value v has an adjoint v' = ∂F/∂v:

    p = Σ w·x·y    gives  x' += w·p'·y,  y' += w·p'·x
    p = Σ w·x      gives  x' += w·p'

so an adjoint is again a sum of weighted products, of adjoints and values, and what runs, schedules and bounds programs
does the same for their derivatives. Products of many are first written as products of two, which is what keeps a
reverse pass from dividing by a child that may be 0, at twice the cost of the forward one.

F is homogenized: F = z_i·A + ȳ_i·B, and A = ∂F/∂z_i = Σ b·l' over the leaves l = a·ȳ_i + b·z_i is Pr(evidence, X_i = 1)
for an unobserved X_i: all marginals from one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pgcc.ir.flat import starts
from pgcc.program.builder import Builder, Sum
from pgcc.program.program import DET, DETBAR, DETIN, DETMAG, LEAF, LOWERED, SUM, TIMES, Program
from pgcc.program.schedule import needed_slots


@dataclass(frozen=True)
class Terms:
    """The terms of all values: number j is weight[j]·x[j]·y[j] of the value `of[j]`; y = −1 for weight[j]·x[j] alone.

    weight : positions in the weights of a program; −1 for 1.
    """

    of: np.ndarray
    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray


def reverse(program: Program) -> Program:
    """Values and adjoints of a program, in slots of their own.

    The children of its determinants have no negative numbers, and their complements y depend on no variable z (see
    `variables_in_complements`): a determinant D adds D'·∂D/∂f to the adjoint of child f,
    and the same of their magnitudes to that of its magnitude, which is f too. The last instruction adds up all results,
    and so names their slots (`result_slots`): Pr(evidence, X_i = 1) for every variable i, and the root; then their
    magnitudes if the program is signed.

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
    return writer.finish([slot for root in roots for slot in (*writer.joints(root), root)])


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
    complements = np.concatenate([children[len(children) // 2 :] for children in program.det_children])
    return bool(needed_slots(program.expect(*LOWERED), complements)[program.literals].any())


@dataclass(frozen=True)
class Adjoints:
    """The program of values and adjoints, in slots of their own.

    slot : of the adjoint of every value; −1 where there is none. weight : which weight of the program that was reversed
    each weight is; −1 for 1.
    """

    program: Program
    slot: np.ndarray
    weight: np.ndarray


def adjoints(program: Program) -> Adjoints:
    """The derivatives of a program's value by every other value.

    A determinant D is affine in every child: what reaches it goes to child x times ∂D/∂x, which DETBAR computes. The
    last instruction reads the root and a constant 1.

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
    return replace(
        program,
        op=program.op[source],
        target=target.astype(np.int32),
        start=start,
        args=args.astype(np.int32),
        first_weight=np.append(program.first_weight[source], program.first_weight[-1]),
        slots=program.slots + int(partial.sum()),
    )


def terms_of(program: Program) -> Terms:
    """The terms of sums, and of products of at most two, as a binarised program has no others."""
    lengths, weights = np.diff(program.start), np.diff(program.first_weight)
    counts = np.select([program.op == SUM, program.op == TIMES], [weights, lengths > 0], 0)
    owner = np.repeat(np.arange(program.instructions), counts)
    j = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    product = program.op[owner] == TIMES
    alone = np.where(product, lengths[owner] == 1, program.alone[owner])
    paired = j >= alone
    first = program.start[owner] + np.where(paired, 2 * j - alone, j)
    x, y = program.args[first], np.where(paired, program.args[np.where(paired, first + 1, 0)], -1)
    weight = np.where(product, -1, program.first_weight[owner] + j)
    return Terms(*(column.astype(np.int64) for column in (program.target[owner], x, y, weight)))


def joint_sums(builder: Builder, program: Program, adjoint: np.ndarray) -> list[int]:
    """Slots of Σ b·l' over the leaves l = a·ȳ_i + b·z_i, for every variable i.

    adjoint : the slot of each value's adjoint; −1 where there is none.
    """
    slots, numbers = program.leaves
    of_variable = [Sum() for _ in range(program.n_variables)]
    columns = (adjoint[slots], program.leaf_variable[numbers], numbers)
    for above, v, leaf in zip(*(column.tolist() for column in columns), strict=True):
        b = program.leaf_numbers[leaf][1]
        if v >= 0 and above >= 0 and b != 0:
            of_variable[v].add(b, above)
    return [builder.sum(terms) for terms in of_variable]


class _Reverse:
    """Writes adjoints after the instructions of a program."""

    def __init__(self, program: Program):
        self.program, self.terms = program.expect(*LOWERED), terms_of(program)
        self.builder = Builder(program.n_variables, program)
        self.born = np.zeros(program.slots, np.int64)  # which instruction writes each value
        self.born[program.target] = np.arange(program.instructions)
        self.sources: list[np.ndarray] = []  # of the weights of adjoints
        self.determinants: tuple[np.ndarray, ...] = (np.zeros(0, np.int64),) * 4  # of, to, derivative, weight
        self.below: dict[int, list[int]] = {}  # by slot of a determinant, the children that it is differentiated by
        self.one = self.builder.leaf(-1, 1, 0)

    def differentiate_by_children(self) -> None:
        """Every determinant's derivatives by f and by y."""
        for at, args in self._determinants(DET):
            first = self.builder.emit(DETBAR, args.tolist(), width=len(args) - 1)
            self._contribute(at, args[1:], first)

    def differentiate_by_inside(self) -> None:
        """Its derivatives by f, and their magnitudes, which are what reaches f from the magnitude of a determinant."""
        magnitude = {int(args[1]): at for at, args in self._determinants(DETMAG)}
        for at, args in self._determinants(DET):
            k = len(args) // 2
            first = self.builder.emit(DETIN, args.tolist(), width=2 * k)
            self._contribute(at, args[1 : 1 + k], first)
            self._contribute(magnitude[at], args[1 : 1 + k], first + k)

    def _determinants(self, op: int) -> list[tuple[int, np.ndarray]]:
        """Targets and arguments."""
        program = self.program
        where = np.flatnonzero(program.op == op).tolist()
        return [(int(program.target[i]), program.args[program.start[i] : program.start[i + 1]]) for i in where]

    def _contribute(self, at: int, children: np.ndarray, derivative: int) -> None:
        """What reaches the determinant at a slot reaches every child times its derivative."""
        self.below[at] = children.tolist()
        columns = (np.full(len(children), at), children, derivative + np.arange(len(children)))
        self.determinants = tuple(map(np.append, self.determinants, (*columns, np.full(len(children), -1))))

    def joints(self, root: int) -> list[int]:
        """Slots of ∂root/∂z_i for every variable i."""
        return joint_sums(self.builder, self.program, self.adjoints(root))

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
            np.where(product, TIMES, SUM), adjoint[to[begin]], args, lengths,
            [1 if w < 0 else numbers[w] for w in weight.tolist()],
            np.append(self.program.weights, 1.0)[weight],  # as they are: they may be scaled (`Staged`)
            np.where(product, 0, counts),
        )  # fmt: skip
        return adjoint

    def _contributions(self, root: int, constants: bool) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """(to, of, other, weight): the adjoint of `to` gets weight · (adjoint of `of`) · other."""
        terms, needed = self.terms, self._needed(root, constants)
        adjoint = np.full(self.program.slots, -1)
        adjoint[needed] = self.builder.new_slots(int(needed.sum())) + np.arange(needed.sum())
        adjoint[root] = self.one
        second, dets = terms.y >= 0, self.determinants
        of = np.concatenate([terms.of, terms.of[second], dets[0]])
        to = np.concatenate([terms.x, terms.y[second], dets[1]])
        other = np.concatenate([terms.y, terms.x[second], dets[2]])
        weight = np.concatenate([terms.weight, terms.weight[second], dets[3]])
        kept = needed[to] & needed[of] & (to != root)
        return adjoint, (to[kept], of[kept], other[kept], weight[kept])

    def _needed(self, root: int, constants: bool) -> np.ndarray:
        """The values that the root depends on, with or without constants."""
        program = self.program
        needed = np.ones(program.slots, bool)
        if program.signed:
            reached = bytearray(program.slots)
            reached[root] = 1
            start, args = program.start.tolist(), program.args.tolist()
            above = zip(program.op.tolist()[::-1], program.target.tolist()[::-1], strict=True)
            for i, (op, at) in zip(range(program.instructions - 1, -1, -1), above, strict=True):
                if op != LEAF and reached[at]:
                    for x in self.below[at] if op >= DET else args[start[i] : start[i + 1]]:
                        reached[x] = 1
            needed = np.frombuffer(reached, np.bool_).copy()
        if not constants:
            slots, numbers = program.leaves
            needed[slots[program.leaf_variable[numbers] < 0]] = False
            needed[root] = True
        return needed

    def finish(self, read: list[int]) -> Program:
        """The program; `read` : the slots of what it computes."""
        total = self.builder.emit(SUM, read, [1] * len(read))
        return self.builder.finish(total, total)

"""The reverse pass of a program is a program too.

With F the root, every value v has an adjoint v' = ∂F/∂v:

    p = Σ w·x·y    gives  x' += w·p'·y,  y' += w·p'·x
    p = Σ w·x      gives  x' += w·p'

so an adjoint is again a sum of weighted products, of adjoints and values, and what runs, schedules and bounds programs
does the same for their derivatives. Products of many are first written as products of two, which is what keeps a
reverse pass from dividing by a child that may be 0, at twice the cost of the forward one.

F is homogenised: F = z_i·A + ȳ_i·B, and A = ∂F/∂z_i = Σ b·l' over the leaves l = a·ȳ_i + b·z_i is Pr(evidence, X_i = 1)
for an unobserved X_i: all marginals from one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pgcc.ir.numbers import Number, nearest_float
from pgcc.program.program import DET, DETBAR, DETIN, DETMAG, DOT, LEAF, LOWERED, MORE, SUM, TIMES, Program


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
    and the same of their magnitudes to that of its magnitude, which is f too. The last instruction adds up what can be
    read off the program, and so names the slots (`readings`): Pr(evidence, X_i = 1) for every variable i, and the root;
    then their magnitudes if the program is signed.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> len(readings(reverse(lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25")))))
    3
    """
    if variables_in_complements(program):
        raise ValueError("a program whose determinants have variables in complements has no derivatives by f alone")
    forward = binarized(program)
    writer = _Writer(forward)
    writer.differentiate_by_inside()
    roots = [forward.value, forward.magnitude] if forward.signed else [forward.value]
    return writer.finish([slot for root in roots for slot in (*writer.joints(root), root)])


def variables_in_complements(program: Program) -> bool:
    """Whether a complement y of a determinant's child depends on a variable z: not on ȳ and constants alone.

    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> from pgcc.passes.padding import homogenize
    >>> d = pgcc.dpp(L=[[2, 1], [1, 3]])
    >>> [variables_in_complements(lower(homogenize(c))) for c in (d, d.complement())]
    [False, True]
    """
    if not program.structures:
        return False
    depends = np.zeros(program.slots, bool)
    for i, op in enumerate(program.op.tolist()):
        args, at = program.args[program.start[i] : program.start[i + 1]], program.target[i]
        if op == LEAF:
            depends[at] = program.leaf_variable[args[0]] >= 0 and program.leaf_numbers[args[0]][1] != 0
        elif op in (DET, DETMAG):
            children = args[1:]
            if op == DET and depends[children[len(children) // 2 :]].any():
                return True
            depends[at] = depends[children].any()
        elif op in (SUM, DOT, TIMES):
            depends[at] = depends[args].any()
        elif op == MORE:
            depends[at] |= depends[args].any()
        else:
            raise ValueError(f"operation {op} is none of a circuit's program")
    return False


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
    writer = _Writer(forward)
    writer.differentiate_by_children()
    slots = writer.adjoints(forward.value, constants=True)[: program.slots]
    whole = writer.finish([forward.value, writer.one])
    sources = [np.arange(len(program.weights)), *writer.sources]
    weight = np.full(len(whole.weights), -1)
    weight[: sum(map(len, sources))] = np.concatenate(sources)
    return Adjoints(whole, slots, weight)


def readings(program: Program) -> np.ndarray:
    """The slots of what a reversed program computes."""
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
    start = np.concatenate([[0], np.cumsum(length)])
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
        start=start.astype(np.int64),
        args=args.astype(np.int32),
        first_weight=program.first_weight[source],
        slots=program.slots + int(partial.sum()),
    )


def terms_of(program: Program) -> Terms:
    """The terms of a binarised program."""
    parts: list[tuple[np.ndarray, ...]] = []
    lengths = np.diff(program.start)
    for kind in (SUM, DOT, MORE, TIMES):
        which = np.flatnonzero(program.op == kind)
        stride = 2 if kind in (DOT, MORE) else lengths[which] if kind == TIMES else 1
        count = lengths[which] // np.maximum(stride, 1)
        owner = np.repeat(which, count)
        j = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        width = np.repeat(np.broadcast_to(stride, len(which)), count)
        first = program.start[owner] + j * width
        x, y = program.args[first], np.where(width == 2, program.args[first + width - 1], -1)
        weight = np.full(len(owner), -1) if kind == TIMES else program.first_weight[owner] + j
        parts.append((program.target[owner], x, y, weight))
    return Terms(*(np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)))


class _Writer:
    """Writes adjoints after the instructions of a program."""

    def __init__(self, program: Program):
        self.program, self.terms = program.expect(*LOWERED), terms_of(program)
        self.slots = program.slots
        born = np.zeros(program.slots, np.int64)
        born[program.target[::-1]] = np.arange(program.instructions)[::-1]  # the first write of each value
        self.born = born
        self.numbers, self.weights = list(program.numbers), [program.weights]
        self.leaf_variable, self.leaf_numbers = program.leaf_variable.tolist(), list(program.leaf_numbers)
        self.sources: list[np.ndarray] = []  # of the weights of adjoints
        self.determinants: tuple[np.ndarray, ...] = (np.zeros(0, np.int64),) * 4  # of, to, derivative, weight
        self.below: dict[int, list[int]] = {}  # by slot of a determinant, the children that it is differentiated by
        self.one = self._new_slots(1)
        self.leaf_variable.append(-1)
        self.leaf_numbers.append((1, 0))
        first = len(program.numbers)
        self.op, self.target, self.lengths = [program.op], [program.target], [np.diff(program.start)]
        self.args, self.first_weight = [program.args], [program.first_weight]
        self._emit(LEAF, self.one, [len(self.leaf_numbers) - 1], first)

    def differentiate_by_children(self) -> None:
        """Every determinant's derivatives by f and by y."""
        for at, args in self._determinants(DET):
            first = self._new_slots(len(args) - 1)
            self._emit(DETBAR, first, args, len(self.program.numbers))
            self._contribute(at, args[1:], first)

    def differentiate_by_inside(self) -> None:
        """Its derivatives by f, and their magnitudes, which are what reaches f from the magnitude of a determinant."""
        magnitude = {int(args[1]): at for at, args in self._determinants(DETMAG)}
        for at, args in self._determinants(DET):
            k = len(args) // 2
            first = self._new_slots(2 * k)
            self._emit(DETIN, first, args, len(self.program.numbers))
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

    def _new_slots(self, count: int) -> int:
        self.slots += count
        return self.slots - count

    def _emit(self, op: int, target: int, args: list[int] | np.ndarray, first_weight: int) -> None:
        self.op.append(np.array([op]))
        self.target.append(np.array([target]))
        self.lengths.append(np.array([len(args)]))
        self.args.append(np.asarray(args))
        self.first_weight.append(np.array([first_weight]))

    def joints(self, root: int) -> list[int]:
        """Slots of ∂root/∂z_i for every variable i."""
        adjoint = self.adjoints(root)
        program = self.program
        leaves = np.flatnonzero(program.op == LEAF)
        number = program.args[program.start[leaves]]
        slot, variable = program.target[leaves], program.leaf_variable[number]
        of_variable: list[list[tuple[int, int]]] = [[] for _ in range(program.n_variables)]
        for s, v, leaf in zip(slot.tolist(), variable.tolist(), number.tolist(), strict=True):
            if v >= 0 and adjoint[s] >= 0 and program.leaf_numbers[leaf][1] != 0:
                of_variable[v].append((int(adjoint[s]), leaf))
        first = self._new_slots(program.n_variables)
        for v, leaves_of in enumerate(of_variable):
            self._emit(SUM, first + v, [a for a, _ in leaves_of], len(self.numbers))
            self._add_weights([program.leaf_numbers[leaf][1] for _, leaf in leaves_of])
        return list(range(first, first + program.n_variables))

    def adjoints(self, root: int, constants: bool = False) -> np.ndarray:
        """Instructions for the adjoint of every value that the root depends on; their slots, −1 for others."""
        adjoint, contributions = self._contributions(root, constants)
        to, of, other, weight = contributions
        paired = other >= 0
        order = np.lexsort((paired, -self.born[to]))  # parents first; what is linear before what is not
        to, of, other, weight, paired = (a[order] for a in (to, of, other, weight, paired))
        new = np.ones(len(to), bool)
        new[1:] = (to[1:] != to[:-1]) | (paired[1:] != paired[:-1])
        begin = np.flatnonzero(new)
        count = np.diff(np.append(begin, len(to)))
        again = np.zeros(len(begin), bool)
        again[1:] = to[begin[1:]] == to[begin[:-1]]
        alone = paired[begin] & ~again & (count == 1) & (weight[begin] < 0)
        again_next = np.append(again[1:], False)
        alone &= ~again_next
        self.op.append(np.select([~paired[begin], alone, again], [SUM, TIMES, MORE], DOT))
        self.target.append(adjoint[to[begin]])
        self.lengths.append(count * np.where(paired[begin], 2, 1))
        width = np.where(paired, 2, 1)
        at = np.cumsum(width) - width
        args = np.empty(int(width.sum()), np.int64)
        args[at] = adjoint[of]
        args[at[paired] + 1] = other[paired]
        self.args.append(args)
        self.first_weight.append(len(self.numbers) + begin)
        numbers = self.program.numbers
        self.sources.append(weight)
        self.numbers += [1 if w < 0 else numbers[w] for w in weight.tolist()]
        self.weights.append(np.append(self.program.weights, 1.0)[weight])  # as they are: they may be scaled (`Staged`)
        return adjoint

    def _add_weights(self, numbers: list[Number]) -> None:
        self.numbers += numbers
        self.weights.append(np.array([nearest_float(x) for x in numbers], np.float64))

    def _contributions(self, root: int, constants: bool) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """(to, of, other, weight): the adjoint of `to` gets weight · (adjoint of `of`) · other."""
        terms, needed = self.terms, self._needed(root, constants)
        adjoint = np.full(self.program.slots, -1)
        adjoint[needed] = self._new_slots(int(needed.sum())) + np.arange(needed.sum())
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
            leaves = np.flatnonzero(program.op == LEAF)
            constant = program.leaf_variable[program.args[program.start[leaves]]] < 0
            needed[program.target[leaves[constant]]] = False
            needed[root] = True
        return needed

    def finish(self, read: list[int]) -> Program:
        """The program; `read` : the slots of what it computes."""
        total = self._new_slots(1)
        self._emit(SUM, total, read, len(self.numbers))
        self._add_weights([1] * len(read))
        program = self.program
        op = np.concatenate(self.op).astype(np.uint8)
        return replace(
            program,
            op=op,
            target=np.concatenate(self.target).astype(np.int32),
            start=np.concatenate([[0], np.cumsum(np.concatenate(self.lengths))]).astype(np.int64),
            args=np.concatenate(self.args).astype(np.int32),
            first_weight=np.concatenate(self.first_weight).astype(np.int64),
            weights=np.concatenate(self.weights),
            leaf_variable=np.array(self.leaf_variable, np.int32),
            leaf_table=np.concatenate([program.leaf_table, [(1.0, 0.0, 1.0)]]),
            slots=self.slots,
            value=total,
            magnitude=total,
            numbers=self.numbers,
            leaf_numbers=self.leaf_numbers,
        )

"""Circuit → Program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.flat import Flat, spread, starts
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import Number, absolute, add, mul
from pgcc.program.builder import BySlot, leaf_table
from pgcc.program.det_structure import DetStructure
from pgcc.program.program import DET, DETMAG, LEAF, SUM, TIMES, Code, Program

Form = tuple[int, Number, Number]  # a·ȳ + b·z: the column of the variable, a, b; (−1, a, 0) is the constant a


def lower(circuit: Circuit, fuse: bool = True) -> Program:
    """The program of a circuit's polynomial, every value in a slot of its own (see `schedule`).

    fuse : whether sums read their products x·y in place (terms w·x·y); otherwise each product is an instruction.

    Examples
    --------
    >>> import pgcc
    >>> lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))
    <Program: 4 instructions, 7 operations, 4 slots>
    """
    with collector_paused():
        return _Lowering(circuit, fuse).program()


def lower_with_nodes(circuit: Circuit) -> tuple[Program, list[Node]]:
    """The program of a circuit, and for every instruction the node whose value or magnitude it computes."""
    with collector_paused():
        lowering = _Lowering(circuit)
        nodes = lowering.flat.nodes
        return lowering.program(), [nodes[i] for i in lowering.node.tolist()]


class _Lowering:
    """Nodes are known by their position in the flat circuit; instructions by the slot that they write.

    Attributes
    ----------
    leaf : bool array
        Which nodes are affine forms in one variable.
    fused : bool array
        Which nodes are products of two whose only parent is a sum: they are read in place, and have no slot.
    signed : bool array
        Which nodes have a magnitude of their own, because something may cancel.
    value, magnitude : int arrays
        The slots of every node's value and magnitude.
    node : int array
        The node of every instruction.
    """

    def __init__(self, circuit: Circuit, fuse: bool = True):
        self.flat, self.variables = circuit._flat, circuit.variables
        flat = self.flat
        forms = affine_forms(flat, self.variables)
        self.leaf = np.zeros(len(flat.op), bool)
        self.leaf[list(forms)] = True
        single = np.bincount(flat.child[np.repeat(flat.op == Op.SUM, flat.lengths)], minlength=len(flat.op)) == 1
        self.fused = fuse & (flat.op == Op.PRODUCT) & (flat.lengths == 2) & single & (flat.uses == 1)
        self.written = ~self.leaf & ~self.fused
        for unknown in np.setdiff1d(flat.op[self.written], (Op.SUM, Op.PRODUCT, Op.DET)).tolist():
            raise PgccError(f"internal error: nobody has said how to lower operation {unknown}; please report it")
        self.signed = self._signed(forms)
        self._find_edges()
        self._place(forms)

    def _signed(self, forms: dict[int, Form]) -> np.ndarray:
        """Forms with a negative number, sums with a negative weight, determinants, and all nodes above one of these."""
        flat = self.flat
        signed = flat.op == Op.DET
        negative = flat.doubles < 0.0
        for k in np.flatnonzero(flat.doubles == 0.0).tolist():  # 0, or rounded to it
            negative[k] = flat.weights[k] < 0
        signed[np.repeat(np.arange(len(flat.op)), np.diff(flat.first_weight))[negative]] = True
        signed[list(forms)] = [a < 0 or b < 0 for _, a, b in forms.values()]
        if not signed.any():
            return signed
        marks, child = bytearray(signed.tobytes()), flat.child.tolist()
        inner = np.flatnonzero(~self.leaf & (flat.lengths > 0))
        columns = (inner, flat.start[inner], flat.start[inner + 1])
        for i, first, last in zip(*(column.tolist() for column in columns), strict=True):
            if not marks[i] and 1 in [marks[c] for c in child[first:last]]:
                marks[i] = 1
        return np.frombuffer(marks, np.bool_)

    def _find_edges(self) -> None:
        """The edges that instructions read, with those of fused products in place of these; in order of the nodes."""
        flat = self.flat
        lengths = np.where(self.written, flat.lengths, 0)
        owner = np.repeat(np.arange(len(flat.op)), lengths)
        child = flat.child[spread(flat.start[:-1], lengths)].astype(np.int64)
        pair = self.fused[child]
        width = np.where(pair, 2, 1)
        self.of_weight, self.paired_weight = owner, pair
        self.owner, self.pair = np.repeat(owner, width), np.repeat(pair, width)
        self.child = np.repeat(child, width)
        self.child[self.pair] = flat.child[spread(flat.start[child[pair]], width[pair])]

    def _place(self, forms: dict[int, Form]) -> None:
        """The slots of values and magnitudes. Leaves are written where they are first used, each of them once."""
        flat, last = self.flat, len(self.flat.op) - 1
        number: dict[Form, int] = {}
        of_leaf = np.zeros((len(flat.op), 2), np.int64)  # the numbers of a node's value and magnitude as leaves
        of_leaf[list(forms)] = np.array([[number.setdefault(form, len(number)) for form in forms.values()]]).T
        for i in np.flatnonzero(self.leaf & self.signed).tolist():
            column, a, b = forms[i]
            of_leaf[i, 1] = number.setdefault((column, absolute(a), absolute(b)), len(number))
        read = self.leaf[self.child]
        reader, used = self.owner[read], self.child[read]
        if self.leaf[-1]:  # the circuit is a leaf
            reader, used = np.array([last]), np.array([last])
        numbers, first = np.unique(of_leaf[used].reshape(-1), return_index=True)
        order = np.argsort(first)
        numbers, first = numbers[order], first[order] // 2
        leaves = list(number)
        self.leaves = [leaves[k] for k in numbers.tolist()]
        reader = reader[first]
        before = np.bincount(reader, minlength=len(flat.op))  # the leaves that each node is the first to use
        own = np.where(self.written, 1 + self.signed, 0)
        begin = starts(before + own)
        self.slots = int(begin[-1])
        slot_of_leaf = np.zeros(len(number), np.int64)
        slot_of_leaf[numbers] = self.leaf_slots = spread(begin[:-1], before)
        self.value = begin[:-1] + before
        self.magnitude = self.value + self.signed
        self.value[self.leaf], self.magnitude[self.leaf] = slot_of_leaf[of_leaf[self.leaf]].T
        self.node = np.zeros(self.slots, np.int64)
        self.node[self.leaf_slots] = used[first]
        self.node[self.value[self.written]] = np.flatnonzero(self.written)
        self.node[self.magnitude[self.written]] = np.flatnonzero(self.written)

    def program(self) -> Program:
        """The program of the circuit."""
        flat, args, weights = self.flat, BySlot(), BySlot()
        op = np.full(self.slots, LEAF, np.uint8)
        args.add(self.leaf_slots, np.arange(len(self.leaves)))
        sums, products, dets = (self.written & (flat.op == kind) for kind in (Op.SUM, Op.PRODUCT, Op.DET))
        self._determinants(np.flatnonzero(dets), op, args)
        of_sum = sums[self.of_weight]
        weight = spread(flat.first_weight[:-1], np.where(sums, flat.lengths, 0))
        signed = self.signed.any()
        versions = [(~dets, self.value, 0), (self.signed & ~dets, self.magnitude, len(flat.weights))]
        for which, slot, first in versions if signed else versions[:1]:
            op[slot[which & sums]], op[slot[which & products]] = SUM, TIMES
            for pair in (False, True):  # single values before pairs
                read = which[self.owner] & (self.pair == pair)
                args.add(slot[self.owner[read]], slot[self.child[read]])
                owner, paired = self.of_weight[of_sum], self.paired_weight[of_sum]
                weighs = which[owner] & (paired == pair)
                weights.add(slot[owner[weighs]], first + weight[weighs])
        (read, lengths), (used, counts) = args.sorted(0, self.slots), weights.sorted(0, self.slots)
        numbers = [*flat.weights, *map(absolute, flat.weights)] if signed else flat.weights
        rounded = np.concatenate([flat.doubles, np.abs(flat.doubles)]) if signed else flat.doubles
        leaf_numbers = [(a, b) for _, a, b in self.leaves]
        code = Code.assemble(
            op, np.arange(self.slots), lengths, read, counts, rounded[used], [numbers[k] for k in used.tolist()],
            self.slots,
        )  # fmt: skip
        return Program(
            **code.columns,
            leaf_variable=np.array([column for column, _, _ in self.leaves], np.int32),
            leaf_table=leaf_table(leaf_numbers),
            leaf_numbers=leaf_numbers,
            structures=[_structure(flat.data[i]) for i in np.flatnonzero(dets).tolist()],  # in the order of `flat`
            value=int(self.value[-1]),
            magnitude=int(self.magnitude[-1]),
            n_variables=len(self.variables),
        )

    def _determinants(self, which: np.ndarray, op: np.ndarray, args: BySlot) -> None:
        """DET of the children's values, and DETMAG of their magnitudes, or of the value itself if they have none."""
        flat = self.flat
        for number, i in enumerate(which.tolist()):
            children = flat.child[flat.start[i] : flat.start[i + 1]]
            value, magnitude = self.value[i], self.magnitude[i]
            sizes = self.magnitude[children] if self.signed[children].any() else [value]
            op[value], op[magnitude] = DET, DETMAG
            for slot, read in ((value, self.value[children]), (magnitude, sizes)):
                args.add(np.full(1 + len(read), slot), np.array([number, *read]))


def _structure(data: Any) -> DetStructure:
    m0, u, v, size, counted = data
    return DetStructure((m0, u, v), size, (True,) * u.shape[1] if counted is None else counted)


def affine_forms(flat: Flat, variables: Sequence[str]) -> dict[int, Form]:
    """The nodes that are affine forms a·ȳ + b·z in one variable, or constants, by position.

    A constant term counts as a·ȳ: in a generating polynomial ȳ is 1, and a homogenized sum has no constants.
    """
    columns = {name: i for i, name in enumerate(variables)}
    op, empty = flat.op.tolist(), (flat.op == Op.PRODUCT) & (flat.lengths == 0)
    forms: dict[int, Form] = dict.fromkeys(np.flatnonzero(empty).tolist(), (-1, 1, 0))
    column = np.full(len(op), -2)  # of a variable; −1 for a constant
    constant, variable = int(Op.CONST), int(Op.VAR)
    for i, data in flat.data.items():
        if op[i] == constant:
            column[i], forms[i] = -1, (-1, data, 0)
        elif op[i] == variable:
            name, complement = data
            column[i], forms[i] = columns[name], (columns[name], int(complement), int(not complement))
    sums, of_sum = _affine_sums(flat, column)
    first = flat.first_weight[sums].tolist()
    below = flat.child[spread(flat.start[sums], flat.lengths[sums])].tolist()
    ends = starts(flat.lengths[sums]).tolist()
    for k, i in enumerate(sums.tolist()):
        a: Number = 0
        b: Number = 0
        for j, c in enumerate(below[ends[k] : ends[k + 1]], first[k]):
            _, p, q = forms[c]
            weight = flat.weights[j]
            a, b = add(a, mul(weight, p)) if p else a, add(b, mul(weight, q)) if q else b
        forms[i] = int(of_sum[k]), a, b
    return forms


def _affine_sums(flat: Flat, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of up to three constants and literals of one variable, at least one of these; and their variables.

    column : the variable of each node that is a literal, −1 for a constant, −2 for all others.
    """
    sums = np.flatnonzero((flat.op == Op.SUM) & (flat.lengths > 0) & (flat.lengths <= 3))
    lengths = flat.lengths[sums]
    if not len(sums):
        return sums, sums
    begin, below = starts(lengths)[:-1], column[flat.child[spread(flat.start[sums], lengths)]]
    variable = np.maximum.reduceat(below, begin)
    constant_or_same = (below == -1) | (below == np.repeat(variable, lengths))
    affine = (variable >= 0) & np.logical_and.reduceat(constant_or_same, begin)
    return sums[affine], variable[affine]

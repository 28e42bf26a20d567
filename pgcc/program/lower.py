"""Circuit → Program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import Number, absolute, add, mul, nearest_float
from pgcc.program.determinant import DetStructure
from pgcc.program.program import DET, DETMAG, DOT, LEAF, MORE, SUM, TIMES, Program

Leaf = tuple[str | None, Number, Number]  # a·ȳ + b·z: name, a, b


def lower(circuit: Circuit) -> Program:
    """The program of a circuit's polynomial, every value in a slot of its own (see `schedule`).

    Examples
    --------
    >>> import pgcc
    >>> lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))
    <Program: 5 instructions, 7 operations, 4 slots>
    """
    return lower_with_nodes(circuit)[0]


def lower_with_nodes(circuit: Circuit) -> tuple[Program, list[Node]]:
    """The program of a circuit, and for every instruction the node whose value or magnitude it computes.

    A sum may take two instructions: the first one has only a part of it.
    """
    with collector_paused():
        writer = _Writer(circuit)
        writer.write_all()
        return writer.finish(), [circuit.order[i] for i in writer.node]


class _Writer:
    """Collects instructions; until slots are assigned, values are numbered in the order they are made.

    Nodes are known by their position in the circuit's order.
    """

    def __init__(self, circuit: Circuit):
        self.circuit, self.links = circuit, circuit.links
        self.column = {name: i for i, name in enumerate(circuit.variables)}
        self.leaf: list[Leaf | None] = [affine_leaf(node) for node in circuit.order]
        self.fused = _fusible(circuit)
        self.value: list[int] = [-1] * len(circuit.order)
        self.magnitude: list[int] = [-1] * len(circuit.order)  # another value only where something may cancel
        self.op: list[int] = []
        self.target: list[int] = []
        self.start: list[int] = [0]
        self.args: list[int] = []
        self.first_weight: list[int] = []
        self.numbers: list[Number] = []
        self.node: list[int] = []
        self.values = 0
        self.leaves: dict[Leaf, int] = {}
        self.leaf_variable: list[int] = []
        self.leaf_numbers: list[tuple[Number, Number]] = []
        self.structures: list[DetStructure] = []

    def write_all(self) -> None:
        """Every node that is not read in place by its parent, children first."""
        for i, node in enumerate(self.circuit.order):
            if self.leaf[i] is None and not self.fused[i]:
                self._write_leaves_below(i)
                self._write(i, node)
        if self.value[-1] < 0:
            self._write_leaf(len(self.value) - 1)

    # -- one node -----------------------------------------------------------------------------------

    def _write(self, i: int, node: Node) -> None:
        """The value of a node and, where it is another number, its magnitude."""
        children = self.links[i]
        if node.op is Op.SUM:
            weights = node.weights
            self.value[i] = self.magnitude[i] = self._sum(i, weights, self.value)
            if min(weights, default=0) < 0 or not self._steady(children):
                self.magnitude[i] = self._sum(i, list(map(absolute, weights)), self.magnitude)
        elif node.op is Op.PRODUCT:
            self.value[i] = self.magnitude[i] = self._emit(TIMES, [self.value[c] for c in children], i)
            if not self._steady(children):
                self.magnitude[i] = self._emit(TIMES, [self.magnitude[c] for c in children], i)
        elif node.op is Op.DET:
            which = len(self.structures)
            self.structures.append(DetStructure.of(node))
            self.value[i] = self._emit(DET, [which, *(self.value[c] for c in children)], i)
            sizes = [self.value[i]] if self._steady(children) else [self.magnitude[c] for c in children]
            self.magnitude[i] = self._emit(DETMAG, [which, *sizes], i)
        else:  # constants and variables are leaves
            raise PgccError(f"internal error: nobody has said how to lower {node.op}; please report it")

    def _write_leaf(self, i: int) -> None:
        """The same for an affine form in one variable."""
        leaf = self.leaf[i]
        assert leaf is not None
        self.value[i] = self.magnitude[i] = self._leaf(i, leaf)
        name, a, b = leaf
        if a < 0 or b < 0:
            self.magnitude[i] = self._leaf(i, (name, absolute(a), absolute(b)))

    def _write_leaves_below(self, i: int) -> None:
        """Leaves are written where they are first used: they need no slot before."""
        for child in self.links[i]:
            if self.value[child] < 0:
                if self.fused[child]:
                    self._write_leaves_below(child)  # one level: a fused product is not below another
                else:
                    self._write_leaf(child)

    def _steady(self, children: tuple[int, ...]) -> bool:
        """Whether no child's magnitude differs from its value."""
        value, magnitude, fused = self.value, self.magnitude, self.fused
        for child in children:
            if fused[child]:
                x, y = self.links[child]
                if value[x] != magnitude[x] or value[y] != magnitude[y]:
                    return False
            elif value[child] != magnitude[child]:
                return False
        return True

    def _leaf(self, i: int, leaf: Leaf) -> int:
        value = self.leaves.get(leaf)
        if value is None:
            name, a, b = leaf
            self.leaf_variable.append(-1 if name is None else self.column[name])
            self.leaf_numbers.append((a, b))
            value = self.leaves[leaf] = self._emit(LEAF, [len(self.leaf_numbers) - 1], i)
        return value

    def _sum(self, i: int, weights: Sequence[Number], of: list[int]) -> int:
        fused, links, children = self.fused, self.links, self.links[i]
        linear: list[int] = []
        linear_weights: list[Number] = []
        pairs: list[int] = []
        pair_weights: list[Number] = []
        for weight, child in zip(weights, children, strict=True):
            if fused[child]:
                x, y = links[child]
                pairs += (of[x], of[y])
                pair_weights.append(weight)
            else:
                linear.append(of[child])
                linear_weights.append(weight)
        if not pairs:
            return self._emit(SUM, linear, i, linear_weights)
        if not linear:
            return self._emit(DOT, pairs, i, pair_weights)
        value = self._emit(SUM, linear, i, linear_weights)
        return self._emit(MORE, pairs, i, pair_weights, value)

    def _emit(
        self, op: int, args: list[int], node: int, weights: Sequence[Number] = (), target: int | None = None
    ) -> int:
        if target is None:
            target = self.values
            self.values += 1
        self.op.append(op)
        self.target.append(target)
        self.args += args
        self.start.append(len(self.args))
        self.first_weight.append(len(self.numbers))
        self.numbers += weights
        self.node.append(node)
        return target

    # -- all of them --------------------------------------------------------------------------------

    def finish(self) -> Program:
        table = [(nearest_float(a), nearest_float(b), nearest_sum(a, b)) for a, b in self.leaf_numbers]
        return Program(
            op=np.array(self.op, np.uint8),
            target=np.array(self.target, np.int32),
            start=np.array(self.start, np.int64),
            args=np.array(self.args, np.int32),
            first_weight=np.array(self.first_weight, np.int64),
            weights=np.array([nearest_float(w) for w in self.numbers], np.float64),
            leaf_variable=np.array(self.leaf_variable, np.int32),
            leaf_table=np.array(table, np.float64).reshape(-1, 3),
            structures=self.structures,
            slots=self.values,
            value=self.value[-1],
            magnitude=self.magnitude[-1],
            n_variables=len(self.circuit.variables),
            numbers=self.numbers,
            leaf_numbers=self.leaf_numbers,
        )


def nearest_sum(a: Number, b: Number) -> float:
    """The double nearest to a + b."""
    if type(a) is float and type(b) is float:
        return a + b  # IEEE addition rounds correctly
    return nearest_float(add(a, b))


def affine_leaf(node: Node) -> Leaf | None:
    """(name, a, b) if the node is a·ȳ + b·z in one variable, (None, a, 0) if it is the constant a, else None.

    A constant term counts as a·ȳ: in a generating polynomial ȳ is 1, and a homogenised sum has no constants.
    """
    match node.op:
        case Op.CONST:
            return None, node.value, 0
        case Op.VAR:
            return (node.name, 1, 0) if node.is_complement else (node.name, 0, 1)
        case Op.SUM if len(node.children) <= 3:
            return _affine_sum(node)
        case Op.PRODUCT if not node.children:
            return None, 1, 0
    return None


def _affine_sum(node: Node) -> Leaf | None:
    name: str | None = None
    a: Number = 0
    b: Number = 0
    for weight, child in zip(node.weights, node.children, strict=True):
        if child.op is Op.CONST:
            a = add(a, mul(weight, child.value))
        elif child.op is Op.VAR and name in (None, child.name):
            name = child.name
            if child.is_complement:
                a = add(a, weight)
            else:
                b = add(b, weight)
        else:
            return None
    return None if name is None else (name, a, b)


def _fusible(circuit: Circuit) -> bytearray:
    """Which nodes are products of two whose only parent is a sum: they never need a slot of their own."""
    order, links = circuit.order, circuit.links
    parents = bytearray(len(order))  # 0, 1, or 2 for "several, or not a sum"
    parents[-1] = 2
    for i, node in enumerate(order):
        if node.op is Op.SUM:
            for child in links[i]:
                parents[child] = min(2, parents[child] + 1)
        else:
            for child in links[i]:
                parents[child] = 2
    return bytearray(
        node.op is Op.PRODUCT and parents[i] == 1 and len(node.children) == 2 for i, node in enumerate(order)
    )

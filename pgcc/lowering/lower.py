"""Circuit → Program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import Number, add, mul, nearest_float
from pgcc.lowering.program import DET, DETMAG, DOT, LEAF, MORE, SUM, TIMES, Program


def lower(circuit: Circuit) -> Program:
    """The program of a circuit's polynomial, every value in a slot of its own (see `schedule`).

    Examples
    --------
    >>> import pgcc
    >>> lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))
    <Program: 5 instructions, 7 operations, 5 slots>
    """
    with collector_paused():
        writer = _Writer(circuit)
        writer.write_all()
        return writer.finish()


class _Writer:
    """Collects instructions; until slots are assigned, values are numbered in the order they are made."""

    def __init__(self, circuit: Circuit):
        self.circuit = circuit
        self.column = {name: i for i, name in enumerate(circuit.variables)}
        self.fused = _fusible(circuit)
        self.leaf: dict[Node, tuple[str | None, Number, Number]] = {}
        self.value: dict[Node, int] = {}
        self.magnitude: dict[Node, int] = {}
        self.op: list[int] = []
        self.target: list[int] = []
        self.start: list[int] = [0]
        self.args: list[int] = []
        self.first_weight: list[int] = []
        self.numbers: list[Number] = []
        self.position = {node: i for i, node in enumerate(circuit.order)}
        self.node: list[int] = []
        self.values = 0
        self.leaves: dict[tuple, int] = {}
        self.leaf_variable: list[int] = []
        self.leaf_numbers: list[tuple[Number, Number]] = []
        self.dets: list[tuple[Matrix, Matrix, Matrix]] = []

    def write_all(self) -> None:
        """Every node that is not read in place by its parent, children first."""
        for node in self.circuit.order:
            leaf = affine_leaf(node)
            if leaf is not None:
                self.leaf[node] = leaf
            elif node not in self.fused:
                self._write_leaves_below(node)
                self.write(node)
        if self.circuit.root in self.leaf:
            self.write_leaf(self.circuit.root)

    # -- one node -----------------------------------------------------------------------------------

    def write(self, node: Node) -> None:
        """The value of a node and, where it is another number, its magnitude."""
        if node.op is Op.SUM:
            weights = node.weights
            self.value[node] = self._sum(node, weights, self.value)
            if min(weights, default=0) < 0 or not self._steady(node):
                self.magnitude[node] = self._sum(node, [abs(w) for w in weights], self.magnitude)
            else:
                self.magnitude[node] = self.value[node]
        elif node.op is Op.PRODUCT:
            self.value[node] = self._emit(TIMES, [self.value[c] for c in node.children], node)
            if self._steady(node):
                self.magnitude[node] = self.value[node]
            else:
                self.magnitude[node] = self._emit(TIMES, [self.magnitude[c] for c in node.children], node)
        else:
            self.dets.append(node.matrices)
            which = len(self.dets) - 1
            values = [self.value[c] for c in node.children]
            self.value[node] = self._emit(DET, [which, *values], node)
            sizes = [self.magnitude[c] for c in node.children]
            self.magnitude[node] = self._emit(DETMAG, [which, *values, *sizes], node)

    def write_leaf(self, node: Node) -> None:
        """The same for an affine form in one variable."""
        name, a, b = self.leaf[node]
        self.value[node] = self.magnitude[node] = self._leaf(node, name, a, b)
        if a < 0 or b < 0:
            self.magnitude[node] = self._leaf(node, name, abs(a), abs(b))

    def _write_leaves_below(self, node: Node) -> None:
        """Leaves are written where they are first used: they need no slot before."""
        for child in node.children:
            if child in self.fused:
                self._write_leaves_below(child)  # one level: a fused product is not below another
            elif child in self.leaf and child not in self.value:
                self.write_leaf(child)

    def _steady(self, node: Node) -> bool:
        """Whether no child's magnitude differs from its value."""
        value, magnitude, fused = self.value, self.magnitude, self.fused
        for child in node.children:
            if child in fused:
                x, y = child.children
                if value[x] != magnitude[x] or value[y] != magnitude[y]:
                    return False
            elif value[child] != magnitude[child]:
                return False
        return True

    def _leaf(self, node: Node, name: str | None, a: Number, b: Number) -> int:
        key = (name, a, b)
        value = self.leaves.get(key)
        if value is None:
            self.leaf_variable.append(-1 if name is None else self.column[name])
            self.leaf_numbers.append((a, b))
            value = self.leaves[key] = self._emit(LEAF, [len(self.leaf_numbers) - 1], node)
        return value

    def _sum(self, node: Node, weights: Sequence[Number], of: dict[Node, int]) -> int:
        fused = self.fused
        linear: list[int] = []
        linear_weights: list[Number] = []
        pairs: list[int] = []
        pair_weights: list[Number] = []
        for weight, child in zip(weights, node.children, strict=True):
            if child in fused:
                x, y = child.children
                pairs += (of[x], of[y])
                pair_weights.append(weight)
            else:
                linear.append(of[child])
                linear_weights.append(weight)
        if not pairs:
            return self._emit(SUM, linear, node, linear_weights)
        if not linear:
            return self._emit(DOT, pairs, node, pair_weights)
        value = self._emit(SUM, linear, node, linear_weights)
        return self._emit(MORE, pairs, node, pair_weights, value)

    def _emit(
        self, op: int, args: list[int], node: Node, weights: Sequence[Number] = (), target: int | None = None
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
        self.node.append(self.position[node])
        return target

    # -- all of them --------------------------------------------------------------------------------

    def finish(self) -> Program:
        table = [(nearest_float(a), nearest_float(b), nearest_sum(a, b)) for a, b in self.leaf_numbers]
        flat = [[x for matrix in triple for row in matrix.numbers() for x in row] for triple in self.dets]
        sizes = np.cumsum([0, *map(len, flat)])
        return Program(
            op=np.array(self.op, np.uint8),
            target=np.array(self.target, np.int32),
            start=np.array(self.start, np.int64),
            args=np.array(self.args, np.int32),
            first_weight=np.array(self.first_weight, np.int64),
            weights=np.array([nearest_float(w) for w in self.numbers], np.float64),
            node=np.array(self.node, np.int32),
            leaf_variable=np.array(self.leaf_variable, np.int32),
            leaf_table=np.array(table, np.float64).reshape(-1, 3),
            det_shape=np.array([u.shape for _, u, _ in self.dets], np.int64).reshape(-1, 2),
            det_start=sizes[:-1].astype(np.int64),
            det_data=np.array([nearest_float(x) for numbers in flat for x in numbers], np.float64),
            slots=self.values,
            value=self.value[self.circuit.root],
            magnitude=self.magnitude[self.circuit.root],
            n_variables=len(self.circuit.variables),
            numbers=self.numbers,
            leaf_numbers=self.leaf_numbers,
            det_numbers=flat,
        )


def nearest_sum(a: Number, b: Number) -> float:
    """The double nearest to a + b."""
    if type(a) is float and type(b) is float:
        return a + b  # IEEE addition rounds correctly
    return nearest_float(add(a, b))


def affine_leaf(node: Node) -> tuple[str | None, Number, Number] | None:
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
    return None


def _affine_sum(node: Node) -> tuple[str, Number, Number] | None:
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


def _fusible(circuit: Circuit) -> set[Node]:
    """Products of two whose only parent is a sum: they never need a slot of their own."""
    parents: dict[Node, int] = {circuit.root: 1}
    below_sum: set[Node] = set()
    for node in circuit.order:
        for child in node.children:
            if child.op is Op.PRODUCT:
                parents[child] = parents.get(child, 0) + 1
                if node.op is Op.SUM and len(child.children) == 2:
                    below_sum.add(child)
    return {node for node in below_sum if parents[node] == 1}

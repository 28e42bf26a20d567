"""Circuit → Program."""

from __future__ import annotations

from collections.abc import Sequence

from pgcc.errors import PgccError
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import Number, absolute, add, mul
from pgcc.program.builder import Builder, Sum
from pgcc.program.determinant import DetStructure
from pgcc.program.program import DET, DETMAG, Program

Leaf = tuple[str | None, Number, Number]  # a·ȳ + b·z: name, a, b


def lower(circuit: Circuit) -> Program:
    """The program of a circuit's polynomial, every value in a slot of its own (see `schedule`).

    Examples
    --------
    >>> import pgcc
    >>> lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))
    <Program: 4 instructions, 7 operations, 4 slots>
    """
    return lower_with_nodes(circuit)[0]


def lower_with_nodes(circuit: Circuit) -> tuple[Program, list[Node]]:
    """The program of a circuit, and for every instruction the node whose value or magnitude it computes."""
    with collector_paused():
        lowering = _Lowering(circuit)
        lowering.write_all()
        program = lowering.builder.finish(lowering.value[-1], lowering.magnitude[-1])
        return program, [circuit.order[i] for i in lowering.node]


class _Lowering:
    """Nodes are known by their position in the circuit's order.

    Attributes
    ----------
    value, magnitude : list of int
        The slots of every node's value and magnitude: another one only where something may cancel.
    node : list of int
        The node of every instruction.
    """

    def __init__(self, circuit: Circuit):
        self.circuit, self.links = circuit, circuit.links
        self.builder = Builder(len(circuit.variables))
        self.column = {name: i for i, name in enumerate(circuit.variables)}
        self.leaf: list[Leaf | None] = [affine_leaf(node) for node in circuit.order]
        self.fused = _fusible(circuit)
        self.value: list[int] = [-1] * len(circuit.order)
        self.magnitude: list[int] = [-1] * len(circuit.order)
        self.node: list[int] = []
        self.leaves: dict[Leaf, int] = {}

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
            self.value[i] = self.magnitude[i] = self._product(i, children, self.value)
            if not self._steady(children):
                self.magnitude[i] = self._product(i, children, self.magnitude)
        elif node.op is Op.DET:
            which = len(self.builder.structures)
            self.builder.structures.append(DetStructure.of(node))
            self.value[i] = self.builder.emit(DET, [which, *(self.value[c] for c in children)])
            sizes = [self.value[i]] if self._steady(children) else [self.magnitude[c] for c in children]
            self.magnitude[i] = self.builder.emit(DETMAG, [which, *sizes])
            self.node += (i, i)
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
            value = self.leaves[leaf] = self.builder.leaf(-1 if name is None else self.column[name], a, b)
            self.node.append(i)
        return value

    def _product(self, i: int, children: tuple[int, ...], of: list[int]) -> int:
        self.node.append(i)
        return self.builder.product([of[c] for c in children])

    def _sum(self, i: int, weights: Sequence[Number], of: list[int]) -> int:
        fused, links, terms = self.fused, self.links, Sum()
        for weight, child in zip(weights, links[i], strict=True):
            if fused[child]:
                x, y = links[child]
                terms.add(weight, of[x], of[y])
            else:
                terms.add(weight, of[child])
        self.node.append(i)
        return self.builder.sum(terms)


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

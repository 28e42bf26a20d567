"""Circuit → Program with every number of the circuit in a place of its own: what gradients are taken of.

`lower` folds weights into tables of leaves and reads products in place, and a simplified or homogenized circuit shares
nodes that were two before. Here nothing is folded, fused or shared: instruction by instruction the circuit as it was
written, with padding (see `passes.homogenize`) between a sum and its children if the circuit is decomposable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.passes.homogenize import Fillers
from pgcc.program.builder import Builder
from pgcc.program.det_structure import DetStructure
from pgcc.program.program import DET, Program


@dataclass(frozen=True)
class Parametrized:
    """A program, and where the numbers of the circuit stand in it.

    Attributes
    ----------
    program : Program
        If the circuit is decomposable, its value is homogenized: any marginal is one evaluation.
    sums : list of (node, int)
        The sums, and where the weights of each start in `program.weights`.
    dets : list of node
        The determinants, in the order of `program.structures`.
    constants : list of (node, int)
        The constants, and their slots.
    """

    program: Program
    sums: list[tuple[Node, int]]
    dets: list[Node]
    constants: list[tuple[Node, int]]


def parametrize(circuit: Circuit) -> Parametrized:
    """The program of a circuit as it was written.

    Examples
    --------
    >>> import pgcc
    >>> parametrize(pgcc.parse("0.3*a + 0.7")).program.weights.tolist()
    [0.3, 1.0]
    """
    return _Parametrization(circuit).finish()


class _Parametrization:
    def __init__(self, circuit: Circuit):
        self.builder = Builder(len(circuit.variables))
        self.column = {name: i for i, name in enumerate(circuit.variables)}
        self.fillers = Fillers(circuit, self._complement, self.builder.product) if circuit._overlap is None else None
        self.slot: list[int] = []  # of every node of the circuit
        self.padded: dict[tuple[int, int], int] = {}
        self.sums: list[tuple[Node, int]] = []
        self.dets: list[Node] = []
        self.constants: list[tuple[Node, int]] = []
        scopes = circuit.scopes
        for node, below, scope in zip(circuit.order, circuit._links, scopes.of, strict=True):
            self.slot.append(self._write(node, below, scope))
        self.root = self.slot[-1]
        if self.fillers:
            self.root = self._pad(self.root, self.fillers.missing_from_root())

    def _complement(self, name: str) -> int:
        return self.builder.leaf(self.column[name], 1, 0)

    def _write(self, node: Node, below: tuple[int, ...], scope: int) -> int:
        children = [self.slot[c] for c in below]
        if self.fillers:
            children = list(map(self._pad, children, self.fillers.missing_below(node.op, scope, below)))
        match node.op:
            case Op.CONST:
                self.constants.append((node, self.builder.leaf(-1, node.value, 0)))
                return self.constants[-1][1]
            case Op.VAR:
                return self.builder.leaf(self.column[node.name], int(node.is_complement), int(not node.is_complement))
            case Op.PRODUCT:
                return self.builder.product(children) if below else self.builder.leaf(-1, 1, 0)
            case Op.SUM:
                self.sums.append((node, len(self.builder.numbers)))
                return self.builder.sum(children, node.weights)
            case Op.DET:
                self.dets.append(node)
                self.builder.structures.append(DetStructure.of(node))
                return self.builder.emit(DET, [len(self.dets) - 1, *children])
        assert_never(node.op)

    def _pad(self, slot: int, missing: int | None) -> int:
        if missing is None:
            return slot
        key = (slot, missing)
        if key not in self.padded:
            self.padded[key] = self.builder.product([slot, missing])
        return self.padded[key]

    def finish(self) -> Parametrized:
        return Parametrized(self.builder.finish(self.root, self.root), self.sums, self.dets, self.constants)

"""An upper bound on the coefficients of all assignments, from the structure of a circuit, and a good assignment.

In a homogenized, decomposable circuit without negative numbers, the value of an assignment at a product is the product
of its values at the factors, and at a sum it is at most the sum over the terms. Terms with different numbers of
variables that are 1 exclude each other, so that their maximum is a bound. Determinants whose children are literals are
left to `pgcc.determinants.mode`. Bounds are rounded up at every node. `mode` calls `by_structure`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, assert_never

import numpy as np

from pgcc.determinants.mode.region import Region
from pgcc.determinants.mode.sets import find_best
from pgcc.determinants.mode.trees import are_trees, heaviest
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import is_monotone
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import UNIT, Number, log_of
from pgcc.kernels.announce import search_clock
from pgcc.program.det_structure import DetStructure

# The most edges of a circuit for which bounds are computed.
_MOST_EDGES = 200_000
_LOG_ZERO = -math.inf


@dataclass(frozen=True)
class Suggestion:
    """A bound and an assignment suggested by the structure of a circuit.

    Attributes
    ----------
    bound : float
        An upper bound on the logarithm of the coefficient of every assignment that agrees with the evidence.
    row : int8 array
    """

    bound: float
    row: np.ndarray


class Structure:
    """The structure of a homogenized circuit; `readable` says whether it gives bounds.

    Parameters
    ----------
    circuit : Circuit
    """

    def __init__(self, circuit: Circuit):
        self.order, self._links, self.variables = circuit.order, circuit._links, circuit.variables
        self.column = {name: i for i, name in enumerate(circuit.variables)}
        self.dets: dict[int, _Det] = {}
        self.readable = circuit.facts.edges <= _MOST_EDGES and all(map(self._read, range(len(self.order))))

    def _read(self, position: int) -> bool:
        """Whether a node is known not to be negative, and a bound can be computed for it."""
        node = self.order[position]
        if node.op is not Op.DET:
            return is_monotone(node)
        items, structure = _read_items(node, self.column), DetStructure.of(node)
        if items is None or not structure.nonnegative:
            return False
        self.dets[position] = _Det(structure, items)
        return True

    @property
    def is_det(self) -> bool:
        """Whether the circuit is a single determinant."""
        return self.order[-1].op is Op.DET


class _Det(NamedTuple):
    """A determinant of literals."""

    structure: DetStructure
    items: _Items


def by_structure(
    circuit: Structure,
    codes: np.ndarray,
    deadline: float,
    start: Callable[[], np.ndarray | None],
    slack: float,
) -> Suggestion | None:
    """A bound and a good assignment; None if the structure says nothing. For impossible evidence, the bound is −inf.

    Parameters
    ----------
    circuit : Structure
    codes : int8 array
        The evidence: 1, 0 or −1 for every variable.
    deadline : float
    start : function
        An assignment that agrees with the evidence and has a positive probability, or None.
    slack : float
        How much logarithms may differ and still count as equal.
    """
    if not circuit.readable:
        return None
    walk = _Walk(circuit, codes, deadline, start, slack)
    return walk.suggestion() if walk.run() else None


class _Walk:
    """A pass over the circuit, from the leaves up for bounds, and then from the root down for an assignment."""

    def __init__(
        self,
        circuit: Structure,
        codes: np.ndarray,
        deadline: float,
        start: Callable[[], np.ndarray | None],
        slack: float,
    ):
        self.order, self._links, self.column = circuit.order, circuit._links, circuit.column
        self.codes, self.deadline, self.start, self.slack = codes, deadline, start, slack
        self.dets, self.dets_left = circuit.dets, len(circuit.dets)
        self.upper: list[float] = []  # the logarithm of an upper bound, for every node
        self.size: list[
            int | None
        ] = []  # for every node the number of variables that are 1, if all terms have the same
        self.rows: dict[int, dict[int, int]] = {}  # for every determinant the values of its columns in its best set

    def run(self) -> bool:
        """Compute bounds from the leaves up; False if a determinant has no bound."""
        for position, (node, below) in enumerate(zip(self.order, self._links, strict=True)):
            found = self._visit(position, node, below)
            if found is None:
                return False
            self.upper.append(found[0])
            self.size.append(found[1])
        return True

    def _visit(self, position: int, node: Node, below: tuple[int, ...]) -> tuple[float, int | None] | None:
        """`upper` and `size` of a node; None if it has no bound."""
        if node.op is Op.CONST:
            return _log_above(node.value), 0
        if node.op is Op.VAR:
            code = self.codes[self.column[node.name]]
            possible = code < 0 or code == (0 if node.is_complement else 1)
            return 0.0 if possible else _LOG_ZERO, 0 if node.is_complement else 1
        if node.op is Op.PRODUCT:
            return self._product(below)
        if node.op is Op.SUM:
            return self._sum(node, below)
        if node.op is Op.DET:
            return self._det(position, node)
        assert_never(node.op)

    def _product(self, below: tuple[int, ...]) -> tuple[float, int | None]:
        sizes = [self.size[c] for c in below]
        upper = (
            _up(math.fsum(self.upper[c] for c in below)) if all(self.upper[c] > _LOG_ZERO for c in below) else _LOG_ZERO
        )
        return upper, None if None in sizes else sum(s for s in sizes if s is not None)

    def _sum(self, node: Node, below: tuple[int, ...]) -> tuple[float, int | None]:
        terms = [(_log_above(w) + self.upper[c], self.size[c]) for w, c in zip(node.weights, below, strict=True)]
        terms = [term for term in terms if term[0] > _LOG_ZERO]
        if not terms:
            return _LOG_ZERO, None
        sizes = {size for _, size in terms}
        top = max(upper for upper, _ in terms)
        same = terms[0][1] if len(sizes) == 1 else None
        if len(sizes) == len(terms) and None not in sizes:  # the terms exclude each other
            return _up(top), same
        total = top + math.log(math.fsum(math.exp(upper - top) for upper, _ in terms))
        return _up(total, 4.0), same

    def _det(self, position: int, node: Node) -> tuple[float, int | None] | None:
        structure, items = self.dets[position]
        codes = items.codes(self.codes)
        now = search_clock()
        share = now + (self.deadline - now) / self.dets_left
        self.dets_left -= 1
        inside, bound = self._best(structure, items, codes, share)
        if inside is None:
            return (bound, None) if bound == _LOG_ZERO else None
        self.rows[position] = items.values(inside)
        fixed = structure.size if structure.size is not None and all(node.counted) and items.are_variables else None
        return _up(bound + items.shift + items.error, 2.0), fixed

    def _best(
        self, structure: DetStructure, items: _Items, codes: np.ndarray, deadline: float
    ) -> tuple[np.ndarray | None, float]:
        """The best set of children that was found, or None, and an upper bound on the logarithms of all sets."""
        if are_trees(structure):
            return heaviest(structure, items.weight, codes)
        everything = np.ones(len(codes), bool)
        counted = everything if structure.counted is None else np.array(structure.counted, bool)
        region = Region(codes, structure.size, counted, structure.rank)

        def begin() -> np.ndarray | None:
            row = self.start()
            return None if row is None else items.inside(row)

        found = find_best(structure, items.weight, region, deadline, begin, self.slack)
        if found is None or not found.bound < math.inf:
            return None, math.inf
        return found.inside, found.bound

    # -- from the root down ------------------------------------------------------------------------------------------

    def suggestion(self) -> Suggestion:
        """The assignment that takes the largest term of every sum."""
        row = np.where(self.codes >= 0, self.codes, 0).astype(np.int8)
        stack = [len(self.order) - 1]
        while stack:
            position = stack.pop()
            node, below = self.order[position], self._links[position]
            if node.op is Op.VAR:
                row[self.column[node.name]] = 0 if node.is_complement else 1
            elif node.op is Op.PRODUCT:
                stack.extend(below)
            elif node.op is Op.SUM:
                terms = [log_of(w) + self.upper[c] for w, c in zip(node.weights, below, strict=True)]
                stack += below[terms.index(max(terms)) :][:1] if terms else ()
            elif node.op is Op.DET:
                for column, value in self.rows.get(position, {}).items():
                    row[column] = value
            elif node.op is not Op.CONST:
                assert_never(node.op)
        return Suggestion(self.upper[-1], row)


# -- the children of a determinant -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Items:
    """The children of a determinant as literals: child i is in if the variable `column[i]` has the value `value[i]`.

    Attributes
    ----------
    column : int array
        −1 for a child that is certainly in or out.
    value : int8 array
        The variable's value if the child is in; for a child that is certainly in or out, 1 or 0.
    weight : float64 array
        The logarithm of the child's factor if it is in, divided by its factor if it is out.
    shift : float
        The logarithm of a factor that all sets have.
    error : float
        A bound on the error of the shift plus the weights of any set.
    """

    column: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    shift: float
    error: float

    @property
    def are_variables(self) -> bool:
        """Whether all children are variables, and none is a complement or a constant."""
        return bool(((self.column >= 0) & (self.value == 1)).all())

    def codes(self, row: np.ndarray) -> np.ndarray:
        """The codes of the children for a row of evidence on the variables."""
        code = np.where(self.column >= 0, row[self.column], 1)
        return np.where(code < 0, -1, np.where(self.column >= 0, code == self.value, self.value)).astype(np.int8)

    def inside(self, row: np.ndarray) -> np.ndarray:
        """The set of children that are in for an assignment of the variables."""
        return np.where(self.column >= 0, row[self.column] == self.value, self.value == 1)

    def values(self, inside: np.ndarray) -> dict[int, int]:
        """The values of the variables, by column, for a set of children."""
        there = self.column >= 0
        values = np.where(inside, self.value, 1 - self.value)[there]
        return dict(zip(self.column[there].tolist(), values.tolist(), strict=True))


def _read_items(node: Node, column: dict[str, int]) -> _Items | None:
    """The children as literals of distinct variables; None if they are not."""
    items: list[tuple[int, int, float, float]] = []  # column, value, weight, shift
    logs: list[float] = []
    for f, y in zip(node.inside, node.outside, strict=True):
        found, other = _literal(f), _literal(y)
        if found is None or other is None:
            return None
        (name, value, log), (other_name, other_value, other_log) = found, other
        logs += [x for x in (log, other_log) if x > _LOG_ZERO]
        if (log == _LOG_ZERO) != (other_log == _LOG_ZERO) and not (name or other_name):
            items.append((-1, 1, log, 0.0) if other_log == _LOG_ZERO else (-1, 0, 0.0, other_log))
        elif name is not None and name == other_name and value != other_value and min(log, other_log) > _LOG_ZERO:
            items.append((column[name], value, log - other_log, other_log))
        else:
            return None
    used = [item[0] for item in items if item[0] >= 0]
    if len(set(used)) < len(used):
        return None
    error = 8.0 * UNIT * sum(abs(x) + (1.0 if x else 0.25) for x in logs)
    columns, values, weights, shifts = np.array(items, np.float64).reshape(-1, 4).T
    return _Items(columns.astype(np.int64), values.astype(np.int8), weights, math.fsum(shifts), error)


def _literal(node: Node) -> tuple[str | None, int, float] | None:
    """The variable of a literal, its value and the logarithm of its weight; the variable of a constant is None."""
    log = 0.0
    if node.op is Op.SUM and len(node.children) == 1 and node.weights[0] > 0:
        log, node = log_of(node.weights[0]), node.children[0]
    if node.op is Op.VAR:
        return node.name, int(not node.is_complement), log
    if node.op is Op.CONST and node.value >= 0:
        return None, 1, log + log_of(node.value)
    return None


def _log_above(number: Number) -> float:
    """An upper bound on the logarithm of a number."""
    if not number or number == 1:
        return 0.0 if number else _LOG_ZERO
    return _up(log_of(number))


def _up(x: float, more: float = 0.0) -> float:
    """An upper bound on the exact value of x, whose rounding errors are relative to |x| + 1."""
    return x + (8.0 + more) * UNIT * (abs(x) + 1.0)

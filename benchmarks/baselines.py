"""The alternatives that pgcc is compared with, each written as well as we can.

- `LevelByLevel`: numpy, one vectorised step per level of the circuit and fan-in; in log-space, or in plain floats.
- `Lambdified`: SymPy's `lambdify(..., "numpy", cse=True)`, evaluating the polynomial at numbers.
- the paper's evaluation in R[t] is `pgcc.rings.paper.evaluate_literally`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.common import best_of
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import nearest_float
from pgcc.passes.homogenize import homogenize
from pgcc.program.lower import Form, affine_forms

_LOWEST = np.finfo(float).min
_SAMPLE = 10_000


def best_block(run: Callable[[np.ndarray, int], Any], rows: np.ndarray, blocks: Sequence[int]) -> int:
    """The number of rows at a time with which an evaluation is fastest."""
    sample = rows[:_SAMPLE]
    calls = {str(block): lambda block=block: run(sample, block) for block in blocks}
    seconds = best_of(calls, 5, 5.0, time.process_time)
    return int(min(seconds, key=lambda block: seconds[block]))


class LevelByLevel:
    """A homogenized circuit by numpy: all nodes of a level that have the same fan-in at once, for a block of rows.

    Values stand as nodes × rows, so that a gather copies whole lines. Leaves a·ȳ + b·z are read from a table.
    """

    def __init__(self, circuit: Circuit, log: bool = True):
        self.log = log
        homogeneous = homogenize(circuit)
        leaves, levels = _levels(homogeneous)
        position = {node: i for i, (node, _) in enumerate(leaves)}
        self.leaf_column = np.array([max(form[0], 0) for _, form in leaves])
        self.leaf_table = np.array([_three_values(*form) for _, form in leaves])
        self.steps = []
        for level in levels:
            for (op, _), nodes in level.items():
                first = len(position)
                position.update((node, first + i) for i, node in enumerate(nodes))
                children = np.array([[position[c] for c in node.children] for node in nodes])
                weights = _weights(nodes) if op is Op.SUM else None
                self.steps.append((slice(first, first + len(nodes)), children, self._logs(weights)))
        self.leaf_table = self._logs(self.leaf_table)
        self.nodes, self.root = len(position), position[homogeneous.root]

    def _logs(self, numbers: np.ndarray | None) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(numbers) if self.log and numbers is not None else numbers

    def __call__(self, evidence: np.ndarray, block: int) -> np.ndarray:
        """(Log-)probabilities of int8 rows, `block` rows at a time."""
        out = np.empty(len(evidence))
        values = np.empty((self.nodes, block))
        for first in range(0, len(evidence), block):
            rows = evidence[first : first + block]
            out[first : first + block] = self._run(rows, values[:, : len(rows)])
        return out

    def _run(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        codes = np.where(rows < 0, 2, rows).T[self.leaf_column]
        values[: len(codes)] = np.take_along_axis(self.leaf_table, codes, axis=1)
        combine = self._log_step if self.log else self._linear_step
        with np.errstate(divide="ignore"):
            for where, children, weights in self.steps:
                combine(values, where, children, weights)
        return values[self.root]

    @staticmethod
    def _log_step(values: np.ndarray, where: slice, children: np.ndarray, weights: np.ndarray | None) -> None:
        out = values[where]
        if weights is None:
            out[:] = values[children[:, 0]]
            for j in range(1, children.shape[1]):
                out += values[children[:, j]]
            return
        terms = values[children]
        terms += weights[:, :, None]
        largest = terms.max(axis=1)
        np.maximum(largest, _LOWEST, out=largest)  # a sum of nothing but −inf stays −inf
        terms -= largest[:, None]
        np.exp(terms, out=terms)
        terms.sum(axis=1, out=out)
        np.log(out, out=out)
        out += largest

    @staticmethod
    def _linear_step(values: np.ndarray, where: slice, children: np.ndarray, weights: np.ndarray | None) -> None:
        out = values[where]
        out[:] = 1.0 if weights is None else 0.0
        for j in range(children.shape[1]):
            child = values[children[:, j]]
            if weights is None:
                out *= child
            else:
                child *= weights[:, j : j + 1]
                out += child


def _levels(circuit: Circuit) -> tuple[list[tuple[Node, Form]], list[dict[tuple[Op, int], list[Node]]]]:
    """The leaves with their affine forms, and per level the other nodes by operation and fan-in."""
    forms = {circuit.order[i]: form for i, form in affine_forms(circuit._flat, circuit.variables).items()}
    leaves: list[tuple[Node, Form]] = []
    depth: dict[Node, int] = {}
    levels: defaultdict[int, defaultdict[tuple[Op, int], list[Node]]] = defaultdict(lambda: defaultdict(list))
    for node in _without_leaf_parts(circuit, forms):
        if node in forms:
            leaves.append((node, forms[node]))
            depth[node] = 0
        else:
            depth[node] = 1 + max(depth[c] for c in node.children)
            levels[depth[node]][node.op, len(node.children)].append(node)
    return leaves, [levels[d] for d in sorted(levels)]


def _without_leaf_parts(circuit: Circuit, forms: dict[Node, Form]) -> list[Node]:
    """The nodes in order, without those that only stand inside affine leaves."""
    used = {circuit.root}
    for node in reversed(circuit.order):
        if node in used and node not in forms:
            used.update(node.children)
    return [node for node in circuit.order if node in used]


def _weights(nodes: Sequence[Node]) -> np.ndarray:
    return np.array([[nearest_float(w) for w in node.weights] for node in nodes])


def _three_values(name: str | None, a: Any, b: Any) -> tuple[float, float, float]:
    a, b = nearest_float(a), nearest_float(b)
    return (a, b, a + b) if name is not None else (a, a, a)


class Lambdified:
    """The polynomial at numbers, by SymPy's numpy code with common subexpressions shared."""

    def __init__(self, circuit: Circuit):
        import sympy

        symbols = [sympy.Symbol(name) for name in circuit.variables]
        self.function = sympy.lambdify(symbols, _to_sympy(circuit), "numpy", cse=True)

    def __call__(self, points: np.ndarray, block: int) -> np.ndarray:
        """Values at the columns of `points` (variables × rows), `block` rows at a time."""
        out = np.empty(points.shape[1])
        for first in range(0, len(out), block):
            out[first : first + block] = self.function(*points[:, first : first + block])
        return out


def _to_sympy(circuit: Circuit) -> Any:
    import sympy

    made: dict[Node, Any] = {}
    for node in circuit.order:
        children = [made[c] for c in node.children]
        if node.op is Op.VAR:
            made[node] = sympy.Symbol(node.name)
        elif node.op is Op.CONST:
            made[node] = sympy.sympify(node.value)
        elif node.op is Op.SUM:
            made[node] = sympy.Add(*(sympy.sympify(w) * c for w, c in zip(node.weights, children, strict=True)))
        else:
            made[node] = sympy.Mul(*children)
    return made[circuit.root]

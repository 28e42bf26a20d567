"""The most probable assignments of a deterministic circuit: sums become maxima, and one pass finds the largest term.

Where no two terms of a sum are positive at the same assignment (`frontend.common_support`), each assignment has the
value of a single term, and the largest term is that of the mode. If some variables are summed out, sums that the others
do not decide stay sums: then the value is an upper bound, as the maximum of a sum is at most the sum of the maxima.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from pgcc.certify.certificate import rounding_counts
from pgcc.evaluate.direct import split_constants
from pgcc.evaluate.kernels.max_product import Logs, run_max_product, run_upward
from pgcc.evaluate.top_down import find_nodes
from pgcc.frontend.common_support import is_deterministic, undecided_sums
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node
from pgcc.ir.numbers import UNIT
from pgcc.ir.scopes import as_bits
from pgcc.kernels.simd import LANES
from pgcc.kernels.walk import instructions_of
from pgcc.locks import cached_property
from pgcc.program.lower import lower_with_nodes
from pgcc.program.program import LEAF, SUM, Program
from pgcc.rings.kernels.scaled import RADIX

# The values of a block of rows should stay in the second-level cache.
_BLOCK_BYTES, _MOST_ROWS = 1 << 20, 64


class MaxProduct:
    """The largest terms of a deterministic program without negative numbers.

    Parameters
    ----------
    program : Program
        As `lower` makes it.
    """

    # The error of an addition of logarithms, in units of 2⁻⁵³, and of two where another choice is taken (`largest`).
    rounding = 3.1

    def __init__(self, program: Program):
        self.program = program
        constants = split_constants(program)
        self.links, numbers = find_nodes(program, constants)
        self.weights = _logs(numbers.weight, numbers.weight_exponent)
        self.leaves = _logs(numbers.table, numbers.table_exponent)
        table = _logs(constants.leaf_table, constants.leaf_exponents)
        has_variable = program.leaf_variable >= 0
        table[has_variable, 2] = table[has_variable, :2].max(axis=1)
        weights = _logs(constants.weights, constants.weight_exponents)
        self.logs = Logs(weights, np.ones(len(weights), np.uint8), program.leaf_variable, table)

    @property
    def width(self) -> int:
        """How many rows are computed together, at most."""
        return max(LANES, min(_MOST_ROWS, _BLOCK_BYTES // (8 * self.program.slots + 1)) // LANES * LANES)

    def best(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logarithm of the largest term that agrees with each row (−inf if none does), and its assignment."""
        found, out = np.empty(len(codes)), np.empty(codes.shape, np.int8)
        width = min(self.width, -(-len(codes) // LANES) * LANES)
        run_max_product(
            instructions_of(self.program), self.logs, self.links, self.weights, self.leaves,
            self.program.value, np.ascontiguousarray(codes), width, found, out,
        )  # fmt: skip
        return found, out

    def upper(self, logs: np.ndarray) -> np.ndarray:
        """Upper bounds on the exact logarithms of values that were computed as `logs`.

        The logarithms that a term adds up, and their partial sums, are at most A = 2P + |log|, if P is the largest sum
        of the positive ones in a term. Each addition is off by u·A, and so are the numbers by a few u in all.
        """
        size = np.where(np.isfinite(logs), 2.0 * self._positive + np.abs(logs), 0.0)
        return logs + self.rounding * UNIT * (self._roundings + self.program.n_variables + 4.0) * (size + 2.0)

    @cached_property
    def _roundings(self) -> float:
        return float(rounding_counts(self.program)[self.program.value])

    @cached_property
    def _positive(self) -> float:
        """The largest sum of positive logarithms in a term."""
        weights, _, _, table = self.logs
        if max(weights.max(initial=0.0), table.max(initial=0.0)) <= 0.0:
            return 0.0
        logs = self.logs._replace(weights=np.maximum(weights, 0.0), leaf_table=np.maximum(table, 0.0))
        codes = np.full(self.program.n_variables * LANES, -1, np.int8)
        return float(self._upward(logs, codes)[self.program.value])

    def _upward(self, logs: Logs, codes: np.ndarray) -> np.ndarray:
        """The values of all slots in the first row of a block."""
        values = np.empty(self.program.slots * LANES)
        run_upward(instructions_of(self.program), logs, codes, values, LANES)
        return values[::LANES]

    def largest(self, codes: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        """The terms that agree with a row, the largest first: logarithms and assignments."""
        values = self._upward(self.logs, np.repeat(codes, LANES))
        return _Largest(self, values, codes).run()


class MaxSum(MaxProduct):
    """Upper bounds on the largest value of an assignment of some variables, with all others summed out.

    A sum becomes a maximum if the chosen variables decide which of its terms is positive; other sums stay sums, as the
    maximum of a sum is at most the sum of the maxima.

    Parameters
    ----------
    circuit : Circuit
        A homogenized circuit without determinants and negative numbers.
    chosen : mask
        The columns of the chosen variables.
    deterministic : bool
        Whether the circuit is known to be deterministic.
    """

    rounding = 8.0  # with an exponential and a logarithm

    def __init__(self, circuit: Circuit, chosen: np.ndarray, deterministic: bool):
        program, nodes = lower_with_nodes(circuit)
        super().__init__(program)
        names = {name for name, is_chosen in zip(circuit.variables, chosen.tolist(), strict=True) if is_chosen}
        stays = self._stays_sum(circuit, names, deterministic)
        of_sum = np.array([node in stays for node in nodes])
        table = self.logs.leaf_table.copy()
        summed = ~np.append(chosen, True)[program.leaf_variable]
        table[summed, 2] = np.logaddexp(table[summed, 0], table[summed, 1])
        is_max = np.repeat(~of_sum, np.diff(program.first_weight)).astype(np.uint8)
        self.logs = self.logs._replace(is_max=is_max, leaf_table=table)

    @staticmethod
    def _stays_sum(circuit: Circuit, names: set[str], deterministic: bool) -> set[Node]:
        """The sums that are not decided by the chosen variables: by a literal, or because there are no others."""
        scopes, unit = circuit.scopes, {} if circuit.domains is None else circuit.domains.unit
        summed = {unit.get(name, name) for name in circuit.variables if name not in names}
        others = sum(1 << i for i, name in enumerate(scopes.names) if name in summed)
        left = undecided_sums(circuit._flat, circuit.domains, names).tolist()
        is_mixed = [bool(as_bits(scope) & others) for scope in scopes.distinct]
        return {circuit.order[i] for i in left if is_mixed[scopes.of[i]] or not deterministic}


def _logs(mantissas: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Logarithms of scaled numbers."""
    with np.errstate(divide="ignore"):
        return np.log(mantissas) + np.where(mantissas > 0.0, exponents, 0) * (RADIX * math.log(2.0))


def find_max_product(circuit: Circuit, program: Program) -> MaxProduct | None:
    """The largest terms of a homogenized circuit, if it has no negative number and is proved to be deterministic."""
    numbers = [*program.numbers, *(x for pair in program.leaf_numbers for x in pair)]
    if program.has_det or min(numbers, default=0) < 0 or not is_deterministic(circuit):
        return None
    return MaxProduct(program)


# -- several terms ---------------------------------------------------------------------------------------------------


class _Choice(NamedTuple):
    """A term of a sum, a value of the variable of a leaf, or all of a product.

    log : of the largest term that has it. below : the nodes that it leads to. literal : a column and its code.
    """

    log: float
    below: tuple[int, ...] = ()
    literal: tuple[int, int] | None = None


class _Largest:
    """The largest terms, by the choices that they make from the root down.

    Parts of them wait in a heap: those that agree on some choices, and make the choice of this rank, or a later one, at
    one further node. The values of the nodes say how large the largest term of a part is, which makes the first choice
    at all nodes that follow.
    """

    def __init__(self, of: MaxProduct, values: np.ndarray, codes: np.ndarray):
        self.of, self.values, self.codes = of, values, codes
        self._known: dict[int, list[_Choice]] = {}

    def run(self) -> Iterator[tuple[float, np.ndarray]]:
        """Logarithms and assignments, the largest first."""
        number, root = count(), self.of.program.value
        # Nodes to visit and literals are linked lists, whose ends the parts share.
        heap: list[Any] = [(0.0, next(number), 0.0, (root, None), 0, None)] if self._choices(root) else []
        while heap:
            _, _, others, nodes, rank, literals = heapq.heappop(heap)  # others: the logarithm but for this choice
            log = others + self._choices(nodes[0])[rank].log
            while nodes:
                (s, nodes), here = nodes, nodes
                choices = self._choices(s)
                if rank == 0:
                    others = log - choices[0].log
                if rank + 1 < len(choices):
                    less = -(others + choices[rank + 1].log)
                    heapq.heappush(heap, (less, next(number), others, here, rank + 1, literals))
                _, below, literal = choices[rank]
                literals = (literal, literals) if literal else literals
                for child in below:
                    nodes = child, nodes
                rank = 0
            yield log, self._assignment(literals)

    def _choices(self, s: int) -> list[_Choice]:
        """The choices at a node, the best first."""
        if s not in self._known:
            possible = (choice for choice in self._all(s) if choice.log > -math.inf)
            self._known[s] = sorted(possible, key=lambda choice: -choice.log)
        return self._known[s]

    def _all(self, s: int) -> Iterator[_Choice]:
        links, value, v = self.of.links, float(self.values[s]), int(self.of.links.which[s])
        terms = range(links.first[s], links.first[s + 1])
        if links.kind[s] == SUM:
            for t in terms:
                below = tuple(int(c) for c in (links.left[t], links.right[t]) if c >= 0)
                yield _Choice(float(self.of.weights[t] + self.values[list(below)].sum()), below)
        elif links.kind[s] == LEAF and v >= 0 and self.codes[v] < 0:
            yield from (_Choice(float(self.of.leaves[s, code]), literal=(v, code)) for code in (0, 1))
        else:
            yield _Choice(value, tuple(links.left[terms.start : terms.stop].tolist()))

    def _assignment(self, literals: Any) -> np.ndarray:
        row = np.maximum(self.codes, 0)
        while literals:
            (column, code), literals = literals
            row[column] = code
        return row

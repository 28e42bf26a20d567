"""The most probable assignments of a deterministic circuit: sums become maxima, and one pass finds the largest term.

Where no two terms of a sum are positive at the same assignment (`frontend.common_support`), each assignment has the
value of a single term, and the largest term is that of the mode. If some variables are summed out, sums that the others
do not decide stay sums: then the value is an upper bound, as the maximum of a sum is at most the sum of the maxima.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pgcc.certify.certificate import rounding_counts
from pgcc.evaluate.direct import split_constants
from pgcc.evaluate.kernels.max_product import Logs, run_max_product, run_upward
from pgcc.evaluate.top_down import Nodes, find_nodes
from pgcc.frontend.common_support import is_deterministic, undecided_sums
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node
from pgcc.ir.numbers import UNIT
from pgcc.ir.scopes import as_bits
from pgcc.kernels.simd import LANES
from pgcc.kernels.walk import instructions_of
from pgcc.locks import cached_property
from pgcc.program.lower import lower_with_nodes
from pgcc.program.program import LEAF, SUM, TIMES, Program
from pgcc.rings.kernels.scaled import RADIX

# The values of a block of rows should stay in the second-level cache.
_BLOCK_BYTES, _MOST_ROWS = 1 << 20, 64


class LogLinks(NamedTuple):
    """The nodes of a program by slot, as `Links` has them, and the logarithms of the weights of their terms."""

    kind: np.ndarray
    first: np.ndarray
    left: np.ndarray
    right: np.ndarray
    which: np.ndarray
    weight: np.ndarray


class MaxProduct:
    """The largest terms of a deterministic program without negative numbers.

    Parameters
    ----------
    program : Program
        As `lower` makes it.
    """

    rounding = 1.01  # the error of an addition of logarithms, in units of 2⁻⁵³

    def __init__(self, program: Program):
        self.program = program
        constants = split_constants(program)
        self.nodes: Nodes = find_nodes(program, constants)
        numbers = self.nodes.numbers
        self.links = LogLinks(*self.nodes.links, _logs(numbers.weight, numbers.weight_exponent))
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
            instructions_of(self.program), self.logs, self.links, self.leaves,
            self.program.value, np.ascontiguousarray(codes), self.program.slots, width, found, out,
        )  # fmt: skip
        return found, out

    def upper(self, logs: np.ndarray) -> np.ndarray:
        """Upper bounds on the exact logarithms of values that were computed as `logs`.

        The logarithms that a term adds up, and their partial sums, are at most A = 2P + |log|, if P is the largest sum
        of the positive ones in a term. Each addition is off by u·A, and so are the numbers by a few u in all.
        """
        size = np.where(np.isfinite(logs), 2.0 * self._positive + np.abs(logs), 0.0)
        return logs + self.rounding * UNIT * (self._roundings + 4.0) * (size + 2.0)

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
        return _Largest(self.links, self.leaves, values, codes).run(self.program.value)


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


class _Term(NamedTuple):
    """A term of a node: an edge of it, and for each child on it the rank of the term that is taken.

    Ranks after number `last` are 0, so that each combination of ranks is reached in one way.
    """

    log: float
    edge: int
    ranks: tuple[int, ...] = ()
    last: int = 0


class _Terms:
    """The terms of a node that were found, in order, and a heap of candidates for the next one."""

    def __init__(self, first: list[_Term]):
        self.heap = [(-term.log, term) for term in first if term.log > -math.inf]
        heapq.heapify(self.heap)
        self.found: list[_Term] = []
        self.expanded = 0  # of so many found terms, the successors are in the heap


class _Largest:
    """The terms of every node in order, as far as they are needed (Huang and Chiang 2005, algorithm 3).

    After a term come those that take the next term of one of its children.
    """

    def __init__(self, links: LogLinks, leaves: np.ndarray, values: np.ndarray, codes: np.ndarray):
        self.links, self.leaves, self.values, self.codes = links, leaves, values, codes
        self.terms: dict[int, _Terms] = {}

    def run(self, root: int) -> Iterator[tuple[float, np.ndarray]]:
        """Logarithms and assignments, the largest first."""
        rank = 0
        while self._find(root, rank):
            yield self.terms[root].found[rank].log, self._assignment(root, rank)
            rank += 1

    def _find(self, root: int, rank: int) -> bool:
        """Find the terms of the root up to this rank; False if there are not so many."""
        stack = [(root, rank)]  # a node waits until the terms that it needs of its children are found
        while stack:
            s, wanted = stack[-1]
            node = self._terms(s)
            if len(node.found) > wanted:
                stack.pop()
            elif node.expanded < len(node.found):
                stack += self._expand(s, node)
            elif node.heap:
                node.found.append(heapq.heappop(node.heap)[1])
            else:
                stack.pop()
        return len(self.terms[root].found) > rank

    def _terms(self, s: int) -> _Terms:
        found = self.terms.get(s)
        return found or self.terms.setdefault(s, _Terms(list(self._first(s))))

    def _first(self, s: int) -> Iterator[_Term]:
        """The largest term of each edge; of a leaf, edge 0 is that its variable is out, and 1 that it is in."""
        links, begin = self.links, int(self.links.first[s])
        if links.kind[s] == LEAF:
            if links.which[s] < 0:
                yield _Term(float(self.values[s]), 0)
            elif self.codes[links.which[s]] >= 0:
                yield _Term(float(self.values[s]), int(self.codes[links.which[s]]))
            else:
                yield from (_Term(float(self.leaves[s, edge]), edge) for edge in (0, 1))
        else:
            for edge in range(begin, begin + 1 if links.kind[s] == TIMES else int(links.first[s + 1])):
                children = self._children(s, edge)
                yield _Term(self._log(s, edge, (0,) * len(children)), edge, (0,) * len(children))

    def _children(self, s: int, edge: int) -> list[int]:
        links = self.links
        if links.kind[s] == TIMES:
            return links.left[links.first[s] : links.first[s + 1]].tolist()
        if links.kind[s] == LEAF:
            return []
        return [int(c) for c in (links.left[edge], links.right[edge]) if c >= 0]

    def _log(self, s: int, edge: int, ranks: tuple[int, ...]) -> float:
        weight = float(self.links.weight[edge]) if self.links.kind[s] == SUM else 0.0
        below = zip(self._children(s, edge), ranks, strict=True)
        return weight + math.fsum(self.terms[c].found[rank].log if rank else self.values[c] for c, rank in below)

    def _expand(self, s: int, node: _Terms) -> list[tuple[int, int]]:
        """Add the successors of the last found term to the heap; or else, return what must be found before."""
        _, edge, ranks, last = node.found[-1]
        steps = [(i, c, ranks[i] + 1) for i, c in enumerate(self._children(s, edge)) if i >= last]
        lacking = [(c, rank) for _, c, rank in steps if not self._is_known(c, rank)]
        if lacking:
            return lacking
        node.expanded += 1
        for i, c, rank in steps:
            if rank < len(self.terms[c].found):
                after = (*ranks[:i], rank, *ranks[i + 1 :])
                term = _Term(self._log(s, edge, after), edge, after, i)
                heapq.heappush(node.heap, (-term.log, term))
        return []

    def _is_known(self, c: int, rank: int) -> bool:
        """Whether the term of this rank was found, or is known not to exist."""
        node = self._terms(c)
        return rank < len(node.found) or (not node.heap and node.expanded == len(node.found))

    def _assignment(self, root: int, rank: int) -> np.ndarray:
        """The assignment that a term comes from."""
        row, stack = np.maximum(self.codes, 0), [(root, rank)]
        while stack:
            s, at = stack.pop()
            self._find(s, at)  # rank 0 of a node that was never asked
            _, edge, ranks, _ = self.terms[s].found[at]
            if self.links.kind[s] == LEAF and self.links.which[s] >= 0:
                row[self.links.which[s]] |= edge
            stack += zip(self._children(s, edge), ranks, strict=True)
        return row

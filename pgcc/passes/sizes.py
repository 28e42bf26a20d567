"""The part of a polynomial that is homogeneous of degree k: the distribution given that |S| = k, not yet normalised.

The components of a sum are the sums of its children's, those of a product are convolutions. Each node has a range of
degrees, so that only components which can be other than 0, and which the root's depends on, are built. Of a
determinant whose children are variables, the component of degree j is the determinant of size j.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from pgcc.errors import CircuitError
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, ZERO, Node, Op, det, is_size
from pgcc.passes.building import product_of, sum_of

Range = tuple[int, int]  # the least and the largest degree
NOTHING: Range = (0, -1)  # of 0
Components = dict[int, Node]  # by degree; what is missing is 0


def of_size(circuit: Circuit, k: int) -> Circuit:
    """The part of the polynomial that is homogeneous of degree k, over the same variables.

    If the polynomial is a distribution of sets S, this is the one of S given |S| = k, times Pr(|S| = k).

    Parameters
    ----------
    circuit : Circuit
        Children of its determinants are variables (perhaps weighted), with complements that are numbers, or, as
        `Circuit.condition` leaves them, constants that are surely in.
    k : int
        From 0 to the number of variables.

    Examples
    --------
    >>> import pgcc
    >>> g = pgcc.parse("(a + 1)/2 * (b + 1)/2 * c")
    >>> print(of_size(g, 2).simplify())
    1/4*(b + a)*c
    """
    size, n = _as_size(k), len(circuit.variables)
    if not is_size(size, n):
        raise CircuitError(f"the size of a set of {n} variables is a number from 0 to {n}, not {k!r}")
    with collector_paused():
        return Circuit(_Grading(circuit).component(size), circuit.variables)


def _as_size(k: Any) -> Any:
    """NumPy's integers are integers; a bool is none."""
    try:
        return k if isinstance(k, bool) else operator.index(k)
    except TypeError:
        return k


class _Grading:
    def __init__(self, circuit: Circuit):
        self.order, self.links = circuit.order, circuit.links
        self.range: list[Range] = []
        for node, below in zip(self.order, self.links, strict=True):
            self.range.append(_range(node, [self.range[c] for c in below]))

    def component(self, k: int) -> Node:
        """The component of degree k of the root."""
        wanted = self._wanted(k)
        found: list[Components] = []
        for node, below, degrees in zip(self.order, self.links, wanted, strict=True):
            children = [found[c] for c in below]
            match node.op:
                case Op.SUM:
                    parts = {j: _sum_component(node, children, j) for j in degrees}
                case Op.PRODUCT:
                    parts = _convolution(children, [self.range[c] for c in below], degrees)
                case Op.DET:
                    parts = {j: _det_component(node, [self.range[c] for c in below], j) for j in degrees}
                case _:
                    parts = dict.fromkeys(degrees, node)
            found.append({j: part for j, part in parts.items() if part is not ZERO})
        return found[-1].get(k, ZERO)

    def _wanted(self, k: int) -> list[set[int]]:
        """For every node, the degrees whose components the root's depends on and which are not 0 at sight."""
        wanted: list[set[int]] = [set() for _ in self.order]
        wanted[-1] = _within({k}, self.range[-1])
        for i in reversed(range(len(self.order))):
            below, degrees = self.links[i], wanted[i]
            if not degrees:
                continue
            if self.order[i].op is Op.SUM:
                for c in below:
                    wanted[c] |= _within(degrees, self.range[c])
            elif self.order[i].op is Op.PRODUCT:
                low, high = self.range[i]
                for c in below:
                    own_low, own_high = self.range[c]
                    rest_low, rest_high = low - own_low, high - own_high  # of the other factors
                    span = range(min(degrees) - rest_high, max(degrees) - rest_low + 1)
                    wanted[c] |= _within(span, self.range[c])
        return wanted


def _range(node: Node, below: list[Range]) -> Range:
    match node.op:
        case Op.CONST:
            return (0, 0) if node.value else NOTHING
        case Op.VAR:
            return (0, 0) if node.is_complement else (1, 1)
        case Op.SUM:
            parts = [r for r in below if r != NOTHING]
            return (min(low for low, _ in parts), max(high for _, high in parts)) if parts else NOTHING
        case Op.PRODUCT:
            return (sum(low for low, _ in below), sum(high for _, high in below)) if NOTHING not in below else NOTHING
        case _:
            return _det_range(node, below)


def _det_range(node: Node, below: list[Range]) -> Range:
    surely_in = _count_surely_in(node, below)
    least, largest = (surely_in, len(node.inside)) if node.size is None else (node.size, node.size)
    largest = min(largest, node.matrices[0].shape[0])  # c_T = 0 where |T| > r
    return (least - surely_in, largest - surely_in) if surely_in <= least <= largest else NOTHING


def _count_surely_in(node: Node, below: list[Range]) -> int:
    """How many children of a Det are constants with y = 0. All others have to be of degree 1, with a y of degree 0."""
    count = 0
    for f, y in zip(below[: len(below) // 2], below[len(below) // 2 :], strict=True):
        if (f, y) == ((0, 0), NOTHING):
            count += 1
        elif f not in ((1, 1), NOTHING) or y not in ((0, 0), NOTHING):
            raise CircuitError(
                "the sizes of a determinant's sets are only known if its children are variables: this one has other "
                "circuits, or variables that were summed out, in it (expand_det makes sums and products of a small one)"
            )
    return count


def _within(degrees: set[int] | range, span: Range) -> set[int]:
    return {j for j in degrees if span[0] <= j <= span[1]}


def _sum_component(node: Node, children: list[Components], j: int) -> Node:
    return sum_of((w, parts[j]) for w, parts in zip(node.weights, children, strict=True) if j in parts)


def _convolution(children: list[Components], ranges: Sequence[Range], degrees: set[int]) -> Components:
    """The components of a product: factor by factor, and of what the first factors make only the needed degrees."""
    if not degrees:
        return {}
    low_rest = [*accumulate((low for low, _ in reversed(ranges)), initial=0)][::-1]
    high_rest = [*accumulate((high for _, high in reversed(ranges)), initial=0)][::-1]
    product: Components = {0: ONE}
    for i, parts in enumerate(children, 1):
        span = min(degrees) - high_rest[i], max(degrees) - low_rest[i]
        terms: dict[int, list[Node]] = {}
        for a, left in product.items():
            for b, right in parts.items():
                if span[0] <= a + b <= span[1]:
                    terms.setdefault(a + b, []).append(product_of((left, right)))
        product = {j: sum_of((1, term) for term in below) for j, below in terms.items()}
    return product


def _det_component(node: Node, below: list[Range], j: int) -> Node:
    if node.size is not None:
        return node  # its range is one degree
    return det(*node.matrices, node.inside, node.outside, size=j + _count_surely_in(node, below))

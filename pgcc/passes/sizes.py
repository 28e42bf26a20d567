"""The part of a polynomial that is homogeneous of degree k: the distribution given that |S| = k, not yet normalized.

The degree may be that in some of the variables only: |S ∩ T| = k. The components of a sum are the sums of its
children's, those of a product are convolutions. Each node has a range of degrees, so that only components which can be
other than 0, and which the root's depends on, are built. Of a determinant whose children have the degree 1, as
variables that count, or 0, as anything that does not, the component of degree j is the determinant of size j over the
former. Of any other, the component of the largest degree is the determinant of the components in which each pair of a
child and its complement has its own largest degree. Its other components are combinations of the determinants at a few
points, with Σ_m s^m·(component of degree m) for every child and s = 1, 2, 3, …: exact, but with numbers that cancel.

With k = |T| that is conditioning on all of T (`pgcc.passes.condition`), of which only the other variables are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence, Set
from itertools import accumulate
from typing import Any, NamedTuple, assert_never

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, brief
from pgcc.exact.bounded import interpolation_weights
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, ZERO, Node, Op, det, rebuild
from pgcc.ir.operands import list_variables
from pgcc.passes.building import product_of, sum_of

MOST_POINTS = 256  # determinants that one is made of, where its degree is at most this less one
Range = tuple[int, int]  # the least and the largest degree
NOTHING: Range = (0, -1)  # of 0
Sizes = range | tuple[int, ...]  # in ascending order
Components = dict[int, Node]  # by degree; components that are missing are 0


def of_size(circuit: Circuit, size: Any, over: Iterable[str] | None = None) -> Circuit:
    """The circuit of Pr(S, |S ∩ T| is one of the sizes); its total is the probability of that.

    size : what `read_size` reads.
    over : T; all variables by default.

    Examples
    --------
    >>> import pgcc
    >>> print(of_size(pgcc.parse("0.4*a*b + 0.3*a + 0.1*b + 0.2"), (1, 2)).simplify())
    3/10*a + 1/10*b + 2/5*a*b
    """
    counted = list_variables(circuit, over, "count")
    sizes = read_size(size)
    if sizes[-1] > len(counted):
        raise CircuitError(
            f"size={brief(size)}: of the {len(counted)} variables that are counted, 0 to {len(counted)} can be in",
            argument="size",
        )
    with collector_paused():
        return Circuit(component(circuit, frozenset(counted), sizes), circuit.variables)


def read_size(size: Any) -> Sizes:
    """The sizes: a whole number, a tuple (least, most), a range, or a list or set of sizes.

    >>> read_size(3), read_size((1, 4)), read_size([4, 1])
    ((3,), range(1, 5), (1, 4))
    """
    sizes: Sizes
    try:
        match size:
            case range():
                sizes = size if size.step > 0 else size[::-1]
            case (least, most) if isinstance(size, tuple):
                sizes = range(_whole(least), _whole(most) + 1)
            case tuple():
                sizes = ()
            case list() | set() | frozenset():
                sizes = tuple(sorted(set(map(_whole, size))))
            case _:
                sizes = (_whole(size),)
    except TypeError:
        sizes = ()
    if not sizes or sizes[0] < 0:
        raise CircuitError(
            f"size={brief(size)}: it is how many variables are in: a whole number such as 2, from 1 to 3 as (1, 3), or "
            "one of several as [1, 3]",
            argument="size",
        )
    return sizes


def _whole(number: Any) -> int:
    return -1 if isinstance(number, bool) else operator.index(number)


def degree_range(circuit: Circuit, over: Iterable[str]) -> Range:
    """The least and the largest degree in these variables, as far as the structure tells; (0, -1) of 0."""
    return _Grading(circuit, frozenset(over), True).range[-1]


def component(circuit: Circuit, over: Set[str], sizes: Sizes, kept: bool = True) -> Node:
    """The sum of the components of these degrees in the variables `over`, which become 1 unless they are `kept`."""
    return _Grading(circuit, over, kept).component(sizes)


class _Grading:
    """The components of a circuit by their degree in the variables `over`.

    Attributes
    ----------
    range : list
        The least and the largest degree of each node.
    constant : list
        Whether none of the variables occurs below the node.
    counting : list
        Of determinants, the children that count.
    """

    def __init__(self, circuit: Circuit, over: Set[str], kept: bool):
        self.order, self._links, self.over, self.kept = circuit.order, circuit._links, over, kept
        self.range: list[Range] = []
        self.constant: list[bool] = []
        self.counting: list[_Counting | None] = []
        for node, below in zip(self.order, self._links, strict=True):
            ranges = [self.range[c] for c in below]
            self.counting.append(_counting(node, ranges) if node.op is Op.DET else None)
            self.range.append(self._range(node, ranges))
            counts = node.op is Op.VAR and node.name in over
            self.constant.append(not counts and all(self.constant[c] for c in below))

    def component(self, sizes: Sizes) -> Node:
        """The sum of the components of these degrees of the root."""
        wanted = self._wanted(sizes)
        found: list[Components] = []
        for i, (node, below, degrees) in enumerate(zip(self.order, self._links, wanted, strict=True)):
            children = [found[c] for c in below]
            if self.constant[i]:
                parts = dict.fromkeys(degrees, node)
            elif node.op is Op.SUM:
                parts = {j: _sum_component(node, children, j) for j in degrees}
            elif node.op is Op.PRODUCT:
                parts = _convolution(children, [self.range[c] for c in below], degrees)
            elif node.op is Op.DET:
                parts = self._det_components(node, i, children, degrees)
            elif node.op is Op.VAR or node.op is Op.CONST:
                parts = dict.fromkeys(degrees, node if self.kept else ONE)
            else:
                assert_never(node.op)
            found.append({j: part for j, part in parts.items() if part is not ZERO})
        return sum_of((1, found[-1][j]) for j in sizes if j in found[-1])

    def _wanted(self, sizes: Sizes) -> list[set[int]]:
        """For every node, the degrees whose components the root's depends on and which are not structurally 0."""
        wanted: list[set[int]] = [set() for _ in self.order]
        wanted[-1] = _within(sizes, self.range[-1])
        for i in reversed(range(len(self.order))):
            below, degrees = self._links[i], wanted[i]
            if not degrees or self.constant[i]:
                continue
            op = self.order[i].op
            if op is Op.SUM:
                for c in below:
                    wanted[c] |= _within(degrees, self.range[c])
            elif op is Op.PRODUCT:
                low, high = self.range[i]
                for c in below:
                    own_low, own_high = self.range[c]
                    rest_low, rest_high = low - own_low, high - own_high  # of the other factors
                    span = range(min(degrees) - rest_high, max(degrees) - rest_low + 1)
                    wanted[c] |= _within(span, self.range[c])
            elif op is Op.DET:
                leading = self._leads(i, degrees)
                for c, top in zip(below, 2 * _pair_tops([self.range[c] for c in below]), strict=True):
                    low, high = self.range[c]
                    wanted[c] |= _within({top}, (low, high)) if leading else {*range(low, high + 1)}
            elif op is not Op.VAR and op is not Op.CONST:
                assert_never(op)
        return wanted

    def _range(self, node: Node, below: list[Range]) -> Range:
        match node.op:
            case Op.CONST:
                return (0, 0) if node.value else NOTHING
            case Op.VAR:
                counts = not node.is_complement and node.name in self.over
                return (1, 1) if counts else (0, 0)
            case Op.SUM:
                parts = [r for r in below if r != NOTHING]
                return (min(low for low, _ in parts), max(high for _, high in parts)) if parts else NOTHING
            case Op.PRODUCT if NOTHING in below:
                return NOTHING
            case Op.PRODUCT:
                return (sum(low for low, _ in below), sum(high for _, high in below))
            case Op.DET:
                counting = self.counting[-1]
                return (0, sum(_pair_tops(below))) if counting is None else counting.range
        assert_never(node.op)

    def _leads(self, i: int, degrees: set[int]) -> bool:
        """Whether of a determinant without children that count only the component of the largest degree is wanted."""
        return self.counting[i] is None and degrees == {self.range[i][1]}

    def _det_components(self, node: Node, i: int, children: list[Components], degrees: set[int]) -> Components:
        counting = self.counting[i]
        if self._leads(i, degrees):
            tops = 2 * _pair_tops([self.range[c] for c in self._links[i]])
            leading = [parts.get(top, ZERO) for parts, top in zip(children, tops, strict=True)]
            return dict.fromkeys(degrees, rebuild(node, leading))
        if counting is None:
            return self._interpolated(node, self.range[i], children, degrees)
        alone = [next(iter(parts.values()), ZERO) for parts in children]  # each child has one component
        if node.size is not None:
            return dict.fromkeys(degrees, rebuild(node, alone))  # its range is one degree
        k = len(alone) // 2
        sized = {j: abs(counting.when_all_out - j) for j in degrees}
        return {j: det(*node.matrices, alone[:k], alone[k:], size, counting.counted) for j, size in sized.items()}

    def _interpolated(self, node: Node, span: Range, children: list[Components], degrees: set[int]) -> Components:
        """Each component as a combination of the values at points; all of them share these."""
        count = span[1] + 1
        if count > MOST_POINTS:
            raise CircuitError(
                f"up to {span[1]} of the variables to count stand in one determinant, in circuits of their own or "
                f"after an earlier count: it can be taken apart for at most {MOST_POINTS - 1} of them"
            )
        points = range(1, count + 1)  # at 0 it would lose children, and with negative ones some weights would be 0
        at = [_at_point(node, children, s) for s in points]
        return {j: sum_of(zip(interpolation_weights(points, j), at, strict=True)) for j in degrees}


def _at_point(node: Node, children: list[Components], s: int) -> Node:
    """A determinant with Σ_m s^m·(component of degree m) for every child."""
    values = [sum_of((s**m, part) for m, part in parts.items()) for parts in children]
    k = len(values) // 2
    counted = None if node.size is None else node.counted
    return det(*node.matrices, values[:k], values[k:], node.size, counted)


class _Counting(NamedTuple):
    """The children of a Det that count. Its degree is the number of those that are in (after a complement: out)."""

    counted: list[bool]
    when_all_out: int  # the degree if all of them are out: 0, or (after a complement) their number
    range: Range


def _counting(node: Node, below: list[Range]) -> _Counting | None:
    """Which children of a Det count, if every pair (f_i, y_i) has the degrees (1, 0) or (0, 0), or every one has (0, 1)
    or (0, 0); else None.

    A Det with a size has a single degree if it counts the same children, apart from children that are surely in.
    """
    pairs = list(zip(below[: len(below) // 2], below[len(below) // 2 :], strict=True))
    surely_in, degrees = [f != NOTHING and y == NOTHING for f, y in pairs], set[tuple[int, int]]()
    for f, y in pairs:
        if any(r not in ((0, 0), (1, 1), NOTHING) for r in (f, y)):
            return None
        degrees.add((max(f[1], 0), max(y[1], 0)))
    if (1, 1) in degrees or {(1, 0), (0, 1)} <= degrees:
        return None
    counted = [f == (1, 1) or y == (1, 1) for f, y in pairs]
    most_in = node.matrices[0].shape[0] - sum(s and not c for s, c in zip(surely_in, counted, strict=True))
    least = sum(s and c for s, c in zip(surely_in, counted, strict=True))
    most = min(sum(counted), most_in)  # c_T = 0 where |T| > r
    if node.size is not None:
        others = [s for s, c, here in zip(surely_in, node.counted, counted, strict=True) if c and not here]
        if not all(others) or any(here and not c for c, here in zip(node.counted, counted, strict=True)):
            return None
        least = node.size - len(others)
        most = least if 0 <= least <= most else -1
    if least > most:
        return _Counting(counted, 0, NOTHING)
    n = sum(counted) if (0, 1) in degrees else 0
    return _Counting(counted, n, (n - most, n - least) if n else (least, most))


def _pair_tops(below: list[Range]) -> list[int]:
    """The largest degree of each pair of children (f_i, y_i) of a determinant."""
    half = len(below) // 2
    return [max(f[1], y[1], 0) for f, y in zip(below[:half], below[half:], strict=True)]


def _within(degrees: set[int] | Sizes, span: Range) -> set[int]:
    return {j for j in degrees if span[0] <= j <= span[1]}


def _sum_component(node: Node, children: list[Components], j: int) -> Node:
    return sum_of((w, parts[j]) for w, parts in zip(node.weights, children, strict=True) if j in parts)


def _convolution(children: list[Components], ranges: Sequence[Range], degrees: set[int]) -> Components:
    """The components of a product: factor by factor, and of each partial product only the degrees that are needed."""
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

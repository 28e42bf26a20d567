"""Graphical models over variables with states → probabilistic circuits, by variable elimination.

A model is a product of tables φ_f(x_f). To eliminate X, multiply all tables that mention it and sum over its states:

    m(s)  =  Σ_x  W(s, x) · lit_x · Π_j m_j(s, x)        s: the states of X's neighbours at that moment

W is the product of the given tables, a number. The messages m_j of earlier eliminations, and the literals lit_x, are
circuit nodes. All entries of m mention the same variables, and different messages mention different ones, so the result
is smooth and decomposable; and the terms of a sum have different states of X, so it is deterministic. Only terms that
are not 0, the *live* ones, are ever written down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgcc.errors import CircuitError
from pgcc.frontend.elimination_order import Order, WidthError, find_orders
from pgcc.frontend.relations import Relation, TooManyRowsError, from_table, join, number_columns
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.domains import Domain, Domains
from pgcc.ir.flat import Flat, spread
from pgcc.ir.flat_builder import FlatBlocks
from pgcc.ir.names import hint
from pgcc.ir.node import const
from pgcc.ir.numbers import ldexp

MOST_TERMS = 1 << 22  # the most live terms of a circuit
MOST_NUMBERS = 1 << 26  # the most live terms of what is summed out as numbers, and of one variable:
MOST_AT_ONCE = 1 << 23
# Eliminating a variable takes as long as so many terms; and as many terms per edge of the best circuit are worth trying
# other orders: a tenth of the time that compiling it takes.
_TERMS_PER_VARIABLE, _WORTH = 1000, 4

# Numbers are rescaled by a power of two when the largest leaves this range; the root gets it back.
_SMALL, _LARGE = 2.0**-100, 2.0**100
_TINY = 2.0**-1000  # below it, digits would be lost
_SAFE = 2.0**-500  # numbers in front of nodes are not gathered below it


@dataclass(frozen=True, eq=False)
class Table:
    """A table over some variables: `table[x_0, x_1, …]` is its entry at those states of `scope`.

    Attributes
    ----------
    scope : tuple of int
        Different variables, by index.
    table : array
        Finite numbers ≥ 0, with an axis for every variable of the scope, as long as it has states.
    is_conditional : bool
        Whether it is Pr(x | parents), where x is the last variable of the scope.
    """

    scope: tuple[int, ...]
    table: np.ndarray
    is_conditional: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or (self.scope, self.is_conditional) != (other.scope, other.is_conditional):
            return False
        return np.array_equal(self.table, other.table)


def eliminate(
    domains: Domains,
    factors: Sequence[Table | Relation],
    keep: Iterable[str] | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Circuit:
    """The probabilistic circuit of a product of tables.

    Parameters
    ----------
    domains : Domains
        The variables with their states; tables refer to them by their index.
    factors : sequence of Table or Relation
        The tables, or their entries that are not 0.
    keep : iterable of str, optional
        The variables of the circuit; the others are summed out as numbers. By default, all are kept.
    evidence : dict, optional
        From variables to the state that was observed, or a set of states. Variables observed in one state are not in
        the circuit, whose total is that of the evidence.

    Returns
    -------
    Circuit
        A smooth, decomposable and deterministic circuit over literals. Its total is that of the model.

    Raises
    ------
    WidthError
        If there are too many live terms; the message names the induced width.

    Examples
    --------
    >>> import numpy as np
    >>> rain = Table((0,), np.array([0.75, 0.25]))
    >>> wet = Table((0, 1), np.array([[0.875, 0.125], [0.25, 0.75]]))
    >>> domains = Domains.plain(["rain", "wet"])
    >>> print(eliminate(domains, [rain, wet], keep=["wet"]))
    0.71875*~wet + 0.28125*wet
    >>> print(eliminate(domains, [rain, wet], evidence={"wet": 1}))
    0.09375*~rain + 0.1875*rain
    """
    names, sizes = list(domains), [len(domain.states) for domain in domains.values()]
    allowed = [list(range(size)) for size in sizes]
    for name, labels in (evidence or {}).items():
        v, where = _index(name, names, "observe"), f"variable {name!r}"
        wanted = labels if isinstance(labels, (set, frozenset)) else {labels}
        allowed[v] = sorted({domains[name].number(label, where) for label in wanted})
    free = {v for v, states in enumerate(allowed) if len(states) != 1 or sizes[v] == 1}
    kept = free.intersection(_kept(names, keep))
    relations = [_sliced(factor, allowed, free) for factor in factors]
    relations += [Relation((v,), np.array([allowed[v]], np.int32), np.ones(len(allowed[v]))) for v in sorted(free)]
    left = [len(states) for states in allowed]
    orders = find_orders(left, [one.scope for one in relations], kept)
    all_live = all(len(one.weights) == math.prod([left[v] for v in one.scope]) for one in relations)
    most = MOST_TERMS + (MOST_NUMBERS if kept < free else 0) if all_live else math.inf
    return from_flat(
        _smallest(orders, most, lambda: _Elimination(domains, relations, kept)),
        Domains({names[v]: _restricted(domains[names[v]], allowed[v]) for v in sorted(kept)}),
    )


def _kept(names: list[str], keep: Iterable[str] | None) -> set[int]:
    if keep is None:
        return set(range(len(names)))
    wanted = [keep] if isinstance(keep, str) else list(keep)
    if not wanted:
        raise CircuitError("keep= has to name at least one variable", argument="keep")
    return {_index(name, names, "keep") for name in wanted}


def _index(name: Any, names: list[str], verb: str) -> int:
    if not isinstance(name, str) or name not in names:
        raise CircuitError(f"cannot {verb} {name!r}: the model has no such variable{hint(name, names)}")
    return names.index(name)


def _restricted(domain: Domain, states: Sequence[int]) -> Domain:
    return Domain(tuple(domain.states[i] for i in states), tuple(domain.columns[i] for i in states))


def _sliced(factor: Table | Relation, allowed: Sequence[Sequence[int]], free: Collection[int]) -> Relation:
    """The live part of a table where all variables are in states that are allowed; those not free have no axis."""
    whole = factor if isinstance(factor, Relation) else from_table(factor.scope, np.asarray(factor.table, float))
    live = np.ones(len(whole.weights), bool)
    for v, states in zip(factor.scope, whole.states, strict=True):
        live &= np.isin(states, allowed[v])
    axes = [i for i, v in enumerate(factor.scope) if v in free]
    return Relation(tuple(factor.scope[i] for i in axes), whole.states[axes][:, live], whole.weights[live])


def _smallest(orders: Sequence[Order], most_cells: float, start: Callable[[], _Elimination]) -> Flat:
    """The circuit with fewest edges of those that the first of these orders lead to, as many as are worth the time.

    (How many terms are live, and how many of their sums are equal, is not known before they are written.)
    """
    best, work, most_work = None, 0, MOST_TERMS
    for order in orders:
        if order.cells > most_cells or work > most_work:
            break
        attempt = start()
        with suppress(TooManyRowsError):
            flat = attempt.run(list(order.neighbours))
            best = flat if best is None or len(flat.child) < len(best.child) else best
            most_work = min(MOST_TERMS, _WORTH * len(best.child))
        work += attempt.terms + _TERMS_PER_VARIABLE * len(order.neighbours)
    if best is None:
        width = min(order.width for order in orders)
        raise WidthError(
            f"the induced width of the best order found is {width}: too many live terms (the limit is {MOST_TERMS:,})",
            width,
        )
    return best


# -- elimination --------------------------------------------------------------------------------------------


class _Elimination:
    """Bucket elimination: each table waits in the bucket of the first of its variables to be eliminated."""

    def __init__(self, domains: Domains, relations: Sequence[Relation], kept: set[int]):
        self.domains = list(domains.values())
        self.sizes = [len(domain.states) for domain in self.domains]
        self.relations, self.kept = relations, kept
        self.buckets: list[list[Relation]] = [[] for _ in self.sizes]
        self.build = FlatBlocks()
        self.one = self.build.leaf(const(1))
        self.constants = [from_table((), np.ones(()))]  # of each connected component
        self.exponent = 0  # all numbers were divided by this power of two
        self.impossible = False
        self.left = {True: MOST_TERMS, False: MOST_NUMBERS}  # live terms that may still come
        self.terms = 0  # those that came

    def run(self, order: Sequence[int]) -> Flat:
        """The circuit, if the variables are eliminated in this order."""
        self.place = {v: i for i, v in enumerate(order)}
        for relation in self.relations:
            self.deliver(relation)
        for v in order:
            if self.buckets[v] and not self.impossible:
                self.eliminate(v)
                self.buckets[v] = []
        return Flat.of([const(0)]) if self.impossible else self.finished()

    def deliver(self, relation: Relation) -> None:
        """Put a relation into its bucket."""
        self.impossible |= not len(relation.weights)
        bucket = self.buckets[min(relation.scope, key=self.place.__getitem__)] if relation.scope else self.constants
        bucket.append(relation)

    def eliminate(self, v: int) -> None:
        """m(s) = Σ_x W(s, x) · lit_x · Π_j m_j(s, x), over the terms that are not 0."""
        bag, kept = self.buckets[v], v in self.kept
        scope, states, rows = join(bag, self.sizes, min(self.left[kept], MOST_AT_ONCE))
        self.left[kept] -= states.shape[1]
        self.terms += states.shape[1]
        near = [i for i, u in enumerate(scope) if u != v]
        code, _ = number_columns(
            [states[scope.index(v)] * 0, *states[near]], [1, *(self.sizes[scope[i]] for i in near)]
        )
        order = np.argsort(code, kind="stable")
        first = np.flatnonzero(np.diff(code[order], prepend=-1))
        weights, factors = self.multiplied(bag, [row[order] for row in rows])
        nodes = None
        if kept:
            leaves = np.array([self.build.leaf(self.domains[v].leaf(i)) for i in range(self.sizes[v])])
            literals = leaves[states[scope.index(v)][order]]
            weights, nodes = self.sums(first, weights, self.products([literals, *factors]))
        elif len(first):
            weights = np.add.reduceat(weights, first)
        self.deliver(Relation(tuple(scope[i] for i in near), states[near][:, order[first]], weights, nodes))

    def multiplied(self, bag: Sequence[Relation], rows: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
        """The product of all numbers, and the nodes of the messages."""
        weights, factors = np.ones(len(rows[0])), []
        for relation, row in zip(bag, rows, strict=True):
            numbers, nodes = self.rescaled(relation.weights), relation.nodes
            if nodes is not None:
                if len(row) and weights.min() * numbers.min() < _SAFE:
                    nodes, numbers = self.build.sums(np.ones(len(nodes), int), nodes, numbers), np.ones(len(nodes))
                factors.append(nodes[row])
            weights = weights * numbers[row]
            if len(row) and weights.min() < _TINY:
                raise _too_different()
            weights = self.rescaled(weights)
        return weights, factors

    def products(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        """A node for the product of each row of nodes; equal rows have one node."""
        some = [one for one in factors if not (one == self.one).all()]
        if len(some) < 2:
            return some[0] if some else factors[0]
        code, _ = number_columns(some, [self.build.count] * len(some))
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        return self.build.products(np.stack([one[first] for one in some], axis=1))[which]

    def sums(self, first: np.ndarray, weights: np.ndarray, children: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each stretch of terms, its sum as a number times a node.

        A lone term is no sum, and equal sums are one node.
        """
        lengths = np.diff(first, append=len(weights))
        lone = (lengths == 1) & (weights[first] > _SMALL) & (weights[first] < _LARGE)
        numbers, nodes = np.where(lone, weights[first], 1.0), children[first]
        many = np.flatnonzero(~lone)
        if len(many):
            start, size = first[many], lengths[many]
            same = self.equal_sums(start, size, weights, children)
            _, one, which = np.unique(same, return_index=True, return_inverse=True)
            edges = spread(start[one], size[one])
            nodes[many] = self.build.sums(size[one], children[edges], weights[edges])[which]
        return numbers, nodes

    def equal_sums(self, start: np.ndarray, size: np.ndarray, weights: np.ndarray, children: np.ndarray) -> np.ndarray:
        """A number for each stretch of terms; equal ones have equal numbers."""
        weight = np.unique(weights, return_inverse=True)[1]
        code, _ = number_columns([children, weight], [self.build.count, len(weight) + 1])
        term = np.unique(code, return_inverse=True)[1] + 1
        same, span = np.zeros(len(start), np.int64), len(term) + 2
        for k in range(int(size.max())):
            longer = size > k
            code = same * span
            code[longer] += term[start[longer] + k]
            same = np.unique(code, return_inverse=True)[1]
        return same

    def finished(self) -> Flat:
        """The product of all components."""
        nodes = [one.nodes for one in self.constants if one.nodes is not None]
        numbers = [one._replace(nodes=None) for one in self.constants]
        weights, _ = self.multiplied(numbers, [np.zeros(1, int)] * len(numbers))
        weight = ldexp(float(weights[0]), self.exponent)
        root = int(self.products([np.array([self.one]), *nodes])[0])
        return Flat.of([const(weight)]) if root == self.one else self.build.flat(root, weight)

    def rescaled(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers, divided by a power of two if the largest is very large or small."""
        top = float(numbers.max(initial=0))
        if top and not _SMALL < top < _LARGE:
            exponent = int(np.frexp(top)[1])
            self.exponent += exponent
            with np.errstate(under="ignore"):
                numbers = np.ldexp(numbers, -exponent)
        if top and numbers.min() < _TINY:
            raise _too_different()
        return numbers


def _too_different() -> CircuitError:
    return CircuitError("the numbers in the tables differ too much: a product of them is out of the range of floats")

"""Whether two nodes of a circuit over literals can both be positive. A sum of which no two terms can is deterministic.

The *support* of a node is the set of assignments at which it is not 0, and its *count* is its polynomial with 1 for
every number that is not 0: in how many ways it is not 0. A node is deterministic if all coefficients of its count are 0
or 1. Four tests, the cheapest first:

- The terms of a sum have different literals of one variable. (So it is in the circuits of graphical models, and where a
  compiler of logic has decided a variable.)
- With x̄ = 1 − x, the count of a node is the constant 1: there is exactly one way for each assignment. Then this node is
  deterministic, and so are those below.
- Supports meet that meet in a table, of all assignments if there are few variables, or else of a random sample.
- The terms of a sum are divided by their factors over some of its variables. These exclude one another if their counts
  add up to 1, as those of the primes of a decision of an SDD; otherwise, if the terms of their sums do. The number of
  steps is bounded: if it takes more, the answer is unknown.

Counts are compared at a secret random point modulo a random prime of 127 bits. That two different ones agree there is
less probable than 2⁻⁸⁰, for all comparisons in a circuit together.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations, pairwise
from operator import and_, or_

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.flat import Flat, spread, starts
from pgcc.ir.node import Op
from pgcc.ir.scopes import as_bits
from pgcc.locks import cached_property

Found = tuple[int, int, int] | None  # the positions of a sum and of two of its terms
Factors = tuple[int, ...]  # the positions of the factors of a term
Literal = tuple[str, bool]
Combine = Callable[[Iterable[int]], int]
_TABLE_BITS = 1 << 28  # the largest table of the supports of all nodes
_SAMPLES = 512  # random assignments, if there are too many for a table
_PRIME_BITS = 127
_DEPTH, _STEPS = 150, 300_000  # of the search: a few seconds at most
_FEW = 8  # so many terms or fewer are compared in pairs


def find_meeting_terms(circuit: Circuit) -> tuple[bool | None, Found]:
    """The first sum with two terms that have common support, if no terms cancel.

    Returns
    -------
    meeting : bool or None
        True if the two terms have common support; None if that is unknown, or if there are no such terms.
    found : (int, int, int) or None
        The positions of the sum and of the two terms; None if there are none.
    """
    n = len(circuit.scopes.names)
    complete = n <= 24 and len(circuit.order) << n <= _TABLE_BITS and not (circuit.domains and circuit.domains.unit)
    search = CommonSupport(circuit, complete)
    found = search.meeting_in_table()
    if found is not None:
        return True, found
    return (None, None) if complete or is_deterministic(circuit) else search.meeting_terms()


def is_deterministic(circuit: Circuit) -> bool:
    """Whether a decomposable circuit without determinants is proved to be deterministic; False also if that is unknown.

    Examples
    --------
    >>> import pgcc
    >>> is_deterministic(pgcc.parse("0.4*a*b + 0.6*~a")), is_deterministic(pgcc.parse("0.4*a + 0.6*b"))
    (True, False)
    """
    if circuit._overlap is not None or (circuit._flat.op == Op.DET).any():
        return False
    left = undecided_sums(circuit._flat, circuit.domains).tolist()
    if not left:
        return True
    with collector_paused():
        search = CommonSupport(circuit)
        is_settled = search.below_complete_ones()
    # The largest first: others are parts of them.
    return all(is_settled[i] or search.excludes(i) for i in reversed(left))


def undecided_sums(flat: Flat, domains: Domains | None, among: set[str] | None = None) -> np.ndarray:
    """The sums without a variable of which all terms have a literal, each another one; of a decomposable circuit.

    among : the variables that may decide; all of them by default.
    """
    numbers: dict[str, int] = {}
    unit = domains.unit if domains else {}
    variable = np.full(len(flat.op), -1)
    for i in np.flatnonzero(flat.op == Op.VAR).tolist():
        name, is_complement = flat.data[i]
        if (among is None or name in among) and not (is_complement and name in unit):
            variable[i] = numbers.setdefault(unit.get(name, name), len(numbers))
    edge = np.flatnonzero((flat.op == Op.SUM)[flat.parent] & _live(flat))
    term, sums = flat.child[edge], flat.parent[edge]
    factors = np.where(flat.op[term] == Op.PRODUCT, flat.lengths[term], 0)
    below = np.concatenate([term, flat.child[spread(flat.start[term], factors)]])
    owner = np.concatenate([sums, np.repeat(sums, factors)])[variable[below] >= 0]
    below = below[variable[below] >= 0]
    key, times = np.unique(owner * (len(numbers) + 1) + variable[below], return_counts=True)
    literals = np.unique(np.stack([owner * (len(numbers) + 1) + variable[below], below]), axis=1)[0]
    terms, of = np.bincount(sums, minlength=len(flat.op)), key // (len(numbers) + 1)
    decided = of[(np.unique(literals, return_counts=True)[1] == times) & (times == terms[of])]
    return np.setdiff1d(np.flatnonzero(terms > 1), decided)


def _live(flat: Flat) -> np.ndarray:
    """Which edges are not weighted by 0."""
    live = np.ones(len(flat.child), bool)
    live[(flat.op == Op.SUM)[flat.parent]] = np.fromiter(map(bool, flat.weights), bool, len(flat.weights))
    return live


class _UnknownError(Exception):
    """The search takes too long."""


class CommonSupport:
    """Decides whether nodes are positive at a common assignment: True, False, or None if it is unknown.

    Parameters
    ----------
    circuit : Circuit
        A circuit over literals; nodes are given by their positions in its order.
    complete : bool
        Whether to compute supports at all assignments.
    """

    def __init__(self, circuit: Circuit, complete: bool = False):
        self.circuit, self.complete = circuit, complete
        flat, live = circuit._flat, _live(circuit._flat)
        child, ends = flat.child[live].tolist(), starts(np.bincount(flat.parent[live], minlength=len(flat.op)))
        self.op = flat.op.tolist()
        self.below = [child[first:last] for first, last in pairwise(ends.tolist())]
        self._scope_of, self._scope_bits = circuit.scopes.of, list(map(as_bits, circuit.scopes.distinct))
        # By a count, the sets with it that were shown to exclude one another; and the sets that were not.
        self.apart: dict[int, list[frozenset[int]]] = {}
        self.meeting: set[frozenset[int]] = set()
        self.steps = _STEPS

    # -- supports and counts of all nodes ------------------------------------------------------------------------------

    @cached_property
    def support(self) -> list[int]:
        """The support of every node, if no terms cancel: one bit per assignment, of all or of a random sample."""
        bits = 1 << len(self.circuit.scopes.names) if self.complete else _SAMPLES
        ones, rng = (1 << bits) - 1, random.Random(0)
        point: dict[Literal, int] = {}
        for i, literals in enumerate(_literals(self.circuit)):
            if len(literals) == 2:  # the truth table of x_i, or random values
                true = ones // ((1 << (1 << i)) + 1) << (1 << i) if self.complete else rng.getrandbits(bits)
                point |= dict(zip(literals, (true, true ^ ones), strict=True))
            else:
                drawn = [rng.randrange(len(literals)) for _ in range(bits)]
                point |= {one: sum(1 << b for b in range(bits) if drawn[b] == k) for k, one in enumerate(literals)}
        return self._evaluated(point, ones, lambda terms: reduce(or_, terms, 0), lambda all: reduce(and_, all, ones))

    @cached_property
    def prime(self) -> int:
        """A random prime."""
        while True:
            prime = secrets.randbits(_PRIME_BITS) | 1 << (_PRIME_BITS - 1) | 1
            if all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7)):
                return prime

    @cached_property
    def count(self) -> list[int]:
        """The count of every node at a random point at which the literals of each variable add up to 1."""
        point: dict[Literal, int] = {}
        for *some, last in _literals(self.circuit):
            point |= {literal: secrets.randbelow(self.prime) for literal in some}
            point[last] = (1 - sum(point[literal] for literal in some)) % self.prime
        return self._evaluated(point, 1, lambda terms: sum(terms) % self.prime, self._product)

    def _product(self, numbers: Iterable[int]) -> int:
        found = 1
        for number in numbers:
            found = found * number % self.prime
        return found

    def _evaluated(self, point: dict[Literal, int], one: int, plus: Combine, times: Combine) -> list[int]:
        """The values of all nodes over a ring, in which every number but 0 is 1."""
        point = {(name, True): one - value for (name, _), value in point.items()} | point
        data = self.circuit._flat.data
        found: list[int] = []
        for i, (op, below) in enumerate(zip(self.op, self.below, strict=True)):
            if op == Op.SUM:
                found.append(plus([found[c] for c in below]))
            elif op == Op.PRODUCT:
                found.append(times([found[c] for c in below]))
            elif op == Op.VAR:
                found.append(point[data[i]])
            elif op == Op.CONST:
                found.append(one if data[i] else 0)
            else:
                raise CircuitError(f"the support of {self.circuit.order[i]!r} is not known")
        return found

    # -- terms with common support -------------------------------------------------------------------------------------

    def meeting_in_table(self) -> Found:
        """The first sum with two terms that are both nonzero at some assignment of the table."""
        support = self.support
        for i, (op, terms) in enumerate(zip(self.op, self.below, strict=True)):
            seen = 0
            for k, c in enumerate(terms if op == Op.SUM else ()):
                if seen & support[c]:
                    return i, next(t for t in terms[:k] if support[t] & support[c]), c
                seen |= support[c]
        return None

    def meeting_terms(self) -> tuple[bool | None, Found]:
        """The first sum with two terms that have common support; if there is none, the first where that is unknown."""
        unknown: Found = None
        for i, op in enumerate(self.op):
            for u, v in combinations(self.below[i], 2) if op == Op.SUM and not self.excludes(i) else ():
                meeting = self.products_meet(self.factors(u), self.factors(v))
                if meeting:
                    return True, (i, u, v)
                if meeting is None:
                    unknown = unknown or (i, u, v)
                    break
        return None, unknown

    def below_complete_ones(self) -> list[bool]:
        """The nodes below one whose count is 1: if they were not deterministic, neither would that be."""
        found = [count == 1 for count in self.count]
        for i in range(len(found) - 1, -1, -1):
            if found[i] and self.count[i]:  # then so are all of its factors, in a decomposable circuit
                for c in self.below[i]:
                    found[c] = True
        return found

    def products_meet(self, us: Sequence[int], vs: Sequence[int]) -> bool | None:
        """Whether two products, given by their factors, have common support."""
        p, q = self._value(us), self._value(vs)
        if self.exclude_one_another([us, vs]) or not (p and q):
            return False
        facts = self.circuit.facts  # otherwise a node may be 0 although it has a term
        if not (facts.monotone and facts.decomposable):
            return None
        sampled = reduce(and_, (self.support[c] for c in (*us, *vs)), -1)
        return (
            True if p == q or 1 in (p, q) or sampled or len(list(self._cells([us, vs]))) == len(us) + len(vs) else None
        )

    def excludes(self, position: int) -> bool:
        """Whether the terms of a sum exclude one another."""
        return self.exclude_one_another(map(self.factors, self.below[position]))

    def exclude_one_another(self, terms: Iterable[Sequence[int]]) -> bool:
        """Whether no two terms are positive at the same assignment; False also if that is unknown."""
        try:
            return self._exclusive([tuple(term) for term in terms if self._value(term)])
        except _UnknownError:
            return False

    def factors(self, node: int) -> Factors:
        """A term as a product: the factors that are no constants, or are 0."""
        below = self.below[node]
        return tuple(c for c in below if self._bits(c) or not self.count[c]) if self.op[node] == Op.PRODUCT else (node,)

    def _bits(self, node: int) -> int:
        return self._scope_bits[self._scope_of[node]]

    def _value(self, factors: Iterable[int]) -> int:
        return self._product(self.count[factor] for factor in factors)

    def _cells(self, terms: Sequence[Sequence[int]]) -> Iterator[list[Factors]]:
        """The factors of each term over a set of variables, for sets as small as can be: no factor is in two."""
        cells: list[int] = []
        for bits in {self._bits(factor) for term in terms for factor in term}:
            apart = [cell for cell in cells if not cell & bits]
            cells = [*apart, reduce(or_, (cell for cell in cells if cell & bits), bits)]
        for cell in cells:
            yield [tuple(f for f in term if self._bits(f) & cell) for term in terms]

    def _exclusive(self, terms: list[Factors], depth: int = 0) -> bool:
        """Whether no two terms are positive at the same assignment.

        Where the factors over some variables exclude one another, so do terms with different ones; terms with equal
        ones are told apart by their other factors.
        """
        if len(terms) < 2 or sum(map(self._value, terms)) % self.prime == 1:
            return True
        self.steps -= len(terms)
        if self.steps < 0 or depth > _DEPTH:
            raise _UnknownError
        cells = list(self._cells(terms))
        for looks_inside in (False, True)[: len(cells)]:
            for cell in cells:
                groups: dict[int, list[int]] = {}
                for i, part in enumerate(cell):
                    groups.setdefault(self._value(part), []).append(i)
                parts = {value: cell[group[0]] for value, group in groups.items() if value}
                if len(parts) > 1 and self._all_apart(parts, looks_inside, depth):
                    rest = [tuple(f for f in term if f not in part) for term, part in zip(terms, cell, strict=True)]
                    return all(self._exclusive([rest[i] for i in groups[value]], depth + 1) for value in parts)
        if len(terms) > 2 and (len(cells) > 1 or len(terms) < _FEW):
            pairs = ({self._value(a): a, self._value(b): b} for a, b in combinations(terms, 2))
            return all(len(pair) == 2 and self._all_apart(pair, True, depth) for pair in pairs)
        expanded = [other for term in terms for other in self._expanded(term)]
        return len(cells) == 1 and expanded != terms and self._exclusive(expanded, depth + 1)

    def _all_apart(self, parts: Mapping[int, Factors], looks_inside: bool, depth: int) -> bool:
        """Whether some products of factors, by their counts, exclude one another: they do if these add up to 1."""
        key, one = frozenset(parts), next(iter(parts))
        if sum(parts) % self.prime == 1 or any(key <= others for others in self.apart.get(one, ())):
            return True
        seen = 0
        for part in parts.values():
            support = reduce(and_, (self.support[c] for c in part), -1)
            if seen & support:
                return False
            seen |= support
        if 1 in parts or key in self.meeting:
            return False
        if not looks_inside:
            literals = [part[0] for part in parts.values() if len(part) == 1 and self.op[part[0]] == Op.VAR]
            return len(literals) == len(parts) and all(self._contradict(a, b) for a, b in combinations(literals, 2))
        if not self._exclusive(list(parts.values()), depth + 1):
            self.meeting.add(key)
            return False
        for value in parts:
            self.apart.setdefault(value, []).append(key)
        return True

    def _expanded(self, term: Factors) -> list[Factors]:
        """The terms of its largest factor, a sum or a product, each with the other factors."""
        inner = [factor for factor in term if self.op[factor] in (Op.SUM, Op.PRODUCT)]
        if not inner:
            return [term]
        factor = max(inner, key=lambda f: self._bits(f).bit_count())
        others = tuple(f for f in term if f != factor)
        return [others + self.factors(c) for c in (self.below[factor] if self.op[factor] == Op.SUM else [factor])]

    def _contradict(self, a: int, b: int) -> bool:
        """Whether two literals of a variable exclude one another."""
        (x, x_is_out), (y, y_is_out) = self.circuit._flat.data[a], self.circuit._flat.data[b]
        return x_is_out != y_is_out if x == y else not (x_is_out or y_is_out)


def _literals(circuit: Circuit) -> Iterator[list[Literal]]:
    """The literals of each variable of which exactly one is true: its states, or that it is in, and that it is out."""
    states = {name: [c for c in one.columns if c] for name, one in (circuit.domains or {}).items() if one.is_block}
    for name in circuit.scopes.names:
        yield [(column, False) for column in states[name]] if name in states else [(name, False), (name, True)]

"""A proof that a circuit over literals is deterministic: no assignment makes two terms of a sum positive.

Let c(u) count the ways in which node u can be positive: its polynomial with 1 for every positive number. Then u is
deterministic if all coefficients of c(u) are 0 or 1. Three tests, the cheapest first:

- The terms of a sum have different literals of one variable. (So it is in the circuits of graphical models, and where a
  compiler of logic has decided a variable.)
- c(root), with x̄ = 1 − x, is the constant 1: there is exactly one way for each assignment.
- The terms of a sum are divided by their factors over some of its variables. These exclude one another if their counts
  add up to 1 (as those of the primes of a decision of an SDD), or if all of their terms do.

Polynomials are compared at a secret random point modulo a random prime of 127 bits. That two different ones agree there
is less probable than 2⁻⁸⁰ for all comparisons in a circuit that fits into a computer.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.flat import Flat, spread, starts
from pgcc.ir.node import Op
from pgcc.ir.scopes import as_bits
from pgcc.locks import cached_property

_BITS = 127
_DEPTH = 150  # of the search
_MOST_STEPS = 200_000
Term = tuple[int, ...]  # the positions of the factors


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
    proof = _Proof(circuit)
    return proof.count[-1] == 1 or proof.all_exclusive(left)


def undecided_sums(flat: Flat, domains: Domains | None, among: set[str] | None = None) -> np.ndarray:
    """The sums without a variable of which all terms have a literal, each another one.

    among : the variables that may decide; all of them by default.
    """
    names: dict[str, int] = {}
    unit = domains.unit if domains else {}
    literal, variable = np.full(len(flat.op), -1), np.full(len(flat.op), -1)
    for i in np.flatnonzero(flat.op == Op.VAR).tolist():
        column, is_complement = flat.data[i]
        if (among is None or column in among) and not (is_complement and column in unit):
            literal[i], variable[i] = i, names.setdefault(unit.get(column, column), len(names))
    edge = np.flatnonzero((flat.op == Op.SUM)[flat.parent] & _live(flat))
    term, sums = flat.child[edge], flat.parent[edge]
    factors = np.where(flat.op[term] == Op.PRODUCT, flat.lengths[term], 0)
    below = np.concatenate([term, flat.child[spread(flat.start[term], factors)]])
    owner = np.concatenate([sums, np.repeat(sums, factors)])
    is_literal = literal[below] >= 0
    below, owner = below[is_literal], owner[is_literal]
    key, width = owner * (len(names) + 1) + variable[below], len(names) + 1
    with_variable, times = np.unique(key, return_counts=True)
    different = np.unique(np.unique(np.stack([key, below]), axis=1)[0], return_counts=True)[1]
    terms = np.bincount(sums, minlength=len(flat.op))
    of = with_variable // width
    decided = of[(different == times) & (times == terms[of])]
    return np.setdiff1d(np.flatnonzero(terms > 1), decided)


def _live(flat: Flat) -> np.ndarray:
    """Which edges are not weighted by 0."""
    live = np.ones(len(flat.child), bool)
    live[(flat.op == Op.SUM)[flat.parent]] = np.fromiter(map(bool, flat.weights), bool, len(flat.weights))
    return live


class _UnknownError(Exception):
    """The search takes too long."""


class _Proof:
    """The counts of all nodes at a random point, and the search for terms that exclude one another."""

    def __init__(self, circuit: Circuit):
        self.circuit, self.scopes = circuit, circuit.scopes
        flat, live = circuit._flat, _live(circuit._flat)
        start, child = (
            starts(np.bincount(flat.parent[live], minlength=len(flat.op))).tolist(),
            flat.child[live].tolist(),
        )
        self.op = flat.op.tolist()
        self.below = [child[first:last] for first, last in pairwise(start)]
        self.prime = _random_prime()
        self.count = self._evaluated(_random_point(circuit, self.prime), self.prime)
        self.known: dict[frozenset[int], bool] = {}
        self.steps = _MOST_STEPS

    def _evaluated(self, point: Mapping[tuple[str, bool], Any], modulus: float) -> list[Any]:
        """The counts of all nodes at a point."""
        count: list[Any] = []
        data = self.circuit._flat.data
        for i, (op, below) in enumerate(zip(self.op, self.below, strict=True)):
            if op == Op.SUM:
                count.append(sum([count[c] for c in below]) % modulus)
            elif op == Op.PRODUCT:
                count.append(_product(count, below, modulus))
            elif op == Op.VAR:
                count.append(point[data[i]])
            elif op == Op.CONST:
                count.append(int(bool(data[i])))
            else:
                raise AssertionError(f"operation {op} is in no circuit over literals")
        return count

    @cached_property
    def share(self) -> list[float]:
        """By node, the share of all assignments at which it is positive, if it is deterministic."""
        alike = {literal: 1.0 / len(group) for group in _literals(self.circuit) for literal in group}
        return self._evaluated(_with_complements(alike), math.inf)

    def all_exclusive(self, sums: Sequence[int]) -> bool:
        """Whether the terms of each of these sums exclude one another; False if the search takes too long."""
        try:
            return all(self._exclusive([self._factors(c) for c in self.below[i]]) for i in sums)
        except _UnknownError:
            return False

    # -- terms that exclude one another -------------------------------------------------------------------------------

    def _factors(self, node: int) -> Term:
        return tuple(c for c in self.below[node] if self.scopes.of[c]) if self.op[node] == Op.PRODUCT else (node,)

    def _bits(self, node: int) -> int:
        return as_bits(self.scopes.distinct[self.scopes.of[node]])

    def _value(self, term: Term) -> int:
        return _product(self.count, term, self.prime)

    def _cells(self, terms: Sequence[Term]) -> Iterator[list[Term]]:
        """The factors of each term over a set of variables, for sets as small as can be: no factor is in two."""
        cells: list[int] = []
        for bits in {self._bits(factor) for term in terms for factor in term}:
            apart = [cell for cell in cells if not cell & bits]
            cells = [*apart, bits | sum(cell for cell in cells if cell & bits)]
        for cell in cells:
            yield [tuple(f for f in term if self._bits(f) & cell) for term in terms]

    def _exclusive(self, terms: list[Term], depth: int = 0) -> bool:
        """Whether no two terms are positive at the same assignment.

        Where the factors over some variables exclude one another, so do terms with different ones; terms with equal
        ones are told apart by their other factors.
        """
        if len(terms) < 2:
            return True
        self.steps -= len(terms)
        if self.steps < 0 or depth > _DEPTH:
            raise _UnknownError
        cells = list(self._cells(terms))
        for expanding in (False, True):
            for cell in cells if len(cells) > 1 or not expanding else ():
                groups: dict[int, list[int]] = {}
                for i, part in enumerate(cell):
                    groups.setdefault(self._value(part), []).append(i)
                parts = {value: cell[group[0]] for value, group in groups.items() if value}
                if len(parts) > 1 and self._all_apart(parts, expanding, depth):
                    rest = [tuple(f for f in term if f not in part) for term, part in zip(terms, cell, strict=True)]
                    return all(self._exclusive([rest[i] for i in groups[value]], depth + 1) for value in parts)
        if len(cells) > 1:
            return len(terms) > 2 and all(self._exclusive([a, b], depth + 1) for a, b in combinations(terms, 2))
        expanded = [other for term in terms for other in self._expanded(term)]
        return expanded != terms and self._exclusive(expanded, depth + 1)

    def _all_apart(self, parts: dict[int, Term], expanding: bool, depth: int) -> bool:
        """Whether some products of factors, by their counts, exclude one another: they do if these add up to 1."""
        if sum(parts) % self.prime == 1:
            return True
        terms = list(parts.values())
        if sum(_product(self.share, term, math.inf) for term in terms) > 1.000001:
            return False
        if 1 in parts or not expanding:
            is_literal = all(len(term) == 1 and self.op[term[0]] == Op.VAR for term in terms)
            return 1 not in parts and is_literal and all(self._contradict(*a, *b) for a, b in combinations(terms, 2))
        key = frozenset(parts)
        if key not in self.known:
            self.known[key] = self._exclusive(terms, depth + 1)
        return self.known[key]

    def _expanded(self, term: Term) -> list[Term]:
        """The terms of its largest factor, a sum, each with the other factors."""
        for factor in sorted(term, key=lambda f: -self._bits(f).bit_count()):
            if self.op[factor] in (Op.SUM, Op.PRODUCT):
                others = tuple(f for f in term if f != factor)
                below = self.below[factor] if self.op[factor] == Op.SUM else [factor]
                return [others + self._factors(c) for c in below]
        return [term]

    def _contradict(self, a: int, b: int) -> bool:
        """Whether two literals of a variable exclude one another."""
        (x, x_is_out), (y, y_is_out) = self.circuit._flat.data[a], self.circuit._flat.data[b]
        return x_is_out != y_is_out if x == y else not (x_is_out or y_is_out)


def _random_prime() -> int:
    while True:
        prime = secrets.randbits(_BITS) | 1 << (_BITS - 1) | 1
        if all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7)):
            return prime


def _product(numbers: Sequence[Any], factors: Iterable[int], modulus: float) -> Any:
    found: Any = 1
    for factor in factors:
        found = found * numbers[factor] % modulus
    return found


def _literals(circuit: Circuit) -> Iterator[list[tuple[str, bool]]]:
    """The literals of each variable of which exactly one is true: its states, or that it is in, and that it is out."""
    unit = circuit.domains.unit if circuit.domains else {}
    yield from (
        [(name, False), (name, True)] for name in {*circuit.scopes.names, *circuit.variables} - {*unit.values()}
    )
    for domain in (circuit.domains or {}).values():
        if domain.is_block:
            yield [(column, False) for column in domain.columns if column]


def _random_point(circuit: Circuit, prime: int) -> dict[tuple[str, bool], int]:
    """A value for every literal; those of a variable add up to 1."""
    point: dict[tuple[str, bool], int] = {}
    for *some, last in _literals(circuit):
        point |= {literal: secrets.randbelow(prime) for literal in some}
        point[last] = (1 - sum(point[literal] for literal in some)) % prime
    return _with_complements(point)


def _with_complements(point: dict[tuple[str, bool], Any]) -> dict[tuple[str, bool], Any]:
    """The point with a value for the complements of the columns of states."""
    return {(name, True): 1 - value for (name, _), value in point.items()} | point

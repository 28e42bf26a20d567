"""A proof that a circuit over literals is deterministic: no assignment makes two terms of a sum positive.

Let c(u) count the ways in which node u can be positive: its polynomial with 1 for every positive number. Then u is
deterministic if all coefficients of c(u) are 0 or 1. Three tests, the cheapest first:

- The terms of a sum have different literals of one variable. (So it is in the circuits of graphical models, and where a
  compiler of logic has decided a variable.)
- c(root), with x̄ = 1 − x, is the constant 1: there is exactly one way for each assignment.
- The terms of a sum are divided by their factors over some of its variables. These exclude one another if their counts
  add up to 1 (as those of the primes of a decision of an SDD), or by a search through the pairs of their terms.

Polynomials are compared at a secret random point modulo a random prime of 127 bits. That two different ones agree there
is less probable than 2⁻⁸⁰ for all comparisons in a circuit that fits into a computer.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np

from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.flat import Flat, spread, starts
from pgcc.ir.node import Op
from pgcc.ir.scopes import as_bits

_BITS = 127
_DEPTH = 150  # of the search through pairs
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
        self.count = self._counts(_random_point(circuit, self.prime))
        self.known: dict[tuple[int, int], bool] = {}
        self.steps = _MOST_STEPS

    def _counts(self, point: dict[tuple[str, bool], int]) -> list[int]:
        count: list[int] = []
        prime, data = self.prime, self.circuit._flat.data
        for i, (op, below) in enumerate(zip(self.op, self.below, strict=True)):
            if op == Op.SUM:
                found = sum([count[c] for c in below]) % prime
            elif op == Op.PRODUCT:
                found = 1
                for c in below:
                    found = found * count[c] % prime
            elif op == Op.VAR:
                found = point[data[i]]
            elif op == Op.CONST:
                found = int(bool(data[i]))
            else:
                raise AssertionError(f"operation {op} is in no circuit over literals")
            count.append(found)
        return count

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
        found = 1
        for factor in term:
            found = found * self.count[factor] % self.prime
        return found

    def _cells(self, terms: Sequence[Term]) -> Iterator[list[Term]]:
        """The factors of each term over a set of variables, for sets as small as can be: no factor is in two."""
        cells: list[int] = []
        for bits in {self._bits(factor) for term in terms for factor in term}:
            apart = [cell for cell in cells if not cell & bits]
            cells = [*apart, bits | sum(cell for cell in cells if cell & bits)]
        for cell in cells:
            yield [tuple(f for f in term if self._bits(f) & cell) for term in terms]

    def _exclusive(self, terms: list[Term]) -> bool:
        """Whether no two terms are positive at the same assignment."""
        if len(terms) < 2:
            return True
        for cell in self._cells(terms):
            groups: dict[int, list[int]] = {}
            for i, part in enumerate(cell):
                groups.setdefault(self._value(part), []).append(i)
            if len(groups) > 1 and self._all_apart({value: cell[group[0]] for value, group in groups.items()}):
                rest = [tuple(f for f in term if f not in part) for term, part in zip(terms, cell, strict=True)]
                return all(self._exclusive([rest[i] for i in group]) for group in groups.values())
        return self._all_apart(dict(enumerate(terms))) if len(terms) == 2 else False

    def _all_apart(self, parts: dict[int, Term]) -> bool:
        """Whether these exclude one another: they do if their counts add up to 1."""
        terms = list(parts.values())
        if sum(map(self._value, terms)) % self.prime == 1:
            return True
        return all(self._apart(a, b) for a, b in combinations(terms, 2))

    def _apart(self, a: Term, b: Term, depth: int = 0) -> bool:
        """Whether two products of factors exclude one another."""
        p, q = self._value(a), self._value(b)
        if not (p and q) or (p + q) % self.prime == 1:
            return True
        if p == q or p == 1 or q == 1:
            return False
        key = (p, q) if p < q else (q, p)
        if key not in self.known:
            self.steps -= 1 + len(a) * len(b) // 8
            if self.steps < 0 or depth > _DEPTH:
                raise _UnknownError
            self.known[key] = any(self._is_apart(x, y, depth + 1) for x, y in self._cells([a, b]) if x and y)
        return self.known[key]

    def _is_apart(self, a: Term, b: Term, depth: int) -> bool:
        """The same where no variables divide the factors."""
        nodes = [(factor, a, b) for factor in a] + [(factor, b, a) for factor in b]
        for factor, own, other in nodes:
            if self.op[factor] == Op.PRODUCT:
                return self._apart(_put(own, factor, self._factors(factor)), other, depth)
        sums = [node for node in nodes if self.op[node[0]] == Op.SUM]
        if not sums:
            return self._contradict(a[0], b[0])
        factor, own, other = max(sums, key=lambda node: self._bits(node[0]).bit_count())
        return all(self._apart(_put(own, factor, self._factors(c)), other, depth) for c in self.below[factor])

    def _contradict(self, a: int, b: int) -> bool:
        """Whether two literals of a variable exclude one another."""
        (x, x_is_out), (y, y_is_out) = self.circuit._flat.data[a], self.circuit._flat.data[b]
        return x_is_out != y_is_out if x == y else not (x_is_out or y_is_out)


def _put(term: Term, factor: int, parts: Term) -> Term:
    return tuple(f for f in term if f != factor) + parts


def _random_prime() -> int:
    while True:
        prime = secrets.randbits(_BITS) | 1 << (_BITS - 1) | 1
        if all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7)):
            return prime


def _random_point(circuit: Circuit, prime: int) -> dict[tuple[str, bool], int]:
    """A value for every literal; those of a variable add up to 1."""
    point: dict[tuple[str, bool], int] = {}
    blocks = [[c for c in domain.columns if c] for domain in (circuit.domains or {}).values() if domain.is_block]
    for name in set(circuit.scopes.names) | set(circuit.variables):
        x = secrets.randbelow(prime)
        point[name, False], point[name, True] = x, (1 - x) % prime
    for columns in blocks:
        point[columns[-1], False] = (1 - sum(point[c, False] for c in columns[:-1])) % prime
        point[columns[-1], True] = (1 - point[columns[-1], False]) % prime
    return point

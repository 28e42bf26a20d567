"""Whether two nodes of a circuit over literals can both be positive. A sum of which no two terms can is deterministic.

The *support* of a node is the set of assignments at which it is not 0. In circuits of few variables, supports are
tables, one bit per assignment. Otherwise, supports on a random sample of assignments are compared, and then pairs of
nodes, in a search that takes a number of steps proportional to the circuit. If it needs more, the answer is None:
unknown.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import combinations
from operator import and_, or_

from pgcc.errors import CircuitError
from pgcc.frontend.determinism import is_deterministic
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op

Found = tuple[int, int, int] | None  # the positions of a sum and of two of its terms
_TABLE_BITS = 1 << 28  # the largest table of the supports of all nodes
_SAMPLES = 512  # random assignments, if there are too many for a table


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
    complete = n <= 24 and len(circuit.order) << n <= _TABLE_BITS
    support = _supports(circuit, complete)
    found = _meet_in_table(circuit, support)
    if found is not None:
        return True, found
    return (None, None) if complete or is_deterministic(circuit) else _meet_by_search(circuit, support)


def _supports(circuit: Circuit, complete: bool) -> list[int]:
    """The support of every node, if no terms cancel: one bit per assignment, of all or of a random sample."""
    names = circuit.scopes.names
    bits = 1 << len(names) if complete else _SAMPLES
    ones = (1 << bits) - 1
    rng = random.Random(0)
    columns = {
        name: ones // ((1 << (1 << i)) + 1) << (1 << i)
        if complete
        else rng.getrandbits(bits)  # the truth table of x_i, or random values
        for i, name in enumerate(names)
    }
    support: list[int] = []
    for node, children in zip(circuit.order, circuit._links, strict=True):
        match node.op:
            case Op.CONST:
                found = ones if node.value else 0
            case Op.VAR:
                found = columns[node.name] ^ (ones if node.is_complement else 0)
            case Op.SUM:
                found = reduce(or_, (support[c] for w, c in zip(node.weights, children, strict=True) if w), 0)
            case Op.PRODUCT:
                found = reduce(and_, (support[c] for c in children), ones)
            case _:
                raise CircuitError(f"the support of {node!r} is not known")
        support.append(found)
    return support


def _meet_in_table(circuit: Circuit, support: Sequence[int]) -> Found:
    """The first sum with two terms that are both nonzero at some assignment of the table."""
    for i, node in enumerate(circuit.order):
        if node.op is not Op.SUM:
            continue
        seen, terms = 0, [c for w, c in zip(node.weights, circuit._links[i], strict=True) if w]
        for k, c in enumerate(terms):
            if seen & support[c]:
                return i, next(t for t in terms[:k] if support[t] & support[c]), c
            seen |= support[c]
    return None


def _meet_by_search(circuit: Circuit, support: Sequence[int]) -> tuple[bool | None, Found]:
    """The first sum with two terms that have common support; if there is none, the first for which that is unknown."""
    search = CommonSupport(circuit, support)
    unknown: Found = None
    for i, node in enumerate(circuit.order):
        if node.op is Op.SUM:
            meeting, (u, v) = search.terms_meet(i)
            if meeting:
                return True, (i, u, v)
            if meeting is None:
                unknown = unknown or (i, u, v)
    return None, unknown


class CommonSupport:
    """Decides whether two nodes are positive at a common assignment: True, False, or None if it is unknown."""

    DEPTH = 60  # of the recursion

    def __init__(self, circuit: Circuit, support: Sequence[int]):
        self.support = support
        self.order, self._links, self.scopes = circuit.order, circuit._links, circuit.scopes
        # Otherwise a node that is not structurally 0 may still be 0: its terms cancel, or its factors contradict (x·x̄).
        self.sure = circuit.facts.monotone and circuit.facts.decomposable
        self.steps_left = 10 * circuit.edges + 10_000
        self.zero = _zeros(self.order, self._links)
        self.known: dict[tuple[int, int], bool | None] = {}

    @classmethod
    def of(cls, circuit: Circuit) -> CommonSupport:
        """The search for the nodes of a circuit, which are given by their positions in its order."""
        return cls(circuit, _supports(circuit, complete=False))

    def terms_meet(self, position: int) -> tuple[bool | None, tuple[int, int]]:
        """Whether any two terms of a sum have common support, and which two."""
        verdict: bool | None = False
        terms = self.terms(position)
        found = (position, position)
        for u, v in combinations(terms, 2):
            meeting = self.meet(u, v)
            if meeting:
                return True, (u, v)
            if meeting is None:
                verdict, found = None, ((u, v) if verdict is False else found)
                if self.steps_left < 0:
                    break
        return verdict, found

    def terms(self, position: int) -> list[int]:
        """The terms of a sum that are not structurally 0."""
        weights, links = self.order[position].weights, self._links[position]
        return [c for w, c in zip(weights, links, strict=True) if w and not self.zero[c]]

    def meet(self, u: int, v: int, depth: int = 0) -> bool | None:
        """Whether u and v have common support."""
        if self.zero[u] or self.zero[v]:
            return False
        of = self.scopes.of
        if u == v or not of[u] or not of[v] or self.support[u] & self.support[v]:
            return True if self.sure else None
        key = (u, v) if u < v else (v, u)
        if key not in self.known:
            self.steps_left -= 1
            if self.steps_left < 0 or depth > self.DEPTH:
                return None
            self.known[key] = self._meet(u, v, depth + 1)
        return self.known[key]

    def products_meet(self, us: Sequence[int], vs: Sequence[int]) -> bool | None:
        """Whether two products, given by their factors, have common support."""
        return self._meet_factors(us, vs, depth=0)

    def _meet(self, u: int, v: int, depth: int) -> bool | None:
        a, b = self.order[u], self.order[v]
        if self._apart(u, v):
            return True if self.sure else None
        if a.op is Op.VAR and b.op is Op.VAR:
            return a is b and (True if self.sure else None)
        if a.op is Op.SUM or b.op is Op.SUM:
            whole, other = (u, v) if a.op is Op.SUM else (v, u)
            return _any(self.meet(c, other, depth) for c in self.terms(whole))
        return self._meet_factors(self._factors(u), self._factors(v), depth)

    def _apart(self, u: int, v: int) -> bool:
        return self.scopes.union(self.scopes.of[u], self.scopes.of[v])[1]

    def _factors(self, position: int) -> Sequence[int]:
        if self.order[position].op is not Op.PRODUCT:
            return (position,)
        return [c for c in self._links[position] if self.scopes.of[c]]

    def _meet_factors(self, us: Sequence[int], vs: Sequence[int], depth: int) -> bool | None:
        """Two products are disjoint if a factor of one is disjoint from a factor of the other.

        They certainly meet only if every factor shares variables with at most one factor of the other.
        """
        if self._contradict(us, vs):
            return False
        pairs, matched = self._pairs(us, vs)
        if pairs is None:
            return None
        sure = self.sure and matched
        for u, v in pairs:
            meeting = self.meet(u, v, depth)
            if meeting is False:
                return False
            sure = sure and meeting is True
        return True if sure else None

    def _contradict(self, us: Sequence[int], vs: Sequence[int]) -> bool:
        """Whether one product has a literal x as a factor, and the other x̄."""
        signs = {n.name: n.is_complement for n in map(self.order.__getitem__, us) if n.op is Op.VAR}
        others = (n for n in map(self.order.__getitem__, vs) if n.op is Op.VAR)
        return any(signs.get(n.name, n.is_complement) != n.is_complement for n in others)

    def _pairs(self, us: Sequence[int], vs: Sequence[int]) -> tuple[list[tuple[int, int]] | None, bool]:
        """The pairs of factors with common variables, and whether they are one to one."""
        of = self.scopes.of
        by_scope = {of[v]: v for v in vs}
        if len(us) == len(vs) and all(of[u] in by_scope for u in us):
            return [(u, by_scope[of[u]]) for u in us], True
        self.steps_left -= len(us) * len(vs) // 8
        if self.steps_left < 0:
            return None, False
        pairs = [(u, v) for u in us for v in vs if not self._apart(u, v)]
        return pairs, len({u for u, _ in pairs}) == len(pairs) == len({v for _, v in pairs})


def _any(verdicts: Iterable[bool | None]) -> bool | None:
    result: bool | None = False
    for verdict in verdicts:
        if verdict:
            return True
        result = None if verdict is None else result
    return result


def _zeros(order: Sequence[Node], links: Sequence[tuple[int, ...]]) -> list[bool]:
    """Which nodes are 0 structurally: by zero constants and weights alone."""
    zero: list[bool] = []
    for node, children in zip(order, links, strict=True):
        match node.op:
            case Op.CONST:
                zero.append(not node.value)
            case Op.SUM:
                zero.append(all(not w or zero[c] for w, c in zip(node.weights, children, strict=True)))
            case Op.PRODUCT:
                zero.append(any(zero[c] for c in children))
            case Op.VAR:
                zero.append(False)
            case _:
                raise CircuitError(f"whether {node!r} is 0 is not known")
    return zero

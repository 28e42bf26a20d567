"""Expand determinants into sums and products, as the paper does: an oracle, and a way for small sized determinants.

Bird's division-free algorithm (2011) makes O(n⁴) edges of an n×n determinant, and in floating point it cancels
terribly (relative error 1e-7 at n = 20). With exact numbers it is a second definition to test against. In circuits
that are not decomposable, small determinants of one size are compiled from it: R[t] has no elimination for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import zip_longest

from pgcc.collector import collector_paused
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, ZERO, Node, Op, const, product, rebuild, weighted_sum
from pgcc.ir.numbers import Number
from pgcc.passes.pipeline import simplify

# Determinants larger than this are not expanded for polynomials in t.
_MOST_EXPANDED = 10

Graded = list[Node]  # a polynomial in s: the coefficient of s^k at index k. Without a size, there is no s
Entries = list[list[Graded]]


def expand_det(circuit: Circuit, sized_only: bool = False) -> Circuit:
    """The same polynomial without `Det` nodes, or only without those that have a size.

    Examples
    --------
    >>> from pgcc.ir.node import det, var
    >>> d = det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [2, 5]], [var("a"), var("b")])
    >>> print(expand_det(Circuit(d)).simplify())
    (1 + 5*b)*(1 + a) - 4*a*b
    """

    def wanted(node: Node) -> bool:
        return node.op is Op.DET and not (sized_only and node.size is None)

    if not any(map(wanted, circuit.order)):
        return circuit
    new: dict[Node, Node] = {}
    with collector_paused():
        for node in circuit.order:
            children = [new[c] for c in node.children]
            new[node] = _expanded(node, children) if wanted(node) else rebuild(node, children)
        return Circuit(new[circuit.root], circuit.variables)


def expand_small(circuit: Circuit, sized_only: bool = False) -> Circuit:
    """`expand_det`, simplified; an error where a determinant is too large to be expanded."""
    dets = [n for n in circuit.order if n.op is Op.DET and not (sized_only and n.size is None)]
    largest = max((n.matrices[0].shape[0] + len(n.inside) for n in dets), default=0)
    if largest > _MOST_EXPANDED:
        raise PgccError(
            f"polynomials in t would have to expand a determinant of {largest} rows into sums "
            f"and products (at most {_MOST_EXPANDED}): use another method, or a decomposable circuit"
        )
    return simplify(expand_det(circuit, sized_only))  # it may have become simpler


def _expanded(node: Node, children: list[Node]) -> Node:
    entries = _entries(node, children[: len(children) // 2], children[len(children) // 2 :])
    top = node.size or 0
    expanded = bird(entries, top)
    return expanded[top] if top < len(expanded) else ZERO


def _entries(node: Node, f: Sequence[Node], y: Sequence[Node]) -> Entries:
    """The matrix whose determinant it is. Where y_i = 1, child i needs no border: it adds f_i·u_i·v_iᵀ to M0.

    [[M0 + Σ_{y_i = 1} f_i·u_i·v_iᵀ, U·diag(f)], [−Vᵀ, diag(y)]], the border for the others only. With a size, f is s·f
    for the children that count.
    """
    sized, counted = node.size is not None, node.counted
    m0, u, v = (m.exact() for m in node.matrices)
    rows = range(len(m0))
    inner = [i for i in range(len(f)) if y[i] is ONE]
    border = [i for i in range(len(f)) if y[i] is not ONE]

    def entry(number: Fraction, weights: list[Fraction], which: list[int]) -> Graded:
        """number + Σ w·f"""
        terms = [(w, f[i], sized and counted[i]) for w, i in zip(weights, which, strict=True)]
        without_s = [(number, ONE), *((w, child) for w, child, counts in terms if not counts)]
        with_s = [(w, child) for w, child, counts in terms if counts]
        return [_sum(*zip(*part, strict=True)) for part in (without_s, with_s) if part]

    zero = Fraction(0)
    top = [
        [entry(m0[a][b], [u[a][i] * v[b][i] for i in inner], inner) for b in rows]
        + [entry(zero, [u[a][i]], [i]) for i in border]
        for a in rows
    ]
    low = [[[const(-v[b][i])] for b in rows] + [[y[i]] if j == i else [] for j in border] for i in border]
    return top + low


def bird(A: Entries, top: int = 0) -> Graded:
    """det A up to s^top, by n − 1 times F := μ(F)·A from F = A; then ±F[0][0].

    μ(F) keeps what is above the diagonal and puts −Σ_{k>i} F[k][k] at (i, i): of F only the part on and above the
    diagonal is ever used, and of the last one only the corner.
    """
    n = len(A)
    if n == 0:
        return [ONE]
    F = A
    for step in range(1, n):
        rows = range(n) if step < n - 1 else range(1)
        mu = _mu(F)
        F = [[_dot(mu[i], A, i, j, top) if j >= i and i in rows else [] for j in range(n)] for i in range(n)]
    return F[0][0] if n % 2 else _minus(F[0][0])


def _mu(F: Entries) -> Entries:
    tail: Graded = []
    mu: Entries = []
    for i in reversed(range(len(F))):
        empty: list[Graded] = [[]] * i
        mu.append([*empty, _minus(tail), *F[i][i + 1 :]])
        tail = [_sum([1, 1], pair) for pair in zip_longest(tail, F[i][i], fillvalue=ZERO)]
    return mu[::-1]


def _minus(a: Graded) -> Graded:
    return [_sum([-1], [c]) for c in a]


def _dot(row: Sequence[Graded], A: Entries, start: int, column: int, top: int) -> Graded:
    """Σ_{k ≥ start} row[k]·A[k][column] up to s^top"""
    weights: list[list[Number]] = [[] for _ in range(top + 1)]
    terms: list[list[Node]] = [[] for _ in range(top + 1)]
    for k in range(start, len(row)):
        for j, a in enumerate(A[k][column]):
            for i, c in enumerate(row[k][: top + 1 - j]):
                if c is not ZERO and a is not ZERO:
                    weights[i + j].append(a.value if a.op is Op.CONST else 1)
                    terms[i + j].append(c if a.op is Op.CONST else product((c, a)))
    return list(map(_sum, weights, terms))


def _sum(weights: Sequence[Number], terms: Sequence[Node]) -> Node:
    """Σ w·c without zeros; a number if all the terms are."""
    kept = [(w, c) for w, c in zip(weights, terms, strict=True) if w and c is not ZERO]
    if all(c.op is Op.CONST for _, c in kept):
        return const(sum((Fraction(w) * Fraction(c.value) for w, c in kept), Fraction(0)))
    if len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    return weighted_sum([w for w, _ in kept], [c for _, c in kept])

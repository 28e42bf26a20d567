"""A determinant as sums and products without division, by Samuelson and Berkowitz (1984).

Let A_k be the leading k×k block of A, [[A_{k−1}, c], [r, a]], and p_k the coefficients of det(x·I − A_k), highest
first. Then p_k is p_{k−1} times the lower triangular Toeplitz matrix with the first column

    1, −a, −r·c, −r·A_{k−1}·c, −r·A_{k−1}²·c, …

and (−1)ⁿ·p_n[n] is the determinant. The powers of A_{k−1} meet a vector only: about n⁴/4 multiplications, a circuit of
O(n⁴) edges, as in the paper, which names Bird's algorithm (n⁴/3). Rows and columns with many zeros come first: an arrow
of 12 rows takes 824 edges, and 3,842 in the opposite order.

Entries are polynomials in a variable s, which marks the children of a determinant that its size counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pgcc.ir.node import ONE, ZERO, Node, Op, const, product
from pgcc.ir.numbers import Number, mul
from pgcc.passes.building import sum_of

Graded = Sequence[Node]  # a polynomial in s: the coefficient of s^k at index k
Entries = Sequence[Sequence[Graded]]


def berkowitz(A: Entries, top: int = 0) -> Node:
    """The coefficient of s^top of det A.

    Examples
    --------
    >>> from pgcc.ir.circuit import Circuit
    >>> from pgcc.ir.node import var
    >>> print(Circuit(berkowitz([[[var("a")], [var("b")]], [[var("c")], [var("d")]]])))
    -c*b + d*a
    """
    n = len(A)
    A = _sparse_first(A)
    p: list[Graded] = [[ONE]]
    for k in range(n):
        column = _column(A, k, top)
        degrees = range(k + 2) if k < n - 1 else range(n, n + 1)  # of the last one only the end is asked for
        p = [_combination([(1, column[d - i], p[i]) for i in range(min(d, k) + 1)], top) for d in degrees]
    if top >= len(p[-1]):
        return ZERO
    return p[-1][top] if n % 2 == 0 else _combination([(-1, [ONE], p[-1])], top)[top]


def _sparse_first(A: Entries) -> Entries:
    """The same determinant, with rows and columns of many zeros first."""
    n = len(A)
    is_zero = [[all(c is ZERO for c in entry) for entry in row] for row in A]
    order = sorted(range(n), key=lambda i: -sum(is_zero[i]) - sum(row[i] for row in is_zero))
    return [[A[i][j] for j in order] for i in order]


def _column(A: Entries, k: int, top: int) -> list[Graded]:
    """1, −a, −r·c, −r·A·c, …, −r·A^(k−1)·c for the block A of the first k rows."""
    v = [A[i][k] for i in range(k)]
    column: list[Graded] = [[ONE], _combination([(-1, [ONE], A[k][k])], top)]
    for power in range(k):
        column.append(_combination([(-1, A[k][i], v[i]) for i in range(k)], top))
        if power < k - 1:
            v = [_combination([(1, A[i][j], v[j]) for j in range(k)], top) for i in range(k)]
    return column


def _combination(terms: Sequence[tuple[int, Graded, Graded]], top: int) -> Graded:
    """Σ w·a·b up to s^top"""
    powers: list[list[tuple[Number, Node]]] = [[] for _ in range(top + 1)]
    for weight, a, b in terms:
        for i, x in enumerate(a):
            for j, y in enumerate(b[: top + 1 - i]):
                (w, left), (v, right) = _weighted(x), _weighted(y)
                node = right if left is ONE else left if right is ONE else product((left, right))
                powers[i + j].append((mul(weight, mul(w, v)), node))
    return list(map(_sum, powers))


def _sum(terms: Sequence[tuple[Number, Node]]) -> Node:
    """Σ w·c: numbers become weights, and −x inside is a weight too; zeros and ones vanish."""
    if all(c is ONE for w, c in terms if w):
        return const(sum((Fraction(w) for w, _ in terms), Fraction(0)))
    return sum_of(terms)


def _weighted(node: Node) -> tuple[Number, Node]:
    """A node as number · node."""
    if node.op is Op.CONST:
        return node.value, ONE
    if node.op is Op.SUM and len(node.children) == 1:
        return node.weights[0], node.children[0]
    return 1, node

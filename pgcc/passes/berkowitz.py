"""A determinant as sums and products without division, by Samuelson and Berkowitz (1984).

Let A_k be the leading k×k block of A, [[A_{k−1}, c], [r, a]], and p_k the coefficients of det(x·I − A_k), highest
first. Then p_k is p_{k−1} times the lower triangular Toeplitz matrix with the first column

    1, −a, −r·c, −r·A_{k−1}·c, −r·A_{k−1}²·c, …

and (−1)ⁿ·p_n[n] is the determinant. The powers of A_{k−1} meet a vector only: about n⁴/4 multiplications, where Bird's
algorithm (`pgcc.passes.expand_det.bird`) takes n⁴/3. Both are circuits of O(n⁴) edges, as the paper says.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pgcc.ir.node import ONE, ZERO, Node, Op, const, product, weighted_sum
from pgcc.ir.numbers import Number, mul

Entries = Sequence[Sequence[Node]]


def berkowitz(A: Entries) -> Node:
    """det A

    Examples
    --------
    >>> from pgcc.ir.circuit import Circuit
    >>> from pgcc.ir.node import var
    >>> print(Circuit(berkowitz([[var("a"), var("b")], [var("c"), var("d")]])))
    -c*b + d*a
    """
    n = len(A)
    p: list[Node] = [ONE]
    for k in range(n):
        column = _column(A, k)
        degrees = range(k + 2) if k < n - 1 else range(n, n + 1)  # of the last one only the end is asked for
        p = [_combination([(1, column[d - i], p[i]) for i in range(min(d, k) + 1)]) for d in degrees]
    return p[-1] if n % 2 == 0 else _combination([(-1, ONE, p[-1])])


def _column(A: Entries, k: int) -> list[Node]:
    """1, −a, −r·c, −r·A·c, …, −r·A^(k−1)·c for the block A of the first k rows."""
    v = [A[i][k] for i in range(k)]
    column = [ONE, _combination([(-1, ONE, A[k][k])])]
    for power in range(k):
        column.append(_combination([(-1, A[k][i], v[i]) for i in range(k)]))
        if power < k - 1:
            v = [_combination([(1, A[i][j], v[j]) for j in range(k)]) for i in range(k)]
    return column


def _combination(terms: Sequence[tuple[int, Node, Node]]) -> Node:
    """Σ w·a·b: numbers become weights, and −x inside is a weight too; zeros and ones vanish."""
    weights: list[Number] = []
    nodes: list[Node] = []
    for weight, a, b in terms:
        (w, x), (v, y) = _weighted(a), _weighted(b)
        factor = mul(weight, mul(w, v))
        if factor:
            weights.append(factor)
            nodes.append(y if x is ONE else x if y is ONE else product((x, y)))
    if all(node is ONE for node in nodes):
        return const(sum((Fraction(w) for w in weights), Fraction(0)))
    return nodes[0] if len(nodes) == 1 and weights[0] == 1 else weighted_sum(weights, nodes)


def _weighted(node: Node) -> tuple[Number, Node]:
    """A node as number · node."""
    if node.op is Op.CONST:
        return node.value, ONE
    if node.op is Op.SUM and len(node.children) == 1:
        return node.weights[0], node.children[0]
    return (0, ONE) if node is ZERO else (1, node)

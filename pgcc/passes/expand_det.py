"""Expand determinants into sums and products, as the paper does: an oracle, and a way for small sized determinants.

An expansion without division has O(n⁴) edges for n rows, and in floating point it cancels terribly (relative error
1e-7 at n = 20). With exact numbers it is a second definition to test against. In circuits that are not decomposable,
small determinants of one size are compiled from it: R[t] has no elimination for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pgcc.collector import collector_paused
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, const, rebuild
from pgcc.passes.berkowitz import Entries, Graded, berkowitz
from pgcc.passes.building import sum_of
from pgcc.passes.pipeline import simplify

# Determinants larger than this are not expanded for polynomials in t.
_MOST_EXPANDED = 10


def expand_det(circuit: Circuit, sized_only: bool = False) -> Circuit:
    """The same polynomial without `Det` nodes, or only without those that have a size.

    Examples
    --------
    >>> from pgcc.ir.node import det, var
    >>> d = det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [2, 5]], [var("a"), var("b")])
    >>> print(expand_det(Circuit(d)).simplify())
    -4*a*b + (1 + 5*b)*(1 + a)
    """

    dets = _dets(circuit, sized_only)
    if not dets:
        return circuit
    new: dict[Node, Node] = {}
    with collector_paused():
        for node in circuit.order:
            children = [new[c] for c in node.children]
            new[node] = _expanded(node, children) if node in dets else rebuild(node, children)
        return Circuit(new[circuit.root], circuit.variables)


def expand_small(circuit: Circuit, sized_only: bool = False) -> Circuit:
    """`expand_det`, simplified; an error where a determinant is too large to be expanded."""
    largest = max((n.matrices[0].shape[0] + len(n.inside) for n in _dets(circuit, sized_only)), default=0)
    if largest > _MOST_EXPANDED:
        raise PgccError(
            f"polynomials in t would have to expand a determinant of {largest} rows into sums "
            f"and products (at most {_MOST_EXPANDED}): use another method, or a decomposable circuit"
        )
    return simplify(expand_det(circuit, sized_only))  # it may have become simpler


def _dets(circuit: Circuit, sized_only: bool) -> set[Node]:
    return {node for node in circuit.order if node.op is Op.DET and not (sized_only and node.size is None)}


def _expanded(node: Node, children: list[Node]) -> Node:
    entries = _entries(node, children[: len(children) // 2], children[len(children) // 2 :])
    # transposed: where U = I, as of DPPs, a column has one f_i, and fewer products differ
    return berkowitz(list(zip(*entries, strict=True)), node.size or 0)


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
        return [sum_of(part) for part in (without_s, with_s) if part]

    zero = Fraction(0)
    top = [
        [entry(m0[a][b], [u[a][i] * v[b][i] for i in inner], inner) for b in rows]
        + [entry(zero, [u[a][i]], [i]) for i in border]
        for a in rows
    ]
    low = [[[const(-v[b][i])] for b in rows] + [[y[i]] if j == i else [] for j in border] for i in border]
    return top + low

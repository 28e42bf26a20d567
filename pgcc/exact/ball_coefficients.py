"""One coefficient of det(P + s·Q), in balls: by traces of powers of the matrix, or by values at roots of unity."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from flint import acb, acb_mat, arb, arb_mat, ctx, fmpq

from pgcc.exact.balls import ball_determinant

# Newton's identities cancel: they are computed with this many times the bits. And the most entries of powers of the
# matrix that are kept.
_NEWTON = 4
_MOST_ENTRIES = 1 << 20


def ball_coefficient(P: Any, Q: Any, wanted: int, degree: int) -> Any:
    """The coefficient of s^wanted of det(P + s·Q), which has this degree in s."""
    n = P.nrows()
    both_ways = (P, Q, wanted), (Q, P, n - wanted)  # det(P + s·Q) = s^n·det(Q + P/s)
    for p, q, power in sorted(both_ways, key=operator.itemgetter(2)):
        try:
            return _coefficient_by_traces(p, q, power)
        except ZeroDivisionError:  # p is singular
            continue
    return _coefficient_at_points(P, Q, wanted, degree)


def _coefficient_by_traces(P: Any, Q: Any, wanted: int) -> Any:
    """det(P + s·Q) = det P · det(1 + s·P⁻¹·Q), for a regular P"""
    if wanted == 0:
        return ball_determinant(P)
    kind: Any = arb_mat if isinstance(P, arb_mat) and isinstance(Q, arb_mat) else acb_mat
    with ctx.workprec(_NEWTON * ctx.prec):
        return ball_determinant(P) * elementary_symmetric(kind(P).solve(kind(Q)), wanted)[wanted]


def elementary_symmetric(A: Any, k: int) -> list[Any]:
    """e_0, …, e_k of the eigenvalues of A, by Newton's identities: k·e_k = Σ_i (−1)^(i−1)·e_(k−i)·tr A^i.

    With b ≈ √k, the trace of A^(i + b·j) is the scalar product of A^i and the transpose of A^(b·j): about 2·√k matrix
    products for all of them, and b matrices to keep.
    """
    kind, n = type(A), A.nrows()
    if not (k and n):
        return [arb(1)] + [arb(0)] * k
    b = min(math.isqrt(k - 1) + 1, max(1, _MOST_ENTRIES // n**2))
    entries: list[Any] = []
    for step in accumulate([A] * b, operator.mul):  # A, …, A^b
        entries += step.entries()
    small = kind(b, n * n, entries).transpose()
    unit = kind(n, n, [int(i == j) for i in range(n) for j in range(n)])
    traces: list[Any] = []
    for giant in accumulate([step] * ((k - 1) // b), operator.mul, initial=unit):  # 1, A^b, A^2b, …
        traces += (kind(1, n * n, giant.transpose().entries()) * small).entries()
    e: list[Any] = [arb(1)]
    for m in range(1, k + 1):
        terms = [(e[m - i] if i % 2 else -e[m - i]) * traces[i - 1] for i in range(1, m + 1)]
        e.append(sum(terms, start=arb(0)) / m)
    return e


def _coefficient_at_points(P: Any, Q: Any, wanted: int, degree: int) -> Any:
    p, q = acb_mat(P), acb_mat(Q)
    is_real = isinstance(P, arb_mat) and isinstance(Q, arb_mat)
    return from_roots_of_unity(lambda z: ball_determinant(p + q * z), degree + 1, is_real)[wanted]


def from_roots_of_unity(value: Callable[[acb], Any], n: int, is_real: bool) -> list[Any]:
    """The coefficients of a polynomial of degree < n from its values. Bits that cancel cost a higher precision.

    is_real : the coefficients are, so that conjugate points have conjugate values, and half of them are enough.
    """
    values = [acb(value(acb(fmpq(2 * k, n)).exp_pi_i())) for k in range(n // 2 + 1 if is_real else n)]
    values += [values[n - k].conjugate() for k in range(len(values), n)]
    return [(x.real if is_real else x) / n for x in acb.dft(values)]

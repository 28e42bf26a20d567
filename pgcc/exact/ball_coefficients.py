"""One coefficient of det(P + s·Q), in balls: by traces of powers of the matrix, or by values at roots of unity."""

from __future__ import annotations

import math
import operator
from itertools import accumulate
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, ctx, fmpq

from pgcc.exact.balls import ball_determinant

# Newton's identities cancel: they are computed with this many times the bits. And the most entries of powers of the
# matrix that are kept.
_NEWTON = 4
_MOST_ENTRIES = 1 << 20
# The radius of the points is a power of two between these.
_LEAST_RADIUS, _LARGEST_RADIUS = -300, 300
# How much larger than at the best radius a determinant may be, as a logarithm.
_SPARE = 5.0


def ball_coefficient(P: Any, Q: Any, wanted: int, degree: int) -> Any:
    """The coefficient of s^wanted of det(P + s·Q), which has this degree in s."""
    n = P.nrows()
    both_ways = (P, Q, wanted), (Q, P, n - wanted)  # det(P + s·Q) = s^n·det(Q + P/s)
    for p, q, power in sorted(both_ways, key=operator.itemgetter(2)):
        try:
            return _coefficient_by_traces(p, q, power)
        except ZeroDivisionError:  # p is singular
            continue
    return _coefficient_at_radius(P, Q, wanted, degree)


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


def _coefficient_at_radius(P: Any, Q: Any, wanted: int, degree: int) -> Any:
    """The coefficient from the values at roots of unity, times a radius.

    If it is real, a point and its conjugate give conjugate terms: half of the points are enough.
    """
    is_real = isinstance(P, arb_mat) and isinstance(Q, arb_mat)
    radius, n = acb(fmpq(2) ** _radius(P, Q, wanted)), degree + 1
    p, q = acb_mat(P), acb_mat(Q)
    total = acb(0)
    for k in range(n // 2 + 1 if is_real else n):
        value = ball_determinant(p + q * (radius * acb(fmpq(2 * k, n)).exp_pi_i()))
        term = acb(value) * acb(fmpq(-2 * k * wanted % (2 * n), n)).exp_pi_i()
        twice = is_real and k != 0 and 2 * k != n
        total += 2 * term.real if twice else term.real if is_real else term
    found = total / n / radius**wanted
    return found.real if is_real else found


def _radius(P: Any, Q: Any, wanted: int) -> int:
    """log2 of the ρ at which the term of s^wanted is about the largest: there the fewest bits cancel.

    That is where |D(ρ)|/ρ^wanted is least. For coefficients ≥ 0 its logarithm is convex in log ρ, so that a ternary
    search finds it; otherwise, and where doubles are not enough, it is a guess. Every radius gives the right answer. Of
    those that cost few bits more, the one nearest to 1 keeps most of P + ρ·Q.
    """
    p, q = (np.array([complex(x) for x in m.entries()]).reshape(m.nrows(), m.ncols()) for m in (P, Q))

    def height(e: int) -> float:
        _, logarithm = np.linalg.slogdet(p + math.ldexp(1.0, e) * q)
        return float(logarithm) - wanted * e * math.log(2) if math.isfinite(logarithm) else math.inf

    low, high = _LEAST_RADIUS, _LARGEST_RADIUS
    with np.errstate(all="ignore"):
        while high - low > 2:
            third = (high - low) // 3
            left, right = low + third, high - third
            if height(left) <= height(right):
                high = right
            else:
                low = left
        e = (low + high) // 2
        enough = height(e) + _SPARE
        while e and height(int(e / 2)) <= enough:
            e = int(e / 2)
    return e

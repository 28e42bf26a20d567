"""Rules for determinants: no coefficient, as a polynomial in the children and their complements, is negative."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from flint import fmpq, fmpq_mat

from pgcc.validity.proof.exact_arithmetic import Rows, lift_exact


def is_symmetric(rows: Rows) -> bool:
    """A = Aᵀ"""
    return all(rows[i][j] == rows[j][i] for i in range(len(rows)) for j in range(i))


def is_semidefinite(rows: Rows, witness: Any) -> bool:
    """Whether a matrix A is symmetric and positive semidefinite.

    The witness is a lower triangular X without zeros on its diagonal, or None for the identity: X·A·Xᵀ is diagonally
    dominant, so it is positive semidefinite, and with it A.
    """
    n = len(rows)
    if not is_symmetric(rows):
        return False
    if witness is not None:
        lower = [list(map(lift_exact, row)) for row in witness]
        if len(lower) != n or any(len(row) != i + 1 or not row[i] for i, row in enumerate(lower)):
            return False
        x = fmpq_mat(n, n, [x for row in lower for x in row + [fmpq(0)] * (n - len(row))])
        rows = (x * fmpq_mat(n, n, [a for row in rows for a in row]) * x.transpose()).tolist()
    return all(2 * row[i] >= sum(map(abs, row)) for i, row in enumerate(rows))  # a_ii ≥ Σ_{j≠i} |a_ij|, so a_ii ≥ 0


def is_laplacian(m0: Rows, u: Rows, v: Rows, witness: Any = None) -> bool:
    """M0 and all u_i·v_iᵀ have no positive entry off the diagonal and no negative sum of a row.

    So has M0 + Σ f_i·u_i·v_iᵀ, as linear forms in f: its determinant counts forests (matrix-tree theorem).
    """
    columns = zip(zip(*u, strict=True), zip(*v, strict=True), strict=True)
    products = (
        {(a, b): x * y for a, x in enumerate(left) if x for b, y in enumerate(right) if y} for left, right in columns
    )
    for part in chain([{(a, b): x for a, row in enumerate(m0) for b, x in enumerate(row) if x}], products):
        sums: dict[int, fmpq] = {}
        for (a, b), x in part.items():
            if a != b and x > 0:
                return False
            sums[a] = sums.get(a, fmpq(0)) + x
        if any(x < 0 for x in sums.values()):
            return False
    return True


def are_parallel(u: Rows, v: Rows) -> bool:
    """Whether every u_i·v_iᵀ is s·v_i·v_iᵀ with s ≥ 0."""
    for left, right in zip(zip(*u, strict=True), zip(*v, strict=True), strict=True):
        top = next((i for i, y in enumerate(right) if y), None)
        if top is None:
            continue
        if left[top] * right[top] < 0 or any(x * right[top] != y * left[top] for x, y in zip(left, right, strict=True)):
            return False
    return True


def _is_gram(m0: Rows, u: Rows, v: Rows, witness: Any) -> bool:
    """M0 ⪰ 0 and u_i ∥ v_i: mixed discriminants of positive semidefinite matrices are nonnegative."""
    return are_parallel(u, v) and is_semidefinite(m0, witness)


def _unit_rows(u: Rows) -> list[int] | None:
    """Which unit vectors the columns of U are. (Two that are the same one only add up.)"""
    units = [[i for i, x in enumerate(column) if x] for column in zip(*u, strict=True)]
    if any(len(one) != 1 or u[one[0]][j] != 1 for j, one in enumerate(units)):
        return None
    return [one[0] for one in units]


def kernel_of(m0: Rows, u: Rows, v: Rows) -> list[list[Any]] | None:
    """L where M0 = diag(d ≥ 0) and the columns of U are unit vectors: coefficients are its principal minors times some
    d_i. (A row of M0 + Σ f_i·e_i·v_iᵀ is f_i·v_iᵀ where i is in, and d_i·e_iᵀ where it is not.)"""
    units = _unit_rows(u)
    diagonal = all(x >= 0 if i == j else not x for i, row in enumerate(m0) for j, x in enumerate(row))
    return [list(v[i]) for i in units] if units is not None and diagonal else None


def marginal_kernel_of(m0: Rows, u: Rows, v: Rows) -> list[list[Any]] | None:
    """K where M0 = I − K, the columns of U are unit vectors and those of V the same columns of K."""
    K = [[int(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(m0)]
    units = _unit_rows(u)
    fits = units is not None and all(row[j] == K[unit][i] for i, row in enumerate(v) for j, unit in enumerate(units))
    return K if fits else None


def plus_transpose(rows: Rows) -> list[list[Any]]:
    """L + Lᵀ"""
    return [[x + rows[j][i] for j, x in enumerate(row)] for i, row in enumerate(rows)]


def _is_kernel(m0: Rows, u: Rows, v: Rows, witness: Any) -> bool:
    """L + Lᵀ ⪰ 0: no principal minor of L is negative."""
    L = kernel_of(m0, u, v)
    return L is not None and is_semidefinite(plus_transpose(L), witness)


def _is_marginal_kernel(m0: Rows, u: Rows, v: Rows, witness: Any) -> bool:
    """0 ⪯ K ⪯ I: a determinantal point process."""
    K = marginal_kernel_of(m0, u, v)
    return K is not None and is_semidefinite(m0, witness[0]) and is_semidefinite(K, witness[1])


DET_RULES: dict[str, Callable[[Rows, Rows, Rows, Any], bool]] = {
    "matrix-tree theorem": is_laplacian,
    "Gram determinant": _is_gram,
    "positive semidefinite kernel": _is_kernel,
    "marginal kernel": _is_marginal_kernel,
}

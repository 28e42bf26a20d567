"""Determinantal point processes (DPPs) as a single determinant whose children are the variables themselves.

    L-ensemble      Pr(S) ∝ det L_S             g = det(I + diag(z)·L)         M0 = I,      U = I,  V = Lᵀ
    factor          L = B·Bᵀ, B of shape n×r    g = det(I_r + Bᵀ·diag(z)·B)    M0 = I_r,    U = V = Bᵀ
    marginal kernel Pr(S ⊆ X) = det K_S         g = det(I − K + diag(z)·K)     M0 = I − K,  U = I,  V = Kᵀ
    spectrum of K   K = Q·diag(λ)·Qᵀ            g = det(diag(1 − λ) + √λ·Qᵀ·diag(z)·Q·√λ)

Numbers are kept as they are given, with two exceptions, each of which comes with a warning. First, a float kernel of
rank r < n has rounding errors of either sign in place of its zero eigenvalues, so impossible sets would get
probabilities of the size of that noise, some of them negative. If the eigenvalues leave no doubt about which of them
are noise, and the kernel as it stands is not proved to be a DPP, it is replaced by its factor or its spectrum. Second,
two float entries that should be equal but differ by rounding are replaced by their mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from pgcc.errors import CircuitError, SemanticsError, knows_other_words, plural
from pgcc.exact.balls import is_definite
from pgcc.frontend.kernel import NamedKernel, read_kernel
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import ONE, det, var
from pgcc.ir.numbers import nearest_float, one_minus
from pgcc.linalg import eigh, eigvalsh, surely_definite

# These tolerances are relative to the largest eigenvalue, or to the size of the numbers being compared.
ASYMMETRY = 1e-10  # entries that differ by less are one number
TOLERANCE = 1e-9  # how far an eigenvalue may be out of its range
NOISE, SIGNAL = 1e-13, 1e-9  # an eigenvalue below the one is rounding, above the other it is not
NEARLY_ONE = 1e-12  # an eigenvalue of K so near to 1 is 1, if none is between this and SIGNAL
MARGINAL = "a marginal kernel, with eigenvalues between 0 and 1"
MOST_ENUMERATED = 12  # items of a nonsymmetric kernel whose sets are all looked at


@knows_other_words
def dpp(
    L: Any = None,
    *,
    K: Any = None,
    factor: Any = None,
    names: Iterable[str] | None = None,
    symmetric: bool = True,
    nearest: bool = False,
    rank: int | str | None = None,
) -> Circuit:
    """A determinantal point process (DPP), given by exactly one of the kernels L, K and factor.

    Parameters
    ----------
    L : n×n matrix
        The L-ensemble kernel: Pr(S) = det(L_S) / det(I + L), where L_S has the rows and columns of the items in S.
    K : n×n matrix
        The marginal kernel: Pr(all of S are in) = det(K_S).
    factor : n×r matrix
        B with L = B·Bᵀ, one row per item. The cost of queries then depends on r instead of n, and small probabilities
        are far more accurate than from the product L.
    names : sequence of str, optional
        Names of the items. By default x1, …, xn, or the labels of a DataFrame.
    symmetric : bool
        Whether the kernel has to be symmetric. A nonsymmetric L is a DPP if L + Lᵀ is positive semi-definite, and more
        generally if no principal minor is negative. If the former does not hold, all minors are checked for up to 12
        items (in floats, with a tolerance). With more items, only sets of one and two are checked, and it is *not
        proven* that all other sets have nonnegative probabilities. The same holds for K, with K + Kᵀ − 2·Kᵀ·K.
    nearest : bool
        Replace a symmetric kernel by the nearest valid one, by clipping eigenvalues below 0 (and, for K, above 1).
    rank : int or "full", optional
        The rank of a symmetric kernel. A number r keeps the r largest eigenvalues (of L scaled to a unit diagonal, or
        of K) and drops the others, so no set has more than r items. "full" keeps every number as you gave it; where
        rounding errors stand in place of zeros, some sets then get negative probabilities, which are refused when you
        ask for them. By default, a float kernel that fails to be a DPP only because of rounding errors is replaced by
        the kernel of lower rank that it clearly stands for, with a warning (see Notes).

    Returns
    -------
    Circuit
        A single determinant over the items.

    Raises
    ------
    CircuitError
        If the matrix or the names do not have the right shape or type.
    SemanticsError
        If the kernel would give a negative probability: an eigenvalue is out of range by more than 1e-9.

    Notes
    -----
    Matrices may be arrays of any real dtype, nested lists or DataFrames. Integers, fractions and text such as ``"1/3"``
    or ``"0.1"`` are exact numbers, and are kept. A symmetric *float* kernel is also kept as it is, provided that it is
    proved to be a DPP as it stands. Most kernels of less than full rank are not, because they have rounding errors in
    place of their zero eigenvalues. If every eigenvalue (of L scaled to a unit diagonal) is below 1e-13 or above 1e-9
    of the largest, the small ones are taken to be rounding errors, and L is replaced by the factor that belongs to the
    large ones. In the same way, a K with eigenvalues that are clearly 0 or 1 is replaced by its spectrum; a projection
    kernel, which has no other eigenvalues, is replaced by its eigenvectors, and every set has exactly as many items as
    its rank. A `UserWarning` says what was dropped, and `Model.explain` repeats it; with ``rank=`` you choose
    otherwise, or confirm the choice. Rounding to float32 is too coarse to be recognized as such: for low-rank kernels
    in float32, give the factor, or pass ``nearest=True`` or ``rank=r``. Two float entries of a symmetric kernel that
    should be equal and differ by less than 1e-10 of their size are replaced by their mean, also with a warning.

    See Also
    --------
    pgcc.det_pgc : a DPP over groups, each with a distribution of its own
    pgcc.determinant : any determinant with circuits in it
    pgcc.Circuit.observe : keep the terms that agree with the evidence or have a given size
    pgcc.learn.DPP : learn a determinantal point process

    Examples
    --------
    The kernel of the paper (Zhang, Juba, Van den Broeck 2021, Figure 1):

    >>> import pgcc
    >>> d = pgcc.dpp(L=[[1, 2, 0], [2, 6, 0], [0, 0, 4]])
    >>> model = pgcc.compile(d)
    >>> model.prob({"x1": 1, "x2": 0, "x3": 1})
    0.08
    >>> model.prob({"x1": 1, "x2": 1}, exact=True)
    Fraction(1, 5)

    Similar items repel each other:

    >>> flats = pgcc.dpp(factor=[[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], names=["a", "b", "c"])
    >>> model = pgcc.compile(flats)
    >>> model.prob({"a": 1, "b": 1}) < model.prob({"a": 1, "c": 1})
    True
    """
    forms = {form: m for form, m in (("L", L), ("K", K), ("factor", factor)) if m is not None}
    if len(forms) != 1:
        given = " and ".join(forms) or "none of them"
        raise CircuitError(f"a DPP is given by exactly one of L, K and factor, not by {given}")
    ((what, matrix),) = forms.items()
    kernel = read_kernel(what, matrix, names)
    if nearest and (what == "factor" or not symmetric):
        reason = (
            "a factor is always valid" if what == "factor" else "the nearest kernel is only known for symmetric ones"
        )
        raise CircuitError(f"nearest=True: {reason}", argument="nearest")
    if rank is not None:
        _check_rank(rank, what, symmetric, len(kernel.items))
    if what == "factor":
        return _from_factor(kernel, kernel.numbers)
    if len(kernel.items) != kernel.floats.shape[1]:
        n, m = kernel.floats.shape
        hint = "; an n×r matrix B with L = B·Bᵀ is not L, but its factor" if what == "L" else ""
        raise CircuitError(
            f"the kernel {what} has to be square: it has {plural(n, 'row')} and {plural(m, 'column')}{hint}"
        )
    if symmetric:
        kernel = _symmetrized(kernel)
        return _symmetric_l(kernel, nearest, rank) if what == "L" else _symmetric_k(kernel, nearest, rank)
    _check_nonsymmetric(kernel)
    return _from_l(kernel) if what == "L" else _from_k(kernel)


def _check_rank(rank: int | str, what: str, symmetric: bool, items: int) -> None:
    if what == "factor" or not symmetric:
        reason = "that of a factor is its number of columns" if what == "factor" else "only for symmetric kernels"
        raise CircuitError(f"rank={rank!r}: {reason}", argument="rank")
    if rank == "full":
        return
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 0 <= rank <= items:
        raise CircuitError(
            f"rank={rank!r} is neither 'full' nor a number between 0 and {items}, that of the items", argument="rank"
        )


# -- the three forms, and the fourth -------------------------------------------------------------------------


def _from_l(kernel: NamedKernel) -> Circuit:
    L = kernel.numbers
    identity = np.eye(len(L), dtype=L.dtype)
    return _circuit(kernel, identity, identity, L.T)


def _from_k(kernel: NamedKernel) -> Circuit:
    K = kernel.numbers
    return _circuit(kernel, identity_minus(K), np.eye(len(K), dtype=K.dtype), K.T)


def _from_factor(kernel: NamedKernel, B: np.ndarray) -> Circuit:
    return _circuit(kernel, np.eye(B.shape[1], dtype=B.dtype), B.T, B.T)


def _from_spectrum(kernel: NamedKernel, eigenvalues: np.ndarray, Q: np.ndarray) -> Circuit:
    """A DPP from the nonzero eigenvalues of K and their eigenvectors. For a projection, M0 = 0."""
    B = (Q * np.sqrt(eigenvalues)).T
    return _circuit(kernel, np.diag(1.0 - eigenvalues), B, B)


def _circuit(kernel: NamedKernel, M0: Any, U: Any, V: Any) -> Circuit:
    if not len(M0):
        return Circuit(ONE, kernel.items)  # of rank 0: nothing is ever in
    return Circuit(det(M0, U, Matrix(V, note=kernel.note), [var(name) for name in kernel.items]), kernel.items)


def identity_minus(K: np.ndarray) -> np.ndarray:
    """I − K without rounding: 1 − K_ii is a fraction if no double equals it."""
    rounded = np.eye(len(K), dtype=K.dtype) - K
    left = [one_minus(x) for x in np.diag(K).tolist()]
    if all(type(x) is float for x in left):
        return rounded
    exact = rounded.astype(object)
    exact[np.diag_indices(len(K))] = np.array(left, object)
    return exact


# -- symmetric kernels ---------------------------------------------------------------------------------------


def _symmetrized(kernel: NamedKernel) -> NamedKernel:
    """The kernel, if it is symmetric up to rounding; two entries that differ by rounding become their mean."""
    A = kernel.floats
    difference = np.abs(A - A.T)
    if kernel.rows is None and not difference.any():
        return kernel
    spread = np.sqrt(np.abs(np.diag(A)))
    scale = np.maximum(np.maximum(np.abs(A), np.abs(A.T)), np.outer(spread, spread))
    excess = difference - max(ASYMMETRY, 8 * kernel.rounding) * scale
    i, j = (int(x) for x in np.unravel_index(np.argmax(excess), A.shape))
    if excess[i, j] > 0:
        told = f"is {A[i, j]:.6g}, but {kernel.entry(j, i)} is {A[j, i]:.6g}, a difference of {difference[i, j]:.3g}"
        raise _not_symmetric(kernel, i, j, told)
    if kernel.rows is not None:  # exact numbers, which have no rounding errors
        for i, j in np.argwhere(np.tril(kernel.rows != kernel.rows.T)).tolist():
            gap = nearest_float(Fraction(kernel.rows[i, j]) - Fraction(kernel.rows[j, i]))
            told = f"and {kernel.entry(j, i)} are exact numbers that differ by {abs(gap):.3g}"
            raise _not_symmetric(kernel, i, j, told)
        return kernel
    change = (
        f"the kernel {kernel.what} is not symmetric: entries of its two triangles differ by up to "
        f"{difference.max():.2g}, and their means are taken (a kernel that is declared nonsymmetric keeps them)"
    )
    return kernel.replaced(np.where(A == A.T, A, A / 2 + A.T / 2)).noted(change)


def _not_symmetric(kernel: NamedKernel, i: int, j: int, told: str) -> CircuitError:
    return CircuitError(
        f"the kernel {kernel.what} is not symmetric: {kernel.entry(i, j)} {told}",
        advice="symmetric=False allows kernels that are not",
    )


def _symmetric_l(kernel: NamedKernel, nearest: bool, rank: int | str | None) -> Circuit:
    L = kernel.floats
    is_given = not nearest and rank in (None, "full")
    if is_given and surely_definite(L):  # proved by one Cholesky factorization: no spectrum can say otherwise
        return _from_l(kernel)
    if not nearest:
        _check_spectrum(kernel, "positive semi-definite")
    if isinstance(rank, (int, np.integer)):
        return _from_factor(kernel, _largest_factor(L, int(rank)))
    B = _clear_factor(L) if rank is None and kernel.rows is None else None
    if nearest:
        if B is None:
            eigenvalues, Q = eigh(L)
            B = Q[:, eigenvalues > 0] * np.sqrt(eigenvalues[eigenvalues > 0])
        return _from_factor(kernel, B)
    if B is None or _is_proved(L):
        return _from_l(kernel)
    return _from_factor(kernel.noted(_rank_warning(kernel, B.shape[1], np.abs(B @ B.T - L).max())), B)


def _rank_warning(kernel: NamedKernel, rank: int, change: float) -> str:
    """The warning about an L that is replaced by one of lower rank."""
    n = len(kernel.items)
    return (
        f"the kernel L of {n} items has rank {rank} but for rounding errors, and is replaced by one that has it "
        f"exactly: {n - rank} eigenvalue{'s are' if n - rank > 1 else ' is'} taken for 0, and no entry changes by more "
        f"than {change:.1e}. The rank 'full' keeps every number, the rank {rank} says that this is meant; "
        "best is the factor B itself, where L = B·Bᵀ"
    )


def _is_proved(L: np.ndarray) -> bool:
    """Whether L is proved to be semidefinite: it is definite apart from rows and columns of zeros."""
    there = L.any(axis=1)
    return is_definite(L[np.ix_(there, there)].tolist())


def _clear_factor(L: np.ndarray) -> np.ndarray | None:
    """B with L = B·Bᵀ up to rounding and fewer columns than L; None if the rank is full or not clear."""
    _, eigenvalues, _ = _scaled_spectrum(L)
    top = max(eigenvalues, default=0.0)
    large = eigenvalues > SIGNAL * top
    if large.all() or (np.abs(eigenvalues[~large]) > NOISE * top).any():
        return None
    return _largest_factor(L, int(large.sum()))


def _largest_factor(L: np.ndarray, rank: int) -> np.ndarray:
    """B of at most `rank` columns with B·Bᵀ ≈ L: the largest eigenvalues of L scaled to a unit diagonal."""
    spread, eigenvalues, Q = _scaled_spectrum(L)
    kept = np.argsort(-eigenvalues, kind="stable")[:rank]
    kept = np.sort(kept[eigenvalues[kept] > 0.0])
    B = np.zeros((len(L), len(kept)))
    B[spread > 0] = Q[:, kept] * np.sqrt(eigenvalues[kept]) * spread[spread > 0, None]
    return B


def _scaled_spectrum(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """√A_ii, and the spectrum of A_ij / √(A_ii·A_jj) over the items with A_ii > 0.

    The rank of a kernel does not depend on the scale of its items: diag(1, 1e-20) has rank 2.
    """
    spread = np.sqrt(np.maximum(np.diag(A), 0.0))
    there = spread > 0
    scaled = A[np.ix_(there, there)] / spread[there, None] / spread[there]
    eigenvalues, Q = eigh(scaled)
    return spread, eigenvalues, Q


def _symmetric_k(kernel: NamedKernel, nearest: bool, rank: int | str | None) -> Circuit:
    K = kernel.floats
    is_given = not nearest and rank in (None, "full") and kernel.rows is None
    if is_given and surely_definite(K) and surely_definite(np.eye(len(K)) - K):
        return _from_k(kernel)
    if not nearest:
        _check_spectrum(kernel, MARGINAL, most=1.0)
    r = int(rank) if isinstance(rank, (int, np.integer)) else None
    if r is None and not nearest and (kernel.rows is not None or rank == "full"):
        return _from_k(kernel)
    eigenvalues, Q = _spectrum_of_marginals(K)
    clusters = rank is None and _has_clusters(K, eigenvalues)
    if r is None and not nearest and (not clusters or _is_proved_marginal(K)):
        return _from_k(kernel)
    kept = eigenvalues > (SIGNAL * max(eigenvalues) if clusters else 0.0)
    if r is not None:
        kept[np.argsort(-eigenvalues, kind="stable")[r:]] = False
    rounded = np.where(eigenvalues > 1 - NEARLY_ONE, 1.0, eigenvalues)
    if r is None and not nearest:
        kernel = kernel.noted(_cluster_warning(kernel, kept, rounded, Q))
    return _from_spectrum(kernel, np.minimum(rounded[kept], 1.0), Q[:, kept])


def _cluster_warning(kernel: NamedKernel, kept: np.ndarray, eigenvalues: np.ndarray, Q: np.ndarray) -> str:
    """The warning about a marginal kernel that is replaced by its spectrum."""
    change = float(np.abs((Q[:, kept] * eigenvalues[kept]) @ Q[:, kept].T - kernel.floats).max())
    rank, ones = int(kept.sum()), int((eigenvalues[kept] == 1.0).sum())
    return (
        f"the kernel K of {len(kept)} items has the eigenvalue 0 {len(kept) - rank} times and 1 {ones} times but for "
        f"rounding errors, and is replaced by one that has them exactly: no entry changes by more than {change:.1e}. "
        f"The rank 'full' keeps every number, the rank {rank} says that this is meant"
    )


def _is_proved_marginal(K: np.ndarray) -> bool:
    """Whether K and I − K are proved to be semidefinite: they are definite on the items that depend on others."""
    diagonal, others = np.diag(K), _dependent(K)
    if not ((diagonal >= 0.0) & (diagonal <= 1.0)).all():
        return False
    some = K[np.ix_(others, others)]
    return is_definite(some.tolist()) and is_definite(identity_minus(some).tolist())


def _spectrum_of_marginals(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues and eigenvectors of K. An item that is independent of all others stays exactly independent."""
    others = _dependent(K)
    eigenvalues, Q = np.diag(K).copy(), np.eye(len(K))
    if len(others):
        eigenvalues[others], Q[np.ix_(others, others)] = eigh(K[np.ix_(others, others)])
    return eigenvalues, Q


def _dependent(K: np.ndarray) -> np.ndarray:
    """The items that have a nonzero entry off the diagonal."""
    return np.flatnonzero(np.count_nonzero(K, axis=1) > (np.diag(K) != 0))


def _has_clusters(K: np.ndarray, eigenvalues: np.ndarray) -> bool:
    """Whether some eigenvalues are clearly meant to be 0 or 1, and no other is close to these.

    K and I − K, each scaled to a unit diagonal, must have the same number of zeros: items of widely different
    probabilities make small eigenvalues that are not noise.
    """
    top = max(eigenvalues)
    zeros, ones = np.abs(eigenvalues) <= NOISE * top, np.abs(1 - eigenvalues) < NEARLY_ONE
    between = (eigenvalues > SIGNAL * top) & (eigenvalues < 1 - SIGNAL)
    if not (zeros | ones | between).all():
        return False
    if not (zeros | ones).all() and not (zeros | ones)[_dependent(K)].any():
        return False  # those that are 0 or 1 are so exactly
    left = np.eye(len(K)) - K
    left[left.diagonal() < NEARLY_ONE] = 0.0  # rounding of 1: not an item of its own scale
    left[:, left.diagonal() == 0] = 0.0
    return _scaled_nullity(K) == zeros.sum() and _scaled_nullity(left) == ones.sum()


def _scaled_nullity(A: np.ndarray) -> int:
    spread, eigenvalues, _ = _scaled_spectrum(A)
    small = np.abs(eigenvalues) < SIGNAL * max(eigenvalues, default=0.0)
    return int((spread == 0).sum() + small.sum())


def _check_spectrum(kernel: NamedKernel, what: str, most: float = math.inf) -> None:
    """Refuse a symmetric kernel with an eigenvalue that is negative, or above `most`, up to rounding."""
    eigenvalues, tolerance = eigvalsh(kernel.floats), max(TOLERANCE, 100 * kernel.rounding)
    if eigenvalues[0] < -tolerance * np.abs(eigenvalues).max():
        raise _not_valid(kernel, what, 0)
    if eigenvalues[-1] > most + tolerance:
        raise _not_valid(kernel, what, -1)


def _not_valid(kernel: NamedKernel, what: str, which: int) -> SemanticsError:
    eigenvalues, Q = eigh(kernel.floats)
    size = np.abs(Q[:, which])
    heavy = [repr(kernel.items[i]) for i in np.argsort(-size, kind="stable")[:2] if size[i] > 1e-6]
    return SemanticsError(
        f"the kernel {kernel.what} is not {what}: it has the eigenvalue {eigenvalues[which]:.6g}, to which "
        f"{' and '.join(heavy)} contribute{'s' if len(heavy) == 1 else ''} most",
        advice="nearest=True takes the nearest kernel that is valid",
    )


# -- nonsymmetric kernels ------------------------------------------------------------------------------------


def _check_nonsymmetric(kernel: NamedKernel) -> None:
    A = kernel.floats
    # With L = K·(I − K)⁻¹:  (I − K)ᵀ·(L + Lᵀ)·(I − K) = K + Kᵀ − 2·Kᵀ·K.
    enough = A + A.T if kernel.what == "L" else A + A.T - 2 * A.T @ A
    eigenvalues = eigvalsh(enough)
    if eigenvalues[0] >= -TOLERANCE * np.abs(eigenvalues).max():
        return
    n = len(A)
    if n > MOST_ENUMERATED:
        _check_pairs(kernel)
        return
    for size in (*range(1, n + 1), 0):
        sets = np.array(list(combinations(range(n), size)), int)
        if kernel.what == "L":
            blocks, told = A[sets[:, :, None], sets[:, None, :]], "the minor of L for {} is {:.6g}"
        else:
            blocks, told = _of_events(A, sets), "the set {} would have probability {:.6g}"
        i, value = _most_negative(blocks)
        if i is not None:
            raise _negative(kernel, told.format(kernel.set(sets[i]), value))


def _of_events(K: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """The matrices with the determinants Pr(exactly S) = (−1)^(n − |S|)·det(K − I outside S)."""
    n = len(K)
    outside = np.ones((len(sets), n))
    np.put_along_axis(outside, sets, 0.0, axis=1)
    return (K - outside[:, :, None] * np.eye(n)) * np.where(outside, -1.0, 1.0)[:, :, None]


def _check_pairs(kernel: NamedKernel) -> None:
    """Check the minors of one and two items; for K, the probabilities of every outcome for these items."""
    A, d = kernel.floats, np.diag(kernel.floats)
    both = np.outer(d, d) - A * A.T
    size = np.abs(np.outer(d, d)) + np.abs(A * A.T)
    np.fill_diagonal(both, d)  # an item and itself
    np.fill_diagonal(size, np.abs(d))
    if kernel.what == "L":
        cases = {(1, 1): both}
    else:
        one, neither = d[:, None] - both, 1 - d[:, None] - d + both
        cases, size = {(1, 1): both, (1, 0): one, (0, 0): neither}, size + 1
    for values, case in cases.items():
        i, j = (int(x) for x in np.unravel_index(np.argmin(case + TOLERANCE * size), case.shape))
        if case[i, j] < -TOLERANCE * size[i, j]:
            event = dict.fromkeys(f"{kernel.items[k]}={x}" for k, x in zip((i, j), values, strict=True))
            minor = f"the minor of L for {kernel.set(sorted({i, j}))} is"
            found = minor if kernel.what == "L" else f"{', '.join(event)!r} would have probability"
            raise _negative(kernel, f"{found} {case[i, j]:.6g}")


def _most_negative(blocks: np.ndarray) -> tuple[int | None, float]:
    """The determinant furthest below 0, relative to Hadamard's bound for it; None if that is within rounding."""
    values = np.linalg.det(blocks)
    bounds = np.prod(np.linalg.norm(blocks, axis=2), axis=1)
    relative = np.divide(values, bounds, out=np.zeros_like(values), where=bounds > 0)
    worst = int(np.argmin(relative))
    return (worst if relative[worst] < -TOLERANCE else None), float(values[worst])


def _negative(kernel: NamedKernel, problem: str) -> SemanticsError:
    return SemanticsError(f"the kernel {kernel.what} is no DPP: {problem}, and probabilities are not negative")

"""Upper bounds on the largest coefficient of a determinant, by a concave relaxation of log det and its dual.

`mode_sets` calls this, for branch and bound. A coefficient of det(M0 + diag(f)·Vᵀ) is a determinant of rows: c_S has
row i of Vᵀ where i is in S, and row i of M0 where it is not. With a_i and b_i for these rows, and x the indicator of S,

    c_S² = det M(x),    M(x) = Σ_i x_i·a_i·a_iᵀ + (1 − x_i)·b_i·b_iᵀ,

which is linear in x (for L-ensembles, the *linx* bound of maximum-entropy sampling: Anstreicher, Operations Research
68, 2020). The logarithm is concave, and for *every* triangular R with Θ = R·Rᵀ

    log det M(x) ≤ tr(Θ·M(x)) − log det Θ − n = Σ_i x_i·|a_iᵀR|² + (1 − x_i)·|b_iᵀR|² − 2·Σ log |R_ii| − n.

The right-hand side is linear in x, so its maximum over all sets (of a size) is found by sorting. The inequality holds
for every R, so the proof does not depend on where R comes from, and only the norms of the products a_iᵀR have roundings
to account for. The bound is best for R = M(x)^-½ at the x that maximises log det M(x), which projected gradients
approach. Item i may be multiplied by any number s_i > 0 beforehand, if log s_i² is subtracted again; s_i = 1/|a_iᵀR|
makes the bound smallest.

If M0 is singular, or U is not I, the coefficient of S is bounded by the sum of the coefficients of all subsets of S:
c_S ≤ det(M0 + Σ_{i in S} σ_i·v_i·v_iᵀ), which is linear in x too.

For a positive semidefinite L there is also Hadamard's inequality, applied to the Schur complement L / A of the items A
that are in: det L_S ≤ det L_A · Π_{i in S, not in A} (L / A)_ii. It is better if items hardly depend on each other.
(L / A)_ii is the minimum of (e_i − w)ᵀ·L·(e_i − w) over w on A, so its value at *any* w is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgcc.ir.numbers import UNIT
from pgcc.program.determinant import DetStructure

# The regularization added to the diagonal of M(x), relative to its largest entry, if Cholesky factorization fails.
_RIDGE = 1e-12
# The most items for which L = B·Bᵀ is computed.
_MOST_ITEMS = 4096
# The largest log s_i; a row of zeros, which is in no set, has it, too.
_LARGEST_LOG_SCALE = 300.0
# Projected gradients: the duality gap at which the scale is changed first; the shortest and the longest step; and the
# number of steps without a better bound after which the iteration ends.
_FIRST_DISTANCE, _STEPS, _PATIENCE = 0.1, (1e-3, 1e3), 6


@dataclass(frozen=True)
class Region:
    """The sets under consideration: the items that are in (1), out (0) or free (−1), and the size, if that is fixed.

    Attributes
    ----------
    codes : int8 array
        1, 0 or −1 for every item.
    size : int, optional
        How many of the `counted` items are in.
    counted : bool array
        The items that `size` counts.
    most : int
        The rank: all sets with more items have the coefficient 0.
    """

    codes: np.ndarray
    size: int | None
    counted: np.ndarray
    most: int

    def with_codes(self, codes: np.ndarray) -> Region:
        """The region with these codes, in which the items that the size or the rank determines are decided, too."""
        found = Region(codes, self.size, self.counted, self.most)
        among = found.free & self.counted if self.size is not None else found.free
        all_out = (found.capacity if found.remaining is None else found.remaining) == 0
        all_in = found.remaining is not None and found.remaining == int(among.sum())
        if all_out or all_in:
            return Region(np.where(among, np.int8(all_in), codes), self.size, self.counted, self.most)
        return found

    @property
    def free(self) -> np.ndarray:
        """The items that are not decided."""
        return self.codes < 0

    @property
    def remaining(self) -> int | None:
        """How many of the free counted items are in; None without a size."""
        return None if self.size is None else self.size - int((self.codes[self.counted] == 1).sum())

    @property
    def capacity(self) -> int:
        """How many free items may be in."""
        return self.most - int((self.codes == 1).sum())

    def best(self, gains: np.ndarray) -> tuple[float, np.ndarray] | None:
        """The largest sum of gains of a set of the region, and its indicator; None if there is no set."""
        chosen = (self.codes == 1) | (self.free & (gains > 0.0))
        if self.remaining is not None:
            among = np.flatnonzero(self.free & self.counted)
            if not 0 <= self.remaining <= len(among):
                return None
            chosen[among] = False
            chosen[among[np.argsort(-gains[among], kind="stable")[: self.remaining]]] = True
        elif self.capacity >= 0:
            among = np.flatnonzero(self.free & chosen)
            chosen[among[np.argsort(-gains[among], kind="stable")[self.capacity :]]] = False
        else:
            return None
        return float(gains[chosen].sum()), chosen

    def project(self, x: np.ndarray) -> np.ndarray:
        """The projection onto the convex hull of the region, without regard to `most`."""
        found = np.where(self.free, np.clip(x, 0.0, 1.0), self.codes)
        if self.remaining is not None:
            among = self.free & self.counted
            found[among] = _with_sum(x[among], self.remaining)
        return found

    def middle(self) -> np.ndarray:
        """A point that prefers no free item."""
        among = int((self.free & self.counted).sum())
        share = 0.5 if self.remaining is None else self.remaining / max(among, 1)
        return self.project(np.where(self.counted, share, 0.5))


def _with_sum(x: np.ndarray, total: float) -> np.ndarray:
    """The projection onto {0 ≤ y ≤ 1, Σ y = total}: x − τ, clipped, with τ by bisection."""
    low, high = x.min(initial=0.0) - 1.0, x.max(initial=0.0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(x - middle, 0.0, 1.0).sum() > total else (low, middle)
    return np.clip(x - (low + high) / 2, 0.0, 1.0)


@dataclass(frozen=True)
class Dual:
    """A linear upper bound: log c_S + Σ_S weight_i ≤ constant + Σ_S gain_i for all S, including all roundings.

    Attributes
    ----------
    constant : float
    gains : float64 array
    log_scale : float64 array
        log s_i, the best scale for this bound.
    """

    constant: float
    gains: np.ndarray
    log_scale: np.ndarray

    def bound(self, region: Region) -> float:
        """An upper bound on log c_S + Σ_S weight for every set S of the region."""
        found = region.best(self.gains)
        return -np.inf if found is None else self.constant + found[0]

    def decide(self, region: Region, enough: float) -> tuple[Region, float]:
        """Decide the items whose other choice leads only to sets below `enough` (variable fixing).

        Also returns an upper bound on the sets that are excluded by this, which is valid for every `enough`.
        """
        bound, codes = self.bound(region), region.codes.copy()
        best = region.best(self.gains)
        if best is None:
            return region, -np.inf
        free, chosen = region.free, best[1]
        loss = np.abs(self.gains)  # a lower bound on the loss by the other choice of an item
        if region.remaining is not None:
            inside, outside = free & region.counted & chosen, free & region.counted & ~chosen
            if inside.any() and outside.any():
                loss = np.where(inside, self.gains - self.gains[outside].max(), loss)
                loss = np.where(outside, self.gains[inside].min() - self.gains, loss)
            else:
                loss = np.where(region.counted, np.inf, loss)
        elif chosen[free].sum() >= region.capacity:
            return region, -np.inf
        others = bound - loss
        surely = free & (others < enough)
        codes[surely] = chosen[surely]
        return region.with_codes(codes), float(others[surely].max(initial=-np.inf))


class Relaxation:
    """The concave relaxation of log c_S: M(x) of a determinant, and the accuracy of the rows a_i.

    Parameters
    ----------
    inside : float64 array, n × m
        The rows a_i.
    outside : float64 array, n × m, or None
        The rows b_i; None: M(x) = base + Σ x_i·a_i·a_iᵀ, whose determinant is c_S itself and not its square.
    base : float64 array, m × m
        Added to M(x); 0 if there are rows b_i.
    off : float64 array
        A bound on the norm of the error of each row a_i.
    weight : float64 array
        log φ_i: the amount that an item adds to the logarithm if it is in.
    """

    def __init__(
        self, inside: np.ndarray, outside: np.ndarray | None, base: np.ndarray, off: np.ndarray, weight: np.ndarray
    ):
        self.inside, self.outside, self.base, self.off, self.weight = inside, outside, base, off, weight
        self.power = 0.5 if outside is not None else 1.0
        self.shift = 0.0  # the logarithm of a factor that all coefficients have
        self.base_norm = float(_norms(base.reshape(1, -1))[0])
        self.row_norms = _norms(inside), None if outside is None else _norms(outside)

    def first_scale(self) -> np.ndarray:
        """The log s_i that give all items the same gain if they are independent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.outside is None:
                scale = -np.log(self.row_norms[0])
            else:
                scale = np.log(np.abs(np.diag(self.outside))) - np.log(np.abs(np.diag(self.inside)))
        return np.where(np.isfinite(scale), scale, 0.0)

    def gradient(self, dual: Dual, log_scale: np.ndarray) -> np.ndarray:
        """The gradient of the relaxation with this scale, at the point x of the dual, which has its own scale."""
        change = log_scale - dual.log_scale
        return dual.gains + self.power * (np.expm1(2.0 * np.minimum(change, 50.0)) - 2.0 * change)

    def at(self, x: np.ndarray, log_scale: np.ndarray) -> Dual | None:
        """The dual at the point x; None if numbers leave the range of doubles."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            a = self.inside * np.exp(log_scale)[:, None]
            matrix = (a.T * x) @ a + self.base
            if self.outside is not None:
                matrix += (self.outside.T * (1.0 - x)) @ self.outside
            R = _inverse_root(matrix)
            return None if R is None else self._dual(R)

    def _dual(self, R: np.ndarray) -> Dual | None:
        """The upper bound that R proves (see above), with the best scale, including all rounding errors."""
        m, n = len(R), len(self.inside)
        # |fl(aᵀR) − aᵀR| ≤ γ_m·|a|ᵀ|R|, whose norm is at most γ_m·|a|·‖R‖_F; plus the error of a itself, times ‖R‖_F
        size, roundings = float(_norms(R.reshape(1, -1))[0]) * 1.001, 2.0 * (m + 4) * UNIT
        upper_inside = self._squares(self.inside, R, (roundings * self.row_norms[0] + self.off) * size)
        with np.errstate(divide="ignore"):
            log_scale = -0.5 * np.log(upper_inside)  # the best one: s_i·|a_iᵀR| = 1
        log_scale = np.minimum(log_scale, _LARGEST_LOG_SCALE)
        scaled = upper_inside * np.exp(2.0 * log_scale)
        constant = -2.0 * float(np.log(np.abs(np.diag(R))).sum()) - m
        spread = float(np.abs(np.log(np.abs(np.diag(R)))).sum()) + m
        if self.outside is None:
            held = float((R * (self.base @ R)).sum()) + roundings * size * (size * self.base_norm)
            gains = scaled
        else:
            assert self.row_norms[1] is not None
            upper_outside = self._squares(self.outside, R, roundings * self.row_norms[1] * size)
            held = float(upper_outside.sum())
            gains = scaled - upper_outside
        gains = self.power * (gains - 2.0 * log_scale) + self.weight
        # sums of n terms and their logarithms: 4·(n + m) roundings, relative to the sum of absolute values
        sizes = spread + n + abs(held) + float(np.abs(gains).sum() + np.abs(log_scale).sum())
        slack = 4.0 * (n + m) * UNIT * sizes
        constant = self.power * (constant + held) + slack + self.shift
        if not (np.isfinite(constant) and np.isfinite(gains).all()):
            return None
        return Dual(constant, gains, log_scale)

    @staticmethod
    def _squares(rows: np.ndarray, R: np.ndarray, off: np.ndarray) -> np.ndarray:
        """Upper bounds on |rᵀR|² for all rows r, whose products with R have errors of norm `off`."""
        norms = np.sqrt((np.square(rows @ R)).sum(axis=1)) * (1.0 + 2.0 * (len(R) + 4) * UNIT) + off
        return np.square(norms) * (1.0 + 4.0 * UNIT)


class Hadamard:
    """Hadamard's inequality for a positive semidefinite L, given the items that are in.

    Parameters
    ----------
    L : float64 array, n × n
        The kernel, with an error of at most off·√(L_ii·L_jj) in every entry, in addition to rounding.
    off : float
    weight, shift
        As in `Relaxation`.
    """

    def __init__(self, L: np.ndarray, off: float, weight: np.ndarray, shift: float = 0.0):
        self.L, self.weight, self.shift = L, weight, shift
        self.spread = np.sqrt(np.maximum(np.diag(L), 0.0)) * (1.0 + off + 4.0 * UNIT)
        self.error = off + 4.0 * (len(L) + 8) * UNIT

    def bound(self, region: Region) -> float:
        """An upper bound on the logarithm of every set of the region."""
        gains = self._gains(region.codes == 1)
        found = None if gains is None else region.best(gains)
        if gains is None:
            return np.inf
        slack = 4.0 * len(gains) * UNIT * float(np.abs(gains[np.isfinite(gains)]).sum() + 1.0)
        return -np.inf if found is None else found[0] + slack + self.shift

    def _gains(self, inside: np.ndarray) -> np.ndarray | None:
        """log (L / A)_ii + weight for items not in A; for an item in A, with only the items of A before it for A."""
        L, items, others = self.L, np.flatnonzero(inside), np.flatnonzero(~inside)
        block = L[np.ix_(items, items)]
        try:
            factor = np.linalg.cholesky(block)
            own = np.tril(np.linalg.inv(factor)) * np.diag(factor)[:, None]  # rows e_i − w, w on items before i
            across = np.linalg.solve(block, L[np.ix_(items, others)])  # w
        except np.linalg.LinAlgError:
            return None
        upper, spread = np.empty(len(L)), self.spread
        size = np.abs(own) @ spread[items]
        upper[items] = ((own @ block) * own).sum(axis=1) + self.error * size**2
        size = np.abs(across).T @ spread[items] + spread[others]
        upper[others] = (
            np.diag(L)[others]
            - 2.0 * (across * L[np.ix_(items, others)]).sum(axis=0)
            + (across * (block @ across)).sum(axis=0)
            + self.error * size**2
        )
        if not np.isfinite(upper).all():
            return None
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(upper, 0.0)) + self.weight


def _inverse_root(matrix: np.ndarray) -> np.ndarray | None:
    """A triangular R with R·Rᵀ close to the inverse; None if Cholesky factorization fails or leaves the range."""
    top = float(np.abs(np.diag(matrix)).max(initial=0.0))
    if not np.isfinite(matrix).all() or not top > 0.0:
        return None
    for ridge in (0.0, _RIDGE * top, 1e3 * _RIDGE * top):
        try:
            found = np.linalg.inv(np.linalg.cholesky(matrix + ridge * np.eye(len(matrix)))).T
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(found).all() and (np.diag(found) != 0.0).all():
            return np.triu(found)
    return None


@dataclass(frozen=True)
class Bounds:
    """The bounds on the coefficients of a determinant that its matrices allow.

    Attributes
    ----------
    relaxation : Relaxation, optional
    hadamard : Hadamard, optional
    """

    relaxation: Relaxation | None = None
    hadamard: Hadamard | None = None


def find_bounds(structure: DetStructure, weight: np.ndarray) -> Bounds:
    """Bounds on the nonnegative coefficients of a determinant, times Π exp(weight)."""
    if not structure.in_range or not structure.rank or not structure.children:
        return Bounds()
    m0, _, v = structure.floats
    if structure.identity_u:
        rows = np.ascontiguousarray(v.T)
        off = 2.0 * UNIT * _norms(rows)
        definite = structure.identity_m0 and structure.symmetric
        hadamard = Hadamard(rows, 2.0 * UNIT, weight) if definite and structure.nonnegative else None
        return Bounds(Relaxation(rows, m0, np.zeros_like(m0), off, weight), hadamard)
    if structure.ratio is None or not structure.symmetric:
        return Bounds()
    rows = v.T * np.sqrt(structure.ratio)[:, None]
    if structure.diagonal_m0 and (np.diag(m0) > 0.0).all() and len(rows) <= _MOST_ITEMS:
        return _of_factor(rows, np.diag(m0), weight)
    if structure.nonnegative:
        return Bounds(Relaxation(rows, None, m0, 8.0 * UNIT * _norms(rows), weight))
    return Bounds()


def _of_factor(rows: np.ndarray, held: np.ndarray, weight: np.ndarray) -> Bounds:
    """Bounds on c_S = det M0 · det (B·Bᵀ)_S, B = rows·M0^-½, M0 = diag(held); rows have errors of a few roundings.

    Rows of B are multiplied by powers of two, for which their weights compensate, so that products with them neither
    underflow nor overflow.
    """
    B, exponents = _divided(rows, held)
    weight = weight + 2.0 * np.log(2.0) * exponents
    L, one = B @ B.T, np.eye(len(B))
    error = 2.0 * (B.shape[1] + 16) * UNIT
    norms = np.linalg.norm(B, axis=1)
    found = Relaxation(L, one, np.zeros_like(one), error * norms * float(np.linalg.norm(B)), weight)
    shift = float(np.log(held).sum()) + 4.0 * (len(held) + 1) * UNIT * float(np.abs(np.log(held)).sum() + 1.0)
    shift += 4.0 * UNIT * float(np.abs(exponents).sum() + np.abs(weight).sum())  # of the weights
    found.shift = shift
    return Bounds(found, Hadamard(L, 2.0 * error, weight, shift))


def _divided(rows: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B and e with 2^e_i·B_ik = rows_ik/√held_k, and the largest entry of every row of B near 1."""
    mantissa, exponent = np.frexp(rows)
    half = np.frexp(held)[1] // 2
    mantissa /= np.sqrt(np.ldexp(held, -2 * half))
    exponent -= half
    top = np.where(rows != 0.0, exponent, np.iinfo(exponent.dtype).min).max(
        axis=1, initial=np.iinfo(exponent.dtype).min
    )
    top = np.where((rows != 0.0).any(axis=1), top, 0)
    return np.ldexp(mantissa, np.maximum(exponent - top[:, None], -1100)), top


def _norms(rows: np.ndarray) -> np.ndarray:
    """The Euclidean norm of every row, without overflow or underflow of squares."""
    top = np.abs(rows).max(axis=1, initial=0.0)
    top = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
    return top * np.linalg.norm(rows / top[:, None], axis=1)


@dataclass(frozen=True)
class Tight:
    """The best bound found, and where the search for it ended.

    Attributes
    ----------
    bound : float
    dual : Dual
    x : float64 array
        A point of the convex hull: the nearer to 0 or 1, the more certain it is whether an item is in the best sets.
    log_scale : float64 array
    """

    bound: float
    dual: Dual
    x: np.ndarray
    log_scale: np.ndarray


def tighten(
    relaxation: Relaxation,
    region: Region,
    start: tuple[np.ndarray, np.ndarray],
    steps: int,
    done: Callable[[float], bool],
) -> Tight | None:
    """Lower the bound by projected gradients (with Barzilai–Borwein steps), starting from a point and a scale.

    done : called with the bound after every step; returns whether that is good enough.
    """
    x, log_scale = region.project(start[0]), start[1]
    best: Tight | None = None
    distance, step, waited = _FIRST_DISTANCE, 1.0, 0
    before: tuple[np.ndarray, np.ndarray] | None = None
    for _ in range(steps):
        found = relaxation.at(x, log_scale)
        if found is None:
            break
        bound = found.bound(region)
        waited = 0 if best is None or bound < best.bound - 1e-3 * distance else waited + 1
        if best is None or bound < best.bound:
            best = Tight(bound, found, x, log_scale)
        if done(best.bound) or waited >= _PATIENCE:
            break
        gradient = relaxation.gradient(found, log_scale)
        highest = region.best(gradient)
        if highest is None:
            break
        if highest[0] - float(gradient @ x) < distance:
            log_scale, distance, before = found.log_scale, distance / 2, None
            gradient = relaxation.gradient(found, log_scale)
        if before is not None:
            moved, turned = x - before[0], before[1] - gradient
            curvature = float(moved @ turned)
            step = float(moved @ moved) / curvature if curvature > 0.0 else 2.0 * step
            step = min(max(step, _STEPS[0]), _STEPS[1])
        before = x, gradient
        x = region.project(x + step * gradient)
    return best

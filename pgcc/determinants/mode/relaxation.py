"""Upper bounds on the largest coefficient of a determinant, by a concave relaxation of log det and its dual.

`upper_bounds` makes a `Relaxation`, and `tightening` finds where it is best.

A coefficient of det(M0 + diag(f)·Vᵀ) is a determinant of rows: c_S has row i of Vᵀ where i is in S, and row i of M0
where it is not. With a_i and b_i for these rows, and x the indicator of S,

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.determinants.mode.region import Region
from pgcc.ir.numbers import UNIT

# The regularization added to the diagonal of M(x), relative to its largest entry, if Cholesky factorization fails.
_RIDGE = 1e-12
# The largest log s_i; a row of zeros, which is in no set, has it, too.
_LARGEST_LOG_SCALE = 300.0


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
        self.base_norm = float(row_norms(base.reshape(1, -1))[0])
        self.norms = row_norms(inside), None if outside is None else row_norms(outside)

    def first_scale(self) -> np.ndarray:
        """The log s_i that give all items the same gain if they are independent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.outside is None:
                scale = -np.log(self.norms[0])
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
        size, roundings = float(row_norms(R.reshape(1, -1))[0]) * 1.001, 2.0 * (m + 4) * UNIT
        upper_inside = self._squares(self.inside, R, (roundings * self.norms[0] + self.off) * size)
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
            assert self.norms[1] is not None
            upper_outside = self._squares(self.outside, R, roundings * self.norms[1] * size)
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


def row_norms(rows: np.ndarray) -> np.ndarray:
    """The Euclidean norm of every row, without overflow or underflow of squares."""
    top = np.abs(rows).max(axis=1, initial=0.0)
    top = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
    return top * np.linalg.norm(rows / top[:, None], axis=1)

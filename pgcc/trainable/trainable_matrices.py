"""The matrices of a determinant det(M0 + U·diag(f)·Vᵀ) as unconstrained parameters θ, for each kind of determinant.

    a DPP by a kernel L                  M0 = U = I, V = Lᵀ         L = B·Bᵀ, or B·Bᵀ + C − Cᵀ if it is not symmetric
    a DPP by a marginal kernel K         M0 = I − K, U = I, V = Kᵀ  K = B·(Bᵀ·B + R)⁻¹·Bᵀ, where R is constant; if not
                                                                    symmetric, K = L·(I + L)⁻¹ with L as above
    a DPP by a factor or a spectrum      M0 ⪰ 0, U = V = Bᵀ         θ = B; M0 is constant
    spanning trees, rooted forests       M0 = diag(κ), u_e = w·v_e  θ = (log w, log κ)
    anything else, if `free`             M0, U, V                   θ = the entries that are not 0

Whatever θ is, the first four are distributions: L + Lᵀ ⪰ 0; K is a block of the projection onto the columns of B above
R^½; a coefficient of det(M0 + Σ f·b·bᵀ) is a mixed discriminant of positive semi-definite matrices; weights are
positive. So are their terms of one size (k-DPPs). The last gives no guarantee: it is normalized by its total, and may
have negative coefficients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pgcc.determinants.cofactors import Matrices
from pgcc.frontend.dpp import identity_minus
from pgcc.ir.matrix import Matrix
from pgcc.program.det_structure import DetStructure, Laplacian

# A negative eigenvalue of smaller magnitude than this, relative to the largest entry, is a rounding error.
_ROUNDING = 1e-9
# A nonsymmetric K has no usable kernel L = (I − K)⁻¹·K if I − K is closer to singular than this.
_NEARLY_SINGULAR = 1e-10


class Parametrization:
    """A map from unconstrained parameters θ to the matrices of a determinant of a circuit."""

    def __init__(self, structure: DetStructure):
        self.structure = structure

    def start(self) -> np.ndarray:
        """The θ that gives the matrices as they are in the circuit."""
        raise NotImplementedError

    def matrices(self, theta: np.ndarray) -> Matrices:
        """M0, U and V for θ."""
        raise NotImplementedError

    def gradient(self, theta: np.ndarray, grads: Matrices) -> np.ndarray:
        """The gradient with respect to θ, from the gradients with respect to M0, U and V."""
        raise NotImplementedError

    def exact(self, theta: np.ndarray) -> tuple[Any, Any, Any]:
        """M0, U and V for θ, with entries that need not be doubles."""
        return self.matrices(theta)


class Kernel(Parametrization):
    """det(I + diag(f)·L), with L = B·Bᵀ if symmetric, and L = B·Bᵀ + C − Cᵀ otherwise (`skew`)."""

    def __init__(self, structure: DetStructure, skew: bool):
        super().__init__(structure)
        self.n, self.skew = structure.rank, skew

    def start(self) -> np.ndarray:
        """B is the square root of the symmetric part of L, and C is L / 2."""
        return self.start_of(self.structure.floats[2].T)

    def start_of(self, L: np.ndarray) -> np.ndarray:
        """The θ of a kernel L."""
        B = _root((L + L.T) / 2)
        return np.concatenate([B.ravel(), (L / 2).ravel()]) if self.skew else B.ravel()

    def kernel(self, theta: np.ndarray) -> np.ndarray:
        """The kernel L for θ."""
        B, C = self._parts(theta)
        return B @ B.T + (C - C.T)

    def matrices(self, theta: np.ndarray) -> Matrices:
        """M0 = U = I, V = Lᵀ."""
        return np.eye(self.n), np.eye(self.n), self.kernel(theta).T

    def gradient(self, theta: np.ndarray, grads: Matrices) -> np.ndarray:
        """The gradient with respect to B and C."""
        return self.gradient_by(theta, grads[2].T)

    def gradient_by(self, theta: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The gradient with respect to B and C, from that with respect to L, G."""
        B, _ = self._parts(theta)
        by_b = (G + G.T) @ B
        return np.concatenate([by_b.ravel(), (G - G.T).ravel()]) if self.skew else by_b.ravel()

    def _parts(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        B = theta[: self.n**2].reshape(self.n, self.n)
        return B, theta[self.n**2 :].reshape(self.n, self.n) if self.skew else np.zeros((self.n, self.n))


class _ByMarginalKernel(Parametrization):
    """det(I − K + diag(f)·K), a DPP by its marginal kernel K."""

    def kernel(self, theta: np.ndarray) -> np.ndarray:
        """The marginal kernel K for θ."""
        raise NotImplementedError

    def matrices(self, theta: np.ndarray) -> Matrices:
        """M0 = I − K, U = I, V = Kᵀ."""
        K = self.kernel(theta)
        return np.eye(len(K)) - K, np.eye(len(K)), K.T

    def exact(self, theta: np.ndarray) -> tuple[Any, Any, Any]:
        """The same as `matrices`, with I − K unrounded, so that the total is exactly 1."""
        K = self.kernel(theta)
        return identity_minus(K), np.eye(len(K)), K.T


class MarginalKernel(_ByMarginalKernel):
    """K = B·(Bᵀ·B + R)⁻¹·Bᵀ, with the constant R = I − (initial K): symmetric, with eigenvalues from 0 to 1.

    With [B; R^½] = Q·T, of which B = P·T is the upper half, K = P·Pᵀ.
    """

    def __init__(self, structure: DetStructure):
        super().__init__(structure)
        self.start_kernel = structure.floats[2]
        self.half = _root(np.eye(len(self.start_kernel)) - self.start_kernel)

    def start(self) -> np.ndarray:
        """B = K^½, because then Bᵀ·B + R = I."""
        return _root(self.start_kernel).ravel()

    def _factors(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(self.half)
        Q, T = np.linalg.qr(np.concatenate([theta.reshape(n, n), self.half]))
        return Q[:n], T

    def kernel(self, theta: np.ndarray) -> np.ndarray:
        """The marginal kernel K for θ."""
        P, _ = self._factors(theta)
        return P @ P.T

    def gradient(self, theta: np.ndarray, grads: Matrices) -> np.ndarray:
        """(I − K)·(G + Gᵀ)·B·(Bᵀ·B + R)⁻¹, where G is the gradient with respect to K, and B·(Bᵀ·B + R)⁻¹ = P·T⁻ᵀ."""
        P, T = self._factors(theta)
        G = grads[2].T - grads[0]
        rest = np.eye(len(P)) - P @ P.T
        return np.linalg.solve(T, (rest @ (G + G.T) @ P).T).T.ravel()


class SkewMarginalKernel(_ByMarginalKernel):
    """K = L·(I + L)⁻¹ with L + Lᵀ ⪰ 0."""

    def __init__(self, structure: DetStructure):
        super().__init__(structure)
        self.by_l = Kernel(structure, skew=True)

    def start(self) -> np.ndarray:
        """The θ of L = (I − K)⁻¹·K."""
        K = self.structure.floats[2].T
        return self.by_l.start_of(np.linalg.solve(np.eye(len(K)) - K, K))

    def kernel(self, theta: np.ndarray) -> np.ndarray:
        """The marginal kernel K for θ."""
        L = self.by_l.kernel(theta)
        return np.linalg.solve(np.eye(len(L)) + L, L)

    def gradient(self, theta: np.ndarray, grads: Matrices) -> np.ndarray:
        """By the chain rule, with dK = (I − K)·dL·(I − K)."""
        K = self.kernel(theta)
        rest = (np.eye(len(K)) - K).T
        return self.by_l.gradient_by(theta, rest @ (grads[2].T - grads[0]) @ rest)


class Factor(Parametrization):
    """det(M0 + Bᵀ·diag(f)·B) with a constant M0 ⪰ 0 and an n × r matrix B."""

    def start(self) -> np.ndarray:
        """B = diag(√s)·Vᵀ, if U = V·diag(s)."""
        ratio = self.structure.ratio
        assert ratio is not None
        return (self.structure.floats[2] * np.sqrt(ratio)).T.ravel()

    def matrices(self, theta: np.ndarray) -> Matrices:
        """U = V = Bᵀ."""
        B = theta.reshape(self.structure.children, self.structure.rank)
        return self.structure.floats[0], B.T, B.T

    def exact(self, theta: np.ndarray) -> tuple[Any, Any, Any]:
        """The same as `matrices`, with the exact M0 of the circuit."""
        return (self.structure.matrices[0], *self.matrices(theta)[1:])

    def gradient(self, theta: np.ndarray, grads: Matrices) -> np.ndarray:
        """The gradient with respect to B, which is in both U and V."""
        return (grads[1] + grads[2]).T.ravel()


class Edges(Parametrization):
    """The positive edge weights and killing rates of a graph; those that are 0 stay 0."""

    def __init__(self, structure: DetStructure):
        super().__init__(structure)
        m0, u, v = structure.floats
        self.present = np.flatnonzero(u.any(axis=0))
        self.killed = np.flatnonzero(np.diag(m0) > 0.0)
        top = np.abs(u).argmax(axis=0)[self.present], self.present
        self.weights, self.rates = u[top] * v[top], np.diag(m0)[self.killed]

    def start(self) -> np.ndarray:
        """The logarithms of the weights and rates."""
        return np.log(np.concatenate([self.weights, self.rates]))

    def matrices(self, theta: np.ndarray) -> Matrices:
        """Weights scale the columns of U, as in `pgcc.spanning_tree`; V is constant."""
        weights, rates = np.split(np.exp(theta), [len(self.weights)])
        m0, u, v = (matrix.copy() for matrix in self.structure.floats)
        m0[self.killed, self.killed] = rates
        u[:, self.present] *= weights / self.weights
        return m0, u, v

    def exact(self, theta: np.ndarray) -> tuple[Any, Any, Any]:
        """The same as `matrices`, with the exact V of the circuit."""
        return (*self.matrices(theta)[:2], self.structure.matrices[2])

    def gradient(self, theta: np.ndarray, grads: Matrices) -> np.ndarray:
        """w·∂/∂w and κ·∂/∂κ."""
        m0, u, _ = self.matrices(theta)
        by_weights = (grads[1] * u).sum(axis=0)[self.present]
        return np.concatenate([by_weights, np.diag(grads[0] * m0)[self.killed]])


class Free(Parametrization):
    """All nonzero entries, except those of identity matrices: nothing keeps the coefficients from being negative."""

    def __init__(self, structure: DetStructure):
        super().__init__(structure)
        fixed = (structure.identity_m0, structure.identity_u, False)
        pairs = zip(structure.floats, fixed, strict=True)
        self.which = [np.zeros(m.shape, bool) if stays else m != 0.0 for m, stays in pairs]

    def start(self) -> np.ndarray:
        """The entries."""
        return np.concatenate([m[which] for m, which in zip(self.structure.floats, self.which, strict=True)])

    def matrices(self, theta: np.ndarray) -> Matrices:
        """The entries of θ at their places."""
        m0, u, v = (matrix.copy() for matrix in self.structure.floats)
        parts = np.split(theta, np.cumsum([which.sum() for which in self.which])[:-1])
        for matrix, which, part in zip((m0, u, v), self.which, parts, strict=True):
            matrix[which] = part
        return m0, u, v

    def gradient(self, theta: np.ndarray, grads: Matrices) -> np.ndarray:
        """The gradients of these entries."""
        return np.concatenate([grad[which] for grad, which in zip(grads, self.which, strict=True)])


def parametrization_of(structure: DetStructure, free: bool = False) -> Parametrization | None:
    """The parametrization of a determinant; None if none keeps it a distribution, unless it is `free`."""
    m0, _, v = structure.floats
    found: Parametrization | None = None
    if not structure.children:
        return None
    if structure.identity_u and structure.identity_m0:
        if _is_positive(v + v.T):
            found = Kernel(structure, skew=not np.array_equal(v, v.T))
    elif structure.is_marginal_kernel:
        if np.array_equal(v, v.T):
            found = MarginalKernel(structure) if _is_positive(v) and _is_positive(m0) else None
        elif _is_positive(v + v.T - 2 * v @ v.T) and np.linalg.cond(m0) < 1 / _NEARLY_SINGULAR:
            found = SkewMarginalKernel(structure)
    elif _has_edges(structure):
        found = Edges(structure)
    elif structure.ratio is not None and np.array_equal(m0, m0.T) and _is_positive(m0):
        found = Factor(structure)
    return Free(structure) if found is None and free else found


def graph_of(structure: DetStructure) -> Laplacian | None:
    """The graph whose Laplacian it is, if any, without edges that are in no tree (their columns of U are 0)."""
    m0, u, v = structure.floats
    present = u.any(axis=0)
    return DetStructure((Matrix(m0), Matrix(u[:, present]), Matrix(v[:, present]))).laplacian


def _has_edges(structure: DetStructure) -> bool:
    """Whether the determinant is the Laplacian of a graph in which some edge joins two nodes."""
    graph = graph_of(structure)
    return graph is not None and bool((graph.head < structure.rank).any())


def _is_positive(symmetric: np.ndarray) -> bool:
    """Whether a matrix is positive semi-definite, up to rounding."""
    return bool(np.linalg.eigvalsh(symmetric)[0] >= -_ROUNDING * max(1.0, np.abs(symmetric).max()))


def _root(symmetric: np.ndarray) -> np.ndarray:
    """The symmetric square root of a positive semi-definite matrix."""
    values, Q = np.linalg.eigh(symmetric)
    return Q * np.sqrt(np.maximum(values, 0.0)) @ Q.T

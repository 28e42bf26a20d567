"""The initial parameters of a mixture of determinantal PGCs, found by EM with independent groups.

A group is then a variable whose states are its codes and "out", of which an observation leaves some possible:

    p(row) = Π_g Pr(out_g) · Π_o Pr(o) / Pr(out_g)        over the observations o of the row: sums over possible states

Groups of variables with states are never out: they have only the factor Pr(o), where they are observed.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import block_array, csr_array, eye_array, hstack
from scipy.special import softmax

from pgcc.learn.mixtures.encoding import Encoded
from pgcc.locks import cached_property

# Smoothing of EM (the number of rows added to every component), its iterations, and the noise that is added to the
# diagonal kernels that it finds, because the gradient of the off-diagonal entries is zero at a diagonal kernel.
_PSEUDO_ROWS, _ITERATIONS, _NOISE = 30.0, 50, 0.3


def start_by_em(groups: IndependentGroups, components: int, rng: np.random.Generator) -> np.ndarray:
    """The initial parameters: EM for a mixture in which groups are independent, then noise on every kernel.

    Variables with states are not in the kernel: their odds, and their rows and columns of the factor, are 0, where the
    gradient is 0, too.
    """
    leaf, in_kernel = groups.leaf, groups.in_kernel
    start = rng.dirichlet(np.full(components, 0.1), len(groups.counts))  # most of each row in one component
    shares, weights = groups.mixture(start, groups.frequencies, _PSEUDO_ROWS)
    m, codes, outs = len(leaf) - 1, shares.T[:, : leaf[-1]], shares.T[:, leaf[-1] :]
    inside, odds = np.add.reduceat(codes, leaf[:-1], axis=1), np.zeros((components, m, 1))
    odds[:, :in_kernel, 0] = inside[:, :in_kernel] / outs
    noisy = np.eye(m) + _NOISE * rng.standard_normal((components, m, m)) / np.sqrt(m)
    factors = noisy / np.linalg.norm(noisy, axis=-1, keepdims=True) * np.sqrt(odds)
    factors[:, :, in_kernel:] = 0.0
    logits = np.log(codes / np.repeat(inside, np.diff(leaf), axis=1))
    return np.concatenate([factors.reshape(components, -1), logits, np.log(weights)[:, None]], axis=1)


class IndependentGroups:
    """Mixtures of distributions in which groups are independent. Their states are all codes, and "out" of some groups.

    Parameters
    ----------
    data : Encoded
    in_kernel : int
        The number of groups that can be out: the first ones.

    Attributes
    ----------
    leaf : array
        The offsets of the codes of every group.
    counts : array
        How often each distinct row occurs, as a column.
    """

    def __init__(self, data: Encoded, in_kernel: int):
        table, self.counts = data.table, data.counts[:, None]
        self.leaf, self.in_kernel = table.leaf, in_kernel
        m, observations = len(table.leaf) - 1, len(table.observation) - 1
        out = eye_array(m, in_kernel, format="csr")
        group = np.searchsorted(table.leaf, table.codes[table.observation[:-1]], side="right") - 1
        codes = _matrix(table.codes, table.observation, int(table.leaf[-1]))
        # which states are possible: in an observation, of a group that is in, or may be out; in a group that is out
        self._possible = block_array([[codes, None], [codes, out[group]], [None, out[:in_kernel]]], format="csr")
        self._outs = slice(2 * observations, None)
        seen = _matrix(table.seen, table.row, observations)
        free = _matrix(np.where(table.free < 0, observations, table.free), table.pattern, observations + 1)[:, :-1]
        active = _matrix(table.groups, table.pattern, m)[:, :in_kernel]
        # a row is out of all groups but the active ones
        self._observed = hstack([seen, free[table.of_row], -active[table.of_row]], format="csr")
        self._group, self._leaf = (
            np.concatenate([np.repeat(np.arange(m), np.diff(table.leaf)), first + np.arange(in_kernel)])
            for first in (0, m)
        )

    @cached_property
    def frequencies(self) -> np.ndarray:
        """The frequency of every state of each group, with a row added that is evenly in and out."""
        evenly = self._divided(self._divided(np.ones((len(self._leaf), 1)), self._leaf), self._group)
        return self.mixture(np.ones(self.counts.shape), evenly, 1.0)[0]

    def code_frequencies(self) -> np.ndarray:
        """The frequency of every code among the rows in which its group is in, and in a row that has all, evenly."""
        return self._divided(self.frequencies, self._leaf)[: self.leaf[-1], 0]

    @staticmethod
    def _added(amounts: np.ndarray, part: np.ndarray) -> np.ndarray:
        """For every state, the amount of all states of its part: its group, or its leaf, in which a group is in."""
        return (_matrix(part, np.arange(len(part) + 1), len(part)).T @ amounts)[part]

    def _divided(self, amounts: np.ndarray, part: np.ndarray) -> np.ndarray:
        """The share of every state in its part."""
        return amounts / self._added(amounts, part)

    def mixture(
        self, responsibilities: np.ndarray, prior: np.ndarray, pseudo_rows: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """EM from these responsibilities (rows × components): the probabilities (states × components) and the weights.

        So many rows, distributed as the prior, are added to every component, and to every leaf.
        """
        shares = np.tile(prior, responsibilities.shape[1])
        for _ in range(_ITERATIONS):
            taken = self.counts * responsibilities
            flows = self._observed.T @ taken
            flows[self._outs] += taken.sum(axis=0)
            counts = shares * (self._possible.T @ (flows / (self._possible @ shares)))
            often = self._divided(counts + pseudo_rows * prior, self._group)  # in, or out
            leaves = self._divided(counts + pseudo_rows * self._divided(prior, self._leaf), self._leaf)
            shares = self._added(often, self._leaf) * leaves
            weights = (taken.sum(axis=0) + 1) / (taken.sum() + taken.shape[1])
            logs = np.log(self._possible @ shares)
            responsibilities = softmax(self._observed @ logs + logs[self._outs].sum(axis=0) + np.log(weights), 1)
        return shares, weights


def _matrix(columns: np.ndarray, starts: np.ndarray, width: int) -> csr_array:
    """A matrix of ones at these columns, row by row."""
    return csr_array((np.ones(len(columns)), columns, starts), (len(starts) - 1, width))

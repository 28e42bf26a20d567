"""The initial parameters of a mixture of determinantal PGCs, found by EM with independent groups.

A group is then a variable whose states are its codes and "out", of which an observation leaves some possible:

    p(row) = Π_g Pr(out_g) · Π_o Pr(o) / Pr(out_g)        over the observations o of the row: sums over possible states

Groups of variables with states are never out: they have only the factor Pr(o), where they are observed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import block_array, csr_array, eye_array, hstack
from scipy.special import softmax

from pgcc.learn.mixtures.encoding import Encoded

# Smoothing of EM (the number of rows added to every component), its iterations, and the noise that is added to the
# diagonal kernels that it finds, because the gradient of the off-diagonal entries is zero at a diagonal kernel.
_PSEUDO_ROWS, _ITERATIONS, _NOISE = 30.0, 50, 0.3


def start_by_em(data: Encoded, components: int, rng: np.random.Generator, in_kernel: int) -> np.ndarray:
    """The initial parameters: EM for a mixture in which groups are independent, then noise on every kernel.

    Only the first `in_kernel` groups are in the kernel. The others are variables with states: their odds, and their
    rows and columns of the factor, are 0, where the gradient is 0, too.
    """
    groups, leaf = IndependentGroups(data, in_kernel), data.table.leaf
    start = rng.dirichlet(np.full(components, 0.1), len(data.counts))  # most of each row in one component
    shares, weights = groups.mixture(start, groups.frequencies(), _PSEUDO_ROWS)
    m, codes, outs = len(leaf) - 1, shares.T[:, : leaf[-1]], shares.T[:, leaf[-1] :]
    inside, odds = np.add.reduceat(codes, leaf[:-1], axis=1), np.zeros((components, m, 1))
    odds[:, :in_kernel, 0] = inside[:, :in_kernel] / outs
    noisy = np.eye(m) + _NOISE * rng.standard_normal((components, m, m)) / np.sqrt(m)
    factors = noisy / np.linalg.norm(noisy, axis=-1, keepdims=True) * np.sqrt(odds)
    factors[:, :, in_kernel:] = 0.0
    logits = np.log(codes / np.repeat(inside, np.diff(leaf), axis=1))
    return np.concatenate([factors.reshape(components, -1), logits, np.log(weights)[:, None]], axis=1)


def code_frequencies(data: Encoded, in_kernel: int) -> np.ndarray:
    """The frequency of every code among the rows in which its group is in, with a row added that has all, evenly."""
    found = IndependentGroups(data, in_kernel).frequencies()
    return np.concatenate([found[a:b] / found[a:b].sum() for a, b in pairwise(data.table.leaf)])


class IndependentGroups:
    """Mixtures of distributions in which groups are independent. Their states are all codes, and "out" of some groups.

    Parameters
    ----------
    data : Encoded
    in_kernel : int
        The number of groups that can be out: the first ones.
    """

    def __init__(self, data: Encoded, in_kernel: int):
        table, self._counts = data.table, data.counts[:, None]
        starts = table.leaf, table.pattern, table.row, table.observation
        m, patterns, rows, observations = (len(offsets) - 1 for offsets in starts)
        out = eye_array(m, in_kernel, format="csr")
        group = np.searchsorted(table.leaf, table.codes[table.observation[:-1]], side="right") - 1
        of_codes = csr_array(
            (np.ones(len(table.codes)), table.codes, table.observation), (observations, table.leaf[-1])
        )
        # which states are possible: in an observation, of a group that is in, or may be out; in a group that is out
        self._possible = block_array([[of_codes, None], [of_codes, out[group]], [None, out[:in_kernel]]], format="csr")
        seen = csr_array((np.ones(len(table.seen)), table.seen, table.row), (rows, observations))
        is_free = (table.free >= 0).astype(float), np.maximum(table.free, 0), table.pattern
        free = csr_array(is_free, (patterns, observations))[table.of_row]
        active = csr_array((np.ones(len(table.groups)), table.groups, table.pattern), (patterns, m))[table.of_row]
        # a row is out of all groups but the active ones
        self._outs = slice(2 * observations, None)
        self._observed = hstack([seen, free, -active[:, :in_kernel]], format="csr")
        self._group, self._leaf = (
            np.concatenate([np.repeat(np.arange(m), np.diff(table.leaf)), first + np.arange(in_kernel)])
            for first in (0, m)
        )

    def frequencies(self) -> np.ndarray:
        """The frequency of every state of each group, with a row added that is evenly in and out."""
        evenly = self._divided(self._divided(np.ones((len(self._leaf), 1)), self._leaf), self._group)
        return self.mixture(np.ones(self._counts.shape), evenly[:, 0], 1.0)[0][:, 0]

    @staticmethod
    def _added(amounts: np.ndarray, part: np.ndarray) -> np.ndarray:
        """For every state, the amount of all states of its part: its group, or its leaf, in which a group is in."""
        return (csr_array((np.ones(len(part)), (part, np.arange(len(part))))) @ amounts)[part]

    def _divided(self, amounts: np.ndarray, part: np.ndarray) -> np.ndarray:
        """The share of every state in its part."""
        return amounts / self._added(amounts, part)

    def mixture(
        self, responsibilities: np.ndarray, prior: np.ndarray, pseudo_rows: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """EM from these responsibilities (rows × components): the probabilities (states × components) and the weights.

        So many rows, distributed as the prior, are added to every component, and to every leaf.
        """
        prior = prior[:, None]
        shares = np.tile(prior, responsibilities.shape[1])
        for _ in range(_ITERATIONS):
            taken = self._counts * responsibilities
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

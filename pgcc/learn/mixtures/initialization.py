"""The initial parameters of a mixture of determinantal PGCs, found by EM with independent groups."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pgcc.learn.kernels import em, mixtures
from pgcc.learn.kernels.encoded_tables import Table
from pgcc.learn.mixtures.encoding import Encoded

# Smoothing of EM (the number of rows added to every component), its iterations, and the noise that is added to the
# diagonal kernels that it finds, because the gradient of the off-diagonal entries is zero at a diagonal kernel.
_PSEUDO_ROWS, _ITERATIONS, _NOISE = 30.0, 50, 0.3


def start_by_em(data: Encoded, components: int, rng: np.random.Generator, in_kernel: int) -> np.ndarray:
    """The initial parameters: EM for a mixture in which groups are independent, then noise on every kernel.

    Only the first `in_kernel` groups are in the kernel. The others are variables with states: their odds, and their
    rows and columns of the factor, are 0, where the gradient is 0, too.
    """
    m = len(data.table.leaf) - 1
    inside = _group_frequencies(data)
    inside[in_kernel:] = 0.0
    log_odds, logits, weights = mixture_of_groups(
        data.table,
        data.counts,
        _random_responsibilities(data, components, rng),
        inside,
        prior_codes(data),
        _PSEUDO_ROWS,
        _ITERATIONS,
    )
    directions = _unit_rows(np.eye(m) + _NOISE * rng.standard_normal((components, m, m)) / np.sqrt(m))
    factors = directions * np.exp(0.5 * log_odds)[:, :, None] * (inside > 0.0)
    return np.concatenate([factors.reshape(components, -1), logits, weights[:, None]], axis=1)


def mixture_of_groups(
    table: Table,
    counts: np.ndarray,
    responsibilities: np.ndarray,
    prior_in: np.ndarray,
    prior_code: np.ndarray,
    pseudo_rows: float,
    iterations: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """EM for a mixture in which the groups are independent given the component.

    Parameters
    ----------
    table : Table
    counts : array
        How often each distinct row occurs.
    responsibilities : array, components × rows
        Initial responsibilities.
    prior_in, prior_code : array
        The probability that each group is in, and of each code if its group is, in the rows added for smoothing.
    pseudo_rows : float
        The number of rows added to every component.
    iterations : int
        The number of iterations.

    Returns
    -------
    (log_odds, logits, log_weights)
        Components × groups, components × codes, and one per component.
    """
    components = len(responsibilities)
    with np.errstate(divide="ignore"):
        log_odds = np.tile(np.log(prior_in / (1 - prior_in)), (components, 1))
    logits = np.tile(np.log(prior_code), (components, 1))
    leaf, log_mass = np.empty_like(logits), np.empty((components, len(table.observation) - 1))
    scores, weights = np.empty_like(responsibilities), np.ones(components)
    em.expect(table, np.log(weights), log_odds, logits, leaf, log_mass, scores)
    responsibilities = responsibilities * counts
    for _ in range(iterations):
        em.maximize(
            table, responsibilities, prior_in, prior_code, pseudo_rows, log_odds, leaf, log_mass, logits, weights
        )
        weights = (weights + 1) / (weights + 1).sum()
        em.expect(table, np.log(weights), log_odds, logits, leaf, log_mass, scores)
        mixtures.compute_responsibilities(counts, scores, responsibilities)
    return log_odds, logits, np.log(weights)


def _random_responsibilities(data: Encoded, components: int, rng: np.random.Generator) -> np.ndarray:
    """Initial responsibilities: random, with most of each row assigned to one component."""
    responsibilities = rng.dirichlet(np.full(components, 0.1), size=len(data.table.of_row))
    return np.ascontiguousarray(responsibilities.T)


def _group_frequencies(data: Encoded) -> np.ndarray:
    """The frequency of each group being in, among rows in which that is known, with pseudo-counts of 1/2."""
    table = data.table
    of_entry = np.repeat(np.arange(len(table.pattern) - 1), np.diff(table.pattern))
    weight = np.bincount(table.of_row, weights=data.counts, minlength=len(table.pattern) - 1)[of_entry]
    certain, m = table.free < 0, len(table.leaf) - 1
    inside = np.bincount(table.groups[certain], weights=weight[certain], minlength=m)
    unknown = np.bincount(table.groups[~certain], weights=weight[~certain], minlength=m)
    return (inside + 0.5) / (data.counts.sum() - unknown + 1)


def prior_codes(data: Encoded) -> np.ndarray:
    """The frequency of every code among the rows in which its group is in, with pseudo-counts that add up to 1.

    An observation with several possible codes counts for each of them in equal parts.
    """
    table = data.table
    rows = np.repeat(np.arange(len(table.of_row)), np.diff(table.row))
    weight = np.bincount(table.seen, weights=data.counts[rows], minlength=len(table.observation) - 1)
    sizes = np.diff(table.observation)
    count = np.bincount(table.codes, weights=np.repeat(weight / np.maximum(sizes, 1), sizes), minlength=table.leaf[-1])
    return np.concatenate([_smoothed(count[a:b]) for a, b in pairwise(table.leaf)])


def _smoothed(count: np.ndarray) -> np.ndarray:
    return (count + 1 / len(count)) / (count.sum() + 1)


def _unit_rows(a: np.ndarray) -> np.ndarray:
    return a / np.linalg.norm(a, axis=-1, keepdims=True)

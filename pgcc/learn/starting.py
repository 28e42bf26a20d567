"""The start of training: the parameters of a mixture of determinantal PGCs before the first step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pgcc.learn.encoding import Encoded
from pgcc.learn.kernels import em, mixtures
from pgcc.learn.kernels.tables import Table

# Rows that smooth the components of EM; its rounds; the noise that is added to the diagonal kernels that it finds: at a
# diagonal kernel the gradient of the other entries is zero.
_EXTRA, _ROUNDS, _NOISE = 30.0, 50, 0.3


def start_by_em(data: Encoded, components: int, rng: np.random.Generator) -> np.ndarray:
    """A mixture in which groups are independent, by EM; then noise is added to every kernel."""
    m = len(data.table.leaf) - 1
    log_odds, logits, weights = mixture_of_groups(
        data.table, data.counts, _shares(data, components, rng), _active(data), prior_codes(data), _EXTRA, _ROUNDS
    )
    directions = _unit_rows(np.eye(m) + _NOISE * rng.standard_normal((components, m, m)) / np.sqrt(m))
    factors = directions * np.exp(0.5 * log_odds)[:, :, None]
    return np.concatenate([factors.reshape(components, -1), logits, weights[:, None]], axis=1)


def mixture_of_groups(
    table: Table,
    counts: np.ndarray,
    shares: np.ndarray,
    prior_in: np.ndarray,
    prior_code: np.ndarray,
    extra: float,
    rounds: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A mixture in which the groups are independent, by EM.

    Parameters
    ----------
    table : Table
    counts : array
        How often each distinct row occurs.
    shares : array, components × rows
        Initial responsibilities.
    prior_in, prior_code : array
        Probabilities of groups, and of codes in them, in the rows that are added to every component.
    extra : float
        How many rows are added.
    rounds : int

    Returns
    -------
    (log_odds, logits, log_weights)
        Components × groups, components × codes, and one per component.
    """
    components = len(shares)
    log_odds = np.tile(np.log(prior_in / (1 - prior_in)), (components, 1))
    logits = np.tile(np.log(prior_code), (components, 1))
    leaf, log_mass = np.empty_like(logits), np.empty((components, len(table.observation) - 1))
    scores, weights = np.empty_like(shares), np.ones(components)
    em.expect(table, np.log(weights), log_odds, logits, leaf, log_mass, scores)
    shares = shares * counts
    for _ in range(rounds):
        em.maximize(table, shares, prior_in, prior_code, extra, log_odds, leaf, log_mass, logits, weights)
        weights = (weights + 1) / (weights + 1).sum()
        em.expect(table, np.log(weights), log_odds, logits, leaf, log_mass, scores)
        mixtures.share(counts, scores, shares)
    return log_odds, logits, np.log(weights)


def _shares(data: Encoded, components: int, rng: np.random.Generator) -> np.ndarray:
    """Initial responsibilities: every row is mostly of one component, drawn at random."""
    shares = rng.dirichlet(np.full(components, 0.1), size=len(data.table.of_row))
    return np.ascontiguousarray(shares.T)


def _active(data: Encoded) -> np.ndarray:
    """How often each group is in, of the rows in which that is known, with half a row more for in and for out."""
    table = data.table
    of_entry = np.repeat(np.arange(len(table.pattern) - 1), np.diff(table.pattern))
    weight = np.bincount(table.of_row, weights=data.counts, minlength=len(table.pattern) - 1)[of_entry]
    certain, m = table.free < 0, len(table.leaf) - 1
    inside = np.bincount(table.groups[certain], weights=weight[certain], minlength=m)
    unknown = np.bincount(table.groups[~certain], weights=weight[~certain], minlength=m)
    return (inside + 0.5) / (data.counts.sum() - unknown + 1)


def prior_codes(data: Encoded) -> np.ndarray:
    """How often every code occurs, of all rows in which its group is in, with one row more spread over all codes.

    An observation of several codes counts for each of them in equal parts.
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

"""Stacking: the mixture weights with the largest likelihood of the validation rows, and what each model adds."""

from __future__ import annotations

import numpy as np

# The most EM iterations for the weights; they end when no weight changes by more.
_ITERATIONS, _CHANGE = 1000, 1e-7
# Iterations after which it shows whether a model would get any weight.
_FEW = 30


def stacking_weights(
    logs: np.ndarray, counts: np.ndarray | None = None, start: np.ndarray | None = None, iterations: int = _ITERATIONS
) -> np.ndarray:
    """The mixture weights that maximize the likelihood of rows, by EM.

    Parameters
    ----------
    logs : array, models × rows
        log p(row)
    counts : array, optional
        How often each row occurs.
    start : array, optional
        The weights to start from.
    iterations : int
        The most iterations.

    Examples
    --------
    >>> stacking_weights(np.log([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]])).round(3).tolist()
    [0.708, 0.292]
    """
    possible = ~np.isneginf(logs.max(axis=0))  # rows that are impossible under every model are left out
    weights = np.full(len(logs), 1 / len(logs)) if start is None else start
    relative = np.exp(logs[:, possible] - logs[:, possible].max(axis=0))
    often = np.ones(possible.sum()) if counts is None else counts[possible]
    for _ in range(iterations if often.any() else 0):
        joint = weights[:, None] * relative
        before, weights = weights, (joint / joint.sum(axis=0)) @ often / often.sum()  # the mean responsibilities
        if np.abs(weights - before).max() < _CHANGE:
            break
    return weights / weights.sum()


def stacked_score(weights: np.ndarray, logs: np.ndarray, counts: np.ndarray) -> float:
    """The mean log-likelihood of rows under the mixture.

    >>> round(stacked_score(np.array([0.5, 0.5]), np.log([[0.9, 0.1], [0.1, 0.9]]), np.ones(2)), 4)
    -0.6931
    """
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp.reduce(logs + np.log(weights)[:, None], axis=0)
    return float(counts @ mixed / counts.sum())


def cross_fitted_score(logs: np.ndarray, counts: np.ndarray) -> float:
    """The mean log-likelihood of rows under the stack, each half with the weights that the other half chooses.

    >>> logs = np.log(np.random.default_rng(0).random((2, 50)))
    >>> cross_fitted_score(logs, np.ones(50)) <= stacked_score(stacking_weights(logs), logs, np.ones(50))
    True
    """
    half = np.random.default_rng(logs.shape[1]).permutation(logs.shape[1]) % 2 == 0
    if half.all():
        return stacked_score(stacking_weights(logs, counts), logs, counts)
    total = 0.0
    for rows, others in ((half, ~half), (~half, half)):
        weights = stacking_weights(logs[:, others], counts[others])
        total += stacked_score(weights, logs[:, rows], counts[rows]) * counts[rows].sum()
    return float(total / counts.sum())


def additions(logs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """By how much the stack is better with each model than without it, in mean log-likelihood; inf for the only one."""
    if len(logs) == 1:
        return np.array([np.inf])
    whole = stacked_score(stacking_weights(logs, counts), logs, counts)
    rest = (np.delete(logs, i, axis=0) for i in range(len(logs)))
    return np.array([whole - stacked_score(stacking_weights(some, counts), some, counts) for some in rest])


def potentials(logs: np.ndarray, counts: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """By how much the stack would be better if one model had this gain in every row, for each of them."""
    weights = stacking_weights(logs, counts)
    now, found = stacked_score(weights, logs, counts), []
    for one, shift in zip(np.eye(len(logs)), np.diag(gains), strict=True):
        better = logs + shift[:, None]
        some = stacking_weights(better, counts, 0.8 * weights + 0.2 * one, _FEW)
        found.append(max(0.0, stacked_score(some, better, counts) - now))
    return np.array(found)

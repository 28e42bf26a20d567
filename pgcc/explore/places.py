"""Where nodes stand in the pictures of the page: computed here, and sent as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.program.program import Program

_SWEEPS = 10
# Rounds of stress majorisation; and about how many pairs of nodes all of them together may go over.
_ROUNDS, _MOST_PAIRS = 300, 30_000_000

Edges = Sequence[tuple[int, int]]


def horizontal_places(program: Program) -> np.ndarray:
    """From 0 to 1, how far to the right every instruction stands among those of its layer.

    Sugiyama's method: a layer has those with equally long paths from the root; they are sorted by the mean place of
    what is above, then below, … them.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> horizontal_places(lower(pgcc.parse("(a + 1)*(b + 1)/4"))).tolist()
    [0.25, 0.75, 0.5]
    """
    n = program.instructions
    parent, child = np.repeat(np.arange(n), np.diff(program.start))[program.is_slot], program.args[program.is_slot]
    ends, layer = np.searchsorted(parent, np.arange(n + 1)), np.zeros(n, np.int64)
    for i in range(n - 1, -1, -1):
        below = child[ends[i] : ends[i + 1]]
        layer[below] = np.maximum(layer[below], layer[i] + 1)
    width = np.bincount(layer)
    place = np.arange(n, 0, -1) / n  # the order of the text
    for sweep in range(_SWEEPS):
        here, beside = (child, parent) if sweep % 2 == 0 else (parent, child)
        count = np.bincount(here, minlength=n)
        mean = np.where(count > 0, np.bincount(here, place[beside], n) / np.maximum(count, 1), place)
        rank = np.arange(n) - np.repeat(np.cumsum(width) - width, width)
        place[np.lexsort((mean, layer))] = (rank + 0.5) / np.repeat(width, width)
    return place


def stress_places(count: int, edges: Edges) -> np.ndarray:
    """Places (x, y) of the nodes of a graph in the unit square, whose distances resemble those along edges.

    By stress majorisation: every round solves for the places that are best for the directions of the last ones.

    Examples
    --------
    >>> stress_places(3, [(0, 1), (1, 2)])[:, 0].round(6).tolist()
    [0.0, 0.5, 1.0]
    """
    distance = _distances(count, edges)
    weight = 1.0 / np.where(distance > 0.0, distance, np.inf) ** 2
    solve = np.linalg.inv(np.diag(weight.sum(axis=0)) - weight + 1.0)
    nodes, pivot = np.arange(count), distance[0].argmax()  # at first, distances to two far nodes, without ties
    start = distance[0] + 0.01 * np.sin(7 * nodes), distance[pivot] + 0.01 * np.cos(5 * nodes)
    places = np.stack(start, axis=1)
    for _ in range(min(_ROUNDS, 1 + _MOST_PAIRS // count**2)):
        lengths = np.linalg.norm(places[:, None] - places[None], axis=2)
        pull = weight * distance / np.where(lengths > 0.0, lengths, np.inf)
        places = solve @ ((np.diag(pull.sum(axis=0)) - pull) @ places)
    return _upright(places)


def _distances(count: int, edges: Edges) -> np.ndarray:
    """The number of edges between every two nodes, and `count` where there is no way."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        beside[a].append(b)
        beside[b].append(a)
    distance = np.full((count, count), float(count))
    for source in range(count):
        found = {source: 0}
        reached = [source]
        for node in reached:
            for other in beside[node]:
                if other not in found:
                    found[other] = found[node] + 1
                    reached.append(other)
        distance[source, list(found)] = list(found.values())
    return distance


def _upright(places: np.ndarray) -> np.ndarray:
    """Turned so that the longest extent is horizontal, and moved and scaled into the unit square."""
    centred = places - places.mean(axis=0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    low = turned.min(axis=0)
    return (turned - low) / max(float((turned - low).max()), 1e-9)

"""Random sets of children of a determinant, from the tables that `pgcc.determinants.sampling_tables` lays out.

The algorithms are those of `sampling_sets` and `sampling_trees`. `evaluate/kernels/top_down` calls `pick_children`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.sampling_sets import pick_by_elimination, pick_spectral
from pgcc.determinants.kernels.sampling_trees import random_walks
from pgcc.kernels.policy import kernel

# The kinds of samplers: the spectral method, elimination, and random walks on a graph.
VECTORS, ELIMINATION, WALKS = range(3)
_ENDLESS = 2**62  # steps of random walks
# A record says how sets are drawn from one determinant.
SAMPLER = np.dtype((np.record, [
    ("kind", np.int64),  # of sampler
    ("children", np.int64),  # the number of children
    ("free", np.int64),  # the number of children that are neither surely in nor surely out; of a graph: of its nodes
    ("inside", np.int64),  # the offset in `ints` of which children are surely in
    ("items", np.int64),  # the offset in `ints` of the indices of the free children; of a graph: of its arcs
    ("reals", np.int64),  # the offset in `reals` of the sampler's numbers
    # of the spectral method
    ("fixed_size", np.int64),  # how many of the free children are drawn by it; −1 for any number
    ("rank", np.int64),  # the number of eigenvectors
    ("drawn", np.int64),  # the number of free children, the first ones, among which it draws
]))  # fmt: skip


class Sets(NamedTuple):
    """The tables of all determinants of a program.

    Attributes
    ----------
    plan : array of SAMPLER
        A record for every determinant.
    ints : int64 array
    reals : float64 array
    """

    plan: np.ndarray
    ints: np.ndarray
    reals: np.ndarray


@kernel
def pick_children(sets, d, state, picked):
    """Draw a set from determinant d: picked[i] = 1 for its children that are in."""
    det, ints = sets.plan[d], sets.ints
    count = det.free
    items, numbers = ints[det.items : det.items + count], sets.reals[det.reals :]
    for i in range(det.children):
        picked[i] = ints[det.inside + i]
    if det.kind == ELIMINATION:
        pick_by_elimination(numbers[: count * count].reshape((count, count)), items, 0, state, picked)
    elif det.kind == VECTORS:
        drawn = det.drawn
        used = pick_spectral(numbers, det.fixed_size, det.rank, items[:drawn], state, picked)
        if drawn < count:
            kernel_matrix = numbers[used : used + count * count].reshape((count, count))
            pick_by_elimination(kernel_matrix, items, drawn, state, picked)
    elif det.kind == WALKS:
        random_walks(ints[det.items :], count, numbers, state, picked, _ENDLESS)
    else:
        raise ValueError("there is no sampler of this kind")

"""The tables from which kernels draw random sets of children, laid out for all determinants of a program.

`samplers` and `vectors` prepare the tables of one determinant; `evaluate/top_down` lays them out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgcc.determinants.forms import FlatArray
from pgcc.determinants.kernels.picking import SAMPLER, WALKS, Sets

# The largest total variation distance between the distribution that is sampled and the exact one.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Tables:
    """The tables of one determinant: see `SAMPLER` of `kernels/picking`."""

    kind: int
    inside: np.ndarray  # whether each child is surely in
    free: int
    ints: np.ndarray
    reals: np.ndarray
    size: int = -1
    rank: int = 0
    drawn: int = 0
    steps: int = 0  # the approximate number of steps of random walks per set

    def among(self, children: np.ndarray, inside: np.ndarray) -> Tables:
        """The tables in terms of all children, if these tables are about the given ones. inside : of all children."""
        ints = self.ints.copy()
        edges = slice(self.free + 1 + int(ints[self.free]), None) if self.kind == WALKS else slice(None)
        ints[edges] = np.where(ints[edges] >= 0, children[ints[edges]], -1)
        return replace(self, inside=inside, ints=ints)


def lay_out(tables: list[Tables | None]) -> Sets:
    """The tables for the kernel `pick_children`; the tables of an unreachable determinant are None."""
    plan, ints, reals = np.zeros(len(tables), SAMPLER), FlatArray(np.int64), FlatArray(np.float64)
    for d, one in enumerate(tables):
        if one is not None:
            det: Any = plan[d]
            det.kind, det.children, det.free = one.kind, len(one.inside), one.free
            det.fixed_size, det.rank, det.drawn = one.size, one.rank, one.drawn
            det.inside, det.items, det.reals = ints.put(one.inside), ints.put(one.ints), reals.put(one.reals)
    return Sets(plan, ints.flat(), reals.flat())


class SetSampler(ABC):
    """A sampler for one determinant, given the odds of its children."""

    name: str

    @abstractmethod
    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        """The tables for the odds `phi` (0: surely out) of the children that are not `inside`; None if inaccurate."""

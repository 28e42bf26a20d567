"""A mixture of trees as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pgcc.builders import chow_liu, parents_first
from pgcc.errors import FormatError
from pgcc.frontend.combine import mixture
from pgcc.frontend.network import Network, Table
from pgcc.ir.blocks import Blocks
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains, domains_of
from pgcc.learn.common.checkpoint import Shapes, State, fits
from pgcc.learn.kernels import tree_passes as kernels
from pgcc.learn.tables.packed_rows import Rows
from pgcc.locks import cached_property


@dataclass(frozen=True)
class Trees:
    """A mixture of trees.

    Attributes
    ----------
    weights : array
        The weight of every component.
    parents : array, components × variables
        The parent of every variable; −1 for a root.
    probs : array, components × columns × states
        Pr(column = 1 | state of the parent); for binary variables, Pr(x = 1 | parent = 0), Pr(x = 1 | parent = 1).
    first : array, optional
        The first column of every variable, where some have several, of which exactly one is 1.
    """

    weights: np.ndarray
    parents: np.ndarray
    probs: np.ndarray
    first: np.ndarray | None = None

    @classmethod
    def independent(cls, rows: Rows) -> Trees:
        """One tree in which variables are independent, each with its frequency in the rows where it is known."""
        ones, known, blocks = np.zeros(rows.n), np.zeros(rows.n), Blocks.of(rows.names)
        for block in rows.blocks():
            ones += block.counts @ (block.codes == 1)
            known += block.counts @ (block.codes >= 0)
        often = (ones + 1 / blocks.states) / (known + 1)
        parents = np.where(np.arange(len(blocks.first)) > 0, 0, -1)
        probs = np.tile(often[:, None], (1, 1, blocks.states.max()))
        return cls(np.ones(1), parents[None], probs, None if len(blocks.first) == rows.n else blocks.first)

    def repeated(self, components: int) -> Trees:
        """This many copies of the first tree, with equal weights."""
        weights, copies = np.full(components, 1 / components), [0] * components
        return Trees(weights, self.parents[copies], self.probs[copies], self.first)

    @staticmethod
    def shapes(components: int, blocks: Blocks) -> Shapes:
        """The arrays of a mixture of this size."""
        variables, columns, states = len(blocks.first), len(blocks.block), int(blocks.states.max())
        shapes: Shapes = {
            "weights": (float, components),
            "parents": (int, components, variables),
            "probs": (float, components, columns, states),
        }
        return shapes if variables == columns else {**shapes, "first": (int, variables)}

    def checked(self) -> Self:
        """The same trees, from a file; an error if they are none."""
        components, n = self.parents.shape if self.parents.ndim == 2 else (0, 0)
        if self.first is not None:
            sizes = np.diff([*self.first.tolist(), self.probs.shape[1]])
            if self.first.shape != (n,) or self.first[0] or not ((sizes > 0) & (sizes != 2)).all():
                raise FormatError("these are no trees: variables have no such columns")
        is_mixture = n > 0 and fits(self.arrays(), self.shapes(components, self.blocks))
        is_mixture &= bool((self.weights > 0.0).all())
        if not (is_mixture and (self.parents >= -1).all() and (self.parents < n).all()):
            raise FormatError("these are no trees: parents are numbers of variables, or −1 for a root")
        if any(len(parents_first(parents)) < n for parents in self.parents.tolist()):
            raise FormatError("these are no trees: a variable is its own ancestor")
        if not ((self.probs >= 0.0) & (self.probs <= 1.0)).all():
            raise FormatError("these are no trees: a probability is not between 0 and 1")
        return self

    def arrays(self) -> State:
        """The attributes by name, for checkpoints and files."""
        arrays = {"weights": self.weights, "parents": self.parents, "probs": self.probs}
        return arrays if self.first is None else {**arrays, "first": self.first}

    @cached_property
    def blocks(self) -> Blocks:
        """The columns of every variable."""
        columns = np.arange(self.probs.shape[1])
        if self.first is None:
            return Blocks(columns, columns)
        return Blocks(self.first, np.searchsorted(self.first, columns, "right") - 1)

    @cached_property
    def forms(self) -> kernels.Forms:
        """The log-likelihood in log-linear form, for the kernels.

        log p(x | parent) of a binary variable with a binary parent is linear in x, in the parent, and in their product;
        otherwise there is a term for each column that is 1, for each of the parent's, and for each pair of the two.
        """
        blocks, probs = self.blocks, np.ascontiguousarray(np.moveaxis(self.probs, 0, -1))
        parents = self.parents[:, blocks.block].T
        above = np.where(parents < 0, -1, blocks.first[parents])
        several, width = int(blocks.size.max()), np.where(above < 0, 0, blocks.size[above])[:, None]
        is_single = (blocks.size == 1)[:, None, None]
        logs, outs = np.log(probs), np.log1p(-probs) * is_single
        is_base = width < 2  # then the state 0 of the parent is the base case; otherwise all its states have columns
        low, no_low = (np.where(is_base, of[:, :1], 0.0) for of in (logs, outs))
        given, not_given = (np.where(is_base, of[:, 1:2], of[:, :several]) for of in (logs, outs))
        has = np.arange(several)[:, None] < width
        linear, pairwise = (low - no_low)[:, 0], np.where(has, given - not_given - (low - no_low), 0.0)
        i, s, c = np.nonzero(has)
        np.add.at(linear, (above[i, c] + s, c), (not_given - no_low)[i, s, c])
        odds = linear[:, None] + np.concatenate([np.zeros_like(low), pairwise], axis=1)
        normal = np.where(is_single, np.logaddexp(0.0, odds), np.logaddexp.reduceat(odds, blocks.first)[blocks.block])
        constant = np.log(self.weights) + no_low[:, 0].sum(axis=0)
        home, linear = blocks.first[blocks.block], np.vstack([linear, constant])
        return kernels.Forms(home, blocks.size, above, linear, pairwise, normal, np.exp(odds - normal))

    def circuit(self, names: Sequence[str]) -> Circuit:
        """The mixture as a circuit."""
        domains = domains_of(names)
        if domains is None:
            trees = [chow_liu(p.tolist(), q.tolist(), names) for p, q in zip(self.parents, self.probs, strict=True)]
        else:
            trees = [_network(p.tolist(), q, domains).circuit() for p, q in zip(self.parents, self.probs, strict=True)]
        return mixture(self.weights.tolist(), trees) if len(trees) > 1 else trees[0]


def _network(parents: Sequence[int], probs: np.ndarray, domains: Domains) -> Network:
    """One tree over variables with states."""
    listed = list(domains.items())
    shown = [v for v, (_, domain) in enumerate(listed) if any(domain.columns)]  # those with more than one state
    tables = {name: Table((v,), np.ones(1), True) for v, (name, _) in enumerate(listed)}
    for v, parent in zip(shown, parents, strict=True):
        name, domain = listed[v]
        table = np.stack([probs[domains.at[c]] if c else np.zeros(probs.shape[1]) for c in domain.columns], axis=1)
        table[:, [c is None for c in domain.columns]] = 1 - table.sum(axis=1, keepdims=True)
        table /= table.sum(axis=1, keepdims=True)
        if parent < 0:
            tables[name] = Table((v,), table[0], True)
        else:
            above = listed[shown[parent]][1].columns
            states = [int(c is not None) for c in above] if None in above else range(len(above))
            tables[name] = Table((shown[parent], v), table[states], True)
    return Network.bayesian(domains, tables)

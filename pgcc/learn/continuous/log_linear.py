"""Products and trees as exponential families: log p(row) = features of the row · table, so that the logarithms of all
components of a mixture, and their gradients, are matrix products.

A *choice* is a variable, given a state of its parent. Its *entries* are the states of the variable: a column that is 1,
or 0 if it is the variable's only column. A table has the log-probability of every entry, for every component.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from pgcc.ir.blocks import Blocks
from pgcc.ir.circuit import Circuit
from pgcc.learn.common.mixing import mixture_of_trees


class LogLinear:
    """Distributions in which variables are independent, or form a tree.

    Parameters
    ----------
    blocks : Blocks
        The columns of every variable.
    parents : sequence of int
        The parent of every variable, or −1: if all are roots, variables are independent.

    Attributes
    ----------
    logits : int
        The number of parameters of a component: a logit for every entry, but 0 where a column is 0.

    Examples
    --------
    >>> form = LogLinear(Blocks.of(["a", "b"]), [-1, 0])
    >>> table = form.table(np.log([[3.0], [1.0], [0.25]]))  # odds of a, of b without a, of b with a
    >>> np.exp(form.features(np.array([[1, 1], [1, 0], [0, -1]], np.int8)) @ table).T.round(3).tolist()
    [[0.15, 0.6, 0.25]]
    """

    def __init__(self, blocks: Blocks, parents: Sequence[int] | np.ndarray):
        self.blocks, self.parents = blocks, np.asarray(parents)
        columns = [list(range(a, b)) for a, b in zip(blocks.first, [*blocks.first[1:], len(blocks.block)], strict=True)]
        # the states of every variable: a column, and whether it is 1 or 0
        states = [[(c[0], 0), (c[0], 1)] if len(c) == 1 else [(one, 1) for one in c] for c in columns]
        above = [states[parent] if parent >= 0 else [(-1, 1)] for parent in self.parents.tolist()]
        choices = [(v, s, *given) for v, listed in enumerate(above) for s, given in enumerate(listed)]
        entries = [(choice, t, *state) for choice, (v, *_) in enumerate(choices) for t, state in enumerate(states[v])]
        self.variable, number, above_column, above_is = np.array(choices).T
        self.choice, state, self.column, self.is_one = np.array(entries).T
        self.above, self.above_is = above_column[self.choice], above_is[self.choice]
        # the states of a variable and of its parent, as `MissingTrees` counts them
        before = np.cumsum([0, *map(len, states)])
        self.states = before[self.variable[self.choice]] + state, number[self.choice]
        # choices of the same number of entries: choices × entries
        first, size = np.unique(self.choice, return_index=True, return_counts=True)[1:]
        self._alike = [first[size == k, None] + np.arange(k) for k in np.unique(size)]
        self._free = np.flatnonzero(self.is_one)
        self.logits = len(self._free)
        self._fold = self._folding()

    def table(self, logits: np.ndarray) -> np.ndarray:
        """The table (entries × components) for logits (free entries × components)."""
        table = np.zeros((len(self.choice), logits.shape[1]), logits.dtype)
        table[self._free] = logits
        for entries in self._alike:
            some = table[entries]
            some -= some.max(axis=1, keepdims=True)
            table[entries] = some - np.log(np.exp(some).sum(axis=1, keepdims=True))
        return table

    def gradient(self, table: np.ndarray, adjoint: np.ndarray) -> np.ndarray:
        """The gradient by the logits, from that by the table."""
        found = np.empty_like(adjoint)
        for entries in self._alike:
            some = adjoint[entries]
            found[entries] = some - np.exp(table[entries]) * some.sum(axis=1, keepdims=True)
        return found[self._free]

    def circuit(self, weights: np.ndarray, table: np.ndarray, names: Sequence[str]) -> Circuit:
        """The mixture of the components of a table, with these weights."""
        shape = table.shape[1], len(self.blocks.block), self.blocks.states.max()
        outs, probs = np.zeros(shape), np.zeros(shape)
        for value, found in ((0, outs), (1, probs)):
            of = np.flatnonzero(self.is_one == value)
            found[:, self.column[of], self.states[1][of]] = np.exp(table[of]).T
        return mixture_of_trees(weights, self.parents.tolist(), probs, names, outs)

    # -- features ---------------------------------------------------------------------------------------------------

    def features(self, codes: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """What multiplies the table: 1 for the entries of a row, where the variable and its parent are known."""
        taken = codes[:, self.column] == self.is_one
        taken &= (codes[:, self.above] == self.above_is) | (self.above < 0)
        return taken.astype(dtype)

    def folded(self, codes: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """Half as many features of complete rows: 1, the columns x, and products x·u with a column of the parent."""
        columns: np.ndarray = codes.astype(dtype)
        x, u = self._pairs
        return np.concatenate([np.ones((len(codes), 1), dtype), columns, columns[:, x] * columns[:, u]], axis=1)

    def fold(self, table: np.ndarray) -> np.ndarray:
        """What multiplies the folded features."""
        return (self._fold @ table).astype(table.dtype)

    def unfold(self, adjoint: np.ndarray) -> np.ndarray:
        """The gradient by the table, from that by the folded one."""
        return (self._fold.T @ adjoint).astype(adjoint.dtype)

    def _folding(self) -> csr_array:
        """The matrix with which features = folded features · matrix: an entry is (a + b·x)(c + d·u) of 0 and 1."""
        has_parent = np.flatnonzero(self.above >= 0)
        pairs = np.stack([self.column, self.above])[:, has_parent]
        self._pairs, number = np.unique(pairs, axis=1, return_inverse=True)
        pair = np.zeros(len(self.choice), np.int64)
        pair[has_parent] = 1 + len(self.blocks.block) + number.reshape(-1)
        a, b = 1 - self.is_one, 2 * self.is_one - 1
        c, d = np.where(self.above < 0, [[1], [0]], [1 - self.above_is, 2 * self.above_is - 1])
        rows = np.concatenate([0 * pair, 1 + self.column, 1 + self.above, pair])
        columns = np.tile(np.arange(len(pair)), 4)
        shape = 1 + len(self.blocks.block) + self._pairs.shape[1], len(pair)
        folding = csr_array((np.concatenate([a * c, b * c, a * d, b * d]).astype(float), (rows, columns)), shape=shape)
        folding.eliminate_zeros()
        return folding

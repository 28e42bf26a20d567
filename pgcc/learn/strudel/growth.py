"""How Strudel grows a circuit, and the parameters of one or several circuits of the same structure, by EM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from pgcc.errors import FormatError
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import Shapes, State
from pgcc.learn.imputer import Imputer
from pgcc.learn.strudel.decisions import MOST_ELEMENTS, Decisions
from pgcc.learn.tables.packed_rows import FEW, Rows
from pgcc.learn.tables.read_rows import read_rows
from pgcc.learn.trees.pair_counts import PairCounts, maximum_spanning_tree
from pgcc.learn.trees.tree_estimators import ChowLiu

# Matrix products in one thread: their results do not depend on the number of threads, and small ones are faster.
_in_one_thread = threadpool_limits.wrap(limits=1)


@dataclass(frozen=True)
class CompleteRows:
    """Rows in memory, without missing values: what the runs of a fit share.

    Attributes
    ----------
    codes : array, rows × columns
        Training rows, and after them validation rows.
    counts : array
        How often each of them occurs.
    training : int
        The number of the training rows.
    blocks : Blocks
        The columns that show one variable.
    """

    codes: np.ndarray
    counts: np.ndarray
    training: int
    blocks: Blocks

    @classmethod
    def of(cls, rows: Rows, held_out: Rows, seed: int) -> Self:
        """Training and validation rows: all that are different, or as many, drawn at random, as have 2²⁴ entries.

        Missing values are drawn from a Chow–Liu tree, given the other values of their row.
        """
        parts: Sequence[Rows] = (rows, held_out)
        if any((block.codes < 0).any() for part in parts for block in part.blocks()):
            imputer = Imputer(ChowLiu(), strategy="sample", random_state=seed).fit(rows)
            parts = [read_rows(imputer.transform(part), part.names) for part in parts]
        codes, counts = zip(*(_in_memory(part, seed) for part in parts), strict=True)
        return cls(np.concatenate(codes), np.concatenate(counts), len(codes[0]), Blocks.of(rows.names))

    @property
    def states(self) -> np.ndarray:
        """The number of states of every variable."""
        return self.blocks.states[self.blocks.first]

    def values(self) -> np.ndarray:
        """The state of every variable: rows × variables."""
        column = np.arange(len(self.blocks.block))
        state = np.where(self.blocks.size > 1, column - self.blocks.first[self.blocks.block], 1)
        return np.add.reduceat(self.codes * state, self.blocks.first, axis=1)

    def information(self, rows: np.ndarray | slice, variables: Sequence[int]) -> np.ndarray:
        """The mutual information of all pairs of some variables in some rows, smoothed."""
        columns = np.isin(self.blocks.block, variables)
        first, block = np.unique(self.blocks.block[columns], return_index=True, return_inverse=True)[1:]
        codes, counts = self.codes[rows][:, columns].astype(float), self.counts[rows]
        weighted, blocks = counts[:, None] * codes, Blocks(first, block)
        pairs = PairCounts(codes.T @ weighted, weighted.sum(axis=0), float(counts.sum()), blocks)
        return (pairs + PairCounts.even(blocks, 1.0)).information()

    def tree(self) -> list[int]:
        """The parents of the variables in the Chow–Liu tree of the training rows, which hangs from its center."""
        information = self.information(slice(self.training), range(len(self.states)))
        return _from_center(maximum_spanning_tree(information).tolist())


def _in_memory(rows: Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    most = max(1, FEW // rows.n)
    if len(rows.packed) > most:
        drawn = np.sort(np.random.default_rng(seed).choice(len(rows), most, replace=False))
        return rows.codes(drawn), np.ones(most)
    return np.concatenate([block.codes for block in rows.blocks()]), np.asarray(rows.counts, float)


def _from_center(parents: list[int]) -> list[int]:
    """The same tree with its center as the root: leaves are removed until one or two vertices are left.

    >>> _from_center([-1, 0, 1, 2, 3])
    [1, 2, -1, 2, 3]
    """
    near: list[set[int]] = [set() for _ in parents]
    for v, parent in enumerate(parents):
        if parent >= 0:
            near[v].add(parent)
            near[parent].add(v)
    left, leaves = [set(one) for one in near], [v for v, one in enumerate(near) if len(one) < 2]
    alive = len(parents)
    while alive > 2:
        alive, outer, leaves = alive - len(leaves), leaves, []
        for v in outer:
            for u in left[v]:
                left[u].discard(v)
                if len(left[u]) == 1:
                    leaves.append(u)
    center = min(leaves)
    hung, stack = [-1] * len(parents), [center]
    for v in stack:
        stack += (below := near[v] - {hung[v]})
        for u in below:
            hung[u] = v
    return hung


class Growth:
    """Grows one structure, and learns the parameters of several circuits that share it.

    An epoch splits some elements: always that with the largest flow (the number of rows that take it), on the variable
    that has most mutual information with the others in these rows. Then comes a step of EM. With one component, that is
    counting.
    """

    @_in_one_thread
    def __init__(
        self, components: int, smoothing: float, splits: int, seed: int, state: State | None, rows: CompleteRows
    ):
        self._rows, self._smoothing, self._splits = rows, smoothing, splits
        self._values, self._is_new = rows.values(), state is None
        self._decisions = Decisions(rows.tree(), rows.states.tolist())
        start = self._decisions.start
        self._taken = np.empty(self._values.shape, np.int32)  # the element that a row takes of each variable
        for v, parent in enumerate(self._decisions.parents):
            above = self._values[:, parent] if parent >= 0 else 0
            self._taken[:, v] = np.array(start[v])[above] + self._values[:, v]
        self._flow = np.bincount(
            self._taken[: rows.training].ravel(),
            np.repeat(rows.counts[: rows.training], self._taken.shape[1]),
            len(self._decisions.node),
        )
        self._closed = np.zeros(len(self._flow), bool)  # nothing more to split below
        if state is None:
            self._posteriors = self._clusters(components, seed)
            return
        if state["parents"].tolist() != self._decisions.parents:
            raise FormatError("the checkpoint has another tree than the data: delete it to start over")
        for element, variable in state["splits"].tolist():
            self._split(element, variable)
        self._theta, self._weights = state["theta"], state["weights"]
        if len(self._theta) != len(self._decisions.node):
            raise FormatError("the checkpoint has parameters for another circuit: delete it to start over")
        self._expect()

    def _clusters(self, components: int, seed: int) -> np.ndarray:
        """The initial posteriors: every row is in the component of its cluster."""
        rows = slice(self._rows.training)
        components = min(components, self._rows.training)
        if components == 1:
            return np.ones((self._rows.training, 1))
        from sklearn.cluster import KMeans  # takes half a second

        means = KMeans(components, n_init=1, random_state=seed % (1 << 32))
        clusters = means.fit_predict(self._rows.codes[rows].astype(float), sample_weight=self._rows.counts[rows])
        return (clusters[:, None] == np.arange(components)).astype(float)

    # -- splits -----------------------------------------------------------------------------------------------------

    def _choose(self) -> tuple[int, int] | None:
        """The element with the largest flow, and the variable to split it on."""
        decisions, training = self._decisions, self._rows.training
        while len(decisions.node) <= MOST_ELEMENTS:
            open_flow = np.where(self._closed, 0.0, self._flow)
            element = int(np.argmax(open_flow))
            if open_flow[element] == 0.0:
                break
            rows = np.flatnonzero(self._taken[:training, decisions.variable[element]] == element)
            below = decisions.below[decisions.variable[element]]
            values = self._values[rows][:, below]
            varied = [below[i] for i in np.flatnonzero((values != values[0]).any(axis=0))]
            if varied:
                information = self._rows.information(rows, varied)
                np.fill_diagonal(information, 0.0)
                return element, varied[np.argmax(information.sum(axis=0))]
            for variable in below:
                if not self._is_certain(variable, rows):
                    return element, variable
            self._closed[element] = True
        return None

    def _is_certain(self, variable: int, rows: np.ndarray) -> bool:
        """Whether a variable that has one value in some rows has no other in all rows that reach the same nodes."""
        decisions, value = self._decisions, self._values[rows[0], variable]
        nodes = {decisions.node[e] for e in np.unique(self._taken[rows, variable]).tolist()}
        reached = (e for n in nodes for e in decisions.elements[n] if self._flow[e] > 0.0)
        return all(decisions.state[e] == value for e in reached)

    def _split(self, element: int, variable: int) -> None:
        """Split an element; its rows take other elements on the way from it down to the variable."""
        rows = np.flatnonzero(self._taken[:, self._decisions.variable[element]] == element)
        values, path = self._values[rows, variable], self._decisions.path(element, variable)
        found = self._decisions.split(element, variable)
        added = len(self._decisions.node) - len(self._flow)
        self._flow = np.concatenate([self._flow, np.zeros(added)])
        self._closed = np.concatenate([self._closed, np.zeros(added, bool)])
        for state, copies in enumerate(found):
            copy = np.arange(len(self._decisions.node), dtype=np.int32)
            copy[list(copies)] = list(copies.values())
            some = rows[values == state]
            known = slice(np.searchsorted(some, self._rows.training))
            for v in path:
                before = self._taken[some, v]
                self._taken[some, v] = copy[before]
                np.subtract.at(self._flow, before[known], self._rows.counts[some[known]])
                np.add.at(self._flow, copy[before[known]], self._rows.counts[some[known]])

    # -- parameters -------------------------------------------------------------------------------------------------

    @_in_one_thread
    def advance(self) -> float | None:
        """Split some elements (none in the first epoch), and a step of EM; None if one circuit is as large as can be."""
        before = len(self._decisions.splits)
        while not self._is_new and len(self._decisions.splits) < before + self._splits and (best := self._choose()):
            self._split(*best)
        if not self._is_new and len(self._decisions.splits) == before and self._posteriors.shape[1] == 1:
            return None
        self._is_new = False
        self._maximize()
        self._expect()
        return self._log_likelihood

    def _maximize(self) -> None:
        """The probability of every element, given its node, from the rows that are expected to take it."""
        rows, node = self._rows.training, np.array(self._decisions.node)
        posteriors = self._posteriors * self._rows.counts[:rows, None]
        kept = np.flatnonzero(node >= 0)
        of = node[kept]
        counts = (_indicator(self._taken[:rows], len(node)).T @ posteriors)[kept]
        sums = csr_matrix((np.ones(len(of)), (of, np.arange(len(of)))))
        share = (1 / np.bincount(of)[of])[:, None]
        total = (sums @ counts)[of] + self._smoothing
        self._theta = np.zeros((len(node), posteriors.shape[1]))
        self._theta[kept] = np.divide(
            counts + self._smoothing * share, total, out=np.broadcast_to(share, counts.shape).copy(), where=total > 0.0
        )
        self._weights = posteriors.sum(axis=0) / posteriors.sum()

    def _expect(self) -> None:
        """The posterior of every component for every row; the mean log-likelihoods."""
        rows = self._rows.training
        with np.errstate(divide="ignore"):
            joint = _indicator(self._taken, len(self._theta)) @ np.log(self._theta) + np.log(self._weights)
        logs = logsumexp(joint, axis=1)
        self._posteriors = np.exp(joint[:rows] - logs[:rows, None])
        self._log_likelihood, self._score = (
            float(np.average(logs[part], weights=self._rows.counts[part])) for part in (slice(rows), slice(rows, None))
        )

    def validate(self) -> float:
        """The mean log-likelihood of the validation data."""
        return self._score

    def learned(self) -> State:
        """The tree, the splits, and the parameters."""
        if self._is_new:
            self._maximize()
        return {
            "parents": np.array(self._decisions.parents),
            "splits": np.array(self._decisions.splits, int).reshape(-1, 2),
            "theta": self._theta,
            "weights": self._weights,
        }

    state = learned  # the posteriors follow from the parameters

    @staticmethod
    def shapes(components: int, variables: int) -> Shapes:
        """The arrays of a state."""
        return {
            "parents": (int, variables),
            "splits": (int, None, 2),
            "theta": (float, None, components),
            "weights": (float, components),
        }


def _indicator(taken: np.ndarray, elements: int) -> csr_matrix:
    """Which elements each row takes, as a matrix of zeros and ones: rows × elements."""
    ends = np.arange(0, taken.size + 1, taken.shape[1])
    return csr_matrix((np.ones(taken.size), taken.ravel(), ends), shape=(len(taken), elements))

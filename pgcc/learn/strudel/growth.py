"""How Strudel grows a circuit, and the parameters of one or several circuits of the same structure, by EM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, shortest_path
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from pgcc.interrupts import end_if_unwanted
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import State
from pgcc.learn.imputer import Imputer
from pgcc.learn.strudel.decisions import MOST_ELEMENTS, Decisions
from pgcc.learn.tables.packed_rows import FEW, Rows, unpack
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
            filled = [read_rows(imputer.transform(part), part.names) for part in parts]
            parts = [replace(new, weights=part.weights) for new, part in zip(filled, parts, strict=True)]
        codes, counts = zip(*(_in_memory(part, seed) for part in parts), strict=True)
        return cls(np.concatenate(codes), np.concatenate(counts), len(codes[0]), Blocks.of(rows.names))

    def values(self) -> np.ndarray:
        """The state of every variable: rows × variables."""
        blocks = self.blocks
        state = np.where(blocks.size > 1, np.arange(len(blocks.block)) - blocks.first[blocks.block], 1)
        return np.add.reduceat(self.codes * state.astype(np.int16), blocks.first, axis=1)

    def information(self, rows: np.ndarray | slice, variables: Sequence[int]) -> np.ndarray:
        """The mutual information of all pairs of some variables in some rows, smoothed."""
        columns = np.isin(self.blocks.block, variables)
        first, block = np.unique(self.blocks.block[columns], return_index=True, return_inverse=True)[1:]
        codes, counts, blocks = self.codes[rows][:, columns].astype(float), self.counts[rows], Blocks(first, block)
        pairs = PairCounts((codes.T * counts) @ codes, counts @ codes, float(counts.sum()), blocks)
        return (pairs + PairCounts.even(blocks, 1.0)).information()

    def tree(self) -> list[int]:
        """The parents of the variables in the Chow–Liu tree of the training rows, which hangs from its center."""
        parents = maximum_spanning_tree(self.information(slice(self.training), range(len(self.blocks.first))))
        edges = np.ones(len(parents) - 1), (np.flatnonzero(parents >= 0), parents[parents >= 0])
        graph = csr_array(edges, (len(parents), len(parents)))
        center = int(np.argmin(shortest_path(graph, directed=False, unweighted=True).max(axis=1)))
        return np.maximum(breadth_first_order(graph, center, directed=False)[1], -1).tolist()


def _in_memory(rows: Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    distinct, most = len(rows.packed), max(1, FEW // rows.n)
    drawn = np.arange(distinct)
    if distinct > most:
        drawn = np.sort(np.random.default_rng(seed).choice(distinct, most, replace=False))
    return unpack(rows.packed[drawn], rows.n), rows.counts[drawn]


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
        self._rows, self._training, self._values = rows, slice(rows.training), rows.values()
        self._smoothing, self._splits, self._is_new = smoothing, splits, state is None
        self._decisions = Decisions(rows.tree(), rows.blocks.states[rows.blocks.first].tolist())
        self._taken = np.empty(self._values.shape, np.int32)  # the element that a row takes of each variable
        for v, parent in enumerate(self._decisions.parents):
            above = self._values[:, parent] if parent >= 0 else 0
            self._taken[:, v] = np.array(self._decisions.start[v])[above] + self._values[:, v]
        ones = np.ones((rows.training, 1))
        self._flow = self._counts(ones)[:, 0]
        self._closed = np.zeros(len(self._flow), bool)  # nothing is left to choose below
        if state is None:
            self._posteriors = ones if components == 1 else self._clusters(components, seed)
            return
        for element, variable in state["splits"].tolist():
            self._split(element, variable)
        self._theta, self._weights = state["theta"], state["weights"]
        self._decisions.check(self._theta, self._weights)
        self._expect()

    def _clusters(self, components: int, seed: int) -> np.ndarray:
        """The initial posteriors: every row is in the component of its cluster."""
        from sklearn.cluster import KMeans  # takes half a second

        codes, counts = self._rows.codes[self._training].astype(float), self._rows.counts[self._training]
        clusters = KMeans(components, n_init=1, random_state=seed % (1 << 32)).fit_predict(codes, sample_weight=counts)
        return (clusters[:, None] == np.arange(components)).astype(float)

    # -- splits -----------------------------------------------------------------------------------------------------

    def _choose(self) -> tuple[int, int] | None:
        """The element with the largest flow, and the variable to split it on."""
        while len(self._flow) <= MOST_ELEMENTS:
            flow = np.where(self._closed, 0.0, self._flow)
            element = int(np.argmax(flow))
            if flow[element] == 0.0:
                break
            of = self._decisions.literal[element][0]
            rows = np.flatnonzero(self._taken[self._training, of] == element)
            below = self._decisions.below[of] if len(rows) else []  # (a flow without rows is a rounding error)
            values = self._values[rows][:, below]
            if varied := [below[i] for i in np.flatnonzero((values != values[:1]).any(axis=0))]:
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
        nodes = {self._decisions.node[e] for e in np.unique(self._taken[rows, variable]).tolist()}
        reached = (e for n in nodes for e in self._decisions.elements[n] if self._flow[e] > 0.0)
        return len({self._decisions.literal[e] for e in reached}) == 1

    def _split(self, element: int, variable: int) -> None:
        """Split an element; its rows take other elements on the way from it down to the variable."""
        found = self._decisions.split(element, variable)
        path = self._decisions.path(element, variable)
        rows = np.flatnonzero(self._taken[:, path[0]] == element)
        added, values = np.zeros(len(self._decisions.node) - len(self._flow)), self._values[rows, variable]
        self._flow = np.append(self._flow, added)
        self._closed = np.append(self._closed, added > 0)
        for state, copies in enumerate(found):
            copy = np.arange(len(self._flow), dtype=np.int32)
            copy[list(copies)] = list(copies.values())
            some = rows[values == state]
            counts = np.where(some < self._rows.training, self._rows.counts[some], 0.0)
            for v in path:
                before, after = self._taken[some, v], copy[self._taken[some, v]]
                self._taken[some, v] = after
                np.subtract.at(self._flow, before, counts)
                np.add.at(self._flow, after, counts)

    # -- parameters -------------------------------------------------------------------------------------------------

    @_in_one_thread
    def advance(self) -> float | None:
        """Split some elements (none in the first epoch); a step of EM. None if nothing is left to do."""
        has_more = self._is_new or self._posteriors.shape[1] > 1
        for _ in range(0 if self._is_new else self._splits):
            end_if_unwanted()
            if (best := self._choose()) is not None:
                self._split(*best)
                has_more = True
        if not has_more:
            return None
        self._is_new = False
        self._maximize()
        self._expect()
        return self._mean(self._training)

    def _counts(self, posteriors: np.ndarray) -> np.ndarray:
        """How many training rows take each element in each component: elements × components."""
        weighted = posteriors * self._rows.counts[self._training, None]
        return _indicator(self._taken[self._training], len(self._decisions.node)).T @ weighted

    def _maximize(self) -> None:
        """The probability of every element, given its node, from the rows that are expected to take it."""
        sums, counts = self._decisions.sums(), self._counts(self._posteriors)
        share = sums.T @ (1 / np.maximum(sums.sum(axis=1), 1))[:, None]  # 1 / the number of elements of the node
        total = sums.T @ (sums @ counts + self._smoothing)
        self._theta = np.broadcast_to(share, counts.shape).copy()
        np.divide(counts + self._smoothing * share, total, out=self._theta, where=total > 0.0)
        self._weights = np.average(self._posteriors, axis=0, weights=self._rows.counts[self._training])

    def _expect(self) -> None:
        """The posterior of every component for every training row, and the log-likelihood of every row."""
        with np.errstate(divide="ignore"):
            joint = _indicator(self._taken, len(self._theta)) @ np.log(self._theta) + np.log(self._weights)
        self._logs = logsumexp(joint, axis=1)
        self._posteriors = np.exp(joint[self._training] - self._logs[self._training, None])

    def _mean(self, part: slice) -> float:
        return float(np.average(self._logs[part], weights=self._rows.counts[part]))

    def validate(self) -> float:
        """The mean log-likelihood of the validation data."""
        return self._mean(slice(self._rows.training, None))

    def learned(self) -> State:
        """The tree, the splits, and the parameters."""
        if self._is_new:
            self._maximize()
        parents, splits = np.array(self._decisions.parents), np.array(self._decisions.splits, int).reshape(-1, 2)
        return {"parents": parents, "splits": splits, "theta": self._theta, "weights": self._weights}

    state = learned  # the posteriors follow from the parameters


def _indicator(taken: np.ndarray, elements: int) -> csr_array:
    """Which elements each row takes, as a matrix of zeros and ones: rows × elements."""
    ends = np.arange(0, taken.size + 1, taken.shape[1])
    return csr_array((np.ones(taken.size), taken.ravel(), ends), (len(taken), elements))

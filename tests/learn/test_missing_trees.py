"""Missing values in mixtures of trees of one structure: against sums over all rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgcc.ir.blocks import Blocks
from pgcc.learn.trees.missing_trees import MissingTrees
from tests.families import some

COMPONENTS = 3


def blocks_of(sizes: list[int]) -> Blocks:
    """Variables with these numbers of states: two are one column, more have a column each."""
    columns = [1 if size == 2 else size for size in sizes]
    return Blocks(np.cumsum([0, *columns[:-1]]), np.repeat(np.arange(len(sizes)), columns))


def codes_of(states: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Rows of states (−1 if missing) as codes of columns."""
    columns = []
    for known, size in zip(states.T, sizes, strict=True):
        if size == 2:
            columns.append(known)
        else:
            columns += [np.where(known < 0, -1, known == s) for s in range(size)]
    return np.stack(columns, axis=1).astype(np.int8)


def random_trees(rng: np.random.Generator, sizes: list[int], roots: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Parents, and a table of conditional probabilities."""
    n = len(sizes)
    parents = np.array([-1, *(-1 if rng.random() < roots else rng.integers(i) for i in range(1, n))], np.int64)
    shuffle = rng.permutation(n)
    parents[shuffle] = np.array([-1 if p < 0 else shuffle[p] for p in parents])
    table = np.zeros((sum(sizes), max(sizes), COMPONENTS))
    first = np.cumsum([0, *sizes])
    for v, u in enumerate(parents):
        shape = (1 if u < 0 else sizes[u], COMPONENTS)
        table[first[v] : first[v + 1], : shape[0]] = np.moveaxis(rng.dirichlet(np.full(sizes[v], 0.5), shape), -1, 0)
    return parents, table


def by_hand(parents, table, sizes, allowed):
    """log Σ over the allowed rows of states, and the expected counts of all factors, for every component."""
    first = np.cumsum([0, *sizes])
    full = np.array(list(itertools.product(*allowed)))
    at = [(full[:, v] + first[v], full[:, u] if u >= 0 else 0 * full[:, v]) for v, u in enumerate(parents)]
    p = np.prod([table[t, s] for t, s in at], axis=0)
    flows = np.zeros_like(table)
    for t, s in at:
        np.add.at(flows, (t, s), p / p.sum(axis=0))
    return np.log(p.sum(axis=0)), flows


def everything(parents, sizes, possible, table, responsibilities):
    """The same by the kernels and, where a variable and its parent are known, one by one."""
    logs, flows, first = np.zeros((len(possible), table.shape[2]), table.dtype), np.zeros_like(table), np.cumsum(sizes)
    for row, states in enumerate(possible):
        found = [np.flatnonzero(part) for part in np.split(states, first[:-1])]
        for v, u in enumerate(parents):
            if len(found[v]) == 1 and (u < 0 or len(found[u]) == 1):
                at = first[v] - sizes[v] + found[v][0], 0 if u < 0 else found[u][0]
                logs[row] += np.log(table[at])
                flows[at] += responsibilities[row]
    trees = MissingTrees(np.array(parents), blocks_of(sizes))
    trees.add_logs(possible, table, logs)
    trees.add_flows(possible, table, responsibilities, flows)
    return logs, flows


@given(st.integers(0, 10**6), st.lists(st.sampled_from([2, 2, 3, 4]), min_size=1, max_size=6))
@settings(max_examples=some(20), deadline=None)
def test_all_patterns_against_sums(seed, sizes):
    rng = np.random.default_rng(seed)
    parents, table = random_trees(rng, sizes)
    trees = MissingTrees(parents, blocks_of(sizes))
    assert trees.shape == table.shape[:2]
    patterns = np.array(list(itertools.product([False, True], repeat=len(sizes))))
    states = np.where(patterns, -1, rng.integers(sizes, size=patterns.shape))
    responsibilities = rng.random((len(states), COMPONENTS))
    found, flows = everything(parents, sizes, trees.possible(codes_of(states, sizes)), table, responsibilities)
    allowed = [[range(k) if x < 0 else [x] for x, k in zip(row, sizes, strict=True)] for row in states.tolist()]
    logs, counts = zip(*(by_hand(parents, table, sizes, one) for one in allowed), strict=True)
    np.testing.assert_allclose(found, np.array(logs), rtol=1e-12, atol=1e-12)
    expected = sum(r * c for r, c in zip(responsibilities, counts, strict=True))
    np.testing.assert_allclose(flows, expected, rtol=1e-12, atol=1e-12)


@given(st.integers(0, 10**6), st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=5))
@settings(max_examples=some(10), deadline=None)
def test_some_states_are_possible(seed, sizes):
    rng = np.random.default_rng(seed)
    parents, table = random_trees(rng, sizes)
    possible = (rng.random((1, sum(sizes))) < 0.6).astype(np.uint8)
    first = np.cumsum([0, *sizes[:-1]])
    possible[0, first + rng.integers(sizes)] = 1
    allowed = [np.flatnonzero(part) for part in np.split(possible[0], first[1:])]
    found, flows = everything(parents, sizes, possible, table, np.ones((1, COMPONENTS)))
    logs, expected = by_hand(parents, table, sizes, allowed)
    np.testing.assert_allclose(found[0], logs, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(flows, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("number", "rtol"), [(np.float32, 2e-6), (np.float64, 1e-12)])
@pytest.mark.parametrize("least", [1e-3, 1e-22])
def test_small_numbers_stay_in_range(number, rtol, least):
    """A missing variable with 300 observed children, and one with 300 children each of which has 3 observed ones."""
    rng = np.random.default_rng(0)
    parents = np.array([-1, *([0] * 300), *np.repeat(np.arange(1, 301), 3)])
    n, components = len(parents), 300  # more than the kernel takes at a time
    p = rng.uniform(least, 2 * least, (n, 2, components)).astype(number)
    table = np.stack([1 - p, p], axis=1).reshape(2 * n, 2, components)
    trees, exact = MissingTrees(parents, Blocks.of([f"x{i}" for i in range(n)])), p.astype(float)
    row = np.ones((2, n), np.int8)
    row[:, 0] = row[1, 1:301] = -1
    logs, flows = everything(parents, [2] * n, trees.possible(row), table, np.ones((2, components), number))
    root = np.log(np.stack([1 - exact[0, 0], exact[0, 0]]))
    below = np.log(exact[301:]).reshape(300, 3, 2, components).sum(axis=1)
    first = np.logaddexp.reduce(root + np.log(exact[1:301]).sum(axis=0), axis=0) + below[:, 1].sum(axis=0)
    of_children = np.logaddexp(np.log1p(-exact[1:301]) + below[:, :1], np.log(exact[1:301]) + below[:, 1:])
    second = np.logaddexp.reduce(root + of_children.sum(axis=0), axis=0)
    np.testing.assert_allclose(logs, [first, second], rtol=rtol)
    assert flows.sum() == pytest.approx(2 * n * components, rel=1e-5)


def test_impossible_rows():
    """A row that a component gives the probability 0 has −inf there, and nothing is counted for it."""
    trees = MissingTrees(np.array([-1, 0]), Blocks.of(["x", "y"]))
    table = np.zeros((4, 2, 2))
    table[:2, 0, :], table[2] = 0.5, [[1.0, 0.5], [1.0, 0.5]]
    table[3] = 1 - table[2]
    logs, flows = np.zeros((1, 2)), np.zeros_like(table)
    possible = trees.possible(np.array([[-1, 1]], np.int8))
    trees.add_logs(possible, table, logs)
    trees.add_flows(possible, table, np.array([[0.0, 1.0]]), flows)
    np.testing.assert_allclose(logs, [[-np.inf, np.log(0.5)]])
    np.testing.assert_allclose(flows.sum(axis=(0, 1)), [0, 2])

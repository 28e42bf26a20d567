"""An epoch of hidden trees (values and flows of all rows) over pgcc's layers, and in PyTorch if it is installed.

    python -m benchmarks.regions [STATES] [float32|float64] [ROWS] [VARIABLES]

One thread, seconds of the processor, best of three, for batches of several sizes. In PyTorch, the nodes of one depth of
the tree are one batched matrix product, in log space, or nodes come one by one, in linear space: the faster counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and PyTorch are imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from pgcc.builders import parents_first
from pgcc.ir.blocks import Blocks
from pgcc.learn.regions.hidden_tree import rooted_at_centroid, tree_layers


def some_data(rows: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A random tree, and data from it: variables differ from their parents in 5, 15 or 30 % of the rows."""
    rng = np.random.default_rng(0)
    parents = np.array([-1] + [int(rng.integers(max(0, i - 25), i)) for i in range(1, n)])
    X = np.zeros((rows, n), np.int8)
    X[:, 0] = rng.random(rows) < 0.5
    for i in range(1, n):
        X[:, i] = X[:, parents[i]] ^ (rng.random(rows) < rng.choice([0.05, 0.15, 0.3]))
    return rooted_at_centroid(parents), X


def layers_epoch(parents: np.ndarray, X: np.ndarray, states: int, kind: str) -> Callable[[int], None]:
    layers = tree_layers(Blocks.of([f"x{i}" for i in range(len(parents))]), parents, states)
    numbers = layers.normalized(np.random.default_rng(0).random(layers.size)).astype(kind)

    def epoch(batch: int) -> None:
        for first in range(0, len(X), batch):
            rows = layers.encode(X[first : first + batch])
            values, logs = layers.forward(numbers, rows)
            layers.flows(numbers, rows, values, np.ones(len(logs)))

    return epoch


def torch_epochs(parents: np.ndarray, X: np.ndarray, states: int, kind: str) -> list[Callable[[int], None]]:
    import torch

    torch.set_num_threads(1)
    n, dtype = len(parents), getattr(torch, kind)
    order, depth = parents_first(parents.tolist()), np.zeros(len(parents), int)
    for v in order[1:]:
        depth[v] = depth[parents[v]] + 1
    levels = [np.flatnonzero(depth == d) for d in range(depth.max() + 1)]
    above = [
        torch.tensor([int(np.searchsorted(levels[d - 1], parents[v])) for v in levels[d]])
        for d in range(1, len(levels))
    ]
    nodes = [torch.tensor(level) for level in levels]
    tables = torch.softmax(torch.randn(n, states, states, dtype=dtype), -1).requires_grad_()
    leaves = torch.sigmoid(torch.randn(n, states, dtype=dtype)).requires_grad_()

    def by_level(x):  # type: ignore[no-untyped-def]
        on, off, columns, message = torch.log(leaves), torch.log1p(-leaves), x.T, None
        log = torch.zeros(len(x), dtype=dtype)
        for d in range(len(levels) - 1, -1, -1):
            seen = columns[nodes[d]][:, :, None]
            value = seen * on[nodes[d]][:, None] + (1 - seen) * off[nodes[d]][:, None]
            value = value if message is None else value.index_add(0, above[d], message)
            largest = value.detach().amax(2, keepdim=True)
            log, value = log + largest[:, :, 0].sum(0), torch.exp(value - largest)
            if not d:
                return log + torch.log(value[0] @ tables[order[0]][0])
            message = torch.log(torch.bmm(value, tables[nodes[d]].transpose(1, 2)))
        raise AssertionError

    def by_node(x):  # type: ignore[no-untyped-def]
        log, values = torch.zeros(len(x), dtype=dtype), [None] * n
        for v in reversed(order):
            seen = x[:, v, None]
            value = seen * leaves[v] + (1 - seen) * (1 - leaves[v])
            value = value if values[v] is None else value * values[v]
            if parents[v] < 0:
                return log + torch.log(value @ tables[v][0])
            value = value @ tables[v].T
            total = value.sum(1, keepdim=True).detach()
            log, value, above_it = log + total[:, 0].log(), value / total, parents[v]
            values[above_it] = value if values[above_it] is None else values[above_it] * value
        raise AssertionError

    rows = torch.tensor(X).to(dtype)

    def epoch_of(logs):  # type: ignore[no-untyped-def]
        def epoch(batch: int) -> None:
            for part in rows.split(batch):
                logs(part).sum().backward()
                tables.grad = leaves.grad = None

        return epoch

    np.testing.assert_allclose(by_level(rows[:9]).detach(), by_node(rows[:9]).detach(), rtol=1e-3)
    return [epoch_of(by_level), epoch_of(by_node)]


def seconds(epoch: Callable[[int], None]) -> float:
    found = []
    for batch in (256, 512, 1024, 2048):
        for _ in range(3):
            began = time.process_time()
            epoch(batch)
            found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    given = dict(enumerate(sys.argv[1:]))
    states, kind = int(given.get(0, 32)), given.get(1, "float32")
    parents, X = some_data(int(given.get(2, 12758)), int(given.get(3, 111)))
    ours = seconds(layers_epoch(parents, X, states, kind))
    print(f"{states} states, {kind}: layers {ours:.3f} s", end="")
    try:
        theirs = min(map(seconds, torch_epochs(parents, X, states, kind)))
        print(f", PyTorch {theirs:.3f} s: {theirs / ours:.1f} times as long")
    except ImportError:
        print(" (PyTorch is not installed)")


if __name__ == "__main__":
    main()

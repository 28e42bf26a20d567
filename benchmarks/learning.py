"""Seconds of a training epoch of SimplePGC: pgcc, PyTorch as the paper describes it, and the best PyTorch we wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.common import DATA, Table
from pgcc.backend.learning import Adam, Likelihood
from pgcc.learn.encoding import Encoded, encode
from pgcc.learn.partition import partition_variables, positive_dependence
from pgcc.learn.starting import start_by_em

# Sets, with the most variables in a group and the number of components that the paper took.
SETS = {"amzn_apparel": (5, 7), "amzn_carseats": (1, 10), "nltcs": (1, 20)}
BATCH, RATE, DECAY = 128, 1e-3, 1e-3
# Batches that are timed of PyTorch as in the paper: an epoch would take too long.
FEW = 10


def run() -> Iterator[Table]:
    table = Table(
        "learning: seconds of an epoch of SimplePGC, batches of 128 rows, one thread",
        ["set", "K", "C", "groups", "pgcc", "torch, paper", "ratio", "torch, best", "ratio", "off by"],
        notes=[
            "torch, paper: m × m determinants of every row, autograd. torch, best: distinct patterns, padded minors,",
            "all components at once. off by: log-likelihood of the first batch, pgcc against both. Required: 50×, 5×.",
        ],
    )
    try:
        import torch
    except ImportError:
        torch = None
        table.notes.append("PyTorch is not installed: only pgcc was measured")
    for name, (most, components) in SETS.items():
        path = DATA / "sets" / name / f"{name}.train.data"
        if not path.exists():
            table.notes.append(f"skipped {name}: no {path} (set PGCC_DATA)")
            continue
        codes = np.loadtxt(path, delimiter=",", dtype=np.int8)
        groups = partition_variables(positive_dependence(codes), most)
        data = encode(codes, groups)
        start = start_by_em(data, components, np.random.default_rng(0))
        table.add(name, most, components, len(groups), *_compare(torch, codes, groups, data, start))
    yield table


def _compare(torch: Any, codes: np.ndarray, groups: list, data: Encoded, start: np.ndarray) -> list[float | None]:
    order = np.random.default_rng(1).permutation(len(codes))
    batches = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    ours = min(_pgcc_epoch(data, start, batches) for _ in range(5))
    if torch is None:
        return [ours, None, None, None, None, None]
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    value = Likelihood(data.table, len(start)).gradient(start, data.where[batches[0]])[0]
    seconds, off = [], 0.0
    for kind, some in ((_Paper, batches[:FEW]), (_Best, batches)):
        model = kind(torch, codes, groups, data, start)
        off = max(off, abs(float(model.loss(batches[0]).detach()) + value) / abs(value))
        seconds.append(min(_torch_epoch(torch, model, some) for _ in range(2)) * len(batches) / len(some))
    return [ours, seconds[0], seconds[0] / ours, seconds[1], seconds[1] / ours, off]


def _pgcc_epoch(data: Encoded, start: np.ndarray, batches: list[np.ndarray]) -> float:
    likelihood, state = Likelihood(data.table, len(start)), Adam(start.copy())
    prior = np.zeros(int(data.table.leaf[-1]))
    likelihood.ascend(state, data.where[batches[0]], RATE, DECAY, 0.0, prior)  # compiled, and in the cache
    began = time.process_time()
    for batch in batches:
        likelihood.ascend(state, data.where[batch], RATE, DECAY, 0.0, prior)
    return time.process_time() - began


def _torch_epoch(torch: Any, model: Any, batches: list[np.ndarray]) -> float:
    optimizer = torch.optim.Adam(model.parameters, lr=RATE, weight_decay=DECAY)
    began = time.process_time()
    for batch in batches:
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
    return time.process_time() - began


class _Torch:
    """Parameters as tensors: B (C × m × m), logits of codes (C × codes), logits of components."""

    def __init__(self, torch: Any, codes: np.ndarray, groups: list, data: Encoded, start: np.ndarray):
        self.torch, m = torch, len(groups)
        self.sizes = [(1 << len(group)) - 1 for group in groups]
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        bits = [codes[:, group].astype(np.int64) @ (1 << np.arange(len(group))) for group in groups]
        self.sets = torch.tensor(np.stack(bits, axis=1))
        pieces = start[:, : m * m].reshape(-1, m, m), start[:, m * m : -1], start[:, -1]
        self.parameters = [torch.tensor(piece.copy(), requires_grad=True) for piece in pieces]

    def log_leaves(self, logits: Any) -> Any:
        """log softmax of every group, with a column of zeros before it: nothing in."""
        torch, parts = self.torch, []
        for piece in torch.split(logits, self.sizes, dim=-1):
            table = torch.log_softmax(piece, dim=-1)
            parts += [torch.zeros_like(table[..., :1]), table]
        return torch.cat(parts, dim=-1)

    def columns(self, batch: np.ndarray) -> Any:
        """Where the sets of a batch stand in the result of `log_leaves`."""
        return self.sets[batch] + self.torch.tensor(self.starts[:-1] + np.arange(len(self.sizes)))


class _Paper(_Torch):
    """As the paper and its appendix describe it: for every component a batch of m × m determinants."""

    def loss(self, batch: np.ndarray) -> Any:
        torch = self.torch
        factors, logits, weights = self.parameters
        inside = (self.sets[batch] > 0).to(torch.float64)
        keep, identity = inside.unsqueeze(1) * inside.unsqueeze(2), torch.eye(inside.shape[1])
        out, columns, scores = torch.diag_embed(1 - inside), self.columns(batch), []
        for factor, logit in zip(factors, logits, strict=True):
            L = factor @ factor.T
            leaves = self.log_leaves(logit)[columns].sum(dim=1)
            scores.append(torch.logdet(L * keep + out) - torch.logdet(identity + L) + leaves)
        mixed = torch.log_softmax(weights, 0).unsqueeze(1) + torch.stack(scores)
        return -torch.logsumexp(mixed, 0).sum()


class _Best(_Torch):
    """Distinct patterns of a batch once each, their minors padded to the largest, all components at a time."""

    def loss(self, batch: np.ndarray) -> Any:
        torch = self.torch
        factors, logits, weights = self.parameters
        C, m = factors.shape[:2]
        patterns, of_row = torch.unique(self.sets[batch] > 0, dim=0, return_inverse=True)
        size = max(1, int(patterns.sum(dim=1).max()))
        order = torch.argsort(patterns.to(torch.int8), dim=1, descending=True, stable=True)[:, :size]
        inside = torch.gather(patterns, 1, order)
        L = factors @ factors.transpose(1, 2)
        flat = (order.unsqueeze(2) * m + order.unsqueeze(1)).reshape(-1)
        minors = L.reshape(C, m * m)[:, flat].reshape(C, len(patterns), size, size)
        keep = inside.unsqueeze(1) & inside.unsqueeze(2)
        minors = torch.where(keep, minors, torch.diag_embed((~inside).to(torch.float64)))
        root, _ = torch.linalg.cholesky_ex(minors)
        logdet = 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        whole, _ = torch.linalg.cholesky_ex(torch.eye(m) + L)
        normalizer = 2 * whole.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        leaves = self.log_leaves(logits)[:, self.columns(batch)].sum(dim=2)
        mixed = (torch.log_softmax(weights, 0) - normalizer).unsqueeze(1) + logdet[:, of_row] + leaves
        return -torch.logsumexp(mixed, 0).sum()

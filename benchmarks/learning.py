"""SimplePGC: pgcc, PyTorch as the paper describes it, and the best PyTorch we wrote; training and scoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.common import DATA, Table, best_of
from pgcc.learn import SimplePGC
from pgcc.learn.common.optimizers import Adam
from pgcc.learn.mixtures.encoding import Encoded, encode
from pgcc.learn.mixtures.mixture_likelihood import MixtureLikelihood

# Sets, with the most variables in a group and the number of components that the paper took.
SETS = {"amzn_apparel": (5, 7), "amzn_carseats": (1, 10), "nltcs": (1, 20)}
BATCH, RATE, DECAY = 128, 1e-3, 1e-3
# Batches that are timed of PyTorch as in the paper: an epoch would take too long.
FEW = 10
# Rows at a time for scoring with the best PyTorch, of which the fastest counts: as in training, more, and all.
SIZES = (BATCH, 1024, 1 << 20)
COLUMNS = ["set", "K", "C", "groups", "pgcc", "torch, paper", "ratio", "torch, best", "ratio", "off by"]


def run() -> Iterator[Table]:
    training = Table("learning: seconds of an epoch of SimplePGC, batches of 128 rows, one thread", COLUMNS)
    scoring = Table("scoring: seconds of score_samples of the training data, one thread", COLUMNS)
    training.notes += [
        "torch, paper: m × m determinants of every row, autograd. torch, best: distinct patterns, padded minors,",
        "all components at once. off by: log-likelihood of the first batch, pgcc against both. Required: 50×, 5×.",
    ]
    scoring.notes += [
        "pgcc certifies 9 digits. PyTorch, without autograd: as in the paper, 128 rows at a time; the best with as",
        f"many at a time as are fastest, of {', '.join(f'{size:,}' for size in SIZES)}. Required: 50×, 5×.",
    ]
    try:
        import torch
    except ImportError:
        torch = None
        training.notes.append("PyTorch is not installed: only pgcc was measured")
    else:
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
    for name, (most, components) in SETS.items():
        path = DATA / "sets" / name / f"{name}.train.data"
        if not path.exists():
            training.notes.append(f"skipped {name}: no {path} (set PGCC_DATA)")
            continue
        case = _Case(torch, np.loadtxt(path, delimiter=",", dtype=np.int8), most, components)
        for table, seconds in ((training, case.training()), (scoring, case.scoring())):
            table.add(name, most, components, len(case.groups), *seconds)
    yield training
    yield scoring


class _Case:
    """A data set, and a model of it after one epoch."""

    def __init__(self, torch: Any, codes: np.ndarray, most: int, components: int):
        self.torch, self.codes = torch, codes
        self.model = SimplePGC(most, components, "paper", max_iter=1).fit(codes, validation=codes[:BATCH])
        names = self.model.circuit_.variables
        self.groups = [[names.index(name) for name in group] for group in self.model.partition_]
        self.data: Encoded = encode(codes, self.groups)

    def training(self) -> list[float | None]:
        order = np.random.default_rng(1).permutation(len(self.codes))
        batches = _cut(order, BATCH)
        likelihood, adam = MixtureLikelihood(self.data.table, self.model.n_components), Adam(self.model.parameters_)
        value = likelihood.gradient(adam.theta, self.data.where[batches[0]])[0]

        def ours() -> None:
            for batch in batches:
                _, gradient = likelihood.gradient(adam.theta, self.data.where[batch])
                gradient[:, :-1] -= DECAY * adam.theta[:, :-1]
                adam.step(gradient, RATE)

        def epoch(model: _Torch, some: list[np.ndarray]) -> Callable[[], None]:
            optimizer = self.torch.optim.Adam(model.parameters, lr=RATE, weight_decay=DECAY)

            def work() -> None:
                for batch in some:
                    optimizer.zero_grad()
                    (-model.scores(batch).sum()).backward()
                    optimizer.step()

            return work

        if self.torch is None:
            return _ratios({"pgcc": ours}, 1.0, 0.0)
        paper, best = (kind(self.torch, self.codes, self.groups, self.model.parameters_) for kind in (_Paper, _Best))
        off = max(abs(float(model.scores(batches[0]).sum().detach()) / value - 1) for model in (paper, best))
        functions = {"pgcc": ours, "paper": epoch(paper, batches[:FEW]), "best": epoch(best, batches)}
        return _ratios(functions, len(batches) / len(batches[:FEW]), off)

    def scoring(self) -> list[float | None]:
        def ours() -> np.ndarray:
            return self.model.score_samples(self.codes)

        def score(model: _Torch, some: list[np.ndarray]) -> Callable[[], np.ndarray]:
            def work() -> np.ndarray:
                with self.torch.no_grad():
                    return np.concatenate([model.scores(batch).numpy() for batch in some])

            return work

        if self.torch is None:
            return _ratios({"pgcc": ours}, 1.0, 0.0)
        paper, best = (kind(self.torch, self.codes, self.groups, self.model.parameters_) for kind in (_Paper, _Best))
        few = np.arange(len(self.codes))[: FEW * BATCH]
        functions = {"pgcc": ours, "paper": score(paper, _cut(few, BATCH))}
        for size in SIZES:
            functions[f"best, {size}"] = score(best, _cut(np.arange(len(self.codes)), size))
        exact = ours()
        off = max(float(np.abs(f()[: len(few)] / exact[: len(few)] - 1).max()) for f in functions.values())
        return _ratios(functions, len(self.codes) / len(few), off)


def _cut(order: np.ndarray, size: int) -> list[np.ndarray]:
    return [order[i : i + size] for i in range(0, len(order), size)]


def _ratios(functions: dict[str, Callable[[], Any]], times: float, off: float) -> list[float | None]:
    """Seconds of pgcc and of both of PyTorch, of which that of the paper did one in `times` of the work."""
    seconds = best_of(functions, 5, clock=time.process_time)
    ours = seconds["pgcc"]
    if "paper" not in seconds:
        return [ours, None, None, None, None, None]
    paper, best = seconds["paper"] * times, min(t for name, t in seconds.items() if name.startswith("best"))
    return [ours, paper, paper / ours, best, best / ours, off]


class _Torch:
    """Parameters as tensors: B (C × m × m), logits of codes (C × codes), logits of components."""

    def __init__(self, torch: Any, codes: np.ndarray, groups: list[list[int]], start: np.ndarray):
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

    def scores(self, batch: np.ndarray) -> Any:
        """The log-likelihood of every row."""
        raise NotImplementedError

    def columns(self, batch: np.ndarray) -> Any:
        """Where the sets of a batch stand in the result of `log_leaves`."""
        return self.sets[batch] + self.torch.tensor(self.starts[:-1] + np.arange(len(self.sizes)))


class _Paper(_Torch):
    """As the paper and its appendix describe it: for every component a batch of m × m determinants."""

    def scores(self, batch: np.ndarray) -> Any:
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
        return torch.logsumexp(mixed, 0)


class _Best(_Torch):
    """Distinct patterns of a batch once each, their minors padded to the largest, all components at a time."""

    def scores(self, batch: np.ndarray) -> Any:
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
        return torch.logsumexp(mixed, 0)

"""Hyper-parameters of SimplePGC: those of the paper, and others that were found to do better."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters of one run.

    Attributes
    ----------
    learning_rate, last_rate : float
        Adam's learning rate has cosine decay from `learning_rate` to `last_rate` · learning_rate; 1 is a constant rate.
    weight_decay : float
        An L2 penalty, which is part of the gradient that Adam rescales: a mini-batch has the loss
        −Σ log p(row) + weight_decay/2 · |parameters|². (In `CircuitMLE`, weight decay is decoupled.)
    smoothing : float
        Additive smoothing: the number of rows added to every leaf of every component, distributed as in all data.
    ema_decay : float
        The decay of the exponential moving average of the parameters, which is the result; 0 is no averaging.
    batch_size, max_iter : int
        The number of rows of a mini-batch, and the largest number of epochs (passes over the data).
    n_iter_no_change : int
        Early stopping: the number of epochs without a better likelihood of the validation data after which to stop.
    """

    learning_rate: float
    last_rate: float
    weight_decay: float
    smoothing: float
    ema_decay: float
    batch_size: int
    max_iter: int
    n_iter_no_change: int


# The loss is a sum over the rows of a mini-batch, not their mean, so weight decay is 1/128 as strong as with a mean.
_PAPER = Recipe(
    learning_rate=1e-3, last_rate=1.0, weight_decay=1e-3, smoothing=0.0, ema_decay=0.0,
    batch_size=128, max_iter=50, n_iter_no_change=50,
)  # fmt: skip
_AUTO = Recipe(
    learning_rate=3e-3,
    last_rate=0.05,
    weight_decay=3e-4,
    smoothing=30.0,
    ema_decay=0.99,
    batch_size=128,
    max_iter=60,
    n_iter_no_change=15,
)
# Every recipe of a name is one run, and the validation data choose the best run. A low learning rate with small batches
# and little smoothing overfits least if data are few; a high one finds better mixtures if these are hard to find.
RECIPES = {
    "auto": (
        _AUTO,
        replace(_AUTO, learning_rate=1e-3, smoothing=3.0, batch_size=64),
        replace(_AUTO, learning_rate=1e-2, smoothing=10.0),
    ),
    "paper": (_PAPER,),
}

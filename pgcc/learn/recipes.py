"""How SimplePGC is trained: the paper's hyper-parameters, and those that were found to do better."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters of one run.

    Attributes
    ----------
    learning_rate, last_rate : float
        Of Adam; it falls along a half cosine to `last_rate` · learning_rate. (1 is a constant rate.)
    weight_decay : float
        A batch of rows has the loss −Σ log p + weight_decay/2 · |parameters|².
    smoothing : float
        Rows that are added to every leaf of every component, with sets distributed as in the whole of the data.
    memory : float
        The parameters that are kept are a running mean over steps, of which each step keeps as much.
    batch_size, max_iter : int
        Rows of a mini-batch, and epochs (passes over the data) at most.
    n_iter_no_change : int
        Early stopping: after as many epochs without a better likelihood of the validation data.
    """

    learning_rate: float
    last_rate: float
    weight_decay: float
    smoothing: float
    memory: float
    batch_size: int
    max_iter: int
    n_iter_no_change: int


# The paper's loss is a sum over the rows of a batch, so that its decay weighs 1/128 of what it would with a mean.
_PAPER = Recipe(
    learning_rate=1e-3, last_rate=1.0, weight_decay=1e-3, smoothing=0.0, memory=0.0,
    batch_size=128, max_iter=50, n_iter_no_change=50,
)  # fmt: skip
_AUTO = Recipe(
    learning_rate=3e-3,
    last_rate=0.05,
    weight_decay=3e-4,
    smoothing=30.0,
    memory=0.99,
    batch_size=128,
    max_iter=60,
    n_iter_no_change=15,
)
# Several recipes are as many runs, of which the validation data choose one: slow and noisy steps with little smoothing
# overfit least where data are few; fast ones find better mixtures where these are hard to find.
RECIPES = {
    "auto": (
        _AUTO,
        replace(_AUTO, learning_rate=1e-3, smoothing=3.0, batch_size=64),
        replace(_AUTO, learning_rate=1e-2, smoothing=10.0),
    ),
    "paper": (_PAPER,),
}

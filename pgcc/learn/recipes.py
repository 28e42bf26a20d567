"""How SimplePGC is trained: the paper's hyper-parameters, and those that were found to do better."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters of one run.

    Attributes
    ----------
    rate, last_rate : float
        The learning rate of Adam; it falls along a half cosine to `last_rate` · rate. (1 is a constant rate.)
    decay : float
        Weight decay: a batch of rows has the loss −Σ log p + decay/2 · |parameters|².
    smoothing : float
        Rows that are added to every leaf of every component, with sets distributed as in the whole of the data.
    memory : float
        The parameters that are kept are a running mean over steps, of which each step keeps as much.
    batch, epochs : int
        Rows of a mini-batch, and passes over the data at most.
    patience : int
        Early stopping: after as many epochs without a better likelihood of the validation data.
    """

    rate: float
    last_rate: float
    decay: float
    smoothing: float
    memory: float
    batch: int
    epochs: int
    patience: int


# The paper's loss is a sum over the rows of a batch, so that its decay weighs 1/128 of what it would with a mean.
_PAPER = Recipe(
    rate=1e-3, last_rate=1.0, decay=1e-3, smoothing=0.0, memory=0.0, batch=128, epochs=50, patience=50
)  # fmt: skip
_AUTO = Recipe(rate=3e-3, last_rate=0.05, decay=3e-4, smoothing=30.0, memory=0.99, batch=128, epochs=60, patience=15)
# Several recipes are as many runs, of which the validation data choose one: slow and noisy steps with little smoothing
# overfit least where data are few; fast ones find better mixtures where these are hard to find.
RECIPES = {
    "auto": (_AUTO, replace(_AUTO, rate=1e-3, smoothing=3.0, batch=64), replace(_AUTO, rate=1e-2, smoothing=10.0)),
    "paper": (_PAPER,),
}

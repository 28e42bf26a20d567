"""The training loop and its optimizers: which epoch is kept, when a run stops, where it goes on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgcc.learn.common.checkpoint import Checkpoint
from pgcc.learn.common.optimizers import Adam
from pgcc.learn.common.training import Run, RunPlan, best_of, progress_line, train

NAN = math.nan
SHAPES = {"done": (int,)}


class Scripted:
    """A trainer with the given scores; its parameter is the number of epochs that are done."""

    def __init__(self, scores, state=None):
        self.scores, self.done = scores, 0 if state is None else int(state["done"])

    def advance(self):
        if self.done == len(self.scores):
            return None
        self.done += 1
        return -float(self.done)

    def validate(self):
        return self.scores[self.done - 1]

    def learned(self):
        return {"done": np.array(self.done)}

    state = learned


def run_of(scores, patience, epochs=100, checkpoint=None):
    plan = RunPlan(lambda state: Scripted(scores, state), epochs, patience, SHAPES, SHAPES)
    (run,) = train([plan], Checkpoint(checkpoint, {}))
    return run


@pytest.mark.parametrize(
    ("scores", "patience", "best", "epochs"),
    [
        ([-3.0, -1.0, -2.0, -2.0, 0.0], 2, 1, 4),  # stops early
        ([-3.0, -1.0, -1.0, 0.0], 3, 3, 4),
        ([-math.inf, -math.inf, -5.0], 10, 2, 3),
        ([NAN, NAN, -5.0, NAN, -6.0], 10, 2, 5),  # a number is better than none
        ([-1.0, NAN, NAN, NAN], 2, 0, 3),
        ([NAN, NAN, NAN, NAN], 2, 0, 3),
        ([-1.0, None, -5.0, None], 10, 0, 4),  # without validation data, the training data choose
        ([-1.0, -2.0, -3.0], None, 2, 3),  # nothing is chosen
    ],
)
def test_the_epoch_that_is_kept(scores, patience, best, epochs):
    run = run_of(scores, patience)
    assert run.over
    assert (run.best_epoch, int(run.best["done"]), run.epochs) == (best, best + 1, epochs)
    assert run.state == {}


def test_nothing_to_gain_from_the_start(tmp_path):
    for _ in range(2):  # the second time from the checkpoint
        run = run_of([], 3, checkpoint=tmp_path / "run.npz")
        assert (run.best_epoch, int(run.best["done"]), run.epochs, run.over) == (-1, 0, 0, True)


def test_the_best_of_several_runs():
    runs = [Run(best_epoch=0, history={"validation": [score]}) for score in (NAN, -2.0, -1.0, -1.0, -math.inf)]
    assert best_of(runs) is runs[2]
    assert best_of([runs[0], runs[4], Run()]) is None


def test_runs_that_have_not_begun_are_left_too():
    plans = [RunPlan(lambda state: Scripted([-1.0] * 4, state), 4, 4, SHAPES, SHAPES)] * 2
    first = Run(history={"train": [-1.0], "validation": [-2.0], "seconds": [3.0]}, best_epoch=0)
    told = progress_line(plans, [first, Run()], 0)
    assert told == "run 1/2, epoch 1/4: train -1.0000, validation -2.0000, best -2.0000, at most 21 s left"


@pytest.mark.parametrize(("decay", "memory"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.9)])
def test_adam_by_its_definition(decay, memory):
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((3, 5))
    adam, mean, square, average = Adam(theta, weight_decay=decay, ema_decay=memory), 0.0, 0.0, theta.copy()
    for step in range(1, 8):
        gradient, rate = rng.standard_normal(theta.shape), 0.1 / step
        adam.step(gradient, rate)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        corrected, scale = mean / (1 - 0.9**step), np.sqrt(square / (1 - 0.999**step))
        theta = theta + rate * (corrected / (scale + 1e-8) - decay * theta)
        kept = min(memory, 1 - 1 / step)
        average = kept * average + (1 - kept) * theta
        if step == 4:  # another one goes on
            state = {name: array.copy() for name, array in adam.state().items()}
            adam = Adam(np.zeros_like(theta), weight_decay=decay, ema_decay=memory)
            adam.restore(state)
    np.testing.assert_allclose(adam.theta, theta, rtol=1e-12)
    np.testing.assert_allclose(adam.average, average, rtol=1e-12)

"""A step of Adam, with the running mean of the parameters: one pass over memory."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel


@kernel
def adam_step(theta, gradient, mean, square, average, step, rate, decay, memory):
    """Make a function of θ larger, given its gradient: step number `step`, from 1.

    `decay` is decoupled weight decay. `average` is a running mean of θ, which keeps `memory` of what it was.
    """
    beta, gamma = 0.9, 0.999
    of_mean, of_square = 1.0 / (1.0 - beta**step), 1.0 / (1.0 - gamma**step)
    for j in range(len(theta)):
        slope = gradient[j]
        mean[j] = beta * mean[j] + (1.0 - beta) * slope
        square[j] = gamma * square[j] + (1.0 - gamma) * slope * slope
        ascent = rate * of_mean * mean[j] / (np.sqrt(of_square * square[j]) + 1e-8)
        theta[j] += ascent - rate * decay * theta[j]
        average[j] += (1.0 - memory) * (theta[j] - average[j])

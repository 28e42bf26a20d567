"""One step of Adam, with an exponential moving average of the parameters, in a single pass over memory."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel


@kernel
def adam_step(theta, gradient, mean, square, average, step, rate, weight_decay, ema_decay):
    """Gradient ascent: update θ with learning rate `rate`, in step number `step` (counted from 1).

    `mean` and `square` are the first and second moment estimates. `weight_decay` is decoupled: it is no part of
    the gradient. `average` is an exponential moving average, average ← ema_decay · average + (1 − ema_decay) · θ.
    """
    beta1, beta2 = 0.9, 0.999
    power = float(step)  # Numba has a power of its own for integers, with other last bits
    correct_mean, correct_square = 1.0 / (1.0 - beta1**power), 1.0 / (1.0 - beta2**power)  # bias correction
    for j in range(len(theta)):
        g = gradient[j]
        mean[j] = beta1 * mean[j] + (1.0 - beta1) * g
        square[j] = beta2 * square[j] + (1.0 - beta2) * g * g
        update = rate * correct_mean * mean[j] / (np.sqrt(correct_square * square[j]) + 1e-8)
        theta[j] += update - rate * weight_decay * theta[j]
        average[j] += (1.0 - ema_decay) * (theta[j] - average[j])

"""The small neural network: its gradient is that of its value."""

import numpy as np
import pytest

from pgcc.learn.common.net import Net, normalized, tanh


@pytest.mark.parametrize("activation", [tanh, normalized])
def test_the_gradient_is_that_of_the_value(activation):
    rng = np.random.default_rng(0)
    net, points, seen = Net([3, 5, 4, 2], activation), rng.normal(size=(3, 7)), rng.normal(size=(2, 7))
    theta = net.start(rng)

    def value(theta):
        return float((net.forward(theta, points)[0] * seen).sum())

    found = net.backward(theta, net.forward(theta, points)[1], seen)
    steps = 1e-6 * np.eye(net.size)
    by_differences = [(value(theta + step) - value(theta - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, by_differences, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("activation", [tanh, normalized])
def test_precision_is_that_of_theta(activation):
    rng = np.random.default_rng(1)
    net = Net([2, 4, 3], activation)
    theta, points = net.start(rng), rng.normal(size=(2, 9))
    wide, narrow = (net.forward(theta.astype(kind), points.astype(kind))[0] for kind in (float, np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, wide, rtol=1e-3, atol=1e-5)

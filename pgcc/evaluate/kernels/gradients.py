"""Derivatives by weights, added up over rows: ∂F/∂w = p'·x for every term w·x of a sum p."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.kernels.simd import add_up, load, mul, muladd, splat
from pgcc.rings.kernels.scaled import RADIX


@kernel
def add_float64_gradients(adjoint, child, work, lanes, share, gradient):
    """gradient[t] += Σ_rows share[row] · work[adjoint[t]] · work[child[t]], for one block of rows."""
    for t in range(len(adjoint)):
        a, x = adjoint[t] * lanes, child[t] * lanes
        total = splat(0.0)
        for lane in range(0, lanes, 8):
            total = muladd(mul(load(work, a + lane), load(work, x + lane)), load(share, lane), total)
        gradient[t] += add_up(total)


@kernel
def add_scaled_gradients(adjoint, child, m, e, root, share, gradient):
    """The same over scaled numbers, divided by the root of each row; m, e : rows × slots."""
    for row in range(m.shape[0]):
        over, of = share[row] / m[row, root], e[row, root]
        for t in range(len(adjoint)):
            a, x = adjoint[t], child[t]
            product = m[row, a] * m[row, x] * over
            if product != 0.0:
                steps = min(max(e[row, a] + e[row, x] - of, -8), 8)  # beyond ±8, the result is 0 or inf anyway
                gradient[t] += np.ldexp(product, int(RADIX * steps))

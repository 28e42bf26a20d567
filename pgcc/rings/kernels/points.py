"""A program at points t: z = t for variables observed 1, 0 for those observed 0, 1 for the free ones."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import DET, DETMAG, LEAF, TIMES
from pgcc.rings.kernels.dense import complex_determinant, det_workspace


@kernel
def run_points(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
    det_shape, det_start, det_data, codes, points, work, root, out,
):  # fmt: skip
    """out[p] = value of slot `root` at points[p]; all complex128.

    codes : int8, one per variable: 1, 0 or −1. work : slots × points. DETMAG writes 0: points certify no determinant.
    """
    n_points = len(points)
    matrix, rows = det_workspace(det_shape)
    for i in range(len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF:
            leaf = args[first]
            a, b, both, v = leaf_table[leaf, 0], leaf_table[leaf, 1], leaf_table[leaf, 2], leaf_variable[leaf]
            code = -1 if v < 0 else codes[v]
            for p in range(n_points):
                work[at, p] = a + b * points[p] if code == 1 else a if code == 0 else both
        elif kind == TIMES:
            for p in range(n_points):
                work[at, p] = 1.0
            for j in range(first, last):
                x = args[j]
                for p in range(n_points):
                    work[at, p] *= work[x, p]
        elif kind == DET:
            d, k = args[first], (last - first - 1) // 2
            f, y = args[first + 1 : first + 1 + k], args[first + 1 + k : last]
            at_f, at_y = np.empty(k, np.complex128), np.empty(k, np.complex128)
            for p in range(n_points):
                for j in range(k):
                    at_f[j], at_y[j] = work[f[j], p], work[y[j], p]
                value = complex_determinant(det_shape[d], det_data[det_start[d] :], at_f, at_y, matrix, rows)
                work[at, p] = value
        elif kind == DETMAG:
            for p in range(n_points):
                work[at, p] = 0.0
        else:
            weight, end = first_weight[i], first_weight[i + 1]
            alone, j = 2 * (end - weight) - (last - first), first  # terms w·x; the others are w·x·y
            for p in range(n_points):
                work[at, p] = 0.0
            for k in range(weight, end):
                x, w = args[j], weights[k]
                if k - weight < alone:
                    for p in range(n_points):
                        work[at, p] += w * work[x, p]
                    j += 1
                else:
                    y_slot = args[j + 1]
                    for p in range(n_points):
                        work[at, p] += w * work[x, p] * work[y_slot, p]
                    j += 2
    for p in range(n_points):
        out[p] = work[root, p]

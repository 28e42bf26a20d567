"""A program at points t: z = t for variables observed 1, 0 for those observed 0, 1 for the free ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import DET, DETMAG
from pgcc.rings.kernels.dense import complex_determinant, det_workspace
from pgcc.rings.kernels.walk import Operations, complete, number_system, walk


class Constants(NamedTuple):
    """The numbers of a program, with M0, U and V of its determinants."""

    weights: np.ndarray
    leaf_variable: np.ndarray
    leaf_table: np.ndarray
    det_shape: np.ndarray
    det_start: np.ndarray
    det_data: np.ndarray


class Points(NamedTuple):
    """The number system: `work`, slots × points, is complex128; codes : int8, one per variable: 1, 0 or −1."""

    constants: Constants
    codes: np.ndarray
    points: np.ndarray
    work: np.ndarray
    matrix: np.ndarray
    rows: np.ndarray


def _leaf(system, i, at, number):
    table, v = system.constants.leaf_table[number], system.constants.leaf_variable[number]
    code = -1 if v < 0 else system.codes[v]
    here, points = system.work[at], system.points
    for p in range(len(points)):
        here[p] = table[0] + table[1] * points[p] if code == 1 else table[0] if code == 0 else table[2]


def _one(system, i, at):
    system.work[at, :] = 1.0


def _times(system, at, x):
    here, factor = system.work[at], system.work[x]
    for p in range(len(here)):
        here[p] *= factor[p]


def _zero(system, i, at):
    system.work[at, :] = 0.0


def _add(system, at, k, x):
    here, value, w = system.work[at], system.work[x], system.constants.weights[k]
    for p in range(len(here)):
        here[p] += w * value[p]


def _add_product(system, at, k, x, y):
    here, left, right, w = system.work[at], system.work[x], system.work[y], system.constants.weights[k]
    for p in range(len(here)):
        here[p] += w * left[p] * right[p]


def _determinant(system, i, at, op, args):
    """DETMAG writes 0: points certify no determinant."""
    c, work = system.constants, system.work
    if op == DET:
        d, k = args[0], (len(args) - 1) // 2
        f, y = np.empty(k, np.complex128), np.empty(k, np.complex128)
        for p in range(work.shape[1]):
            for j in range(k):
                f[j], y[j] = work[args[1 + j], p], work[args[1 + k + j], p]
            data = c.det_data[c.det_start[d] :]
            work[at, p] = complex_determinant(c.det_shape[d], data, f, y, system.matrix, system.rows)
    elif op == DETMAG:
        work[at, :] = 0.0
    else:
        raise ValueError("an instruction has no value at points")


number_system(Points, Operations(_leaf, _one, _times, _zero, _add, _add_product, complete, complete, _determinant))


@kernel
def run_points(code, constants, codes, points, work, root, out):
    """out[p] = value of slot `root` at points[p]; all complex128. code : Instructions. work : slots × points."""
    matrix, rows = det_workspace(constants.det_shape)
    walk(code, Points(constants, codes, points, work, matrix, rows), 0, len(code.op))
    for p in range(len(out)):
        out[p] = work[root, p]

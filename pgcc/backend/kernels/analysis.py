"""What can be said of a program's rounding before it runs."""

from __future__ import annotations

import math

import numpy as np

from pgcc.backend.kernels.policy import kernel
from pgcc.lowering.program import DET, DETBAR, DETIN, LEAF, MORE, QUOTIENT, SUM, TIMES

# Below it doubles lose digits.
_LOG_SMALLEST = -1022 * math.log(2.0)


@kernel
def count_roundings(op, target, start, args, length, count):
    """count[slot] = how many factors (1 + δ), |δ| ≤ 2⁻⁵³, stand on any term of its value.

    A term of a sum of k passes its weight's rounding, one multiplication and at most k additions; a coefficient of a
    product of series with `length` coefficients adds at most so many terms.
    """
    for i in range(len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF:
            total = 2.0
        elif kind in (TIMES, QUOTIENT):
            total = 0.0
            for j in range(first, last):  # a quotient has a weight too
                total += count[args[j]] + length
        elif kind >= DET:  # what a determinant does with the errors of its children is in its magnitude
            total = 0.0
            for j in range(first + 1, last):
                total = max(total, count[args[j]])
            total += 1.0
            for j in range(last - first - 1 if kind >= DETBAR else 0):
                count[at + j] = total
        else:
            stride = 1 if kind == SUM else 2
            worst = count[at] if kind == MORE else 0.0
            for j in range(first, last, stride):
                here = count[args[j]] + 2.0
                if stride == 2:
                    here += count[args[j + 1]] + length
                worst = max(worst, here)
            # a coefficient of a sum of k products of series adds up to k · length terms
            total = worst + (last - first) // stride * (1 if stride == 1 else length)
        count[at] = total


@kernel
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


@kernel
def log_values(op, target, start, args, first_weight, log_weights, log_leaves, log_dets, log_value):
    """log of every value when leaf l is exp(log_leaves[l]) and all weights are absolute.

    log_dets : where everything is free, which is where a determinant without negative coefficients is largest.
    """
    for i in range(len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF:
            total = log_leaves[args[first]]
        elif kind == TIMES:
            total = 0.0
            for j in range(first, last):
                total += log_value[args[j]]
        elif kind == DETIN:
            k = (last - first - 1) // 2
            for j in range(2 * k):  # ∂D/∂f ≤ D/f, because D is affine in f without negative coefficients
                child = log_value[args[first + 1 + j % k]]
                log_value[at + j] = log_dets[args[first]] - child if child > -math.inf else -math.inf
            continue
        elif kind >= DET:
            total = log_dets[args[first]]
        else:
            total = log_value[at] if kind == MORE else -math.inf
            k = first_weight[i]
            stride = 1 if kind == SUM else 2
            for j in range(first, last, stride):
                term = log_weights[k] + log_value[args[j]]
                if stride == 2:
                    term += log_value[args[j + 1]]
                total = _log_add(total, term)
                k += 1
        log_value[at] = total


@kernel
def log_sensitivities(op, target, start, args, first_weight, log_weights, log_value, root, log_adjoint):
    """log |∂root / ∂value| at those values; returns log Σ of all adjoints, once per rounding. No slot is reused."""
    log_adjoint[:] = -math.inf
    log_adjoint[root] = 0.0
    total = -math.inf
    for i in range(len(op) - 1, -1, -1):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        here, size = log_adjoint[at], log_value[at]
        if kind == DETIN:  # all that it computes as one: its adjoint times its value
            here, size = -math.inf, 0.0
            for j in range(last - first - 1):
                total = _log_add(total, log_adjoint[at + j])
                here = _log_add(here, log_adjoint[at + j] + log_value[at + j])
        if here == -math.inf:
            continue
        total = _log_add(total, here + math.log(2.0 * (last - first) + 1.0))
        if kind == LEAF:
            continue
        if kind == TIMES:
            # prefix and suffix products, never a division: a child may be 0
            suffix = np.empty(last - first + 1)
            suffix[last - first] = 0.0
            for j in range(last - first - 1, -1, -1):
                suffix[j] = suffix[j + 1] + log_value[args[first + j]]
            prefix = 0.0
            for j in range(first, last):
                x = args[j]
                others = prefix + suffix[j - first + 1]
                log_adjoint[x] = _log_add(log_adjoint[x], here + others)
                total = _log_add(total, here + suffix[j - first + 1])  # what underflows half-way meets the rest
                prefix += log_value[x]
        elif kind >= DET:
            for j in range(first + 1, last):  # ∂D/∂f ≤ D/f, because D is affine in f without negative coefficients
                x = args[j]
                if log_value[x] > -math.inf:
                    log_adjoint[x] = _log_add(log_adjoint[x], here + size - log_value[x])
        else:
            k = first_weight[i]
            stride = 1 if kind == SUM else 2
            for j in range(first, last, stride):
                x, y = args[j], args[j + stride - 1]
                term = here + log_weights[k]
                if -math.inf < log_weights[k] < _LOG_SMALLEST:
                    # a subnormal weight is itself off by 2⁻¹⁰⁷⁵
                    child = log_value[x] if stride == 1 else log_value[x] + log_value[y]
                    total = _log_add(total, here + child)
                if stride == 1:
                    log_adjoint[x] = _log_add(log_adjoint[x], term)
                else:
                    log_adjoint[x] = _log_add(log_adjoint[x], term + log_value[y])
                    log_adjoint[y] = _log_add(log_adjoint[y], term + log_value[x])
                    # w·x·y, in either order: x·y may underflow before it meets w, w·x before it meets y
                    total = _log_add(_log_add(total, term), here + log_value[y])
                k += 1
    return total


@kernel
def log_least(op, target, start, args, first_weight, log_weights, log_leaves, log_largest, least):
    """least[slot] = log of the least value above 0 that it can take; returns the least of all that is ever computed.

    For programs without negative numbers. A sum is at least its least term, a product that of its factors. log_leaves :
    of the least value above 0 of every leaf (inf if there is none). log_largest : of the largest value of every slot
    that is divided by.
    """
    bottom = 0.0
    for i in range(len(op)):
        kind, first, last, at, k = op[i], start[i], start[i + 1], target[i], first_weight[i]
        if kind == LEAF:
            total = log_leaves[args[first]]
        elif kind == TIMES:
            total = 0.0
            for j in range(first, last):
                total += least[args[j]]
                bottom = min(bottom, total)
        elif kind == QUOTIENT:
            ratio = least[args[first]] - log_largest[args[first + 1]]
            total = log_weights[k] + ratio
            bottom = min(bottom, ratio)
        else:
            total = least[at] if kind == MORE else math.inf
            stride = 1 if kind == SUM else 2
            for j in range(first, last, stride):
                term = least[args[j]] if stride == 1 else least[args[j]] + least[args[j + 1]]
                bottom = min(bottom, term)
                if log_weights[k] > -math.inf:
                    total = min(total, log_weights[k] + term)
                k += 1
        least[at] = total
        bottom = min(bottom, total)
    return bottom

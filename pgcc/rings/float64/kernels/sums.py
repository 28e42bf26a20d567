"""Weighted sums and products of slots, for a block of rows: a pass over all rows for every few terms.

The weights and addresses of the terms of a pass stay in registers. A pass adds to what the slot holds, unless it is the
first. Terms are added in order, so that results do not depend on how they are grouped into passes. The slot that is
written must not be one of those that are read.
"""

from __future__ import annotations

from pgcc.kernels.policy import inlined_kernel
from pgcc.kernels.simd import load, mul, muladd, splat, store


@inlined_kernel
def add_values(args, first, last, weights, k, lanes, work, at, fresh):
    """work[at…] = Σ w·x for the slots x of args[first:last] and the weights from k on; added to it if not `fresh`."""
    while last - first >= 4:
        x0, x1, x2, x3 = _four(args, first, lanes)
        w0, w1 = splat(weights[k]), splat(weights[k + 1])
        w2, w3 = splat(weights[k + 2]), splat(weights[k + 3])
        for lane in range(0, lanes, 8):
            a = muladd(w0, load(work, x0 + lane), _old(work, at + lane, fresh))
            a = muladd(w1, load(work, x1 + lane), a)
            a = muladd(w2, load(work, x2 + lane), a)
            store(work, at + lane, muladd(w3, load(work, x3 + lane), a))
        first, k, fresh = first + 4, k + 4, False
    while last > first:
        x, w = args[first] * lanes, splat(weights[k])
        for lane in range(0, lanes, 8):
            store(work, at + lane, muladd(w, load(work, x + lane), _old(work, at + lane, fresh)))
        first, k, fresh = first + 1, k + 1, False


@inlined_kernel
def add_products(args, first, last, weights, k, lanes, work, at, fresh):
    """The same with Σ w·x·y, for pairs of slots x, y."""
    while last - first >= 4:
        x0, y0, x1, y1 = _four(args, first, lanes)
        w0, w1 = splat(weights[k]), splat(weights[k + 1])
        for lane in range(0, lanes, 8):
            a = muladd(w0, mul(load(work, x0 + lane), load(work, y0 + lane)), _old(work, at + lane, fresh))
            store(work, at + lane, muladd(w1, mul(load(work, x1 + lane), load(work, y1 + lane)), a))
        first, k, fresh = first + 4, k + 2, False
    if last > first:
        x, y, w = args[first] * lanes, args[first + 1] * lanes, splat(weights[k])
        for lane in range(0, lanes, 8):
            a = mul(load(work, x + lane), load(work, y + lane))
            store(work, at + lane, muladd(w, a, _old(work, at + lane, fresh)))


@inlined_kernel
def fill(work, at, lanes, value):
    """work[at…] = value"""
    for lane in range(0, lanes, 8):
        store(work, at + lane, splat(value))


@inlined_kernel
def multiply(args, first, last, lanes, work, at):
    """work[at…] = Π x for the slots x of args[first:last]."""
    if first == last:
        fill(work, at, lanes, 1.0)
        return
    x = args[first] * lanes
    if last - first == 1:
        for lane in range(0, lanes, 8):
            store(work, at + lane, load(work, x + lane))
        return
    y = args[first + 1] * lanes
    for lane in range(0, lanes, 8):
        store(work, at + lane, mul(load(work, x + lane), load(work, y + lane)))
    for j in range(first + 2, last):
        x = args[j] * lanes
        for lane in range(0, lanes, 8):
            store(work, at + lane, mul(load(work, at + lane), load(work, x + lane)))


@inlined_kernel
def _old(work, at, fresh):
    return splat(0.0) if fresh else load(work, at)


@inlined_kernel
def _four(args, first, lanes):
    """The addresses of the four slots from args[first] on."""
    return (
        args[first] * lanes,
        args[first + 1] * lanes,
        args[first + 2] * lanes,
        args[first + 3] * lanes,
    )

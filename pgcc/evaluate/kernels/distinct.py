"""Rows of a table that are equal, found by hashing."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel

_ODD, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@kernel
def number_equal(words, slots, first, number):
    """number[r] = the number of the distinct row that row r equals, first[i] = where distinct row i occurs first.

    words : rows of 64-bit words. slots : a hash table, all −1, whose length is a power of two and more than the number
    of rows. Returns the number of distinct rows.
    """
    count, last = 0, np.uint64(len(slots) - 1)
    for r in range(len(words)):
        mine, hashed = words[r], np.uint64(0)
        for j in range(len(mine)):
            hashed = (hashed ^ mine[j]) * _ODD
            hashed ^= hashed >> _HALF
        at = hashed & last
        while slots[at] >= 0 and not _equal(words[first[slots[at]]], mine):
            at = (at + np.uint64(1)) & last
        if slots[at] < 0:
            slots[at], first[count] = count, r
            count += 1
        number[r] = slots[at]
    return count


@bare_kernel
def _equal(a, b):
    different = np.uint64(0)
    for j in range(len(a)):
        different |= a[j] ^ b[j]
    return different == 0

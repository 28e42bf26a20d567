"""The data structures of the kernels for SimplePGC: tables of distinct rows, and mini-batches grouped by pattern."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.simd import LANES
from pgcc.learn.kernels.dense import packed


class Table(NamedTuple):
    """Distinct rows of data as int64 arrays. Nested lists are stored like sparse rows (CSR): offsets, and entries.

    A *code* is a non-empty set of variables of one group; the codes of group g are leaf[g] … leaf[g + 1] − 1. An
    *observation* is the set of codes of a group that are consistent with a row. A *pattern* lists the groups that may
    be in (have a variable that is 1), in ascending order, and for each −1 if it is in, or the observation if that is
    uncertain. A row has a pattern, and an observation for each group that is in.
    """

    leaf: np.ndarray
    observation: np.ndarray  # offsets into `codes`
    codes: np.ndarray
    pattern: np.ndarray  # offsets into `groups` and `free`
    groups: np.ndarray
    free: np.ndarray
    row: np.ndarray  # offsets into `seen`
    seen: np.ndarray
    of_row: np.ndarray  # the pattern of every row


class Batch(NamedTuple):
    """The distinct rows of a mini-batch, how often each occurs, and their patterns.

    Patterns are sorted by size, and every eight of them form a block. The matrices of a block are packed upper
    triangles, interleaved and padded to the size of the largest. `entries` gives the position in L of each number;
    m² is a 0 and m² + 1 is a 1, for padding.
    """

    rows: np.ndarray
    counts: np.ndarray
    local: np.ndarray  # for every row, the position of its pattern in `patterns`
    patterns: np.ndarray
    start: np.ndarray  # the offset of every block's matrices
    entries: np.ndarray  # unsigned, so that Numba need not ask whether they are negative


@kernel
def gather(table, drawn, mark_row, mark_pattern, rows, counts, local, patterns, start):
    """Find the distinct rows and patterns of a mini-batch; return how many there are of each.

    `mark_row` and `mark_pattern` are scratch memory, all −1 before and after the call.
    """
    n_rows = n_patterns = 0
    found = np.empty(len(drawn), np.int64)
    of_size = np.zeros(len(table.leaf) + 1, np.int64)  # offsets of a counting sort by size
    for r in drawn:
        at = mark_row[r]
        if at >= 0:
            counts[at] += 1.0
            continue
        mark_row[r] = n_rows
        p = table.of_row[r]
        if mark_pattern[p] < 0:
            mark_pattern[p] = n_patterns
            found[n_patterns] = p
            n_patterns += 1
            of_size[table.pattern[p + 1] - table.pattern[p] + 1] += 1
        rows[n_rows], counts[n_rows] = r, 1.0
        n_rows += 1
    of_size = np.cumsum(of_size)
    for p in found[:n_patterns]:
        size = table.pattern[p + 1] - table.pattern[p]
        patterns[of_size[size]] = p
        mark_pattern[p] = of_size[size]
        of_size[size] += 1
    start[0] = 0
    for block in range((n_patterns + LANES - 1) // LANES):
        p = patterns[min(LANES * (block + 1), n_patterns) - 1]
        size = table.pattern[p + 1] - table.pattern[p]
        start[block + 1] = start[block] + LANES * (size * (size + 1) // 2)
    for i in range(n_rows):
        local[i] = mark_pattern[table.of_row[rows[i]]]
    for r in rows[:n_rows]:
        mark_row[r] = -1
        mark_pattern[table.of_row[r]] = -1
    return n_rows, n_patterns


@bare_kernel
def block_size(table, patterns, block):
    """The number of rows of the matrices of a block."""
    p = patterns[min(LANES * (block + 1), len(patterns)) - 1]
    return table.pattern[p + 1] - table.pattern[p]


@kernel
def find_entries(table, patterns, start, entries):
    """Fill `entries`: the position in L of every number of the matrices of all blocks."""
    m = len(table.leaf) - 1
    for at in range(LANES * (len(start) - 1)):
        block, lane = at // LANES, at % LANES
        size = block_size(table, patterns, block)
        first = n = 0
        if at < len(patterns):
            first, n = table.pattern[patterns[at]], table.pattern[patterns[at] + 1] - table.pattern[patterns[at]]
        for i in range(size):
            row = start[block] + lane + LANES * packed(size, i)
            for j in range(i, size):
                entry = m * m + (i == j)
                if j < n:
                    entry = table.groups[first + i] * m + table.groups[first + j]
                entries[row + LANES * j] = entry

"""Rows in chunks, on Python threads.

Kernels release the GIL, so Python threads can use all cores. Unlike Numba's threading layers, they survive a fork and
may be used by several threads at once. They are kept between calls, and a forked child starts its own. Chunks bound the
memory for any number of rows. A row's result does not depend on its chunk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from pgcc.interrupts import end_if_unwanted

# The most rows of a chunk, so that its results stay in the cache, and the most bytes of its evidence.
MOST_ROWS, _BYTES = 1 << 15, 1 << 24


def count_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def for_chunks(
    rows: int,
    columns: int,
    threads: int,
    work: Callable[[slice], None],
    most_rows: int = MOST_ROWS,
    most_bytes: int = _BYTES,
) -> None:
    """Call `work(slice)` for chunks of [0, rows); the first exception is raised here."""
    if rows == 1:
        work(slice(0, 1))
        return
    most = max(1, min(most_rows, max(32, most_bytes // max(1, columns))))
    count = -(-rows // (most * threads)) * threads  # every thread gets the same number of chunks
    size = max(1, -(-rows // max(1, count)))
    if 0 < rows <= size:
        work(slice(0, rows))
        return
    pieces = [slice(first, min(first + size, rows)) for first in range(0, rows, size)]
    if threads <= 1 or not pieces:
        _work_off(work, iter(pieces))
        return
    # The calling thread works, too, instead of waiting for others to wake up.
    rest = iter(pieces)
    others = [_pool(threads - 1).submit(_work_off, work, rest) for _ in range(min(threads, len(pieces)) - 1)]
    try:
        _work_off(work, rest)
    finally:
        for _ in rest:  # after an exception, no thread takes another piece
            pass
        failures = [other.exception() for other in others]  # waits until they are done
    for failure in failures:
        if failure is not None:
            raise failure


def _work_off(work: Callable[[slice], None], rest: Iterator[slice]) -> None:
    """Take pieces until none is left. (Threads may share a list iterator: each piece is taken by only one of them.)"""
    for piece in rest:
        end_if_unwanted()
        work(piece)


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="pgcc")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork

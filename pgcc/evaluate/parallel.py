"""Rows in chunks, on threads of Python.

Kernels release the GIL, so that threads of Python use the cores; unlike Numba's own layers they survive fork and may be
entered from several threads at once. They are kept between calls, and a forked child starts its own. Chunks bound the
memory, whatever the number of rows, and a row's result does not depend on how rows were cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

# Rows in a chunk: few enough for what is computed of them to stay in the cache, and bounded in bytes of evidence.
MOST_ROWS, _BYTES = 1 << 15, 1 << 24


def for_chunks(
    rows: int,
    columns: int,
    threads: int,
    work: Callable[[slice], None],
    most_rows: int = MOST_ROWS,
    most_bytes: int = _BYTES,
) -> None:
    """Call `work(slice)` for chunks of [0, rows); the first exception is raised here."""
    most = max(1, min(most_rows, max(32, most_bytes // max(1, columns))))
    count = -(-rows // (most * threads)) * threads  # as many for one thread as for another
    size = max(1, -(-rows // max(1, count)))
    if 0 < rows <= size:
        work(slice(0, rows))
        return
    pieces = [slice(first, min(first + size, rows)) for first in range(0, rows, size)]
    if threads <= 1 or not pieces:
        _work_off(work, iter(pieces))
        return
    # The caller takes its share, so that it does not wait for a thread to wake up.
    rest = iter(pieces)
    others = [_pool(threads - 1).submit(_work_off, work, rest) for _ in range(min(threads, len(pieces)) - 1)]
    try:
        _work_off(work, rest)
    finally:
        for _ in rest:  # after an exception nobody starts another piece
            pass
        failures = [other.exception() for other in others]  # waits for them
    for failure in failures:
        if failure is not None:
            raise failure


def _work_off(work: Callable[[slice], None], rest: Iterator[slice]) -> None:
    """Take pieces until there are none: the next piece of a list iterator is taken by one thread only."""
    for piece in rest:
        work(piece)


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="pgcc")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork

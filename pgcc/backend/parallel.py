"""Rows in chunks, on threads of Python.

Kernels release the GIL, so plain threads use the cores; unlike Numba's own layers they survive fork and may be entered
from several threads at once. They live as long as one call. Chunks bound the memory, whatever the number of rows, and a
row's result does not depend on how rows were cut.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# Rows in a chunk: few enough for what is computed of them to stay in the cache, and bounded in bytes of evidence.
_ROWS, _BYTES = 1 << 13, 1 << 24


def for_chunks(rows: int, columns: int, threads: int, work: Callable[[slice], None]) -> None:
    """Call `work(slice)` for chunks of [0, rows); the first exception is raised here."""
    size = max(32, min(_ROWS, _BYTES // max(1, columns)))
    if threads > 1:
        size = max(1, min(size, -(-rows // threads)))
    pieces = [slice(first, min(first + size, rows)) for first in range(0, rows, size)]
    if threads <= 1 or len(pieces) <= 1:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(min(threads, len(pieces))) as pool:
        for _ in pool.map(work, pieces):
            pass

"""Rows in chunks, on threads of Python.

Kernels release the GIL, so plain threads use the cores; unlike Numba's own layers they survive fork and may be entered
from several threads at once. They live as long as one call. Chunks bound the memory, whatever the number of rows, and a
row's result does not depend on how rows were cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

CHUNK = 1 << 14


def chunks(rows: int, size: int = CHUNK) -> Iterator[slice]:
    """[0, rows) cut into slices."""
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def for_chunks(rows: int, threads: int, work: Callable[[slice], None], size: int = CHUNK) -> None:
    """Call `work(slice)` for every chunk; the first exception is raised here."""
    if threads > 1 and rows > 1:
        size = max(1, min(size, -(-rows // threads)))
    pieces = list(chunks(rows, size))
    if threads <= 1 or len(pieces) <= 1:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(min(threads, len(pieces))) as pool:
        for _ in pool.map(work, pieces):
            pass

"""Say that kernels are being compiled, where somebody waits for it at a terminal."""

from __future__ import annotations

import logging
import sys
import threading
import time

from pgcc.locks import new_lock
from pgcc.progress import is_terminal

LOG = logging.getLogger("pgcc.kernels")
PATIENCE = 1.0  # seconds of compiling after which somebody at a terminal is told


class Compilation:
    """The kernels that are being compiled, each called by the one before it, and since when.

    A line on standard error says so after a second, if that is a terminal and ``PGCC_QUIET`` is not set, and another
    how long it took; the log ``pgcc.kernels`` has every kernel.

    Attributes
    ----------
    seconds : float
        How long kernels were compiled in this process, by the wall clock.
    """

    def __init__(self) -> None:
        self.seconds = self._since = 0.0
        self._lock = new_lock()
        self._began: list[tuple[str, float]] = []  # of one thread: Numba lets one at a time compile
        self._timer: threading.Timer | None = None
        self._told = False

    def begins(self, name: str) -> None:
        """The current thread begins to compile a kernel."""
        with self._lock:
            if not self._began:
                self._since = time.monotonic()
                self._timer = threading.Timer(PATIENCE, self._tell)
                self._timer.daemon = True
                self._timer.start()
            self._began.append((name, time.thread_time()))

    def ends(self, failed: bool = False) -> None:
        """The kernel that was begun last is compiled, or never will be: an error, or Ctrl-C."""
        with self._lock:
            name, began = self._began.pop()
            seconds = time.thread_time() - began
            LOG.debug("%s %s in %.1f s", "gave up" if failed else "compiled", name, seconds)
            if self._began:
                return
            self.seconds += time.monotonic() - self._since
            if self._timer is not None:
                self._timer.cancel()
            if self._told and not failed:
                _say(f"compiled {name} in {seconds:.1f} s")
            self._told = False

    @property
    def seconds_so_far(self) -> float:
        """`seconds`, with those of the kernel that is being compiled."""
        with self._lock:
            return self.seconds + (time.monotonic() - self._since if self._began else 0.0)

    def _tell(self) -> None:
        with self._lock:
            if self._began:
                self._told = True
                _say(f"compiling {self._began[0][0]} for this machine; it is kept for the next time")


def _say(text: str) -> None:
    LOG.info(text)
    if is_terminal():
        print(f"pgcc: {text}", file=sys.stderr, flush=True)


compilation = Compilation()


def search_clock() -> float:
    """Seconds by a clock that stands still while kernels are compiled.

    Searches with a time limit go by it, so that what they find does not depend on whether kernels are in the cache.
    """
    return time.monotonic() - compilation.seconds_so_far

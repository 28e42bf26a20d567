"""Say that kernels are being compiled, where somebody waits for it at a terminal."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time

LOG = logging.getLogger("pgcc.kernels")
PATIENCE = 1.0  # seconds of compiling after which somebody at a terminal is told


class Compilation:
    """The kernel that is being compiled, and since when. Kernels that it calls are compiled within that time.

    A line on standard error says so after a second, if that is a terminal and ``PGCC_QUIET`` is not set, and another
    how long it took; the log ``pgcc.kernels`` has every kernel.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began: dict[tuple[int, str], float] = {}
        self._timer: threading.Timer | None = None
        self._told = False

    def begins(self, name: str) -> None:
        """The current thread begins to compile a kernel."""
        with self._lock:
            if not self._began:
                self._timer = threading.Timer(PATIENCE, self._tell)
                self._timer.daemon = True
                self._timer.start()
            self._began[threading.get_ident(), name] = time.thread_time()

    def ends(self, name: str) -> None:
        """The kernel is compiled. What the thread began after it and never ended has failed within it."""
        with self._lock:
            thread = threading.get_ident()
            began = self._began.get((thread, name), time.thread_time())
            self._began = {at: since for at, since in self._began.items() if at[0] != thread or since < began}
            seconds = time.thread_time() - began
            LOG.debug("compiled %s in %.1f s", name, seconds)
            if not self._began:
                if self._timer is not None:
                    self._timer.cancel()
                if self._told:
                    self._told = False
                    _say(f"compiled {name} in {seconds:.1f} s")

    def _tell(self) -> None:
        with self._lock:
            if self._began:
                self._told = True
                name = min(self._began, key=lambda at: self._began[at])[1]
                _say(f"compiling {name} for this machine; it is kept for the next time")


def _say(text: str) -> None:
    LOG.info(text)
    if not os.environ.get("PGCC_QUIET") and sys.stderr is not None and sys.stderr.isatty():
        print(f"pgcc: {text}", file=sys.stderr, flush=True)


compilation = Compilation()

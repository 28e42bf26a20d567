"""Progress of long work on standard error, on a terminal only: a bar where it is known how much there is to do, and
otherwise a line that says what is being done."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

# Seconds before a bar or a line appears: shorter work shows nothing.
_DELAY = 1.0
# Held by the outermost work, with or without a bar: work inside of it shows none of its own.
_in_use = threading.Lock()


class Bar(Protocol):
    """A progress bar: it is told how far the work has come."""

    def at(self, done: int, total: int | None = None, note: str = "") -> None:
        """Report how much is done, the new total if it has changed, and a few words to show beside it."""


class Nothing:
    """A bar that shows nothing."""

    def at(self, done: int, total: int | None = None, note: str = "") -> None:
        pass


class _Tqdm:
    def __init__(self, bar: Any):
        self._bar = bar

    def at(self, done: int, total: int | None = None, note: str = "") -> None:
        if total is not None:
            self._bar.total = total
        if note:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)


@contextmanager
def progress(what: str, total: int | None, unit: str, shown: bool | None = None) -> Iterator[Bar]:
    """A bar for the work of the body, which disappears when the body ends.

    Parameters
    ----------
    what : str
        What is done: the text before the bar.
    total : int, optional
        How much there is to do, at most, if that is known.
    unit : str
        The unit of work: "epoch", "row".
    shown : bool, optional
        By default on a terminal, unless the environment variable PGCC_QUIET is set.

    Examples
    --------
    >>> with progress("counting", 3, "number", shown=False) as bar:
    ...     for i in range(3):
    ...         bar.at(i + 1)
    """
    wanted = is_terminal() if shown is None else shown
    if not _in_use.acquire(blocking=False):
        yield Nothing()
        return
    try:
        if not wanted:
            yield Nothing()
            return
        with _bar(total=total, desc=what, unit=f" {unit}", delay=_DELAY) as bar:
            yield _Tqdm(bar)
    finally:
        _in_use.release()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A line that says what the body is doing and for how long, for work of unknown length.

    Examples
    --------
    >>> with waiting("reading kernel.npy"):
    ...     pass
    """
    if not is_terminal() or not _in_use.acquire(blocking=False):
        yield
        return
    done = threading.Event()
    ticker = threading.Thread(target=_show_time, args=(what, done), daemon=True)
    try:
        ticker.start()
        yield
    finally:
        done.set()
        ticker.join()
        _in_use.release()


def _show_time(what: str, done: threading.Event) -> None:
    if done.wait(_DELAY):
        return
    with _bar(desc=what, bar_format="{desc}: {elapsed}") as line:
        while not done.wait(1.0):
            line.refresh()


def _bar(**how: Any) -> Any:
    """A bar as wide as the terminal; some say that their width is 0, on which tqdm would show nothing."""
    from tqdm import tqdm

    try:
        known = os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):
        known = False
    return tqdm(
        leave=False,
        file=sys.stderr,
        dynamic_ncols=known,
        ncols=None if known else 80,
        nrows=None if known else 24,
        **how,
    )


def is_terminal() -> bool:
    """Whether standard error is a terminal, and PGCC_QUIET is not set."""
    return not os.environ.get("PGCC_QUIET") and sys.stderr is not None and sys.stderr.isatty()

"""Ctrl-C during calls of libraries, and while files are written; and threads that end when nobody waits for them.

Python raises KeyboardInterrupt in the main thread between two of its instructions, so that a call of a library that
takes seconds holds it up. In a library there is one remedy, `interruptible`: the call is made on another thread. A
command can do better: it lets Ctrl-C end the process at once (`end_at_once`), but for the moments in which a file is
half-written (`tidily`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Seconds between two looks whether there is an interrupt.
_GLANCE = 0.1


def interruptible(function: Callable[..., Any], *args: Any) -> Any:
    """What the function returns for these arguments, or raises: an interrupt leaves it to itself.

    It runs on another thread, which starts in less than a millisecond. A function that does not release Python's lock
    holds up an interrupt all the same, and so does one that is not called by the main thread.

    >>> interruptible(divmod, 7, 2)
    (3, 1)
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    results: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function(*args))
        except BaseException as error:  # raised again below, where somebody waits for it
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_GLANCE)
    if errors:
        raise errors[0]
    return results[0]


class Stopped(BaseException):
    """Raised in a thread whose work is not wanted any more."""


class StoppableThread(threading.Thread):
    """A thread that ends soon, with `Stopped`, when `is_wanted` is set to False: at the next `end_if_unwanted`."""

    is_wanted = True


def end_if_unwanted() -> None:
    """Called between parts of long work: raises `Stopped` in a `StoppableThread` that is not wanted any more."""
    if not getattr(threading.current_thread(), "is_wanted", True):
        raise Stopped


def end_at_once() -> None:
    """From now on Ctrl-C ends the process, whatever it is doing, unless it is ignored, as by jobs in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def tidily() -> Iterator[None]:
    """In the body, Ctrl-C raises KeyboardInterrupt, even where it would end the process at once.

    >>> with tidily():
    ...     pass
    """
    is_main = threading.current_thread() is threading.main_thread()  # no other may change what a signal does
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

"""Locks that are free in a forked child, properties that are computed once, and imports that a fork waits for.

A child has only the thread that forked: a lock that another thread held at that moment would stay locked for ever.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()

# Held while Numba is imported and set up: a fork waits for it. (Python locks every module while it is imported; in a
# child, one that another thread had begun would stay locked, and half imported.)
importing = threading.RLock()
_waited, _held = [importing], list[Any]()


def fork_waits_for(lock: Any) -> None:
    """A fork waits for a lock of another library; who holds it may take `importing`, too."""
    _waited.append(lock)


def new_lock() -> Any:
    """A re-entrant lock, which is free in a forked child unless the thread that forked holds it itself.

    What it guards has to be usable between any two statements of those who hold it.

    >>> lock = new_lock()
    >>> with lock, lock:
    ...     pass
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as the one that it replaces
        """That of `functools`; its lock, which Python 3.11 has for each, is free in a forked child."""

        def __init__(self, function: Any):
            super().__init__(function)
            if hasattr(self, "lock"):
                self.lock = new_lock()


def _before_fork() -> None:
    while True:
        locks = _waited[::-1]  # `importing` last
        for lock in locks:
            lock.acquire()
        _held.extend(locks)
        if len(locks) == len(_waited):
            return
        _after_fork()  # another one has come with what was imported


def _after_fork() -> None:
    locks = _held.copy()
    _held.clear()
    for lock in locks:
        lock.release()


def _in_child() -> None:
    _after_fork()
    for lock in _locks:
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)

"""Locks that are free in a forked child.

A child has only the thread that forked: a lock that another thread held at that moment would stay locked for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


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


def _renew() -> None:
    for lock in _locks:
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

"""Where compiled kernels are kept.

``PGCC_CACHE_DIR`` if that is set, or ``NUMBA_CACHE_DIR``, or pgcc's folder in the user's folder of caches.
"""

from __future__ import annotations

import functools
import logging
import os
import stat
import sys
import tempfile
import time
from pathlib import Path

LOG = logging.getLogger("pgcc.kernels")
DAY = 86_400.0
_UNUSED_DAYS = 60.0


def folder() -> Path:
    """Where compiled kernels are kept, if that can be written (see `writable`)."""
    for variable in ("PGCC_CACHE_DIR", "NUMBA_CACHE_DIR"):
        if os.environ.get(variable):
            return Path(os.environ[variable])
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "pgcc"


@functools.cache
def writable() -> Path | None:
    """The folder, made if need be, or None where no file can be written in it or it is somebody else's.

    Compiled kernels are code: a folder in which the group or everybody may write is not read.
    """
    try:
        path = folder()
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid") and path.stat().st_uid not in (os.getuid(), 0):
            raise PermissionError(f"{path} belongs to another user")
        if hasattr(os, "getuid") and path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"others may write in {path}")
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        LOG.info("compiled kernels are not kept: %s", error)
        return None
    _delete_unused(path)
    return path


def _delete_unused(path: Path) -> None:
    """Delete kernels that nobody has loaded for two months: those of versions that are gone."""
    before = time.time() - _UNUSED_DAYS * DAY
    for file in path.glob("*.kernel"):
        try:
            if file.stat().st_mtime < before:
                file.unlink()
        except OSError:  # another process was faster
            continue


@functools.cache
def kept_kernels() -> frozenset[str]:
    """The names of the kernels that were compiled before this process asked for the first time."""
    try:
        return frozenset(file.name.rpartition("-")[0] for file in folder().glob("*.kernel"))
    except (OSError, RuntimeError):
        return frozenset()

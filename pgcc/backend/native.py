"""Running circuits on emitted source inside pgcc, with Numba's compiled code kept on disk.

Numba's disk cache wants a real file, and holds pickles: whoever can write to the directory can run code as the user. So
the directory is private: made with mode 0700, and used only if it is a real directory of the user's that nobody else
can write to. Where it is not, or cannot be made, a fresh private temporary directory takes its place for the life of
the process (with a warning if the one that was found looked unsafe): results are the same, only compile time is paid
again.

The text that runs is always the one just generated, never one read back. (Numba itself follows NUMBA_CACHE_DIR where
the user has set it.)
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pgcc.backend import templates
from pgcc.backend.source import STRAIGHT_LINE, check_range, prune, straight_line, value
from pgcc.errors import PgccError
from pgcc.lowering.program import Program

Evaluator = Callable[[np.ndarray, np.ndarray], None]

_lock = threading.RLock()
_temporary: tuple[int, Path] | None = None  # (process, directory)


def load_program(program: Program) -> Evaluator:
    """A straight-line evaluator of a homogenised program: ``evaluate(rows, out)``, out of shape results × rows.

    The results are the value and, where the program is signed, its magnitude; not divided by anything. The program is
    as `lower` makes it, without determinants and with at most `STRAIGHT_LINE` operations.
    """
    return load_module(program_source(program)).evaluate


def is_small(program: Program) -> bool:
    """Whether straight-line code can run it, and is worth its compile time."""
    in_range = np.isfinite(program.weights).all() and np.isfinite(program.leaf_table).all()
    return not program.has_det and program.operations <= STRAIGHT_LINE and bool(in_range)


def program_source(program: Program) -> str:
    """The source that `load_program` runs."""
    roots = (program.value, program.magnitude) if program.signed else (program.value,)
    program = prune(program, roots)
    if not is_small(program):
        raise PgccError(f"straight-line code is for at most {STRAIGHT_LINE} operations and no determinants")
    check_range(program)
    names = [f"z{column}" for column in range(program.n_variables)]
    slots = (program.value, program.magnitude)[: len(roots)]
    results = [f"p[{i}, k] = {value(slot)}" for i, slot in enumerate(slots)]
    evaluate = templates.STRAIGHT_EVALUATE_MANY.replace("COLUMNS", str(program.n_variables))
    return "".join(
        [
            templates.IMPORTS,
            templates.STRAIGHT_HEAD,
            straight_line(program, names, results),
            "\n",
            templates.TRANSPOSE,
            evaluate.replace("EVALUATE", "evaluate"),
        ]
    )


# -- modules ----------------------------------------------------------------------------------------------------


def load_module(source: str) -> types.ModuleType:
    """The module of some emitted source, from a file named by its hash; the same text is the same module."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:32]
    name = f"pgcc_emitted_{digest}"
    with _lock:
        module = sys.modules.get(name)
        if module is None:
            path = _write(cache_directory() / f"{name}.py", source)
            module = _execute(name, path, source)
        return module


def _execute(name: str, path: Path, source: str) -> types.ModuleType:
    """Run the text as the module `name`. Numba's cache looks for it in `sys.modules`, so it is there before."""
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _write(path: Path, source: str) -> Path:
    """Put the text there at once or not at all; a file that has it keeps its date, which Numba's cache goes by."""
    data = source.encode()
    if path.is_file() and path.read_bytes() == data:
        return path
    handle, temporary = tempfile.mkstemp(prefix=path.stem, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


# -- the directory ----------------------------------------------------------------------------------------------


def cache_directory() -> Path:
    """Where emitted source and its compiled code are kept: $PGCC_CACHE_DIR, or the user's cache directory."""
    path = _preferred_directory()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = _why_unsafe(path)
        if problem is None and os.access(path, os.W_OK | os.X_OK):
            return path
    except OSError:  # no home, a read-only disk, a file in the way: no cache, no complaint
        problem = None
    if problem is not None:
        warnings.warn(f"{path} is not used to keep compiled code: {problem}", RuntimeWarning, stacklevel=2)
    return _temporary_directory()


def _preferred_directory() -> Path:
    chosen = os.environ.get("PGCC_CACHE_DIR")
    if chosen:
        return Path(os.path.abspath(chosen))
    if os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~"))
    elif sys.platform == "darwin":
        base = Path(os.path.expanduser("~/Library/Caches"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return Path(os.path.abspath(base)) / "pgcc"


def _why_unsafe(path: Path) -> str | None:
    """What is wrong with a directory that is to hold pickles, or None."""
    if os.name == "nt":
        return None  # the profile directory is private by its access list
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        return "it is a symbolic link" if stat.S_ISLNK(found.st_mode) else "it is not a directory"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others can write to it"
    for parent in Path(os.path.realpath(path)).parents:
        mode = os.stat(parent).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everyone can replace it (in {parent})"
    return None


def _temporary_directory() -> Path:
    """One private directory per process, gone when the process ends."""
    global _temporary
    with _lock:
        if _temporary is None or _temporary[0] != os.getpid():  # a fork must not remove its parent's
            _temporary = os.getpid(), Path(tempfile.mkdtemp(prefix="pgcc-"))
            atexit.register(_remove_temporary, *_temporary)
        return _temporary[1]


def _remove_temporary(process: int, path: Path) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)

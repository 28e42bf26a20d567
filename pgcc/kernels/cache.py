"""Compiled kernels on disk: found again by what they were compiled from, never stale, never in the way.

Numba's own cache looks only at the file of a function, not at those that it calls; it fails where no folder can be
written, and for good once one of its files is damaged. Here a compiled kernel is one file. Its name is the digest of
everything that the machine code depends on: the texts of its module and of all modules of pgcc which that imports, the
types of its arguments, the processor, and the versions of Python, numpy, Numba and LLVM. So several versions of pgcc,
several environments and several processors share one folder. A file begins with the digest of its name and its content,
and appears under its name when it is complete: what does not match is deleted, and compiled anew.

Where the folder (`pgcc.kernels.folder`) cannot be written, kernels are compiled in every process.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import event

from pgcc.interrupts import tidily
from pgcc.kernels.announce import compilation
from pgcc.kernels.folder import DAY, LOG, writable
from pgcc.kernels.numba_private import Cache, can_be_kept, from_bytes, to_bytes

_FORMAT = "3"  # of the files
_POLICY = "pgcc.kernels.policy"  # its text is no part of the digest: it only chooses options, which the digest has
_IMPORT = re.compile(r"^\s*(?:from|import) (pgcc[\w.]*)(?: import (.*))?", re.MULTILINE)


class KernelCache(Cache):
    """The compiled forms of one kernel on disk, as Numba's dispatcher asks for them."""

    def __init__(self, function: Any, options: dict[str, Any]):
        self._function = function
        self._options = repr(sorted(options.items()))
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(writable())

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Nothing is kept in memory."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel compiled for these types, or None: then Numba compiles it, and `save_overload` follows."""
        path = self._path(sig, target_context.codegen())
        content = None if path is None else _read(path)
        if path is None or content is None:
            return None
        try:
            return from_bytes(target_context, content)
        except Exception as error:  # written by a Numba that calls itself by the same version
            LOG.warning("%s is compiled anew: %s", self._function.__qualname__, error)
            _delete(path)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel that was compiled for these types."""
        path = self._path(sig, data.codegen)
        if path is None or not can_be_kept(data):
            return
        try:
            _write(path, to_bytes(data))
        except OSError as error:  # no space left, or the folder is gone
            LOG.info("%s is not kept: %s", self._function.__qualname__, error)

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        home = writable() if self._enabled else None
        return None if home is None else home / f"{self.name(sig, codegen)}.kernel"

    def name(self, sig: Any, codegen: Any) -> str:
        """The name of the function, and the digest of everything that its machine code depends on."""
        modules = frozenset({self._function.__module__, *_modules_of_types(sig)})
        parts = (self._function.__qualname__, sig, codegen.magic_tuple(), self._options, sources(modules), _versions())
        digest = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
        return f"{self._function.__qualname__}-{digest[:32]}"


class _Announcer(event.Listener):
    """Tell `compilation` when Numba begins to compile a kernel, and when it ends, be it by an error or by Ctrl-C."""

    def on_start(self, event: event.Event) -> None:
        dispatcher = event.data["dispatcher"]
        if isinstance(dispatcher._cache, KernelCache):
            compilation.begins(dispatcher.py_func.__qualname__)

    def on_end(self, event: event.Event) -> None:
        dispatcher = event.data["dispatcher"]
        if isinstance(dispatcher._cache, KernelCache):
            # `is_failed` of Numba's events is true where nothing failed.
            compilation.ends(failed=tuple(event.data["args"]) not in dispatcher.overloads)


event.register("numba:compile", _Announcer())


def _modules_of_types(kinds: Any) -> Iterator[str]:
    """The modules of named tuples among the types: number systems bring the code of their operations (`walk`)."""
    for kind in kinds:
        if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
            yield kind.instance_class.__module__
        if isinstance(kind, types.BaseTuple):
            yield from _modules_of_types(kind)


@functools.cache
def _versions() -> tuple[str, ...]:
    return (_FORMAT, platform.python_version(), np.__version__, numba.__version__, llvmlite.__version__)


@functools.cache
def sources(modules: frozenset[str]) -> str:
    """The digest of the texts of these modules and of all modules of pgcc that they import, directly or not."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _text(module)[1]
    return hashlib.sha256("".join(f"{name} {_text(name)[0]}\n" for name in sorted(found)).encode()).hexdigest()


@functools.cache
def _text(module: str) -> tuple[str, tuple[str, ...]]:
    """The digest of a module's text, and the modules of pgcc that it names in its imports."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_data") or spec.origin is None:
        return "no text", ()
    data = spec.loader.get_data(spec.origin)
    named = set()
    for package, names in _IMPORT.findall(data.decode()):
        named.add(package)
        for name in re.findall(r"\w+", names or ""):
            if package in sys.modules and f"{package}.{name}" in sys.modules:
                named.add(f"{package}.{name}")
    return hashlib.sha256(data).hexdigest(), tuple(named - {"pgcc", _POLICY})


def _read(path: Path) -> bytes | None:
    """The content of a file whose digest is right. One that is damaged, or another kernel's, is deleted."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, content = data[:32], data[32:]
    if _digest(path, content) != digest:
        LOG.warning("%s is damaged: it is deleted, and the kernel compiled anew", path)
        _delete(path)
        return None
    if time.time() - path.stat().st_mtime > DAY:
        os.utime(path)
    return content


def _digest(path: Path, content: bytes) -> bytes:
    """The digest of what a kernel was compiled to, and of the name that says from what (see `KernelCache.name`)."""
    return hashlib.sha256(path.name.encode() + b"\n" + content).digest()


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears when it is complete, whoever else writes it at the same time."""
    with tidily():
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(path, content) + content)
            os.replace(name, path)
        except BaseException:
            _delete(Path(name))
            raise


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        LOG.info("%s cannot be deleted: %s", path, error)

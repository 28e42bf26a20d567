"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO

try:
    import fcntl
except ImportError:  # not on Windows, where drafts of killed processes stay
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the body ends without an error.

    It is written beside `path` under another name, forced to the disk and then renamed, which is atomic. Drafts that
    killed processes have left of the same file are removed. What is not a regular file cannot be replaced: a pipe or a
    character device (/dev/null) is written into when all is known, and anything else is refused with an `OSError`.
    """
    if _is_stream(path):
        content = BytesIO()
        yield content
        with open(path, "wb", buffering=0) as stream:
            _write_all(stream, content.getbuffer())
        return
    target = Path(os.path.realpath(path))  # a link stays a link, to the new content
    prefix = f".{target.name[:100]}."
    _remove_abandoned(target.parent, prefix)
    draft = target.with_name(f"{prefix}{secrets.token_hex(8)}.tmp")
    try:
        with _locked(draft) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, draft)
            if fcntl is None:
                file.close()  # Windows renames no file that is open
            os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def is_replaceable(path: str | os.PathLike[str]) -> bool:
    """Whether writing replaces what is there, or makes a file where nothing is: not so of pipes and devices."""
    return not _is_stream(Path(path))


def _is_stream(path: Path) -> bool:
    """Whether it is a pipe or a character device; OSError for a folder, a disk or a socket."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(0, f"it is a {'disk' if stat.S_ISBLK(mode) else 'socket'}, not a file")
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _write_all(stream: IO[bytes], content: memoryview) -> None:
    while content:
        content = content[stream.write(content) :]


def _locked(draft: Path) -> BinaryIO:
    """A new file that is locked as long as it is open: what nobody has locked is abandoned."""
    while True:
        file = open(draft, "xb")  # noqa: SIM115 (the caller closes it)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks, on which nobody removes anything
                fcntl.flock(file, fcntl.LOCK_EX)
        if fcntl is None or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # removed by somebody else before it was locked


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove the drafts whose writers were killed."""
    if fcntl is None:
        return
    with suppress(OSError):
        is_draft = re.compile(re.escape(prefix) + r"[0-9a-f]{16}\.tmp").fullmatch
        for draft in (folder / name for name in os.listdir(folder) if is_draft(name)):
            with suppress(OSError), open(draft, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink()

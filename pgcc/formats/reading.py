"""What every format reads files with: names that are checked, and no more bytes than a limit."""

from __future__ import annotations

import math
import os
import stat
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pgcc.errors import FormatError
from pgcc.formats.damage import DAMAGE, reason_of

# The most bytes of a file; and of a pipe or a device, which may never end and does not say how long it is.
MOST_BYTES, MOST_STREAMED = 1 << 30, 1 << 27
_PIECE = 1 << 20


def as_path(path: Any, what: str = "the name of a file") -> Path:
    """The path that was given, if it can be one.

    >>> as_path(3)
    Traceback (most recent call last):
    pgcc.errors.FormatError: the name of a file is text or a path, not 3
    """
    try:
        name = os.fsdecode(path)
    except (TypeError, UnicodeError):
        raise FormatError(f"{what} is text or a path, not {repr(path)[:60]}") from None
    if "\0" in name:
        raise FormatError(f"{name!r} cannot be the name of a file")
    return Path(name)


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """All of a file; FormatError if that is more than `most` bytes, before they are in memory."""
    with open(path, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            most = min(most, MOST_STREAMED)
        elif status.st_size > most:
            raise _too_long(path, most)
        try:
            data = bytearray()
            while piece := file.read(_PIECE):
                data += piece
                if len(data) > most:
                    raise _too_long(path, most)
            return bytes(data)
        except MemoryError:
            raise FormatError(f"{path} does not fit into memory") from None


def _too_long(path: Path, most: int) -> FormatError:
    return FormatError(f"{path} has more than {most:,} bytes, which is the limit")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """All of a text file in UTF-8, without a byte order mark; FormatError names the line that is not."""
    data = read_bytes(path, most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{path}, line {line}: this is not text in UTF-8 ({error.reason} at byte {error.start})"
        ) from None


def array_in(data: bytes, where: str) -> np.ndarray:
    """An array in the format of numpy, without a copy; memory is taken for what is there, not for what is claimed.

    Nothing is unpickled: an array of objects has no bytes of its own, and is refused.
    """
    stream = BytesIO(data)
    try:
        shape, by_columns, dtype = read_array_header(stream)
    except DAMAGE as error:
        raise FormatError(f"{where} is damaged, or not an array in the format of numpy: {reason_of(error)}") from None
    if dtype.hasobject:
        raise FormatError(f"{where} holds {dtype}, not numbers: pickles are not read")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise FormatError(f"{where} is cut off or too long: it claims to have the shape {shape}")
    if max(shape, default=0) > len(data) or not dtype.itemsize:  # nothing says how many they are but the claim
        raise FormatError(f"{where} has no entries that take a byte, and claims to have the shape {shape}")
    return np.frombuffer(data, dtype=dtype, offset=stream.tell()).reshape(shape, order="F" if by_columns else "C")


def read_array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type of the array that follows; one of `DAMAGE` if there is none."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the format is not known")
    return readers[version](file)

"""Input and output that all file formats share: bounded reading, UTF-8 text, CSV, numpy arrays, atomic writing.

Nothing here knows what a circuit is. Readers raise an error that names the file and, in text, the line; they take
memory for the bytes that are there, not for the sizes that a header claims, however they are packed (`.gz`, `.npz`);
and they unpickle nothing.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
import re
import secrets
import shutil
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pgcc.errors import FormatError, PgccError
from pgcc.interrupts import tidily
from pgcc.ir.numbers import Number

try:
    import fcntl
except ImportError:  # Windows has no file locks: temporary files of killed processes stay there
    fcntl = None  # type: ignore[assignment]

# The most bytes of a regular file; and of a pipe or a device, which may never end and does not say how long it is.
MOST_BYTES, MOST_STREAMED = 1 << 30, 1 << 27
# The most characters of a line, in files that are read line by line.
LONGEST_LINE = 1 << 24
# An archive of b bytes that claims to hold more than this is not unpacked: a zip can claim a thousand times its size.
MIN_UNPACKED, MOST_UNPACKED_RATIO = 1 << 26, 100
_CHUNK = 1 << 20

# What decoding a damaged file can raise: zip archives, arrays in numpy's format (whose header is Python text) and JSON.
# (MemoryError: a damaged length.)
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    LookupError,
    struct.error,
    EOFError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TypeError,
    MemoryError,
    tokenize.TokenError,
)


def reason_of(error: BaseException) -> str:
    """The first line of an error's message, or the name of its class.

    >>> reason_of(EOFError()), reason_of(ValueError("two\\nlines"))
    ('EOFError', 'two')
    """
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def shown(text: str) -> str:
    """Text of a file, quoted and shortened for an error message."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


@contextmanager
def errors_in(path: Path) -> Iterator[None]:
    """What is wrong in the body is an error of this file."""
    try:
        yield
    except PgccError as error:
        raise FormatError(f"{path}: {error}") from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What the system says in the body is a FormatError about this file, or another one that belongs to it."""
    try:
        yield
    except FileNotFoundError as error:
        raise FormatError(f"{error.filename or path}: there is no such file") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None


# -- bytes -------------------------------------------------------------------------------------------------------------


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
    """All of a file; FormatError if it has more than `most` bytes, before they are in memory."""
    with open(path, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            most = min(most, MOST_STREAMED)
        elif status.st_size > most:
            raise _too_long(path, most)
        data = _read_all(file, most, path)
    if path.suffix.lower() != ".gz":
        return data
    try:
        return _read_all(
            gzip.GzipFile(fileobj=BytesIO(data)), min(most, most_unpacked(len(data))), f"{path}, unpacked,"
        )
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path} is damaged, or not packed by gzip: {reason_of(error)}") from None


def _read_all(stream: Any, most: int, what: object) -> bytes:
    """All that a file or an unpacker gives, a piece at a time; FormatError as soon as it is too much."""
    data = bytearray()
    try:
        while chunk := stream.read(_CHUNK):
            data += chunk
            if len(data) > most:
                raise _too_long(what, most)
        return bytes(data)
    except MemoryError:
        raise FormatError(f"{what} does not fit into memory") from None


def _too_long(what: object, most: int) -> FormatError:
    return FormatError(f"{what} has more than {most:,} bytes, which is the limit")


def most_unpacked(size: int) -> int:
    """How many bytes a packed file may hold."""
    return max(MIN_UNPACKED, MOST_UNPACKED_RATIO * size)


def unpacked_name(path: Path) -> Path:
    """The name of a file without `.gz`.

    >>> unpacked_name(Path("alarm.uai.gz")).suffix
    '.uai'
    """
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


# -- text --------------------------------------------------------------------------------------------------------------


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """All of a text file in UTF-8, without its byte order mark; FormatError names the line that is not UTF-8."""
    data = read_bytes(path, most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"{error.reason} at byte {error.start}"
        raise FormatError(f"{path}, line {_line_of(error)}: this is not text in UTF-8 ({place})") from None


def _line_of(error: UnicodeDecodeError) -> int:
    """The line that is not UTF-8, counted from 1 in the bytes that were being decoded."""
    return error.object.count(b"\n", 0, error.start) + 1


def bounded_lines(lines: Iterable[str], where: str, error: type[PgccError] = FormatError) -> Iterator[str]:
    """The lines of a text file that is open, without its byte order mark, none longer than `LONGEST_LINE`.

    Parameters
    ----------
    lines : text file, or other iterable of lines
        Of the latter the length is not checked: they are in memory already.
    where : str
        The name of the file, for messages.
    error : class
        What to raise for a line that is too long, or not UTF-8.
    """
    readline = getattr(lines, "readline", None)
    source = iter(lines) if readline is None else iter(lambda: readline(LONGEST_LINE + 1), "")
    number = 0
    try:
        for number, line in enumerate(source, start=1):
            if readline is not None and len(line) > LONGEST_LINE:
                raise error(f"{where}, line {number}: more than {LONGEST_LINE:,} characters, which is the limit")
            yield line if number > 1 else line.removeprefix("\ufeff")
    except UnicodeDecodeError as reason:  # in bytes that begin on the line after the last one that was read
        line_number = number + _line_of(reason)
        raise error(f"{where}, line {line_number}: this is not text in UTF-8 ({reason.reason})") from None


def separator_of(line: str = "") -> str:
    """What separates the cells of a line of CSV: a comma or, where there is none outside quotes, a semicolon or a tab.

    >>> separator_of("a;b"), separator_of('"a;b",c'), separator_of("a")
    (';', ',', ',')
    """
    unquoted = re.sub(r'"[^"]*+"', "", line)
    return next((mark for mark in ",;\t" if mark in unquoted), ",")


def csv_rows(
    lines: Iterable[str],
    where: str,
    *,
    lines_before: int = 0,
    error: type[PgccError] = FormatError,
    delimiter: str = ",",
    skipinitialspace: bool = False,
    strict: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every row of CSV that is not blank.

    Parameters
    ----------
    lines : iterable of str
    where : str
        The name of the file, for messages.
    lines_before : int
        How many lines of the file were read before these.
    error : class
        What to raise for text that is not CSV.
    delimiter, skipinitialspace, strict
        As for `csv.reader`.

    Examples
    --------
    >>> list(csv_rows(["a,b\\n", "\\n", "1,0\\n"], "x.csv"))
    [(1, ['a', 'b']), (3, ['1', '0'])]
    """
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=skipinitialspace, strict=strict)
    try:
        for cells in reader:
            if cells:
                yield lines_before + reader.line_num, cells
    except csv.Error as reason:
        raise error(f"{where}, line {lines_before + reader.line_num}: not CSV: {reason}") from None


# -- numbers -----------------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}+", re.ASCII)
_FRACTION = re.compile(r"[+-]?[0-9]{1,4000}+/[0-9]{1,4000}+", re.ASCII)
# What was matched is never tried in another way (++), which would take quadratic time.
DECIMAL = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,9}+)?", re.ASCII)


def number_in(word: str) -> Number | None:
    """A whole number or a fraction, exactly; a decimal, as a float; None if it is neither.

    >>> number_in("7"), number_in("1/4"), number_in("2.5e-1"), number_in("nan"), number_in("1/0")
    (7, Fraction(1, 4), 0.25, None, None)
    """
    if _INTEGER.fullmatch(word):
        return int(word)
    if _FRACTION.fullmatch(word):
        p, q = map(int, word.split("/"))
        return Fraction(p, q) if q else None
    if DECIMAL.fullmatch(word):
        value = float(word)
        return value if math.isfinite(value) else None
    return None


# -- arrays in numpy's formats -----------------------------------------------------------------------------------------


def read_array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is in Fortran order, and type of the .npy array that follows; one of `DAMAGE` if none does."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the format is not known")
    shape, columns_first, kind = readers[version](file)
    if not all(type(length) is int for length in shape):  # numpy takes True for a length
        raise ValueError(f"{shape} is not a shape")
    return shape, columns_first, kind


def array_in(data: bytes, where: str) -> np.ndarray:
    """The array in the bytes of a .npy file, without a copy.

    An array of objects would be a pickle, and is refused.
    """
    stream = BytesIO(data)
    try:
        shape, is_fortran, dtype = read_array_header(stream)
    except DAMAGE as error:
        raise FormatError(f"{where} is damaged, or not an array in the format of numpy: {reason_of(error)}") from None
    if dtype.hasobject:
        raise FormatError(f"{where} holds {dtype}, not numbers: pickles are not read")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise FormatError(f"{where} is cut off or too long: it claims to have the shape {shape}")
    if max(shape, default=0) > len(data) or not dtype.itemsize:  # of empty entries, only the claim says how many
        raise FormatError(f"{where} has no entries that take a byte, and claims to have the shape {shape}")
    return np.frombuffer(data, dtype=dtype, offset=stream.tell()).reshape(shape, order="F" if is_fortran else "C")


class Archive:
    """The arrays in the bytes of an `.npz` file, each unpacked when it is asked for.

    Attributes
    ----------
    entries : dict
        What the archive says of each array, by its name.

    Raises
    ------
    FormatError
        If it is no zip, is compressed by another method than deflate, or claims to hold far more than its file can.
    """

    def __init__(self, data: bytes):
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
            self.entries = {entry.filename.removesuffix(".npy"): entry for entry in self._zip.infolist()}
        except DAMAGE as error:
            raise FormatError(f"it is damaged, or not in the .npz format: {reason_of(error)}") from None
        if any(e.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for e in self._zip.infolist()):
            raise FormatError("it uses an unknown compression")
        claimed = sum(entry.file_size for entry in self._zip.infolist())
        if claimed > most_unpacked(len(data)):
            raise FormatError(f"{len(data):,} bytes that claim to be {claimed:,} are refused")

    def part(self, prefix: str) -> Archive:
        """The arrays whose names have a prefix, by the rest of their names."""
        found = copy(self)
        found.entries = {
            name.removeprefix(prefix): entry for name, entry in self.entries.items() if name.startswith(prefix)
        }
        return found

    def array(self, name: str) -> np.ndarray:
        """One array."""
        try:
            with self._zip.open(self.entries[name]) as stream:  # which ends where the entry claims to
                data = _read_all(stream, self.entries[name].file_size, f"the array {name!r}")
        except DAMAGE as error:
            raise FormatError(f"the array {name!r} is damaged: {reason_of(error)}") from None
        return array_in(data, f"the array {name!r}")


# -- writing files that appear whole or not at all ---------------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the body ends without an error.

    A temporary file beside `path` is written, forced to the disk and then renamed, which is atomic. Temporary files
    that killed processes have left of the same `path` are removed. A pipe or a character device (/dev/null) cannot be
    replaced: it is written into when the body has ended. Anything else that is not a regular file is refused with an
    `OSError`.
    """
    if not is_replaceable(path):
        content = BytesIO()
        yield content
        path.write_bytes(content.getvalue())
        return
    target = Path(os.path.realpath(path))  # a symbolic link stays one, and shows the new content
    prefix = f".{target.name[:100]}."
    _remove_abandoned(target.parent, prefix)
    temporary = target.with_name(f"{prefix}{secrets.token_hex(8)}.tmp")
    try:
        with tidily(), _locked(temporary) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            if fcntl is None:
                file.close()  # Windows renames no file that is open
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """`replacing` for a file that a user has named: if it cannot be written, a `FormatError` says so."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise FormatError(f"{path} cannot be written: {error.strerror or error}") from None


def is_replaceable(path: str | os.PathLike[str]) -> bool:
    """Whether writing replaces the file or makes a new one, as with everything but pipes and character devices.

    OSError for a disk or a socket.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return True
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(0, f"it is a {'disk' if stat.S_ISBLK(mode) else 'socket'}, not a file")
    return not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode))


def _locked(path: Path) -> BinaryIO:
    """A new file that is locked as long as it is open: a temporary file without a lock is abandoned."""
    while True:
        file = open(path, "xb")  # noqa: SIM115 (the caller closes it)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks, on which no temporary file is removed
                fcntl.flock(file, fcntl.LOCK_EX)
        if fcntl is None or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another process removed it before it was locked


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove the temporary files whose writers were killed."""
    if fcntl is None:
        return
    with suppress(OSError):
        is_temporary = re.compile(re.escape(prefix) + r"[0-9a-f]{16}\.tmp").fullmatch
        for path in (folder / name for name in os.listdir(folder) if is_temporary(name)):
            with suppress(OSError), open(path, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):  # and not a new file of that name
                    path.unlink()

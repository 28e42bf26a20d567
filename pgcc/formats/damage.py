"""What reading a damaged file can raise."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib

# Of zips, arrays in the format of numpy, whose header is Python text, and JSON. (MemoryError: a damaged length.)
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
    """One line of what it says.

    >>> reason_of(EOFError()), reason_of(ValueError("two\\nlines"))
    ('EOFError', 'two')
    """
    return (str(error).splitlines() or [type(error).__name__])[0][:200]

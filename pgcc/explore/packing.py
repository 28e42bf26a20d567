"""Arrays as text inside a web page: bytes grouped by significance, compressed by zlib, and encoded in base64.

Bytes of the same significance resemble each other (the high bytes of small integers are 0, and the exponents of weights
are similar), so the grouped bytes compress well. `decode.js` reverses this.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

_KINDS = ("uint8", "int32", "float64")


def pack(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Named arrays as a JSON object: a list of what it contains, and the bytes.

    Examples
    --------
    >>> packed = pack({"start": np.array([0, 2, 5], np.int32)})
    >>> packed["arrays"]
    [['start', 'int32', 3]]
    >>> list(zlib.decompress(base64.b64decode(packed["bytes"])))
    [0, 2, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    listed, parts = [], []
    for name, array in arrays.items():
        kind = str(array.dtype)
        if kind not in _KINDS:
            raise TypeError(f"{name}: arrays of {kind} are not packed")
        listed.append([name, kind, array.size])
        parts.append(_planes(array.ravel()))
    return {"arrays": listed, "bytes": base64.b64encode(zlib.compress(b"".join(parts), 9)).decode("ascii")}


def _planes(array: np.ndarray) -> bytes:
    """All lowest bytes, then all next ones, …"""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(-1, array.itemsize).T.tobytes()

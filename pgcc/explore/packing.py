"""Arrays as text inside a web page: compressed by zlib, and encoded in base64. `decode.js` reverses this."""

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
    [0, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0]
    """
    listed, parts = [], []
    for name, array in arrays.items():
        kind = str(array.dtype)
        if kind not in _KINDS:
            raise TypeError(f"{name}: arrays of {kind} are not packed")
        listed.append([name, kind, array.size])
        parts.append(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return {"arrays": listed, "bytes": base64.b64encode(zlib.compress(b"".join(parts), 9)).decode("ascii")}

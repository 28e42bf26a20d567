"""Numbers as the page has them: scaled, and as text; `scaled.js` and `decode.js` are the other side."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgcc.ir.numbers import Number
from pgcc.ir.scaled_numbers import split_numbers

_KINDS = ("uint8", "int32", "float64")


def pack(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Named arrays as a JSON object: a list of what it contains, and the bytes, compressed by zlib and in base64.

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


def as_scaled(numbers: Sequence[Number]) -> tuple[np.ndarray, np.ndarray]:
    """Mantissas and exponents of numbers m·2^(64·e) with 2⁻³² ≤ |m| < 2³²; those of 0 are 0.

    Examples
    --------
    >>> m, e = as_scaled([0.5, 2**3000, 0])
    >>> m.tolist(), e.tolist()
    ([0.5, 0.00390625, 0.0], [0, 47, 0])
    """
    mantissa, exponent = split_numbers(numbers, 64)
    return mantissa, np.where(mantissa == 0.0, 0, exponent).astype(np.int32)

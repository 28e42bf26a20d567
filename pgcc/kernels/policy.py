"""How every kernel is compiled: one policy, in one place.

Without a compiler (NUMBA_DISABLE_JIT=1) kernels are Python functions, in the same arithmetic: nothing is said where a
number leaves its range.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np
from numba import njit
from numba.core import config

UNCOMPILED: bool = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]
# nogil: Python threads run kernels side by side, which survives fork and concurrent calls, unlike Numba's own.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": False}


def kernel(function: Any) -> Any:
    """Compile a function over arrays when it is first called."""
    return _compiled(function)


def bare_kernel(function: Any) -> Any:
    """The same for functions that allocate nothing and are called often: references to their arrays are not counted."""
    return _compiled(function, _nrt=False)


def inlined_kernel(function: Any) -> Any:
    """The same, compiled into its callers: passing an array takes seven words, more than a small matrix is worth."""
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Any, **more: Any) -> Any:
    if UNCOMPILED:
        return _uncompiled(function)
    return njit(**{**OPTIONS, **more})(function)


def _uncompiled(function: Any) -> Any:
    @wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return run

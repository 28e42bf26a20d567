"""How every kernel is compiled: one policy, in one place."""

from __future__ import annotations

from typing import Any

from numba import njit

# nogil: Python threads run kernels side by side, which survives fork and concurrent calls, unlike Numba's own.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": False}


def kernel(function: Any) -> Any:
    """Compile a function over arrays when it is first called."""
    return njit(**OPTIONS)(function)


def bare_kernel(function: Any) -> Any:
    """The same for functions that allocate nothing and are called often: references to their arrays are not counted."""
    options: Any = {**OPTIONS, "_nrt": False}
    return njit(**options)(function)


def inlined_kernel(function: Any) -> Any:
    """The same, compiled into its callers: passing an array takes seven words, more than a small matrix is worth."""
    options: Any = {**OPTIONS, "_nrt": False, "forceinline": True}
    return njit(**options)(function)

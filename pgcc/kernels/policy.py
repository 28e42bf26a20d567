"""How every kernel is compiled: one policy, in one place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# nogil: Python threads run kernels side by side, which survives fork and concurrent calls, unlike Numba's own.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}


class Kernel:
    """A function over arrays that Numba compiles when it is first called, or loads as it was compiled before.

    Numba itself is imported no sooner than that. In the code of other kernels a kernel stands for its dispatcher, as
    any function that Numba compiles.

    Attributes
    ----------
    py_func : the function itself, to be stepped through
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What Numba makes of the function."""
        from numba import config, njit

        if config.DISABLE_JIT:
            return self.py_func
        from pgcc.kernels.cache import KernelCache

        dispatcher = njit(**self.options)(self.py_func)
        dispatcher._cache = KernelCache(self.py_func, self.options)
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)

    def __repr__(self) -> str:
        return f"<kernel {self.py_func.__module__}.{self.py_func.__qualname__}>"


def kernel(function: Any) -> Any:
    """Compile a function over arrays when it is first called."""
    return Kernel(function, OPTIONS)


def bare_kernel(function: Any) -> Any:
    """The same for functions that allocate nothing and are called often: references to their arrays are not counted."""
    return Kernel(function, {**OPTIONS, "_nrt": False})


def inlined_kernel(function: Any) -> Any:
    """The same, compiled into its callers: passing an array takes seven words, more than a small matrix is worth."""
    return Kernel(function, {**OPTIONS, "_nrt": False, "forceinline": True})

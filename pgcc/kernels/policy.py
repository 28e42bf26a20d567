"""How every kernel is run: compiled by Numba under one policy, or by Python where there is little to do.

Compiling takes seconds, and importing Numba half of one. So small work is *interpreted*: inside of ``with tier(work)``
kernels that are not compiled yet run as the Python functions that they are, in the same arithmetic, until that has
taken as long as compiling them would, or loading them if they were compiled before (`Patience`).
``PGCC_TIER=compiled`` or ``interpreted`` decides it for all work; ``NUMBA_DISABLE_JIT=1`` interprets, too.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from pgcc.kernels.folder import kept_kernels
from pgcc.locks import cached_property, importing, new_lock

# nogil: Python threads run kernels side by side, which survives fork and concurrent calls, unlike Numba's own.
# no_cfunc_wrapper: nobody calls a kernel from C; the wrapper for it would take a tenth of the time to compile a kernel.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False, "no_cfunc_wrapper": True}
TIERS = ("auto", "compiled", "interpreted")
# Functions that tell Numba about our operations, before it compiles the first kernel.
_registrations: list[Callable[[], None]] = []
_making = new_lock()


class _Tier(threading.local):
    """The work that this thread is doing, in multiplications; and whether kernels are called by an interpreted one."""

    work = math.inf
    inside = False


_tier = _Tier()
_chosen = "interpreted" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else os.environ.get("PGCC_TIER", "auto")
_seconds = 0.0  # of interpretation, in all threads
_checks_types = False  # whether `Kernel.call_alike` looks at the types all the same, as it does in the tests


def choose_tier(name: str) -> str:
    """Interpret kernels "interpreted": always, "compiled": never, "auto": for small work. Returns the choice before."""
    global _chosen
    assert name in TIERS
    before, _chosen = _chosen, name
    return before


def check_types(check: bool) -> None:
    """Whether `Kernel.call_alike` makes sure that its callers keep their promise."""
    global _checks_types
    _checks_types = check


class Patience(NamedTuple):
    """How much is interpreted: multiplications at a time, of 1 to 10 µs each, and seconds altogether."""

    work: float
    seconds: float


# About as much as it takes to load a kernel that was compiled before, and to compile one.
TO_LOAD, TO_COMPILE = Patience(5_000, 1.0), Patience(50_000, 10.0)


def seconds_interpreted() -> float:
    """How long kernels were interpreted in this process."""
    return _seconds


class tier:  # noqa: N801 - it reads as a statement: with tier(work)
    """Interpret kernels where this much work is to be done, in multiplications, if that is little."""

    __slots__ = ("_before", "_work")

    def __init__(self, work: float):
        self._work = work

    def __enter__(self) -> None:
        self._before = _tier.work
        _tier.work = self._work

    def __exit__(self, *error: object) -> None:
        _tier.work = self._before


class Kernel:
    """A function over arrays that Numba compiles when it is first called, or loads as it was compiled before.

    Numba itself is imported no sooner than that. What becomes a part of other kernels is compiled without a wrapper
    for callers in Python, which takes 8 % of the time to compile a kernel.

    Attributes
    ----------
    py_func : the function itself, to be interpreted or stepped through
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], separate: bool = False):
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self._separate = separate
        self._dispatcher: Any = None
        self._entry: Any = None  # the machine code for arguments of the only types of `call_alike`

    @property
    def dispatcher(self) -> Any:
        """What Numba makes of the function for callers in Python."""
        if self._dispatcher is None:
            with _making:  # one for all threads, when everything is registered
                if self._dispatcher is None:
                    self._dispatcher = _make_dispatcher(self.py_func, self.options)
        return self._dispatcher

    @cached_property
    def _numba_type_(self) -> Any:
        """What the kernel is in the code of another."""
        from pgcc.kernels.numba_private import KernelType, SeparateKernelType

        if self._separate:
            return SeparateKernelType(self._inner_dispatcher)
        if self.options.get("forceinline", False):  # small, and faster for a literal
            return self._inner_dispatcher._numba_type_
        return KernelType(self._inner_dispatcher)

    @cached_property
    def _inner_dispatcher(self) -> Any:
        """What Numba makes of the function for other kernels."""
        if self._separate:
            return self.dispatcher
        return _make_dispatcher(self.py_func, {**self.options, "no_cpython_wrapper": True})

    def __call__(self, *args: Any) -> Any:
        if self._is_interpreted():
            return self._interpret(args)
        return self.dispatcher(*args)

    def call_alike(self, *args: Any) -> Any:
        """The same, for callers that pass arguments of the same types in every call; for no other callers.

        At every call, Numba looks at the type of each argument, down to the arrays in named tuples, to find the machine
        code for them. For the programs of the float64 engine that takes 8 µs, longer than a row of a small circuit.
        Here it is found once.
        """
        if self._is_interpreted():
            return self._interpret(args)
        if self._entry is None or _checks_types:
            self._entry = self._only_entry(args)
        return self._entry(*args)

    def _is_interpreted(self) -> bool:
        return _tier.inside or _chosen == "interpreted" or (self._dispatcher is None and self._is_small_work())

    def _is_small_work(self) -> bool:
        """Whether interpreting the present work takes less time than loading or compiling this kernel."""
        patience = TO_LOAD if self.py_func.__qualname__ in kept_kernels() else TO_COMPILE
        return _chosen == "auto" and _tier.work <= patience.work and _seconds < patience.seconds

    def _only_entry(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        dispatcher = self.dispatcher
        from pgcc.kernels.numba_private import entry_point

        found = entry_point(dispatcher, args)
        assert self._entry in (None, found), f"{self!r} was called with arguments of other types than before"
        return found

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        global _seconds
        if _tier.inside:
            return self.py_func(*args)
        began = perf_counter()
        _tier.inside = True
        try:
            with np.errstate(all="ignore"):
                return self.py_func(*args)
        finally:
            _tier.inside = False
            _seconds += perf_counter() - began

    def __repr__(self) -> str:
        return f"<kernel {self.py_func.__module__}.{self.py_func.__qualname__}>"


def kernel(function: Any) -> Any:
    """Compile a function over arrays when it is first called."""
    return Kernel(function, OPTIONS)


def separate_kernel(function: Any) -> Any:
    """The same for large functions that others call: compiled once, and called at their address."""
    return Kernel(function, OPTIONS, separate=True)


def bare_kernel(function: Any) -> Any:
    """The same for functions that allocate nothing and are called often: references to their arrays are not counted."""
    return Kernel(function, {**OPTIONS, "_nrt": False})


def inlined_kernel(function: Any) -> Any:
    """The same for small functions, inlined into their callers: a call passes seven words for every array, which takes
    longer than the work on a small matrix."""
    return Kernel(function, {**OPTIONS, "_nrt": False, "forceinline": True})


def before_compiling(register: Callable[[], None]) -> Callable[[], None]:
    """Call this function, which tells Numba what functions of its module mean, before a kernel is compiled."""
    _registrations.append(register)
    return register


def _make_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    with importing:
        from numba import njit

        from pgcc.kernels.cache import KernelCache
        from pgcc.kernels.numba_private import keep

        while _registrations:
            _registrations.pop()()
        return keep(njit(**options)(function), KernelCache(function, options))

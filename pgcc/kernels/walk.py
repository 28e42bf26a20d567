"""The one walk over the instructions of a program, for all number systems but float64.

A number system is a named tuple of the arrays that it computes in, together with its `Operations`. Numba compiles the
walk once for each number system, and calls its operations directly; an interpreted walk looks them up in a table. If
operations are few and large, or seldom run, the number system can be any Python class (`walk_in_python`). The float64
engine has a walk of its own, for speed (`pgcc.rings.float64.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pgcc.kernels.policy import OPTIONS, before_compiling, kernel
from pgcc.program.program import DET, DETBAR, DETMAG, LEAF, LOOKUP, PAIR, SUM, TIMES, Code


class Instructions(NamedTuple):
    """The instructions of a program (see `Code`)."""

    op: np.ndarray
    target: np.ndarray
    start: np.ndarray
    args: np.ndarray
    first_weight: np.ndarray


def complete(system, i, at):
    """The operations `end_product` and `end_sum` of number systems in which nothing is left to do at the end."""


def no_determinant(system, i, at, op, args):
    """The operation `determinant` of number systems that have none."""
    raise ValueError("a determinant is no operation of this number system")


def no_table(system, at, op, number):
    """The operation `table` of number systems that do not run the fast form of programs."""
    raise ValueError("a table is no operation of this number system")


class Operations(NamedTuple):
    """The operations of a number system. `at` is the slot that instruction i writes.

    The last four may be left out. Only `determinant` may allocate memory.

    Attributes
    ----------
    leaf : (system, i, at, leaf)
        Put the leaf with this number.
    one : (system, i, at)
        Put 1: a product begins.
    times : (system, at, x)
        Multiply by slot x.
    zero : (system, i, at)
        Put 0: a sum begins.
    add : (system, at, k, x)
        Add weight number k times slot x.
    add_product : (system, at, k, x, y)
        Add weight number k times slots x and y.
    end_product, end_sum : (system, i, at)
        The product or sum is complete.
    determinant : (system, i, at, op, args)
        Put a DET, DETMAG or DETBAR with these arguments.
    table : (system, at, op, table)
        Put an entry of the PAIR or LOOKUP table with this number.
    """

    leaf: Callable[..., None]
    one: Callable[..., None]
    times: Callable[..., None]
    zero: Callable[..., None]
    add: Callable[..., None]
    add_product: Callable[..., None]
    end_product: Callable[..., None] = complete
    end_sum: Callable[..., None] = complete
    determinant: Callable[..., None] = no_determinant
    table: Callable[..., None] = no_table


_KNOWN: dict[type, Operations] = {}


def number_system(kind: type, operations: Operations) -> None:
    """Register the operations of a number system. To be compiled, its class must be one of named tuples."""
    _KNOWN[kind] = operations


def instructions_of(program: Code) -> Instructions:
    """The instructions of a program, for a walk."""
    return Instructions(program.op, program.target, program.start, program.args, program.first_weight)


def leaf(system: Any, i: int, at: int, number: int) -> None:
    """See `Operations`, also for the functions below."""
    _KNOWN[type(system)].leaf(system, i, at, number)


def one(system: Any, i: int, at: int) -> None:
    _KNOWN[type(system)].one(system, i, at)


def times(system: Any, at: int, x: int) -> None:
    _KNOWN[type(system)].times(system, at, x)


def zero(system: Any, i: int, at: int) -> None:
    _KNOWN[type(system)].zero(system, i, at)


def add(system: Any, at: int, k: int, x: int) -> None:
    _KNOWN[type(system)].add(system, at, k, x)


def add_product(system: Any, at: int, k: int, x: int, y: int) -> None:
    _KNOWN[type(system)].add_product(system, at, k, x, y)


def end_product(system: Any, i: int, at: int) -> None:
    _KNOWN[type(system)].end_product(system, i, at)


def end_sum(system: Any, i: int, at: int) -> None:
    _KNOWN[type(system)].end_sum(system, i, at)


def determinant(system: Any, i: int, at: int, op: int, args: np.ndarray) -> None:
    _KNOWN[type(system)].determinant(system, i, at, op, args)


def table(system: Any, at: int, op: int, number: int) -> None:
    _KNOWN[type(system)].table(system, at, op, number)


@before_compiling
def _tell_numba() -> None:
    """Compile a call of an operation as a call of the function that the class of its number system registered."""
    from numba.extending import overload

    def chosen(name: str) -> Any:
        return lambda system, *args: getattr(_KNOWN[system.instance_class], name)

    for name in Operations._fields:
        # "_nrt": what allocates nothing need not count references to arrays, which takes longer than most operations
        inlined: Any = {"error_model": OPTIONS["error_model"], "forceinline": True, "_nrt": name == "determinant"}
        overload(globals()[name], jit_options=inlined, strict=False)(chosen(name))


@kernel
def walk(code, system, begin, end):
    """Run instructions begin … end − 1 in a number system; code : Instructions."""
    op, target, start, args, first_weight = code
    for i in range(begin, end):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF:
            leaf(system, i, at, args[first])
        elif kind == TIMES:
            one(system, i, at)
            for j in range(first, last):
                times(system, at, args[j])
            end_product(system, i, at)
        elif kind == SUM:
            k, end_weight = first_weight[i], first_weight[i + 1]
            pairs = first + 2 * (end_weight - k) - (last - first)  # where the arguments of terms w·x·y begin
            zero(system, i, at)
            for j in range(first, pairs):
                add(system, at, k, args[j])
                k += 1
            for j in range(pairs, last, 2):
                add_product(system, at, k, args[j], args[j + 1])
                k += 1
            end_sum(system, i, at)
        elif kind in (DET, DETMAG, DETBAR):
            determinant(system, i, at, kind, args[first:last])
        elif kind in (PAIR, LOOKUP):
            table(system, at, kind, args[first])
        else:
            raise ValueError("an instruction that no number system knows")


def walk_in_python(program: Code, system: Any) -> None:
    """Run all instructions in a number system that is a Python class: nothing is compiled."""
    code = Instructions(*(part.tolist() for part in instructions_of(program)))
    getattr(walk, "py_func", walk)(code, system, 0, len(code.op))

"""The vectors of `pgcc.kernels.simd` as instructions of LLVM, so that accumulators stay in registers.

LLVM maps a vector of eight doubles to one AVX-512 register, two of AVX or four of SSE2. Nothing of fast-math is
allowed, not even to contract a multiply-add to one rounding, so that every processor, and numpy, computes the same
bits. (That costs nothing: kernels wait for loads and stores.) It is imported when the first kernel is compiled.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from pgcc.kernels import simd
from pgcc.kernels.numba_private import define
from pgcc.kernels.simd import LANES, WORD

_INTEGERS, _LINE = ir.VectorType(ir.IntType(64), LANES), ir.VectorType(ir.IntType(8), WORD)
_DOUBLE, _VECTOR, _BYTES = ir.DoubleType(), ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(8), LANES)


class _Vector8(types.Type):
    def __init__(self) -> None:
        super().__init__(name="pgcc_vector8")


vector8 = _Vector8()


@register_model(_Vector8)
class _Vector8Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


# The operations that are defined here, by name.
DEFINED: set[str] = set()


def _define(name: str, definition: Callable[..., Any]) -> None:
    define(getattr(simd, name), definition)
    DEFINED.add(name)


def operation(signature: Callable[..., Any]) -> Callable[[Any], Any]:
    """Tell Numba that the operation of this name has these instructions (`codegen` of `numba.extending.intrinsic`).

    signature : (typing context, *types of the arguments) → the signature; None if it has none for these types.
    """

    def defined(instructions: Any) -> Any:
        @functools.wraps(signature)
        def definition(*arguments: Any) -> Any:
            kind = signature(*arguments)
            return None if kind is None else (kind, instructions)

        _define(instructions.__name__, definition)
        return instructions

    return defined


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, element: ir.Type) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def _all(vector: ir.VectorType, constant: float) -> Any:
    """A vector of equal constants."""
    return ir.Constant(vector, [constant] * vector.count)


def _splat(builder: Any, scalar: Any, vector: ir.VectorType) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, undefined, _all(ir.VectorType(ir.IntType(32), vector.count), 0))


def _call(builder: Any, name: str, arguments: Sequence[Any]) -> Any:
    """A function of LLVM whose value is a vector (llvmlite does not name those of vectors by itself)."""
    kind = ir.FunctionType(_VECTOR, [argument.type for argument in arguments])
    return builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), arguments)


@operation(lambda _, array, index: vector8(array, types.intp))
def load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The eight doubles of a flat array that start at `index`."""
    pointer = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
    return builder.load(pointer, align=8)


@operation(
    lambda _, array, first, last, writing: (
        types.void(array, types.intp, types.intp, writing) if isinstance(writing, types.BooleanLiteral) else None
    )
)
def fetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Ask for the cache lines of elements first … last − 1 of a flat array, before they are read, or written."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, ir.IntType(32), ir.IntType(32), ir.IntType(32)])
    name = "llvm.prefetch.p0i8"
    ask = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
    step = ir.Constant(args[1].type, 64 // size)
    with cgutils.for_range_slice(builder, args[1], args[2], step, intp=args[1].type) as (index, _):
        place = builder.bitcast(builder.gep(data, [index]), byte)
        flags = [ir.Constant(ir.IntType(32), x) for x in (int(signature.args[3].literal_value), 3, 1)]
        builder.call(ask, [place, *flags])
    return context.get_dummy_value()


@operation(lambda _, array, index, value: types.void(array, types.intp, vector8))
def store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write eight doubles to a flat array from `index` on."""
    pointer = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
    builder.store(args[2], pointer, align=8)
    return context.get_dummy_value()


@operation(lambda _, scalar: vector8(types.float64))
def splat(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Eight times one double."""
    return _splat(builder, args[0], _VECTOR)


@operation(lambda _, a: types.float64(vector8))
def add_up(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The sum of eight doubles, in a fixed order."""
    parts = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
    while len(parts) > 1:
        parts = [builder.fadd(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _gather(builder: Any, first: Any, offsets: Any) -> Any:
    """The eight doubles at these offsets from an address."""
    pointers = ir.VectorType(_DOUBLE.as_pointer(), LANES)
    start = _splat(builder, builder.ptrtoint(first, ir.IntType(64)), _INTEGERS)
    bytes_away = builder.shl(offsets, _all(_INTEGERS, 3))
    addresses = builder.inttoptr(builder.add(start, bytes_away), pointers)
    all_lanes, align = _all(ir.VectorType(ir.IntType(1), LANES), 1), ir.Constant(ir.IntType(32), 8)
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    return _call(builder, "llvm.masked.gather.v8f64.v8p0f64", [addresses, align, all_lanes, undefined])


@operation(lambda _, array, start, index, i, more, j: vector8(array, types.intp, index, types.intp, more, types.intp))
def gather(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Eight doubles of a flat array, those at start + index[i + lane] + more[j + lane]."""
    array_type, _, index_type, _, more_type, _ = signature.args
    where = builder.load(_address(context, builder, index_type, args[2], args[3], _INTEGERS), align=8)
    there = builder.load(_address(context, builder, more_type, args[4], args[5], _INTEGERS), align=8)
    data = context.make_array(array_type)(context, builder, args[0]).data
    return _gather(builder, builder.gep(data, [args[1]]), builder.add(where, there))


@operation(lambda _, tables, start, codes, index: vector8(tables, types.intp, codes, types.intp))
def entries(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Eight doubles of a flat array, those at start + codes[index + lane], for codes of 16 bits."""
    tables_type, _, codes_type, _ = signature.args
    narrow = ir.VectorType(ir.IntType(16), LANES)
    code = builder.load(_address(context, builder, codes_type, args[2], args[3], narrow), align=2)
    data = context.make_array(tables_type)(context, builder, args[0]).data
    return _gather(builder, builder.gep(data, [args[1]]), builder.zext(code, _INTEGERS))


@operation(lambda _, array, index, value: types.uint64(array, types.intp, types.intp))
def equal_bytes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Which of the 64 bytes of a flat array that start at `index` equal `value`: one bit each, the first the lowest."""
    found = builder.load(_address(context, builder, signature.args[0], args[0], args[1], _LINE), align=1)
    wanted = _splat(builder, builder.trunc(args[2], ir.IntType(8)), _LINE)
    return builder.bitcast(builder.icmp_signed("==", found, wanted), ir.IntType(64))


@operation(lambda _, bits: types.int64(types.uint64))
def lowest_bit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The position of the lowest set bit; there must be one."""
    return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))


@operation(lambda _, bits: types.int64(types.uint64))
def count_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """How many bits are set."""
    return builder.ctpop(args[0])


def _entries(context: Any, builder: Any, array_type: Any, tables: Any, at: Any, numbers: Any) -> Any:
    """Entries of the table of sixteen doubles at `at`, by the four lowest bits of words."""
    if _has(context, "avx512f"):
        low = builder.load(_address(context, builder, array_type, tables, at, _VECTOR), align=8)
        after = builder.add(at, ir.Constant(at.type, LANES))
        high = builder.load(_address(context, builder, array_type, tables, after, _VECTOR), align=8)
        return _call(builder, "llvm.x86.avx512.vpermi2var.pd.512", [low, numbers, high])
    result = ir.Constant(_VECTOR, ir.Undefined)
    numbers = builder.and_(numbers, _all(_INTEGERS, 15))
    for i in range(LANES):
        lane = ir.Constant(ir.IntType(32), i)
        place = builder.add(at, builder.extract_element(numbers, lane))
        entry = builder.load(_address(context, builder, array_type, tables, place, _DOUBLE))
        result = builder.insert_element(result, entry, lane)
    return result


def _has(context: Any, feature: str) -> bool:
    """Whether the machine that is compiled for has a feature."""
    return f"+{feature}" in context.codegen().magic_tuple()[2].split(",")


@operation(
    lambda _, codes, index, zero, one, free: vector8(codes, types.intp, types.float64, types.float64, types.float64)
)
def choose(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """`zero` or `one` where the code byte is 0 or 1, `free` elsewhere: eight leaves at once."""
    code = builder.load(_address(context, builder, signature.args[0], args[0], args[1], _BYTES), align=1)
    is_zero = builder.icmp_signed("==", code, _all(_BYTES, 0))
    is_one = builder.icmp_signed("==", code, _all(_BYTES, 1))
    zero, one, free = (_splat(builder, x, _VECTOR) for x in args[2:])
    return builder.select(is_zero, zero, builder.select(is_one, one, free))


@operation(lambda _, tables, at, codes, index: vector8(tables, types.intp, codes, types.intp))
def lookup(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Entries of the table of sixteen at `at`, by the eight code bytes at `index`."""
    code = builder.load(_address(context, builder, signature.args[2], args[2], args[3], _BYTES), align=1)
    return _entries(context, builder, signature.args[0], args[0], args[1], builder.zext(code, _INTEGERS))


@operation(
    lambda _, source, at, stride, result, to, step: types.void(
        source, types.intp, types.intp, result, types.intp, types.intp
    )
)
def transpose(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Eight bytes of eight rows: result[to + j·step + i] = source[at + i·stride + j] for i, j < 8, on flat arrays."""
    source_type, _, _, result_type, _, _ = signature.args
    rows = []
    for i in range(LANES):
        index = builder.add(args[1], builder.mul(args[2], ir.Constant(args[2].type, i)))
        rows.append(builder.load(_address(context, builder, source_type, args[0], index, _BYTES), align=1))
    while len(rows) > 1:  # one vector of 64 bytes
        width = rows[0].type.count
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * width), list(range(2 * width)))
        rows = [builder.shuffle_vector(a, b, mask) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    # three times, its first half interleaved with its second one: that is the transpose, and fast on any machine
    halves = ir.Constant(ir.VectorType(ir.IntType(32), WORD), [k for i in range(32) for k in (i, 32 + i)])
    for _ in range(3):
        rows = [builder.shuffle_vector(rows[0], ir.Constant(_LINE, ir.Undefined), halves)]
    columns = builder.bitcast(rows[0], _INTEGERS)
    for j in range(LANES):
        column = builder.extract_element(columns, ir.Constant(ir.IntType(32), j))
        index = builder.add(args[4], builder.mul(args[5], ir.Constant(args[5].type, j)))
        place = _address(context, builder, result_type, args[3], index, ir.IntType(64))
        builder.store(column, place, align=1)
    return context.get_dummy_value()


# Operations whose arguments and results are vectors: (builder, *vectors) → their instructions.
_ON_VECTORS: dict[str, Callable[..., Any]] = {
    "plus": lambda builder, a, b: builder.fadd(a, b),
    "minus": lambda builder, a, b: builder.fsub(a, b),
    "mul": lambda builder, a, b: builder.fmul(a, b),
    "div": lambda builder, a, b: builder.fdiv(a, b),
    "muladd": lambda builder, a, b, c: builder.fadd(builder.fmul(a, b), c),  # a · b + c, with two roundings
    "fused": lambda builder, a, b, c: _call(builder, "llvm.fma.v8f64", [a, b, c]),  # with one, on every machine
    "magnitude": lambda builder, a: _call(builder, "llvm.fabs.v8f64", [a]),
    "root": lambda builder, a: _call(builder, "llvm.sqrt.v8f64", [a]),
    "nearest": lambda builder, a: _call(builder, "llvm.nearbyint.v8f64", [a]),  # the nearest whole number
    # nothing is less than NaN, nor NaN than anything
    "if_less": lambda builder, a, b, yes, no: builder.select(builder.fcmp_ordered("<", a, b), yes, no),
    "smaller": lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b),
    "larger": lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b),
}


def _on_vectors(instructions: Callable[..., Any]) -> Callable[..., Any]:
    """The definition of an operation on vectors alone."""
    kind = vector8(*[vector8] * (len(inspect.signature(instructions).parameters) - 1))

    @functools.wraps(instructions)
    def definition(typingctx: Any, *vectors: Any) -> Any:
        return kind, lambda context, builder, signature, args: instructions(builder, *args)

    return definition


for _name, _instructions in _ON_VECTORS.items():
    _define(_name, _on_vectors(_instructions))

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


def operation(definition: Callable[..., Any]) -> Any:
    """Tell Numba which instructions the operation of this name stands for."""
    define(getattr(simd, definition.__name__), definition)
    return definition


def on_vectors(instructions: Callable[..., Any]) -> Any:
    """The same for an operation whose arguments and result are vectors, given by `instructions(builder, *vectors)`."""
    kind = vector8(*[vector8] * (len(inspect.signature(instructions).parameters) - 1))

    @functools.wraps(instructions)
    def definition(typingctx: Any, *vectors: Any) -> Any:
        return kind, lambda context, builder, signature, args: instructions(builder, *args)

    return operation(definition)


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


@operation
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """The eight doubles of a flat array that start at `index`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        return builder.load(pointer, align=8)

    return vector8(array, types.intp), codegen


@operation
def fetch(typingctx: Any, array: Any, first: Any, last: Any, writing: Any) -> Any:
    """Ask for the cache lines of elements first … last − 1 of a flat array, before they are read, or written."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
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

    if not isinstance(writing, types.BooleanLiteral):
        return None
    return types.void(array, types.intp, types.intp, writing), codegen


@operation
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write eight doubles to a flat array from `index` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        builder.store(args[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector8), codegen


@operation
def splat(typingctx: Any, scalar: Any) -> Any:
    """Eight times one double."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _splat(builder, args[0], _VECTOR)

    return vector8(types.float64), codegen


@on_vectors
def mul(builder: Any, a: Any, b: Any) -> Any:
    """a · b"""
    return builder.fmul(a, b)


@on_vectors
def muladd(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, with two roundings"""
    return builder.fadd(builder.fmul(a, b), c)


@on_vectors
def plus(builder: Any, a: Any, b: Any) -> Any:
    """a + b"""
    return builder.fadd(a, b)


@on_vectors
def minus(builder: Any, a: Any, b: Any) -> Any:
    """a − b"""
    return builder.fsub(a, b)


@on_vectors
def fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c with one rounding, on every machine"""
    return _call(builder, "llvm.fma.v8f64", [a, b, c])


@operation
def add_up(typingctx: Any, a: Any) -> Any:
    """The sum of eight doubles, in a fixed order."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
        while len(parts) > 1:
            parts = [builder.fadd(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    return types.float64(vector8), codegen


def _gather(builder: Any, first: Any, offsets: Any) -> Any:
    """The eight doubles at these offsets from an address."""
    pointers = ir.VectorType(_DOUBLE.as_pointer(), LANES)
    start = _splat(builder, builder.ptrtoint(first, ir.IntType(64)), _INTEGERS)
    bytes_away = builder.shl(offsets, _all(_INTEGERS, 3))
    addresses = builder.inttoptr(builder.add(start, bytes_away), pointers)
    all_lanes, align = _all(ir.VectorType(ir.IntType(1), LANES), 1), ir.Constant(ir.IntType(32), 8)
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    return _call(builder, "llvm.masked.gather.v8f64.v8p0f64", [addresses, align, all_lanes, undefined])


@operation
def gather(typingctx: Any, array: Any, start: Any, index: Any, i: Any, more: Any, j: Any) -> Any:
    """Eight doubles of a flat array, those at start + index[i + lane] + more[j + lane]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type, _, index_type, _, more_type, _ = signature.args
        where = builder.load(_address(context, builder, index_type, args[2], args[3], _INTEGERS), align=8)
        there = builder.load(_address(context, builder, more_type, args[4], args[5], _INTEGERS), align=8)
        data = context.make_array(array_type)(context, builder, args[0]).data
        return _gather(builder, builder.gep(data, [args[1]]), builder.add(where, there))

    return vector8(array, types.intp, index, types.intp, more, types.intp), codegen


@operation
def entries(typingctx: Any, tables: Any, start: Any, codes: Any, index: Any) -> Any:
    """Eight doubles of a flat array, those at start + codes[index + lane], for codes of 16 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tables_type, _, codes_type, _ = signature.args
        narrow = ir.VectorType(ir.IntType(16), LANES)
        code = builder.load(_address(context, builder, codes_type, args[2], args[3], narrow), align=2)
        data = context.make_array(tables_type)(context, builder, args[0]).data
        return _gather(builder, builder.gep(data, [args[1]]), builder.zext(code, _INTEGERS))

    return vector8(tables, types.intp, codes, types.intp), codegen


@operation
def equal_bytes(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Which of the 64 bytes of a flat array that start at `index` equal `value`: one bit each, the first the lowest."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.load(_address(context, builder, signature.args[0], args[0], args[1], _LINE), align=1)
        wanted = _splat(builder, builder.trunc(args[2], ir.IntType(8)), _LINE)
        return builder.bitcast(builder.icmp_signed("==", found, wanted), ir.IntType(64))

    return types.uint64(array, types.intp, types.intp), codegen


@operation
def lowest_bit(typingctx: Any, bits: Any) -> Any:
    """The position of the lowest set bit; there must be one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@operation
def count_bits(typingctx: Any, bits: Any) -> Any:
    """How many bits are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@on_vectors
def div(builder: Any, a: Any, b: Any) -> Any:
    """a / b"""
    return builder.fdiv(a, b)


@on_vectors
def if_less(builder: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """`yes` where a < b, else `no`; nothing is less than NaN, nor NaN than anything."""
    return builder.select(builder.fcmp_ordered("<", a, b), yes, no)


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


@on_vectors
def magnitude(builder: Any, a: Any) -> Any:
    """|a|"""
    return _call(builder, "llvm.fabs.v8f64", [a])


@on_vectors
def root(builder: Any, a: Any) -> Any:
    """√a"""
    return _call(builder, "llvm.sqrt.v8f64", [a])


@on_vectors
def nearest(builder: Any, a: Any) -> Any:
    """The nearest whole number."""
    return _call(builder, "llvm.nearbyint.v8f64", [a])


@on_vectors
def smaller(builder: Any, a: Any, b: Any) -> Any:
    """a where a < b, else b."""
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


@on_vectors
def larger(builder: Any, a: Any, b: Any) -> Any:
    """a where a > b, else b."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@operation
def choose(typingctx: Any, codes: Any, index: Any, zero: Any, one: Any, free: Any) -> Any:
    """`zero` or `one` where the code byte is 0 or 1, `free` elsewhere: eight leaves at once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = builder.load(_address(context, builder, signature.args[0], args[0], args[1], _BYTES), align=1)
        is_zero = builder.icmp_signed("==", code, _all(_BYTES, 0))
        is_one = builder.icmp_signed("==", code, _all(_BYTES, 1))
        zero, one, free = (_splat(builder, x, _VECTOR) for x in args[2:])
        return builder.select(is_zero, zero, builder.select(is_one, one, free))

    return vector8(codes, types.intp, types.float64, types.float64, types.float64), codegen


@operation
def lookup(typingctx: Any, tables: Any, at: Any, codes: Any, index: Any) -> Any:
    """Entries of the table of sixteen at `at`, by the eight code bytes at `index`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = builder.load(_address(context, builder, signature.args[2], args[2], args[3], _BYTES), align=1)
        return _entries(context, builder, signature.args[0], args[0], args[1], builder.zext(code, _INTEGERS))

    return vector8(tables, types.intp, codes, types.intp), codegen


@operation
def transpose(typingctx: Any, source: Any, at: Any, stride: Any, result: Any, to: Any, step: Any) -> Any:
    """Eight bytes of eight rows: result[to + j·step + i] = source[at + i·stride + j] for i, j < 8, on flat arrays."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
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

    signature = types.void(source, types.intp, types.intp, result, types.intp, types.intp)
    return signature, codegen

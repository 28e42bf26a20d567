"""A vector of eight doubles for Numba kernels, so that accumulators stay in registers.

LLVM maps it to one AVX-512 register, two of AVX or four of SSE2. Multiply-adds may be contracted to one rounding
(`contract`), nothing else of fast-math is allowed: infinities and NaNs mean what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 8
_INTEGERS, _LINE = ir.VectorType(ir.IntType(64), LANES), ir.VectorType(ir.IntType(8), 64)
_DOUBLE, _VECTOR, _BYTES = ir.DoubleType(), ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(8), LANES)
WORD = 64  # bytes that become the bits of one number


class _Vector8(types.Type):
    def __init__(self) -> None:
        super().__init__(name="pgcc_vector8")


vector8 = _Vector8()


@register_model(_Vector8)
class _Vector8Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, element: ir.Type) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def _splat(builder: Any, scalar: Any, vector: ir.VectorType) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


def _call(builder: Any, name: str, arguments: Sequence[Any]) -> Any:
    """A function of LLVM whose value is a vector (llvmlite does not name those of vectors by itself)."""
    kind = ir.FunctionType(_VECTOR, [argument.type for argument in arguments])
    return builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), arguments)


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """The eight doubles of a flat array that start at `index`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        return builder.load(pointer, align=8)

    return vector8(array, types.intp), codegen


@intrinsic
def peek(typingctx: Any, array: Any, index: Any) -> Any:
    """One element of a flat array; the index is not negative, so that Numba need not ask."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))

    return array.dtype(array, types.intp), codegen


@intrinsic
def poke(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write one element of a flat array; the index is not negative, as for `peek`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.store(args[2], builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), codegen


@intrinsic
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


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write eight doubles to a flat array from `index` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        builder.store(args[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector8), codegen


@intrinsic
def splat(typingctx: Any, scalar: Any) -> Any:
    """Eight times one double."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _splat(builder, args[0], _VECTOR)

    return vector8(types.float64), codegen


@intrinsic
def mul(typingctx: Any, a: Any, b: Any) -> Any:
    """a · b"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(args[0], args[1], flags=("contract",))

    return vector8(vector8, vector8), codegen


@intrinsic
def muladd(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, with one rounding where the machine can."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(builder.fmul(args[0], args[1], flags=("contract",)), args[2], flags=("contract",))

    return vector8(vector8, vector8, vector8), codegen


@intrinsic
def plus(typingctx: Any, a: Any, b: Any) -> Any:
    """a + b, never contracted with anything"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(args[0], args[1])

    return vector8(vector8, vector8), codegen


@intrinsic
def minus(typingctx: Any, a: Any, b: Any) -> Any:
    """a − b, never contracted with anything"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fsub(args[0], args[1])

    return vector8(vector8, vector8), codegen


@intrinsic
def sub(typingctx: Any, a: Any, b: Any) -> Any:
    """a − b; of a product with one rounding where the machine can."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fsub(args[0], args[1], flags=("contract",))

    return vector8(vector8, vector8), codegen


@intrinsic
def times(typingctx: Any, a: Any, b: Any) -> Any:
    """a · b, never contracted with anything"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(args[0], args[1])

    return vector8(vector8, vector8), codegen


@intrinsic
def fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c with one rounding, on every machine"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.fma.v8f64", args)

    return vector8(vector8, vector8, vector8), codegen


@intrinsic
def add_up(typingctx: Any, a: Any) -> Any:
    """The sum of eight doubles, in a fixed order."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
        while len(parts) > 1:
            parts = [builder.fadd(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    return types.float64(vector8), codegen


@intrinsic
def quotient(typingctx: Any, a: Any, b: Any) -> Any:
    """a / b; 0 where b is smaller than every normal number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        smallest, zero = ir.Constant(_VECTOR, [2.0**-1022] * LANES), ir.Constant(_VECTOR, [0.0] * LANES)
        small = builder.fcmp_ordered("<", args[1], smallest)
        return builder.select(small, zero, builder.fdiv(args[0], args[1]))

    return vector8(vector8, vector8), codegen


def _gather(builder: Any, first: Any, offsets: Any) -> Any:
    """The eight doubles at these offsets from an address."""
    pointers = ir.VectorType(_DOUBLE.as_pointer(), LANES)
    start = _splat(builder, builder.ptrtoint(first, ir.IntType(64)), _INTEGERS)
    bytes_away = builder.shl(offsets, ir.Constant(_INTEGERS, [3] * LANES))
    addresses = builder.inttoptr(builder.add(start, bytes_away), pointers)
    all_lanes, align = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [1] * LANES), ir.Constant(ir.IntType(32), 8)
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    return _call(builder, "llvm.masked.gather.v8f64.v8p0f64", [addresses, align, all_lanes, undefined])


@intrinsic
def gather(typingctx: Any, array: Any, start: Any, index: Any, i: Any, more: Any, j: Any) -> Any:
    """Eight doubles of a flat array, those at start + index[i + lane] + more[j + lane]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type, _, index_type, _, more_type, _ = signature.args
        where = builder.load(_address(context, builder, index_type, args[2], args[3], _INTEGERS), align=8)
        there = builder.load(_address(context, builder, more_type, args[4], args[5], _INTEGERS), align=8)
        data = context.make_array(array_type)(context, builder, args[0]).data
        return _gather(builder, builder.gep(data, [args[1]]), builder.add(where, there))

    return vector8(array, types.intp, index, types.intp, more, types.intp), codegen


@intrinsic
def entries(typingctx: Any, tables: Any, start: Any, codes: Any, index: Any) -> Any:
    """Eight doubles of a flat array, those at start + codes[index + lane], for codes of 16 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tables_type, _, codes_type, _ = signature.args
        narrow = ir.VectorType(ir.IntType(16), LANES)
        code = builder.load(_address(context, builder, codes_type, args[2], args[3], narrow), align=2)
        data = context.make_array(tables_type)(context, builder, args[0]).data
        return _gather(builder, builder.gep(data, [args[1]]), builder.zext(code, _INTEGERS))

    return vector8(tables, types.intp, codes, types.intp), codegen


@intrinsic
def add_planes(typingctx: Any, codes: Any, index: Any, low: Any, high: Any, result: Any, to: Any) -> Any:
    """For 32 code bytes, add bit 0 times 2^low and bit 1 times 2^high to numbers of 16 bits."""
    wide = ir.VectorType(ir.IntType(16), 32)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def plane(bit: int, power: Any) -> Any:
            one = builder.and_(builder.lshr(code, ir.Constant(wide, [bit] * 32)), ir.Constant(wide, [1] * 32))
            first = builder.trunc(power, ir.IntType(16))
            lane = builder.insert_element(ir.Constant(wide, ir.Undefined), first, ir.Constant(ir.IntType(32), 0))
            every = ir.Constant(ir.VectorType(ir.IntType(32), 32), [0] * 32)
            return builder.shl(one, builder.shuffle_vector(lane, ir.Constant(wide, ir.Undefined), every))

        source = _address(context, builder, signature.args[0], args[0], args[1], ir.VectorType(ir.IntType(8), 32))
        code = builder.zext(builder.load(source, align=1), wide)
        place = _address(context, builder, signature.args[4], args[4], args[5], wide)
        planes = builder.add(plane(0, args[2]), plane(1, args[3]))
        builder.store(builder.add(builder.load(place, align=2), planes), place, align=2)
        return context.get_dummy_value()

    return types.void(codes, types.intp, types.intp, types.intp, result, types.intp), codegen


@intrinsic
def equal_bytes(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Which of the 64 bytes of a flat array that start at `index` equal `value`: one bit each, the first the lowest."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.VectorType(ir.IntType(8), WORD)
        found = builder.load(_address(context, builder, signature.args[0], args[0], args[1], word), align=1)
        wanted = builder.trunc(args[2], ir.IntType(8))
        one = builder.insert_element(ir.Constant(word, ir.Undefined), wanted, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), WORD), [0] * WORD)
        every = builder.shuffle_vector(one, ir.Constant(word, ir.Undefined), mask)
        return builder.bitcast(builder.icmp_signed("==", found, every), ir.IntType(64))

    return types.uint64(array, types.intp, types.intp), codegen


@intrinsic
def no_codes(typingctx: Any, array: Any, index: Any) -> Any:
    """Which of the 64 bytes of a flat array that start at `index` are neither 0, 1 nor 255: one bit each."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.load(_address(context, builder, signature.args[0], args[0], args[1], _LINE), align=1)
        one, two = (ir.Constant(_LINE, [k] * WORD) for k in (1, 2))
        return builder.bitcast(builder.icmp_unsigned(">", builder.add(found, one), two), ir.IntType(64))

    return types.uint64(array, types.intp), codegen


@intrinsic
def lowest_bit(typingctx: Any, bits: Any) -> Any:
    """The position of the lowest set bit; there must be one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def count_bits(typingctx: Any, bits: Any) -> Any:
    """How many bits are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def div(typingctx: Any, a: Any, b: Any) -> Any:
    """a / b"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fdiv(args[0], args[1])

    return vector8(vector8, vector8), codegen


@intrinsic
def if_less(typingctx: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """`yes` where a < b, else `no`; nothing is less than NaN, nor NaN than anything."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return vector8(vector8, vector8, vector8, vector8), codegen


# How many bits are of the fraction, and the bits of the least m where numbers are split as 2^k · m: about 0.698. From
# there to twice of it are sixteen steps that are equal in bits, and 1 is in the middle of the tenth.
_FRACTION, _STEPS, _LEAST_FRACTION = 52, 4, 0x3FE6555000000000


def _from_least_fraction(builder: Any, a: Any) -> Any:
    """The bits of doubles, counted from those of the least m: k in the highest twelve, and below it how m is above."""
    return builder.sub(builder.bitcast(a, _INTEGERS), ir.Constant(_INTEGERS, [_LEAST_FRACTION] * LANES))


@intrinsic
def binary_exponent(typingctx: Any, a: Any) -> Any:
    """k of a = 2^k · m with 0.698 ≤ m < 1.396, for positive normal numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        k = builder.ashr(_from_least_fraction(builder, args[0]), ir.Constant(_INTEGERS, [_FRACTION] * LANES))
        return builder.sitofp(k, _VECTOR)

    return vector8(vector8), codegen


@intrinsic
def binary_fraction(typingctx: Any, a: Any) -> Any:
    """m of a = 2^k · m with 0.698 ≤ m < 1.396, for positive normal numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        above = _from_least_fraction(builder, args[0])
        above = builder.and_(above, ir.Constant(_INTEGERS, [(1 << _FRACTION) - 1] * LANES))
        return builder.bitcast(builder.add(above, ir.Constant(_INTEGERS, [_LEAST_FRACTION] * LANES)), _VECTOR)

    return vector8(vector8), codegen


@intrinsic
def by_fraction(typingctx: Any, tables: Any, at: Any, a: Any) -> Any:
    """Entries of the table of sixteen at `at`, by the step that m is in, for positive normal numbers a = 2^k · m."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        steps = ir.Constant(_INTEGERS, [_FRACTION - _STEPS] * LANES)
        step = builder.lshr(_from_least_fraction(builder, args[2]), steps)
        return _entries(context, builder, signature.args[0], args[0], args[1], step)

    return vector8(tables, types.intp, vector8), codegen


def _entries(context: Any, builder: Any, array_type: Any, tables: Any, at: Any, numbers: Any) -> Any:
    """Entries of the table of sixteen doubles at `at`, by the four lowest bits of words."""
    if _has(context, "avx512f"):
        low = builder.load(_address(context, builder, array_type, tables, at, _VECTOR), align=8)
        after = builder.add(at, ir.Constant(at.type, LANES))
        high = builder.load(_address(context, builder, array_type, tables, after, _VECTOR), align=8)
        return _permuted(builder, "llvm.x86.avx512.vpermi2var.pd.512", low, numbers, high)
    result = ir.Constant(_VECTOR, ir.Undefined)
    numbers = builder.and_(numbers, ir.Constant(_INTEGERS, [15] * LANES))
    for i in range(LANES):
        lane = ir.Constant(ir.IntType(32), i)
        place = builder.add(at, builder.extract_element(numbers, lane))
        entry = builder.load(_address(context, builder, array_type, tables, place, _DOUBLE))
        result = builder.insert_element(result, entry, lane)
    return result


def _permuted(builder: Any, name: str, low: Any, numbers: Any, high: Any) -> Any:
    """Elements of two vectors by number, in one instruction."""
    kind = ir.FunctionType(low.type, [low.type, numbers.type, high.type])
    permute = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(permute, [low, numbers, high])


def _has(context: Any, feature: str) -> bool:
    """Whether the machine that is compiled for has a feature."""
    return f"+{feature}" in context.codegen().magic_tuple()[2].split(",")


@intrinsic
def magnitude(typingctx: Any, a: Any) -> Any:
    """|a|"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.fabs.v8f64", args)

    return vector8(vector8), codegen


@intrinsic
def root(typingctx: Any, a: Any) -> Any:
    """√a"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.sqrt.v8f64", args)

    return vector8(vector8), codegen


@intrinsic
def nearest(typingctx: Any, a: Any) -> Any:
    """The nearest whole number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.nearbyint.v8f64", args)

    return vector8(vector8), codegen


@intrinsic
def times_power(typingctx: Any, a: Any, exponent: Any) -> Any:
    """a · 2^exponent, for whole numbers; a and the result are normal."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        power = builder.shl(builder.fptosi(args[1], _INTEGERS), ir.Constant(_INTEGERS, [_FRACTION] * LANES))
        return builder.bitcast(builder.add(builder.bitcast(args[0], _INTEGERS), power), _VECTOR)

    return vector8(vector8, vector8), codegen


@intrinsic
def zero_below(typingctx: Any, a: Any, limit: Any, b: Any) -> Any:
    """b, but 0 where a < limit."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), ir.Constant(_VECTOR, [0.0] * LANES), args[2])

    return vector8(vector8, vector8, vector8), codegen


@intrinsic
def smaller(typingctx: Any, a: Any, b: Any) -> Any:
    """a where a < b, else b."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[0], args[1])

    return vector8(vector8, vector8), codegen


@intrinsic
def larger(typingctx: Any, a: Any, b: Any) -> Any:
    """a where a > b, else b."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])

    return vector8(vector8, vector8), codegen


@intrinsic
def choose(typingctx: Any, codes: Any, index: Any, zero: Any, one: Any, free: Any) -> Any:
    """`zero` or `one` where the code byte is 0 or 1, `free` elsewhere: eight leaves at once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = builder.load(_address(context, builder, signature.args[0], args[0], args[1], _BYTES), align=1)
        is_zero = builder.icmp_signed("==", code, ir.Constant(_BYTES, [0] * LANES))
        is_one = builder.icmp_signed("==", code, ir.Constant(_BYTES, [1] * LANES))
        zero, one, free = (_splat(builder, x, _VECTOR) for x in args[2:])
        return builder.select(is_zero, zero, builder.select(is_one, one, free))

    return vector8(codes, types.intp, types.float64, types.float64, types.float64), codegen


@intrinsic
def permutes_bytes(typingctx: Any) -> Any:
    """Whether the machine has what `join_permuted` takes: known when a kernel is compiled."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.IntType(1), int(_has(context, "avx512vbmi")))

    return types.boolean(), codegen


@intrinsic
def join_permuted(typingctx: Any, source: Any, at: Any, more: Any, order: Any, i: Any) -> Any:
    """64 bytes, joint codes 4·x + y, where x and y are the lowest two bits of bytes of `source`.

    Which ones, say the 64 bytes of `order` from i on for x, and the next 64 for y: those below 64 count from `at`, the
    others from `more`. Only where `permutes_bytes`.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source_type, _, _, order_type, _ = signature.args
        if not _has(context, "avx512vbmi"):
            return ir.Constant(_VECTOR, ir.Undefined)

        def load_line(array_type: Any, array: Any, index: Any) -> Any:
            return builder.load(_address(context, builder, array_type, array, index, _LINE), align=1)

        low, high = load_line(source_type, args[0], args[1]), load_line(source_type, args[0], args[2])
        next_i = builder.add(args[4], ir.Constant(args[4].type, 64))
        name, wanted = (
            "llvm.x86.avx512.vpermi2var.qi.512",
            (load_line(order_type, args[3], k) for k in (args[4], next_i)),
        )
        x, y = (_permuted(builder, name, low, numbers, high) for numbers in wanted)
        two, three = (ir.Constant(_LINE, [k] * 64) for k in (2, 3))
        joint = builder.or_(builder.shl(builder.and_(x, three), two), builder.and_(y, three))
        return builder.bitcast(joint, _VECTOR)

    return vector8(source, types.intp, types.intp, order, types.intp), codegen


@intrinsic(prefer_literal=True)
def store_pieces(typingctx: Any, array: Any, index: Any, step: Any, value: Any, pieces: Any) -> Any:
    """Write 64 bytes to a flat array of words in 1, 2, 4 or 8 pieces, at index, index + step, …"""
    count = pieces.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size, words = LANES // count, builder.bitcast(args[3], _INTEGERS)
        for k in range(count):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(k * size, (k + 1) * size)))
            piece = builder.shuffle_vector(words, ir.Constant(_INTEGERS, ir.Undefined), mask)
            place = builder.add(args[1], builder.mul(args[2], ir.Constant(args[2].type, k)))
            builder.store(piece, _address(context, builder, signature.args[0], args[0], place, piece.type), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, vector8, pieces), codegen


@intrinsic
def lookup(typingctx: Any, tables: Any, at: Any, codes: Any, index: Any, byte: Any) -> Any:
    """Entries of the table of sixteen at `at`, by byte number `byte` of the eight words of joint codes at `index`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = builder.load(_address(context, builder, signature.args[2], args[2], args[3], _INTEGERS), align=8)
        bits = builder.shl(args[4], ir.Constant(args[4].type, 3))
        words = builder.lshr(words, _splat(builder, bits, _INTEGERS))
        return _entries(context, builder, signature.args[0], args[0], args[1], words)

    return vector8(tables, types.intp, codes, types.intp, types.intp), codegen


@intrinsic
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
        for j in range(LANES):
            column = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [LANES * i + j for i in range(LANES)])
            picked = builder.shuffle_vector(rows[0], ir.Constant(rows[0].type, ir.Undefined), column)
            index = builder.add(args[4], builder.mul(args[5], ir.Constant(args[5].type, j)))
            builder.store(picked, _address(context, builder, result_type, args[3], index, _BYTES), align=1)
        return context.get_dummy_value()

    signature = types.void(source, types.intp, types.intp, result, types.intp, types.intp)
    return signature, codegen

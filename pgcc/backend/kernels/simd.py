"""A vector of eight doubles for Numba kernels, so that accumulators stay in registers.

LLVM maps it to one AVX-512 register, two of AVX or four of SSE2. Multiply-adds may be contracted to one rounding
(`contract`), nothing else of fast-math is allowed: infinities and NaNs mean what they say.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

LANES = 8
_DOUBLE, _VECTOR, _BYTES = ir.DoubleType(), ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(8), LANES)


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


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """The eight doubles of a flat array that start at `index`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        return builder.load(pointer, align=8)

    return vector8(array, types.intp), codegen


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
def choose(typingctx: Any, codes: Any, index: Any, zero: Any, one: Any, free: Any) -> Any:
    """`zero`, `one` or `free` where the code byte is 0, 1 or 2: eight leaves at once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = builder.load(_address(context, builder, signature.args[0], args[0], args[1], _BYTES), align=1)
        is_zero = builder.icmp_signed("==", code, ir.Constant(_BYTES, [0] * LANES))
        is_one = builder.icmp_signed("==", code, ir.Constant(_BYTES, [1] * LANES))
        zero, one, free = (_splat(builder, x, _VECTOR) for x in args[2:])
        return builder.select(is_zero, zero, builder.select(is_one, one, free))

    return vector8(codes, types.intp, types.float64, types.float64, types.float64), codegen

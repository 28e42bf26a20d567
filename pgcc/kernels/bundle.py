"""Arrays that a kernel finds by their addresses.

Numba looks at every argument of every call. Two dozen arrays take 10 µs, and five times as long if something else had
the caches: as long as thousands of rows. What does not change from call to call is bundled once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array


class Bundle:
    """Arrays, and where a kernel finds them.

    Parameters
    ----------
    types : str
        What the kernel takes the elements of each for.
    arrays : arrays

    Attributes
    ----------
    addresses : int64 array, arrays × 2
        Address and number of elements of each. They are good as long as the bundle lives, which keeps the arrays:
        whoever passes them to a kernel has to hold it until that returns.
    """

    def __init__(self, types: str, *arrays: np.ndarray):
        assert [str(array.dtype) for array in arrays] == types.split()
        assert all(array.flags.c_contiguous for array in arrays)
        self._arrays = arrays
        self.addresses = np.array([(array.ctypes.data, array.size) for array in arrays], np.int64)


@intrinsic
def bundled(typingctx: Any, arrays: Any, i: Any, dtype: Any) -> Any:
    """Array i of the addresses of a bundle, flat."""
    flat = types.Array(dtype.dtype, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.mul(args[1], ir.Constant(args[1].type, 2))
        address, length = (builder.load(builder.gep(data, [builder.add(place, place.type(k))])) for k in (0, 1))
        size = place.type(context.get_abi_sizeof(context.get_data_type(flat.dtype)))
        result = context.make_array(flat)(context, builder)
        populate_array(
            result,
            data=builder.inttoptr(address, context.get_data_type(flat.dtype).as_pointer()),
            shape=[length],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return result._getvalue()

    return flat(arrays, types.intp, dtype), codegen

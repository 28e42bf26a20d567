"""All of Numba that is not its public API, with what it is needed for: tried with the versions in pyproject.toml."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import serialize
from numba.core.caching import _Cache as Cache
from numba.core.compiler import CompileResult
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import models, register_model

__all__ = ["Cache", "KernelType", "can_be_kept", "define", "from_bytes", "keep", "to_bytes"]


class KernelType(types.Dispatcher):
    """The type of a kernel in the code of another. Numba would compile it again for every literal that it is given."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return super().get_call_type(context, tuple(map(types.unliteral, args)), kws)


register_model(KernelType)(models.OpaqueModel)


def keep(dispatcher: Any, cache: Cache) -> Any:
    """The dispatcher, which looks for compiled functions in this cache: Numba's own can be stale (see `cache`)."""
    dispatcher._cache = cache
    return dispatcher


def can_be_kept(result: Any) -> bool:
    """Whether a compiled function holds nothing that only this process has, such as addresses."""
    return not result.library.has_dynamic_globals and not result.lifted


def to_bytes(result: Any) -> bytes:
    """A compiled function as bytes."""
    return serialize.dumps(result._reduce())


def from_bytes(target_context: Any, content: bytes) -> CompileResult:
    """The compiled function: `content` is what `to_bytes` gave, from a file of which the digest was right."""
    return CompileResult._rebuild(target_context, *pickle.loads(content))


def define(function: Callable[..., Any], definition: Callable[..., Any], prefer_literal: bool = False) -> None:
    """Tell Numba which instructions a Python function stands for, by a definition as `numba.extending.intrinsic` takes.

    An intrinsic of the public API cannot be called from Python; this function can.
    """
    template = make_intrinsic_template(function, definition, function.__name__, prefer_literal=prefer_literal)
    infer(template)
    infer_global(function, types.Function(template))

"""All of Numba that is not its public API, with what it is needed for: tried with the versions in pyproject.toml."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba import typeof, types
from numba.core import serialize
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import models, register_model

from pgcc.locks import fork_waits_for

Cache = _Cache

fork_waits_for(global_compiler_lock._lock)  # compilation ends before a fork

# Kernels that others call at their address, by symbol: the module, the name and the types of arguments.
_symbols: dict[str, tuple[str, str, Any]] = {}


class KernelType(types.Dispatcher):
    """The type of a kernel in the code of another. Numba would compile it again for every literal that it is given."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return super().get_call_type(context, tuple(map(types.unliteral, args)), kws)


class SeparateKernelType(KernelType):
    """The type of a kernel that others call at its address. Numba would optimize a copy of it in every caller."""

    def get_impl_key(self, sig: Any) -> Any:
        return _give_symbol(self.dispatcher, sig.args)


def _give_symbol(dispatcher: Any, args: Any) -> str:
    """The symbol at which a compiled kernel is called: what it was compiled from, the same in all processes."""
    dispatcher.compile(args)
    result = dispatcher.overloads[args]
    symbol: str = dispatcher._cache.name(args, result.library.codegen)
    if symbol not in _symbols:
        binding.add_symbol(symbol, result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
        description = copy.copy(result.fndesc)
        description.mangled_name = symbol
        dispatcher.targetctx.insert_user_function(symbol, description)
        _symbols[symbol] = dispatcher.py_func.__module__, dispatcher.py_func.__qualname__, args
    return symbol


register_model(KernelType)(models.OpaqueModel)
register_model(SeparateKernelType)(models.OpaqueModel)


def keep(dispatcher: Any, cache: Cache) -> Any:
    """The dispatcher, which looks for compiled functions in this cache: Numba's own can be stale (see `cache`)."""
    dispatcher._cache = cache
    return dispatcher


def entry_point(dispatcher: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """The machine code for arguments of these types, as a function that does not look at the types of its arguments."""
    found = tuple(map(typeof, args))
    dispatcher.compile(found)
    return dispatcher.overloads[found].entry_point


def can_be_kept(result: Any) -> bool:
    """Whether a compiled function holds nothing that only this process has, such as addresses."""
    return not result.library.has_dynamic_globals and not result.lifted


def to_bytes(result: Any) -> bytes:
    """A compiled function as bytes, with the kernels that it calls at their address."""
    functions = result.library._final_module.functions
    called = [_symbols[f.name] for f in functions if f.is_declaration and f.name in _symbols]
    return serialize.dumps((called, result._reduce()))


def from_bytes(target_context: Any, content: bytes) -> CompileResult:
    """The compiled function: `content` is what `to_bytes` gave, from a file of which the digest was right.

    Of the target it needs only the runtime, which counts references. All else that `target_context.refresh()` would
    import, as Numba's own cache does, is there to compile, and takes longer than loading all kernels of a model.
    """
    rtsys.initialize(target_context)
    called, reduced = pickle.loads(content)
    for module, name, args in called:
        _give_symbol(getattr(importlib.import_module(module), name).dispatcher, args)
    return CompileResult._rebuild(target_context, *reduced)


def define(function: Callable[..., Any], definition: Callable[..., Any]) -> None:
    """Tell Numba which instructions a Python function stands for, by a definition as `numba.extending.intrinsic` takes.

    An intrinsic of the public API cannot be called from Python; this function can.
    """
    template = make_intrinsic_template(function, definition, function.__name__)
    infer(template)
    infer_global(function, types.Function(template))

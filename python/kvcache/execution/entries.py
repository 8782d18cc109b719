# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of a program, through TVM-FFI."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import CheckError, TargetError
from .arrays import Result
from .signatures import TYPES, Signature

if TYPE_CHECKING:
    import tvm_ffi

    from .._kvcache import JIT


@dataclass(frozen=True)
class Entry:
    """A function with its signature."""

    compiled: JIT
    signature: Signature

    @functools.cached_property
    def function(self) -> tvm_ffi.Function:
        return _make_function(self.compiled, self.signature.name)

    @property
    def plain(self) -> tuple[tvm_ffi.Function, bytes, bool]:
        """The function as ``plain_method`` calls it."""
        signature = self.signature
        return self.function, signature.precisions, signature.num_results > 1

    def unpack(self, result: Any) -> Result:
        """Returns several results as a tuple."""
        return tuple(result) if self.signature.num_results > 1 else result


def _make_function(compiled: JIT, name: str) -> tvm_ffi.Function:
    try:
        import tvm_ffi
    except ImportError as error:
        raise ImportError(
            f"calls need TVM-FFI: run 'pip install apache-tvm-ffi' ({error})"
        ) from error
    register_errors()
    wrapper = compiled.wrapper(name)
    function = tvm_ffi.Function.__from_extern_c__(
        wrapper.caller, keep_alive_object=wrapper
    )
    function.release_gil = False  # the wrapper does
    TYPES[tvm_ffi.Tensor] = False
    return function


@functools.cache
def register_errors() -> None:
    """Makes TVM-FFI raise the exceptions of this package."""
    import tvm_ffi

    tvm_ffi.register_error("kvcache.CheckError", CheckError)
    tvm_ffi.register_error("kvcache.TargetError", TargetError)
    tvm_ffi.register_error("OverflowError", OverflowError)

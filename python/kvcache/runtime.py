# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running functions of a module in this process."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from . import _native
from .arrays import Result, Value
from .checks import check_string
from .compiler import chips
from .emulator import Launches, parse_launches
from .errors import CheckError, TargetError
from .libraries import LibrarySource
from .placement import aligned_arrays
from .signatures import TYPES, Signature

if TYPE_CHECKING:
    import tvm_ffi

    from ._kvcache import JIT


_SECTOR_BYTES = 32


def jit(
    source: _native.Source,
    target: str = "cpu",
    filename: _native.Path | None = None,
    *,
    opt_level: int = 2,
    bounds_checks: bool = False,
    sanitize: bool | None = None,
    meter: bool | None = None,
) -> JitModule:
    """Compiles the functions of a source, to be called from Python.

    Args:
        source: MLIR text, MLIR text or bytecode as bytes, or the path of a file.
        target: ``"cpu"``, where kernels become loops of the host; or
            ``"emulator:<chip>"``, such as ``"emulator:sm_100a"``, where they are
            compiled as for the chip and its threads, barriers and copies are emulated;
            a ``gpu.module`` with ``#nvvm.target`` keeps its own chip.
            ``"cuda"`` is known, and not in this build.
        filename: The source's name in diagnostics.
        opt_level: 0 to 3, for LLVM, of host code and of kernels on the emulator.
        bounds_checks: Whether a bad page id, token, head or misaligned index raises
            ``CheckError``; without it, such an access has no meaning.
        sanitize: Whether the emulator checks what kernels access: bounds, memory that
            nobody has written, races, copies in flight. On unless it is False. Only for
            the emulator.
        meter: Whether the emulator counts what kernels ask of memory, for
            ``JitModule.launches``. Off unless it is True. Only for the emulator.

    Raises:
        CompileError: The source has errors; the exception carries the diagnostics.
        TargetError: The target is known and not in this build.
        ValueError: An argument has none of the values above, or the source is a string
            that names a file.
        TypeError: The source or its name is of another type.
    """
    chip = _parse_target(target)
    opt_level = _native.check_opt_level(opt_level)
    bounds_checks = _native.check_switch("bounds_checks", bounds_checks)
    # Functions that are declared and never used need no definition.
    if chip is None:
        _check_only_emulated(target, sanitize=sanitize, meter=meter)
        passes = "symbol-dce,kvcache-to-cpu{tvm-ffi=1}"
    else:
        sanitize = _parse_switch("sanitize", sanitize, default=True)
        meter = _parse_switch("meter", meter, default=False)
        options = f"chip={chip} sanitize={int(sanitize)} meter={int(meter)} tvm-ffi=1"
        passes = f"symbol-dce,kvcache-to-emulator{{{options}}}"
    checked = _native.add_checks(passes, bounds_checks, for_gpu=chip is not None)
    contents, name = _native.read_source(source, filename)
    compiled, diagnostics = _native.extension().jit(
        contents, name, checked, opt_level, chip is not None
    )
    _native.report(diagnostics, compiled is not None, stacklevel=2)
    library = LibrarySource(contents, name, checked, opt_level, ("kvcache_runtime",))
    return JitModule(compiled, target, bool(meter), None if chip else library)


def _parse_target(target: str) -> str | None:
    """Returns the chip to emulate; None for the CPU."""
    name = target if isinstance(target, str) else ""
    if name == "cpu":
        return None
    if name == "cuda":
        raise TargetError(
            "target 'cuda' is not available in this build; use 'cpu' or "
            "'emulator:<chip>'"
        )
    if name.startswith("emulator:"):
        chip = name.removeprefix("emulator:")
        if chip not in (known := chips()):
            raise ValueError(
                f"unknown chip {chip!r} in target {target!r}; known are "
                f"{', '.join(known)}"
            )
        return chip
    raise ValueError(
        f"unknown target {target!r}; known are 'cpu', 'cuda' and 'emulator:<chip>'"
    )


def _check_only_emulated(target: str, **options: bool | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name!r} has no meaning for target {target!r}, only for "
                "'emulator:<chip>'"
            )


def _parse_switch(name: str, value: bool | None, default: bool) -> bool:
    return default if value is None else _native.check_switch(name, value)


@dataclass(frozen=True)
class _Entry:
    """A function with its signature."""

    signature: Signature
    function: tvm_ffi.Function

    def unpack(self, result: Any) -> Result:
        """Returns several results as a tuple."""
        return tuple(result) if self.signature.num_results > 1 else result


def _make_entry(compiled: JIT, signature: Signature) -> _Entry:
    try:
        import tvm_ffi
    except ImportError as error:
        raise ImportError(
            f"calls need TVM-FFI: run 'pip install apache-tvm-ffi' ({error})"
        ) from error
    _register_errors()
    wrapper = compiled.wrapper(signature.name)
    function = tvm_ffi.Function.__from_extern_c__(
        wrapper.caller, keep_alive_object=wrapper
    )
    function.release_gil = False  # the wrapper does
    TYPES[tvm_ffi.Tensor] = False
    return _Entry(signature, function)


@functools.cache
def _register_errors() -> None:
    """Makes TVM-FFI raise the exceptions of this package."""
    import tvm_ffi

    tvm_ffi.register_error("kvcache.CheckError", CheckError)
    tvm_ffi.register_error("OverflowError", OverflowError)


class JitModule:
    """The public functions of a source, compiled for ``target``.

    ``functions`` maps their names to their types, in the order of the source.
    """

    def __init__(
        self,
        compiled: JIT,
        target: str,
        has_meter: bool = False,
        library: LibrarySource | None = None,
    ) -> None:
        described = map(Signature.parse, json.loads(compiled.functions))
        self._compiled = compiled
        self._has_meter = has_meter
        self._library = library
        self._chip = _parse_target(target)
        self._last_call = threading.local()
        self._entries = {
            signature.name: _make_entry(compiled, signature) for signature in described
        }
        self._needs_adapting = _native.extension().needs_adapting
        # What can be called without more ado, by name.
        self._plain = {
            name: (
                entry.function,
                entry.signature.precisions,
                entry.signature.num_results > 1,
            )
            for name, entry in self._entries.items()
            if not self._chip
        }
        self.target = target
        self.functions = MappingProxyType(
            {name: entry.signature.text for name, entry in self._entries.items()}
        )

    def function(self, name: str) -> tvm_ffi.Function:
        """Returns a function as TVM-FFI calls it, from any language.

        It checks its arguments as ``call`` does, and takes what TVM-FFI takes: tensors
        of PyTorch and others with DLPack, and numbers. It does not take NumPy's arrays
        that are read-only or of ml_dtypes, and can't see whether a tensor of PyTorch
        requires a gradient or is a negated view. Several results are a
        ``tvm_ffi.Array``. For an emulated chip with accesses of 32 bytes, memory that
        begins at other addresses is not copied.

        Raises:
            ValueError: There is no such function.
        """
        return self._find(name).function

    def signature(self, name: str) -> Signature:
        """Describes a function and its arguments. Raises as ``function`` does."""
        return self._find(name).signature

    @property
    def digest(self) -> str:
        """Equal for equal sources and options, also in other processes."""
        described = repr((self.target, self._library)).encode()
        return hashlib.sha256(described).hexdigest()

    def save_library(self, path: _native.Path) -> None:
        """Writes the functions as a shared library that TVM-FFI loads.

        It is for all machines of this architecture. ``tvm_ffi.load_module(path).name``
        is the function ``name``. It needs ``libkvcache_runtime.so``, which it looks for
        beside it and in this package.

        Raises:
            ToolchainError: There is no C compiler to link with, or it fails.
            ValueError: The functions were compiled for an emulated chip.
        """
        if not self._library:
            raise ValueError(
                f"expects a program for target 'cpu' to save, got one for {self.target!r}"
            )
        self._library.save(path)

    def call(self, name: str, *args: Value) -> Result:
        """Calls a function.

        A memref is passed as an array that NumPy or DLPack describe: a NumPy array, a
        tensor of PyTorch or TVM-FFI, an array of JAX. It is not copied, but for
        emulated chips with accesses of 32 bytes: NumPy arrays that are less aligned are
        copied for the call. Its dtype is that of the memref's element type (ml_dtypes
        for bf16, fp8 and the like in NumPy); a signless integer may be signed or
        unsigned. Static sizes and strides must agree; a memref with the identity layout
        wants a C-contiguous array. Arrays must be writeable, unless the function's
        argument is marked ``llvm.readonly``, and aligned to their elements; the blocks
        and scales of a cache to 16 bytes. JAX's arrays are never writeable.

        Integers, floats and NumPy's scalars are passed for numbers. A signless integer
        may be given as signed or as unsigned.

        Returns:
            The results as Python numbers: None, one, or a tuple. Integers are signed
            unless their type says otherwise.

        Raises:
            TypeError: An argument has the wrong kind or dtype, or the function takes or
                returns something else than memrefs and numbers.
            ValueError: An array has the wrong shape, strides or alignment, there are
                too few or too many arguments, or there is no such function.
            OverflowError: An integer does not fit.
            CheckError: A run-time check failed, or the emulator found an error in a
                kernel. What the function has allocated by then is freed.
        """
        refused: TypeError | None = None
        try:
            function, precisions, is_tuple = self._plain[name]
            if not self._needs_adapting(args, TYPES, precisions):
                return tuple(function(*args)) if is_tuple else function(*args)
        except KeyError:
            pass
        except BufferError:  # NumPy does not export an array
            pass
        except TypeError as error:  # raised before the function runs
            refused = error
        entry = self._find(name)
        if self._chip:
            return entry.unpack(self._call_emulated(entry, args))
        try:
            adapted = entry.signature.adapt(args)
        except TypeError as error:
            raise refused or error from None
        refused = None  # whose traceback would keep the arguments
        return entry.unpack(entry.function(*adapted))

    def _find(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            check_string(name=name)
        raise ValueError(
            f"there is no function {name!r}; the module has "
            f"{', '.join(self._entries) or 'none that is public'}"
        )

    def _call_emulated(self, entry: _Entry, args: tuple[Any, ...]) -> Any:
        # Kernels on the emulator may access what the arrays reach, and no more.
        alignment = _native.extension().access_bytes(self._chip)
        if self._has_meter:
            # Sectors are counted as they would lie on a device.
            alignment = max(alignment, _SECTOR_BYTES)
        entry.signature.adapt(args)  # may raise before anything is copied
        with aligned_arrays(args, alignment) as placed:
            try:
                return entry.function(*entry.signature.adapt(placed))
            finally:
                launches = self._compiled.take_meter()
                if self._has_meter:
                    self._last_call.launches = parse_launches(launches)

    @property
    def launches(self) -> Launches:
        """What the kernels of the last ``call`` by this thread asked of memory.

        A ``LaunchMeter`` for each launch, in their order; also those before an error.

        Raises:
            ValueError: The module was compiled without ``meter=True``.
        """
        if not self._has_meter:
            raise ValueError(
                "nothing was counted: compile with target='emulator:<chip>' and "
                "meter=True"
            )
        return getattr(self._last_call, "launches", Launches())

    def __repr__(self) -> str:
        functions = "".join(
            f"\n  {name}{text}" for name, text in self.functions.items()
        )
        return f"<kvcache.JitModule for {self.target}:{functions or ' no functions'}>"

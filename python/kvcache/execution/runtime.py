# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The execution of a module's functions in this process."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import operator
import threading
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .. import _native
from ..checks import check_string
from ..compilation import processors, store, toolchain, tuning_files
from ..compilation.libraries import Body, LibrarySource
from ..devices import cuda
from ..devices.placement import aligned_arrays
from ..errors import CheckError
from .arrays import Result, Value
from .entries import Entry, register_errors
from .matrix import limit_level
from .options import (
    check_only,
    choose_host_level,
    describe_passes,
    parse_switch,
    parse_target,
    parse_threads,
)
from .signatures import TYPES, Signature

if TYPE_CHECKING:
    import tvm_ffi

    from .._kvcache import JIT
    from ..devices.emulator import Launches


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
    capturable: bool | None = None,
    cached: bool = False,
    threads: int | None = None,
    toolkit: _native.Path | None = None,
    tuning: _native.Path | None = None,
) -> JitModule:
    """Compiles the functions of a source, and makes them callable from Python.

    Args:
        source: MLIR text, MLIR text or bytecode as bytes, or the path of a file.
        target: The target. For ``"cpu"``, kernels become loops of the host. ``"cuda"``
            is the GPUs of this machine, and ``"cuda:<chip>"``, such as ``"cuda:sm_90a"``,
            GPUs of one kind. For ``"emulator:<chip>"``, kernels are compiled as for the
            chip, and its threads, barriers and copies are emulated. A ``gpu.module`` with
            ``#nvvm.target`` keeps its own chip.
        filename: The source's name in diagnostics.
        opt_level: The optimization level of LLVM, 0 to 3, for host code and emulated
            kernels.
        bounds_checks: Whether a bad page id, token, head or misaligned index raises
            ``CheckError``; without it, such an access is undefined.
        sanitize: Whether the emulator checks accesses: bounds, uninitialized memory,
            races, copies in flight. True by default. Only for the emulator.
        meter: Whether the emulator counts the requests of kernels to memory, for
            ``JitModule.launches``. False by default. Only for the emulator.
        capturable: Whether host code that a CUDA graph can't capture, such as an
            allocation or a wait, is an error. False by default. Only for ``"cuda"``.
        cached: Whether the compiled code is stored on disk, and read from there for the
            same source, options, compiler, libdevice and kind of processor.
        threads: The most threads that share the parallel loops of a call, including the
            calling one. 1 by default; more need an OpenMP library. Results have the
            same bits for any number. Only for ``"cpu"``.
        toolkit: The folder of a CUDA toolkit with libdevice, as for ``compile``. Only for
            ``"cuda"``.
        tuning: A tuning file, as for ``compile``. Only for ``"cuda"``.

    Raises:
        CompileError: The source has errors; the exception carries the diagnostics.
        TargetError: The target is ``"cuda"``, and there is no driver or no GPU. Or
            ``threads`` are several, and there is no OpenMP library.
        ValueError: An argument has an invalid value, or the source is a string that
            names a file.
        TypeError: The source or its name is of another type.

    Examples:
        >>> import numpy as np
        >>> program = jit('''
        ... func.func @add(%x: memref<4xf32>, %y: f32) {
        ...   %c0 = arith.constant 0 : index
        ...   %c1 = arith.constant 1 : index
        ...   %c4 = arith.constant 4 : index
        ...   scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
        ...     %a = memref.load %x[%i] : memref<4xf32>
        ...     %b = arith.addf %a, %y : f32
        ...     memref.store %b, %x[%i] : memref<4xf32>
        ...   }
        ...   return
        ... }
        ... ''')
        >>> x = np.zeros(4, np.float32)
        >>> program.call("add", x, 2.5)
        >>> x.tolist()
        [2.5, 2.5, 2.5, 2.5]
    """
    device, chip = parse_target(target)
    opt_level = _native.check_opt_level(opt_level)
    bounds_checks = _native.check_switch("bounds_checks", bounds_checks)
    cached = _native.check_switch("cached", cached)
    if device != "emulator":
        check_only("emulator:<chip>", target, sanitize=sanitize, meter=meter)
    if device != "cuda":
        check_only(
            "cuda", target, capturable=capturable, toolkit=toolkit, tuning=tuning
        )
    if device:
        check_only("cpu", target, threads=threads)
    threads = parse_threads(threads)
    sanitize = parse_switch("sanitize", sanitize, default=True)
    meter = parse_switch("meter", meter, default=False)
    capturable = parse_switch("capturable", capturable, default=False)
    folder = toolchain.find_toolkit(toolkit) if device == "cuda" else ""
    contents, name = _native.read_source(source, filename)
    options = {
        "": "tvm-ffi=1",
        "emulator": f"chip={chip} sanitize={int(sanitize)} meter={int(meter)} tvm-ffi=1",
        "cuda": f"chip={chip} opt-level={opt_level} host=1 tvm-ffi=1 "
        f"capturable={int(capturable)}{toolchain.describe_toolkit(folder)}",
    }[device]
    describe = functools.partial(describe_passes, device, bounds_checks, chip)
    levels = [] if device else processors.find_levels()
    host = None if device else choose_host_level(opt_level, threads)
    passes = describe(options, host)
    file = tuning_files.take(tuning)
    passes = tuning_files.add_tuning(passes, chip, file)
    bodies = [
        Body(level.name, describe(options, limit_level(level, opt_level, threads)))
        for level in levels
    ]
    needed = ("kvcache_runtime", *(("kvcache_cuda",) if device else ()))
    library = LibrarySource(
        contents, name, tuple(bodies or [Body("", passes)]), opt_level, needed
    )
    compiled = _compile(library, passes, device, cached, folder, file)
    return JitModule(
        compiled, target, device, chip, meter, None if device == "emulator" else library
    )


def _compile(
    source: LibrarySource,
    passes: str,
    device: str,
    cached: bool,
    toolkit: str,
    tuning: Path | None,
) -> JIT:
    """Compiles a source for this machine, or reads the stored result."""
    extension = _native.extension()
    entry = store.Entry(None)
    digest = tuning_files.describe(tuning)
    if cached:
        libdevice = toolchain.describe_libdevice(toolkit)
        entry = store.Entry.of("jit", device, libdevice, source, passes, digest)
    if (image := entry.read(stacklevel=3)) is not None:
        loaded, _ = extension.load_image(image, device)
        if loaded is not None:
            return loaded
    compiled, diagnostics = extension.jit(
        source.contents, source.name, passes, source.opt_level, device, cached
    )
    _native.report(diagnostics, compiled is not None, stacklevel=3)
    # Another process may have replaced the file before the compiler read it.
    if not diagnostics and tuning_files.describe(tuning) == digest:
        entry.write(compiled.image, stacklevel=3)
    return compiled


@functools.cache
def _shorten_calls() -> None:
    """Replaces ``JitModule.call`` by the extension's method, once that is loaded."""
    method = _native.extension().plain_method(JitModule.call, TYPES)
    setattr(JitModule, "call", method)  # noqa: B010, as types see the one below


class JitModule:
    """The public functions of a source, compiled for ``target``.

    ``functions`` maps their names to their types, in the order of the source.
    """

    def __init__(
        self,
        compiled: JIT,
        target: str,
        device: str,
        chip: str,
        has_meter: bool,
        library: LibrarySource | None,
    ) -> None:
        signatures = list(map(Signature.parse, json.loads(compiled.functions)))
        self._compiled = compiled
        self._has_meter = has_meter
        self._library = library
        self._device = device
        self._chip = chip
        self._last_call = threading.local()
        self._entries = {
            signature.name: Entry(compiled, signature) for signature in signatures
        }
        self._needs_adapting = _native.extension().needs_adapting
        _shorten_calls()
        # The functions that can be called directly, by name: those of TVM-FFI from
        # their first call on.
        natives = {
            signature.name: signature.make_native(compiled, is_on_gpu=device == "cuda")
            for signature in signatures
            if device != "emulator"
        }
        self._plain: dict[str, Any] = {
            name: (native, b"", False) for name, native in natives.items() if native
        }
        self.target = target
        self.functions = MappingProxyType(
            {name: entry.signature.text for name, entry in self._entries.items()}
        )

    def function(self, name: str) -> tvm_ffi.Function:
        """Returns a function of TVM-FFI, callable from any language.

        It checks its arguments as ``call`` does. It takes numbers, and tensors of
        PyTorch and others with DLPack. It does not take NumPy's arrays that are
        read-only or of ml_dtypes. It can't check whether a tensor of PyTorch requires a
        gradient or is a negated view. Several results are a ``tvm_ffi.Array``. For an
        emulated chip with accesses of 32 bytes, less aligned memory is not copied.

        Raises:
            ValueError: There is no such function.
        """
        return self._find(name).function

    def native(self, name: str) -> Any:
        """Returns a function for ``kvcache.ops``, or None. Raises as ``function`` does."""
        self._find(name)
        function, *_ = self._plain.get(name, (None,))
        return function if self._device != "emulator" else None

    def signature(self, name: str) -> Signature:
        """Describes a function and its arguments. Raises as ``function`` does."""
        return self._find(name).signature

    @property
    def digest(self) -> str:
        """A digest that is equal for equal sources and options in all processes."""
        described = repr((self.target, self._library)).encode()
        return hashlib.sha256(described).hexdigest()

    def save_library(self, path: _native.Path, *, cpu: str | None = None) -> None:
        """Writes the functions as a shared library that TVM-FFI loads.

        It works on all machines of this architecture. On x86-64, it has a body of each
        function for ``"x86-64"``, ``"x86-64-v3"`` (AVX2) and ``"x86-64-v4"`` (AVX-512).
        Attention also has ``"x86-64-v4-bf16"`` and ``"x86-64-v4-amx"``, by matrix
        instructions that round probabilities to bf16. The first call chooses the
        fastest one that the processor and the operating system support, up to the
        level in the environment variable ``KVCACHE_CPU``.

        ``tvm_ffi.load_module(path).name`` is the function ``name``. In this process, it
        raises the exceptions of this package. It needs ``libkvcache_runtime.so``, in its
        folder or in this package; functions for a GPU also need ``libkvcache_cuda.so``.

        Args:
            path: The file to write.
            cpu: The only level to compile for, or ``"native"`` for the fastest one of
                this processor. On a lower processor, a call raises ``TargetError``.
                Only for ``"cpu"``.

        Raises:
            ToolchainError: There is no C compiler to link with, or it fails.
            ValueError: The functions were compiled for an emulated chip, or there is no
                such level.
        """
        if not self._library:
            raise ValueError(
                "expects a program for target 'cpu' or 'cuda' to save, got one for "
                f"{self.target!r}"
            )
        if self._device:
            check_only("cpu", self.target, cpu=cpu)
            self._library.save(path)
        else:
            levels = processors.choose_levels(cpu)
            self._library.save(path, [level.name for level in levels])
        with contextlib.suppress(ImportError):
            register_errors()

    def load(self, device: int | None = None) -> None:
        """Loads the kernels of the functions, before the first call does.

        A driver can't load code while it captures a stream: load before the capture.

        Args:
            device: The number of the GPU; by default that of the current context.

        Raises:
            CheckError: The driver rejects the code, or there is none for this GPU.
            TargetError: There is no driver, or no such GPU.
            ValueError: The functions run on the CPU, or ``device`` is negative.
        """
        if not self._device:
            raise ValueError(
                f"expects a program with kernels to load, got one for {self.target!r}"
            )
        number = -1
        if device is not None and (number := operator.index(device)) < 0:
            raise ValueError(
                f"expects 'device' to be the number of a GPU, got {device}"
            )
        if self._device == "cuda":
            with cuda.scope(number, 0):
                pass  # a missing driver raises another error
        if message := self._compiled.load(number):
            raise CheckError(message)

    def call(
        self,
        name: str,
        *args: Value,
        stream: Any = None,
        copy_host_arrays: bool = False,
    ) -> Result:
        """Calls a function.

        A memref is passed as an array of NumPy or with DLPack: a NumPy array, a tensor
        of PyTorch or TVM-FFI, an array of JAX. It is not copied. The only exception is
        emulated chips with accesses of 32 bytes: less aligned NumPy arrays are copied
        for the call.

        The dtype must be that of the memref's element type (ml_dtypes for bf16 and fp8
        in NumPy); a signless integer may be signed or unsigned. Static sizes and
        strides must agree; a memref with the identity layout needs a C-contiguous
        array. Arrays must be aligned to their elements, and the blocks and scales of a
        cache to 16 bytes. They must be writeable, unless the function's argument is
        marked ``llvm.readonly``. JAX's arrays are never writeable.

        Integers, floats and NumPy's scalars are passed for numbers. A signless integer
        may be given as signed or as unsigned.

        Functions for ``"cuda"`` take arrays of one GPU, including those that only have
        ``__cuda_array_interface__``. They run on a stream, and the call does not wait:
        on the current stream of PyTorch for its tensors, else on the default stream. A
        call allocates no memory, so that a CUDA graph can capture it after ``load``.

        Args:
            name: The name of the function.
            args: The arguments of the function.
            stream: The stream of the work, only for ``"cuda"``: a number, or an object
                of PyTorch, CuPy, cuda-bindings or cuda-core.
            copy_host_arrays: Whether NumPy's arrays are copied to the GPU for the call
                and back, only for ``"cuda"``. The call then allocates, and waits for
                the stream.

        Returns:
            The results as Python numbers: None, one, or a tuple. Integers are signed
            unless their type says otherwise.

        Raises:
            TypeError: An argument has the wrong kind or dtype, or the function has
                arguments or results other than memrefs and numbers.
            ValueError: An array has the wrong shape, strides or alignment, there are
                too few or too many arguments, or there is no such function.
            OverflowError: An integer does not fit.
            CheckError: A run-time check failed, or the emulator found an error in a
                kernel. Memory that the function has allocated is freed. An error of a
                kernel on a GPU is raised by a later call.
            TargetError: There is no driver, or no GPU.
        """
        if stream is not None or copy_host_arrays:
            return self._call_on_stream(
                self._find(name), args, stream, copy_host_arrays
            )
        entry = self._find(name)
        if self._device == "emulator":
            return entry.unpack(self._call_emulated(entry, args))
        refused: TypeError | OverflowError | None = None
        function, precisions, _ = entry.plain
        first, *_ = self._plain.get(name, (function,))
        self._plain[name] = (first, *entry.plain[1:], function)
        try:
            if not self._needs_adapting(args, TYPES, precisions):
                return entry.unpack(function(*args))
        except BufferError:  # NumPy does not export an array
            pass
        except (TypeError, OverflowError) as error:  # raised before the function runs
            refused = error
        try:
            adapted = entry.signature.adapt(args)
        except TypeError as error:
            raise refused or error from None
        refused = None  # whose traceback would keep the arguments
        return entry.unpack(entry.function(*adapted))

    def _find(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            check_string(name=name)
        raise ValueError(
            f"there is no function {name!r}; the module has "
            f"{', '.join(self._entries) or 'none that is public'}"
        )

    def _call_on_stream(
        self, entry: Entry, args: tuple[Any, ...], stream: Any, copy_host_arrays: bool
    ) -> Any:
        import tvm_ffi

        if self._device != "cuda":
            raise ValueError(
                "'stream' and 'copy_host_arrays' have no meaning for target "
                f"{self.target!r}, only for 'cuda'"
            )
        handle = 0 if stream is None else cuda.stream_handle(stream)
        device = cuda.find_device(args)
        with contextlib.ExitStack() as stack:
            if copy_host_arrays:
                entry.signature.adapt(args)  # may raise before anything is copied
                args = tuple(
                    stack.enter_context(cuda.copied_arrays(args, device, handle))
                )
            # Tensors of a framework would set its current stream.
            adapted = [
                tvm_ffi.from_dlpack(value) if hasattr(value, "__dlpack__") else value
                for value in entry.signature.adapt(args)
            ]
            where = tvm_ffi.device("cuda", device)
            stack.enter_context(tvm_ffi.use_raw_stream(where, handle))
            return entry.unpack(entry.function(*adapted))

    def _call_emulated(self, entry: Entry, args: tuple[Any, ...]) -> Any:
        # Kernels on the emulator may access the memory of the arrays, and no other.
        alignment = _native.extension().access_bytes(self._chip)
        if self._has_meter:
            # Sectors are counted for the alignment of a device.
            alignment = max(alignment, _SECTOR_BYTES)
        entry.signature.adapt(args)  # may raise before anything is copied
        with aligned_arrays(args, alignment) as placed:
            try:
                return entry.function(*entry.signature.adapt(placed))
            finally:
                launches = self._compiled.take_meter()
                if self._has_meter:
                    from ..devices.emulator import parse_launches

                    self._last_call.launches = parse_launches(launches)

    @property
    def launches(self) -> Launches:
        """The meters of the kernels of the last ``call`` by this thread.

        One ``LaunchMeter`` per launch, in order, including launches before an error.

        Raises:
            ValueError: The module was compiled without ``meter=True``.
        """
        from ..devices.emulator import Launches

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

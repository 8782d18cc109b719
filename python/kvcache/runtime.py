# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running functions of a module in this process."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import CheckError, TargetError
from .signatures import parse_function

if TYPE_CHECKING:
    from ._kvcache import JIT


def jit(
    source: _native.Source,
    target: str = "cpu",
    filename: _native.Path | None = None,
    *,
    opt_level: int = 2,
    bounds_checks: bool = False,
) -> JitModule:
    """Compiles the functions of a source, to be called from Python.

    Args:
        source: MLIR text, MLIR text or bytecode as bytes, or the path of a file.
        target: ``"cpu"``. Two more are known, and not in this build: ``"cuda"`` and
            ``"emulator:<chip>"``.
        filename: The source's name in diagnostics.
        opt_level: 0 to 3, for LLVM.
        bounds_checks: Whether a bad page id, token, head or misaligned index raises
            ``CheckError``; without it, such an access has no meaning.

    Raises:
        CompileError: The source has errors; the exception carries the diagnostics.
        TargetError: The target is known and not in this build.
        ValueError: An argument has none of the values above.
    """
    _check_target(target)
    _native.check_opt_level(opt_level)
    contents, name = _native.read_source(source, filename)
    # Functions that are declared and never used need no definition.
    passes = _native.add_checks("symbol-dce,kvcache-to-cpu", bounds_checks)
    compiled, diagnostics = _native.extension().jit(contents, name, passes, opt_level)
    _native.report(diagnostics, compiled is not None, stacklevel=2)
    return JitModule(compiled, target)


def _check_target(target: str) -> None:
    if target == "cpu":
        return
    if target == "cuda" or (isinstance(target, str) and target.startswith("emulator:")):
        raise TargetError(
            f"target {target!r} is not available in this build; use 'cpu'"
        )
    raise ValueError(
        f"unknown target {target!r}; known are 'cpu', 'cuda' and 'emulator:<chip>'"
    )


class JitModule:
    """The public functions of a source, compiled for ``target``.

    ``functions`` maps their names to their types, in the order of the source.
    """

    def __init__(self, compiled: JIT, target: str) -> None:
        described = map(parse_function, json.loads(compiled.functions))
        self._compiled = compiled
        self._functions = {function.name: function for function in described}
        self.target = target
        self.functions = MappingProxyType(
            {f.name: f.text for f in self._functions.values()}
        )

    def call(self, name: str, *args: Any) -> Any:
        """Calls a function.

        A memref is passed as a NumPy array, without a copy. Its dtype is that of the
        memref's element type (ml_dtypes for bf16, fp8 and the like); a signless integer
        may be signed or unsigned. Static sizes and strides must agree; a memref with
        the identity layout wants a C-contiguous array. Arrays must be writeable, unless
        the function's argument is marked ``llvm.readonly``, and aligned to their
        elements; the blocks and scales of a cache to 16 bytes.

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
            CheckError: A run-time check failed. What the function has allocated by then
                is not freed.
        """
        function = self._functions.get(name)
        if not function:
            raise ValueError(
                f"there is no function {name!r}; the module has "
                f"{', '.join(self._functions) or 'none that is public'}"
            )
        result = self._compiled.call(name, function.encode(args))
        if isinstance(result, str):
            raise CheckError(result)
        return function.decode(result)

    def __repr__(self) -> str:
        functions = "".join(
            f"\n  {name}{text}" for name, text in self.functions.items()
        )
        return f"<kvcache.JitModule for {self.target}:{functions or ' no functions'}>"

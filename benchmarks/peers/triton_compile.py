#!/usr/bin/env python3
"""Compiles a kernel of triton_kernels.py to PTX, for a GPU that need not be there.

The passes are those of triton.compile, up to PTX and without its cache. Works have the names of the CUDA C++ kernels;
triton_launches.py says what a function is specialized for. For decode it is the function that Triton does best, on
tensor cores: on the CUDA cores its code is three to six times as long.

example:
  build/bench-venv/bin/python benchmarks/peers/triton_compile.py gather sm_90a gather.ptx
"""

from __future__ import annotations

import sys
from pathlib import Path

import triton
import triton_kernels
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton_launches import LAUNCHES, Launch


BEST = {"decode": "decode_dot"}
"""By work, the function that does it best where that has not its name."""


def compile_to_ptx(name: str, chip: str) -> tuple[str, int]:
    """Returns the PTX of a work, and the bytes of shared memory that a launch has to give.

    As where Triton sees the arguments of a launch, pointers are aligned to 16 bytes.
    """
    if name not in LAUNCHES:
        raise ValueError("a block's shape has to be constant in Triton")
    launch = LAUNCHES[BEST.get(name, name)]
    return compile_function(getattr(triton_kernels, launch.function), launch, chip)


def compile_function(function: triton.JITFunction, launch: Launch, chip: str) -> tuple[str, int]:
    """Returns the PTX of a function with the parameters of a launch, and the bytes of shared memory."""
    target = GPUTarget("cuda", int(chip.removeprefix("sm_").rstrip("a")), 32)
    backend = make_backend(target)
    signature = dict(zip(function.arg_names, launch.signature))
    aligned = {
        (index,): [["tt.divisibility", 16]]
        for index, (argument, type) in enumerate(launch.arguments)
        if type.startswith("*") or isinstance(argument, int) and argument % 16 == 0
    }
    source = ASTSource(function, signature, launch.constants, aligned)
    options = backend.parse_options({"num_warps": launch.warps})
    metadata = {"target": target, **options.__dict__}
    stages: dict = {}
    backend.add_stages(stages, options, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    for stage in ("ttir", "ttgir", "llir", "ptx"):
        module = stages[stage](module, metadata)
    return module, metadata["shared"]


if __name__ == "__main__":
    work, chip, path = sys.argv[1:]
    Path(path).write_text(compile_to_ptx(work, chip)[0])

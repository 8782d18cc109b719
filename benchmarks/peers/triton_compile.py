#!/usr/bin/env python3
"""Compiles a kernel of triton_kernels.py to PTX, for a GPU that need not be there.

The passes are those of triton.compile, up to PTX and without its cache. Works have the names of the CUDA C++ kernels, and
their shapes and threads of a block. For decode it is the function that Triton does best, on tensor cores: on the CUDA
cores its code is three to six times as long.

example:
  build/bench-venv/bin/python benchmarks/peers/triton_compile.py gather sm_90a gather.ptx
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import triton_kernels
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend


@dataclass(frozen=True)
class Launch:
    """What a kernel is specialized for.

    Attributes:
        types: Of its parameters, but for constants.
        warps: Of a block.
        multiples: The numbers that are multiples of 16.
        function: Its name, where that is not the work's.
    """

    types: dict[str, str]
    constants: dict[str, int]
    warps: int
    multiples: tuple[str, ...] = ()
    function: str = ""


def _types(pointers: dict[str, str], *numbers: str) -> dict[str, str]:
    return {name: f"*{type}" for name, type in pointers.items()} | dict.fromkeys(numbers, "i32")


_SHAPE = {"P": 16, "H": 8, "D": 128}
_TABLES = {"lut": "i32", "lens": "i32"}
_LAYER = ("layer", "kv", "L")

LAUNCHES = {
    "gather": Launch(
        _types({"blocks": "bf16", **_TABLES, "out": "bf16"}, "max_pages", "T", *_LAYER), {**_SHAPE, "BT": 8}, 8
    ),
    "gather_fp8": Launch(
        _types({"blocks": "fp8e4nv", "scales": "fp32", **_TABLES, "out": "bf16"}, "max_pages", "T", *_LAYER),
        {**_SHAPE, "G": 64, "BT": 8},
        8,
    ),
    "append_fp8": Launch(
        _types(
            {"kvn": "bf16", "tok_batch": "i32", "tok_pos": "i32", "lut": "i32", "blocks": "fp8e4nv", "scales": "fp32"},
            *("N", "max_pages", "L", "layer"),
        ),
        {**_SHAPE, "G": 64, "BT": 2},
        8,
    ),
    "decode": Launch(
        _types(
            {"q": "bf16", "blocks": "bf16", **_TABLES, "part_o": "fp32", "part_m": "fp32", "part_l": "fp32"},
            *("max_pages", "L", "layer", "chunk", "NS"),
        )
        | {"scale_log2": "fp32"},
        {"P": 16, "HKV": 8, "GQ": 8, "D": 128, "BN": 32},
        4,
        function="decode_dot",
    ),
    "sparse_rows": Launch(
        _types({"kv": "bf16", "idx": "i32", "out": "fp32"}, "topk", "row_elems"), {"BN": 64}, 4, ("row_elems",)
    ),
    "sparse_rows_gather4": Launch(
        {"desc": "tensordesc<bf16[1, 64]>"} | _types({"idx": "i32", "out": "fp32"}, "topk"), {"BN": 64}, 4
    ),
}


def compile_to_ptx(name: str, chip: str) -> tuple[str, int]:
    """Returns the PTX, and the bytes of shared memory that a launch has to give.

    As where Triton sees the arguments of a launch, pointers are aligned to 16 bytes.
    """
    if name not in LAUNCHES:
        raise ValueError("a block's shape has to be constant in Triton")
    launch = LAUNCHES[name]
    function = getattr(triton_kernels, launch.function or name)
    target = GPUTarget("cuda", int(chip.removeprefix("sm_").rstrip("a")), 32)
    backend = make_backend(target)
    signature = {argument: launch.types.get(argument, "constexpr") for argument in function.arg_names}
    aligned = {
        (index,): [["tt.divisibility", 16]]
        for index, (argument, type) in enumerate(signature.items())
        if type.startswith("*") or argument in launch.multiples
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

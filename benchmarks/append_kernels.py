#!/usr/bin/env python3
"""What kvcache.append takes of a chip, beside kernels for the same work by others.

FlashInfer's are compiled by nvcc from the headers of its wheel, without PyTorch; scripts/bench installs it, and Triton,
in build/bench-venv. Its page size is known at run time, that of the others when they compile. Those of CUDA C++ and
Triton are in benchmarks/peers; the ones of fp8 are told the sequence and the position of each token, and multiply by
reciprocals of scales. The time is that of making PTX, the median of three: ours and Triton's in the process, nvcc's with
its start. Bytes in flight of a multiprocessor are those of a thread, of all threads that registers leave room for. The
last rows are kernels of other ops, for which nothing is compared. Nothing runs on a GPU.

examples:
  scripts/bench append
  scripts/bench append --chip sm_100a --markdown
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

try:
    import contenders
    import facts
    import kvcache
    from attention_kernels import MOST_BLOCKS, count_by_registers
    from report import Table
    from works import FOLDER
except ImportError as error:
    sys.exit(f"error: {error}\n  scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python")

CHIP = "sm_90a"
RUNS = 3
SECONDS = 300
MOST_THREADS = 2048  # of a multiprocessor of sm_80, sm_90 and sm_100
TITLES = (
    "kernel", "by", "SASS", "ours / theirs", "registers", "spills", "bytes in flight a thread", "KiB in flight an SM",
    "ms to PTX",
)  # fmt: skip
INCLUDES = ("include", "csrc", "cutlass/include", "cccl/libcudacxx/include", "cccl/cub", "cccl/thrust")
OPTIONS = ("-std=c++17", "--expt-relaxed-constexpr")


@dataclass(frozen=True)
class Kernel:
    """A kernel by a compiler or a library.

    Attributes:
        compile: The PTX for a chip, the threads of a block, and the bytes of shared memory that a launch gives; None
            if its host computes them.
    """

    by: str
    compile: Callable[[str], tuple[str, int, int | None]]


@dataclass(frozen=True)
class Work:
    """An op on pages of 16 tokens with 8 heads of 128.

    Attributes:
        dtype: Of the cache.
        scale: Of the cache.
        options: Of our operation.
        peer: The kernel of FlashInfer, with template arguments, if there is one.
        threads: Those of its block.
        cuda: The name of the kernel in CUDA C++, and of its file, if there is one.
        cuda_threads: Those of its block.
        triton: The module of the function in Triton, and the names of its launch and of the function.
    """

    title: str
    dtype: str
    scale: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    peer: str = ""
    threads: int = 0
    cuda: str = ""
    cuda_threads: int = 0
    triton: str = ""
    operation: str = "append"

    @property
    def source(self) -> str:
        config = kvcache.KVCacheQuantizationConfig(*self.scale) if self.scale else None
        params = kvcache.KVCacheParams(
            self.dtype, 8, 128, page_size=16, total_num_layers=1, kvcache_quant_config=config
        )
        if self.operation == "copy":
            return write_copy(params)
        if self.operation == "copy_pages":
            return kvcache.ops.copy_pages(params).source
        return getattr(kvcache.ops, self.operation)(params, dtype="bf16", **self.options).source


def write_copy(params: kvcache.KVCacheParams) -> str:
    """A copy of keys to a cache of another format: bf16 to the given one."""
    source = kvcache.KVCacheParams("bf16", 8, 128, page_size=16, total_num_layers=1)
    return f"""
      func.func @copy(%from: {source.cache_type}, %to: {params.cache_type}) {{
        kvcache.copy %from to %to : {source.cache_type}, {params.cache_type}
        return
      }}"""


APPEND = "AppendPagedKVCacheKernel"
NVFP4: dict[str, Any] = {"dtype": "f4E2M1FN", "scale": ("f8E4M3FN", 16)}
WORKS = [
    Work(
        "append, bf16", "bf16", peer=f"{APPEND}<128, 8, nv_bfloat16, int32_t>", threads=128, cuda="append",
        cuda_threads=128, triton="append",
    ),
    Work("append, fp8 with scales", "f8E4M3FN", ("f32", 64), cuda="append_fp8", cuda_threads=256, triton="append_fp8"),
    Work(
        "append, NVFP4", **NVFP4, options={"static_scales": True},
        peer=f"NVFP4Quantize{APPEND}<128, nv_bfloat16, int32_t>", threads=32,
    ),
    Work(
        "append to slots, NVFP4", **NVFP4, options={"static_scales": True, "slots": "i32"},
        peer="NVFP4QuantizeAppendPagedKVCacheWithSlotMappingKernel<128, nv_bfloat16, int32_t>", threads=32,
    ),
]  # fmt: skip
OTHERS = [
    Work("gather, bf16", "bf16", operation="gather"),
    Work("gather, fp8 with scales", "f8E4M3FN", ("f32", 128), operation="gather"),
    Work("copy, bf16", "bf16", operation="copy"),
    Work("copy, bf16 to fp8 with scales", "f8E4M3FN", ("f32", 64), operation="copy"),
    Work("copy_pages, bf16", "bf16", operation="copy_pages"),
    Work("copy_pages, fp8 with scales", "f8E4M3FN", ("f32", 128), operation="copy_pages"),
]


class FlashInfer:
    """Kernels of the installed wheel."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("flashinfer")
        if found is None or not found.submodule_search_locations:
            raise contenders.MissingError("FlashInfer is not installed: run scripts/bench append")
        data = Path(found.submodule_search_locations[0], "data")
        self._options = [*OPTIONS, *(f"-I{data / folder}" for folder in INCLUDES)]
        self._nvcc = contenders.Nvcc()

    def compile(self, kernel: str, chip: str, headers: tuple[str, ...] = ("page.cuh",)) -> str:
        # The address in a variable makes nvcc emit the kernel.
        text = "".join(f"#include <flashinfer/{header}>\n" for header in headers)
        text += f"using namespace flashinfer;\nvoid *used = (void *)&{kernel};\n"
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "kernel.cu")
            source.write_text(text)
            return self._nvcc.compile_file(source, chip, SECONDS, self._options)

    def get(self, kernel: str, threads: int, headers: tuple[str, ...] = ("page.cuh",)) -> Kernel:
        return Kernel("FlashInfer", lambda chip: (self.compile(kernel, chip, headers), threads, None))


def get_ours(source: str) -> Kernel:
    def compile_source(chip: str) -> tuple[str, int, int]:
        kernel, *_ = kvcache.compile(source, target=chip).kernels.values()  # another one merges parts
        return kernel.ptx, math.prod(kernel.block_size), kernel.dynamic_shared_memory or 0

    return Kernel("ours", compile_source)


def get_cuda(name: str, threads: int) -> Kernel:
    nvcc = contenders.Nvcc()
    return Kernel("CUDA C++", lambda chip: (nvcc.compile_file(FOLDER / f"peers/{name}.cu", chip), threads, 0))


def get_triton(name: str, **constants: int) -> Kernel:
    """A function of a module of peers; ``constants`` are other ones than those of its launch."""
    contenders.TritonCompile()  # finds the modules of peers
    compiler = importlib.import_module("triton_compile")
    if name in compiler.LAUNCHES:
        function, launch = getattr(importlib.import_module("triton_kernels"), name), compiler.LAUNCHES[name]
    else:
        module = importlib.import_module(f"{name}_triton")
        function, launch = getattr(module, name), getattr(module, name.upper())
    launch = replace(launch, constants={**launch.constants, **constants})

    def compile_function(chip: str) -> tuple[str, int, int]:
        try:
            ptx, shared = compiler.compile_function(function, launch, chip)
            return ptx, 32 * launch.warps, shared
        except Exception as error:  # Triton's passes raise errors of any type
            raise contenders.CannotCompileError(contenders.summarize(str(error))) from error

    return Kernel("Triton", compile_function)


def find_peers(work: Work, flashinfer: FlashInfer) -> list[Kernel]:
    kernels = [flashinfer.get(work.peer, work.threads)] if work.peer else []
    kernels += [get_cuda(work.cuda, work.cuda_threads)] if work.cuda else []
    return kernels + ([get_triton(work.triton)] if work.triton else [])


def measure(
    title: str, kernel: Kernel, chip: str, ours: int | None = None, has_shared: bool = False
) -> tuple[str, ...]:
    """The row of the table; ``ours`` is our SASS, beside that of others. ``has_shared`` adds shared memory."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        ptx, threads, dynamic = kernel.compile(chip)
        times.append(time.perf_counter() - start)
    found = facts.gather(ptx, chip, dynamic or 0)
    count = found.code.instructions
    in_flight = found.code.bytes_in_flight
    blocks = min(count_by_registers(found.registers, threads), MOST_BLOCKS, MOST_THREADS // threads)
    numbers = found.registers, found.spill_bytes, in_flight, blocks * threads * in_flight >> 10
    part = f"{ours / count:.2f}" if ours else ""
    row = title, kernel.by, str(count), part, *map(str, numbers), f"{statistics.median(times) * 1e3:.0f}"
    if not has_shared:
        return row
    return *row, "" if dynamic is None else str(found.static_shared + found.dynamic_shared)


def measure_all(work: Any, peers: Sequence[Kernel], chip: str, has_shared: bool = False) -> list[tuple[str, ...]]:
    """Our row of a work, and those of others that know the chip."""
    rows = [measure(work.title, get_ours(work.source), chip, None, has_shared)]
    for peer in peers:
        try:
            rows.append(measure(work.title, peer, chip, int(rows[0][2]), has_shared))
        except (kvcache.ToolchainError, contenders.CannotCompileError) as error:
            print(f"{work.title}: none by {peer.by} for {chip}: {error}", file=sys.stderr)
    return rows


def run(
    description: str | None, rows: Callable[[str, FlashInfer], list[tuple[str, ...]]], titles: Sequence[str] = TITLES
) -> None:
    """A command that prints a table.

    Args:
        description: Of the command.
        rows: Those for a chip.
        titles: Of the columns.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default=CHIP, help=f"default {CHIP}")
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")
    options = parser.parse_args()
    try:
        table = Table(titles, rows(options.chip, FlashInfer()), names=2)
    except (kvcache.Error, ValueError, contenders.MissingError, contenders.CannotCompileError) as error:
        sys.exit(f"error: {error}")
    print(table.render(options.markdown))


def make_rows(chip: str, flashinfer: FlashInfer) -> list[tuple[str, ...]]:
    rows = []
    for work in WORKS:
        rows += measure_all(work, find_peers(work, flashinfer), chip)
    return rows + [measure(work.title, get_ours(work.source), chip) for work in OTHERS]


if __name__ == "__main__":
    run(__doc__, make_rows)

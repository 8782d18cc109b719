#!/usr/bin/env python3
"""The resources that kvcache.append needs on a chip, beside kernels for the same work by others.

FlashInfer's are compiled by nvcc from the headers of its wheel, without PyTorch; scripts/bench installs it, and Triton,
in build/bench-venv. Its page size is known at run time, that of the others when they compile. Those of CUDA C++ and
Triton are in benchmarks/peers; the ones of fp8 are given the sequence and the position of each token, and multiply by
reciprocals of scales. The time is that of making PTX, the median of three turns: ours and Triton's in the process, nvcc's
with its start. Bytes in flight of a multiprocessor are those of a thread, of all threads that registers leave room for. The
last rows are kernels of other ops, for which nothing is compared. A second table has the instructions on each of three
chips. Nothing runs on a GPU.

examples:
  scripts/bench append
  scripts/bench append --chip sm_100a --markdown
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from command import HINT, Command
from measure import Absent, say, spread, take_turns
from provenance import FOLDER, list_versions
from record import Record
from report import Table

try:
    import facts
    import kvcache
    from contenders import CannotCompileError, Module, Nvcc, TritonCompile
    from facts import count_blocks
    from operations import Cache, Operation
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

CHIP = "sm_90a"
CHIPS = "sm_80", "sm_90a", "sm_100a"
RUNS = 3
SECONDS = 300
INCLUDES = ("include", "csrc", "cutlass/include", "cccl/libcudacxx/include", "cccl/cub", "cccl/thrust")
OPTIONS = ("-std=c++17", "--expt-relaxed-constexpr")


@dataclass(frozen=True)
class Kernel:
    """The kernel of a compiler or a library, which makes its code for a chip."""

    by: str
    compile: Callable[[str], Module]


@dataclass(frozen=True)
class Work:
    """An op on pages of 16 tokens with 8 heads of 128.

    Attributes:
        peer: The kernel of FlashInfer, with template arguments, if there is one; its block has ``threads``.
        cuda: The name of the kernel in CUDA C++, and of its file, if there is one; its block has ``cuda_threads``.
        triton: The module of the function in Triton, and the names of its launch and of the function.
    """

    title: str
    operation: Operation
    peer: str = ""
    threads: int = 0
    cuda: str = ""
    cuda_threads: int = 0
    triton: str = ""

    @property
    def source(self) -> str:
        return self.operation.source


APPEND = "AppendPagedKVCacheKernel"
BF16, FP8 = Cache(), Cache("f8E4M3FN", scale=("f32", 64))
FP8_ROWS = Cache("f8E4M3FN", scale=("f32", 128))
NVFP4 = Operation("append", Cache("f4E2M1FN", scale=("f8E4M3FN", 16)), options={"static_scales": True})
WORKS = [
    Work(
        "append, bf16", Operation("append", BF16), peer=f"{APPEND}<128, 8, nv_bfloat16, int32_t>", threads=128,
        cuda="append", cuda_threads=128, triton="append",
    ),
    Work("append, fp8 with scales", Operation("append", FP8), cuda="append_fp8", cuda_threads=256, triton="append_fp8"),
    Work("append, NVFP4", NVFP4, peer=f"NVFP4Quantize{APPEND}<128, nv_bfloat16, int32_t>", threads=32),
    Work(
        "append to slots, NVFP4", NVFP4.add(slots="i32"),
        peer="NVFP4QuantizeAppendPagedKVCacheWithSlotMappingKernel<128, nv_bfloat16, int32_t>", threads=32,
    ),
]  # fmt: skip
OTHERS = [
    Work("append with norms and rope, bf16", Operation("fused", BF16)),
    Work("gather, bf16", Operation("gather", BF16)),
    Work("gather, fp8 with scales", Operation("gather", FP8_ROWS)),
    Work("copy, bf16", Operation("copy", BF16)),
    Work("copy, bf16 to fp8 with scales", Operation("copy", FP8)),
    Work("copy_pages, bf16", Operation("copy_pages", BF16)),
    Work("copy_pages, fp8 with scales", Operation("copy_pages", FP8_ROWS)),
]


class FlashInfer:
    """Kernels of the installed wheel."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("flashinfer")
        if found is None or not found.submodule_search_locations:
            raise Absent("FlashInfer is not installed: run scripts/bench append")
        data = Path(found.submodule_search_locations[0], "data")
        self._options = [*OPTIONS, *(f"-I{data / folder}" for folder in INCLUDES)]
        self._nvcc = Nvcc()

    def get(self, kernel: str, threads: int, headers: tuple[str, ...] = ("page.cuh",)) -> Kernel:
        # The address in a variable makes nvcc emit the kernel.
        text = "".join(f"#include <flashinfer/{header}>\n" for header in headers)
        text += f"using namespace flashinfer;\nvoid *used = (void *)&{kernel};\n"

        def compile_kernel(chip: str) -> Module:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder, "kernel.cu")
                source.write_text(text)
                return Module(self._nvcc.compile_file(source, chip, SECONDS, self._options), None, threads)

        return Kernel("FlashInfer", compile_kernel)


def get_ours(source: str) -> Kernel:
    def compile_source(chip: str) -> Module:
        kernel, *_ = kvcache.compile(source, target=chip).kernels.values()  # another one merges splits
        return Module(kernel.ptx, kernel.dynamic_shared_memory or 0, math.prod(kernel.block_size))

    return Kernel("ours", compile_source)


def get_cuda(name: str, threads: int) -> Kernel:
    nvcc = Nvcc()
    return Kernel("CUDA C++", lambda chip: Module(nvcc.compile_file(FOLDER / f"peers/{name}.cu", chip), 0, threads))


def get_triton(name: str, **constants: int) -> Kernel:
    """A function of a module of peers; ``constants`` are other ones than those of its launch."""
    triton = TritonCompile()  # finds the modules of peers
    if name in triton.compiler.LAUNCHES:
        function, launch = getattr(importlib.import_module("triton_kernels"), name), triton.compiler.LAUNCHES[name]
    else:
        module = importlib.import_module(f"{name}_triton")
        function, launch = getattr(module, name), getattr(module, name.upper())
    launch = replace(launch, constants={**launch.constants, **constants})
    compile_function = triton.compiler.compile_function
    return Kernel(
        "Triton", lambda chip: triton.run(compile_function, function, launch, chip, threads=32 * launch.warps)
    )


def find_peers(work: Work, flashinfer: FlashInfer) -> list[Kernel]:
    kernels = [flashinfer.get(work.peer, work.threads)] if work.peer else []
    kernels += [get_cuda(work.cuda, work.cuda_threads)] if work.cuda else []
    return kernels + ([get_triton(work.triton)] if work.triton else [])


def make_table(has_shared: bool = False) -> Table:
    """Makes the table of all kernels; ``has_shared`` adds shared memory, which is empty where a host computes it."""
    return Table(
        "kernel", "by", "SASS", ("ours / theirs", "{:.2f}"), "registers", "spills", "bytes in flight a thread",
        "KiB in flight an SM", ("ms to PTX", "{:.0f}"), *(["shared memory"] if has_shared else []),
    )  # fmt: skip


def measure_kernels(table: Table, title: str, kernels: Sequence[Kernel], chip: str, runs: int = RUNS) -> None:
    """Adds a row for each kernel that supports the chip; the first is beside the others."""
    able: dict[str, tuple[Kernel, Module, facts.Facts]] = {}
    for kernel in kernels:
        try:
            module = kernel.compile(chip)
            able[kernel.by] = kernel, module, facts.gather(module.ptx, chip, module.dynamic_shared or 0)
        except (kvcache.ToolchainError, CannotCompileError) as error:
            say(f"{title}: none by {kernel.by} for {chip}: {error}")
    calls = {by: lambda turn, kernel=kernel: kernel.compile(chip) for by, (kernel, *_) in able.items()}
    times = take_turns(calls, runs, warm_up=0)
    ours = able["ours"][2].code.instructions if "ours" in able else 0
    for by, (_, module, found) in able.items():
        count, in_flight = found.code.instructions, found.code.bytes_in_flight
        blocks = count_blocks(found.registers, module.threads)
        row = [title, by, count, ours / count if ours and by != "ours" else None, found.registers, found.spill_bytes]
        row += [in_flight, blocks * module.threads * in_flight >> 10, spread(times[by])[0]]
        shared = None if module.dynamic_shared is None else found.shared_bytes
        table.add(*row, *([shared] if len(table.columns) > len(row) else []))


def run(
    name: str, description: str | None, record: str, measure: Callable[[str, FlashInfer], dict[str, Table]]
) -> int:
    """Runs the command ``scripts/bench NAME``; ``measure`` makes the tables for a chip."""

    def make_record(options: argparse.Namespace) -> Record:
        tables = measure(options.chip, FlashInfer())
        software = facts.find_tools() | list_versions("flashinfer-python", "triton") | {"nvcc": Nvcc().version}
        device = f"no GPU: code for {options.chip}"
        return Record(f"scripts/bench {name}", tables, device, software=software, runs=f"{RUNS} turns")

    command = Command(f"scripts/bench {name}", description, record)
    command.add_chips(CHIP, are_many=False)
    return command.run(make_record)


def compare_chips(flashinfer: FlashInfer) -> Table:
    """Makes the table of works with peers on each of ``CHIPS``: instructions by maker."""
    table = Table(
        "kernel", "chip", "SASS", "FlashInfer's", ("ours / FlashInfer's", "{:.2f}"), "CUDA C++'s", "Triton's",
        "registers", "spills", "KiB in flight an SM",
    )  # fmt: skip
    for work in WORKS:
        for chip in CHIPS:
            found = make_table()
            measure_kernels(found, work.title, [get_ours(work.source), *find_peers(work, flashinfer)], chip, runs=1)
            by = {row[1]: row for row in found.rows}
            counts = {name: row[2] for name, row in by.items()}
            ratio = counts["ours"] / counts["FlashInfer"] if "FlashInfer" in counts else None
            theirs = counts.get("FlashInfer"), ratio, counts.get("CUDA C++"), counts.get("Triton")
            table.add(work.title, chip, counts["ours"], *theirs, *by["ours"][4:6], by["ours"][7])
    return table


def measure_all(chip: str, flashinfer: FlashInfer) -> dict[str, Table]:
    table = make_table()
    for work in [*WORKS, *OTHERS]:
        measure_kernels(table, work.title, [get_ours(work.source), *find_peers(work, flashinfer)], chip)
    return {"by-maker": table, "by-chip": compare_chips(flashinfer)}


if __name__ == "__main__":
    sys.exit(run("append", __doc__, "append-kernels", measure_all))

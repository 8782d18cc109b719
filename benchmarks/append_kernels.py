#!/usr/bin/env python3
"""What kvcache.append takes of a chip, beside FlashInfer's kernels for the same work.

FlashInfer's are compiled by nvcc from the headers of its wheel, without PyTorch; scripts/bench installs it in
build/bench-venv. Its page size is known at run time, ours when it compiles. The time is that of making PTX, the median of
three: ours in the process, nvcc's with its start. Nothing runs on a GPU.

examples:
  scripts/bench append
  scripts/bench append --chip sm_100a --markdown
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

try:
    import contenders
    import facts
    import kvcache
    from report import Table
except ImportError as error:
    sys.exit(f"error: {error}\n  scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python")

CHIP = "sm_90a"
RUNS = 3
SECONDS = 300
TITLES = ("kernel", "by", "SASS", "of FlashInfer's", "registers", "spills", "bytes in flight a thread", "ms to PTX")
INCLUDES = ("include", "csrc", "cutlass/include", "cccl/libcudacxx/include", "cccl/cub", "cccl/thrust")
OPTIONS = ("-std=c++17", "--expt-relaxed-constexpr")


@dataclass(frozen=True)
class Work:
    """An append to pages of 16 tokens with 8 heads of 128.

    Attributes:
        dtype: Of the cache.
        scale: Of the cache.
        options: Of our operation.
        peer: The kernel of FlashInfer, with template arguments.
    """

    title: str
    dtype: str
    scale: tuple[Any, ...]
    options: dict[str, Any]
    peer: str

    @property
    def source(self) -> str:
        config = kvcache.KVCacheQuantizationConfig(*self.scale) if self.scale else None
        params = kvcache.KVCacheParams(
            self.dtype, 8, 128, page_size=16, total_num_layers=1, kvcache_quant_config=config
        )
        return kvcache.ops.append(params, dtype="bf16", **self.options).source


APPEND = "AppendPagedKVCacheKernel"
WORKS = [
    Work("append, bf16", "bf16", (), {}, f"{APPEND}<128, 8, nv_bfloat16, int32_t>"),
    Work(
        "append, NVFP4", "f4E2M1FN", ("f8E4M3FN", 16), {"static_scales": True},
        f"NVFP4Quantize{APPEND}<128, nv_bfloat16, int32_t>",
    ),
    Work(
        "append to slots, NVFP4", "f4E2M1FN", ("f8E4M3FN", 16), {"static_scales": True, "slots": "i32"},
        "NVFP4QuantizeAppendPagedKVCacheWithSlotMappingKernel<128, nv_bfloat16, int32_t>",
    ),
]  # fmt: skip


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


def compile_ours(source: str, chip: str) -> str:
    (kernel,) = kvcache.compile(source, target=chip).kernels.values()
    return kernel.ptx


def measure(title: str, by: str, chip: str, compile: Callable[[], str], peer: int | None) -> tuple[str, ...]:
    """The row of the table; ``peer`` is the SASS of FlashInfer."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        ptx = compile()
        times.append(time.perf_counter() - start)
    found = facts.gather(ptx, chip, 0)
    count = found.code.instructions
    part = f"{count / peer:.2f}" if peer else "1"
    numbers = found.registers, found.spill_bytes, found.code.bytes_in_flight
    return title, by, str(count), part, *map(str, numbers), f"{statistics.median(times) * 1e3:.0f}"


def run(
    description: str | None,
    works: Sequence[Any],
    headers: tuple[str, ...] = ("page.cuh",),
    more: Sequence[tuple[str, str]] = (),
) -> None:
    """A command that prints a table.

    Args:
        description: Of the command.
        works: Each with a title, the source of ours, and a kernel of FlashInfer.
        headers: Of these kernels.
        more: Titles and names of kernels of FlashInfer for which ours need none.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default=CHIP, help=f"default {CHIP}")
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")
    options = parser.parse_args()
    chip, rows = options.chip, []
    try:
        peer = FlashInfer()

        def measure_peer(title: str, kernel: str) -> tuple[str, ...]:
            return measure(title, "FlashInfer", chip, partial(peer.compile, kernel, chip, headers), None)

        for work in works:
            theirs = measure_peer(work.title, work.peer)
            compile_work = partial(compile_ours, work.source, chip)
            rows += [measure(work.title, "ours", chip, compile_work, int(theirs[2])), theirs]
        rows += [measure_peer(title, kernel) for title, kernel in more]
    except (kvcache.Error, ValueError, contenders.MissingError, contenders.CannotCompileError) as error:
        sys.exit(f"error: {error}")
    print(Table(TITLES, rows, names=2).render(options.markdown))


if __name__ == "__main__":
    run(__doc__, WORKS)

#!/usr/bin/env python3
"""The machine code of kvcache.index_scores and top_rows, beside FlashInfer's and SGLang's kernels for a selection.

Instructions of scores are those of all warps for 128 keys of one query token: of the loop over tiles, with one round of
the loop over query tokens. FlashInfer's kernel is its deterministic one, where the smaller index is first of equal scores.
SGLang's is that of rows in one thread block; it fixes no order. nvcc compiles both from the wheels: scripts/bench installs
FlashInfer's, and scripts/setup.sh SGLang's in build/engines-venv. Nothing runs on a GPU.

examples:
  scripts/bench index
  scripts/bench index --markdown
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command import HINT, Command
from measure import Absent, say
from provenance import BUILD, list_versions
from record import Record
from report import Table

try:
    import append_kernels
    import facts
    import kvcache
    from contenders import CannotCompileError, Nvcc
    from kvcache.compilation import sass, toolchain
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

CHIPS = ("sm_80", "sm_90a", "sm_100a")
PEER_CHIP = "sm_90a"
KEYS, WARPS = 128, 4
SELECTED = (512, 2048)
SPLITS = 16
MODE = "sampling::FilteredTopKMode::PageTable, sampling::TopKTieBreak::Small"
FLASHINFER = f"sampling::FilteredTopKUnifiedKernel<float, int32_t, 4, true, {MODE}>"
SGLANG = "sglang::topk_main_kernel<true, 2, sglang::TopKMode::PAGE_TABLE>"


FP8 = "f8E4M3FN", ("f32", 128)
MXFP4 = "f4E2M1FN", ("f8E8M0FNU", 32)


@dataclass(frozen=True)
class Scores:
    """Scores of keys of 128 elements by ``heads`` heads, as of DeepSeek V3.2; a block has tiles of ``keys`` keys."""

    dtype: str
    heads: int
    keys: int
    scale: tuple[str, int] | None = None
    queries: str | None = None

    @property
    def title(self) -> str:
        keys = {"f8E4M3FN": "fp8 with scales", MXFP4[0]: "MXFP4"}.get(self.dtype, self.dtype)
        return f"{keys}, {self.heads} heads{', MXFP4 queries' if self.queries else ''}"

    @property
    def params(self) -> kvcache.KVCacheParams:
        config = kvcache.KVCacheQuantizationConfig(*self.scale) if self.scale else None
        return kvcache.KVCacheParams(
            self.dtype, 1, 128, page_size=64, total_num_layers=1, is_mla=True, kvcache_quant_config=config
        )

    @property
    def key_bytes(self) -> int:
        bits = kvcache.dtypes.bits(self.dtype)
        return 128 * bits // 8 + (4 if self.scale else 0)

    @property
    def source(self) -> str:
        options = {"relu": True, "sum_heads": True, "weights": True, "dtype": self.queries or self.dtype}
        source: str = kvcache.ops.index_scores(self.params, self.heads, **options).source
        return source


SCORES = [
    *(Scores(FP8[0], heads, 128, FP8[1]) for heads in (64, 32)),
    *(Scores(FP8[0], heads, 128, FP8[1], MXFP4[0]) for heads in (64, 32)),
    *(Scores(MXFP4[0], heads, 64, MXFP4[1], MXFP4[0]) for heads in (64, 32)),
    *(Scores("bf16", heads, 64) for heads in (64, 32)),
]


class SGLang:
    """Kernels that SGLang compiles when they are called."""

    def __init__(self) -> None:
        found = sorted(BUILD.glob("engines-venv/lib/python*/site-packages"))
        if not found or not (found[0] / "sglang").is_dir():
            raise Absent("SGLang is not installed in build/engines-venv")
        jit = found[0] / "sglang/kernels/jit"
        folders = jit / "csrc", jit / "include", found[0] / "tvm_ffi/include"
        self._options = ["-std=c++20", "--expt-relaxed-constexpr", *(f"-I{folder}" for folder in folders)]
        self.version = next(found[0].glob("sglang-*.dist-info")).name.removesuffix(".dist-info").partition("-")[2]

    def compile(self, kernel: str, chip: str) -> str:
        text = f'#include "deepseek_v4/topk_v2.cuh"\nvoid *used = (void *)&{kernel};\n'
        architecture = f"-DSGL_CUDA_ARCH={chip.removeprefix('sm_').rstrip('af')}0"
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "kernel.cu")
            source.write_text(text)
            return Nvcc().compile_file(source, chip, append_kernels.SECONDS, [*self._options, architecture])


def count_scores(scores: Scores, chip: str) -> list[Any]:
    """The row of a kernel on a chip."""
    (kernel,) = kvcache.compile(scores.source, target=chip).kernels.values()
    found = facts.gather(kernel.ptx, chip, kernel.dynamic_shared_memory or 0)
    loop = found.code.main_loop
    if loop is None:
        raise ValueError(f"expects a loop over tiles in the kernel of {scores.title}, got none")
    warps = WARPS * KEYS // scores.keys  # that have 128 keys together
    counts = [found.code.instructions, warps * loop.instructions, warps * loop.matrix_instructions]
    return [scores.title, chip, *counts, found.registers, found.spill_bytes, scores.key_bytes, found.shared_bytes]


def measure_scores() -> Table:
    titles = "scores", "chip", "SASS", "SASS for 128 keys", "HMMA for 128 keys"
    facts_of_kernels = "registers", "spills", "bytes a key", "shared memory"
    rows = [count_scores(scores, chip) for scores in SCORES for chip in CHIPS]
    return Table(*titles, *facts_of_kernels, rows=rows)


def add_selection(table: Table, title: str, by: str, ptx: str, name: str, dynamic_shared: int | None) -> None:
    """Adds the kernel whose name contains ``name``."""
    assembly = toolchain.assemble(ptx, PEER_CHIP)
    symbol = next(symbol for symbol in assembly.resources if name in symbol)
    resources, code = assembly.resources[symbol], sass.read(toolchain.disassemble(assembly.cubin)[symbol])
    atomics = sum(code.accesses.get("shared atomic", {}).values())
    shared = None if dynamic_shared is None else resources.shared_bytes + dynamic_shared
    row: list[Any] = [title, by, code.instructions, resources.registers, resources.spill_bytes, atomics, shared]
    table.add(*row)


def measure_selections(peers: dict[str, Callable[[], str]]) -> Table:
    table = Table("selection", "by", "SASS", "registers", "spills", "shared atomics", "shared memory")
    params = kvcache.KVCacheParams("bf16", 1, 576, page_size=64, total_num_layers=1, is_mla=True)
    for k in SELECTED:
        (kernel,) = kvcache.compile(kvcache.ops.top_rows(params, k).source, target=PEER_CHIP).kernels.values()
        add_selection(table, f"k = {k}", "ours", kernel.ptx, "top_rows", kernel.dynamic_shared_memory or 0)
        source = kvcache.ops.top_rows(params, k, splits=SPLITS).source
        for step, kernel in zip(("splits", "of splits"), kvcache.compile(source, target=PEER_CHIP).kernels.values()):
            title = f"k = {k}, {step}"
            add_selection(table, title, "ours", kernel.ptx, "top_rows", kernel.dynamic_shared_memory or 0)
    for by, compile_peer in peers.items():
        try:
            add_selection(table, "any k", by, compile_peer(), "opK" if by == "FlashInfer" else "main_kernel", None)
        except (Absent, kvcache.ToolchainError, CannotCompileError) as error:
            say(f"selection: none by {by}: {error}")
    return table


def measure_all() -> Record:
    versions = facts.find_tools() | list_versions("flashinfer-python") | {"nvcc": Nvcc().version}
    peers = {
        "FlashInfer": lambda: (
            append_kernels.FlashInfer().get(FLASHINFER, 1024, ("topk.cuh",)).compile(PEER_CHIP).ptx
        ),
        "SGLang": lambda: SGLang().compile(SGLANG, PEER_CHIP),
    }
    tables = {"scores": measure_scores(), "selections": measure_selections(peers)}
    try:
        versions["sglang"] = SGLang().version
    except Absent as error:
        say(str(error))
    device = f"no GPU: code for {', '.join(CHIPS)}"
    return Record("scripts/bench index", tables, device, software=versions)


if __name__ == "__main__":
    sys.exit(Command("scripts/bench index", __doc__, record="index-kernels").run(lambda options: measure_all()))

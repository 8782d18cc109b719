#!/usr/bin/env python3
"""Counts what the kernels of kvcache.attention take of a chip, for each variant. Nothing runs on a GPU.

Blocks are those that registers and shared memory leave room for on a multiprocessor. Bytes in flight are those of global
loads of the loop over tokens whose registers no instruction has used yet, or of all tiles of keys and values, of all
threads of these blocks. The emulator's meter says how often a decode step reads bytes of the cache.

A first table has kernels without tensor cores, and a second one those for tensor cores. A third one has kernels for few
query rows, by ``mma.sync`` and by swapAB. A fourth one has kernels for elements of 8 or 4 bits, with the instructions for a KiB
of the cache. A fifth one has the loops of prompts, with and without products that overlap the softmax.

examples:
  PYTHONPATH=build/python build/venv/bin/python benchmarks/attention_kernels.py
  PYTHONPATH=build/python build/venv/bin/python benchmarks/attention_kernels.py --record
  PYTHONPATH=build/python build/venv/bin/python benchmarks/attention_kernels.py --chip sm_100a --markdown
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from command import HINT, Command
from record import Record
from report import Table

try:
    import facts
    import kvcache
    import numpy as np
    from kvcache.compilation import sass, toolchain
    from kvcache.tuning import candidates
    from operations import Cache, Operation
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

CHIP = "sm_90a"
TENSOR_COLUMNS = 512  # of tensor memory of an SM
COUNTED = "SASS", "registers", ("shared memory", "{:,}"), "blocks an SM", "KiB in flight an SM"
COLUMNS = {
    "cuda-cores": ("without tensor cores", "kernels", *COUNTED, ("reads of the cache", "{:.1f}")),
    "tensor-cores": ("tensor cores", *COUNTED),
    "few-rows": ("few query rows, in splits", "by", *COUNTED),
    "eight-bits": ("elements of 8 or 4 bits, in splits", "by", *COUNTED, ("instructions a KiB", "{:.0f}")),
    "prompts": (
        "prompts", "schedule", "keys of a tile", ("SASS for 128 keys", "{:.0f}"), "exponentials during MMAs", "registers", "spills",
    ),
}  # fmt: skip
TOKENS = 64  # of a page, and of a tile on tensor cores
TOKENS_OF_WARPS = 8  # of the loop of a warp without tensor cores, for heads of 128


@dataclass(frozen=True)
class Variant:
    """Attention of ``query_heads`` to ``heads`` heads of a cache, on all chips or some."""

    title: str
    dtype: str = "bf16"
    scale: tuple[Any, ...] = ()
    heads: int = 8
    query_heads: int = 32
    size: int = 128
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    chips: tuple[str, ...] = ()

    def fits(self, chip: str) -> bool:
        return not self.chips or chip in self.chips

    @property
    def raw_tiles(self) -> int:
        """Tiles of raw elements that copies bring: of latent rows of 8 bits."""
        return 2 if "value_dim" in self.options and self.dtype.startswith("f8") else 0

    @property
    def operation(self) -> Operation:
        cache = Cache(self.dtype, self.heads, self.size, 64, self.scale, "value_dim" in self.options)
        return Operation("attention", cache, self.query_heads, self.options)

    def make(self, target: str) -> kvcache.ops.Attention:
        return self.operation.make(target)


SPLIT = {"split_tokens": 256}
LATENT = {"heads": 1, "query_heads": 128, "size": 576}
WARPS = {"tile_rows": 0, **SPLIT}
ROLES = {"config": kvcache.AttentionConfig(schedule="roles")}
PAIR = {"config": kvcache.AttentionConfig(schedule="pair")}
CLUSTER = {"tile_rows": 16, "max_splits": 8, "config": kvcache.AttentionConfig(merge="cluster"), **SPLIT}
VARIANTS = [
    Variant("32 over 8 heads of 128, bf16", options={"tile_rows": 0}),
    Variant("the same, in splits", options=WARPS),
    Variant("8 over 8 heads, in splits", query_heads=8, options=WARPS),
    Variant("64 over 8 heads, in splits", query_heads=64, options=WARPS),
    Variant("heads of 64, in splits", size=64, options=WARPS),
    Variant("heads of 256, in splits", size=256, options=WARPS),
    Variant("window, soft cap, sinks", options={"window": 4096, "soft_cap": 50.0, "sinks": True, **WARPS}),
    Variant("mask of new tokens", options={"causal": False, "mask": True, **WARPS}),
    Variant("fp8, in splits", "f8E4M3FN", options=WARPS),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128), options=WARPS),
    Variant("int8, a scale for 32", "i8", ("f32", 32), options=WARPS),
    Variant("int4, zero points for 32", "i4", ("f16", 32, "f16"), options=WARPS),
    Variant("latent cache, 128 heads", **LATENT, options={"value_dim": 512, "tile_rows": 0}),
    Variant(
        "sparse latent cache, in splits", **LATENT, options={"value_dim": 512, "rows": True, **WARPS}
    ),
]
TILED = [
    Variant("32 over 8 heads of 128, bf16", options={"tile_rows": 64}),
    Variant("the same, 128 rows", options={"tile_rows": 128}),
    Variant("the same, 16 rows", options={"tile_rows": 16}),
    Variant("the same, in splits", options={"tile_rows": 16, **SPLIT}),
    Variant("heads of 64", size=64),
    Variant("heads of 256", size=256),
    Variant("heads of 256, 128 rows", size=256, options={"tile_rows": 128}),
    Variant("window, soft cap, sinks", options={"window": 4096, "soft_cap": 50.0, "sinks": True}),
    Variant("mask of new tokens", options={"causal": False, "mask": True}),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128)),
    Variant("int4, zero points for 32", "i4", ("f16", 32, "f16")),
    Variant("latent cache, 128 heads", **LATENT, options={"value_dim": 512}),
    Variant("the same, in splits", **LATENT, options={"value_dim": 512, **SPLIT}),
    Variant("the same, fp8", "f8E4M3FN", **LATENT, options={"value_dim": 512}),
    Variant("the same, fp8, in splits", "f8E4M3FN", **LATENT, options={"value_dim": 512, **SPLIT}),
    Variant("sparse latent cache", **LATENT, options={"value_dim": 512, "rows": True}),
    Variant("the same, in splits", **LATENT, options={"value_dim": 512, "rows": True, **SPLIT}),
    Variant("the same, in splits, fp8", "f8E4M3FN", **LATENT, options={"value_dim": 512, "rows": True, **SPLIT}),
    Variant("32 over 8 heads of 128, roles", options=ROLES, chips=("sm_100a",)),
    Variant("heads of 64, roles", size=64, options=ROLES, chips=("sm_100a",)),
    Variant("latent cache, pairs", **LATENT, options={"value_dim": 512, **PAIR}, chips=("sm_100a",)),
]
FEW = {"heads": 1, "size": 576}
LATENT_SPLITS = {"value_dim": 512, **SPLIT}
GROUPED = {"query_heads": 64, "options": {"tile_rows": 16, **SPLIT}}
FEW_ROWS = [
    Variant("latent cache, 32 heads", query_heads=32, **FEW, options=LATENT_SPLITS),
    Variant("latent cache, 16 heads", query_heads=16, **FEW, options=LATENT_SPLITS),
    Variant("latent cache of fp8, 32 heads", "f8E4M3FN", query_heads=32, **FEW, options=LATENT_SPLITS),
    Variant("sparse latent cache, 16 heads", query_heads=16, **FEW, options={**LATENT_SPLITS, "rows": True}),
    Variant("64 over 8 heads of 128, 16 rows", **GROUPED),
]
# Splits that a cluster merges. No record has these.
CLUSTERED = [
    Variant("32 over 8 heads of 128", options=CLUSTER, chips=("sm_90a", "sm_100a", "sm_120a")),
    Variant("the same, fp8", "f8E4M3FN", options=CLUSTER, chips=("sm_90a", "sm_100a", "sm_120a")),
]
# Elements of 8 or 4 bits, by warps without tensor cores, and by in-register dequantization.
NARROW = [
    Variant("fp8", "f8E4M3FN", options=SPLIT),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128), options=SPLIT),
    Variant("int8, a scale for 128", "i8", ("f32", 128), options=SPLIT),
    Variant("int8, a scale for 32", "i8", ("f32", 32), options=SPLIT),
    Variant("fp8, 8 over 8 heads", "f8E4M3FN", query_heads=8, options=SPLIT),
    Variant("NVFP4", "f4E2M1FN", ("f8E4M3FN", 16), options=SPLIT),
    Variant("int4, zero points for 128", "i4", ("f16", 128, "f16"), options=SPLIT),
    Variant("int4, zero points for 32", "i4", ("f16", 32, "f16"), options=SPLIT),
    Variant("MXFP4", "f4E2M1FN", ("f8E8M0FNU", 32), options=SPLIT),
]


PROMPT_KEYS = 128
PROMPTS = [
    Variant("heads of 128"),
    Variant("heads of 64", size=64),
    Variant("heads of 256", size=256),
    Variant("window", options={"window": 4096}),
    Variant("window, soft cap, sinks", options={"window": 4096, "soft_cap": 50.0, "sinks": True}),
    Variant("fp8", "f8E4M3FN"),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128)),
    Variant("int8, a scale for 128", "i8", ("f32", 128)),
    Variant("int8, a scale for 32", "i8", ("f32", 32)),
]


@dataclass(frozen=True)
class Kernel:
    """The code of a variant for a chip. ``count`` kernels are launched one after the other."""

    ptx: str
    found: facts.Facts
    threads: int
    count: int

    @property
    def blocks(self) -> int:
        """Blocks of a multiprocessor, as registers, shared memory and tensor memory allow."""
        blocks = facts.count_blocks(self.found.registers, self.threads, self.found.shared_bytes)
        allocations = re.findall(r"tcgen05\.alloc\..*, (%r\d+);", self.ptx)
        constants = dict(re.findall(r"mov\.b32\s+(%r\d+), (-?\d+);", self.ptx))
        return min([blocks, *(TENSOR_COLUMNS // int(constants[name]) for name in allocations)])

    def list_counts(self, block_bytes: int) -> list[Any]:
        """Returns the cells that all tables have, with the KiB in flight of a multiprocessor."""
        code, shared = self.found.code, self.found.shared_bytes
        return [code.instructions, self.found.registers, shared, self.blocks, block_bytes * self.blocks >> 10]


@functools.cache
def compile_kernel(variant: Variant, chip: str) -> Kernel:
    """Compiles a variant; the first kernel is described, and another one merges splits."""
    kernels = list(variant.make("cpu").compile(chip).kernels.values())
    found = facts.gather(kernels[0].ptx, chip, kernels[0].dynamic_shared_memory or 0)
    return Kernel(kernels[0].ptx, found, kernels[0].block_size[0], len(kernels))


def count_reads(variant: Variant, chip: str) -> float:
    """Bytes that a decode step reads of global memory, for each byte of the cache: of further tokens."""
    read, held = (b - a for a, b in zip(*(count_bytes(variant, chip, tokens) for tokens in (TOKENS, 2 * TOKENS))))
    return read / held


def count_bytes(variant: Variant, chip: str, tokens: int) -> tuple[int, int]:
    """Bytes that a decode step of one sequence reads of global memory, and bytes of the sequence in the cache."""
    params = variant.operation.cache.params
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=tokens, num_pages=tokens // 64)
    manager.claim(0, np.arange(tokens - 1))
    manager.step([0])
    manager.grow(0, [0])
    inputs = manager.inputs([0])
    attend = variant.make(f"emulator:{chip}")
    program = kvcache.jit(attend.source, target=attend.target, meter=True)
    shape = 1, variant.query_heads, variant.size
    q = np.zeros(shape, kvcache.dtypes.dtype("bf16"))
    out = np.zeros((*shape[:2], variant.options.get("value_dim", variant.size)), q.dtype)
    more: list[Any] = [np.zeros(attend.workspace_size(1), np.int8)] if "split_tokens" in variant.options else []
    if variant.options.get("sinks"):
        more.append(np.zeros(variant.query_heads, np.float32))
    if variant.options.get("mask"):
        more.append(np.ones((1, 1), np.int32))
    if variant.options.get("rows"):
        more.append((inputs.lut[0, : tokens // 64, None] * 64 + np.arange(64)).reshape(1, -1).astype(np.int32))
    offsets = inputs.row_offsets.view(np.int32)
    lse = np.zeros((1, variant.query_heads), np.float32)
    program.call("attention", *inputs.collection(0), 0, q, offsets, out, lse, 1.0, *more)
    launch = program.launches[0]  # a second one merges splits
    return launch.global_bytes_read, tokens * params.bytes_per_block // 64


def measure_warps(variant: Variant, chip: str) -> list[Any]:
    """Returns the row of a kernel without tensor cores."""
    kernel = compile_kernel(variant, chip)
    assert kernel.found.code.main_loop is not None
    block_bytes = kernel.found.code.main_loop.bytes_in_flight * kernel.threads
    return [variant.title, kernel.count, *kernel.list_counts(block_bytes), count_reads(variant, chip)]


def measure_tiles(variant: Variant, chip: str) -> list[Any]:
    """Returns the row of a kernel for tensor cores."""
    kernel = compile_kernel(variant, chip)
    found = kernel.found
    if variant.raw_tiles:
        block_bytes = TOKENS * variant.size * variant.raw_tiles
    elif found.code.bulk_copies or "global to shared" in found.code.accesses:
        rows = kernel.threads // 32 * 16  # of a warp, or of two that share the accumulators of large values
        if variant.options.get("value_dim", 0) > 256 and "tcgen05.alloc" not in kernel.ptx:
            rows //= 2
        block_bytes = found.shared_bytes - rows * variant.size * 2
    else:  # threads convert elements
        block_bytes = found.code.bytes_in_flight * kernel.threads
    return [variant.title, *kernel.list_counts(block_bytes)]


def measure_few_rows(variant: Variant, swap: bool) -> list[Any]:
    """Returns the row of a kernel for few query rows."""
    variant = replace(variant, options={**variant.options, "swap_operands": swap})
    tokens = 16 if variant.size > 256 and not swap else TOKENS
    token_bytes = variant.size if variant.raw_tiles else 2 * variant.size * (1 if "value_dim" in variant.options else 2)
    block_bytes = 2 * tokens * token_bytes  # two tiles, of stored bytes if there are any
    counts = compile_kernel(variant, CHIP).list_counts(block_bytes)
    return [variant.title, "wgmma, swapAB" if swap else "mma.sync", *counts]


def measure_narrow(variant: Variant, by_warps: bool) -> list[Any]:
    """Returns the row of a kernel for elements of 8 or 4 bits."""
    rows = {"tile_rows": 0} if by_warps else {}
    kernel = compile_kernel(replace(variant, options={**variant.options, **rows}), CHIP)
    loop = kernel.found.code.main_loop if by_warps else kernel.found.code.product_loop
    assert loop is not None and kernel.threads == 32
    cache = variant.operation.cache.params
    rows_of_page = cache.page_size * variant.heads
    tile_bytes = TOKENS * cache.bytes_per_block // rows_of_page  # of keys, values and their scales
    row_bytes = variant.size * 4 // 8 if variant.dtype in ("f4E2M1FN", "i4") else variant.size
    planned = candidates.plan(variant.make("cpu"), CHIP).config
    tokens = TOKENS_OF_WARPS if by_warps else planned.keys
    block_bytes = loop.bytes_in_flight * 32 if by_warps else 2 * tokens * 2 * row_bytes
    kib_instructions = TOKENS / tokens * loop.instructions * 1024 / tile_bytes
    return [variant.title, "warps" if by_warps else "in-register", *kernel.list_counts(block_bytes), kib_instructions]


def measure_prompt(variant: Variant, chip: str) -> list[list[Any]]:
    """Returns the rows of a prompt: without overlap and, if the compiler chooses another schedule, with that.

    Instructions are those of a warp in the loop for keys that all of its query rows see.
    """
    rows = {}
    for config in (kvcache.AttentionConfig(schedule="prefetch"), kvcache.AttentionConfig()):
        operation = replace(variant, options={**variant.options, "config": config}).make("cpu")
        planned = candidates.plan(operation, chip).config
        (kernel,) = operation.compile(chip, "cubin").kernels.values()
        listing = toolchain.disassemble(kernel.cubin)[kernel.name]
        loop = sass.read(listing).product_loop
        assert loop is not None and planned.keys is not None
        counts = planned.keys, loop.instructions * PROMPT_KEYS / planned.keys, sass.count_overlap(listing)
        rows[planned.schedule] = [variant.title, planned.schedule, *counts, kernel.registers, kernel.spill_bytes]
    return list(rows.values())


def measure(options: argparse.Namespace) -> Record:
    rows = {
        "cuda-cores": [measure_warps(variant, options.chip) for variant in VARIANTS],
        "tensor-cores": [measure_tiles(variant, options.chip) for variant in TILED if variant.fits(options.chip)],
        "few-rows": [measure_few_rows(variant, swap) for variant in FEW_ROWS for swap in (False, True)],
        "eight-bits": [measure_narrow(variant, by_warps) for variant in NARROW for by_warps in (True, False)],
        "prompts": [row for variant in PROMPTS for row in measure_prompt(variant, CHIP)],
    }
    tables = {name: Table(*columns, rows=rows[name]) for name, columns in COLUMNS.items()}
    return Record(
        "benchmarks/attention_kernels.py", tables, f"no GPU: code for {options.chip}", software=facts.find_tools()
    )


def main() -> int:
    command = Command("benchmarks/attention_kernels.py", __doc__, "attention-kernels")
    command.add_chips(CHIP, are_many=False)
    return command.run(measure)


if __name__ == "__main__":
    sys.exit(main())

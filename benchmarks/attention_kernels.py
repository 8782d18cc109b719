#!/usr/bin/env python3
"""Counts what the kernels of kvcache.attention take of a chip, for each variant. Nothing runs on a GPU.

Blocks are those that registers and shared memory leave room for on a multiprocessor. Bytes in flight are those of global
loads of the loop over tokens whose registers no instruction has used yet, or of all tiles of keys and values, of all
threads of these blocks. The emulator's meter says how often a decode step reads bytes of the cache.

A first table has kernels without tensor cores, and a second one those for tensor cores. A third one has kernels for few
query rows, by ``mma.sync`` and by swapAB. A fourth one has kernels for elements of 8 bits, with the instructions for a KiB
of the cache.

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

try:
    import facts
    import kvcache
    import numpy as np
    import provenance
    import record
    from report import Table
    from works import FOLDER
except ImportError as error:
    sys.exit(f"error: {error}\n  scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python")

CHIP = "sm_90a"
REGISTERS, MOST_BLOCKS = 65536, 32  # of an SM from sm_80 on, except those of desktops
SHARED, RESERVED = 228 << 10, 1 << 10  # bytes of an SM of sm_90 and sm_100, and what each block takes besides its own
TENSOR_COLUMNS = 512  # of tensor memory of an SM
COUNTED = "SASS", "registers", "shared memory", "blocks an SM", "KiB in flight an SM"
TITLES = "without tensor cores", "kernels", *COUNTED, "reads of the cache"
TILED_TITLES = "tensor cores", *COUNTED
FEW_TITLES = "few query rows, in splits", "by", *COUNTED
NARROW_TITLES = "elements of 8 bits, in splits", "by", *COUNTED, "instructions a KiB"
TOKENS = 64  # of a page, and of a tile on tensor cores
TOKENS_OF_WARPS = 8  # of the loop of a warp without tensor cores, for heads of 128


@dataclass(frozen=True)
class Variant:
    """Attention of ``query_heads`` to ``heads`` heads of a cache."""

    title: str
    dtype: str = "bf16"
    scale: tuple[Any, ...] = ()
    heads: int = 8
    query_heads: int = 32
    size: int = 128
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def raw_tiles(self) -> int:
        """Tiles of raw elements that copies bring: of latent rows of 8 bits."""
        return 2 if "value_dim" in self.options and self.dtype.startswith("f8") else 0

    @property
    def params(self) -> kvcache.KVCacheParams:
        config = kvcache.KVCacheQuantizationConfig(*self.scale) if self.scale else None
        return kvcache.KVCacheParams(
            self.dtype,
            self.heads,
            self.size,
            page_size=64,
            total_num_layers=1,
            kvcache_quant_config=config,
            is_mla="value_dim" in self.options,
        )

    def make(self, target: str) -> kvcache.ops.Attention:
        return kvcache.ops.attention(self.params, self.query_heads, target=target, dtype="bf16", **self.options)


SPLIT = {"split_tokens": 256}
LATENT = {"heads": 1, "query_heads": 128, "size": 576}
WARPS = {"tile_rows": 0, **SPLIT}
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
# Elements of 8 bits, by warps without tensor cores, and by in-register dequantization.
NARROW = [
    Variant("fp8", "f8E4M3FN", options=SPLIT),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128), options=SPLIT),
    Variant("int8, a scale for 128", "i8", ("f32", 128), options=SPLIT),
    Variant("int8, a scale for 32", "i8", ("f32", 32), options=SPLIT),
    Variant("fp8, 8 over 8 heads", "f8E4M3FN", query_heads=8, options=SPLIT),
]


@dataclass(frozen=True)
class Need:
    """The needs of a kernel.

    Attributes:
        found: Its code and memory.
        blocks: Blocks of a multiprocessor.
        in_flight: KiB of a multiprocessor.
    """

    found: facts.Facts
    blocks: int
    in_flight: float

    def show(self) -> tuple[str, ...]:
        """Returns the counted cells of a row."""
        shared = self.found.static_shared + self.found.dynamic_shared
        counts = self.found.code.instructions, self.found.registers, f"{shared:,}", self.blocks, f"{self.in_flight:.0f}"
        return tuple(map(str, counts))


def count_by_registers(registers: int, threads: int) -> int:
    """Blocks that registers leave room for: warps get them in steps of 8 for each thread."""
    return REGISTERS // (threads * -(-registers // 8) * 8)


@functools.lru_cache(maxsize=None)
def compile_kernel(variant: Variant, chip: str) -> tuple[Any, facts.Facts]:
    """Returns the first kernel of a variant, and the facts of its code. Another one merges splits."""
    kernel, *_ = variant.make("cpu").compile(chip).kernels.values()
    return kernel, facts.gather(kernel.ptx, chip, kernel.dynamic_shared_memory or 0)


def count_blocks(kernel: Any, found: facts.Facts) -> int:
    """Blocks of a multiprocessor, as registers, shared memory and tensor memory allow."""
    shared = found.static_shared + found.dynamic_shared
    blocks = min(count_by_registers(found.registers, kernel.block_size[0]), SHARED // (shared + RESERVED), MOST_BLOCKS)
    allocations = re.findall(r"tcgen05\.alloc\..*, (%r\d+);", kernel.ptx)
    constants = dict(re.findall(r"mov\.b32\s+(%r\d+), (-?\d+);", kernel.ptx))
    return min([blocks, *(TENSOR_COLUMNS // int(constants[name]) for name in allocations)])


def find_need(variant: Variant, chip: str) -> Need:
    """Returns the need of a kernel without tensor cores."""
    kernel, found = compile_kernel(variant, chip)
    assert found.code.main_loop is not None
    blocks = count_blocks(kernel, found)
    return Need(found, blocks, found.code.main_loop.bytes_in_flight * kernel.block_size[0] * blocks / 1024)


def find_need_of_tiles(variant: Variant, chip: str) -> Need:
    """Returns the need of a kernel for tensor cores."""
    kernel, found = compile_kernel(variant, chip)
    threads, blocks = kernel.block_size[0], count_blocks(kernel, found)
    if variant.raw_tiles:
        of_block = TOKENS * variant.size * variant.raw_tiles
    elif found.code.bulk_copies or "global to shared" in found.code.accesses:
        rows = threads // 32 * 16  # of a warp, or of two that share the accumulators of large values
        if variant.options.get("value_dim", 0) > 256 and "tcgen05.alloc" not in kernel.ptx:
            rows //= 2
        of_block = found.static_shared + found.dynamic_shared - rows * variant.size * 2
    else:  # threads convert elements
        of_block = found.code.bytes_in_flight * threads
    return Need(found, blocks, of_block * blocks >> 10)


def count_reads(variant: Variant, chip: str) -> float:
    """Bytes that a decode step reads of global memory, for each byte of the cache: of further tokens."""
    read, held = (b - a for a, b in zip(*(count_bytes(variant, chip, tokens) for tokens in (TOKENS, 2 * TOKENS))))
    return read / held


def count_bytes(variant: Variant, chip: str, tokens: int) -> tuple[int, int]:
    """Bytes that a decode step of one sequence reads of global memory, and bytes of the sequence in the cache."""
    params = variant.params
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
    launch = program.launches[0]  # a second one merges parts
    return launch.global_bytes_read, tokens * params.bytes_per_block // 64


def measure(variant: Variant, chip: str) -> tuple[str, ...]:
    """Returns the row of a kernel without tensor cores."""
    kernels = len(variant.make("cpu").compile(chip).kernels)  # with one that merges splits
    return variant.title, str(kernels), *find_need(variant, chip).show(), f"{count_reads(variant, chip):.1f}"


def measure_tiles(variant: Variant, chip: str) -> tuple[str, ...]:
    """Returns the row of a kernel for tensor cores."""
    return variant.title, *find_need_of_tiles(variant, chip).show()


def measure_few_rows(variant: Variant, swap: bool) -> tuple[str, ...]:
    """Returns the row of a kernel for few query rows."""
    variant = replace(variant, options={**variant.options, "swap_operands": swap})
    kernel, found = compile_kernel(variant, CHIP)
    tokens = 16 if variant.size > 256 and not swap else TOKENS
    of_token = variant.size if variant.raw_tiles else 2 * variant.size * (1 if "value_dim" in variant.options else 2)
    blocks = count_blocks(kernel, found)
    need = Need(found, blocks, blocks * 2 * tokens * of_token >> 10)  # two tiles, of stored bytes if there are any
    return variant.title, "wgmma, swapAB" if swap else "mma.sync", *need.show()


def measure_narrow(variant: Variant, by_warps: bool) -> tuple[str, ...]:
    """Returns the row of a kernel for elements of 8 bits."""
    rows = {"tile_rows": 0} if by_warps else {}
    kernel, found = compile_kernel(replace(variant, options={**variant.options, **rows}), CHIP)
    loop = found.code.main_loop if by_warps else found.code.product_loop
    assert loop is not None and kernel.block_size[0] == 32
    groups = variant.size // variant.scale[1] if variant.scale else 0
    tokens = TOKENS_OF_WARPS if by_warps else TOKENS // 2 if groups > 1 else TOKENS
    of_tokens = TOKENS * 2 * (variant.size + 4 * groups)  # bytes of keys, values and their scales
    of_block = loop.bytes_in_flight * 32 if by_warps else 2 * tokens * 2 * variant.size
    blocks = count_blocks(kernel, found)
    of_kib = TOKENS / tokens * loop.instructions * 1024 / of_tokens
    need = Need(found, blocks, of_block * blocks / 1024)
    return variant.title, "warps" if by_warps else "in-register", *need.show(), f"{of_kib:.0f}"


def tabulate(chip: str) -> dict[str, Table]:
    """Returns the tables by their names in the record."""
    few = [measure_few_rows(variant, swap) for variant in FEW_ROWS for swap in (False, True)]
    narrow = [measure_narrow(variant, by_warps) for variant in NARROW for by_warps in (True, False)]
    return {
        "cuda-cores": Table(TITLES, [measure(variant, chip) for variant in VARIANTS], names=1),
        "tensor-cores": Table(TILED_TITLES, [measure_tiles(variant, chip) for variant in TILED], names=1),
        "few-rows": Table(FEW_TITLES, few, names=2),
        "eight-bits": Table(NARROW_TITLES, narrow, names=2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default=CHIP, help=f"default {CHIP}")
    parser.add_argument("--markdown", action="store_true", help="Markdown tables")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/attention-kernels.json")
    options = parser.parse_args()
    tables = tabulate(options.chip)
    if options.record:
        source = provenance.collect_tools("benchmarks/attention_kernels.py")
        found = record.make_from_tables(source, f"no GPU: code for {options.chip}", tables)
        record.write(FOLDER / "results/attention-kernels.json", found)
    print("\n\n".join(table.render(options.markdown) for table in tables.values()))


if __name__ == "__main__":
    try:
        main()
    except (kvcache.Error, ValueError) as error:
        sys.exit(f"error: {error}")

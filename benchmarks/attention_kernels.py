#!/usr/bin/env python3
"""What the kernels of kvcache.attention take of a chip, for each variant.

Blocks are those that registers leave room for on a multiprocessor. Bytes in flight are those of global loads of the loop
over tokens whose registers no instruction has used yet, of all threads of these blocks.

Peaks are those of bandwidth, and the parts of them are estimates, the least of three, in a batch that fills the chip: what
copies reach; what the bytes in flight allow (Little's law); and what the instructions of the loop over tokens allow. A
multiprocessor issues four of a warp in a clock, of which two are integer arithmetic or conversions, one is a shuffle, and
every second one a function (CUDA C++ programming guide, throughput of native arithmetic instructions). The emulator's meter
says how often bytes of the cache are read. Nothing runs on a GPU.

A second table has the kernels for tensor cores. Shared memory limits their blocks as well, and their bytes in flight are
those of all tiles of keys and values, or of raw tiles, or of loads. Peaks are those of tensor cores, for 16 bits without sparsity, and the
parts are estimates for prompts whose rows fill all blocks: the least of what ``mma.sync``, ``wgmma`` or ``tcgen05`` reaches,
and of what the other instructions of the loop over tiles allow. Waiting is no part of it.

A third table has kernels of sm_90a for few query rows, by ``mma.sync`` and by ``wgmma`` with swapped operands. Its clocks are
those of a multiprocessor for 64 tokens of a block: of the instructions of the loop over tiles, of its tensor cores, of what
it reads of shared memory at 128 bytes a clock, operands of ``wgmma`` included, and of an H200's memory at its peak. The part
of that peak is what copies reach, or the least that the others allow.

A fourth table has kernels of sm_90a for elements of 8 bits, with the clocks of 64 tokens of a head of the cache.

examples:
  PYTHONPATH=build/python build/venv/bin/python benchmarks/attention_kernels.py
  PYTHONPATH=build/python build/venv/bin/python benchmarks/attention_kernels.py --chip sm_100a --markdown
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

try:
    import facts
    import kvcache
    import numpy as np
    import sass
    from report import Table
except ImportError as error:
    sys.exit(f"error: {error}\n  scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python")

CHIP = "sm_90a"
REGISTERS, MOST_BLOCKS = 65536, 32  # of an SM from sm_80 on, but for those of desktops
SHARED, RESERVED = 228 << 10, 1 << 10  # bytes of an SM of sm_90 and sm_100, and what each block takes besides its own


@dataclass(frozen=True)
class Device:
    """A GPU: bytes, multiplications and additions a second, and clocks as published, and KiB in flight that an SM needs
    for all of the bytes."""

    name: str
    chip: str
    bandwidth: float
    multiprocessors: int
    clock: float
    in_flight: int
    tensor_peak: float

    @property
    def products_a_clock(self) -> float:
        """Those of ``HMMA.16816``, for each multiprocessor, at the peak of its tensor cores."""
        return self.tensor_peak / self.multiprocessors / self.clock / PRODUCT

    @property
    def bytes_a_clock(self) -> float:
        """Of the memory, for each multiprocessor."""
        return self.bandwidth / self.multiprocessors / self.clock


DEVICES = [
    Device("H200", "sm_90a", 4.8e12, 132, 1.83e9, 25, 989e12),
    Device("B200", "sm_100a", 7.67e12, 148, 1.85e9, 41, 2250e12),
]
REACHABLE = 0.9  # of the peak, by copies
PRODUCT = 2 * 16 * 8 * 16  # multiplications and additions of a HMMA.16816
# HMMAs of a multiprocessor in a clock: taken to be 5/8 of the peak of an H200, which wgmma alone reaches. Newer chips are
# taken to have as many, since their peaks are those of other instructions.
PRODUCTS = 5 / 8
# Rows of a product of tcgen05 at which it is taken to reach the peak of a B200. Those of fewer rows take as long.
FULL_ROWS = 128
TENSOR_COLUMNS = 512  # of tensor memory of an SM
SHARED_A_CLOCK = 128  # bytes of shared memory that an SM reads in a clock
TITLES = (
    "variant",
    "kernels",
    "SASS",
    "registers",
    "shared memory",
    "blocks an SM",
    "KiB in flight an SM",
    "reads of the cache",
    *(f"of {device.name}'s peak" for device in DEVICES),
    "limit",
)
# Instructions of a warp that a multiprocessor takes in a clock: of all kinds, and of those that have less.
ISSUED = 4.0
RATES = {
    "integers": (2.0, "IADD3 LOP3 LEA SHF ISETP PRMT SEL VIADD VIMNMX IABS FSEL FMNMX FSETP F2FP F2F I2F F2I".split()),
    "multiplications": (2.0, ["IMAD"]),
    "shuffles": (1.0, ["SHFL"]),
    "functions": (0.5, ["MUFU"]),
}
TOKENS = 64  # of a page, and of a tile on tensor cores


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
    Variant("the same, in parts", options=WARPS),
    Variant("8 over 8 heads, in parts", query_heads=8, options=WARPS),
    Variant("64 over 8 heads, in parts", query_heads=64, options=WARPS),
    Variant("heads of 64, in parts", size=64, options=WARPS),
    Variant("heads of 256, in parts", size=256, options=WARPS),
    Variant("window, soft cap, sinks", options={"window": 4096, "soft_cap": 50.0, "sinks": True, **WARPS}),
    Variant("mask of new tokens", options={"causal": False, "mask": True, **WARPS}),
    Variant("fp8, in parts", "f8E4M3FN", options=WARPS),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128), options=WARPS),
    Variant("int8, a scale for 32", "i8", ("f32", 32), options=WARPS),
    Variant("int4, zero points for 32", "i4", ("f16", 32, "f16"), options=WARPS),
    Variant("latent rows, 128 heads", **LATENT, options={"value_dim": 512, "tile_rows": 0}),
    Variant(
        "sparse latent rows, in parts", **LATENT, options={"value_dim": 512, "rows": True, **WARPS}
    ),
]
TILED = [
    Variant("32 over 8 heads of 128, bf16", options={"tile_rows": 64}),
    Variant("the same, 128 rows", options={"tile_rows": 128}),
    Variant("the same, 16 rows", options={"tile_rows": 16}),
    Variant("the same, in parts", options={"tile_rows": 16, **SPLIT}),
    Variant("heads of 64", size=64),
    Variant("heads of 256", size=256),
    Variant("heads of 256, 128 rows", size=256, options={"tile_rows": 128}),
    Variant("window, soft cap, sinks", options={"window": 4096, "soft_cap": 50.0, "sinks": True}),
    Variant("mask of new tokens", options={"causal": False, "mask": True}),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128)),
    Variant("int4, zero points for 32", "i4", ("f16", 32, "f16")),
    Variant("latent rows, 128 heads", **LATENT, options={"value_dim": 512}),
    Variant("the same, in parts", **LATENT, options={"value_dim": 512, **SPLIT}),
    Variant("the same, fp8", "f8E4M3FN", **LATENT, options={"value_dim": 512}),
    Variant("the same, fp8, in parts", "f8E4M3FN", **LATENT, options={"value_dim": 512, **SPLIT}),
    Variant("sparse latent rows", **LATENT, options={"value_dim": 512, "rows": True}),
    Variant("the same, in parts", **LATENT, options={"value_dim": 512, "rows": True, **SPLIT}),
    Variant("the same, in parts, fp8", "f8E4M3FN", **LATENT, options={"value_dim": 512, "rows": True, **SPLIT}),
]
FEW = {"heads": 1, "size": 576}
LATENT_PARTS = {"value_dim": 512, **SPLIT}
GROUPED = {"query_heads": 64, "options": {"tile_rows": 16, **SPLIT}}
FEW_ROWS = [
    Variant("latent rows, 32 heads", query_heads=32, **FEW, options=LATENT_PARTS),
    Variant("latent rows, 16 heads", query_heads=16, **FEW, options=LATENT_PARTS),
    Variant("latent rows of fp8, 32 heads", "f8E4M3FN", query_heads=32, **FEW, options=LATENT_PARTS),
    Variant("sparse latent rows, 16 heads", query_heads=16, **FEW, options={**LATENT_PARTS, "rows": True}),
    Variant("64 over 8 heads of 128, 16 rows", **GROUPED),
]
FEW_TITLES = (
    "few query rows, in parts",
    "by",
    *TITLES[2:7],
    "clocks of instructions",
    "of tensor cores",
    "of shared memory",
    "of an H200's memory",
    "of H200's peak",
)
# Of elements of 8 bits, by warps without tensor cores, and by warps that multiply raw tiles.
NARROW = [
    Variant("fp8", "f8E4M3FN", options=SPLIT),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128), options=SPLIT),
    Variant("int8, a scale for 128", "i8", ("f32", 128), options=SPLIT),
    Variant("int8, a scale for 32", "i8", ("f32", 32), options=SPLIT),
    Variant("fp8, 8 over 8 heads", "f8E4M3FN", query_heads=8, options=SPLIT),
]
NARROW_TITLES = (
    "elements of 8 bits, in parts",
    "by",
    *TITLES[2:7],
    "instructions a KiB",
    "clocks of instructions",
    "of integers",
    "of functions",
    "of tensor cores",
    "of shared memory",
    "of an H200's memory",
    "of H200's peak",
)
TOKENS_OF_WARPS = 8  # of the loop of a warp without tensor cores, for heads of 128
TILED_TITLES = ("on tensor cores", *TITLES[2:7], *TITLES[8:])


@dataclass(frozen=True)
class Need:
    """What a variant's kernel takes of a chip.

    Attributes:
        found: Its code and memory.
        blocks: Of a multiprocessor.
        in_flight: KiB of a multiprocessor.
        reads: Bytes read of global memory for each byte of the cache.
    """

    found: facts.Facts
    blocks: int
    in_flight: float
    reads: float

    def estimate(self, device: Device) -> tuple[float, str]:
        """The part of the peak of bandwidth, and what limits it."""
        loop = self.found.code.main_loop
        assert loop is not None
        limits = {"copies": REACHABLE, "bytes in flight": REACHABLE * self.in_flight / device.in_flight}
        for kind, spent in count_clocks(loop).items():
            limits[kind] = 32 * loop.global_bytes / self.reads / max(spent, 1) / device.bytes_a_clock
        limit = min(limits, key=lambda kind: limits[kind])
        return limits[limit], limit


def count_clocks(loop: sass.Loop) -> dict[str, float]:
    """Clocks that a multiprocessor needs for a warp's instructions of a loop, of all kinds and of those that have less."""
    clocks = {"instructions": loop.instructions / ISSUED}
    for kind, (rate, names) in RATES.items():
        clocks[kind] = sum(loop.by_name[name] for name in names) / rate
    return clocks


@dataclass(frozen=True)
class TensorProducts:
    """What a block multiplies into tensor memory in its loop over tiles: the shapes, and the columns that it allocates."""

    shapes: list[tuple[int, int]]
    columns: int

    @staticmethod
    def find(ptx: str) -> TensorProducts | None:
        """Reads the instruction descriptors and the size of the allocation, which are constants."""
        constants = {name: int(value) for name, value in re.findall(r"mov\.b32\s+(%r\d+), (-?\d+);", ptx)}
        forms = [constants[name] for name in re.findall(r"tcgen05\.mma\..*, (%r\d+), %p\d+;", ptx)]
        if not forms:
            return None
        (columns,) = re.findall(r"tcgen05\.alloc\..*, (%r\d+);", ptx)
        return TensorProducts([((form >> 24 & 31) * 16, (form >> 17 & 63) * 8) for form in forms], constants[columns])

    def count(self, least_rows: int = 0) -> float:
        """Products of elements of 16 bits, in those of ``HMMA.16816``; of at least so many rows."""
        return sum(2 * max(m, least_rows) * n * 16 for m, n in self.shapes) / PRODUCT


def estimate_products(loop: sass.Loop, device: Device, tensor: TensorProducts | None, warps: int) -> tuple[float, str]:
    """The part of the peak of tensor cores, and what limits it. ``tensor`` has the products that all warps share."""
    if tensor:
        products = tensor.count() / warps
        unit, of_unit = "tcgen05", tensor.count(FULL_ROWS) / warps / device.products_a_clock
    else:
        products = loop.products / PRODUCT
        is_group = loop.by_name["HGMMA"] > 0
        unit, of_unit = ("wgmma", products / device.products_a_clock) if is_group else ("mma.sync", products / PRODUCTS)
    clocks = {**count_clocks(loop), unit: of_unit}
    limit = max(clocks, key=lambda kind: clocks[kind])
    return products / clocks[limit] / device.products_a_clock, limit


def count_by_registers(registers: int, threads: int) -> int:
    """Blocks that registers leave room for: warps get them in steps of 8 for each thread."""
    return REGISTERS // (threads * -(-registers // 8) * 8)


def count_rounds(code: sass.MachineCode, of_thread: int) -> list[tuple[sass.Loop, int]]:
    """The loops that convert a tile, of which each thread reads so many bytes of shared memory, and how often they run."""
    return [(loop, of_thread // loop.shared_bytes) for loop in code.loops_of_products if loop.shared_bytes]


def unroll(loop: sass.Loop, rounds: list[tuple[sass.Loop, int]]) -> sass.Loop:
    """The loop, whose inner ones count as often as they run."""
    names = sum((Counter({name: count * (n - 1) for name, count in inner.by_name.items()}) for inner, n in rounds), loop.by_name)
    instructions = loop.instructions + sum(inner.instructions * (n - 1) for inner, n in rounds)
    return replace(loop, instructions=instructions, by_name=names)


@functools.lru_cache(maxsize=None)
def find_need(variant: Variant, chip: str) -> Need:
    kernel, *_ = variant.make("cpu").compile(chip).kernels.values()
    found = facts.gather(kernel.ptx, chip, kernel.dynamic_shared_memory or 0)
    threads = kernel.block_size[0]
    blocks = min(count_by_registers(found.registers, threads), MOST_BLOCKS)
    assert found.code.main_loop is not None
    in_flight = found.code.main_loop.bytes_in_flight * threads * blocks / 1024
    return Need(found, blocks, in_flight, count_reads(variant, chip))


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
    """The row of the table."""
    need = find_need(variant, chip)
    shared = need.found.static_shared + need.found.dynamic_shared
    kernels = len(variant.make("cpu").compile(chip).kernels)  # with one that merges parts
    counts = kernels, need.found.code.instructions, need.found.registers, shared, need.blocks
    estimates = [find_need(variant, device.chip).estimate(device) for device in DEVICES]
    parts = [f"{100 * part:.0f} %" for part, _ in estimates]
    limits = list(dict.fromkeys(limit for _, limit in estimates))
    return variant.title, *map(str, counts), f"{need.in_flight:.0f}", f"{need.reads:.1f}", *parts, ", ".join(limits)


def measure_tiles(variant: Variant, chip: str) -> tuple[str, ...]:
    """The row of the table of kernels for tensor cores."""
    kernel, *_ = variant.make("cpu").compile(chip).kernels.values()
    found = facts.gather(kernel.ptx, chip, kernel.dynamic_shared_memory or 0)
    threads = kernel.block_size[0]
    shared = found.static_shared + found.dynamic_shared
    blocks = min(count_by_registers(found.registers, threads), SHARED // (shared + RESERVED))
    tensor = TensorProducts.find(kernel.ptx)
    if tensor:
        blocks = min(blocks, TENSOR_COLUMNS // tensor.columns)
    raw = TOKENS * variant.size * variant.raw_tiles
    if raw:
        of_block = raw
    elif found.code.bulk_copies or "global to shared" in found.code.accesses:
        rows = threads // 32 * 16  # of a warp, or of two that share the sums of large values
        if variant.options.get("value_dim", 0) > 256 and not tensor:
            rows //= 2
        of_block = shared - rows * variant.size * 2
    else:  # threads convert elements
        of_block = found.code.bytes_in_flight * threads
    in_flight = of_block * blocks >> 10
    parts, limits = [], []
    for device in DEVICES:
        same, *_ = variant.make("cpu").compile(device.chip).kernels.values()
        code = facts.gather(same.ptx, device.chip, same.dynamic_shared_memory or 0).code
        loop = code.product_loop or code.main_loop
        assert loop is not None
        if raw:
            loop = unroll(loop, count_rounds(code, TOKENS * variant.size // same.block_size[0]))
        part, limit = estimate_products(loop, device, TensorProducts.find(same.ptx), same.block_size[0] // 32)
        parts.append(f"{100 * part:.0f} %")
        limits.append(limit)
    counts = found.code.instructions, found.registers, shared, blocks, in_flight
    return variant.title, *map(str, counts), *parts, ", ".join(dict.fromkeys(limits))


def measure_few_rows(variant: Variant, swap: bool) -> tuple[str, ...]:
    """The row of the table of kernels for few query rows."""
    variant = replace(variant, options={**variant.options, "swap_operands": swap})
    kernel, *_ = variant.make("cpu").compile(CHIP).kernels.values()
    found = facts.gather(kernel.ptx, CHIP, kernel.dynamic_shared_memory or 0)
    threads, shared, loop = kernel.block_size[0], found.static_shared + found.dynamic_shared, found.code.product_loop
    assert loop is not None
    warps = threads // 32
    tokens = 16 if variant.size > 256 and not swap else TOKENS
    if variant.raw_tiles:
        loop = unroll(loop, count_rounds(found.code, tokens * variant.size // threads))
    read = 32 * loop.shared_bytes * warps
    products = loop.products * warps / PRODUCT
    if swap:
        of_row = loop.products * warps / (2 * 64 * 16)  # rows of all instructions
        read += 32 * (64 * loop.by_name["HGMMA"] + of_row)
    clocks = (
        loop.instructions * warps / ISSUED,
        products / (DEVICES[0].products_a_clock if swap else PRODUCTS),
        read / SHARED_A_CLOCK,
    )
    of_token = variant.size if variant.raw_tiles else 2 * variant.size * (1 if "value_dim" in variant.options else 2)
    needed = [TOKENS / tokens * each for each in clocks]
    memory = TOKENS * of_token / DEVICES[0].bytes_a_clock
    part = min(REACHABLE, memory / max(needed))
    blocks = min(count_by_registers(found.registers, threads), SHARED // (shared + RESERVED))
    in_flight = blocks * 2 * tokens * of_token >> 10  # two tiles, raw ones if there are any
    counts = found.code.instructions, found.registers, shared, blocks, in_flight
    unit = "`wgmma`, swapped" if swap else "`mma.sync`"
    return variant.title, unit, *map(str, counts), *(f"{each:.0f}" for each in (*needed, memory)), f"{100 * part:.0f} %"


def measure_narrow(variant: Variant, by_warps: bool) -> tuple[str, ...]:
    """The row of the table of kernels for elements of 8 bits."""
    rows = {"tile_rows": 0} if by_warps else {}
    kernel, *_ = replace(variant, options={**variant.options, **rows}).make("cpu").compile(CHIP).kernels.values()
    found = facts.gather(kernel.ptx, CHIP, kernel.dynamic_shared_memory or 0)
    (threads, *_), shared = kernel.block_size, found.static_shared + found.dynamic_shared
    loop = found.code.main_loop if by_warps else found.code.product_loop
    assert loop is not None and threads == 32
    groups = variant.size // variant.scale[1] if variant.scale else 0
    tokens = TOKENS_OF_WARPS if by_warps else TOKENS // 2 if groups > 1 else TOKENS
    of_tokens = TOKENS * 2 * (variant.size + 4 * groups)  # bytes of keys, values and their scales
    blocks = min(count_by_registers(found.registers, threads), MOST_BLOCKS, SHARED // (shared + RESERVED))
    of_block = loop.bytes_in_flight * threads if by_warps else 2 * tokens * 2 * variant.size
    in_flight = of_block * blocks / 1024
    spent = count_clocks(loop)
    clocks = (
        spent["instructions"],
        spent["integers"],
        spent["functions"],
        loop.products / PRODUCT / PRODUCTS,
        32 * loop.shared_bytes / SHARED_A_CLOCK,
    )
    needed = [TOKENS / tokens * each for each in clocks]
    memory = of_tokens / DEVICES[0].bytes_a_clock
    part = min(REACHABLE, REACHABLE * in_flight / DEVICES[0].in_flight, memory / max(needed))
    counts = found.code.instructions, found.registers, shared, blocks, f"{in_flight:.0f}"
    of_kib = TOKENS / tokens * loop.instructions * 1024 / of_tokens
    cells = f"{of_kib:.0f}", *(f"{each:.0f}" for each in (*needed, memory)), f"{100 * part:.0f} %"
    return variant.title, "warps" if by_warps else "raw tiles", *map(str, counts), *cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default=CHIP, help=f"default {CHIP}")
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")
    options = parser.parse_args()
    rows = [measure(variant, options.chip) for variant in VARIANTS]
    print(Table(TITLES, rows, names=1).render(options.markdown))
    tiled = [measure_tiles(variant, options.chip) for variant in TILED]
    print(f"\n{Table(TILED_TITLES, tiled, names=1).render(options.markdown)}")
    few = [measure_few_rows(variant, swap) for variant in FEW_ROWS for swap in (False, True)]
    print(f"\n{Table(FEW_TITLES, few, names=2).render(options.markdown)}")
    narrow = [measure_narrow(variant, by_warps) for variant in NARROW for by_warps in (True, False)]
    print(f"\n{Table(NARROW_TITLES, narrow, names=2).render(options.markdown)}")


if __name__ == "__main__":
    try:
        main()
    except (kvcache.Error, ValueError) as error:
        sys.exit(f"error: {error}")

#!/usr/bin/env python3
"""Counts the instructions of one dequantizing load, for every format and chip.

The kernel finds a token's page, loads neighbouring elements (16 bytes of them) and their scales, and stores the result.
Each cell is PTX / SASS instructions of the whole kernel, addresses and parameters included. Nothing runs on a GPU.

examples:
  PYTHONPATH=build/python build/venv/bin/python benchmarks/quantized_loads.py
  PYTHONPATH=build/python build/venv/bin/python benchmarks/quantized_loads.py --chips sm_90a --result f16 --markdown
"""

import argparse
import sys

from command import HINT, Command
from record import Record
from report import Table

try:
    import kvcache
    from facts import count_ptx_instructions, find_tools
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

HEADS, HEAD_SIZE, PAGE_SIZE = 8, 128, 64
BLOCKS = f"?x2x?x{PAGE_SIZE}x{HEADS}"
FORMATS = [  # elements, scales, granularity
    ("f8E4M3FN", "f32", 128),
    ("f8E4M3FN", "f32", 32),
    ("f8E4M3FN", "f16", 128),
    ("f8E4M3FN", "bf16", 128),
    ("f8E4M3FN", "f8E8M0FNU", 32),
    ("f8E5M2", "f32", 128),
    ("i8", "f32", 128),
    ("i8", "f16", 128),
    ("f4E2M1FN", "f8E4M3FN", 16),
    ("f4E2M1FN", "f8E8M0FNU", 32),
]


def source(element: str, scale: str, granularity: int, result: str) -> str:
    """MLIR of the kernel `load`."""
    is_fp4 = element == "f4E2M1FN"
    lanes = 32 if is_fp4 else 16
    blocks = f"memref<{BLOCKS}x{HEAD_SIZE // 2}xi8>" if is_fp4 else f"memref<{BLOCKS}x{HEAD_SIZE}x{element}>"
    scales = f"memref<{BLOCKS}x{HEAD_SIZE // granularity}x{scale}>"
    cache = f"{element}, #kv, page_size = {PAGE_SIZE}, scale = {scale}, granularity = {granularity}"
    return f"""
#kv = #kvcache.params<num_heads = {HEADS}, head_size = {HEAD_SIZE}>
!collection = !kvcache.paged_collection<{cache}>
!cache = !kvcache.paged<{cache}>
gpu.module @kernels {{
  gpu.func @load(%blocks: {blocks}, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                 %scales: {scales}, %layer: index, %b: index, %h: index, %t: index, %d: index,
                 %out: memref<{lanes}x{result}>) kernel {{
    %c0 = arith.constant 0 : index
    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
        : {blocks}, memref<?xi32>, memref<?x?xi32>, {scales} -> !collection
    %keys = kvcache.paged_view key %collection[%layer] : !collection
    %v = kvcache.load %keys[%b, %h, %t, %d] : !cache -> vector<{lanes}x{result}>
    vector.store %v, %out[%c0] {{alignment = 16}} : memref<{lanes}x{result}>, vector<{lanes}x{result}>
    gpu.return
  }}
}}"""


def measure(options: argparse.Namespace) -> Record:
    table = Table("elements", "scales", "granularity", *((chip, "{} / {}") for chip in options.chips))
    for format in FORMATS:
        text = source(*format, options.result)
        table.add(*format, *(count(text, chip) for chip in options.chips))
    return Record("benchmarks/quantized_loads.py", {"instructions": table}, device="no GPU", software=find_tools())


def count(text: str, chip: str) -> list[int]:
    """PTX and SASS instructions of the kernel for one chip."""
    instructions = count_ptx_instructions(kvcache.compile(text, target=chip).kernels["load"].ptx)
    return [instructions, kvcache.compile(text, target=chip, format="cubin").kernels["load"].sass_instructions]


def main() -> int:
    command = Command("benchmarks/quantized_loads.py", __doc__, "quantized-loads")
    command.add_chips("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")
    command.add("--result", choices=["bf16", "f16", "f32"], default="bf16", help="default bf16")
    return command.run(measure)


if __name__ == "__main__":
    sys.exit(main())

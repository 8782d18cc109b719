#!/usr/bin/env python3
"""What the kernels of kvcache.attention take of a chip, for each variant.

Blocks are those that registers leave room for on a multiprocessor. Bytes in flight are those of global loads of the loop
over tokens whose registers no instruction has used yet, of all threads of these blocks. Nothing runs on a GPU.

examples:
  PYTHONPATH=build/python build/venv/bin/python benchmarks/attention_kernels.py
  PYTHONPATH=build/python build/venv/bin/python benchmarks/attention_kernels.py --chip sm_100a --markdown
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from typing import Any

try:
    import facts
    import kvcache
    from report import Table
except ImportError as error:
    sys.exit(f"error: {error}\n  scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python")

CHIP = "sm_90a"
TITLES = ("variant", "kernels", "SASS", "registers", "shared memory", "blocks an SM", "KiB in flight an SM")
REGISTERS, MOST_BLOCKS = 65536, 32  # of an SM from sm_80 on, but for those of desktops


@dataclass(frozen=True)
class Variant:
    """Attention of ``query_heads`` to ``heads`` heads of a cache."""

    title: str
    dtype: str = "bf16"
    scale: tuple[Any, ...] = ()
    heads: int = 8
    query_heads: int = 32
    size: int = 128
    options: dict[str, Any] = field(default_factory=dict)

    def compile(self, chip: str) -> kvcache.CompiledModule:
        config = kvcache.KVCacheQuantizationConfig(*self.scale) if self.scale else None
        params = kvcache.KVCacheParams(
            self.dtype, self.heads, self.size, page_size=64, total_num_layers=1,
            kvcache_quant_config=config, is_mla="value_dim" in self.options,
        )
        return kvcache.ops.attention(params, self.query_heads, dtype="bf16", **self.options).compile(chip)


SPLIT = {"split_tokens": 256}
LATENT = {"heads": 1, "query_heads": 128, "size": 576}
VARIANTS = [
    Variant("32 over 8 heads of 128, bf16"),
    Variant("the same, in parts", options=SPLIT),
    Variant("8 over 8 heads, in parts", query_heads=8, options=SPLIT),
    Variant("64 over 8 heads, in parts", query_heads=64, options=SPLIT),
    Variant("heads of 64, in parts", size=64, options=SPLIT),
    Variant("heads of 256, in parts", size=256, options=SPLIT),
    Variant("window, soft cap, sinks", options={"window": 4096, "soft_cap": 50.0, "sinks": True, **SPLIT}),
    Variant("mask of new tokens", options={"causal": False, "mask": True, **SPLIT}),
    Variant("fp8, in parts", "f8E4M3FN", options=SPLIT),
    Variant("fp8, a scale for 128", "f8E4M3FN", ("f32", 128), options=SPLIT),
    Variant("int8, a scale for 32", "i8", ("f32", 32), options=SPLIT),
    Variant("int4, zero points for 32", "i4", ("f16", 32, "f16"), options=SPLIT),
    Variant("latent rows, 128 heads", **LATENT, options={"value_dim": 512}),
    Variant("the same, in parts", **LATENT, options={"value_dim": 512, **SPLIT}),
    Variant("sparse latent rows, in parts", **LATENT, options={"value_dim": 512, "rows": True, **SPLIT}),
]


def measure(variant: Variant, chip: str) -> tuple[str, ...]:
    """The row of the table."""
    kernels = variant.compile(chip).kernels
    (kernel,) = kernels.values()
    found = facts.gather(kernel.ptx, chip, kernel.dynamic_shared_memory or 0)
    threads = kernel.block_size[0]
    # Registers are given to warps, in steps of 8 for each thread.
    blocks = min(REGISTERS // (threads * -(-found.registers // 8) * 8), MOST_BLOCKS)
    assert found.code.main_loop is not None
    in_flight = found.code.main_loop.bytes_in_flight * threads * blocks / 1024
    shared = found.static_shared + found.dynamic_shared
    counts = len(kernels), found.code.instructions, found.registers, shared, blocks
    return variant.title, *map(str, counts), f"{in_flight:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default=CHIP, help=f"default {CHIP}")
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")
    options = parser.parse_args()
    rows = [measure(variant, options.chip) for variant in VARIANTS]
    print(Table(TITLES, rows, names=1).render(options.markdown))


if __name__ == "__main__":
    try:
        main()
    except (kvcache.Error, ValueError) as error:
        sys.exit(f"error: {error}")

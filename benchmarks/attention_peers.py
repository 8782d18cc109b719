#!/usr/bin/env python3
"""Registers and instructions of kvcache.attention, beside FlashInfer's kernels for the same work, and one in Triton.

They are compiled as in append_kernels.py. A kernel of ours attends to prompts and single tokens, and merges its splits;
FlashInfer has a kernel for each of these. The one in Triton, in benchmarks/peers, computes a part of one token, on tensor
cores, and another kernel has to merge it. Nothing runs on a GPU.

examples:
  scripts/bench attention
  scripts/bench attention --chip sm_100a --markdown
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from command import HINT
from report import Table

try:
    import append_kernels
    from operations import Cache, Operation
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

HEADERS = (
    "attention/decode.cuh", "attention/prefill.cuh", "attention/cascade.cuh", "attention/default_decode_params.cuh",
    "attention/default_prefill_params.cuh", "attention/variants.cuh",
)  # fmt: skip


def decode(dtype: str, group: int, window: bool = False, cap: bool = False) -> str:
    """FlashInfer's kernel for one query token of heads of 128, with the template arguments of its launcher."""
    bytes_ = 2 if dtype == "nv_bfloat16" else 1
    width = max(16 // bytes_, 128 // 32)
    across = 128 // width
    depth = max(128, across * group) // (across * group)
    tile = 1 if group > 1 else 4 // (3 - bytes_)
    variant = f"DefaultAttention<false, {str(window).lower()}, {str(cap).lower()}, false>"
    params = f"BatchDecodeParams<nv_bfloat16, {dtype}, nv_bfloat16, int32_t>"
    sizes = f"2, {tile}, {width}, {across}, {group}, {depth}"
    return f"BatchDecodeWithPagedKVCacheKernel<PosEncodingMode::kNone, {sizes}, {variant}, {params}>"


def prompt(dtype: str) -> str:
    """Its kernel for blocks of 64 query rows of heads of 128, on tensor cores."""
    variant = "DefaultAttention<false, false, false, false>"
    traits = (
        "KernelTraits<MaskMode::kCausal, 64, 1, 8, 8, 8, 4, 1, PosEncodingMode::kNone, nv_bfloat16, "
        f"{dtype}, nv_bfloat16, float, int32_t, {variant}>"
    )
    return f"BatchPrefillWithPagedKVCacheKernel<true, {traits}, BatchPrefillPagedParams<nv_bfloat16, {dtype}, nv_bfloat16, int32_t>>"


@dataclass(frozen=True)
class Work:
    """Attention of ``query_heads`` over 8 heads of 128 in pages of 16 tokens.

    Attributes:
        peer: FlashInfer's kernel.
        triton: Query heads of a head of the cache, of the function in Triton, if it does the same.
    """

    title: str
    peer: str
    dtype: str = "bf16"
    query_heads: int = 32
    options: dict[str, Any] = field(default_factory=dict)
    triton: int = 0

    @property
    def source(self) -> str:
        return Operation("attention", Cache(self.dtype), self.query_heads, self.options).source


SPLIT = {"split_tokens": 256}
WARPS = {"tile_rows": 0, **SPLIT}
MERGE = "PersistentVariableLengthMergeStatesKernel<8, 16, 8, 4, float, nv_bfloat16, int32_t>"
WORKS = [
    Work("decode, 32 heads", decode("nv_bfloat16", 4)),
    Work("decode, 32 heads, in splits", decode("nv_bfloat16", 4), options=WARPS, triton=4),
    Work(
        "decode, 32 heads, in splits, tensor cores", decode("nv_bfloat16", 4), options={**SPLIT, "tile_rows": 16}, triton=4
    ),
    Work("decode, 8 heads", decode("nv_bfloat16", 1), query_heads=8),
    Work("decode, 64 heads", decode("nv_bfloat16", 8), query_heads=64),
    Work("decode, 64 heads, in splits", decode("nv_bfloat16", 8), query_heads=64, options=WARPS, triton=8),
    Work("decode, fp8", decode("__nv_fp8_e4m3", 4), "f8E4M3FN"),
    Work(
        "decode, window and soft cap", decode("nv_bfloat16", 4, window=True, cap=True),
        options={"window": 4096, "soft_cap": 50.0},
    ),
    Work("prompt, 32 heads", prompt("nv_bfloat16")),
]  # fmt: skip

THREADS = 128  # of a block of FlashInfer's, for all of these
TRITON = "decode_dot"


def measure_all(chip: str, flashinfer: append_kernels.FlashInfer) -> dict[str, Table]:
    table = append_kernels.make_table(has_shared=True)
    for work in WORKS:
        kernels = [append_kernels.get_ours(work.source), flashinfer.get(work.peer, THREADS, HEADERS)]
        kernels += [append_kernels.get_triton(TRITON, GQ=work.triton)] if work.triton else []
        append_kernels.measure_kernels(table, work.title, kernels, chip)
    append_kernels.measure_kernels(table, "merge of splits", [flashinfer.get(MERGE, THREADS, HEADERS)], chip)
    return {"by-maker": table}


if __name__ == "__main__":
    sys.exit(append_kernels.run("attention", __doc__, "attention-peers", measure_all))

"""Who takes turns with kvcache.ops.attention: PyTorch, Triton's kernel of benchmarks/peers, and FlashInfer's modules.

FlashInfer takes part by the libraries that its own compiler has made and cached, so that nothing else of it is needed: of
batch decode for bf16 and heads of 128 in FLASHINFER_DECODE, and of latent attention for sm_90 in FLASHINFER_MLA.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from gpu_ops_attention import Attention
from gpu_ops_bench import Pages, make_contender
from gpu_ops_works import Work
from measure import Contender


def sdpa(work: Work, pages: Pages, given: Attention, backend: Any, name: str) -> Contender:
    """PyTorch's attention over contiguous keys and values."""
    from torch.nn.attention import sdpa_kernel

    context, new, batch = work.contexts[0], work.new[0], len(work.contexts)
    rows = [pages.read_set(i, context).transpose(2, 3).contiguous() for i in range(pages.sets)]
    q = given.q.view(batch, new, *given.q.shape[1:]).transpose(1, 2).contiguous()
    outs = {}

    def call(i: int) -> None:
        with sdpa_kernel(backend):
            outs[0] = torch.nn.functional.scaled_dot_product_attention(
                q, *rows[i], is_causal=new > 1, scale=given.scale, enable_gqa=True
            )

    def check() -> tuple[float, float]:
        return given.check(outs[0].transpose(1, 2).flatten(0, 1))

    return make_contender(name, call, check, 0.01, note="contiguous keys and values")


def flash(work: Work, pages: Pages, given: Attention) -> Contender:
    from torch.nn.attention import SDPBackend

    if pages.device == "cpu":
        return sdpa(work, pages, given, SDPBackend.MATH, "PyTorch")
    return sdpa(work, pages, given, SDPBackend.FLASH_ATTENTION, "PyTorch flash")


def cudnn(work: Work, pages: Pages, given: Attention) -> Contender:
    from torch.nn.attention import SDPBackend

    return sdpa(work, pages, given, SDPBackend.CUDNN_ATTENTION, "PyTorch cuDNN")


def products(work: Work, pages: Pages, given: Attention) -> Contender:
    """Latent attention of single tokens by two batched products and a softmax."""
    rows = [pages.read_set(i, work.contexts[0])[0, :, :, 0].contiguous() for i in range(pages.sets)]
    outs = {}

    def call(i: int) -> None:
        weights = (torch.bmm(given.q, rows[i].transpose(1, 2)) * given.scale).softmax(-1)
        outs[0] = torch.bmm(weights, rows[i][..., : given.value_dim])

    # Its scores are bf16, so that their errors are larger.
    return make_contender("PyTorch bmm", call, lambda: given.check(outs[0]), 0.2, note="contiguous rows")


def triton_parts(work: Work, pages: Pages, given: Attention) -> Contender:
    """The parts of decode by benchmarks/peers; nothing merges them."""
    import triton
    from peers import triton_kernels

    kernel = triton.jit(triton_kernels.decode_dot.fn, do_not_specialize=["L", "layer"])
    batch, heads, size, context = len(work.contexts), work.cache.heads, work.cache.size, work.contexts[0]
    group, chunk = work.query_heads // heads, 256 if context <= 32768 else 1024
    parts = -(-context // chunk)
    numbers = torch.empty((batch * heads * parts * group, size), device=pages.device)
    maxima, sums = torch.empty((2, batch * heads * parts * group), device=pages.device)
    lengths = torch.tensor(work.contexts, dtype=torch.int32, device=pages.device)

    def call(i: int) -> None:
        lut = pages.luts[i]
        kernel[(batch, heads, parts)](
            given.q, pages.blocks, lut, lengths, numbers, maxima, sums, lut.shape[1], 1, 0, chunk, parts,
            given.scale * 1.4426950408889634, P=work.cache.page, HKV=heads, GQ=group, D=size, BN=32, num_warps=4,
        )  # fmt: skip

    def check() -> tuple[float, float]:
        tops = maxima.view(batch, heads, parts, group)
        factors = (tops - tops.amax(2, keepdim=True)).exp2()
        total = (sums.view_as(tops) * factors).sum(2)
        merged = (numbers.view(*tops.shape, size) * factors[..., None]).sum(2) / total[..., None]
        return given.check(merged.flatten(1, 2).to(torch.bfloat16))

    return make_contender("Triton", call, check, 0.01, note="without the merge of parts")


def flashinfer(work: Work, pages: Pages, given: Attention) -> Contender:
    """FlashInfer's decode, of a module that its compiler has made, on the same pages. Its plan is made before."""
    import tvm_ffi

    module: Any = tvm_ffi.load_module(find_library("FLASHINFER_DECODE"))
    batch, heads, size, page = len(work.contexts), work.cache.heads, work.cache.size, work.cache.page
    counts = [-(-context // page) for context in work.contexts]
    indptr = torch.tensor([0, *np.cumsum(counts).tolist()], dtype=torch.int32)
    last = [context - (count - 1) * page for context, count in zip(work.contexts, counts)]
    lasts = torch.tensor(last, dtype=torch.int32, device=pages.device)
    indices = [torch.cat([row[:count] for row, count in zip(lut, counts)]) for lut in pages.luts]
    floats, numbers, pinned = make_workspaces(pages.device)
    empty = torch.empty(0, dtype=torch.bfloat16)
    plan = module.plan(
        floats, numbers, pinned, indptr, batch, work.query_heads, heads, page, False, -1, 0.0, size, size, empty, empty
    )
    offsets = indptr.to(pages.device)
    keys, values = pages.blocks[:, 0, 0], pages.blocks[:, 1, 0]

    def call(i: int) -> None:
        module.run(
            floats, numbers, plan, given.q, keys, values, offsets, indices[i], lasts, given.out, given.lse, 0, -1, True,
            None, 0.0, given.scale, 1.0, 1e-4,
        )  # fmt: skip

    def check() -> tuple[float, float]:
        return given.check(given.out)  # its logarithms have the base 2

    return make_contender("FlashInfer", call, check, 0.01, given.reset, note="its plan is made before")


def flashinfer_mla(work: Work, pages: Pages, given: Attention) -> Contender:
    """FlashInfer's latent attention for sm_90, in the same way."""
    import tvm_ffi

    module: Any = tvm_ffi.load_module(find_library("FLASHINFER_MLA"))
    batch, page, values = len(work.contexts), work.cache.page, given.value_dim
    counts = [-(-context // page) for context in work.contexts]
    floats, numbers, pinned = make_workspaces(pages.device)
    starts = torch.arange(batch + 1, dtype=torch.int32)
    indptr = torch.tensor([0, *np.cumsum(counts).tolist()], dtype=torch.int32)
    lengths = torch.tensor(work.contexts, dtype=torch.int32)
    indices = [torch.cat([row[:count] for row, count in zip(lut, counts)]) for lut in pages.luts]
    plan, _ = module.plan(floats, numbers, pinned, starts, indptr, lengths, work.query_heads, values, False)
    rows = pages.blocks[:, 0, 0, :, 0]
    q, k = (array.split([values, work.cache.size - values], -1) for array in (given.q, rows))

    def call(i: int) -> None:
        module.run(
            floats, numbers, plan, *q, *k, indices[i], given.out, given.lse, 0, work.query_heads, page, given.scale,
            True, 1.0, 1.0, None,
        )  # fmt: skip

    return make_contender("FlashInfer", call, given.check, 0.01, given.reset, note="its plan is made before")


def make_workspaces(device: str) -> tuple[Any, Any, Any]:
    """FlashInfer's: of floats, of numbers, and of numbers of the host."""
    floats, numbers = (torch.empty(size << 20, dtype=torch.uint8, device=device) for size in (512, 64))
    return floats, numbers, torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)


def find_library(variable: str) -> str:
    path = os.environ.get(variable, "")
    if not path:
        raise ValueError(f"{variable} does not name a library")
    return path


MAKERS = {
    "flash": flash, "cudnn": cudnn, "triton": triton_parts, "torch": products, "flashinfer": flashinfer,
    "flashinfer mla": flashinfer_mla,
}  # fmt: skip
ON_HOST = {"flash", "torch"}

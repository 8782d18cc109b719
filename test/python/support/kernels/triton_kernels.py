# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of a paged cache in Triton, for the emulator. Run this file with Triton to
write their LLVM IR next to it."""

import pathlib
import re
import warnings

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def append(x, slots, blocks, scales, n, D: tl.constexpr, BT: tl.constexpr):
    """Rows of x, as e4m3 with a scale each, go to the rows of the cache in slots."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.arange(0, D)
    slot = tl.load(slots + t, mask=t < n, other=-1)
    row = tl.load(x + t[:, None] * D + d[None, :], mask=(t < n)[:, None], other=0.0)
    row = row.to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(row), 1) / 448.0, 1e-12)
    quantized = (row / scale[:, None]).to(tl.float8e4nv)
    tl.store(
        blocks + slot[:, None] * D + d[None, :], quantized, mask=(slot >= 0)[:, None]
    )
    tl.store(scales + slot, scale, mask=slot >= 0)


@triton.jit
def decode(
    q, blocks, table, length, out, columns, P: tl.constexpr, D: tl.constexpr
):
    """Attention of 16 rows over a paged cache of keys, which are the values as well."""
    b = tl.program_id(0)
    i = tl.arange(0, 16)
    d = tl.arange(0, D)
    t = tl.arange(0, P)
    n = tl.load(length + b)
    rows = tl.load(q + (b * 16 + i)[:, None] * D + d[None, :])
    most = tl.full([16], float("-inf"), tl.float32)
    total = tl.zeros([16], tl.float32)
    sums = tl.zeros([16, D], tl.float32)
    for start in tl.range(0, n, P, num_stages=2):
        page = tl.load(table + b * columns + start // P)
        valid = start + t < n
        k = tl.load(
            blocks + (page * P + t)[:, None] * D + d[None, :],
            mask=valid[:, None],
            other=0.0,
        )
        scores = tl.where(valid[None, :], tl.dot(rows, tl.trans(k)), float("-inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        factor = tl.exp2(most - new)
        total = total * factor + tl.sum(weights, 1)
        sums = sums * factor[:, None] + tl.dot(weights.to(tl.float16), k)
        most = new
    tl.store(out + (b * 16 + i)[:, None] * D + d[None, :], sums / total[:, None])


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile of a product; from sm_90 on, with the warpgroup's instructions."""
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros([BM, BN], tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * BN + n[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(c + m[:, None] * BN + n[None, :], sums)


KERNELS = {
    "append": (
        append,
        {"x": "*bf16", "slots": "*i32", "blocks": "*fp8e4nv", "scales": "*fp32", "n": "i32"},
        {"D": 64, "BT": 4},
    ),
    "decode": (
        decode,
        {
            **{"q": "*fp16", "blocks": "*fp16", "table": "*i32", "length": "*i32"},
            **{"out": "*fp32", "columns": "i32"},
        },
        {"P": 16, "D": 32},
    ),
    "matmul": (
        matmul,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"},
        {"BM": 64, "BN": 16, "BK": 32},
    ),
}


def compile_kernel(name, capability):
    """Compiles a kernel for a chip, and returns Triton's result."""
    function, signature, constants = KERNELS[name]
    signature = signature | dict.fromkeys(constants, "constexpr")
    # Arrays of PyTorch begin at multiples of 16 bytes; K is a multiple of 16.
    aligned = {
        (i,): [["tt.divisibility", 16]]
        for i, (argument, kind) in enumerate(signature.items())
        if kind.startswith("*") or argument == "K"
    }
    source = ASTSource(
        fn=function, signature=signature, constexprs=constants, attrs=aligned
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return triton.compile(
            source,
            target=GPUTarget("cuda", capability, 32),
            options={"num_warps": 4, "num_stages": 2},
        )


def main():
    folder = pathlib.Path(__file__).parent
    for name, capability in (
        ("append", 90),
        ("decode", 80),
        ("matmul", 90),
        ("matmul", 100),
    ):
        compiled = compile_kernel(name, capability)
        text = re.sub(r'directory: "[^"]*"', 'directory: "."', compiled.asm["llir"])
        header = f"; {compiled.metadata.shared} bytes of shared memory\n"
        (folder / f"{name}_sm{capability}.llir").write_text(header + text)


if __name__ == "__main__":
    main()

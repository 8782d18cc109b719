"""kvcache.append of bf16 in Triton, as append.cu has it in CUDA C++. benchmarks/append_kernels.py compiles it."""

import triton
import triton.language as tl
from triton_launches import Launch


@triton.jit
def append(keys, values, row_offsets, lengths, lut, blocks, key_row, value_row, page_stride, batch, max_pages, layers,
           layer, P: tl.constexpr, H: tl.constexpr, D: tl.constexpr):
    """A row of keys and of values; distances are in elements."""
    row = tl.program_id(0)
    if row < tl.load(row_offsets + batch):
        c = tl.arange(0, H * D)
        k = tl.load(keys + row * key_row + c)
        v = tl.load(values + row * value_row + c)
        b = tl.minimum(row, batch - 1)
        if (row < tl.load(row_offsets + b)) | (row >= tl.load(row_offsets + b + 1)):
            b = 0
            count = batch
            while count > 1:
                half = count // 2
                if tl.load(row_offsets + b + half) <= row:
                    b += half
                count -= half
        t = tl.load(lengths + b) + row - tl.load(row_offsets + b)
        page = tl.load(lut + b.to(tl.int64) * max_pages + t // P).to(tl.int64)
        place = page * page_stride + (layer.to(tl.int64) * P + t % P) * (H * D)
        tl.store(blocks + place + c, k)
        tl.store(blocks + place + layers.to(tl.int64) * (P * H * D) + c, v)


APPEND = Launch(
    "append",
    (
        *(("keys", "*bf16"), ("values", "*bf16"), ("row_offsets", "*i32"), ("lengths", "*i32"), ("lut", "*i32")),
        *(("blocks", "*bf16"), (1024, "i64"), (1024, "i64"), (1024, "i64"), ("batch", "i32"), ("lut.size1", "i32")),
        *(("blocks.size2", "i32"), ("layer", "i32")),
    ),
    {"P": 16, "H": 8, "D": 128},
    warps=4,
)
"""Distances from row to row and from page to page are known as multiples of 16."""

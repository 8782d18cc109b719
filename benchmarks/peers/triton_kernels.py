"""The works in Triton.

Shapes, layouts and formats are those of the CUDA C++ kernels beside this file. Upper-case parameters are constants: P
tokens of a page, H heads of D elements, groups of G elements with a scale, L layers. A block's shape has to be constant
in Triton, so that there is no gather_dynamic.
"""

import triton
import triton.language as tl


@triton.jit
def gather(blocks, lut, lens, out, max_pages, T, layer, kv, L, P: tl.constexpr, H: tl.constexpr, D: tl.constexpr,
           BT: tl.constexpr):
    """BT tokens of a sequence."""
    b = tl.program_id(1)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    ok = t < tl.load(lens + b)
    page = tl.load(lut + b * max_pages + t // P, mask=ok, other=0).to(tl.int64)
    row = ((page * 2 + kv) * L + layer) * P + t % P
    c = tl.arange(0, H * D)
    v = tl.load(blocks + row[:, None] * (H * D) + c[None, :], mask=ok[:, None], other=0.0,
                eviction_policy="evict_first")
    tl.store(out + (b.to(tl.int64) * T + t)[:, None] * (H * D) + c[None, :], v, mask=(t < T)[:, None])


@triton.jit
def gather_fp8(blocks, scales, lut, lens, out, max_pages, T, layer, kv, L, P: tl.constexpr, H: tl.constexpr,
               D: tl.constexpr, G: tl.constexpr, BT: tl.constexpr):
    """BT tokens of a sequence, each group times its scale."""
    b = tl.program_id(1)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    ok = t < tl.load(lens + b)
    page = tl.load(lut + b * max_pages + t // P, mask=ok, other=0).to(tl.int64)
    row = ((page * 2 + kv) * L + layer) * P + t % P
    g = tl.arange(0, H * D // G)
    c = tl.arange(0, G)
    element = row[:, None, None] * (H * D) + g[None, :, None] * G + c[None, None, :]
    x = tl.load(blocks + element, mask=ok[:, None, None], other=0.0).to(tl.float32)
    s = tl.load(scales + row[:, None] * (H * D // G) + g[None, :], mask=ok[:, None], other=0.0)
    y = x * s[:, :, None]
    o = (b.to(tl.int64) * T + t)[:, None, None] * (H * D) + g[None, :, None] * G + c[None, None, :]
    tl.store(out + o, y.to(tl.bfloat16), mask=(t < T)[:, None, None])


@triton.jit
def append_fp8(kvn, tok_batch, tok_pos, lut, blocks, scales, N, max_pages, L, layer, P: tl.constexpr, H: tl.constexpr,
               D: tl.constexpr, G: tl.constexpr, BT: tl.constexpr):
    """BT new tokens, keys or values: each group over its largest magnitude, which fp8 holds as 448."""
    kv = tl.program_id(1)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    ok = t < N
    b = tl.load(tok_batch + t, mask=ok, other=0)
    pos = tl.load(tok_pos + t, mask=ok, other=0)
    page = tl.load(lut + b * max_pages + pos // P, mask=ok, other=0).to(tl.int64)
    row = ((page * 2 + kv) * L + layer) * P + pos % P
    g = tl.arange(0, H * D // G)
    c = tl.arange(0, G)
    source = (kv.to(tl.int64) * N + t)[:, None, None] * (H * D) + g[None, :, None] * G + c[None, None, :]
    x = tl.load(kvn + source, mask=ok[:, None, None], other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(x), 2) / 448.0, 1e-12)
    q = (x / s[:, :, None]).to(tl.float8e4nv)
    element = row[:, None, None] * (H * D) + g[None, :, None] * G + c[None, None, :]
    tl.store(blocks + element, q, mask=ok[:, None, None])
    tl.store(scales + row[:, None] * (H * D // G) + g[None, :], s, mask=ok[:, None])


@triton.jit
def decode(q, blocks, lut, lens, part_o, part_m, part_l, max_pages, L, layer, chunk, NS, scale_log2, P: tl.constexpr,
           HKV: tl.constexpr, GQ: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    """The partial attention of GQ queries over a chunk of a sequence, on the CUDA cores."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    split = tl.program_id(2)
    begin = split * chunk
    end = tl.minimum(begin + chunk, tl.load(lens + b))
    i = tl.arange(0, GQ)
    d = tl.arange(0, D)
    queries = tl.load(q + ((b * HKV + h) * GQ + i)[:, None] * D + d[None, :]).to(tl.float32) * scale_log2
    m = tl.full([GQ], -1e30, tl.float32)
    l = tl.zeros([GQ], tl.float32)
    acc = tl.zeros([GQ, D], tl.float32)
    kv_stride = L.to(tl.int64) * P * HKV * D
    for t0 in range(begin, end, BN):
        t = t0 + tl.arange(0, BN)
        ok = t < end
        page = tl.load(lut + b * max_pages + t // P, mask=ok, other=0).to(tl.int64)
        row = (page * 2) * kv_stride + ((layer * P + t % P) * HKV + h) * D
        k = tl.load(blocks + row[:, None] + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        v = tl.load(blocks + kv_stride + row[:, None] + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(queries[:, None, :] * k[None, :, :], 2)
        scores = tl.where(ok[None, :], scores, -1e30)
        new_m = tl.maximum(m, tl.max(scores, 1))
        decay = tl.exp2(m - new_m)
        p = tl.exp2(scores - new_m[:, None])
        p = tl.where(ok[None, :], p, 0.0)
        l = l * decay + tl.sum(p, 1)
        acc = acc * decay[:, None] + tl.sum(p[:, :, None] * v[None, :, :], 1)
        m = new_m
    o = ((b * HKV + h) * NS + split) * GQ + i
    tl.store(part_o + o[:, None] * D + d[None, :], acc)
    tl.store(part_m + o, m)
    tl.store(part_l + o, l)


@triton.jit
def decode_dot(q, blocks, lut, lens, part_o, part_m, part_l, max_pages, L, layer, chunk, NS, scale_log2,
               P: tl.constexpr, HKV: tl.constexpr, GQ: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    """The partial attention of GQ queries over a chunk of a sequence, on the tensor cores: 16 queries, not all used."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    split = tl.program_id(2)
    begin = split * chunk
    end = tl.minimum(begin + chunk, tl.load(lens + b))
    i = tl.arange(0, 16)
    d = tl.arange(0, D)
    used = i < GQ
    queries = tl.load(q + ((b * HKV + h) * GQ + i)[:, None] * D + d[None, :], mask=used[:, None], other=0.0)
    m = tl.full([16], -1e30, tl.float32)
    l = tl.zeros([16], tl.float32)
    acc = tl.zeros([16, D], tl.float32)
    kv_stride = L.to(tl.int64) * P * HKV * D
    for t0 in range(begin, end, BN):
        t = t0 + tl.arange(0, BN)
        ok = t < end
        page = tl.load(lut + b * max_pages + t // P, mask=ok, other=0).to(tl.int64)
        row = (page * 2) * kv_stride + ((layer * P + t % P) * HKV + h) * D
        k = tl.load(blocks + row[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        v = tl.load(blocks + kv_stride + row[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        scores = tl.dot(queries, tl.trans(k)) * scale_log2
        scores = tl.where(ok[None, :], scores, -1e30)
        new_m = tl.maximum(m, tl.max(scores, 1))
        decay = tl.exp2(m - new_m)
        p = tl.exp2(scores - new_m[:, None])
        p = tl.where(ok[None, :], p, 0.0)
        l = l * decay + tl.sum(p, 1)
        acc = acc * decay[:, None] + tl.dot(p.to(tl.bfloat16), v)
        m = new_m
    o = ((b * HKV + h) * NS + split) * GQ + i
    tl.store(part_o + o[:, None] * D + d[None, :], acc, mask=used[:, None])
    tl.store(part_m + o, m, mask=used)
    tl.store(part_l + o, l, mask=used)


@triton.jit
def sparse_rows(kv, idx, out, topk, row_elems, BN: tl.constexpr):
    """The sums of the 576 columns over topk rows, of which the others make pairs; an id of -1 is a row of zeros.

    Sizes are powers of two in Triton: 576 is 512 and 64.
    """
    b = tl.program_id(0)
    head = tl.arange(0, 512)
    tail = 512 + tl.arange(0, 64)
    head_sum = tl.zeros([512], tl.float32)
    tail_sum = tl.zeros([64], tl.float32)
    for t0 in tl.range(0, topk, BN, num_stages=2):
        row = tl.load(idx + b * topk + t0 + tl.arange(0, BN)).to(tl.int64)
        ok = row >= 0
        x = tl.load(kv + row[:, None] * row_elems + head[None, :], mask=ok[:, None], other=0.0)
        y = tl.load(kv + row[:, None] * row_elems + tail[None, :], mask=ok[:, None], other=0.0)
        head_sum += tl.sum(x.to(tl.float32), 0)
        tail_sum += tl.sum(y.to(tl.float32), 0)
    tl.store(out + b * 576 + head, head_sum)
    tl.store(out + b * 576 + tail, tail_sum)


@triton.jit
def sparse_rows_gather4(desc, idx, out, topk, BN: tl.constexpr):
    """The sums of 64 columns, by gather4: nine programs for each row of ids, none of which is -1."""
    b = tl.program_id(0)
    column = tl.program_id(1) * 64
    total = tl.zeros([64], tl.float32)
    for t0 in range(0, topk, BN):
        rows = tl.load(idx + b * topk + t0 + tl.arange(0, BN))
        total += tl.sum(desc.gather(rows, column).to(tl.float32), 0)
    tl.store(out + b * 576 + column + tl.arange(0, 64), total)

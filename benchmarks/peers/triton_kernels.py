import triton, triton.language as tl
@triton.jit
def gather(blocks, lut, lens, out, max_pages, T, layer, kv, L, P: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr):
    b = tl.program_id(1); t = tl.program_id(0)*BT + tl.arange(0, BT)
    n = tl.load(lens + b); ok = t < n
    pg = tl.load(lut + b*max_pages + t//P, mask=ok, other=0).to(tl.int64)
    row = ((pg*2 + kv)*L + layer)*P + t % P
    c = tl.arange(0, H*D)
    v = tl.load(blocks + row[:, None]*(H*D) + c[None, :], mask=ok[:, None], other=0.0, eviction_policy='evict_first')
    tl.store(out + (b.to(tl.int64)*T + t)[:, None]*(H*D) + c[None, :], v, mask=(t < T)[:, None])

@triton.jit
def gather_fp8(blocks, scales, lut, lens, out, max_pages, T, layer, kv, L, P: tl.constexpr, H: tl.constexpr, D: tl.constexpr, G: tl.constexpr, BT: tl.constexpr):
    b = tl.program_id(1); t = tl.program_id(0)*BT + tl.arange(0, BT)
    n = tl.load(lens + b); ok = t < n
    pg = tl.load(lut + b*max_pages + t//P, mask=ok, other=0).to(tl.int64)
    row = ((pg*2 + kv)*L + layer)*P + t % P
    g = tl.arange(0, H*D//G); c = tl.arange(0, G)
    off = row[:, None, None]*(H*D) + g[None, :, None]*G + c[None, None, :]
    q = tl.load(blocks + off, mask=ok[:, None, None], other=0.0)
    s = tl.load(scales + row[:, None]*(H*D//G) + g[None, :], mask=ok[:, None], other=0.0)
    y = q.to(tl.float32)*s[:, :, None]
    o = (b.to(tl.int64)*T + t)[:, None, None]*(H*D) + g[None, :, None]*G + c[None, None, :]
    tl.store(out + o, y.to(tl.bfloat16), mask=(t < T)[:, None, None])

@triton.jit
def append_fp8(kvn, tok_batch, tok_pos, lut, blocks, scales, N, max_pages, L, layer, P: tl.constexpr, H: tl.constexpr, D: tl.constexpr, G: tl.constexpr, BT: tl.constexpr):
    kv = tl.program_id(1); t = tl.program_id(0)*BT + tl.arange(0, BT); ok = t < N
    b = tl.load(tok_batch + t, mask=ok, other=0); pos = tl.load(tok_pos + t, mask=ok, other=0)
    pg = tl.load(lut + b*max_pages + pos//P, mask=ok, other=0).to(tl.int64)
    row = ((pg*2 + kv)*L + layer)*P + pos % P
    g = tl.arange(0, H*D//G); c = tl.arange(0, G)
    src = (kv.to(tl.int64)*N + t)[:, None, None]*(H*D) + g[None, :, None]*G + c[None, None, :]
    x = tl.load(kvn + src, mask=ok[:, None, None], other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(x), 2)/448.0, 1e-12)
    q = (x/s[:, :, None]).to(tl.float8e4nv)
    tl.store(blocks + row[:, None, None]*(H*D) + g[None, :, None]*G + c[None, None, :], q, mask=ok[:, None, None])
    tl.store(scales + row[:, None]*(H*D//G) + g[None, :], s, mask=ok[:, None])

@triton.jit
def decode(q, blocks, lut, lens, part_o, part_m, part_l, max_pages, L, layer, chunk, NS, scale_log2, P: tl.constexpr, HKV: tl.constexpr, GQ: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    b = tl.program_id(0); h = tl.program_id(1); s = tl.program_id(2)
    n = tl.load(lens + b); beg = s*chunk; end = tl.minimum(beg + chunk, n)
    gi = tl.arange(0, GQ); d = tl.arange(0, D)
    qv = tl.load(q + ((b*HKV + h)*GQ + gi)[:, None]*D + d[None, :]).to(tl.float32)*scale_log2
    m = tl.full([GQ], -1e30, tl.float32); l = tl.zeros([GQ], tl.float32); acc = tl.zeros([GQ, D], tl.float32)
    kvs = L.to(tl.int64)*P*HKV*D
    for t0 in range(beg, end, BN):
        t = t0 + tl.arange(0, BN); ok = t < end
        pg = tl.load(lut + b*max_pages + t//P, mask=ok, other=0).to(tl.int64)
        off = (pg*2)*kvs + ((layer*P + t % P)*HKV + h)*D
        k = tl.load(blocks + off[:, None] + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        v = tl.load(blocks + kvs + off[:, None] + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        sc = tl.sum(qv[:, None, :]*k[None, :, :], 2)
        sc = tl.where(ok[None, :], sc, -1e30)
        mn = tl.maximum(m, tl.max(sc, 1)); al = tl.exp2(m - mn); p = tl.exp2(sc - mn[:, None]); p = tl.where(ok[None, :], p, 0.0)
        l = l*al + tl.sum(p, 1); acc = acc*al[:, None] + tl.sum(p[:, :, None]*v[None, :, :], 1); m = mn
    idx = ((b*HKV + h)*NS + s)*GQ + gi
    tl.store(part_o + idx[:, None]*D + d[None, :], acc); tl.store(part_m + idx, m); tl.store(part_l + idx, l)

@triton.jit
def decode_dot(q, blocks, lut, lens, part_o, part_m, part_l, max_pages, L, layer, chunk, NS, scale_log2, P: tl.constexpr, HKV: tl.constexpr, GQ: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    b = tl.program_id(0); h = tl.program_id(1); s = tl.program_id(2)
    n = tl.load(lens + b); beg = s*chunk; end = tl.minimum(beg + chunk, n)
    gi = tl.arange(0, 16); d = tl.arange(0, D); gok = gi < GQ
    qv = tl.load(q + ((b*HKV + h)*GQ + gi)[:, None]*D + d[None, :], mask=gok[:, None], other=0.0)
    m = tl.full([16], -1e30, tl.float32); l = tl.zeros([16], tl.float32); acc = tl.zeros([16, D], tl.float32)
    kvs = L.to(tl.int64)*P*HKV*D
    for t0 in range(beg, end, BN):
        t = t0 + tl.arange(0, BN); ok = t < end
        pg = tl.load(lut + b*max_pages + t//P, mask=ok, other=0).to(tl.int64)
        off = (pg*2)*kvs + ((layer*P + t % P)*HKV + h)*D
        k = tl.load(blocks + off[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        v = tl.load(blocks + kvs + off[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        sc = tl.dot(qv, tl.trans(k))*scale_log2
        sc = tl.where(ok[None, :], sc, -1e30)
        mn = tl.maximum(m, tl.max(sc, 1)); al = tl.exp2(m - mn); p = tl.exp2(sc - mn[:, None]); p = tl.where(ok[None, :], p, 0.0)
        l = l*al + tl.sum(p, 1); acc = acc*al[:, None] + tl.dot(p.to(tl.bfloat16), v); m = mn
    idx = ((b*HKV + h)*NS + s)*GQ + gi
    tl.store(part_o + idx[:, None]*D + d[None, :], acc, mask=gok[:, None]); tl.store(part_m + idx, m, mask=gok); tl.store(part_l + idx, l, mask=gok)

@triton.jit
def sparse_rows(kv, idx, out, topk, row_elems, BN: tl.constexpr):
    # 576 = 512 + 64, two tiles; consumer: column sum
    b = tl.program_id(0); c = tl.arange(0, 512); r = tl.arange(0, 64)
    a = tl.zeros([512], tl.float32); a2 = tl.zeros([64], tl.float32)
    for t0 in tl.range(0, topk, BN, num_stages=2):
        i = tl.load(idx + b*topk + t0 + tl.arange(0, BN)); ok = i >= 0; i = i.to(tl.int64)
        x = tl.load(kv + i[:, None]*row_elems + c[None, :], mask=ok[:, None], other=0.0)
        y = tl.load(kv + i[:, None]*row_elems + 512 + r[None, :], mask=ok[:, None], other=0.0)
        a += tl.sum(x.to(tl.float32), 0); a2 += tl.sum(y.to(tl.float32), 0)
    tl.store(out + b*576 + c, a); tl.store(out + b*576 + 512 + r, a2)

@triton.jit
def sparse_rows_gather4(desc, idx, out, topk, BN: tl.constexpr):
    b = tl.program_id(0); a = tl.zeros([64], tl.float32)
    for t0 in range(0, topk, BN):
        i = tl.load(idx + b*topk + t0 + tl.arange(0, BN))
        for k in tl.static_range(9):
            x = desc.gather(i, k*64)
            a += tl.sum(x.to(tl.float32), 0)
    tl.store(out + b*64 + tl.arange(0, 64), a)

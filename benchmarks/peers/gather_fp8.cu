// Gathers a layer's fp8 tokens into a bf16 array; rows past a sequence's length
// are zeros.
//
//   out[b, t, h, d] = bf16(f32(blocks[row, h, d]) * scales[row, h, d / G])
//   row = [lut[b, t / P], kv, layer, t % P]
//
// blocks e4m3[pages, 2, layers, P, H, D], scales f32[pages, 2, layers, P, H,
// D / G], lut u32[B, max_pages], lens u32[B], out bf16[B, T, H, D]. A thread
// reads 2 x 16 bytes, a block 8 tokens; the grid has (T / 8, B) blocks.
#include <cstdint>

struct Params {
  const void *blocks;
  const float *scales;
  const uint32_t *lut;
  const uint32_t *lens;
  void *out;
  uint32_t max_pages, T, num_layers, layer, kv;
};

__device__ __forceinline__ uint32_t pack_bf16(float lo, float hi) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}

// Four elements, times a scale, as two pairs of bf16: fp8 converts to f16 only.
__device__ __forceinline__ void dq4(uint32_t w, float s, uint32_t &o0,
                                    uint32_t &o1) {
  uint32_t h0, h1;
  asm("{.reg .b16 a,b; mov.b32 {a,b}, %2; cvt.rn.f16x2.e4m3x2 %0, a; "
      "cvt.rn.f16x2.e4m3x2 %1, b;}"
      : "=r"(h0), "=r"(h1)
      : "r"(w));
  float f0, f1, f2, f3;
  asm("{.reg .b16 a,b; mov.b32 {a,b}, %2; cvt.f32.f16 %0,a; cvt.f32.f16 %1,b;}"
      : "=f"(f0), "=f"(f1)
      : "r"(h0));
  asm("{.reg .b16 a,b; mov.b32 {a,b}, %2; cvt.f32.f16 %0,a; cvt.f32.f16 %1,b;}"
      : "=f"(f2), "=f"(f3)
      : "r"(h1));
  o0 = pack_bf16(f0 * s, f1 * s);
  o1 = pack_bf16(f2 * s, f3 * s);
}

template <int P, int H, int D, int G, int UNROLL>
__device__ __forceinline__ void body(const Params &p) {
  constexpr int VPT = H * D / 16;
  constexpr int SPT = H * D / G;
  const uint4 *__restrict__ src = (const uint4 *)p.blocks;
  uint4 *__restrict__ dst = (uint4 *)p.out;
  const uint32_t b = blockIdx.y;
  const uint32_t *__restrict__ lut = p.lut + (size_t)b * p.max_pages;
  const uint32_t len = p.lens[b];
  const uint32_t base = blockIdx.x * (blockDim.x * UNROLL) + threadIdx.x;
  const size_t pageTok = (size_t)2 * p.num_layers * P;
  const size_t layTok = ((size_t)p.kv * p.num_layers + p.layer) * P;
  uint4 r[UNROLL];
  float s[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    uint32_t i = base + u * blockDim.x;
    uint32_t t = i / VPT, v = i % VPT;
    r[u] = make_uint4(0, 0, 0, 0);
    s[u] = 0.f;
    if (t < len) {
      size_t tok = __ldg(lut + t / P) * pageTok + layTok + (t % P);
      r[u] = __ldcs(src + tok * VPT + v);
      s[u] = __ldg(p.scales + tok * SPT + v / (G / 16));
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    uint32_t i = base + u * blockDim.x;
    uint32_t t = i / VPT;
    if (t < p.T) {
      float sc = s[u];
      uint4 a, c;
      dq4(r[u].x, sc, a.x, a.y);
      dq4(r[u].y, sc, a.z, a.w);
      dq4(r[u].z, sc, c.x, c.y);
      dq4(r[u].w, sc, c.z, c.w);
      uint4 *o = dst + ((size_t)b * p.T * VPT + i) * 2;
      __stcs(o, a);
      __stcs(o + 1, c);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    gather_fp8(const __grid_constant__ Params p) {
  body<16, 8, 128, 64, 2>(p);
}

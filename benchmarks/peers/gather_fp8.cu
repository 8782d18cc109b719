// K2: paged FP8 (e4m3) load + per-group fp32 scale -> bf16. MODE 0:
// cvt.f16x2.e4m3x2 path, MODE 1: bit trick (exponent rebias folded in scale)
#include <cstdint>
#ifndef MODE
#define MODE 0
#endif
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
__device__ __forceinline__ void dq4(uint32_t w, float s, uint32_t &o0,
                                    uint32_t &o1) {
#if MODE == 0
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
#else
  // sign|exp4|man3 placed at f32 bit 31 / 26..20 ; value = f32 * 2^120 ; folded
  // in s (caller multiplies)
  float f0 =
      __uint_as_float(((w << 24) & 0x80000000u) | ((w << 20) & 0x07f00000u));
  float f1 =
      __uint_as_float(((w << 16) & 0x80000000u) | ((w << 12) & 0x07f00000u));
  float f2 =
      __uint_as_float(((w << 8) & 0x80000000u) | ((w << 4) & 0x07f00000u));
  float f3 = __uint_as_float(((w) & 0x80000000u) | ((w >> 4) & 0x07f00000u));
  o0 = pack_bf16(f0 * s, f1 * s);
  o1 = pack_bf16(f2 * s, f3 * s);
#endif
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
#if MODE == 1
      sc *= 1.329227995784916e36f; // 2^120
#endif
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

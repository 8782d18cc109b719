// Quantizes new bf16 tokens, keys and values, into the pages.
//
//   scale = max(max |kv| over a group / 448, 1e-12)
//   blocks[row, h, d] = e4m3(kv[i, n, h, d] * (1 / scale)), scales[row, h, d / G]
//   row = [lut[tok_batch[n], tok_pos[n] / P], i, layer, tok_pos[n] % P]
//
// kv bf16[2, N, H, D], tok_batch u32[N], tok_pos u32[N], lut u32[B, max_pages],
// blocks e4m3[pages, 2, layers, P, H, D], scales f32[pages, 2, layers, P, H,
// D / G]. A thread reads 16 bytes, G / 8 lanes share a scale; the grid has
// (N / 2, 2) blocks.
#include <cstdint>

struct Params {
  const void *kv;
  const uint32_t *tok_batch;
  const uint32_t *tok_pos;
  const uint32_t *lut;
  void *blocks;
  float *scales;
  uint32_t N, max_pages, num_layers, layer;
};

// A pair of bf16 as f32.
__device__ __forceinline__ float lo(uint32_t w) {
  return __uint_as_float(w << 16);
}
__device__ __forceinline__ float hi(uint32_t w) {
  return __uint_as_float(w & 0xffff0000u);
}

__device__ __forceinline__ uint32_t e4m3x4(float a, float b, float c, float d) {
  uint32_t r;
  asm("{.reg .b16 x,y; cvt.rn.satfinite.e4m3x2.f32 x, %2, %1; "
      "cvt.rn.satfinite.e4m3x2.f32 y, %4, %3; mov.b32 %0,{x,y};}"
      : "=r"(r)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}

template <int P, int H, int D, int G>
__device__ __forceinline__ void body(const Params &p) {
  constexpr int LPR = D / 8; // lanes of a row
  constexpr int LPG = G / 8; // lanes of a group
  constexpr int RPT = H;     // rows of a token
  uint32_t gi = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t row = gi / LPR, l = gi % LPR;
  uint32_t tok = row / RPT, h = row % RPT;
  uint32_t kv = blockIdx.y;
  bool ok = tok < p.N;
  uint4 x = make_uint4(0, 0, 0, 0);
  if (ok)
    x = __ldg((const uint4 *)p.kv + ((size_t)kv * p.N * H * LPR) + gi);
  uint32_t w[4] = {x.x, x.y, x.z, x.w};
  float f[8];
  float m = 0.f;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    f[2 * i] = lo(w[i]);
    f[2 * i + 1] = hi(w[i]);
    m = fmaxf(m, fmaxf(fabsf(f[2 * i]), fabsf(f[2 * i + 1])));
  }
#pragma unroll
  for (int o = LPG / 2; o; o >>= 1)
    m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  float s = fmaxf(m * (1.f / 448.f), 1e-12f);
  float inv = __frcp_rn(s);
  if (!ok)
    return;
  uint32_t b = __ldg(p.tok_batch + tok), pos = __ldg(p.tok_pos + tok);
  uint32_t pg = __ldg(p.lut + (size_t)b * p.max_pages + pos / P);
  size_t t = (((size_t)pg * 2 + kv) * p.num_layers + p.layer) * P + pos % P;
  uint2 q;
  q.x = e4m3x4(f[0] * inv, f[1] * inv, f[2] * inv, f[3] * inv);
  q.y = e4m3x4(f[4] * inv, f[5] * inv, f[6] * inv, f[7] * inv);
  ((uint2 *)p.blocks)[(t * H + h) * LPR + l] = q;
  if (l % LPG == 0)
    p.scales[(t * H + h) * (D / G) + l / LPG] = s;
}

extern "C" __global__ void __launch_bounds__(256)
    append_fp8(const __grid_constant__ Params p) {
  body<16, 8, 128, 64>(p);
}

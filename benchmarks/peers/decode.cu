// Decode attention over a chunk of a sequence, whose parts another kernel adds
// up: 8 queries share a KV head, on the CUDA cores, with an online softmax in
// f32.
//
//   s = scale_log2 * q . k, m = max s, l = sum 2^(s - m), o = sum 2^(s - m) v
//
// q bf16[B, H, 8, D], blocks bf16[pages, 2, layers, P, H, D], lut u32[B,
// max_pages], lens u32[B], part_o f32[B, H, splits, 8, D], part_ml (m, l) f32
// pairs [B, H, splits, 8]. The grid has (B, H, splits) blocks of 4 warps; half
// a warp reads a token's head, 16 bytes a lane, and 4 tokens at a time.
#include <cstdint>

constexpr int PAGE = 16;

struct Params {
  const void *q;
  const void *blocks;
  const uint32_t *lut;
  const uint32_t *lens;
  float *part_o;
  float2 *part_ml;
  uint32_t max_pages, num_layers, layer, num_splits, chunk;
  float scale_log2;
};

// A pair of bf16 as f32.
__device__ __forceinline__ float lo(uint32_t w) {
  return __uint_as_float(w << 16);
}
__device__ __forceinline__ float hi(uint32_t w) {
  return __uint_as_float(w & 0xffff0000u);
}

__device__ __forceinline__ void unpack(uint4 v, float *f) {
  f[0] = lo(v.x);
  f[1] = hi(v.x);
  f[2] = lo(v.y);
  f[3] = hi(v.y);
  f[4] = lo(v.z);
  f[5] = hi(v.z);
  f[6] = lo(v.w);
  f[7] = hi(v.w);
}

constexpr int G = 8, D = 128, HKV = 8;
constexpr int TPI = 4; // tokens of half a warp in an iteration

extern "C" __global__ void __launch_bounds__(128, 2)
    decode(const __grid_constant__ Params p) {
  __shared__ float so[4][G][D];
  __shared__ float2 sml[4][2][G];
  const int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0),
            lane = tid & 31, half = lane >> 4, l = lane & 15;
  const uint32_t b = blockIdx.x, h = blockIdx.y, s = blockIdx.z;
  const uint32_t len = p.lens[b];
  const uint32_t beg = s * p.chunk;
  const uint32_t end = min(beg + p.chunk, len);
  float q[G][8];
  const uint4 *Q =
      (const uint4 *)p.q + ((size_t)b * HKV * G + h * G) * (D / 8) + l;
#pragma unroll
  for (int g = 0; g < G; g++) {
    unpack(__ldg(Q + g * (D / 8)), q[g]);
#pragma unroll
    for (int i = 0; i < 8; i++)
      q[g][i] *= p.scale_log2;
  }
  float acc[G][8];
  float m[G], sum[G];
#pragma unroll
  for (int g = 0; g < G; g++) {
    m[g] = -1e30f;
    sum[g] = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
      acc[g][i] = 0;
  }
  const uint32_t *lut = p.lut + (size_t)b * p.max_pages;
  const uint4 *base = (const uint4 *)p.blocks;
  const size_t rowV = (size_t)HKV * (D / 8);
  const size_t kvStride = (size_t)p.num_layers * PAGE * rowV;
  const size_t pageStride = 2 * kvStride;
  const size_t off = (size_t)p.layer * PAGE * rowV + h * (D / 8) + l;
  for (uint32_t t0 = beg + warp * 8; t0 < end; t0 += 32) {
    uint32_t pg = __ldg(lut + t0 / PAGE);
    const uint4 *kp =
        base + pg * pageStride + off + (size_t)(t0 % PAGE + half * TPI) * rowV;
    uint4 kk[TPI], vv[TPI];
#pragma unroll
    for (int j = 0; j < TPI; j++)
      kk[j] = __ldg(kp + j * rowV);
#pragma unroll
    for (int j = 0; j < TPI; j++)
      vv[j] = __ldg(kp + kvStride + j * rowV);
    float sc[TPI][G];
#pragma unroll
    for (int j = 0; j < TPI; j++) {
      float f[8];
      unpack(kk[j], f);
      float d[G];
#pragma unroll
      for (int g = 0; g < G; g++) {
        d[g] = 0;
#pragma unroll
        for (int i = 0; i < 8; i++)
          d[g] = fmaf(q[g][i], f[i], d[g]);
      }
      // Sums of 8 values over 16 lanes: each step halves what a lane has, 4 + 2
      // + 1 + 1 shuffles; then 8 to broadcast.
      float e[4];
#pragma unroll
      for (int g = 0; g < 4; g++) {
        float a = (l & 8) ? d[g] : d[g + 4], k = (l & 8) ? d[g + 4] : d[g];
        e[g] = k + __shfl_xor_sync(~0u, a, 8);
      }
      float c[2];
#pragma unroll
      for (int g = 0; g < 2; g++) {
        float a = (l & 4) ? e[g] : e[g + 2], k = (l & 4) ? e[g + 2] : e[g];
        c[g] = k + __shfl_xor_sync(~0u, a, 4);
      }
      float a = (l & 2) ? c[0] : c[1], k = (l & 2) ? c[1] : c[0];
      float r = k + __shfl_xor_sync(~0u, a, 2);
      r += __shfl_xor_sync(~0u, r, 1);
      bool ok = t0 + half * TPI + j < end;
      r = ok ? r : -1e30f;
#pragma unroll
      for (int g = 0; g < G; g++)
        sc[j][g] = __shfl_sync(~0u, r, (lane & 16) | (g << 1));
    }
#pragma unroll
    for (int g = 0; g < G; g++) {
      float mn = fmaxf(
          m[g], fmaxf(fmaxf(sc[0][g], sc[1][g]), fmaxf(sc[2][g], sc[3][g])));
      float al = exp2f(m[g] - mn);
      m[g] = mn;
      sum[g] *= al;
#pragma unroll
      for (int i = 0; i < 8; i++)
        acc[g][i] *= al;
#pragma unroll
      for (int j = 0; j < TPI; j++) {
        sc[j][g] = exp2f(sc[j][g] - mn);
        sum[g] += sc[j][g];
      }
    }
#pragma unroll
    for (int j = 0; j < TPI; j++) {
      float f[8];
      bool ok = t0 + half * TPI + j < end;
      uint4 v = ok ? vv[j] : make_uint4(0, 0, 0, 0);
      unpack(v, f);
#pragma unroll
      for (int g = 0; g < G; g++) {
        float w = ok ? sc[j][g] : 0.f;
#pragma unroll
        for (int i = 0; i < 8; i++)
          acc[g][i] = fmaf(w, f[i], acc[g][i]);
      }
    }
  }
// Halves of a warp combine in registers, warps in shared memory.
#pragma unroll
  for (int g = 0; g < G; g++) {
    float mo = __shfl_xor_sync(~0u, m[g], 16);
    float mn = fmaxf(m[g], mo);
    float al = exp2f(m[g] - mn);
    m[g] = mn;
    sum[g] *= al;
    sum[g] += __shfl_xor_sync(~0u, sum[g], 16);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      acc[g][i] *= al;
      acc[g][i] += __shfl_xor_sync(~0u, acc[g][i], 16);
    }
    if (half == (g & 1)) {
      *(float4 *)&so[warp][g][l * 8] =
          make_float4(acc[g][0], acc[g][1], acc[g][2], acc[g][3]);
      *(float4 *)&so[warp][g][l * 8 + 4] =
          make_float4(acc[g][4], acc[g][5], acc[g][6], acc[g][7]);
      if (l == 0)
        sml[warp][0][g] = make_float2(m[g], sum[g]);
    }
  }
  __syncthreads();
  for (int g = 0; g < G; g++) {
    float2 a = sml[0][0][g], c = sml[1][0][g], d = sml[2][0][g],
           e = sml[3][0][g];
    float mn = fmaxf(fmaxf(a.x, c.x), fmaxf(d.x, e.x));
    float wa = exp2f(a.x - mn), wc = exp2f(c.x - mn), wd = exp2f(d.x - mn),
          we = exp2f(e.x - mn);
    float L = a.y * wa + c.y * wc + d.y * wd + e.y * we;
    float o = so[0][g][tid] * wa + so[1][g][tid] * wc + so[2][g][tid] * wd +
              so[3][g][tid] * we;
    size_t idx = (((size_t)b * HKV + h) * p.num_splits + s) * G + g;
    p.part_o[idx * D + tid] = o;
    if (tid == 0)
      p.part_ml[idx] = make_float2(mn, L);
  }
}

// Gathers a layer's tokens into an array; rows past a sequence's length are
// zeros.
//
//   out[b, t, h, d] = blocks[lut[b, t / P], kv, layer, t % P, h, d]
//
// blocks bf16[pages, 2, layers, P, H, D], lut u32[B, max_pages], lens u32[B],
// out bf16[B, T, H, D]. A thread copies 4 x 16 bytes, a block 8 tokens; the
// grid has (T / 8, B) blocks.
#include <cstdint>

struct Params {
  const void *blocks;
  const uint32_t *lut;
  const uint32_t *lens;
  void *out;
  uint32_t max_pages, T, num_layers, layer, kv;
};

template <int P, int H, int D, int UNROLL>
__device__ __forceinline__ void gather_static(const Params &p) {
  constexpr int VPT = H * D / 8; // 16-byte vectors of a token
  const uint4 *__restrict__ src = (const uint4 *)p.blocks;
  uint4 *__restrict__ dst = (uint4 *)p.out;
  const uint32_t b = blockIdx.y;
  const uint32_t *__restrict__ lut = p.lut + (size_t)b * p.max_pages;
  const uint32_t len = p.lens[b];
  const uint32_t base = blockIdx.x * (blockDim.x * UNROLL) + threadIdx.x;
  const size_t pageStride = (size_t)2 * p.num_layers * P * VPT;
  const size_t lay = ((size_t)p.kv * p.num_layers + p.layer) * P * VPT;
  uint4 r[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    uint32_t i = base + u * blockDim.x;
    uint32_t t = i / VPT, v = i % VPT;
    r[u] = make_uint4(0, 0, 0, 0);
    if (t < len) {
      uint32_t pg = __ldg(lut + t / P);
      r[u] = __ldcs(src + pg * pageStride + lay + (t % P) * VPT + v);
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    uint32_t i = base + u * blockDim.x;
    uint32_t t = i / VPT;
    if (t < p.T)
      __stcs(dst + (size_t)b * p.T * VPT + i, r[u]);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    gather(const __grid_constant__ Params p) {
  gather_static<16, 8, 128, 4>(p);
}

// The work of gather.cu with a page size P and a number of 16-byte vectors of a
// token VPT that are known only when it runs: divisions of 32 bits.
#include <cstdint>

struct Params {
  const void *blocks;
  const uint32_t *lut;
  const uint32_t *lens;
  void *out;
  uint32_t max_pages, T, num_layers, layer, kv, P, VPT;
};

extern "C" __global__ void __launch_bounds__(256)
    gather_dynamic(const __grid_constant__ Params p) {
  const uint4 *__restrict__ src = (const uint4 *)p.blocks;
  uint4 *__restrict__ dst = (uint4 *)p.out;
  const uint32_t b = blockIdx.y;
  const uint32_t *__restrict__ lut = p.lut + (size_t)b * p.max_pages;
  const uint32_t len = p.lens[b];
  const uint32_t base = blockIdx.x * (blockDim.x * 4) + threadIdx.x;
  const size_t pageStride = (size_t)2 * p.num_layers * p.P * p.VPT;
  const size_t lay = ((size_t)p.kv * p.num_layers + p.layer) * p.P * p.VPT;
  uint4 r[4];
#pragma unroll
  for (int u = 0; u < 4; u++) {
    uint32_t i = base + u * blockDim.x;
    uint32_t t = i / p.VPT, v = i - t * p.VPT;
    r[u] = make_uint4(0, 0, 0, 0);
    if (t < len) {
      uint32_t q = t / p.P;
      uint32_t pg = __ldg(lut + q);
      r[u] = __ldcs(src + pg * pageStride + lay +
                    (size_t)(t - q * p.P) * p.VPT + v);
    }
  }
#pragma unroll
  for (int u = 0; u < 4; u++) {
    uint32_t i = base + u * blockDim.x;
    uint32_t t = i / p.VPT;
    if (t < p.T)
      __stcs(dst + (size_t)b * p.T * p.VPT + i, r[u]);
  }
}

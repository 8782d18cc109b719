// The paged gather of examples/gather.mlir in CUDA C++, as one would write it by hand: all sizes static, 16-byte
// vectors, four of them in flight in each thread, read-only and streaming accesses.
#include <cstdint>

struct Params {
  const void *blocks;      // [pages, 2, layers, P, H, D] bf16
  const uint32_t *lut;     // [batch, max_pages]
  const uint32_t *lengths; // [batch]
  void *out;               // [batch, T, H, D] bf16
  uint32_t max_pages, T, num_layers, layer, kv;
};

template <int P, int H, int D, int UNROLL>
__device__ __forceinline__ void gather(const Params &p) {
  constexpr int VECTORS = H * D / 8; // of 16 bytes, in a token
  const uint4 *__restrict__ src = (const uint4 *)p.blocks;
  uint4 *__restrict__ dst = (uint4 *)p.out;
  const uint32_t b = blockIdx.y;
  const uint32_t *__restrict__ lut = p.lut + (size_t)b * p.max_pages;
  const uint32_t length = p.lengths[b];
  const uint32_t base = blockIdx.x * (blockDim.x * UNROLL) + threadIdx.x;
  const size_t page_stride = (size_t)2 * p.num_layers * P * VECTORS;
  const size_t layer = ((size_t)p.kv * p.num_layers + p.layer) * P * VECTORS;
  uint4 r[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    uint32_t i = base + u * blockDim.x;
    uint32_t t = i / VECTORS, v = i % VECTORS;
    r[u] = make_uint4(0, 0, 0, 0);
    if (t < length) {
      uint32_t page = __ldg(lut + t / P);
      r[u] = __ldcs(src + page * page_stride + layer + (t % P) * VECTORS + v);
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    uint32_t i = base + u * blockDim.x;
    if (i / VECTORS < p.T)
      __stcs(dst + (size_t)b * p.T * VECTORS + i, r[u]);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    gather_keys(const __grid_constant__ Params p) {
  gather<64, 8, 128, 4>(p);
}

// The work of sparse_rows.cu by TMA: gather4 brings 64 columns of 4 rows,
// through a tensor map of the rows with a box of 64 x 1 and the same swizzle.
// One thread issues the 144 copies of a tile; ids are never negative.
#include <cstdint>

struct alignas(64) TMap {
  uint64_t d[16];
};

struct Params {
  const int *idx;
  float *out;
  uint32_t topk;
};

constexpr int ROWS = 64, TH = 128;
constexpr int STAGE = ROWS * 1152;
// A pair of bf16 as f32.
__device__ __forceinline__ float lo(uint32_t w) {
  return __uint_as_float(w << 16);
}
__device__ __forceinline__ float hi(uint32_t w) {
  return __uint_as_float(w & 0xffff0000u);
}

// The bytes from the tile's start to 16-byte column c of row r.
__device__ __forceinline__ uint32_t slot(int r, int c) {
  return (c >> 3) * (ROWS * 128) + r * 128 + (((c & 7) ^ (r & 7)) << 4);
}

__device__ __forceinline__ bool elect() {
  uint32_t p;
  asm volatile("{.reg .pred q; elect.sync _|q, 0xffffffff; selp.b32 %0,1,0,q;}"
               : "=r"(p));
  return p;
}

// One elected thread issues them all, with uniform operands.
__device__ __forceinline__ void issue(const TMap *tm, uint32_t sm, uint32_t bar,
                                      const int *idx, int tile) {
  if (elect()) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
        "r"(STAGE)
        : "memory");
    const int4 *ip = (const int4 *)(idx + tile * ROWS);
#pragma unroll 1
    for (int q = 0; q < 16; q++) {
      int4 r = __ldg(ip + q);
#pragma unroll
      for (int k = 0; k < 9; k++)
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier:"
            ":complete_tx::bytes [%0], [%1, {%2,%3,%4,%5,%6}], [%7];" ::"r"(
                sm + k * (ROWS * 128) + q * 512),
            "l"(tm), "r"(k * 64), "r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w),
            "r"(bar)
            : "memory");
    }
  }
}

__device__ __forceinline__ void wait(uint32_t bar, uint32_t ph) {
  asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, "
               "[%0], %1; @!p bra L;}" ::"r"(bar),
               "r"(ph)
               : "memory");
}

extern "C" __global__ void __launch_bounds__(TH)
    sparse_rows_gather4(const __grid_constant__ TMap tm,
                        const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) char smem[];
  __shared__ __align__(8) uint64_t bars[2];
  uint32_t sm = (uint32_t)__cvta_generic_to_shared(smem);
  uint32_t b0 = (uint32_t)__cvta_generic_to_shared(bars);
  if (threadIdx.x == 0) {
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 "
        "[%1], 1; fence.mbarrier_init.release.cluster;" ::"r"(b0),
        "r"(b0 + 8)
        : "memory");
  }
  __syncthreads();
  const int *idx = p.idx + (size_t)blockIdx.x * p.topk;
  int nt = p.topk / ROWS;
  float a[3] = {0, 0, 0};
  if (threadIdx.x < 32)
    issue(&tm, sm, b0, idx, 0);
  for (int t = 0; t < nt; t++) {
    if (t + 1 < nt && threadIdx.x < 32)
      issue(&tm, sm + ((t + 1) & 1) * STAGE, b0 + ((t + 1) & 1) * 8, idx,
            t + 1);
    wait(b0 + (t & 1) * 8, (t >> 1) & 1);
    const char *s = smem + (t & 1) * STAGE;

#pragma unroll
    for (int k = 0; k < 3; k++) {
      int i = threadIdx.x + k * TH;
      if (i >= 288)
        break;
      float x = 0;
      for (int r = 0; r < ROWS; r++) {
        uint32_t w = *(const uint32_t *)(s + slot(r, i >> 2) + (i & 3) * 4);
        x += lo(w) + hi(w);
      }
      a[k] += x;
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < 3; k++) {
    int i = threadIdx.x + k * TH;
    if (i < 288)
      p.out[(size_t)blockIdx.x * 288 + i] = a[k];
  }
}

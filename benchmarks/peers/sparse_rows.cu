// Brings rows that a list names into shared memory, in tiles of 64 that are
// swizzled over 128 bytes, two of them in turn, and sums pairs of columns. An
// id of -1 is a row of zeros.
//
//   out[b, c] = sum of kv[idx[b, i], 2 c] + kv[idx[b, i], 2 c + 1] over i <
//   topk
//
// kv bf16[rows, 576], idx i32[B, topk], out f32[B, 288]. The grid has B blocks
// of 128 threads, 8 of which copy a row by cp.async.
#include <cstdint>

struct Params {
  const void *kv;
  const int *idx;
  float *out;
  uint32_t topk, row_bytes;
};

constexpr int ROWS = 64, CH = 72, TH = 128;
constexpr int STAGE = ROWS * CH * 16;
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

__device__ __forceinline__ void issue(const Params &p, uint32_t sm,
                                      const int *idx, int tile) {
  const int r0 = threadIdx.x >> 3, c0 = threadIdx.x & 7; // 16 rows at once
#pragma unroll
  for (int rr = 0; rr < ROWS / 16; rr++) {
    int r = rr * 16 + r0;
    int id = __ldg(idx + tile * ROWS + r);
    int sz = id >= 0 ? 16 : 0;
    const char *g =
        (const char *)p.kv + (size_t)(id >= 0 ? id : 0) * p.row_bytes + c0 * 16;
#pragma unroll
    for (int k = 0; k < 9; k++) {
      uint32_t d = sm + k * (ROWS * 128) + r * 128 + ((c0 ^ (r & 7)) << 4);
      asm volatile(
          "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(d),
          "l"(g + k * 128), "r"(sz)
          : "memory");
    }
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(TH)
    sparse_rows(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) char smem[];
  uint32_t sm = (uint32_t)__cvta_generic_to_shared(smem);
  const int *idx = p.idx + (size_t)blockIdx.x * p.topk;
  int nt = p.topk / ROWS;
  float a[3] = {0, 0, 0};
  issue(p, sm, idx, 0);
  for (int t = 0; t < nt; t++) {
    if (t + 1 < nt) {
      issue(p, sm + ((t + 1) & 1) * STAGE, idx, t + 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
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

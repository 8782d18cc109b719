// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Public bugs of other projects, each as a small kernel of our own with the same
// mistake, and beside it the kernel without the mistake. cuda_kernels.ll is what
// clang makes of it:
//
//   clang++-22 -x cuda --cuda-device-only --cuda-gpu-arch=sm_90a -S -emit-llvm -O1
//       cuda_kernels.cu -o cuda_kernels.ll
//
// Atomics are PTX: atomicAdd orders nothing, and clang's is seq_cst.

#include <cstdint>

#define KERNEL(name) extern "C" __global__ void name
#define WRONG_AND_RIGHT(name, parameters, arguments)                           \
  KERNEL(name) parameters { run_##name<false> arguments; }                     \
  KERNEL(name##_right) parameters { run_##name<true> arguments; }

static __device__ uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

static __device__ void fenceProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ uint32_t countUp(uint32_t *counter) {
  uint32_t before;
  asm volatile("atom.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}

// --- NVIDIA/cutlass issue 3597 ---
// Scratch memory of one reduction over the warps is written for the next one
// before all warps have read it.

template <bool isRight>
static __device__ float reduceMax(float value, float *scratch) {
  for (int i = 16; i > 0; i >>= 1)
    value = fmaxf(value, __shfl_xor_sync(~0u, value, i));
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < 4; ++warp)
    value = fmaxf(value, scratch[warp]);
  if (isRight)
    __syncthreads();
  return value;
}

template <bool isRight>
static __device__ void run_scratch_reuse(const float *x, float *out) {
  __shared__ float scratch[4];
  for (int row = 0; row < 2; ++row) {
    float most = reduceMax<isRight>(x[row * 128 + threadIdx.x], scratch);
    if (threadIdx.x == 0)
      out[row] = most;
  }
}
WRONG_AND_RIGHT(scratch_reuse, (const float *x, float *out), (x, out))

// --- NVIDIA/Fuser pull request 2391 ---
// A block gives its partial sum to the last block by a counter, without a fence
// between the two.

template <bool isRight>
static __device__ void run_partial_sums(const float *x, float *partial,
                                        uint32_t *counter, float *out) {
  __shared__ bool isLast;
  partial[blockIdx.x * blockDim.x + threadIdx.x] =
      x[blockIdx.x * blockDim.x + threadIdx.x] * 2;
  if (isRight)
    __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    isLast = countUp(counter) == gridDim.x - 1;
  __syncthreads();
  if (!isLast)
    return;
  if (isRight)
    __threadfence();
  float sum = 0;
  for (uint32_t block = 0; block < gridDim.x; ++block)
    sum += partial[block * blockDim.x + threadIdx.x];
  out[threadIdx.x] = sum;
}
WRONG_AND_RIGHT(partial_sums,
                (const float *x, float *partial, uint32_t *counter, float *out),
                (x, partial, counter, out))

// --- vllm-project/flash-attention pull request 42 ---
// A tile of tokens has several pages. The last tile reads the table for pages
// that the sequence doesn't have.

template <bool isRight>
static __device__ void run_table_end(const float *blocks, const int *table,
                                     int length, float *out) {
  constexpr int kPage = 16, kTile = 64;
  __shared__ float copied[kTile];
  float sum = 0;
  for (int tile = 0; tile < length; tile += kTile) {
    int token = tile + threadIdx.x;
    int known = isRight ? min(token, length - 1) : token;
    const float *from = blocks + table[known / kPage] * kPage + known % kPage;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n"
                 "cp.async.wait_all;" ::"r"(sharedAddress(copied + threadIdx.x)),
                 "l"(from), "r"(token < length ? 4 : 0)
                 : "memory");
    sum += copied[threadIdx.x];
  }
  out[threadIdx.x] = sum;
}
WRONG_AND_RIGHT(table_end,
                (const float *blocks, const int *table, int length, float *out),
                (blocks, table, length, out))

// --- Dao-AILab/flash-attention issue 2374 ---
// Tokens after the end have weight 0, and their values may be NaN.

template <bool isRight>
static __device__ void run_unwritten_values(const float *scores,
                                            const float *values, int length,
                                            float *out) {
  float sum = 0;
  for (int token = 0; token < 16; ++token) {
    float weight = token < length ? exp2f(scores[token]) : 0;
    float value = values[token * 32 + threadIdx.x];
    if (isRight)
      value = token < length ? value : 0;
    sum += weight * value;
  }
  out[threadIdx.x] = sum;
}
WRONG_AND_RIGHT(unwritten_values,
                (const float *scores, const float *values, int length,
                 float *out),
                (scores, values, length, out))

// --- MoonshotAI/FlashKDA issue 24 ---
// A bulk copy stores what threads have written to shared memory, with a barrier
// but without a proxy fence between the two.

template <bool isRight>
static __device__ void run_proxy_fence(const float *x, float *out) {
  __shared__ alignas(128) float tile[128];
  tile[threadIdx.x] = x[threadIdx.x] + 1;
  if (isRight)
    fenceProxy();
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
               "cp.async.bulk.commit_group;\n"
               "cp.async.bulk.wait_group 0;" ::"l"(out),
               "r"(sharedAddress(tile)), "r"(512)
               : "memory");
}
WRONG_AND_RIGHT(proxy_fence, (const float *x, float *out), (x, out))

// --- deepseek-ai/FlashMLA pull request 57 ---
// A named barrier counts all threads of the block where one warpgroup synchronizes.

template <bool isRight>
static __device__ void run_named_barrier(const float *x, float *out) {
  __shared__ float tile[128];
  if (threadIdx.x < 128) {
    tile[threadIdx.x] = x[threadIdx.x];
    if (isRight)
      asm volatile("bar.sync 1, 128;" ::: "memory");
    else
      asm volatile("bar.sync 1, 256;" ::: "memory");
    out[threadIdx.x] = tile[127 - threadIdx.x];
  }
}
WRONG_AND_RIGHT(named_barrier, (const float *x, float *out), (x, out))

// --- flashinfer-ai/flashinfer pull request 3880 ---
// The last warp of the block is not full, and a sum takes values of lanes that
// are not there.

template <bool isRight>
static __device__ void run_partial_warp(const float *x, float *out) {
  float value = x[threadIdx.x];
  uint32_t numLanes = min(32u, blockDim.x - threadIdx.x / 32 * 32);
  for (uint32_t i = 16; i > 0; i >>= 1) {
    uint32_t lane = threadIdx.x % 32, from = lane ^ i;
    bool isThere = !isRight || from < numLanes;
    float other = __shfl_sync(~0u, value, isThere ? from : lane);
    value += isThere ? other : 0;
  }
  out[threadIdx.x] = value;
}
WRONG_AND_RIGHT(partial_warp, (const float *x, float *out), (x, out))

// --- vllm-project/vllm issue 43810 ---
// Rows that fill up a batch have slot -1, and are written nevertheless.

template <bool isRight>
static __device__ void run_padding_slot(const float *rows, const int *slots,
                                        float *cache) {
  int slot = slots[blockIdx.x];
  if (isRight && slot < 0)
    return;
  cache[slot * 32 + static_cast<int>(threadIdx.x)] =
      rows[blockIdx.x * 32 + threadIdx.x];
}
WRONG_AND_RIGHT(padding_slot,
                (const float *rows, const int *slots, float *cache),
                (rows, slots, cache))

// --- triton-lang/triton pull request 3858 ---
// An mbarrier's memory is used again, and the mbarrier is still there.

template <bool isRight>
static __device__ void run_live_mbarrier(const float *x, float *out) {
  __shared__ alignas(16) uint64_t memory[64];
  uint32_t barrier = sharedAddress(memory);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(barrier)
                 : "memory");
  __syncwarp();
  asm volatile("{\n"
               ".reg .pred done;\n"
               "mbarrier.arrive.shared::cta.b64 _, [%0];\n"
               "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
               "@!done bra WAIT;\n"
               "}" ::"r"(barrier)
               : "memory");
  __syncwarp();
  if (isRight && threadIdx.x == 0)
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier)
                 : "memory");
  __syncwarp();
  float *tile = reinterpret_cast<float *>(memory);
  tile[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
WRONG_AND_RIGHT(live_mbarrier, (const float *x, float *out), (x, out))

// --- NVIDIA/cutlass issue 3324 ---
// A block of a cluster signals another one by an mbarrier that its shared memory
// is written, with the scope of a block.

template <bool isRight>
static __device__ void run_cluster_scope(const float *x, float *out) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t barrier;
  uint32_t rank, mine = sharedAddress(&barrier), theirs, source;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(mine)
                 : "memory");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
               "barrier.cluster.wait.aligned;" ::
                   : "memory");
  if (rank == 1) {
    tile[threadIdx.x] = x[threadIdx.x];
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(theirs) : "r"(mine));
    if (isRight)
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
                   "[%0];" ::"r"(theirs)
                   : "memory");
    else
      asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(theirs)
                   : "memory");
  } else {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
                 "done, [%0], 0;\n"
                 "@!done bra WAIT;\n"
                 "}" ::"r"(mine)
                 : "memory");
    float value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;"
                 : "=r"(source)
                 : "r"(sharedAddress(tile + threadIdx.x)));
    asm volatile("ld.shared::cluster.f32 %0, [%1];"
                 : "=f"(value)
                 : "r"(source)
                 : "memory");
    out[threadIdx.x] = value;
  }
  asm volatile("barrier.cluster.arrive.aligned;\n"
               "barrier.cluster.wait.aligned;" ::
                   : "memory");
}
WRONG_AND_RIGHT(cluster_scope, (const float *x, float *out), (x, out))

// --- No bug: a tensor map by value, and a structure of pointers and numbers ---

struct alignas(64) Map {
  uint64_t words[16];
};
struct Output {
  float *sums;
  int columns;
  float factor;
};

KERNEL(tensor_copy)(const __grid_constant__ Map map,
                    const __grid_constant__ Output output) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ uint64_t barrier;
  uint32_t address = sharedAddress(&barrier);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(address)
                 : "memory");
  __syncthreads();
  asm volatile(
      "{\n"
      ".reg .pred elected, done;\n"
      "setp.eq.u32 elected, %5, 0;\n"
      "@elected mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;\n"
      "@elected cp.async.bulk.tensor.2d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%1], [%2, {%3, %4}], [%0];\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
      "@done bra DONE;\n"
      "bra WAIT;\n"
      "DONE:\n"
      "}" ::"r"(address),
      "r"(sharedAddress(tile)), "l"(&map), "r"(blockIdx.x * 32), "r"(0),
      "r"(threadIdx.x)
      : "memory");
  float sum = 0;
  for (int row = 0; row < 8; ++row)
    sum += tile[row * 32 + threadIdx.x];
  int column = blockIdx.x * 32 + threadIdx.x;
  if (column < output.columns)
    output.sums[column] = sum * output.factor;
}

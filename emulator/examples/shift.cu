// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each thread reads the number of its left neighbor through shared memory: without a barrier, and with one. It needs no
// headers of CUDA:
//
//   emulator/examples/check.py emulator/examples/shift.cu shift 'random:float32[128]' 'float32[128]' --block 128

#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

extern "C" __global__ void shift(const float *x, float *out) {
  __shared__ float tile[128];
  int thread = __nvvm_read_ptx_sreg_tid_x();
  tile[thread] = x[thread];
  out[thread] = thread > 0 ? tile[thread - 1] : 0;
}

extern "C" __global__ void shift_right(const float *x, float *out) {
  __shared__ float tile[128];
  int thread = __nvvm_read_ptx_sreg_tid_x();
  tile[thread] = x[thread];
  __nvvm_bar_sync(0);
  out[thread] = thread > 0 ? tile[thread - 1] : 0;
}

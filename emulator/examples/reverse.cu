// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reverses 128 numbers through shared memory: without a barrier, and with one.
// It needs no headers of CUDA:
//
//   emulator/examples/check.py emulator/examples/reverse.cu reverse 'random:float32[128]' 'float32[128]' --block 128

#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

extern "C" __global__ void reverse(const float *x, float *out) {
  __shared__ float tile[128];
  int thread = __nvvm_read_ptx_sreg_tid_x();
  tile[thread] = x[thread];
  out[thread] = tile[127 - thread];
}

extern "C" __global__ void reverse_right(const float *x, float *out) {
  __shared__ float tile[128];
  int thread = __nvvm_read_ptx_sreg_tid_x();
  tile[thread] = x[thread];
  __nvvm_bar_sync(0);
  out[thread] = tile[127 - thread];
}

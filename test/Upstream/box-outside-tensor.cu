// A tensor copy of a box outside of its tensor touches the tensor's first address
//
// PTX ISA, "Tensor Access Modes": elements out of bounds are zeros. On an H200
// (driver 580.159) a box wholly out of bounds nevertheless reads the first address
// of the tensor: CUDA_ERROR_ILLEGAL_ADDRESS if no memory is there. Needs a GPU.
#include <cuda.h>
#include <stdio.h>
const char *ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128]) {
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 full;
  .reg .pred %p; .reg .b32 %row; .reg .b64 %m;
  mov.b64 %m, map; mov.b32 %row, 100;
  mbarrier.init.shared.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%m, {0, %row}], [full];
wait: mbarrier.try_wait.parity.shared.b64 %p, [full], 0;
  @!%p bra wait; ret; })";
int main() {
  CUcontext c; CUmodule m; CUfunction f; CUtensorMap map; CUdeviceptr p;
  cuInit(0), cuDevicePrimaryCtxRetain(&c, 0), cuCtxSetCurrent(c), cuMemAlloc(&p, 2 << 20);
  cuuint64_t sizes[] = {32, 8}, pitch[] = {128}; cuuint32_t box[] = {32, 1}, one[] = {1, 1};
  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(p - (64 << 20)), sizes, pitch, box, one,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  void *arguments[] = {&map}; cuModuleLoadData(&m, ptx), cuModuleGetFunction(&f, m, "load");
  cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0);
  printf("%d, expected 0\n", cuCtxSynchronize()); }

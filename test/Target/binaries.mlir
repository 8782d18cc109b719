// REQUIRES: ptxas
// RUN: kvcache-opt %s "--kvcache-to-ptx=chip=sm_90a,sm_100a format=cubin" | FileCheck %s --check-prefixes=CHECK,CUBIN
// RUN: kvcache-opt %s "--kvcache-to-ptx=chip=sm_90a,sm_100a format=fatbin" | FileCheck %s --check-prefixes=CHECK,FATBIN

// A toolkit's folder without libdevice will do for a kernel that needs none.

// RUN: kvcache-opt %s "--kvcache-to-ptx=chip=sm_90a,sm_100a format=cubin toolkit=%toolkit" | FileCheck %s --check-prefixes=CHECK,CUBIN

// CHECK-NOT:     gpu.module
// CHECK:         gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx86">,
// CHECK-SAME:      kvcache.kernels = [{block_size = array<i32: 32, 1, 1>, name = "kernel", parameters = [{name = "arg0", offset = 0 : i64, size = 8 : i64, type = !llvm.ptr}]}]
// CUBIN-SAME:      bin = "\7FELF
// FATBIN-SAME:     "P\EDU\BA
// CHECK-SAME:      #gpu.object<#nvvm.target<O = 3, chip = "sm_100a", features = "+ptx88", verifyTarget = false>,
// CUBIN-SAME:      bin = "\7FELF
// FATBIN-SAME:     "P\EDU\BA
gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}

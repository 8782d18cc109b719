// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-expand-all-reduce))" | FileCheck %s

// Each warp reduces its values, and each thread those of all warps.

// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:      workgroup(%[[PARTIALS:.*]] : memref<32xf16, #gpu.address_space<workgroup>>)
// CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : f16 to i16
// CHECK:         %[[WIDE:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK:         %{{.*}}, %[[IS_VALID:.*]] = gpu.shuffle down %[[WIDE]]
// CHECK:         scf.if %[[IS_VALID]] -> (f16) {
// CHECK:           arith.maxnumf
// CHECK-COUNT-4: gpu.shuffle down
// CHECK:         gpu.barrier
// CHECK:         memref.store %{{.*}}, %[[PARTIALS]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           memref.load %[[PARTIALS]]
// CHECK:           arith.maxnumf
// CHECK-NOT:     gpu.all_reduce
gpu.module @kernels {
  gpu.func @kernel(%x: memref<64xf16>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<64xf16>
    %m = gpu.all_reduce maxnumf %v {} : (f16) -> f16
    memref.store %m, %x[%t] : memref<64xf16>
    gpu.return
  }
}

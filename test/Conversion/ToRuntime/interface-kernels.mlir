// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(convert-gpu-to-nvvm,reconcile-unrealized-casts))" | FileCheck %s

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

// CHECK: llvm.mlir.global {{.*}}kernels.mlir:{{[0-9]+}}:5: page id is out of range
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  // A memref before the descriptor has five arguments.
  // CHECK-LABEL: llvm.func @prefetch(
  // CHECK-SAME:      !llvm.ptr, %{{[^,]*}}: !llvm.ptr, %{{[^,]*}}: i64, %{{[^,]*}}: i64, %{{[^,]*}}: i64,
  // CHECK-SAME:      %[[DESC:[^,]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
  // CHECK-NOT:     kvcache.descriptor_args
  // CHECK:         nvvm.prefetch tensormap in_param_space, %[[DESC]]
  gpu.func @prefetch(%memory: memref<?xf32>, %desc: !desc) kernel {
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }

  // CHECK-LABEL: llvm.func @check(
  // CHECK-SAME:      %[[PAGE:[^,]*]]: i64, %[[PAGES:[^,]*]]: i64)
  // CHECK:         %[[HOLDS:.*]] = llvm.icmp "ult" %[[PAGE]], %[[PAGES]]
  // CHECK:         llvm.call @__assertfail
  gpu.func @check(%page: index, %pages: index) kernel {
    kvcache.check %page below %pages, "page id"
    gpu.return
  }
}

// RUN: not mlir-opt %s 2>&1 | FileCheck %s

// [mlir][nvvm] Verification of a target rejects tcgen05 on sm_103a and sm_110a
//
// Both chips have these instructions (PTX ISA, "tcgen05"), and llc and ptxas
// take them. mlir-opt 22.1 accepts sm_100a and sm_101a only.

// CHECK: error: 'nvvm.tcgen05.alloc' op is not supported on sm_103a
gpu.module @kernels [#nvvm.target<chip = "sm_103a", features = "+ptx88", verifyTarget = true>] {
  llvm.func @allocate(%address: !llvm.ptr<3>, %columns: i32) {
    nvvm.tcgen05.alloc %address, %columns : !llvm.ptr<3>, i32
    llvm.return
  }
}

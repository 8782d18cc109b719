// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-assume-fences))" | FileCheck %s

// CHECK-LABEL: llvm.func @tensor_memory(
// CHECK: nvvm.tcgen05.alloc
// CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NEXT: nvvm.tcgen05.fence <before>
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: nvvm.tcgen05.fence <after>
gpu.module @kernels {
  llvm.func @tensor_memory(%s: !llvm.ptr<3>, %n: i32) {
    nvvm.tcgen05.alloc %s, %n : !llvm.ptr<3>, i32
    nvvm.mbarrier.init %s, %n : !llvm.ptr<3>, i32
    nvvm.barrier
    llvm.return
  }
}

// Without tensor memory, barriers stay alone.
// CHECK-LABEL: llvm.func @shared_memory(
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: llvm.return
gpu.module @others {
  llvm.func @shared_memory() {
    nvvm.barrier
    llvm.return
  }
}

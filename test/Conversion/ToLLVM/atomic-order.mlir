// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-kernels-to-nvvm))" | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a" --emit-ptx | FileCheck %s --check-prefix=PTX

// LLVM writes atomic updates to PTX without their order, which fences give then.
// memref.atomic_rmw promises none.

// CHECK-LABEL: llvm.func @ordered(
// CHECK:         llvm.fence syncscope("device") release
// CHECK-NEXT:    llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
// CHECK-NEXT:    llvm.fence syncscope("device") acquire
// CHECK-NEXT:    llvm.atomicrmw xchg %{{.*}}, %{{.*}} monotonic
// CHECK-NEXT:    llvm.fence acquire
// CHECK-NEXT:    llvm.fence release
// CHECK-NEXT:    llvm.atomicrmw max %{{.*}}, %{{.*}} monotonic
// CHECK-NEXT:    llvm.fence seq_cst
// CHECK-NEXT:    llvm.atomicrmw min %{{.*}}, %{{.*}} monotonic
// CHECK-NEXT:    llvm.fence acquire
// CHECK-NEXT:    llvm.atomicrmw _and %{{.*}}, %{{.*}} monotonic
// CHECK:         llvm.atomicrmw add %{{.*}}, %{{.*}} monotonic

// PTX:      fence.release.gpu;
// PTX:      atom.global.add
// PTX:      fence.acquire.gpu;
// PTX:      atom.global.exch
// PTX:      fence.acquire.sys;
// PTX:      fence.release.sys;
// PTX:      {{atom|red}}.global.max
// PTX:      fence.sc.sys;
// PTX:      {{atom|red}}.global.min
// PTX-NEXT: fence.acquire.sys;
// PTX-NEXT: {{atom|red}}.global.and
// PTX-NOT:  fence
// PTX:      {{atom|red}}.global.add

gpu.module @kernels {
  gpu.func @ordered(%p: !llvm.ptr<1>, %x: i32, %m: memref<i32>, %out: memref<2xi32>) kernel {
    %a = llvm.atomicrmw add %p, %x syncscope("device") acq_rel : !llvm.ptr<1>, i32
    %b = llvm.atomicrmw xchg %p, %x acquire : !llvm.ptr<1>, i32
    %c = llvm.atomicrmw max %p, %x release : !llvm.ptr<1>, i32
    %d = llvm.atomicrmw min %p, %x seq_cst : !llvm.ptr<1>, i32
    %e = llvm.atomicrmw _and %p, %x monotonic : !llvm.ptr<1>, i32
    %f = memref.atomic_rmw addi %x, %m[] : (i32, memref<i32>) -> i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    memref.store %a, %out[%c0] : memref<2xi32>
    memref.store %b, %out[%c1] : memref<2xi32>
    gpu.return
  }
}

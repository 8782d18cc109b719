// Reports of kernels that copy wrongly, one for each rule: copies
// by threads (cp.async), and barriers without their fence.
// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tile-barrier.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @thread_copy_to_odd_place(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %odd = llvm.getelementptr %tile[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @thread_copy_to_odd_place:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.shared.global: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 16 bytes, got byte 8 of shared @tile
    nvvm.cp.async.shared.global %odd, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @thread_copy_from_odd_place(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %odd = llvm.getelementptr %g[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    // CHECK-LABEL: run @thread_copy_from_odd_place:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.shared.global: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 4 bytes, got 0x{{.*}}2
    nvvm.cp.async.shared.global %tile, %odd, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @thread_copy_of_too_much(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %nine = llvm.mlir.constant(9 : i32) : i32
    // CHECK-LABEL: run @thread_copy_of_too_much:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.shared.global: thread (0, 0, 0) of block (0, 0, 0) expects a source of at most 8 bytes, got 9
    nvvm.cp.async.shared.global %tile, %g, 8, cache = ca, %nine : !llvm.ptr<3>, !llvm.ptr<1>, i32
    gpu.return
  }

  gpu.func @thread_copy_without_a_wait(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @thread_copy_without_a_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.shared.global: thread (0, 0, 0) of block (0, 0, 0) has a copy of 16 bytes in flight when the block ends
    nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    gpu.return
  }

  gpu.func @thread_copy_of_what_changes(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %two = llvm.mlir.constant(2 : i32) : i32
    nvvm.cp.async.shared.global %tile, %g, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    // CHECK-LABEL: run @thread_copy_of_what_changes:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of an allocation of 1024 bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.shared.global at [[FILE]]:[[#@LINE-2]]:5 still reads: no wait for it has completed
    llvm.store %two, %g : i32, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    gpu.return
  }

  gpu.func @copy_without_fence(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %bytes = llvm.mlir.constant(64 : i32) : i32
    // CHECK-LABEL: run @copy_without_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) issues a copy to the mbarrier at byte 0 of shared @shared, which has been initialized at [[FILE]]:[[#@LINE-3]]:5 without a fence after it (fence.mbarrier_init)
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @copy_without_barrier(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %bytes = llvm.mlir.constant(64 : i32) : i32
    // CHECK-LABEL: run @copy_without_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) uses the mbarrier at byte 0 of shared @shared, which is not initialized
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }
}

}

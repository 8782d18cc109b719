// Reports of kernels that copy wrongly, one for each rule: bulk copies
// and the bytes that their barriers expect.
// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tile-barrier.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @bulk_copy_to_odd_place(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %odd = llvm.getelementptr %tile[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @bulk_copy_to_odd_place:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 16 bytes, got byte 8 of shared @tile
    nvvm.cp.async.bulk.shared.cluster.global %odd, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @bulk_copy_of_odd_size(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(20 : i32) : i32
    // CHECK-LABEL: run @bulk_copy_of_odd_size:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) expects a size in multiples of 16 bytes, got 20
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @bulk_copy_out_of_shared_memory(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(0x80000000 : i32) : i32
    // CHECK-LABEL: run @bulk_copy_out_of_shared_memory:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) uses 2147483648 bytes at byte 0 of shared @tile, which has 1024 bytes
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @too_few_bytes_expected(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %s = func.call @begin_copy(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, i64)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    // CHECK-LABEL: run @too_few_bytes_expected:
    // CHECK: [[FILE]]:[[#@LINE+2]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) has a copy of 64 bytes in flight when phase 0 of the mbarrier at byte 0 of shared @shared completes, which expected 64 bytes
    %half = llvm.getelementptr %tile[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.cp.async.bulk.shared.cluster.global %half, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    gpu.return
  }

  gpu.func @no_bytes_expected(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    // CHECK-LABEL: run @no_bytes_expected:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) has a copy of 64 bytes in flight when phase 0 of the mbarrier at byte 0 of shared @shared completes, which expected 0 bytes
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    gpu.return
  }

  gpu.func @too_many_bytes_expected(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %more = llvm.mlir.constant(96 : i32) : i32
    %s = nvvm.mbarrier.arrive.expect_tx %b, %more : !llvm.ptr<3>, i32 -> i64
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    // CHECK-LABEL: run @too_many_bytes_expected:
    // CHECK: deadlock: no thread of block (0, 0, 0) can continue
    // CHECK-NEXT: thread 0 waits in nvvm.mbarrier.try_wait.parity at [[FILE]]:[[#@LINE+2]]:5 for the mbarrier at byte 0 of shared @shared, in phase 0, which has 1 of 1 arrivals and 64 of 96 bytes
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    gpu.return
  }

  gpu.func @bulk_copy_without_a_wait(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %s = nvvm.mbarrier.arrive.expect_tx %b, %bytes : !llvm.ptr<3>, i32 -> i64
    // CHECK-LABEL: run @bulk_copy_without_a_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) has a copy to the mbarrier at byte 0 of shared @shared in flight when the block ends: no thread waits for it
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @inval_with_copy_in_flight(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %s = nvvm.mbarrier.arrive.expect_tx %b, %bytes : !llvm.ptr<3>, i32 -> i64
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    // CHECK-LABEL: run @inval_with_copy_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.inval: thread (0, 0, 0) of block (0, 0, 0) invalidates the mbarrier at byte 0 of shared @shared while a copy issued at [[FILE]]:[[#@LINE-2]]:5 is in flight
    nvvm.mbarrier.inval %b : !llvm.ptr<3>
    gpu.return
  }

  gpu.func @bulk_copy_of_what_changes(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %s = nvvm.mbarrier.arrive.expect_tx %b, %bytes : !llvm.ptr<3>, i32 -> i64
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    // CHECK-LABEL: run @bulk_copy_of_what_changes:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of an allocation of 1024 bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:[[#@LINE-2]]:5 still reads: no wait for it has completed
    llvm.store %bytes, %g : i32, !llvm.ptr<1>
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    gpu.return
  }
}

}

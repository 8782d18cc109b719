// Reports of multicast copies to the wrong blocks, with the wrong
// bytes, or at the wrong time.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: cluster-barriers.mlir
// PRELUDE: pointers.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<1024 x i8>

  // The mbarrier and the tile of the block, the source of copies, and whether the block is the first.
  func.func private @begin(%tensor: memref<8x32xi32>, %bytes: i32) -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1) {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bar, %tile = func.call @init(%bytes) : (i32) -> (!llvm.ptr<3>, !llvm.ptr<7>)
    %source = func.call @get_source(%tensor) : (memref<8x32xi32>) -> !llvm.ptr<1>
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    return %bar, %tile, %source, %is_first : !llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1
  }

  // LAUNCH: 2 blocks
  gpu.func @mask_outside(%tensor: memref<8x32xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %bar, %tile, %source, %is_first = func.call @begin(%tensor, %bytes) : (memref<8x32xi32>, i32) -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1)
    %mask = llvm.mlir.constant(5 : i16) : i16
    %n = llvm.mlir.constant(256 : i32) : i32
    scf.if %is_first {
      // CHECK-LABEL: run @mask_outside:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) copies with a multicast mask that has bit 2: the cluster has 2 blocks
      nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %bar, %n multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @empty_mask(%tensor: memref<8x32xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %bar, %tile, %source, %is_first = func.call @begin(%tensor, %bytes) : (memref<8x32xi32>, i32) -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1)
    %mask = llvm.mlir.constant(0 : i16) : i16
    %n = llvm.mlir.constant(256 : i32) : i32
    scf.if %is_first {
      // CHECK-LABEL: run @empty_mask:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) copies with a multicast mask of 0, to no block
      nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %bar, %n multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @too_few_bytes_in_a_block(%tensor: memref<8x32xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %bar, %tile, %source, %is_first = func.call @begin(%tensor, %bytes) : (memref<8x32xi32>, i32) -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1)
    %mask = llvm.mlir.constant(3 : i16) : i16
    %n = llvm.mlir.constant(128 : i32) : i32
    scf.if %is_first {
      nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %bar, %n multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    }
    %rest = llvm.getelementptr %tile[128] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    scf.if %is_first {
      nvvm.cp.async.bulk.shared.cluster.global %rest, %source, %bar, %n : !llvm.ptr<7>, !llvm.ptr<1>
    }
    // CHECK-LABEL: run @too_few_bytes_in_a_block:
    // CHECK: deadlock: no thread of cluster (0, 0, 0) can continue
    // CHECK-NEXT: thread 0 of block (1, 0, 0) waits in {{.*}} for the mbarrier at byte 0 of shared @bar of block (1, 0, 0), in phase 0, which has 1 of 1 arrivals and 128 of 256 bytes
    // CHECK-NEXT: thread 0 of block (0, 0, 0) has ended
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @too_many_bytes_in_a_block(%tensor: memref<8x32xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %bar, %tile, %source, %is_first = func.call @begin(%tensor, %bytes) : (memref<8x32xi32>, i32) -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1)
    %mask = llvm.mlir.constant(3 : i16) : i16
    %n = llvm.mlir.constant(256 : i32) : i32
    scf.if %is_first {
      nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %bar, %n multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    }
    scf.if %is_first {
      %more = llvm.getelementptr %tile[256] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
      %second = llvm.mlir.constant(2 : i16) : i16
      // CHECK-LABEL: run @too_many_bytes_in_a_block:
      // CHECK: thread (0, 0, 0) of block (0, 0, 0) has a copy of 256 bytes in flight when phase 0 of the mbarrier at byte 0 of shared @bar of block (1, 0, 0) completes, which expected 256 bytes
      nvvm.cp.async.bulk.shared.cluster.global %more, %source, %bar, %n multicast_mask = %second : !llvm.ptr<7>, !llvm.ptr<1>
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @in_use_by_a_peer(%tensor: memref<8x32xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %mask = llvm.mlir.constant(3 : i16) : i16
    %bar, %tile, %source, %is_first = func.call @begin(%tensor, %bytes) : (memref<8x32xi32>, i32) -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1)
    scf.if %is_first {
      %own = llvm.mlir.addressof @tile : !llvm.ptr<3>
      // CHECK-LABEL: run @in_use_by_a_peer:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @tile of block (0, 0, 0), which a copy issued by thread (0, 0, 0) of block (1, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:[[#@LINE+3]]:7 has in flight: its barrier has not completed
      llvm.store %zero, %own : i32, !llvm.ptr<3>
    } else {
      nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %bar, %bytes multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @ends_before_its_copy(%tensor: memref<8x32xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %bar, %tile, %source, %is_first = func.call @begin(%tensor, %bytes) : (memref<8x32xi32>, i32) -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<1>, i1)
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %is_second = llvm.icmp "ne" %rank, %zero : i32
    %mask = llvm.mlir.constant(3 : i16) : i16
    %n = llvm.mlir.constant(256 : i32) : i32
    scf.if %is_second {
      // CHECK-LABEL: run @ends_before_its_copy:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (1, 0, 0) has a copy to the mbarrier at byte 0 of shared @bar of block (1, 0, 0) in flight when the block ends: no thread waits for it
      nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %bar, %n multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    }
    scf.if %is_first {
      func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    }
    gpu.return
  }
}

}

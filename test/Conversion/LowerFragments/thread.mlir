// RUN: kvcache-opt %s --kvcache-lower-fragments --canonicalize | FileCheck %s --implicit-check-not=gpu.thread_id

// With a thread, ops compute places from it alone.

!s = !kvcache.fragment<16x64xf32, mma_acc>
!row = !kvcache.fragment<16xf32, mma_acc>
!left = !kvcache.fragment<16x64xbf16, mma_a16>
!fly = !kvcache.in_flight<16x64xf32, mma_acc>
!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!out = !kvcache.tile<16x64xf32>
!st = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!rowt = !kvcache.fragment<16xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x16xf32>

gpu.module @kernels {
  // CHECK-LABEL: func.func @load(
  // CHECK-SAME:    %[[THREAD:[^:]*]]: index)
  // CHECK:         arith.remui %[[THREAD]], %c32
  // CHECK:         nvvm.ldmatrix
  func.func @load(%tile: !tile, %thread: index) -> !left {
    %c0 = arith.constant 0 : index
    %left = kvcache.fragment_load %tile[%c0, %c0] thread %thread : !tile -> !left
    return %left : !left
  }

  // CHECK-LABEL: func.func @store(
  // CHECK-SAME:    %[[THREAD:[^:]*]]: index)
  // CHECK:         arith.remui %[[THREAD]], %c32
  // CHECK:         kvcache.tile_store
  func.func @store(%s: !s, %tile: !out, %thread: index) {
    %c0 = arith.constant 0 : index
    kvcache.fragment_store %s, %tile[%c0, %c0] thread %thread : !s, !out
    return
  }

  // CHECK-LABEL: func.func @multiply(
  // CHECK-SAME:    %[[THREAD:[^:]*]]: index)
  // CHECK:         arith.remui %[[THREAD]], %c32
  // CHECK:         nvvm.mma.sync
  func.func @multiply(%left: !left, %tile: !tile, %thread: index) -> !s {
    %c0 = arith.constant 0 : index
    %started = kvcache.fragment_mma %left, %tile[%c0, %c0] thread %thread : !left, !tile -> !fly
    %s = kvcache.fragment_wait %started : !fly
    return %s : !s
  }

  // CHECK-LABEL: func.func @store_rows(
  // CHECK-SAME:    %[[THREAD:[^:]*]]: index)
  // CHECK:         arith.remui %[[THREAD]], %c32
  // CHECK:         memref.store
  func.func @store_rows(%row: !row, %out: memref<?xf32>, %thread: index) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    kvcache.store_rows %row at(%c0) to %out thread %thread : !row, memref<?xf32> {
    ^bb0(%i: index):
      kvcache.yield %i, %true : index, i1
    }
    return
  }

  // CHECK-LABEL: func.func @store_split(
  // CHECK-SAME:    %[[THREAD:[^:]*]]: index)
  // CHECK:         arith.remui %[[THREAD]], %c32
  // CHECK:         memref.store
  func.func @store_split(%s: !s, %row: !row, %accs: memref<?x64xf32>, %states: memref<?x2xf32>, %thread: index) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    kvcache.store_split %s, %row, %row at(%c0, %c0) to %accs, %states thread %thread
        : !s, !row, memref<?x64xf32>, memref<?x2xf32> {
    ^bb0(%i: index):
      kvcache.yield %i, %true : index, i1
    }
    return
  }

  // CHECK-LABEL: func.func @reduce(
  // CHECK-SAME:    %[[THREAD:[^:]*]]: index)
  // CHECK:         arith.divui %[[THREAD]], %c32
  // CHECK:         kvcache.tile_load
  func.func @reduce(%s: !st, %scratch: !scratch, %thread: index) -> !rowt {
    %max = kvcache.reduce maxnumf %s across %scratch thread %thread : !st, !scratch -> !rowt
    return %max : !rowt
  }
}

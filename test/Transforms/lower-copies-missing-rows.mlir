// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_90a --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-copies --canonicalize --cse | FileCheck %s

// Bulk copies of rows: who writes zeros where there is no row to copy.

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!kt = !kvcache.tile<64x576xf8E4M3FN>
!ids = memref<64xi32>

gpu.module @kernels {
  // All lanes of the warp write to one such row after the other: lane i to unit i and unit i + 32.
  // CHECK-LABEL: gpu.func @warp(
  // CHECK:         scf.for %[[ROW:.*]] = %[[LANE:.*]] to %c64 step %c32 {
  // CHECK:           %[[IS_ROW:.*]] = arith.cmpi ult, %[[ID:.*]], %[[LIMIT:.*]] : i32
  // CHECK:           scf.if %[[IS_ROW]] {
  // CHECK:             nvvm.cp.async.bulk.shared.cluster.global
  // CHECK:           %[[IS_MISSING:.*]] = arith.cmpi uge, %[[ID]], %[[LIMIT]] : i32
  // CHECK:           %[[FIRST:.*]] = arith.subi %[[ROW]], %[[LANE]]
  // CHECK:           %[[MISSING:.*]] = nvvm.vote.sync ballot %c-1_i32, %[[IS_MISSING]] -> i32
  // CHECK:           scf.while (%[[LEFT:.*]] = %[[MISSING]]) : (i32) -> i32 {
  // CHECK:             arith.cmpi ne, %[[LEFT]], %c0_i32
  // CHECK:           ^bb0(%[[LEFT:.*]]: i32):
  // CHECK:             %[[NEXT:.*]] = "llvm.intr.cttz"(%[[LEFT]])
  // CHECK:             %[[NEXT_INDEX:.*]] = arith.index_castui %[[NEXT]]
  // CHECK:             %[[ZERO_ROW:.*]] = arith.addi %[[FIRST]], %[[NEXT_INDEX]]
  // CHECK:             %[[COLUMN:.*]] = arith.muli %[[LANE]], %c16
  // CHECK:             scf.for %[[UNIT:.*]] = %[[COLUMN]] to %c576 step %c512 {
  // CHECK:               kvcache.tile_store %{{.*}}, %{{.*}}[%[[ZERO_ROW]], %[[UNIT]]]
  // CHECK:         nvvm.fence.proxy
  // CHECK:         nvgpu.mbarrier.arrive
  gpu.func @warp(%k: !cache, %ids: !ids) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !cache, !ids, !kt
    kvcache.wait %tok
    gpu.return
  }

  // Blocks may have less than a warp: each thread for itself.
  // CHECK-LABEL: gpu.func @threads(
  // CHECK-NOT:     nvvm.vote.sync
  // CHECK:         nvvm.cp.async.bulk.shared.cluster.global
  // CHECK-NOT:     nvvm.vote.sync
  // CHECK:         scf.for %[[UNIT:.*]] = %c0 to %c576 step %c16 {
  // CHECK:           kvcache.tile_store
  gpu.func @threads(%k: !cache, %ids: !ids) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !cache, !ids, !kt
    kvcache.wait %tok
    gpu.return
  }
}

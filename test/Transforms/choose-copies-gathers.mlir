// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_90a --kvcache-choose-copies --remarks-filter=kvcache-choose-copies -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK90
// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_100a --kvcache-choose-copies --remarks-filter=kvcache-choose-copies -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK100
// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_80 --kvcache-expand-copies --canonicalize --cse | FileCheck %s --check-prefix=CHECK80
// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_90a --kvcache-expand-copies --canonicalize --cse | FileCheck %s --check-prefix=CHECK90
// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_100a --kvcache-expand-copies --canonicalize --cse | FileCheck %s --check-prefix=CHECK100

// Gathers, at the edges of what each chip can do.

// CHECK100-DAG: #[[$UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK100-DAG: #[[$ROLLED:.*]] = #llvm.loop_annotation<unroll = #[[$UNROLL]]>

#fp8 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
#heads = #kvcache.params<num_heads = 4, head_size = 128>
#slim = #kvcache.params<num_heads = 1, head_size = 20>
!mla8 = !kvcache.paged<f8E4M3FN, #fp8, page_size = 64>
!mla16 = !kvcache.paged<bf16, #fp8, page_size = 1>
!any_pages = !kvcache.paged<bf16, #fp8, page_size = ?>
!kv = !kvcache.paged<bf16, #heads, page_size = 16>
!whole = !kvcache.continuous<bf16, #heads>
!slim = !kvcache.paged<bf16, #slim, page_size = 16>
!collection = !kvcache.paged_collection<bf16, #heads, page_size = 16>

gpu.module @kernels {
  // 576 bytes are no multiple of 128: Hopper has bulk copies, Blackwell gather4.
  // CHECK80-LABEL: @fp8_576(
  // CHECK80-NOT:     tma_tile
  // CHECK80:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg, %{{.*}}
  // CHECK90-LABEL: @fp8_576(
  // CHECK90-NOT:     tma_tile
  // CHECK90:         nvvm.mbarrier.expect_tx
  // CHECK90:         nvvm.cp.async.bulk.shared.cluster.global
  // CHECK90:         kvcache.tile_store
  // CHECK90:         nvvm.fence.proxy
  // CHECK90:         nvgpu.mbarrier.arrive
  // CHECK100-LABEL:    @fp8_576(
  // CHECK100-SAME:       !kvcache.tma_tile<72x1xi64>
  // CHECK100:            kvcache.tma_expect %{{.*}} bytes %c36864
  // CHECK100-COUNT-16:   kvcache.tma_gather4
  // CHECK100-NOT:        kvcache.tma_gather4
  // REMARK90: Reason="a copy of 1 row has 576 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @fp8_576(%k: !mla8, %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xf8E4M3FN>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !mla8, memref<64xi32>, !kvcache.tile<64x576xf8E4M3FN>
    kvcache.wait %tok
    gpu.return
  }

  // Of 1152 bytes, each chip with tensor copies can copy rows.
  // CHECK80-LABEL: @bf16_576(
  // CHECK80:         nvvm.cp.async.shared.global
  // CHECK90-LABEL:   @bf16_576(
  // CHECK90-SAME:      !kvcache.tma_tile<144x1xi64>
  // CHECK90-COUNT-16:  kvcache.tma_gather4
  // CHECK90-NOT:       kvcache.tma_gather4
  // CHECK100-LABEL:  @bf16_576(
  // CHECK100-SAME:     !kvcache.tma_tile<144x1xi64>
  // CHECK100-COUNT-16: kvcache.tma_gather4
  // CHECK100-NOT:      kvcache.tma_gather4
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @bf16_576(%k: !mla16, %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !mla16, memref<64xi32>, !kvcache.tile<64x576xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Nine chunks of 16 times four rows, 144 copies, are a loop. A lane holds two neighbouring rows. As 576 copies of a
  // row they are left to the threads.
  // CHECK90-LABEL:  @many_copies(
  // CHECK100-LABEL: @many_copies(
  // CHECK100-SAME:    !kvcache.tma_tile<64x1xbf16, swizzle_128b>
  // CHECK100:         kvcache.tma_expect %{{.*}} bytes %c73728
  // CHECK100:         %[[OWN:.*]] = arith.muli %{{.*}}, %c2
  // CHECK100:         memref.load %{{.*}}[%[[OWN]]]
  // CHECK100:         %[[NEXT:.*]] = arith.addi %[[OWN]], %c1
  // CHECK100:         memref.load %{{.*}}[%[[NEXT]]]
  // CHECK100:         scf.for %[[IV:.*]] = %c0_i32 to %c64_i32 step %c4_i32 : i32 {
  // CHECK100:           %[[FIRST:.*]] = arith.index_castui %[[IV]]
  // CHECK100:           %[[LANE:.*]] = arith.divui %[[FIRST]], %c2
  // CHECK100:           %[[LANE_I32:.*]] = arith.index_castui %[[LANE]]
  // CHECK100-COUNT-4:   nvvm.shfl.sync
  // CHECK100:           scf.if
  // CHECK100:             kvcache.tma_gather4 {{.*}} at %[[FIRST]] :
  // CHECK100-NOT:         kvcache.tma_gather4
  // CHECK100:         } {llvm.loop_annotation = #[[$ROLLED]]}
  // REMARK90: Reason="it takes 576 copies of 1 row, more than 64", Remark="does not copy by tensor_rows"
  // REMARK90: Reason="the tile has a swizzle", Remark="does not copy by bulk_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @many_copies(%k: !mla16, %ids: memref<64xi32>) kernel attributes {known_block_size = array<i32: 32, 2, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !mla16, memref<64xi32>, !kvcache.tile<64x576xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // Ids that are aligned are read together, four by each of 16 lanes.
  // CHECK100-LABEL: @aligned_ids(
  // CHECK100:         %[[LANE:.*]] = arith.minsi %{{.*}}, %c15
  // CHECK100:         %[[OWN:.*]] = arith.muli %[[LANE]], %c4
  // CHECK100:         vector.load %{{.*}}[%[[OWN]]] {alignment = 16 : i64} : {{.*}}, vector<4xi32>
  // CHECK100-NOT:     memref.load
  // CHECK100-COUNT-16: kvcache.tma_gather4
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @aligned_ids(%k: !mla16, %ids: memref<64xi32>) kernel attributes {known_block_size = array<i32: 32, 2, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16>
    %aligned = memref.assume_alignment %ids, 16 : memref<64xi32>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %aligned to %kt : !mla16, memref<64xi32>, !kvcache.tile<64x576xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Rows are those of `tma_row`, and -1 for what is no row; columns count the heads before.
  // CHECK100-LABEL: @head(
  // CHECK100-SAME:    %[[H:[a-z0-9]+]]: index, %[[D:[a-z0-9]+]]: index, %[[IDS:[a-z0-9]+]]: memref<8xi32>, %[[DESC:[a-z0-9]+]]: !kvcache.tma_tile<64x1xbf16, swizzle_128b>
  // CHECK100:         %[[LANE:.*]] = arith.minsi %{{.*}}, %c7
  // CHECK100:         %[[ID_I32:.*]] = memref.load %[[IDS]][%[[LANE]]]
  // CHECK100:         %[[ID:.*]] = arith.index_castui %[[ID_I32]]
  // CHECK100:         %[[TMA_ROW:.*]] = kvcache.tma_row %{{.*}}[%[[ID]]]
  // CHECK100:         %[[PAGES:.*]] = kvcache.extent pages
  // CHECK100:         %[[ROWS:.*]] = arith.muli %[[PAGES]], %c16
  // CHECK100:         %[[LIMIT:.*]] = arith.minsi %[[ROWS]], %c2147483648
  // CHECK100:         %[[LIMIT_I32:.*]] = arith.index_castui %[[LIMIT]] : index to i32
  // CHECK100:         %[[IS_ROW:.*]] = arith.cmpi ult, %[[ID_I32]], %[[LIMIT_I32]]
  // CHECK100:         %[[ROW:.*]] = arith.select %[[IS_ROW]], %[[TMA_ROW]], %c-1
  // CHECK100:         %[[OWN:.*]] = arith.index_castui %[[ROW]] : index to i32
  // CHECK100:         %[[SHARED:.*]] = nvvm.shfl.sync  idx %c-1_i32, %[[OWN]], %c0_i32
  // CHECK100:         %[[R0:.*]] = arith.index_cast %[[SHARED]]
  // CHECK100:         %[[BEFORE:.*]] = arith.muli %[[H]], %c128
  // CHECK100:         %[[COLUMN:.*]] = arith.addi %[[BEFORE]], %[[D]]
  // CHECK100:         kvcache.tma_gather4 %[[DESC]][%{{.*}}, %[[R0]],
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @head(%k: !kv, %h: index, %d: index, %ids: memref<8xi32>) kernel attributes {known_block_size = array<i32: 32, 2, 1>} {
    %kt = kvcache.alloc_tile : !kvcache.tile<8x64xbf16, swizzle_128b>
    %tok = kvcache.async_gather_tile %k[%h, %d] rows %ids to %kt : !kv, memref<8xi32>, !kvcache.tile<8x64xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // Four rows of 64 bytes end at 128, one does not.
  // CHECK90-LABEL:  @rows_of_64_bytes(
  // CHECK100-LABEL: @rows_of_64_bytes(
  // CHECK100-COUNT-2: kvcache.tma_gather4
  // CHECK100-NOT:      kvcache.tma_gather4
  // REMARK90: Reason="a copy of 1 row has 64 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_rows"
  // REMARK90: Reason="the tile has a swizzle", Remark="does not copy by bulk_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @rows_of_64_bytes(%k: !kv, %h: index, %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<8x32xbf16, swizzle_64b>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !kv, memref<8xi32>, !kvcache.tile<8x32xbf16, swizzle_64b>
    kvcache.wait %tok
    gpu.return
  }

  // Four rows of 16 bytes do not.
  // CHECK90-LABEL:  @rows_of_16_bytes(
  // CHECK100-LABEL: @rows_of_16_bytes(
  // REMARK90: Reason="a copy of 1 row has 16 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  // REMARK100: Reason="a copy of 4 rows has 64 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  gpu.func @rows_of_16_bytes(%k: !kv, %h: index, %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<8x8xbf16>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !kv, memref<8xi32>, !kvcache.tile<8x8xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // gather4 takes four rows.
  // CHECK90-LABEL:  @six_rows(
  // CHECK100-LABEL: @six_rows(
  // REMARK90: Reason="the tile has 6 rows, not a multiple of 4", Remark="does not copy by tensor_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  // REMARK100: Reason="the tile has 6 rows, not a multiple of 4", Remark="does not copy by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  gpu.func @six_rows(%k: !kv, %h: index, %ids: memref<6xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<6x64xbf16>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !kv, memref<6xi32>, !kvcache.tile<6x64xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Rows of 40 bytes are aligned to 8.
  // CHECK90-LABEL:  @unaligned(
  // CHECK90:          nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache =  ca
  // CHECK100-LABEL: @unaligned(
  // CHECK100:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache =  ca
  // REMARK90: Reason="rows are aligned to 8 bytes, not to 16", Remark="does not copy by tensor_rows"
  // REMARK90: Reason="rows are aligned to 8 bytes, not to 16", Remark="does not copy by bulk_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  // REMARK100: Reason="rows are aligned to 8 bytes, not to 16", Remark="does not copy by tensor_rows"
  // REMARK100: Reason="rows are aligned to 8 bytes, not to 16", Remark="does not copy by bulk_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @unaligned(%k: !slim, %h: index, %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<8x16xbf16>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !slim, memref<8xi32>, !kvcache.tile<8x16xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK100-LABEL:  @continuous(
  // CHECK100-SAME:     !kvcache.tma_tile<128x1xbf16>
  // CHECK100-COUNT-2:  kvcache.tma_gather4
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @continuous(%k: !whole, %h: index, %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<8x128xbf16>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !whole, memref<8xi32>, !kvcache.tile<8x128xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Bulk copies need no descriptor, and so no view that the host has.
  // CHECK90-LABEL:  @layer_of_block(
  // CHECK100-LABEL: @layer_of_block(
  // REMARK90: Reason="the host can't compute the view from the kernel's arguments", Remark="does not copy by tensor_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  // REMARK100: Reason="the host can't compute the view from the kernel's arguments", Remark="does not copy by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  gpu.func @layer_of_block(%c: !collection, %h: index, %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %layer = gpu.block_id x
    %k = kvcache.paged_view key %c[%layer] : !collection
    %kt = kvcache.alloc_tile : !kvcache.tile<8x128xbf16>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !kv, memref<8xi32>, !kvcache.tile<8x128xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // A barrier does not show whether there is a wait.
  // CHECK90-LABEL:  @wait_elsewhere(
  // CHECK90:          nvvm.cp.async.shared.global
  // CHECK90:          nvvm.cp.async.commit.group
  // CHECK90:          scf.if
  // CHECK90-NEXT:       nvvm.cp.async.wait.group 0
  // CHECK90-NEXT:       gpu.barrier
  // CHECK100-LABEL: @wait_elsewhere(
  // CHECK100:         nvvm.cp.async.shared.global
  // REMARK90: Reason="a barrier needs one wait, in the block of the copy", Remark="does not copy by tensor_rows"
  // REMARK90: Reason="a barrier needs one wait, in the block of the copy", Remark="does not copy by bulk_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  // REMARK100: Reason="a barrier needs one wait, in the block of the copy", Remark="does not copy by tensor_rows"
  // REMARK100: Reason="a barrier needs one wait, in the block of the copy", Remark="does not copy by bulk_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  gpu.func @wait_elsewhere(%k: !kv, %h: index, %ids: memref<8xi32>, %cond: i1) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<8x128xbf16>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !kv, memref<8xi32>, !kvcache.tile<8x128xbf16>
    scf.if %cond {
      kvcache.wait %tok
    }
    gpu.return
  }

  // A row by its id needs no more of the page than that.
  // CHECK80-LABEL: @pages_of_any_size(
  // CHECK80:         %[[SIZE:.*]] = kvcache.extent page_size
  // CHECK80:         %[[NARROW:.*]] = arith.index_castui %[[SIZE]] : index to i32
  // CHECK80:         arith.remui %{{.*}}, %[[NARROW]] : i32
  // CHECK80:         arith.divui %{{.*}}, %[[NARROW]] : i32
  // CHECK80:         nvvm.cp.async.shared.global
  // CHECK90-LABEL:   @pages_of_any_size(
  // CHECK90-COUNT-16:  kvcache.tma_gather4
  // CHECK90-NOT:       kvcache.tma_gather4
  // CHECK100-LABEL:  @pages_of_any_size(
  // CHECK100-COUNT-16: kvcache.tma_gather4
  // CHECK100-NOT:      kvcache.tma_gather4
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @pages_of_any_size(%k: !any_pages, %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !any_pages, memref<64xi32>, !kvcache.tile<64x576xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // A block of an unknown number of threads may have less than a warp: its lanes don't help each other.
  // CHECK90-LABEL:  @unknown_size(
  // CHECK100-LABEL: @unknown_size(
  // CHECK100:         kvcache.tma_expect
  // CHECK100-NOT:     nvvm.shfl.sync
  // CHECK100-COUNT-2: kvcache.tma_gather4
  // CHECK100-NOT:     nvvm.shfl.sync
  // CHECK100:         gpu.return
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by tensor_rows"
  gpu.func @unknown_size(%k: !kv, %h: index, %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<8x64xbf16, swizzle_128b>
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !kv, memref<8xi32>, !kvcache.tile<8x64xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // A row may start at any multiple of 16 bytes, whatever its number of columns.
  // CHECK90-LABEL:  @beside_a_multiple_of_the_row(
  // CHECK90:          kvcache.block_tile {{.*}} -> memref<1x8xbf16,
  // CHECK90:          nvvm.cp.async.bulk.shared.cluster.global
  // REMARK90: Reason="a copy of 1 row has 48 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  // REMARK100: Reason="a copy of 4 rows has 192 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  gpu.func @beside_a_multiple_of_the_row(%k: !kv, %h: index, %ids: memref<8xi32>) kernel {
    %c8 = arith.constant 8 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<8x24xbf16>
    %tok = kvcache.async_gather_tile %k[%h, %c8] rows %ids to %kt : !kv, memref<8xi32>, !kvcache.tile<8x24xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // Pages that are known not to lie whole rows apart have no row numbers.
  // CHECK80-LABEL:  @half_a_row_apart(
  // CHECK80-COUNT-2:  nvvm.cp.async.shared.global
  // CHECK90-LABEL:  @half_a_row_apart(
  // CHECK100-LABEL: @half_a_row_apart(
  // REMARK90: Reason="pages do not lie a whole number of rows apart", Remark="does not copy by tensor_boxes"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  // REMARK90: Reason="pages do not lie a whole number of rows apart", Remark="does not copy by tensor_rows"
  // REMARK90: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  // REMARK100: Reason="pages do not lie a whole number of rows apart", Remark="does not copy by tensor_boxes"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by cp_async"
  // REMARK100: Reason="pages do not lie a whole number of rows apart", Remark="does not copy by tensor_rows"
  // REMARK100: [Passed] copy | Category:kvcache-choose-copies | Remark="copies by bulk_rows"
  gpu.func @half_a_row_apart(%blocks: memref<?x2x1x16x4x128xbf16, strided<[16640, 8192, 8192, 512, 128, 1]>>,
                             %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %b: index, %h: index, %n: index,
                             %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 0 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : memref<?x2x1x16x4x128xbf16, strided<[16640, 8192, 8192, 512, 128, 1]>>, memref<?xi32>, memref<?x?xi32>
        -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    %dense = kvcache.alloc_tile : !kvcache.tile<16x64xbf16, swizzle_128b>
    %tok0 = kvcache.async_load_tile %k[%b, %h, %c0, %c0] valid %n to %dense : !kv, !kvcache.tile<16x64xbf16, swizzle_128b>
    kvcache.wait %tok0
    %sparse = kvcache.alloc_tile : !kvcache.tile<8x128xbf16>
    %tok1 = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %sparse : !kv, memref<8xi32>, !kvcache.tile<8x128xbf16>
    kvcache.wait %tok1
    gpu.return
  }
}

// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_100a --kvcache-choose-copies --remarks-filter=kvcache-choose-copies -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_100a --kvcache-expand-copies --canonicalize --cse | FileCheck %s

// Copies and descriptors of pages in other layouts.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#v32 = #kvcache.params<num_heads = 1, head_size = 656, is_mla = true>
#v4 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!nhd = !kvcache.paged<bf16, #kv, page_size = 64>
!hnd = !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd>
!open = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!odd = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 129, head = 8256]>
!eight = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 132, head = 8448]>
!small = !kvcache.paged<bf16, #kv, page_size = 8, layout = hnd>
!rows656 = !kvcache.paged<i8, #v32, page_size = 64, scale = f32, granularity = 656>
!rows576 = !kvcache.paged<f8E4M3FN, #v4, page_size = 64>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
!lut = memref<?x?xi32>
!blocks = memref<?x64x8x128xbf16, strided<[?, 128, 8192, 1], offset: ?>>

gpu.module @kernels {
  // CHECK-LABEL: @nhd(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b> {kvcache.descriptor = {cache = "arg0", kind = "paged", offset = 0 : i64, sizes = [128, 8, 64, "pages"], strides = [1, 128, 1024, "page_stride"]}
  // CHECK:         kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | {{.*}}BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @nhd(%k: !nhd, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !tile
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !nhd, !tile
    kvcache.wait %tok
    gpu.return
  }

  // A tile of one head is one box of contiguous bytes: two chunks of it, no more
  // copies than above.
  // CHECK-LABEL: @hnd(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b> {kvcache.descriptor = {cache = "arg0", kind = "paged", offset = 0 : i64, sizes = [128, 8, 64, "pages"], strides = [1, 8192, 128, "page_stride"]}
  // CHECK:         kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | {{.*}}BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @hnd(%k: !hnd, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !tile
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !hnd, !tile
    kvcache.wait %tok
    gpu.return
  }

  // A view that the kernel makes of its arguments.
  // CHECK-LABEL: @view_of_blocks(
  // CHECK-SAME:    {kvcache.descriptor = {blocks = "arg0", kind = "paged", offset = 0 : i64, sizes = [128, 8, 64, "pages"], strides = [1, 8192, 128, "page_stride"]}
  // REMARK: [Passed] copy | {{.*}}BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @view_of_blocks(%blocks: !blocks, %lengths: memref<?xi32>, %lut: !lut, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 0 : i32
    %k = kvcache.paged_cache %blocks, %lengths, %lut, %max, %max : !blocks, memref<?xi32>, !lut -> !hnd
    %kt = kvcache.alloc_tile : !tile
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !hnd, !tile
    kvcache.wait %tok
    gpu.return
  }

  // Pages smaller than the tile are a box each.
  // CHECK-LABEL: @small_pages(
  // CHECK-SAME:    !kvcache.tma_tile<64x1x8x1xbf16, swizzle_128b>
  // CHECK-COUNT-8: kvcache.tma_load
  // CHECK-NOT:     kvcache.tma_load
  // REMARK: [Passed] copy | {{.*}}BoxRows=8, Remark="copies by tensor_boxes"
  gpu.func @small_pages(%k: !small, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !tile
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !small, !tile
    kvcache.wait %tok
    gpu.return
  }

  // An open stride of heads is one of the descriptor's.
  // CHECK-LABEL: @open(
  // CHECK-SAME:    strides = [1, "head_stride", 256, "page_stride"]
  // CHECK:         kvcache.tma_load
  // REMARK: [Passed] copy | {{.*}}BoxRows=64, Remark="copies by tensor_boxes"
  gpu.func @open(%k: !open, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !tile
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !open, !tile
    kvcache.wait %tok
    gpu.return
  }

  // Columns count the elements of the heads before.
  // CHECK-LABEL: @gather_of_open(
  // CHECK-NOT:     kvcache.tma_
  // REMARK: Reason="the stride of heads is known only at run time", Remark="does not copy by tensor_rows"
  gpu.func @gather_of_open(%k: !open, %h: index, %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !tile
    %tok = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %kt : !open, memref<64xi32>, !tile
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: gpu.func @odd(
  // CHECK-NOT:     tma_tile
  // CHECK-NOT:     nvvm.cp.async.shared
  // REMARK: Reason="the descriptor expects stride 2 to be a multiple of 16 bytes, got 258", Remark="does not copy by tensor_boxes"
  // REMARK: Reason="rows are aligned to 2 bytes, not to 4", Remark="does not copy by cp_async"
  // REMARK: Remark="copies by plain"
  gpu.func @odd(%k: !odd, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x128xbf16>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !odd, !kvcache.tile<64x128xbf16>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: gpu.func @eight(
  // CHECK-NOT:     tma_tile
  // CHECK:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8
  // REMARK: Remark="copies by cp_async"
  gpu.func @eight(%k: !eight, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !tile
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %kt : !eight, !tile
    kvcache.wait %tok
    gpu.return
  }

  // FlashMLA's rows of 656 bytes: four of them end within 128 bytes, so that one
  // bulk copy takes a row, and gathers take rows of 576 bytes four at a time.
  // CHECK-LABEL: @rows656(
  // CHECK:         nvvm.cp.async.bulk.shared.cluster.global
  // CHECK-NOT:     nvvm.cp.async.bulk.shared.cluster.global
  // REMARK: [Missed] {{.*}}Reason="a copy of 4 rows has 2624 bytes of a chunk, not a multiple of 128", Remark="does not copy by tensor_rows"
  // REMARK: Remark="copies by bulk_rows"
  gpu.func @rows656(%k: !rows656, %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x656xi8>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !rows656, memref<64xi32>, !kvcache.tile<64x656xi8>
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: @rows576(
  // CHECK-SAME:    !kvcache.tma_tile<72x1xi64>
  // CHECK-COUNT-16: kvcache.tma_gather4
  // CHECK-NOT:     kvcache.tma_gather4
  // REMARK: Remark="copies by tensor_rows"
  gpu.func @rows576(%k: !rows576, %ids: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xf8E4M3FN>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !rows576, memref<64xi32>, !kvcache.tile<64x576xf8E4M3FN>
    kvcache.wait %tok
    gpu.return
  }
}

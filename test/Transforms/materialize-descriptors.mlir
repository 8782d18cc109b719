// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_100a --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-materialize-descriptors | FileCheck %s
// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_100a --kvcache-choose-copies --kvcache-materialize-descriptors | FileCheck %s

// Kernels that get a cache as an argument: what their launches have of the
// distance between pages.

#kv = #kvcache.params<num_heads = 4, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!odd = memref<?x2x1x16x4x128xbf16, strided<[16640, 8192, 8192, 512, 128, 1]>>
!even = memref<?x2x1x16x4x128xbf16, strided<[16896, 8192, 8192, 512, 128, 1]>>
!open = memref<?x2x1x16x4x128xbf16, strided<[?, ?, ?, 512, 128, 1], offset: ?>>
!lut = memref<?x?xi32>
!ids = memref<8xi32>
!dense = !kvcache.tile<16x64xbf16, swizzle_128b>
!sparse = !kvcache.tile<8x64xbf16, swizzle_128b>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @of_a_view(
    // CHECK-NOT:     tma_tile
    // CHECK:         gpu.return
    gpu.func @of_a_view(%k: !cache, %n: index, %ids: !ids) kernel {
      %c0 = arith.constant 0 : index
      %dense = kvcache.alloc_tile : !dense
      %tok0 = kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] valid %n to %dense : !cache, !dense
      kvcache.wait %tok0
      %sparse = kvcache.alloc_tile : !sparse
      %tok1 = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %sparse : !cache, !ids, !sparse
      kvcache.wait %tok1
      gpu.return
    }
    // Boxes of a page don't count rows.
    // CHECK-LABEL: gpu.func @of_blocks(
    // CHECK-SAME:    %[[DESC:[a-z0-9]+]]: !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b> {kvcache.descriptor = {blocks = "arg0", kind = "paged", layer = 0 : i64, offset = 0 : i64, role = "key", sizes = [128, 4, 16, "pages"], strides = [1, 128, 512, "page_stride"]}, kvcache.name = "descriptor0"}
    // CHECK:         kvcache.async_load_tile {{.*}} descriptor %[[DESC]] {copy = #kvcache.copy<tensor_boxes>}
    // CHECK:         kvcache.async_gather_tile {{.*}} {copy = #kvcache.copy<cp_async>}
    // CHECK-NOT:     tma_gather4
    // CHECK:         gpu.return
    gpu.func @of_blocks(%blocks: !open, %lengths: memref<?xi32>, %lut: !lut, %ids: !ids) kernel {
      %c0 = arith.constant 0 : index
      %max = arith.constant 0 : i32
      %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !open, memref<?xi32>, !lut -> !collection
      %k = kvcache.paged_view key %c[%c0] : !collection
      %dense = kvcache.alloc_tile : !dense
      %tok0 = kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %dense : !cache, !dense
      kvcache.wait %tok0
      %sparse = kvcache.alloc_tile : !sparse
      %tok1 = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %sparse : !cache, !ids, !sparse
      kvcache.wait %tok1
      gpu.return
    }
    // CHECK-LABEL: gpu.func @whole_rows(
    // CHECK-SAME:    !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>
    gpu.func @whole_rows(%k: !cache, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %dense = kvcache.alloc_tile : !dense
      %tok0 = kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] valid %n to %dense : !cache, !dense
      kvcache.wait %tok0
      gpu.return
    }
    // Views that are the same computation share a descriptor, for each geometry.
    // CHECK-LABEL: gpu.func @equal_views(
    // CHECK-SAME:    %[[PAGED:[a-z0-9]+]]: !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b> {{{.*}}kvcache.name = "descriptor0"}, %[[RAGGED:[a-z0-9]+]]: !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b> {{{.*}}kvcache.name = "descriptor1"}) kernel
    // CHECK:         kvcache.async_load_tile {{.*}} descriptor %[[PAGED]]
    // CHECK:         kvcache.async_load_tile {{.*}} descriptor %[[PAGED]]
    // CHECK:         kvcache.async_load_tile {{.*}} descriptor %[[RAGGED]]
    gpu.func @equal_views(%c: !collection, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %j = kvcache.paged_view key %c[%c0] : !collection
      %dense = kvcache.alloc_tile : !dense
      %tok0 = kvcache.async_load_tile %j[%c0, %c0, %c0, %c0] to %dense : !cache, !dense
      kvcache.wait %tok0
      %zero = arith.constant 0 : index
      %k = kvcache.paged_view key %c[%zero] : !collection
      %tok1 = kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %dense : !cache, !dense
      kvcache.wait %tok1
      %tok2 = kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] valid %n to %dense : !cache, !dense
      kvcache.wait %tok2
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @launch(
  // CHECK:         kvcache.paged_view
  // CHECK-NOT:     kvcache.create
  // CHECK:         gpu.launch_func @kernels::@of_a_view
  // CHECK:         kvcache.create_paged_tma_tile
  // CHECK:         gpu.launch_func @kernels::@of_blocks
  // CHECK:         kvcache.create_ragged_tma_tile
  // CHECK:         gpu.launch_func @kernels::@whole_rows
  func.func @launch(%odd: !odd, %even: !even, %lengths: memref<?xi32>, %lut: !lut, %n: index, %ids: !ids) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %max = arith.constant 0 : i32
    %c = kvcache.paged_collection %odd, %lengths, %lut, %max, %max : !odd, memref<?xi32>, !lut -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    gpu.launch_func @kernels::@of_a_view blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%k : !cache, %n : index, %ids : !ids)
    %open = memref.cast %odd : !odd to !open
    gpu.launch_func @kernels::@of_blocks blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%open : !open, %lengths : memref<?xi32>, %lut : !lut, %ids : !ids)
    %d = kvcache.paged_collection %even, %lengths, %lut, %max, %max : !even, memref<?xi32>, !lut -> !collection
    %e = kvcache.paged_view key %d[%c0] : !collection
    gpu.launch_func @kernels::@whole_rows blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%e : !cache, %n : index)
    return
  }
}

// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/copies.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func @copies(%arg0: !kvcache.paged<bf16, #kv, page_size = 16>, %arg1: !kvcache.continuous<bf16, #kv>, %arg2: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg3: index, %arg4: memref<64xi32>) {
    %0 = kvcache.async_load_tile %arg0[%arg3, %arg3, %arg3, %arg3] valid %arg3 to %arg2 : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.async_load_tile %arg1[%arg3, %arg3, %arg3, %arg3] to %arg2 : !kvcache.continuous<bf16, #kv>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %2 = kvcache.async_gather_tile %arg0[%arg3, %arg3] rows %arg4 to %arg2 : !kvcache.paged<bf16, #kv, page_size = 16>, memref<64xi32>, !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.wait %1
    return
  }
  func.func @base_alignment(%arg0: !kvcache.paged<bf16, #kv, page_size = 16>, %arg1: !kvcache.continuous<bf16, #kv>, %arg2: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg3: index) {
    %0 = kvcache.async_load_tile %arg0[%arg3, %arg3, %arg3, %arg3] to %arg2 {base_alignment = 64 : i64} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.async_load_tile %arg1[%arg3, %arg3, %arg3, %arg3] valid %arg3 to %arg2 {base_alignment = 3 : i64} : !kvcache.continuous<bf16, #kv>, !kvcache.tile<64x128xbf16, swizzle_128b>
    return
  }
  func.func @half_bytes(%arg0: !kvcache.paged<f4E2M1FN, #kv, page_size = 16, scale = f8E4M3FN, granularity = 16>, %arg1: !kvcache.tile<64x64xi8, swizzle_64b>, %arg2: index, %arg3: memref<64xi32>) {
    %0 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 : !kvcache.paged<f4E2M1FN, #kv, page_size = 16, scale = f8E4M3FN, granularity = 16>, !kvcache.tile<64x64xi8, swizzle_64b>
    %1 = kvcache.async_gather_tile %arg0[%arg2, %arg2] rows %arg3 to %arg1 : !kvcache.paged<f4E2M1FN, #kv, page_size = 16, scale = f8E4M3FN, granularity = 16>, memref<64xi32>, !kvcache.tile<64x64xi8, swizzle_64b>
    return
  }
  func.func @kinds(%arg0: !kvcache.paged<bf16, #kv, page_size = 16>, %arg1: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg2: index, %arg3: memref<64xi32>) {
    %0 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 {copy = #kvcache.copy<plain>} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 {base_alignment = 16 : i64, copy = #kvcache.copy<cp_async>} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %2 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 {copy = #kvcache.copy<tensor_boxes>} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %3 = kvcache.async_gather_tile %arg0[%arg2, %arg2] rows %arg3 to %arg1 {copy = #kvcache.copy<tensor_rows>} : !kvcache.paged<bf16, #kv, page_size = 16>, memref<64xi32>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %4 = kvcache.async_gather_tile %arg0[%arg2, %arg2] rows %arg3 to %arg1 {copy = #kvcache.copy<bulk_rows>} : !kvcache.paged<bf16, #kv, page_size = 16>, memref<64xi32>, !kvcache.tile<64x128xbf16, swizzle_128b>
    return
  }
  func.func @hints(%arg0: !kvcache.paged<bf16, #kv, page_size = 16>, %arg1: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg2: index, %arg3: memref<64xi32>) {
    %0 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 {copy = #kvcache.copy<plain>, l2_hint = #kvcache.eviction<evict_first>} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.async_gather_tile %arg0[%arg2, %arg2] rows %arg3 to %arg1 {l2_hint = #kvcache.eviction<evict_last>} : !kvcache.paged<bf16, #kv, page_size = 16>, memref<64xi32>, !kvcache.tile<64x128xbf16, swizzle_128b>
    return
  }
  func.func @multicast(%arg0: !kvcache.paged<bf16, #kv, page_size = 16>, %arg1: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg2: index) {
    %0 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 {multicast} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 {base_alignment = 16 : i64, copy = #kvcache.copy<tensor_boxes>, multicast} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    return
  }
  func.func @descriptors(%arg0: !kvcache.paged<bf16, #kv, page_size = 16>, %arg1: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg2: index, %arg3: memref<64xi32>, %arg4: !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>, %arg5: !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>, %arg6: !kvcache.tma_tile<64x1xbf16, swizzle_128b>) {
    %0 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] valid %arg2 to %arg1 descriptor %arg4 {copy = #kvcache.copy<tensor_boxes>} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>
    %1 = kvcache.async_load_tile %arg0[%arg2, %arg2, %arg2, %arg2] to %arg1 descriptor %arg5 {copy = #kvcache.copy<tensor_boxes>} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
    %2 = kvcache.async_gather_tile %arg0[%arg2, %arg2] rows %arg3 to %arg1 descriptor %arg6 {copy = #kvcache.copy<tensor_rows>} : !kvcache.paged<bf16, #kv, page_size = 16>, memref<64xi32>, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x1xbf16, swizzle_128b>
    return
  }
}


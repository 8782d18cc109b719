// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/tma-ops.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

module {
  func.func @prefetch(%arg0: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>) {
    kvcache.tma_prefetch %arg0 : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    return
  }
  func.func @expect(%arg0: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg1: index, %arg2: index) {
    kvcache.tma_expect %arg0[%arg1] bytes %arg2 : <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
    return
  }
  func.func @load(%arg0: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %arg1: !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>, %arg2: !kvcache.tma_tile<128x64xbf16>, %arg3: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg4: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg5: !kvcache.tile<64x128xbf16>, %arg6: index, %arg7: index, %arg8: index, %arg9: index, %arg10: index) {
    kvcache.tma_load %arg0[%arg7, %arg8, %arg9], %arg3[%arg6] to %arg4 : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load %arg1[%arg7, %arg8, %arg9, %arg10], %arg3[%arg6] to %arg4 : !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load %arg2[%arg7, %arg9], %arg3[%arg6] to %arg5 : !kvcache.tma_tile<128x64xbf16>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16>
    return
  }
  func.func @load_at_a_row(%arg0: !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>, %arg1: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg2: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index) {
    kvcache.tma_load %arg0[%arg4, %arg5, %arg6], %arg1[%arg3] to %arg2 at %arg7 : !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load %arg0[%arg4, %arg5, %arg6], %arg1[%arg3] to %arg2 at %arg7 {l2_hint = #kvcache.eviction<evict_last>} : !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    return
  }
  func.func @multicast(%arg0: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %arg1: !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>, %arg2: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg3: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg4: index) {
    kvcache.tma_load %arg0[%arg4, %arg4, %arg4], %arg2[%arg4] to %arg3 {multicast} : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load %arg1[%arg4, %arg4, %arg4], %arg2[%arg4] to %arg3 at %arg4 {l2_hint = #kvcache.eviction<evict_last>, multicast} : !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    return
  }
  func.func @hints(%arg0: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %arg1: !kvcache.tma_tile<64x1xbf16, swizzle_128b>, %arg2: !kvcache.row_indices<rows = 64, page_size = 64>, %arg3: memref<64xi32>, %arg4: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg5: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg6: index) {
    kvcache.tma_load %arg0[%arg6, %arg6, %arg6], %arg4[%arg6] to %arg5 {l2_hint = #kvcache.eviction<evict_normal>} : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load_rows %arg0[%arg6, %arg6] rows %arg2, %arg4[%arg6] to %arg5 {l2_hint = #kvcache.eviction<evict_first>} : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, !kvcache.row_indices<rows = 64, page_size = 64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_gather4 %arg1[%arg6, %arg6, %arg6, %arg6, %arg6], %arg4[%arg6] to %arg5 at %arg6 {l2_hint = #kvcache.eviction<evict_last>} : !kvcache.tma_tile<64x1xbf16, swizzle_128b>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_gather_tile %arg1 rows %arg3, %arg4[%arg6] to %arg5 {l2_hint = #kvcache.eviction<evict_first>} : !kvcache.tma_tile<64x1xbf16, swizzle_128b>, memref<64xi32>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    %0 = kvcache.tma_store %arg5 to %arg0[%arg6, %arg6, %arg6] {l2_hint = #kvcache.eviction<evict_normal>} : !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    return
  }
  func.func @load_rows(%arg0: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %arg1: !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>, %arg2: !kvcache.row_indices<rows = 64, page_size = 64>, %arg3: !kvcache.row_indices<rows = 128, page_size = 64>, %arg4: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg5: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg6: index, %arg7: index, %arg8: index, %arg9: index, %arg10: i1) {
    kvcache.tma_load_rows %arg0[%arg7, %arg8] rows %arg2, %arg4[%arg6] to %arg5 : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, !kvcache.row_indices<rows = 64, page_size = 64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load_rows %arg1[%arg7, %arg8] rows %arg2 valid %arg9, %arg4[%arg6] to %arg5 : !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>, !kvcache.row_indices<rows = 64, page_size = 64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load_rows %arg0[%arg7, %arg8] rows %arg3, %arg4[%arg6] to %arg5 pair_cta leader %arg10 : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, !kvcache.row_indices<rows = 128, page_size = 64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    kvcache.tma_load_rows %arg1[%arg7, %arg8] rows %arg3 valid %arg9, %arg4[%arg6] to %arg5 pair_cta leader %arg10 {l2_hint = #kvcache.eviction<evict_first>} : !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>, !kvcache.row_indices<rows = 128, page_size = 64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    return
  }
  func.func @load_rows_of_a_continuous_cache(%arg0: !kvcache.tma_tile<128x64xbf16>, %arg1: !kvcache.row_indices<rows = 64>, %arg2: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg3: !kvcache.tile<64x128xbf16>, %arg4: index) {
    kvcache.tma_load_rows %arg0[%arg4] rows %arg1, %arg2[%arg4] to %arg3 : !kvcache.tma_tile<128x64xbf16>, !kvcache.row_indices<rows = 64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x128xbf16>
    return
  }
  func.func @gather(%arg0: !kvcache.tma_tile<72x1xi64>, %arg1: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg2: !kvcache.tile<64x576xf8E4M3FN>, %arg3: memref<64xi32>, %arg4: memref<64xi64>, %arg5: index, %arg6: index, %arg7: index, %arg8: index, %arg9: index, %arg10: index, %arg11: index) {
    kvcache.tma_gather4 %arg0[%arg6, %arg7, %arg8, %arg9, %arg10], %arg1[%arg5] to %arg2 at %arg11 : !kvcache.tma_tile<72x1xi64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x576xf8E4M3FN>
    kvcache.tma_gather_tile %arg0 rows %arg3, %arg1[%arg5] to %arg2 : !kvcache.tma_tile<72x1xi64>, memref<64xi32>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x576xf8E4M3FN>
    kvcache.tma_gather_tile %arg0[%arg6] rows %arg4, %arg1[%arg5] to %arg2 : !kvcache.tma_tile<72x1xi64>, memref<64xi64>, <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> !kvcache.tile<64x576xf8E4M3FN>
    return
  }
  func.func @store(%arg0: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %arg1: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg2: index, %arg3: index, %arg4: index) {
    %0 = kvcache.tma_store %arg1 to %arg0[%arg2, %arg3, %arg4] : !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    kvcache.wait %0
    %1 = kvcache.tma_store %arg1 to %arg0[%arg2, %arg3, %arg4] : !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    return
  }
}


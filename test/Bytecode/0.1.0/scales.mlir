// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/scales.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func @views(%arg0: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>) -> (!kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>, memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>) {
    %0 = kvcache.scales_view %arg0 : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    %1 = kvcache.scales_base %arg0 {note = "kept"} : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    return %0, %1 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>, memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
  }
  func.func @scales_block_tile(%arg0: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg1: index, %arg2: index, %arg3: index, %arg4: index, %arg5: index) {
    %0 = kvcache.scales_block_tile %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> memref<16x4xf32, strided<[32, 1], offset: ?>>
    %1 = kvcache.scales_block_tile %arg0[%arg1, %arg2, %arg3, %arg4] scale_page %arg5 {note = "kept"} : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> memref<64x1xf32, strided<[32, 1], offset: ?>>
    return
  }
  func.func @load_scale(%arg0: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg1: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>, %arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index) {
    %0 = kvcache.load_scale %arg0[%arg2, %arg3, %arg4, %arg5] : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> f32
    %1 = kvcache.load_scale %arg0[%arg2, %arg3, %arg4, %arg5] : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> vector<4xf32>
    %2 = kvcache.load_scale %arg1[%arg2, %arg3, %arg4, %arg5] scale_page %arg6 {note = "kept"} : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16> -> vector<8xf8E4M3FN>
    return
  }
  func.func @store_scale(%arg0: f32, %arg1: vector<4xf32>, %arg2: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index) {
    kvcache.store_scale %arg0, %arg2[%arg3, %arg4, %arg5, %arg6] : f32, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    kvcache.store_scale %arg1, %arg2[%arg3, %arg4, %arg5, %arg6] scale_page %arg7 {note = "kept"} : vector<4xf32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    return
  }
  func.func @queries(%arg0: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg1: index, %arg2: index, %arg3: index) {
    %0 = kvcache.num_scale_rows %arg0 : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    %1 = kvcache.scale_row_index %arg0[%arg1, %arg2] : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    %2 = kvcache.scale_row_index %arg0[%arg1, %arg2] scale_page %arg3 : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    %row, %page = kvcache.scale_tma_coords %arg0[%arg1, %arg2] {note = "kept"} : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    return
  }
  func.func @accesses_of_a_view_of_scales(%arg0: !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>, %arg1: index, %arg2: index, %arg3: index, %arg4: index, %arg5: index) {
    %0 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>> -> f32
    %1 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] page %arg5 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>> -> vector<4xbf16>
    kvcache.store %0, %arg0[%arg1, %arg2, %arg3, %arg4] : f32, !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    kvcache.store %0, %arg0[%arg1, %arg2, %arg3, %arg4] page %arg5 : f32, !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %2 = kvcache.block_tile %arg0[%arg1, %arg2, %arg3, %arg4] page %arg5 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>> -> memref<16x4xf32, strided<[32, 1], offset: ?>>
    return
  }
  func.func @scales_of_a_view_of_scales(%arg0: !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>, %arg1: index, %arg2: index) -> memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>> {
    %0 = kvcache.load_scale %arg0[%arg1, %arg1, %arg1, %arg1] : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>> -> f32
    %1 = kvcache.load_scale %arg0[%arg1, %arg1, %arg1, %arg1] scale_page %arg2 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>> -> vector<4xf32>
    kvcache.store_scale %0, %arg0[%arg1, %arg1, %arg1, %arg1] scale_page %arg2 : f32, !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %2 = kvcache.scales_block_tile %arg0[%arg1, %arg1, %arg1, %arg1] scale_page %arg2 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>> -> memref<16x4xf32, strided<[32, 1], offset: ?>>
    %3 = kvcache.scales_base %arg0 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    return %3 : memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
  }
  func.func @views_without_scales(%arg0: !kvcache.paged<bf16, #kv, page_size = ?, table = csr>, %arg1: !kvcache.continuous<bf16, #kv>, %arg2: index) {
    %0 = kvcache.scales_view %arg0 : !kvcache.paged<bf16, #kv, page_size = ?, table = csr>
    %1 = kvcache.scales_view %arg1 : !kvcache.continuous<bf16, #kv>
    %2 = kvcache.cache_length %0[%arg2] : !kvcache.scales<!kvcache.paged<bf16, #kv, page_size = ?, table = csr>>
    %3 = kvcache.max_context_length %0 : !kvcache.scales<!kvcache.paged<bf16, #kv, page_size = ?, table = csr>>
    %4 = kvcache.extent batch %0 : !kvcache.scales<!kvcache.paged<bf16, #kv, page_size = ?, table = csr>>
    %5 = kvcache.extent page_size %0 : !kvcache.scales<!kvcache.paged<bf16, #kv, page_size = ?, table = csr>>
    %6 = kvcache.cache_lengths %1 : !kvcache.scales<!kvcache.continuous<bf16, #kv>>
    return
  }
  func.func @queries_of_a_view_of_scales(%arg0: !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>, %arg1: index, %arg2: index) {
    %0 = kvcache.max_context_length %arg0 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %1 = kvcache.num_kv_rows %arg0 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %2 = kvcache.cache_length %arg0[%arg1] : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %3 = kvcache.page_id %arg0[%arg1, %arg2] : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %4 = kvcache.row_index %arg0[%arg1, %arg2] : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %5 = kvcache.row_index %arg0[%arg1, %arg2] page %3 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %row, %page = kvcache.tma_coords %arg0[%arg1, %arg2] : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %6 = kvcache.tma_row %arg0[%arg2] : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %7 = kvcache.extent batch %arg0 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %8 = kvcache.extent pages %arg0 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %9 = kvcache.extent tokens %arg0 : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>>
    %10 = kvcache.populate %arg0[%arg1, %arg2] {base_alignment = 64 : i64} : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>> -> !kvcache.row_indices<rows = 128, page_size = 64>
    return
  }
}


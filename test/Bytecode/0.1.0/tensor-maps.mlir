// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/tensor-maps.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 8, head_size = 96>
#kv2 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
#kv3 = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
#kv4 = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
module {
  func.func private @types(!kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, !kvcache.tma_tile<32x1x64xbf16, swizzle_64b>, !kvcache.tma_tile<16x256xbf16, swizzle_32b>, !kvcache.tma_tile<256xi8>, !kvcache.tma_tile<2x1x1x1x256xi64>, !kvcache.tma_tile<256x1xf8E4M3FN>)
  func.func private @options(!kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 256>, !kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 128>, !kvcache.tma_tile<64x1xbf16, l2_promotion = 64>, !kvcache.tma_tile<64x1xbf16>)
  func.func @tile(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>) {
    %0 = kvcache.create_tma_tile %arg0 {rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    %1 = kvcache.create_tma_tile %arg0 {rows = 16 : i64} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<8x1x16xbf16>
    return
  }
  func.func @tile_of_a_width(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg2: !kvcache.continuous<bf16, #kv>) {
    %0 = kvcache.create_tma_tile %arg0 {columns = 96 : i64, rows = 16 : i64} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<96x1x16xbf16>
    %1 = kvcache.create_tma_tile %arg0 {columns = 128 : i64, rows = 16 : i64} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<128x1x16xbf16>
    %2 = kvcache.create_tma_tile %arg0 {columns = 128 : i64, rows = 16 : i64, swizzle = #kvcache.swizzle<swizzle_64b>} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<32x1x16xbf16, swizzle_64b>
    %3 = kvcache.create_tma_tile %arg1 {columns = 128 : i64, rows = 16 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.paged<bf16, #kv1, page_size = 64> -> !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>
    %4 = kvcache.create_tma_tile %arg2 {columns = 256 : i64, rows = 16 : i64} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<256x16xbf16>
    return
  }
  func.func @tile_of_more_rows_than_a_page(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>) {
    %0 = kvcache.create_tma_tile %arg0 {rows = 512 : i64} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<8x1x64xbf16>
    return
  }
  func.func @matrix(%arg0: !kvcache.continuous<bf16, #kv>) {
    %0 = kvcache.create_tma_tile %arg0 {rows = 128 : i64, swizzle = #kvcache.swizzle<swizzle_64b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<32x128xbf16, swizzle_64b>
    %1 = kvcache.create_tma_tile %arg0 {columns = 128 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
    %2 = kvcache.create_tma_tile %arg0 {columns = 64 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<64x32xbf16, swizzle_128b>
    return
  }
  func.func @matrix_of_any_swizzle(%arg0: !kvcache.continuous<bf16, #kv>) {
    %0 = kvcache.create_tma_tile %arg0 {columns = 256 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<256x32xbf16>
    %1 = kvcache.create_tma_tile %arg0 {columns = 256 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_32b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<16x8xbf16, swizzle_32b>
    %2 = kvcache.create_tma_tile %arg0 {columns = 16 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_32b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<16x32xbf16, swizzle_32b>
    %3 = kvcache.create_tma_tile %arg0 {columns = 64 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_64b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<32x8xbf16, swizzle_64b>
    %4 = kvcache.create_tma_tile %arg0 {columns = 32 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_64b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<32x32xbf16, swizzle_64b>
    %5 = kvcache.create_tma_tile %arg0 {columns = 1024 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
    return
  }
  func.func @half_bytes(%arg0: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>) {
    %0 = kvcache.create_tma_tile %arg0 {rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_64b>} : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16> -> !kvcache.tma_tile<64x1x32xi8, swizzle_64b>
    %1 = kvcache.create_paged_tma_tile %arg0 {columns = 64 : i64, rows = 32 : i64} : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16> -> !kvcache.tma_tile<64x1x32x1xi8>
    return
  }
  func.func @paged(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>) {
    %0 = kvcache.create_paged_tma_tile %arg0 {columns = 128 : i64, rows = 16 : i64} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<128x1x16x1xbf16>
    %1 = kvcache.create_paged_tma_tile %arg0 {columns = 128 : i64, l2_promotion = 128 : i64, rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b, l2_promotion = 128>
    return
  }
  func.func @other_elements(%arg0: !kvcache.paged<f8E4M3FN, #kv2, page_size = 64>) {
    %0 = kvcache.create_tma_tile %arg0 {columns = 72 : i64, dtype = i64, rows = 32 : i64} : !kvcache.paged<f8E4M3FN, #kv2, page_size = 64> -> !kvcache.tma_tile<72x1x32xi64>
    %1 = kvcache.create_paged_tma_tile %arg0 {columns = 72 : i64, dtype = i64, rows = 16 : i64} : !kvcache.paged<f8E4M3FN, #kv2, page_size = 64> -> !kvcache.tma_tile<72x1x16x1xi64>
    %2 = kvcache.create_ragged_tma_tile %arg0 {columns = 72 : i64, dtype = i64, rows = 16 : i64} : !kvcache.paged<f8E4M3FN, #kv2, page_size = 64> -> !kvcache.tma_tile<72x16x1x1xi64>
    return
  }
  func.func @ragged(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.continuous<bf16, #kv>) {
    %0 = kvcache.create_ragged_tma_tile %arg0 {rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
    %1 = kvcache.create_ragged_tma_tile %arg0 {rows = 64 : i64} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<8x64x1x1xbf16>
    %2 = kvcache.create_ragged_tma_tile %arg1 {columns = 128 : i64, rows = 256 : i64} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<128x256x1x1xbf16>
    %3 = kvcache.create_ragged_tma_tile %arg0 {columns = 128 : i64, rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_32b>} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<16x64x1x1xbf16, swizzle_32b>
    return
  }
  func.func @rope(%arg0: !kvcache.paged<f8E4M3FN, #kv3, page_size = 64>) {
    %0 = kvcache.create_rope_tma_tile %arg0 {columns = 64 : i64, padded_depth = 512 : i64, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.paged<f8E4M3FN, #kv3, page_size = 64> -> !kvcache.tma_tile<64x1x32xbf16, swizzle_128b>
    %1 = kvcache.create_rope_tma_tile %arg0 {columns = 64 : i64, padded_depth = 512 : i64, rows = 256 : i64} : !kvcache.paged<f8E4M3FN, #kv3, page_size = 64> -> !kvcache.tma_tile<8x1x64xbf16>
    %2 = kvcache.create_rope_gather4_tma_tile %arg0 {padded_depth = 512 : i64, tile_height = 64 : i64, tile_width = 64 : i64} : !kvcache.paged<f8E4M3FN, #kv3, page_size = 64> -> !kvcache.tma_tile<64x1xbf16>
    %3 = kvcache.create_rope_gather4_tma_tile %arg0 {padded_depth = 512 : i64, swizzle = #kvcache.swizzle<swizzle_64b>, tile_height = 64 : i64, tile_width = 64 : i64} : !kvcache.paged<f8E4M3FN, #kv3, page_size = 64> -> !kvcache.tma_tile<32x1xbf16, swizzle_64b>
    return
  }
  func.func @gather4(%arg0: !kvcache.paged<f8E4M3FN, #kv2, page_size = 64>, %arg1: !kvcache.continuous<bf16, #kv>, %arg2: !kvcache.paged<f8E4M3FN, #kv3, page_size = 64>) {
    %0 = kvcache.create_gather4_tma_tile %arg0 {dtype = i64, tile_height = 64 : i64, tile_width = 72 : i64} : !kvcache.paged<f8E4M3FN, #kv2, page_size = 64> -> !kvcache.tma_tile<72x1xi64>
    %1 = kvcache.create_gather4_tma_tile %arg0 {dtype = i64, tile_height = 64 : i64, tile_stride = 72 : i64, tile_width = 64 : i64} : !kvcache.paged<f8E4M3FN, #kv2, page_size = 64> -> !kvcache.tma_tile<64x1xi64>
    %2 = kvcache.create_gather4_tma_tile %arg0 {swizzle = #kvcache.swizzle<swizzle_64b>, tile_width = 576 : i64} : !kvcache.paged<f8E4M3FN, #kv2, page_size = 64> -> !kvcache.tma_tile<64x1xf8E4M3FN, swizzle_64b>
    %3 = kvcache.create_gather4_tma_tile %arg1 {l2_promotion = 256 : i64, tile_height = 64 : i64, tile_width = 128 : i64} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<128x1xbf16, l2_promotion = 256>
    %4 = kvcache.create_gather4_tma_tile %arg1 {tile_stride = 1024 : i64, tile_width = 128 : i64} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<128x1xbf16>
    %5 = kvcache.create_rope_gather4_tma_tile %arg2 {padded_depth = 512 : i64, tile_width = 64 : i64} : !kvcache.paged<f8E4M3FN, #kv3, page_size = 64> -> !kvcache.tma_tile<64x1xbf16>
    return
  }
  func.func @scales(%arg0: !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv4, page_size = 64, scale = f32, granularity = 512>>) {
    %0 = kvcache.create_scale_tma_tile %arg0 {rows = 64 : i64} : !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv4, page_size = 64, scale = f32, granularity = 512>> -> !kvcache.tma_tile<64x1xf32>
    return
  }
  func.func @encode(%arg0: memref<bf16, strided<[], offset: ?>>, %arg1: index, %arg2: index) {
    %0 = kvcache.encode_tensor_map %arg0 sizes[%arg1, %arg2] strides[%arg2] {offset = -1024 : i64} : memref<bf16, strided<[], offset: ?>> -> !kvcache.tma_tile<64x64xbf16, swizzle_128b>
    %1 = kvcache.encode_tensor_map %arg0 sizes[%arg1] strides[] : memref<bf16, strided<[], offset: ?>> -> !kvcache.tma_tile<64xbf16>
    return
  }
  func.func @pages_of_any_size(%arg0: !kvcache.paged<bf16, #kv, page_size = ?>) {
    %0 = kvcache.create_ragged_tma_tile %arg0 {rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.paged<bf16, #kv, page_size = ?> -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
    %1 = kvcache.create_gather4_tma_tile %arg0 {swizzle = #kvcache.swizzle<swizzle_128b>, tile_height = 64 : i64, tile_width = 128 : i64} : !kvcache.paged<bf16, #kv, page_size = ?> -> !kvcache.tma_tile<64x1xbf16, swizzle_128b>
    return
  }
}


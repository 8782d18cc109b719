// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#narrow = #kvcache.params<num_heads = 8, head_size = 96>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!part_of_a_span = !kvcache.paged<bf16, #narrow, page_size = 64>
!any_pages = !kvcache.paged<bf16, #kv, page_size = ?>
!continuous = !kvcache.continuous<bf16, #kv>
!nvfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>
!quantized = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 512>
!scales = !kvcache.scales<!quantized>

// CHECK-LABEL: func.func private @types(
// CHECK-SAME:    !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>,
// CHECK-SAME:    !kvcache.tma_tile<32x1x64xbf16, swizzle_64b>,
// CHECK-SAME:    !kvcache.tma_tile<16x256xbf16, swizzle_32b>,
// CHECK-SAME:    !kvcache.tma_tile<256xi8>,
// CHECK-SAME:    !kvcache.tma_tile<2x1x1x1x256xi64>,
// CHECK-SAME:    !kvcache.tma_tile<256x1xf8E4M3FN>)
func.func private @types(!kvcache.tma_tile<64x1x64xbf16, swizzle_128b>,
                         !kvcache.tma_tile<32x1x64xbf16, swizzle_64b>,
                         !kvcache.tma_tile<16x256xbf16, swizzle_32b>,
                         !kvcache.tma_tile<256xi8>,
                         !kvcache.tma_tile<2x1x1x1x256xi64>,
                         !kvcache.tma_tile<256x1xf8E4M3FN>)

// Options come in any order, and those of no effect are not printed.
// CHECK-LABEL: func.func private @options(
// CHECK-SAME:    !kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 256>,
// CHECK-SAME:    !kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 128>,
// CHECK-SAME:    !kvcache.tma_tile<64x1xbf16, l2_promotion = 64>,
// CHECK-SAME:    !kvcache.tma_tile<64x1xbf16>)
func.func private @options(!kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 256>,
                           !kvcache.tma_tile<64x1x64xbf16, l2_promotion = 128, swizzle_128b>,
                           !kvcache.tma_tile<64x1xbf16, l2_promotion = 64, none>,
                           !kvcache.tma_tile<64x1xbf16, none>)

// CHECK-LABEL: func.func @tile(
// CHECK:         kvcache.create_tma_tile %{{.*}} {rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
// CHECK:         kvcache.create_tma_tile %{{.*}} {rows = 16 : i64} : {{.*}} -> !kvcache.tma_tile<8x1x16xbf16>
func.func @tile(%k: !cache) {
  %a = kvcache.create_tma_tile %k {rows = 64, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  %b = kvcache.create_tma_tile %k {rows = 16} : !cache -> !kvcache.tma_tile<8x1x16xbf16>
  return
}

// Up to a head, in whole spans of a swizzle.
// CHECK-LABEL: func.func @tile_of_a_width(
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 96 : i64, rows = 16 : i64} : {{.*}} -> !kvcache.tma_tile<96x1x16xbf16>
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 128 : i64, rows = 16 : i64} : {{.*}} -> !kvcache.tma_tile<128x1x16xbf16>
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 128 : i64, rows = 16 : i64, swizzle = #kvcache.swizzle<swizzle_64b>} : {{.*}} -> !kvcache.tma_tile<32x1x16xbf16, swizzle_64b>
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 128 : i64, rows = 16 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : {{.*}} -> !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 256 : i64, rows = 16 : i64} : {{.*}} -> !kvcache.tma_tile<256x16xbf16>
func.func @tile_of_a_width(%k: !cache, %s: !part_of_a_span, %c: !continuous) {
  %a = kvcache.create_tma_tile %k {rows = 16, columns = 96} : !cache -> !kvcache.tma_tile<96x1x16xbf16>
  %b = kvcache.create_tma_tile %k {rows = 16, columns = 128} : !cache -> !kvcache.tma_tile<128x1x16xbf16>
  %d = kvcache.create_tma_tile %k {rows = 16, columns = 128, swizzle = #kvcache.swizzle<swizzle_64b>}
       : !cache -> !kvcache.tma_tile<32x1x16xbf16, swizzle_64b>
  %e = kvcache.create_tma_tile %s {rows = 16, columns = 128, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !part_of_a_span -> !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>
  %f = kvcache.create_tma_tile %c {rows = 16, columns = 256} : !continuous -> !kvcache.tma_tile<256x16xbf16>
  return
}

// The rows of a box stay in a page.
// CHECK-LABEL: func.func @tile_of_more_rows_than_a_page(
// CHECK:         kvcache.create_tma_tile %{{.*}} {rows = 512 : i64} : {{.*}} -> !kvcache.tma_tile<8x1x64xbf16>
func.func @tile_of_more_rows_than_a_page(%k: !cache) {
  %a = kvcache.create_tma_tile %k {rows = 512} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// CHECK-LABEL: func.func @matrix(
// CHECK:         kvcache.create_tma_tile %{{.*}} {rows = 128 : i64, swizzle = #kvcache.swizzle<swizzle_64b>} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<32x128xbf16, swizzle_64b>
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 128 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : {{.*}} -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 64 : i64, major = #kvcache.major<mn_major>, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : {{.*}} -> !kvcache.tma_tile<64x32xbf16, swizzle_128b>
func.func @matrix(%k: !continuous) {
  %a = kvcache.create_tma_tile %k {rows = 128, major = #kvcache.major<k_major>, swizzle = #kvcache.swizzle<swizzle_64b>}
       : !continuous -> !kvcache.tma_tile<32x128xbf16, swizzle_64b>
  %b = kvcache.create_tma_tile %k {rows = 32, columns = 128, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !continuous -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
  %c = kvcache.create_tma_tile %k {rows = 32, columns = 64, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !continuous -> !kvcache.tma_tile<64x32xbf16, swizzle_128b>
  return
}

// Without a swizzle, a tile is one chunk.
// CHECK-LABEL: func.func @matrix_of_any_swizzle(
// CHECK:         -> !kvcache.tma_tile<256x32xbf16>
// CHECK:         -> !kvcache.tma_tile<16x8xbf16, swizzle_32b>
// CHECK:         -> !kvcache.tma_tile<16x32xbf16, swizzle_32b>
// CHECK:         -> !kvcache.tma_tile<32x8xbf16, swizzle_64b>
// CHECK:         -> !kvcache.tma_tile<32x32xbf16, swizzle_64b>
// CHECK:         -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
func.func @matrix_of_any_swizzle(%k: !continuous) {
  %a = kvcache.create_tma_tile %k {rows = 32, columns = 256, major = #kvcache.major<mn_major>}
       : !continuous -> !kvcache.tma_tile<256x32xbf16>
  %b = kvcache.create_tma_tile %k {rows = 32, columns = 256, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_32b>}
       : !continuous -> !kvcache.tma_tile<16x8xbf16, swizzle_32b>
  %c = kvcache.create_tma_tile %k {rows = 32, columns = 16, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_32b>}
       : !continuous -> !kvcache.tma_tile<16x32xbf16, swizzle_32b>
  %d = kvcache.create_tma_tile %k {rows = 32, columns = 64, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_64b>}
       : !continuous -> !kvcache.tma_tile<32x8xbf16, swizzle_64b>
  %e = kvcache.create_tma_tile %k {rows = 32, columns = 32, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_64b>}
       : !continuous -> !kvcache.tma_tile<32x32xbf16, swizzle_64b>
  %f = kvcache.create_tma_tile %k {rows = 32, columns = 1024, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !continuous -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
  return
}

// Two elements of a 4-bit cache are one of the descriptor.
// CHECK-LABEL: func.func @half_bytes(
// CHECK:         kvcache.create_tma_tile %{{.*}} -> !kvcache.tma_tile<64x1x32xi8, swizzle_64b>
// CHECK:         kvcache.create_paged_tma_tile %{{.*}} -> !kvcache.tma_tile<64x1x32x1xi8>
func.func @half_bytes(%k: !nvfp4) {
  %a = kvcache.create_tma_tile %k {rows = 32, swizzle = #kvcache.swizzle<swizzle_64b>}
       : !nvfp4 -> !kvcache.tma_tile<64x1x32xi8, swizzle_64b>
  %b = kvcache.create_paged_tma_tile %k {rows = 32, columns = 64} : !nvfp4 -> !kvcache.tma_tile<64x1x32x1xi8>
  return
}

// CHECK-LABEL: func.func @paged(
// CHECK:         kvcache.create_paged_tma_tile %{{.*}} {columns = 128 : i64, rows = 16 : i64} : {{.*}} -> !kvcache.tma_tile<128x1x16x1xbf16>
// CHECK:         kvcache.create_paged_tma_tile %{{.*}} {columns = 128 : i64, l2_promotion = 128 : i64, rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : {{.*}} -> !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b, l2_promotion = 128>
func.func @paged(%k: !cache) {
  %a = kvcache.create_paged_tma_tile %k {rows = 16, columns = 128} : !cache -> !kvcache.tma_tile<128x1x16x1xbf16>
  %b = kvcache.create_paged_tma_tile %k {rows = 64, columns = 128, swizzle = #kvcache.swizzle<swizzle_128b>, l2_promotion = 128}
       : !cache -> !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b, l2_promotion = 128>
  return
}

// Rows of 576 bytes are 72 elements of descriptors of 64-bit integers.
// CHECK-LABEL: func.func @other_elements(
// CHECK:         kvcache.create_tma_tile %{{.*}} {columns = 72 : i64, dtype = i64, rows = 32 : i64} : {{.*}} -> !kvcache.tma_tile<72x1x32xi64>
// CHECK:         kvcache.create_paged_tma_tile %{{.*}} {columns = 72 : i64, dtype = i64, rows = 16 : i64} : {{.*}} -> !kvcache.tma_tile<72x1x16x1xi64>
// CHECK:         kvcache.create_ragged_tma_tile %{{.*}} {columns = 72 : i64, dtype = i64, rows = 16 : i64} : {{.*}} -> !kvcache.tma_tile<72x16x1x1xi64>
func.func @other_elements(%k: !mla_cache) {
  %a = kvcache.create_tma_tile %k {rows = 32, columns = 72, dtype = i64} : !mla_cache -> !kvcache.tma_tile<72x1x32xi64>
  %b = kvcache.create_paged_tma_tile %k {rows = 16, columns = 72, dtype = i64} : !mla_cache -> !kvcache.tma_tile<72x1x16x1xi64>
  %c = kvcache.create_ragged_tma_tile %k {rows = 16, columns = 72, dtype = i64} : !mla_cache -> !kvcache.tma_tile<72x16x1x1xi64>
  return
}

// CHECK-LABEL: func.func @ragged(
// CHECK:         kvcache.create_ragged_tma_tile %{{.*}} {rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : {{.*}} -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
// CHECK:         kvcache.create_ragged_tma_tile %{{.*}} {rows = 64 : i64} : {{.*}} -> !kvcache.tma_tile<8x64x1x1xbf16>
// CHECK:         kvcache.create_ragged_tma_tile %{{.*}} {columns = 128 : i64, rows = 256 : i64} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<128x256x1x1xbf16>
// CHECK:         kvcache.create_ragged_tma_tile %{{.*}} {columns = 128 : i64, rows = 64 : i64, swizzle = #kvcache.swizzle<swizzle_32b>} : {{.*}} -> !kvcache.tma_tile<16x64x1x1xbf16, swizzle_32b>
func.func @ragged(%k: !cache, %c: !continuous) {
  %a = kvcache.create_ragged_tma_tile %k {rows = 64, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !cache -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
  %b = kvcache.create_ragged_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<8x64x1x1xbf16>
  %d = kvcache.create_ragged_tma_tile %c {rows = 256, columns = 128} : !continuous -> !kvcache.tma_tile<128x256x1x1xbf16>
  %e = kvcache.create_ragged_tma_tile %k {rows = 64, columns = 128, swizzle = #kvcache.swizzle<swizzle_32b>}
       : !cache -> !kvcache.tma_tile<16x64x1x1xbf16, swizzle_32b>
  return
}

// CHECK-LABEL: func.func @rope(
// CHECK:         kvcache.create_rope_tma_tile %{{.*}} {columns = 64 : i64, padded_depth = 512 : i64, rows = 32 : i64, swizzle = #kvcache.swizzle<swizzle_128b>} : {{.*}} -> !kvcache.tma_tile<64x1x32xbf16, swizzle_128b>
// CHECK:         kvcache.create_rope_tma_tile %{{.*}} {columns = 64 : i64, padded_depth = 512 : i64, rows = 256 : i64} : {{.*}} -> !kvcache.tma_tile<8x1x64xbf16>
// CHECK:         kvcache.create_rope_gather4_tma_tile %{{.*}} {padded_depth = 512 : i64, tile_height = 64 : i64, tile_width = 64 : i64} : {{.*}} -> !kvcache.tma_tile<64x1xbf16>
// CHECK:         kvcache.create_rope_gather4_tma_tile %{{.*}} {padded_depth = 512 : i64, swizzle = #kvcache.swizzle<swizzle_64b>, tile_height = 64 : i64, tile_width = 64 : i64} : {{.*}} -> !kvcache.tma_tile<32x1xbf16, swizzle_64b>
func.func @rope(%k: !rope_cache) {
  %a = kvcache.create_rope_tma_tile %k {rows = 32, columns = 64, padded_depth = 512, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !rope_cache -> !kvcache.tma_tile<64x1x32xbf16, swizzle_128b>
  %b = kvcache.create_rope_tma_tile %k {rows = 256, columns = 64, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
  %c = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 512}
       : !rope_cache -> !kvcache.tma_tile<64x1xbf16>
  %d = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 512, swizzle = #kvcache.swizzle<swizzle_64b>}
       : !rope_cache -> !kvcache.tma_tile<32x1xbf16, swizzle_64b>
  return
}

// CHECK-LABEL: func.func @gather4(
// CHECK:         kvcache.create_gather4_tma_tile %{{.*}} {dtype = i64, tile_height = 64 : i64, tile_width = 72 : i64} : {{.*}} -> !kvcache.tma_tile<72x1xi64>
// CHECK:         kvcache.create_gather4_tma_tile %{{.*}} {dtype = i64, tile_height = 64 : i64, tile_stride = 72 : i64, tile_width = 64 : i64} : {{.*}} -> !kvcache.tma_tile<64x1xi64>
// CHECK:         kvcache.create_gather4_tma_tile %{{.*}} {swizzle = #kvcache.swizzle<swizzle_64b>, tile_width = 576 : i64} : {{.*}} -> !kvcache.tma_tile<64x1xf8E4M3FN, swizzle_64b>
// CHECK:         kvcache.create_gather4_tma_tile %{{.*}} {l2_promotion = 256 : i64, tile_height = 64 : i64, tile_width = 128 : i64} : !kvcache.continuous<bf16, #kv> -> !kvcache.tma_tile<128x1xbf16, l2_promotion = 256>
// CHECK:         kvcache.create_gather4_tma_tile %{{.*}} {tile_stride = 1024 : i64, tile_width = 128 : i64} : {{.*}} -> !kvcache.tma_tile<128x1xbf16>
// CHECK:         kvcache.create_rope_gather4_tma_tile %{{.*}} {padded_depth = 512 : i64, tile_width = 64 : i64} : {{.*}} -> !kvcache.tma_tile<64x1xbf16>
func.func @gather4(%k: !mla_cache, %c: !continuous, %r: !rope_cache) {
  %a = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 72, dtype = i64} : !mla_cache -> !kvcache.tma_tile<72x1xi64>
  %b = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 72, dtype = i64}
       : !mla_cache -> !kvcache.tma_tile<64x1xi64>
  %d = kvcache.create_gather4_tma_tile %k {tile_height = 4, tile_width = 576, swizzle = #kvcache.swizzle<swizzle_64b>}
       : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN, swizzle_64b>
  %e = kvcache.create_gather4_tma_tile %c {tile_height = 64, tile_width = 128, l2_promotion = 256}
       : !continuous -> !kvcache.tma_tile<128x1xbf16, l2_promotion = 256>
  %f = kvcache.create_gather4_tma_tile %c {tile_width = 128, tile_stride = 1024} : !continuous -> !kvcache.tma_tile<128x1xbf16>
  %g = kvcache.create_rope_gather4_tma_tile %r {tile_width = 64, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<64x1xbf16>
  return
}

// CHECK-LABEL: func.func @scales(
// CHECK:         kvcache.create_scale_tma_tile %{{.*}} {rows = 64 : i64} : !kvcache.scales<{{.*}}> -> !kvcache.tma_tile<64x1xf32>
func.func @scales(%s: !scales) {
  %a = kvcache.create_scale_tma_tile %s {rows = 64} : !scales -> !kvcache.tma_tile<64x1xf32>
  return
}

// CHECK-LABEL: func.func @encode(
// CHECK-SAME:    %[[BASE:.*]]: memref<bf16, strided<[], offset: ?>>, %[[I:.*]]: index, %[[J:.*]]: index)
// CHECK:         kvcache.encode_tensor_map %[[BASE]] sizes[%[[I]], %[[J]]] strides[%[[J]]] {offset = -1024 : i64} : memref<bf16, strided<[], offset: ?>> -> !kvcache.tma_tile<64x64xbf16, swizzle_128b>
// CHECK:         kvcache.encode_tensor_map %[[BASE]] sizes[%[[I]]] strides[] : {{.*}} -> !kvcache.tma_tile<64xbf16>
func.func @encode(%base: memref<bf16, strided<[], offset: ?>>, %i: index, %j: index) {
  %a = kvcache.encode_tensor_map %base sizes [%i, %j] strides [%j] {offset = -1024}
       : memref<bf16, strided<[], offset: ?>> -> !kvcache.tma_tile<64x64xbf16, swizzle_128b>
  %b = kvcache.encode_tensor_map %base sizes [%i] strides [] : memref<bf16, strided<[], offset: ?>> -> !kvcache.tma_tile<64xbf16>
  return
}

// Boxes of these have the rows that they say, whatever the page size is.
// CHECK-LABEL: func.func @pages_of_any_size(
// CHECK:         kvcache.create_ragged_tma_tile %{{.*}} -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
// CHECK:         kvcache.create_gather4_tma_tile %{{.*}} -> !kvcache.tma_tile<64x1xbf16, swizzle_128b>
func.func @pages_of_any_size(%k: !any_pages) {
  %a = kvcache.create_ragged_tma_tile %k {rows = 64, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !any_pages -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
  %b = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 128, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !any_pages -> !kvcache.tma_tile<64x1xbf16, swizzle_128b>
  return
}

// RUN: kvcache-opt %s --canonicalize | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @context_of_scales_is_that_of_the_cache(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<
// CHECK-NEXT:    %[[CONTEXT:.*]] = kvcache.max_context_length %[[K]] : !kvcache.paged<
// CHECK-NEXT:    return %[[CONTEXT]] : index
func.func @context_of_scales_is_that_of_the_cache(%k: !cache) -> index {
  %s = kvcache.scales_view %k : !cache
  %context = kvcache.max_context_length %s : !scales
  return %context : index
}

// CHECK-LABEL: func.func @context_of_scales_is_an_operand_of_the_collection(
// CHECK-SAME:    %[[MAX:[^:]*]]: i32, %{{[^:]*}}: index)
// CHECK-NEXT:    %[[CONTEXT:.*]] = arith.index_castui %[[MAX]] : i32 to index
// CHECK-NEXT:    return %[[CONTEXT]] : index
func.func @context_of_scales_is_an_operand_of_the_collection(
    %blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
    %scales: memref<?x2x?x64x8x4xf32>, %max_seq: i32, %max: i32, %layer: index) -> index {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max scales %scales
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x4xf32> -> !collection
  %k = kvcache.paged_view value %c[%layer] : !collection
  %s = kvcache.scales_view %k : !cache
  %context = kvcache.max_context_length %s : !scales
  return %context : index
}

// CHECK-LABEL: func.func @context_of_an_argument_stays(
// CHECK-SAME:    %[[S:[^:]*]]: !kvcache.scales<
// CHECK-NEXT:    %[[CONTEXT:.*]] = kvcache.max_context_length %[[S]]
// CHECK-NEXT:    return %[[CONTEXT]] : index
func.func @context_of_an_argument_stays(%s: !scales) -> index {
  %context = kvcache.max_context_length %s : !scales
  return %context : index
}

// A negative id is a sentinel, also among the rows of scales.

// CHECK-LABEL: func.func @tma_row_of_a_negative_id(
// CHECK-NEXT:    %[[SENTINEL:.*]] = arith.constant -1 : index
// CHECK-NEXT:    return %[[SENTINEL]] : index
func.func @tma_row_of_a_negative_id(%s: !scales) -> index {
  %encoded = arith.constant -1 : index
  %row = kvcache.tma_row %s[%encoded] : !scales
  return %row : index
}

//===----------------------------------------------------------------------===//
// Unused ops
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @unused_reads_go(
// CHECK-NEXT:    return
func.func @unused_reads_go(%k: !cache, %v: vector<32xbf16>, %b: index, %h: index, %t: index, %d: index) {
  %s = kvcache.scales_view %k : !cache
  %base = kvcache.scales_base %k : !cache
  %tile = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !cache -> memref<16x4xf32, strided<[32, 1], offset: ?>>
  %scale = kvcache.load_scale %k[%b, %h, %t, %d] : !cache -> f32
  %of_view = kvcache.load %s[%b, %h, %t, %d] : !scales -> f32
  %raw = kvcache.load_quantized %k[%b, %h, %t, %d] : !cache -> vector<32xf8E4M3FN>
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<32xbf16>
  %y = kvcache.dequantize %raw, %scale : vector<32xf8E4M3FN>, f32 -> vector<32xbf16>
  %q:2 = kvcache.quantize %v : vector<32xbf16> -> vector<32xf8E4M3FN>, f32
  %rows = kvcache.num_scale_rows %k : !cache
  %row = kvcache.scale_row_index %k[%b, %t] : !cache
  %tma:2 = kvcache.scale_tma_coords %k[%b, %t] : !cache
  return
}

// CHECK-LABEL: func.func @stores_stay(
// CHECK:         kvcache.store_scale
// CHECK:         kvcache.store_quantized
// CHECK:         return
func.func @stores_stay(%k: !cache, %v: vector<32xbf16>, %x: f32, %i: index) {
  kvcache.store_scale %x, %k[%i, %i, %i, %i] : f32, !cache
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] : vector<32xbf16>, !cache
  return
}

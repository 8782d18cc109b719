// RUN: kvcache-opt %s --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>
!window = memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
!tile = memref<16x4xf32, strided<[32, 1], offset: ?>>

func.func private @use(index, index)

// Tables and lengths are not written while in use, so that no store comes
// between two lookups.

// CHECK-LABEL: func.func @lookups_merge_across_stores(
// CHECK:         %[[S:.*]] = kvcache.scales_view
// CHECK:         %[[BASE:.*]] = kvcache.scales_base
// CHECK:         %[[TILE:.*]] = kvcache.scales_block_tile
// CHECK:         %[[ROWS:.*]] = kvcache.num_scale_rows
// CHECK:         %[[ROW:.*]] = kvcache.scale_row_index
// CHECK:         %[[IN_PAGE:.*]], %{{.*}} = kvcache.scale_tma_coords
// CHECK:         kvcache.store_scale
// CHECK-NOT:     {{= kvcache\.}}
// CHECK:         call @use(%[[ROWS]], %[[ROWS]])
// CHECK-NEXT:    call @use(%[[ROW]], %[[ROW]])
// CHECK-NEXT:    call @use(%[[IN_PAGE]], %[[IN_PAGE]])
// CHECK-NEXT:    return %[[S]], %[[S]], %[[BASE]], %[[BASE]], %[[TILE]], %[[TILE]]
func.func @lookups_merge_across_stores(%k: !cache, %x: f32, %i: index)
    -> (!scales, !scales, !window, !window, !tile, !tile) {
  %s0 = kvcache.scales_view %k : !cache
  %base0 = kvcache.scales_base %k : !cache
  %tile0 = kvcache.scales_block_tile %k[%i, %i, %i, %i] : !cache -> !tile
  %rows0 = kvcache.num_scale_rows %k : !cache
  %row0 = kvcache.scale_row_index %k[%i, %i] : !cache
  %in_page0, %page0 = kvcache.scale_tma_coords %k[%i, %i] : !cache
  kvcache.store_scale %x, %k[%i, %i, %i, %i] : f32, !cache
  %s1 = kvcache.scales_view %k : !cache
  %base1 = kvcache.scales_base %k : !cache
  %tile1 = kvcache.scales_block_tile %k[%i, %i, %i, %i] : !cache -> !tile
  %rows1 = kvcache.num_scale_rows %k : !cache
  %row1 = kvcache.scale_row_index %k[%i, %i] : !cache
  %in_page1, %page1 = kvcache.scale_tma_coords %k[%i, %i] : !cache
  call @use(%rows0, %rows1) : (index, index) -> ()
  call @use(%row0, %row1) : (index, index) -> ()
  call @use(%in_page0, %in_page1) : (index, index) -> ()
  return %s0, %s1, %base0, %base1, %tile0, %tile1 : !scales, !scales, !window, !window, !tile, !tile
}

// CHECK-LABEL: func.func @arithmetic_merges(
// CHECK:         %[[W:.*]], %[[S:.*]] = kvcache.quantize
// CHECK-NEXT:    %[[X:.*]] = kvcache.dequantize %[[W]], %[[S]]
// CHECK-NEXT:    return %[[X]], %[[X]]
func.func @arithmetic_merges(%v: vector<8xf32>) -> (vector<8xf32>, vector<8xf32>) {
  %w0, %s0 = kvcache.quantize %v : vector<8xf32> -> vector<8xi8>, f32
  %w1, %s1 = kvcache.quantize %v : vector<8xf32> -> vector<8xi8>, f32
  %x0 = kvcache.dequantize %w0, %s0 : vector<8xi8>, f32 -> vector<8xf32>
  %x1 = kvcache.dequantize %w1, %s1 : vector<8xi8>, f32 -> vector<8xf32>
  return %x0, %x1 : vector<8xf32>, vector<8xf32>
}

// CHECK-LABEL: func.func @groups_over_other_lanes_stay_apart(
// CHECK-COUNT-2: kvcache.quantize
func.func @groups_over_other_lanes_stay_apart(%v: vector<8xf32>) -> (f32, f32) {
  %w0, %s0 = kvcache.quantize %v {lanes = 8} : vector<8xf32> -> vector<8xi8>, f32
  %w1, %s1 = kvcache.quantize %v {lanes = 16} : vector<8xf32> -> vector<8xi8>, f32
  return %s0, %s1 : f32, f32
}

// Elements and scales are written together, and read by `load` together.

// CHECK-LABEL: func.func @reads_do_not_merge_across_stores(
// CHECK:         %[[X0:.*]] = kvcache.load %
// CHECK-NEXT:    %[[S0:.*]] = kvcache.load_scale
// CHECK-NEXT:    %[[W0:.*]] = kvcache.load_quantized
// CHECK-NEXT:    kvcache.store_quantized
// CHECK-NEXT:    %[[X1:.*]] = kvcache.load %
// CHECK-NEXT:    %[[S1:.*]] = kvcache.load_scale
// CHECK-NEXT:    %[[W1:.*]] = kvcache.load_quantized
// CHECK-NEXT:    kvcache.store_scale
// CHECK-NEXT:    %[[X2:.*]] = kvcache.load %
// CHECK-NEXT:    return %[[X0]], %[[X1]], %[[X2]], %[[S0]], %[[S1]], %[[W0]], %[[W1]]
func.func @reads_do_not_merge_across_stores(%k: !cache, %v: vector<32xf32>, %s: f32, %i: index)
    -> (f32, f32, f32, f32, f32, f8E4M3FN, f8E4M3FN) {
  %x0 = kvcache.load %k[%i, %i, %i, %i] : !cache -> f32
  %s0 = kvcache.load_scale %k[%i, %i, %i, %i] : !cache -> f32
  %w0 = kvcache.load_quantized %k[%i, %i, %i, %i] : !cache -> f8E4M3FN
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] : vector<32xf32>, !cache
  %x1 = kvcache.load %k[%i, %i, %i, %i] : !cache -> f32
  %s1 = kvcache.load_scale %k[%i, %i, %i, %i] : !cache -> f32
  %w1 = kvcache.load_quantized %k[%i, %i, %i, %i] : !cache -> f8E4M3FN
  kvcache.store_scale %s, %k[%i, %i, %i, %i] : f32, !cache
  %x2 = kvcache.load %k[%i, %i, %i, %i] : !cache -> f32
  return %x0, %x1, %x2, %s0, %s1, %w0, %w1 : f32, f32, f32, f32, f32, f8E4M3FN, f8E4M3FN
}

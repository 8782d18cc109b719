// RUN: kvcache-opt %s --loop-invariant-code-motion --allow-unregistered-dialect | FileCheck %s

// A loop may have no trips: reads of the table of the scales leave it only
// where the entry provably exists, arithmetic always.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!window = memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
!tile = memref<16x4xf32, strided<[32, 1], offset: ?>>

// CHECK-LABEL: func.func @reads_of_an_argument_stay(
// CHECK:         scf.for
// CHECK:           kvcache.scale_row_index
// CHECK:           kvcache.scale_tma_coords
// CHECK:           kvcache.scales_block_tile
// CHECK:           kvcache.load_scale
// CHECK:           kvcache.load_quantized
// CHECK:           kvcache.load %
// CHECK:           kvcache.page_id
// CHECK:           kvcache.row_index
// CHECK:           kvcache.populate
// CHECK:           kvcache.block_tile
// CHECK:           "test.use"
func.func @reads_of_an_argument_stay(%k: !cache, %s: !scales, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %row = kvcache.scale_row_index %k[%c0, %c0] : !cache
    %coords:2 = kvcache.scale_tma_coords %k[%c0, %c0] : !cache
    %tile = kvcache.scales_block_tile %k[%c0, %c0, %c0, %c0] : !cache -> !tile
    %scale = kvcache.load_scale %k[%c0, %c0, %c0, %c0] : !cache -> f32
    %raw = kvcache.load_quantized %k[%c0, %c0, %c0, %c0] : !cache -> f8E4M3FN
    %x = kvcache.load %k[%c0, %c0, %c0, %c0] : !cache -> f32
    %page = kvcache.page_id %s[%c0, %c0] : !scales
    %of_view = kvcache.row_index %s[%c0, %c0] : !scales
    %rows = kvcache.populate %s[%c0, %c0] : !scales -> !rows
    %of_head = kvcache.block_tile %s[%c0, %c0, %c0, %c0] : !scales -> !tile
    "test.use"(%row, %coords#0, %tile, %scale, %raw, %x, %page, %of_view, %rows, %of_head)
        : (index, index, !tile, f32, f8E4M3FN, f32, index, index, !rows, !tile) -> ()
  }
  return
}

// CHECK-LABEL: func.func @arithmetic_leaves(
// CHECK-DAG:     kvcache.scales_view
// CHECK-DAG:     kvcache.scales_base
// CHECK-DAG:     kvcache.num_scale_rows
// CHECK-DAG:     kvcache.quantize
// CHECK-DAG:     kvcache.dequantize
// CHECK-DAG:     kvcache.scale_row_index {{.*}} scale_page
// CHECK-DAG:     kvcache.scales_block_tile {{.*}} scale_page
// CHECK:         scf.for
// CHECK-NOT:       {{= kvcache\.}}
// CHECK:         return
func.func @arithmetic_leaves(%k: !cache, %v: vector<8xf32>, %b: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %s = kvcache.scales_view %k : !cache
    %base = kvcache.scales_base %k : !cache
    %rows = kvcache.num_scale_rows %k : !cache
    %w, %scale = kvcache.quantize %v : vector<8xf32> -> vector<8xi8>, f32
    %x = kvcache.dequantize %w, %scale : vector<8xi8>, f32 -> vector<8xf32>
    %row = kvcache.scale_row_index %k[%b, %b] scale_page %b : !cache
    %tile = kvcache.scales_block_tile %k[%b, %b, %b, %b] scale_page %b : !cache -> !tile
    "test.use"(%s, %base, %rows, %x, %row, %tile)
        : (!scales, !window, index, vector<8xf32>, index, !tile) -> ()
  }
  return
}

// Four sequences of two pages: the last token that has an entry is 127.

// CHECK-LABEL: func.func @reads_in_range_leave(
// CHECK-DAG:     kvcache.scale_row_index
// CHECK-DAG:     kvcache.scale_tma_coords
// CHECK-DAG:     kvcache.scales_block_tile
// CHECK-DAG:     kvcache.page_id %{{.*}} : !kvcache.scales
// CHECK-DAG:     kvcache.cache_length %{{.*}} : !kvcache.scales
// CHECK:         scf.for
// CHECK-NOT:       {{= kvcache\.}}
// CHECK:         return
func.func @reads_in_range_leave(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<4xi32>,
                                %lut: memref<4x2xi32>, %values: memref<?x2x?x64x8x4xf32>, %max: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = arith.constant 3 : index
  %token = arith.constant 127 : index
  %first_of_tile = arith.constant 112 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %values
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<4xi32>, memref<4x2xi32>, memref<?x2x?x64x8x4xf32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  %s = kvcache.scales_view %k : !cache
  scf.for %i = %c0 to %n step %c1 {
    %row = kvcache.scale_row_index %k[%b, %token] : !cache
    %coords:2 = kvcache.scale_tma_coords %k[%b, %token] : !cache
    %tile = kvcache.scales_block_tile %k[%b, %c0, %first_of_tile, %c0] : !cache -> !tile
    %page = kvcache.page_id %s[%b, %token] : !scales
    %length = kvcache.cache_length %s[%b] : !scales
    "test.use"(%row, %coords#0, %tile, %page, %length) : (index, index, !tile, index, index) -> ()
  }
  return
}

// What counts is the table of the scales, where they have one: here it has one
// column, that of the cache two.

// CHECK-LABEL: func.func @the_table_of_the_scales_decides(
// CHECK:         kvcache.row_index %{{.*}} : !kvcache.paged
// CHECK:         scf.for
// CHECK-NEXT:      kvcache.scale_row_index
// CHECK-NEXT:      kvcache.scale_tma_coords
// CHECK-NEXT:      kvcache.scales_block_tile
// CHECK-NEXT:      kvcache.row_index %{{.*}} : !kvcache.scales
// CHECK-NEXT:      "test.use"
func.func @the_table_of_the_scales_decides(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<4xi32>,
                                           %lut: memref<4x2xi32>, %values: memref<?x2x?x64x8x4xf32>,
                                           %scales_lut: memref<4x1xi32>, %max: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %token = arith.constant 64 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %values lookup %scales_lut
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<4xi32>, memref<4x2xi32>, memref<?x2x?x64x8x4xf32>, memref<4x1xi32>
         -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  %s = kvcache.scales_view %k : !cache
  scf.for %i = %c0 to %n step %c1 {
    %of_cache = kvcache.row_index %k[%c0, %token] : !cache
    %row = kvcache.scale_row_index %k[%c0, %token] : !cache
    %coords:2 = kvcache.scale_tma_coords %k[%c0, %token] : !cache
    %tile = kvcache.scales_block_tile %k[%c0, %c0, %token, %c0] : !cache -> !tile
    %of_view = kvcache.row_index %s[%c0, %token] : !scales
    "test.use"(%of_cache, %row, %coords#0, %tile, %of_view) : (index, index, index, !tile, index) -> ()
  }
  return
}

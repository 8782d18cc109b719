// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]|unrealized}}"

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>
!plain = !kvcache.paged<bf16, #kv, page_size = ?, table = csr>
!no_scales = !kvcache.scales<!plain>
!continuous = !kvcache.continuous<bf16, #kv>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!window = memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
!tile = memref<16x4xf32, strided<[32, 1], offset: ?>>

// A view of scales is the parts of the cache that concern them.

// CHECK-LABEL: func.func @view_is_parts_of_the_cache(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %[[LENGTHS:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[MAX_CACHE:[^:]*]]: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %[[SCALE_PAGES:[^:]*]]: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[SCALE_COLUMNS:[^:]*]]: i32, %[[SLUT_STRIDE:[^:]*]]: i32)
// CHECK-SAME:      -> (memref<i32, strided<[], offset: ?>>, i32, i32, memref<f32, strided<[], offset: ?>>, i32, index, memref<i32, strided<[], offset: ?>>, i32, i32)
// CHECK-NEXT:    return %[[LENGTHS]], %[[BATCH]], %[[MAX_CACHE]], %[[SCALES]], %[[SCALE_PAGES]], %[[SCALE_STRIDE]], %[[SLUT]], %[[SCALE_COLUMNS]], %[[SLUT_STRIDE]]
func.func @view_is_parts_of_the_cache(%k: !cache) -> !scales {
  %s = kvcache.scales_view %k : !cache
  return %s : !scales
}

// CHECK-LABEL: func.func @base_is_the_window_of_a_layer(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %[[SCALE_PAGES:[^:]*]]: i32, %[[SCALE_STRIDE:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32)
// CHECK-DAG:     %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[SCALES]]
// CHECK-DAG:     %[[NB:.*]] = arith.index_castui %[[SCALE_PAGES]] : i32 to index
// CHECK:         %[[WINDOW:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[NB]], 64, 8, 4], strides: [%[[SCALE_STRIDE]], 32, 4, 1]
// CHECK:         return %[[WINDOW]]
func.func @base_is_the_window_of_a_layer(%k: !cache) -> !window {
  %m = kvcache.scales_base %k : !cache
  return %m : !window
}

// CHECK-LABEL: func.func @tile_is_a_window_of_scales(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK:         memref.extract_strided_metadata %[[SLUT]]
// CHECK:         %[[ENTRY:.*]] = memref.load
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[PAGE_OFFSET:.*]] = arith.muli %[[PAGE]], %[[SCALE_STRIDE]]
// CHECK:         %[[POSITION:.*]] = arith.addi %[[PAGE_OFFSET]], %{{.*}}
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[SCALES]]
// CHECK:         %[[START:.*]] = arith.addi %[[OFFSET]], %[[POSITION]]
// CHECK:         %[[TILE:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[START]]], sizes: [16, 4], strides: [32, 1]
// CHECK:         return %[[TILE]]
func.func @tile_is_a_window_of_scales(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> !tile {
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !cache -> !tile
  return %m : !tile
}

// CHECK-LABEL: func.func @tile_of_a_known_page(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index)
// CHECK-NOT:     memref.load
// CHECK:         arith.muli %[[PAGE]],
// CHECK-NOT:     memref.load
// CHECK:         return
func.func @tile_of_a_known_page(%k: !cache, %i: index, %page: index) -> !tile {
  %m = kvcache.scales_block_tile %k[%i, %i, %i, %i] scale_page %page : !cache -> !tile
  return %m : !tile
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @load_and_store_a_scale(
// CHECK-SAME:      %[[D:[^:]*]]: index, %[[X:[^:]*]]: f32)
// CHECK:         %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK:         %[[G:.*]] = arith.constant 32 : i32
// CHECK:         arith.divui %[[D32]], %[[G]] : i32
// CHECK:         %[[LOADED:.*]] = memref.load %[[WINDOW:.*]][%[[POSITION:.*]]] : memref<?xf32, strided<[1], offset: ?>>
// CHECK:         memref.store %[[X]], %[[WINDOW]][%[[POSITION]]] : memref<?xf32, strided<[1], offset: ?>>
// CHECK:         return %[[LOADED]]
func.func @load_and_store_a_scale(%k: !cache, %b: index, %h: index, %t: index, %d: index, %x: f32) -> f32 {
  %loaded = kvcache.load_scale %k[%b, %h, %t, %d] : !cache -> f32
  kvcache.store_scale %x, %k[%b, %h, %t, %d] : f32, !cache
  return %loaded : f32
}

// CHECK-LABEL: func.func @load_and_store_several_scales_of_a_known_page(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index, %[[X:[^:]*]]: vector<4xf32>)
// CHECK-NOT:     memref<?xi32
// CHECK:         arith.muli %[[PAGE]],
// CHECK:         %[[LOADED:.*]] = vector.load {{.*}} {alignment = 16 : i64} : memref<?xf32, {{.*}}>, vector<4xf32>
// CHECK:         vector.store %[[X]], {{.*}} {alignment = 16 : i64} : memref<?xf32, {{.*}}>, vector<4xf32>
// CHECK-NOT:     memref<?xi32
// CHECK:         return %[[LOADED]]
func.func @load_and_store_several_scales_of_a_known_page(%k: !cache, %i: index, %page: index, %x: vector<4xf32>)
    -> vector<4xf32> {
  %loaded = kvcache.load_scale %k[%i, %i, %i, %i] scale_page %page : !cache -> vector<4xf32>
  kvcache.store_scale %x, %k[%i, %i, %i, %i] scale_page %page : vector<4xf32>, !cache
  return %loaded : vector<4xf32>
}

// Elements of a view of scales are counted as in the cache; a load converts.

// CHECK-LABEL: func.func @accesses_of_a_view(
// CHECK-SAME:      %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[X:[^:]*]]: f32)
// CHECK-DAG:     %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK:         %[[G:.*]] = arith.constant 32 : i32
// CHECK:         arith.divui %[[D32]], %[[G]] : i32
// CHECK:         memref.extract_strided_metadata %[[SLUT]]
// CHECK:         arith.muli %{{.*}}, %[[SCALE_STRIDE]]
// CHECK:         memref.extract_strided_metadata %[[SCALES]]
// CHECK:         %[[LOADED:.*]] = vector.load {{.*}} {alignment = 8 : i64} : memref<?xf32, {{.*}}>, vector<2xf32>
// CHECK:         %[[NARROW:.*]] = arith.truncf %[[LOADED]] : vector<2xf32> to vector<2xbf16>
// CHECK:         memref.store %[[X]], %{{.*}} : memref<?xf32,
// CHECK:         %[[TILE:.*]] = memref.reinterpret_cast %{{.*}} sizes: [16, 4], strides: [32, 1]
// CHECK:         return %[[NARROW]], %[[TILE]]
func.func @accesses_of_a_view(%s: !scales, %b: index, %h: index, %t: index, %d: index, %x: f32)
    -> (vector<2xbf16>, !tile) {
  %v = kvcache.load %s[%b, %h, %t, %d] : !scales -> vector<2xbf16>
  kvcache.store %x, %s[%b, %h, %t, %d] : f32, !scales
  %m = kvcache.block_tile %s[%b, %h, %t, %d] : !scales -> !tile
  return %v, %m : vector<2xbf16>, !tile
}

// The ops on scales of a cache are those of its view.

// CHECK-LABEL: func.func @scales_of_a_view(
// CHECK-SAME:      %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %[[PAGES:[^:]*]]: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK:         memref.extract_strided_metadata %[[SLUT]]
// CHECK:         arith.muli %{{.*}}, %[[SCALE_STRIDE]]
// CHECK:         %[[NB:.*]] = arith.index_castui %[[PAGES]] : i32 to index
// CHECK:         memref.extract_strided_metadata %[[SCALES]]
// CHECK:         %[[LOADED:.*]] = memref.load %[[WINDOW:.*]][%[[POSITION:.*]]] : memref<?xf32, strided<[1], offset: ?>>
// CHECK:         memref.store %[[LOADED]], %[[WINDOW]][%{{.*}}] : memref<?xf32, strided<[1], offset: ?>>
// CHECK:         %[[TILE:.*]] = memref.reinterpret_cast %{{.*}} sizes: [16, 4], strides: [32, 1]
// CHECK:         %[[BASE:.*]] = memref.reinterpret_cast %{{.*}} sizes: [%[[NB]], 64, 8, 4], strides: [%[[SCALE_STRIDE]], 32, 4, 1]
// CHECK:         return %[[TILE]], %[[BASE]]
func.func @scales_of_a_view(%s: !scales, %b: index, %h: index, %t: index, %d: index, %page: index)
    -> (!tile, !window) {
  %x = kvcache.load_scale %s[%b, %h, %t, %d] : !scales -> f32
  kvcache.store_scale %x, %s[%b, %h, %t, %d] scale_page %page : f32, !scales
  %m = kvcache.scales_block_tile %s[%b, %h, %t, %d] scale_page %page : !scales -> !tile
  %w = kvcache.scales_base %s : !scales
  return %m, %w : !tile, !window
}

// A cache without scales leaves the lengths, and an open page size.

// CHECK-LABEL: func.func @view_without_scales(
// CHECK-SAME:      %[[SIZE:[^:]*]]: i32, %[[LENGTHS:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %[[MAX_CACHE:[^:]*]]: i32, %[[B:[^:]*]]: index)
// CHECK-SAME:      -> (index, index, index, index)
// CHECK-DAG:     %[[MAX:.*]] = arith.index_castui %[[MAX_CACHE]] : i32 to index
// CHECK-DAG:     %[[P:.*]] = arith.index_castui %[[SIZE]] : i32 to index
// CHECK-DAG:     %[[N:.*]] = arith.index_castui %[[BATCH]] : i32 to index
// CHECK:         return %{{.*}}, %[[MAX]], %[[N]], %[[P]]
func.func @view_without_scales(%s: !no_scales, %b: index) -> (index, index, index, index) {
  %length = kvcache.cache_length %s[%b] : !no_scales
  %max = kvcache.max_context_length %s : !no_scales
  %n = kvcache.extent batch %s : !no_scales
  %p = kvcache.extent page_size %s : !no_scales
  return %length, %max, %n, %p : index, index, index, index
}

// CHECK-LABEL: func.func @lengths_of_a_continuous_cache(
// CHECK-SAME:      %[[LENGTHS:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[MAX_CACHE:[^:]*]]: i32)
// CHECK-SAME:      -> (memref<i32, strided<[], offset: ?>>, i32, i32)
// CHECK-NEXT:    return %[[LENGTHS]], %[[BATCH]], %[[MAX_CACHE]]
func.func @lengths_of_a_continuous_cache(%k: !continuous) -> !kvcache.scales<!continuous> {
  %s = kvcache.scales_view %k : !continuous
  return %s : !kvcache.scales<!continuous>
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

// (NB - 1) * S + P, of rows of 8 * 4 scales.

// CHECK-LABEL: func.func @num_scale_rows(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: memref<f32, strided<[], offset: ?>>, %[[SCALE_PAGES:[^:]*]]: i32, %[[SCALE_STRIDE:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32)
// CHECK-DAG:     %[[P:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[NB:.*]] = arith.index_castui %[[SCALE_PAGES]] : i32 to index
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[LAST:.*]] = arith.subi %[[NB]], %[[ONE]] : index
// CHECK-DAG:     %[[ROW:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[S:.*]] = arith.divui %[[SCALE_STRIDE]], %[[ROW]] : index
// CHECK:         %[[BEFORE:.*]] = arith.muli %[[LAST]], %[[S]]
// CHECK:         %[[ROWS:.*]] = arith.addi %[[BEFORE]], %[[P]]
// CHECK:         return %[[ROWS]]
func.func @num_scale_rows(%k: !cache) -> index {
  %r = kvcache.num_scale_rows %k : !cache
  return %r : index
}

// CHECK-LABEL: func.func @scale_row_index(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK:         memref.extract_strided_metadata %[[SLUT]]
// CHECK:         %[[ENTRY:.*]] = memref.load
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[IN_PAGE32:.*]] = arith.remui
// CHECK-DAG:     %[[IN_PAGE:.*]] = arith.index_castui %[[IN_PAGE32]] : i32 to index
// CHECK-DAG:     %[[S:.*]] = arith.divui %[[SCALE_STRIDE]], %{{.*}} : index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[PAGE]], %[[S]]
// CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[IN_PAGE]]
// CHECK:         return %[[ROW]]
func.func @scale_row_index(%k: !cache, %b: index, %t: index) -> index {
  %r = kvcache.scale_row_index %k[%b, %t] : !cache
  return %r : index
}

// CHECK-LABEL: func.func @scale_row_index_of_a_known_page(
// CHECK-NOT:     memref.load
// CHECK:         return
func.func @scale_row_index_of_a_known_page(%k: !cache, %i: index, %page: index) -> index {
  %r = kvcache.scale_row_index %k[%i, %i] scale_page %page : !cache
  return %r : index
}

// Down to 16 bytes, which are 4 scales. In a view of scales, too.

// CHECK-LABEL: func.func @scale_tma_coords(
// CHECK:         %[[IN_PAGE:.*]] = arith.remui
// CHECK:         %[[UNIT:.*]] = arith.constant 4 : i32
// CHECK:         %[[UNITS:.*]] = arith.divui %[[IN_PAGE]], %[[UNIT]] : i32
// CHECK:         %[[ROW32:.*]] = arith.muli %[[UNITS]], %[[UNIT]] overflow<nsw, nuw> : i32
// CHECK:         %[[ROW:.*]] = arith.index_castui %[[ROW32]] : i32 to index
// CHECK:         %[[ENTRY:.*]] = memref.load
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         return %[[ROW]], %[[PAGE]]
func.func @scale_tma_coords(%k: !cache, %b: index, %t: index) -> (index, index) {
  %row, %page = kvcache.scale_tma_coords %k[%b, %t] : !cache
  return %row, %page : index, index
}

// CHECK-LABEL: func.func @tma_coords_of_a_view(
// CHECK:         %[[UNIT:.*]] = arith.constant 4 : i32
// CHECK:         arith.divui %{{.*}}, %[[UNIT]] : i32
// CHECK:         arith.muli %{{.*}}, %[[UNIT]] overflow<nsw, nuw> : i32
func.func @tma_coords_of_a_view(%s: !scales, %b: index, %t: index) -> (index, index) {
  %row, %page = kvcache.tma_coords %s[%b, %t] : !scales
  return %row, %page : index, index
}

// CHECK-LABEL: func.func @facts_of_a_view(
// CHECK-SAME:      %[[LENGTHS:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %[[MAX_CACHE:[^:]*]]: i32, %{{[^:]*}}: memref<f32, strided<[], offset: ?>>, %[[SCALE_PAGES:[^:]*]]: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %[[SCALE_COLUMNS:[^:]*]]: i32, %{{[^:]*}}: i32,
// CHECK-DAG:     %[[MAX:.*]] = arith.index_castui %[[MAX_CACHE]] : i32 to index
// CHECK-DAG:     %[[B:.*]] = arith.index_castui %[[BATCH]] : i32 to index
// CHECK-DAG:     memref.extract_strided_metadata %[[LENGTHS]]
// CHECK-DAG:     %[[NB:.*]] = arith.index_castui %[[SCALE_PAGES]] : i32 to index
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.index_castui %[[SCALE_COLUMNS]] : i32 to index
// CHECK-DAG:     %[[TOKENS:.*]] = arith.muli %[[COLUMNS]], %{{.*}}
// CHECK:         return %[[MAX]], %{{.*}}, %[[B]], %[[NB]], %[[TOKENS]]
func.func @facts_of_a_view(%s: !scales, %i: index) -> (index, index, index, index, index) {
  %max = kvcache.max_context_length %s : !scales
  %length = kvcache.cache_length %s[%i] : !scales
  %batch = kvcache.extent batch %s : !scales
  %pages = kvcache.extent pages %s : !scales
  %tokens = kvcache.extent tokens %s : !scales
  return %max, %length, %batch, %pages, %tokens : index, index, index, index, index
}

// CHECK-LABEL: func.func @rows_of_a_view(
// CHECK-SAME:      %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK:         memref.extract_strided_metadata %[[SLUT]]
// CHECK:         %[[S:.*]] = arith.divui %[[SCALE_STRIDE]], %{{.*}} : index
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, {{.*}}>, vector<2xi32>
// CHECK:         arith.muli %{{.*}}, %[[S]] overflow<nsw, nuw> : index
func.func @rows_of_a_view(%s: !scales, %b: index, %base: index) -> (!rows, index, index, index) {
  %rows = kvcache.populate %s[%b, %base] : !scales -> !rows
  %row = kvcache.row_index %s[%b, %base] : !scales
  %tma_row = kvcache.tma_row %s[%base] : !scales
  %n = kvcache.num_kv_rows %s : !scales
  return %rows, %row, %tma_row, %n : !rows, index, index, index
}

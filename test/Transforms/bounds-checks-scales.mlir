// RUN: kvcache-opt %s --kvcache-bounds-checks --split-input-file | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 80>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>
!no_scales = !kvcache.scales<!kvcache.paged<bf16, #kv, page_size = 64>>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!tile = memref<16x1xf32, strided<[24, 1], offset: ?>>

// Elements through the table of the cache, scales through their own.

// CHECK-LABEL: func.func @everything_of_a_dequantizing_load(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index, %[[D:.*]]: index)
// CHECK:         kvcache.check %[[B]] below %{{.*}}, "'kvcache.load' op sequence"
// CHECK:         kvcache.check %[[H]] below %{{.*}}, "'kvcache.load' op head"
// CHECK:         %[[S:.*]] = kvcache.scales_view %[[K]]
// CHECK:         %[[ELEMENTS:.*]] = arith.constant 65 : index
// CHECK:         kvcache.check %[[D]] below %[[ELEMENTS]], "'kvcache.load' op element"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.load' op element modulo 16, which must be 0,"
// CHECK:         %[[TOKENS:.*]] = kvcache.extent tokens %[[K]]
// CHECK:         kvcache.check %[[T]] below %[[TOKENS]], "'kvcache.load' op token"
// CHECK:         %[[PAGES:.*]] = kvcache.extent pages %[[K]]
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[K]][%[[B]], %[[T]]]
// CHECK:         kvcache.check %[[PAGE]] below %[[PAGES]], "'kvcache.load' op page id"
// CHECK:         %[[SCALE_TOKENS:.*]] = kvcache.extent tokens %[[S]]
// CHECK:         kvcache.check %[[T]] below %[[SCALE_TOKENS]], "'kvcache.load' op token of the scales"
// CHECK:         %[[SCALE_PAGES:.*]] = kvcache.extent pages %[[S]]
// CHECK:         %[[SCALE_PAGE:.*]] = kvcache.page_id %[[S]][%[[B]], %[[T]]]
// CHECK:         kvcache.check %[[SCALE_PAGE]] below %[[SCALE_PAGES]], "'kvcache.load' op page id of the scales"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.load {{.*}} page %[[PAGE]] scale_page %[[SCALE_PAGE]]
func.func @everything_of_a_dequantizing_load(%k: !cache, %b: index, %h: index, %t: index, %d: index)
    -> vector<16xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<16xbf16>
  return %v : vector<16xbf16>
}

// CHECK-LABEL: func.func @known_pages(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index, %[[SCALE_PAGE:[^:]*]]: index)
// CHECK-NOT:     kvcache.page_id
// CHECK:         kvcache.check %[[PAGE]] below %{{.*}}, "'kvcache.load' op page id"
// CHECK-NOT:     kvcache.page_id
// CHECK:         kvcache.check %[[SCALE_PAGE]] below %{{.*}}, "'kvcache.load' op page id of the scales"
// CHECK-NOT:     kvcache.page_id
// CHECK:         return
func.func @known_pages(%k: !cache, %i: index, %page: index, %scale_page: index) -> f32 {
  %v = kvcache.load %k[%i, %i, %i, %i] page %page scale_page %scale_page : !cache -> f32
  return %v : f32
}

// CHECK-LABEL: func.func @store_quantized(
// CHECK:         %[[ELEMENTS:.*]] = arith.constant 49 : index
// CHECK:         kvcache.check %{{.*}} below %[[ELEMENTS]], "'kvcache.store_quantized' op element"
// CHECK:         "'kvcache.store_quantized' op element modulo 32, which must be 0,"
// CHECK:         "'kvcache.store_quantized' op token"
// CHECK:         "'kvcache.store_quantized' op page id"
// CHECK:         "'kvcache.store_quantized' op token of the scales"
// CHECK:         "'kvcache.store_quantized' op page id of the scales"
// CHECK:         kvcache.store_quantized
func.func @store_quantized(%v: vector<32xf32>, %k: !cache, %i: index) {
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] : vector<32xf32>, !cache
  return
}

// What reads the stored elements alone asks nothing of the scales.

// CHECK-LABEL: func.func @load_quantized(
// CHECK-NOT:     scales
// CHECK:         "'kvcache.load_quantized' op element"
// CHECK-NOT:     kvcache.scales_view
// CHECK:         "'kvcache.load_quantized' op page id"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.load_quantized
func.func @load_quantized(%k: !cache, %i: index) -> f8E4M3FN {
  %w = kvcache.load_quantized %k[%i, %i, %i, %i] : !cache -> f8E4M3FN
  return %w : f8E4M3FN
}

// And the other way round. The element exists, and so do all scales from its
// own on: of three groups, two may start at the first.

// CHECK-LABEL: func.func @load_scale(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index, %[[D:.*]]: index)
// CHECK:         kvcache.check %[[B]] below %{{.*}}, "'kvcache.load_scale' op sequence"
// CHECK:         kvcache.check %[[H]] below %{{.*}}, "'kvcache.load_scale' op head"
// CHECK:         %[[S:.*]] = kvcache.scales_view %[[K]]
// CHECK:         %[[E:.*]] = arith.constant 80 : index
// CHECK:         kvcache.check %[[D]] below %[[E]], "'kvcache.load_scale' op element"
// CHECK:         %[[G:.*]] = arith.constant 32 : index
// CHECK:         %[[GROUP:.*]] = arith.divui %[[D]], %[[G]] : index
// CHECK:         %[[GROUPS:.*]] = arith.constant 2 : index
// CHECK:         kvcache.check %[[GROUP]] below %[[GROUPS]], "'kvcache.load_scale' op group of the element"
// CHECK:         %[[REST:.*]] = arith.remui %[[GROUP]], %{{.*}} : index
// CHECK:         kvcache.check %[[REST]] below %{{.*}}, "'kvcache.load_scale' op group of the element modulo 2, which must be 0,"
// CHECK-NOT:     kvcache.extent tokens %[[K]]
// CHECK:         %[[TOKENS:.*]] = kvcache.extent tokens %[[S]]
// CHECK:         kvcache.check %[[T]] below %[[TOKENS]], "'kvcache.load_scale' op token of the scales"
// CHECK:         %[[PAGES:.*]] = kvcache.extent pages %[[S]]
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[S]][%[[B]], %[[T]]]
// CHECK:         kvcache.check %[[PAGE]] below %[[PAGES]], "'kvcache.load_scale' op page id of the scales"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.load_scale {{.*}} scale_page %[[PAGE]]
func.func @load_scale(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> vector<2xf32> {
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !cache -> vector<2xf32>
  return %s : vector<2xf32>
}

// CHECK-LABEL: func.func @store_scale_of_a_known_page(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index)
// CHECK:         %[[GROUPS:.*]] = arith.constant 3 : index
// CHECK:         kvcache.check %{{.*}} below %[[GROUPS]], "'kvcache.store_scale' op group of the element"
// CHECK-NOT:     modulo
// CHECK-NOT:     kvcache.page_id
// CHECK:         kvcache.check %[[PAGE]] below %{{.*}}, "'kvcache.store_scale' op page id of the scales"
func.func @store_scale_of_a_known_page(%s: f32, %k: !cache, %i: index, %page: index) {
  kvcache.store_scale %s, %k[%i, %i, %i, %i] scale_page %page : f32, !cache
  return
}

// CHECK-LABEL: func.func @tile_of_scales(
// CHECK:         "'kvcache.scales_block_tile' op sequence"
// CHECK:         "'kvcache.scales_block_tile' op head"
// CHECK:         "'kvcache.scales_block_tile' op element"
// CHECK:         "'kvcache.scales_block_tile' op group of the element"
// CHECK:         "'kvcache.scales_block_tile' op token of the scales"
// CHECK:         "'kvcache.scales_block_tile' op last token of the scales"
// CHECK:         "'kvcache.scales_block_tile' op token modulo 16, which must be 0,"
// CHECK:         "'kvcache.scales_block_tile' op page id of the scales"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.scales_block_tile
func.func @tile_of_scales(%k: !cache, %i: index) -> !tile {
  %m = kvcache.scales_block_tile %k[%i, %i, %i, %i] : !cache -> !tile
  return %m : !tile
}

// CHECK-LABEL: func.func @queries(
// CHECK:         kvcache.scales_view
// CHECK:         "'kvcache.num_scale_rows' op distance between pages modulo a row ({{.*}} elements), which must be 0 where rows are counted,"
// CHECK:         kvcache.num_scale_rows
// CHECK:         "'kvcache.scale_row_index' op distance between pages
// CHECK:         "'kvcache.scale_row_index' op sequence"
// CHECK:         "'kvcache.scale_row_index' op token of the scales"
// CHECK:         "'kvcache.scale_row_index' op page id of the scales"
// CHECK:         kvcache.scale_row_index
// CHECK:         "'kvcache.scale_tma_coords' op sequence"
// CHECK:         "'kvcache.scale_tma_coords' op token of the scales"
// CHECK:         "'kvcache.scale_tma_coords' op page id of the scales"
// CHECK:         kvcache.scale_tma_coords
func.func @queries(%k: !cache, %b: index, %t: index) -> (index, index, index, index) {
  %n = kvcache.num_scale_rows %k : !cache
  %r = kvcache.scale_row_index %k[%b, %t] : !cache
  %row, %page = kvcache.scale_tma_coords %k[%b, %t] : !cache
  return %n, %r, %row, %page : index, index, index, index
}

// Arithmetic has nothing to check.

// CHECK-LABEL: func.func @arithmetic(
// CHECK-NOT:     kvcache.check
// CHECK:         return
func.func @arithmetic(%v: vector<8xf32>, %k: !cache) -> vector<8xf32> {
  %base = kvcache.scales_base %k : !cache
  %w, %s = kvcache.quantize %v : vector<8xf32> -> vector<8xi8>, f32
  %x = kvcache.dequantize %w, %s : vector<8xi8>, f32 -> vector<8xf32>
  return %x : vector<8xf32>
}

//===----------------------------------------------------------------------===//
// A view of scales
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @load_of_a_view(
// CHECK-SAME:      %[[S:.*]]: !kvcache.scales<{{.*}}>, %[[B:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index, %[[D:.*]]: index)
// CHECK-NOT:     kvcache.scales_view
// CHECK:         kvcache.check %[[D]] below %{{.*}}, "'kvcache.load' op element"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.load' op group of the element"
// CHECK:         %[[TOKENS:.*]] = kvcache.extent tokens %[[S]]
// CHECK:         kvcache.check %[[T]] below %[[TOKENS]], "'kvcache.load' op token of the scales"
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[S]][%[[B]], %[[T]]]
// CHECK:         kvcache.check %[[PAGE]] below %{{.*}}, "'kvcache.load' op page id of the scales"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.load
func.func @load_of_a_view(%s: !scales, %b: index, %h: index, %t: index, %d: index) -> f32 {
  %x = kvcache.load %s[%b, %h, %t, %d] : !scales -> f32
  return %x : f32
}

// The same for the ops on scales, through the view and no other.

// CHECK-LABEL: func.func @scales_of_a_view(
// CHECK-SAME:      %[[S:.*]]: !kvcache.scales<{{.*}}>, %[[I:.*]]: index)
// CHECK-NOT:     kvcache.scales_view
// CHECK:         "'kvcache.load_scale' op group of the element"
// CHECK:         kvcache.extent tokens %[[S]]
// CHECK:         "'kvcache.load_scale' op token of the scales"
// CHECK:         "'kvcache.load_scale' op page id of the scales"
// CHECK:         %[[X:.*]] = kvcache.load_scale
// CHECK:         "'kvcache.store_scale' op page id of the scales"
// CHECK:         kvcache.store_scale %[[X]]
// CHECK:         "'kvcache.scales_block_tile' op last token of the scales"
// CHECK:         "'kvcache.scales_block_tile' op page id of the scales"
// CHECK-NEXT:    kvcache.scales_block_tile
// CHECK-NEXT:    kvcache.scales_base
func.func @scales_of_a_view(%s: !scales, %i: index) -> !tile {
  %x = kvcache.load_scale %s[%i, %i, %i, %i] : !scales -> f32
  kvcache.store_scale %x, %s[%i, %i, %i, %i] : f32, !scales
  %m = kvcache.scales_block_tile %s[%i, %i, %i, %i] : !scales -> !tile
  %base = kvcache.scales_base %s : !scales
  return %m : !tile
}

// CHECK-LABEL: func.func @length_without_scales(
// CHECK:         kvcache.extent batch
// CHECK:         "'kvcache.cache_length' op sequence"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.cache_length
func.func @length_without_scales(%s: !no_scales, %b: index) -> index {
  %n = kvcache.cache_length %s[%b] : !no_scales
  return %n : index
}

// CHECK-LABEL: func.func @queries_of_a_view(
// CHECK:         "'kvcache.cache_length' op sequence"
// CHECK:         "'kvcache.row_index' op token of the scales"
// CHECK:         "'kvcache.row_index' op page id of the scales"
// CHECK:         "'kvcache.tma_row' op page of the encoded row id"
// CHECK:         "'kvcache.populate' op token of the scales"
// CHECK:         "'kvcache.populate' op last token of the scales"
// CHECK:         "'kvcache.populate' op base modulo 128, which must be 0,"
// CHECK:         scf.for
// CHECK:           "'kvcache.populate' op page id of the scales"
func.func @queries_of_a_view(%s: !scales, %b: index, %t: index) -> (index, index, index, !rows) {
  %n = kvcache.cache_length %s[%b] : !scales
  %r = kvcache.row_index %s[%b, %t] : !scales
  %e = kvcache.tma_row %s[%t] : !scales
  %rows = kvcache.populate %s[%b, %t] : !scales -> !rows
  return %n, %r, %e, %rows : index, index, index, !rows
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64>
!collection = !kvcache.paged_collection<i8, #kv, page_size = 4, scale = f32, granularity = 16>
!strided = memref<?x2x?x4x1x4xf32, strided<[?, ?, ?, 4, 4, 1], offset: ?>>

// The table and the distances of the scales, too.

// CHECK-LABEL: func.func @collection(
// CHECK-SAME:      %[[LENGTHS:[^:]*]]: memref<?xi32>, %{{[^:]*}}: memref<?x?xi32>, %{{[^:]*}}: i32, %[[SCALES:[^:]*]]: memref<?x2x?x4x1x4xf32, {{.*}}>, %[[SLUT:[^:]*]]: memref<?x?xi32>)
// CHECK:         %[[SEQUENCES:.*]] = memref.dim %[[LENGTHS]], %{{.*}}
// CHECK:         "'kvcache.paged_collection' op number of sequences with a row in 'lookup_table'"
// CHECK:         %[[ROWS:.*]] = memref.dim %[[SLUT]], %{{.*}}
// CHECK:         %[[LIMIT:.*]] = arith.addi %[[ROWS]], %{{.*}}
// CHECK:         kvcache.check %[[SEQUENCES]] below %[[LIMIT]], "'kvcache.paged_collection' op number of sequences with a row in 'scales_lookup_table'"
// CHECK:         %{{.*}}, %{{.*}}, %{{.*}}:6, %[[STRIDES:.*]]:6 = memref.extract_strided_metadata %[[SCALES]]
// CHECK:         kvcache.check %[[STRIDES]]#0 below %{{.*}}, "'kvcache.paged_collection' op stride 0 of 'scales'"
// CHECK:         "'kvcache.paged_collection' op stride 0 of 'scales' modulo 4, which must be 0,"
// CHECK:         kvcache.check %[[STRIDES]]#1
// CHECK:         kvcache.check %[[STRIDES]]#2
// CHECK:         kvcache.paged_collection
func.func @collection(%blocks: memref<?x2x?x4x1x64xi8>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32,
                      %scales: !strided, %slut: memref<?x?xi32>) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales lookup %slut
      : memref<?x2x?x4x1x64xi8>, memref<?xi32>, memref<?x?xi32>, !strided, memref<?x?xi32> -> !collection
  return %c : !collection
}

// The first of the tokens that share scales.

!kivi = !kvcache.paged<i4, #kvcache.params<num_heads = 8, head_size = 64>, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

// CHECK-LABEL: func.func @store_group(
// CHECK-SAME:    %{{.*}}, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index)
// CHECK:         %[[REST:.*]] = arith.remui %[[T]], %c32
// CHECK:         kvcache.check %[[REST]] below %{{.*}}, "'kvcache.store_quantized' op token modulo 32, which must be 0,"
// CHECK:         kvcache.store_quantized
func.func @store_group(%v: vector<32x2xbf16>, %k: !kivi, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<32x2xbf16>, !kivi
  return
}

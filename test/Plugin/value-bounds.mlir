// RUN: mlir-opt %s %kvcache_plugin --pass-pipeline="builtin.module(func.func(affine-simplify-min-max,test-affine-reify-value-bounds))" | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>

// CHECK-LABEL: func.func @row_in_page(
// CHECK:         %[[ROW:.*]], %{{.*}} = kvcache.tma_coords
// CHECK:         return %[[ROW]] : index
func.func @row_in_page(%k: !cache, %b: index, %t: index) -> index {
  %row, %page = kvcache.tma_coords %k[%b, %t] : !cache
  %min = affine.min affine_map<()[s] -> (s, 64)>()[%row]
  return %min : index
}

// CHECK-LABEL: func.func @length_is_not_negative(
// CHECK:         %[[LENGTH:.*]] = kvcache.cache_length
// CHECK:         return %[[LENGTH]] : index
func.func @length_is_not_negative(%k: !cache, %b: index) -> index {
  %length = kvcache.cache_length %k[%b] : !cache
  %max = affine.max affine_map<()[s] -> (s, 0)>()[%length]
  return %max : index
}

// A row may be as large as an index, and so may its successor.
// CHECK-LABEL: func.func @row_has_no_upper_bound(
// CHECK:         affine.min
func.func @row_has_no_upper_bound(%k: !cache, %b: index, %t: index) -> index {
  %row = kvcache.row_index %k[%b, %t] : !cache
  %min = affine.min affine_map<()[s] -> (s, 4294967296)>()[%row]
  return %min : index
}

// CHECK-LABEL: func.func @column_of_a_head(
// CHECK-SAME:      %{{.*}}: !kvcache.paged<{{.*}}>, %[[H:.*]]: index)
// CHECK:         %[[COLUMN:.*]] = affine.apply #{{.*}}()[%[[H]]]
// CHECK:         return %[[COLUMN]] : index
func.func @column_of_a_head(%k: !cache, %h: index) -> index {
  %column = kvcache.col_index %k[%h] : !cache
  %bound = "test.reify_bound"(%column) {type = "EQ"} : (index) -> index
  return %bound : index
}

// CHECK-LABEL: func.func @bytes_of_a_tile(
// CHECK:         %[[END:.*]] = arith.constant 16384 : index
// CHECK:         return %[[END]] : index
func.func @bytes_of_a_tile(%kt: !tile, %row: index, %column: index) -> index {
  %offset = kvcache.tile_offset %kt[%row, %column] : !tile
  %bound = "test.reify_bound"(%offset) {type = "UB", constant} : (index) -> index
  return %bound : index
}

// CHECK-LABEL: func.func @row_is_not_negative(
// CHECK:         %[[ROW:.*]] = kvcache.get_row
// CHECK:         return %[[ROW]] : index
func.func @row_is_not_negative(%rows: !rows, %offset: index) -> index {
  %row = kvcache.get_row %rows[%offset] : !rows
  %max = affine.max affine_map<()[s] -> (s, 0)>()[%row]
  return %max : index
}

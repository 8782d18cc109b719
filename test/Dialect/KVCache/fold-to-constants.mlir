// RUN: kvcache-opt %s --canonicalize | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK-LABEL: func.func @column_of_a_constant_head(
// CHECK-NEXT:    %[[COLUMN:.*]] = arith.constant 384 : index
// CHECK-NEXT:    return %[[COLUMN]] : index
func.func @column_of_a_constant_head(%k: !cache) -> index {
  %head = arith.constant 3 : index
  %column = kvcache.col_index %k[%head] : !cache
  return %column : index
}

// CHECK-LABEL: func.func @tma_row_of_a_negative_id(
// CHECK-NEXT:    %[[SENTINEL:.*]] = arith.constant -1 : index
// CHECK-NEXT:    return %[[SENTINEL]] : index
func.func @tma_row_of_a_negative_id(%k: !cache) -> index {
  %encoded = arith.constant -1 : index
  %row = kvcache.tma_row %k[%encoded] : !cache
  return %row : index
}

// CHECK-LABEL: func.func @page_size_of_the_type(
// CHECK-NEXT:    %[[SIZE:.*]] = arith.constant 64 : index
// CHECK-NEXT:    return %[[SIZE]] : index
func.func @page_size_of_the_type(%k: !cache) -> index {
  %size = kvcache.extent page_size %k : !cache
  return %size : index
}

// CHECK-LABEL: func.func @page_size_at_run_time(
// CHECK:         %[[SIZE:.*]] = kvcache.extent page_size
// CHECK:         return %[[SIZE]] : index
func.func @page_size_at_run_time(%k: !kvcache.paged<bf16, #kv, page_size = ?>) -> index {
  %size = kvcache.extent page_size %k : !kvcache.paged<bf16, #kv, page_size = ?>
  return %size : index
}

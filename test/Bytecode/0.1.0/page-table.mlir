// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/page-table.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func @populate(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: index, %arg2: index) {
    %0 = kvcache.populate %arg0[%arg1, %arg2] : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.row_indices<rows = 128, page_size = 64>
    %1 = kvcache.populate %arg0[%arg1, %arg2] {base_alignment = 64 : i64} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.row_indices<rows = 128, page_size = 64>
    %2 = kvcache.populate %arg0[%arg1, %arg2] {base_alignment = 3 : i64, note = "kept"} : !kvcache.paged<bf16, #kv, page_size = 64> -> !kvcache.row_indices<rows = 32, page_size = 64>
    return
  }
  func.func @populate_from_a_continuous_cache(%arg0: !kvcache.continuous<bf16, #kv>, %arg1: index, %arg2: index) {
    %0 = kvcache.populate %arg0[%arg1, %arg2] : !kvcache.continuous<bf16, #kv> -> !kvcache.row_indices<rows = 48>
    return
  }
  func.func @populate_from_pages_of_any_size(%arg0: !kvcache.paged<bf16, #kv, page_size = ?>, %arg1: index, %arg2: index) {
    %0 = kvcache.populate %arg0[%arg1, %arg2] : !kvcache.paged<bf16, #kv, page_size = ?> -> !kvcache.row_indices<rows = 48, page_size = ?>
    return
  }
  func.func @get_row(%arg0: !kvcache.row_indices<rows = 128, page_size = 64>, %arg1: index) {
    %c0 = arith.constant 0 : index
    %c127 = arith.constant 127 : index
    %0 = kvcache.get_row %arg0[%c0] : !kvcache.row_indices<rows = 128, page_size = 64>
    %1 = kvcache.get_row %arg0[%c127] : !kvcache.row_indices<rows = 128, page_size = 64>
    %2 = kvcache.get_row %arg0[%arg1] {note = "kept"} : !kvcache.row_indices<rows = 128, page_size = 64>
    return
  }
}


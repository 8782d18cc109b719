// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/queries.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func @queries_of_a_paged_cache(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: index, %arg2: index, %arg3: index, %arg4: index) {
    %0 = kvcache.empty_cache %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %1 = kvcache.max_prompt_length %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %2 = kvcache.max_context_length %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %3 = kvcache.num_kv_rows %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %4 = kvcache.cache_length %arg0[%arg1] : !kvcache.paged<bf16, #kv, page_size = 64>
    %5 = kvcache.page_id %arg0[%arg1, %arg3] : !kvcache.paged<bf16, #kv, page_size = 64>
    %6 = kvcache.row_index %arg0[%arg1, %arg3] : !kvcache.paged<bf16, #kv, page_size = 64>
    %7 = kvcache.row_index %arg0[%arg1, %arg3] page %5 : !kvcache.paged<bf16, #kv, page_size = 64>
    %row, %page = kvcache.tma_coords %arg0[%arg1, %arg3] : !kvcache.paged<bf16, #kv, page_size = 64>
    %8 = kvcache.tma_row %arg0[%arg4] : !kvcache.paged<bf16, #kv, page_size = 64>
    %9 = kvcache.col_index %arg0[%arg2] : !kvcache.paged<bf16, #kv, page_size = 64>
    %10 = kvcache.extent batch %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %11 = kvcache.extent pages %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %12 = kvcache.extent tokens %arg0 {note = "kept"} : !kvcache.paged<bf16, #kv, page_size = 64>
    %13 = kvcache.extent page_size %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    return
  }
  func.func @queries_of_a_continuous_cache(%arg0: !kvcache.continuous<bf16, #kv>, %arg1: index, %arg2: index, %arg3: index, %arg4: index) {
    %0 = kvcache.empty_cache %arg0 : !kvcache.continuous<bf16, #kv>
    %1 = kvcache.max_prompt_length %arg0 : !kvcache.continuous<bf16, #kv>
    %2 = kvcache.max_context_length %arg0 : !kvcache.continuous<bf16, #kv>
    %3 = kvcache.num_kv_rows %arg0 : !kvcache.continuous<bf16, #kv>
    %4 = kvcache.cache_length %arg0[%arg1] : !kvcache.continuous<bf16, #kv>
    %5 = kvcache.page_id %arg0[%arg1, %arg3] : !kvcache.continuous<bf16, #kv>
    %6 = kvcache.row_index %arg0[%arg1, %arg3] : !kvcache.continuous<bf16, #kv>
    %7 = kvcache.row_index %arg0[%arg1, %arg3] page %5 : !kvcache.continuous<bf16, #kv>
    %8 = kvcache.tma_row %arg0[%arg4] : !kvcache.continuous<bf16, #kv>
    %9 = kvcache.col_index %arg0[%arg2] : !kvcache.continuous<bf16, #kv>
    %10 = kvcache.extent batch %arg0 : !kvcache.continuous<bf16, #kv>
    %11 = kvcache.extent pages %arg0 : !kvcache.continuous<bf16, #kv>
    %12 = kvcache.extent tokens %arg0 : !kvcache.continuous<bf16, #kv>
    return
  }
  func.func @queries_of_a_paged_collection(%arg0: !kvcache.paged_collection<bf16, #kv, page_size = 64>, %arg1: index) {
    %0 = kvcache.empty_cache %arg0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    %1 = kvcache.max_prompt_length %arg0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    %2 = kvcache.max_context_length %arg0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    %3 = kvcache.cache_length %arg0[%arg1] : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    %4 = kvcache.extent batch %arg0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    %5 = kvcache.extent layers %arg0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    return
  }
  func.func @queries_of_a_continuous_collection(%arg0: !kvcache.continuous_collection<bf16, #kv>, %arg1: index) {
    %0 = kvcache.empty_cache %arg0 : !kvcache.continuous_collection<bf16, #kv>
    %1 = kvcache.max_prompt_length %arg0 : !kvcache.continuous_collection<bf16, #kv>
    %2 = kvcache.max_context_length %arg0 : !kvcache.continuous_collection<bf16, #kv>
    %3 = kvcache.cache_length %arg0[%arg1] : !kvcache.continuous_collection<bf16, #kv>
    %4 = kvcache.extent batch %arg0 : !kvcache.continuous_collection<bf16, #kv>
    %5 = kvcache.extent layers %arg0 : !kvcache.continuous_collection<bf16, #kv>
    return
  }
}


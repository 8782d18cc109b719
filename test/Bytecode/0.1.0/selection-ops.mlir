// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/selection-ops.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
module {
  func.func @top_rows(%arg0: memref<?x?xf32>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: memref<?xi32>, %arg3: memref<?x2048xi32>, %arg4: memref<?xi32>, %arg5: memref<?x2051xi32>, %arg6: memref<?x2051xi32>) {
    kvcache.top_rows %arg0, %arg1 rows %arg2 outs(%arg3) : memref<?x?xf32>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, memref<?x2048xi32>
    kvcache.top_rows %arg0, %arg1 rows %arg2 outs(%arg5, %arg6) lengths %arg4 {block_threads = 256 : i64, expand, first = 1 : i64, last = 2 : i64, tail, whole, width = 4 : i64} : memref<?x?xf32>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, memref<?x2051xi32>, memref<?x2051xi32>, memref<?xi32>
    return
  }
  func.func @top_rows_of_heads_on_tensors(%arg0: tensor<?x4x?xf32>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: tensor<?xi32>, %arg3: tensor<?x4x16xi32>, %arg4: tensor<?x4x16xi32>) -> (tensor<?x4x16xi32>, tensor<?x4x16xi32>) {
    %0:2 = kvcache.top_rows %arg0, %arg1 rows %arg2 outs(%arg3, %arg4) : tensor<?x4x?xf32>, !kvcache.paged<bf16, #kv, page_size = 64>, tensor<?xi32>, tensor<?x4x16xi32>, tensor<?x4x16xi32> -> tensor<?x4x16xi32>, tensor<?x4x16xi32>
    return %0#0, %0#1 : tensor<?x4x16xi32>, tensor<?x4x16xi32>
  }
}


// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/selection-ops.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 1, head_size = 128, is_mla = true>
#kv1 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
#kv2 = #kvcache.params<num_heads = 4, head_size = 128>
module {
  func.func @pool(%arg0: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, %arg1: memref<?xi32>, %arg2: memref<?x1x128xf32>, %arg3: tensor<?x1x256xbf16>) -> tensor<?x1x256xbf16> {
    kvcache.pool %arg0 rows %arg1 outs(%arg2) {width = 4 : i64} : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, memref<?xi32>, memref<?x1x128xf32>
    %0 = kvcache.pool %arg0 rows %arg1 outs(%arg3) {block_threads = 64 : i64, min_max, width = 16 : i64} : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, memref<?xi32>, tensor<?x1x256xbf16> -> tensor<?x1x256xbf16>
    return %0 : tensor<?x1x256xbf16>
  }
  func.func @gated_pool(%arg0: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg1: memref<?xi32>, %arg2: memref<?x1x288xf32>, %arg3: tensor<?x1x144xf32>, %arg4: tensor<?x1x576xf32>) -> tensor<?x1x144xf32> {
    kvcache.pool %arg0 rows %arg1 outs(%arg2) {gated, width = 128 : i64} : !kvcache.paged<bf16, #kv1, page_size = 64>, memref<?xi32>, memref<?x1x288xf32>
    %0 = kvcache.pool %arg0 rows %arg1 outs(%arg3) new %arg4 {gated, overlap, width = 4 : i64} : !kvcache.paged<bf16, #kv1, page_size = 64>, memref<?xi32>, tensor<?x1x144xf32>, tensor<?x1x576xf32> -> tensor<?x1x144xf32>
    return %0 : tensor<?x1x144xf32>
  }
  func.func @index_scores(%arg0: memref<?x64x128xf8E4M3FN>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, %arg2: memref<?xi32>, %arg3: memref<?x64xf32>, %arg4: memref<?x?xf32>, %arg5: memref<?x64x?xf32>, %arg6: memref<?xi32>) {
    kvcache.index_scores %arg0, %arg1 rows %arg2 outs(%arg4) weights %arg3 {relu, sum_heads} : memref<?x64x128xf8E4M3FN>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, memref<?xi32>, memref<?x?xf32>, memref<?x64xf32>
    kvcache.index_scores %arg0, %arg1 rows %arg2 outs(%arg5) lengths %arg6 {block = 128 : i64, block_threads = 64 : i64, width = 4 : i64} : memref<?x64x128xf8E4M3FN>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, memref<?xi32>, memref<?x64x?xf32>, memref<?xi32>
    return
  }
  func.func @index_scores_of_mxfp4(%arg0: memref<?x64x64xi8>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, %arg2: memref<?xi32>, %arg3: memref<?x64xf32>, %arg4: memref<?x?xf32>, %arg5: memref<?xi32>, %arg6: memref<?x64x4xf8E8M0FNU>) {
    kvcache.index_scores %arg0, %arg1 rows %arg2 outs(%arg4) weights %arg3 lengths %arg5 q_scales %arg6 {relu, sum_heads} : memref<?x64x64xi8>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, memref<?xi32>, memref<?x?xf32>, memref<?x64xf32>, memref<?xi32>, memref<?x64x4xf8E8M0FNU>
    return
  }
  func.func @index_scores_on_tensors(%arg0: tensor<?x64x128xbf16>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, %arg2: tensor<?xi32>, %arg3: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %0 = kvcache.index_scores %arg0, %arg1 rows %arg2 outs(%arg3) {sum_heads} : tensor<?x64x128xbf16>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, tensor<?xi32>, tensor<?x?xf32> -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
  func.func @top_rows(%arg0: memref<?x?xf32>, %arg1: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg2: memref<?xi32>, %arg3: memref<?x2048xi32>, %arg4: memref<?xi32>, %arg5: memref<?x2051xi32>, %arg6: memref<?x2051xi32>) {
    kvcache.top_rows %arg0, %arg1 rows %arg2 outs(%arg3) : memref<?x?xf32>, !kvcache.paged<bf16, #kv1, page_size = 64>, memref<?xi32>, memref<?x2048xi32>
    kvcache.top_rows %arg0, %arg1 rows %arg2 outs(%arg5, %arg6) lengths %arg4 {block_threads = 256 : i64, expand, first = 1 : i64, last = 2 : i64, tail, whole, width = 4 : i64} : memref<?x?xf32>, !kvcache.paged<bf16, #kv1, page_size = 64>, memref<?xi32>, memref<?x2051xi32>, memref<?x2051xi32>, memref<?xi32>
    return
  }
  func.func @top_rows_of_heads_on_tensors(%arg0: tensor<?x4x?xf32>, %arg1: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg2: tensor<?xi32>, %arg3: tensor<?x4x16xi32>, %arg4: tensor<?x4x16xi32>) -> (tensor<?x4x16xi32>, tensor<?x4x16xi32>) {
    %0:2 = kvcache.top_rows %arg0, %arg1 rows %arg2 outs(%arg3, %arg4) : tensor<?x4x?xf32>, !kvcache.paged<bf16, #kv1, page_size = 64>, tensor<?xi32>, tensor<?x4x16xi32>, tensor<?x4x16xi32> -> tensor<?x4x16xi32>, tensor<?x4x16xi32>
    return %0#0, %0#1 : tensor<?x4x16xi32>, tensor<?x4x16xi32>
  }
  func.func @rows_of_heads(%arg0: memref<?x64x128xbf16>, %arg1: !kvcache.paged<bf16, #kv2, page_size = 128>, %arg2: !kvcache.paged<bf16, #kv2, page_size = 128>, %arg3: memref<?xi32>, %arg4: f32, %arg5: memref<?x64x128xbf16>, %arg6: memref<?x4x16xi32>) {
    kvcache.attention %arg0, %arg1, %arg2, %arg3, %arg4 outs(%arg5) rows %arg6 : memref<?x64x128xbf16>, !kvcache.paged<bf16, #kv2, page_size = 128>, !kvcache.paged<bf16, #kv2, page_size = 128>, memref<?xi32>, f32, memref<?x64x128xbf16>, memref<?x4x16xi32>
    return
  }
  func.func @top_rows_of_splits(%arg0: memref<?x?xf32>, %arg1: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg2: memref<?xi32>, %arg3: memref<?x2048xi32>, %arg4: memref<?xi32>, %arg5: memref<?x16x4096xi32>) {
    kvcache.top_rows %arg0, %arg1 rows %arg2 outs(%arg3) lengths %arg4 workspace %arg5 : memref<?x?xf32>, !kvcache.paged<bf16, #kv1, page_size = 64>, memref<?xi32>, memref<?x2048xi32>, memref<?xi32>, memref<?x16x4096xi32>
    return
  }
}


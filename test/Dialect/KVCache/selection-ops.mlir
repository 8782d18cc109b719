// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

#index = #kvcache.params<num_heads = 1, head_size = 128, is_mla = true>
!index = !kvcache.paged<f8E4M3FN, #index, page_size = 64, scale = f32, granularity = 128>

// CHECK-LABEL: func.func @pool(
// CHECK:         kvcache.pool %{{.*}} rows %{{.*}} outs(%{{.*}}) {width = 4 : i64} : !kvcache.paged
// CHECK:         %{{.*}} = kvcache.pool %{{.*}} rows %{{.*}} outs(%{{.*}}) {block_threads = 64 : i64, min_max, width = 16 : i64} : {{.*}} -> tensor<?x1x256xbf16>
func.func @pool(%cache: !index, %n: memref<?xi32>, %means: memref<?x1x128xf32>, %tensor: tensor<?x1x256xbf16>)
    -> tensor<?x1x256xbf16> {
  kvcache.pool %cache rows %n outs(%means) {width = 4} : !index, memref<?xi32>, memref<?x1x128xf32>
  %r = kvcache.pool %cache rows %n outs(%tensor) {width = 16, min_max, block_threads = 64}
    : !index, memref<?xi32>, tensor<?x1x256xbf16> -> tensor<?x1x256xbf16>
  return %r : tensor<?x1x256xbf16>
}

// CHECK-LABEL: func.func @gated_pool(
// CHECK:         kvcache.pool %{{.*}} rows %{{.*}} outs(%{{.*}}) {gated, width = 128 : i64} : !kvcache.paged
// CHECK:         %{{.*}} = kvcache.pool %{{.*}} rows %{{.*}} outs(%{{.*}}) new %{{.*}} {gated, overlap, width = 4 : i64} : {{.*}}, tensor<?x1x144xf32>, tensor<?x1x576xf32> -> tensor<?x1x144xf32>
func.func @gated_pool(%cache: !cache, %n: memref<?xi32>, %entries: memref<?x1x288xf32>, %tensor: tensor<?x1x144xf32>,
                      %new: tensor<?x1x576xf32>) -> tensor<?x1x144xf32> {
  kvcache.pool %cache rows %n outs(%entries) {width = 128, gated} : !cache, memref<?xi32>, memref<?x1x288xf32>
  %r = kvcache.pool %cache rows %n outs(%tensor) new %new {width = 4, gated, overlap}
    : !cache, memref<?xi32>, tensor<?x1x144xf32>, tensor<?x1x576xf32> -> tensor<?x1x144xf32>
  return %r : tensor<?x1x144xf32>
}

// CHECK-LABEL: func.func @index_scores(
// CHECK:         kvcache.index_scores %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) weights %{{.*}} {relu, sum_heads} : memref<?x64x128xf8E4M3FN>, !kvcache.paged
// CHECK:         kvcache.index_scores %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) lengths %{{.*}} {block = 128 : i64, block_threads = 64 : i64, width = 4 : i64} :
func.func @index_scores(%q: memref<?x64x128xf8E4M3FN>, %cache: !index, %n: memref<?xi32>, %w: memref<?x64xf32>,
                        %sums: memref<?x?xf32>, %scores: memref<?x64x?xf32>, %lengths: memref<?xi32>) {
  kvcache.index_scores %q, %cache rows %n outs(%sums) weights %w {relu, sum_heads}
    : memref<?x64x128xf8E4M3FN>, !index, memref<?xi32>, memref<?x?xf32>, memref<?x64xf32>
  kvcache.index_scores %q, %cache rows %n outs(%scores) lengths %lengths {width = 4, block = 128, block_threads = 64}
    : memref<?x64x128xf8E4M3FN>, !index, memref<?xi32>, memref<?x64x?xf32>, memref<?xi32>
  return
}

// CHECK-LABEL: func.func @index_scores_of_mxfp4(
// CHECK:         kvcache.index_scores %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) weights %{{.*}} lengths %{{.*}} q_scales %{{.*}} {relu, sum_heads} : memref<?x64x64xi8>
func.func @index_scores_of_mxfp4(%q: memref<?x64x64xi8>, %cache: !index, %n: memref<?xi32>, %w: memref<?x64xf32>,
                                 %sums: memref<?x?xf32>, %lengths: memref<?xi32>, %scales: memref<?x64x4xf8E8M0FNU>) {
  kvcache.index_scores %q, %cache rows %n outs(%sums) weights %w lengths %lengths q_scales %scales {relu, sum_heads}
    : memref<?x64x64xi8>, !index, memref<?xi32>, memref<?x?xf32>, memref<?x64xf32>, memref<?xi32>, memref<?x64x4xf8E8M0FNU>
  return
}

// CHECK-LABEL: func.func @index_scores_on_tensors(
// CHECK:         %{{.*}} = kvcache.index_scores %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) {sum_heads} : {{.*}} -> tensor<?x?xf32>
func.func @index_scores_on_tensors(%q: tensor<?x64x128xbf16>, %cache: !index, %n: tensor<?xi32>, %sums: tensor<?x?xf32>)
    -> tensor<?x?xf32> {
  %r = kvcache.index_scores %q, %cache rows %n outs(%sums) {sum_heads}
    : tensor<?x64x128xbf16>, !index, tensor<?xi32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @top_rows(
// CHECK:         kvcache.top_rows %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) : memref<?x?xf32>, !kvcache.paged
// CHECK:         kvcache.top_rows %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}, %{{.*}}) lengths %{{.*}} {block_threads = 256 : i64, expand, first = 1 : i64, last = 2 : i64, tail, whole, width = 4 : i64} :
func.func @top_rows(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x2048xi32>,
                    %lengths: memref<?xi32>, %expanded: memref<?x2051xi32>, %tokens: memref<?x2051xi32>) {
  kvcache.top_rows %scores, %cache rows %n outs(%ids)
    : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x2048xi32>
  kvcache.top_rows %scores, %cache rows %n outs(%expanded, %tokens) lengths %lengths
    {width = 4, whole, expand, tail, first = 1, last = 2, block_threads = 256}
    : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x2051xi32>, memref<?x2051xi32>, memref<?xi32>
  return
}

// CHECK-LABEL: func.func @top_rows_of_heads_on_tensors(
// CHECK:         %{{.*}}:2 = kvcache.top_rows %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}, %{{.*}}) : {{.*}} -> tensor<?x4x16xi32>, tensor<?x4x16xi32>
func.func @top_rows_of_heads_on_tensors(%scores: tensor<?x4x?xf32>, %cache: !cache, %n: tensor<?xi32>,
                                        %ids: tensor<?x4x16xi32>, %tokens: tensor<?x4x16xi32>)
    -> (tensor<?x4x16xi32>, tensor<?x4x16xi32>) {
  %r:2 = kvcache.top_rows %scores, %cache rows %n outs(%ids, %tokens)
    : tensor<?x4x?xf32>, !cache, tensor<?xi32>, tensor<?x4x16xi32>, tensor<?x4x16xi32>
    -> tensor<?x4x16xi32>, tensor<?x4x16xi32>
  return %r#0, %r#1 : tensor<?x4x16xi32>, tensor<?x4x16xi32>
}

#kv2 = #kvcache.params<num_heads = 4, head_size = 128>
!layer = !kvcache.paged<bf16, #kv2, page_size = 128>

// CHECK-LABEL: func.func @rows_of_heads(
// CHECK:         kvcache.attention %{{.*}} outs(%{{.*}}) rows %{{.*}} : {{.*}}, memref<?x4x16xi32>
func.func @rows_of_heads(%q: memref<?x64x128xbf16>, %k: !layer, %v: !layer, %n: memref<?xi32>, %scale: f32,
                         %out: memref<?x64x128xbf16>, %rows: memref<?x4x16xi32>) {
  kvcache.attention %q, %k, %v, %n, %scale outs(%out) rows %rows
    : memref<?x64x128xbf16>, !layer, !layer, memref<?xi32>, f32, memref<?x64x128xbf16>, memref<?x4x16xi32>
  return
}

// CHECK-LABEL: func.func @top_rows_of_splits(
// CHECK:         kvcache.top_rows %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) lengths %{{.*}} workspace %{{.*}} : memref<?x?xf32>, {{.*}}, memref<?xi32>, memref<?x16x4096xi32>
func.func @top_rows_of_splits(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x2048xi32>,
                              %lengths: memref<?xi32>, %workspace: memref<?x16x4096xi32>) {
  kvcache.top_rows %scores, %cache rows %n outs(%ids) lengths %lengths workspace %workspace
    : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x2048xi32>, memref<?xi32>, memref<?x16x4096xi32>
  return
}

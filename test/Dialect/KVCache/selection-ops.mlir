// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

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

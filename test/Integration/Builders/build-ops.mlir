// Builders of ops on whole caches in C++ make ops that compute the right data,
// on memrefs and, with results, on tensors.

// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime
// RUN: %builder_tests/kvcache-build-ops %s > %t.mlir
// RUN: FileCheck %s --check-prefix=BUILT < %t.mlir
// RUN: kvcache-opt %t.mlir --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --kvcache-to-cpu | %{run} | FileCheck %s

#kv = #kvcache.params<num_heads = 1, head_size = 4>
!collection = !kvcache.paged_collection<f32, #kv, page_size = 2>
!cache = !kvcache.paged<f32, #kv, page_size = 2>

// Pages 2 and 0 are of the sequence with 3 tokens, pages 1 and 3 of the other.
memref.global "private" @blocks : memref<4x2x1x2x1x4xf32> = dense<0.0>
memref.global "private" constant @table : memref<2x2xi32> = dense<[[2, 0], [1, 3]]>
memref.global "private" constant @lengths : memref<2xi32> = dense<[0, 0]>
memref.global "private" constant @grown : memref<2xi32> = dense<[3, 1]>
memref.global "private" constant @rows : memref<3xi32> = dense<[0, 3, 4]>
memref.global "private" constant @one_each : memref<3xi32> = dense<[0, 1, 2]>
memref.global "private" constant @keys : memref<4x1x4xf32> =
    dense<[[[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0]], [[9.0, 10.0, 11.0, 12.0]], [[13.0, 14.0, 15.0, 16.0]]]>
memref.global "private" constant @values : memref<4x1x4xf32> =
    dense<[[[21.0, 22.0, 23.0, 24.0]], [[25.0, 26.0, 27.0, 28.0]], [[29.0, 30.0, 31.0, 32.0]], [[33.0, 34.0, 35.0, 36.0]]]>
memref.global "private" constant @tokens : memref<2x3xi32> = dense<[[0, 2, -1], [0, 1, -1]]>
memref.global "private" constant @splits : memref<2x1x1x4xf32> = dense<[[[[2.0, 4.0, 6.0, 8.0]]], [[[4.0, 8.0, 2.0, 0.0]]]]>
memref.global "private" constant @logs : memref<2x1x1xf32> = dense<0.0>
memref.global "private" constant @queries : memref<2x1x4xf32> = dense<0.0>

// BUILT-LABEL: func.func private @append
// BUILT:         kvcache.append %{{.*}}, %{{.*}} to %{{.*}}, %{{.*}} rows %{{.*}} :
func.func private @append(%k: memref<4x1x4xf32>, %v: memref<4x1x4xf32>, %keys: !cache, %values: !cache, %rows: memref<3xi32>)
    attributes {builds = "append"} {
  return
}

// BUILT-LABEL: func.func private @gather
// BUILT:         kvcache.gather %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) {block_threads = 512 : i64, heads_per_thread = 8 : i64} :
func.func private @gather(%keys: !cache, %values: !cache, %k: memref<2x3x1x4xf32>, %v: memref<2x3x1x4xf32>)
    attributes {builds = "gather"} {
  return
}

// BUILT-LABEL: func.func private @gather_keys
// BUILT:         kvcache.gather %{{[^,]*}} outs(%{{[^,]*}}) :
func.func private @gather_keys(%keys: !cache, %k: memref<2x3x1x4xf32>) attributes {builds = "gather_keys"} {
  return
}

// BUILT-LABEL: func.func private @copy
// BUILT:         kvcache.copy %{{.*}} to %{{.*}} :
func.func private @copy(%from: !cache, %to: !cache) attributes {builds = "copy"} {
  return
}

// BUILT-LABEL: func.func private @merge
// BUILT:         kvcache.merge_states %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) :
func.func private @merge(%splits: memref<2x1x1x4xf32>, %logs: memref<2x1x1xf32>, %out: memref<1x1x4xf32>, %log: memref<1x1xf32>)
    attributes {builds = "merge_states"} {
  return
}

// BUILT-LABEL: func.func private @remap
// BUILT:         kvcache.remap_rows %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) :
func.func private @remap(%tokens: memref<2x3xi32>, %cache: !cache, %rows: memref<3xi32>, %ids: memref<2x3xi32>)
    attributes {builds = "remap_rows"} {
  return
}

// BUILT-LABEL: func.func private @pool
// BUILT:         kvcache.pool %{{.*}} rows %{{.*}} outs(%{{.*}}) {width = 4 : i64} :
func.func private @pool(%cache: !cache, %rows: memref<3xi32>, %pooled: memref<2x1x4xf32>) attributes {builds = "pool"} {
  return
}

// BUILT-LABEL: func.func private @select
// BUILT:         kvcache.top_rows %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}, %{{.*}}) :
func.func private @select(%scores: memref<2x9xf32>, %cache: !cache, %rows: memref<3xi32>, %ids: memref<2x3xi32>,
                          %tokens: memref<2x3xi32>) attributes {builds = "top_rows"} {
  return
}

// BUILT-LABEL: func.func private @attend
// BUILT:         kvcache.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} outs(%{{[^,]*}}) :
func.func private @attend(%q: memref<2x1x4xf32>, %keys: !cache, %values: !cache, %rows: memref<3xi32>, %scale: f32,
                          %out: memref<2x1x4xf32>) attributes {builds = "attention"} {
  return
}

// On tensors, builders make the results.

// BUILT-LABEL: func.func @gather_tensors
// BUILT:         %[[OUTS:.*]]:2 = kvcache.gather
// BUILT:         return %[[OUTS]]#1
func.func @gather_tensors(%keys: !cache, %values: !cache, %k: tensor<2x3x1x4xf32>, %v: tensor<2x3x1x4xf32>) -> tensor<2x3x1x4xf32>
    attributes {builds = "gather"} {
  return %v : tensor<2x3x1x4xf32>
}

// BUILT-LABEL: func.func @merge_tensors
// BUILT:         %[[MERGED:.*]]:2 = kvcache.merge_states
// BUILT:         return %[[MERGED]]#1
func.func @merge_tensors(%splits: tensor<2x1x1x4xf32>, %logs: tensor<2x1x1xf32>, %out: tensor<1x1x4xf32>, %log: tensor<1x1xf32>)
    -> tensor<1x1xf32> attributes {builds = "merge_states"} {
  return %log : tensor<1x1xf32>
}

// BUILT-LABEL: func.func @remap_tensors
// BUILT:         %[[IDS:.*]] = kvcache.remap_rows
// BUILT:         return %[[IDS]]
func.func @remap_tensors(%tokens: tensor<2x3xi32>, %cache: !cache, %rows: tensor<3xi32>, %ids: tensor<2x3xi32>) -> tensor<2x3xi32>
    attributes {builds = "remap_rows"} {
  return %ids : tensor<2x3xi32>
}

// BUILT-LABEL: func.func @select_tensors
// BUILT:         %[[SELECTED:.*]]:2 = kvcache.top_rows
// BUILT:         return %[[SELECTED]]#1
func.func @select_tensors(%scores: tensor<2x9xf32>, %cache: !cache, %rows: tensor<3xi32>, %ids: tensor<2x3xi32>,
                          %tokens: tensor<2x3xi32>) -> tensor<2x3xi32> attributes {builds = "top_rows"} {
  return %tokens : tensor<2x3xi32>
}

func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}

func.func private @print(%array: memref<2x3x1x4xf32>) {
  %flat = memref.collapse_shape %array [[0, 1], [2, 3]] : memref<2x3x1x4xf32> into memref<6x4xf32>
  %any = memref.cast %flat : memref<6x4xf32> to memref<*xf32>
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  return
}

func.func private @view(%lengths: memref<2xi32>) -> (!cache, !cache) {
  %c0 = arith.constant 0 : index
  %max_seq = arith.constant 3 : i32
  %max_cache = arith.constant 4 : i32
  %static = memref.get_global @blocks : memref<4x2x1x2x1x4xf32>
  %blocks = memref.cast %static : memref<4x2x1x2x1x4xf32> to memref<?x2x?x2x1x4xf32>
  %table = memref.get_global @table : memref<2x2xi32>
  %cache = kvcache.paged_collection %blocks, %lengths, %table, %max_seq, %max_cache
      : memref<?x2x?x2x1x4xf32>, memref<2xi32>, memref<2x2xi32> -> !collection
  %keys = kvcache.paged_view key %cache[%c0] : !collection
  %values = kvcache.paged_view value %cache[%c0] : !collection
  return %keys, %values : !cache, !cache
}

func.func @main() {
  %zero = arith.constant 0.0 : f32
  %lengths = memref.get_global @lengths : memref<2xi32>
  %grown = memref.get_global @grown : memref<2xi32>
  %rows = memref.get_global @rows : memref<3xi32>
  %one_each = memref.get_global @one_each : memref<3xi32>
  %k = memref.get_global @keys : memref<4x1x4xf32>
  %v = memref.get_global @values : memref<4x1x4xf32>
  %old_keys, %old_values = call @view(%lengths) : (memref<2xi32>) -> (!cache, !cache)
  %keys, %values = call @view(%grown) : (memref<2xi32>) -> (!cache, !cache)
  call @append(%k, %v, %old_keys, %old_values, %rows)
      : (memref<4x1x4xf32>, memref<4x1x4xf32>, !cache, !cache, memref<3xi32>) -> ()

  // CHECK:      [1,   2,   3,   4],
  // CHECK-NEXT: [5,   6,   7,   8],
  // CHECK-NEXT: [9,   10,   11,   12],
  // CHECK-NEXT: [13,   14,   15,   16],
  // CHECK-NEXT: [0,   0,   0,   0],
  // CHECK-NEXT: [0,   0,   0,   0]
  // CHECK:      [21,   22,   23,   24],
  // CHECK-NEXT: [25,   26,   27,   28],
  // CHECK-NEXT: [29,   30,   31,   32],
  // CHECK-NEXT: [33,   34,   35,   36],
  // CHECK-NEXT: [0,   0,   0,   0],
  // CHECK-NEXT: [0,   0,   0,   0]
  %gathered_keys = memref.alloc() : memref<2x3x1x4xf32>
  %gathered_values = memref.alloc() : memref<2x3x1x4xf32>
  call @gather(%keys, %values, %gathered_keys, %gathered_values)
      : (!cache, !cache, memref<2x3x1x4xf32>, memref<2x3x1x4xf32>) -> ()
  call @print(%gathered_keys) : (memref<2x3x1x4xf32>) -> ()
  call @print(%gathered_values) : (memref<2x3x1x4xf32>) -> ()

  // All scores are 0: the mean of the values of a sequence.
  // CHECK:      [25,   26,   27,   28],
  // CHECK-NEXT: [33,   34,   35,   36]
  %q = memref.get_global @queries : memref<2x1x4xf32>
  %attended = memref.alloc() : memref<2x1x4xf32>
  %before = memref.alloc() : memref<2xi32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2 : i32
  %none = arith.constant 0 : i32
  memref.store %two, %before[%c0] : memref<2xi32>
  memref.store %none, %before[%c1] : memref<2xi32>
  %seen_keys, %seen_values = call @view(%before) : (memref<2xi32>) -> (!cache, !cache)
  call @attend(%q, %seen_keys, %seen_values, %one_each, %zero, %attended)
      : (memref<2x1x4xf32>, !cache, !cache, memref<3xi32>, f32, memref<2x1x4xf32>) -> ()
  %attended_flat = memref.collapse_shape %attended [[0], [1, 2]] : memref<2x1x4xf32> into memref<2x4xf32>
  %attended_any = memref.cast %attended_flat : memref<2x4xf32> to memref<*xf32>
  call @printMemrefF32(%attended_any) : (memref<*xf32>) -> ()

  // Pages 2 and 0, and page 1.
  // CHECK:      [4,   0,   -1],
  // CHECK-NEXT: [2,   3,   -1]
  %tokens = memref.get_global @tokens : memref<2x3xi32>
  %ids = memref.alloc() : memref<2x3xi32>
  call @remap(%tokens, %keys, %one_each, %ids) : (memref<2x3xi32>, !cache, memref<3xi32>, memref<2x3xi32>) -> ()
  %ids_any = memref.cast %ids : memref<2x3xi32> to memref<*xi32>
  call @printMemrefI32(%ids_any) : (memref<*xi32>) -> ()

  // Both splits have the same sum: their mean, and the logarithm of 2.
  // CHECK:      [3,   6,   4,   4]
  // CHECK:      [0.69314{{[0-9]*}}]
  %splits = memref.get_global @splits : memref<2x1x1x4xf32>
  %logs = memref.get_global @logs : memref<2x1x1xf32>
  %out = memref.alloc() : memref<1x1x4xf32>
  %log = memref.alloc() : memref<1x1xf32>
  call @merge(%splits, %logs, %out, %log)
      : (memref<2x1x1x4xf32>, memref<2x1x1xf32>, memref<1x1x4xf32>, memref<1x1xf32>) -> ()
  %out_flat = memref.collapse_shape %out [[0, 1, 2]] : memref<1x1x4xf32> into memref<4xf32>
  %out_any = memref.cast %out_flat : memref<4xf32> to memref<*xf32>
  call @printMemrefF32(%out_any) : (memref<*xf32>) -> ()
  %log_flat = memref.collapse_shape %log [[0, 1]] : memref<1x1xf32> into memref<1xf32>
  %log_any = memref.cast %log_flat : memref<1xf32> to memref<*xf32>
  call @printMemrefF32(%log_any) : (memref<*xf32>) -> ()

  // Keys to where the values are.
  // CHECK:      [1,   2,   3,   4],
  // CHECK-NEXT: [5,   6,   7,   8],
  // CHECK-NEXT: [9,   10,   11,   12],
  // CHECK-NEXT: [13,   14,   15,   16],
  call @copy(%keys, %values) : (!cache, !cache) -> ()
  call @gather_keys(%values, %gathered_values) : (!cache, memref<2x3x1x4xf32>) -> ()
  call @print(%gathered_values) : (memref<2x3x1x4xf32>) -> ()
  return
}

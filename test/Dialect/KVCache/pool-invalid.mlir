// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of pool
func.func @elements_of_means(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x128xf32>) {
  // expected-error @below {{expects 'pooled' to have 2 heads of 64 elements, got 2 of 128}}
  kvcache.pool %cache rows %n outs(%out) {width = 4} : !cache, memref<?xi32>, memref<?x2x128xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of pool
func.func @elements_of_largest_and_smallest(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x64xf32>) {
  // expected-error @below {{expects 'pooled' to have 2 heads of 128 elements, got 2 of 64}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, min_max} : !cache, memref<?xi32>, memref<?x2x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of pool
func.func @strided_summaries(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x64xf32, strided<[256, 128, 1]>>) {
  // expected-error @below {{expects the heads and elements of 'pooled' to be packed}}
  kvcache.pool %cache rows %n outs(%out) {width = 4} : !cache, memref<?xi32>, memref<?x2x64xf32, strided<[256, 128, 1]>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C2) of pool
func.func @block_threads_of_pool(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x64xf32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, block_threads = 1056} : !cache, memref<?xi32>, memref<?x2x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// The range of width of pool
func.func @width_of_pool(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x64xf32>) {
  // expected-error @below {{attribute 'width' failed to satisfy constraint}}
  kvcache.pool %cache rows %n outs(%out) {width = 0} : !cache, memref<?xi32>, memref<?x2x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of pool
func.func @elements_of_gated_means(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x64xf32>) {
  // expected-error @below {{expects 'pooled' to have 2 heads of 32 elements, got 2 of 64}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, gated} : !cache, memref<?xi32>, memref<?x2x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of pool
func.func @elements_of_overlap(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x32xf32>) {
  // expected-error @below {{expects 'pooled' to have 2 heads of 16 elements, got 2 of 32}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, gated, overlap} : !cache, memref<?xi32>, memref<?x2x32xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C4) of pool
func.func @two_kinds(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x32xf32>) {
  // expected-error @below {{expects at most one of 'gated' and 'min_max'}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, gated, min_max} : !cache, memref<?xi32>, memref<?x2x32xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C5) of pool
func.func @overlap_of_means(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x64xf32>) {
  // expected-error @below {{expects 'overlap' only with 'gated'}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, overlap} : !cache, memref<?xi32>, memref<?x2x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 63>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C6) of pool
func.func @gates_of_odd_heads(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x31xf32>) {
  // expected-error @below {{expects the head size of 'cache' to be a multiple of 2, got 63}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, gated} : !cache, memref<?xi32>, memref<?x2x31xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 66>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C6) of pool
func.func @halves_of_gates(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x16xf32>) {
  // expected-error @below {{expects the head size of 'cache' to be a multiple of 4, got 66}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, gated, overlap} : !cache, memref<?xi32>, memref<?x2x16xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 68>
!cache = !kvcache.paged<i4, #kv, page_size = 16, scale = f32, granularity = 4, zero_point = f32>

// (C6) of pool
func.func @halves_of_pairs(%cache: !cache, %n: memref<?xi32>, %out: memref<?x1x17xf32>) {
  // expected-error @below {{expects the head size of 'cache' to be a multiple of 8, got 68}}
  kvcache.pool %cache rows %n outs(%out) {width = 4, gated, overlap} : !cache, memref<?xi32>, memref<?x1x17xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C7) of pool
func.func @elements_of_new_keys(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x32xf32>, %new: memref<?x2x32xf32>) {
  // expected-error @below {{expects 'new_rows' to have 2 heads of 64 elements, got 2 of 32}}
  kvcache.pool %cache rows %n outs(%out) new %new {width = 4, gated} : !cache, memref<?xi32>, memref<?x2x32xf32>, memref<?x2x32xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C7) of pool
func.func @strided_new_keys(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x32xf32>, %new: memref<?x2x64xf32, strided<[256, 128, 1]>>) {
  // expected-error @below {{expects the heads and elements of 'new_rows' to be packed}}
  kvcache.pool %cache rows %n outs(%out) new %new {width = 4, gated} : !cache, memref<?xi32>, memref<?x2x32xf32>, memref<?x2x64xf32, strided<[256, 128, 1]>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C7) of pool
func.func @rows_of_new_keys(%cache: !cache, %n: memref<?xi32>, %out: memref<3x2x32xf32>, %new: memref<2x2x64xf32>) {
  // expected-error @below {{expects operands with one number of rows, got 3 and 2}}
  kvcache.pool %cache rows %n outs(%out) new %new {width = 4, gated} : !cache, memref<?xi32>, memref<3x2x32xf32>, memref<2x2x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C8) of pool
func.func @summaries_in_place(%cache: !cache, %n: memref<?xi32>, %out: memref<?x2x64xf32>) {
  // expected-error @below {{expects 'pooled' to share no memory with 'new_rows', got one memref for both}}
  kvcache.pool %cache rows %n outs(%out) new %out {width = 4} : !cache, memref<?xi32>, memref<?x2x64xf32>, memref<?x2x64xf32>
  return
}

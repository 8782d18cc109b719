// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of index_scores
func.func @dynamic_index_heads(%q: memref<?x?x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects 'q' to have a static number of heads from 1 to 64, got 'memref<?x?x64xbf16>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x?x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of index_scores
func.func @too_many_index_heads(%q: memref<?x65x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects 'q' to have a static number of heads from 1 to 64, got 'memref<?x65x64xbf16>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x65x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 48>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of index_scores
func.func @index_head_size(%q: memref<?x4x48xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects the head size of 'cache' to be a multiple of 32, got 48}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x4x48xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of index_scores
func.func @elements_of_index_queries(%q: memref<?x4x32xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects 'q' to have 4 heads of 64 elements, got 4 of 32}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x4x32xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C2) of index_scores
func.func @heads_of_index_cache(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects 'cache' to have one head, got 2}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<i4, #kv, page_size = 16, scale = f16, granularity = 32, zero_point = f16>

// (C2) of index_scores
func.func @zero_points_of_index_cache(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects 'cache' to have no zero points}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C3) of index_scores
func.func @scores_of_summed_heads(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x4x?xf32>) {
  // expected-error @below {{expects 'scores' to have 2 dimensions with 'sum_heads', got 'memref<?x4x?xf32>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x4x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C3) of index_scores
func.func @scores_of_heads(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects 'scores' to have 3 dimensions without 'sum_heads', got 'memref<?x?xf32>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {relu} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C3) of index_scores
func.func @heads_of_scores(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x8x?xf32>) {
  // expected-error @below {{expects 'scores' to have the 4 heads of 'q', got 'memref<?x8x?xf32>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x8x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C4) of index_scores
func.func @heads_of_weights(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>, %w: memref<?x8xf32>) {
  // expected-error @below {{expects 'weights' to have the 4 heads of 'q', got 'memref<?x8xf32>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) weights %w {sum_heads} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>, memref<?x8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C4) of index_scores
func.func @rows_of_weights(%q: memref<3x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>, %w: memref<2x4xf32>) {
  // expected-error @below {{expects operands with one number of rows, got 3 and 2}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) weights %w {sum_heads} : memref<3x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>, memref<2x4xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C5) of index_scores
func.func @scores_that_are_weights(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %w: memref<?x4xf32>) {
  // expected-error @below {{expects 'scores' to share no memory with 'weights', got one memref for both}}
  kvcache.index_scores %q, %cache rows %n outs(%w) weights %w {sum_heads} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<?x4xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C8) of index_scores
func.func @width_without_lengths(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{'kvcache.index_scores' op expects 'lengths' with 'width' (4)}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads, width = 4} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C6) of index_scores
func.func @block_threads_of_index_scores(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads, block_threads = 48} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1) of index_scores
func.func @bytes_of_index_queries(%q: memref<?x4x31xi8>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>, %s: memref<?x4x2xf8E8M0FNU>) {
  // expected-error @below {{expects 'q' to have 4 heads of 32 elements, got 4 of 31}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) q_scales %s {sum_heads} : memref<?x4x31xi8>, !cache, memref<?xi32>, memref<?x?xf32>, memref<?x4x2xf8E8M0FNU>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C4) of index_scores
func.func @rows_of_query_scales(%q: memref<3x4x32xi8>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>, %s: memref<2x4x2xf8E8M0FNU>) {
  // expected-error @below {{expects operands with one number of rows, got 3 and 2}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) q_scales %s {sum_heads} : memref<3x4x32xi8>, !cache, memref<?xi32>, memref<?x?xf32>, memref<2x4x2xf8E8M0FNU>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of index_scores
func.func @bytes_without_scales(%q: memref<?x4x32xi8>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  // expected-error @below {{expects 'q' to have elements of i8 with 'q_scales', and only then, got 'memref<?x4x32xi8>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x4x32xi8>, !cache, memref<?xi32>, memref<?x?xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of index_scores
func.func @scales_of_floats(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>, %s: memref<?x4x2xf8E8M0FNU>) {
  // expected-error @below {{expects 'q' to have elements of i8 with 'q_scales', and only then, got 'memref<?x4x64xbf16>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) q_scales %s {sum_heads} : memref<?x4x64xbf16>, !cache, memref<?xi32>, memref<?x?xf32>, memref<?x4x2xf8E8M0FNU>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C10) of index_scores
func.func @groups_of_query_scales(%q: memref<?x4x32xi8>, %cache: !cache, %n: memref<?xi32>, %scores: memref<?x?xf32>, %s: memref<?x4x4xf8E8M0FNU>) {
  // expected-error @below {{expects 'q_scales' to have 4 heads of 2 elements, got 4 of 4}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) q_scales %s {sum_heads} : memref<?x4x32xi8>, !cache, memref<?xi32>, memref<?x?xf32>, memref<?x4x4xf8E8M0FNU>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C11) of index_scores
func.func @batch_of_index_scores(%q: memref<?x4x64xbf16>, %cache: !cache, %n: memref<4xi32>, %scores: memref<?x?xf32>, %lengths: memref<2xi32>) {
  // expected-error @below {{expects 'lengths' to have a number for each sequence of 'row_offsets', got 'memref<2xi32>' and 'memref<4xi32>'}}
  kvcache.index_scores %q, %cache rows %n outs(%scores) lengths %lengths {sum_heads} : memref<?x4x64xbf16>, !cache, memref<4xi32>, memref<?x?xf32>, memref<2xi32>
  return
}

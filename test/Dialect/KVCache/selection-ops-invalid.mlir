// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1)
func.func @dimensions(%scores: memref<?x2x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'ids' to have the 3 dimensions of 'scores', got 'memref<?x8xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) : memref<?x2x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1)
func.func @rows(%scores: memref<3x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<4x8xi32>) {
  // expected-error @below {{expects operands with one number of rows, got 3 and 4}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) : memref<3x?xf32>, !cache, memref<?xi32>, memref<4x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1)
func.func @heads(%scores: memref<?x2x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x4x8xi32>) {
  // expected-error @below {{expects operands with one number of heads, got 2 and 4}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) : memref<?x2x?xf32>, !cache, memref<?xi32>, memref<?x4x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C1)
func.func @shape_of_tokens(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %tokens: memref<?x9xi32>) {
  // expected-error @below {{expects 'tokens' to have the shape of 'ids', got 'memref<?x9xi32>' and 'memref<?x8xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids, %tokens) : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x9xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C2)
func.func @dynamic_columns(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x?xi32>) {
  // expected-error @below {{expects 'ids' to have a static number of columns, got 'memref<?x?xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C2)
func.func @no_columns(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x0xi32>) {
  // expected-error @below {{expects 'ids' to have 1 columns for each selected candidate and 0 for the tail, got 0}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x0xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C2)
func.func @columns_of_candidates(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'ids' to have 4 columns for each selected candidate and 3 for the tail, got 8}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {width = 4, whole, expand, tail} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C2)
func.func @too_many_candidates(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x4097xi32>) {
  // expected-error @below {{expects 'ids' to have columns for at most 4096 candidates, got 4097}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x4097xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C3)
func.func @forced_candidates(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'first' (5) and 'last' (4) to be at most the 8 selected candidates together}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {first = 5, last = 4} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C3)
func.func @huge_first(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'first' (9223372036854775807) and 'last' (9223372036854775807) to be at most the 8 selected}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {first = 9223372036854775807, last = 9223372036854775807} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C4)
func.func @tail_without_whole(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'tail' only with 'whole' and 'expand'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {expand, tail} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C4)
func.func @tail_without_expand(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'tail' only with 'whole' and 'expand'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {whole, tail} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>>

// (C5)
func.func @scales(%scores: memref<?x?xf32>, %cache: !scales, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'cache' not to be a view of scales}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) : memref<?x?xf32>, !scales, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C6)
func.func @ids_that_are_tokens(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{expects 'tokens' to share no memory with 'ids', got one memref for both}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids, %ids) : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C7)
func.func @block_threads(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {block_threads = 48} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// The range of width
func.func @width(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{attribute 'width' failed to satisfy constraint}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {width = 0} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// The range of first
func.func @negative_first(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>) {
  // expected-error @below {{attribute 'first' failed to satisfy constraint}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {first = -1} : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>
  return
}

// -----

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

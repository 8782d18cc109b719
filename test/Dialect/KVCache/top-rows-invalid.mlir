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

// (C9) of top_rows
func.func @dimensions_of_workspace(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %workspace: memref<?x2x4x16xi32>) {
  // expected-error @below {{expects 'workspace' to have 3 dimensions, got 'memref<?x2x4x16xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x2x4x16xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of top_rows
func.func @rows_of_workspace(%scores: memref<3x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<3x8xi32>, %workspace: memref<2x4x16xi32>) {
  // expected-error @below {{expects operands with one number of rows, got 3 and 2}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<3x?xf32>, !cache, memref<?xi32>, memref<3x8xi32>, memref<2x4x16xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of top_rows
func.func @heads_of_workspace(%scores: memref<?x3x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x3x8xi32>, %workspace: memref<?x2x4x16xi32>) {
  // expected-error @below {{expects operands with one number of heads, got 3 and 2}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x3x?xf32>, !cache, memref<?xi32>, memref<?x3x8xi32>, memref<?x2x4x16xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of top_rows
func.func @splits_of_workspace(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %workspace: memref<?x1x16xi32>) {
  // expected-error @below {{expects 'workspace' to have a static number of splits from 2 to 256, got 'memref<?x1x16xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x1x16xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of top_rows
func.func @dynamic_splits_of_workspace(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %workspace: memref<?x?x16xi32>) {
  // expected-error @below {{expects 'workspace' to have a static number of splits from 2 to 256, got 'memref<?x?x16xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x?x16xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of top_rows
func.func @numbers_of_workspace(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %workspace: memref<?x4x8xi32>) {
  // expected-error @below {{expects 'workspace' to have 16 numbers for each split, got 'memref<?x4x8xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x4x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C8) of top_rows
func.func @elements_of_workspace(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %workspace: memref<?x4x16xi32, strided<[?, 8, 1]>>) {
  // expected-error @below {{expects the elements of 'workspace' to share no memory, got 'memref<?x4x16xi32, strided<[?, 8, 1]>>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x4x16xi32, strided<[?, 8, 1]>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C9) of top_rows
func.func @space_of_workspace(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %workspace: memref<?x2x16xi32, 3>) {
  // expected-error @below {{expects 'workspace' in the default memory space, got 'memref<?x2x16xi32, 3>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x2x16xi32, 3>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>

// (C10) of top_rows
func.func @batch(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<4xi32>, %ids: memref<?x8xi32>, %lengths: memref<2xi32>) {
  // expected-error @below {{expects 'lengths' to have a number for each sequence of 'row_offsets', got 'memref<2xi32>' and 'memref<4xi32>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids) lengths %lengths : memref<?x?xf32>, !cache, memref<4xi32>, memref<?x8xi32>, memref<2xi32>
  return
}

// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// One row, dynamic strides, rows apart, and no rows share none.
func.func @elements_apart(%cache: !cache, %one: memref<1x1x8x128xbf16, strided<[0, 0, 128, 1]>>, %dynamic: memref<?x?x8x128xbf16, strided<[?, ?, 128, 1]>>, %padded: memref<2x?x8x128xbf16, strided<[1152, 2304, 128, 1]>>, %none: memref<0x?x8x128xbf16, strided<[0, 0, 128, 1]>>) {
  kvcache.gather %cache outs(%one) : !cache, memref<1x1x8x128xbf16, strided<[0, 0, 128, 1]>>
  kvcache.gather %cache outs(%dynamic) : !cache, memref<?x?x8x128xbf16, strided<[?, ?, 128, 1]>>
  kvcache.gather %cache outs(%padded) : !cache, memref<2x?x8x128xbf16, strided<[1152, 2304, 128, 1]>>
  kvcache.gather %cache outs(%none) : !cache, memref<0x?x8x128xbf16, strided<[0, 0, 128, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C15)
func.func @append_queries(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16, strided<[0, 128, 1]>>) {
  // expected-error @below {{expects the elements of 'queries' to share no memory, got 'memref<?x8x128xbf16, strided<[0, 128, 1]>>'}}
  kvcache.append %k to %cache rows %n queries %q : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16, strided<[0, 128, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C15)
func.func @append_query_out(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16, strided<[0, 128, 1]>>, %o: memref<?x8x128xf8E4M3FN, strided<[512, 128, 1]>>) {
  // expected-error @below {{expects the elements of 'query_out' to share no memory, got 'memref<?x8x128xf8E4M3FN, strided<[512, 128, 1]>>'}}
  kvcache.append %k to %cache rows %n queries %q query_out %o : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16, strided<[0, 128, 1]>>, memref<?x8x128xf8E4M3FN, strided<[512, 128, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C6)
func.func @gather_keys(%cache: !cache, %out: memref<?x?x8x128xbf16, strided<[?, 1023, 128, 1]>>) {
  // expected-error @below {{expects the elements of 'keys' to share no memory, got 'memref<?x?x8x128xbf16, strided<[?, 1023, 128, 1]>>'}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x?x8x128xbf16, strided<[?, 1023, 128, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C6)
func.func @gather_values(%cache: !cache, %keys: memref<2x40x8x128xbf16>, %out: memref<2x40x8x128xbf16, strided<[39936, 1024, 128, 1]>>) {
  // expected-error @below {{expects the elements of 'values' to share no memory, got 'memref<2x40x8x128xbf16, strided<[39936, 1024, 128, 1]>>'}}
  kvcache.gather %cache, %cache outs(%keys, %out) : !cache, !cache, memref<2x40x8x128xbf16>, memref<2x40x8x128xbf16, strided<[39936, 1024, 128, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C24)
func.func @attention_out(%q: memref<?x8x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x8x128xbf16, strided<[0, 128, 1]>>) {
  // expected-error @below {{expects the elements of 'out' to share no memory, got 'memref<?x8x128xbf16, strided<[0, 128, 1]>>'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16, strided<[0, 128, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C24)
func.func @attention_lse(%q: memref<?x8x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x8x128xbf16>, %lse: memref<?x8xf32, strided<[0, 1]>>) {
  // expected-error @below {{expects the elements of 'lse' to share no memory, got 'memref<?x8xf32, strided<[0, 1]>>'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out, %lse) : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?x8xf32, strided<[0, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C24)
func.func @attention_max_logits(%q: memref<?x8x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x8x128xbf16>, %m: memref<?x8xf32, strided<[0, 1]>>) {
  // expected-error @below {{expects the elements of 'max_logits' to share no memory, got 'memref<?x8xf32, strided<[0, 1]>>'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) max_logits %m : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?x8xf32, strided<[0, 1]>>
  return
}

// -----

// (C11)
func.func @merge_splits_out(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x8x128xbf16, strided<[128, 128, 1]>>) {
  // expected-error @below {{expects the elements of 'out' to share no memory, got 'memref<?x8x128xbf16, strided<[128, 128, 1]>>'}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x8x128xbf16, strided<[128, 128, 1]>>
  return
}

// -----

// (C11)
func.func @merge_splits_lse(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x8x128xbf16>, %lse: memref<?x8xf32, strided<[0, 1]>>) {
  // expected-error @below {{expects the elements of 'lse' to share no memory, got 'memref<?x8xf32, strided<[0, 1]>>'}}
  kvcache.merge_splits %w, %n outs(%out, %lse) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x8x128xbf16>, memref<?x8xf32, strided<[0, 1]>>
  return
}

// -----

// (C11)
func.func @merge_splits_max_logits(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x8x128xbf16>, %m: memref<?x8xf32, strided<[0, 1]>>) {
  // expected-error @below {{expects the elements of 'max_logits' to share no memory, got 'memref<?x8xf32, strided<[0, 1]>>'}}
  kvcache.merge_splits %w, %n outs(%out) max_logits %m count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x8x128xbf16>, memref<?x8xf32, strided<[0, 1]>>
  return
}

// -----

// (C4)
func.func @merge_states_out(%p: memref<?x?x8x128xbf16>, %l: memref<?x?x8xf32>, %out: memref<?x8x128xbf16, strided<[0, 128, 1]>>, %lse: memref<?x8xf32>) {
  // expected-error @below {{expects the elements of 'out' to share no memory, got 'memref<?x8x128xbf16, strided<[0, 128, 1]>>'}}
  kvcache.merge_states %p, %l outs(%out, %lse) : memref<?x?x8x128xbf16>, memref<?x?x8xf32>, memref<?x8x128xbf16, strided<[0, 128, 1]>>, memref<?x8xf32>
  return
}

// -----

// (C4)
func.func @merge_states_lse(%p: memref<?x?x8x128xbf16>, %l: memref<?x?x8xf32>, %out: memref<?x8x128xbf16>, %lse: memref<?x8xf32, strided<[0, 1]>>) {
  // expected-error @below {{expects the elements of 'lse' to share no memory, got 'memref<?x8xf32, strided<[0, 1]>>'}}
  kvcache.merge_states %p, %l outs(%out, %lse) : memref<?x?x8x128xbf16>, memref<?x?x8xf32>, memref<?x8x128xbf16>, memref<?x8xf32, strided<[0, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4)
func.func @remap_rows_ids(%tokens: memref<?x4xi32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x4xi32, strided<[3, 1]>>) {
  // expected-error @below {{expects the elements of 'ids' to share no memory, got 'memref<?x4xi32, strided<[3, 1]>>'}}
  kvcache.remap_rows %tokens, %cache rows %n outs(%ids) : memref<?x4xi32>, !cache, memref<?xi32>, memref<?x4xi32, strided<[3, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C8)
func.func @top_rows_ids(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x4xi32, strided<[0, 1]>>, %tokens: memref<?x4xi32>) {
  // expected-error @below {{expects the elements of 'ids' to share no memory, got 'memref<?x4xi32, strided<[0, 1]>>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids, %tokens) : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x4xi32, strided<[0, 1]>>, memref<?x4xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C8)
func.func @top_rows_tokens(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x4xi32>, %tokens: memref<?x4xi32, strided<[0, 1]>>) {
  // expected-error @below {{expects the elements of 'tokens' to share no memory, got 'memref<?x4xi32, strided<[0, 1]>>'}}
  kvcache.top_rows %scores, %cache rows %n outs(%ids, %tokens) : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x4xi32>, memref<?x4xi32, strided<[0, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 1, head_size = 32>, page_size = 16>

// (C3) of pool
func.func @rows_of_pool(%cache: !cache, %n: memref<?xi32>, %out: memref<?x1x32xf32, strided<[0, 32, 1]>>) {
  // expected-error @below {{'kvcache.pool' op expects the elements of 'pooled' to share no memory, got 'memref<?x1x32xf32, strided<[0, 32, 1]>>'}}
  kvcache.pool %cache rows %n outs(%out) {width = 4} : !cache, memref<?xi32>, memref<?x1x32xf32, strided<[0, 32, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 1, head_size = 32>, page_size = 16>

// (C7) of index_scores
func.func @rows_of_index_scores(%q: memref<?x4x32xbf16>, %cache: !cache, %n: memref<?xi32>, %out: memref<?x?xf32, strided<[0, 1]>>) {
  // expected-error @below {{'kvcache.index_scores' op expects the elements of 'scores' to share no memory, got 'memref<?x?xf32, strided<[0, 1]>>'}}
  kvcache.index_scores %q, %cache rows %n outs(%out) {sum_heads} : memref<?x4x32xbf16>, !cache, memref<?xi32>, memref<?x?xf32, strided<[0, 1]>>
  return
}

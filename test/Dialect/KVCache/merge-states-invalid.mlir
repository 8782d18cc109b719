// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1)
func.func @c1_rows_of_merge_states(%p: memref<1x2x1x4xf32>, %l: memref<1x2x1xf32>, %o: memref<1x1x4xf32>, %s: memref<1x1xf32>) {
  // expected-error @below {{'kvcache.merge_states' op expects operands with one number of rows, got 2 and 1}}
  kvcache.merge_states %p, %l outs(%o, %s) : memref<1x2x1x4xf32>, memref<1x2x1xf32>, memref<1x1x4xf32>, memref<1x1xf32>
  return
}

// -----

func.func @c1_splits_of_merge_states(%p: memref<3x?x1x4xf32>, %l: memref<2x?x1xf32>, %o: memref<?x1x4xf32>, %s: memref<?x1xf32>) {
  // expected-error @below {{'kvcache.merge_states' op expects operands with one number of splits, got 3 and 2}}
  kvcache.merge_states %p, %l outs(%o, %s) : memref<3x?x1x4xf32>, memref<2x?x1xf32>, memref<?x1x4xf32>, memref<?x1xf32>
  return
}

// -----

func.func @c1_merge_states(%p: memref<?x?x32x128xbf16>, %l: memref<?x?x8xf32>, %o: memref<?x32x128xbf16>, %s: memref<?x32xf32>) {
  // expected-error @below {{expects 'lses' to have 32 heads, got 'memref<?x?x8xf32>'}}
  kvcache.merge_states %p, %l outs(%o, %s) : memref<?x?x32x128xbf16>, memref<?x?x8xf32>, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C2)
func.func @c2_threads_of_merge_states(%splits: memref<?x?x8x128xbf16>, %lses: memref<?x?x8xf32>, %out: memref<?x8x128xbf16>, %lse: memref<?x8xf32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.merge_states %splits, %lses outs(%out, %lse) {block_threads = -32} : memref<?x?x8x128xbf16>, memref<?x?x8xf32>, memref<?x8x128xbf16>, memref<?x8xf32>
  return
}

// -----

// (C3)
func.func @c3_scale_of_bf16(%p: memref<?x?x32x128xbf16>, %l: memref<?x?x32xf32>, %o: memref<?x32x128xbf16>, %s: memref<?x32xf32>, %f: f32) {
  // expected-error @below {{expects 'out_scale' only for 'out' of fp8, got 'memref<?x32x128xbf16>'}}
  kvcache.merge_states %p, %l outs(%o, %s) out_scale %f : memref<?x?x32x128xbf16>, memref<?x?x32xf32>, memref<?x32x128xbf16>, memref<?x32xf32>, f32
  return
}

// -----

// (C3)
func.func @c3_heads_of_scale(%p: memref<?x?x32x128xbf16>, %l: memref<?x?x32xf32>, %o: memref<?x32x128xf8E4M3FN>, %s: memref<?x32xf32>, %f: memref<8xf32>) {
  // expected-error @below {{expects 'out_scale' to have the 32 heads of 'out', got 'memref<8xf32>'}}
  kvcache.merge_states %p, %l outs(%o, %s) out_scale %f : memref<?x?x32x128xbf16>, memref<?x?x32xf32>, memref<?x32x128xf8E4M3FN>, memref<?x32xf32>, memref<8xf32>
  return
}

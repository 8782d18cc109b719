// RUN: kvcache-opt %s --kvcache-split-attention --verify-diagnostics
// RUN: not kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-tile-attention=chip=sm_90a 2>&1 | FileCheck %s
// RUN: not kvcache-opt %s --kvcache-expand-ops=for-gpu 2>&1 | FileCheck %s
// RUN: not kvcache-opt %s --kvcache-expand-ops 2>&1 | FileCheck %s --check-prefix=CPU

// Without a plan, the rows that have the same splits are not known. Kernels do not merge splits.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK: error: 'kvcache.attention' op expects 'partial' with 'workspace': 'kvcache-split-attention' adds it, and the op that merges splits
func.func @no_config(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects a 'config' that has 'mma', 'rows', 'keys' and 'dequant', which 'kvcache-plan-attention' chooses}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// The exponents in the workspace depend on where elements are converted.
func.func @no_dequant(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects a 'config' that has 'mma', 'rows', 'keys' and 'dequant', which 'kvcache-plan-attention' chooses}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<mma = mma_sync, rows = 16, keys = 32>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// CPU: error: 'kvcache.attention' op expects 'merge_splits' of its 'workspace' and 'out' after 'partial' on a CPU, which splits no rows
func.func @no_merge(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// On a CPU, the two ops become one, so they have the same operands.

// CPU: error: 'kvcache.merge_splits' op expects 'row_offsets' of the 'attention' before on a CPU, which splits no rows
func.func @other_offsets(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %other: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.merge_splits %w, %other outs(%out) count {
  ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
    kvcache.yield %i : index
  } : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// CPU: error: 'kvcache.merge_splits' op expects 'lse' of the 'attention' before
func.func @other_lse(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.merge_splits %w, %n outs(%out, %lse) count {
  ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
    kvcache.yield %i : index
  } : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// CPU: error: 'kvcache.merge_splits' op expects 'sinks' of the 'attention' before
func.func @other_sinks(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>, %sinks: memref<32xf32>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.merge_splits %w, %n outs(%out) sinks %sinks count {
  ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
    kvcache.yield %i : index
  } : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<32xf32>
  return
}

// CPU: error: 'kvcache.merge_splits' op expects 'split' of the 'attention' before
func.func @other_split(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, split = #kvcache.split<keys = 512>, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.merge_splits %w, %n outs(%out) count {
  ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
    kvcache.yield %i : index
  } : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

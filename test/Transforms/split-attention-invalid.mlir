// RUN: kvcache-opt %s --kvcache-split-attention --verify-diagnostics
// RUN: not kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-tile-attention=chip=sm_90a 2>&1 | FileCheck %s
// RUN: not kvcache-opt %s --kvcache-expand-ops=for-gpu 2>&1 | FileCheck %s
// RUN: not kvcache-opt %s --kvcache-expand-ops 2>&1 | FileCheck %s --check-prefix=CPU

// Without a plan, the rows that have the same splits are not known. Kernels do not merge splits.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK: error: 'kvcache.attention' op expects 'partial' with 'workspace': 'kvcache-split-attention' adds it, and the op that merges splits
func.func @no_config(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects a 'config' that has 'mma', 'rows' and 'keys', which 'kvcache-plan-attention' chooses}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// CPU: error: 'kvcache.attention' op expects 'merge_splits' of its 'workspace' and 'out' after 'partial' on a CPU, which splits no rows
func.func @no_merge(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

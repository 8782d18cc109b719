// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --cse --canonicalize | FileCheck %s
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --kvcache-split-attention --cse --canonicalize | FileCheck %s
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --kvcache-expand-ops | FileCheck %s --check-prefix=CPU

// Split twice, an op stays as it is.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!halves = !kvcache.paged<f16, #kv, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>
!latent = !kvcache.paged<bf16, #mla, page_size = 64>

// The rows of a thread block are 4 tokens of a sequence. They see the keys up to their last one. A split has 256 keys, or
// more where there would be more than 16.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME:    %[[Q:.*]]: memref<?x32x128xbf16>, %[[K:.*]]: !kvcache.paged{{.*}}, %{{.*}}: !kvcache.paged{{.*}}, %[[N:.*]]: memref<?xi32>, %{{.*}}: f32, %[[OUT:.*]]: memref<?x32x128xbf16>, %[[LSE:.*]]: memref<?x32xf32>, %[[W:.*]]: memref<?xi8>)
// CHECK:         kvcache.attention %[[Q]], {{.*}} outs(%[[OUT]], %[[LSE]]) workspace %[[W]] {causal, config = #kvcache.attention_config<mma = mma_sync, rows = 16, keys = 64, {{.*}}>, partial, split = #kvcache.split<keys = 256, max = 16, rows = 8>}
// CHECK-NEXT:    kvcache.merge_splits %[[W]], %[[N]] outs(%[[OUT]], %[[LSE]]) {split = #kvcache.split<keys = 256, max = 16, rows = 8>} count {
// CHECK-NEXT:    ^bb0(%[[B:.*]]: index, %{{.*}}: index, %[[ROWS:.*]]: index, %[[I:.*]]: index):
// CHECK:           %[[IN_BLOCK:.*]] = arith.remui %[[I]], %c4
// CHECK:           %[[FIRST:.*]] = arith.subi %[[I]], %[[IN_BLOCK]]
// CHECK:           %[[LENGTH:.*]] = kvcache.cache_length %[[K]][%[[B]]]
// CHECK:           %[[REST:.*]] = arith.subi %[[ROWS]], %[[FIRST]]
// CHECK:           %[[COUNT:.*]] = arith.minsi %[[REST]], %c4
// CHECK:           %[[END:.*]] = arith.addi %[[FIRST]], %[[COUNT]]
// CHECK:           %[[LAST:.*]] = arith.subi %[[END]], %c1
// CHECK:           %[[POSITION:.*]] = arith.addi %[[LENGTH]], %[[LAST]]
// CHECK:           %[[SEEN:.*]] = arith.addi %[[POSITION]], %c1
// CHECK:           %[[LEAST:.*]] = arith.divui %{{.*}}, %c16
// CHECK:           arith.maxsi %[[LEAST]], %c256
// CHECK:           kvcache.yield %{{.*}} : index
// CHECK-NEXT:    } : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32xf32>
// CHECK-NEXT:    return
// On the CPU, rows are not split: the two ops are one again.
// CPU-LABEL: func.func @causal(
// CPU-SAME:    %[[W:[^ ]*]]: memref<?xi8>)
// CPU:         scf.parallel
// CPU-NOT:     %[[W]]
// CPU:         return
func.func @causal(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out, %lse) workspace %w
      {causal, split = #kvcache.split<keys = 256, max = 16, rows = 8>, config = #kvcache.attention_config<rows = 16>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>, memref<?xi8>
  return
}

// What the last kernel of a row computes moves to the merge. Weights of f16 are relative to an exponent that is 15 below
// the largest score.
// CHECK-LABEL: func.func @results(
// CHECK:         kvcache.merge_splits {{.*}} outs(%{{.*}}, %{{.*}}) max_logits %{{.*}} sinks %{{.*}} value_scale %[[EACH:.*]] {exponent_bias = 1.500000e+01 : f32, sinkless_lse} count
// CHECK:         kvcache.merge_splits {{.*}} outs(%{{.*}}) max_logits %{{.*}} {exponent_bias = 1.500000e+01 : f32} count
func.func @results(%q: memref<?x32x128xf16>, %k: !fp8, %h: !halves, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf16>, %lse: memref<?x32xf32>, %m: memref<?x32xf32>, %w: memref<?xi8>, %sinks: memref<32xf32>, %each: memref<8xf32>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out, %lse) max_logits %m workspace %w {sinkless_lse} sinks %sinks value_scale %each
      : memref<?x32x128xf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xf16>, memref<?x32xf32>, memref<?x32xf32>, memref<?xi8>, memref<32xf32>, memref<8xf32>
  kvcache.attention %q, %h, %h, %n, %s outs(%out) max_logits %m workspace %w
      : memref<?x32x128xf16>, !halves, !halves, memref<?xi32>, f32, memref<?x32x128xf16>, memref<?x32xf32>, memref<?xi8>
  return
}

// A latent cache has one scale of keys and values, and the ids of a sparse row are split. Without a workspace, nothing is.
// CHECK-LABEL: func.func @sparse(
// CHECK-SAME:    %[[IDS:[^ ]*]]: memref<?x?xi32>)
// CHECK:         kvcache.merge_splits
// CHECK:           memref.dim %[[IDS]], %c1
// CHECK:         kvcache.attention
// CHECK-NOT:     kvcache.merge_splits
// CHECK:         return
func.func @sparse(%q: memref<?x128x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>, %w: memref<?xi8>, %ids: memref<?x?xi32>) {
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w rows %ids
      : memref<?x128x576xbf16>, !latent, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?xi8>, memref<?x?xi32>
  kvcache.attention %q, %k, %n, %s outs(%out) rows %ids
      : memref<?x128x576xbf16>, !latent, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?x?xi32>
  return
}

// Splits of other ops are merged by sequential loops.
// CPU-LABEL: func.func @merge(
// CPU-SAME:    %[[W:[^ ]*]]: memref<?xi8>, %[[N:.*]]: memref<?xi32>, %[[OUT:.*]]: memref<?x32x128xbf16>)
// CPU:         %[[ACC:.*]] = memref.view %[[W]]{{.*}} to memref<?x32x128xf32>
// CPU:         %[[STATE:.*]] = memref.view %[[W]]{{.*}} to memref<?x32x2xf32>
// CPU:         scf.parallel
// CPU-NOT:     gpu.barrier
// CPU:           memref.load %[[STATE]]
// CPU:           vector.load %[[ACC]]{{.*}} vector<4xf32>
// CPU:           vector.store %{{.*}}, %[[OUT]]
func.func @merge(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) {split = #kvcache.split<max = 4>} count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      %four = arith.constant 4 : index
      kvcache.yield %four : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// RUN: kvcache-opt %s --verify-diagnostics | FileCheck %s

// Attributes of earlier versions become fields of split and config, with a
// warning.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK-LABEL: func.func @attend(
// CHECK:         {causal, config = #kvcache.attention_config<swap_ab = true, rows = 16, persistent = 8, l2_hint = evict_last>, split = #kvcache.split<keys = 64, max = 32, rows = 2>}
// CHECK:         {config = #kvcache.attention_config<mma = none>}
func.func @attend(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-warning @+6 {{'split_tokens' is now 'keys' of 'split'}}
  // expected-warning @+5 {{'split_rows' is now 'rows' of 'split'}}
  // expected-warning @+4 {{'tile_rows' is now 'rows' of 'config', or 'mma = none'}}
  // expected-warning @+3 {{'scheduled_blocks' is now 'persistent' of 'config'}}
  // expected-warning @+2 {{'swap_operands' is now 'swap_ab' of 'config'}}
  // expected-warning @+1 {{'l2_hint' is now a field of 'config'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {causal, split_tokens = 64, split_rows = 2, tile_rows = 16, scheduled_blocks = 8, swap_operands = true, l2_hint = #kvcache.eviction<evict_last>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  // expected-warning @+1 {{'tile_rows' is now 'rows' of 'config', or 'mma = none'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {tile_rows = 0}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @size(
// CHECK:         {query_heads = 32 : i64, split = #kvcache.split<keys = 256, max = 16, rows = 4>, value_size = 128 : i64}
func.func @size(%batch: index) -> index {
  // expected-warning @+2 {{'max_splits' is now 'max' of 'split'}}
  // expected-warning @+1 {{'split_rows' is now 'rows' of 'split'}}
  %bytes = kvcache.workspace_size %batch {query_heads = 32, value_size = 128, max_splits = 16, split_rows = 4}
  return %bytes : index
}

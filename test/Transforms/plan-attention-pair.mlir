// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_100a --split-input-file --verify-diagnostics | FileCheck %s

// Two thread blocks multiply together only on request. Each need that is not met is a reason.

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// CHECK-LABEL: func.func @pairs(
// CHECK:         mma = tcgen05, rows = 64, keys = 64, stages = 2, {{.*}} schedule = pair>
// CHECK:         mma = tcgen05, rows = 64, keys = 64, stages = 2, {{.*}} schedule = prefetch>
func.func @pairs(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal, config = #kvcache.attention_config<schedule = pair>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  kvcache.attention %q, %k, %n, %s outs(%out) {causal}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @heads(%q: memref<?x192x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x192x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as pair needs a multiple of 128 query heads, got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = pair>}
      : memref<?x192x576xbf16>, !mla, memref<?xi32>, f32, memref<?x192x512xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @values(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x384xbf16>) {
  // expected-error @below {{as pair needs values of 128, 256 or 512 elements, got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = pair>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x384xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @window(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  // expected-error @below {{as pair needs no window, chunk or ranges, got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) {window = 100, config = #kvcache.attention_config<schedule = pair>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @splits(%w: memref<?xi8>, %q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  // expected-error @below {{as pair needs no workspace and no sparse 'rows', got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w
      {causal, split = #kvcache.split<keys = 256, max = 16, rows = 1>, config = #kvcache.attention_config<schedule = pair>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?xi8>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @few_keys(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  // expected-error @below {{as pair needs 64 keys, got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<keys = 32, schedule = pair>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @one_stage(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  // expected-error @below {{as pair needs 2 stages, got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<stages = 1, schedule = pair>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @converted(%q: memref<?x128x576xbf16>, %k: !fp8, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  // expected-error @below {{as pair needs rows that copies bring without a conversion, got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = pair>}
      : memref<?x128x576xbf16>, !fp8, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @keys_and_values(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{as pair needs a latent cache, got pair}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = pair>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_100a --split-input-file --verify-diagnostics | FileCheck %s

// Two query tiles, and as many keys as there are registers for. Each need that is not met is a reason.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// CHECK-LABEL: func.func @prompts(
// CHECK:         mma = tcgen05, rows = 256, keys = 128, stages = 2, {{.*}} schedule = roles>
// CHECK:         mma = tcgen05, rows = 256, keys = 64, stages = 3, {{.*}} schedule = roles>
// CHECK:         mma = tcgen05, rows = 256, keys = 64, stages = 2, {{.*}} schedule = roles>
func.func @prompts(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %m: memref<?x?xi32>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {causal, config = #kvcache.attention_config<schedule = roles>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {window = 100, config = #kvcache.attention_config<rows = 256, keys = 64, stages = 3, schedule = roles>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>} mask %m
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x?xi32>
  return
}

// -----

// Boxes of few tokens, and rows that end within a span of a swizzle.

!short = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!odd = !kvcache.paged<bf16, <num_heads = 8, head_size = 96>, page_size = 64>

// CHECK-LABEL: func.func @few_keys(
// CHECK:         keys = 64, stages = 2, {{.*}} schedule = roles>
// CHECK:         keys = 64, stages = 2, {{.*}} schedule = roles>
func.func @few_keys(%q: memref<?x32x128xbf16>, %k: !short, %p: memref<?x32x96xbf16>, %j: !odd, %n: memref<?xi32>, %s: f32,
                    %out: memref<?x32x128xbf16>, %o: memref<?x32x96xbf16>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>}
      : memref<?x32x128xbf16>, !short, !short, memref<?xi32>, f32, memref<?x32x128xbf16>
  kvcache.attention %p, %j, %j, %n, %s outs(%o) {config = #kvcache.attention_config<schedule = roles>}
      : memref<?x32x96xbf16>, !odd, !odd, memref<?xi32>, f32, memref<?x32x96xbf16>
  return
}

// -----

!short = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @keys_that_would_spill(%q: memref<?x32x128xbf16>, %k: !short, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{as roles needs at most 64 keys, or 128 without a mask in pages of a multiple of 64 tokens and heads of a multiple of 64 elements, got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<keys = 128, schedule = roles>}
      : memref<?x32x128xbf16>, !short, !short, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_one_query_tile(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have 256 'rows' with the schedule roles, and only then, got 128}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 128, schedule = roles>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_two_query_tiles(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have 256 'rows' with the schedule roles, and only then, got 256}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 256, schedule = prefetch>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @mma_sync(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{as roles needs tcgen05, got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<mma = mma_sync, schedule = roles>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @latent(%q: memref<?x64x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>) {
  // expected-error @below {{as roles needs keys and values, got roles}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>}
      : memref<?x64x576xbf16>, !mla, memref<?xi32>, f32, memref<?x64x512xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @splits(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{as roles needs no workspace and no sparse 'rows', got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<mma = tcgen05, rows = 256, schedule = roles>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @ranges(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x1x2xi32>) {
  // expected-error @below {{as roles needs no ranges, got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>} ranges %r
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x1x2xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @region(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{as roles needs no regions, and no mask of all tokens, got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>}
      score {
      ^bb0(%x: f32, %sequence: index, %head: index, %query: index, %key: index):
        %y = arith.addf %x, %x : f32
        kvcache.yield %y : f32
      }
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @conversion(%q: memref<?x32x128xbf16>, %k: !fp8, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{as roles needs rows that copies bring without a conversion, got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>}
      : memref<?x32x128xbf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!wide = !kvcache.paged<bf16, <num_heads = 8, head_size = 192>, page_size = 64>

func.func @long_rows(%q: memref<?x32x192xbf16>, %k: !wide, %n: memref<?xi32>, %s: f32, %out: memref<?x32x192xbf16>) {
  // expected-error @below {{as roles needs at most 128 elements, a multiple of 16, got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>}
      : memref<?x32x192xbf16>, !wide, !wide, memref<?xi32>, f32, memref<?x32x192xbf16>
  return
}

// -----

!short = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 8>

func.func @short_pages(%q: memref<?x32x128xbf16>, %k: !short, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{as roles needs pages of a multiple of 16 tokens, got roles}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = roles>}
      : memref<?x32x128xbf16>, !short, !short, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

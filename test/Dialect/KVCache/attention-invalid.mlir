// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C1)
func.func @c1_heads(%q: memref<?x12x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'q' to have a static number of heads, a multiple of the cache's (8), got 12}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x12x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_dynamic_heads(%q: memref<?x?x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'q' to have a static number of heads, a multiple of the cache's (8)}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x?x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_head_size(%q: memref<?x32x64xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'q' to have 32 heads of 128 elements, got 32 of 64}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x64xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_strided_elements(%q: memref<?x32x128xbf16, strided<[8192, 256, 2]>>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects the elements of a head of 'q' to be contiguous, got 'memref<?x32x128xbf16, strided<[8192, 256, 2]>>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16, strided<[8192, 256, 2]>>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C2)
func.func @c2_no_values(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects values, because the cache is not latent}}
  kvcache.attention %q, %k, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

func.func @c2_values_of_a_latent_cache(%q: memref<?x32x576xbf16>, %k: !mla, %v: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects no values for a latent cache}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x576xbf16>, !mla, !mla, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 128>
#long = #kvcache.params<num_heads = 1, head_size = 16400>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!long = !kvcache.paged<bf16, #long, page_size = 64>

func.func @c1_long_heads(%q: memref<?x1x128xbf16>, %k: !cache, %v: !long, %n: memref<?xi32>, %s: f32, %out: memref<?x1x128xbf16>) {
  // expected-error @below {{expects at most 16384 elements of a head, got 16400}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x1x128xbf16>, !cache, !long, memref<?xi32>, f32, memref<?x1x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#few = #kvcache.params<num_heads = 4, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!few = !kvcache.paged<bf16, #few, page_size = 64>

func.func @c2_other_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !few, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects values of 8 heads, got 4}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !few, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C3)
func.func @c3_elements(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x256xbf16>) {
  // expected-error @below {{expects 'out' to have a static number of at most 128 elements of a head}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x256xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects 'out' to have 32 heads of 128 elements, got 8 of 128}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_lse(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %lse: memref<?x8xf32>) {
  // expected-error @below {{expects 'lse' to have 32 heads, got 'memref<?x8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out, %lse) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_sinks(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<8xf32>) {
  // expected-error @below {{expects 'sinks' to have 32 heads, got 'memref<8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) sinks %x : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C4)
func.func @c4_soft_cap(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'soft_cap' to be between 2^-16 and 2^16, got -1}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {soft_cap = -1.0} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c4_small_soft_cap(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'soft_cap' to be between 2^-16 and 2^16, got 1.000000e-05}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {soft_cap = 1.0e-5} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c4_large_soft_cap(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'soft_cap' to be between 2^-16 and 2^16, got 1.000000e+05}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {soft_cap = 1.0e+5} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c7_large_workspace(%q: memref<?x1048576x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x1048576x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects the workspace of a sequence to have less than 2^63 bytes}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {split = #kvcache.split<max = 1048576, rows = 1048576>} : memref<?x1048576x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x1048576x128xbf16>, memref<?xi8>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c11_persistent(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'persistent' above 0 only with 'workspace'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<persistent = 8>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @negative_persistent(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'persistent' to be from 0 to 1048576, got -1}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<persistent = -1>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

// (C1) of workspace_size
func.func @c1_large_workspace(%batch: index) -> index {
  // expected-error @below {{expects the workspace of a sequence to have less than 2^63 bytes}}
  %bytes = kvcache.workspace_size %batch {query_heads = 1048576, value_size = 1048576, max_splits = 1048576, split_rows = 4}
  return %bytes : index
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @window(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{attribute 'window' failed to satisfy constraint}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {window = 0} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C5)
func.func @c5_causal(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x8xi32>) {
  // expected-error @below {{expects no 'causal', 'window', 'chunk', 'mask', 'ranges' or 'lengths' with 'rows', which say what is seen}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal} rows %x : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!small = !kvcache.paged<bf16, #kv, page_size = 16>

func.func @c5_page_sizes(%q: memref<?x32x128xbf16>, %k: !cache, %v: !small, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x8xi32>) {
  // expected-error @below {{expects paged caches of one page size for 'rows'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) rows %x : memref<?x32x128xbf16>, !cache, !small, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

func.func @c5_continuous(%q: memref<?x32x128xbf16>, %k: !continuous, %v: !continuous, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x8xi32>) {
  // expected-error @below {{expects paged caches of one page size for 'rows'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) rows %x : memref<?x32x128xbf16>, !continuous, !continuous, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @results(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: tensor<?x32x128xbf16>) {
  // expected-error @below {{expects a result for each of 'outs' that is a tensor}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, tensor<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @operands(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects queries, keys, values unless the cache is latent, row offsets and a scale, got 3 operands}}
  kvcache.attention %q, %k, %v outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C7)
func.func @c7_no_workspace(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'split' only with 'workspace'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {split = #kvcache.split<rows = 4>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c7_strided_workspace(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8, strided<[2]>>) {
  // expected-error @below {{expects 'workspace' to be contiguous, got 'memref<?xi8, strided<[2]>>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8, strided<[2]>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @max_of_split(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'max' to be from 1 to 1048576, got 0}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {split = #kvcache.split<max = 0>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C8)
func.func @c8_scale_of_bf16(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'key_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) key_scale %s : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, f32
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla = !kvcache.paged<f8E4M3FN, #latent, page_size = 64>

func.func @c8_value_scale_of_a_latent_cache(%q: memref<?x32x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects values for 'value_scale'}}
  kvcache.attention %q, %k, %n, %s outs(%out) value_scale %s : memref<?x32x576xbf16>, !mla, memref<?xi32>, f32, memref<?x32x128xbf16>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>

func.func @c8_heads(%q: memref<?x32x128xbf16>, %k: !fp8, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<32xf32>) {
  // expected-error @below {{expects 'value_scale' to have the 8 heads of its cache}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) value_scale %x : memref<?x32x128xbf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<32xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C9)
func.func @c9_scale_of_bf16(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'query_scale' only for 'q' of fp8, got 'memref<?x32x128xbf16>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) query_scale %s : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c9_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf8E4M3FN>, %o: memref<8xf32>) {
  // expected-error @below {{expects 'out_scale' to have the 32 heads of 'out', got 'memref<8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) out_scale %o : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xf8E4M3FN>, memref<8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f32, #kv, page_size = 64>

func.func @c10_cache(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with a cache of type !kvcache.paged<f32, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c10_queries(%q: memref<?x32x128xf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with queries of f16, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x128xf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 72>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c10_size(%q: memref<?x32x72xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x72xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 72 elements, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x72xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x72xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 272>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c10_large(%q: memref<?x32x272xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x272xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 272 elements, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x272xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x272xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 656, is_mla = true>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

func.func @c10_large_latent(%q: memref<?x32x656xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x512xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 656 elements, got #kvcache.attention_config<rows = 32>}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 32>} : memref<?x32x656xbf16>, !mla, memref<?xi32>, f32, memref<?x32x512xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

func.func @c10_latent_values(%q: memref<?x32x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x528xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 528 elements, got #kvcache.attention_config<rows = 32>}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 32>} : memref<?x32x576xbf16>, !mla, memref<?xi32>, f32, memref<?x32x528xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

func.func @c10_latent(%q: memref<?x32x64xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x64xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with a latent cache, or at most 32, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x64xbf16>, !mla, memref<?xi32>, f32, memref<?x32x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c10_swap_ab(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'rows' to be 16 or 32 with 'swap_ab = true', got 64}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<swap_ab = true, rows = 64>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @rows_of_config(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'rows' to be 16, 32, 64 or 128, got 48}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 48>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C12)
func.func @c12_output_in_place_of_queries(%q: memref<?x8x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32) {
  // expected-error @below {{expects 'out' to share no memory with 'q', got one memref for both}}
  kvcache.attention %q, %keys, %values, %n, %scale outs(%q)
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<i8, #kv, page_size = 64>

func.func @c8_integers_without_a_scale(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'value_scale' for a cache of 'i8' without scales}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) key_scale %s : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

func.func @c3_half_a_byte_of_values(%q: memref<?x32x128xbf16>, %k: !int4, %v: !int4, %n: memref<?xi32>, %s: f32, %out: memref<?x32x63xbf16>) {
  // expected-error @below {{expects 'out' to have an even number of elements of a head for values of 'i4', got 63}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !int4, !int4, memref<?xi32>, f32, memref<?x32x63xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C13)
func.func @c13_score_takes_four(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to take ('f32', 'index', 'index', 'index', 'index'), got ('f32', 'index', 'index', 'index')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %head: index, %query: index, %key: index):
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_score_takes_f64(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to take ('f32', 'index', 'index', 'index', 'index'), got ('f64', 'index', 'index', 'index', 'index')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f64, %sequence: index, %head: index, %query: index, %key: index):
      kvcache.yield %scale : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_takes_i32(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'mask' to take ('index', 'index', 'index', 'index'), got ('index', 'index', 'i32', 'index')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: i32, %key: index):
      %sees = arith.cmpi sle, %key, %head : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_score_yields_i1(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to yield ('f32'), got ('i1')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_yields_two(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'mask' to yield ('i1'), got ('i1', 'i1')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees, %sees : i1, i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_score_takes_nothing(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects at most two regions: one whose first argument is an f32, and then one whose first is an index}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
      kvcache.yield %scale : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_twice(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects at most two regions: one whose first argument is an f32, and then one whose first is an index}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_before_score(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects at most two regions: one whose first argument is an f32, and then one whose first is an index}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    mask {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_two_blocks(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{op region #0 ('modifiers') failed to verify constraint: region with 1 blocks}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      cf.br ^bb1
    ^bb1:
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_no_yield(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to end with 'kvcache.yield'}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      ub.unreachable
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C14)
func.func @c14_store(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %m: memref<8xf32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
      memref.store %s, %m[%head] : memref<8xf32>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_alloc(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
      %m = memref.alloc() : memref<8xf32>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_store_in_branch(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %m: memref<8xf32>, %i: i1) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      scf.if %i {
        // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
        memref.store %s, %m[%head] : memref<8xf32>
      }
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

func.func private @f(f32) -> f32

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_call(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no calls}}
      %y = func.call @f(%s) : (f32) -> f32
      kvcache.yield %y : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_unknown_effects(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
      llvm.inline_asm has_side_effects "", "" : () -> ()
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_cache_op(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no ops of the dialect 'kvcache'}}
      %k = kvcache.cache_length %keys[%sequence] : !cache
      %sees = arith.cmpi sle, %k, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_thread(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no ops of the dialect 'gpu'}}
      %t = gpu.thread_id x
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_parallel_loop(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no parallel loops}}
      scf.parallel (%i) = (%head) to (%query) step (%key) {
      }
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C15)
func.func @c15_out(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which does not use 'out'}}
      %y = memref.load %out[%query, %head, %key] : memref<?x8x128xbf16>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c15_lse(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %lse: memref<?x8xf32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out, %lse)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which does not use 'lse'}}
      %y = memref.load %lse[%query, %head] : memref<?x8xf32>
      kvcache.yield %y : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?x8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c15_workspace(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out) workspace %w
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which does not use 'workspace'}}
      %y = memref.load %w[%query] : memref<?xi8>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?xi8>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C16)
func.func @c16_tensor(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %t: tensor<8xf32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which has no tensors, got 'tensor<8xf32>'}}
      %y = tensor.extract %t[%head] : tensor<8xf32>
      kvcache.yield %y : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C17)
func.func @c17_rows(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %ids: memref<?x?xi32>) {
  // expected-error @below {{expects no regions with 'rows', whose tokens have no positions}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      kvcache.yield %s : f32
    }
    rows %ids : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @unknown_field(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{unknown field 'tiles'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<tiles = 2>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

// expected-error @below {{expects one of none, mma_sync, wgmma, tcgen05, got hmma}}
#config = #kvcache.attention_config<mma = hmma>

// -----

// expected-error @below {{expects one 'rows'}}
#config = #kvcache.attention_config<rows = 16, rows = 32>

// -----

// expected-error @below {{expects true or false}}
#config = #kvcache.attention_config<swap_ab = yes>

// -----

// expected-error @below {{expects 'keys' to be a multiple of 16 from 16 to 128, got 24}}
#config = #kvcache.attention_config<keys = 24>

// -----

// expected-error @below {{expects 'stages' to be from 1 to 16, got 17}}
#config = #kvcache.attention_config<stages = 17>

// -----

// expected-error @below {{expects no field but 'l2_hint' with 'mma = none'}}
#config = #kvcache.attention_config<mma = none, rows = 16>

// -----

// expected-error @below {{unknown field 'parts'}}
#split = #kvcache.split<parts = 2>

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @old_and_new_names(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects either 'config' or the attributes of earlier versions, not both}}
  // expected-warning @below {{'tile_rows' is now 'rows' of 'config', or 'mma = none'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {tile_rows = 16, config = #kvcache.attention_config<keys = 64>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @old_name_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'split_rows' to be a number that is not negative}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split_rows = "a"} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @causal_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'causal' failed to satisfy constraint: unit attribute}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {causal = true} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @window_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'window' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {window = "x"} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @soft_cap_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'soft_cap' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {soft_cap = "a"} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @config_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'config' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = 1} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @split_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'split' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = 3} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @negative_old_name(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'tile_rows' to be a number that is not negative}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {tile_rows = -1} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @old_flag_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'swap_operands' to be true or false}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {swap_operands = 2} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @old_name_in_generic_form(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op has no attribute 'tile_rows': its fields are in 'split' and 'config'}}
  "kvcache.attention"(%q, %k, %k, %n, %s, %out) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, tile_rows = 16 : i64}
      : (memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>) -> ()
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C1)
func.func @c1_size_of_two_caches(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q' to have 16 heads of 576 elements, got 16 of 512}}
  kvcache.attention %q, %k, %n, %s outs(%out) rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C1)
func.func @c1_size_of_two_arrays(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x32xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q_rope' to have 16 heads of 64 elements, got 16 of 32}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x32xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C1)
func.func @c1_strided_elements_of_rope(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16, strided<[?, ?, 2]>>, %r: !rope) {
  // expected-error @below {{expects the elements of a head of 'q_rope' to be contiguous}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16, strided<[?, ?, 2]>>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C18)
func.func @c18_heads_of_rope(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x8x64xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q_rope' to have 16 heads of 64 elements, got 8 of 64}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x8x64xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C18)
func.func @c18_type_of_rope(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xf32>, %r: !rope) {
  // expected-error @below {{expects 'q_rope' to have the element type of 'q' ('bf16'), got 'f32'}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xf32>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C18)
func.func @c18_no_elements_of_rope(%q: memref<?x16x576xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q' to have a static number of less than 576 elements of a head with 'q_rope'}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x576xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16>, !rope
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C18)
func.func @c18_rope_of_keys_and_values(%q: memref<?x16x64xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x16x128xbf16>) {
  // expected-error @below {{expects 'q_rope' only for a latent cache}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) q_rope %q : memref<?x16x64xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x16x128xbf16>, memref<?x16x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C19)
func.func @c19_rope_cache_of_keys_and_values(%q: memref<?x16x192xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x16x128xbf16>, %r: !rope) {
  // expected-error @below {{expects 'rope_cache' only for a latent cache, and latent itself}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) rope_cache %r : memref<?x16x192xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x16x128xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>
!pages = !kvcache.paged<bf16, #rope, page_size = 32>

// (C19)
func.func @c19_other_pages(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !pages) {
  // expected-error @below {{expects 'rope_cache' to have the pages of 'key_cache', got}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16>, !pages
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

// (C19)
func.func @c19_rope_of_fp8(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !fp8) {
  // expected-error @below {{expects 'rope_cache' to have elements of f32, f16 or bf16 without scales, got}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16>, !fp8
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C20)
func.func @c20_static_scale(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !rope) {
  // expected-error @below {{expects no 'key_scale' with 'rope_cache'}}
  kvcache.attention %q, %k, %n, %s outs(%out) key_scale %s q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, f32, memref<?x16x64xbf16>, !rope
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C3)
func.func @c3_max_logits_of_other_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %m: memref<?x8xf32>) {
  // expected-error @below {{expects 'max_logits' to have 32 heads, got 'memref<?x8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) max_logits %m : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C5)
func.func @c5_ranges(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x8xi32>, %r: memref<?x1x2xi32>) {
  // expected-error @below {{expects no 'causal', 'window', 'chunk', 'mask', 'ranges' or 'lengths' with 'rows', which say what is seen}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) rows %x ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xi32>, memref<?x1x2xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C6)
func.func @c6_sinkless_lse(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %sinks: memref<32xf32>) {
  // expected-error @below {{expects 'sinkless_lse' only with 'sinks'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {sinkless_lse} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C6)
func.func @c6_whole_mask(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x1x2xi32>) {
  // expected-error @below {{expects 'whole_mask' only with 'mask'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {whole_mask} ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x1x2xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C15)
func.func @c15_region_uses_max_logits(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %m: memref<?x32xf32>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) max_logits %m
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{which does not use 'max_logits'}}
      %x = memref.load %m[%query, %head] : memref<?x32xf32>
      %sees = arith.cmpf oeq, %x, %s : f32
      kvcache.yield %sees : i1
    }
     : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C21)
func.func @c21_ranges_of_three_numbers(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x1x3xi32>) {
  // expected-error @below {{expects 'ranges' to have at least one range of a row, and 2 numbers of each, got 'memref<?x1x3xi32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x1x3xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C21)
func.func @c21_no_ranges(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x0x2xi32>) {
  // expected-error @below {{expects 'ranges' to have at least one range of a row, and 2 numbers of each, got 'memref<?x0x2xi32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x0x2xi32>
  return
}

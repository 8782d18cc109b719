// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C1)
func.func @c1_heads(%q: memref<?x12x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'q' to have a static number of heads, a multiple of the cache's (8), got 12}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x12x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_dynamic_heads(%q: memref<?x?x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'q' to have a static number of heads, a multiple of the cache's (8)}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x?x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_head_size(%q: memref<?x32x64xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'q' to have 32 heads of 128 elements, got 32 of 64}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x64xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_strided_elements(%q: memref<?x32x128xbf16, strided<[8192, 256, 2]>>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects the elements of a head of 'q' to be contiguous, got 'memref<?x32x128xbf16, strided<[8192, 256, 2]>>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16, strided<[8192, 256, 2]>>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C2)
func.func @c2_no_values(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'value_cache', because 'key_cache' is not latent}}
  kvcache.attention %q, %k, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c2_values_of_a_latent_cache(%q: memref<?x32x576xbf16>, %k: !mla, %v: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects no 'value_cache', because 'key_cache' is latent}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x576xbf16>, !mla, !mla, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

#long = #kvcache.params<num_heads = 1, head_size = 16400>
!cache = !kvcache.paged<bf16, <num_heads = 1, head_size = 128>, page_size = 64>
!long = !kvcache.paged<bf16, #long, page_size = 64>

func.func @c1_long_heads(%q: memref<?x1x128xbf16>, %k: !cache, %v: !long, %n: memref<?xi32>, %s: f32, %out: memref<?x1x128xbf16>) {
  // expected-error @below {{expects at most 16384 elements of a head, got 16400}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x1x128xbf16>, !cache, !long, memref<?xi32>, f32, memref<?x1x128xbf16>
  return
}

// -----

#few = #kvcache.params<num_heads = 4, head_size = 128>
!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!few = !kvcache.paged<bf16, #few, page_size = 64>

func.func @c2_other_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !few, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'value_cache' to have 8 heads, got 4}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !few, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C3)
func.func @c3_elements(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x256xbf16>) {
  // expected-error @below {{expects 'out' to have a static number of at most 128 elements of a head}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x256xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects 'out' to have 32 heads of 128 elements, got 8 of 128}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_lse(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %lse: memref<?x8xf32>) {
  // expected-error @below {{expects 'lse' to have 32 heads, got 'memref<?x8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out, %lse) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_sinks(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<8xf32>) {
  // expected-error @below {{expects 'sinks' to have 32 heads, got 'memref<8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) sinks %x : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<8xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4)
func.func @c4_soft_cap(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'soft_cap' to be between 2^-16 and 2^16, got -1}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {soft_cap = -1.0} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c4_small_soft_cap(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'soft_cap' to be between 2^-16 and 2^16, got 1.000000e-05}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {soft_cap = 1.0e-5} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c4_large_soft_cap(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'soft_cap' to be between 2^-16 and 2^16, got 1.000000e+05}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {soft_cap = 1.0e+5} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C5)
func.func @c5_causal(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x8xi32>) {
  // expected-error @below {{expects no 'causal', 'window', 'chunk', 'mask', 'ranges' or 'lengths' with 'rows', which say what is seen}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal} rows %x : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c5_heads_of_rows(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x4x8xi32>) {
  // expected-error @below {{expects 'rows' to have the 8 heads of the caches, got 'memref<?x4x8xi32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) rows %x : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x4x8xi32>
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

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @c5_continuous(%q: memref<?x32x128xbf16>, %k: !continuous, %v: !continuous, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x8xi32>) {
  // expected-error @below {{expects paged caches of one page size for 'rows'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) rows %x : memref<?x32x128xbf16>, !continuous, !continuous, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @results(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: tensor<?x32x128xbf16>) {
  // expected-error @below {{expects a result for each of 'outs' that is a tensor}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, tensor<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @operands(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects queries, keys, values unless the cache is latent, row offsets and a scale, got 3 operands}}
  kvcache.attention %q, %k, %v outs(%out) : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C8)
func.func @c8_scale_of_bf16(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'key_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) key_scale %s : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, f32
  return
}

// -----

!mla = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c8_value_scale_of_a_latent_cache(%q: memref<?x32x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects values for 'value_scale'}}
  kvcache.attention %q, %k, %n, %s outs(%out) value_scale %s : memref<?x32x576xbf16>, !mla, memref<?xi32>, f32, memref<?x32x128xbf16>, f32
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c8_heads(%q: memref<?x32x128xbf16>, %k: !fp8, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<32xf32>) {
  // expected-error @below {{expects 'value_scale' to have the 8 heads of its cache}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) value_scale %x : memref<?x32x128xbf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<32xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C9)
func.func @c9_scale_of_bf16(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'query_scale' only for 'q' of fp8, got 'memref<?x32x128xbf16>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) query_scale %s : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, f32
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c9_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf8E4M3FN>, %o: memref<8xf32>) {
  // expected-error @below {{expects 'out_scale' to have the 32 heads of 'out', got 'memref<8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) out_scale %o : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xf8E4M3FN>, memref<8xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C12)
func.func @c12_output_in_place_of_queries(%q: memref<?x8x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32) {
  // expected-error @below {{expects 'out' to share no memory with 'q', got one memref for both}}
  kvcache.attention %q, %keys, %values, %n, %scale outs(%q)
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C12)
func.func @c12_lse_in_place_of_max_logits(%q: memref<?x8x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %x: memref<?x8xf32>) {
  // expected-error @below {{expects 'lse' to share no memory with 'max_logits', got one memref for both}}
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out, %x) max_logits %x
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?x8xf32>, memref<?x8xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C25)
func.func @c25_lengths_of_other_sequences(%q: memref<?x8x128xbf16>, %keys: !cache, %values: !cache, %n: memref<9xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %lengths: memref<3xi32>) {
  // expected-error @below {{expects 'lengths' to have a number for each sequence of 'row_offsets', got 'memref<3xi32>' and 'memref<9xi32>'}}
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) lengths %lengths
    : memref<?x8x128xbf16>, !cache, !cache, memref<9xi32>, f32, memref<?x8x128xbf16>, memref<3xi32>
  return
}

// -----

!cache = !kvcache.paged<i8, <num_heads = 8, head_size = 128>, page_size = 64>

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

// expected-error @below {{expects no field but 'l2_hint' with 'mma = none'}}
#config = #kvcache.attention_config<mma = none, rows = 16>

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C3)
func.func @c3_max_logits_of_other_heads(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %m: memref<?x8xf32>) {
  // expected-error @below {{expects 'max_logits' to have 32 heads, got 'memref<?x8xf32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) max_logits %m : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C5)
func.func @c5_ranges(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %x: memref<?x8xi32>, %r: memref<?x1x2xi32>) {
  // expected-error @below {{expects no 'causal', 'window', 'chunk', 'mask', 'ranges' or 'lengths' with 'rows', which say what is seen}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) rows %x ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x8xi32>, memref<?x1x2xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C6)
func.func @c6_sinkless_lse(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %sinks: memref<32xf32>) {
  // expected-error @below {{expects 'sinkless_lse' only with 'sinks'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {sinkless_lse} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C6)
func.func @c6_whole_mask(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x1x2xi32>) {
  // expected-error @below {{expects 'whole_mask' only with 'mask'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {whole_mask} ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x1x2xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C21)
func.func @c21_ranges_of_three_numbers(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x1x3xi32>) {
  // expected-error @below {{expects 'ranges' to have at least one range of a row, and 2 numbers of each, got 'memref<?x1x3xi32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x1x3xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C21)
func.func @c21_no_ranges(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x0x2xi32>) {
  // expected-error @below {{expects 'ranges' to have at least one range of a row, and 2 numbers of each, got 'memref<?x0x2xi32>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) ranges %r : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x0x2xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_attention(%q: memref<3x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %o: memref<2x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op expects operands with one number of rows, got 3 and 2}}
  kvcache.attention %q, %k, %k, %n, %s outs(%o) : memref<3x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<2x32x128xbf16>
  return
}

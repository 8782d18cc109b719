// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C1)
func.func @c1_append_heads(%k: memref<?x4x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'keys' to have 8 heads of 128 elements, got 4 of 128}}
  kvcache.append %k to %cache rows %n : memref<?x4x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @append_of_strided_heads(%k: memref<?x8x128xbf16, strided<[4096, 256, 1]>>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects the heads and elements of 'keys' to be packed}}
  kvcache.append %k to %cache rows %n : memref<?x8x128xbf16, strided<[4096, 256, 1]>>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C2)
func.func @c2_append_values(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'values' and 'value_cache' together}}
  kvcache.append %k, %k to %cache rows %n : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4)
func.func @c4_append_rope(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x64xf32>) {
  // expected-error @below {{expects 'rope_begin' (80) and the 64 columns of 'rope' to be in a head of 128 elements}}
  kvcache.append %k to %cache rows %n rope %t {rope_begin = 80 : i64} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x64xf32>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

// (C5)
func.func @c5_append_slots(%k: memref<?x8x128xbf16>, %cache: !continuous, %n: memref<?xi32>, %s: memref<?xi32>) {
  // expected-error @below {{expects a paged cache for 'slots'}}
  kvcache.append %k to %cache rows %n slots %s : memref<?x8x128xbf16>, !continuous, memref<?xi32>, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c5_append_positions(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: memref<?xi32>, %t: memref<?x64xf32>) {
  // expected-error @below {{expects 'positions', because 'slots' say none}}
  kvcache.append %k to %cache rows %n slots %s rope %t : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?xi32>, memref<?x64xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C7)
func.func @c7_append_interleaved(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'interleaved', 'rope_begin', 'positions' and 'rope_axes' only with 'rope'}}
  kvcache.append %k to %cache rows %n {interleaved} : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c11_axes_alone(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<?xi32>) {
  // expected-error @below {{expects 'rope_axes' and 'positions' of two dimensions together}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 0, 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c11_positions_alone(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' and 'positions' of two dimensions together}}
  kvcache.append %k to %cache rows %n rope %t positions %p : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c11_dynamic_axes(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<?x?xi32>) {
  // expected-error @below {{expects a static number of axes in 'positions'}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 0, 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<?x?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c11_too_few(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' to have a number for each of 2 pairs, got 1}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c11_too_large(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' to be below the 3 axes of 'positions', got 3}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 2, 3>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c11_negative(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' to be below the 3 axes of 'positions', got -1}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: -1, 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_append(%k: memref<3x8x128xbf16>, %v: memref<4x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{'kvcache.append' op expects operands with one number of rows, got 3 and 4}}
  kvcache.append %k, %v to %cache, %cache rows %n : memref<3x8x128xbf16>, memref<4x8x128xbf16>, !cache, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C8)
func.func @c8_least_amax(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{'kvcache.append' op expects 'least_amax' only with 'power_of_two'}}
  kvcache.append %k to %cache rows %n {least_amax} : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c8_power_of_two_without_scales(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects scales of f32, bf16 or f8E8M0FNU with 'power_of_two', got a cache without scales}}
  kvcache.append %k to %cache rows %n {power_of_two} : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<i16, <num_heads = 2, head_size = 64>, page_size = 16>

func.func @append_to_integers(%rows: memref<?x2x64xbf16>, %k: !cache, %offsets: memref<?xi32>) {
  // expected-error @below {{operand #1 must be view of a paged or continuous cache of floats of at most 32 bits, of i8 or with scales, but got '!kvcache.paged<i16,}}
  kvcache.append %rows to %k rows %offsets : memref<?x2x64xbf16>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

func.func @c8_power_of_two_with_zero_points(%k: memref<?x8x128xbf16>, %cache: !int4, %n: memref<?xi32>) {
  // expected-error @below {{expects 'power_of_two' only for a cache without zero points, got '!kvcache.paged<i4,}}
  kvcache.append %k to %cache rows %n {power_of_two} : memref<?x8x128xbf16>, !int4, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

// (C9)
func.func @c9_tokens_that_share_scales(%k: memref<?x8x128xbf16>, %cache: !kivi, %n: memref<?xi32>) {
  // expected-error @below {{expects tokens with scales of their own, because groups of tokens are not full at every row, got '!kvcache.paged<i4,}}
  kvcache.append %k to %cache rows %n : memref<?x8x128xbf16>, !kivi, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C10)
func.func @c10_static_scale_of_bf16(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: f32) {
  // expected-error @below {{expects 'key_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.append %k to %cache rows %n key_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, f32
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64>

// (C10)
func.func @c10_static_scales_of_other_heads(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: memref<7xf32>) {
  // expected-error @below {{expects 'value_scale' to have the 8 heads of its cache}}
  kvcache.append %k, %k to %cache, %cache rows %n value_scale %s
      : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, memref<7xf32>
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64>

// (C10)
func.func @c10_static_scale_without_values(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: f32) {
  // expected-error @below {{expects values for 'value_scale'}}
  kvcache.append %k to %cache rows %n value_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, f32
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4): so do these.
func.func @c4_append_at_the_end(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x8xf32>) {
  // expected-error @below {{expects 'rope_begin' (9223372036854775807) and the 8 columns of 'rope' to be in a head of 128 elements}}
  kvcache.append %k, %k to %cache, %cache rows %n rope %t {rope_begin = 9223372036854775807} : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, memref<?x8xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C12)
func.func @c12_more_threads_than_a_block(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.append %k to %cache rows %n {block_threads = 1056} : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C13)
func.func @c13_queries_are_values(%k: memref<?x8x128xbf16>, %w_all: memref<?x8x128xbf16>, %w: memref<128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'queries' to share no memory with 'values', got one memref for both}}
  kvcache.append %k, %w_all to %keys, %values rows %n query_norm %w queries %w_all
    : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, memref<128xbf16>, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_output_without_queries(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %o: memref<?x8x128xf8E4M3FN>) {
  // expected-error @below {{expects 'queries' for 'query_out'}}
  kvcache.append %k to %cache rows %n query_out %o : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xf8E4M3FN>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_scale_without_output(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16>, %s: f32) {
  // expected-error @below {{expects 'query_out' for 'query_scale'}}
  kvcache.append %k to %cache rows %n queries %q query_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16>, f32
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_sizes_of_output(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16>, %o: memref<?x8x64xf8E4M3FN>) {
  // expected-error @below {{expects 'query_out' to have 8 heads of 128 elements, got 8 of 64}}
  kvcache.append %k to %cache rows %n queries %q query_out %o : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16>, memref<?x8x64xf8E4M3FN>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_heads_of_scale(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16>, %o: memref<?x8x128xf8E4M3FN>, %s: memref<4xf32>) {
  // expected-error @below {{expects 'query_scale' to have the 8 heads of 'query_out', got 'memref<4xf32>'}}
  kvcache.append %k to %cache rows %n queries %q query_out %o query_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16>, memref<?x8x128xf8E4M3FN>, memref<4xf32>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// (C2)
func.func @c2_values_of_latent_cache(%k: memref<?x1x576xbf16>, %cache: !latent, %n: memref<?xi32>) {
  // expected-error @below {{expects no 'values' for a latent cache}}
  kvcache.append %k, %k to %cache, %cache rows %n : memref<?x1x576xbf16>, memref<?x1x576xbf16>, !latent, !latent, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C3)
func.func @c3_dynamic_heads_of_queries(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x?x128xbf16>) {
  // expected-error @below {{expects 'queries' to have static sizes of heads and elements, got 'memref<?x?x128xbf16>'}}
  kvcache.append %k to %cache rows %n queries %q : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x?x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C6)
func.func @c6_queries_of_other_elements(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x32x64xbf16>) {
  // expected-error @below {{expects 'queries' to have heads of 128 elements, got 'memref<?x32x64xbf16>'}}
  kvcache.append %k to %cache rows %n queries %q : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x32x64xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// (C3)
func.func @c3_dynamic_elements_of_latent_queries(%k: memref<?x1x576xbf16>, %cache: !latent, %n: memref<?xi32>, %q: memref<?x32x?xbf16>) {
  // expected-error @below {{expects 'queries' to have static sizes of heads and elements, got 'memref<?x32x?xbf16>'}}
  kvcache.append %k to %cache rows %n queries %q : memref<?x1x576xbf16>, !latent, memref<?xi32>, memref<?x32x?xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// (C4)
func.func @c4_rope_past_the_end_of_queries(%k: memref<?x1x576xbf16>, %cache: !latent, %n: memref<?xi32>, %t: memref<?x64xf32>, %q: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'rope', of elements 512 to 576, to be in a head of 'queries', got 'memref<?x32x128xbf16>'}}
  kvcache.append %k to %cache rows %n rope %t queries %q {rope_begin = 512 : i64} : memref<?x1x576xbf16>, !latent, memref<?xi32>, memref<?x64xf32>, memref<?x32x128xbf16>
  return
}

// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of load_quantized

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_load_of_another_type(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('f8E4M3FN'), got 'f8E5M2'}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !fp8 -> vector<16xf8E5M2>
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E4M3FN, granularity = 16>

func.func @c1_load_of_bytes_of_4_bit_elements(%k: !nvfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('f4E2M1FN'), got 'i8'}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !nvfp4 -> vector<8xi8>
  return
}

// -----

// (C2) of load_quantized

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c2_load_past_a_head(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have at most head_size (128) lanes, got 256}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !fp8 -> vector<256xf8E4M3FN>
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E4M3FN, granularity = 16>

func.func @c2_load_of_one_4_bit_element(%k: !nvfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have an even number of lanes of 'f4E2M1FN', got 1}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !nvfp4 -> f4E2M1FN
  return
}

// -----

!mxfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c2_load_of_odd_4_bit_elements(%k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have an even number of lanes of 'f4E2M1FN', got 5}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !mxfp4 -> vector<5xf4E2M1FN>
  return
}

// -----

// Types of load_quantized

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @load_quantized_of_wide_floats(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be f8E4M3FN, f8E5M2, i8, f4E2M1FN or i4, or a 1-D vector of them, but got 'vector<16xf32>'}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !fp8 -> vector<16xf32>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @load_quantized_of_a_matrix(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be f8E4M3FN, f8E5M2, i8, f4E2M1FN or i4, or a 1-D vector of them, but got 'vector<2x8xf8E4M3FN>'}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !fp8 -> vector<2x8xf8E4M3FN>
  return
}

// -----

// (C1) of store_quantized

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_store_of_part_of_a_group(%v: vector<16xbf16>, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have a multiple of granularity (32) or head_size (128) lanes, got 16}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<16xbf16>, !fp8
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_store_of_a_group_and_a_half(%v: vector<48xbf16>, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have a multiple of granularity (32) or head_size (128) lanes, got 48}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<48xbf16>, !fp8
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_store_of_a_scalar(%x: f32, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have a multiple of granularity (32) or head_size (128) lanes, got 1}}
  kvcache.store_quantized %x, %k[%b, %h, %t, %d] : f32, !fp8
  return
}

// -----

!ragged = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 80>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_store_of_the_ragged_group_alone(%v: vector<16xbf16>, %k: !ragged, %b: index, %h: index, %t: index,
                                              %d: index) {
  // expected-error @below {{expects 'value' to have a multiple of granularity (32) or head_size (80) lanes, got 16}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<16xbf16>, !ragged
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_store_past_a_head(%v: vector<160xbf16>, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have at most head_size (128) lanes, got 160}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<160xbf16>, !fp8
  return
}

// -----

!ragged = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 80>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_store_past_a_ragged_head(%v: vector<96xbf16>, %k: !ragged, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have at most head_size (80) lanes, got 96}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<96xbf16>, !ragged
  return
}

// -----

// (C2) of store_quantized

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E4M3FN, granularity = 16>

func.func @c2_store_of_odd_4_bit_elements(%v: vector<17xbf16>, %k: !nvfp4, %b: index, %h: index, %t: index,
                                          %d: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes of 'f4E2M1FN', got 17}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<17xbf16>, !nvfp4
  return
}

// -----

// (C3) of store_quantized

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_16_bit_elements(%v: vector<32xbf16>, %k: !cache, %b: index, %h: index, %t: index, %d: index, %s: f32) {
  // expected-error @below {{expects 'cache' to have scales, floats of 8 bits or i8, got '!kvcache.paged<bf16,}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] tensor_scale %s : vector<32xbf16>, !cache
  return
}

// -----

!fp8 = !kvcache.continuous<f8E4M3FN, <num_heads = 8, head_size = 128>>

func.func @c3_no_scale_at_all(%v: vector<32xbf16>, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tensor_scale' for a cache without scales, got '!kvcache.continuous<f8E4M3FN,}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<32xbf16>, !fp8
  return
}

// -----

!fp8 = !kvcache.paged<f8E5M2, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_scale_page_without_scales(%v: vector<32xbf16>, %k: !fp8, %b: index, %h: index, %t: index, %d: index,
                                        %s: f32, %page: index) {
  // expected-error @below {{expects 'scale_page' only for a cache with scales, got '!kvcache.paged<f8E5M2,}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] scale_page %page tensor_scale %s : vector<32xbf16>, !fp8
  return
}

// -----

// Types of store_quantized

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @store_quantized_of_narrow_floats(%v: vector<32xf8E4M3FN>, %k: !fp8, %b: index, %h: index, %t: index,
                                            %d: index) {
  // expected-error @below {{operand #0 must be f32, f16 or bf16, or a 1-D or 2-D vector of them, but got 'vector<32xf8E4M3FN>'}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<32xf8E4M3FN>, !fp8
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @store_quantized_of_doubles(%v: vector<32xf64>, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be f32, f16 or bf16, or a 1-D or 2-D vector of them, but got 'vector<32xf64>'}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<32xf64>, !fp8
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @store_quantized_of_a_matrix(%v: vector<4x32xf32>, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have the elements of one token, got 'vector<4x32xf32>'}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<4x32xf32>, !fp8
  return
}

// -----

!cache = !kvcache.paged<i16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @store_quantized_of_plain_integers(%v: vector<128xbf16>, %k: !cache, %i: index, %s: f32) {
  // expected-error @below {{expects 'cache' to have scales, floats of 8 bits or i8, got '!kvcache.paged<i16,}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] tensor_scale %s : vector<128xbf16>, !cache
  return
}

// -----

// (C2) of store_quantized

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 1, zero_point = f16>

func.func @c2_store_of_an_odd_number_of_int4(%v: vector<17xbf16>, %k: !int4, %i: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes of 'i4', got 17}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] : vector<17xbf16>, !int4
  return
}

// -----

// (C5) of store_quantized

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

func.func @c5_least_amax(%v: vector<32xbf16>, %k: !int4, %i: index) {
  // expected-error @below {{'kvcache.store_quantized' op expects 'least_amax' only with 'power_of_two'}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] {least_amax} : vector<32xbf16>, !int4
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

func.func @c5_zero_points_and_powers_of_two(%v: vector<32xbf16>, %k: !int4, %i: index) {
  // expected-error @below {{expects 'power_of_two' only for a cache without zero points, got '!kvcache.paged<i4,}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] {power_of_two} : vector<32xbf16>, !int4
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

func.func @c5_zero_points_and_a_scale_of_the_tensor(%v: vector<32xbf16>, %k: !int4, %i: index, %s: f32) {
  // expected-error @below {{expects 'tensor_scale' only for a cache without zero points, got '!kvcache.paged<i4,}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] tensor_scale %s : vector<32xbf16>, !int4
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

func.func @load_with_zero_points_and_a_scale_of_the_tensor(%k: !int4, %i: index, %s: f32) {
  // expected-error @below {{expects 'tensor_scale' only for a cache without zero points, got '!kvcache.paged<i4,}}
  %v = kvcache.load %k[%i, %i, %i, %i] tensor_scale %s : !int4 -> vector<32xbf16>
  return
}

// -----

// (C6) of store_quantized

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

func.func @c6_store_of_part_of_a_group_of_tokens(%v: vector<16x2xbf16>, %k: !kivi, %i: index) {
  // expected-error @below {{expects 'value' to have a row for each of the 32 tokens that share scales, got 'vector<16x2xbf16>'}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] : vector<16x2xbf16>, !kivi
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

func.func @c6_store_of_one_token_of_a_group(%v: vector<32xbf16>, %k: !kivi, %i: index) {
  // expected-error @below {{expects 'value' to have a row for each of the 32 tokens that share scales, got 'vector<32xbf16>'}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] : vector<32xbf16>, !kivi
  return
}

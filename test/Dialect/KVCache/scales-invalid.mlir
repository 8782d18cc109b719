// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of scales

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>

func.func private @c1_scales_of_a_collection(
  // expected-error @below {{expects a view of a paged or continuous cache, got '!kvcache.paged_collection<f8E4M3FN,}}
  !kvcache.scales<!collection>)

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func private @c1_scales_of_scales(
  // expected-error @below {{expects a view of a paged or continuous cache, got '!kvcache.scales<}}
  !kvcache.scales<!kvcache.scales<!fp8>>)

// -----

func.func private @c1_scales_of_a_float(
  // expected-error @below {{expects a view of a paged or continuous cache, got 'f32'}}
  !kvcache.scales<f32>)

// -----

// (C1) of scales_block_tile

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_tile_of_dynamic_size(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'f32' and layout strided<[32, 1], offset: ?>, got 'memref<?x4xf32, strided<[32, 1], offset: ?>>'}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !fp8 -> memref<?x4xf32, strided<[32, 1], offset: ?>>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_tile_of_another_type(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'f32' and layout strided<[32, 1], offset: ?>, got 'memref<16x4xf8E4M3FN, strided<[32, 1], offset: ?>>'}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !fp8 -> memref<16x4xf8E4M3FN, strided<[32, 1], offset: ?>>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_tile_with_strides_of_elements(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'f32' and layout strided<[32, 1], offset: ?>, got 'memref<16x4xf32, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !fp8 -> memref<16x4xf32, strided<[1024, 1], offset: ?>>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_tile_without_columns(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at least one token and one column, got 'memref<16x0xf32,}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !fp8 -> memref<16x0xf32, strided<[32, 1], offset: ?>>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_tile_of_rank_1(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be 2D memref of any type values, but got 'memref<16xf32, strided<[32], offset: ?>>'}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !fp8 -> memref<16xf32, strided<[32], offset: ?>>
  return
}

// -----

// (C2) of scales_block_tile

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c2_tile_past_the_groups(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at most 4 columns, got 8}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !fp8 -> memref<16x8xf32, strided<[32, 1], offset: ?>>
  return
}

// -----

// (C3) of scales_block_tile

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c3_tile_across_pages(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects page_size (64) to be a multiple of the rows of 'tile', got 48}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !fp8 -> memref<48x4xf32, strided<[32, 1], offset: ?>>
  return
}

// -----

// (C1) of load_scale

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c1_load_of_another_type(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'scale' to have the cache's scale type ('f32'), got 'bf16'}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !fp8 -> bf16
  return
}

// -----

!mxfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c1_load_of_lanes_of_another_type(%k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'scale' to have the cache's scale type ('f8E8M0FNU'), got 'f32'}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !mxfp4 -> vector<4xf32>
  return
}

// -----

!mxfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c1_load_of_bits(%k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'scale' to have the cache's scale type ('f8E8M0FNU'), got 'i8'}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !mxfp4 -> i8
  return
}

// -----

// (C2) of load_scale

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c2_load_past_the_groups(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'scale' to have at most one lane per group of a head (4), got 8}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !fp8 -> vector<8xf32>
  return
}

// -----

!ragged = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 80>, page_size = 64, scale = f32, granularity = 32>

func.func @c2_load_past_the_ragged_group(%k: !ragged, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'scale' to have at most one lane per group of a head (3), got 4}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !ragged -> vector<4xf32>
  return
}

// -----

// (C1) of store_scale

!int8 = !kvcache.paged<i8, <num_heads = 8, head_size = 128>, page_size = 64, scale = bf16, granularity = 128>

func.func @c1_store_of_another_type(%s: f32, %k: !int8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'scale' to have the cache's scale type ('bf16'), got 'f32'}}
  kvcache.store_scale %s, %k[%b, %h, %t, %d] : f32, !int8
  return
}

// -----

// (C2) of store_scale

!int8 = !kvcache.paged<i8, <num_heads = 8, head_size = 128>, page_size = 64, scale = bf16, granularity = 128>

func.func @c2_store_past_the_groups(%s: vector<2xbf16>, %k: !int8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'scale' to have at most one lane per group of a head (1), got 2}}
  kvcache.store_scale %s, %k[%b, %h, %t, %d] : vector<2xbf16>, !int8
  return
}

// -----

// Types of load_scale, store_scale and the views

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @load_scale_of_a_matrix(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<2x2xf32>'}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !fp8 -> vector<2x2xf32>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @store_scale_of_an_index(%s: index, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'index'}}
  kvcache.store_scale %s, %k[%b, %h, %t, %d] : index, !fp8
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>

func.func @scales_view_of_another_cache(%k: !fp8) {
  // expected-error @below {{are incompatible with return type(s) of operation '!kvcache.scales<!kvcache.paged<i8,}}
  // expected-error @below {{failed to infer returned types}}
  %s = "kvcache.scales_view"(%k) : (!fp8)
         -> !kvcache.scales<!kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 32>>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @scales_base_of_another_type(%k: !fp8) {
  // expected-error @below {{'kvcache.scales_base' op inferred type(s) 'memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>' are incompatible with return type(s) of operation 'memref<?x64x8x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %m = "kvcache.scales_base"(%k) : (!fp8) -> memref<?x64x8x4xf32>
  return
}

// -----

// (C4) of load_scale

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c4_load_of_no_zero_point(%k: !fp8, %i: index) {
  // expected-error @below {{'kvcache.load_scale' op expects 'zero_point' only for a cache with zero points, got '!kvcache.paged<f8E4M3FN,}}
  %s = kvcache.load_scale %k[%i, %i, %i, %i] {zero_point} : !fp8 -> f32
  return
}

// -----

// (C4) of store_scale

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>

func.func @c4_store_of_no_zero_point(%s: f32, %k: !fp8, %i: index) {
  // expected-error @below {{'kvcache.store_scale' op expects 'zero_point' only for a cache with zero points, got '!kvcache.paged<f8E4M3FN,}}
  kvcache.store_scale %s, %k[%i, %i, %i, %i] {zero_point} : f32, !fp8
  return
}

// -----

// Rows of scales that tokens share are not those of tokens.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

func.func @row_of_scales_that_tokens_share(%k: !kivi, %i: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens, but got '!kvcache.paged<i4,}}
  %r = kvcache.scale_row_index %k[%i, %i] : !kivi
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!scales = !kvcache.scales<!kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>>

func.func @coordinates_of_scales_that_tokens_share(%s: !scales, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged cache or of its existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<}}
  %r, %p = kvcache.tma_coords %s[%i, %i] : !scales
  return
}

// -----

#kv = #kvcache.params<num_heads = 1, head_size = 2>
!scales = !kvcache.scales<!kvcache.paged<i8, #kv, page_size = 64, scale = f32, token_granularity = 2>>

func.func @descriptor_of_scales_that_tokens_share(%s: !scales) {
  // expected-error @below {{expects scales that are neither interleaved nor shared by tokens, got '!kvcache.scales<}}
  %t = kvcache.create_scale_tma_tile %s {rows = 4} : !scales -> !kvcache.tma_tile<4x1xf32>
  return
}

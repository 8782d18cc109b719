// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expects a box of 1 to 5 sides, got 0}}
func.func private @c1_no_sides(!kvcache.tma_tile<bf16>)

// -----

// expected-error @below {{expects a box of 1 to 5 sides, got 6}}
func.func private @c1_six_sides(!kvcache.tma_tile<8x1x1x1x1x1xbf16>)

// -----

// expected-error @below {{expects box side 1 from 1 to 256, got 0}}
func.func private @c1_empty_side(!kvcache.tma_tile<64x0xbf16>)

// -----

// expected-error @below {{expects box side 1 from 1 to 256, got 257}}
func.func private @c1_long_side(!kvcache.tma_tile<64x257xbf16>)

// -----

// expected-error @below {{expects box side 0 from 1 to 256, got 512}}
func.func private @c1_long_inner_side(!kvcache.tma_tile<512xi8>)

// -----

// expected-error @below {{expects box side 0 from 1 to 256, got 2305843009213693954}}
func.func private @c1_side_of_64_bits(!kvcache.tma_tile<2305843009213693954xi64>)

// -----

// expected-error @below {{invalid dimension}}
func.func private @c1_side_of_more_bits(!kvcache.tma_tile<64x99999999999999999999xbf16>)

// -----

// expected-error @below {{expected static shape}}
func.func private @c1_dynamic_side(!kvcache.tma_tile<64x?xbf16>)

// -----

// expected-error @below {{expected non-function type}}
func.func private @c1_negative_side(!kvcache.tma_tile<64x-1xbf16>)

// -----

// expected-error @below {{expects an integer or float element type of 1, 2, 4 or 8 bytes, got 'f4E2M1FN'}}
func.func private @c2_half_bytes(!kvcache.tma_tile<64x1xf4E2M1FN>)

// -----

// expected-error @below {{expects an integer or float element type of 1, 2, 4 or 8 bytes, got 'index'}}
func.func private @c2_index(!kvcache.tma_tile<64x1xindex>)

// -----

// expected-error @below {{expects an integer or float element type of 1, 2, 4 or 8 bytes, got 'i24'}}
func.func private @c2_three_bytes(!kvcache.tma_tile<64x1xi24>)

// -----

// expected-error @below {{expected 'x' in dimension list}}
func.func private @c2_no_type(!kvcache.tma_tile<64>)

// -----

// expected-error @below {{expects the inner side of the box to be a multiple of 16 bytes, got 24}}
func.func private @c3_inner_side_of_odd_bytes(!kvcache.tma_tile<12x1xbf16>)

// -----

// expected-error @below {{expects the inner side of the box to be the span of the swizzle (128 bytes), got 64}}
func.func private @c3_inner_side_below_the_span(!kvcache.tma_tile<32x1xbf16, swizzle_128b>)

// -----

// expected-error @below {{expects the inner side of the box to be the span of the swizzle (64 bytes), got 128}}
func.func private @c3_inner_side_above_the_span(!kvcache.tma_tile<64x1xbf16, swizzle_64b>)

// -----

// expected-error @below {{expects l2_promotion to be 64, 128 or 256, got 32}}
func.func private @c4_promotion(!kvcache.tma_tile<64x1xbf16, l2_promotion = 32>)

// -----

// expected-error @below {{expects l2_promotion to be 64, 128 or 256, got -64}}
func.func private @c4_negative_promotion(!kvcache.tma_tile<64x1xbf16, l2_promotion = -64>)

// -----

// expected-error @below {{expects l2_promotion to be 64, 128 or 256, got 0}}
func.func private @c4_promotion_of_zero(!kvcache.tma_tile<64x1xbf16, l2_promotion = 0>)

// -----

// expected-error @below {{integer value too large}}
func.func private @c4_promotion_of_more_bits(!kvcache.tma_tile<64x1xbf16, l2_promotion = 99999999999999999999>)

// -----

// expected-error @below {{expected '='}}
func.func private @promotion_without_value(!kvcache.tma_tile<64x1xbf16, l2_promotion>)

// -----

// expected-error @below {{expects a swizzle or 'l2_promotion', each at most once, got 'swizzle_256b'}}
func.func private @unknown_swizzle(!kvcache.tma_tile<64x1xbf16, swizzle_256b>)

// -----

// expected-error @below {{expects a swizzle or 'l2_promotion', each at most once, got 'swizzle_128b'}}
func.func private @two_swizzles(!kvcache.tma_tile<64x1xbf16, none, swizzle_128b>)

// -----

// expected-error @below {{expects a swizzle or 'l2_promotion', each at most once, got 'l2_promotion'}}
func.func private @two_promotions(!kvcache.tma_tile<64x1xbf16, l2_promotion = 64, l2_promotion = 64>)

// -----

// expected-error @below {{expected '>'}}
func.func private @missing_comma(!kvcache.tma_tile<64x1xbf16 swizzle_128b>)

// -----

// expected-error @below {{expected non-function type}}
func.func private @empty(!kvcache.tma_tile<>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!large = !kvcache.paged<bf16, #kv, page_size = 1024>

func.func @c1_tile_of_too_many_rows(%k: !large) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects box side 2 from 1 to 256, got 512}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 512, swizzle = #kvcache.swizzle<swizzle_128b>} : !large -> !kvcache.tma_tile<64x1x256xbf16, swizzle_128b>
  return
}

// -----

#odd = #kvcache.params<num_heads = 1, head_size = 100>
!odd = !kvcache.paged<bf16, #odd, page_size = 64>

func.func @c1_tile_of_heads_at_odd_bytes(%k: !odd) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects stride 1 to be a multiple of 16 bytes, got 200}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !odd -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#tiny = #kvcache.params<num_heads = 1, head_size = 4>
!tiny = !kvcache.continuous<bf16, #tiny>

func.func @c1_matrix_of_rows_at_odd_bytes(%k: !tiny) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects stride 1 to be a multiple of 16 bytes, got 8}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !tiny -> !kvcache.tma_tile<8x64xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!four_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>>

func.func @c2_tile_of_scales(%k: !four_scales) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !four_scales -> !kvcache.tma_tile<4x1x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_columns_of_a_paged_cache(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' and 'mn_major' only for a continuous cache}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 64, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_mn_major_of_a_paged_cache(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' and 'mn_major' only for a continuous cache}}
  %desc = kvcache.create_tma_tile %k {rows = 64, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

func.func @c3_mn_major_with_another_swizzle(%k: !continuous) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'swizzle_128b' with 'mn_major', got 'swizzle_64b'}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 64, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_64b>} : !continuous -> !kvcache.tma_tile<32x8xbf16, swizzle_64b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

func.func @c3_mn_major_without_columns(%k: !continuous) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' with 'mn_major'}}
  %desc = kvcache.create_tma_tile %k {rows = 64, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>} : !continuous -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @tile_of_a_collection(%k: !collection) {
  // expected-error @below {{'kvcache.create_tma_tile' op operand #0 must be view of a paged or continuous cache or of scales, but got '!kvcache.paged_collection<bf16,}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !collection -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @result_of_other_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<64x1x32xbf16, swizzle_128b>' are incompatible with return type(s) of operation '!kvcache.tma_tile<64x1x64xbf16, swizzle_128b>'}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 32, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @result_of_another_swizzle(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<8x1x64xbf16>' are incompatible}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @result_of_another_type(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<8x1x64xbf16>' are incompatible}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<8x1x64xf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @result_without_promotion(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<8x1x64xbf16, l2_promotion = 128>' are incompatible}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64, l2_promotion = 128} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @result_of_no_descriptor(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op result #0 must be TMA descriptor (tensor map), but got 'index'}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !cache -> index
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @no_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op requires attribute 'rows'}}
  %desc = kvcache.create_tma_tile %k {swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @rows_of_zero(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_tma_tile %k {rows = 0} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @negative_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_tma_tile %k {rows = -64} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @rows_of_32_bits(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_tma_tile %k {rows = 64 : i32} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @rows_of_more_bits(%k: !cache) {
  // expected-error @below {{integer constant out of range for attribute}}
  %desc = kvcache.create_tma_tile %k {rows = 99999999999999999999} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

func.func @negative_columns(%k: !continuous) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'columns' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = -1} : !continuous -> !kvcache.tma_tile<8x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @unknown_promotion(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'l2_promotion' failed to satisfy constraint: 64-bit signless integer attribute whose value is 0, 64, 128 or 256}}
  %desc = kvcache.create_tma_tile %k {rows = 64, l2_promotion = 32} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @swizzle_of_no_enum(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'swizzle' failed to satisfy constraint: layout of tiles in shared memory}}
  %desc = kvcache.create_tma_tile %k {rows = 64, swizzle = "swizzle_128b"} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!large = !kvcache.paged<bf16, #kv, page_size = 1024>

func.func @c1_paged_of_too_many_rows(%k: !large) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects box side 2 from 1 to 256, got 512}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 512, columns = 64} : !large -> !kvcache.tma_tile<64x1x256x1xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_paged_of_too_many_columns(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects box side 0 from 1 to 256, got 512}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 512} : !cache -> !kvcache.tma_tile<256x1x64x1xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_paged_of_columns_of_odd_bytes(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects the inner side of the box to be a multiple of 16 bytes, got 24}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 12} : !cache -> !kvcache.tma_tile<8x1x64x1xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

func.func @c2_paged_of_a_continuous_cache(%k: !continuous) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'cache' to be a view of a paged cache, got '!kvcache.continuous<bf16,}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 64} : !continuous -> !kvcache.tma_tile<64x1x64x1xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!four_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>>

func.func @c2_paged_of_scales(%k: !four_scales) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 4} : !four_scales -> !kvcache.tma_tile<4x1x64x1xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_paged_of_rows_that_do_not_divide_a_page(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'rows' to divide page_size (64), got 48}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 48, columns = 64} : !cache -> !kvcache.tma_tile<64x1x48x1xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @no_columns(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op requires attribute 'columns'}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<64x1x64x1xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_ragged_of_too_many_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects box side 1 from 1 to 256, got 257}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 257, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x256x1x1xbf16, swizzle_128b>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_ragged_of_more_rows_than_memory(%k: !cache) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects size 1 from 1 to 2^31, got 9223372036854775807}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 9223372036854775807} : !cache -> !kvcache.tma_tile<8x256x1x1xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!four_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>>

func.func @c2_ragged_of_scales(%k: !four_scales) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 64} : !four_scales -> !kvcache.tma_tile<4x64x1x1xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_ragged_of_columns_with_a_swizzle(%k: !cache) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects 'columns' only without a swizzle}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 64, columns = 64, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

func.func @c1_rope_behind_odd_bytes(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects the tensor to start at a multiple of 16 bytes, got 520}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 60, padded_depth = 520} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 512>>

func.func @c2_rope_of_scales(%k: !scales) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 384} : !scales -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!wide = !kvcache.paged<bf16, #rope, page_size = 64>

func.func @c3_rope_of_two_bytes(%k: !wide) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects 'cache' to have one head of one-byte elements, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 512} : !wide -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#two = #kvcache.params<num_heads = 2, head_size = 640>
!two_heads = !kvcache.paged<f8E4M3FN, #two, page_size = 64>

func.func @c3_rope_of_two_heads(%k: !two_heads) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects 'cache' to have one head of one-byte elements, got '!kvcache.paged<f8E4M3FN,}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 512} : !two_heads -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

func.func @c3_rope_that_does_not_fit(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects padded_depth + 2 bytes of rope for each column to be head_size (640), got 512 + 2 * 32}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 32, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

// 642 + 2 * (2^63 - 1) is 640 in 64 bits.
func.func @c3_rope_of_a_sum_that_wraps(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects padded_depth + 2 bytes of rope for each column to be head_size (640), got 642 + 2 * 9223372036854775807}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 9223372036854775807, padded_depth = 642} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

func.func @no_padded_depth(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op requires attribute 'padded_depth'}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c1_gather4_of_too_many_columns(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects box side 0 from 1 to 256, got 576}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 576} : !mla_cache -> !kvcache.tma_tile<256x1xf8E4M3FN>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c1_gather4_of_columns_of_odd_bytes(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects the inner side of the box to be a multiple of 16 bytes, got 568}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 71, dtype = i64} : !mla_cache -> !kvcache.tma_tile<72x1xi64>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c1_gather4_of_index(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'index'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = index} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c1_gather4_of_half_bytes(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'f4E2M1FN'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = f4E2M1FN} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c1_gather4_of_part_of_a_byte(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'i12'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = i12} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c1_gather4_of_three_bytes(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'i24'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = i24} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c1_gather4_of_vectors(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'vector<4xf32>'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = vector<4xf32>} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!four_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>>

func.func @c2_gather4_of_scales(%k: !four_scales) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 4} : !four_scales -> !kvcache.tma_tile<4x1xf32>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c3_gather4_of_odd_rows(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_height' to be a multiple of 4, got 66}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 66, tile_width = 64} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c3_gather4_of_more_columns_than_the_stride(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride' to be at least 'tile_width' (74), got 72}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 74, dtype = i64} : !mla_cache -> !kvcache.tma_tile<74x1xi64>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c3_gather4_of_more_columns_than_a_row_whatever_the_result(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride' to be at least 'tile_width' (592), got 576}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 592} : !mla_cache -> !kvcache.tma_tile<72x1xi64>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @c4_gather4_of_less_than_a_row(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride' to be a row of the cache (576 bytes), got 64 elements of 8 bytes}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 64, dtype = i64} : !mla_cache -> !kvcache.tma_tile<64x1xi64>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

// 8 * (2^61 + 72) is 576 in 64 bits.
func.func @c4_gather4_of_a_stride_that_wraps(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride' to be a row of the cache (576 bytes), got 2305843009213694024 elements of 8 bytes}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 2305843009213694024, dtype = i64} : !mla_cache -> !kvcache.tma_tile<64x1xi64>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @no_tile_height(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op requires attribute 'tile_height'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_width = 64} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @no_tile_width(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op requires attribute 'tile_width'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @tile_stride_of_zero(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op attribute 'tile_stride' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 0} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>

func.func @dtype_of_no_type(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op attribute 'dtype' failed to satisfy constraint: any type attribute}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, dtype = 3} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

func.func @c1_rope_gather4_of_columns_of_odd_bytes(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects the inner side of the box to be a multiple of 16 bytes, got 120}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 60, padded_depth = 520} : !rope_cache -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 512>>

func.func @c2_rope_gather4_of_scales(%k: !scales) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 384} : !scales -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!wide = !kvcache.paged<bf16, #rope, page_size = 64>

func.func @c3_rope_gather4_of_two_bytes(%k: !wide) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects 'cache' to have one head of one-byte elements, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 512} : !wide -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

func.func @c3_rope_gather4_that_does_not_fit(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects padded_depth + 2 bytes of rope for each column to be head_size (640), got 512 + 2 * 32}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 32, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<32x1xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!rope_cache = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

func.func @c4_rope_gather4_of_odd_rows(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects 'tile_height' to be a multiple of 4, got 2}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 2, tile_width = 64, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 512>>

func.func @c1_scales_of_odd_bytes(%k: !scales) {
  // expected-error @below {{'kvcache.create_scale_tma_tile' op expects the inner side of the box to be a multiple of 16 bytes, got 24}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_scale_tma_tile %k {rows = 6} : !scales -> !kvcache.tma_tile<8x1xf32>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!large_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 1024, scale = f32, granularity = 512>>

func.func @c1_scales_of_too_many_rows(%k: !large_scales) {
  // expected-error @below {{'kvcache.create_scale_tma_tile' op expects box side 0 from 1 to 256, got 512}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_scale_tma_tile %k {rows = 512} : !large_scales -> !kvcache.tma_tile<256x1xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c2_scales_of_a_cache(%k: !cache) {
  // expected-error @below {{'kvcache.create_scale_tma_tile' op expects 'cache' to be a view of scales, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_scale_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

func.func @c2_scales_of_a_continuous_cache(%k: !continuous) {
  // expected-error @below {{'kvcache.create_scale_tma_tile' op expects 'cache' to be a view of scales, got '!kvcache.continuous<bf16,}}
  %desc = kvcache.create_scale_tma_tile %k {rows = 64} : !continuous -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!four_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>>

func.func @c3_scales_of_several_groups(%k: !four_scales) {
  // expected-error @below {{'kvcache.create_scale_tma_tile' op expects a token to have one scale, got 4}}
  %desc = kvcache.create_scale_tma_tile %k {rows = 64} : !four_scales -> !kvcache.tma_tile<64x1xf32>
  return
}

// -----

func.func @c1_encode_of_too_few_sizes(%base: memref<bf16>, %i: index) {
  // expected-error @below {{'kvcache.encode_tensor_map' op expects a size for each side of the box (2), got 1}}
  %desc = kvcache.encode_tensor_map %base sizes [%i] strides [%i] : memref<bf16> -> !kvcache.tma_tile<64x64xbf16>
  return
}

// -----

func.func @c1_encode_of_too_many_strides(%base: memref<bf16>, %i: index) {
  // expected-error @below {{'kvcache.encode_tensor_map' op expects a stride for each side of the box but the first (1), got 2}}
  %desc = kvcache.encode_tensor_map %base sizes [%i, %i] strides [%i, %i] : memref<bf16> -> !kvcache.tma_tile<64x64xbf16>
  return
}

// -----

func.func @encode_of_a_number(%base: memref<bf16>, %i: index) {
  // expected-error @below {{expected builtin.memref, but found 'index'}}
  %desc = kvcache.encode_tensor_map %i sizes [%i, %i] strides [%i] : index -> !kvcache.tma_tile<64x64xbf16>
  return
}

// -----

func.func @encode_of_no_descriptor(%base: memref<bf16>, %i: index) {
  // expected-error @below {{result #0 must be TMA descriptor (tensor map)}}
  %desc = kvcache.encode_tensor_map %base sizes [%i, %i] strides [%i] : memref<bf16> -> memref<bf16>
  return
}

// -----

func.func @generic_encode_without_segments(%base: memref<bf16>, %i: index) {
  // expected-error @below {{operand count (4) does not match with the total size (0) specified in attribute 'operandSegmentSizes'}}
  %desc = "kvcache.encode_tensor_map"(%base, %i, %i, %i) : (memref<bf16>, index, index, index) -> !kvcache.tma_tile<64x64xbf16>
  return
}

// -----

// (C4): the shape of these depends on the page size

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!any_pages = !kvcache.paged<bf16, #kv, page_size = ?>

func.func @c4_tile_of_pages_of_any_size(%k: !any_pages) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'cache' to have a static page_size, got '!kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = ?>'}}
  // expected-error @below {{failed to infer returned types}}
  %a = kvcache.create_tma_tile %k {rows = 16} : !any_pages -> !kvcache.tma_tile<8x1x16xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!any_pages = !kvcache.paged<bf16, #kv, page_size = ?>

func.func @c4_paged_tile_of_pages_of_any_size(%k: !any_pages) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'cache' to have a static page_size, got}}
  // expected-error @below {{failed to infer returned types}}
  %a = kvcache.create_paged_tma_tile %k {rows = 16, columns = 128}
       : !any_pages -> !kvcache.tma_tile<128x1x16x1xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!any_pages = !kvcache.paged<f8E4M3FN, #rope, page_size = ?>

func.func @c4_rope_of_pages_of_any_size(%k: !any_pages) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects 'cache' to have a static page_size, got}}
  // expected-error @below {{failed to infer returned types}}
  %a = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 512}
       : !any_pages -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!any_pages = !kvcache.paged<f8E4M3FN, #latent, page_size = ?, scale = f32, granularity = 512>
!scales = !kvcache.scales<!any_pages>

func.func @c4_scales_of_pages_of_any_size(%s: !scales) {
  // expected-error @below {{'kvcache.create_scale_tma_tile' op expects 'cache' to have a static page_size, got}}
  // expected-error @below {{failed to infer returned types}}
  %a = kvcache.create_scale_tma_tile %s {rows = 64} : !scales -> !kvcache.tma_tile<64x1xf32>
  return
}

// -----

// Layouts

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!pitched = !kvcache.paged<f8E4M3FN, #rope, page_size = 64, layout = [token = 656]>

func.func @c3_rope_of_a_layout(%k: !pitched) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects 'cache' to have packed rows, got '!kvcache.paged<f8E4M3FN,}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 512} : !pitched -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!pitched = !kvcache.paged<f8E4M3FN, #rope, page_size = 64, layout = [token = 656]>

func.func @c3_rope_gather_of_a_layout(%k: !pitched) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects 'cache' to have packed rows, got '!kvcache.paged<f8E4M3FN,}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 512} : !pitched -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!open = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>

func.func @c6_gather_of_open_heads(%k: !open) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'cache' to have a static head stride, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 128} : !open -> !kvcache.tma_tile<128x1xbf16>
  return
}

// -----

#one = #kvcache.params<num_heads = 1, head_size = 124>
!odd = !kvcache.paged<f8E4M3FN, #one, page_size = 64, layout = [token = 128]>

func.func @c6_row_of_odd_size(%k: !odd) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects a row of the cache to have a multiple of 8 bytes, got 124}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 8, dtype = i64} : !odd -> !kvcache.tma_tile<8x1xi64>
  return
}

// -----

#one = #kvcache.params<num_heads = 1, head_size = 128>
!pitched = !kvcache.paged<f8E4M3FN, #one, page_size = 64, layout = [token = 256]>

func.func @c6_tile_wider_than_a_row(%k: !pitched) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_width' to be at most a row of the cache (128 elements), got 256}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 256} : !pitched -> !kvcache.tma_tile<256x1xf8E4M3FN>
  return
}

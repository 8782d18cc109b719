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

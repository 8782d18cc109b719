// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of paged_collection and paged

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects page_size to be positive, got 0}}
func.func private @c1_no_page_size(!kvcache.paged_collection<bf16, #kv, page_size = 0>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects page_size to be positive, got -64}}
func.func private @c1_negative_page_size(!kvcache.paged<bf16, #kv, page_size = -64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a page of page_size * num_heads * head_size elements to have fewer than 2^31, got 2097152 * 1024}}
func.func private @c1_large_page(!kvcache.paged_collection<bf16, #kv, page_size = 2097152>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a page of page_size * num_heads * head_size elements to have fewer than 2^31, got 9007199254740992 * 1024}}
func.func private @c1_overflowing_page(!kvcache.paged<bf16, #kv, page_size = 9007199254740992>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects page_size to be positive, got -9223372036854775808}}
func.func private @c1_number_for_an_open_page_size(!kvcache.paged<bf16, #kv, page_size = -9223372036854775808>)

// -----

// expected-error @below {{expects rows to be positive, got 0}}
func.func private @c1_no_rows_of_an_open_page_size(!kvcache.row_indices<rows = 0, page_size = ?>)

// -----

// (C2)

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32, i64, f4E2M1FN or i4, got 'f80'}}
func.func private @c2_wide_float(!kvcache.paged_collection<f80, #kv, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32, i64, f4E2M1FN or i4, got 'f8E4M3FNUZ'}}
func.func private @c2_other_8_bit_float(!kvcache.paged<f8E4M3FNUZ, #kv, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32, i64, f4E2M1FN or i4, got 'f6E2M3FN'}}
func.func private @c2_other_6_bit_float(!kvcache.paged<f6E2M3FN, #kv, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32, i64, f4E2M1FN or i4, got 'i128'}}
func.func private @c2_wide_integer(!kvcache.paged<i128, #kv, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32, i64, f4E2M1FN or i4, got 'ui8'}}
func.func private @c2_unsigned_integer(!kvcache.paged<ui8, #kv, page_size = 64, scale = f32, granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32, i64, f4E2M1FN or i4, got 'none'}}
func.func private @c2_no_number(!kvcache.paged<none, #kv, page_size = 64, scale = f32, granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32, i64, f4E2M1FN or i4, got 'tensor<2xf32>'}}
func.func private @c2_shaped(!kvcache.paged<tensor<2xf32>, #kv, page_size = 64, scale = f32, granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a scale type for elements of type 'f4E2M1FN'}}
func.func private @c2_4_bit_float_without_scales(!kvcache.paged<f4E2M1FN, #kv, page_size = 64>)

// -----

// (C3)

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c3_granularity_without_scale(
  // expected-error @below {{expects granularity only with a scale type}}
  !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, granularity = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects quantized elements of f8E4M3FN, f8E5M2, i8, f4E2M1FN or i4, got 'i16'}}
func.func private @c2_wide_integer_with_scales(!kvcache.paged<i16, #kv, page_size = 64, scale = f32, granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c3_no_granularity(
  // expected-error @below {{expects granularity to be positive}}
  !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 0>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c3_negative_granularity(
  // expected-error @below {{expects granularity to be positive, got -1}}
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = -1>)

// -----

// (C4)

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c4_wide_scale(
  // expected-error @below {{expects a scale type of f32, f16, bf16, f8E8M0FNU or f8E4M3FN, got 'f64'}}
  !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f64, granularity = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a scale type of f32, f16, bf16, f8E8M0FNU or f8E4M3FN, got 'i32'}}
func.func private @c4_integer_scale(!kvcache.paged<i8, #kv, page_size = 64, scale = i32, granularity = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c4_shaped_scale(
  // expected-error @below {{expects a scale type of f32, f16, bf16, f8E8M0FNU or f8E4M3FN, got 'memref<2xf32>'}}
  !kvcache.paged<i8, #kv, page_size = 64, scale = memref<2xf32>, granularity = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c4_wide_quantized_elements(
  // expected-error @below {{expects quantized elements of f8E4M3FN, f8E5M2, i8, f4E2M1FN or i4, got 'bf16'}}
  !kvcache.paged_collection<bf16, #kv, page_size = 64, scale = f32, granularity = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c4_nvfp4_granularity(
  // expected-error @below {{expects f4E2M1FN with granularity 16 and scales of f8E4M3FN (NVFP4), or 32 and f8E8M0FNU (MX), got 32 and 'f8E4M3FN'}}
  !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c4_mx_granularity(
  // expected-error @below {{expects f4E2M1FN with granularity 16 and scales of f8E4M3FN (NVFP4), or 32 and f8E8M0FNU (MX), got 16 and 'f8E8M0FNU'}}
  !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 16>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c4_4_bit_scale_type(
  // expected-error @below {{expects f4E2M1FN with granularity 16 and scales of f8E4M3FN (NVFP4), or 32 and f8E8M0FNU (MX), got 16 and 'f32'}}
  !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f32, granularity = 16>)

// -----

// (C5)

func.func private @c5_odd_head_size(
  // expected-error @below {{expects an even head_size for 'f4E2M1FN', got 63}}
  !kvcache.paged_collection<f4E2M1FN, #kvcache.params<num_heads = 8, head_size = 63>, page_size = 64, scale = f8E4M3FN, granularity = 16>)

// -----

// (C1) of continuous_collection and continuous

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32 or i64, got 'i1'}}
func.func private @c1_continuous_collection_of_bits(!kvcache.continuous_collection<i1, #kv>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32 or i64, got 'f4E2M1FN'}}
func.func private @c1_continuous_cache_of_4_bit_floats(!kvcache.continuous<f4E2M1FN, #kv>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects an element type of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8, i16, i32 or i64, got 'vector<8xbf16>'}}
func.func private @c1_continuous_cache_of_vectors(!kvcache.continuous<vector<8xbf16>, #kv>)

// -----

// (C1) of row_indices

// expected-error @below {{expects rows to be positive, got 0}}
func.func private @c1_no_rows(!kvcache.row_indices<rows = 0, page_size = 64>)

// -----

// expected-error @below {{expects rows to be positive, got -128}}
func.func private @c1_negative_rows(!kvcache.row_indices<rows = -128>)

// -----

// expected-error @below {{expects page_size to be positive, got -64}}
func.func private @c1_rows_of_negative_page_size(!kvcache.row_indices<rows = 128, page_size = -64>)

// -----

// (C2) of row_indices

// expected-error @below {{expects rows to be at most page_size or a multiple of it (64), got 96}}
func.func private @c2_rows_past_a_page(!kvcache.row_indices<rows = 96, page_size = 64>)

// -----

// (C1) of row_indices

// expected-error @below {{expects page_size to be positive, got 0}}
func.func private @c1_rows_of_no_page_size(!kvcache.row_indices<rows = 128, page_size = 0>)

// -----

// A bundle holds a row for each page.
// expected-error @below {{expects rows of at most 1024 pages, got 9223372036854775807}}
func.func private @rows_of_too_many_pages(!kvcache.row_indices<rows = 9223372036854775807, page_size = 1>)

// -----

// (C5), (C11) of paged types

#kv = #kvcache.params<num_heads = 8, head_size = 63>

func.func private @c5_odd_head_of_int4(
  // expected-error @below {{expects an even head_size for 'i4', got 63}}
  !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 1, zero_point = f16>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c2_int4_without_scales(
  // expected-error @below {{expects a scale type for elements of type 'i4'}}
  !kvcache.paged<i4, #kv, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c11_int4_without_zero_points(
  // expected-error @below {{expects zero_point for elements of type i4}}
  !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c11_zero_points_of_bytes(
  // expected-error @below {{expects zero_point only for elements of type i4, got 'i8'}}
  !kvcache.paged<i8, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c11_zero_points_without_scales(
  // expected-error @below {{expects zero_point only with a scale type}}
  !kvcache.paged<bf16, #kv, page_size = 64, zero_point = f16>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c11_zero_points_of_another_type(
  // expected-error @below {{expects zero_point to be the scale type ('f16'), got 'f32'}}
  !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c11_narrow_zero_points(
  // expected-error @below {{expects f32, f16 or bf16 for scale and zero_point, got 'f8E4M3FN'}}
  !kvcache.paged<i4, #kv, page_size = 64, scale = f8E4M3FN, granularity = 32, zero_point = f8E4M3FN>)

// -----

// (C12) of paged types

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c12_no_tokens(
  // expected-error @below {{expects token_granularity to be positive, got 0}}
  !kvcache.paged<i8, #kv, page_size = 64, scale = f16, token_granularity = 0>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c12_negative_tokens(
  // expected-error @below {{expects token_granularity to be positive, got -2}}
  !kvcache.paged<i8, #kv, page_size = 64, scale = f16, token_granularity = -2>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c12_shared_by_tokens_without_scales(
  // expected-error @below {{expects token_granularity only with a scale type}}
  !kvcache.paged<bf16, #kv, page_size = 64, token_granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c12_shared_by_tokens_and_channels(
  // expected-error @below {{expects granularity to be 1 with token_granularity, got 32}}
  !kvcache.paged<i8, #kv, page_size = 64, scale = f16, granularity = 32, token_granularity = 32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c12_group_beyond_a_page(
  // expected-error @below {{expects token_granularity to divide page_size (64), got 128}}
  !kvcache.paged<i8, #kv, page_size = 64, scale = f16, token_granularity = 128>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c12_group_that_does_not_divide_a_page(
  // expected-error @below {{expects token_granularity to divide page_size (64), got 48}}
  !kvcache.paged<i8, #kv, page_size = 64, scale = f16, token_granularity = 48>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c12_open_page_size(
  // expected-error @below {{expects a number for page_size with token_granularity}}
  !kvcache.paged<i8, #kv, page_size = ?, scale = f16, token_granularity = 16>)

// -----

// (C10) of paged types

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @c10_interleaved_zero_points(
  // expected-error @below {{expects 'interleave' only without zero_point and token_granularity}}
  !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16, scale_layout = [token = 8, head = 512, interleave = 4]>)

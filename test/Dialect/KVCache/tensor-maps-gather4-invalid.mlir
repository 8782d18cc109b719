// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_gather4_of_too_many_columns(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects box side 0 from 1 to 256, got 576}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 576} : !mla_cache -> !kvcache.tma_tile<256x1xf8E4M3FN>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_gather4_of_columns_of_odd_bytes(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects the inner side of the box to be a multiple of 16 bytes, got 568}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 71, tile_stride = 72, dtype = i64} : !mla_cache -> !kvcache.tma_tile<72x1xi64>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_gather4_of_index(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'index'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = index} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_gather4_of_half_bytes(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'f4E2M1FN'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = f4E2M1FN} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_gather4_of_part_of_a_byte(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'i12'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = i12} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_gather4_of_three_bytes(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'i24'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 32, dtype = i24} : !mla_cache -> !kvcache.tma_tile<32x1xi8>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

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

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c3_gather4_of_odd_rows(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_height' to be a multiple of 4, got 66}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 66, tile_width = 64} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c3_gather4_of_more_columns_than_the_stride(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride' to be at least 'tile_width' (64), got 62}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 62, dtype = i64} : !mla_cache -> !kvcache.tma_tile<64x1xi64>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c4_gather4_of_more_columns_than_a_row_whatever_the_result(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride', by default 'tile_width', to be at most a row of the cache (576 bytes), got 592 elements of 1 bytes}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 592} : !mla_cache -> !kvcache.tma_tile<72x1xi64>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c4_gather4_of_more_than_a_row(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride', by default 'tile_width', to be at most a row of the cache (576 bytes), got 73 elements of 8 bytes}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 73, dtype = i64} : !mla_cache -> !kvcache.tma_tile<64x1xi64>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_gather4_of_a_stride_of_odd_bytes(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects stride 1 to be a multiple of 16 bytes, got 568}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_width = 64, tile_stride = 71, dtype = i64} : !mla_cache -> !kvcache.tma_tile<64x1xi64>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// 8 * (2^61 + 72) is 576 in 64 bits.
func.func @c4_gather4_of_a_stride_that_wraps(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride', by default 'tile_width', to be at most a row of the cache (576 bytes), got 2305843009213694024 elements of 8 bytes}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 2305843009213694024, dtype = i64} : !mla_cache -> !kvcache.tma_tile<64x1xi64>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @tile_height_of_zero(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op attribute 'tile_height' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 0, tile_width = 64} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @no_tile_width(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op requires attribute 'tile_width'}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @tile_stride_of_zero(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op attribute 'tile_stride' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, tile_stride = 0} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

!mla_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @dtype_of_no_type(%k: !mla_cache) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op attribute 'dtype' failed to satisfy constraint: any type attribute}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 64, dtype = 3} : !mla_cache -> !kvcache.tma_tile<64x1xf8E4M3FN>
  return
}

// -----

!rope_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

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

!wide = !kvcache.paged<bf16, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

func.func @c3_rope_gather4_of_two_bytes(%k: !wide) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects 'cache' to have one head of one-byte elements, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 512} : !wide -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

!rope_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

func.func @c3_rope_gather4_that_does_not_fit(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects padded_depth + 2 bytes of rope for each column to be head_size (640), got 512 + 2 * 32}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 32, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<32x1xbf16>
  return
}

// -----

!rope_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

func.func @c4_rope_gather4_of_odd_rows(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_gather4_tma_tile' op expects 'tile_height' to be a multiple of 4, got 2}}
  %desc = kvcache.create_rope_gather4_tma_tile %k {tile_height = 2, tile_width = 64, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<64x1xbf16>
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

!open = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64, layout = [token = 256, head = ?]>

func.func @c6_gather_of_open_heads(%k: !open) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'cache' to have a static head stride, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 128} : !open -> !kvcache.tma_tile<128x1xbf16>
  return
}

// -----

!pitched = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 128>, page_size = 64, layout = [token = 256]>

func.func @c6_stride_of_less_than_a_token(%k: !pitched) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_stride' to be the token stride of the cache (256 bytes), got 128 elements of 1 bytes}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_width = 128, tile_stride = 128} : !pitched -> !kvcache.tma_tile<128x1xf8E4M3FN>
  return
}

// -----

!odd = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 124>, page_size = 64, layout = [token = 128]>

func.func @c6_row_of_odd_size(%k: !odd) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects a row of the cache to have a multiple of 8 bytes, got 124}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 8, dtype = i64} : !odd -> !kvcache.tma_tile<8x1xi64>
  return
}

// -----

!pitched = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 128>, page_size = 64, layout = [token = 256]>

func.func @c6_tile_wider_than_a_row(%k: !pitched) {
  // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects 'tile_width' to be at most a row of the cache (128 elements), got 256}}
  %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 256} : !pitched -> !kvcache.tma_tile<256x1xf8E4M3FN>
  return
}

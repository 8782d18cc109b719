// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!four_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>>

func.func @c2_tile_of_scales(%k: !four_scales) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !four_scales -> !kvcache.tma_tile<4x1x64xf32>
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

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!four_scales = !kvcache.scales<!kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>>

func.func @c2_ragged_of_scales(%k: !four_scales) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects 'cache' not to be a view of scales, which needs 'kvcache.create_scale_tma_tile'}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 64} : !four_scales -> !kvcache.tma_tile<4x64x1x1xf32>
  return
}

// -----

!rope_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

func.func @c1_rope_after_odd_bytes(%k: !rope_cache) {
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

!wide = !kvcache.paged<bf16, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

func.func @c3_rope_of_two_bytes(%k: !wide) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects 'cache' to have one head of one-byte elements, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 512} : !wide -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!two_heads = !kvcache.paged<f8E4M3FN, <num_heads = 2, head_size = 640>, page_size = 64>

func.func @c3_rope_of_two_heads(%k: !two_heads) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects 'cache' to have one head of one-byte elements, got '!kvcache.paged<f8E4M3FN,}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 512} : !two_heads -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!rope_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

func.func @c3_rope_that_does_not_fit(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects padded_depth + 2 bytes of rope for each column to be head_size (640), got 512 + 2 * 32}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 32, padded_depth = 512} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!rope_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

// 642 + 2 * (2^63 - 1) is 640 in 64 bits.
func.func @c3_rope_of_a_sum_that_wraps(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op expects padded_depth + 2 bytes of rope for each column to be head_size (640), got 642 + 2 * 9223372036854775807}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 9223372036854775807, padded_depth = 642} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!rope_cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>

func.func @no_padded_depth(%k: !rope_cache) {
  // expected-error @below {{'kvcache.create_rope_tma_tile' op requires attribute 'padded_depth'}}
  %desc = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64} : !rope_cache -> !kvcache.tma_tile<8x1x64xbf16>
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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_scales_of_a_cache(%k: !cache) {
  // expected-error @below {{'kvcache.create_scale_tma_tile' op expects 'cache' to be a view of scales, got '!kvcache.paged<bf16,}}
  %desc = kvcache.create_scale_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<64x1xbf16>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

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

!any_pages = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = ?>

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

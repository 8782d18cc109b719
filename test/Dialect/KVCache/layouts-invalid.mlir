// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects the token stride of layout to be at least a head (128), got 64}}
func.func private @token_stride_below_a_head(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 64, head = 8192]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects the head stride of layout to be at least a head (128), got 64}}
func.func private @head_stride_below_a_head(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 1024, head = 64]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects the elements of layout not to overlap: heads span 28800 elements, and tokens are 128 apart; tokens span 8192, and heads are 4096 apart}}
func.func private @overlapping_heads(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 4096]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects the elements of layout not to overlap: heads span 1024 elements, and tokens are 1000 apart; tokens span 63128, and heads are 128 apart}}
func.func private @overlapping_tokens(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 1000, head = 128]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a number for 'token', because only the stride of heads may be '?'}}
func.func private @open_token_stride(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = ?, head = 8192]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects strides to be positive, got 0}}
func.func private @zero_stride(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 0]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects strides to be positive, got -128}}
func.func private @negative_stride(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = -128, head = 8192]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects the head stride of layout to be from 1 to 2^40 - 1, got 1099511627776}}
func.func private @stride_out_of_range(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 1099511627776]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a page of layout to span fewer than 2^40 elements}}
func.func private @page_out_of_range(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 549755813888]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'token'}}
func.func private @without_token(!kvcache.paged<bf16, #kv, page_size = 64, layout = [head = 8192]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects layout to have a head stride if and only if there are several heads, got 8 of them}}
func.func private @without_head(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'token', 'head', 'role' and 'interleave', each at most once, got 'token'}}
func.func private @repeated_stride(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, token = 256]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'token', 'head', 'role' and 'interleave', each at most once, got 'page'}}
func.func private @unknown_stride(!kvcache.paged<bf16, #kv, page_size = 64, layout = [page = 256]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'nhd', 'hnd', strides or a layout, got 256 : i64}}
func.func private @another_attribute(!kvcache.paged<bf16, #kv, page_size = 64, layout = 256>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'scale', 'granularity', 'zero_point', 'token_granularity', 'layout', 'scale_layout' or 'table', each at most once, got 'layout'}}
func.func private @repeated_layout(!kvcache.paged<bf16, #kv, page_size = 64, layout = hnd, layout = hnd>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects scale_layout only with scale and granularity}}
func.func private @scale_layout_without_scales(!kvcache.paged<bf16, #kv, page_size = 64, scale_layout = hnd>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects the token stride of scale_layout to be at least a head (4), got 2}}
func.func private @scales_too_near(!kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 32, scale_layout = [token = 2, head = 256]>)


// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64, layout = hnd>
!blocks = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>

func.func @packed_blocks(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of the layout, [128, 8192, 1], got 'memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64, layout = hnd>
!blocks = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 128, ?, 1], offset: ?>>

func.func @open_head_stride_of_blocks(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of the layout, [128, 8192, 1], got 'memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 128, ?, 1], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!blocks = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 256, ?, 2], offset: ?>>

func.func @inner_stride(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of the layout, [256, ?, 1], got 'memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 256, ?, 2], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!blocks = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 256, 16388, 1], offset: ?>>

func.func @head_stride_breaks_alignment(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects stride 4 of 'blocks' to be a multiple of 8, so that pages are as aligned as rows, got 16388}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!blocks = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 256, 4096, 1], offset: ?>>

func.func @overlapping_blocks(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects the elements of 'blocks' not to overlap: heads span 28800 elements, and tokens are 256 apart; tokens span 16256, and heads are 4096 apart}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!blocks = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 256, -16384, 1], offset: ?>>

func.func @negative_head_stride(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects the head stride of 'blocks' to be from 1 to 2^40 - 1, got -16384}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!blocks = memref<?x2x?x64x8x128xbf16, strided<[?, 130, ?, 256, ?, 1], offset: ?>>

func.func @role_stride_breaks_alignment(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects stride 1 of 'blocks' to be a multiple of 8, so that pages are as aligned as rows, got 130}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64, layout = hnd>
!tile = memref<16x128xbf16, strided<[1024, 1], offset: ?>>

func.func @tile_of_packed_rows(%k: !cache, %i: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[128, 1], offset: ?>, got 'memref<16x128xbf16, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%i, %i, %i, %i] : !cache -> !tile
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'interleave' only in scale_layout}}
func.func private @interleaved_elements(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 8192, interleave = 4]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'interleave' to divide page_size (6) and the groups of a head (8), got 4}}
func.func private @interleave_does_not_divide_pages(!kvcache.paged<f4E2M1FN, #kv, page_size = 6, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 48, interleave = 4]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 96>

// expected-error @below {{expects 'interleave' to divide page_size (64) and the groups of a head (6), got 4}}
func.func private @interleave_does_not_divide_groups(!kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 6, head = 384, interleave = 4]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a number for page_size with 'interleave'}}
func.func private @interleave_of_open_pages(!kvcache.paged<f4E2M1FN, #kv, page_size = ?, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = ?, interleave = 4]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects a number for 'interleave', because only the stride of heads may be '?'}}
func.func private @open_interleave(!kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = ?, interleave = ?]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 512, interleave = 4]>

func.func @rows_of_interleaved_scales(%k: !cache, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens}}
  %r = kvcache.scale_row_index %k[%b, %t] : !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 512, interleave = 4]>

func.func @number_of_rows_of_interleaved_scales(%k: !cache) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens}}
  %r = kvcache.num_scale_rows %k : !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 512, interleave = 4]>

func.func @coordinates_of_interleaved_scales(%k: !cache, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens}}
  %r:2 = kvcache.scale_tma_coords %k[%b, %t] : !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 512, interleave = 4]>
!tile = memref<16x8xf8E4M3FN, strided<[8, 1], offset: ?>>

func.func @tile_of_interleaved_scales(%k: !cache, %i: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, which are neither interleaved nor shared by tokens}}
  %m = kvcache.scales_block_tile %k[%i, %i, %i, %i] : !cache -> !tile
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 512, interleave = 4]>
!scales = !kvcache.scales<!cache>
!tile = memref<16x8xf8E4M3FN, strided<[8, 1], offset: ?>>

func.func @tile_of_a_view_of_interleaved_scales(%k: !scales, %i: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, which are neither interleaved nor shared by tokens}}
  %m = kvcache.scales_block_tile %k[%i, %i, %i, %i] : !scales -> !tile
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 512, interleave = 4]>
!scales = !kvcache.scales<!cache>

func.func @row_of_a_view_of_interleaved_scales(%k: !scales, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens}}
  %r = kvcache.row_index %k[%i, %i] : !scales
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 8, head = 512, interleave = 4]>
!scales = !kvcache.scales<!cache>

func.func @coordinates_of_a_view_of_interleaved_scales(%k: !scales, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged cache or of its existing scales, which are neither interleaved nor shared by tokens}}
  %r:2 = kvcache.tma_coords %k[%i, %i] : !scales
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64, layout = hnd>
!pages = memref<?x64x8x128xbf16, strided<[8192, 128, 8192, 1], offset: ?>>

func.func @pages_that_overlap(%pages: !pages, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects stride 0 of 'blocks' to be at least 65536, so that elements do not overlap, got 8192}}
  %c = kvcache.paged_cache %pages, %lengths, %lut, %n, %n : !pages, memref<?xi32>, memref<?x?xi32> -> !cache
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!blocks = memref<?x2x3x64x8x128xbf16, strided<[?, 0, 65536, 1024, 128, 1], offset: ?>>

func.func @keys_that_are_values(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects stride 1 of 'blocks' to be at least 128, so that elements do not overlap, got 0}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

!collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>
!blocks = memref<4x2x3x64x8x128xbf16, strided<[393216, 65536, 131072, 1024, 128, 1]>>

func.func @blocks_side_by_side(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?xi32>, %n: i32) {
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?xi32> -> !collection
  return
}

// -----

!collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>
!blocks = memref<4x2x3x64x8x128xbf16, strided<[393216, 65536, 65536, 1024, 128, 1]>>

func.func @layers_among_values(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?xi32>, %n: i32) {
  // expected-error @below {{expects stride 1 of 'blocks' to be at least 196608, so that elements do not overlap, got 65536}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %n, %n : !blocks, memref<?xi32>, memref<?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'role' of layout only if it is less aligned than tokens and heads (8 bytes), got 136}}
func.func private @aligned_role(!kvcache.paged<i8, #kv, page_size = 64, layout = [token = 264, head = 16896, role = 136]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'role' of layout to be from a head (128) to 2^40 - 1, got 127}}
func.func private @short_role(!kvcache.paged<i8, #kv, page_size = 64, layout = [token = 264, head = 16896, role = 127]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'role' of layout to be from a head (128) to 2^40 - 1, got 1099511627776}}
func.func private @long_role(!kvcache.paged<i8, #kv, page_size = 64, layout = [token = 264, head = 16896, role = 1099511627776]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'role' of scale_layout only if it is less aligned than tokens and heads (4 bytes), got 33}}
func.func private @aligned_role_of_scales(!kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128, scale_layout = [token = 66, head = 4224, role = 33]>)

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 128, is_mla = true>

// expected-error @below {{expects 'role' of layout only for a cache of keys and values}}
func.func private @role_of_latent_rows(!kvcache.paged<i8, #latent, page_size = 64, layout = [token = 264, role = 132]>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged_collection<i8, #kv, page_size = 64, layout = [token = 264, head = 16896, role = 132]>
!blocks = memref<?x2x?x64x8x128xi8, strided<[?, 133, ?, 264, 16896, 1], offset: ?>>

func.func @another_role(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects stride 1 of 'blocks' to be the 'role' of the layout (132), got 133}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n
    : !blocks, memref<?xi32>, memref<?x?xi32> -> !cache
  return
}

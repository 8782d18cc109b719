// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 580, is_mla = true>, page_size = 64, layout = nhd>

func.func @c6_paged_of_parts_of_elements(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects heads and rows of 'cache' to have a multiple of the bytes of 'dtype' (8), got}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 72, dtype = i64} : !cache -> !kvcache.tma_tile<72x1x64x1xi64>
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c5_ragged_of_no_elements(%k: !cache) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects 'dtype' to be an integer or float of 1, 2, 4 or 8 bytes, got 'i24'}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 64, columns = 64, dtype = i24} : !cache -> !kvcache.tma_tile<64x64x1x1xi8>
  return
}

// -----

!large = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 1024>

func.func @c1_tile_of_too_many_rows(%k: !large) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects box side 2 from 1 to 256, got 512}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 512, swizzle = #kvcache.swizzle<swizzle_128b>} : !large -> !kvcache.tma_tile<64x1x256xbf16, swizzle_128b>
  return
}

// -----

!odd = !kvcache.paged<bf16, <num_heads = 1, head_size = 100>, page_size = 64>

func.func @c1_tile_of_heads_at_odd_bytes(%k: !odd) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects stride 1 to be a multiple of 16 bytes, got 200}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !odd -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!tiny = !kvcache.continuous<bf16, <num_heads = 1, head_size = 4>>

func.func @c1_matrix_of_rows_at_odd_bytes(%k: !tiny) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects stride 1 to be a multiple of 16 bytes, got 8}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !tiny -> !kvcache.tma_tile<8x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c6_tile_wider_than_a_head(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' to be at most a head (128), got 129}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 129} : !cache -> !kvcache.tma_tile<128x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 96>, page_size = 64>

func.func @c6_tile_of_more_spans_than_a_head(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' to be at most a head (128), got 129}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 129, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E4M3FN, granularity = 16>

// 64 bytes of two elements each
func.func @c6_tile_wider_than_a_head_of_half_bytes(%k: !nvfp4) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' to be at most a head (64), got 65}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 65} : !nvfp4 -> !kvcache.tma_tile<64x1x64xi8>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @c6_tile_wider_than_a_row(%k: !continuous) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' to be at most a row (1024), got 1025}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 1025, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_64b>} : !continuous -> !kvcache.tma_tile<32x8xbf16, swizzle_64b>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @c1_tile_of_too_many_columns(%k: !continuous) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects box side 0 from 1 to 256, got 264}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 264} : !continuous -> !kvcache.tma_tile<256x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_tile_of_columns_of_odd_bytes(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects the inner side of the box to be a multiple of 16 bytes, got 200}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 100} : !cache -> !kvcache.tma_tile<104x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_mn_major_of_a_paged_cache(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'mn_major' only for a continuous cache}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = 64, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @c3_mn_major_without_columns(%k: !continuous) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'columns' with 'mn_major'}}
  %desc = kvcache.create_tma_tile %k {rows = 64, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>} : !continuous -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @tile_of_a_collection(%k: !collection) {
  // expected-error @below {{'kvcache.create_tma_tile' op operand #0 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.paged_collection<bf16,}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !collection -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @result_of_other_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<64x1x32xbf16, swizzle_128b>' are incompatible with return type(s) of operation '!kvcache.tma_tile<64x1x64xbf16, swizzle_128b>'}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 32, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @result_of_another_swizzle(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<8x1x64xbf16>' are incompatible}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @result_of_another_type(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<8x1x64xbf16>' are incompatible}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<8x1x64xf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @result_without_promotion(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op inferred type(s) '!kvcache.tma_tile<8x1x64xbf16, l2_promotion = 128>' are incompatible}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_tma_tile %k {rows = 64, l2_promotion = 128} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @result_of_no_descriptor(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op result #0 must be TMA descriptor (tensor map), but got 'index'}}
  %desc = kvcache.create_tma_tile %k {rows = 64} : !cache -> index
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @no_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op requires attribute 'rows'}}
  %desc = kvcache.create_tma_tile %k {swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_zero(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_tma_tile %k {rows = 0} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @negative_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_tma_tile %k {rows = -64} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_32_bits(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %desc = kvcache.create_tma_tile %k {rows = 64 : i32} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_more_bits(%k: !cache) {
  // expected-error @below {{integer constant out of range for attribute}}
  %desc = kvcache.create_tma_tile %k {rows = 99999999999999999999} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @negative_columns(%k: !continuous) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'columns' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %desc = kvcache.create_tma_tile %k {rows = 64, columns = -1} : !continuous -> !kvcache.tma_tile<8x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @unknown_promotion(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'l2_promotion' failed to satisfy constraint: 64-bit signless integer attribute whose value is 0, 64, 128 or 256}}
  %desc = kvcache.create_tma_tile %k {rows = 64, l2_promotion = 32} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @swizzle_of_no_enum(%k: !cache) {
  // expected-error @below {{'kvcache.create_tma_tile' op attribute 'swizzle' failed to satisfy constraint: layout of tiles in shared memory}}
  %desc = kvcache.create_tma_tile %k {rows = 64, swizzle = "swizzle_128b"} : !cache -> !kvcache.tma_tile<8x1x64xbf16>
  return
}

// -----

!large = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 1024>

func.func @c1_paged_of_too_many_rows(%k: !large) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects box side 2 from 1 to 256, got 512}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 512, columns = 64} : !large -> !kvcache.tma_tile<64x1x256x1xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 512>, page_size = 64>

func.func @c1_paged_of_too_many_columns(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects box side 0 from 1 to 256, got 512}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 512} : !cache -> !kvcache.tma_tile<256x1x64x1xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_paged_of_columns_of_odd_bytes(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects the inner side of the box to be a multiple of 16 bytes, got 24}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 12} : !cache -> !kvcache.tma_tile<8x1x64x1xbf16>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @c2_paged_of_a_continuous_cache(%k: !continuous) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'cache' to be a view of a paged cache, got '!kvcache.continuous<bf16,}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 64} : !continuous -> !kvcache.tma_tile<64x1x64x1xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_paged_of_rows_that_do_not_divide_a_page(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'rows' to divide page_size (64), got 48}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 48, columns = 64} : !cache -> !kvcache.tma_tile<64x1x48x1xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @no_columns(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op requires attribute 'columns'}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64} : !cache -> !kvcache.tma_tile<64x1x64x1xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_ragged_of_too_many_rows(%k: !cache) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects box side 1 from 1 to 256, got 257}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 257, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x256x1x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_ragged_of_more_rows_than_memory(%k: !cache) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects size 1 from 1 to 2^31, got 9223372036854775807}}
  // expected-error @below {{failed to infer returned types}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 9223372036854775807} : !cache -> !kvcache.tma_tile<8x256x1x1xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_ragged_wider_than_a_head(%k: !cache) {
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects 'columns' to be at most a head (128), got 129}}
  %desc = kvcache.create_ragged_tma_tile %k {rows = 64, columns = 129, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c5_paged_wider_than_a_head(%k: !cache) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'columns' to be at most a head (128), got 136}}
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 136} : !cache -> !kvcache.tma_tile<136x1x64x1xbf16>
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

!any_pages = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = ?>

func.func @c4_tile_of_pages_of_any_size(%k: !any_pages) {
  // expected-error @below {{'kvcache.create_tma_tile' op expects 'cache' to have a static page_size, got '!kvcache.paged<bf16, #kvcache.params<num_heads = 8, head_size = 128>, page_size = ?>'}}
  // expected-error @below {{failed to infer returned types}}
  %a = kvcache.create_tma_tile %k {rows = 16} : !any_pages -> !kvcache.tma_tile<8x1x16xbf16>
  return
}

// -----

!any_pages = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = ?>

func.func @c4_paged_tile_of_pages_of_any_size(%k: !any_pages) {
  // expected-error @below {{'kvcache.create_paged_tma_tile' op expects 'cache' to have a static page_size, got}}
  // expected-error @below {{failed to infer returned types}}
  %a = kvcache.create_paged_tma_tile %k {rows = 16, columns = 128}
       : !any_pages -> !kvcache.tma_tile<128x1x16x1xbf16>
  return
}

// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @c1_load_of_another_type(%k: !cache, %kt: !kvcache.tile<64x128xf16>, %i: index) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'tile' to have the stored element type of 'cache' ('bf16'), got 'f16'}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kvcache.tile<64x128xf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @c2_load_of_more_than_a_head(%k: !cache, %kt: !kvcache.tile<64x136xbf16>, %i: index) {
  // expected-error @below {{expects 'tile' to have at most one column per stored element of a head (128), got 136}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kvcache.tile<64x136xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @c3_gather_with_too_few_ids(%k: !cache, %kt: !kvcache.tile<64x128xbf16>, %i: index, %ids: memref<32xi32>) {
  // expected-error @below {{'kvcache.async_gather_tile' op expects 'rows' to have an id for each row of 'tile' (64), got 'memref<32xi32>'}}
  %tok = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt : !cache, memref<32xi32>, !kvcache.tile<64x128xbf16>
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f8E4M3FN, granularity = 16>

func.func @c1_gather_of_half_bytes_into_whole_ones(%k: !nvfp4, %kt: !kvcache.tile<64x64xf8E4M3FN>, %i: index, %ids: memref<64xi32>) {
  // expected-error @below {{'kvcache.async_gather_tile' op expects 'tile' to have the stored element type of 'cache' ('i8'), got 'f8E4M3FN'}}
  %tok = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt : !nvfp4, memref<64xi32>, !kvcache.tile<64x64xf8E4M3FN>
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f8E4M3FN, granularity = 16>

func.func @c2_gather_of_half_bytes_into_a_byte_each(%k: !nvfp4, %kt: !kvcache.tile<64x128xi8>, %i: index, %ids: memref<64xi32>) {
  // expected-error @below {{'kvcache.async_gather_tile' op expects 'tile' to have at most one column per stored element of a head (64), got 128}}
  %tok = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt : !nvfp4, memref<64xi32>, !kvcache.tile<64x128xi8>
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f8E4M3FN, granularity = 16>

func.func @c2_load_of_half_bytes_into_a_byte_each(%k: !nvfp4, %kt: !kvcache.tile<64x80xi8>, %i: index) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'tile' to have at most one column per stored element of a head (64), got 80}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !nvfp4, !kvcache.tile<64x80xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @base_alignment_of_zero(%k: !cache, %kt: !kvcache.tile<64x128xbf16>, %i: index) {
  // expected-error @below {{'kvcache.async_load_tile' op attribute 'base_alignment' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {base_alignment = 0} : !cache, !kvcache.tile<64x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @negative_base_alignment(%k: !cache, %kt: !kvcache.tile<64x128xbf16>, %i: index) {
  // expected-error @below {{'kvcache.async_load_tile' op attribute 'base_alignment' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {base_alignment = -16} : !cache, !kvcache.tile<64x128xbf16>
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @load_of_a_collection(%k: !collection, %kt: !kvcache.tile<64x128xbf16>, %i: index) {
  // expected-error @below {{'kvcache.async_load_tile' op operand #0 must be view of a paged or continuous cache, not of scales, but got '!kvcache.paged_collection<bf16,}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !collection, !kvcache.tile<64x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c4_load_of_rows(%k: !cache, %kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'copy' to be one of tensor_boxes, cp_async, plain, got tensor_rows}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<tensor_rows>} : !cache, !kt
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c4_multicast_by_threads(%k: !cache, %kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'copy' to be tensor_boxes with 'multicast', got cp_async}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<cp_async>, multicast} : !cache, !kt
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c6_gather_of_boxes(%k: !cache, %kt: !kt, %i: index, %ids: memref<64xi32>) {
  // expected-error @below {{'kvcache.async_gather_tile' op expects 'copy' to be one of tensor_rows, bulk_rows, cp_async, plain, got tensor_boxes}}
  %tok = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt {copy = #kvcache.copy<tensor_boxes>} : !cache, memref<64xi32>, !kt
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c5_descriptor_of_threads(%k: !cache, %kt: !kt, %i: index, %desc: !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'copy' to be tensor_boxes with 'descriptor'}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc {copy = #kvcache.copy<cp_async>} : !cache, !kt, !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c5_descriptor_without_a_kind(%k: !cache, %kt: !kt, %i: index, %desc: !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'copy' to be tensor_boxes with 'descriptor'}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc : !cache, !kt, !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c5_ragged_box_without_valid(%k: !cache, %kt: !kt, %i: index, %desc: !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_load_tile' op expects a box (columns, 1, rows, 1) of 'descriptor', got '!kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>'}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt, !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c5_paged_box_with_valid(%k: !cache, %kt: !kt, %i: index, %desc: !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_load_tile' op expects a box (columns, rows, 1, 1) of 'descriptor', got '!kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>'}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] valid %i to %kt descriptor %desc {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt, !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c5_other_swizzle(%k: !cache, %kt: !kt, %i: index, %desc: !kvcache.tma_tile<32x1x16x1xbf16, swizzle_64b>) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'descriptor' to have the swizzle of 'tile' ('swizzle_128b'), got 'swizzle_64b'}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt, !kvcache.tma_tile<32x1x16x1xbf16, swizzle_64b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c5_box_of_no_part_of_the_tile(%k: !cache, %kt: !kt, %i: index, %desc: !kvcache.tma_tile<64x1x3x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_load_tile' op expects the rows of the box to divide those of the tile (64), got 3}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt, !kvcache.tma_tile<64x1x3x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c5_box_of_two_pages(%k: !cache, %kt: !kt, %i: index, %desc: !kvcache.tma_tile<64x1x32x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_load_tile' op expects the rows of the box to divide those of a page (16), got 32}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt, !kvcache.tma_tile<64x1x32x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c7_descriptor_of_bulk_copies(%k: !cache, %kt: !kt, %i: index, %ids: memref<64xi32>, %desc: !kvcache.tma_tile<64x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_gather_tile' op expects 'copy' to be tensor_rows with 'descriptor'}}
  %tok = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt descriptor %desc {copy = #kvcache.copy<bulk_rows>} : !cache, memref<64xi32>, !kt, !kvcache.tma_tile<64x1xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c7_box_of_rows(%k: !cache, %kt: !kt, %i: index, %ids: memref<64xi32>, %desc: !kvcache.tma_tile<64x2xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_gather_tile' op expects a box of one row, got '!kvcache.tma_tile<64x2xbf16, swizzle_128b>'}}
  %tok = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt descriptor %desc {copy = #kvcache.copy<tensor_rows>} : !cache, memref<64xi32>, !kt, !kvcache.tma_tile<64x2xbf16, swizzle_128b>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<6x64xbf16, swizzle_128b>

func.func @c7_rows_no_multiple_of_four(%k: !cache, %kt: !kt, %i: index, %ids: memref<6xi32>, %desc: !kvcache.tma_tile<64x1xbf16, swizzle_128b>) {
  // expected-error @below {{'kvcache.async_gather_tile' op expects 'tile' to have a multiple of 4 rows, got 6}}
  %tok = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt descriptor %desc {copy = #kvcache.copy<tensor_rows>} : !cache, memref<6xi32>, !kt, !kvcache.tma_tile<64x1xbf16, swizzle_128b>
  return
}

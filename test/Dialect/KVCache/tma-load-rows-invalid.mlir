// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_load_rows_with_the_row(%desc: !desc, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects 2 coordinates for the box, got 3}}
  kvcache.tma_load_rows %desc[%i, %i, %i] rows %rows, %barrier[%i] to %kt : !desc, !rows, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ragged = !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_load_valid_rows_with_three_coordinates(%ragged: !ragged, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects 2 coordinates for the box, got 3}}
  kvcache.tma_load_rows %ragged[%i, %i, %i] rows %rows valid %i, %barrier[%i] to %kt : !ragged, !rows, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_load_valid_rows_without_a_ragged_box(%desc: !desc, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects a ragged box (span, rows, 1, 1) with 'valid', got '!kvcache.tma_tile<64x1x64xbf16, swizzle_128b>'}}
  kvcache.tma_load_rows %desc[%i] rows %rows valid %i, %barrier[%i] to %kt : !desc, !rows, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!paged = !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

// Its last coordinate is a page.
func.func @c1_load_rows_of_pages(%paged: !paged, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects the rows of the box to be its last side without 'valid', got '!kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>'}}
  kvcache.tma_load_rows %paged[%i, %i, %i] rows %rows, %barrier[%i] to %kt : !paged, !rows, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ragged = !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_load_rows_of_a_ragged_box_without_valid(%ragged: !ragged, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects the rows of the box to be its last side without 'valid', got '!kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>'}}
  kvcache.tma_load_rows %ragged[%i, %i, %i] rows %rows, %barrier[%i] to %kt : !ragged, !rows, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!line = !kvcache.tma_tile<64xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_load_rows_of_a_line(%line: !line, %rows: !rows, %barrier: !barrier, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects the rows of the box to be its last side without 'valid', got '!kvcache.tma_tile<64xbf16, swizzle_128b>'}}
  kvcache.tma_load_rows %line[] rows %rows, %barrier[%i] to %kt : !line, !rows, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!plain = !kvcache.tile<64x128xbf16>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c2_load_rows_of_another_swizzle(%desc: !desc, %i: index, %rows: !rows, %barrier: !barrier, %plain: !plain) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects 'descriptor' to have the swizzle of 'tile' ('none'), got 'swizzle_128b'}}
  kvcache.tma_load_rows %desc[%i, %i] rows %rows, %barrier[%i] to %plain : !desc, !rows, !barrier -> !plain
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!two_pages = !kvcache.row_indices<rows = 128, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c3_load_rows_to_half_a_tile(%desc: !desc, %i: index, %two_pages: !two_pages, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects 'tile' to have the rows of 'rows' (128), got 64}}
  kvcache.tma_load_rows %desc[%i, %i] rows %two_pages, %barrier[%i] to %kt : !desc, !two_pages, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c3_load_rows_of_a_pair_to_whole_tiles(%desc: !desc, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt, %b: i1) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects 'tile' to have half of the rows of 'rows' (64), got 64}}
  kvcache.tma_load_rows %desc[%i, %i] rows %rows, %barrier[%i] to %kt pair_cta leader %b : !desc, !rows, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!part = !kvcache.tma_tile<64x1x48xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c4_load_rows_that_do_not_divide_the_tile(%part: !part, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects the rows of the box to divide those of the tile (64), got 48}}
  kvcache.tma_load_rows %part[%i, %i] rows %rows, %barrier[%i] to %kt : !part, !rows, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!small_pages = !kvcache.row_indices<rows = 64, page_size = 16>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c4_load_rows_of_more_than_a_page(%desc: !desc, %i: index, %small_pages: !small_pages, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects the rows of the box to divide those of a page (16), got 64}}
  kvcache.tma_load_rows %desc[%i, %i] rows %small_pages, %barrier[%i] to %kt : !desc, !small_pages, !barrier -> !kt
  return
}

// -----

!narrow = !kvcache.tma_tile<8x1x4xbf16>
!column = !kvcache.tile<64x8xbf16>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c5_load_rows_at_odd_bytes(%narrow: !narrow, %i: index, %rows: !rows, %barrier: !barrier, %column: !column) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects the box to be a multiple of 128 bytes in the tile, got 64}}
  kvcache.tma_load_rows %narrow[%i, %i] rows %rows, %barrier[%i] to %column : !narrow, !rows, !barrier -> !column
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!two_pages = !kvcache.row_indices<rows = 128, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c6_load_rows_of_a_pair_without_leader(%desc: !desc, %i: index, %two_pages: !two_pages, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects 'leader' if and only if 'pair_cta' is given}}
  kvcache.tma_load_rows %desc[%i, %i] rows %two_pages, %barrier[%i] to %kt {pair_cta} : !desc, !two_pages, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c6_load_rows_of_a_leader_without_pair(%desc: !desc, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt, %b: i1) {
  // expected-error @below {{'kvcache.tma_load_rows' op expects 'leader' if and only if 'pair_cta' is given}}
  "kvcache.tma_load_rows"(%desc, %i, %i, %rows, %barrier, %i, %kt, %b) <{operandSegmentSizes = array<i32: 1, 2, 1, 0, 1, 1, 1, 1>}> : (!desc, index, index, !rows, !barrier, index, !kt, i1) -> ()
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @load_rows_of_a_number(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load_rows' op operand #3 must be row indices of consecutive tokens, but got 'index'}}
  kvcache.tma_load_rows %desc[%i, %i] rows %i, %barrier[%i] to %kt : !desc, index, !barrier -> !kt
  return
}

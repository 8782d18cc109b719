// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @prefetch_of_a_tile(%kt: !kt) {
  // expected-error @below {{'kvcache.tma_prefetch' op operand #0 must be TMA descriptor (tensor map), but got '!kvcache.tile<64x128xbf16, swizzle_128b>'}}
  kvcache.tma_prefetch %kt : !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @expect_without_barrier(%kt: !kt, %i: index) {
  // expected-error @below {{expected nvgpu.mbarrier.group, but found '!kvcache.tile<64x128xbf16, swizzle_128b>'}}
  kvcache.tma_expect %kt[%i] bytes %i : !kt
  return
}

// -----

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @expect_of_no_number(%barrier: !barrier, %i: index, %f: f32) {
  // expected-note @-1 {{prior use here}}
  // expected-error @below {{use of value '%f' expects different type than prior uses: 'index' vs 'f32'}}
  kvcache.tma_expect %barrier[%i] bytes %f : !barrier
  return
}

// -----

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @expect_without_bytes(%barrier: !barrier, %i: index) {
  // expected-error @below {{expected 'bytes'}}
  kvcache.tma_expect %barrier[%i] : !barrier
  return
}

// -----

func.func @generic_expect_without_barrier(%i: index) {
  // expected-error @below {{operand #0 must be mbarriers in shared memory, but got 'index'}}
  "kvcache.tma_expect"(%i, %i, %i) : (index, index, index) -> ()
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_load_with_too_few_coordinates(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load' op expects 3 coordinates for the box, got 2}}
  kvcache.tma_load %desc[%i, %i], %barrier[%i] to %kt : !desc, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_load_without_coordinates(%desc: !desc, %barrier: !barrier, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load' op expects 3 coordinates for the box, got 0}}
  kvcache.tma_load %desc[], %barrier[%i] to %kt : !desc, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!plain = !kvcache.tile<64x128xbf16>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c2_load_of_another_swizzle(%desc: !desc, %i: index, %barrier: !barrier, %plain: !plain) {
  // expected-error @below {{'kvcache.tma_load' op expects 'descriptor' to have the swizzle of 'tile' ('none'), got 'swizzle_128b'}}
  kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %plain : !desc, !barrier -> !plain
  return
}

// -----

!plain = !kvcache.tile<64x128xbf16>
!span = !kvcache.tma_tile<8x1x64xbf16>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c2_load_of_another_span(%span: !span, %i: index, %barrier: !barrier, %plain: !plain) {
  // expected-error @below {{'kvcache.tma_load' op expects the inner side of the box to have the bytes of a row of a chunk of 'tile' (256), got 16}}
  kvcache.tma_load %span[%i, %i, %i], %barrier[%i] to %plain : !span, !barrier -> !plain
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!quarter = !kvcache.tma_tile<64x1x4xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c3_load_of_part_of_the_rows(%quarter: !quarter, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load' op expects the box to have the rows of the tile (64), got 4}}
  kvcache.tma_load %quarter[%i, %i, %i], %barrier[%i] to %kt : !quarter, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!part = !kvcache.tma_tile<64x1x48xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c3_load_of_rows_that_do_not_divide(%part: !part, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load' op expects the rows of the box to divide those of the tile (64), got 48}}
  kvcache.tma_load %part[%i, %i, %i], %barrier[%i] to %kt at %i : !part, !barrier -> !kt
  return
}

// -----

!narrow = !kvcache.tma_tile<8x1x4xbf16>
!column = !kvcache.tile<64x8xbf16>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c3_load_of_rows_at_odd_bytes(%narrow: !narrow, %i: index, %barrier: !barrier, %column: !column) {
  // expected-error @below {{'kvcache.tma_load' op expects the box to be a multiple of 128 bytes in the tile, got 64}}
  kvcache.tma_load %narrow[%i, %i, %i], %barrier[%i] to %column at %i : !narrow, !barrier -> !column
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @load_to_no_tile(%desc: !desc, %i: index, %barrier: !barrier) {
  // expected-error @below {{'kvcache.tma_load' op operand #6 must be tile of a cache in shared memory, but got 'index'}}
  kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %i : !desc, !barrier -> index
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @load_without_comma(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{expected ','}}
  kvcache.tma_load %desc[%i, %i, %i] %barrier[%i] to %kt : !desc, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @unknown_hint(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load' op attribute 'l2_hint' failed to satisfy constraint: eviction priority in the L2 cache}}
  kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt {l2_hint = 1} : !desc, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @generic_load_with_two_rows(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load' op operand group starting at #7 requires 0 or 1 element, but found 2}}
  "kvcache.tma_load"(%desc, %i, %i, %i, %barrier, %i, %kt, %i, %i) <{operandSegmentSizes = array<i32: 1, 3, 1, 1, 1, 2>}> : (!desc, index, index, index, !barrier, index, !kt, index, index) -> ()
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @generic_load_of_negative_segments(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_load' op 'operandSegmentSizes' attribute cannot have negative elements}}
  "kvcache.tma_load"(%desc, %i, %i, %i, %barrier, %i, %kt) <{operandSegmentSizes = array<i32: 1, -1, 1, 1, 1, 4>}> : (!desc, index, index, index, !barrier, index, !kt) -> ()
  return
}

// -----

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

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!rows4 = !kvcache.tma_tile<64x4xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_gather4_of_boxes_of_rows(%rows4: !rows4, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_gather4' op expects a box of one row, got '!kvcache.tma_tile<64x4xbf16, swizzle_128b>'}}
  kvcache.tma_gather4 %rows4[%i, %i, %i, %i, %i], %barrier[%i] to %kt at %i : !rows4, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!line = !kvcache.tma_tile<64xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_gather4_of_a_line(%line: !line, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_gather4' op expects a box of one row, got '!kvcache.tma_tile<64xbf16, swizzle_128b>'}}
  kvcache.tma_gather4 %line[%i, %i, %i, %i, %i], %barrier[%i] to %kt at %i : !line, !barrier -> !kt
  return
}

// -----

!plain = !kvcache.tile<64x128xbf16>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c2_gather4_of_another_swizzle(%row: !row, %i: index, %barrier: !barrier, %plain: !plain) {
  // expected-error @below {{'kvcache.tma_gather4' op expects 'descriptor' to have the swizzle of 'tile' ('none'), got 'swizzle_128b'}}
  kvcache.tma_gather4 %row[%i, %i, %i, %i, %i], %barrier[%i] to %plain at %i : !row, !barrier -> !plain
  return
}

// -----

!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!six = !kvcache.tile<6x64xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c3_gather4_to_odd_rows(%row: !row, %i: index, %barrier: !barrier, %six: !six) {
  // expected-error @below {{'kvcache.tma_gather4' op expects 'tile' to have a multiple of 4 rows, got 6}}
  kvcache.tma_gather4 %row[%i, %i, %i, %i, %i], %barrier[%i] to %six at %i : !row, !barrier -> !six
  return
}

// -----

!column = !kvcache.tile<64x8xbf16>
!small_row = !kvcache.tma_tile<8x1xbf16>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c4_gather4_at_odd_bytes(%small_row: !small_row, %i: index, %barrier: !barrier, %column: !column) {
  // expected-error @below {{'kvcache.tma_gather4' op expects a row of a chunk to be a multiple of 32 bytes, got 16}}
  kvcache.tma_gather4 %small_row[%i, %i, %i, %i, %i], %barrier[%i] to %column at %i : !small_row, !barrier -> !column
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @gather4_of_three_rows(%row: !row, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{expected ','}}
  kvcache.tma_gather4 %row[%i, %i, %i, %i], %barrier[%i] to %kt at %i : !row, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @gather4_of_five_rows(%row: !row, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{expected ']'}}
  kvcache.tma_gather4 %row[%i, %i, %i, %i, %i, %i], %barrier[%i] to %kt at %i : !row, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @gather4_at_no_row(%row: !row, %i: index, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{expected 'at'}}
  kvcache.tma_gather4 %row[%i, %i, %i, %i, %i], %barrier[%i] to %kt : !row, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!rows4 = !kvcache.tma_tile<64x4xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c1_gather_tile_of_boxes_of_rows(%rows4: !rows4, %ids: memref<64xi32>, %barrier: !barrier, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_gather_tile' op expects a box of one row, got '!kvcache.tma_tile<64x4xbf16, swizzle_128b>'}}
  kvcache.tma_gather_tile %rows4 rows %ids, %barrier[%i] to %kt : !rows4, memref<64xi32>, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c5_gather_tile_of_too_few_ids(%row: !row, %few_ids: memref<32xi32>, %barrier: !barrier, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_gather_tile' op expects 'rows' to have an id for each row of 'tile' (64), got 'memref<32xi32>'}}
  kvcache.tma_gather_tile %row rows %few_ids, %barrier[%i] to %kt : !row, memref<32xi32>, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @c5_gather_tile_of_any_number_of_ids(%row: !row, %any_ids: memref<?xi32>, %barrier: !barrier, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_gather_tile' op expects 'rows' to have an id for each row of 'tile' (64), got 'memref<?xi32>'}}
  kvcache.tma_gather_tile %row rows %any_ids, %barrier[%i] to %kt : !row, memref<?xi32>, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @gather_tile_of_a_matrix_of_ids(%row: !row, %matrix_ids: memref<8x8xi32>, %barrier: !barrier, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_gather_tile' op operand #1 must be 1D memref of 32-bit signless integer or 64-bit signless integer values, but got 'memref<8x8xi32>'}}
  kvcache.tma_gather_tile %row rows %matrix_ids, %barrier[%i] to %kt : !row, memref<8x8xi32>, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @gather_tile_of_short_ids(%row: !row, %short_ids: memref<64xi16>, %barrier: !barrier, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.tma_gather_tile' op operand #1 must be 1D memref of 32-bit signless integer or 64-bit signless integer values, but got 'memref<64xi16>'}}
  kvcache.tma_gather_tile %row rows %short_ids, %barrier[%i] to %kt : !row, memref<64xi16>, !barrier -> !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @gather_tile_of_two_columns(%row: !row, %i: index, %ids: memref<64xi32>, %barrier: !barrier, %kt: !kt) {
  // expected-error @below {{expected ']'}}
  kvcache.tma_gather_tile %row[%i, %i] rows %ids, %barrier[%i] to %kt : !row, memref<64xi32>, !barrier -> !kt
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c1_store_with_too_many_coordinates(%kt: !kt, %desc: !desc, %i: index) {
  // expected-error @below {{'kvcache.tma_store' op expects 3 coordinates for the box, got 4}}
  %tok = kvcache.tma_store %kt to %desc[%i, %i, %i, %i] : !kt, !desc
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!plain = !kvcache.tile<64x128xbf16>

func.func @c2_store_of_another_swizzle(%plain: !plain, %desc: !desc, %i: index) {
  // expected-error @below {{'kvcache.tma_store' op expects 'descriptor' to have the swizzle of 'tile' ('none'), got 'swizzle_128b'}}
  %tok = kvcache.tma_store %plain to %desc[%i, %i, %i] : !plain, !desc
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!quarter = !kvcache.tma_tile<64x1x4xbf16, swizzle_128b>

func.func @c3_store_of_part_of_the_rows(%kt: !kt, %quarter: !quarter, %i: index) {
  // expected-error @below {{'kvcache.tma_store' op expects the box to have the rows of the tile (64), got 4}}
  %tok = kvcache.tma_store %kt to %quarter[%i, %i, %i] : !kt, !quarter
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!chunk_and_a_half = !kvcache.tile<64x96xbf16, swizzle_128b>

func.func @c4_store_of_part_of_a_chunk(%chunk_and_a_half: !chunk_and_a_half, %desc: !desc, %i: index) {
  // expected-error @below {{'kvcache.tma_store' op expects 'tile' to have whole chunks of 64 columns, got 96}}
  %tok = kvcache.tma_store %chunk_and_a_half to %desc[%i, %i, %i] : !chunk_and_a_half, !desc
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @store_of_swapped_types(%kt: !kt, %desc: !desc, %i: index) {
  // expected-note @-1 {{prior use here}}
  // expected-error @below {{use of value '%kt' expects different type than prior uses}}
  %tok = kvcache.tma_store %kt to %desc[%i, %i, %i] : !desc, !kt
  return
}

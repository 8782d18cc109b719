// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

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

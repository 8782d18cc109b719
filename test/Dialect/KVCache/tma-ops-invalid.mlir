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

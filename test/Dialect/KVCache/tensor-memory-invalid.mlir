// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expects 64 or 128 rows, got 32}}
func.func private @c1_rows(!kvcache.tmem_tile<32x64xf32>)

// -----

// expected-error @below {{expects f32, i32, bf16, f16, f8E4M3FN, f8E5M2 or i8 as element type, got 'f64'}}
func.func private @c2_element_type(!kvcache.tmem_tile<64x64xf64>)

// -----

// expected-error @below {{expects a positive multiple of 16 columns of 'f32', at most 512, got 24}}
func.func private @c3_columns_of_128_rows(!kvcache.tmem_tile<128x24xf32>)

// -----

// expected-error @below {{expects a positive multiple of 16 columns of 'f32', at most 512, got 264}}
func.func private @c3_columns_of_two_products(!kvcache.tmem_tile<64x264xf32>)

// -----

// expected-error @below {{expects a positive multiple of 16 columns of 'i32', at most 512, got 40}}
func.func private @c3_columns_of_integers(!kvcache.tmem_tile<64x40xi32>)

// -----

// expected-error @below {{expects a positive multiple of 32 columns of 'f32', at most 512, got 544}}
func.func private @c3_too_many_columns(!kvcache.tmem_tile<128x544xf32>)

// -----

// expected-error @below {{expects a row of a multiple of 32 bytes, at most 2048, got 24x'bf16'}}
func.func private @c4_row(!kvcache.tmem_tile<64x24xbf16>)

// -----

func.func @c1_alloc() {
  // expected-error @below {{'kvcache.tmem_alloc' op expects at least one tile}}
  "kvcache.tmem_alloc"() : () -> ()
  return
}

// -----

func.func @c2_alloc() {
  // expected-error @below {{'kvcache.tmem_alloc' op expects tiles of at most 512 columns of tensor memory together, got 544}}
  %a, %b = kvcache.tmem_alloc : !kvcache.tmem_tile<128x512xf32>, !kvcache.tmem_tile<128x64xbf16>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c1_place_of_a(%a: !kt, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'a_row' and 'a_column' if 'a' is in shared memory, and only then}}
  kvcache.tmem_mma %a, %a[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c1_place_in_tensor_memory(%a: !kvcache.tmem_tile<128x128xbf16>, %b: !kt, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'a_row' and 'a_column' if 'a' is in shared memory, and only then}}
  kvcache.tmem_mma %a[%i, %i], %b[%i, %i] into %d : !kvcache.tmem_tile<128x128xbf16>, !kt, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>
!f16 = !kvcache.tile<128x128xf16, swizzle_128b>

func.func @c2_elements(%a: !kt, %b: !f16, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects bf16, bf16 and f32, f16, f16 and f32, f8E4M3FN or f8E5M2 twice and f32, or i8, i8 and i32 as element types, got 'bf16', 'f16' and 'f32'}}
  kvcache.tmem_mma %a[%i, %i], %b[%i, %i] into %d : !kt, !f16, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c2_result(%a: !kt, %d: !kvcache.tmem_tile<128x128xbf16>, %i: index) {
  // expected-error @below {{as element types, got 'bf16', 'bf16' and 'bf16'}}
  kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<128x128xbf16>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c3_major(%a: !kvcache.tmem_tile<128x128xbf16>, %b: !kt, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'major_a' to be k_major, because 'a' is in tensor memory}}
  kvcache.tmem_mma %a, %b[%i, %i] into %d {major_a = #kvcache.major<mn_major>} : !kvcache.tmem_tile<128x128xbf16>, !kt, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c3_rows(%a: !kvcache.tmem_tile<64x128xbf16>, %b: !kt, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'a' to have the rows of 'd' (128), got 64}}
  kvcache.tmem_mma %a, %b[%i, %i] into %d : !kvcache.tmem_tile<64x128xbf16>, !kt, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<256x128xbf16, swizzle_128b>

func.func @c9_rows(%a: !kt, %d: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op with 'pair' expects 'd' to have 128 rows and at most 128 columns, or 256, got '!kvcache.tmem_tile<64x64xf32>'}}
  kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d {pair} : !kt, !kt, !kvcache.tmem_tile<64x64xf32>
  return
}

// -----

!kt = !kvcache.tile<256x128xbf16, swizzle_128b>

func.func @c9_columns(%a: !kt, %d: !kvcache.tmem_tile<128x192xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op with 'pair' expects 'd' to have 128 rows and at most 128 columns, or 256, got '!kvcache.tmem_tile<128x192xf32>'}}
  kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d {pair} : !kt, !kt, !kvcache.tmem_tile<128x192xf32>
  return
}

// -----

!qt = !kvcache.tile<32x128xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c6_rows_of_a_pair(%a: !qt, %b: !kt, %d: !kvcache.tmem_tile<128x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'a' to have at least 64 rows and 128 columns, got 32 and 128}}
  kvcache.tmem_mma %a[%i, %i], %b[%i, %i] into %d {pair} : !qt, !kt, !kvcache.tmem_tile<128x64xf32>
  return
}

// -----

!kt = !kvcache.tile<128x8xbf16>

func.func @c4_swizzle(%a: !kt, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'b' to have a swizzle, got '!kvcache.tile<128x8xbf16>'}}
  kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d {k = 16} : !kt, !kt, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c5_k(%a: !kt, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'k' to be a multiple of 16 (32 bytes), got 24}}
  kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d {k = 24} : !kt, !kt, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c5_no_k(%a: !kvcache.tmem_tile<128x128xbf16>, %b: !kt, %d: !kvcache.tmem_tile<128x128xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects no 'k', because 'a' is in tensor memory}}
  kvcache.tmem_mma %a, %b[%i, %i] into %d {k = 64} : !kvcache.tmem_tile<128x128xbf16>, !kt, !kvcache.tmem_tile<128x128xf32>
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

func.func @c6_part_of_b(%a: !kt, %d: !kvcache.tmem_tile<128x144xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'b' to have at least 144 rows and 128 columns, got 128 and 128}}
  kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<128x144xf32>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c6_part_of_a(%a: !kt, %d: !kvcache.tmem_tile<128x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects 'a' to have at least 128 rows and 128 columns, got 64 and 128}}
  kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<128x64xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!vt = !kvcache.tile<64x320xbf16, swizzle_128b>

func.func @c7_half(%a: !kt, %v: !vt, %d: !kvcache.tmem_tile<64x320xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_mma' op expects half of the columns of 'd' to be a multiple of 64, the span of the mn_major 'b', got 160}}
  kvcache.tmem_mma %a[%i, %i], %v[%i, %i] into %d {major_b = #kvcache.major<mn_major>} : !kt, !vt, !kvcache.tmem_tile<64x320xf32>
  return
}

// -----

func.func @c1_fragment(%a: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects 'result' to have the element type of 'tile' ('f32'), got 'bf16'}}
  %v = kvcache.tmem_load %a[%i] : !kvcache.tmem_tile<64x64xf32> -> vector<4xbf16>
  return
}

// -----

func.func @c2_fragment(%v: vector<4xf32>, %a: !kvcache.tmem_tile<128x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_store' op expects 'half' if 'tile' has 128 rows and there is no 'whole_rows', and only then, got 128 rows}}
  kvcache.tmem_store %v, %a[%i] : vector<4xf32>, !kvcache.tmem_tile<128x64xf32>
  return
}

// -----

func.func @c3_fragment(%v: vector<4xi8>, %a: !kvcache.tmem_tile<64x64xi8>, %i: index) {
  // expected-error @below {{'kvcache.tmem_store' op expects 'value' to have a multiple of 8 lanes, got 4}}
  kvcache.tmem_store %v, %a[%i] : vector<4xi8>, !kvcache.tmem_tile<64x64xi8>
  return
}

// -----

func.func @c4_fragment(%a: !kvcache.tmem_tile<64x512xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects 'result' to have at most 128 lanes, got 132}}
  %v = kvcache.tmem_load %a[%i] : !kvcache.tmem_tile<64x512xf32> -> vector<132xf32>
  return
}

// -----

func.func @commit_to_a_memref(%m: memref<2xi64>, %i: index) {
  // expected-error @below {{'kvcache.tmem_commit' op operand #0 must be mbarriers in shared memory, but got 'memref<2xi64>'}}
  "kvcache.tmem_commit"(%m, %i) : (memref<2xi64>, index) -> ()
  return
}

// -----

!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>

func.func @commit_to_a_barrier_of_32_bits(%bars: !bars, %i: i32) {
  // expected-error @below {{'kvcache.tmem_commit' op operand #1 must be index, but got 'i32'}}
  "kvcache.tmem_commit"(%bars, %i) : (!bars, i32) -> ()
  return
}

// -----

func.func @c5_fragment_layout(%a: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects 'result' to be tmem_acc or tmem_row of two dimensions, with the rows and elements of '!kvcache.tmem_tile<64x64xf32>', got '!kvcache.fragment<64x8xf32, wgmma_acc>'}}
  %v = kvcache.tmem_load %a[%i] : !kvcache.tmem_tile<64x64xf32> -> !kvcache.fragment<64x8xf32, wgmma_acc>
  return
}

// -----

func.func @c5_fragment_rows(%a: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects 'result' to be tmem_acc or tmem_row of two dimensions, with the rows and elements of '!kvcache.tmem_tile<64x64xf32>', got '!kvcache.fragment<128x8xf32, tmem_acc>'}}
  %v = kvcache.tmem_load %a[%i] : !kvcache.tmem_tile<64x64xf32> -> !kvcache.fragment<128x8xf32, tmem_acc>
  return
}

// -----

func.func @c5_fragment_elements(%v: !kvcache.fragment<64x8xf16, tmem_acc>, %a: !kvcache.tmem_tile<64x64xbf16>, %i: index) {
  // expected-error @below {{'kvcache.tmem_store' op expects 'value' to be tmem_acc or tmem_row of two dimensions, with the rows and elements of '!kvcache.tmem_tile<64x64xbf16>', got '!kvcache.fragment<64x8xf16, tmem_acc>'}}
  kvcache.tmem_store %v, %a[%i] : !kvcache.fragment<64x8xf16, tmem_acc>, !kvcache.tmem_tile<64x64xbf16>
  return
}

// -----

func.func @c5_fragment_row(%a: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects 'result' to be tmem_acc or tmem_row of two dimensions, with the rows and elements of '!kvcache.tmem_tile<64x64xf32>', got '!kvcache.fragment<64xf32, tmem_acc>'}}
  %v = kvcache.tmem_load %a[%i] : !kvcache.tmem_tile<64x64xf32> -> !kvcache.fragment<64xf32, tmem_acc>
  return
}

// -----

func.func @c5_fragment_bits(%a: !kvcache.tmem_tile<64x64xi8>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects a fragment to have elements of 16 or 32 bits, got 'i8'}}
  %v = kvcache.tmem_load %a[%i] : !kvcache.tmem_tile<64x64xi8> -> !kvcache.fragment<64x16xi8, tmem_acc>
  return
}

// -----

func.func @c5_fragment_half(%v: !kvcache.fragment<128x8xf32, tmem_acc>, %a: !kvcache.tmem_tile<128x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_store' op expects no 'half', because 'value' is a fragment}}
  kvcache.tmem_store %v, %a[%i] half %i : !kvcache.fragment<128x8xf32, tmem_acc>, !kvcache.tmem_tile<128x64xf32>
  return
}

// -----

func.func @c4_fragment_columns(%a: !kvcache.tmem_tile<64x512xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects 'result' to have at most 256 columns, got 264}}
  %v = kvcache.tmem_load %a[%i] : !kvcache.tmem_tile<64x512xf32> -> !kvcache.fragment<64x264xf32, tmem_acc>
  return
}

// -----

func.func @c5_fragment_with_whole_rows(%a: !kvcache.tmem_tile<128x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects no 'whole_rows', because 'result' is a fragment}}
  %v = kvcache.tmem_load %a[%i] {whole_rows} : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x16xf32, tmem_row>
  return
}

// -----

func.func @c3_whole_rows(%a: !kvcache.tmem_tile<128x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_load' op expects 'result' to have a multiple of 8 lanes, got 4}}
  %v = kvcache.tmem_load %a[%i] {whole_rows} : !kvcache.tmem_tile<128x64xf32> -> vector<4xf32>
  return
}

// -----

func.func @c6_whole_rows(%v: vector<8xf32>, %a: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_store' op with 'whole_rows' expects 'tile' to have 128 rows, got 64}}
  kvcache.tmem_store %v, %a[%i] {whole_rows} : vector<8xf32>, !kvcache.tmem_tile<64x64xf32>
  return
}

// -----

func.func @c1_view(%a: !kvcache.tmem_tile<64x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_view' op expects tiles of 128 rows, got 64}}
  %v = kvcache.tmem_view %a[%i] : !kvcache.tmem_tile<64x64xf32> -> !kvcache.tmem_tile<64x64xbf16>
  return
}

// -----

func.func @c2_view_columns(%a: !kvcache.tmem_tile<128x64xf32>, %i: index) {
  // expected-error @below {{'kvcache.tmem_view' op expects 'view' to have at most 64 columns of tensor memory, got 128}}
  %v = kvcache.tmem_view %a[%i] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.tmem_tile<128x256xbf16>
  return
}

// -----

func.func @c2_view_multiple(%a: !kvcache.tmem_tile<128x64xbf16>) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{'kvcache.tmem_view' op expects 'column' to be a multiple of 2, got 1}}
  %v = kvcache.tmem_view %a[%c1] : !kvcache.tmem_tile<128x64xbf16> -> !kvcache.tmem_tile<128x16xf32>
  return
}

// -----

func.func @c2_view_place(%a: !kvcache.tmem_tile<128x64xf32>) {
  %c48 = arith.constant 48 : index
  // expected-error @below {{'kvcache.tmem_view' op expects 'column' to be from 0 to 32, so that the result is in the tile, got 48}}
  %v = kvcache.tmem_view %a[%c48] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.tmem_tile<128x64xbf16>
  return
}

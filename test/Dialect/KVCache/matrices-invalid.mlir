// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c1_tile_without_indices(%a: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'a_row' and 'a_column' if 'a' is a tile, and only then}}
  %d = kvcache.mma %a, %a[%i, %i] : !kt, !kt -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c1_fragment_with_indices(%a: !kt, %p: vector<32xbf16>, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'a_row' and 'a_column' if 'a' is a tile, and only then}}
  %d = kvcache.mma %p[%i, %i], %a[%i, %i] : vector<32xbf16>, !kt -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c2_result(%a: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects bf16, bf16 and f32, f16, f16 and f32 or f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or i8, i8 and i32 as element types, got 'bf16', 'bf16' and 'f16'}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] : !kt, !kt -> vector<32xf16>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c2_mixed(%a: !kt, %p: vector<32xf16>, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects bf16, bf16 and f32, f16, f16 and f32 or f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or i8, i8 and i32 as element types, got 'f16', 'bf16' and 'f32'}}
  %d = kvcache.mma %p, %a[%i, %i] : vector<32xf16>, !kt -> vector<32xf32>
  return
}

// -----

!ft = !kvcache.tile<64x32xf32, swizzle_128b>

func.func @c2_f32_tiles(%a: !ft, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects bf16, bf16 and f32, f16, f16 and f32 or f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or i8, i8 and i32 as element types, got 'f32', 'f32' and 'f32'}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] : !ft, !ft -> vector<32xf32>
  return
}

// -----

!it = !kvcache.tile<64x32xi8, swizzle_32b>

func.func @c2_integers(%a: !it, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects bf16, bf16 and f32, f16, f16 and f32 or f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or i8, i8 and i32 as element types, got 'i8', 'i8' and 'f32'}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] : !it, !it -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c3_step(%a: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects n, the columns of the product, to be a multiple of 8, at most 256, got 12}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] : !kt, !kt -> vector<6xf32>
  return
}

// -----

!kt = !kvcache.tile<512x64xbf16, swizzle_128b>

func.func @c3_largest(%a: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects n, the columns of the product, to be a multiple of 8, at most 256, got 264}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] : !kt, !kt -> vector<132xf32>
  return
}

// -----

!it = !kvcache.tile<64x32xi8, swizzle_32b>

func.func @c3_integers(%a: !it, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects n, the columns of the product, to be a multiple of 16, at most 256, got 40}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] : !it, !it -> vector<20xi32>
  return
}

// -----

!it = !kvcache.tile<64x32xi8, swizzle_32b>

func.func @c4_major_b(%a: !it, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'major_b' to be k_major, because elements of 'i8' do not have 16 bits}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] {major_b = #kvcache.major<mn_major>} : !it, !it -> vector<16xi32>
  return
}

// -----

!it = !kvcache.tile<64x64xf8E4M3FN, swizzle_64b>

func.func @c4_major_a(%a: !it, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'major_a' to be k_major, because elements of 'f8E4M3FN' do not have 16 bits}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] {major_a = #kvcache.major<mn_major>} : !it, !it -> vector<16xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c4_fragment(%a: !kt, %p: vector<32xbf16>, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'major_a' to be k_major, because 'a' is a fragment}}
  %d = kvcache.mma %p, %a[%i, %i] {major_a = #kvcache.major<mn_major>} : vector<32xbf16>, !kt -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!plain = !kvcache.tile<64x64xbf16>

func.func @c5_a(%a: !kt, %p: !plain, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'a' to have a swizzle, got '!kvcache.tile<64x64xbf16>'}}
  %d = kvcache.mma %p[%i, %i], %a[%i, %i] : !plain, !kt -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!plain = !kvcache.tile<64x64xbf16>

func.func @c5_b(%a: !kt, %p: !plain, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'b' to have a swizzle, got '!kvcache.tile<64x64xbf16>'}}
  %d = kvcache.mma %a[%i, %i], %p[%i, %i] : !kt, !plain -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!large = !kvcache.tile<2048x64xbf16, swizzle_128b>

func.func @c5_chunk(%a: !kt, %p: !large, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'b' to have fewer than 262144 bytes in a chunk, got 262144}}
  %d = kvcache.mma %a[%i, %i], %p[%i, %i] : !kt, !large -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c6_multiple(%a: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects k, the columns of A, to be a multiple of 16 (32 bytes), got 24}}
  %d = kvcache.mma %a[%i, %i], %a[%i, %i] {k = 24} : !kt, !kt -> vector<32xf32>
  return
}

// -----

!at = !kvcache.tile<8x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c6_all_of_the_tile(%a: !at, %b: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects k, the columns of A, to be a multiple of 16 (32 bytes), got 8}}
  %d = kvcache.mma %a[%i, %i], %b[%i, %i] {major_a = #kvcache.major<mn_major>, major_b = #kvcache.major<mn_major>} : !at, !kt -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c6_lanes(%a: !kt, %p: vector<12xbf16>, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects k, the columns of A, to be a multiple of 16 (32 bytes), got 24}}
  %d = kvcache.mma %p, %a[%i, %i] : vector<12xbf16>, !kt -> vector<32xf32>
  return
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c6_fragment_with_k(%a: !kt, %p: vector<16xbf16>, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects no 'k', because 'a' is a fragment}}
  %d = kvcache.mma %p, %a[%i, %i] {k = 32} : vector<16xbf16>, !kt -> vector<32xf32>
  return
}

// -----

!at = !kvcache.tile<32x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

func.func @c7_rows_of_a(%a: !at, %b: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'a' to have at least 64 rows and 64 columns, got 32 and 64}}
  %d = kvcache.mma %a[%i, %i], %b[%i, %i] : !at, !kt -> vector<32xf32>
  return
}

// -----

!at = !kvcache.tile<64x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x32xbf16, swizzle_64b>

func.func @c7_columns_of_b(%a: !at, %b: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'b' to have at least 32 rows and 64 columns, got 64 and 32}}
  %d = kvcache.mma %a[%i, %i], %b[%i, %i] : !at, !kt -> vector<16xf32>
  return
}

// -----

!kt = !kvcache.tile<32x64xbf16, swizzle_128b>

func.func @c7_rows_of_b(%p: vector<32xbf16>, %b: !kt, %i: index) {
  // expected-error @below {{'kvcache.mma' op expects 'b' to have at least 64 rows and 16 columns, got 32 and 64}}
  %d = kvcache.mma %p, %b[%i, %i] {major_b = #kvcache.major<mn_major>} : vector<32xbf16>, !kt -> vector<8xf32>
  return
}

// -----

func.func @c2_pending() {
  // expected-error @below {{'kvcache.mma_wait' op attribute 'pending' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative whose maximum value is 7}}
  kvcache.mma_wait pending 8
  return
}

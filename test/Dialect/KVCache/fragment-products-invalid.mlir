// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

func.func @mma_c1(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a_row' and 'a_column' if 'a' is a tile, and only then}}
  %y = kvcache.fragment_mma %t, %t[%i, %i] : !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c1_fragment(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a_row' and 'a_column' if 'a' is a tile, and only then}}
  %y = kvcache.fragment_mma %a[%i, %i], %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c1_k(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects no 'k' and no 'major_a', because 'a' is a fragment}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] {k = 32} : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c2_wgmma(%a: !kvcache.fragment<16x32xbf16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be wgmma_a16 or wgmma_a8 of two dimensions, got '!kvcache.fragment<16x32xbf16, mma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c2_sync(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16 of two dimensions, got '!kvcache.fragment<64x32xbf16, wgmma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c2_row(%a: !kvcache.fragment<64xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be wgmma_a16 or wgmma_a8 of two dimensions, got '!kvcache.fragment<64xbf16, wgmma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c3(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %o: !kvcache.fragment<16x32xf32, mma_acc>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'accumulator' to be '!kvcache.fragment<64x32xf32, wgmma_acc>' or '!kvcache.in_flight<64x32xf32, wgmma_acc>', got '!kvcache.fragment<16x32xf32, mma_acc>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] add %o : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.fragment<16x32xf32, mma_acc> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c4_types(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects bf16, bf16 and f32, f16, f16 and f32 or f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or i8, i8 and i32 as element types, got 'bf16', 'f16' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c4_swizzle(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'b' to have a swizzle, got '!kvcache.tile<64x64xbf16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c4_n(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<264x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects n, the columns of the product, to be a multiple of 8, at most 256, got 264}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<264x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x264xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c5_tile(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be a fragment: only wgmma reads A from tiles}}
  %y = kvcache.fragment_mma %t[%i, %i], %t[%i, %i] : !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c5_types(%a: !kvcache.fragment<16x32xi16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects bf16 or f16 twice, and f32, as element types, got 'i16', 'bf16' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xi16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c5_n(%a: !kvcache.fragment<16x32xbf16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects the result to have a multiple of 16 columns, got 24}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x24xf32, mma_acc>
  return
}

// -----

func.func @mma_c6(%a: !kvcache.fragment<16x32xbf16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'b' to have at least 80 rows and 32 columns, got 64 and 64}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x80xf32, mma_acc>
  return
}

// -----

func.func @mma_c2_pairs(%a: !kvcache.fragment<16x32xf16, mma_a16>, %t: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16_pairs of two dimensions, got '!kvcache.fragment<16x32xf16, mma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c2_no_pairs(%a: !kvcache.fragment<16x32xf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16 of two dimensions, got '!kvcache.fragment<16x32xf16, mma_a16_pairs>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<64x64xf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c8_half(%a: !kvcache.fragment<16x32xbf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xf8E4M3FN, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects f16, f8E4M3FN, f8E5M2 or i8, and f32, as element types, got 'bf16', 'f8E4M3FN' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16_pairs>, !kvcache.tile<64x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c8_element(%a: !kvcache.fragment<16x32xf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xf8E8M0FNU, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects f16, f8E4M3FN, f8E5M2 or i8, and f32, as element types, got 'f16', 'f8E8M0FNU' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<64x64xf8E8M0FNU, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c8_acc(%a: !kvcache.fragment<16x32xf16, mma_a16>, %t: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects the result to be mma_acc_pairs, got '!kvcache.in_flight<16x32xf32, mma_acc>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] {major_b = #kvcache.major<mn_major>} : !kvcache.fragment<16x32xf16, mma_a16>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c8_acc_of_keys(%a: !kvcache.fragment<16x32xf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects the result to be mma_acc, got '!kvcache.in_flight<16x32xf32, mma_acc_pairs>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc_pairs>
  return
}

// -----

func.func @wait_none() {
  // expected-error @below {{'kvcache.fragment_wait' op expects a product}}
  "kvcache.fragment_wait"() : () -> ()
  return
}

// -----

func.func @wait_c1(%a: !kvcache.in_flight<64x32xf32, wgmma_acc>, %b: !kvcache.in_flight<16x32xf32, mma_acc>) {
  // expected-error @below {{'kvcache.fragment_wait' op expects all products to be of wgmma, or all of mma.sync}}
  %y:2 = kvcache.fragment_wait %a, %b : !kvcache.in_flight<64x32xf32, wgmma_acc>, !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @wait_c2(%b: !kvcache.in_flight<16x32xf32, mma_acc>) {
  // expected-error @below {{'kvcache.fragment_wait' op expects no 'pending' for products of mma.sync, got 1}}
  %y = kvcache.fragment_wait %b pending 1 : !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @wait_c2_pairs(%b: !kvcache.in_flight<16x32xf32, mma_acc_pairs>) {
  // expected-error @below {{'kvcache.fragment_wait' op expects no 'pending' for products of mma.sync, got 2}}
  %y = kvcache.fragment_wait %b pending 2 : !kvcache.in_flight<16x32xf32, mma_acc_pairs>
  return
}

// -----

func.func @wait_complete(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.fragment_wait' op operand #0 must be variadic of product of matrices that is being computed, but got '!kvcache.fragment<64x32xf32, wgmma_acc>'}}
  %y = kvcache.fragment_wait %a : !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @in_flight_map(%a: !kvcache.in_flight<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.map' op operand #0 must be variadic of matrix in the registers of a team of threads, but got '!kvcache.in_flight<64x32xf32, wgmma_acc>'}}
  %y = "kvcache.map"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>}> ({
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }) : (!kvcache.in_flight<64x32xf32, wgmma_acc>) -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @in_flight_store(%a: !kvcache.in_flight<64x32xf32, wgmma_acc>, %t: !kvcache.tile<64x64xf32, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_store' op operand #0 must be matrix in the registers of a team of threads, but got '!kvcache.in_flight<64x32xf32, wgmma_acc>'}}
  "kvcache.fragment_store"(%a, %t, %i, %i) : (!kvcache.in_flight<64x32xf32, wgmma_acc>, !kvcache.tile<64x64xf32, swizzle_128b>, index, index) -> ()
  return
}

// -----

func.func @fence_c1(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.schedule_fence' op expects one dimension and f32, got '!kvcache.fragment<64x32xf32, wgmma_acc>'}}
  kvcache.schedule_fence %a : !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c4_transposed(%a: !kvcache.fragment<64x64xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be a tile for wgmma_acc_t, got '!kvcache.fragment<64x64xbf16, wgmma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x64xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x64xf32, wgmma_acc_t>
  return
}

// -----

func.func @mma_c6_transposed(%q: !kvcache.tile<16x64xbf16, swizzle_128b>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to have at least 24 rows and 64 columns, got 16 and 64}}
  %y = kvcache.fragment_mma %q[%i, %i], %t[%i, %i] : !kvcache.tile<16x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<24x64xf32, wgmma_acc_t>
  return
}

// -----

func.func @mma_c7(%a: !kvcache.tile<64x64xbf16, swizzle_128b>, %b: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects no 'thread', because 'a' and 'b' have no places of a thread: warpgroups multiply}}
  %p = kvcache.fragment_mma %a[%i, %i], %b[%i, %i] thread %i : !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x64xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c9_wgmma(%a: !kvcache.tile<64x64xbf16, swizzle_128b>, %b: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'rows_first' only for a k_major 'b' of mma.sync with elements of 16 bits, got '!kvcache.tile<64x64xbf16, swizzle_128b>'}}
  %p = kvcache.fragment_mma %a[%i, %i], %b[%i, %i] {rows_first} : !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x64xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c9_major(%a: !kvcache.fragment<16x64xbf16, mma_a16>, %b: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'rows_first' only for a k_major 'b' of mma.sync with elements of 16 bits, got '!kvcache.tile<64x64xbf16, swizzle_128b>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] {major_b = #kvcache.major<mn_major>, rows_first} : !kvcache.fragment<16x64xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c9_bytes(%a: !kvcache.fragment<16x64xf16, mma_a16_pairs>, %b: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'rows_first' only for a k_major 'b' of mma.sync with elements of 16 bits, got '!kvcache.tile<64x64xi8, swizzle_64b>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] {rows_first} : !kvcache.fragment<16x64xf16, mma_a16_pairs>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c9_paired(%a: !kvcache.fragment<16x64xf16, mma_a16_pairs>, %b: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'paired' only for a k_major 'b' of mma.sync with elements of 16 bits, got '!kvcache.tile<64x64xi8, swizzle_64b>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] {paired} : !kvcache.fragment<16x64xf16, mma_a16_pairs>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c2_paired(%a: !kvcache.fragment<16x64xf16, mma_a16>, %b: !kvcache.tile<64x64xf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16_pairs of two dimensions, got '!kvcache.fragment<16x64xf16, mma_a16>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] {paired} : !kvcache.fragment<16x64xf16, mma_a16>, !kvcache.tile<64x64xf16, swizzle_128b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c13_element(%a: !kvcache.fragment<16x64xf16, mma_a16_quads>, %b: !kvcache.tile<64x32xi8, swizzle_32b>, %s: !kvcache.tile<64x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'packed' to be f4E2M1FN or i4, for mma.sync, got 'i5' and '!kvcache.in_flight<16x64xf32, mma_acc>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] {packed = i5} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c13_wgmma(%a: !kvcache.fragment<64x64xf16, wgmma_a16>, %b: !kvcache.tile<64x32xi8, swizzle_32b>, %s: !kvcache.tile<64x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'packed' to be f4E2M1FN or i4, for mma.sync, got 'f4E2M1FN' and '!kvcache.in_flight<64x64xf32, wgmma_acc>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] {packed = f4E2M1FN} : !kvcache.fragment<64x64xf16, wgmma_a16>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<64x64xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c13_a(%a: !kvcache.fragment<16x64xf16, mma_a16_pairs>, %b: !kvcache.tile<64x32xi8, swizzle_32b>, %s: !kvcache.tile<64x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16_quads of two dimensions, got '!kvcache.fragment<16x64xf16, mma_a16_pairs>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] {packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16_pairs>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c13_elements(%a: !kvcache.fragment<16x64xf16, mma_a16_quads>, %b: !kvcache.tile<64x32xf8E4M3FN, swizzle_32b>, %s: !kvcache.tile<64x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects f16, i8 and f32 as element types with 'packed', got 'f16', 'f8E4M3FN' and 'f32'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] {packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xf8E4M3FN, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c13_acc(%a: !kvcache.fragment<16x64xf16, mma_a16>, %b: !kvcache.tile<64x32xi8, swizzle_32b>, %s: !kvcache.tile<64x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects the result to be mma_acc_quads, got '!kvcache.in_flight<16x64xf32, mma_acc_pairs>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] {major_b = #kvcache.major<mn_major>, packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc_pairs>
  return
}

// -----

func.func @mma_c14_i4(%a: !kvcache.fragment<16x64xf16, mma_a16_quads>, %b: !kvcache.tile<64x32xi8, swizzle_32b>, %s: !kvcache.tile<64x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'scales' and 'scales_row' together, and only with 'packed' of f4E2M1FN}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] {packed = i4} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c14_other(%a: !kvcache.fragment<16x64xf16, mma_a16_pairs>, %b: !kvcache.tile<64x64xi8, swizzle_64b>, %s: !kvcache.tile<64x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'scales' and 'scales_row' together, and only with 'packed' of f4E2M1FN}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] : !kvcache.fragment<16x64xf16, mma_a16_pairs>, !kvcache.tile<64x64xi8, swizzle_64b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c14_tile(%a: !kvcache.fragment<16x64xf16, mma_a16_quads>, %b: !kvcache.tile<64x32xi8, swizzle_32b>, %s: !kvcache.tile<48x8xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'scales' to be a tile of f16 without a swizzle, with at least 64 rows and 4 columns, got '!kvcache.tile<48x8xf16>'}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] {packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<48x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

// -----

func.func @mma_c15(%a: !kvcache.fragment<16x96xf16, mma_a16_quads>, %b: !kvcache.tile<64x96xi8, swizzle_32b>, %s: !kvcache.tile<64x16xf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects a row of 32, 64, 128 or 256 elements of a b with 'scales', which divide those of its tile, got 96 of 192}}
  %p = kvcache.fragment_mma %a, %b[%i, %i] scales %s[%i] {packed = f4E2M1FN} : !kvcache.fragment<16x96xf16, mma_a16_quads>, !kvcache.tile<64x96xi8, swizzle_32b> scales !kvcache.tile<64x16xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return
}

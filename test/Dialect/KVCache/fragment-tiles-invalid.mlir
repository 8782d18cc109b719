// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

func.func @load_c1_element(%t: !kvcache.tile<64x64xf32, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects a fragment of two dimensions with the elements of the tile, whole bytes, got '!kvcache.fragment<64x32xbf16, wgmma_a16>' and '!kvcache.tile<64x64xf32, swizzle_128b>'}}
  %y = kvcache.fragment_load %t[%i, %i] : !kvcache.tile<64x64xf32, swizzle_128b> -> !kvcache.fragment<64x32xbf16, wgmma_a16>
  return
}

// -----

func.func @load_c1_bytes(%t: !kvcache.tile<64x64xf8E4M3FN>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects a fragment of two dimensions with the elements of the tile, whole bytes, got '!kvcache.fragment<16x32xf16, mma_a16_pairs>' and '!kvcache.tile<64x64xf8E4M3FN>'}}
  %y = kvcache.fragment_load %t[%i, %i] {paired} : !kvcache.tile<64x64xf8E4M3FN> -> !kvcache.fragment<16x32xf16, mma_a16_pairs>
  return
}

// -----

func.func @load_c1_rank(%t: !kvcache.tile<64x64xf32, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects a fragment of two dimensions with the elements of the tile, whole bytes, got '!kvcache.fragment<64xf32, wgmma_acc>' and '!kvcache.tile<64x64xf32, swizzle_128b>'}}
  %y = kvcache.fragment_load %t[%i, %i] : !kvcache.tile<64x64xf32, swizzle_128b> -> !kvcache.fragment<64xf32, wgmma_acc>
  return
}

// -----

func.func @load_c2_size(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects 'tile' to have at least 64 rows and 128 columns, got 64 and 64}}
  %y = kvcache.fragment_load %t[%i, %i] : !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.fragment<64x128xbf16, wgmma_a16>
  return
}

// -----

func.func @store_c1_bits(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index, %a: !kvcache.fragment<64x32xi1, wgmma_acc>) {
  // expected-error @below {{'kvcache.fragment_store' op expects a fragment of two dimensions with the elements of the tile, whole bytes, got '!kvcache.fragment<64x32xi1, wgmma_acc>' and '!kvcache.tile<64x64xbf16, swizzle_128b>'}}
  kvcache.fragment_store %a, %t[%i, %i] : !kvcache.fragment<64x32xi1, wgmma_acc>, !kvcache.tile<64x64xbf16, swizzle_128b>
  return
}

// -----

func.func @store_c2_size(%t: !kvcache.tile<32x64xbf16, swizzle_128b>, %i: index, %a: !kvcache.fragment<64x32xbf16, wgmma_a16>) {
  // expected-error @below {{'kvcache.fragment_store' op expects 'tile' to have at least 64 rows and 32 columns, got 32 and 64}}
  kvcache.fragment_store %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<32x64xbf16, swizzle_128b>
  return
}

// -----

func.func @load_c3_repeated(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects an accumulator for 'repeated', got '!kvcache.fragment<16x32xbf16, mma_a16>'}}
  %y = kvcache.fragment_load %t[%i, %i] {repeated} : !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.fragment<16x32xbf16, mma_a16>
  return
}

// -----

func.func @load_c3_paired(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects mma_a16_pairs or mma_a16_quads for 'paired', got '!kvcache.fragment<16x32xbf16, mma_a16>'}}
  %y = kvcache.fragment_load %t[%i, %i] {paired} : !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.fragment<16x32xbf16, mma_a16>
  return
}

// -----

func.func @store_transposed(%a: !kvcache.fragment<16x64xbf16, wgmma_acc_t>, %t: !kvcache.tile<16x64xbf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_store' op expects 'tile' to have at least 64 rows and 16 columns, got 16 and 64}}
  kvcache.fragment_store %a, %t[%i, %i] transposed : !kvcache.fragment<16x64xbf16, wgmma_acc_t>, !kvcache.tile<16x64xbf16>
  return
}

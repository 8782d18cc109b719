// RUN: kvcache-opt %s --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-copies --convert-kvcache-to-memref | FileCheck %s --implicit-check-not=!kvcache

// Tokens go through calls and regions, and leave nothing over.

// CHECK-LABEL: func.func private @start(
// CHECK-LABEL: func.func @f(
// CHECK:         call @start(
// CHECK:         scf.if
// CHECK:         vector.load
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
func.func private @start(%k: !cache, %kt: !kt, %i: index) -> !kvcache.token {
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kt
  return %tok : !kvcache.token
}
func.func @f(%k: !cache, %i: index, %c: i1) -> vector<8xbf16> {
  %kt = kvcache.alloc_tile : !kt
  %t0 = call @start(%k, %kt, %i) : (!cache, !kt, index) -> !kvcache.token
  %t1 = scf.if %c -> !kvcache.token {
    %t = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kt
    scf.yield %t : !kvcache.token
  } else {
    scf.yield %t0 : !kvcache.token
  }
  kvcache.wait %t1
  %v = kvcache.tile_load %kt[%i, %i] : !kt -> vector<8xbf16>
  return %v : vector<8xbf16>
}

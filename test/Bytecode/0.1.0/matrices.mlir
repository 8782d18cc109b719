// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/matrices.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

module {
  func.func @tiles(%arg0: !kvcache.tile<128x192xbf16, swizzle_128b>, %arg1: !kvcache.tile<64x192xbf16, swizzle_128b>, %arg2: index, %arg3: index) -> vector<32xf32> {
    %0 = kvcache.mma %arg0[%arg2, %arg3], %arg1[%arg2, %arg3] {k = 64 : i64} : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<32xf32>
    %1 = kvcache.mma %arg0[%arg2, %arg3], %arg1[%arg2, %arg3] add %0 : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<32xf32>
    %2 = kvcache.mma_wait %1 : vector<32xf32>
    return %2 : vector<32xf32>
  }
  func.func @fragment(%arg0: vector<32xbf16>, %arg1: !kvcache.tile<64x192xbf16, swizzle_128b>, %arg2: vector<64xf32>, %arg3: index) -> vector<64xf32> {
    %0 = kvcache.mma %arg0, %arg1[%arg3, %arg3] add %arg2 {major_b = #kvcache.major<mn_major>} : vector<32xbf16>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<64xf32>
    return %0 : vector<64xf32>
  }
  func.func @majors(%arg0: !kvcache.tile<64x64xf16, swizzle_128b>, %arg1: index) -> vector<4xf16> {
    %0 = kvcache.mma %arg0[%arg1, %arg1], %arg0[%arg1, %arg1] {major_a = #kvcache.major<mn_major>} : !kvcache.tile<64x64xf16, swizzle_128b>, !kvcache.tile<64x64xf16, swizzle_128b> -> vector<4xf16>
    return %0 : vector<4xf16>
  }
  func.func @types(%arg0: !kvcache.tile<64x64xf8E4M3FN, swizzle_32b>, %arg1: !kvcache.tile<64x64xf8E5M2, swizzle_64b>, %arg2: vector<32xf8E5M2>, %arg3: !kvcache.tile<256x32xi8, swizzle_32b>, %arg4: index) {
    %0 = kvcache.mma %arg0[%arg4, %arg4], %arg1[%arg4, %arg4] : !kvcache.tile<64x64xf8E4M3FN, swizzle_32b>, !kvcache.tile<64x64xf8E5M2, swizzle_64b> -> vector<4xf16>
    %1 = kvcache.mma %arg2, %arg0[%arg4, %arg4] : vector<32xf8E5M2>, !kvcache.tile<64x64xf8E4M3FN, swizzle_32b> -> vector<12xf32>
    %2 = kvcache.mma %arg3[%arg4, %arg4], %arg3[%arg4, %arg4] : !kvcache.tile<256x32xi8, swizzle_32b>, !kvcache.tile<256x32xi8, swizzle_32b> -> vector<128xi32>
    return
  }
  func.func @waits(%arg0: vector<4xf32>, %arg1: vector<8xf16>) -> (vector<4xf32>, vector<8xf16>) {
    kvcache.mma_wait
    kvcache.mma_wait pending 1
    %0:2 = kvcache.mma_wait %arg0, %arg1 pending 2 : vector<4xf32>, vector<8xf16>
    return %0#0, %0#1 : vector<4xf32>, vector<8xf16>
  }
  func.func @grouped(%arg0: !kvcache.tile<128x192xbf16, swizzle_128b>, %arg1: !kvcache.tile<64x192xbf16, swizzle_128b>, %arg2: index) -> (vector<32xf32>, vector<32xf32>) {
    %0 = kvcache.mma %arg0[%arg2, %arg2], %arg1[%arg2, %arg2] {grouped} : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<32xf32>
    %1 = kvcache.mma %arg0[%arg2, %arg2], %arg1[%arg2, %arg2] : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<32xf32>
    return %0, %1 : vector<32xf32>, vector<32xf32>
  }
}


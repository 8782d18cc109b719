// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

!qt = !kvcache.tile<128x192xbf16, swizzle_128b>
!kt = !kvcache.tile<64x192xbf16, swizzle_128b>
!fp8 = !kvcache.tile<64x64xf8E4M3FN, swizzle_32b>
!fp8_2 = !kvcache.tile<64x64xf8E5M2, swizzle_64b>
!i8 = !kvcache.tile<256x32xi8, swizzle_32b>
!f16 = !kvcache.tile<64x64xf16, swizzle_128b>

// CHECK-LABEL: func.func @tiles(
// CHECK-SAME:    %[[Q:.*]]: !kvcache.tile<128x192xbf16, swizzle_128b>, %[[K:.*]]: !kvcache.tile<64x192xbf16, swizzle_128b>, %[[ROW:.*]]: index, %[[COLUMN:.*]]: index)
// CHECK:         %[[D:.*]] = kvcache.mma %[[Q]][%[[ROW]], %[[COLUMN]]], %[[K]][%[[ROW]], %[[COLUMN]]] {k = 64 : i64} : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<32xf32>
// CHECK:         %[[E:.*]] = kvcache.mma %[[Q]][%[[ROW]], %[[COLUMN]]], %[[K]][%[[ROW]], %[[COLUMN]]] add %[[D]] : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<32xf32>
// CHECK:         kvcache.mma_wait %[[E]] : vector<32xf32>
func.func @tiles(%q: !qt, %k: !kt, %row: index, %column: index) -> vector<32xf32> {
  %d = kvcache.mma %q[%row, %column], %k[%row, %column] {k = 64} : !qt, !kt -> vector<32xf32>
  %e = kvcache.mma %q[%row, %column], %k[%row, %column] add %d : !qt, !kt -> vector<32xf32>
  %f = kvcache.mma_wait %e : vector<32xf32>
  return %f : vector<32xf32>
}

// CHECK-LABEL: func.func @fragment(
// CHECK:         kvcache.mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] add %{{.*}} {major_b = #kvcache.major<mn_major>} : vector<32xbf16>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<64xf32>
func.func @fragment(%p: vector<32xbf16>, %v: !kt, %o: vector<64xf32>, %i: index) -> vector<64xf32> {
  %d = kvcache.mma %p, %v[%i, %i] add %o {major_b = #kvcache.major<mn_major>} : vector<32xbf16>, !kt -> vector<64xf32>
  return %d : vector<64xf32>
}

// K-major is the default.
// CHECK-LABEL: func.func @majors(
// CHECK:         kvcache.mma %{{.*}}, %{{.*}} {major_a = #kvcache.major<mn_major>} :
func.func @majors(%q: !f16, %i: index) -> vector<4xf16> {
  %d = kvcache.mma %q[%i, %i], %q[%i, %i] {major_a = #kvcache.major<mn_major>, major_b = #kvcache.major<k_major>} : !f16, !f16 -> vector<4xf16>
  return %d : vector<4xf16>
}

// CHECK-LABEL: func.func @types(
// CHECK:         !kvcache.tile<64x64xf8E4M3FN, swizzle_32b>, !kvcache.tile<64x64xf8E5M2, swizzle_64b> -> vector<4xf16>
// CHECK:         vector<32xf8E5M2>, !kvcache.tile<64x64xf8E4M3FN, swizzle_32b> -> vector<12xf32>
// CHECK:         !kvcache.tile<256x32xi8, swizzle_32b>, !kvcache.tile<256x32xi8, swizzle_32b> -> vector<128xi32>
func.func @types(%a: !fp8, %b: !fp8_2, %c: vector<32xf8E5M2>, %d: !i8, %i: index) {
  %x = kvcache.mma %a[%i, %i], %b[%i, %i] : !fp8, !fp8_2 -> vector<4xf16>
  %y = kvcache.mma %c, %a[%i, %i] : vector<32xf8E5M2>, !fp8 -> vector<12xf32>
  %z = kvcache.mma %d[%i, %i], %d[%i, %i] : !i8, !i8 -> vector<128xi32>
  return
}

// CHECK-LABEL: func.func @waits(
// CHECK:         kvcache.mma_wait{{$}}
// CHECK:         kvcache.mma_wait pending 1{{$}}
// CHECK:         %{{.*}}:2 = kvcache.mma_wait %{{.*}}, %{{.*}} pending 2 : vector<4xf32>, vector<8xf16>
func.func @waits(%x: vector<4xf32>, %y: vector<8xf16>) -> (vector<4xf32>, vector<8xf16>) {
  kvcache.mma_wait
  kvcache.mma_wait pending 1
  %z:2 = kvcache.mma_wait %x, %y pending 2 : vector<4xf32>, vector<8xf16>
  return %z#0, %z#1 : vector<4xf32>, vector<8xf16>
}

// CHECK-LABEL: func.func @grouped(
// CHECK:         kvcache.mma %{{.*}} {grouped} : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b> -> vector<32xf32>
func.func @grouped(%q: !qt, %k: !kt, %i: index) -> (vector<32xf32>, vector<32xf32>) {
  %d = kvcache.mma %q[%i, %i], %k[%i, %i] {grouped} : !qt, !kt -> vector<32xf32>
  %e = kvcache.mma %q[%i, %i], %k[%i, %i] : !qt, !kt -> vector<32xf32>
  return %d, %e : vector<32xf32>, vector<32xf32>
}

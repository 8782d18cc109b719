// RUN: kvcache-opt %s --kvcache-bounds-checks | FileCheck %s

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// CHECK-LABEL: func.func @tiles(
// CHECK-SAME:    %[[KT:.*]]: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[V:.*]]: vector<8xbf16>, %[[I:.*]]: index, %[[J:.*]]: index)
// CHECK:         kvcache.check %[[I]] below %c64{{.*}}, "'kvcache.tile_load' op row"
// CHECK:         kvcache.check %[[J]] below %c121{{.*}}, "'kvcache.tile_load' op column"
// CHECK:         %[[REST:.*]] = arith.remui %[[J]], %c8
// CHECK:         kvcache.check %[[REST]] below %c1{{.*}}, "'kvcache.tile_load' op column modulo 8, which must be 0,"
// CHECK:         kvcache.tile_load
// CHECK:         kvcache.check %[[I]] below %c64{{.*}}, "'kvcache.tile_store' op row"
// CHECK:         kvcache.check %[[J]] below %c121{{.*}}, "'kvcache.tile_store' op column"
// CHECK:         kvcache.tile_store
// CHECK:         kvcache.check %[[I]] below %c64{{.*}}, "'kvcache.tile_offset' op row"
// CHECK:         kvcache.check %[[J]] below %c128{{.*}}, "'kvcache.tile_offset' op column"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.tile_offset
func.func @tiles(%kt: !kt, %v: vector<8xbf16>, %i: index, %j: index) -> (vector<8xbf16>, index) {
  %x = kvcache.tile_load %kt[%i, %j] : !kt -> vector<8xbf16>
  kvcache.tile_store %v, %kt[%i, %j] : vector<8xbf16>, !kt
  %o = kvcache.tile_offset %kt[%i, %j] : !kt
  return %x, %o : vector<8xbf16>, index
}

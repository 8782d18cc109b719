// RUN: kvcache-opt %s --kvcache-bounds-checks | FileCheck %s

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!q = !kvcache.fragment<16x64xbf16, mma_a16>
!fly = !kvcache.in_flight<16x32xf32, mma_acc>

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

// CHECK-LABEL: func.func @tile_of_another_block(
// CHECK-SAME:    %{{.*}}: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[I:.*]]: index, %[[J:.*]]: index, %{{.*}}: index)
// CHECK:         kvcache.check %[[I]] below %c64{{.*}}, "'kvcache.cluster_load' op row"
// CHECK:         kvcache.check %[[J]] below %c121{{.*}}, "'kvcache.cluster_load' op column"
func.func @tile_of_another_block(%kt: !kt, %i: index, %j: index, %rank: index) -> vector<8xbf16> {
  %x = kvcache.cluster_load %kt[%i, %j] rank %rank : !kt -> vector<8xbf16>
  return %x : vector<8xbf16>
}

// CHECK-LABEL: func.func @fragments(
// CHECK-SAME:    %{{.*}}: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[I:.*]]: index, %[[J:.*]]: index)
// CHECK:         kvcache.check %[[I]] below %c49{{.*}}, "'kvcache.fragment_load' op tile_row"
// CHECK:         %[[ROWS:.*]] = arith.remui %[[I]], %c8
// CHECK:         kvcache.check %[[ROWS]] below %c1{{.*}}, "'kvcache.fragment_load' op tile_row modulo 8, which must be 0,"
// CHECK:         kvcache.check %[[J]] below %c65{{.*}}, "'kvcache.fragment_load' op tile_column"
// CHECK:         %[[COLUMNS:.*]] = arith.remui %[[J]], %c8
// CHECK:         kvcache.check %[[COLUMNS]] below %c1{{.*}}, "'kvcache.fragment_load' op tile_column modulo 8, which must be 0,"
// CHECK:         kvcache.fragment_load
// CHECK:         kvcache.check %[[I]] below %c33{{.*}}, "'kvcache.fragment_mma' op b_row"
// CHECK:         kvcache.check %[[J]] below %c65{{.*}}, "'kvcache.fragment_mma' op b_column"
// CHECK:         kvcache.fragment_mma
// CHECK:         kvcache.check %[[I]] below %c49{{.*}}, "'kvcache.fragment_store' op tile_row"
// CHECK:         kvcache.fragment_store
func.func @fragments(%kt: !kt, %i: index, %j: index) -> !fly {
  %q = kvcache.fragment_load %kt[%i, %j] : !kt -> !q
  %s = kvcache.fragment_mma %q, %kt[%i, %j] : !q, !kt -> !fly
  kvcache.fragment_store %q, %kt[%i, %j] : !q, !kt
  return %s : !fly
}

// Places of rows that are not stored mean nothing.
// CHECK-LABEL: func.func @stored_rows(
// CHECK-SAME:    %{{.*}}, %[[COLUMN:.*]]: index, %[[OUT:.*]]: memref<?x64xf32>, %[[STORED:.*]]: i1)
// CHECK:         kvcache.store_rows
// CHECK-NEXT:    ^bb0(%[[ROW:.*]]: index):
// CHECK:         %[[CHECKED:.*]] = arith.select %[[STORED]], %[[ROW]], %c0
// CHECK:         %[[SIZE:.*]] = memref.dim %[[OUT]], %c0
// CHECK:         %[[BOUND:.*]] = arith.select %[[STORED]], %[[SIZE]], %c1
// CHECK:         kvcache.check %[[CHECKED]] below %[[BOUND]], "'kvcache.store_rows' op index of dimension 0"
// CHECK:         %[[LAST:.*]] = arith.addi %[[COLUMN]], %c31
// CHECK:         arith.select %[[STORED]], %[[COLUMN]], %c0
// CHECK:         kvcache.check {{.*}}, "'kvcache.store_rows' op index of dimension 1"
// CHECK:         arith.select %[[STORED]], %[[LAST]], %c0
// CHECK:         kvcache.check {{.*}}, "'kvcache.store_rows' op last index of dimension 1"
// CHECK:         kvcache.yield %[[ROW]], %[[STORED]]
func.func @stored_rows(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %column: index, %out: memref<?x64xf32>, %is: i1) {
  kvcache.store_rows %a at(%column, %column) to %out : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x64xf32> {
  ^bb0(%row: index):
    kvcache.yield %row, %is : index, i1
  }
  return
}

// The places of both memrefs are checked: rows of either may be fewer.
// CHECK-LABEL: func.func @stored_split(
// CHECK:         kvcache.store_split
// CHECK:         memref.dim %{{.*}} : memref<?x64xf32>
// CHECK:         kvcache.check {{.*}}, "'kvcache.store_split' op index of dimension 0"
// CHECK:         kvcache.check {{.*}}, "'kvcache.store_split' op index of dimension 1"
// CHECK:         kvcache.check {{.*}}, "'kvcache.store_split' op last index of dimension 1"
// CHECK:         memref.dim %{{.*}} : memref<?x2xf32>
// CHECK:         kvcache.check {{.*}}, "'kvcache.store_split' op index of dimension 0"
// CHECK-NEXT:    kvcache.yield
func.func @stored_split(%a: !kvcache.fragment<16x32xf32, mma_acc>, %m: !kvcache.fragment<16xf32, mma_acc>, %column: index, %accs: memref<?x64xf32>, %states: memref<?x2xf32>, %is: i1) {
  kvcache.store_split %a, %m, %m at(%column, %column) to %accs, %states : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x64xf32>, memref<?x2xf32> {
  ^bb0(%row: index):
    kvcache.yield %row, %is : index, i1
  }
  return
}

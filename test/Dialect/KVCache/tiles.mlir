// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!fp8 = !kvcache.tile<64x128xf8E4M3FN, swizzle_64b>
!i32 = !kvcache.tile<8x64xi32, swizzle_32b>
!plain = !kvcache.tile<3x24xf64>
!memory = memref<16384xi8, #gpu.address_space<workgroup>>

// CHECK-LABEL: func.func @types(
// CHECK-SAME:    !kvcache.tile<64x128xbf16, swizzle_128b>, %{{.*}}: !kvcache.tile<64x128xf8E4M3FN, swizzle_64b>,
// CHECK-SAME:    !kvcache.tile<8x64xi32, swizzle_32b>, %{{.*}}: !kvcache.tile<3x24xf64>)
func.func @types(%a: !kt, %b: !fp8, %c: !i32, %d: !plain) {
  return
}

// CHECK-LABEL: func.func @none_is_the_swizzle_of_a_plain_tile(
// CHECK-SAME:    !kvcache.tile<64x128xbf16>)
func.func @none_is_the_swizzle_of_a_plain_tile(%a: !kvcache.tile<64x128xbf16, none>) {
  return
}

// CHECK-LABEL: func.func @ops(
// CHECK:         %[[TILE:.*]] = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.tile_load %[[TILE]][%[[I:.*]], %[[J:.*]]] : !kvcache.tile<64x128xbf16, swizzle_128b> -> vector<8xbf16>
// CHECK:         kvcache.tile_load %[[TILE]][%[[I]], %[[J]]] : !kvcache.tile<64x128xbf16, swizzle_128b> -> bf16
// CHECK:         kvcache.tile_store %{{.*}}, %[[TILE]][%[[I]], %[[J]]] : vector<8xbf16>, !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.tile_offset %[[TILE]][%[[I]], %[[J]]] : !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.tile_memory %[[TILE]] : !kvcache.tile<64x128xbf16, swizzle_128b> -> memref<16384xi8, #gpu.address_space<workgroup>>
func.func @ops(%i: index, %j: index) -> (vector<8xbf16>, bf16, index, !memory) {
  %kt = kvcache.alloc_tile : !kt
  %v = kvcache.tile_load %kt[%i, %j] : !kt -> vector<8xbf16>
  %s = kvcache.tile_load %kt[%i, %j] : !kt -> bf16
  kvcache.tile_store %v, %kt[%i, %j] : vector<8xbf16>, !kt
  %o = kvcache.tile_offset %kt[%i, %j] : !kt
  %m = kvcache.tile_memory %kt : !kt -> !memory
  return %v, %s, %o, %m : vector<8xbf16>, bf16, index, !memory
}

// CHECK-LABEL: func.func @clusters(
// CHECK-SAME:    %[[TILE:.*]]: !kvcache.tile<{{.*}}>, %[[I:.*]]: index, %[[J:.*]]: index, %[[R:.*]]: index)
// CHECK:         kvcache.cluster_barrier {blocks = 4 : i64}
// CHECK:         kvcache.cluster_load %[[TILE]][%[[I]], %[[J]]] rank %[[R]] : !kvcache.tile<64x128xbf16, swizzle_128b> -> vector<8xbf16>
func.func @clusters(%kt: !kt, %i: index, %j: index, %rank: index) -> vector<8xbf16> {
  kvcache.cluster_barrier {blocks = 4 : i64}
  %v = kvcache.cluster_load %kt[%i, %j] rank %rank : !kt -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// Row 9, column 70 of chunk 1: 8192 + 9 * 128 + 12, in unit 0 of line 9, which
// lies in unit 1.
// FOLD-LABEL: func.func @offsets_of_constants_fold(
// FOLD-DAG:     %[[OFFSET:.*]] = arith.constant 9372 : index
// FOLD:         kvcache.tile_offset
// FOLD:         return %[[OFFSET]], %{{.*}} : index, index
func.func @offsets_of_constants_fold(%kt: !kt) -> (index, index) {
  %c9 = arith.constant 9 : index
  %c70 = arith.constant 70 : index
  %c128 = arith.constant 128 : index
  %o = kvcache.tile_offset %kt[%c9, %c70] : !kt
  %outside = kvcache.tile_offset %kt[%c9, %c128] : !kt
  return %o, %outside : index, index
}

// CHECK-LABEL: func.func @alignment(
// CHECK:         kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.alloc_tile {alignment = 1024 : i64} : !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.alloc_tile {alignment = 4096 : i64} : !kvcache.tile<3x24xf64>
func.func @alignment() {
  %a = kvcache.alloc_tile : !kt
  %b = kvcache.alloc_tile {alignment = 1024} : !kt
  %c = kvcache.alloc_tile {alignment = 4096} : !plain
  return
}

// CHECK-LABEL: func.func @view(
// CHECK-SAME:    %[[MEMORY:.*]]: memref<16384xi8, #gpu.address_space<workgroup>>)
// CHECK:         kvcache.tile_view %[[MEMORY]] : memref<16384xi8, #gpu.address_space<workgroup>> -> !kvcache.tile<64x128xbf16, swizzle_128b>
func.func @view(%m: !memory) -> !kt {
  %kt = kvcache.tile_view %m : !memory -> !kt
  return %kt : !kt
}

// FOLD-LABEL: func.func @memory_of_a_view_folds(
// FOLD-SAME:    %[[MEMORY:.*]]: memref<16384xi8, #gpu.address_space<workgroup>>)
// FOLD-NEXT:    return %[[MEMORY]]
func.func @memory_of_a_view_folds(%m: !memory) -> !memory {
  %kt = kvcache.tile_view %m : !memory -> !kt
  %n = kvcache.tile_memory %kt : !kt -> !memory
  return %n : !memory
}

// FOLD-LABEL: func.func @view_of_a_memory_folds(
// FOLD-SAME:    %[[KT:.*]]: !kvcache.tile<64x128xbf16, swizzle_128b>)
// FOLD-NEXT:    return %[[KT]]
func.func @view_of_a_memory_folds(%kt: !kt) -> !kt {
  %m = kvcache.tile_memory %kt : !kt -> !memory
  %view = kvcache.tile_view %m : !memory -> !kt
  return %view : !kt
}

// The same bytes as another tile stay another tile, whose memory is the same.
// FOLD-LABEL: func.func @view_as_another_tile_does_not_fold(
// FOLD-SAME:    %[[KT:.*]]: !kvcache.tile<64x128xbf16, swizzle_128b>)
// FOLD:         %[[MEMORY:.*]] = kvcache.tile_memory %[[KT]]
// FOLD:         %[[VIEW:.*]] = kvcache.tile_view %[[MEMORY]] : {{.*}} -> !kvcache.tile<128x128xi8>
// FOLD:         return %[[VIEW]], %[[MEMORY]]
func.func @view_as_another_tile_does_not_fold(%kt: !kt) -> (!kvcache.tile<128x128xi8>, !memory) {
  %m = kvcache.tile_memory %kt : !kt -> !memory
  %view = kvcache.tile_view %m : !memory -> !kvcache.tile<128x128xi8>
  %n = kvcache.tile_memory %view : !kvcache.tile<128x128xi8> -> !memory
  return %view, %n : !kvcache.tile<128x128xi8>, !memory
}

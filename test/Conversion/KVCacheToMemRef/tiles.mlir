// RUN: kvcache-opt %s --convert-kvcache-to-memref --canonicalize --split-input-file --allow-unregistered-dialect | FileCheck %s --implicit-check-not=kvcache.tile_ --implicit-check-not=alloc_tile

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!memory = memref<16384xi8, #gpu.address_space<workgroup>>

// A function's tile is in its frame, aligned to eight lines of the swizzle, and
// made once, also for a loop.
// CHECK-LABEL: func.func @frame(
// CHECK:         %[[MEMORY:.*]] = memref.alloca() {alignment = 1024 : i64} : memref<16384xi8, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK:           "test.use"(%[[MEMORY]])
func.func @frame(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %kt = kvcache.alloc_tile : !kt
    %m = kvcache.tile_memory %kt : !kt -> !memory
    "test.use"(%m) : (!memory) -> ()
  }
  return
}

// More than a frame has room for is on the heap until the function returns.
// CHECK-LABEL: func.func @heap(
// CHECK-DAG:     %[[HEAP:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<262144xi8, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[FRAME:.*]] = memref.alloca() {alignment = 1024 : i64} : memref<16384xi8, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK:           "test.use"(%[[FRAME]], %[[HEAP]])
// CHECK:         cf.cond_br
// CHECK:         memref.dealloc %[[HEAP]]
// CHECK-NEXT:    return
// CHECK:         memref.dealloc %[[HEAP]]
// CHECK-NEXT:    return
func.func @heap(%n: index, %early: i1) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %kt = kvcache.alloc_tile : !kt
    %large = kvcache.alloc_tile : !kvcache.tile<1024x128xbf16, swizzle_128b>
    %m = kvcache.tile_memory %kt : !kt -> !memory
    %l = kvcache.tile_memory %large : !kvcache.tile<1024x128xbf16, swizzle_128b> -> memref<262144xi8, #gpu.address_space<workgroup>>
    "test.use"(%m, %l) : (!memory, memref<262144xi8, #gpu.address_space<workgroup>>) -> ()
  }
  cf.cond_br %early, ^bb1, ^bb2
^bb1:
  return %c0 : index
^bb2:
  return %n : index
}

// Tiles share the room of a frame.
// CHECK-LABEL:   func.func @share_the_frame(
// CHECK-COUNT-1:   memref.alloc() {{.*}} : memref<102400xi8,
// CHECK-COUNT-2:   memref.alloca() {{.*}} : memref<102400xi8,
// CHECK-NOT:       memref.alloc
// CHECK:           return
func.func @share_the_frame() {
  %a = kvcache.alloc_tile : !kvcache.tile<800x64xbf16>
  %b = kvcache.alloc_tile : !kvcache.tile<800x64xbf16>
  %c = kvcache.alloc_tile : !kvcache.tile<800x64xbf16>
  %m0 = kvcache.tile_memory %a : !kvcache.tile<800x64xbf16> -> memref<102400xi8, #gpu.address_space<workgroup>>
  %m1 = kvcache.tile_memory %b : !kvcache.tile<800x64xbf16> -> memref<102400xi8, #gpu.address_space<workgroup>>
  %m2 = kvcache.tile_memory %c : !kvcache.tile<800x64xbf16> -> memref<102400xi8, #gpu.address_space<workgroup>>
  "test.use"(%m0, %m1, %m2) : (memref<102400xi8, #gpu.address_space<workgroup>>, memref<102400xi8, #gpu.address_space<workgroup>>, memref<102400xi8, #gpu.address_space<workgroup>>) -> ()
  return
}

// Two chunks of 64 columns; the unit of 16 bytes exclusive-or the row modulo 8.
// CHECK-LABEL: func.func @swizzled(
// CHECK-SAME:    %[[MEMORY:.*]]: memref<16384xi8, #gpu.address_space<workgroup>>, %[[ROW_INDEX:.*]]: index, %[[COLUMN_INDEX:.*]]: index)
// CHECK-DAG:     %[[ROW:.*]] = arith.index_castui %[[ROW_INDEX]] : index to i32
// CHECK-DAG:     %[[COLUMN:.*]] = arith.index_castui %[[COLUMN_INDEX]] : index to i32
// CHECK-DAG:     %[[START:.*]] = arith.muli %[[ROW]], %c128_i32 overflow<nsw, nuw>
// CHECK-DAG:     %[[CHUNK:.*]] = arith.divui %[[COLUMN]], %c64_i32
// CHECK-DAG:     %[[CHUNK_START:.*]] = arith.muli %[[CHUNK]], %c8192_i32 overflow<nsw, nuw>
// CHECK-DAG:     %[[BASE:.*]] = arith.addi %[[START]], %[[CHUNK_START]] overflow<nsw, nuw>
// CHECK-DAG:     %[[IN_CHUNK:.*]] = arith.remui %[[COLUMN]], %c64_i32
// CHECK-DAG:     %[[BYTE:.*]] = arith.muli %[[IN_CHUNK]], %c2_i32 overflow<nsw, nuw>
// CHECK-DAG:     %[[LINE:.*]] = arith.remui %[[ROW]], %c8_i32
// CHECK-DAG:     %[[UNIT:.*]] = arith.muli %[[LINE]], %c16_i32 overflow<nsw, nuw>
// CHECK:         %[[STORED_BYTE:.*]] = arith.xori %[[BYTE]], %[[UNIT]]
// CHECK:         %[[STORED:.*]] = arith.addi %[[BASE]], %[[STORED_BYTE]] overflow<nsw, nuw>
// CHECK:         %[[OFFSET:.*]] = arith.index_castui %[[STORED]] : i32 to index
// CHECK:         %[[LOADED:.*]] = vector.load %[[MEMORY]][%[[OFFSET]]] {alignment = 16 : i64} : {{.*}}, vector<16xi8>
// CHECK:         %[[VALUE:.*]] = vector.bitcast %[[LOADED]] : vector<16xi8> to vector<8xbf16>
// CHECK:         return %[[VALUE]]
func.func @swizzled(%kt: !kt, %row: index, %column: index) -> vector<8xbf16> {
  %v = kvcache.tile_load %kt[%row, %column] : !kt -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// -----

// 64 bytes of two rows are a line: the unit exclusive-or half the row modulo 4.
// CHECK-LABEL: func.func @half_lines(
// CHECK-SAME:    %[[VALUE:.*]]: f8E4M3FN,
// CHECK:         %[[LINE:.*]] = arith.divui %{{.*}}, %c2_i32
// CHECK:         arith.remui %[[LINE]], %c4_i32
// CHECK:         arith.xori
// CHECK:         vector.store %{{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xi8>
func.func @half_lines(%v: f8E4M3FN, %kt: !kvcache.tile<64x128xf8E4M3FN, swizzle_64b>, %i: index, %j: index) {
  kvcache.tile_store %v, %kt[%i, %j] : f8E4M3FN, !kvcache.tile<64x128xf8E4M3FN, swizzle_64b>
  return
}

// -----

// CHECK-LABEL: func.func @plain(
// CHECK-NOT:     arith.xori
// CHECK-NOT:     arith.divui
// CHECK:         return
func.func @plain(%kt: !kvcache.tile<3x24xf64>, %i: index, %j: index) -> index {
  %o = kvcache.tile_offset %kt[%i, %j] : !kvcache.tile<3x24xf64>
  return %o : index
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_64b>
!memory = memref<8192xi8, #gpu.address_space<workgroup>>

// A kernel's tiles are variables of its module.
// CHECK-LABEL: gpu.module @kernels
// CHECK-DAG:     memref.global "private" @kvcache_tile : memref<8192xi8, #gpu.address_space<workgroup>> = uninitialized {alignment = 512 : i64}
// CHECK-DAG:     memref.global "private" @kvcache_tile_0 : memref<8192xi8, #gpu.address_space<workgroup>> = uninitialized {alignment = 512 : i64}
// CHECK:         gpu.func @two_tiles(
// CHECK-DAG:       memref.get_global @kvcache_tile :
// CHECK-DAG:       memref.get_global @kvcache_tile_0
gpu.module @kernels {
  gpu.func @two_tiles() kernel {
    %k = kvcache.alloc_tile : !kt
    %v = kvcache.alloc_tile : !kt
    %km = kvcache.tile_memory %k : !kt -> !memory
    %vm = kvcache.tile_memory %v : !kt -> !memory
    "test.use"(%km, %vm) : (!memory, !memory) -> ()
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_64b>

// CHECK-LABEL: func.func @through_a_call(
// CHECK:         %[[MEMORY:.*]] = memref.alloca
// CHECK:         call @take(%[[MEMORY]]) : (memref<8192xi8, #gpu.address_space<workgroup>>) -> ()
func.func private @take(%kt: !kt) {
  return
}
func.func @through_a_call() {
  %kt = kvcache.alloc_tile : !kt
  call @take(%kt) : (!kt) -> ()
  return
}

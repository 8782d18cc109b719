// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx-module="*" | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a | FileCheck %s --check-prefix=HOST

// Nested parallel loops become a kernel: the outer ones the grid, the inner
// ones the block, the innermost dimension along x. The values of a query that
// the grid depends on stay on the host.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK:         .visible .entry lengths_kernel(
// CHECK:         .maxntid 16, 4, 2
// CHECK:         %tid.x
// HOST:          func.func @lengths(
// HOST-DAG:        %[[C16:.*]] = arith.constant 16 : index
// HOST-DAG:        %[[C4:.*]] = arith.constant 4 : index
// HOST-DAG:        %[[C2:.*]] = arith.constant 2 : index
// HOST:            %[[LENGTH:.*]] = memref.load
// HOST:            %[[GRID:.*]] = arith.index_castui %[[LENGTH]]
// HOST:            gpu.launch_func @lengths_kernel::@lengths_kernel blocks in (%[[GRID]], {{[^)]*}}) threads in (%[[C16]], %[[C4]], %[[C2]])
// HOST:          gpu.binary @lengths_kernel
// HOST-SAME:       block_size = array<i32: 16, 4, 2>
// HOST-SAME:       {name = "keys.blocks", offset = 0 : i64, size = 8 : i64, type = !llvm.ptr}
// HOST-SAME:       {name = "out", offset = {{[0-9]+}} : i64, size = 8 : i64, type = !llvm.ptr}
func.func @lengths(%k: !cache {kvcache.name = "keys"}, %b: index, %out: memref<?x2x4x16xbf16> {kvcache.name = "out"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %n = kvcache.cache_length %k[%b] : !cache
  scf.parallel (%t) = (%c0) to (%n) step (%c1) {
    scf.parallel (%x, %y, %z) = (%c0, %c0, %c0) to (%c2, %c4, %c16) step (%c1, %c1, %c1) {
      %v = kvcache.load %k[%b, %x, %t, %z] : !cache -> bf16
      memref.store %v, %out[%t, %x, %y, %z] : memref<?x2x4x16xbf16>
    }
  }
  return
}

// What writes may stand directly in the body of the inner loop.

// CHECK-LABEL: .visible .entry writes_kernel(
// CHECK:         cp.async
// CHECK:         st.global.v4.b32
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>
func.func @writes(%k: !cache {kvcache.name = "keys"}, %n: index, %x: vector<8xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  scf.parallel (%b) = (%c0) to (%n) step (%c1) {
    scf.parallel (%i) = (%c0) to (%c128) step (%c1) {
      %kt = kvcache.alloc_tile : !kt
      %token = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt : !cache, !kt
      kvcache.wait %token
      %v = kvcache.tile_load %kt[%c0, %c0] : !kt -> vector<8xbf16>
      kvcache.store %v, %k[%b, %c1, %i, %c0] : vector<8xbf16>, !cache
    }
  }
  return
}

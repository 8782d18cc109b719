// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_80,sm_90a,sm_100a" --emit-ptx-chip="*" | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_120a" --emit-ptx | FileCheck %s --implicit-check-not=.local

// A transpose of 16-byte units through a tile: 128-bit accesses of shared
// memory, from one variable that is as aligned as the swizzle needs.

!tile = !kvcache.tile<8x64xbf16, swizzle_128b>

// CHECK-LABEL: .visible .entry transpose(
// CHECK:         .shared .align 1024 .b8 kvcache_tile[1024];
// CHECK:         st.shared.v4.b32
// CHECK:         bar.sync 0;
// CHECK:         ld.shared.v4.b32
gpu.module @kernels {
  gpu.func @transpose(%in: memref<8x64xbf16>, %out: memref<8x64xbf16>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c8 = arith.constant 8 : index
    %tile = kvcache.alloc_tile : !tile
    %thread = gpu.thread_id x
    %row = arith.divui %thread, %c8 : index
    %unit = arith.remui %thread, %c8 : index
    %column = arith.muli %unit, %c8 : index
    %column_of_row = arith.muli %row, %c8 : index
    %v = vector.load %in[%row, %column] {alignment = 16} : memref<8x64xbf16>, vector<8xbf16>
    kvcache.tile_store %v, %tile[%row, %column] : vector<8xbf16>, !tile
    gpu.barrier
    %w = kvcache.tile_load %tile[%unit, %column_of_row] : !tile -> vector<8xbf16>
    vector.store %w, %out[%row, %column] {alignment = 16} : memref<8x64xbf16>, vector<8xbf16>
    gpu.return
  }
}

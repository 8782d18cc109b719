// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_80" --emit-ptx | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a" --emit-ptx | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_100a" --emit-ptx | FileCheck %s --implicit-check-not=.local

// The threads of a block copy 16 bytes each, and wait at a barrier.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// CHECK-LABEL: .visible .entry keys(
// CHECK:         .shared .align 1024 .b8 kvcache_tile_0[16384];
// CHECK-DAG:     ld.global.nc.v4.b32
// CHECK-DAG:     st.shared.v4.b32
// CHECK-DAG:     bar.sync 0;
// CHECK-DAG:     ld.shared.v4.b32
gpu.module @kernels {
  gpu.func @keys(%k: !cache, %n: index, %out: memref<64x128xbf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %b = gpu.block_id x
    %h = gpu.block_id y
    %thread = gpu.thread_id x
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] valid %n to %kt : !cache, !kt
    kvcache.wait %tok
    %row = arith.divui %thread, %c8 : index
    %unit = arith.remui %thread, %c8 : index
    %column = arith.muli %unit, %c8 : index
    %v = kvcache.tile_load %kt[%row, %column] : !kt -> vector<8xbf16>
    vector.store %v, %out[%row, %column] {alignment = 16} : memref<64x128xbf16>, vector<8xbf16>
    gpu.return
  }
}

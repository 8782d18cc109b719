// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80 --emit-ptx | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_100a --emit-ptx | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_120a --emit-ptx | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_80,sm_120a" | FileCheck %s --check-prefix=BINARY

// 96 KB of tiles are dynamic shared memory, as aligned as the swizzle needs, and
// their offsets are in the instructions. 32 KB are static.

// CHECK:         .extern .shared .align 1024 .b8 kvcache_shared[];
// CHECK:         .visible .entry three(
// CHECK:         mov.b64 %{{rd[0-9]+}}, kvcache_shared;
// CHECK-DAG:     st.shared.v4.b32 [%{{rd[0-9]+}}], {
// CHECK-DAG:     st.shared.v4.b32 [%{{rd[0-9]+}}+32768], {
// CHECK-DAG:     st.shared.v4.b32 [%{{rd[0-9]+}}+65536], {
// CHECK:         .visible .entry one(
// CHECK:         .shared .align 1024 .b8 kvcache_tile_{{[0-9]+}}[32768];

// BINARY:        kvcache.kernels = [{block_size = array<i32: 128, 1, 1>, dynamic_shared_memory = 98304 : i64, name = "three", parameters = [{{[^]]*}}]}, {block_size = array<i32: 128, 1, 1>, name = "one", parameters =
// BINARY:        %[[BYTES:.*]] = arith.constant 98304 : i32
// BINARY:        gpu.launch_func @kernels::@three {{.*}} dynamic_shared_memory_size %[[BYTES]] args
// BINARY:        gpu.launch_func @kernels::@one blocks in ({{[^)]*}}) threads in ({{[^)]*}}) args

!tile = !kvcache.tile<128x128xbf16, swizzle_128b>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @three(%in: memref<128x8xbf16>, %out: memref<128x8xbf16>) kernel
        attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c127 = arith.constant 127 : index
      %a = kvcache.alloc_tile : !tile
      %b = kvcache.alloc_tile : !tile
      %c = kvcache.alloc_tile : !tile
      %row = gpu.thread_id x
      %other = arith.subi %c127, %row : index
      %v = vector.load %in[%row, %c0] {alignment = 16} : memref<128x8xbf16>, vector<8xbf16>
      kvcache.tile_store %v, %a[%row, %c0] : vector<8xbf16>, !tile
      kvcache.tile_store %v, %b[%row, %c0] : vector<8xbf16>, !tile
      kvcache.tile_store %v, %c[%row, %c0] : vector<8xbf16>, !tile
      gpu.barrier
      %x = kvcache.tile_load %a[%other, %c0] : !tile -> vector<8xbf16>
      %y = kvcache.tile_load %b[%other, %c0] : !tile -> vector<8xbf16>
      %z = kvcache.tile_load %c[%other, %c0] : !tile -> vector<8xbf16>
      %xy = arith.addf %x, %y : vector<8xbf16>
      %xyz = arith.addf %xy, %z : vector<8xbf16>
      vector.store %xyz, %out[%row, %c0] {alignment = 16} : memref<128x8xbf16>, vector<8xbf16>
      gpu.return
    }
    gpu.func @one(%in: memref<128x8xbf16>, %out: memref<128x8xbf16>) kernel
        attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c127 = arith.constant 127 : index
      %a = kvcache.alloc_tile : !tile
      %row = gpu.thread_id x
      %other = arith.subi %c127, %row : index
      %v = vector.load %in[%row, %c0] {alignment = 16} : memref<128x8xbf16>, vector<8xbf16>
      kvcache.tile_store %v, %a[%row, %c0] : vector<8xbf16>, !tile
      gpu.barrier
      %x = kvcache.tile_load %a[%other, %c0] : !tile -> vector<8xbf16>
      vector.store %x, %out[%row, %c0] {alignment = 16} : memref<128x8xbf16>, vector<8xbf16>
      gpu.return
    }
  }

  func.func @launch(%in: memref<128x8xbf16>, %out: memref<128x8xbf16>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @kernels::@three blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%in : memref<128x8xbf16>, %out : memref<128x8xbf16>)
    gpu.launch_func @kernels::@one blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%in : memref<128x8xbf16>, %out : memref<128x8xbf16>)
    return
  }
}

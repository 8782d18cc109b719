// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s --check-prefixes=CHECK,WIDTH16 --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_100a --emit-ptx | FileCheck %s --check-prefixes=CHECK,WIDTH32 --implicit-check-not=.local

// Accesses are as wide as the chip's widest where distances between pages are
// known to be as aligned.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!e4m3_collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 48>
!f32_collection = !kvcache.paged_collection<f32, #kv, page_size = 64>
!blocks = memref<?x2x?x64x8x128xbf16>
!static = memref<?x2x?x64x8x128xbf16, strided<[262160, 65536, 131072, 1024, 128, 1]>>
!open = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>
!e4m3_blocks = memref<?x2x?x48x8x128xf8E4M3FN>
!f32_blocks = memref<?x2x?x64x8x128xf32>
!lut = memref<?x?xi32>
!bf16 = !kvcache.paged<bf16, #kv, page_size = 64>
!e4m3 = !kvcache.paged<f8E4M3FN, #kv, page_size = 48>
!f32 = !kvcache.paged<f32, #kv, page_size = 64>
gpu.module @kernels {
  // CHECK-LABEL:   .entry copy_bf16(
  // WIDTH16-COUNT-4: ld.global.nc.v4.b32
  // WIDTH32-COUNT-2: ld.global.nc.v8.b32
  // CHECK-NOT:       ld.global
  // CHECK-COUNT-4:   st.global.v4.b32
  // CHECK-NOT:       st.global
  gpu.func @copy_bf16(%blocks: !blocks, %lengths: memref<?xi32>, %lut: !lut,
                      %b: index, %h: index, %out: memref<?x32xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : !blocks, memref<?xi32>, !lut -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    %c32 = arith.constant 32 : index
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] : !bf16 -> vector<32xbf16>
    vector.store %v, %out[%t, %c0] {alignment = 16} : memref<?x32xbf16>, vector<32xbf16>
    gpu.return
  }
  // CHECK-LABEL:   .entry copy_e4m3(
  // WIDTH16-COUNT-2: ld.global.nc.v4.b32
  // WIDTH32:         ld.global.nc.v8.b32
  // CHECK-NOT:       ld.global
  // CHECK-COUNT-2:   st.global.v4.b32
  gpu.func @copy_e4m3(%blocks: !e4m3_blocks, %lengths: memref<?xi32>, %lut: !lut,
                      %b: index, %h: index, %out: memref<?x32xf8E4M3FN>) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : !e4m3_blocks, memref<?xi32>, !lut -> !e4m3_collection
    %k = kvcache.paged_view key %c[%c0] : !e4m3_collection
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] : !e4m3 -> vector<32xf8E4M3FN>
    vector.store %v, %out[%t, %c0] {alignment = 16} : memref<?x32xf8E4M3FN>, vector<32xf8E4M3FN>
    gpu.return
  }
  // CHECK-LABEL:   .entry widen_e4m3(
  // CHECK:           ld.global.nc.v4.b16
  // CHECK-COUNT-2:   st.global.v4.b32
  gpu.func @widen_e4m3(%k: !e4m3, %b: index, %h: index, %out: memref<?x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] : !e4m3 -> vector<8xf32>
    vector.store %v, %out[%t, %c0] {alignment = 16} : memref<?x8xf32>, vector<8xf32>
    gpu.return
  }
  // CHECK-LABEL:   .entry store_f32(
  // WIDTH16-COUNT-2: st.global.v4.b32
  // WIDTH32:         st.global.v4.b64
  // CHECK-NOT:       st.global
  gpu.func @store_f32(%blocks: !f32_blocks, %lengths: memref<?xi32>, %lut: !lut,
                      %b: index, %h: index, %in: memref<?x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : !f32_blocks, memref<?xi32>, !lut -> !f32_collection
    %k = kvcache.paged_view key %c[%c0] : !f32_collection
    %t = gpu.thread_id x
    %v = vector.load %in[%t, %c0] {alignment = 32} : memref<?x8xf32>, vector<8xf32>
    kvcache.store %v, %k[%b, %h, %t, %c0] : vector<8xf32>, !f32
    gpu.return
  }
  // CHECK-LABEL:   .entry static_of_32_bytes(
  // WIDTH16-COUNT-2: ld.global.nc.v4.b32
  // WIDTH32:         ld.global.nc.v8.b32
  // CHECK-NOT:       ld.global
  gpu.func @static_of_32_bytes(%blocks: !static, %lengths: memref<?xi32>, %lut: !lut,
                              %b: index, %h: index, %out: memref<?x16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : !static, memref<?xi32>, !lut -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] : !bf16 -> vector<16xbf16>
    vector.store %v, %out[%t, %c0] {alignment = 16} : memref<?x16xbf16>, vector<16xbf16>
    gpu.return
  }
  // CHECK-LABEL:   .entry open_distances(
  // WIDTH16-COUNT-2: ld.global.nc.v4.b32
  // WIDTH32-COUNT-2: ld.global.nc.v4.b32
  // CHECK-NOT:       ld.global
  gpu.func @open_distances(%blocks: !open, %lengths: memref<?xi32>, %lut: !lut,
                          %b: index, %h: index, %out: memref<?x16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : !open, memref<?xi32>, !lut -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] : !bf16 -> vector<16xbf16>
    vector.store %v, %out[%t, %c0] {alignment = 16} : memref<?x16xbf16>, vector<16xbf16>
    gpu.return
  }
  // CHECK-LABEL:   .entry argument(
  // CHECK-COUNT-2:   ld.global.nc.v4.b32
  gpu.func @argument(%k: !bf16, %b: index, %h: index, %out: memref<?x16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] : !bf16 -> vector<16xbf16>
    vector.store %v, %out[%t, %c0] {alignment = 16} : memref<?x16xbf16>, vector<16xbf16>
    gpu.return
  }
}

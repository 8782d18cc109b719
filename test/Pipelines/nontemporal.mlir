// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80 --emit-ptx | FileCheck %s --check-prefixes=CHECK,WIDTH16
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_100a --emit-ptx | FileCheck %s --check-prefixes=CHECK,WIDTH32

// What is used once leaves the caches to others, from the cache and from other
// memory alike; scales and tables stay.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!bf16 = !kvcache.paged<bf16, #kv, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
gpu.module @kernels {
  // CHECK-LABEL:   .entry copy(
  // CHECK:           ld.global.nc.b32
  // WIDTH16-COUNT-2: ld.global.cs.nc.v4.b32
  // WIDTH32:         ld.global.cs.nc.v8.b32
  // CHECK-NOT:       ld.global
  // CHECK-COUNT-2:   st.global.cs.v4.b32
  // CHECK-NOT:       st.global
  gpu.func @copy(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                 %b: index, %h: index, %out: memref<?x16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
        : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] {nontemporal = true} : !bf16 -> vector<16xbf16>
    vector.store %v, %out[%t, %c0] {alignment = 16, nontemporal = true} : memref<?x16xbf16>, vector<16xbf16>
    gpu.return
  }
  // CHECK-LABEL:   .entry dequantize(
  // CHECK-NOT:       .cs
  // CHECK:           ld.global.cs.nc.v4.b32
  // CHECK-NOT:       .cs
  // CHECK:           ld.global.nc.b32
  // CHECK-NOT:       .cs
  // CHECK-COUNT-2:   st.global.v4.b32
  gpu.func @dequantize(%k: !fp8, %b: index, %h: index, %out: memref<?x16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %t, %c0] {nontemporal = true} : !fp8 -> vector<16xbf16>
    vector.store %v, %out[%t, %c0] {alignment = 16} : memref<?x16xbf16>, vector<16xbf16>
    gpu.return
  }
  // What the kernel writes is not read through the read-only path.

  // CHECK-LABEL:   .entry move(
  // CHECK:           ld.global.cs.v4.b32
  // CHECK:           st.global.cs.v4.b32
  gpu.func @move(%k: !bf16, %b: index, %h: index, %from: index) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %h, %from, %c0] {nontemporal = true} : !bf16 -> vector<8xbf16>
    kvcache.store %v, %k[%b, %h, %t, %c0] {nontemporal = true} : vector<8xbf16>, !bf16
    gpu.return
  }
}

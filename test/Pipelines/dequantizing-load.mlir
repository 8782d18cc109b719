// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx -o %t.ptx
// RUN: FileCheck %s --input-file %t.ptx --implicit-check-not='{{ld.global.*[.][bsu]8}}' --implicit-check-not=.local
// RUN: grep -c ';$' %t.ptx | FileCheck %s --check-prefix=COUNT

// 16 elements of e4m3 as bf16: the page, one load of all elements, one of their
// scale, 8 conversions of pairs. MAX's compiler takes 145 instructions of PTX.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>

// CHECK-LABEL: .visible .entry load_keys(
// CHECK:         ld.global.nc.b32
// CHECK:         ld.global.nc.v4.b32
// CHECK-NOT:     ld.global
// CHECK:         ld.global.nc.b32
// CHECK-NOT:     ld.global
// CHECK-COUNT-8: cvt.rn.f16x2.e4m3x2
// CHECK-NOT:     e4m3
// CHECK-COUNT-8: cvt.rn.bf16x2.f32
// CHECK-COUNT-2: st.global.v4.b32
// CHECK:         ret;

// Statements, declarations of registers among them.
// COUNT: {{^(.|..|1[0-3].|14[0-5])$}}
gpu.module @kernels {
  gpu.func @load_keys(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                      %max_seq: i32, %max_cache: i32, %scales: memref<?x2x?x64x8x1xf32>, %layer: index,
                      %b: index, %h: index, %t: index, %d: index, %out: memref<16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
        : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x1xf32> -> !collection
    %keys = kvcache.paged_view key %collection[%layer] : !collection
    %v = kvcache.load %keys[%b, %h, %t, %d] : !cache -> vector<16xbf16>
    vector.store %v, %out[%c0] {alignment = 16} : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }
}

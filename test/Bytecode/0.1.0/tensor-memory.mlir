// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/tensor-memory.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

module {
  func.func @types(%arg0: !kvcache.tmem_tile<64x512xf32>, %arg1: !kvcache.tmem_tile<128x16xf32>, %arg2: !kvcache.tmem_tile<64x24xi32>, %arg3: !kvcache.tmem_tile<128x1024xbf16>, %arg4: !kvcache.tmem_tile<64x32xf8E4M3FN>) {
    return
  }
  func.func @alloc() {
    %0:2 = kvcache.tmem_alloc : !kvcache.tmem_tile<64x512xf32>, !kvcache.tmem_tile<64x64xbf16>
    return
  }
  func.func @shared(%arg0: !kvcache.tile<128x192xbf16, swizzle_128b>, %arg1: !kvcache.tile<64x192xbf16, swizzle_128b>, %arg2: !kvcache.tmem_tile<128x64xf32>, %arg3: index, %arg4: index, %arg5: i1) {
    kvcache.tmem_mma %arg0[%arg3, %arg4], %arg1[%arg3, %arg4] into %arg2 {k = 64 : i64} : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b>, !kvcache.tmem_tile<128x64xf32>
    kvcache.tmem_mma %arg0[%arg3, %arg4], %arg1[%arg3, %arg4] into %arg2 add %arg5 : !kvcache.tile<128x192xbf16, swizzle_128b>, !kvcache.tile<64x192xbf16, swizzle_128b>, !kvcache.tmem_tile<128x64xf32>
    return
  }
  func.func @tensor(%arg0: !kvcache.tmem_tile<64x64xf16>, %arg1: !kvcache.tile<64x512xf16, swizzle_128b>, %arg2: !kvcache.tmem_tile<64x512xf32>, %arg3: index) {
    kvcache.tmem_mma %arg0, %arg1[%arg3, %arg3] into %arg2 {major_b = #kvcache.major<mn_major>} : !kvcache.tmem_tile<64x64xf16>, !kvcache.tile<64x512xf16, swizzle_128b>, !kvcache.tmem_tile<64x512xf32>
    return
  }
  func.func @small(%arg0: !kvcache.tile<128x128xf8E4M3FN, swizzle_32b>, %arg1: !kvcache.tile<128x128xf8E5M2, swizzle_64b>, %arg2: !kvcache.tile<128x128xi8, swizzle_128b>, %arg3: !kvcache.tmem_tile<128x128xf32>, %arg4: !kvcache.tmem_tile<128x128xi32>, %arg5: index) {
    kvcache.tmem_mma %arg0[%arg5, %arg5], %arg1[%arg5, %arg5] into %arg3 {major_a = #kvcache.major<mn_major>} : !kvcache.tile<128x128xf8E4M3FN, swizzle_32b>, !kvcache.tile<128x128xf8E5M2, swizzle_64b>, !kvcache.tmem_tile<128x128xf32>
    kvcache.tmem_mma %arg2[%arg5, %arg5], %arg2[%arg5, %arg5] into %arg4 : !kvcache.tile<128x128xi8, swizzle_128b>, !kvcache.tile<128x128xi8, swizzle_128b>, !kvcache.tmem_tile<128x128xi32>
    return
  }
  func.func @commit(%arg0: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg1: index) {
    kvcache.tmem_commit %arg0[%arg1] : <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
    return
  }
  func.func @fragments(%arg0: !kvcache.tmem_tile<64x64xf32>, %arg1: !kvcache.tmem_tile<128x64xf32>, %arg2: !kvcache.tmem_tile<128x64xf16>, %arg3: index, %arg4: index) -> vector<4xf16> {
    %0 = kvcache.tmem_load %arg0[%arg3] : !kvcache.tmem_tile<64x64xf32> -> vector<12xf32>
    kvcache.tmem_store %0, %arg1[%arg3] half %arg4 : vector<12xf32>, !kvcache.tmem_tile<128x64xf32>
    %1 = kvcache.tmem_load %arg2[%arg3] half %arg4 : !kvcache.tmem_tile<128x64xf16> -> vector<4xf16>
    return %1 : vector<4xf16>
  }
  func.func @fragment_types(%arg0: !kvcache.tmem_tile<128x64xf32>, %arg1: !kvcache.fragment<64xi1, tmem_acc>, %arg2: index) -> i1 {
    %0 = kvcache.tmem_load %arg0[%arg2] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x32xf32, tmem_acc>
    kvcache.tmem_store %0, %arg0[%arg2] : !kvcache.fragment<128x32xf32, tmem_acc>, !kvcache.tmem_tile<128x64xf32>
    %1 = kvcache.warp_any %arg1 : !kvcache.fragment<64xi1, tmem_acc>
    return %1 : i1
  }
  func.func @whole_rows(%arg0: !kvcache.tmem_tile<128x64xf32>, %arg1: index) -> !kvcache.fragment<128x32xf32, tmem_row> {
    %0 = kvcache.tmem_load %arg0[%arg1] {whole_rows} : !kvcache.tmem_tile<128x64xf32> -> vector<24xf32>
    kvcache.tmem_store %0, %arg0[%arg1] {whole_rows} : vector<24xf32>, !kvcache.tmem_tile<128x64xf32>
    %1 = kvcache.tmem_load %arg0[%arg1] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x32xf32, tmem_row>
    return %1 : !kvcache.fragment<128x32xf32, tmem_row>
  }
  func.func @view(%arg0: !kvcache.tmem_tile<128x256xf32>, %arg1: index) -> !kvcache.tmem_tile<128x128xbf16> {
    %0 = kvcache.tmem_view %arg0[%arg1] : !kvcache.tmem_tile<128x256xf32> -> !kvcache.tmem_tile<128x128xbf16>
    return %0 : !kvcache.tmem_tile<128x128xbf16>
  }
  func.func @pair(%arg0: !kvcache.tmem_tile<128x64xf16>, %arg1: !kvcache.tile<64x512xf16, swizzle_128b>, %arg2: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %arg3: index) {
    %0 = kvcache.tmem_alloc {pair} : !kvcache.tmem_tile<128x256xf32>
    kvcache.tmem_mma %arg0, %arg1[%arg3, %arg3] into %0 {major_b = #kvcache.major<mn_major>, pair} : !kvcache.tmem_tile<128x64xf16>, !kvcache.tile<64x512xf16, swizzle_128b>, !kvcache.tmem_tile<128x256xf32>
    kvcache.tmem_commit %arg2[%arg3] {pair} : <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
    return
  }
}


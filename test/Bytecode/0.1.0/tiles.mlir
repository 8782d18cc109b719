// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/tiles.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

module {
  func.func @types(%arg0: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg1: !kvcache.tile<64x128xf8E4M3FN, swizzle_64b>, %arg2: !kvcache.tile<8x64xi32, swizzle_32b>, %arg3: !kvcache.tile<3x24xf64>) {
    return
  }
  func.func @none_is_the_swizzle_of_a_plain_tile(%arg0: !kvcache.tile<64x128xbf16>) {
    return
  }
  func.func @ops(%arg0: index, %arg1: index) -> (vector<8xbf16>, bf16, index, memref<16384xi8, #gpu.address_space<workgroup>>) {
    %0 = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.tile_load %0[%arg0, %arg1] : !kvcache.tile<64x128xbf16, swizzle_128b> -> vector<8xbf16>
    %2 = kvcache.tile_load %0[%arg0, %arg1] : !kvcache.tile<64x128xbf16, swizzle_128b> -> bf16
    kvcache.tile_store %1, %0[%arg0, %arg1] : vector<8xbf16>, !kvcache.tile<64x128xbf16, swizzle_128b>
    %3 = kvcache.tile_offset %0[%arg0, %arg1] : !kvcache.tile<64x128xbf16, swizzle_128b>
    %4 = kvcache.tile_memory %0 : !kvcache.tile<64x128xbf16, swizzle_128b> -> memref<16384xi8, #gpu.address_space<workgroup>>
    return %1, %2, %3, %4 : vector<8xbf16>, bf16, index, memref<16384xi8, #gpu.address_space<workgroup>>
  }
  func.func @clusters(%arg0: !kvcache.tile<64x128xbf16, swizzle_128b>, %arg1: index, %arg2: index, %arg3: index) -> vector<8xbf16> {
    kvcache.cluster_barrier {blocks = 4 : i64}
    %0 = kvcache.cluster_load %arg0[%arg1, %arg2] rank %arg3 : !kvcache.tile<64x128xbf16, swizzle_128b> -> vector<8xbf16>
    return %0 : vector<8xbf16>
  }
  func.func @offsets_of_constants_fold(%arg0: !kvcache.tile<64x128xbf16, swizzle_128b>) -> (index, index) {
    %c9 = arith.constant 9 : index
    %c70 = arith.constant 70 : index
    %c128 = arith.constant 128 : index
    %0 = kvcache.tile_offset %arg0[%c9, %c70] : !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.tile_offset %arg0[%c9, %c128] : !kvcache.tile<64x128xbf16, swizzle_128b>
    return %0, %1 : index, index
  }
  func.func @alignment() {
    %0 = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.alloc_tile {alignment = 1024 : i64} : !kvcache.tile<64x128xbf16, swizzle_128b>
    %2 = kvcache.alloc_tile {alignment = 4096 : i64} : !kvcache.tile<3x24xf64>
    return
  }
  func.func @view(%arg0: memref<16384xi8, #gpu.address_space<workgroup>>) -> !kvcache.tile<64x128xbf16, swizzle_128b> {
    %0 = kvcache.tile_view %arg0 : memref<16384xi8, #gpu.address_space<workgroup>> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    return %0 : !kvcache.tile<64x128xbf16, swizzle_128b>
  }
  func.func @memory_of_a_view_folds(%arg0: memref<16384xi8, #gpu.address_space<workgroup>>) -> memref<16384xi8, #gpu.address_space<workgroup>> {
    %0 = kvcache.tile_view %arg0 : memref<16384xi8, #gpu.address_space<workgroup>> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    %1 = kvcache.tile_memory %0 : !kvcache.tile<64x128xbf16, swizzle_128b> -> memref<16384xi8, #gpu.address_space<workgroup>>
    return %1 : memref<16384xi8, #gpu.address_space<workgroup>>
  }
  func.func @view_of_a_memory_folds(%arg0: !kvcache.tile<64x128xbf16, swizzle_128b>) -> !kvcache.tile<64x128xbf16, swizzle_128b> {
    %0 = kvcache.tile_memory %arg0 : !kvcache.tile<64x128xbf16, swizzle_128b> -> memref<16384xi8, #gpu.address_space<workgroup>>
    %1 = kvcache.tile_view %0 : memref<16384xi8, #gpu.address_space<workgroup>> -> !kvcache.tile<64x128xbf16, swizzle_128b>
    return %1 : !kvcache.tile<64x128xbf16, swizzle_128b>
  }
  func.func @view_as_another_tile_does_not_fold(%arg0: !kvcache.tile<64x128xbf16, swizzle_128b>) -> (!kvcache.tile<128x128xi8>, memref<16384xi8, #gpu.address_space<workgroup>>) {
    %0 = kvcache.tile_memory %arg0 : !kvcache.tile<64x128xbf16, swizzle_128b> -> memref<16384xi8, #gpu.address_space<workgroup>>
    %1 = kvcache.tile_view %0 : memref<16384xi8, #gpu.address_space<workgroup>> -> !kvcache.tile<128x128xi8>
    %2 = kvcache.tile_memory %1 : !kvcache.tile<128x128xi8> -> memref<16384xi8, #gpu.address_space<workgroup>>
    return %1, %2 : !kvcache.tile<128x128xi8>, memref<16384xi8, #gpu.address_space<workgroup>>
  }
}


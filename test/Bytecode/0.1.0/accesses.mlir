// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/accesses.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func @load(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: index, %arg2: index, %arg3: index, %arg4: index, %arg5: index) {
    %0 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<bf16, #kv, page_size = 64> -> bf16
    %1 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<bf16, #kv, page_size = 64> -> f32
    %2 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<bf16, #kv, page_size = 64> -> vector<8xbf16>
    %3 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<bf16, #kv, page_size = 64> -> vector<128xf16>
    %4 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] page %arg5 : !kvcache.paged<bf16, #kv, page_size = 64> -> vector<8xf8E4M3FN>
    %5 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] page %arg5 {note = "kept"} : !kvcache.paged<bf16, #kv, page_size = 64> -> vector<3xbf16>
    return
  }
  func.func @load_from_a_continuous_cache(%arg0: !kvcache.continuous<f16, #kv>, %arg1: index, %arg2: index, %arg3: index, %arg4: index, %arg5: index) {
    %0 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.continuous<f16, #kv> -> f16
    %1 = kvcache.load %arg0[%arg1, %arg2, %arg3, %arg4] page %arg5 : !kvcache.continuous<f16, #kv> -> vector<4xf32>
    return
  }
  func.func @store(%arg0: bf16, %arg1: vector<8xbf16>, %arg2: !kvcache.paged<bf16, #kv, page_size = 64>, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index) {
    kvcache.store %arg0, %arg2[%arg3, %arg4, %arg5, %arg6] : bf16, !kvcache.paged<bf16, #kv, page_size = 64>
    kvcache.store %arg1, %arg2[%arg3, %arg4, %arg5, %arg6] : vector<8xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>
    kvcache.store %arg1, %arg2[%arg3, %arg4, %arg5, %arg6] page %arg7 {note = "kept"} : vector<8xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>
    return
  }
  func.func @store_to_a_quantized_cache(%arg0: vector<16xi8>, %arg1: !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128>, %arg2: index, %arg3: index, %arg4: index, %arg5: index) {
    kvcache.store %arg0, %arg1[%arg2, %arg3, %arg4, %arg5] : vector<16xi8>, !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128>
    return
  }
  func.func @store_to_a_continuous_cache(%arg0: vector<2xf16>, %arg1: !kvcache.continuous<f16, #kv>, %arg2: index, %arg3: index, %arg4: index, %arg5: index) {
    kvcache.store %arg0, %arg1[%arg2, %arg3, %arg4, %arg5] : vector<2xf16>, !kvcache.continuous<f16, #kv>
    return
  }
  func.func @block_tile(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: index, %arg2: index, %arg3: index, %arg4: index, %arg5: index) {
    %0 = kvcache.block_tile %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<bf16, #kv, page_size = 64> -> memref<16x128xbf16, strided<[1024, 1], offset: ?>>
    %1 = kvcache.block_tile %arg0[%arg1, %arg2, %arg3, %arg4] page %arg5 {note = "kept"} : !kvcache.paged<bf16, #kv, page_size = 64> -> memref<64x32xbf16, strided<[1024, 1], offset: ?>>
    return
  }
  func.func @block_tile_of_pages_of_any_size(%arg0: !kvcache.paged<bf16, #kv, page_size = ?>, %arg1: index, %arg2: index, %arg3: index, %arg4: index) {
    %0 = kvcache.block_tile %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<bf16, #kv, page_size = ?> -> memref<48x128xbf16, strided<[1024, 1], offset: ?>>
    return
  }
  func.func @block_tile_of_a_continuous_cache(%arg0: !kvcache.continuous<f16, #kv>, %arg1: index, %arg2: index, %arg3: index, %arg4: index) {
    %0 = kvcache.block_tile %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.continuous<f16, #kv> -> memref<48x128xf16, strided<[1024, 1], offset: ?>>
    return
  }
  func.func @block_tile_of_4_bit_elements(%arg0: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>, %arg1: index, %arg2: index, %arg3: index, %arg4: index) {
    %0 = kvcache.block_tile %arg0[%arg1, %arg2, %arg3, %arg4] : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32> -> memref<16x64xi8, strided<[512, 1], offset: ?>>
    return
  }
  func.func @nontemporal(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128>, %arg2: vector<128xbf16>, %arg3: index, %arg4: index, %arg5: index, %arg6: index) {
    %0 = kvcache.load %arg0[%arg3, %arg4, %arg5, %arg6] {nontemporal = true} : !kvcache.paged<bf16, #kv, page_size = 64> -> vector<8xbf16>
    kvcache.store %0, %arg0[%arg3, %arg4, %arg5, %arg6] {nontemporal = true} : vector<8xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>
    %1 = kvcache.load_quantized %arg1[%arg3, %arg4, %arg5, %arg6] {nontemporal = true} : !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128> -> vector<16xi8>
    kvcache.store_quantized %arg2, %arg1[%arg3, %arg4, %arg5, %arg6] {nontemporal = true} : vector<128xbf16>, !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128>
    %2 = kvcache.load %arg0[%arg3, %arg4, %arg5, %arg6] : !kvcache.paged<bf16, #kv, page_size = 64> -> bf16
    return
  }
}


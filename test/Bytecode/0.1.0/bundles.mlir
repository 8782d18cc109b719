// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/bundles.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func @paged_cache(%arg0: memref<?x64x8x128xbf16, strided<[?, 128, 8192, 1], offset: ?>>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32) -> !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 8192]> {
    %0 = kvcache.paged_cache %arg0, %arg1, %arg2, %arg3, %arg3 : memref<?x64x8x128xbf16, strided<[?, 128, 8192, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 8192]>
    return %0 : !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 8192]>
  }
  func.func @scales(%arg0: memref<?x64x8x128xf8E4M3FN, strided<[?, 132, 8448, 1], offset: ?>>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32, %arg4: memref<?x64x8x1xf32, strided<[?, 33, 2112, 1], offset: ?>>) -> !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 132, head = 8448], scale_layout = [token = 33, head = 2112]> {
    %0 = kvcache.paged_cache %arg0, %arg1, %arg2, %arg3, %arg3 scales %arg4 lookup %arg2 : memref<?x64x8x128xf8E4M3FN, strided<[?, 132, 8448, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32>, memref<?x64x8x1xf32, strided<[?, 33, 2112, 1], offset: ?>>, memref<?x?xi32> -> !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 132, head = 8448], scale_layout = [token = 33, head = 2112]>
    return %0 : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 132, head = 8448], scale_layout = [token = 33, head = 2112]>
  }
  func.func @csr(%arg0: memref<?x16x8x128xbf16>, %arg1: memref<?xi32>, %arg2: memref<?xi32>, %arg3: memref<?xi32>, %arg4: i32) -> !kvcache.paged<bf16, #kv, page_size = 16, table = csr> {
    %0 = kvcache.paged_cache %arg0, %arg1, %arg2 index %arg3, %arg4, %arg4 : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?xi32> index memref<?xi32> -> !kvcache.paged<bf16, #kv, page_size = 16, table = csr>
    return %0 : !kvcache.paged<bf16, #kv, page_size = 16, table = csr>
  }
  func.func @rows(%arg0: memref<?x2x?x1x8x128xbf16>, %arg1: memref<?xi32>, %arg2: memref<?x4096xi32>, %arg3: memref<?xi32>, %arg4: i32, %arg5: index) -> index {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2 index %arg3, %arg4, %arg4 : memref<?x2x?x1x8x128xbf16>, memref<?xi32>, memref<?x4096xi32> index memref<?xi32> -> !kvcache.paged_collection<bf16, #kv, page_size = 1, table = rows>
    %1 = kvcache.paged_view key %0[%arg5] : !kvcache.paged_collection<bf16, #kv, page_size = 1, table = rows>
    %2 = kvcache.extent tokens %1[%arg5] : !kvcache.paged<bf16, #kv, page_size = 1, table = rows>
    return %2 : index
  }
  func.func @continuous_cache(%arg0: memref<?x?x8x128xbf16>, %arg1: memref<?xi32>, %arg2: memref<?xi32>, %arg3: i32) -> !kvcache.continuous<bf16, #kv> {
    %0 = kvcache.continuous_cache %arg0, %arg1, %arg2, %arg3, %arg3 : memref<?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !kvcache.continuous<bf16, #kv>
    return %0 : !kvcache.continuous<bf16, #kv>
  }
  func.func @static_scale(%arg0: !kvcache.continuous<f8E4M3FN, #kv>, %arg1: vector<8xbf16>, %arg2: index, %arg3: f32) -> vector<8xbf16> {
    kvcache.store_quantized %arg1, %arg0[%arg2, %arg2, %arg2, %arg2] tensor_scale %arg3 : vector<8xbf16>, !kvcache.continuous<f8E4M3FN, #kv>
    %0 = kvcache.load %arg0[%arg2, %arg2, %arg2, %arg2] tensor_scale %arg3 : !kvcache.continuous<f8E4M3FN, #kv> -> vector<8xbf16>
    return %0 : vector<8xbf16>
  }
}


// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/views.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
module {
  func.func @paged_collection(%arg0: memref<?x2x?x64x8x128xbf16>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32, %arg4: i32) -> !kvcache.paged_collection<bf16, #kv, page_size = 64> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg4 : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged_collection<bf16, #kv, page_size = 64>
    return %0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
  }
  func.func @paged_collection_with_attributes(%arg0: memref<?x2x?x64x8x128xbf16>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32) -> !kvcache.paged_collection<bf16, #kv, page_size = 64> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg3 {note = "kept"} : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged_collection<bf16, #kv, page_size = 64>
    return %0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
  }
  func.func @paged_collection_of_static_sizes(%arg0: memref<100x2x32x64x8x128xbf16>, %arg1: memref<4xi32>, %arg2: memref<4x24xi32>, %arg3: i32) -> !kvcache.paged_collection<bf16, #kv, page_size = 64> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg3 : memref<100x2x32x64x8x128xbf16>, memref<4xi32>, memref<4x24xi32> -> !kvcache.paged_collection<bf16, #kv, page_size = 64>
    return %0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
  }
  func.func @paged_collection_of_strided_memrefs(%arg0: memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>, %arg1: memref<?xi32, strided<[1], offset: ?>>, %arg2: memref<?x?xi32, strided<[?, 1], offset: ?>>, %arg3: i32) -> !kvcache.paged_collection<bf16, #kv, page_size = 64> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg3 : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>, memref<?xi32, strided<[1], offset: ?>>, memref<?x?xi32, strided<[?, 1], offset: ?>> -> !kvcache.paged_collection<bf16, #kv, page_size = 64>
    return %0 : !kvcache.paged_collection<bf16, #kv, page_size = 64>
  }
  func.func @paged_collection_of_a_latent_cache(%arg0: memref<?x1x?x16x1x576xbf16>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32) -> !kvcache.paged_collection<bf16, #kv1, page_size = 16> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg3 : memref<?x1x?x16x1x576xbf16>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged_collection<bf16, #kv1, page_size = 16>
    return %0 : !kvcache.paged_collection<bf16, #kv1, page_size = 16>
  }
  func.func @paged_collection_with_scales(%arg0: memref<?x2x?x64x8x128xf8E4M3FN>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32, %arg4: memref<?x2x?x64x8x3xf32>) -> !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg3 scales %arg4 : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x3xf32> -> !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>
    return %0 : !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>
  }
  func.func @paged_collection_with_scales_and_their_table(%arg0: memref<?x2x?x64x8x64xi8>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32, %arg4: memref<?x2x?x64x8x4xf8E8M0FNU>, %arg5: memref<?x?xi32>) -> !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg3 scales %arg4 lookup %arg5 : memref<?x2x?x64x8x64xi8>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x4xf8E8M0FNU>, memref<?x?xi32> -> !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>
    return %0 : !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>
  }
  func.func @continuous_collection(%arg0: memref<?x2x?x?x8x128xbf16>, %arg1: memref<?xi32>, %arg2: memref<?xi32>, %arg3: i32, %arg4: i32) -> !kvcache.continuous_collection<bf16, #kv> {
    %0 = kvcache.continuous_collection %arg0, %arg1, %arg2, %arg3, %arg4 : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !kvcache.continuous_collection<bf16, #kv>
    return %0 : !kvcache.continuous_collection<bf16, #kv>
  }
  func.func @continuous_collection_of_static_sizes(%arg0: memref<4x2x32x2048x8x128xbf16>, %arg1: memref<4xi32>, %arg2: memref<4xi32>, %arg3: i32) -> !kvcache.continuous_collection<bf16, #kv> {
    %0 = kvcache.continuous_collection %arg0, %arg1, %arg2, %arg3, %arg3 : memref<4x2x32x2048x8x128xbf16>, memref<4xi32>, memref<4xi32> -> !kvcache.continuous_collection<bf16, #kv>
    return %0 : !kvcache.continuous_collection<bf16, #kv>
  }
  func.func @paged_view(%arg0: !kvcache.paged_collection<bf16, #kv, page_size = 64>, %arg1: index) -> (!kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>) {
    %0 = kvcache.paged_view key %arg0[%arg1] : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    %1 = kvcache.paged_view value %arg0[%arg1] : !kvcache.paged_collection<bf16, #kv, page_size = 64>
    return %0, %1 : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>
  }
  func.func @paged_view_of_a_quantized_cache(%arg0: !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>, %arg1: index) -> !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48> {
    %0 = kvcache.paged_view key %arg0[%arg1] : !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>
    return %0 : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>
  }
  func.func @paged_view_of_a_latent_cache(%arg0: !kvcache.paged_collection<bf16, #kv1, page_size = 16>, %arg1: index) -> !kvcache.paged<bf16, #kv1, page_size = 16> {
    %0 = kvcache.paged_view key %arg0[%arg1] : !kvcache.paged_collection<bf16, #kv1, page_size = 16>
    return %0 : !kvcache.paged<bf16, #kv1, page_size = 16>
  }
  func.func @continuous_view(%arg0: !kvcache.continuous_collection<bf16, #kv>, %arg1: index) -> (!kvcache.continuous<bf16, #kv>, !kvcache.continuous<bf16, #kv>) {
    %0 = kvcache.continuous_view key %arg0[%arg1] : !kvcache.continuous_collection<bf16, #kv>
    %1 = kvcache.continuous_view value %arg0[%arg1] : !kvcache.continuous_collection<bf16, #kv>
    return %0, %1 : !kvcache.continuous<bf16, #kv>, !kvcache.continuous<bf16, #kv>
  }
  func.func @paged_collection_of_any_page_size(%arg0: memref<?x2x?x?x8x128xbf16>, %arg1: memref<?x2x?x64x8x128xbf16>, %arg2: memref<?xi32>, %arg3: memref<?x?xi32>, %arg4: i32, %arg5: index) -> !kvcache.paged<bf16, #kv, page_size = ?> {
    %0 = kvcache.paged_collection %arg0, %arg2, %arg3, %arg4, %arg4 : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged_collection<bf16, #kv, page_size = ?>
    %1 = kvcache.paged_collection %arg1, %arg2, %arg3, %arg4, %arg4 : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged_collection<bf16, #kv, page_size = ?>
    %2 = kvcache.paged_view key %0[%arg5] : !kvcache.paged_collection<bf16, #kv, page_size = ?>
    return %2 : !kvcache.paged<bf16, #kv, page_size = ?>
  }
}


// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/layouts.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 1, head_size = 128>
module {
  func.func private @strides(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = 16384]>, !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = 16384]>, !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>, !kvcache.paged_collection<bf16, #kv, page_size = ?, layout = [token = 2048, head = 256]>, !kvcache.paged<bf16, #kv, page_size = ?, layout = [token = 128, head = 8192]>)
  func.func private @heads_before_tokens(!kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 8192]>, !kvcache.paged<bf16, #kv, page_size = ?, layout = [token = 128, head = ?]>, !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = 4096], scale_layout = [token = 8, head = 512]>)
  func.func private @packed_rows(!kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 1>, !kvcache.paged<bf16, #kv1, page_size = 64>, !kvcache.paged<bf16, #kv1, page_size = 64>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>)
  func.func private @one_head(!kvcache.paged<bf16, #kv1, page_size = 64, layout = [token = 256]>, !kvcache.paged<bf16, #kv1, page_size = 64, layout = [token = 256]>)
  func.func private @scales(!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 132, head = 8448], scale_layout = [token = 33, head = 2112]>, !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, scale_layout = [token = 1, head = ?]>, !kvcache.scales<!kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 128, head = 8192]>>)
  func.func private @attributes() attributes {layout = #kvcache.layout<token = 256, head = 16384>, one_head = #kvcache.layout<token = 656>, open = #kvcache.layout<token = 256, head = ?>}
  func.func @views(%arg0: memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 128, ?, 1], offset: ?>>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: index, %arg4: i32) -> memref<16x128xbf16, strided<[128, 1], offset: ?>> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg4, %arg4 : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 128, ?, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 128, head = ?]>
    %1 = kvcache.paged_view key %0[%arg3] : !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 128, head = ?]>
    %2 = kvcache.block_tile %1[%arg3, %arg3, %arg3, %arg3] : !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = ?]> -> memref<16x128xbf16, strided<[128, 1], offset: ?>>
    return %2 : memref<16x128xbf16, strided<[128, 1], offset: ?>>
  }
  func.func @head_stride_of_one_head(%arg0: memref<?x2x?x64x1x128xbf16, strided<[?, ?, ?, 128, 8192, 1]>>, %arg1: memref<?xi32>, %arg2: memref<?x?xi32>, %arg3: i32) -> !kvcache.paged_collection<bf16, #kv1, page_size = 64> {
    %0 = kvcache.paged_collection %arg0, %arg1, %arg2, %arg3, %arg3 : memref<?x2x?x64x1x128xbf16, strided<[?, ?, ?, 128, 8192, 1]>>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged_collection<bf16, #kv1, page_size = 64>
    return %0 : !kvcache.paged_collection<bf16, #kv1, page_size = 64>
  }
  func.func private @interleaved_scales(!kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = 4096], scale_layout = [token = 8, head = 512, interleave = 4]>, !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 64, head = 8, interleave = 4]>, !kvcache.paged<f8E4M3FN, #kv1, page_size = 64, scale = f32, granularity = 32, scale_layout = [token = 4, interleave = 2]>, !kvcache.paged<f8E4M3FN, #kv1, page_size = 64, scale = f32, granularity = 32>)
  func.func private @roles(!kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 264, head = 16896, role = 132], scale_layout = [token = 66, head = 4224]>, !kvcache.paged_collection<i8, #kv, page_size = 64, layout = [token = 264, head = ?, role = 132]>) attributes {role = #kvcache.layout<token = 264, head = 16896, role = 132>}
}


// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#one = #kvcache.params<num_heads = 1, head_size = 128>
#side_by_side = #kvcache.layout<token = 256, head = 16384>

// CHECK-DAG: #[[$KV:kv[0-9]*]] = #kvcache.params<num_heads = 8, head_size = 128>
// CHECK-DAG: #[[$ONE:kv[0-9]*]] = #kvcache.params<num_heads = 1, head_size = 128>

// CHECK-LABEL: func.func private @strides(
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64, layout = [token = 256, head = 16384]>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64, layout = [token = 256, head = 16384]>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64, layout = [token = 256, head = ?]>,
// CHECK-SAME:    !kvcache.paged_collection<bf16, #[[$KV]], page_size = ?, layout = [token = 2048, head = 256]>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = ?, layout = [token = 128, head = 8192]>)
func.func private @strides(
  !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = 16384]>,
  !kvcache.paged<bf16, #kv, page_size = 64, layout = #side_by_side>,
  !kvcache.paged<bf16, #kv, page_size = 64, layout = [head = ?, token = 256]>,
  !kvcache.paged_collection<bf16, #kv, page_size = ?, layout = [token = 2048, head = 256]>,
  !kvcache.paged<bf16, #kv, page_size = ?, layout = [token = 128, head = 8192]>)

// CHECK-LABEL: func.func private @heads_before_tokens(
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64, layout = [token = 128, head = 8192]>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = ?, layout = [token = 128, head = ?]>,
// CHECK-SAME:    !kvcache.paged<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = 4096], scale_layout = [token = 8, head = 512]>)
func.func private @heads_before_tokens(
  !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd>,
  !kvcache.paged<bf16, #kv, page_size = ?, layout = hnd>,
  !kvcache.paged<f4E2M1FN, #kv, page_size = 64, layout = hnd, scale_layout = hnd, scale = f8E4M3FN, granularity = 16>)

// CHECK-LABEL: func.func private @packed_rows(
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 64>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$KV]], page_size = 1>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$ONE]], page_size = 64>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$ONE]], page_size = 64>,
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 32>)
func.func private @packed_rows(
  !kvcache.paged<bf16, #kv, page_size = 64, layout = nhd>,
  !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 1024, head = 128]>,
  !kvcache.paged<bf16, #kv, page_size = 1, layout = hnd>,
  !kvcache.paged<bf16, #one, page_size = 64, layout = hnd>,
  !kvcache.paged<bf16, #one, page_size = 64, layout = [token = 128, head = ?]>,
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale_layout = [token = 32, head = 4], scale = f32, granularity = 32>)

// CHECK-LABEL: func.func private @one_head(
// CHECK-SAME:    !kvcache.paged<bf16, #[[$ONE]], page_size = 64, layout = [token = 256]>,
// CHECK-SAME:    !kvcache.paged<bf16, #[[$ONE]], page_size = 64, layout = [token = 256]>)
func.func private @one_head(
  !kvcache.paged<bf16, #one, page_size = 64, layout = [token = 256]>,
  !kvcache.paged<bf16, #one, page_size = 64, layout = [token = 256, head = 7]>)

// CHECK-LABEL: func.func private @scales(
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 128, layout = [token = 132, head = 8448], scale_layout = [token = 33, head = 2112]>,
// CHECK-SAME:    !kvcache.paged_collection<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 128, scale_layout = [token = 1, head = ?]>,
// CHECK-SAME:    !kvcache.scales<!kvcache.paged<i8, #[[$KV]], page_size = 64, scale = f32, granularity = 128, layout = [token = 128, head = 8192]>>)
func.func private @scales(
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 132, head = 8448], scale_layout = [token = 33, head = 2112]>,
  !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, scale_layout = [token = 1, head = ?]>,
  !kvcache.scales<!kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128, layout = hnd>>)

// CHECK-LABEL: func.func private @attributes()
// CHECK-SAME:    layout = #kvcache.layout<token = 256, head = 16384>
// CHECK-SAME:    one_head = #kvcache.layout<token = 656>
// CHECK-SAME:    open = #kvcache.layout<token = 256, head = ?>
func.func private @attributes() attributes {
  layout = #side_by_side,
  open = #kvcache.layout<token = 256, head = ?>,
  one_head = #kvcache.layout<token = 656>
}

// CHECK-LABEL: func.func @views(
// CHECK:         kvcache.paged_view key
// CHECK-SAME:      !kvcache.paged_collection<bf16, #[[$KV]], page_size = 64, layout = [token = 128, head = ?]>
// CHECK:         kvcache.block_tile
// CHECK-SAME:      !kvcache.paged<bf16, #[[$KV]], page_size = 64, layout = [token = 128, head = ?]> -> memref<16x128xbf16, strided<[128, 1], offset: ?>>
func.func @views(%blocks: memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 128, ?, 1], offset: ?>>,
                 %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %i: index, %n: i32)
    -> memref<16x128xbf16, strided<[128, 1], offset: ?>> {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n
    : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 128, ?, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32>
    -> !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 128, head = ?]>
  %k = kvcache.paged_view key %c[%i] : !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = [token = 128, head = ?]>
  %m = kvcache.block_tile %k[%i, %i, %i, %i]
    : !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = ?]> -> memref<16x128xbf16, strided<[128, 1], offset: ?>>
  return %m : memref<16x128xbf16, strided<[128, 1], offset: ?>>
}

// A dimension of one element has no stride.
// CHECK-LABEL: func.func @head_stride_of_one_head(
func.func @head_stride_of_one_head(
    %blocks: memref<?x2x?x64x1x128xbf16, strided<[?, ?, ?, 128, 8192, 1]>>,
    %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32)
    -> !kvcache.paged_collection<bf16, #one, page_size = 64> {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %n, %n
    : memref<?x2x?x64x1x128xbf16, strided<[?, ?, ?, 128, 8192, 1]>>, memref<?xi32>, memref<?x?xi32>
    -> !kvcache.paged_collection<bf16, #one, page_size = 64, layout = hnd>
  return %c : !kvcache.paged_collection<bf16, #one, page_size = 64>
}

// CHECK-LABEL: func.func private @interleaved_scales(
// CHECK-SAME:    !kvcache.paged<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = 4096], scale_layout = [token = 8, head = 512, interleave = 4]>,
// CHECK-SAME:    !kvcache.paged<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = [token = 64, head = 8, interleave = 4]>,
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$ONE]], page_size = 64, scale = f32, granularity = 32, scale_layout = [token = 4, interleave = 2]>,
// CHECK-SAME:    !kvcache.paged<f8E4M3FN, #[[$ONE]], page_size = 64, scale = f32, granularity = 32>)
func.func private @interleaved_scales(
  !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = hnd, scale_layout = [token = 8, head = 512, interleave = 4]>,
  !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, scale_layout = #kvcache.layout<interleave = 4, token = 64, head = 8>>,
  !kvcache.paged<f8E4M3FN, #one, page_size = 64, scale = f32, granularity = 32, scale_layout = [token = 4, interleave = 2]>,
  !kvcache.paged<f8E4M3FN, #one, page_size = 64, scale = f32, granularity = 32, scale_layout = [token = 4, interleave = 1]>)

// CHECK-LABEL: func.func private @roles(
// CHECK-SAME:    !kvcache.paged<i8, #[[$KV]], page_size = 64, scale = f32, granularity = 128, layout = [token = 264, head = 16896, role = 132], scale_layout = [token = 66, head = 4224]>,
// CHECK-SAME:    !kvcache.paged_collection<i8, #[[$KV]], page_size = 64, layout = [token = 264, head = ?, role = 132]>)
// CHECK-SAME:    #kvcache.layout<token = 264, head = 16896, role = 132>
func.func private @roles(
  !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 264, head = 16896, role = 132], scale_layout = [token = 66, head = 4224]>,
  !kvcache.paged_collection<i8, #kv, page_size = 64, layout = [role = 132, token = 264, head = ?]>)
  attributes { role = #kvcache.layout<token = 264, head = 16896, role = 132> }

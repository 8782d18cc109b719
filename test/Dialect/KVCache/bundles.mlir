// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128, layout = [token = 132, head = 8448], scale_layout = [token = 33, head = 2112]>
!csr = !kvcache.paged<bf16, #kv, page_size = 16, table = csr>
!tokens = !kvcache.paged_collection<bf16, #kv, page_size = 1, table = rows>
!continuous = !kvcache.continuous<bf16, #kv>
!pages = memref<?x64x8x128xbf16, strided<[?, 128, 8192, 1], offset: ?>>
!fp8_pages = memref<?x64x8x128xf8E4M3FN, strided<[?, 132, 8448, 1], offset: ?>>
!scales = memref<?x64x8x1xf32, strided<[?, 33, 2112, 1], offset: ?>>

// CHECK-LABEL: func.func @paged_cache(
// CHECK:         kvcache.paged_cache %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<?x64x8x128xbf16, strided<[?, 128, 8192, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32> -> !kvcache.paged<bf16, #{{.*}}, page_size = 64, layout = [token = 128, head = 8192]>
func.func @paged_cache(%pages: !pages, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) -> !cache {
  %k = kvcache.paged_cache %pages, %lengths, %lut, %n, %n : !pages, memref<?xi32>, memref<?x?xi32> -> !cache
  return %k : !cache
}

// CHECK-LABEL: func.func @scales(
// CHECK:         kvcache.paged_cache %{{.*}} scales %{{.*}} lookup %{{.*}} : memref<?x64x8x128xf8E4M3FN, strided<[?, 132, 8448, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32>, memref<?x64x8x1xf32, strided<[?, 33, 2112, 1], offset: ?>>, memref<?x?xi32> ->
func.func @scales(%pages: !fp8_pages, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32, %scales: !scales) -> !fp8 {
  %k = kvcache.paged_cache %pages, %lengths, %lut, %n, %n scales %scales lookup %lut
    : !fp8_pages, memref<?xi32>, memref<?x?xi32>, !scales, memref<?x?xi32> -> !fp8
  return %k : !fp8
}

// CHECK-LABEL: func.func @csr(
// CHECK:         kvcache.paged_cache %{{.*}}, %{{.*}}, %{{.*}} index %{{.*}}, %{{.*}}, %{{.*}} : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?xi32> index memref<?xi32> -> !kvcache.paged<bf16, #{{.*}}, page_size = 16, table = csr>
func.func @csr(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %indices: memref<?xi32>, %starts: memref<?xi32>, %n: i32) -> !csr {
  %k = kvcache.paged_cache %pages, %lengths, %indices index %starts, %n, %n
    : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?xi32> index memref<?xi32> -> !csr
  return %k : !csr
}

// CHECK-LABEL: func.func @rows(
// CHECK:         kvcache.paged_collection %{{.*}}, %{{.*}}, %{{.*}} index %{{.*}}, %{{.*}}, %{{.*}} : memref<?x2x?x1x8x128xbf16>, memref<?xi32>, memref<?x4096xi32> index memref<?xi32> -> !kvcache.paged_collection<bf16, #{{.*}}, page_size = 1, table = rows>
// CHECK:         kvcache.extent tokens %{{.*}}[%{{.*}}] : !kvcache.paged<bf16, #{{.*}}, page_size = 1, table = rows>
func.func @rows(%blocks: memref<?x2x?x1x8x128xbf16>, %lengths: memref<?xi32>, %tokens: memref<?x4096xi32>, %rows: memref<?xi32>, %n: i32, %i: index) -> index {
  %c = kvcache.paged_collection %blocks, %lengths, %tokens index %rows, %n, %n
    : memref<?x2x?x1x8x128xbf16>, memref<?xi32>, memref<?x4096xi32> index memref<?xi32> -> !tokens
  %k = kvcache.paged_view key %c[%i] : !tokens
  %e = kvcache.extent tokens %k[%i] : !kvcache.paged<bf16, #kv, page_size = 1, table = rows>
  return %e : index
}

// CHECK-LABEL: func.func @continuous_cache(
// CHECK:         kvcache.continuous_cache %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !kvcache.continuous<bf16, #{{.*}}>
func.func @continuous_cache(%blocks: memref<?x?x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?xi32>, %n: i32) -> !continuous {
  %k = kvcache.continuous_cache %blocks, %lengths, %lut, %n, %n : memref<?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !continuous
  return %k : !continuous
}

// CHECK-LABEL: func.func @static_scale(
// CHECK:         kvcache.store_quantized %{{.*}}, %{{.*}}[%{{.*}}] tensor_scale %{{.*}} : vector<8xbf16>, !kvcache.continuous<f8E4M3FN,
// CHECK:         kvcache.load %{{.*}}[%{{.*}}] tensor_scale %{{.*}} : !kvcache.continuous<f8E4M3FN, #{{.*}}> -> vector<8xbf16>
func.func @static_scale(%k: !kvcache.continuous<f8E4M3FN, #kv>, %v: vector<8xbf16>, %i: index, %s: f32) -> vector<8xbf16> {
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] tensor_scale %s : vector<8xbf16>, !kvcache.continuous<f8E4M3FN, #kv>
  %x = kvcache.load %k[%i, %i, %i, %i] tensor_scale %s : !kvcache.continuous<f8E4M3FN, #kv> -> vector<8xbf16>
  return %x : vector<8xbf16>
}

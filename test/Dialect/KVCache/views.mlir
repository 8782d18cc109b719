// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>
!mxfp4 = !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>
!any_pages = !kvcache.paged_collection<bf16, #kv, page_size = ?>
!latent = !kvcache.paged_collection<bf16, #mla, page_size = 16>
!continuous = !kvcache.continuous_collection<bf16, #kv>

// CHECK-DAG: #[[$KV:.*]] = #kvcache.params<num_heads = 8, head_size = 128>
// CHECK-DAG: #[[$MLA:.*]] = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>

// CHECK-LABEL: func.func @paged_collection(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<?x2x?x64x8x128xbf16>, %[[LENGTHS:[^:]*]]: memref<?xi32>,
// CHECK-SAME:    %[[LUT:[^:]*]]: memref<?x?xi32>, %[[SEQ:[^:]*]]: i32, %[[CACHE:[^:]*]]: i32)
// CHECK:         kvcache.paged_collection %[[BLOCKS]], %[[LENGTHS]], %[[LUT]], %[[SEQ]], %[[CACHE]]
// CHECK-SAME:      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
// CHECK-SAME:      -> !kvcache.paged_collection<bf16, #[[$KV]], page_size = 64>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "paged_collection"
// GENERIC:         "kvcache.paged_collection"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0>}>
func.func @paged_collection(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                            %max_seq: i32, %max_cache: i32) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return %c : !collection
}

// CHECK-LABEL: func.func @paged_collection_with_attributes(
// CHECK:         kvcache.paged_collection {{.*}} {note = "kept"} :
func.func @paged_collection_with_attributes(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                            %lut: memref<?x?xi32>, %max: i32) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max {note = "kept"}
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return %c : !collection
}

// CHECK-LABEL: func.func @paged_collection_of_static_sizes(
// CHECK:         kvcache.paged_collection {{.*}} : memref<100x2x32x64x8x128xbf16>, memref<4xi32>, memref<4x24xi32>
func.func @paged_collection_of_static_sizes(%blocks: memref<100x2x32x64x8x128xbf16>, %lengths: memref<4xi32>,
                                            %lut: memref<4x24xi32>, %max: i32) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<100x2x32x64x8x128xbf16>, memref<4xi32>, memref<4x24xi32> -> !collection
  return %c : !collection
}

// Any distance between pages, between keys and values, and between layers, and
// any offset.
!strided = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>
!lengths_at = memref<?xi32, strided<[1], offset: ?>>
!table_at = memref<?x?xi32, strided<[?, 1], offset: ?>>

// CHECK-LABEL: func.func @paged_collection_of_strided_memrefs(
// CHECK:         kvcache.paged_collection {{.*}} : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>,
// CHECK-SAME:      memref<?xi32, strided<[1], offset: ?>>, memref<?x?xi32, strided<[?, 1], offset: ?>> ->
func.func @paged_collection_of_strided_memrefs(%blocks: !strided, %lengths: !lengths_at, %lut: !table_at, %max: i32)
    -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : !strided, !lengths_at, !table_at -> !collection
  return %c : !collection
}

// CHECK-LABEL: func.func @paged_collection_of_a_latent_cache(
// CHECK:         kvcache.paged_collection {{.*}} : memref<?x1x?x16x1x576xbf16>, memref<?xi32>, memref<?x?xi32>
// CHECK-SAME:      -> !kvcache.paged_collection<bf16, #[[$MLA]], page_size = 16>
func.func @paged_collection_of_a_latent_cache(%blocks: memref<?x1x?x16x1x576xbf16>, %lengths: memref<?xi32>,
                                              %lut: memref<?x?xi32>, %max: i32) -> !latent {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x1x?x16x1x576xbf16>, memref<?xi32>, memref<?x?xi32> -> !latent
  return %c : !latent
}

// 128 elements in groups of 48 have three scales.
// CHECK-LABEL: func.func @paged_collection_with_scales(
// CHECK-SAME:    %[[SCALES:[^:]*]]: memref<?x2x?x64x8x3xf32>)
// CHECK:         kvcache.paged_collection {{.*}} scales %[[SCALES]] :
// CHECK-SAME:      memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x3xf32>
// CHECK-SAME:      -> !kvcache.paged_collection<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 48>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "paged_collection_with_scales"
// GENERIC:         "kvcache.paged_collection"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>}>
func.func @paged_collection_with_scales(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                                        %lut: memref<?x?xi32>, %max: i32, %scales: memref<?x2x?x64x8x3xf32>)
    -> !quantized {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x3xf32> -> !quantized
  return %c : !quantized
}

// Blocks of 4-bit elements are bytes.
// CHECK-LABEL: func.func @paged_collection_with_scales_and_their_table(
// CHECK-SAME:    %[[SCALES:[^:]*]]: memref<?x2x?x64x8x4xf8E8M0FNU>, %[[TABLE:[^:]*]]: memref<?x?xi32>)
// CHECK:         kvcache.paged_collection {{.*}} scales %[[SCALES]] lookup %[[TABLE]] :
// CHECK-SAME:      memref<?x2x?x64x8x64xi8>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x4xf8E8M0FNU>, memref<?x?xi32>
// CHECK-SAME:      -> !kvcache.paged_collection<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E8M0FNU, granularity = 32>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "paged_collection_with_scales_and_their_table"
// GENERIC:         "kvcache.paged_collection"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0>}>
func.func @paged_collection_with_scales_and_their_table(
    %blocks: memref<?x2x?x64x8x64xi8>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32,
    %scales: memref<?x2x?x64x8x4xf8E8M0FNU>, %scales_lut: memref<?x?xi32>) -> !mxfp4 {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales lookup %scales_lut
         : memref<?x2x?x64x8x64xi8>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x4xf8E8M0FNU>, memref<?x?xi32>
         -> !mxfp4
  return %c : !mxfp4
}

// CHECK-LABEL: func.func @continuous_collection(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<?x2x?x?x8x128xbf16>, %[[LENGTHS:[^:]*]]: memref<?xi32>,
// CHECK-SAME:    %[[LUT:[^:]*]]: memref<?xi32>, %[[SEQ:[^:]*]]: i32, %[[CACHE:[^:]*]]: i32)
// CHECK:         kvcache.continuous_collection %[[BLOCKS]], %[[LENGTHS]], %[[LUT]], %[[SEQ]], %[[CACHE]]
// CHECK-SAME:      : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32>
// CHECK-SAME:      -> !kvcache.continuous_collection<bf16, #[[$KV]]>
func.func @continuous_collection(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?xi32>,
                                 %max_seq: i32, %max_cache: i32) -> !continuous {
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max_seq, %max_cache
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !continuous
  return %c : !continuous
}

// CHECK-LABEL: func.func @continuous_collection_of_static_sizes(
// CHECK:         kvcache.continuous_collection {{.*}} : memref<4x2x32x2048x8x128xbf16>, memref<4xi32>, memref<4xi32>
func.func @continuous_collection_of_static_sizes(%blocks: memref<4x2x32x2048x8x128xbf16>, %lengths: memref<4xi32>,
                                                 %lut: memref<4xi32>, %max: i32) -> !continuous {
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<4x2x32x2048x8x128xbf16>, memref<4xi32>, memref<4xi32> -> !continuous
  return %c : !continuous
}

// CHECK-LABEL: func.func @paged_view(
// CHECK-SAME:    %[[C:[^:]*]]: !kvcache.paged_collection<bf16, #[[$KV]], page_size = 64>, %[[LAYER:[^:]*]]: index)
// CHECK:         %[[K:.*]] = kvcache.paged_view key %[[C]][%[[LAYER]]] : !kvcache.paged_collection<bf16, #[[$KV]], page_size = 64>
// CHECK:         %[[V:.*]] = kvcache.paged_view value %[[C]][%[[LAYER]]] : !kvcache.paged_collection<bf16, #[[$KV]], page_size = 64>
// CHECK:         return %[[K]], %[[V]] : !kvcache.paged<bf16, #[[$KV]], page_size = 64>, !kvcache.paged<bf16, #[[$KV]], page_size = 64>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "paged_view"
// GENERIC:         "kvcache.paged_view"({{.*}}) <{role = 0 : i32}>
// GENERIC:         "kvcache.paged_view"({{.*}}) <{role = 1 : i32}>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
func.func @paged_view(%c: !collection, %layer: index) -> (!cache, !cache) {
  %k = kvcache.paged_view key %c[%layer] : !collection
  %v = kvcache.paged_view value %c[%layer] : !collection
  return %k, %v : !cache, !cache
}

// CHECK-LABEL: func.func @paged_view_of_a_quantized_cache(
// CHECK:         %[[K:.*]] = kvcache.paged_view key
// CHECK:         return %[[K]] : !kvcache.paged<f8E4M3FN, #[[$KV]], page_size = 64, scale = f32, granularity = 48>
func.func @paged_view_of_a_quantized_cache(%c: !quantized, %layer: index)
    -> !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48> {
  %k = kvcache.paged_view key %c[%layer] : !quantized
  return %k : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>
}

// CHECK-LABEL: func.func @paged_view_of_a_latent_cache(
// CHECK:         %[[K:.*]] = kvcache.paged_view key
// CHECK:         return %[[K]] : !kvcache.paged<bf16, #[[$MLA]], page_size = 16>
func.func @paged_view_of_a_latent_cache(%c: !latent, %layer: index) -> !kvcache.paged<bf16, #mla, page_size = 16> {
  %k = kvcache.paged_view key %c[%layer] : !latent
  return %k : !kvcache.paged<bf16, #mla, page_size = 16>
}

// CHECK-LABEL: func.func @continuous_view(
// CHECK-SAME:    %[[C:[^:]*]]: !kvcache.continuous_collection<bf16, #[[$KV]]>, %[[LAYER:[^:]*]]: index)
// CHECK:         %[[K:.*]] = kvcache.continuous_view key %[[C]][%[[LAYER]]] : !kvcache.continuous_collection<bf16, #[[$KV]]>
// CHECK:         %[[V:.*]] = kvcache.continuous_view value %[[C]][%[[LAYER]]] : !kvcache.continuous_collection<bf16, #[[$KV]]>
// CHECK:         return %[[K]], %[[V]] : !kvcache.continuous<bf16, #[[$KV]]>, !kvcache.continuous<bf16, #[[$KV]]>
func.func @continuous_view(%c: !continuous, %layer: index)
    -> (!kvcache.continuous<bf16, #kv>, !kvcache.continuous<bf16, #kv>) {
  %k = kvcache.continuous_view key %c[%layer] : !continuous
  %v = kvcache.continuous_view value %c[%layer] : !continuous
  return %k, %v : !kvcache.continuous<bf16, #kv>, !kvcache.continuous<bf16, #kv>
}

// A size that the blocks have is no contradiction to one that the type leaves open.
// CHECK-LABEL: func.func @paged_collection_of_any_page_size(
// CHECK:         kvcache.paged_collection {{.*}} : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
// CHECK-SAME:      -> !kvcache.paged_collection<bf16, #[[$KV]], page_size = ?>
// CHECK:         kvcache.paged_collection {{.*}} : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
// CHECK-SAME:      -> !kvcache.paged_collection<bf16, #[[$KV]], page_size = ?>
// CHECK:         kvcache.paged_view key %{{.*}} : !kvcache.paged_collection<bf16, #[[$KV]], page_size = ?>
func.func @paged_collection_of_any_page_size(%blocks: memref<?x2x?x?x8x128xbf16>, %known: memref<?x2x?x64x8x128xbf16>,
                                             %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32,
                                             %layer: index) -> !kvcache.paged<bf16, #kv, page_size = ?> {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !any_pages
  %d = kvcache.paged_collection %known, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !any_pages
  %k = kvcache.paged_view key %c[%layer] : !any_pages
  return %k : !kvcache.paged<bf16, #kv, page_size = ?>
}

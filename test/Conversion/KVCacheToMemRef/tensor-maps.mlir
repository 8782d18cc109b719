// RUN: kvcache-opt %s --convert-kvcache-to-memref --canonicalize --cse --split-input-file | FileCheck %s --implicit-check-not='= kvcache.create_'

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!desc = !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>

// Pages are as far apart as the view says: (NB - 1) * (S0 / 1024) + 16 rows. If
// there are several, this is a whole number of rows.
// CHECK-LABEL: func.func @tile(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[PAGES_I32:[^:]*]]: i32, %[[STRIDE:[^:]*]]: index,
// CHECK-DAG:     %[[PAGES:.*]] = arith.index_castui %[[PAGES_I32]] : i32 to index
// CHECK-DAG:     %[[REST:.*]] = arith.remui %[[STRIDE]], %c1024 : index
// CHECK-DAG:     %[[IS_ONE:.*]] = arith.cmpi ule, %[[PAGES]], %c1 : index
// CHECK-DAG:     %[[EXCESS:.*]] = arith.select %[[IS_ONE]], %c0, %[[REST]] : index
// CHECK-DAG:     kvcache.check %[[EXCESS]] below %c1, "'kvcache.create_tma_tile' op distance between pages modulo a row (1024 elements), which must be 0 where rows are counted,"
// CHECK-DAG:     %[[LAST:.*]] = arith.subi %[[PAGES]], %c1 : index
// CHECK-DAG:     %[[DISTANCE:.*]] = arith.divui %[[STRIDE]], %c1024 : index
// CHECK:         %[[BEFORE:.*]] = arith.muli %[[LAST]], %[[DISTANCE]]
// CHECK:         %[[ROWS:.*]] = arith.addi %[[BEFORE]], %c16
// CHECK:         %[[DESC:.*]] = kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c128, %c8, %[[ROWS]]] strides[%c128, %c1024] : memref<bf16, strided<[], offset: ?>> -> !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>
// CHECK:         return %[[DESC]]
func.func @tile(%k: !cache) -> !desc {
  %desc = kvcache.create_tma_tile %k {rows = 64, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
  return %desc : !desc
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!desc = !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
!blocks = memref<?x2x?x16x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>

// The view begins at its role and layer; the distance of pages is the stride of
// the blocks, with the padding in it.
// CHECK-LABEL: func.func @page_of_a_view(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<?x2x?x16x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>, {{.*}}, %[[LAYER:[^:]*]]: index)
// CHECK:         %{{.*}}, %{{.*}}, %[[SIZES:.*]]:6, %[[STRIDES:.*]]:6 = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         %[[OF_LAYER:.*]] = arith.muli %[[LAYER]], %[[STRIDES]]#2
// CHECK:         %[[START:.*]] = arith.addi %[[OF_LAYER]], %[[STRIDES]]#1
// CHECK:         %[[OFFSET:.*]] = arith.addi %{{.*}}, %[[START]]
// CHECK:         %[[BASE:.*]] = memref.reinterpret_cast %[[BLOCKS]] to offset: [%[[OFFSET]]], sizes: [], strides: []
// CHECK:         kvcache.encode_tensor_map %[[BASE]] sizes[%c128, %c8, %c16, %[[SIZES]]#0] strides[%c128, %c1024, %[[STRIDES]]#0] : {{.*}} -> !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
func.func @page_of_a_view(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>, %m: i32, %layer: index) -> !desc {
  %c = kvcache.paged_collection %blocks, %lengths, %table, %m, %m : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %v = kvcache.paged_view value %c[%layer] : !collection
  %desc = kvcache.create_paged_tma_tile %v {rows = 16, columns = 128, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
  return %desc : !desc
}

// -----

!cache = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>
!k_major = !kvcache.tma_tile<64x128xbf16, swizzle_128b>
!mn_major = !kvcache.tma_tile<64x8xbf16, swizzle_128b>

// The last sequence has the tokens of a block after its first row; heads are
// columns.
// CHECK-LABEL: func.func @matrix(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[SEQUENCES_I32:[^:]*]]: i32, %[[STRIDE:[^:]*]]: index, %[[TOKENS_I32:[^:]*]]: i32,
// CHECK-DAG:     %[[TOKENS:.*]] = arith.index_castui %[[TOKENS_I32]]
// CHECK-DAG:     %[[SEQUENCES:.*]] = arith.index_castui %[[SEQUENCES_I32]]
// CHECK-DAG:     %[[LAST:.*]] = arith.subi %[[SEQUENCES]], %c1
// CHECK-DAG:     %[[DISTANCE:.*]] = arith.divui %[[STRIDE]], %c1024
// CHECK:         %[[BEFORE:.*]] = arith.muli %[[LAST]], %[[DISTANCE]]
// CHECK:         %[[ROWS:.*]] = arith.addi %[[BEFORE]], %[[TOKENS]]
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c1024, %[[ROWS]]] strides[%c1024] : {{.*}} -> !kvcache.tma_tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c1024, %[[ROWS]]] strides[%c1024] : {{.*}} -> !kvcache.tma_tile<64x8xbf16, swizzle_128b>
func.func @matrix(%k: !cache) -> (!k_major, !mn_major) {
  %a = kvcache.create_tma_tile %k {rows = 128, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !k_major
  %b = kvcache.create_tma_tile %k {rows = 128, columns = 128, major = #kvcache.major<mn_major>,
                                   swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !mn_major
  return %a, %b : !k_major, !mn_major
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!desc = !kvcache.tma_tile<64x32x1x1xbf16, swizzle_128b>

// 32 rows of 2048 bytes before the view on, and one row more than it has.
// CHECK-LABEL: func.func @ragged(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<bf16, strided<[], offset: ?>>,
// CHECK:         %[[MORE:.*]] = arith.addi %{{.*}}, %c65
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c128, %c32, %c8, %[[MORE]]] strides[%c1024, %c128, %c1024] {offset = -65536 : i64} : {{.*}} -> !kvcache.tma_tile<64x32x1x1xbf16, swizzle_128b>
func.func @ragged(%k: !cache) -> !desc {
  %desc = kvcache.create_ragged_tma_tile %k {rows = 32, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
  return %desc : !desc
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 640, is_mla = true>, page_size = 64>
!tile = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16>

// The distance between pages is in elements of the cache, and has whole ones of the descriptor.
// CHECK-LABEL: func.func @words(
// CHECK-SAME:    %[[STRIDE:[a-z0-9]+]]: index {kvcache.name = "k.page_stride"}
// CHECK:         %[[REST:.*]] = arith.remui %[[STRIDE]], %c8
// CHECK:         kvcache.check %[[REST]] below %c1, "'kvcache.create_paged_tma_tile' op distance between pages or heads modulo an element of the descriptor (8 elements), which must be 0,"
// CHECK:         %[[WORDS:.*]] = arith.divui %[[STRIDE]], %c8
// CHECK:         kvcache.encode_tensor_map %{{.*}} sizes[%c80, %c1, %c64, %{{.*}}] strides[%c80, %c80, %[[WORDS]]] : {{.*}} -> !kvcache.tma_tile<80x1x64x1xi64>
func.func @words(%k: !cache {kvcache.name = "k"}) -> !kvcache.tma_tile<80x1x64x1xi64> {
  %desc = kvcache.create_paged_tma_tile %k {rows = 64, columns = 80, dtype = i64} : !cache -> !kvcache.tma_tile<80x1x64x1xi64>
  return %desc : !kvcache.tma_tile<80x1x64x1xi64>
}

// Rope lies after 512 bytes of a row, which is 320 bf16 wide.
// CHECK-LABEL: func.func @rope(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<f8E4M3FN, strided<[], offset: ?>>,
// CHECK:         arith.divui %{{.*}}, %c640
// CHECK:         %[[ROWS:.*]] = arith.addi %{{.*}}, %c64
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c64, %c1, %[[ROWS]]] strides[%c320, %c320] {offset = 512 : i64} : {{.*}} -> !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c64, %[[ROWS]]] strides[%c320] {offset = 512 : i64} : {{.*}} -> !kvcache.tma_tile<64x1xbf16>
func.func @rope(%k: !cache) -> (!tile, !row) {
  %a = kvcache.create_rope_tma_tile %k {rows = 64, columns = 64, padded_depth = 512, swizzle = #kvcache.swizzle<swizzle_128b>}
       : !cache -> !tile
  %b = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 512} : !cache -> !row
  return %a, %b : !tile, !row
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>
!words = !kvcache.tma_tile<72x1xi64>
!bytes = !kvcache.tma_tile<128x1xf8E4M3FN, swizzle_128b, l2_promotion = 256>
!half = !kvcache.tma_tile<36x1xi64>

// A row of 576 bytes is one of 72 words, or of two halves, of which only as
// many are rows as the view has.
// CHECK-LABEL: func.func @gather4(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<f8E4M3FN, strided<[], offset: ?>>,
// CHECK:         %[[ROWS:.*]] = arith.addi %{{.*}}, %c64
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c72, %[[ROWS]]] strides[%c72] : {{.*}} -> !kvcache.tma_tile<72x1xi64>
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c576, %[[ROWS]]] strides[%c576] : {{.*}} -> !kvcache.tma_tile<128x1xf8E4M3FN, swizzle_128b, l2_promotion = 256>
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c36, %[[ROWS]]] strides[%c36] : {{.*}} -> !kvcache.tma_tile<36x1xi64>
func.func @gather4(%k: !cache) -> (!words, !bytes, !half) {
  %a = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 72, dtype = i64} : !cache -> !words
  %b = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 512, tile_stride = 576, l2_promotion = 256,
                                           swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !bytes
  %c = kvcache.create_gather4_tma_tile %k {tile_width = 36, dtype = i64} : !cache -> !half
  return %a, %b, %c : !words, !bytes, !half
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64, scale = f32, granularity = 512>
!scales = !kvcache.scales<!cache>
!desc = !kvcache.tma_tile<64x1xf32>

// The scales' own base, pages and distance.
// CHECK-LABEL: func.func @scales(
// CHECK-SAME:    %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>> {kvcache.name = "s.scales"}, %[[PAGES_I32:[^:]*]]: i32 {kvcache.name = "s.scale_pages"}, %[[STRIDE:[^:]*]]: index {kvcache.name = "s.scale_page_stride"},
// CHECK:         %[[PAGES:.*]] = arith.index_castui %[[PAGES_I32]]
// CHECK:         kvcache.encode_tensor_map %[[SCALES]] sizes[%c64, %[[PAGES]]] strides[%[[STRIDE]]] : memref<f32, strided<[], offset: ?>> -> !kvcache.tma_tile<64x1xf32>
func.func @scales(%s: !scales {kvcache.name = "s"}) -> !desc {
  %desc = kvcache.create_scale_tma_tile %s {rows = 64} : !scales -> !desc
  return %desc : !desc
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64, scale = f32, granularity = 512>
!desc = !kvcache.tma_tile<128x1x64x1xf8E4M3FN, swizzle_128b>
!of_scales = !kvcache.tma_tile<64x1xf32>

// The two descriptors of a quantized cache are of different memory.
// CHECK-LABEL: func.func @quantized(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<f8E4M3FN, strided<[], offset: ?>>,
// CHECK-SAME:    %[[SCALES:[^: ]*]]: memref<f32, strided<[], offset: ?>>,
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c512, %c1, %c64, %{{.*}}] strides[%c512, %c512, %{{.*}}] : memref<f8E4M3FN,
// CHECK:         kvcache.encode_tensor_map %[[SCALES]] sizes[%c64, %{{.*}}] strides[%{{.*}}] : memref<f32,
func.func @quantized(%k: !cache) -> (!desc, !of_scales) {
  %s = kvcache.scales_view %k : !cache
  %a = kvcache.create_paged_tma_tile %k {rows = 64, columns = 512, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
  %b = kvcache.create_scale_tma_tile %s {rows = 64} : !kvcache.scales<!cache> -> !of_scales
  return %a, %b : !desc, !of_scales
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f8E4M3FN, granularity = 16>
!tile = !kvcache.tma_tile<64x1x16xi8, swizzle_64b>
!page = !kvcache.tma_tile<64x1x16x1xi8>

// Bytes of two elements each: 64 of a head, 512 of a row.
// CHECK-LABEL: func.func @half_bytes(
// CHECK-SAME:    %[[BLOCKS:[^:]*]]: memref<i8, strided<[], offset: ?>>, %[[PAGES_I32:[^:]*]]: i32, %[[STRIDE:[^:]*]]: index,
// CHECK-DAG:     %[[PAGES:.*]] = arith.index_castui %[[PAGES_I32]]
// CHECK-DAG:     arith.divui %[[STRIDE]], %c512
// CHECK-DAG:     %[[ROWS:.*]] = arith.addi %{{.*}}, %c16
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c64, %c8, %[[ROWS]]] strides[%c64, %c512] : {{.*}} -> !kvcache.tma_tile<64x1x16xi8, swizzle_64b>
// CHECK:         kvcache.encode_tensor_map %[[BLOCKS]] sizes[%c64, %c8, %c16, %[[PAGES]]] strides[%c64, %c512, %[[STRIDE]]] : {{.*}} -> !kvcache.tma_tile<64x1x16x1xi8>
func.func @half_bytes(%k: !nvfp4) -> (!tile, !page) {
  %a = kvcache.create_tma_tile %k {rows = 16, swizzle = #kvcache.swizzle<swizzle_64b>} : !nvfp4 -> !tile
  %b = kvcache.create_paged_tma_tile %k {rows = 16, columns = 64} : !nvfp4 -> !page
  return %a, %b : !tile, !page
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!desc = !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>

// A descriptor is passed on as it is.
// CHECK-LABEL: func.func @through_a_call(
// CHECK:         %[[DESC:.*]] = kvcache.encode_tensor_map
// CHECK:         call @take(%[[DESC]]) : (!kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>) -> ()
func.func private @take(!desc)
func.func @through_a_call(%k: !cache) {
  %desc = kvcache.create_paged_tma_tile %k {rows = 16, columns = 128, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
  call @take(%desc) : (!desc) -> ()
  return
}

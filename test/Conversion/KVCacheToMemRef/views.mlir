// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Pointers keep the offset of their tensor; counts become i32; the distances of
// pages, layers and roles stay 64-bit.

// CHECK-LABEL: func.func @paged_collection_is_its_parts(
// CHECK-SAME:      %[[BLOCKS:.*]]: memref<?x2x?x64x8x128xbf16>, %[[LENGTHS:.*]]: memref<?xi32>, %[[LUT:.*]]: memref<?x?xi32>, %[[MAX_SEQ:.*]]: i32, %[[MAX_CACHE:.*]]: i32)
// CHECK-SAME:      -> (memref<bf16, strided<[], offset: ?>>, i32, i32, index, index, index, memref<i32, strided<[], offset: ?>>, i32, memref<i32, strided<[], offset: ?>>, i32, i32, i32, i32)
// CHECK-DAG:     %[[BLOCKS_BASE:.*]], %[[BLOCKS_OFFSET:.*]], %[[SIZES:.*]]:6, %[[STRIDES:.*]]:6 = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK-DAG:     %[[LENGTHS_BASE:.*]], %[[LENGTHS_OFFSET:.*]], %[[BATCH_SIZE:.*]], %{{.*}} = memref.extract_strided_metadata %[[LENGTHS]]
// CHECK-DAG:     %[[LUT_BASE:.*]], %[[LUT_OFFSET:.*]], %[[LUT_SIZES:.*]]:2, %[[LUT_STRIDES:.*]]:2 = memref.extract_strided_metadata %[[LUT]]
// CHECK-DAG:     %[[BLOCKS_PTR:.*]] = memref.reinterpret_cast %[[BLOCKS_BASE]] to offset: [%[[BLOCKS_OFFSET]]], sizes: [], strides: []
// CHECK-DAG:     %[[PAGES:.*]] = arith.index_castui %[[SIZES]]#0 : index to i32
// CHECK-DAG:     %[[LAYERS:.*]] = arith.index_castui %[[SIZES]]#2 : index to i32
// CHECK-DAG:     %[[LENGTHS_PTR:.*]] = memref.reinterpret_cast %[[LENGTHS_BASE]] to offset: [%[[LENGTHS_OFFSET]]]
// CHECK-DAG:     %[[BATCH:.*]] = arith.index_castui %[[BATCH_SIZE]] : index to i32
// CHECK-DAG:     %[[LUT_PTR:.*]] = memref.reinterpret_cast %[[LUT_BASE]] to offset: [%[[LUT_OFFSET]]]
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.index_castui %[[LUT_SIZES]]#1 : index to i32
// CHECK-DAG:     %[[LUT_STRIDE:.*]] = arith.index_castui %[[LUT_STRIDES]]#0 : index to i32
// CHECK:         return %[[BLOCKS_PTR]], %[[PAGES]], %[[LAYERS]], %[[STRIDES]]#1, %[[STRIDES]]#2, %[[STRIDES]]#0, %[[LENGTHS_PTR]], %[[BATCH]], %[[LUT_PTR]], %[[COLUMNS]], %[[LUT_STRIDE]], %[[MAX_SEQ]], %[[MAX_CACHE]]
func.func @paged_collection_is_its_parts(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                         %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return %c : !collection
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!strided = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>

// A padded page distance and a cross-layer layout are the memref's strides.

// CHECK-LABEL: func.func @strides_of_the_blocks_are_kept(
// CHECK:         %{{.*}}, %[[OFFSET:.*]], %{{.*}}:6, %[[STRIDES:.*]]:6 = memref.extract_strided_metadata %{{.*}} : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>
// CHECK:         memref.reinterpret_cast %{{.*}} to offset: [%[[OFFSET]]], sizes: [], strides: []
// CHECK:         return %{{.*}}, %{{.*}}, %{{.*}}, %[[STRIDES]]#1, %[[STRIDES]]#2, %[[STRIDES]]#0,
func.func @strides_of_the_blocks_are_kept(%blocks: !strided, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32, strided<[?, 1], offset: ?>>, %max: i32)
    -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : !strided, memref<?xi32>, memref<?x?xi32, strided<[?, 1], offset: ?>> -> !collection
  return %c : !collection
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

// CHECK-LABEL: func.func @key_view_moves_by_layers(
// CHECK-SAME:      %[[BLOCKS:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[PAGES:[^:]*]]: i32, %{{[^:]*}}: i32, %[[ROLE_STRIDE:[^:]*]]: index, %[[LAYER_STRIDE:[^:]*]]: index, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK-SAME:      %[[LAYER:[^:]*]]: index)
// CHECK-NOT:     %[[ROLE_STRIDE]]
// CHECK:         %[[MOVE:.*]] = arith.muli %[[LAYER]], %[[LAYER_STRIDE]] overflow<nsw> : index
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         %[[MOVED:.*]] = arith.addi %[[OFFSET]], %[[MOVE]]
// CHECK:         %[[KEYS:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[MOVED]]], sizes: [], strides: []
// CHECK:         return %[[KEYS]], %[[PAGES]], %[[PAGE_STRIDE]],
func.func @key_view_moves_by_layers(%c: !collection, %layer: index)
    -> !kvcache.paged<bf16, #kv, page_size = 64> {
  %k = kvcache.paged_view key %c[%layer] : !collection
  return %k : !kvcache.paged<bf16, #kv, page_size = 64>
}

// CHECK-LABEL: func.func @value_view_moves_by_a_role_more(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[ROLE_STRIDE:[^:]*]]: index, %[[LAYER_STRIDE:[^:]*]]: index, %{{[^:]*}}: index,
// CHECK-SAME:      %[[LAYER:[^:]*]]: index)
// CHECK:         %[[LAYERS:.*]] = arith.muli %[[LAYER]], %[[LAYER_STRIDE]]
// CHECK:         %[[MOVE:.*]] = arith.addi %[[LAYERS]], %[[ROLE_STRIDE]]
// CHECK:         arith.addi %{{.*}}, %[[MOVE]]
func.func @value_view_moves_by_a_role_more(%c: !collection, %layer: index)
    -> !kvcache.paged<bf16, #kv, page_size = 64> {
  %v = kvcache.paged_view value %c[%layer] : !collection
  return %v : !kvcache.paged<bf16, #kv, page_size = 64>
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!collection = !kvcache.paged_collection<bf16, #mla, page_size = 48>

// MLA has one cache per layer, so no distance between roles.

// CHECK-LABEL: func.func @mla_collection_has_no_role_stride(
// CHECK-SAME:      -> (memref<bf16, strided<[], offset: ?>>, i32, i32, index, index, memref<i32, strided<[], offset: ?>>, i32, memref<i32, strided<[], offset: ?>>, i32, i32, i32, i32)
func.func @mla_collection_has_no_role_stride(%blocks: memref<?x1x?x48x1x576xbf16>, %lengths: memref<?xi32>,
                                             %lut: memref<?x?xi32>, %max: i32) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<?x1x?x48x1x576xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return %c : !collection
}

// CHECK-LABEL: func.func @mla_view_moves_by_layers(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[LAYER_STRIDE:[^:]*]]: index, %[[PAGE_STRIDE:[^:]*]]: index, %{{[^:]*}}: memref<i32
// CHECK-SAME:      %[[LAYER:[^:]*]]: index)
// CHECK:         arith.muli %[[LAYER]], %[[LAYER_STRIDE]]
// CHECK:         return %{{.*}}, %{{.*}}, %[[PAGE_STRIDE]],
func.func @mla_view_moves_by_layers(%c: !collection, %layer: index)
    -> !kvcache.paged<bf16, #mla, page_size = 48> {
  %k = kvcache.paged_view key %c[%layer] : !collection
  return %k : !kvcache.paged<bf16, #mla, page_size = 48>
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.continuous_collection<bf16, #kv>
!cache = !kvcache.continuous<bf16, #kv>

// A continuous cache has the tokens of a block, and a table with one column.

// CHECK-LABEL: func.func @continuous_view_of_its_tensors(
// CHECK-SAME:      %[[BLOCKS:.*]]: memref<?x2x?x?x8x128xbf16>, %[[LENGTHS:.*]]: memref<?xi32>, %[[LUT:.*]]: memref<?xi32>, %[[MAX_SEQ:.*]]: i32, %[[MAX_CACHE:.*]]: i32, %[[LAYER:.*]]: index)
// CHECK-SAME:      -> (memref<bf16, strided<[], offset: ?>>, i32, index, i32, memref<i32, strided<[], offset: ?>>, i32, memref<i32, strided<[], offset: ?>>, i32, i32)
// CHECK-DAG:     %{{.*}}, %{{.*}}, %[[SIZES:.*]]:6, %[[STRIDES:.*]]:6 = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         %[[PAGES:.*]] = arith.index_castui %[[SIZES]]#0 : index to i32
// CHECK:         %[[TOKENS:.*]] = arith.index_castui %[[SIZES]]#3 : index to i32
// CHECK:         %[[LAYERS:.*]] = arith.muli %[[LAYER]], %[[STRIDES]]#2
// CHECK:         arith.addi %[[LAYERS]], %[[STRIDES]]#1
// CHECK:         return %{{.*}}, %[[PAGES]], %[[STRIDES]]#0, %[[TOKENS]], %{{.*}}, %{{.*}}, %{{.*}}, %[[MAX_SEQ]], %[[MAX_CACHE]]
func.func @continuous_view_of_its_tensors(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                          %lut: memref<?xi32>, %max_seq: i32, %max_cache: i32, %layer: index)
    -> !cache {
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !collection
  %v = kvcache.continuous_view value %c[%layer] : !collection
  return %v : !cache
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 64>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 64>

// Scales have strides of their own, and the table of the blocks unless another
// is given.

// CHECK-LABEL: func.func @scales_share_the_table(
// CHECK-SAME:      %[[BLOCKS:.*]]: memref<?x2x?x64x8x128xf8E4M3FN>, %{{.*}}: memref<?xi32>, %[[LUT:.*]]: memref<?x?xi32>, %{{.*}}: i32, %[[SCALES:.*]]: memref<?x2x?x64x8x2xf32>, %[[LAYER:.*]]: index)
// CHECK-DAG:     %[[LUT_BASE:.*]], %[[LUT_OFFSET:.*]], %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata %[[LUT]]
// CHECK:         %[[LUT_PTR:.*]] = memref.reinterpret_cast %[[LUT_BASE]] to offset: [%[[LUT_OFFSET]]], sizes: []
// CHECK-DAG:     %{{.*}}, %{{.*}}, %[[SIZES:.*]]:6, %[[STRIDES:.*]]:6 = memref.extract_strided_metadata %[[SCALES]]
// CHECK:         %[[LAYERS:.*]] = arith.muli %[[LAYER]], %[[STRIDES]]#2
// CHECK:         %[[MOVE:.*]] = arith.addi %[[LAYERS]], %[[STRIDES]]#1
// CHECK:         %[[MOVED:.*]] = arith.addi %{{.*}}, %[[MOVE]]
// CHECK:         %[[VALUE_SCALES:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%[[MOVED]]], sizes: [], strides: [] : memref<f32>
// CHECK:         return {{.*}}, %[[VALUE_SCALES]], %{{[^,]*}}, %[[STRIDES]]#0, %[[LUT_PTR]],
func.func @scales_share_the_table(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                                  %lut: memref<?x?xi32>, %max: i32, %scales: memref<?x2x?x64x8x2xf32>,
                                  %layer: index) -> !cache {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
      : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x2xf32> -> !collection
  %v = kvcache.paged_view value %c[%layer] : !collection
  return %v : !cache
}

// CHECK-LABEL: func.func @scales_with_a_table_of_their_own(
// CHECK-SAME:      %[[SCALES_LUT:[^:]*]]: memref<?x?xi32>)
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]], %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[SCALES_LUT]]
// CHECK-DAG:     %[[TABLE:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: []
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.index_castui %[[SIZES]]#1 : index to i32
// CHECK-DAG:     %[[STRIDE:.*]] = arith.index_castui %[[STRIDES]]#0 : index to i32
// CHECK:         return {{.*}}, %[[TABLE]], %[[COLUMNS]], %[[STRIDE]] :
func.func @scales_with_a_table_of_their_own(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                                            %lut: memref<?x?xi32>, %max: i32,
                                            %scales: memref<?x2x?x64x8x2xf32>, %scales_lut: memref<?x?xi32>)
    -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales lookup %scales_lut
      : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x2xf32>, memref<?x?xi32>
      -> !collection
  return %c : !collection
}

// -----

!cache = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

// A row is at block * distance + token * 1024 + head * 128 + element.

// CHECK-LABEL: func.func @continuous_cache_is_its_parts(
// CHECK-SAME:      %[[BLOCKS:.*]]: memref<?x?x8x128xbf16, strided<[?, 1024, 128, 1], offset: ?>>, %{{.*}}: memref<?xi32>, %[[LUT:.*]]: memref<?xi32>, %{{.*}}: i32, %[[SEQ:.*]]: index, %[[HEAD:.*]]: index, %[[TOKEN:.*]]: index, %[[ELEMENT:.*]]: index)
// CHECK-DAG:     %[[BASE:.*]], %[[OFFSET:.*]], %[[SIZES:.*]]:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK-DAG:     %[[LUT_BASE:.*]], %[[LUT_OFFSET:.*]], %{{.*}}, %{{.*}} = memref.extract_strided_metadata %[[LUT]]
// CHECK-DAG:     %[[TOKENS:.*]] = arith.muli %[[TOKEN]], %c1024
// CHECK-DAG:     %[[HEADS:.*]] = arith.muli %[[HEAD]], %c128
// CHECK:         %[[ROW:.*]] = arith.addi %[[TOKENS]], %[[HEADS]]
// CHECK:         %[[IN_BLOCK:.*]] = arith.addi %[[ROW]], %[[ELEMENT]]
// CHECK:         %[[LUT_PTR:.*]] = memref.reinterpret_cast %[[LUT_BASE]] to offset: [%[[LUT_OFFSET]]]
// CHECK:         %[[ID:.*]] = memref.load %[[LUT_PTR]][%[[SEQ]]]
// CHECK:         %[[BLOCK:.*]] = arith.index_castui %[[ID]] : i32 to index
// CHECK:         %[[START:.*]] = arith.muli %[[BLOCK]], %[[STRIDES]]#0
// CHECK:         %[[INDEX:.*]] = arith.addi %[[START]], %[[IN_BLOCK]]
// CHECK:         %[[ALL:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]]
// CHECK:         vector.load %[[ALL]][%[[INDEX]]] {alignment = 16 : i64}
func.func @continuous_cache_is_its_parts(%blocks: memref<?x?x8x128xbf16, strided<[?, 1024, 128, 1], offset: ?>>, %lengths: memref<?xi32>, %lut: memref<?xi32>, %n: i32, %b: index, %h: index, %t: index, %d: index) -> vector<8xbf16> {
  %k = kvcache.continuous_cache %blocks, %lengths, %lut, %n, %n
      : memref<?x?x8x128xbf16, strided<[?, 1024, 128, 1], offset: ?>>, memref<?xi32>, memref<?xi32> -> !cache
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  return %x : vector<8xbf16>
}

// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// Inside a page 32 bits suffice; where the page id meets the page distance they
// don't.

// CHECK-LABEL: func.func @load_addresses_in_two_widths(
// CHECK-SAME:      %[[BLOCKS:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[PAGES:[^:]*]]: i32, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index)
// CHECK-DAG:     %[[H32:.*]] = arith.index_castui %[[H]] : index to i32
// CHECK-DAG:     %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK-DAG:     %[[T32:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK-DAG:     %[[P:.*]] = arith.constant 64 : i32
// CHECK-DAG:     %[[HE:.*]] = arith.constant 1024 : i32
// CHECK-DAG:     %[[E:.*]] = arith.constant 128 : i32
// CHECK-DAG:     %[[ROW:.*]] = arith.remui %[[T32]], %[[P]] : i32
// CHECK-DAG:     %[[ROW_OFFSET:.*]] = arith.muli %[[ROW]], %[[HE]] overflow<nsw, nuw> : i32
// CHECK-DAG:     %[[HEAD_OFFSET:.*]] = arith.muli %[[H32]], %[[E]] overflow<nsw, nuw> : i32
// CHECK:         %[[ROW_AND_HEAD:.*]] = arith.addi %[[ROW_OFFSET]], %[[HEAD_OFFSET]] overflow<nsw, nuw> : i32
// CHECK:         %[[IN_PAGE32:.*]] = arith.addi %[[ROW_AND_HEAD]], %[[D32]] overflow<nsw, nuw> : i32
// CHECK:         %[[IN_PAGE:.*]] = arith.index_castui %[[IN_PAGE32]] : i32 to index
// CHECK:         %[[ENTRY:.*]] = memref.load %{{.*}} : memref<?xi32, strided<[1], offset: ?>>
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[PAGE_OFFSET:.*]] = arith.muli %[[PAGE]], %[[PAGE_STRIDE]] overflow<nsw, nuw> : index
// CHECK:         %[[ELEMENT:.*]] = arith.addi %[[PAGE_OFFSET]], %[[IN_PAGE]] overflow<nsw, nuw> : index
// CHECK:         %[[NB:.*]] = arith.index_castui %[[PAGES]] : i32 to index
// CHECK:         %[[SIZE:.*]] = arith.muli %[[NB]], %[[PAGE_STRIDE]] overflow<nsw, nuw> : index
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         %[[WINDOW:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[SIZE]]], strides: [1]
// CHECK:         %[[LOADED:.*]] = vector.load %[[WINDOW]][%[[ELEMENT]]] {alignment = 16 : i64} : memref<?xbf16, strided<[1], offset: ?>>, vector<8xbf16>
// CHECK:         return %[[LOADED]]
func.func @load_addresses_in_two_widths(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> vector<8xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// CHECK-LABEL: func.func @store_addresses_like_load(
// CHECK-SAME:      %[[VALUE:[^:]*]]: vector<8xbf16>,
// CHECK:         vector.store %[[VALUE]], %{{.*}}[%{{.*}}] {alignment = 16 : i64} : memref<?xbf16, strided<[1], offset: ?>>, vector<8xbf16>
func.func @store_addresses_like_load(%v: vector<8xbf16>, %k: !cache, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store %v, %k[%b, %h, %t, %d] : vector<8xbf16>, !cache
  return
}

// A hint stays one.

// CHECK-LABEL: func.func @nontemporal_accesses(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64, nontemporal = true}
// CHECK:         vector.store {{.*}} {alignment = 16 : i64, nontemporal = true}
// CHECK:         memref.load {{.*}} {nontemporal = true}
// CHECK:         memref.store {{.*}} {nontemporal = true}
func.func @nontemporal_accesses(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  %v = kvcache.load %k[%b, %h, %t, %d] {nontemporal = true} : !cache -> vector<8xbf16>
  kvcache.store %v, %k[%b, %h, %t, %d] {nontemporal = true} : vector<8xbf16>, !cache
  %x = kvcache.load %k[%b, %h, %t, %d] {nontemporal = true} : !cache -> bf16
  kvcache.store %x, %k[%b, %h, %t, %d] {nontemporal = true} : bf16, !cache
  return
}

// A known page spares the table.

// CHECK-LABEL: func.func @accesses_of_a_known_page_read_no_table(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK-SAME:      %[[PAGE:[^:]*]]: index)
// CHECK-NOT:     memref.load
// CHECK:         arith.muli %[[PAGE]], %[[PAGE_STRIDE]] overflow<nsw, nuw> : index
// CHECK-NOT:     memref.load
// CHECK:         vector.load
// CHECK-NOT:     memref.load
// CHECK:         vector.store
// CHECK-NOT:     memref.load
// CHECK:         return
func.func @accesses_of_a_known_page_read_no_table(%k: !cache, %b: index, %h: index, %t: index, %page: index)
    -> memref<16x128xbf16, strided<[1024, 1], offset: ?>> {
  %v = kvcache.load %k[%b, %h, %t, %h] page %page : !cache -> vector<8xbf16>
  kvcache.store %v, %k[%b, %h, %t, %t] page %page : vector<8xbf16>, !cache
  %m = kvcache.block_tile %k[%b, %h, %t, %h] page %page
      : !cache -> memref<16x128xbf16, strided<[1024, 1], offset: ?>>
  return %m : memref<16x128xbf16, strided<[1024, 1], offset: ?>>
}

// CHECK-LABEL: func.func @scalars_have_their_own_alignment(
// CHECK-SAME:      %[[VALUE:[^:]*]]: bf16)
// CHECK:         %[[LOADED:.*]] = memref.load %[[WINDOW:.*]][%[[ELEMENT:.*]]] : memref<?xbf16, strided<[1], offset: ?>>
// CHECK:         memref.store %[[VALUE]], %[[WINDOW]][%[[ELEMENT]]] : memref<?xbf16, strided<[1], offset: ?>>
// CHECK:         return %[[LOADED]]
func.func @scalars_have_their_own_alignment(%k: !cache, %b: index, %h: index, %t: index, %d: index, %v: bf16)
    -> bf16 {
  %loaded = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  kvcache.store %v, %k[%b, %h, %t, %d] : bf16, !cache
  return %loaded : bf16
}

// CHECK-LABEL: func.func @block_tile_is_a_window_of_rows(
// CHECK-SAME:      %[[BLOCKS:[^:]*]]: memref<bf16, strided<[], offset: ?>>,
// CHECK:         %[[ENTRY:.*]] = memref.load
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[PAGE_OFFSET:.*]] = arith.muli %[[PAGE]], %{{.*}} overflow<nsw, nuw> : index
// CHECK:         %[[ELEMENT:.*]] = arith.addi %[[PAGE_OFFSET]], %{{.*}} overflow<nsw, nuw> : index
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         %[[START:.*]] = arith.addi %[[OFFSET]], %[[ELEMENT]]
// CHECK:         %[[TILE:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[START]]], sizes: [16, 64], strides: [1024, 1] : memref<bf16> to memref<16x64xbf16, strided<[1024, 1], offset: ?>>
// CHECK:         return %[[TILE]]
func.func @block_tile_is_a_window_of_rows(%k: !cache, %b: index, %h: index, %t: index, %d: index)
    -> memref<16x64xbf16, strided<[1024, 1], offset: ?>> {
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> memref<16x64xbf16, strided<[1024, 1], offset: ?>>
  return %m : memref<16x64xbf16, strided<[1024, 1], offset: ?>>
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.continuous<bf16, #kv>

// A block of a continuous cache may hold more than 2^31 elements.

// CHECK-LABEL: func.func @load_of_a_continuous_cache_is_64_bit(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index)
// CHECK-NOT:     index to i32
// CHECK-DAG:     %[[HE:.*]] = arith.constant 1024 : index
// CHECK-DAG:     %[[E:.*]] = arith.constant 128 : index
// CHECK-DAG:     %[[ROW_OFFSET:.*]] = arith.muli %[[T]], %[[HE]] overflow<nsw, nuw> : index
// CHECK-DAG:     %[[HEAD_OFFSET:.*]] = arith.muli %[[H]], %[[E]] overflow<nsw, nuw> : index
// CHECK:         %[[ROW_AND_HEAD:.*]] = arith.addi %[[ROW_OFFSET]], %[[HEAD_OFFSET]]
// CHECK:         %[[IN_BLOCK:.*]] = arith.addi %[[ROW_AND_HEAD]], %[[D]]
// CHECK:         %[[ENTRY:.*]] = memref.load %{{.*}}[%[[B]]]
// CHECK:         %[[BLOCK:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[BLOCK_OFFSET:.*]] = arith.muli %[[BLOCK]], %[[PAGE_STRIDE]]
// CHECK:         arith.addi %[[BLOCK_OFFSET]], %[[IN_BLOCK]]
// CHECK:         vector.load
// CHECK-NOT:     index to i32
// CHECK:         return
func.func @load_of_a_continuous_cache_is_64_bit(%k: !cache, %b: index, %h: index, %t: index, %d: index)
    -> vector<8xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// CHECK-LABEL: func.func @other_accesses_of_a_continuous_cache(
// CHECK:         vector.store %{{.*}} {alignment = 8 : i64} : memref<?xbf16, strided<[1], offset: ?>>, vector<4xbf16>
// CHECK:         memref.reinterpret_cast %{{.*}}, sizes: [5, 128], strides: [1024, 1]
func.func @other_accesses_of_a_continuous_cache(%v: vector<4xbf16>, %k: !cache, %b: index, %h: index, %t: index,
                                                %d: index) -> memref<5x128xbf16, strided<[1024, 1], offset: ?>> {
  kvcache.store %v, %k[%b, %h, %t, %d] : vector<4xbf16>, !cache
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> memref<5x128xbf16, strided<[1024, 1], offset: ?>>
  return %m : memref<5x128xbf16, strided<[1024, 1], offset: ?>>
}

// -----

// Other page sizes divide, also those that aren't powers of two.

#kv = #kvcache.params<num_heads = 2, head_size = 80>
!cache48 = !kvcache.paged<f32, #kv, page_size = 48>
!cache3 = !kvcache.paged<f32, #kv, page_size = 3>
!cache1 = !kvcache.paged<f32, #kv, page_size = 1>

// CHECK-LABEL: func.func @load_with_pages_of_48(
// CHECK-DAG:     %[[P:.*]] = arith.constant 48 : i32
// CHECK-DAG:     %[[ROW:.*]] = arith.remui %[[T:.*]], %[[P]] : i32
// CHECK-DAG:     %[[HE:.*]] = arith.constant 160 : i32
// CHECK-DAG:     arith.muli %[[ROW]], %[[HE]] overflow<nsw, nuw> : i32
// CHECK:         arith.divui %[[T]], %[[P]] : i32
func.func @load_with_pages_of_48(%k: !cache48, %b: index) -> f32 {
  %v = kvcache.load %k[%b, %b, %b, %b] : !cache48 -> f32
  return %v : f32
}

// CHECK-LABEL: func.func @load_with_pages_of_3(
// CHECK:         %[[P:.*]] = arith.constant 3 : i32
// CHECK:         arith.remui %[[T:.*]], %[[P]] : i32
// CHECK:         arith.divui %[[T]], %[[P]] : i32
func.func @load_with_pages_of_3(%k: !cache3, %b: index) -> f32 {
  %v = kvcache.load %k[%b, %b, %b, %b] : !cache3 -> f32
  return %v : f32
}

// CHECK-LABEL: func.func @load_with_pages_of_1(
// CHECK-NOT:     arith.divui
// CHECK:         memref.load
// CHECK:         memref.load
func.func @load_with_pages_of_1(%k: !cache1, %b: index) -> f32 {
  %v = kvcache.load %k[%b, %b, %b, %b] : !cache1 -> f32
  return %v : f32
}

// -----

// A load converts: up and down in one step, between types of one width by f32.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!bf16_cache = !kvcache.paged<bf16, #kv, page_size = 64>
!e4m3_cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>

// CHECK-LABEL: func.func @load_extends(
// CHECK:         %[[LOADED:.*]] = vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[LOADED]] : vector<8xbf16> to vector<8xf32>
// CHECK:         return %[[WIDE]]
func.func @load_extends(%k: !bf16_cache, %b: index) -> vector<8xf32> {
  %v = kvcache.load %k[%b, %b, %b, %b] : !bf16_cache -> vector<8xf32>
  return %v : vector<8xf32>
}

// CHECK-LABEL: func.func @load_truncates(
// CHECK:         %[[LOADED:.*]] = memref.load %{{.*}} : memref<?xbf16,
// CHECK:         %[[NARROW:.*]] = arith.truncf %[[LOADED]] : bf16 to f8E5M2
// CHECK:         return %[[NARROW]]
func.func @load_truncates(%k: !bf16_cache, %b: index) -> f8E5M2 {
  %v = kvcache.load %k[%b, %b, %b, %b] : !bf16_cache -> f8E5M2
  return %v : f8E5M2
}

// CHECK-LABEL: func.func @load_converts_between_16_bit_types_by_f32(
// CHECK:         %[[LOADED:.*]] = vector.load
// CHECK:         %[[WIDE:.*]] = arith.extf %[[LOADED]] : vector<4xbf16> to vector<4xf32>
// CHECK:         %[[RESULT:.*]] = arith.truncf %[[WIDE]] : vector<4xf32> to vector<4xf16>
// CHECK:         return %[[RESULT]]
func.func @load_converts_between_16_bit_types_by_f32(%k: !bf16_cache, %b: index) -> vector<4xf16> {
  %v = kvcache.load %k[%b, %b, %b, %b] : !bf16_cache -> vector<4xf16>
  return %v : vector<4xf16>
}

// CHECK-LABEL: func.func @load_converts_between_8_bit_types_by_f32(
// CHECK:         %[[WIDE:.*]] = arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK:         arith.truncf %[[WIDE]] : f32 to f8E5M2
func.func @load_converts_between_8_bit_types_by_f32(%k: !e4m3_cache, %b: index) -> f8E5M2 {
  %v = kvcache.load %k[%b, %b, %b, %b] : !e4m3_cache -> f8E5M2
  return %v : f8E5M2
}

// The width of the access, not of the result, is what is aligned.

// CHECK-LABEL: func.func @converting_load_is_aligned_to_what_is_stored(
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<4xf8E4M3FN>
// CHECK:         arith.extf {{.*}} : vector<4xf8E4M3FN> to vector<4xf32>
func.func @converting_load_is_aligned_to_what_is_stored(%k: !e4m3_cache, %b: index) -> vector<4xf32> {
  %v = kvcache.load %k[%b, %b, %b, %b] : !e4m3_cache -> vector<4xf32>
  return %v : vector<4xf32>
}

// -----

// Alignment: the largest power of two that divides the bytes of the access, of
// a head and of a row, and is at most that of the blocks, 16.

#bf16_heads_of_128 = #kvcache.params<num_heads = 8, head_size = 128>
!bf16_heads_of_128 = !kvcache.paged<bf16, #bf16_heads_of_128, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_bf16_heads_of_128(
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<6xbf16>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<6xbf16>
func.func @alignment_of_bf16_heads_of_128(%k: !bf16_heads_of_128, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<1xbf16>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xbf16>, !bf16_heads_of_128
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<2xbf16>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xbf16>, !bf16_heads_of_128
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<4xbf16>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xbf16>, !bf16_heads_of_128
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<8xbf16>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xbf16>, !bf16_heads_of_128
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<16xbf16>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xbf16>, !bf16_heads_of_128
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<32xbf16>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xbf16>, !bf16_heads_of_128
  %v3 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<3xbf16>
  kvcache.store %v3, %k[%b, %b, %b, %d] : vector<3xbf16>, !bf16_heads_of_128
  %v6 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<6xbf16>
  kvcache.store %v6, %k[%b, %b, %b, %d] : vector<6xbf16>, !bf16_heads_of_128
  return
}

#f32_heads_of_128 = #kvcache.params<num_heads = 8, head_size = 128>
!f32_heads_of_128 = !kvcache.paged<f32, #f32_heads_of_128, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f32_heads_of_128(
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf32>
func.func @alignment_of_f32_heads_of_128(%k: !f32_heads_of_128, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<1xf32>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf32>, !f32_heads_of_128
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<2xf32>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf32>, !f32_heads_of_128
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<4xf32>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf32>, !f32_heads_of_128
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<8xf32>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf32>, !f32_heads_of_128
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<16xf32>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf32>, !f32_heads_of_128
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<32xf32>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xf32>, !f32_heads_of_128
  return
}

#f8_heads_of_128 = #kvcache.params<num_heads = 8, head_size = 128>
!f8_heads_of_128 = !kvcache.paged<f8E4M3FN, #f8_heads_of_128, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f8_heads_of_128(
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<4xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<4xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf8E4M3FN>
func.func @alignment_of_f8_heads_of_128(%k: !f8_heads_of_128, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<1xf8E4M3FN>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf8E4M3FN>, !f8_heads_of_128
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<2xf8E4M3FN>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf8E4M3FN>, !f8_heads_of_128
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<4xf8E4M3FN>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf8E4M3FN>, !f8_heads_of_128
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<8xf8E4M3FN>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf8E4M3FN>, !f8_heads_of_128
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<16xf8E4M3FN>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf8E4M3FN>, !f8_heads_of_128
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<32xf8E4M3FN>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xf8E4M3FN>, !f8_heads_of_128
  return
}

#bf16_heads_of_80 = #kvcache.params<num_heads = 8, head_size = 80>
!bf16_heads_of_80 = !kvcache.paged<bf16, #bf16_heads_of_80, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_bf16_heads_of_80(
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<80xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<80xbf16>
func.func @alignment_of_bf16_heads_of_80(%k: !bf16_heads_of_80, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<1xbf16>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xbf16>, !bf16_heads_of_80
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<2xbf16>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xbf16>, !bf16_heads_of_80
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<4xbf16>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xbf16>, !bf16_heads_of_80
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<8xbf16>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xbf16>, !bf16_heads_of_80
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<16xbf16>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xbf16>, !bf16_heads_of_80
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<32xbf16>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xbf16>, !bf16_heads_of_80
  %v80 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<80xbf16>
  kvcache.store %v80, %k[%b, %b, %b, %d] : vector<80xbf16>, !bf16_heads_of_80
  return
}

#bf16_heads_of_3 = #kvcache.params<num_heads = 8, head_size = 3>
!bf16_heads_of_3 = !kvcache.paged<bf16, #bf16_heads_of_3, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_bf16_heads_of_3(
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
func.func @alignment_of_bf16_heads_of_3(%k: !bf16_heads_of_3, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_3 -> vector<1xbf16>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xbf16>, !bf16_heads_of_3
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_3 -> vector<2xbf16>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xbf16>, !bf16_heads_of_3
  %v3 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_3 -> vector<3xbf16>
  kvcache.store %v3, %k[%b, %b, %b, %d] : vector<3xbf16>, !bf16_heads_of_3
  return
}

#f8_heads_of_3 = #kvcache.params<num_heads = 5, head_size = 3>
!f8_heads_of_3 = !kvcache.paged<f8E5M2, #f8_heads_of_3, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f8_heads_of_3(
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E5M2>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E5M2>
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<2xf8E5M2>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<2xf8E5M2>
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<3xf8E5M2>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<3xf8E5M2>
func.func @alignment_of_f8_heads_of_3(%k: !f8_heads_of_3, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_3 -> vector<1xf8E5M2>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf8E5M2>, !f8_heads_of_3
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_3 -> vector<2xf8E5M2>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf8E5M2>, !f8_heads_of_3
  %v3 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_3 -> vector<3xf8E5M2>
  kvcache.store %v3, %k[%b, %b, %b, %d] : vector<3xf8E5M2>, !f8_heads_of_3
  return
}

#f32_heads_of_20 = #kvcache.params<num_heads = 1, head_size = 20>
!f32_heads_of_20 = !kvcache.paged<f32, #f32_heads_of_20, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f32_heads_of_20(
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<20xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<20xf32>
func.func @alignment_of_f32_heads_of_20(%k: !f32_heads_of_20, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<1xf32>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf32>, !f32_heads_of_20
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<2xf32>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf32>, !f32_heads_of_20
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<4xf32>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf32>, !f32_heads_of_20
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<8xf32>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf32>, !f32_heads_of_20
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<16xf32>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf32>, !f32_heads_of_20
  %v20 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<20xf32>
  kvcache.store %v20, %k[%b, %b, %b, %d] : vector<20xf32>, !f32_heads_of_20
  return
}

#f16_heads_of_36 = #kvcache.params<num_heads = 3, head_size = 36>
!f16_heads_of_36 = !kvcache.paged<f16, #f16_heads_of_36, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f16_heads_of_36(
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<16xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<16xf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<36xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<36xf16>
func.func @alignment_of_f16_heads_of_36(%k: !f16_heads_of_36, %b: index, %d: index) {
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<4xf16>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf16>, !f16_heads_of_36
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<8xf16>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf16>, !f16_heads_of_36
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<16xf16>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf16>, !f16_heads_of_36
  %v36 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<36xf16>
  kvcache.store %v36, %k[%b, %b, %b, %d] : vector<36xf16>, !f16_heads_of_36
  return
}

// -----

// In GPU code for a chip with 32-byte accesses pages are aligned to 32, where
// their distances are known to be.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#narrow = #kvcache.params<num_heads = 8, head_size = 24>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!narrow = !kvcache.paged<bf16, #narrow, page_size = 64>
!blocks = memref<?x2x?x64x8x128xbf16>
!odd_offset = memref<?x2x?x64x8x128xbf16, strided<[262144, 131072, 65536, 1024, 128, 1], offset: 8>>
!odd_layers = memref<?x2x?x64x8x128xbf16, strided<[262160, 131080, 65544, 1024, 128, 1]>>
!one_layer = memref<?x2x1x64x8x128xbf16, strided<[131072, 65536, 8, 1024, 128, 1]>>
!open = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1]>>
!lengths = memref<?xi32>
!lut = memref<?x?xi32>

// CHECK-LABEL: gpu.func @wide_accesses(
// CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.store {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
gpu.module @sm_100a [#nvvm.target<chip = "sm_100a">] {
  gpu.func @wide_accesses(%blocks: !blocks, %lengths: !lengths, %lut: !lut,
                          %n: !narrow, %b: index, %out: memref<32xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !blocks, !lengths, !lut -> !collection
    %k = kvcache.paged_view value %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    kvcache.store %v, %k[%b, %b, %b, %b] : vector<16xbf16>, !cache
    %w = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<32xbf16>
    %x = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<8xbf16>
    %y = kvcache.load %n[%b, %b, %b, %b] : !narrow -> vector<16xbf16>
    vector.store %w, %out[%b] : memref<32xbf16>, vector<32xbf16>
    vector.store %x, %out[%b] : memref<32xbf16>, vector<8xbf16>
    vector.store %y, %out[%b] : memref<32xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @odd_offset(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @odd_offset(%blocks: !odd_offset, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !odd_offset, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @odd_layers(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @odd_layers(%blocks: !odd_layers, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !odd_layers, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @no_second_layer(
  // CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @no_second_layer(%blocks: !one_layer, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !one_layer, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @open(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @open(%blocks: !open, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !open, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @cast(
  // CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @cast(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %cast = memref.cast %blocks : !blocks to !open
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %cast, %lengths, %lut, %max, %max : !open, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @of_another_function(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @of_another_function(%k: !cache, %b: index, %out: memref<16xbf16>) kernel {
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }
}

// CHECK-LABEL: gpu.func @narrow_chip(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
gpu.module @sm_90a [#nvvm.target<chip = "sm_90a">] {
  gpu.func @narrow_chip(%k: !cache, %b: index, %out: memref<16xbf16>) kernel {
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }
}

// With several targets the module's code must run on all of them.

// CHECK-LABEL: gpu.func @several_chips(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
gpu.module @several [#nvvm.target<chip = "sm_100a">, #nvvm.target<chip = "sm_90a">] {
  gpu.func @several_chips(%k: !cache, %b: index, %out: memref<16xbf16>) kernel {
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }
}

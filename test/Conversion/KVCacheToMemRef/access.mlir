// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Inside a page 32 bits suffice; where the page id is multiplied by the page distance they
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

!cache = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

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

// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

// One wide read from the table, a row for each entry; then what a dynamic
// get_row needs: where the first entry is, and the distance between pages.

// CHECK-LABEL: func.func @populate_reads_several_entries_at_once(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[LUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[LUT_STRIDE:[^:]*]]: i32,
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[BASE:[^:]*]]: index) -> (index, index, memref<i32, strided<[], offset: ?>>, index)
// CHECK:         %[[STRIDE:.*]] = arith.index_castui %[[LUT_STRIDE]] : i32 to index
// CHECK:         %[[LUT_BASE:.*]], %[[LUT_OFFSET:.*]] = memref.extract_strided_metadata %[[LUT]]
// CHECK:         %[[TABLE:.*]] = memref.reinterpret_cast %[[LUT_BASE]] to offset: [%[[LUT_OFFSET]]]
// CHECK:         %[[BASE32:.*]] = arith.index_castui %[[BASE]] : index to i32
// CHECK:         %[[COLUMN32:.*]] = arith.divui %[[BASE32]], %{{.*}} : i32
// CHECK:         %[[COLUMN:.*]] = arith.index_castui %[[COLUMN32]] : i32 to index
// CHECK:         %[[TABLE_ROW:.*]] = arith.muli %[[B]], %[[STRIDE]]
// CHECK:         %[[FIRST:.*]] = arith.addi %[[TABLE_ROW]], %[[COLUMN]]
// CHECK:         %[[S:.*]] = arith.divui %[[PAGE_STRIDE]], %{{.*}} : index
// CHECK:         %[[ENTRIES:.*]] = vector.load %[[TABLE]][%[[FIRST]]] {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<2xi32>
// CHECK:         %[[ENTRY0:.*]] = vector.extract %[[ENTRIES]][0] : i32 from vector<2xi32>
// CHECK:         %[[PAGE0:.*]] = arith.index_castui %[[ENTRY0]] : i32 to index
// CHECK:         %[[ROW0:.*]] = arith.muli %[[PAGE0]], %[[S]] overflow<nsw, nuw> : index
// CHECK:         %[[ENTRY1:.*]] = vector.extract %[[ENTRIES]][1] : i32 from vector<2xi32>
// CHECK:         %[[PAGE1:.*]] = arith.index_castui %[[ENTRY1]] : i32 to index
// CHECK:         %[[ROW1:.*]] = arith.muli %[[PAGE1]], %[[S]] overflow<nsw, nuw> : index
// CHECK:         %[[MOVED:.*]] = arith.addi %[[LUT_OFFSET]], %[[FIRST]]
// CHECK:         %[[ENTRY_PTR:.*]] = memref.reinterpret_cast %[[LUT_BASE]] to offset: [%[[MOVED]]], sizes: [], strides: []
// CHECK:         return %[[ROW0]], %[[ROW1]], %[[ENTRY_PTR]], %[[S]]
func.func @populate_reads_several_entries_at_once(%k: !cache, %b: index, %base: index) -> !rows {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !rows
  return %rows : !rows
}

// CHECK-LABEL: func.func @constant_offset_takes_the_entry_read(
// CHECK-SAME:      %[[ROW0:[^:]*]]: index, %[[ROW1:[^:]*]]: index,
// CHECK-NOT:     memref.load
// CHECK:         %[[ROW63:.*]] = arith.addi %[[ROW0]], %{{.*}} overflow<nsw, nuw> : index
// CHECK:         %[[ROW127:.*]] = arith.addi %[[ROW1]], %{{.*}} overflow<nsw, nuw> : index
// CHECK:         return %[[ROW0]], %[[ROW63]], %[[ROW1]], %[[ROW127]]
func.func @constant_offset_takes_the_entry_read(%rows: !rows) -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %c127 = arith.constant 127 : index
  %r0 = kvcache.get_row %rows[%c0] : !rows
  %r63 = kvcache.get_row %rows[%c63] : !rows
  %r64 = kvcache.get_row %rows[%c64] : !rows
  %r127 = kvcache.get_row %rows[%c127] : !rows
  return %r0, %r63, %r64, %r127 : index, index, index, index
}

// CHECK-LABEL: func.func @dynamic_offset_reads_the_table_again(
// CHECK-SAME:      %{{[^:]*}}: index, %{{[^:]*}}: index, %[[ENTRY_PTR:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[S:[^:]*]]: index, %[[O:[^:]*]]: index)
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[P:.*]] = arith.constant 64 : i32
// CHECK-DAG:     %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[ENTRY_PTR]]
// CHECK-DAG:     %[[TABLE:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[TWO]]], strides: [1]
// CHECK-DAG:     %[[O32:.*]] = arith.index_castui %[[O]] : index to i32
// CHECK-DAG:     %[[COLUMN32:.*]] = arith.divui %[[O32]], %[[P]] : i32
// CHECK-DAG:     %[[COLUMN:.*]] = arith.index_castui %[[COLUMN32]] : i32 to index
// CHECK:         %[[ENTRY:.*]] = memref.load %[[TABLE]][%[[COLUMN]]]
// CHECK-DAG:     %[[IN_PAGE32:.*]] = arith.remui %[[O32]], %[[P]] : i32
// CHECK-DAG:     %[[IN_PAGE:.*]] = arith.index_castui %[[IN_PAGE32]] : i32 to index
// CHECK-DAG:     %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[PAGE]], %[[S]]
// CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[IN_PAGE]]
// CHECK:         return %[[ROW]]
func.func @dynamic_offset_reads_the_table_again(%rows: !rows, %o: index) -> index {
  %r = kvcache.get_row %rows[%o] : !rows
  return %r : index
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!page = !kvcache.row_indices<rows = 64, page_size = 64>
!part = !kvcache.row_indices<rows = 16, page_size = 64>

// One page whose first row the base is: no row in the page.

// CHECK-LABEL: func.func @populate_of_a_whole_page(
// CHECK:         %[[ENTRY:.*]] = memref.load
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK-NOT:     arith.remui
// CHECK:         %[[ROW:.*]] = arith.muli %[[PAGE]], %{{.*}} : index
// CHECK:         return
func.func @populate_of_a_whole_page(%k: !cache, %b: index, %base: index) -> !page {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !page
  return %rows : !page
}

// CHECK-LABEL: func.func @populate_inside_a_page(
// CHECK:         %[[IN_PAGE32:.*]] = arith.remui
// CHECK:         %[[IN_PAGE:.*]] = arith.index_castui %[[IN_PAGE32]] : i32 to index
// CHECK:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[IN_PAGE]]
// CHECK:         return %[[ROW]] : index
func.func @populate_inside_a_page(%k: !cache, %b: index, %base: index) -> !part {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !part
  return %rows : !part
}

// A base that starts a page says so.

// CHECK-LABEL: func.func @populate_at_the_start_of_a_page(
// CHECK-NOT:     arith.remui
// CHECK:         return
func.func @populate_at_the_start_of_a_page(%k: !cache, %b: index, %base: index) -> !part {
  %rows = kvcache.populate %k[%b, %base] {base_alignment = 128} : !cache -> !part
  return %rows : !part
}

// CHECK-LABEL: func.func @get_row_of_one_page_adds(
// CHECK-SAME:      %[[ROW:[^:]*]]: index, %[[O:[^:]*]]: index) -> index
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %[[ROW]], %[[O]] overflow<nsw, nuw> : index
// CHECK-NEXT:    return %[[SUM]]
func.func @get_row_of_one_page_adds(%rows: !part, %o: index) -> index {
  %r = kvcache.get_row %rows[%o] : !part
  return %r : index
}

// -----

!cache = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>
!rows = !kvcache.row_indices<rows = 100>

// CHECK-LABEL: func.func @populate_of_a_continuous_cache_is_its_row_index(
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[BASE:[^:]*]]: index, %[[O:[^:]*]]: index) -> index
// CHECK:         memref.load %{{.*}}[%[[B]]]
// CHECK:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[BASE]]
// CHECK:         arith.addi %[[ROW]], %[[O]]
func.func @populate_of_a_continuous_cache_is_its_row_index(%k: !cache, %b: index, %base: index, %o: index) -> index {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !rows
  %r = kvcache.get_row %rows[%o] : !rows
  return %r : index
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 48>
!rows = !kvcache.row_indices<rows = 144, page_size = 48>

// Three pages can't be read by twos.

// CHECK-LABEL: func.func @pages_of_48_are_read_one_by_one(
// CHECK-COUNT-3: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<1xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @pages_of_48_are_read_one_by_one(%k: !cache, %b: index, %base: index) -> !rows {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !rows
  return %rows : !rows
}

// -----

// Entries per read: min(lowpow2(pages), lowpow2(base alignment / P), 8). On the
// CPU a table is aligned to its entries.

#kv = #kvcache.params<num_heads = 8, head_size = 128>

!cache1 = !kvcache.paged<bf16, #kv, page_size = 1>
!cache3 = !kvcache.paged<bf16, #kv, page_size = 3>
!cache16 = !kvcache.paged<bf16, #kv, page_size = 16>

// CHECK-LABEL: func.func @rows_192_of_pages_16(
// CHECK-COUNT-3: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<4xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_192_of_pages_16(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 192, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] : !cache16 -> !kvcache.row_indices<rows = 192, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 192, page_size = 16>
}

// CHECK-LABEL: func.func @rows_256_of_pages_16(
// CHECK-COUNT-2: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<8xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_256_of_pages_16(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 256, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] : !cache16 -> !kvcache.row_indices<rows = 256, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 256, page_size = 16>
}

// CHECK-LABEL: func.func @rows_128_of_pages_16(
// CHECK-COUNT-1: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<8xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_128_of_pages_16(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 128, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] : !cache16 -> !kvcache.row_indices<rows = 128, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 128, page_size = 16>
}

// CHECK-LABEL: func.func @rows_128_of_pages_16_aligned_16(
// CHECK-COUNT-8: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<1xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_128_of_pages_16_aligned_16(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 128, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] {base_alignment = 16} : !cache16 -> !kvcache.row_indices<rows = 128, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 128, page_size = 16>
}

// CHECK-LABEL: func.func @rows_128_of_pages_16_aligned_32(
// CHECK-COUNT-4: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<2xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_128_of_pages_16_aligned_32(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 128, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] {base_alignment = 32} : !cache16 -> !kvcache.row_indices<rows = 128, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 128, page_size = 16>
}

// CHECK-LABEL: func.func @rows_64_of_pages_16(
// CHECK-COUNT-1: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<4xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_64_of_pages_16(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 64, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] : !cache16 -> !kvcache.row_indices<rows = 64, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 64, page_size = 16>
}

// CHECK-LABEL: func.func @rows_96_of_pages_16(
// CHECK-COUNT-3: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<2xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_96_of_pages_16(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 96, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] : !cache16 -> !kvcache.row_indices<rows = 96, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 96, page_size = 16>
}

// CHECK-LABEL: func.func @rows_512_of_pages_16(
// CHECK-COUNT-4: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<8xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_512_of_pages_16(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 512, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] : !cache16 -> !kvcache.row_indices<rows = 512, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 512, page_size = 16>
}

// CHECK-LABEL: func.func @rows_512_of_pages_16_aligned_48(
// CHECK-COUNT-32: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<1xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_512_of_pages_16_aligned_48(%k: !cache16, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 512, page_size = 16> {
  %rows = kvcache.populate %k[%b, %base] {base_alignment = 48} : !cache16 -> !kvcache.row_indices<rows = 512, page_size = 16>
  return %rows : !kvcache.row_indices<rows = 512, page_size = 16>
}

// CHECK-LABEL: func.func @rows_3_of_pages_1(
// CHECK-COUNT-3: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<1xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_3_of_pages_1(%k: !cache1, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 3, page_size = 1> {
  %rows = kvcache.populate %k[%b, %base] : !cache1 -> !kvcache.row_indices<rows = 3, page_size = 1>
  return %rows : !kvcache.row_indices<rows = 3, page_size = 1>
}

// CHECK-LABEL: func.func @rows_8_of_pages_1_aligned_8(
// CHECK-COUNT-1: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<8xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_8_of_pages_1_aligned_8(%k: !cache1, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 8, page_size = 1> {
  %rows = kvcache.populate %k[%b, %base] {base_alignment = 8} : !cache1 -> !kvcache.row_indices<rows = 8, page_size = 1>
  return %rows : !kvcache.row_indices<rows = 8, page_size = 1>
}

// CHECK-LABEL: func.func @rows_12_of_pages_3(
// CHECK-COUNT-1: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<4xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_12_of_pages_3(%k: !cache3, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 12, page_size = 3> {
  %rows = kvcache.populate %k[%b, %base] : !cache3 -> !kvcache.row_indices<rows = 12, page_size = 3>
  return %rows : !kvcache.row_indices<rows = 12, page_size = 3>
}

// CHECK-LABEL: func.func @rows_12_of_pages_3_aligned_6(
// CHECK-COUNT-2: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<2xi32>
// CHECK-NOT:     vector.load
// CHECK:         return
func.func @rows_12_of_pages_3_aligned_6(%k: !cache3, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 12, page_size = 3> {
  %rows = kvcache.populate %k[%b, %base] {base_alignment = 6} : !cache3 -> !kvcache.row_indices<rows = 12, page_size = 3>
  return %rows : !kvcache.row_indices<rows = 12, page_size = 3>
}

// -----

// In GPU code each read is aligned to its own size, at most 16 bytes, or 32
// where the chip has such loads.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

gpu.module @sm_90a [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @sm_90a_rows_96_of_pages_16(
  // CHECK-COUNT-3: vector.load {{.*}} {alignment = 8 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<2xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_90a_rows_96_of_pages_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 96, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 96, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @sm_90a_rows_192_of_pages_16(
  // CHECK-COUNT-3: vector.load {{.*}} {alignment = 16 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<4xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_90a_rows_192_of_pages_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 192, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 192, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @sm_90a_rows_128_of_pages_16(
  // CHECK-COUNT-1: vector.load {{.*}} {alignment = 16 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<8xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_90a_rows_128_of_pages_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 128, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 128, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @sm_90a_rows_256_of_pages_16_aligned_16(
  // CHECK-COUNT-16: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<1xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_90a_rows_256_of_pages_16_aligned_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] {base_alignment = 16} : !cache -> !kvcache.row_indices<rows = 256, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 256, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
}

gpu.module @sm_100a [#nvvm.target<chip = "sm_100a">] {
  // CHECK-LABEL: gpu.func @sm_100a_rows_96_of_pages_16(
  // CHECK-COUNT-3: vector.load {{.*}} {alignment = 8 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<2xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_100a_rows_96_of_pages_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 96, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 96, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @sm_100a_rows_192_of_pages_16(
  // CHECK-COUNT-3: vector.load {{.*}} {alignment = 16 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<4xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_100a_rows_192_of_pages_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 192, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 192, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @sm_100a_rows_128_of_pages_16(
  // CHECK-COUNT-1: vector.load {{.*}} {alignment = 32 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<8xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_100a_rows_128_of_pages_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 128, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 128, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @sm_100a_rows_256_of_pages_16_aligned_16(
  // CHECK-COUNT-16: vector.load {{.*}} {alignment = 4 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<1xi32>
  // CHECK-NOT:     vector.load
  // CHECK:         gpu.return
  gpu.func @sm_100a_rows_256_of_pages_16_aligned_16(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %rows = kvcache.populate %k[%b, %base] {base_alignment = 16} : !cache -> !kvcache.row_indices<rows = 256, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 256, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.return
  }
}

// A launch is GPU code, too.

// CHECK-LABEL: func.func @populate_in_a_launch(
// CHECK:         gpu.launch
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : memref<?xi32, strided<[1], offset: ?>>, vector<4xi32>
func.func @populate_in_a_launch(%k: !cache, %b: index, %base: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 64, page_size = 16>
    %r = kvcache.get_row %rows[%c0] : !kvcache.row_indices<rows = 64, page_size = 16>
    memref.store %r, %out[%c0] : memref<?xindex>
    gpu.terminator
  }
  return
}

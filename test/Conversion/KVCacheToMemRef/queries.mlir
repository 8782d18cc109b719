// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Lengths, maxima and table entries are unsigned.

// CHECK-LABEL: func.func @cache_length_reads_an_unsigned_entry(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %[[LENGTHS:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %{{[^:]*}}: memref
// CHECK-SAME:      %[[B:[^:]*]]: index)
// CHECK:         %[[SIZE:.*]] = arith.index_castui %[[BATCH]] : i32 to index
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[LENGTHS]]
// CHECK:         %[[WINDOW:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[SIZE]]], strides: [1]
// CHECK:         %[[LENGTH:.*]] = memref.load %[[WINDOW]][%[[B]]]
// CHECK:         %[[RESULT:.*]] = arith.index_castui %[[LENGTH]] : i32 to index
// CHECK:         return %[[RESULT]]
func.func @cache_length_reads_an_unsigned_entry(%k: !cache, %b: index) -> index {
  %n = kvcache.cache_length %k[%b] : !cache
  return %n : index
}

// CHECK-LABEL: func.func @facts_are_parts(
// CHECK-SAME:      %[[MAX_SEQ:[^:]*]]: i32, %[[MAX_CACHE:[^:]*]]: i32) -> (i1, index, index)
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[EMPTY:.*]] = arith.cmpi eq, %[[MAX_CACHE]], %[[ZERO]] : i32
// CHECK-DAG:     %[[PROMPT:.*]] = arith.index_castui %[[MAX_SEQ]] : i32 to index
// CHECK-DAG:     %[[CONTEXT:.*]] = arith.index_castui %[[MAX_CACHE]] : i32 to index
// CHECK:         return %[[EMPTY]], %[[PROMPT]], %[[CONTEXT]]
func.func @facts_are_parts(%k: !cache) -> (i1, index, index) {
  %empty = kvcache.empty_cache %k : !cache
  %prompt = kvcache.max_prompt_length %k : !cache
  %context = kvcache.max_context_length %k : !cache
  return %empty, %prompt, %context : i1, index, index
}

// (NB - 1) * S + P, with S the page distance in rows of 8 * 128 elements.

// CHECK-LABEL: func.func @num_kv_rows_counts_rows_between_pages(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %[[PAGES:[^:]*]]: i32, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK-DAG:     %[[P:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[ROW:.*]] = arith.constant 1024 : index
// CHECK-DAG:     %[[NB:.*]] = arith.index_castui %[[PAGES]] : i32 to index
// CHECK-DAG:     %[[LAST:.*]] = arith.subi %[[NB]], %[[ONE]] : index
// CHECK-DAG:     %[[S:.*]] = arith.divui %[[PAGE_STRIDE]], %[[ROW]] : index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[LAST]], %[[S]]
// CHECK:         %[[ROWS:.*]] = arith.addi %[[FIRST]], %[[P]]
// CHECK:         return %[[ROWS]]
func.func @num_kv_rows_counts_rows_between_pages(%k: !cache) -> index {
  %r = kvcache.num_kv_rows %k : !cache
  return %r : index
}

// The table's index is 64-bit, the column in 32 bits.

// CHECK-LABEL: func.func @page_id_reads_the_table(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %[[LUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[LUT_STRIDE:[^:]*]]: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[T:[^:]*]]: index)
// CHECK:         %[[ROWS:.*]] = arith.index_castui %[[BATCH]] : i32 to index
// CHECK:         %[[STRIDE:.*]] = arith.index_castui %[[LUT_STRIDE]] : i32 to index
// CHECK:         %[[SIZE:.*]] = arith.muli %[[ROWS]], %[[STRIDE]]
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[LUT]]
// CHECK:         %[[TABLE:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[SIZE]]], strides: [1]
// CHECK:         %[[T32:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK:         %[[P:.*]] = arith.constant 64 : i32
// CHECK:         %[[COLUMN32:.*]] = arith.divui %[[T32]], %[[P]] : i32
// CHECK:         %[[COLUMN:.*]] = arith.index_castui %[[COLUMN32]] : i32 to index
// CHECK:         %[[ROW:.*]] = arith.muli %[[B]], %[[STRIDE]] overflow<nsw, nuw> : index
// CHECK:         %[[INDEX:.*]] = arith.addi %[[ROW]], %[[COLUMN]] overflow<nsw, nuw> : index
// CHECK:         %[[ENTRY:.*]] = memref.load %[[TABLE]][%[[INDEX]]]
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         return %[[PAGE]]
func.func @page_id_reads_the_table(%k: !cache, %b: index, %t: index) -> index {
  %p = kvcache.page_id %k[%b, %t] : !cache
  return %p : index
}

// CHECK-LABEL: func.func @row_index_is_page_and_row(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK-SAME:      %{{[^:]*}}: index, %[[T:[^:]*]]: index)
// CHECK:         %[[T32:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK:         %[[ENTRY:.*]] = memref.load
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[IN_PAGE32:.*]] = arith.remui %[[T32]], %{{.*}} : i32
// CHECK:         %[[IN_PAGE:.*]] = arith.index_castui %[[IN_PAGE32]] : i32 to index
// CHECK:         %[[S:.*]] = arith.divui %[[PAGE_STRIDE]], %{{.*}} : index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[PAGE]], %[[S]] overflow<nsw, nuw> : index
// CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[IN_PAGE]]
// CHECK:         return %[[ROW]]
func.func @row_index_is_page_and_row(%k: !cache, %b: index, %t: index) -> index {
  %r = kvcache.row_index %k[%b, %t] : !cache
  return %r : index
}

// CHECK-LABEL: func.func @row_index_of_a_known_page_reads_nothing(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index) -> index
// CHECK-NOT:     memref.load
// CHECK:         arith.muli %[[PAGE]], %{{.*}} : index
// CHECK-NOT:     memref.load
// CHECK:         return
func.func @row_index_of_a_known_page_reads_nothing(%k: !cache, %b: index, %t: index, %page: index) -> index {
  %r = kvcache.row_index %k[%b, %t] page %page : !cache
  return %r : index
}

// CHECK-LABEL: func.func @tma_coords_are_row_in_page_and_page(
// CHECK:         %[[IN_PAGE32:.*]] = arith.remui %{{.*}}, %{{.*}} : i32
// CHECK:         %[[IN_PAGE:.*]] = arith.index_castui %[[IN_PAGE32]] : i32 to index
// CHECK:         %[[ENTRY:.*]] = memref.load
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         return %[[IN_PAGE]], %[[PAGE]]
func.func @tma_coords_are_row_in_page_and_page(%k: !cache, %b: index, %t: index) -> (index, index) {
  %row, %page = kvcache.tma_coords %k[%b, %t] : !cache
  return %row, %page : index, index
}

// CHECK-LABEL: func.func @col_index_is_a_multiple_of_the_head_size(
// CHECK-SAME:      %[[H:[^:]*]]: index) -> index
// CHECK:         %[[E:.*]] = arith.constant 128 : index
// CHECK:         %[[COLUMN:.*]] = arith.muli %[[H]], %[[E]]
// CHECK:         return %[[COLUMN]]
func.func @col_index_is_a_multiple_of_the_head_size(%k: !cache, %h: index) -> index {
  %c = kvcache.col_index %k[%h] : !cache
  return %c : index
}

// CHECK-LABEL: func.func @extents_of_a_view(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %[[PAGES:[^:]*]]: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %[[COLUMNS:[^:]*]]: i32,
// CHECK-DAG:     %[[B:.*]] = arith.index_castui %[[BATCH]] : i32 to index
// CHECK-DAG:     %[[NB:.*]] = arith.index_castui %[[PAGES]] : i32 to index
// CHECK-DAG:     %[[C:.*]] = arith.index_castui %[[COLUMNS]] : i32 to index
// CHECK-DAG:     %[[P:.*]] = arith.constant 64 : index
// CHECK:         %[[TOKENS:.*]] = arith.muli %[[C]], %[[P]] overflow<nsw, nuw> : index
// CHECK:         return %[[B]], %[[NB]], %[[TOKENS]]
func.func @extents_of_a_view(%k: !cache) -> (index, index, index) {
  %batch = kvcache.extent batch %k : !cache
  %pages = kvcache.extent pages %k : !cache
  %tokens = kvcache.extent tokens %k : !cache
  return %batch, %pages, %tokens : index, index, index
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// CHECK-LABEL: func.func @queries_of_a_collection(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[LAYERS:[^:]*]]: i32, %{{[^:]*}}: index,
// CHECK-DAG:     arith.index_castui %[[LAYERS]] : i32 to index
// CHECK-DAG:     memref.load
func.func @queries_of_a_collection(%c: !collection, %b: index) -> (index, index) {
  %layers = kvcache.extent layers %c : !collection
  %n = kvcache.cache_length %c[%b] : !collection
  return %layers, %n : index, index
}

// -----

!cache48 = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 48>

// A negative id, which as unsigned would name a far page, stays as it is.

// CHECK-LABEL: func.func @tma_row_keeps_a_negative_id(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK-SAME:      %[[ENCODED:[^:]*]]: index) -> index
// CHECK-DAG:     %[[P:.*]] = arith.constant 48 : index
// CHECK-DAG:     %[[ROW_SIZE:.*]] = arith.constant 1024 : index
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[PAGE:.*]] = arith.divui %[[ENCODED]], %[[P]] : index
// CHECK-DAG:     %[[IN_PAGE:.*]] = arith.remui %[[ENCODED]], %[[P]] : index
// CHECK-DAG:     %[[S:.*]] = arith.divui %[[PAGE_STRIDE]], %[[ROW_SIZE]] : index
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[PAGE]], %[[S]]
// CHECK-DAG:     %[[ROW:.*]] = arith.addi %[[FIRST]], %[[IN_PAGE]]
// CHECK-DAG:     %[[NEGATIVE:.*]] = arith.cmpi slt, %[[ENCODED]], %[[ZERO]] : index
// CHECK:         %[[RESULT:.*]] = arith.select %[[NEGATIVE]], %[[ENCODED]], %[[ROW]] : index
// CHECK:         return %[[RESULT]]
func.func @tma_row_keeps_a_negative_id(%k: !cache48, %encoded: index) -> index {
  %r = kvcache.tma_row %k[%encoded] : !cache48
  return %r : index
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache3 = !kvcache.paged<bf16, #kv, page_size = 3>
!cache1 = !kvcache.paged<bf16, #kv, page_size = 1>

// CHECK-LABEL: func.func @row_index_with_pages_of_three(
// CHECK:         %[[P:.*]] = arith.constant 3 : i32
// CHECK:         arith.divui %{{.*}}, %[[P]] : i32
// CHECK:         arith.remui %{{.*}}, %[[P]] : i32
func.func @row_index_with_pages_of_three(%k: !cache3, %b: index, %t: index) -> index {
  %r = kvcache.row_index %k[%b, %t] : !cache3
  return %r : index
}

// A page of one token: the token is the column, and its row in the page is 0.

// CHECK-LABEL: func.func @row_index_with_pages_of_one(
// CHECK-SAME:      %{{[^:]*}}: index, %[[T:[^:]*]]: index)
// CHECK:         %[[T32:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK-NOT:     arith.divui %[[T32]]
// CHECK:         memref.load
// CHECK-NOT:     arith.remui
func.func @row_index_with_pages_of_one(%k: !cache1, %b: index, %t: index) -> index {
  %r = kvcache.row_index %k[%b, %t] : !cache1
  return %r : index
}

// -----

!cache = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

// A continuous cache looks its one block up; tokens may pass 32 bits of elements.

// CHECK-LABEL: func.func @row_index_of_a_continuous_cache(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index, %{{[^:]*}}: i32,
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[T:[^:]*]]: index)
// CHECK-NOT:     arith.remui
// CHECK:         %[[ENTRY:.*]] = memref.load %{{.*}}[%[[B]]]
// CHECK:         %[[BLOCK:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[S:.*]] = arith.divui %[[PAGE_STRIDE]], %{{.*}} : index
// CHECK:         %[[FIRST:.*]] = arith.muli %[[BLOCK]], %[[S]]
// CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[T]] overflow<nsw, nuw> : index
// CHECK:         return %[[ROW]]
func.func @row_index_of_a_continuous_cache(%k: !cache, %b: index, %t: index) -> index {
  %r = kvcache.row_index %k[%b, %t] : !cache
  return %r : index
}

// CHECK-LABEL: func.func @other_queries_of_a_continuous_cache(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %[[TOKENS:[^:]*]]: i32,
// CHECK-SAME:      %[[ENCODED:[^:]*]]: index) -> (index, index, index)
// CHECK:         %[[T:.*]] = arith.index_castui %[[TOKENS]] : i32 to index
// CHECK:         %[[ROWS:.*]] = arith.addi %{{.*}}, %[[T]]
// CHECK:         return %[[ENCODED]], %[[ROWS]], %[[T]]
func.func @other_queries_of_a_continuous_cache(%k: !cache, %encoded: index) -> (index, index, index) {
  %r = kvcache.tma_row %k[%encoded] : !cache
  %n = kvcache.num_kv_rows %k : !cache
  %t = kvcache.extent tokens %k : !cache
  return %r, %n, %t : index, index, index
}

// -----

!cache = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E4M3FN, granularity = 16>

// Two elements of 4 bits are one stored byte: a row is 8 * 64 of them.

// CHECK-LABEL: func.func @rows_of_a_4_bit_cache_are_bytes(
// CHECK-SAME:      %{{[^:]*}}: memref<i8, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index,
// CHECK:         %[[ROW:.*]] = arith.constant 512 : index
// CHECK:         arith.divui %[[PAGE_STRIDE]], %[[ROW]] : index
func.func @rows_of_a_4_bit_cache_are_bytes(%k: !cache, %b: index, %t: index) -> index {
  %r = kvcache.row_index %k[%b, %t] : !cache
  return %r : index
}

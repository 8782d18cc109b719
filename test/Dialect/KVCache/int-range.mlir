// RUN: kvcache-opt %s --int-range-optimizations | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 48>
!any_pages = !kvcache.paged<bf16, #kv, page_size = ?>
!cache = !kvcache.paged<bf16, #kv, page_size = 48>
!continuous = !kvcache.continuous<bf16, #kv>

// CHECK-LABEL: func.func @row_in_page_is_below_the_page_size(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]], %[[TRUE]] : i1, i1
func.func @row_in_page_is_below_the_page_size(%k: !cache, %b: index, %t: index) -> (i1, i1) {
  %page_size = arith.constant 48 : index
  %row, %page = kvcache.tma_coords %k[%b, %t] : !cache
  %unsigned = arith.cmpi ult, %row, %page_size : index
  %signed = arith.cmpi slt, %row, %page_size : index
  return %unsigned, %signed : i1, i1
}

// CHECK-LABEL: func.func @row_in_page_may_be_the_last(
// CHECK:         %[[RESULT:.*]] = arith.cmpi
// CHECK:         return %[[RESULT]] : i1
func.func @row_in_page_may_be_the_last(%k: !cache, %b: index, %t: index) -> i1 {
  %last = arith.constant 47 : index
  %row, %page = kvcache.tma_coords %k[%b, %t] : !cache
  %result = arith.cmpi ult, %row, %last : index
  return %result : i1
}

// CHECK-LABEL: func.func @table_entries_and_lengths_are_unsigned_32_bit_numbers(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]], %[[TRUE]], %[[TRUE]], %[[TRUE]], %[[TRUE]] : i1, i1, i1, i1, i1
func.func @table_entries_and_lengths_are_unsigned_32_bit_numbers(%k: !cache, %b: index, %t: index)
    -> (i1, i1, i1, i1, i1) {
  %bound = arith.constant 4294967296 : index
  %row, %page = kvcache.tma_coords %k[%b, %t] : !cache
  %0 = arith.cmpi slt, %page, %bound : index
  %id = kvcache.page_id %k[%b, %t] : !cache
  %1 = arith.cmpi ult, %id, %bound : index
  %length = kvcache.cache_length %k[%b] : !cache
  %2 = arith.cmpi slt, %length, %bound : index
  %prompt = kvcache.max_prompt_length %k : !cache
  %3 = arith.cmpi slt, %prompt, %bound : index
  %context = kvcache.max_context_length %k : !cache
  %4 = arith.cmpi slt, %context, %bound : index
  return %0, %1, %2, %3, %4 : i1, i1, i1, i1, i1
}

// Lengths of 2^31 and more are legal.
// CHECK-LABEL: func.func @lengths_may_pass_2_to_the_31(
// CHECK:         %[[LENGTH:.*]] = arith.cmpi
// CHECK:         %[[CONTEXT:.*]] = arith.cmpi
// CHECK:         %[[PAGE:.*]] = arith.cmpi
// CHECK:         return %[[LENGTH]], %[[CONTEXT]], %[[PAGE]]
func.func @lengths_may_pass_2_to_the_31(%k: !cache, %b: index, %t: index) -> (i1, i1, i1) {
  %largest = arith.constant 4294967295 : index
  %length = kvcache.cache_length %k[%b] : !cache
  %0 = arith.cmpi ult, %length, %largest : index
  %context = kvcache.max_context_length %k : !cache
  %1 = arith.cmpi ult, %context, %largest : index
  %page = kvcache.page_id %k[%b, %t] : !cache
  %2 = arith.cmpi ult, %page, %largest : index
  return %0, %1, %2 : i1, i1, i1
}

// CHECK-LABEL: func.func @sizes_and_rows_are_not_negative(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]], %[[TRUE]], %[[TRUE]], %[[TRUE]] : i1, i1, i1, i1
func.func @sizes_and_rows_are_not_negative(%c: !collection, %k: !cache, %v: !continuous, %b: index, %t: index)
    -> (i1, i1, i1, i1) {
  %zero = arith.constant 0 : index
  %row = kvcache.row_index %k[%b, %t] : !cache
  %0 = arith.cmpi sge, %row, %zero : index
  %of_block = kvcache.row_index %v[%b, %t] : !continuous
  %1 = arith.cmpi sge, %of_block, %zero : index
  %layers = kvcache.extent layers %c : !collection
  %2 = arith.cmpi sge, %layers, %zero : index
  %tokens = kvcache.extent tokens %k : !cache
  %3 = arith.cmpi sge, %tokens, %zero : index
  return %0, %1, %2, %3 : i1, i1, i1, i1
}

// Rows are 64-bit: a row of a large cache passes 2^32.
// CHECK-LABEL: func.func @rows_may_pass_32_bits(
// CHECK:         %[[RESULT:.*]] = arith.cmpi
// CHECK:         return %[[RESULT]] : i1
func.func @rows_may_pass_32_bits(%k: !cache, %b: index, %t: index) -> i1 {
  %bound = arith.constant 4294967296 : index
  %row = kvcache.row_index %k[%b, %t] : !cache
  %result = arith.cmpi ult, %row, %bound : index
  return %result : i1
}

// A negative id comes back as it is.
// CHECK-LABEL: func.func @tma_rows_may_be_negative(
// CHECK:         %[[RESULT:.*]] = arith.cmpi
// CHECK:         return %[[RESULT]] : i1
func.func @tma_rows_may_be_negative(%k: !cache, %encoded: index) -> i1 {
  %zero = arith.constant 0 : index
  %row = kvcache.tma_row %k[%encoded] : !cache
  %result = arith.cmpi sge, %row, %zero : index
  return %result : i1
}

// CHECK-LABEL: func.func @column_is_at_most_that_of_the_last_head(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]] : i1
func.func @column_is_at_most_that_of_the_last_head(%k: !cache, %h: index) -> i1 {
  %last = arith.constant 896 : index
  %column = kvcache.col_index %k[%h] : !cache
  %result = arith.cmpi ule, %column, %last : index
  return %result : i1
}

// What is computed from a range has one, too.
// CHECK-LABEL: func.func @ranges_propagate(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]] : i1
func.func @ranges_propagate(%k: !cache, %b: index, %t: index, %h: index) -> i1 {
  %bytes = arith.constant 2 : index
  %bound = arith.constant 1793 : index
  %column = kvcache.col_index %k[%h] : !cache
  %offset = arith.muli %column, %bytes : index
  %result = arith.cmpi ult, %offset, %bound : index
  return %result : i1
}

// The size of a page is a number of 32 bits.
// CHECK-LABEL: func.func @row_in_a_page_of_any_size(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]] : i1
func.func @row_in_a_page_of_any_size(%k: !any_pages, %b: index, %t: index) -> i1 {
  %bound = arith.constant 4294967296 : index
  %row, %page = kvcache.tma_coords %k[%b, %t] : !any_pages
  %result = arith.cmpi ult, %row, %bound : index
  return %result : i1
}

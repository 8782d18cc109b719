// RUN: kvcache-opt %s --int-range-optimizations | FileCheck %s

#kv = #kvcache.params<num_heads = 1, head_size = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 48, scale = f32, granularity = 128>
!scales = !kvcache.scales<!cache>

// CHECK-LABEL: func.func @row_in_page_is_below_the_page_size(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]], %[[TRUE]] : i1, i1
func.func @row_in_page_is_below_the_page_size(%k: !cache, %s: !scales, %b: index, %t: index) -> (i1, i1) {
  %page_size = arith.constant 48 : index
  %row0, %page0 = kvcache.scale_tma_coords %k[%b, %t] : !cache
  %0 = arith.cmpi ult, %row0, %page_size : index
  %row1, %page1 = kvcache.tma_coords %s[%b, %t] : !scales
  %1 = arith.cmpi ult, %row1, %page_size : index
  return %0, %1 : i1, i1
}

// CHECK-LABEL: func.func @pages_are_unsigned_32_bit_numbers(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]], %[[TRUE]] : i1, i1
func.func @pages_are_unsigned_32_bit_numbers(%k: !cache, %s: !scales, %b: index, %t: index) -> (i1, i1) {
  %bound = arith.constant 4294967296 : index
  %row, %page = kvcache.scale_tma_coords %k[%b, %t] : !cache
  %0 = arith.cmpi slt, %page, %bound : index
  %id = kvcache.page_id %s[%b, %t] : !scales
  %1 = arith.cmpi slt, %id, %bound : index
  return %0, %1 : i1, i1
}

// CHECK-LABEL: func.func @pages_may_pass_2_to_the_31(
// CHECK:         %[[PAGE:.*]] = arith.cmpi
// CHECK:         return %[[PAGE]]
func.func @pages_may_pass_2_to_the_31(%k: !cache, %b: index, %t: index) -> i1 {
  %bound = arith.constant 4294967295 : index
  %row, %page = kvcache.scale_tma_coords %k[%b, %t] : !cache
  %0 = arith.cmpi ult, %page, %bound : index
  return %0 : i1
}

// CHECK-LABEL: func.func @rows_are_not_negative(
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         return %[[TRUE]], %[[TRUE]] : i1, i1
func.func @rows_are_not_negative(%k: !cache, %s: !scales, %b: index, %t: index) -> (i1, i1) {
  %zero = arith.constant 0 : index
  %row0 = kvcache.scale_row_index %k[%b, %t] : !cache
  %0 = arith.cmpi sge, %row0, %zero : index
  %row1 = kvcache.row_index %s[%b, %t] : !scales
  %1 = arith.cmpi sge, %row1, %zero : index
  return %0, %1 : i1, i1
}

// CHECK-LABEL: func.func @rows_may_pass_32_bits(
// CHECK:         %[[RESULT:.*]] = arith.cmpi
// CHECK:         return %[[RESULT]] : i1
func.func @rows_may_pass_32_bits(%k: !cache, %b: index, %t: index) -> i1 {
  %bound = arith.constant 4294967296 : index
  %row = kvcache.scale_row_index %k[%b, %t] : !cache
  %result = arith.cmpi ult, %row, %bound : index
  return %result : i1
}

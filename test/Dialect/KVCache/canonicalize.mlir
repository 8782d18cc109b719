// RUN: kvcache-opt %s --canonicalize | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>
!continuous = !kvcache.continuous<bf16, #kv>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

//===----------------------------------------------------------------------===//
// Facts about the whole cache are those of its collection
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @facts_of_a_view_are_those_of_its_collection(
// CHECK-SAME:    %[[C:[^:]*]]: !kvcache.paged_collection<bf16, #{{.*}}, page_size = 64>, %{{.*}}: index)
// CHECK-NOT:     kvcache.paged_view
// CHECK-DAG:     %[[EMPTY:.*]] = kvcache.empty_cache %[[C]] : !kvcache.paged_collection
// CHECK-DAG:     %[[PROMPT:.*]] = kvcache.max_prompt_length %[[C]] : !kvcache.paged_collection
// CHECK-DAG:     %[[CONTEXT:.*]] = kvcache.max_context_length %[[C]] : !kvcache.paged_collection
// CHECK:         return %[[EMPTY]], %[[PROMPT]], %[[CONTEXT]]
func.func @facts_of_a_view_are_those_of_its_collection(%c: !collection, %layer: index) -> (i1, index, index) {
  %k = kvcache.paged_view key %c[%layer] : !collection
  %empty = kvcache.empty_cache %k : !cache
  %prompt = kvcache.max_prompt_length %k : !cache
  %context = kvcache.max_context_length %k : !cache
  return %empty, %prompt, %context : i1, index, index
}

// CHECK-LABEL: func.func @facts_of_a_continuous_view_are_those_of_its_collection(
// CHECK-SAME:    %[[C:[^:]*]]: !kvcache.continuous_collection<bf16, #{{.*}}>, %{{.*}}: index)
// CHECK-NOT:     kvcache.continuous_view
// CHECK-DAG:     %[[EMPTY:.*]] = kvcache.empty_cache %[[C]] : !kvcache.continuous_collection
// CHECK-DAG:     %[[PROMPT:.*]] = kvcache.max_prompt_length %[[C]] : !kvcache.continuous_collection
// CHECK-DAG:     %[[CONTEXT:.*]] = kvcache.max_context_length %[[C]] : !kvcache.continuous_collection
// CHECK:         return %[[EMPTY]], %[[PROMPT]], %[[CONTEXT]]
func.func @facts_of_a_continuous_view_are_those_of_its_collection(%c: !continuous_collection, %layer: index)
    -> (i1, index, index) {
  %v = kvcache.continuous_view value %c[%layer] : !continuous_collection
  %empty = kvcache.empty_cache %v : !continuous
  %prompt = kvcache.max_prompt_length %v : !continuous
  %context = kvcache.max_context_length %v : !continuous
  return %empty, %prompt, %context : i1, index, index
}

// The maxima are unsigned.
// CHECK-LABEL: func.func @facts_of_a_collection_are_its_operands(
// CHECK-SAME:    %[[SEQ:[^:]*]]: i32, %[[CACHE:[^:]*]]: i32, %{{.*}}: index)
// CHECK-NOT:     {{= kvcache\.}}
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NOT:     {{= kvcache\.}}
// CHECK-DAG:     %[[EMPTY:.*]] = arith.cmpi eq, %[[CACHE]], %[[ZERO]] : i32
// CHECK-DAG:     %[[PROMPT:.*]] = arith.index_castui %[[SEQ]] : i32 to index
// CHECK-DAG:     %[[CONTEXT:.*]] = arith.index_castui %[[CACHE]] : i32 to index
// CHECK:         return %[[EMPTY]], %[[PROMPT]], %[[CONTEXT]]
func.func @facts_of_a_collection_are_its_operands(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                                  %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                                                  %layer: index) -> (i1, index, index) {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%layer] : !collection
  %empty = kvcache.empty_cache %k : !cache
  %prompt = kvcache.max_prompt_length %c : !collection
  %context = kvcache.max_context_length %k : !cache
  return %empty, %prompt, %context : i1, index, index
}

// CHECK-LABEL: func.func @facts_of_a_continuous_collection_are_its_operands(
// CHECK-SAME:    %[[SEQ:[^:]*]]: i32, %[[CACHE:[^:]*]]: i32)
// CHECK-NOT:     {{= kvcache\.}}
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NOT:     {{= kvcache\.}}
// CHECK-DAG:     %[[EMPTY:.*]] = arith.cmpi eq, %[[CACHE]], %[[ZERO]] : i32
// CHECK-DAG:     %[[PROMPT:.*]] = arith.index_castui %[[SEQ]] : i32 to index
// CHECK-DAG:     %[[CONTEXT:.*]] = arith.index_castui %[[CACHE]] : i32 to index
// CHECK:         return %[[EMPTY]], %[[PROMPT]], %[[CONTEXT]]
func.func @facts_of_a_continuous_collection_are_its_operands(
    %blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?xi32>, %max_seq: i32,
    %max_cache: i32) -> (i1, index, index) {
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max_seq, %max_cache
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !continuous_collection
  %empty = kvcache.empty_cache %c : !continuous_collection
  %prompt = kvcache.max_prompt_length %c : !continuous_collection
  %context = kvcache.max_context_length %c : !continuous_collection
  return %empty, %prompt, %context : i1, index, index
}

// CHECK-LABEL: func.func @constant_maxima_fold(
// CHECK-DAG:     %[[FALSE:.*]] = arith.constant false
// CHECK-DAG:     %[[MAX:.*]] = arith.constant 4294967295 : index
// CHECK:         return %[[FALSE]], %[[MAX]] : i1, index
func.func @constant_maxima_fold(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                %lut: memref<?x?xi32>, %layer: index) -> (i1, index) {
  %max = arith.constant -1 : i32
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %v = kvcache.paged_view value %c[%layer] : !collection
  %empty = kvcache.empty_cache %v : !cache
  %context = kvcache.max_context_length %v : !cache
  return %empty, %context : i1, index
}

// CHECK-LABEL: func.func @facts_of_an_argument_stay(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<
// CHECK:         %[[EMPTY:.*]] = kvcache.empty_cache %[[K]]
// CHECK:         return %[[EMPTY]]
func.func @facts_of_an_argument_stay(%k: !cache) -> i1 {
  %empty = kvcache.empty_cache %k : !cache
  return %empty : i1
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @tma_row_of_a_continuous_cache_is_its_id(
// CHECK-SAME:    %{{.*}}: !kvcache.continuous<{{.*}}>, %[[ID:[^:]*]]: index)
// CHECK-NEXT:    return %[[ID]] : index
func.func @tma_row_of_a_continuous_cache_is_its_id(%k: !continuous, %encoded: index) -> index {
  %row = kvcache.tma_row %k[%encoded] : !continuous
  return %row : index
}

// The distance between pages is known only at run time.
// CHECK-LABEL: func.func @tma_row_of_an_id_in_a_later_page_stays(
// CHECK:         %[[ROW:.*]] = kvcache.tma_row
// CHECK:         return %[[ROW]] : index
func.func @tma_row_of_an_id_in_a_later_page_stays(%k: !cache) -> index {
  %encoded = arith.constant 64 : index
  %row = kvcache.tma_row %k[%encoded] : !cache
  return %row : index
}

// CHECK-LABEL: func.func @tma_row_of_an_unknown_id_stays(
// CHECK:         %[[ROW:.*]] = kvcache.tma_row
// CHECK:         return %[[ROW]] : index
func.func @tma_row_of_an_unknown_id_stays(%k: !cache, %encoded: index) -> index {
  %row = kvcache.tma_row %k[%encoded] : !cache
  return %row : index
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @checks_that_hold_go(
// CHECK-NEXT:    return
func.func @checks_that_hold_go() {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %largest = arith.constant -1 : index
  kvcache.check %c0 below %c8, "first"
  kvcache.check %c7 below %c8, "last"
  kvcache.check %c8 below %largest, "bounds are unsigned"
  return
}

// CHECK-LABEL: func.func @checks_that_fail_or_may_fail_stay(
// CHECK:         kvcache.check {{.*}}, "at the bound"
// CHECK:         kvcache.check {{.*}}, "past the bound"
// CHECK:         kvcache.check {{.*}}, "negative"
// CHECK:         kvcache.check {{.*}}, "no value is below"
// CHECK:         kvcache.check {{.*}}, "unknown value"
// CHECK:         kvcache.check {{.*}}, "unknown bound"
// CHECK:         return
func.func @checks_that_fail_or_may_fail_stay(%i: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %negative = arith.constant -1 : index
  kvcache.check %c8 below %c8, "at the bound"
  kvcache.check %c9 below %c8, "past the bound"
  kvcache.check %negative below %c8, "negative"
  kvcache.check %c0 below %c0, "no value is below"
  kvcache.check %i below %c8, "unknown value"
  kvcache.check %c0 below %i, "unknown bound"
  return
}

//===----------------------------------------------------------------------===//
// Unused ops
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @unused_reads_go(
// CHECK-NEXT:    return
func.func @unused_reads_go(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                           %max: i32, %b: index, %h: index, %t: index, %d: index) {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%h] : !collection
  %empty = kvcache.empty_cache %k : !cache
  %prompt = kvcache.max_prompt_length %k : !cache
  %context = kvcache.max_context_length %k : !cache
  %rows = kvcache.num_kv_rows %k : !cache
  %length = kvcache.cache_length %k[%b] : !cache
  %page = kvcache.page_id %k[%b, %t] : !cache
  %row = kvcache.row_index %k[%b, %t] : !cache
  %tma:2 = kvcache.tma_coords %k[%b, %t] : !cache
  %tma_row = kvcache.tma_row %k[%t] : !cache
  %col = kvcache.col_index %k[%h] : !cache
  %batch = kvcache.extent batch %k : !cache
  %load = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  %tile = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> memref<16x128xbf16, strided<[1024, 1], offset: ?>>
  %indices = kvcache.populate %k[%b, %t] : !cache -> !rows
  %first = kvcache.get_row %indices[%d] : !rows
  return
}

// CHECK-LABEL: func.func @unused_reads_of_a_continuous_cache_go(
// CHECK-NEXT:    return
func.func @unused_reads_of_a_continuous_cache_go(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                                 %lut: memref<?xi32>, %max: i32, %b: index, %t: index) {
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !continuous_collection
  %k = kvcache.continuous_view key %c[%b] : !continuous_collection
  %row = kvcache.row_index %k[%b, %t] : !continuous
  return
}

// CHECK-LABEL: func.func @stores_and_checks_stay(
// CHECK:         kvcache.check
// CHECK:         kvcache.store
// CHECK:         return
func.func @stores_and_checks_stay(%k: !cache, %x: bf16, %b: index, %h: index, %t: index, %d: index) {
  kvcache.check %d below %h, "element"
  kvcache.store %x, %k[%b, %h, %t, %d] : bf16, !cache
  return
}

// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!continuous = !kvcache.continuous<bf16, #kv>
!any_pages = !kvcache.paged<bf16, #kv, page_size = ?>
!one_page = !kvcache.row_indices<rows = 32, page_size = 64>
!two_pages = !kvcache.row_indices<rows = 128, page_size = 64>
!no_pages = !kvcache.row_indices<rows = 48>

// CHECK: #[[$KV:.*]] = #kvcache.params<num_heads = 8, head_size = 128>

// CHECK-LABEL: func.func @populate(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<bf16, #[[$KV]], page_size = 64>, %[[B:[^:]*]]: index, %[[BASE:[^:]*]]: index)
// CHECK:         kvcache.populate %[[K]][%[[B]], %[[BASE]]] : [[CACHE:!kvcache.paged<bf16, #kv, page_size = 64>]]
// CHECK-SAME:      -> !kvcache.row_indices<rows = 128, page_size = 64>
// CHECK:         kvcache.populate %[[K]][%[[B]], %[[BASE]]] {base_alignment = 64 : i64} : [[CACHE]]
// CHECK-SAME:      -> !kvcache.row_indices<rows = 128, page_size = 64>
// CHECK:         kvcache.populate %[[K]][%[[B]], %[[BASE]]] {base_alignment = 3 : i64, note = "kept"} : [[CACHE]]
// CHECK-SAME:      -> !kvcache.row_indices<rows = 32, page_size = 64>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "populate"
// GENERIC:         "kvcache.populate"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) : (
// GENERIC:         "kvcache.populate"({{.*}}) <{base_alignment = 64 : i64}>
func.func @populate(%k: !cache, %b: index, %base: index) {
  %0 = kvcache.populate %k[%b, %base] : !cache -> !two_pages
  %1 = kvcache.populate %k[%b, %base] {base_alignment = 64} : !cache -> !two_pages
  %2 = kvcache.populate %k[%b, %base] {base_alignment = 3, note = "kept"} : !cache -> !one_page
  return
}

// CHECK-LABEL: func.func @populate_from_a_continuous_cache(
// CHECK:         kvcache.populate %{{.*}}[{{.*}}] : !kvcache.continuous<bf16, #[[$KV]]> -> !kvcache.row_indices<rows = 48>
func.func @populate_from_a_continuous_cache(%k: !continuous, %b: index, %base: index) {
  %0 = kvcache.populate %k[%b, %base] : !continuous -> !no_pages
  return
}

// CHECK-LABEL: func.func @populate_from_pages_of_any_size(
// CHECK:         kvcache.populate %{{.*}}[{{.*}}] : !kvcache.paged<bf16, #[[$KV]], page_size = ?> -> !kvcache.row_indices<rows = 48, page_size = ?>
func.func @populate_from_pages_of_any_size(%k: !any_pages, %b: index, %base: index) {
  %0 = kvcache.populate %k[%b, %base] : !any_pages -> !kvcache.row_indices<rows = 48, page_size = ?>
  return
}

// CHECK-LABEL: func.func @get_row(
// CHECK-SAME:    %[[ROWS:[^:]*]]: !kvcache.row_indices<rows = 128, page_size = 64>, %[[OFFSET:[^:]*]]: index)
// CHECK-DAG:     %[[FIRST:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 127 : index
// CHECK:         kvcache.get_row %[[ROWS]][%[[FIRST]]] : !kvcache.row_indices<rows = 128, page_size = 64>
// CHECK:         kvcache.get_row %[[ROWS]][%[[LAST]]] : !kvcache.row_indices<rows = 128, page_size = 64>
// CHECK:         kvcache.get_row %[[ROWS]][%[[OFFSET]]] {note = "kept"} : !kvcache.row_indices<rows = 128, page_size = 64>
func.func @get_row(%rows: !two_pages, %offset: index) {
  %first = arith.constant 0 : index
  %last = arith.constant 127 : index
  %0 = kvcache.get_row %rows[%first] : !two_pages
  %1 = kvcache.get_row %rows[%last] : !two_pages
  %2 = kvcache.get_row %rows[%offset] {note = "kept"} : !two_pages
  return
}

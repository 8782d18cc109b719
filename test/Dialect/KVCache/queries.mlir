// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!continuous = !kvcache.continuous<bf16, #kv>

// CHECK: #[[$KV:.*]] = #kvcache.params<num_heads = 8, head_size = 128>

// CHECK-LABEL: func.func @queries_of_a_paged_cache(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<bf16, #[[$KV]], page_size = 64>,
// CHECK-SAME:    %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[E:[^:]*]]: index)
// CHECK:         kvcache.empty_cache %[[K]] : [[CACHE:!kvcache.paged<bf16, #kv, page_size = 64>]]
// CHECK:         kvcache.max_prompt_length %[[K]] : [[CACHE]]
// CHECK:         kvcache.max_context_length %[[K]] : [[CACHE]]
// CHECK:         kvcache.num_kv_rows %[[K]] : [[CACHE]]
// CHECK:         kvcache.cache_length %[[K]][%[[B]]] : [[CACHE]]
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[K]][%[[B]], %[[T]]] : [[CACHE]]
// CHECK:         kvcache.row_index %[[K]][%[[B]], %[[T]]] : [[CACHE]]
// CHECK:         kvcache.row_index %[[K]][%[[B]], %[[T]]] page %[[PAGE]] : [[CACHE]]
// CHECK:         %{{.*}}, %{{.*}} = kvcache.tma_coords %[[K]][%[[B]], %[[T]]] : [[CACHE]]
// CHECK:         kvcache.tma_row %[[K]][%[[E]]] : [[CACHE]]
// CHECK:         kvcache.col_index %[[K]][%[[H]]] : [[CACHE]]
// CHECK:         kvcache.extent batch %[[K]] : [[CACHE]]
// CHECK:         kvcache.extent pages %[[K]] : [[CACHE]]
// CHECK:         kvcache.extent tokens %[[K]] {note = "kept"} : [[CACHE]]
// CHECK:         kvcache.extent page_size %[[K]] : [[CACHE]]
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "queries_of_a_paged_cache"
// GENERIC:         "kvcache.empty_cache"({{.*}}) : ({{.*}}) -> i1
// GENERIC:         "kvcache.row_index"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) :
// GENERIC:         "kvcache.row_index"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) :
// GENERIC:         "kvcache.tma_coords"({{.*}}) : ({{.*}}) -> (index, index)
// GENERIC:         "kvcache.extent"({{.*}}) <{extent = 0 : i32}>
// GENERIC:         "kvcache.extent"({{.*}}) <{extent = 2 : i32}>
// GENERIC:         "kvcache.extent"({{.*}}) <{extent = 3 : i32}>
// GENERIC:         "kvcache.extent"({{.*}}) <{extent = 4 : i32}>
func.func @queries_of_a_paged_cache(%k: !cache, %b: index, %h: index, %t: index, %e: index) {
  %0 = kvcache.empty_cache %k : !cache
  %1 = kvcache.max_prompt_length %k : !cache
  %2 = kvcache.max_context_length %k : !cache
  %3 = kvcache.num_kv_rows %k : !cache
  %4 = kvcache.cache_length %k[%b] : !cache
  %page = kvcache.page_id %k[%b, %t] : !cache
  %5 = kvcache.row_index %k[%b, %t] : !cache
  %6 = kvcache.row_index %k[%b, %t] page %page : !cache
  %7, %8 = kvcache.tma_coords %k[%b, %t] : !cache
  %9 = kvcache.tma_row %k[%e] : !cache
  %10 = kvcache.col_index %k[%h] : !cache
  %11 = kvcache.extent batch %k : !cache
  %12 = kvcache.extent pages %k : !cache
  %13 = kvcache.extent tokens %k {note = "kept"} : !cache
  %14 = kvcache.extent page_size %k : !cache
  return
}

// CHECK-LABEL: func.func @queries_of_a_continuous_cache(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.continuous<bf16, #[[$KV]]>,
// CHECK-SAME:    %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[E:[^:]*]]: index)
// CHECK:         kvcache.empty_cache %[[K]] : [[CACHE:!kvcache.continuous<bf16, #kv>]]
// CHECK:         kvcache.max_prompt_length %[[K]] : [[CACHE]]
// CHECK:         kvcache.max_context_length %[[K]] : [[CACHE]]
// CHECK:         kvcache.num_kv_rows %[[K]] : [[CACHE]]
// CHECK:         kvcache.cache_length %[[K]][%[[B]]] : [[CACHE]]
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[K]][%[[B]], %[[T]]] : [[CACHE]]
// CHECK:         kvcache.row_index %[[K]][%[[B]], %[[T]]] : [[CACHE]]
// CHECK:         kvcache.row_index %[[K]][%[[B]], %[[T]]] page %[[PAGE]] : [[CACHE]]
// CHECK:         kvcache.tma_row %[[K]][%[[E]]] : [[CACHE]]
// CHECK:         kvcache.col_index %[[K]][%[[H]]] : [[CACHE]]
// CHECK:         kvcache.extent batch %[[K]] : [[CACHE]]
// CHECK:         kvcache.extent pages %[[K]] : [[CACHE]]
// CHECK:         kvcache.extent tokens %[[K]] : [[CACHE]]
func.func @queries_of_a_continuous_cache(%k: !continuous, %b: index, %h: index, %t: index, %e: index) {
  %0 = kvcache.empty_cache %k : !continuous
  %1 = kvcache.max_prompt_length %k : !continuous
  %2 = kvcache.max_context_length %k : !continuous
  %3 = kvcache.num_kv_rows %k : !continuous
  %4 = kvcache.cache_length %k[%b] : !continuous
  %page = kvcache.page_id %k[%b, %t] : !continuous
  %5 = kvcache.row_index %k[%b, %t] : !continuous
  %6 = kvcache.row_index %k[%b, %t] page %page : !continuous
  %7 = kvcache.tma_row %k[%e] : !continuous
  %8 = kvcache.col_index %k[%h] : !continuous
  %9 = kvcache.extent batch %k : !continuous
  %10 = kvcache.extent pages %k : !continuous
  %11 = kvcache.extent tokens %k : !continuous
  return
}

// CHECK-LABEL: func.func @queries_of_a_paged_collection(
// CHECK-SAME:    %[[C:[^:]*]]: !kvcache.paged_collection<bf16, #[[$KV]], page_size = 64>, %[[B:[^:]*]]: index)
// CHECK:         kvcache.empty_cache %[[C]] : [[COLLECTION:!kvcache.paged_collection<bf16, #kv, page_size = 64>]]
// CHECK:         kvcache.max_prompt_length %[[C]] : [[COLLECTION]]
// CHECK:         kvcache.max_context_length %[[C]] : [[COLLECTION]]
// CHECK:         kvcache.cache_length %[[C]][%[[B]]] : [[COLLECTION]]
// CHECK:         kvcache.extent batch %[[C]] : [[COLLECTION]]
// CHECK:         kvcache.extent layers %[[C]] : [[COLLECTION]]
func.func @queries_of_a_paged_collection(%c: !collection, %b: index) {
  %0 = kvcache.empty_cache %c : !collection
  %1 = kvcache.max_prompt_length %c : !collection
  %2 = kvcache.max_context_length %c : !collection
  %3 = kvcache.cache_length %c[%b] : !collection
  %4 = kvcache.extent batch %c : !collection
  %5 = kvcache.extent layers %c : !collection
  return
}

// CHECK-LABEL: func.func @queries_of_a_continuous_collection(
// CHECK-SAME:    %[[C:[^:]*]]: !kvcache.continuous_collection<bf16, #[[$KV]]>, %[[B:[^:]*]]: index)
// CHECK:         kvcache.empty_cache %[[C]] : [[COLLECTION:!kvcache.continuous_collection<bf16, #kv>]]
// CHECK:         kvcache.max_prompt_length %[[C]] : [[COLLECTION]]
// CHECK:         kvcache.max_context_length %[[C]] : [[COLLECTION]]
// CHECK:         kvcache.cache_length %[[C]][%[[B]]] : [[COLLECTION]]
// CHECK:         kvcache.extent batch %[[C]] : [[COLLECTION]]
// CHECK:         kvcache.extent layers %[[C]] : [[COLLECTION]]
func.func @queries_of_a_continuous_collection(%c: !continuous_collection, %b: index) {
  %0 = kvcache.empty_cache %c : !continuous_collection
  %1 = kvcache.max_prompt_length %c : !continuous_collection
  %2 = kvcache.max_context_length %c : !continuous_collection
  %3 = kvcache.cache_length %c[%b] : !continuous_collection
  %4 = kvcache.extent batch %c : !continuous_collection
  %5 = kvcache.extent layers %c : !continuous_collection
  return
}

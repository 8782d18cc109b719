// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!nvfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!scales = !kvcache.scales<!cache>
!plain = !kvcache.paged<bf16, #kv, page_size = ?, table = csr>
!no_scales = !kvcache.scales<!plain>
!continuous = !kvcache.continuous<bf16, #kv>
!no_blocks = !kvcache.scales<!continuous>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!window = memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
!tile = memref<16x4xf32, strided<[32, 1], offset: ?>>

//===----------------------------------------------------------------------===//
// Scales of a cache
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @views(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<f8E4M3FN, {{[^>]*}}>)
// CHECK:         kvcache.scales_view %[[K]] : [[CACHE:!kvcache.paged<f8E4M3FN, .*, page_size = 64, scale = f32, granularity = 32>]]
// CHECK:         kvcache.scales_base %[[K]] {note = "kept"} : [[CACHE]]
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "views"
// GENERIC:         "kvcache.scales_view"({{.*}}) : ({{.*}}) -> !kvcache.scales<!kvcache.paged<f8E4M3FN, {{.*}}, page_size = 64, scale = f32, granularity = 32>>
// GENERIC:         "kvcache.scales_base"({{.*}}) {note = "kept"} : ({{.*}}) -> memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
func.func @views(%k: !cache) -> (!scales, !window) {
  %s = kvcache.scales_view %k : !cache
  %m = kvcache.scales_base %k {note = "kept"} : !cache
  return %s, %m : !scales, !window
}

// CHECK-LABEL: func.func @scales_block_tile(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.scales_block_tile %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : !kvcache.paged<{{.*}}> -> memref<16x4xf32, strided<[32, 1], offset: ?>>
// CHECK:         kvcache.scales_block_tile %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] scale_page %[[PAGE]] {note = "kept"} : !kvcache.paged<{{.*}}> -> memref<64x1xf32, strided<[32, 1], offset: ?>>
func.func @scales_block_tile(%k: !cache, %b: index, %h: index, %t: index, %d: index, %page: index) {
  %0 = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !cache -> !tile
  %1 = kvcache.scales_block_tile %k[%b, %h, %t, %d] scale_page %page {note = "kept"}
         : !cache -> memref<64x1xf32, strided<[32, 1], offset: ?>>
  return
}

// CHECK-LABEL: func.func @load_scale(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[N:[^:]*]]: !kvcache.paged<{{.*}}>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.load_scale %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : !kvcache.paged<f8E4M3FN, {{.*}}> -> f32
// CHECK:         kvcache.load_scale %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : !kvcache.paged<f8E4M3FN, {{.*}}> -> vector<4xf32>
// CHECK:         kvcache.load_scale %[[N]][%[[B]], %[[H]], %[[T]], %[[D]]] scale_page %[[PAGE]] {note = "kept"} : !kvcache.paged<f4E2M1FN, {{.*}}> -> vector<8xf8E4M3FN>
func.func @load_scale(%k: !cache, %n: !nvfp4, %b: index, %h: index, %t: index, %d: index, %page: index) {
  %0 = kvcache.load_scale %k[%b, %h, %t, %d] : !cache -> f32
  %1 = kvcache.load_scale %k[%b, %h, %t, %d] : !cache -> vector<4xf32>
  %2 = kvcache.load_scale %n[%b, %h, %t, %d] scale_page %page {note = "kept"} : !nvfp4 -> vector<8xf8E4M3FN>
  return
}

// CHECK-LABEL: func.func @store_scale(
// CHECK-SAME:    %[[X:[^:]*]]: f32, %[[V:[^:]*]]: vector<4xf32>, %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.store_scale %[[X]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : f32, !kvcache.paged<{{.*}}>
// CHECK:         kvcache.store_scale %[[V]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] scale_page %[[PAGE]] {note = "kept"} : vector<4xf32>, !kvcache.paged<{{.*}}>
func.func @store_scale(%x: f32, %v: vector<4xf32>, %k: !cache, %b: index, %h: index, %t: index, %d: index,
                       %page: index) {
  kvcache.store_scale %x, %k[%b, %h, %t, %d] : f32, !cache
  kvcache.store_scale %v, %k[%b, %h, %t, %d] scale_page %page {note = "kept"} : vector<4xf32>, !cache
  return
}

// CHECK-LABEL: func.func @queries(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[B:[^:]*]]: index, %[[T:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.num_scale_rows %[[K]] : [[CACHE:!kvcache.paged<f8E4M3FN, .*, page_size = 64, scale = f32, granularity = 32>]]
// CHECK:         kvcache.scale_row_index %[[K]][%[[B]], %[[T]]] : [[CACHE]]
// CHECK:         kvcache.scale_row_index %[[K]][%[[B]], %[[T]]] scale_page %[[PAGE]] : [[CACHE]]
// CHECK:         %{{.*}}, %{{.*}} = kvcache.scale_tma_coords %[[K]][%[[B]], %[[T]]] {note = "kept"} : [[CACHE]]
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "queries"
// GENERIC:         "kvcache.scale_row_index"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) :
// GENERIC:         "kvcache.scale_row_index"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) :
// GENERIC:         "kvcache.scale_tma_coords"({{.*}}) {note = "kept"} : ({{.*}}) -> (index, index)
func.func @queries(%k: !cache, %b: index, %t: index, %page: index) {
  %0 = kvcache.num_scale_rows %k : !cache
  %1 = kvcache.scale_row_index %k[%b, %t] : !cache
  %2 = kvcache.scale_row_index %k[%b, %t] scale_page %page : !cache
  %3, %4 = kvcache.scale_tma_coords %k[%b, %t] {note = "kept"} : !cache
  return
}

//===----------------------------------------------------------------------===//
// Scales as an operand of their own
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @accesses_of_a_view_of_scales(
// CHECK-SAME:    %[[S:[^:]*]]: !kvcache.scales<!kvcache.paged<f8E4M3FN, {{.*}}, page_size = 64, scale = f32, granularity = 32>>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         %[[X:.*]] = kvcache.load %[[S]][%[[B]], %[[H]], %[[T]], %[[D]]] : [[SCALES:!kvcache.scales<.*>]] -> f32
// CHECK:         kvcache.load %[[S]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] : [[SCALES]] -> vector<4xbf16>
// CHECK:         kvcache.store %[[X]], %[[S]][%[[B]], %[[H]], %[[T]], %[[D]]] : f32, [[SCALES]]
// CHECK:         kvcache.store %[[X]], %[[S]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] : f32, [[SCALES]]
// CHECK:         kvcache.block_tile %[[S]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] : [[SCALES]] -> memref<16x4xf32, strided<[32, 1], offset: ?>>
func.func @accesses_of_a_view_of_scales(%s: !scales, %b: index, %h: index, %t: index, %d: index, %page: index) {
  %x = kvcache.load %s[%b, %h, %t, %d] : !scales -> f32
  %v = kvcache.load %s[%b, %h, %t, %d] page %page : !scales -> vector<4xbf16>
  kvcache.store %x, %s[%b, %h, %t, %d] : f32, !scales
  kvcache.store %x, %s[%b, %h, %t, %d] page %page : f32, !scales
  %m = kvcache.block_tile %s[%b, %h, %t, %d] page %page : !scales -> !tile
  return
}

// CHECK-LABEL: func.func @scales_of_a_view_of_scales(
// CHECK-SAME:    %[[S:[^:]*]]: !kvcache.scales<{{.*}}>>, %[[I:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         %[[X:.*]] = kvcache.load_scale %[[S]][%[[I]], %[[I]], %[[I]], %[[I]]] : [[SCALES:!kvcache.scales<.*>]] -> f32
// CHECK:         kvcache.load_scale %[[S]]{{.*}} scale_page %[[PAGE]] : [[SCALES]] -> vector<4xf32>
// CHECK:         kvcache.store_scale %[[X]], %[[S]]{{.*}} scale_page %[[PAGE]] : f32, [[SCALES]]
// CHECK:         kvcache.scales_block_tile %[[S]]{{.*}} scale_page %[[PAGE]] : [[SCALES]] -> memref<16x4xf32, strided<[32, 1], offset: ?>>
// CHECK:         kvcache.scales_base %[[S]] : [[SCALES]]
func.func @scales_of_a_view_of_scales(%s: !scales, %i: index, %page: index) -> !window {
  %x = kvcache.load_scale %s[%i, %i, %i, %i] : !scales -> f32
  %v = kvcache.load_scale %s[%i, %i, %i, %i] scale_page %page : !scales -> vector<4xf32>
  kvcache.store_scale %x, %s[%i, %i, %i, %i] scale_page %page : f32, !scales
  %t = kvcache.scales_block_tile %s[%i, %i, %i, %i] scale_page %page : !scales -> !tile
  %m = kvcache.scales_base %s : !scales
  return %m : !window
}

// CHECK-LABEL: func.func @views_without_scales(
// CHECK:         kvcache.scales_view %{{.*}} : !kvcache.paged<bf16, {{.*}}, page_size = ?, table = csr>
// CHECK:         kvcache.scales_view %{{.*}} : !kvcache.continuous<bf16, {{.*}}>
// CHECK:         kvcache.cache_length %{{.*}} : [[NONE:!kvcache.scales<!kvcache.paged<bf16, .*, page_size = ., table = csr>>]]
// CHECK:         kvcache.max_context_length %{{.*}} : [[NONE]]
// CHECK:         kvcache.extent batch %{{.*}} : [[NONE]]
// CHECK:         kvcache.extent page_size %{{.*}} : [[NONE]]
// CHECK:         kvcache.cache_lengths %{{.*}} : !kvcache.scales<!kvcache.continuous<bf16, {{.*}}>>
func.func @views_without_scales(%k: !plain, %c: !continuous, %b: index) {
  %s = kvcache.scales_view %k : !plain
  %o = kvcache.scales_view %c : !continuous
  %0 = kvcache.cache_length %s[%b] : !no_scales
  %1 = kvcache.max_context_length %s : !no_scales
  %2 = kvcache.extent batch %s : !no_scales
  %3 = kvcache.extent page_size %s : !no_scales
  %4 = kvcache.cache_lengths %o : !no_blocks
  return
}

// CHECK-LABEL: func.func @queries_of_a_view_of_scales(
// CHECK-SAME:    %[[S:[^:]*]]: !kvcache.scales<{{.*}}>>, %[[B:[^:]*]]: index, %[[T:[^:]*]]: index)
// CHECK:         kvcache.max_context_length %[[S]] : [[SCALES:!kvcache.scales<.*>]]
// CHECK:         kvcache.num_kv_rows %[[S]] : [[SCALES]]
// CHECK:         kvcache.cache_length %[[S]][%[[B]]] : [[SCALES]]
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[S]][%[[B]], %[[T]]] : [[SCALES]]
// CHECK:         kvcache.row_index %[[S]][%[[B]], %[[T]]] : [[SCALES]]
// CHECK:         kvcache.row_index %[[S]][%[[B]], %[[T]]] page %[[PAGE]] : [[SCALES]]
// CHECK:         %{{.*}}, %{{.*}} = kvcache.tma_coords %[[S]][%[[B]], %[[T]]] : [[SCALES]]
// CHECK:         kvcache.tma_row %[[S]][%[[T]]] : [[SCALES]]
// CHECK:         kvcache.extent batch %[[S]] : [[SCALES]]
// CHECK:         kvcache.extent pages %[[S]] : [[SCALES]]
// CHECK:         kvcache.extent tokens %[[S]] : [[SCALES]]
// CHECK:         kvcache.populate %[[S]][%[[B]], %[[T]]] {base_alignment = 64 : i64} : [[SCALES]] -> !kvcache.row_indices<rows = 128, page_size = 64>
func.func @queries_of_a_view_of_scales(%s: !scales, %b: index, %t: index) {
  %0 = kvcache.max_context_length %s : !scales
  %1 = kvcache.num_kv_rows %s : !scales
  %2 = kvcache.cache_length %s[%b] : !scales
  %page = kvcache.page_id %s[%b, %t] : !scales
  %3 = kvcache.row_index %s[%b, %t] : !scales
  %4 = kvcache.row_index %s[%b, %t] page %page : !scales
  %5, %6 = kvcache.tma_coords %s[%b, %t] : !scales
  %7 = kvcache.tma_row %s[%t] : !scales
  %8 = kvcache.extent batch %s : !scales
  %9 = kvcache.extent pages %s : !scales
  %10 = kvcache.extent tokens %s : !scales
  %11 = kvcache.populate %s[%b, %t] {base_alignment = 64} : !scales -> !rows
  return
}

// RUN: kvcache-opt %s --kvcache-hoist-lookups --allow-unregistered-dialect --split-input-file | FileCheck %s

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!tile = memref<16x4xf32, strided<[32, 1], offset: ?>>

// The page of the elements and that of the scales, each under a guard.

// CHECK-LABEL: func.func @both_pages_of_a_load(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[T:.*]]: index, %[[FROM:.*]]: index, %[[TO:.*]]: index, %{{.*}}: memref
// CHECK:         %[[RUNS:.*]] = arith.cmpi slt, %[[FROM]], %[[TO]] : index
// CHECK:         %[[PAGE:.*]] = scf.if %[[RUNS]] -> (index) {
// CHECK:           %[[LOOKUP:.*]] = kvcache.page_id %[[K]][%[[B]], %[[T]]]
// CHECK:           scf.yield %[[LOOKUP]] : index
// CHECK:           ub.poison : index
// CHECK:         %[[S:.*]] = kvcache.scales_view %[[K]]
// CHECK:         %[[STILL_RUNS:.*]] = arith.cmpi slt, %[[FROM]], %[[TO]] : index
// CHECK:         %[[SCALE_PAGE:.*]] = scf.if %[[STILL_RUNS]] -> (index) {
// CHECK:           %[[SCALE_LOOKUP:.*]] = kvcache.page_id %[[S]][%[[B]], %[[T]]]
// CHECK:           scf.yield %[[SCALE_LOOKUP]] : index
// CHECK:           ub.poison : index
// CHECK:         scf.for
// CHECK:           kvcache.load %[[K]][%[[B]], %{{.*}}, %[[T]], %{{.*}}] page %[[PAGE]] scale_page %[[SCALE_PAGE]]
func.func @both_pages_of_a_load(%k: !cache, %b: index, %t: index, %from: index, %to: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %h = %from to %to step %c1 {
    %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> f32
    memref.store %v, %out[%h] : memref<?xf32>
  }
  return
}

// CHECK-LABEL: func.func @unguarded_where_the_loop_runs(
// CHECK-NOT:     scf.if
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %{{.*}} : !kvcache.paged
// CHECK:         %[[S:.*]] = kvcache.scales_view
// CHECK:         %[[SCALE_PAGE:.*]] = kvcache.page_id %[[S]]
// CHECK:         scf.for
// CHECK:           kvcache.store_quantized {{.*}} page %[[PAGE]] scale_page %[[SCALE_PAGE]]
func.func @unguarded_where_the_loop_runs(%v: vector<128xbf16>, %k: !cache, %b: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    kvcache.store_quantized %v, %k[%b, %h, %t, %c0] : vector<128xbf16>, !cache
  }
  return
}

// A view of scales looks its own page up.

// CHECK-LABEL: func.func @page_of_a_view_of_scales(
// CHECK-SAME:      %[[S:[^:]*]]: !kvcache.scales
// CHECK-NOT:     kvcache.scales_view
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[S]]
// CHECK:         scf.for
// CHECK:           kvcache.load_scale %[[S]]{{.*}} scale_page %[[PAGE]]
func.func @page_of_a_view_of_scales(%s: !scales, %b: index, %t: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %v = kvcache.load_scale %s[%b, %h, %t, %c0] : !scales -> f32
    memref.store %v, %out[%h] : memref<?xf32>
  }
  return
}

// A page that is known already is left alone, and the other one looked up.

// CHECK-LABEL: func.func @one_page_is_known(
// CHECK-SAME:      %[[KNOWN:[^:]*]]: index, %{{[^:]*}}: memref<?xf32>)
// CHECK:         %[[S:.*]] = kvcache.scales_view
// CHECK:         %[[SCALE_PAGE:.*]] = kvcache.page_id %[[S]]
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %{{.*}} : !kvcache.paged
// CHECK:         scf.for
// CHECK:           kvcache.load {{.*}} page %[[KNOWN]] scale_page %[[SCALE_PAGE]]
// CHECK:           kvcache.load {{.*}} page %[[PAGE]] scale_page %[[KNOWN]]
func.func @one_page_is_known(%k: !cache, %b: index, %t: index, %page: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %v = kvcache.load %k[%b, %h, %t, %c0] page %page : !cache -> f32
    %w = kvcache.load %k[%b, %h, %t, %c0] scale_page %page : !cache -> f32
    memref.store %v, %out[%h] : memref<?xf32>
    memref.store %w, %out[%h] : memref<?xf32>
  }
  return
}

// What accesses one of the two looks up one.

// CHECK-LABEL: func.func @page_of_elements_or_of_scales(
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %{{.*}} : !kvcache.paged
// CHECK:         %[[S0:.*]] = kvcache.scales_view
// CHECK-NEXT:    %[[SCALE_PAGE0:.*]] = kvcache.page_id %[[S0]]
// CHECK:         %[[S1:.*]] = kvcache.scales_view
// CHECK-NEXT:    %[[SCALE_PAGE1:.*]] = kvcache.page_id %[[S1]]
// CHECK-NOT:     kvcache.page_id
// CHECK:         scf.for
// CHECK:           kvcache.load_quantized {{.*}} page %[[PAGE]]
// CHECK:           kvcache.load_scale {{.*}} scale_page %[[SCALE_PAGE0]]
// CHECK:           kvcache.store_scale {{.*}} scale_page %[[SCALE_PAGE1]]
func.func @page_of_elements_or_of_scales(%k: !cache, %b: index, %t: index, %out: memref<?xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %w = kvcache.load_quantized %k[%b, %h, %t, %c0] : !cache -> f8E4M3FN
    %s = kvcache.load_scale %k[%b, %h, %t, %c0] : !cache -> f32
    kvcache.store_scale %s, %k[%b, %h, %t, %c1] : f32, !cache
    memref.store %w, %out[%h] : memref<?xf8E4M3FN>
  }
  return
}

// CHECK-LABEL: func.func @token_of_the_loop_stays(
// CHECK-NOT:     kvcache.page_id
// CHECK-NOT:     kvcache.scales_view
// CHECK:         return
func.func @token_of_the_loop_stays(%k: !cache, %b: index, %n: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %v = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> f32
    memref.store %v, %out[%t] : memref<?xf32>
  }
  return
}

// Lookups without memory effects move as a whole.

// CHECK-LABEL: func.func @lookups_move_as_a_whole(
// CHECK:         %[[ROW:.*]] = kvcache.scale_row_index
// CHECK:         %[[TMA_ROW:.*]], %[[PAGE:.*]] = kvcache.scale_tma_coords
// CHECK:         %[[TILE:.*]] = kvcache.scales_block_tile
// CHECK:         %[[LENGTH:.*]] = kvcache.cache_length
// CHECK:         %[[ROWS:.*]] = kvcache.populate
// CHECK:         scf.for
// CHECK-NEXT:      "test.use"(%[[ROW]], %[[TMA_ROW]], %[[PAGE]], %[[TILE]], %[[LENGTH]], %[[ROWS]])
func.func @lookups_move_as_a_whole(%k: !cache, %s: !scales, %b: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %row = kvcache.scale_row_index %k[%b, %t] : !cache
    %tma_row, %page = kvcache.scale_tma_coords %k[%b, %t] : !cache
    %tile = kvcache.scales_block_tile %k[%b, %c0, %t, %c0] : !cache -> !tile
    %length = kvcache.cache_length %s[%b] : !scales
    %rows = kvcache.populate %s[%b, %t] : !scales -> !rows
    "test.use"(%row, %tma_row, %page, %tile, %length, %rows) : (index, index, index, !tile, index, !rows) -> ()
  }
  return
}

// Where only the head changes, the page of a tile is looked up before.

// CHECK-LABEL: func.func @page_of_a_tile(
// CHECK:         %[[S:.*]] = kvcache.scales_view
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[S]]
// CHECK:         scf.for
// CHECK:           kvcache.scales_block_tile {{.*}} scale_page %[[PAGE]]
func.func @page_of_a_tile(%k: !cache, %b: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %tile = kvcache.scales_block_tile %k[%b, %h, %t, %c0] : !cache -> !tile
    "test.use"(%tile) : (!tile) -> ()
  }
  return
}

// An access to a view of scales has one page.

// CHECK-LABEL: func.func @page_of_a_view(
// CHECK-SAME:      %[[S:.*]]: !kvcache.scales<{{.*}}>, %[[B:.*]]: index, %[[T:.*]]: index,
// CHECK-NOT:     kvcache.scales_view
// CHECK:         %[[PAGE:.*]] = kvcache.page_id %[[S]][%[[B]], %[[T]]]
// CHECK-NEXT:    scf.for
// CHECK:           kvcache.load %[[S]][%[[B]], %{{.*}}, %[[T]], %{{.*}}] page %[[PAGE]] : !kvcache.scales
func.func @page_of_a_view(%s: !scales, %b: index, %t: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %h = %c0 to %c8 step %c1 {
    %v = kvcache.load %s[%b, %h, %t, %c0] : !scales -> f32
    memref.store %v, %out[%h] : memref<?xf32>
  }
  return
}

// A check stands before what it protects.

// CHECK-LABEL: func.func @not_past_a_check(
// CHECK-NOT:     kvcache.scales_view
// CHECK:         scf.for
// CHECK:           kvcache.check
// CHECK:           kvcache.load_scale %{{[^ ]*}}[%{{.*}}] : !kvcache.paged
func.func @not_past_a_check(%k: !cache, %b: index, %t: index, %n: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %h = %c0 to %n step %c1 {
    kvcache.check %b below %n, "sequence"
    %s = kvcache.load_scale %k[%b, %h, %t, %c0] : !cache -> f32
    memref.store %s, %out[%h] : memref<?xf32>
  }
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>

// An entry that provably exists needs no guard: in the table of the cache, but
// not in that of the scales.

// CHECK-LABEL: func.func @guarded_by_the_table_of_the_scales(
// CHECK-NOT:     scf.if
// CHECK:         kvcache.page_id %{{.*}} : !kvcache.paged
// CHECK:         scf.if
// CHECK:           kvcache.page_id %{{.*}} : !kvcache.scales
// CHECK:         scf.for
func.func @guarded_by_the_table_of_the_scales(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<4xi32>,
                                              %lut: memref<4x8xi32>, %values: memref<?x2x?x64x8x4xf32>,
                                              %slut: memref<4x4xi32>, %max: i32, %layer: index, %n: index,
                                              %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c511 = arith.constant 511 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %values lookup %slut
      : memref<?x2x?x64x8x128xf8E4M3FN>, memref<4xi32>, memref<4x8xi32>, memref<?x2x?x64x8x4xf32>, memref<4x4xi32>
      -> !collection
  %k = kvcache.paged_view key %c[%layer] : !collection
  scf.for %h = %c0 to %n step %c1 {
    %v = kvcache.load %k[%c3, %h, %c511, %c0] : !cache -> f32
    memref.store %v, %out[%h] : memref<?xf32>
  }
  return
}

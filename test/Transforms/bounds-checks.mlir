// RUN: kvcache-opt %s --kvcache-bounds-checks --split-input-file | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!tile = memref<16x128xbf16, strided<[1024, 1], offset: ?>>

// CHECK-LABEL: func.func @layer_of_a_view(
// CHECK-SAME:      %[[C:.*]]: !kvcache.paged_collection<{{.*}}>, %[[LAYER:.*]]: index)
// CHECK-NEXT:    %[[LAYERS:.*]] = kvcache.extent layers %[[C]]
// CHECK-NEXT:    kvcache.check %[[LAYER]] below %[[LAYERS]], "'kvcache.paged_view' op layer"
// CHECK-NEXT:    kvcache.paged_view
func.func @layer_of_a_view(%c: !collection, %layer: index) -> !cache {
  %k = kvcache.paged_view key %c[%layer] : !collection
  return %k : !cache
}

// The last index at which an access of 8 elements fits is 120.

// CHECK-LABEL: func.func @everything_of_a_load(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index, %[[D:.*]]: index)
// CHECK-NEXT:    %[[BATCH:.*]] = kvcache.extent batch %[[K]]
// CHECK-NEXT:    kvcache.check %[[B]] below %[[BATCH]], "'kvcache.load' op sequence"
// CHECK-NEXT:    %[[HEADS:.*]] = arith.constant 8 : index
// CHECK-NEXT:    kvcache.check %[[H]] below %[[HEADS]], "'kvcache.load' op head"
// CHECK-NEXT:    %[[ELEMENTS:.*]] = arith.constant 121 : index
// CHECK-NEXT:    kvcache.check %[[D]] below %[[ELEMENTS]], "'kvcache.load' op element"
// CHECK-NEXT:    %[[WIDTH:.*]] = arith.constant 8 : index
// CHECK-NEXT:    %[[REST:.*]] = arith.remui %[[D]], %[[WIDTH]] : index
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    kvcache.check %[[REST]] below %[[ONE]], "'kvcache.load' op element modulo 8, which must be 0,"
// CHECK-NEXT:    %[[TOKENS:.*]] = kvcache.extent tokens %[[K]]
// CHECK-NEXT:    kvcache.check %[[T]] below %[[TOKENS]], "'kvcache.load' op token"
// CHECK-NEXT:    %[[PAGES:.*]] = kvcache.extent pages %[[K]]
// CHECK-NEXT:    %[[PAGE:.*]] = kvcache.page_id %[[K]][%[[B]], %[[T]]]
// CHECK-NEXT:    kvcache.check %[[PAGE]] below %[[PAGES]], "'kvcache.load' op page id"
// CHECK-NEXT:    kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]]
func.func @everything_of_a_load(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> vector<8xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// A scalar has no width to be a multiple of.

// CHECK-LABEL: func.func @scalar_store(
// CHECK-SAME:      %[[D:[^:]*]]: index)
// CHECK:         %[[ELEMENTS:.*]] = arith.constant 128 : index
// CHECK:         kvcache.check %[[D]] below %[[ELEMENTS]], "'kvcache.store' op element"
// CHECK-NOT:     modulo
// CHECK:         kvcache.store
func.func @scalar_store(%v: bf16, %k: !cache, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store %v, %k[%b, %h, %t, %d] : bf16, !cache
  return
}

// A page that was looked up before is checked, not looked up.

// CHECK-LABEL: func.func @known_page(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index)
// CHECK-NOT:     kvcache.page_id
// CHECK:         kvcache.check %[[PAGE]] below %{{.*}}, "'kvcache.load' op page id"
// CHECK-NOT:     kvcache.page_id
// CHECK:         kvcache.check %[[PAGE]] below %{{.*}}, "'kvcache.row_index' op page id"
func.func @known_page(%k: !cache, %b: index, %h: index, %t: index, %page: index) -> (bf16, index) {
  %v = kvcache.load %k[%b, %h, %t, %h] page %page : !cache -> bf16
  %r = kvcache.row_index %k[%b, %t] page %page : !cache
  return %v, %r : bf16, index
}

// CHECK-LABEL: func.func @block_tile_inside_a_page(
// CHECK-SAME:      %[[T:[^:]*]]: index)
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.block_tile' op sequence"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.block_tile' op head"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.block_tile' op element"
// CHECK:         %[[TOKENS:.*]] = kvcache.extent tokens
// CHECK:         kvcache.check %[[T]] below %[[TOKENS]], "'kvcache.block_tile' op token"
// CHECK:         %[[MORE:.*]] = arith.constant 15 : index
// CHECK:         %[[LAST:.*]] = arith.addi %[[T]], %[[MORE]] : index
// CHECK:         kvcache.check %[[LAST]] below %[[TOKENS]], "'kvcache.block_tile' op last token"
// CHECK:         %[[REST:.*]] = arith.remui %[[T]], %{{.*}} : index
// CHECK:         kvcache.check %[[REST]] below %{{.*}}, "'kvcache.block_tile' op token modulo 16, which must be 0,"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.block_tile' op page id"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.block_tile
func.func @block_tile_inside_a_page(%k: !cache, %b: index, %h: index, %d: index, %t: index) -> !tile {
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> !tile
  return %m : !tile
}

// CHECK-LABEL: func.func @queries(
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.cache_length' op sequence"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.cache_length
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.page_id' op sequence"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.page_id' op token"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.page_id' op page id"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.tma_coords' op sequence"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.tma_coords' op token"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.tma_coords' op page id"
// CHECK:         %[[HEADS:.*]] = arith.constant 8 : index
// CHECK:         kvcache.check %{{.*}} below %[[HEADS]], "'kvcache.col_index' op head"
func.func @queries(%k: !cache, %b: index, %t: index) -> (index, index, index, index, index) {
  %n = kvcache.cache_length %k[%b] : !cache
  %p = kvcache.page_id %k[%b, %t] : !cache
  %row, %page = kvcache.tma_coords %k[%b, %t] : !cache
  %c = kvcache.col_index %k[%b] : !cache
  return %n, %p, %row, %page, %c : index, index, index, index, index
}

// Facts that read no table need no check.

// CHECK-LABEL: func.func @facts(
// CHECK-NOT:     kvcache.check
// CHECK:         return
func.func @facts(%k: !cache) -> (i1, index) {
  %empty = kvcache.empty_cache %k : !cache
  %max = kvcache.max_context_length %k : !cache
  return %empty, %max : i1, index
}

// Rows are counted through pages that lie whole rows apart, if there are several.

// CHECK-LABEL: func.func @num_rows(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>)
// CHECK:         %[[STRIDE:.*]] = kvcache.extent page_stride %[[K]]
// CHECK:         %[[PAGES:.*]] = kvcache.extent pages %[[K]]
// CHECK:         %[[ROW:.*]] = arith.constant 1024 : index
// CHECK:         %[[REST:.*]] = arith.remui %[[STRIDE]], %[[ROW]] : index
// CHECK:         %[[IS_ONE:.*]] = arith.cmpi ule, %[[PAGES]], %{{.*}} : index
// CHECK:         %[[EXCESS:.*]] = arith.select %[[IS_ONE]], %{{.*}}, %[[REST]] : index
// CHECK:         kvcache.check %[[EXCESS]] below %{{.*}}, "'kvcache.num_kv_rows' op distance between pages modulo a row (1024 elements), which must be 0 where rows are counted,"
func.func @num_rows(%k: !cache) -> index {
  %rows = kvcache.num_kv_rows %k : !cache
  return %rows : index
}

// The type of the blocks says that they do.

!blocks = memref<?x2x?x64x8x128xbf16>

// CHECK-LABEL: func.func @num_packed_rows(
// CHECK-NOT:     op distance between pages
// CHECK:         kvcache.num_kv_rows
func.func @num_packed_rows(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32, %l: index) -> index {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%l] : !collection
  %rows = kvcache.num_kv_rows %k : !cache
  return %rows : index
}

// A negative id is a sentinel; the page of any other must exist.

// CHECK-LABEL: func.func @encoded_row(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[E:.*]]: index)
// CHECK:         "'kvcache.tma_row' op distance between pages
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[NEGATIVE:.*]] = arith.cmpi slt, %[[E]], %[[ZERO]] : index
// CHECK:         %[[P:.*]] = arith.constant 64 : index
// CHECK:         %[[PAGE:.*]] = arith.divui %[[E]], %[[P]] : index
// CHECK:         %[[CHECKED:.*]] = arith.select %[[NEGATIVE]], %[[ZERO]], %[[PAGE]] : index
// CHECK:         %[[PAGES:.*]] = kvcache.extent pages %[[K]]
// CHECK:         kvcache.check %[[CHECKED]] below %[[PAGES]], "'kvcache.tma_row' op page of the encoded row id"
func.func @encoded_row(%k: !cache, %e: index) -> index {
  %r = kvcache.tma_row %k[%e] : !cache
  return %r : index
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 256, page_size = 64>

// Every page that is read; the base is as aligned as promised.

// CHECK-LABEL: func.func @populate_reads_every_page(
// CHECK-SAME:      %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[B:.*]]: index, %[[BASE:.*]]: index)
// CHECK:         kvcache.check %[[B]] below %{{.*}}, "'kvcache.populate' op sequence"
// CHECK:         %[[TOKENS:.*]] = kvcache.extent tokens %[[K]]
// CHECK:         kvcache.check %[[BASE]] below %[[TOKENS]], "'kvcache.populate' op token"
// CHECK:         %[[MORE:.*]] = arith.constant 255 : index
// CHECK:         %[[LAST:.*]] = arith.addi %[[BASE]], %[[MORE]] : index
// CHECK:         kvcache.check %[[LAST]] below %[[TOKENS]], "'kvcache.populate' op last token"
// CHECK:         %[[ALIGNMENT:.*]] = arith.constant 128 : index
// CHECK:         %[[REST:.*]] = arith.remui %[[BASE]], %[[ALIGNMENT]] : index
// CHECK:         kvcache.check %[[REST]] below %{{.*}}, "'kvcache.populate' op base modulo 128, which must be 0,"
// CHECK:         %[[PAGES:.*]] = kvcache.extent pages %[[K]]
// CHECK-DAG:     %[[FROM:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[TO:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[STEP:.*]] = arith.constant 64 : index
// CHECK:         scf.for %[[I:.*]] = %[[FROM]] to %[[TO]] step %[[STEP]] {
// CHECK:           %[[T:.*]] = arith.addi %[[BASE]], %[[I]] : index
// CHECK:           %[[PAGE:.*]] = kvcache.page_id %[[K]][%[[B]], %[[T]]]
// CHECK:           kvcache.check %[[PAGE]] below %[[PAGES]], "'kvcache.populate' op page id"
// CHECK:         }
// CHECK:         kvcache.populate
func.func @populate_reads_every_page(%k: !cache, %b: index, %base: index) -> !rows {
  %rows = kvcache.populate %k[%b, %base] {base_alignment = 128} : !cache -> !rows
  return %rows : !rows
}

// Without an attribute, the base is a multiple of the number of rows.

// CHECK-LABEL: func.func @populate_in_one_page(
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.populate' op base modulo 16, which must be 0,"
// CHECK-NOT:     scf.for
// CHECK:         kvcache.page_id
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.populate' op page id"
func.func @populate_in_one_page(%k: !cache, %b: index, %base: index)
    -> !kvcache.row_indices<rows = 16, page_size = 64> {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 16, page_size = 64>
  return %rows : !kvcache.row_indices<rows = 16, page_size = 64>
}

// CHECK-LABEL: func.func @offset_of_a_row(
// CHECK-SAME:      %[[O:[^:]*]]: index)
// CHECK:         %[[ROWS:.*]] = arith.constant 256 : index
// CHECK:         kvcache.check %[[O]] below %[[ROWS]], "'kvcache.get_row' op row offset"
func.func @offset_of_a_row(%rows: !rows, %o: index) -> index {
  %r = kvcache.get_row %rows[%o] : !rows
  return %r : index
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.continuous_collection<bf16, #kv>
!cache = !kvcache.continuous<bf16, #kv>

// A continuous cache has blocks for pages; an encoded row is a row.

// CHECK-LABEL: func.func @continuous_cache(
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.continuous_view' op layer"
// CHECK:         %[[K:.*]] = kvcache.continuous_view
// CHECK:         %[[TOKENS:.*]] = kvcache.extent tokens %[[K]]
// CHECK:         kvcache.check %{{.*}} below %[[TOKENS]], "'kvcache.load' op token"
// CHECK:         %[[BLOCKS:.*]] = kvcache.extent pages %[[K]]
// CHECK:         %[[BLOCK:.*]] = kvcache.page_id %[[K]]
// CHECK:         kvcache.check %[[BLOCK]] below %[[BLOCKS]], "'kvcache.load' op page id"
// CHECK-NOT:     kvcache.check
// CHECK:         kvcache.tma_row
func.func @continuous_cache(%c: !collection, %layer: index, %b: index, %t: index) -> (bf16, index) {
  %k = kvcache.continuous_view key %c[%layer] : !collection
  %v = kvcache.load %k[%b, %b, %t, %b] : !cache -> bf16
  %r = kvcache.tma_row %k[%t] : !cache
  return %v, %r : bf16, index
}

// CHECK-LABEL: func.func @populate_of_a_continuous_cache(
// CHECK-NOT:     scf.for
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.populate' op token"
// CHECK-NOT:     last token
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.populate' op page id"
// CHECK:         kvcache.populate
func.func @populate_of_a_continuous_cache(%k: !cache, %b: index, %base: index) -> !kvcache.row_indices<rows = 100> {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 100>
  return %rows : !kvcache.row_indices<rows = 100>
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 48>

// A check has the line of its op, also inside loops and kernels.

// CHECK-LABEL: gpu.func @checks_stand_before_their_op(
// CHECK:         scf.for
// CHECK:           kvcache.check
// CHECK:           kvcache.load
gpu.module @kernels {
  gpu.func @checks_stand_before_their_op(%k: !cache, %n: index, %out: memref<?xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %t = %c0 to %n step %c1 {
      %v = kvcache.load %k[%c0, %c0, %t, %c0] : !cache -> bf16
      memref.store %v, %out[%t] : memref<?xbf16>
    }
    gpu.return
  }
}

// -----

!collection = !kvcache.paged_collection<f32, <num_heads = 1, head_size = 8>, page_size = 4>
!blocks = memref<?x2x?x4x1x8xf32, strided<[?, ?, ?, 8, 8, 1], offset: ?>>

// What the tensors of a collection promise each other: a row of the table for
// each sequence, and pages as far apart as 16-byte accesses ask.

// CHECK-LABEL: func.func @collection(
// CHECK-SAME:      %[[BLOCKS:[^:]*]]: memref<?x2x?x4x1x8xf32, {{.*}}>, %[[LENGTHS:[^:]*]]: memref<?xi32>, %[[LUT:[^:]*]]: memref<?x?xi32>
// CHECK:         %[[SEQUENCES:.*]] = memref.dim %[[LENGTHS]], %{{.*}}
// CHECK:         %[[ROWS:.*]] = memref.dim %[[LUT]], %{{.*}}
// CHECK:         %[[LIMIT:.*]] = arith.addi %[[ROWS]], %{{.*}}
// CHECK:         kvcache.check %[[SEQUENCES]] below %[[LIMIT]], "'kvcache.paged_collection' op number of sequences with a row in 'lookup_table'"
// CHECK:         %{{.*}}, %{{.*}}, %{{.*}}:6, %[[STRIDES:.*]]:6 = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         kvcache.check %[[STRIDES]]#0 below %{{.*}}, "'kvcache.paged_collection' op stride 0 of 'blocks'"
// CHECK:         %[[REST:.*]] = arith.remui %[[STRIDES]]#0, %c4
// CHECK:         kvcache.check %[[REST]] below %{{.*}}, "'kvcache.paged_collection' op stride 0 of 'blocks' modulo 4, which must be 0,"
// CHECK:         kvcache.check %[[STRIDES]]#1
// CHECK:         kvcache.check %[[STRIDES]]#2
// CHECK:         kvcache.paged_collection
func.func @collection(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  return %c : !collection
}

// -----

// Of pages whose size is known at run time, that it is one that the type and the op allow.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = ?>
!cache = !kvcache.paged<bf16, #kv, page_size = ?>
!tile = memref<16x128xbf16, strided<[1024, 1], offset: ?>>

// CHECK-LABEL: func.func @rows_in_a_page(
// CHECK-SAME:      %[[BLOCKS:[^:]*]]: memref<
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[SIZE:.*]] = memref.dim %[[BLOCKS]], %c3
// CHECK:         kvcache.check %{{.*}} below %[[SIZE]], "'kvcache.paged_collection' op 0, which must be below the page size,"
// CHECK:         kvcache.paged_collection
func.func @rows_in_a_page(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                          %max: i32) -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return %c : !collection
}

// CHECK-LABEL: func.func @tile_in_a_page(
// CHECK-SAME:      %[[K:[^:]*]]: !kvcache.paged
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.block_tile' op token modulo 16, which must be 0,"
// CHECK:         %[[SIZE:.*]] = kvcache.extent page_size %[[K]]
// CHECK:         %[[REST:.*]] = arith.remui %[[SIZE]], %{{.*}} : index
// CHECK:         kvcache.check %[[REST]] below %{{.*}}, "'kvcache.block_tile' op page size modulo 16, which must be 0,"
// CHECK-NOT:     scf.for
// CHECK:         kvcache.page_id
// CHECK:         kvcache.block_tile
func.func @tile_in_a_page(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> !tile {
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> !tile
  return %m : !tile
}

// CHECK-LABEL: func.func @rows_of_one_page(
// CHECK-SAME:      %[[K:[^:]*]]: !kvcache.paged{{.*}}, %[[BASE:[^:]*]]: index)
// CHECK:         %[[SIZE:.*]] = kvcache.extent page_size %[[K]]
// CHECK:         %[[ROW:.*]] = arith.remui %[[BASE]], %[[SIZE]] : index
// CHECK:         %[[LAST:.*]] = arith.addi %[[ROW]], %{{.*}} : index
// CHECK:         %[[BOUND:.*]] = kvcache.extent page_size %[[K]]
// CHECK:         kvcache.check %[[LAST]] below %[[BOUND]], "'kvcache.populate' op last row in the base's page"
func.func @rows_of_one_page(%k: !cache, %b: index, %base: index) -> !kvcache.row_indices<rows = 8, page_size = ?> {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !kvcache.row_indices<rows = 8, page_size = ?>
  return %rows : !kvcache.row_indices<rows = 8, page_size = ?>
}

// RUN: kvcache-opt %s --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!tile = memref<16x128xbf16, strided<[1024, 1], offset: ?>>

func.func private @use(index, index)
func.func private @use_tiles(!tile, !tile)
func.func private @use_rows(!rows, !rows)

// Tables and lengths are not written while in use, so that neither a store nor
// a call comes between two reads.
// CHECK-LABEL: func.func @queries_merge_across_stores(
// CHECK:         %[[LENGTH:.*]] = kvcache.cache_length
// CHECK:         %[[PAGE:.*]] = kvcache.page_id
// CHECK:         %[[ROW:.*]] = kvcache.row_index
// CHECK:         %[[IN_PAGE:.*]], %{{.*}} = kvcache.tma_coords
// CHECK:         %[[TMA_ROW:.*]] = kvcache.tma_row
// CHECK:         %[[COL:.*]] = kvcache.col_index
// CHECK:         %[[ROWS:.*]] = kvcache.num_kv_rows
// CHECK:         %[[TILE:.*]] = kvcache.block_tile
// CHECK:         %[[INDICES:.*]] = kvcache.populate
// CHECK:         kvcache.store
// CHECK:         memref.store
// CHECK-NOT:     {{= kvcache\.}}
// CHECK:         call @use(%[[LENGTH]], %[[LENGTH]])
// CHECK-NOT:     {{= kvcache\.}}
// CHECK:         call @use(%[[PAGE]], %[[PAGE]])
// CHECK-NOT:     {{= kvcache\.}}
// CHECK:         call @use(%[[ROW]], %[[ROW]])
// CHECK:         call @use(%[[IN_PAGE]], %[[IN_PAGE]])
// CHECK:         call @use(%[[TMA_ROW]], %[[TMA_ROW]])
// CHECK:         call @use(%[[COL]], %[[COL]])
// CHECK:         call @use(%[[ROWS]], %[[ROWS]])
// CHECK:         call @use_tiles(%[[TILE]], %[[TILE]])
// CHECK:         call @use_rows(%[[INDICES]], %[[INDICES]])
// CHECK-NOT:     {{= kvcache\.}}
// CHECK:         return
func.func @queries_merge_across_stores(%k: !cache, %x: bf16, %m: memref<?xi32>, %n: i32, %b: index, %h: index,
                                       %t: index, %d: index) {
  %length0 = kvcache.cache_length %k[%b] : !cache
  %page0 = kvcache.page_id %k[%b, %t] : !cache
  %row0 = kvcache.row_index %k[%b, %t] : !cache
  %in_page0, %of0 = kvcache.tma_coords %k[%b, %t] : !cache
  %tma_row0 = kvcache.tma_row %k[%t] : !cache
  %col0 = kvcache.col_index %k[%h] : !cache
  %rows0 = kvcache.num_kv_rows %k : !cache
  %tile0 = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> !tile
  %indices0 = kvcache.populate %k[%b, %t] : !cache -> !rows
  kvcache.store %x, %k[%b, %h, %t, %d] : bf16, !cache
  memref.store %n, %m[%b] : memref<?xi32>
  %length1 = kvcache.cache_length %k[%b] : !cache
  call @use(%length0, %length1) : (index, index) -> ()
  %page1 = kvcache.page_id %k[%b, %t] : !cache
  call @use(%page0, %page1) : (index, index) -> ()
  %row1 = kvcache.row_index %k[%b, %t] : !cache
  call @use(%row0, %row1) : (index, index) -> ()
  %in_page1, %of1 = kvcache.tma_coords %k[%b, %t] : !cache
  call @use(%in_page0, %in_page1) : (index, index) -> ()
  %tma_row1 = kvcache.tma_row %k[%t] : !cache
  call @use(%tma_row0, %tma_row1) : (index, index) -> ()
  %col1 = kvcache.col_index %k[%h] : !cache
  call @use(%col0, %col1) : (index, index) -> ()
  %rows1 = kvcache.num_kv_rows %k : !cache
  call @use(%rows0, %rows1) : (index, index) -> ()
  %tile1 = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> !tile
  call @use_tiles(%tile0, %tile1) : (!tile, !tile) -> ()
  %indices1 = kvcache.populate %k[%b, %t] : !cache -> !rows
  call @use_rows(%indices0, %indices1) : (!rows, !rows) -> ()
  return
}

// CHECK-LABEL: func.func @views_and_rows_merge(
// CHECK:         kvcache.paged_view key
// CHECK-NOT:     kvcache.paged_view key
// CHECK:         kvcache.paged_view value
// CHECK:         %[[ROW:.*]] = kvcache.get_row
// CHECK-NOT:     kvcache.get_row
// CHECK:         call @use(%[[ROW]], %[[ROW]])
func.func @views_and_rows_merge(%c: !collection, %rows: !rows, %i: index) -> (!cache, !cache, !cache) {
  %k0 = kvcache.paged_view key %c[%i] : !collection
  %k1 = kvcache.paged_view key %c[%i] : !collection
  %v = kvcache.paged_view value %c[%i] : !collection
  %row0 = kvcache.get_row %rows[%i] : !rows
  %row1 = kvcache.get_row %rows[%i] : !rows
  call @use(%row0, %row1) : (index, index) -> ()
  return %k0, %k1, %v : !cache, !cache, !cache
}

// CHECK-LABEL: func.func @queries_of_other_tokens_stay_apart(
// CHECK:         %[[FIRST:.*]] = kvcache.row_index
// CHECK:         %[[SECOND:.*]] = kvcache.row_index
// CHECK:         %[[KNOWN:.*]] = kvcache.row_index {{.*}} page
// CHECK:         return %[[FIRST]], %[[SECOND]], %[[KNOWN]]
func.func @queries_of_other_tokens_stay_apart(%k: !cache, %b: index, %s: index, %t: index, %page: index)
    -> (index, index, index) {
  %first = kvcache.row_index %k[%b, %s] : !cache
  %second = kvcache.row_index %k[%b, %t] : !cache
  %known = kvcache.row_index %k[%b, %t] page %page : !cache
  return %first, %second, %known : index, index, index
}

// CHECK-LABEL: func.func @loads_merge(
// CHECK:         %[[X:.*]] = kvcache.load
// CHECK-NOT:     kvcache.load
// CHECK:         return %[[X]], %[[X]]
func.func @loads_merge(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> (bf16, bf16) {
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  %y = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  return %x, %y : bf16, bf16
}

// CHECK-LABEL: func.func @loads_do_not_merge_across_a_store(
// CHECK:         %[[X:.*]] = kvcache.load
// CHECK:         kvcache.store
// CHECK:         %[[Y:.*]] = kvcache.load
// CHECK:         return %[[X]], %[[Y]]
func.func @loads_do_not_merge_across_a_store(%k: !cache, %v: bf16, %b: index, %h: index, %t: index, %d: index)
    -> (bf16, bf16) {
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  kvcache.store %v, %k[%b, %h, %t, %h] : bf16, !cache
  %y = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  return %x, %y : bf16, bf16
}

// A store to memory may write the blocks.
// CHECK-LABEL: func.func @loads_do_not_merge_across_a_store_to_memory(
// CHECK:         %[[X:.*]] = kvcache.load
// CHECK:         memref.store
// CHECK:         %[[Y:.*]] = kvcache.load
// CHECK:         return %[[X]], %[[Y]]
func.func @loads_do_not_merge_across_a_store_to_memory(%k: !cache, %m: memref<?xbf16>, %v: bf16, %b: index,
                                                       %h: index, %t: index, %d: index) -> (bf16, bf16) {
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  memref.store %v, %m[%b] : memref<?xbf16>
  %y = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  return %x, %y : bf16, bf16
}

// A check may stop the program, and its message is seen.
// CHECK-LABEL: func.func @checks_stay_apart(
// CHECK:         kvcache.check
// CHECK:         kvcache.check
func.func @checks_stay_apart(%i: index, %n: index) {
  kvcache.check %i below %n, "token"
  kvcache.check %i below %n, "token"
  return
}

// An attribute that is written out with its default is the same as none, and so
// is a field.
// CHECK-LABEL: func.func @default_attributes(
// CHECK:         %[[BYTES:.*]] = kvcache.workspace_size
// CHECK-NOT:     kvcache.workspace_size
// CHECK:         call @use(%[[BYTES]], %[[BYTES]])
// CHECK:         %[[X:.*]] = kvcache.load
// CHECK-NOT:     kvcache.load
// CHECK:         return %[[X]], %[[X]]
func.func @default_attributes(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> (bf16, bf16) {
  %bytes0 = kvcache.workspace_size %b {query_heads = 32, value_size = 128, split = #kvcache.split<max = 16>}
  %bytes1 = kvcache.workspace_size %b {query_heads = 32, value_size = 128, split = #kvcache.split<max = 16, rows = 1>}
  call @use(%bytes0, %bytes1) : (index, index) -> ()
  %x0 = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  %x1 = kvcache.load %k[%b, %h, %t, %d] {nontemporal = false} : !cache -> bf16
  return %x0, %x1 : bf16, bf16
}

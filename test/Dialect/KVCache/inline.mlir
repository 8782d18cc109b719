// RUN: kvcache-opt %s --inline | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func private @keys(%c: !collection, %layer: index) -> !cache {
  %k = kvcache.paged_view key %c[%layer] : !collection
  return %k : !cache
}

func.func private @rows(%k: !cache, %b: index, %base: index) -> !rows {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !rows
  return %rows : !rows
}

func.func private @copy(%k: !cache, %b: index, %from: index, %to: index) {
  %c0 = arith.constant 0 : index
  %x = kvcache.load %k[%b, %c0, %from, %c0] : !cache -> vector<8xbf16>
  kvcache.store %x, %k[%b, %c0, %to, %c0] : vector<8xbf16>, !cache
  return
}

// Caches pass through arguments and results.
// CHECK-LABEL: func.func @caches_and_rows_pass_through_calls(
// CHECK-SAME:    %[[C:[^:]*]]: !kvcache.paged_collection<bf16, #{{.*}}, page_size = 64>, %[[B:.*]]: index, %[[T:.*]]: index)
// CHECK-NOT:     call
// CHECK:         %[[K:.*]] = kvcache.paged_view key %[[C]][%[[B]]]
// CHECK-NOT:     call
// CHECK:         %[[ROWS:.*]] = kvcache.populate %[[K]][%[[B]], %[[T]]]
// CHECK-NOT:     call
// CHECK:         %[[ROW:.*]] = kvcache.get_row %[[ROWS]][%[[T]]]
// CHECK-NEXT:    return %[[ROW]]
func.func @caches_and_rows_pass_through_calls(%c: !collection, %b: index, %t: index) -> index {
  %k = call @keys(%c, %b) : (!collection, index) -> !cache
  %rows = call @rows(%k, %b, %t) : (!cache, index, index) -> !rows
  %row = kvcache.get_row %rows[%t] : !rows
  return %row : index
}

// CHECK-LABEL: func.func @calls_in_regions_inline(
// CHECK:         scf.for
// CHECK-NOT:       call
// CHECK:           %[[X:.*]] = kvcache.load
// CHECK-NEXT:      kvcache.store %[[X]]
func.func @calls_in_regions_inline(%k: !cache, %b: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @copy(%k, %b, %i, %n) : (!cache, index, index, index) -> ()
  }
  return
}

!tile = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func private @first(%tile: !tile) -> bf16 {
  %c0 = arith.constant 0 : index
  %x = kvcache.tile_load %tile[%c0, %c0] : !tile -> bf16
  return %x : bf16
}

// CHECK-LABEL: func.func @calls_in_the_use_of_a_slot_inline(
// CHECK:         kvcache.consume
// CHECK:         ^bb0(%[[TILE:.*]]: !kvcache.tile
// CHECK-NOT:       call
// CHECK:           %[[X:.*]] = kvcache.tile_load %[[TILE]]
// CHECK-NEXT:      kvcache.yield %[[X]]
func.func @calls_in_the_use_of_a_slot_inline(%k: !cache, %b: index) -> bf16 {
  %c0 = arith.constant 0 : index
  %ring = kvcache.pipe : !kvcache.pipe<2, !tile>
  kvcache.produce %ring[%c0] : !kvcache.pipe<2, !tile> {
  ^bb0(%tile: !tile):
    kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %tile : !cache, !tile
  }
  %x = kvcache.consume %ring[%c0] : !kvcache.pipe<2, !tile> -> (bf16) {
  ^bb0(%tile: !tile):
    %first = func.call @first(%tile) : (!tile) -> bf16
    kvcache.yield %first : bf16
  }
  return %x : bf16
}

func.func private @check_page(%k: !cache, %page: index) {
  %pages = kvcache.extent pages %k : !cache
  kvcache.check %page below %pages, "page id"
  return
}

// CHECK-LABEL: func.func @checks_inline(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[PAGE:[^:]*]]: index)
// CHECK-NEXT:    %[[PAGES:.*]] = kvcache.extent pages %[[K]]
// CHECK-NEXT:    kvcache.check %[[PAGE]] below %[[PAGES]], "page id"
// CHECK-NEXT:    return
func.func @checks_inline(%k: !cache, %page: index) {
  call @check_page(%k, %page) : (!cache, index) -> ()
  return
}

// RUN: kvcache-opt %s --loop-invariant-code-motion | FileCheck %s

// A loop may have no trips: reads of a table leave it only where the entry
// provably exists, arithmetic always.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>
!continuous = !kvcache.continuous<bf16, #kv>
!one_page = !kvcache.row_indices<rows = 64, page_size = 64>
!two_pages = !kvcache.row_indices<rows = 128, page_size = 64>
!tile = memref<16x128xbf16, strided<[1024, 1], offset: ?>>

func.func private @use(index)
func.func private @use_value(bf16)
func.func private @use_tile(!tile)
func.func private @use_cache(!cache)
func.func private @use_fact(i1)
func.func private @use_one_page(!one_page)
func.func private @use_two_pages(!two_pages)

// CHECK-LABEL: func.func @reads_of_an_argument_stay(
// CHECK:         scf.for
// CHECK:           kvcache.cache_length
// CHECK:           kvcache.page_id
// CHECK:           kvcache.row_index
// CHECK:           kvcache.tma_coords
// CHECK:           kvcache.block_tile
// CHECK:           kvcache.populate
// CHECK:           kvcache.load
// CHECK:           call
func.func @reads_of_an_argument_stay(%k: !cache, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %length = kvcache.cache_length %k[%c0] : !cache
    %page = kvcache.page_id %k[%c0, %c0] : !cache
    %row = kvcache.row_index %k[%c0, %c0] : !cache
    %coords:2 = kvcache.tma_coords %k[%c0, %c0] : !cache
    %tile = kvcache.block_tile %k[%c0, %c0, %c0, %c0] : !cache -> !tile
    %rows = kvcache.populate %k[%c0, %c0] : !cache -> !one_page
    %x = kvcache.load %k[%c0, %c0, %c0, %c0] : !cache -> bf16
    func.call @use(%length) : (index) -> ()
    func.call @use(%page) : (index) -> ()
    func.call @use(%row) : (index) -> ()
    func.call @use(%coords#0) : (index) -> ()
    func.call @use_tile(%tile) : (!tile) -> ()
    func.call @use_one_page(%rows) : (!one_page) -> ()
    func.call @use_value(%x) : (bf16) -> ()
  }
  return
}

// CHECK-LABEL: func.func @arithmetic_leaves(
// CHECK-DAG:     kvcache.paged_view
// CHECK-DAG:     kvcache.empty_cache
// CHECK-DAG:     kvcache.max_prompt_length
// CHECK-DAG:     kvcache.max_context_length
// CHECK-DAG:     kvcache.num_kv_rows
// CHECK-DAG:     kvcache.extent batch
// CHECK-DAG:     kvcache.tma_row
// CHECK-DAG:     kvcache.col_index
// CHECK-DAG:     kvcache.row_index {{.*}} page
// CHECK-DAG:     kvcache.block_tile {{.*}} page
// CHECK-DAG:     kvcache.get_row
// CHECK:         scf.for
// CHECK-NOT:       {{= kvcache\.}}
// CHECK:         return
func.func @arithmetic_leaves(%c: !collection, %k: !cache, %rows: !one_page, %b: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %view = kvcache.paged_view key %c[%b] : !collection
    %empty = kvcache.empty_cache %k : !cache
    %prompt = kvcache.max_prompt_length %k : !cache
    %context = kvcache.max_context_length %k : !cache
    %num_rows = kvcache.num_kv_rows %k : !cache
    %batch = kvcache.extent batch %k : !cache
    %tma_row = kvcache.tma_row %k[%b] : !cache
    %col = kvcache.col_index %k[%b] : !cache
    %row = kvcache.row_index %k[%b, %b] page %b : !cache
    %tile = kvcache.block_tile %k[%b, %b, %b, %b] page %b : !cache -> !tile
    %of_one_page = kvcache.get_row %rows[%b] : !one_page
    func.call @use_cache(%view) : (!cache) -> ()
    func.call @use_fact(%empty) : (i1) -> ()
    func.call @use(%prompt) : (index) -> ()
    func.call @use(%context) : (index) -> ()
    func.call @use(%num_rows) : (index) -> ()
    func.call @use(%batch) : (index) -> ()
    func.call @use(%tma_row) : (index) -> ()
    func.call @use(%col) : (index) -> ()
    func.call @use(%row) : (index) -> ()
    func.call @use_tile(%tile) : (!tile) -> ()
    func.call @use(%of_one_page) : (index) -> ()
  }
  return
}

// A load reads memory that the loop may write, even if its page is known.
// CHECK-LABEL: func.func @loads_stay(
// CHECK:         scf.for
// CHECK:           kvcache.load
func.func @loads_stay(%k: !cache, %b: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = kvcache.load %k[%b, %c0, %c0, %c0] page %b : !cache -> bf16
    func.call @use_value(%x) : (bf16) -> ()
  }
  return
}

// Four sequences of two pages: the last token that has an entry is 127.
// CHECK-LABEL: func.func @reads_in_range_leave(
// CHECK-DAG:     kvcache.cache_length
// CHECK-DAG:     kvcache.page_id
// CHECK-DAG:     kvcache.row_index
// CHECK-DAG:     kvcache.tma_coords
// CHECK-DAG:     kvcache.block_tile
// CHECK-DAG:     kvcache.populate {{.*}} -> !kvcache.row_indices<rows = 64, page_size = 64>
// CHECK-DAG:     kvcache.populate {{.*}} -> !kvcache.row_indices<rows = 128, page_size = 64>
// CHECK:         scf.for
// CHECK-NOT:       {{= kvcache\.}}
// CHECK:         return
func.func @reads_in_range_leave(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<4xi32>,
                                %lut: memref<4x2xi32>, %max: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = arith.constant 3 : index
  %token = arith.constant 127 : index
  %first_of_tile = arith.constant 112 : index
  %second_page = arith.constant 64 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<4xi32>, memref<4x2xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  scf.for %i = %c0 to %n step %c1 {
    %length = kvcache.cache_length %k[%b] : !cache
    %page = kvcache.page_id %k[%b, %token] : !cache
    %row = kvcache.row_index %k[%b, %token] : !cache
    %coords:2 = kvcache.tma_coords %k[%b, %token] : !cache
    %tile = kvcache.block_tile %k[%b, %c0, %first_of_tile, %c0] : !cache -> !tile
    %one_page = kvcache.populate %k[%b, %second_page] : !cache -> !one_page
    %two_pages = kvcache.populate %k[%b, %c0] : !cache -> !two_pages
    func.call @use(%length) : (index) -> ()
    func.call @use(%page) : (index) -> ()
    func.call @use(%row) : (index) -> ()
    func.call @use(%coords#0) : (index) -> ()
    func.call @use_tile(%tile) : (!tile) -> ()
    func.call @use_one_page(%one_page) : (!one_page) -> ()
    func.call @use_two_pages(%two_pages) : (!two_pages) -> ()
  }
  return
}

// CHECK-LABEL: func.func @reads_past_the_table_stay(
// CHECK:         scf.for
// CHECK:           kvcache.cache_length
// CHECK:           kvcache.cache_length
// CHECK:           kvcache.page_id
// CHECK:           kvcache.row_index
// CHECK:           kvcache.tma_coords
// CHECK:           kvcache.block_tile
// CHECK:           kvcache.populate
// CHECK:           call
func.func @reads_past_the_table_stay(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<4xi32>,
                                     %lut: memref<4x2xi32>, %max: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %negative = arith.constant -1 : index
  %sequences = arith.constant 4 : index
  %tokens = arith.constant 128 : index
  %second_page = arith.constant 64 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<4xi32>, memref<4x2xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  scf.for %i = %c0 to %n step %c1 {
    %of_no_sequence = kvcache.cache_length %k[%sequences] : !cache
    %before_the_first = kvcache.cache_length %c[%negative] : !collection
    %page = kvcache.page_id %k[%sequences, %c0] : !cache
    %row = kvcache.row_index %k[%c0, %tokens] : !cache
    %coords:2 = kvcache.tma_coords %k[%c0, %negative] : !cache
    %tile = kvcache.block_tile %k[%c0, %c0, %tokens, %c0] : !cache -> !tile
    %rows = kvcache.populate %k[%c0, %second_page] : !cache -> !two_pages
    func.call @use(%of_no_sequence) : (index) -> ()
    func.call @use(%before_the_first) : (index) -> ()
    func.call @use(%page) : (index) -> ()
    func.call @use(%row) : (index) -> ()
    func.call @use(%coords#0) : (index) -> ()
    func.call @use_tile(%tile) : (!tile) -> ()
    func.call @use_two_pages(%rows) : (!two_pages) -> ()
  }
  return
}

// CHECK-LABEL: func.func @reads_of_unknown_sequences_or_sizes_stay(
// CHECK:         scf.for
// CHECK:           kvcache.cache_length
// CHECK:           kvcache.cache_length
// CHECK:           kvcache.row_index
// CHECK:           kvcache.row_index
// CHECK:           kvcache.row_index
// CHECK:           call
func.func @reads_of_unknown_sequences_or_sizes_stay(
    %blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<4x?xi32>,
    %static_lengths: memref<4xi32>, %static_lut: memref<4x2xi32>, %max: i32, %b: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %dynamic = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
               : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<4x?xi32> -> !collection
  %static = kvcache.paged_collection %blocks, %static_lengths, %static_lut, %max, %max
              : memref<?x2x?x64x8x128xbf16>, memref<4xi32>, memref<4x2xi32> -> !collection
  %k = kvcache.paged_view key %dynamic[%c0] : !collection
  %v = kvcache.paged_view value %static[%c0] : !collection
  scf.for %i = %c0 to %n step %c1 {
    %length0 = kvcache.cache_length %k[%c0] : !cache
    %length1 = kvcache.cache_length %v[%b] : !cache
    %row0 = kvcache.row_index %k[%c0, %c0] : !cache
    %row1 = kvcache.row_index %v[%b, %c0] : !cache
    %row2 = kvcache.row_index %v[%c0, %b] : !cache
    func.call @use(%length0) : (index) -> ()
    func.call @use(%length1) : (index) -> ()
    func.call @use(%row0) : (index) -> ()
    func.call @use(%row1) : (index) -> ()
    func.call @use(%row2) : (index) -> ()
  }
  return
}

// A continuous cache has one entry for a sequence, whatever the token.
// CHECK-LABEL: func.func @reads_of_a_continuous_cache_leave_where_the_sequence_exists(
// CHECK-SAME:    %[[T:[^:]*]]: index, %[[N:[^:]*]]: index)
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 3 : index
// CHECK-DAG:     %[[PAST:.*]] = arith.constant 4 : index
// CHECK-DAG:     kvcache.row_index %{{.*}}[%[[LAST]], %[[T]]]
// CHECK-DAG:     kvcache.cache_length %{{.*}}[%[[LAST]]]
// CHECK:         scf.for
// CHECK-NOT:       [%[[LAST]]
// CHECK:           kvcache.row_index %{{.*}}[%[[PAST]], %[[T]]]
// CHECK:           kvcache.cache_length %{{.*}}[%[[PAST]]]
// CHECK-NOT:       [%[[LAST]]
// CHECK:         return
func.func @reads_of_a_continuous_cache_leave_where_the_sequence_exists(
    %blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<4xi32>, %lut: memref<4xi32>, %max: i32, %t: index,
    %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant 3 : index
  %past = arith.constant 4 : index
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<4xi32>, memref<4xi32> -> !continuous_collection
  %k = kvcache.continuous_view key %c[%c0] : !continuous_collection
  scf.for %i = %c0 to %n step %c1 {
    %row0 = kvcache.row_index %k[%last, %t] : !continuous
    %row1 = kvcache.row_index %k[%past, %t] : !continuous
    %length0 = kvcache.cache_length %k[%last] : !continuous
    %length1 = kvcache.cache_length %k[%past] : !continuous
    func.call @use(%row0) : (index) -> ()
    func.call @use(%row1) : (index) -> ()
    func.call @use(%length0) : (index) -> ()
    func.call @use(%length1) : (index) -> ()
  }
  return
}

// A dynamic offset reads its entry again, a constant one takes what was read.
// CHECK-LABEL: func.func @rows_leave_at_constant_offsets(
// CHECK-SAME:    %{{.*}}: !kvcache.row_indices<rows = 128, page_size = 64>, %[[O:[^:]*]]: index,
// CHECK:         %[[LAST:.*]] = arith.constant 127 : index
// CHECK:         kvcache.get_row %{{.*}}[%[[LAST]]]
// CHECK:         scf.for
// CHECK-NOT:       %[[LAST]]
// CHECK:           kvcache.get_row %{{.*}}[%[[O]]]
func.func @rows_leave_at_constant_offsets(%rows: !two_pages, %o: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant 127 : index
  scf.for %i = %c0 to %n step %c1 {
    %row0 = kvcache.get_row %rows[%last] : !two_pages
    %row1 = kvcache.get_row %rows[%o] : !two_pages
    func.call @use(%row0) : (index) -> ()
    func.call @use(%row1) : (index) -> ()
  }
  return
}

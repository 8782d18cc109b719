// RUN: kvcache-opt %s --split-input-file --verify-diagnostics
// XFAIL: *

// (C4) of paged_collection: without scales nothing is found through their table.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c4_scales_table_without_scales(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'scales_lookup_table' only with 'scales'}}
  %c = "kvcache.paged_collection"(%blocks, %lengths, %lut, %max, %max, %lut)
         <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1>}>
         : (memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, i32, i32, memref<?x?xi32>) -> !collection
  return
}

// -----

// Bundles hold pointers of the default memory space.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @blocks_in_another_memory_space(%blocks: memref<?x2x?x64x8x128xbf16, 1>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' in the default memory space, got 'memref<?x2x?x64x8x128xbf16, 1>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, 1>, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.continuous_collection<bf16, #kv>

func.func @table_in_another_memory_space(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                         %lut: memref<?xi32, 3>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' in the default memory space, got 'memref<?xi32, 3>'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32, 3> -> !collection
  return
}

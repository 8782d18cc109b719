// RUN: kvcache-opt %s --split-input-file --verify-diagnostics
// XFAIL: *

// A tile has elements.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @tile_without_columns(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at least one token and one column, got 'memref<16x0xbf16,}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> memref<16x0xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

func.func @tile_without_tokens_of_a_continuous_cache(%k: !continuous, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at least one token and one column, got 'memref<0x128xbf16,}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !continuous -> memref<0x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

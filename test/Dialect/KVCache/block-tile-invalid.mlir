// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of block_tile

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_dynamic_tokens(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<?x128xbf16, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<?x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_tile_element_type(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xf16, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_packed_tile(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_static_offset(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16, strided<[1024, 1]>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16, strided<[1024, 1]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_other_row_stride(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16, strided<[128, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16, strided<[128, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_dynamic_row_stride(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16, strided<[?, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16, strided<[?, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_memory_space(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16, strided<[1024, 1], offset: ?>, 3>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16, strided<[1024, 1], offset: ?>, 3>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4_cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c1_4_bit_elements_are_bytes(%k: !mxfp4_cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'i8' and layout strided<[512, 1], offset: ?>, got 'memref<16x128xf4E2M1FN, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !mxfp4_cache -> memref<16x128xf4E2M1FN, strided<[1024, 1], offset: ?>>
  return
}

// -----

// (C2) of block_tile

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_tile_past_a_head(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at most 128 columns, got 256}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x256xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4_cache = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c2_tile_past_a_head_of_bytes(%k: !mxfp4_cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at most 64 columns, got 128}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !mxfp4_cache -> memref<16x128xi8, strided<[512, 1], offset: ?>>
  return
}

// -----

// (C3) of block_tile

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_tile_past_a_page(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects page_size (64) to be a multiple of the rows of 'tile', got 128}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<128x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_tile_across_pages(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects page_size (64) to be a multiple of the rows of 'tile', got 48}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<48x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_tile_without_tokens(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at least one token and one column, got 'memref<0x128xbf16}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<0x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

// Types of block_tile

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @tile_of_rank_1(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be 2D memref of any type values, but got 'memref<16xbf16, strided<[1024], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16xbf16, strided<[1024], offset: ?>>
  return
}

// -----

// A tile has elements.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @tile_without_columns(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at least one token and one column, got 'memref<16x0xbf16,}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> memref<16x0xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @tile_without_tokens_of_a_continuous_cache(%k: !continuous, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at least one token and one column, got 'memref<0x128xbf16,}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !continuous -> memref<0x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

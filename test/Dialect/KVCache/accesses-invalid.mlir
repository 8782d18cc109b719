// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of load

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_load_of_integers(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('bf16'), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got 'i16'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> i16
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_load_of_integer_lanes(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('bf16'), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got 'si8'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xsi8>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int8 = !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128>

func.func @c1_load_of_floats_from_integers(%k: !int8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('i8'), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got 'f32'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !int8 -> f32
  return
}

// -----

// (C2) of load

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c2_load_past_a_head(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have at most head_size (128) lanes, got 129}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<129xbf16>
  return
}

// -----

// (C3) of load

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>

func.func @c3_load_from_a_quantized_cache(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'cache' not to be quantized, got '!kvcache.paged<f8E4M3FN,}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !fp8 -> vector<8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int8 = !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128>

func.func @c3_load_of_stored_integers(%k: !int8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'cache' not to be quantized, got '!kvcache.paged<i8,}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !int8 -> i8
  return
}

// -----

// (C1) of store

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_store_of_another_float_type(%x: vector<8xf32>, %k: !cache, %b: index, %h: index, %t: index,
                                          %d: index) {
  // expected-error @below {{expects 'value' to have the cache's element type ('bf16'), got 'f32'}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<8xf32>, !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_store_of_integers(%x: i16, %k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have the cache's element type ('bf16'), got 'i16'}}
  kvcache.store %x, %k[%b, %h, %t, %d] : i16, !cache
  return
}

// -----

// (C2) of store

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c2_store_past_a_head(%x: vector<256xbf16>, %k: !cache, %b: index, %h: index, %t: index,
                                %d: index) {
  // expected-error @below {{expects 'value' to have at most head_size (128) lanes, got 256}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<256xbf16>, !cache
  return
}

// -----

// Types and syntax of load and store

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @load_of_an_index(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'index'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> index
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @load_of_indices(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<8xindex>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xindex>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @load_of_a_matrix(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<2x4xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<2x4xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @load_of_rank_0(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<bf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<bf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @load_of_scalable_length(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<[8]xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<[8]xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @load_of_a_memref(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'memref<8xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> memref<8xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @load_from_a_collection(%k: !collection, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of scales, but got '!kvcache.paged_collection<bf16,}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !collection -> bf16
  return
}

// -----

func.func @load_from_a_memref(%k: memref<8xbf16>, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of scales, but got 'memref<8xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : memref<8xbf16> -> bf16
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @store_of_a_matrix(%x: vector<2x4xbf16>, %k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<2x4xbf16>'}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<2x4xbf16>, !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @store_to_a_collection(%x: bf16, %k: !collection, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #1 must be view of a paged or continuous cache or of scales, but got '!kvcache.paged_collection<bf16,}}
  kvcache.store %x, %k[%b, %h, %t, %d] : bf16, !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @missing_element(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expected ','}}
  %x = kvcache.load %k[%b, %h, %t] : !cache -> bf16
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @missing_result_type(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expected '->'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache bf16
  return
}

// -----

// (C1) of block_tile

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_dynamic_tokens(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<?x128xbf16, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<?x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_tile_element_type(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xf16, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_packed_tile(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_static_offset(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16, strided<[1024, 1]>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16, strided<[1024, 1]>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_other_row_stride(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16, strided<[128, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16, strided<[128, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c1_dynamic_row_stride(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'bf16' and layout strided<[1024, 1], offset: ?>, got 'memref<16x128xbf16, strided<[?, 1], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16x128xbf16, strided<[?, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_tile_past_a_page(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects page_size (64) to be a multiple of the tokens of 'tile', got 128}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<128x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_tile_across_pages(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects page_size (64) to be a multiple of the tokens of 'tile', got 48}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<48x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c3_tile_without_tokens(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at least one token and one column, got 'memref<0x128xbf16}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<0x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

// Types of block_tile

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @tile_of_rank_1(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be 2D memref of any type values, but got 'memref<16xbf16, strided<[1024], offset: ?>>'}}
  %m = kvcache.block_tile %k[%b, %h, %t, %d]
         : !cache -> memref<16xbf16, strided<[1024], offset: ?>>
  return
}

// -----

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

// -----

// Two elements of a 4-bit cache share a byte: an odd number of them would write
// half of one.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @store_of_one_4_bit_element(%x: f4E2M1FN, %k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes of 'f4E2M1FN', got 1}}
  kvcache.store %x, %k[%b, %h, %t, %d] : f4E2M1FN, !mxfp4
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @store_of_odd_4_bit_elements(%x: vector<3xf4E2M1FN>, %k: !mxfp4, %b: index, %h: index, %t: index,
                                       %d: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes of 'f4E2M1FN', got 3}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<3xf4E2M1FN>, !mxfp4
  return
}

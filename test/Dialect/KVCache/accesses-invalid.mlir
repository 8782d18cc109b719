// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of load

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_load_of_integers(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('bf16'), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got 'i16'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> i16
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_load_of_integer_lanes(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('bf16'), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got 'si8'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xsi8>
  return
}

// -----

!int8 = !kvcache.paged<i8, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>

func.func @c1_load_of_stored_integers(%k: !int8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to be dequantized to f64, f32, f16 or bf16, got 'i8'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !int8 -> i8
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>

func.func @c1_load_of_stored_floats(%k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to be dequantized to f64, f32, f16 or bf16, got 'f8E4M3FN'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !fp8 -> vector<8xf8E4M3FN>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_load_of_scale_floats(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('bf16'), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got 'f8E8M0FNU'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> f8E8M0FNU
  return
}

// -----

// (C2) of load

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_load_past_a_head(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have at most head_size (128) lanes, got 129}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<129xbf16>
  return
}

// -----

!mxfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c2_load_of_one_4_bit_element(%k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have an even number of lanes of 'f4E2M1FN', got 1}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !mxfp4 -> f32
  return
}

// -----

!mxfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c2_load_of_odd_4_bit_elements(%k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have an even number of lanes of 'f4E2M1FN', got 7}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !mxfp4 -> vector<7xbf16>
  return
}

// -----

// (C3) of load

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_scale_page_without_scales(%k: !cache, %b: index, %h: index, %t: index, %d: index, %page: index) {
  // expected-error @below {{expects 'scale_page' only for a quantized cache, got '!kvcache.paged<bf16,}}
  %x = kvcache.load %k[%b, %h, %t, %d] scale_page %page : !cache -> vector<8xf32>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @c3_scale_page_of_a_continuous_cache(%k: !continuous, %b: index, %h: index, %t: index, %d: index,
                                               %page: index) {
  // expected-error @below {{expects 'scale_page' only for a quantized cache, got '!kvcache.continuous<bf16,}}
  %x = kvcache.load %k[%b, %h, %t, %d] page %page scale_page %page : !continuous -> bf16
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_tensor_scale_of_16_bit_elements(%k: !cache, %b: index, %h: index, %t: index, %d: index, %s: f32) {
  // expected-error @below {{expects 'tensor_scale' only for a cache with floats of at most 8 bits, i8 or scales, got '!kvcache.paged<bf16,}}
  %x = kvcache.load %k[%b, %h, %t, %d] tensor_scale %s : !cache -> vector<8xf32>
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E4M3FN, granularity = 16>

func.func @tensor_scale_of_another_type(%k: !nvfp4, %i: index, %s: bf16) {
  // expected-error @below {{operand #5 must be 32-bit float, but got 'bf16'}}
  %x = "kvcache.load"(%k, %i, %i, %i, %i, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 1>}
         : (!nvfp4, index, index, index, index, bf16) -> vector<8xf32>
  return
}

// -----

// (C1) of store

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_store_of_another_float_type(%x: vector<8xf32>, %k: !cache, %b: index, %h: index, %t: index,
                                          %d: index) {
  // expected-error @below {{expects 'value' to have the cache's element type ('bf16'), got 'f32'}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<8xf32>, !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_store_of_integers(%x: i16, %k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have the cache's element type ('bf16'), got 'i16'}}
  kvcache.store %x, %k[%b, %h, %t, %d] : i16, !cache
  return
}

// -----

// (C2) of store

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_store_past_a_head(%x: vector<256xbf16>, %k: !cache, %b: index, %h: index, %t: index,
                                %d: index) {
  // expected-error @below {{expects 'value' to have at most head_size (128) lanes, got 256}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<256xbf16>, !cache
  return
}

// -----

// Types and syntax of load and store

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_of_an_index(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'index'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> index
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_of_indices(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<8xindex>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xindex>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_of_a_matrix(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<2x4xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<2x4xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_of_rank_0(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<bf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<bf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_of_scalable_length(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<[8]xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<[8]xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_of_a_memref(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{result #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'memref<8xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache -> memref<8xbf16>
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_from_a_collection(%k: !collection, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.paged_collection<bf16,}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !collection -> bf16
  return
}

// -----

func.func @load_from_a_memref(%k: memref<8xbf16>, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, but got 'memref<8xbf16>'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : memref<8xbf16> -> bf16
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @store_of_a_matrix(%x: vector<2x4xbf16>, %k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be floating-point or signless integer or 1-D vector of fixed length, but got 'vector<2x4xbf16>'}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<2x4xbf16>, !cache
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @store_to_a_collection(%x: bf16, %k: !collection, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #1 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.paged_collection<bf16,}}
  kvcache.store %x, %k[%b, %h, %t, %d] : bf16, !collection
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @missing_element(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expected ','}}
  %x = kvcache.load %k[%b, %h, %t] : !cache -> bf16
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @missing_result_type(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expected '->'}}
  %x = kvcache.load %k[%b, %h, %t, %d] : !cache bf16
  return
}

// -----

// Two elements of a 4-bit cache share a byte: an odd number of them would write
// half of one.

!mxfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @store_of_one_4_bit_element(%x: f4E2M1FN, %k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes of 'f4E2M1FN', got 1}}
  kvcache.store %x, %k[%b, %h, %t, %d] : f4E2M1FN, !mxfp4
  return
}

// -----

!mxfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @store_of_odd_4_bit_elements(%x: vector<3xf4E2M1FN>, %k: !mxfp4, %b: index, %h: index, %t: index,
                                       %d: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes of 'f4E2M1FN', got 3}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<3xf4E2M1FN>, !mxfp4
  return
}

// -----

!cache = !kvcache.paged<i16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_integers_as_floats(%k: !cache, %i: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('i16'), got 'f32'}}
  %v = kvcache.load %k[%i, %i, %i, %i] : !cache -> vector<8xf32>
  return
}

// -----

!cache = !kvcache.paged<f64, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_wide_floats_as_others(%k: !cache, %i: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('f64'), got 'f32'}}
  %v = kvcache.load %k[%i, %i, %i, %i] : !cache -> vector<2xf32>
  return
}

// -----

!cache = !kvcache.paged<i8, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @integers_as_fp8(%k: !cache, %i: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('i8'), or f64, f32, f16 or bf16, got 'f8E4M3FN'}}
  %v = kvcache.load %k[%i, %i, %i, %i] : !cache -> vector<16xf8E4M3FN>
  return
}

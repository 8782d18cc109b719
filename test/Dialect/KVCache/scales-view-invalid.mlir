// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// What a view of scales does not support

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @empty_cache_of_scales(%s: !scales) {
  // expected-error @below {{operand #0 must be cache view or collection, not a view of scales, but got '!kvcache.scales<}}
  %r = kvcache.empty_cache %s : !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @max_prompt_length_of_scales(%s: !scales) {
  // expected-error @below {{operand #0 must be cache view or collection, not a view of scales, but got '!kvcache.scales<}}
  %r = kvcache.max_prompt_length %s : !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @col_index_of_scales(%s: !scales, %h: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache, not of scales, but got '!kvcache.scales<}}
  %r = kvcache.col_index %s[%h] : !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @layers_of_scales(%s: !scales) {
  // expected-error @below {{expects 'cache' to be a collection for the extent 'layers', got a view}}
  %r = kvcache.extent layers %s : !scales
  return
}

// -----

// Scales are accessed as unquantized elements

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @load_of_scales_past_the_groups(%s: !scales, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have at most one lane per group of a head (4), got 8}}
  %v = kvcache.load %s[%b, %h, %t, %d] : !scales -> vector<8xf32>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @load_of_scales_as_integers(%s: !scales, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'result' to have the cache's element type ('f32'), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got 'i32'}}
  %v = kvcache.load %s[%b, %h, %t, %d] : !scales -> i32
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @load_of_scales_by_their_page(%s: !scales, %b: index, %h: index, %t: index, %d: index, %page: index) {
  // expected-error @below {{expects 'scale_page' only for a quantized cache, got '!kvcache.scales<}}
  %v = kvcache.load %s[%b, %h, %t, %d] scale_page %page : !scales -> f32
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @load_of_scales_with_tensor_scale(%s: !scales, %b: index, %h: index, %t: index, %d: index, %x: f32) {
  // expected-error @below {{expects 'tensor_scale' only for a cache with floats of at most 8 bits, i8 or scales, got '!kvcache.scales<}}
  %v = kvcache.load %s[%b, %h, %t, %d] tensor_scale %x : !scales -> f32
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @store_of_scales_of_another_type(%x: bf16, %s: !scales, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have the cache's element type ('f32'), got 'bf16'}}
  kvcache.store %x, %s[%b, %h, %t, %d] : bf16, !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @store_of_scales_past_the_groups(%v: vector<5xf32>, %s: !scales, %b: index, %h: index, %t: index,
                                           %d: index) {
  // expected-error @below {{expects 'value' to have at most one lane per group of a head (4), got 5}}
  kvcache.store %v, %s[%b, %h, %t, %d] : vector<5xf32>, !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @tile_of_scales_past_the_groups(%s: !scales, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to have at most 4 columns, got 8}}
  %m = kvcache.block_tile %s[%b, %h, %t, %d] : !scales -> memref<16x8xf32, strided<[32, 1], offset: ?>>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @tile_of_scales_with_strides_of_elements(%s: !scales, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'tile' to be a memref with static sizes, element type 'f32' and layout strided<[32, 1], offset: ?>, got 'memref<16x4xf32, strided<[1024, 1], offset: ?>>'}}
  %m = kvcache.block_tile %s[%b, %h, %t, %d] : !scales -> memref<16x4xf32, strided<[1024, 1], offset: ?>>
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @rows_of_scales_of_another_page_size(%s: !scales, %b: index, %t: index) {
  // expected-error @below {{expects 'rows' to have the cache's page_size (64), got 32}}
  %r = kvcache.populate %s[%b, %t] : !scales -> !kvcache.row_indices<rows = 64, page_size = 32>
  return
}

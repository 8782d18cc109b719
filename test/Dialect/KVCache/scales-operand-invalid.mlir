// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// An unquantized cache has no scales

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_quantized_of_an_unquantized_cache(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache, but got '!kvcache.paged<bf16,}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !cache -> f8E4M3FN
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_scale_of_an_unquantized_cache(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, but got '!kvcache.paged<bf16,}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !cache -> f32
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @store_scale_of_an_unquantized_cache(%s: f32, %k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #1 must be view of a quantized cache or of its scales, but got '!kvcache.paged<bf16,}}
  kvcache.store_scale %s, %k[%b, %h, %t, %d] : f32, !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @store_quantized_of_an_unquantized_cache(%v: vector<128xbf16>, %k: !cache, %b: index, %h: index, %t: index,
                                                   %d: index) {
  // expected-error @below {{expects 'cache' to have scales, floats of 8 bits or i8, got '!kvcache.paged<bf16,}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<128xbf16>, !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @scales_block_tile_of_an_unquantized_cache(%k: !cache, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, which are neither interleaved nor shared by tokens, but got '!kvcache.paged<bf16,}}
  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !cache -> memref<16x4xf32, strided<[32, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @num_scale_rows_of_an_unquantized_cache(%k: !cache) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens, but got '!kvcache.paged<bf16,}}
  %r = kvcache.num_scale_rows %k : !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @scale_row_index_of_an_unquantized_cache(%k: !cache, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens, but got '!kvcache.paged<bf16,}}
  %r = kvcache.scale_row_index %k[%b, %t] : !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @scale_tma_coords_of_an_unquantized_cache(%k: !cache, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens, but got '!kvcache.paged<bf16,}}
  %r, %p = kvcache.scale_tma_coords %k[%b, %t] : !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @scales_base_of_an_unquantized_cache(%k: !cache) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, but got '!kvcache.paged<bf16,}}
  %m = kvcache.scales_base %k : !cache
  return
}

// -----

// Nor has a continuous one, and a collection is no view

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @load_scale_of_a_continuous_cache(%k: !continuous, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, but got '!kvcache.continuous<bf16,}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !continuous -> f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>

func.func @load_scale_of_a_collection(%k: !collection, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, but got '!kvcache.paged_collection<f8E4M3FN,}}
  %s = kvcache.load_scale %k[%b, %h, %t, %d] : !collection -> f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>

func.func @scales_base_of_a_collection(%k: !collection) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, but got '!kvcache.paged_collection<f8E4M3FN,}}
  %m = kvcache.scales_base %k : !collection
  return
}

// -----

// What has scales is the cache, not their view

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @load_quantized_of_scales(%k: !scales, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache, but got '!kvcache.scales<}}
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !scales -> f8E4M3FN
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @store_quantized_of_scales(%v: vector<128xbf16>, %k: !scales, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{operand #1 must be view of a paged or continuous cache, not of scales, but got '!kvcache.scales<}}
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<128xbf16>, !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @num_scale_rows_of_scales(%k: !scales) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens, but got '!kvcache.scales<}}
  %r = kvcache.num_scale_rows %k : !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @scale_row_index_of_scales(%k: !scales, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens, but got '!kvcache.scales<}}
  %r = kvcache.scale_row_index %k[%b, %t] : !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @scale_tma_coords_of_scales(%k: !scales, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache whose scales are neither interleaved nor shared by tokens, but got '!kvcache.scales<}}
  %r, %p = kvcache.scale_tma_coords %k[%b, %t] : !scales
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 32>
!scales = !kvcache.scales<!fp8>

func.func @scales_view_of_scales(%k: !scales) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache, not of scales, but got '!kvcache.scales<}}
  %s = kvcache.scales_view %k : !scales
  return
}

// -----

// The view of the scales of a cache without scales has no memory

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @load_scale_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %x = kvcache.load_scale %s[%i, %i, %i, %i] : !none -> bf16
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @store_scale_of_no_scales(%x: bf16, %s: !none, %i: index) {
  // expected-error @below {{operand #1 must be view of a quantized cache or of its scales, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  kvcache.store_scale %x, %s[%i, %i, %i, %i] : bf16, !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @scales_base_of_no_scales(%s: !none) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %m = kvcache.scales_base %s : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @scales_block_tile_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a quantized cache or of its scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %m = kvcache.scales_block_tile %s[%i, %i, %i, %i] : !none -> memref<16x1xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @load_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %x = kvcache.load %s[%i, %i, %i, %i] : !none -> bf16
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @store_of_no_scales(%x: bf16, %s: !none, %i: index) {
  // expected-error @below {{operand #1 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  kvcache.store %x, %s[%i, %i, %i, %i] : bf16, !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @block_tile_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %m = kvcache.block_tile %s[%i, %i, %i, %i] : !none -> memref<16x1xbf16, strided<[1024, 1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @row_index_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %r = kvcache.row_index %s[%i, %i] : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @num_kv_rows_of_no_scales(%s: !none) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %r = kvcache.num_kv_rows %s : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @tma_row_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %r = kvcache.tma_row %s[%i] : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @tma_coords_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged cache or of its existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %r, %p = kvcache.tma_coords %s[%i, %i] : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @page_id_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %r = kvcache.page_id %s[%i, %i] : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @populate_of_no_scales(%s: !none, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %r = kvcache.populate %s[%i, %i] : !none -> !kvcache.row_indices<rows = 64, page_size = 64>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @blocks_of_no_scales(%s: !none) {
  // expected-error @below {{operand #0 must be view or collection that has memory, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %m = kvcache.blocks %s : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @lookup_table_of_no_scales(%s: !none) {
  // expected-error @below {{operand #0 must be view or collection that has memory, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %m = kvcache.lookup_table %s : !none
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @scale_descriptor_of_no_scales(%s: !none) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.scales<!kvcache.paged<bf16,}}
  %desc = kvcache.create_scale_tma_tile %s {rows = 32} : !none -> !kvcache.tma_tile<32x1xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!none = !kvcache.scales<!cache>

func.func @pages_of_no_scales(%s: !none) {
  // expected-error @below {{expects existing scales for the extent 'pages', got '!kvcache.scales<!kvcache.paged<bf16,}}
  %n = kvcache.extent pages %s : !none
  return
}

// -----

!cache = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>
!none = !kvcache.scales<!cache>

func.func @page_size_of_no_scales_of_a_continuous_cache(%s: !none) {
  // expected-error @below {{expects existing scales for the extent 'page_size', got '!kvcache.scales<!kvcache.continuous<bf16,}}
  %n = kvcache.extent page_size %s : !none
  return
}

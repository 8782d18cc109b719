// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// Queries of a view only

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @num_kv_rows_of_a_collection(%c: !collection, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.paged_collection<bf16,}}
  %r = kvcache.num_kv_rows %c : !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @page_id_of_a_collection(%c: !collection, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, but got '!kvcache.paged_collection<bf16,}}
  %r = kvcache.page_id %c[%i, %i] : !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @row_index_of_a_collection(%c: !collection, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.paged_collection<bf16,}}
  %r = kvcache.row_index %c[%i, %i] : !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @tma_row_of_a_collection(%c: !collection, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.paged_collection<bf16,}}
  %r = kvcache.tma_row %c[%i] : !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @col_index_of_a_collection(%c: !collection, %i: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache, not of scales, but got '!kvcache.paged_collection<bf16,}}
  %r = kvcache.col_index %c[%i] : !collection
  return
}

// -----

// Queries of no cache at all

func.func @empty_cache_of_an_integer(%c: i32, %i: index) {
  // expected-error @below {{operand #0 must be cache view or collection, not a view of scales, but got 'i32'}}
  %r = kvcache.empty_cache %c : i32
  return
}

// -----

func.func @max_prompt_length_of_an_integer(%c: i32, %i: index) {
  // expected-error @below {{operand #0 must be cache view or collection, not a view of scales, but got 'i32'}}
  %r = kvcache.max_prompt_length %c : i32
  return
}

// -----

func.func @max_context_length_of_an_integer(%c: i32, %i: index) {
  // expected-error @below {{operand #0 must be view or collection, but got 'i32'}}
  %r = kvcache.max_context_length %c : i32
  return
}

// -----

func.func @cache_length_of_an_integer(%c: i32, %i: index) {
  // expected-error @below {{operand #0 must be view or collection, but got 'i32'}}
  %r = kvcache.cache_length %c[%i] : i32
  return
}

// -----

func.func @extent_of_an_integer(%c: i32) {
  // expected-error @below {{operand #0 must be view or collection, but got 'i32'}}
  %r = kvcache.extent batch %c : i32
  return
}

// -----

!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func @cache_length_of_rows(%r: !rows, %b: index) {
  // expected-error @below {{operand #0 must be view or collection, but got '!kvcache.row_indices<rows = 128, page_size = 64>'}}
  %n = kvcache.cache_length %r[%b] : !rows
  return
}

// -----

// A continuous cache has no pages for coordinates

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @tma_coords_of_a_continuous_cache(%k: !continuous, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a paged cache or of its existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.continuous<bf16,}}
  %row, %page = kvcache.tma_coords %k[%b, %t] : !continuous
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @tma_coords_of_a_collection(%k: !collection, %b: index, %t: index) {
  // expected-error @below {{operand #0 must be view of a paged cache or of its existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.paged_collection<bf16,}}
  %row, %page = kvcache.tma_coords %k[%b, %t] : !collection
  return
}

// -----

// (C1) of extent

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_layers_of_a_view(%k: !cache) {
  // expected-error @below {{expects 'cache' to be a collection for the extent 'layers', got a view}}
  %n = kvcache.extent layers %k : !cache
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @c1_layers_of_a_continuous_view(%k: !continuous) {
  // expected-error @below {{expects 'cache' to be a collection for the extent 'layers', got a view}}
  %n = kvcache.extent layers %k : !continuous
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_pages_of_a_collection(%c: !collection) {
  // expected-error @below {{expects 'cache' to be a view for the extent 'pages', got a collection}}
  %n = kvcache.extent pages %c : !collection
  return
}

// -----

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

func.func @c1_tokens_of_a_collection(%c: !continuous_collection) {
  // expected-error @below {{expects 'cache' to be a view for the extent 'tokens', got a collection}}
  %n = kvcache.extent tokens %c : !continuous_collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = ?>

func.func @c1_page_size_of_a_collection(%c: !collection) {
  // expected-error @below {{expects 'cache' to be a view for the extent 'page_size', got a collection}}
  %n = kvcache.extent page_size %c : !collection
  return
}

// -----

// Types and syntax

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @unknown_extent(%k: !cache) {
  // expected-error @below {{enum values for attribute 'extent' [batch, layers, pages, tokens, page_size, page_stride]}}
  %n = kvcache.extent rows %k : !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @extent_out_of_range(%k: !cache) {
  // expected-error @below {{attribute 'extent' failed to satisfy constraint: a size known at run time}}
  %n = "kvcache.extent"(%k) {extent = 6 : i32} : (!cache) -> index
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @page_of_another_type(%k: !cache, %i: index, %page: i32) {
  // expected-error @below {{operand #3 must be index, but got 'i32'}}
  %r = "kvcache.row_index"(%k, %i, %i, %page) : (!cache, index, index, i32) -> index
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @wrong_number_of_indices(%k: !cache, %b: index) {
  // expected-error @below {{expected ','}}
  %r = kvcache.row_index %k[%b] : !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @missing_index(%k: !cache) {
  // expected-error @below {{expected '['}}
  %r = kvcache.cache_length %k : !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @result_of_another_type(%k: !cache) {
  // expected-error @below {{result #0 must be 1-bit signless integer, but got 'index'}}
  %r = "kvcache.empty_cache"(%k) : (!cache) -> index
  return
}

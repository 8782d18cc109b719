// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected integer value}}
func.func private @page_size_of_another_mark(!kvcache.paged<bf16, #kv, page_size = *>)

// -----

// Syntax

// expected-error @below {{unknown  type `pages` in dialect `kvcache`}}
func.func private @unknown_type(!kvcache.pages<bf16>)

// -----

// expected-error @below {{expected '<'}}
// expected-error @below {{failed to parse KVCache_PagedCacheType parameter 'params'}}
func.func private @missing_params(!kvcache.paged<bf16, page_size = 64>)

// -----

// expected-error @below {{invalid kind of attribute specified}}
// expected-error @below {{failed to parse KVCache_PagedCacheType parameter 'params'}}
func.func private @params_of_another_kind(!kvcache.paged<bf16, #gpu.address_space<global>, page_size = 64>)

// -----

// expected-error @below {{undefined symbol alias id 'mla'}}
// expected-error @below {{failed to parse KVCache_PagedCacheType parameter 'params'}}
func.func private @undefined_params(!kvcache.paged<bf16, #mla, page_size = 64>)

// -----

func.func private @invalid_params(
  // expected-error @below {{expects num_heads to be positive, got 0}}
  // expected-error @below {{failed to parse KVCache_PagedCacheType parameter 'params'}}
  !kvcache.paged<bf16, #kvcache.params<num_heads = 0, head_size = 128>, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{unknown  type `pages` in dialect `kvcache`}}
// expected-error @below {{failed to parse KVCache_PagedCacheType parameter 'elementType'}}
func.func private @invalid_element_type(!kvcache.paged<!kvcache.pages, #kv, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected ','}}
func.func private @missing_page_size(!kvcache.paged<bf16, #kv>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected 'page_size'}}
func.func private @page_size_without_name(!kvcache.paged<bf16, #kv, 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected ','}}
func.func private @missing_comma_after_element_type(!kvcache.paged<bf16 #kv, page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected ','}}
func.func private @missing_comma_after_params(!kvcache.paged<bf16, #kv page_size = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected '>'}}
func.func private @missing_comma_before_scale(!kvcache.paged<f8E4M3FN, #kv, page_size = 64 scale = f32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected valid keyword}}
func.func private @trailing_comma(!kvcache.paged<bf16, #kv, page_size = 64,>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{integer value too large}}
func.func private @page_size_too_large_for_64_bits(!kvcache.paged<bf16, #kv, page_size = 99999999999999999999>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @granularity_too_large_for_64_bits(
  // expected-error @below {{integer value too large}}
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 99999999999999999999>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @granularity_without_value(
  // expected-error @below {{expected integer value}}
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = >)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'scale', 'granularity', 'zero_point', 'token_granularity', 'layout', 'scale_layout' or 'table', each at most once, got 'scale'}}
func.func private @repeated_scale(!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, scale = f32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

func.func private @repeated_granularity(
  // expected-error @below {{expects 'scale', 'granularity', 'zero_point', 'token_granularity', 'layout', 'scale_layout' or 'table', each at most once, got 'granularity'}}
  !kvcache.paged<f8E4M3FN, #kv, page_size = 64, granularity = 64, granularity = 64>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects 'scale', 'granularity', 'zero_point', 'token_granularity', 'layout', 'scale_layout' or 'table', each at most once, got 'zero'}}
func.func private @unknown_keyword(!kvcache.paged<f8E4M3FN, #kv, page_size = 64, zero = f32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected '='}}
func.func private @scale_without_type(!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale f32>)

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expected '>'}}
func.func private @continuous_with_page_size(!kvcache.continuous<bf16, #kv, page_size = 64>)

// -----

// expected-error @below {{expected ','}}
func.func private @continuous_without_params(!kvcache.continuous<bf16>)

// -----

// expected-error @below {{expects 'rows'}}
func.func private @row_indices_without_rows(!kvcache.row_indices<page_size = 64>)

// -----

// expected-error @below {{expected valid keyword}}
func.func private @row_indices_without_names(!kvcache.row_indices<128, 64>)

// -----

// expected-error @below {{expects 'rows' and 'page_size', each at most once, got 'rows'}}
func.func private @row_indices_with_repeated_rows(!kvcache.row_indices<rows = 1, rows = 1>)

// -----

// expected-error @below {{integer value too large}}
func.func private @row_indices_too_large_for_64_bits(!kvcache.row_indices<rows = 99999999999999999999>)

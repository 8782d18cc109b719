// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of populate

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_rows_of_another_page_size(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{expects 'rows' to have the cache's page_size (64), got 32}}
  %r = kvcache.populate %k[%b, %base]
         : !cache -> !kvcache.row_indices<rows = 128, page_size = 32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_rows_of_no_page_size(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{expects 'rows' to have the cache's page_size (64), got none}}
  %r = kvcache.populate %k[%b, %base]
         : !cache -> !kvcache.row_indices<rows = 128>
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func @c1_rows_of_a_continuous_cache(%k: !continuous, %b: index, %base: index) {
  // expected-error @below {{expects 'rows' not to have a page_size for a continuous cache, got 64}}
  %r = kvcache.populate %k[%b, %base]
         : !continuous -> !rows
  return
}

// -----

!any_pages = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = ?>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func @c1_page_size_of_an_open_one(%k: !any_pages, %b: index, %base: index) {
  // expected-error @below {{expects 'rows' to have the cache's page_size (?), got 64}}
  %r = kvcache.populate %k[%b, %base]
         : !any_pages -> !rows
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_rows_of_an_open_page_size(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{expects 'rows' to have the cache's page_size (64), got ?}}
  %r = kvcache.populate %k[%b, %base]
         : !cache -> !kvcache.row_indices<rows = 128, page_size = ?>
  return
}

// -----

// (C2) of populate

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func @c2_no_base_alignment(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{expects 'base_alignment' to be positive, got 0}}
  %r = kvcache.populate %k[%b, %base] {base_alignment = 0}
         : !cache -> !rows
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_negative_base_alignment(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{expects 'base_alignment' to be positive, got -64}}
  %r = kvcache.populate %k[%b, %base] {base_alignment = -64}
         : !cache -> !kvcache.row_indices<rows = 32, page_size = 64>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func @c2_unaligned_base_over_several_pages(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{expects 'base_alignment' to be a multiple of page_size (64) for rows of several pages, got 32}}
  %r = kvcache.populate %k[%b, %base] {base_alignment = 32}
         : !cache -> !rows
  return
}

// -----

// Types of populate

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func @populate_with_a_narrow_alignment(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{attribute 'base_alignment' failed to satisfy constraint: 64-bit signless integer attribute}}
  %r = kvcache.populate %k[%b, %base] {base_alignment = 64 : i32} : !cache -> !rows
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

func.func @populate_from_a_collection(%k: !collection, %b: index, %base: index) {
  // expected-error @below {{operand #0 must be view of a paged or continuous cache or of existing scales, which are neither interleaved nor shared by tokens, but got '!kvcache.paged_collection<bf16,}}
  %r = kvcache.populate %k[%b, %base]
         : !collection -> !rows
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @populate_of_an_index(%k: !cache, %b: index, %base: index) {
  // expected-error @below {{but got 'index'}}
  %r = kvcache.populate %k[%b, %base]
         : !cache -> index
  return
}

// -----

// Types of get_row

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @row_of_a_cache(%k: !cache, %offset: index) {
  // expected-error @below {{but got '!kvcache.paged<bf16,}}
  %r = kvcache.get_row %k[%offset] : !cache
  return
}

// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @shape(%pages: memref<?x32x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 16, 8, 128], got [?, 32, 8, 128]}}
  %k = kvcache.paged_cache %pages, %lengths, %lut, %n, %n : memref<?x32x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16, layout = hnd>

func.func @strides(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects strides 1 to 3 of 'blocks' to be those of the layout, [128, 2048, 1], got 'memref<?x16x8x128xbf16>'}}
  %k = kvcache.paged_cache %pages, %lengths, %lut, %n, %n : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @page_stride_breaks_alignment(%pages: memref<?x16x8x128xbf16, strided<[16388, 1024, 128, 1]>>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects stride 0 of 'blocks' to be a multiple of 8, so that pages are as aligned as rows, got 16388}}
  %k = kvcache.paged_cache %pages, %lengths, %lut, %n, %n : memref<?x16x8x128xbf16, strided<[16388, 1024, 128, 1]>>, memref<?xi32>, memref<?x?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16, table = csr>

func.func @csr_table_of_two_dimensions(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects 'lookup_table' of a csr table to have one dimension, got 'memref<?x?xi32>'}}
  %k = kvcache.paged_cache %pages, %lengths, %lut index %lengths, %n, %n : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> index memref<?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @dense_table_of_one_dimension(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %n: i32) {
  // expected-error @below {{expects 'lookup_table' of a dense table to have two dimensions, got 'memref<?xi32>'}}
  %k = kvcache.paged_cache %pages, %lengths, %lengths, %n, %n : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16, table = csr>

func.func @csr_table_without_index(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %n: i32) {
  // expected-error @below {{expects 'table_index' if and only if the table is csr or rows, got a csr table}}
  %k = kvcache.paged_cache %pages, %lengths, %lengths, %n, %n : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @dense_table_with_index(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{expects 'table_index' if and only if the table is csr or rows, got a dense table}}
  %k = kvcache.paged_cache %pages, %lengths, %lut index %lengths, %n, %n : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> index memref<?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16, table = rows>

func.func @row_stride_of_a_rows_table(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x12xi32>, %n: i32) {
  // expected-error @below {{expects the row stride of 'lookup_table' to be a multiple of 8 entries in a rows table, got 12}}
  %k = kvcache.paged_cache %pages, %lengths, %lut index %lengths, %n, %n : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?x12xi32> index memref<?xi32> -> !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16, table = rows>

func.func @strided_index(%pages: memref<?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %rows: memref<?xi32, strided<[2]>>, %n: i32) {
  // expected-error @below {{expects 'table_index' to be contiguous in its last dimension, got 'memref<?xi32, strided<[2]>>'}}
  %k = kvcache.paged_cache %pages, %lengths, %lut index %rows, %n, %n : memref<?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> index memref<?xi32, strided<[2]>> -> !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f8E5M2, #kv, page_size = 16, scale = f32, granularity = 128, table = csr>

func.func @own_table_of_scales(%pages: memref<?x16x8x128xf8E5M2>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %scales: memref<?x16x8x1xf32>, %n: i32) {
  // expected-error @below {{expects 'scales_lookup_table' only with a dense table, got a csr table}}
  %k = kvcache.paged_cache %pages, %lengths, %lengths index %lengths, %n, %n scales %scales lookup %lut : memref<?x16x8x128xf8E5M2>, memref<?xi32>, memref<?xi32> index memref<?xi32>, memref<?x16x8x1xf32>, memref<?x?xi32> -> !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>

// expected-error @below {{expects table to be 'dense', 'csr' or 'rows', got 'sparse'}}
func.func private @unknown_table(!kvcache.paged<bf16, #kv, page_size = 16, table = sparse>)

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @extent_of_a_sequence(%k: !cache, %b: index) {
  // expected-error @below {{expects a sequence only for the extent 'tokens', got 'pages'}}
  %e = kvcache.extent pages %k[%b] : !cache
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @continuous_heads(%blocks: memref<?x?x4x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?xi32>, %n: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, ?, 8, 128], got [?, ?, 4, 128]}}
  %k = kvcache.continuous_cache %blocks, %lengths, %lut, %n, %n : memref<?x?x4x128xbf16>, memref<?xi32>, memref<?xi32> -> !continuous
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @continuous_elements(%blocks: memref<?x?x8x128xf16>, %lengths: memref<?xi32>, %lut: memref<?xi32>, %n: i32) {
  // expected-error @below {{expects 'blocks' to have element type 'bf16', got 'f16'}}
  %k = kvcache.continuous_cache %blocks, %lengths, %lut, %n, %n : memref<?x?x8x128xf16>, memref<?xi32>, memref<?xi32> -> !continuous
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @continuous_padded_rows(%blocks: memref<?x?x8x128xbf16, strided<[?, 1028, 128, 1]>>, %lengths: memref<?xi32>, %lut: memref<?xi32>, %n: i32) {
  // expected-error @below {{expects strides 1 to 3 of 'blocks' to be those of packed rows, [1024, 128, 1], got 'memref<?x?x8x128xbf16, strided<[?, 1028, 128, 1]>>'}}
  %k = kvcache.continuous_cache %blocks, %lengths, %lut, %n, %n : memref<?x?x8x128xbf16, strided<[?, 1028, 128, 1]>>, memref<?xi32>, memref<?xi32> -> !continuous
  return
}

// -----

!continuous = !kvcache.continuous<bf16, <num_heads = 8, head_size = 128>>

func.func @continuous_table_of_two_dimensions(%blocks: memref<?x?x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %n: i32) {
  // expected-error @below {{operand #2 must be 1D memref of 32-bit signless integer values, but got 'memref<?x?xi32>'}}
  %k = kvcache.continuous_cache %blocks, %lengths, %lut, %n, %n : memref<?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !continuous
  return
}

// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of paged_collection

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_element_type(%blocks: memref<?x2x?x64x8x128xf16>, %lengths: memref<?xi32>,
                           %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have element type 'bf16', got 'f16'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_role_size(%blocks: memref<?x1x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                        %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 1, ?, 64, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x1x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_dynamic_roles(%blocks: memref<?x?x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                            %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, ?, ?, 64, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x?x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_page_size(%blocks: memref<?x2x?x32x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                        %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 2, ?, 32, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x32x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_dynamic_page_size(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 2, ?, ?, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_heads(%blocks: memref<?x2x?x64x4x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                    %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 2, ?, 64, 4, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x4x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c1_head_size(%blocks: memref<7x2x3x64x8x64xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                        %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [7, 2, 3, 64, 8, 64]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<7x2x3x64x8x64xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!latent = !kvcache.paged_collection<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_two_roles_of_a_latent_cache(%blocks: memref<?x2x?x64x1x576xbf16>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 1, ?, 64, 1, 576], got [?, 2, ?, 64, 1, 576]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x1x576xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !latent
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4 = !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c1_blocks_of_4_bit_elements_are_bytes(%blocks: memref<?x2x?x64x8x128xf4E2M1FN>,
                                                 %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32,
                                                 %scales: memref<?x2x?x64x8x4xf8E8M0FNU>) {
  // expected-error @below {{expects 'blocks' to have element type 'i8', got 'f4E2M1FN'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xf4E2M1FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x4xf8E8M0FNU>
         -> !mxfp4
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4 = !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @c1_bytes_hold_two_elements(%blocks: memref<?x2x?x64x8x128xi8>, %lengths: memref<?xi32>,
                                      %lut: memref<?x?xi32>, %max: i32,
                                      %scales: memref<?x2x?x64x8x4xf8E8M0FNU>) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 64], got [?, 2, ?, 64, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xi8>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x4xf8E8M0FNU>
         -> !mxfp4
  return
}

// -----

// (C2) of paged_collection

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_padded_rows(%blocks: memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1], offset: ?>>,
                          %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of packed rows, [1024, 128, 1], got 'memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_dynamic_head_stride(
                                  %blocks: memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, ?, 1], offset: ?>>,
                                  %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of packed rows, [1024, 128, 1], got 'memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, ?, 1], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, ?, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_strided_elements(
                               %blocks: memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 256, 2], offset: ?>>,
                               %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of packed rows, [1024, 128, 1], got 'memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 256, 2], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 256, 2], offset: ?>>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c2_no_strides(
                         %blocks: memref<?x2x?x64x8x128xbf16, affine_map<(a, b, c, d, e, f) -> (a mod 3, b, c, d, e, f)>>,
                         %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of packed rows, [1024, 128, 1], got 'memref<?x2x?x64x8x128xbf16, affine_map<}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, affine_map<(a, b, c, d, e, f) -> (a mod 3, b, c, d, e, f)>>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

// (C3) of paged_collection

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_strided_lengths(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32, strided<[2]>>,
                              %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'cache_lengths' to be contiguous in its last dimension, got 'memref<?xi32, strided<[2]>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32, strided<[2]>>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_dynamic_length_stride(%blocks: memref<?x2x?x64x8x128xbf16>,
                                    %lengths: memref<?xi32, strided<[?]>>, %lut: memref<?x?xi32>,
                                    %max: i32) {
  // expected-error @below {{expects 'cache_lengths' to be contiguous in its last dimension, got 'memref<?xi32, strided<[?]>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32, strided<[?]>>, memref<?x?xi32>
         -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c3_column_major_table(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                 %lut: memref<?x?xi32, strided<[1, ?]>>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' to be contiguous in its last dimension, got 'memref<?x?xi32, strided<[1, ?]>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32, strided<[1, ?]>>
         -> !collection
  return
}

// -----

// Types and syntax of paged_collection

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @blocks_of_rank_5(%blocks: memref<?x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                            %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{operand #0 must be 6D memref of any type values, but got 'memref<?x?x64x8x128xbf16>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @lengths_of_64_bits(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi64>,
                              %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{operand #1 must be 1D memref of 32-bit signless integer values, but got 'memref<?xi64>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi64>, memref<?x?xi32> -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @table_of_rank_1(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                           %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' of a dense table to have two dimensions, got 'memref<?xi32>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !collection
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @missing_operand_segments(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                    %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{operand count (5) does not match with the total size (0) specified in attribute 'operandSegmentSizes'}}
  %c = "kvcache.paged_collection"(%blocks, %lengths, %lut, %max, %max)
         : (memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, i32, i32) -> !collection
  return
}

// -----

// Bundles hold pointers of the default memory space.

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @blocks_in_another_memory_space(%blocks: memref<?x2x?x64x8x128xbf16, 1>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to be in the default memory space, got 'memref<?x2x?x64x8x128xbf16, 1>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, 1>, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

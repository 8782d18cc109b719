// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of paged_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c1_element_type(%blocks: memref<?x2x?x64x8x128xf16>, %lengths: memref<?xi32>,
                           %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have element type 'bf16', got 'f16'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c1_role_size(%blocks: memref<?x1x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                        %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 1, ?, 64, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x1x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c1_dynamic_roles(%blocks: memref<?x?x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                            %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, ?, ?, 64, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x?x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c1_page_size(%blocks: memref<?x2x?x32x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                        %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 2, ?, 32, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x32x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c1_dynamic_page_size(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 2, ?, ?, 8, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c1_heads(%blocks: memref<?x2x?x64x4x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                    %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [?, 2, ?, 64, 4, 128]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x4x128xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c1_head_size(%blocks: memref<7x2x3x64x8x64xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                        %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, 64, 8, 128], got [7, 2, 3, 64, 8, 64]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<7x2x3x64x8x64xbf16>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!latent = !kvcache.paged_collection<bf16, #mla, page_size = 64>

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

// (C7) of paged_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c7_pages(%blocks: memref<?x2x?x64x8x128xbf16, strided<[262148, ?, ?, 1024, 128, 1], offset: ?>>,
                    %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects stride 0 of 'blocks' to be a multiple of 8, so that pages are as aligned as rows, got 262148}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, strided<[262148, ?, ?, 1024, 128, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

// Rows of 6 bytes are not at multiples of 16: 2 bytes will do.

#kv = #kvcache.params<num_heads = 1, head_size = 6>
!fp8 = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 1, scale = f32, granularity = 6>

func.func @c7_scales(%blocks: memref<?x2x?x1x1x6xf8E4M3FN, strided<[34, ?, 6, 6, 6, 1]>>,
                     %scales: memref<?x2x?x1x1x1xf32, strided<[?, ?, 3, 1, 1, 1]>>,
                     %odd: memref<?x2x?x1x1x6xf8E4M3FN, strided<[?, 33, ?, 6, 6, 1]>>,
                     %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x1x1x6xf8E4M3FN, strided<[34, ?, 6, 6, 6, 1]>>, memref<?xi32>, memref<?x?xi32>,
           memref<?x2x?x1x1x1xf32, strided<[?, ?, 3, 1, 1, 1]>> -> !fp8
  // expected-error @below {{expects stride 1 of 'blocks' to be a multiple of 2, so that pages are as aligned as rows, got 33}}
  %d = kvcache.paged_collection %odd, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x1x1x6xf8E4M3FN, strided<[?, 33, ?, 6, 6, 1]>>, memref<?xi32>, memref<?x?xi32>,
           memref<?x2x?x1x1x1xf32, strided<[?, ?, 3, 1, 1, 1]>> -> !fp8
  return
}

// -----

// (C5) of continuous_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.continuous_collection<bf16, #kv>

func.func @c5_layers(%one: memref<?x2x1x?x8x128xbf16, strided<[?, ?, 3, 1024, 128, 1]>>,
                     %blocks: memref<?x2x?x?x8x128xbf16, strided<[?, ?, 3, 1024, 128, 1]>>,
                     %lengths: memref<?xi32>, %lut: memref<?xi32>, %max: i32) {
  // There is no second layer.
  %c = kvcache.continuous_collection %one, %lengths, %lut, %max, %max
         : memref<?x2x1x?x8x128xbf16, strided<[?, ?, 3, 1024, 128, 1]>>, memref<?xi32>, memref<?xi32> -> !collection
  // expected-error @below {{expects stride 2 of 'blocks' to be a multiple of 8, so that pages are as aligned as rows, got 3}}
  %d = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16, strided<[?, ?, 3, 1024, 128, 1]>>, memref<?xi32>, memref<?xi32> -> !collection
  return
}

// -----

// (C2) of paged_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c2_padded_rows(%blocks: memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1], offset: ?>>,
                          %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of packed rows, [1024, 128, 1], got 'memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1], offset: ?>>, memref<?xi32>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c3_strided_lengths(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32, strided<[2]>>,
                              %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'cache_lengths' to be contiguous in its last dimension, got 'memref<?xi32, strided<[2]>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32, strided<[2]>>, memref<?x?xi32>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c3_column_major_table(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                 %lut: memref<?x?xi32, strided<[1, ?]>>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' to be contiguous in its last dimension, got 'memref<?x?xi32, strided<[1, ?]>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32, strided<[1, ?]>>
         -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>

func.func @c3_column_major_scales_table(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                                        %lut: memref<?x?xi32>, %max: i32, %scales: memref<?x2x?x64x8x3xf32>,
                                        %scales_lut: memref<?x?xi32, strided<[1, ?]>>) {
  // expected-error @below {{expects 'scales_lookup_table' to be contiguous in its last dimension, got 'memref<?x?xi32, strided<[1, ?]>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales lookup %scales_lut
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x3xf32>, memref<?x?xi32, strided<[1, ?]>>
         -> !quantized
  return
}

// -----

// (C4) of paged_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>

func.func @c4_quantized_without_scales(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                                       %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'scales' for a quantized cache}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>
         -> !quantized
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c4_scales_without_quantization(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32,
                                          %scales: memref<?x2x?x64x8x3xf32>) {
  // expected-error @below {{expects 'scales' only for a quantized cache}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x3xf32>
         -> !collection
  return
}

// -----

// (C5) of paged_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>

func.func @c5_scale_type(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                         %lut: memref<?x?xi32>, %max: i32, %scales: memref<?x2x?x64x8x3xf16>) {
  // expected-error @below {{expects 'scales' to have element type 'f32', got 'f16'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x3xf16>
         -> !quantized
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>

func.func @c5_groups_are_rounded_up(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                                    %lut: memref<?x?xi32>, %max: i32, %scales: memref<?x2x?x64x8x2xf32>) {
  // expected-error @below {{expects 'scales' to have shape [?, 2, ?, 64, 8, 3], got [?, 2, ?, 64, 8, 2]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x2xf32>
         -> !quantized
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>

func.func @c5_scale_page_size(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                              %lut: memref<?x?xi32>, %max: i32, %scales: memref<?x2x?x32x8x3xf32>) {
  // expected-error @below {{expects 'scales' to have shape [?, 2, ?, 64, 8, 3], got [?, 2, ?, 32, 8, 3]}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x32x8x3xf32>
         -> !quantized
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>

func.func @c5_padded_scales(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                            %lut: memref<?x?xi32>, %max: i32,
                            %scales: memref<?x2x?x64x8x3xf32, strided<[?, ?, ?, 32, 4, 1], offset: ?>>) {
  // expected-error @below {{expects strides 3 to 5 of 'scales' to be those of packed rows, [24, 3, 1], got 'memref<?x2x?x64x8x3xf32, strided<[?, ?, ?, 32, 4, 1], offset: ?>>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x3xf32, strided<[?, ?, ?, 32, 4, 1], offset: ?>>
         -> !quantized
  return
}

// -----

// Types and syntax of paged_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @blocks_of_rank_5(%blocks: memref<?x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                            %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{operand #0 must be 6D memref of any type values, but got 'memref<?x?x64x8x128xbf16>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @lengths_of_64_bits(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi64>,
                              %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{operand #1 must be 1D memref of 32-bit signless integer values, but got 'memref<?xi64>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi64>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @table_of_rank_1(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                           %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' of a dense table to have two dimensions, got 'memref<?xi32>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 48>

func.func @missing_scales_type(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                               %lut: memref<?x?xi32>, %max: i32, %scales: memref<?x2x?x64x8x3xf32>) {
  // expected-error @below {{number of operands and types do not match: got 1 operands and 0 types}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
         : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32> -> !quantized
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @lookup_without_scales(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                 %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expected ':'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max lookup %lut
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @missing_operand_segments(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                    %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{operand count (5) does not match with the total size (0) specified in attribute 'operandSegmentSizes'}}
  %c = "kvcache.paged_collection"(%blocks, %lengths, %lut, %max, %max)
         : (memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, i32, i32) -> !collection
  return
}

// -----

// (C1) of continuous_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>

func.func @c1_continuous_element_type(%blocks: memref<?x2x?x?x8x128xf32>, %lengths: memref<?xi32>,
                                      %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have element type 'bf16', got 'f32'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xf32>, memref<?xi32>, memref<?xi32>
         -> !continuous_collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>

func.func @c1_continuous_role_size(%blocks: memref<?x1x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                   %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, ?, 8, 128], got [?, 1, ?, ?, 8, 128]}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x1x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32>
         -> !continuous_collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>

func.func @c1_continuous_heads(%blocks: memref<4x2x2x512x1x128xbf16>, %lengths: memref<?xi32>,
                               %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, ?, 8, 128], got [4, 2, 2, 512, 1, 128]}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<4x2x2x512x1x128xbf16>, memref<?xi32>, memref<?xi32>
         -> !continuous_collection
  return
}

// -----

// (C2) of continuous_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>

func.func @c2_continuous_padded_rows(%blocks: memref<?x2x?x?x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1]>>,
                                     %lengths: memref<?xi32>, %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects strides 3 to 5 of 'blocks' to be those of packed rows, [1024, 128, 1], got 'memref<?x2x?x?x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1]>>'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16, strided<[?, ?, ?, 2048, 128, 1]>>, memref<?xi32>, memref<?xi32>
         -> !continuous_collection
  return
}

// -----

// (C3) of continuous_collection

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>

func.func @c3_continuous_strided_lengths(%blocks: memref<?x2x?x?x8x128xbf16>,
                                         %lengths: memref<?xi32, strided<[2]>>, %lut: memref<?xi32>,
                                         %max: i32) {
  // expected-error @below {{expects 'cache_lengths' to be contiguous in its last dimension, got 'memref<?xi32, strided<[2]>>'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32, strided<[2]>>, memref<?xi32>
         -> !continuous_collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>

func.func @c3_continuous_strided_table(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                       %lut: memref<?xi32, strided<[2]>>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' to be contiguous in its last dimension, got 'memref<?xi32, strided<[2]>>'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32, strided<[2]>>
         -> !continuous_collection
  return
}

// -----

// (C1) of paged_view

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!latent = !kvcache.paged_collection<bf16, #mla, page_size = 64>

func.func @c1_values_of_a_latent_cache(%c: !latent, %layer: index) {
  // expected-error @below {{expects 'role' to be key for an MLA collection, which has one latent cache and no values}}
  %v = kvcache.paged_view value %c[%layer] : !latent
  return
}

// -----

// (C1) of continuous_view

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!continuous_latent = !kvcache.continuous_collection<bf16, #mla>

func.func @c1_values_of_a_continuous_latent_cache(%c: !continuous_latent, %layer: index) {
  // expected-error @below {{expects 'role' to be key for an MLA collection, which has one latent cache and no values}}
  %v = kvcache.continuous_view value %c[%layer] : !continuous_latent
  return
}

// -----

// Types and syntax of the views

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @unknown_role(%c: !collection, %layer: index) {
  // expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'role' [key, value]}}
  %v = kvcache.paged_view keys %c[%layer] : !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @role_out_of_range(%c: !collection, %layer: index) {
  // expected-error @below {{attribute 'role' failed to satisfy constraint: keys or values}}
  %v = "kvcache.paged_view"(%c, %layer) {role = 2 : i32} : (!collection, index) -> !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @missing_role(%c: !collection, %layer: index) {
  // expected-error @below {{requires attribute 'role'}}
  %v = "kvcache.paged_view"(%c, %layer) : (!collection, index) -> !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>

func.func @view_of_another_type(%c: !collection, %layer: index) {
  // expected-error @below {{are incompatible with return type(s) of operation '!kvcache.paged<f8E4M3FN,}}
  // expected-error @below {{failed to infer returned types}}
  %v = "kvcache.paged_view"(%c, %layer) <{role = 0 : i32}> : (!collection, index) -> !fp8
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @view_of_a_view(%c: !cache, %layer: index) {
  // expected-error @below {{but got '!kvcache.paged<bf16,}}
  %v = "kvcache.paged_view"(%c, %layer) <{role = 0 : i32}> : (!cache, index) -> !cache
  return
}

// -----

// A view of something else than a collection, in the custom form.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @paged_view_of_a_view(%k: !cache, %layer: index) {
  // expected-error @below {{expects 'collection' to be a paged collection, got '!kvcache.paged<bf16,}}
  %v = kvcache.paged_view key %k[%layer] : !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous_collection = !kvcache.continuous_collection<bf16, #kv>

func.func @paged_view_of_a_continuous_collection(%c: !continuous_collection, %layer: index) {
  // expected-error @below {{expects 'collection' to be a paged collection, got '!kvcache.continuous_collection<bf16,}}
  %v = kvcache.paged_view key %c[%layer] : !continuous_collection
  return
}

// -----

func.func @continuous_view_of_an_integer(%c: i32, %layer: index) {
  // expected-error @below {{expects 'collection' to be a continuous collection, got 'i32'}}
  %v = kvcache.continuous_view value %c[%layer] : i32
  return
}

// -----

// (C4) of paged_collection: without scales nothing is found through their table.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @c4_scales_table_without_scales(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'scales_lookup_table' only with 'scales'}}
  %c = "kvcache.paged_collection"(%blocks, %lengths, %lut, %max, %max, %lut)
         <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>}>
         : (memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, i32, i32, memref<?x?xi32>) -> !collection
  return
}

// -----

// Bundles hold pointers of the default memory space.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @blocks_in_another_memory_space(%blocks: memref<?x2x?x64x8x128xbf16, 1>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to be in the default memory space, got 'memref<?x2x?x64x8x128xbf16, 1>'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16, 1>, memref<?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.continuous_collection<bf16, #kv>

func.func @table_in_another_memory_space(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                         %lut: memref<?xi32, 3>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' to be in the default memory space, got 'memref<?xi32, 3>'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32, 3> -> !collection
  return
}

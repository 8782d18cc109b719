// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C7) of paged_collection

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!fp8 = !kvcache.paged_collection<f8E4M3FN, <num_heads = 1, head_size = 6>, page_size = 1, scale = f32, granularity = 6>

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

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @lookup_without_scales(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                 %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expected ':'}}
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max lookup %lut
         : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, memref<?x?xi32> -> !collection
  return
}

// -----

// (C4) of paged_collection: without scales nothing is found through their table.

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c4_scales_table_without_scales(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>,
                                          %lut: memref<?x?xi32>, %max: i32) {
  // expected-error @below {{expects 'scales_lookup_table' only with 'scales'}}
  %c = "kvcache.paged_collection"(%blocks, %lengths, %lut, %max, %max, %lut)
         <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>}>
         : (memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>, i32, i32, memref<?x?xi32>) -> !collection
  return
}

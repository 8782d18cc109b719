// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C5) of continuous_collection

!collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

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

// (C1) of continuous_collection

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

func.func @c1_continuous_element_type(%blocks: memref<?x2x?x?x8x128xf32>, %lengths: memref<?xi32>,
                                      %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have element type 'bf16', got 'f32'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xf32>, memref<?xi32>, memref<?xi32>
         -> !continuous_collection
  return
}

// -----

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

func.func @c1_continuous_role_size(%blocks: memref<?x1x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                   %lut: memref<?xi32>, %max: i32) {
  // expected-error @below {{expects 'blocks' to have shape [?, 2, ?, ?, 8, 128], got [?, 1, ?, ?, 8, 128]}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x1x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32>
         -> !continuous_collection
  return
}

// -----

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

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

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

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

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

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

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

func.func @c3_continuous_strided_table(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                       %lut: memref<?xi32, strided<[2]>>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' to be contiguous in its last dimension, got 'memref<?xi32, strided<[2]>>'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32, strided<[2]>>
         -> !continuous_collection
  return
}

// -----

!collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

func.func @table_in_another_memory_space(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>,
                                         %lut: memref<?xi32, 3>, %max: i32) {
  // expected-error @below {{expects 'lookup_table' to be in the default memory space, got 'memref<?xi32, 3>'}}
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32, 3> -> !collection
  return
}

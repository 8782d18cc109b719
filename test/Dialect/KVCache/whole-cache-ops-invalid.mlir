// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C1) of gather
func.func @c1_gather(%cache: !cache, %out: memref<?x?x8x64xbf16>) {
  // expected-error @below {{expects 'keys' to have 8 heads of 128 elements, got 8 of 64}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x?x8x64xbf16>
  return
}

// -----

#small = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!small = !kvcache.paged<bf16, #small, page_size = 64>

// (C2) of copy
func.func @c2_copy(%cache: !cache, %small: !small) {
  // expected-error @below {{expects 8 heads from 0 on to be among the 2 of 'target'}}
  kvcache.copy %cache to %small : !cache, !small
  return
}

// -----

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @copy_pages(%cache: !collection, %pairs: memref<?x3xi32>) {
  // expected-error @below {{expects 'pairs' to have two columns}}
  kvcache.copy_pages %cache pairs %pairs : !collection, memref<?x3xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @results_of_tensors(%cache: !cache, %out: tensor<?x?x8x128xbf16>) {
  // expected-error @below {{expects a result for each of 'outs' that is a tensor}}
  kvcache.gather %cache outs(%out) : !cache, tensor<?x?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!integers = !kvcache.paged<i16, #kv, page_size = 16>
!floats = !kvcache.paged<bf16, #kv, page_size = 16>

func.func @copy_integers_to_floats(%k: !integers, %to: !floats) {
  // expected-error @below {{expects caches of one element type, because the elements of one are not converted, got 'i16' and 'bf16'}}
  kvcache.copy %k to %to : !integers, !floats
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C3) of gather
func.func @c3_static_scale_of_bf16(%cache: !cache, %out: memref<?x?x8x128xbf16>, %s: f32) {
  // expected-error @below {{expects 'key_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.gather %cache outs(%out) key_scale %s : !cache, memref<?x?x8x128xbf16>, f32
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C1) of gather
func.func @c1_ragged_without_offsets(%cache: !cache, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects 'keys' to have 4 dimensions, or 'output_offsets'}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C1) of gather
func.func @c1_dense_with_offsets(%cache: !cache, %out: memref<?x?x8x128xbf16>, %n: memref<?xi32>) {
  // expected-error @below {{expects 'keys' to have 3 dimensions, because there are 'output_offsets'}}
  kvcache.gather %cache outs(%out) output_offsets %n : !cache, memref<?x?x8x128xbf16>, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

// (C3) of gather
func.func @c3_static_scale_with_zero_points(%cache: !int4, %out: memref<?x?x8x128xbf16>, %s: f32) {
  // expected-error @below {{expects 'key_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.gather %cache outs(%out) key_scale %s : !int4, memref<?x?x8x128xbf16>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>

// (C3) of copy
func.func @c3_target_scale_of_bf16(%from: !fp8, %to: !cache, %s: f32) {
  // expected-error @below {{expects 'target_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.copy %from to %to target_scale %s : !fp8, !cache, f32
  return
}

// -----

!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64>

// (C3) of copy
func.func @c3_source_scale_of_other_heads(%fp8: !fp8, %s: memref<2xf32>) {
  // expected-error @below {{expects 'source_scale' to have the 8 heads of its cache}}
  kvcache.copy %fp8 to %fp8 source_scale %s : !fp8, !fp8, memref<2xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C2) of copy: sums of numbers wrap around.
func.func @c2_copy_of_last_heads(%cache: !cache) {
  // expected-error @below {{expects 9223372036854775807 heads from 9223372036854775807 on to be among the 8 of 'source'}}
  kvcache.copy %cache to %cache {source_head = 9223372036854775807, heads = 9223372036854775807} : !cache, !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_without_strides(%cache: !cache, %out: memref<?x?x8x128xbf16, affine_map<(a, b, c, d) -> (b, a, c, d)>>) {
  // expected-error @below {{expects the heads and elements of 'keys' to be packed, got 'memref<?x?x8x128xbf16, affine_map<}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x?x8x128xbf16, affine_map<(a, b, c, d) -> (b, a, c, d)>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4) of gather
func.func @c4_part_of_a_warp(%cache: !cache, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.gather %cache outs(%out) {block_threads = 48} : !cache, memref<?x?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4) of gather
func.func @c4_more_heads_than_registers(%cache: !cache, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{attribute 'heads_per_thread' failed to satisfy constraint: 64-bit signless integer attribute whose value is from 1 to 32}}
  kvcache.gather %cache outs(%out) {heads_per_thread = 33} : !cache, memref<?x?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4) of copy
func.func @c4_no_heads(%cache: !cache) {
  // expected-error @below {{attribute 'heads_per_thread' failed to satisfy constraint: 64-bit signless integer attribute whose value is from 1 to 32}}
  kvcache.copy %cache to %cache {heads_per_thread = 0} : !cache, !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4) of copy
func.func @c4_no_threads(%cache: !cache) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.copy %cache to %cache {block_threads = 0} : !cache, !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C2) of copy_pages
func.func @c2_threads_of_copy_pages(%cache: !kvcache.paged_collection<bf16, #kv, page_size = 64>, %pairs: memref<?x2xi32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.copy_pages %cache pairs %pairs {block_threads = 16} : !kvcache.paged_collection<bf16, #kv, page_size = 64>, memref<?x2xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C3) of remap_rows
func.func @c3_threads_of_remap_rows(%tokens: memref<?x4xi32>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.remap_rows %tokens, %cache rows %n outs(%tokens) {block_threads = 1000} : memref<?x4xi32>, !cache, memref<?xi32>, memref<?x4xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C5) of gather
func.func @c5_outputs_are_one(%keys: !cache, %values: !cache, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{expects 'values' to share no memory with 'keys', got one memref for both}}
  kvcache.gather %keys, %values outs(%out, %out) : !cache, !cache, memref<?x?x8x128xbf16>, memref<?x?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C7) of gather
func.func @c7_ends_of_other_sequences(%keys: !cache, %begin: memref<2xi32>, %end: memref<3xi32>, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{expects operands with one number of sequences, got 2 and 3}}
  kvcache.gather %keys begin %begin end %end outs(%out) : !cache, memref<2xi32>, memref<3xi32>, memref<?x?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C7) of gather
func.func @c7_output_of_other_sequences(%keys: !cache, %end: memref<3xi32>, %out: memref<4x?x8x128xbf16>) {
  // expected-error @below {{expects operands with one number of sequences, got 3 and 4}}
  kvcache.gather %keys end %end outs(%out) : !cache, memref<3xi32>, memref<4x?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C6) of copy
func.func @c6_ends_of_other_sequences(%from: !cache, %to: !cache, %begin: memref<2xi32>, %end: memref<3xi32>) {
  // expected-error @below {{expects operands with one number of sequences, got 2 and 3}}
  kvcache.copy %from to %to begin %begin end %end : !cache, !cache, memref<2xi32>, memref<3xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C5) of copy: heads beside each other, and one in both.
func.func @c5_heads_that_are_read_and_written(%cache: !cache) {
  kvcache.copy %cache to %cache {source_head = 2, target_head = 5, heads = 3} : !cache, !cache
  kvcache.copy %cache to %cache {source_head = 5, target_head = 2, heads = 3} : !cache, !cache
  // expected-error @below {{expects 'source' and 'target' to share no heads, got one cache with 3 heads from 4 on and from 2 on}}
  kvcache.copy %cache to %cache {source_head = 4, target_head = 2, heads = 3} : !cache, !cache
  return
}

// -----

!cache = !kvcache.paged<i8, <num_heads = 8, head_size = 128>, page_size = 64>

// (C3) of gather
func.func @c3_integers_without_scales(%cache: !cache, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{expects 'key_scale' for a cache of 'i8' without scales}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!i8 = !kvcache.paged<i8, #kv, page_size = 64>

// (C3) of copy
func.func @c3_target_of_integers(%from: !cache, %to: !i8) {
  // expected-error @below {{expects 'target_scale' for a cache of 'i8' without scales}}
  kvcache.copy %from to %to : !cache, !i8
  return
}

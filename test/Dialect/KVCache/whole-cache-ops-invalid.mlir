// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C1) of append
func.func @c1_append_heads(%k: memref<?x4x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'keys' to have 8 heads of 128 elements, got 4 of 128}}
  kvcache.append %k to %cache rows %n : memref<?x4x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @append_of_strided_heads(%k: memref<?x8x128xbf16, strided<[4096, 256, 1]>>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects the heads and elements of 'keys' to be packed}}
  kvcache.append %k to %cache rows %n : memref<?x8x128xbf16, strided<[4096, 256, 1]>>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C2) of append
func.func @c2_append_values(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'values' and 'value_cache' together}}
  kvcache.append %k, %k to %cache rows %n : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C4) of append
func.func @c4_append_rope(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x64xf32>) {
  // expected-error @below {{expects 'rope_begin' (80) and the 64 columns of 'rope' to be in a head of 128 elements}}
  kvcache.append %k to %cache rows %n rope %t {rope_begin = 80 : i64} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!continuous = !kvcache.continuous<bf16, #kv>

// (C5) of append
func.func @c5_append_slots(%k: memref<?x8x128xbf16>, %cache: !continuous, %n: memref<?xi32>, %s: memref<?xi32>) {
  // expected-error @below {{expects a paged cache for 'slots'}}
  kvcache.append %k to %cache rows %n slots %s : memref<?x8x128xbf16>, !continuous, memref<?xi32>, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c5_append_positions(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: memref<?xi32>, %t: memref<?x64xf32>) {
  // expected-error @below {{expects 'positions', because 'slots' say none}}
  kvcache.append %k to %cache rows %n slots %s rope %t : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?xi32>, memref<?x64xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C7) of append
func.func @c7_append_interleaved(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'interleaved', 'rope_begin', 'positions' and 'rope_axes' only with 'rope'}}
  kvcache.append %k to %cache rows %n {interleaved} : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c11_axes_alone(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<?xi32>) {
  // expected-error @below {{expects 'rope_axes' and 'positions' of two dimensions together}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 0, 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c11_positions_alone(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' and 'positions' of two dimensions together}}
  kvcache.append %k to %cache rows %n rope %t positions %p : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c11_dynamic_axes(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<?x?xi32>) {
  // expected-error @below {{expects a static number of axes in 'positions'}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 0, 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<?x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c11_too_few(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' to have a number for each of 2 pairs, got 1}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c11_too_large(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' to be below the 3 axes of 'positions', got 3}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: 2, 3>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c11_negative(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x4xf32>, %p: memref<3x?xi32>) {
  // expected-error @below {{expects 'rope_axes' to be below the 3 axes of 'positions', got -1}}
  kvcache.append %k to %cache rows %n rope %t positions %p {rope_axes = array<i64: -1, 0>} : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x4xf32>, memref<3x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C1) of gather
func.func @c1_gather(%cache: !cache, %out: memref<?x?x8x64xbf16>) {
  // expected-error @below {{expects 'keys' to have 8 heads of 128 elements, got 8 of 64}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x?x8x64xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#small = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!small = !kvcache.paged<bf16, #small, page_size = 64>

// (C2) of copy
func.func @c2_copy(%cache: !cache, %small: !small) {
  // expected-error @below {{expects 8 heads from 0 on to be among the 2 of 'target'}}
  kvcache.copy %cache to %small : !cache, !small
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @copy_pages(%cache: !collection, %pairs: memref<?x3xi32>) {
  // expected-error @below {{expects 'pairs' to have two columns}}
  kvcache.copy_pages %cache pairs %pairs : !collection, memref<?x3xi32>
  return
}

// -----

// (C1) of merge_states
func.func @c1_rows_of_merge_states(%p: memref<1x2x1x4xf32>, %l: memref<1x2x1xf32>, %o: memref<1x1x4xf32>, %s: memref<1x1xf32>) {
  // expected-error @below {{'kvcache.merge_states' op expects operands with one number of rows, got 2 and 1}}
  kvcache.merge_states %p, %l outs(%o, %s) : memref<1x2x1x4xf32>, memref<1x2x1xf32>, memref<1x1x4xf32>, memref<1x1xf32>
  return
}

// -----

func.func @c1_splits_of_merge_states(%p: memref<3x?x1x4xf32>, %l: memref<2x?x1xf32>, %o: memref<?x1x4xf32>, %s: memref<?x1xf32>) {
  // expected-error @below {{'kvcache.merge_states' op expects operands with one number of splits, got 3 and 2}}
  kvcache.merge_states %p, %l outs(%o, %s) : memref<3x?x1x4xf32>, memref<2x?x1xf32>, memref<?x1x4xf32>, memref<?x1xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @rows_of_attention(%q: memref<3x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %o: memref<2x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op expects operands with one number of rows, got 3 and 2}}
  kvcache.attention %q, %k, %k, %n, %s outs(%o) : memref<3x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<2x32x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @rows_of_append(%k: memref<3x8x128xbf16>, %v: memref<4x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{'kvcache.append' op expects operands with one number of rows, got 3 and 4}}
  kvcache.append %k, %v to %cache, %cache rows %n : memref<3x8x128xbf16>, memref<4x8x128xbf16>, !cache, !cache, memref<?xi32>
  return
}

// -----

func.func @c1_merge_states(%p: memref<?x?x32x128xbf16>, %l: memref<?x?x8xf32>, %o: memref<?x32x128xbf16>, %s: memref<?x32xf32>) {
  // expected-error @below {{expects logarithms of 32 heads}}
  kvcache.merge_states %p, %l outs(%o, %s) : memref<?x?x32x128xbf16>, memref<?x?x8xf32>, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @results_of_tensors(%cache: !cache, %out: tensor<?x?x8x128xbf16>) {
  // expected-error @below {{expects a result for each of 'outs' that is a tensor}}
  kvcache.gather %cache outs(%out) : !cache, tensor<?x?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C8) of append
func.func @c8_power_of_two_without_scales(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects scales of f32, bf16 or f8E8M0FNU with 'power_of_two', got a cache without scales}}
  kvcache.append %k to %cache rows %n {power_of_two} : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<i16, #kv, page_size = 16>

func.func @append_to_integers(%rows: memref<?x2x64xbf16>, %k: !cache, %offsets: memref<?xi32>) {
  // expected-error @below {{operand #1 must be view of a paged or continuous cache of floats of at most 32 bits, of i8 or with scales, but got '!kvcache.paged<i16,}}
  kvcache.append %rows to %k rows %offsets : memref<?x2x64xbf16>, !cache, memref<?xi32>
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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f32, granularity = 32, zero_point = f32>

func.func @c8_power_of_two_with_zero_points(%k: memref<?x8x128xbf16>, %cache: !int4, %n: memref<?xi32>) {
  // expected-error @below {{expects 'power_of_two' only for a cache without zero points, got '!kvcache.paged<i4,}}
  kvcache.append %k to %cache rows %n {power_of_two} : memref<?x8x128xbf16>, !int4, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

// (C9) of append
func.func @c9_tokens_that_share_scales(%k: memref<?x8x128xbf16>, %cache: !kivi, %n: memref<?xi32>) {
  // expected-error @below {{expects tokens with scales of their own, because groups of tokens are not full at every row, got '!kvcache.paged<i4,}}
  kvcache.append %k to %cache rows %n : memref<?x8x128xbf16>, !kivi, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C10) of append
func.func @c10_static_scale_of_bf16(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: f32) {
  // expected-error @below {{expects 'key_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.append %k to %cache rows %n key_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>

// (C10) of append
func.func @c10_static_scales_of_other_heads(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: memref<7xf32>) {
  // expected-error @below {{expects 'value_scale' to have the 8 heads of its cache}}
  kvcache.append %k, %k to %cache, %cache rows %n value_scale %s
      : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, memref<7xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>

// (C10) of append
func.func @c10_static_scale_without_values(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %s: f32) {
  // expected-error @below {{expects values for 'value_scale'}}
  kvcache.append %k to %cache rows %n value_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C3) of gather
func.func @c3_static_scale_of_bf16(%cache: !cache, %out: memref<?x?x8x128xbf16>, %s: f32) {
  // expected-error @below {{expects 'key_scale' only for a cache with scales and no zero points, or of fp8 or i8}}
  kvcache.gather %cache outs(%out) key_scale %s : !cache, memref<?x?x8x128xbf16>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C1) of gather
func.func @c1_ragged_without_offsets(%cache: !cache, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects 'keys' to have 4 dimensions, or 'output_offsets'}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>

// (C3) of copy
func.func @c3_source_scale_of_other_heads(%fp8: !fp8, %s: memref<2xf32>) {
  // expected-error @below {{expects 'source_scale' to have the 8 heads of its cache}}
  kvcache.copy %fp8 to %fp8 source_scale %s : !fp8, !fp8, memref<2xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C2) of copy: sums of numbers wrap around.
func.func @c2_copy_of_last_heads(%cache: !cache) {
  // expected-error @below {{expects 9223372036854775807 heads from 9223372036854775807 on to be among the 8 of 'source'}}
  kvcache.copy %cache to %cache {source_head = 9223372036854775807, heads = 9223372036854775807} : !cache, !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C4) of append: so do these.
func.func @c4_append_at_the_end(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %t: memref<?x8xf32>) {
  // expected-error @below {{expects 'rope_begin' (9223372036854775807) and the 8 columns of 'rope' to be in a head of 128 elements}}
  kvcache.append %k, %k to %cache, %cache rows %n rope %t {rope_begin = 9223372036854775807} : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, memref<?x8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @rows_without_strides(%cache: !cache, %out: memref<?x?x8x128xbf16, affine_map<(a, b, c, d) -> (b, a, c, d)>>) {
  // expected-error @below {{expects the heads and elements of 'keys' to be packed, got 'memref<?x?x8x128xbf16, affine_map<}}
  kvcache.gather %cache outs(%out) : !cache, memref<?x?x8x128xbf16, affine_map<(a, b, c, d) -> (b, a, c, d)>>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C12) of append
func.func @c12_more_threads_than_a_block(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.append %k to %cache rows %n {block_threads = 1056} : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C4) of gather
func.func @c4_part_of_a_warp(%cache: !cache, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.gather %cache outs(%out) {block_threads = 48} : !cache, memref<?x?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C4) of gather
func.func @c4_more_heads_than_registers(%cache: !cache, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{attribute 'heads_per_thread' failed to satisfy constraint: 64-bit signless integer attribute whose value is from 1 to 32}}
  kvcache.gather %cache outs(%out) {heads_per_thread = 33} : !cache, memref<?x?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C4) of copy
func.func @c4_no_heads(%cache: !cache) {
  // expected-error @below {{attribute 'heads_per_thread' failed to satisfy constraint: 64-bit signless integer attribute whose value is from 1 to 32}}
  kvcache.copy %cache to %cache {heads_per_thread = 0} : !cache, !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

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

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C2) of merge_states
func.func @c2_threads_of_merge_states(%splits: memref<?x?x8x128xbf16>, %lses: memref<?x?x8xf32>, %out: memref<?x8x128xbf16>, %lse: memref<?x8xf32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.merge_states %splits, %lses outs(%out, %lse) {block_threads = -32} : memref<?x?x8x128xbf16>, memref<?x?x8xf32>, memref<?x8x128xbf16>, memref<?x8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C3) of remap_rows
func.func @c3_threads_of_remap_rows(%tokens: memref<?x4xi32>, %cache: !cache, %n: memref<?xi32>) {
  // expected-error @below {{attribute 'block_threads' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 32 from 32 to 1024}}
  kvcache.remap_rows %tokens, %cache rows %n outs(%tokens) {block_threads = 1000} : memref<?x4xi32>, !cache, memref<?xi32>, memref<?x4xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C13) of append
func.func @c13_queries_are_values(%k: memref<?x8x128xbf16>, %w_all: memref<?x8x128xbf16>, %w: memref<128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>) {
  // expected-error @below {{expects 'queries' to share no memory with 'values', got one memref for both}}
  kvcache.append %k, %w_all to %keys, %values rows %n query_norm %w queries %w_all
    : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, memref<128xbf16>, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C5) of gather
func.func @c5_outputs_are_one(%keys: !cache, %values: !cache, %out: memref<?x?x8x128xbf16>) {
  // expected-error @below {{expects 'values' to share no memory with 'keys', got one memref for both}}
  kvcache.gather %keys, %values outs(%out, %out) : !cache, !cache, memref<?x?x8x128xbf16>, memref<?x?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C5) of copy: heads beside each other, and one in both.
func.func @c5_heads_that_are_read_and_written(%cache: !cache) {
  kvcache.copy %cache to %cache {source_head = 2, target_head = 5, heads = 3} : !cache, !cache
  kvcache.copy %cache to %cache {source_head = 5, target_head = 2, heads = 3} : !cache, !cache
  // expected-error @below {{expects 'source' and 'target' to share no heads, got one cache with 3 heads from 4 on and from 2 on}}
  kvcache.copy %cache to %cache {source_head = 4, target_head = 2, heads = 3} : !cache, !cache
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<i8, #kv, page_size = 64>

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

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C14) of append
func.func @c14_output_without_queries(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %o: memref<?x8x128xf8E4M3FN>) {
  // expected-error @below {{expects 'queries' for 'query_out'}}
  kvcache.append %k to %cache rows %n query_out %o : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xf8E4M3FN>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C14) of append
func.func @c14_scale_without_output(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16>, %s: f32) {
  // expected-error @below {{expects 'query_out' for 'query_scale'}}
  kvcache.append %k to %cache rows %n queries %q query_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16>, f32
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C14) of append
func.func @c14_sizes_of_output(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16>, %o: memref<?x8x64xf8E4M3FN>) {
  // expected-error @below {{expects 'query_out' to have 8 heads of 128 elements, got 8 of 64}}
  kvcache.append %k to %cache rows %n queries %q query_out %o : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16>, memref<?x8x64xf8E4M3FN>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C14) of append
func.func @c14_heads_of_scale(%k: memref<?x8x128xbf16>, %cache: !cache, %n: memref<?xi32>, %q: memref<?x8x128xbf16>, %o: memref<?x8x128xf8E4M3FN>, %s: memref<4xf32>) {
  // expected-error @below {{expects 'query_scale' to have the 8 heads of 'query_out', got 'memref<4xf32>'}}
  kvcache.append %k to %cache rows %n queries %q query_out %o query_scale %s : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x8x128xbf16>, memref<?x8x128xf8E4M3FN>, memref<4xf32>
  return
}

// -----

// (C3) of merge_states
func.func @c3_scale_of_bf16(%p: memref<?x?x32x128xbf16>, %l: memref<?x?x32xf32>, %o: memref<?x32x128xbf16>, %s: memref<?x32xf32>, %f: f32) {
  // expected-error @below {{expects 'out_scale' only for 'out' of fp8, got 'memref<?x32x128xbf16>'}}
  kvcache.merge_states %p, %l outs(%o, %s) out_scale %f : memref<?x?x32x128xbf16>, memref<?x?x32xf32>, memref<?x32x128xbf16>, memref<?x32xf32>, f32
  return
}

// -----

// (C3) of merge_states
func.func @c3_heads_of_scale(%p: memref<?x?x32x128xbf16>, %l: memref<?x?x32xf32>, %o: memref<?x32x128xf8E4M3FN>, %s: memref<?x32xf32>, %f: memref<8xf32>) {
  // expected-error @below {{expects 'out_scale' to have the 32 heads of 'out', got 'memref<8xf32>'}}
  kvcache.merge_states %p, %l outs(%o, %s) out_scale %f : memref<?x?x32x128xbf16>, memref<?x?x32xf32>, memref<?x32x128xf8E4M3FN>, memref<?x32xf32>, memref<8xf32>
  return
}

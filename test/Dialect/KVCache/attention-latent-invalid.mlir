// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

// (C1)
func.func @c1_size_of_two_caches(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q' to have 16 heads of 576 elements, got 16 of 512}}
  kvcache.attention %q, %k, %n, %s outs(%out) rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

// (C1)
func.func @c1_size_of_two_arrays(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x32xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q_rope' to have 16 heads of 64 elements, got 16 of 32}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x32xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

// (C1)
func.func @c1_strided_elements_of_rope(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16, strided<[?, ?, 2]>>, %r: !rope) {
  // expected-error @below {{expects the elements of a head of 'q_rope' to be contiguous}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16, strided<[?, ?, 2]>>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

// (C18)
func.func @c18_heads_of_rope(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x8x64xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q_rope' to have 16 heads of 64 elements, got 8 of 64}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x8x64xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

// (C18)
func.func @c18_type_of_rope(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xf32>, %r: !rope) {
  // expected-error @below {{expects 'q_rope' to have the element type of 'q' ('bf16'), got 'f32'}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xf32>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

// (C18)
func.func @c18_no_elements_of_rope(%q: memref<?x16x576xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !rope) {
  // expected-error @below {{expects 'q' to have a static number of less than 576 elements of a head with 'q_rope'}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x576xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16>, !rope
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C18)
func.func @c18_rope_of_keys_and_values(%q: memref<?x16x64xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x16x128xbf16>) {
  // expected-error @below {{expects 'q_rope' only for a latent cache}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) q_rope %q : memref<?x16x64xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x16x128xbf16>, memref<?x16x64xbf16>
  return
}

// -----

#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>

// (C19)
func.func @c19_rope_cache_of_keys_and_values(%q: memref<?x16x192xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x16x128xbf16>, %r: !rope) {
  // expected-error @below {{expects 'rope_cache' only for a latent cache, and latent itself}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) rope_cache %r : memref<?x16x192xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x16x128xbf16>, !rope
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>
!pages = !kvcache.paged<bf16, #rope, page_size = 32>

// (C19)
func.func @c19_other_pages(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !pages) {
  // expected-error @below {{expects 'rope_cache' to have the pages of 'key_cache', got}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16>, !pages
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, #rope, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #rope, page_size = 64>

// (C19)
func.func @c19_rope_of_fp8(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !fp8) {
  // expected-error @below {{expects 'rope_cache' to have elements of f32, f16 or bf16 without scales, got}}
  kvcache.attention %q, %k, %n, %s outs(%out) q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16>, !fp8
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 128>
!rope = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

// (C20)
func.func @c20_static_scale(%q: memref<?x16x512xbf16>, %k: !content, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %p: memref<?x16x64xbf16>, %r: !rope) {
  // expected-error @below {{expects no 'key_scale' with 'rope_cache'}}
  kvcache.attention %q, %k, %n, %s outs(%out) key_scale %s q_rope %p rope_cache %r : memref<?x16x512xbf16>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>, f32, memref<?x16x64xbf16>, !rope
  return
}

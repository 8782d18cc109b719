// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of paged_view

!latent = !kvcache.paged_collection<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c1_values_of_a_latent_cache(%c: !latent, %layer: index) {
  // expected-error @below {{expects 'role' to be key for an MLA collection, which has one latent cache and no values}}
  %v = kvcache.paged_view value %c[%layer] : !latent
  return
}

// -----

// (C1) of continuous_view

!continuous_latent = !kvcache.continuous_collection<bf16, <num_heads = 1, head_size = 576, is_mla = true>>

func.func @c1_values_of_a_continuous_latent_cache(%c: !continuous_latent, %layer: index) {
  // expected-error @below {{expects 'role' to be key for an MLA collection, which has one latent cache and no values}}
  %v = kvcache.continuous_view value %c[%layer] : !continuous_latent
  return
}

// -----

// Types and syntax of the views

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @view_of_a_view(%c: !cache, %layer: index) {
  // expected-error @below {{but got '!kvcache.paged<bf16,}}
  %v = "kvcache.paged_view"(%c, %layer) <{role = 0 : i32}> : (!cache, index) -> !cache
  return
}

// -----

// A view of something else than a collection, in the custom form.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @paged_view_of_a_view(%k: !cache, %layer: index) {
  // expected-error @below {{expects 'collection' to be a paged collection, got '!kvcache.paged<bf16,}}
  %v = kvcache.paged_view key %k[%layer] : !cache
  return
}

// -----

!continuous_collection = !kvcache.continuous_collection<bf16, <num_heads = 8, head_size = 128>>

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

// RUN: kvcache-opt %s --split-input-file --verify-diagnostics
// XFAIL: *

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

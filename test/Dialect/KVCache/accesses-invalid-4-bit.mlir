// RUN: kvcache-opt %s --split-input-file --verify-diagnostics
// XFAIL: *

// Two elements of a 4-bit cache share a byte: an odd number of them would write
// half of one.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @store_of_one_4_bit_element(%x: f4E2M1FN, %k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes for f4E2M1FN, got 1}}
  kvcache.store %x, %k[%b, %h, %t, %d] : f4E2M1FN, !mxfp4
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!mxfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

func.func @store_of_odd_4_bit_elements(%x: vector<3xf4E2M1FN>, %k: !mxfp4, %b: index, %h: index, %t: index,
                                       %d: index) {
  // expected-error @below {{expects 'value' to have an even number of lanes for f4E2M1FN, got 3}}
  kvcache.store %x, %k[%b, %h, %t, %d] : vector<3xf4E2M1FN>, !mxfp4
  return
}

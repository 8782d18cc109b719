// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/types.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
#kv2 = #kvcache.params<num_heads = 1, head_size = 2147483647>
module {
  func.func private @paged_collection(!kvcache.paged_collection<f32, #kv, page_size = 64>, !kvcache.paged_collection<f16, #kv, page_size = 3>, !kvcache.paged_collection<bf16, #kv1, page_size = 1>, !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 48>, !kvcache.paged_collection<f8E5M2, #kv, page_size = 256>)
  func.func private @quantized_collection(!kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>, !kvcache.paged_collection<f8E5M2, #kv, page_size = 64, scale = f16, granularity = 1>, !kvcache.paged_collection<i8, #kv, page_size = 64, scale = bf16, granularity = 48>, !kvcache.paged_collection<i8, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>, !kvcache.paged_collection<i8, #kv, page_size = 64, scale = f8E4M3FN, granularity = 32>, !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>, !kvcache.paged_collection<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>)
  func.func private @groups(!kvcache.paged_collection<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>, !kvcache.paged<i4, #kv, page_size = ?, scale = f32, granularity = 128, zero_point = f32>, !kvcache.paged<i4, #kv, page_size = 64, scale = bf16, granularity = 1, zero_point = bf16, token_granularity = 32, scale_layout = [token = 256, head = 512], table = csr>, !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 1, token_granularity = 64>, !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 1>)
  func.func private @paged_cache(!kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<f8E4M3FN, #kv1, page_size = 64, scale = f32, granularity = 64>)
  func.func private @open_page_size(!kvcache.paged_collection<bf16, #kv, page_size = ?>, !kvcache.paged<f8E4M3FN, #kv, page_size = ?, scale = f32, granularity = 128>, !kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = ?, scale = f32, granularity = 128>>, !kvcache.row_indices<rows = 16, page_size = ?>)
  func.func private @granularity_before_scale(!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 64>)
  func.func private @params_in_short(!kvcache.paged<bf16, #kv, page_size = 64>)
  func.func private @largest_page(!kvcache.paged<bf16, #kv2, page_size = 1>)
  func.func private @continuous_collection(!kvcache.continuous_collection<f32, #kv>, !kvcache.continuous_collection<f16, #kv>, !kvcache.continuous_collection<bf16, #kv1>, !kvcache.continuous_collection<f8E4M3FN, #kv>, !kvcache.continuous_collection<f8E5M2, #kv>)
  func.func private @continuous_cache(!kvcache.continuous<f32, #kv>, !kvcache.continuous<bf16, #kv1>)
  func.func private @row_indices(!kvcache.row_indices<rows = 128, page_size = 64>, !kvcache.row_indices<rows = 32, page_size = 64>, !kvcache.row_indices<rows = 64, page_size = 64>, !kvcache.row_indices<rows = 192, page_size = 48>, !kvcache.row_indices<rows = 1>)
  func.func private @scales(!kvcache.scales<!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>>, !kvcache.scales<!kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>>, !kvcache.scales<!kvcache.paged<i8, #kv1, page_size = 3, scale = bf16, granularity = 1>>, !kvcache.scales<!kvcache.paged<bf16, #kv, page_size = 64>>, !kvcache.scales<!kvcache.continuous<bf16, #kv>>)
  func.func private @elements_without_conversion(!kvcache.paged<f64, #kv, page_size = 64>, !kvcache.paged_collection<i8, #kv, page_size = 64>, !kvcache.continuous<i16, #kv>, !kvcache.continuous_collection<i32, #kv>)
  func.func private @a_scale_for_each_element(!kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 1>)
}


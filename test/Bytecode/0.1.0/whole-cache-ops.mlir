// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/whole-cache-ops.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
#kv2 = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#kv3 = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
module {
  func.func @append(%arg0: memref<?x8x128xbf16>, %arg1: memref<?x8x128xbf16>, %arg2: !kvcache.paged<bf16, #kv, page_size = 64>, %arg3: !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, %arg4: memref<?xi32>, %arg5: memref<?xi64>, %arg6: memref<128xbf16>, %arg7: memref<?x64xf32>, %arg8: memref<3x?xi32>, %arg9: memref<?x32x128xbf16>) {
    kvcache.append %arg0, %arg1 to %arg2, %arg2 rows %arg4 : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>
    kvcache.append %arg0, %arg1 to %arg2, %arg3 rows %arg4 slots %arg5 norm %arg6 query_norm %arg6 rope %arg7 positions %arg8 queries %arg9 {epsilon = 9.99999974E-6 : f32, interleaved, rope_axes = array<i64: 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2>, rope_begin = 64 : i64} : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, memref<?xi64>, memref<128xbf16>, memref<128xbf16>, memref<?x64xf32>, memref<3x?xi32>, memref<?x32x128xbf16>
    return
  }
  func.func @static_scales(%arg0: memref<?x8x128xbf16>, %arg1: memref<?x8x128xbf16>, %arg2: !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, %arg3: memref<?xi32>, %arg4: f32, %arg5: memref<8xf32>) {
    kvcache.append %arg0, %arg1 to %arg2, %arg2 rows %arg3 key_scale %arg4 value_scale %arg5 : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, f32, memref<8xf32>
    kvcache.gather %arg2, %arg2 outs(%arg0, %arg1) output_offsets %arg3 key_scale %arg4 value_scale %arg5 : !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?x8x128xbf16>, memref<?x8x128xbf16>, memref<?xi32>, f32, memref<8xf32>
    return
  }
  func.func @append_latent(%arg0: memref<?x1x512xbf16>, %arg1: memref<?x1x64xbf16>, %arg2: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg3: memref<?xi32>) {
    kvcache.append %arg0 with %arg1 to %arg2 rows %arg3 : memref<?x1x512xbf16>, memref<?x1x64xbf16>, !kvcache.paged<bf16, #kv1, page_size = 64>, memref<?xi32>
    return
  }
  func.func @append_tensors(%arg0: tensor<?x8x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: tensor<?xi32>, %arg3: tensor<?x64xf32>, %arg4: tensor<?x32x128xbf16>) -> tensor<?x32x128xbf16> {
    %0 = kvcache.append %arg0, %arg0 to %arg1, %arg1 rows %arg2 rope %arg3 queries %arg4 : tensor<?x8x128xbf16>, tensor<?x8x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, tensor<?xi32>, tensor<?x64xf32>, tensor<?x32x128xbf16> -> tensor<?x32x128xbf16>
    return %0 : tensor<?x32x128xbf16>
  }
  func.func @gather(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, %arg2: memref<?xi32>, %arg3: memref<?x?x8x128xf32>, %arg4: memref<?x?x8x128xbf16>) {
    kvcache.gather %arg0, %arg1 rows %arg2 begin %arg2 end %arg2 outs(%arg3, %arg4) : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?x?x8x128xf32>, memref<?x?x8x128xbf16>
    kvcache.gather %arg1 outs(%arg3) : !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?x?x8x128xf32>
    return
  }
  func.func @copies(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, %arg2: memref<?xi32>, %arg3: !kvcache.paged_collection<bf16, #kv, page_size = 64>, %arg4: memref<?x2xi32>, %arg5: f32, %arg6: memref<8xf32>) {
    kvcache.copy %arg0 to %arg1 begin %arg2 end %arg2 {heads = 2 : i64, source_head = 6 : i64, target_head = 1 : i64} : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, memref<?xi32>
    kvcache.copy %arg1 to %arg1 source_scale %arg5 target_scale %arg6 {heads = 4 : i64, target_head = 4 : i64} : !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, f32, memref<8xf32>
    kvcache.copy_pages %arg3 pairs %arg4 : !kvcache.paged_collection<bf16, #kv, page_size = 64>, memref<?x2xi32>
    return
  }
  func.func @merge_and_remap(%arg0: tensor<?x?x32x128xbf16>, %arg1: tensor<?x?x32xf32>, %arg2: tensor<?x32x128xbf16>, %arg3: tensor<?x32xf32>, %arg4: memref<?x64xi32>, %arg5: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg6: memref<?xi32>) {
    %0:2 = kvcache.merge_states %arg0, %arg1 outs(%arg2, %arg3) : tensor<?x?x32x128xbf16>, tensor<?x?x32xf32>, tensor<?x32x128xbf16>, tensor<?x32xf32> -> tensor<?x32x128xbf16>, tensor<?x32xf32>
    kvcache.remap_rows %arg4, %arg5 rows %arg6 outs(%arg4) : memref<?x64xi32>, !kvcache.paged<bf16, #kv1, page_size = 64>, memref<?xi32>, memref<?x64xi32>
    return
  }
  func.func @attention(%arg0: memref<?x32x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, %arg3: memref<?xi32>, %arg4: f32, %arg5: memref<?x32x128xbf16>, %arg6: memref<?x32x64xf32>, %arg7: memref<?x32xf32>, %arg8: memref<?xi8>, %arg9: memref<32xf32>, %arg10: memref<?x?xi32>) {
    kvcache.attention %arg0, %arg1, %arg2, %arg3, %arg4 outs(%arg5) : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, f32, memref<?x32x128xbf16>
    kvcache.attention %arg0, %arg1, %arg1, %arg3, %arg4 outs(%arg5) {config = #kvcache.attention_config<swap_ab = false, rows = 128, l2_hint = evict_last>} : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, f32, memref<?x32x128xbf16>
    kvcache.attention %arg0, %arg1, %arg2, %arg3, %arg4 outs(%arg6, %arg7) workspace %arg8 {causal, chunk = 8192 : i64, config = #kvcache.attention_config<persistent = 264>, soft_cap = 5.000000e+01 : f64, window = 4096 : i64} sinks %arg9 mask %arg10 lengths %arg3 : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, f32, memref<?x32x64xf32>, memref<?x32xf32>, memref<?xi8>, memref<32xf32>, memref<?x?xi32>, memref<?xi32>
    return
  }
  func.func @masks_and_statistics(%arg0: memref<?x32x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: memref<?xi32>, %arg3: f32, %arg4: memref<?x32x128xbf16>, %arg5: memref<?x32xf32>, %arg6: memref<?x32xf32>, %arg7: memref<?xi8>, %arg8: memref<32xf32>, %arg9: memref<?x?xi32>, %arg10: memref<?x?x2xi32>) {
    kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4, %arg5) max_logits %arg6 workspace %arg7 {sinkless_lse, whole_mask} sinks %arg8 mask %arg9 ranges %arg10 : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>, memref<?x32xf32>, memref<?xi8>, memref<32xf32>, memref<?x?xi32>, memref<?x?x2xi32>
    return
  }
  func.func @maxima_of_tensors(%arg0: tensor<?x32x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: tensor<?xi32>, %arg3: f32, %arg4: tensor<?x32x128xbf16>, %arg5: tensor<?x32xf32>, %arg6: tensor<?x1x2xi32>) -> tensor<?x32xf32> {
    %0:2 = kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4) max_logits %arg5 ranges %arg6 : tensor<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, tensor<?xi32>, f32, tensor<?x32x128xbf16>, tensor<?x32xf32>, tensor<?x1x2xi32> -> tensor<?x32x128xbf16>, tensor<?x32xf32>
    return %0#1 : tensor<?x32xf32>
  }
  func.func @latent_attention(%arg0: tensor<?x128x576xbf16>, %arg1: !kvcache.paged<bf16, #kv1, page_size = 64>, %arg2: tensor<?xi32>, %arg3: f32, %arg4: tensor<?x128x512xbf16>, %arg5: tensor<?x128xf32>, %arg6: tensor<?x2048xi32>) -> tensor<?x128x512xbf16> {
    %0:2 = kvcache.attention %arg0, %arg1, %arg2, %arg3 outs(%arg4, %arg5) rows %arg6 : tensor<?x128x576xbf16>, !kvcache.paged<bf16, #kv1, page_size = 64>, tensor<?xi32>, f32, tensor<?x128x512xbf16>, tensor<?x128xf32>, tensor<?x2048xi32> -> tensor<?x128x512xbf16>, tensor<?x128xf32>
    return %0#0 : tensor<?x128x512xbf16>
  }
  func.func @narrow_attention(%arg0: memref<?x32x128xf8E4M3FN>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, %arg2: memref<?xi32>, %arg3: f32, %arg4: memref<?x32x128xf8E5M2>, %arg5: memref<32xf32>) {
    kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4) query_scale %arg3 out_scale %arg5 : memref<?x32x128xf8E4M3FN>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, f32, memref<?x32x128xf8E5M2>, f32, memref<32xf32>
    return
  }
  func.func @attention_to_fields(%arg0: memref<?x16x512xbf16, strided<[?, ?, 1]>>, %arg1: memref<?x16x64xbf16, strided<[?, ?, 1]>>, %arg2: !kvcache.paged<f8E4M3FN, #kv2, page_size = 64, scale = f32, granularity = 128, layout = [token = 656], scale_layout = [token = 164]>, %arg3: !kvcache.paged<bf16, #kv3, page_size = 64, layout = [token = 328]>, %arg4: memref<?xi32>, %arg5: f32, %arg6: memref<?x16x512xbf16>, %arg7: tensor<?x16x576xbf16>, %arg8: tensor<?xi32>, %arg9: tensor<?x16x512xbf16>) -> tensor<?x16x512xbf16> {
    kvcache.attention %arg0, %arg2, %arg4, %arg5 outs(%arg6) {causal} q_rope %arg1 rope_cache %arg3 : memref<?x16x512xbf16, strided<[?, ?, 1]>>, !kvcache.paged<f8E4M3FN, #kv2, page_size = 64, scale = f32, granularity = 128, layout = [token = 656], scale_layout = [token = 164]>, memref<?xi32>, f32, memref<?x16x512xbf16>, memref<?x16x64xbf16, strided<[?, ?, 1]>>, !kvcache.paged<bf16, #kv3, page_size = 64, layout = [token = 328]>
    %0 = kvcache.attention %arg7, %arg2, %arg8, %arg5 outs(%arg9) rope_cache %arg3 : tensor<?x16x576xbf16>, !kvcache.paged<f8E4M3FN, #kv2, page_size = 64, scale = f32, granularity = 128, layout = [token = 656], scale_layout = [token = 164]>, tensor<?xi32>, f32, tensor<?x16x512xbf16>, !kvcache.paged<bf16, #kv3, page_size = 64, layout = [token = 328]> -> tensor<?x16x512xbf16>
    return %0 : tensor<?x16x512xbf16>
  }
  func.func @queries_of_fp8(%arg0: memref<?x8x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: memref<?xi32>, %arg3: memref<?x32x128xbf16>, %arg4: memref<?x32x128xf8E4M3FN>, %arg5: memref<32xf32>) {
    kvcache.append %arg0 to %arg1 rows %arg2 queries %arg3 query_out %arg4 query_scale %arg5 : memref<?x8x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32x128xf8E4M3FN>, memref<32xf32>
    return
  }
  func.func @merge_to_fp8(%arg0: memref<?x?x32x128xbf16>, %arg1: memref<?x?x32xf32>, %arg2: memref<?x32x128xf8E5M2>, %arg3: memref<?x32xf32>, %arg4: f32) {
    kvcache.merge_states %arg0, %arg1 outs(%arg2, %arg3) out_scale %arg4 {block_threads = 64 : i64} : memref<?x?x32x128xbf16>, memref<?x?x32xf32>, memref<?x32x128xf8E5M2>, memref<?x32xf32>, f32
    return
  }
  func.func @split_attention(%arg0: memref<?x32x128xbf16>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, %arg2: memref<?xi32>, %arg3: f32, %arg4: memref<?x32x128xbf16>, %arg5: memref<?xi8>, %arg6: memref<8xf32>, %arg7: index) -> (index, index) {
    %0 = kvcache.workspace_size %arg7 {query_heads = 32 : i64, value_size = 128 : i64}
    %1 = kvcache.workspace_size %arg7 {query_heads = 32 : i64, split = #kvcache.split<keys = 256, max = 16, rows = 4>, value_size = 128 : i64}
    kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4) workspace %arg5 {split = #kvcache.split<keys = 512, max = 16, rows = 4>} key_scale %arg3 value_scale %arg6 : memref<?x32x128xbf16>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>, f32, memref<8xf32>
    return %0, %1 : index, index
  }
  func.func @tiling_hints(%arg0: memref<?x8x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: memref<?xi32>, %arg3: memref<?x64xf32>, %arg4: memref<?x?x8x128xbf16>, %arg5: !kvcache.paged_collection<bf16, #kv, page_size = 64>, %arg6: memref<?x2xi32>, %arg7: memref<?x?x8xf32>, %arg8: memref<?x8xf32>, %arg9: memref<?x4xi32>) {
    kvcache.append %arg0 to %arg1 rows %arg2 rope %arg3 {block_threads = 1024 : i64, interleaved} : memref<?x8x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, memref<?x64xf32>
    kvcache.gather %arg1 outs(%arg4) {block_threads = 32 : i64, heads_per_thread = 32 : i64} : !kvcache.paged<bf16, #kv, page_size = 64>, memref<?x?x8x128xbf16>
    kvcache.copy %arg1 to %arg1 {heads = 4 : i64, heads_per_thread = 1 : i64, target_head = 4 : i64} : !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>
    kvcache.copy_pages %arg5 pairs %arg6 {block_threads = 64 : i64} : !kvcache.paged_collection<bf16, #kv, page_size = 64>, memref<?x2xi32>
    kvcache.merge_states %arg4, %arg7 outs(%arg0, %arg8) {block_threads = 128 : i64} : memref<?x?x8x128xbf16>, memref<?x?x8xf32>, memref<?x8x128xbf16>, memref<?x8xf32>
    kvcache.remap_rows %arg9, %arg1 rows %arg2 outs(%arg9) {block_threads = 96 : i64} : memref<?x4xi32>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, memref<?x4xi32>
    return
  }
  func.func @merge_splits(%arg0: memref<?x32x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: memref<?xi32>, %arg3: f32, %arg4: memref<?x32x128xbf16>, %arg5: memref<?x32x128xf8E4M3FN>, %arg6: memref<?x32xf32>, %arg7: memref<?x32xf32>, %arg8: memref<32xbf16>, %arg9: memref<?xi8>, %arg10: memref<8xf32>) {
    kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4) workspace %arg9 {config = #kvcache.attention_config<mma = none>, partial} : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
    kvcache.merge_splits %arg9, %arg2 outs(%arg4) count {
    ^bb0(%arg11: index, %arg12: index, %arg13: index, %arg14: index):
      kvcache.yield %arg14 : index
    } : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
    kvcache.merge_splits %arg9, %arg2 outs(%arg5, %arg6) max_logits %arg7 sinks %arg8 value_scale %arg10 out_scale %arg3 {exponent_bias = 1.500000e+01 : f32, sinkless_lse, split = #kvcache.split<keys = 256, max = 32, rows = 4>} count {
    ^bb0(%arg11: index, %arg12: index, %arg13: index, %arg14: index):
      kvcache.yield %arg13 : index
    } : memref<?xi8>, memref<?xi32>, memref<?x32x128xf8E4M3FN>, memref<?x32xf32>, memref<?x32xf32>, memref<32xbf16>, memref<8xf32>, f32
    return
  }
}


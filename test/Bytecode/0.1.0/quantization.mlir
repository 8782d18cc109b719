// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/quantization.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 8, head_size = 80>
module {
  func.func @quantize(%arg0: vector<128xbf16>, %arg1: vector<2xf32>, %arg2: f16, %arg3: f32) {
    %quantized, %scale = kvcache.quantize %arg0 : vector<128xbf16> -> vector<128xf8E4M3FN>, f32
    %quantized_0, %scale_1 = kvcache.quantize %arg0 : vector<128xbf16> -> vector<128xf8E5M2>, vector<1xbf16>
    %quantized_2, %scale_3 = kvcache.quantize %arg0 : vector<128xbf16> -> vector<128xi8>, vector<4xf16>
    %quantized_4, %scale_5 = kvcache.quantize %arg0 : vector<128xbf16> -> vector<128xf4E2M1FN>, vector<4xf8E8M0FNU>
    %quantized_6, %scale_7 = kvcache.quantize %arg0 tensor_scale %arg3 : vector<128xbf16> -> vector<128xf4E2M1FN>, vector<8xf8E4M3FN>
    %quantized_8, %scale_9 = kvcache.quantize %arg1 tensor_scale %arg3 {lanes = 8 : i64} : vector<2xf32> -> vector<2xf4E2M1FN>, f8E4M3FN
    %quantized_10, %scale_11 = kvcache.quantize %arg2 {lanes = 32 : i64, note = "kept"} : f16 -> i8, f32
    return
  }
  func.func @quantize_with_zero_points(%arg0: vector<128xbf16>, %arg1: vector<8xf32>) {
    %quantized, %scale, %zero_point = kvcache.quantize %arg0 : vector<128xbf16> -> vector<128xi4>, f32, f32
    %quantized_0, %scale_1, %zero_point_2 = kvcache.quantize %arg0 : vector<128xbf16> -> vector<128xi4>, vector<4xf16>, vector<4xf16>
    %quantized_3, %scale_4, %zero_point_5 = kvcache.quantize %arg1 {lanes = 4 : i64} : vector<8xf32> -> vector<8xi4>, bf16, bf16
    return
  }
  func.func @dequantize(%arg0: vector<16xf8E4M3FN>, %arg1: vector<16xf4E2M1FN>, %arg2: i8, %arg3: f32, %arg4: vector<4xbf16>, %arg5: f8E8M0FNU, %arg6: f8E4M3FN) {
    %0 = kvcache.dequantize %arg0, %arg3 : vector<16xf8E4M3FN>, f32 -> vector<16xbf16>
    %1 = kvcache.dequantize %arg0, %arg4 : vector<16xf8E4M3FN>, vector<4xbf16> -> vector<16xf64>
    %2 = kvcache.dequantize %arg1, %arg5 : vector<16xf4E2M1FN>, f8E8M0FNU -> vector<16xf16>
    %3 = kvcache.dequantize %arg1, %arg6 tensor_scale %arg3 : vector<16xf4E2M1FN>, f8E4M3FN -> vector<16xf32>
    %4 = kvcache.dequantize %arg2, %arg3 {note = "kept"} : i8, f32 -> f32
    return
  }
  func.func @load_dequantizes(%arg0: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg1: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>, %arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index, %arg8: f32) {
    %0 = kvcache.load %arg0[%arg2, %arg3, %arg4, %arg5] : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> bf16
    %1 = kvcache.load %arg0[%arg2, %arg3, %arg4, %arg5] page %arg6 : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> vector<16xf16>
    %2 = kvcache.load %arg0[%arg2, %arg3, %arg4, %arg5] scale_page %arg7 : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> vector<64xf64>
    %3 = kvcache.load %arg1[%arg2, %arg3, %arg4, %arg5] tensor_scale %arg8 : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16> -> vector<2xf32>
    %4 = kvcache.load %arg1[%arg2, %arg3, %arg4, %arg5] page %arg6 scale_page %arg7 tensor_scale %arg8 {note = "kept"} : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16> -> vector<128xf32>
    return
  }
  func.func @load_quantized(%arg0: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg1: !kvcache.paged<i8, #kv, page_size = 64, scale = bf16, granularity = 128>, %arg2: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index) {
    %0 = kvcache.load_quantized %arg0[%arg3, %arg4, %arg5, %arg6] : !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32> -> vector<16xf8E4M3FN>
    %1 = kvcache.load_quantized %arg1[%arg3, %arg4, %arg5, %arg6] : !kvcache.paged<i8, #kv, page_size = 64, scale = bf16, granularity = 128> -> i8
    %2 = kvcache.load_quantized %arg2[%arg3, %arg4, %arg5, %arg6] page %arg7 {note = "kept"} : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16> -> vector<128xf4E2M1FN>
    return
  }
  func.func @store_quantized(%arg0: vector<128xbf16>, %arg1: vector<32xf32>, %arg2: vector<80xf16>, %arg3: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg4: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>, %arg5: !kvcache.paged<f8E5M2, #kv1, page_size = 64, scale = f16, granularity = 32>, %arg6: index, %arg7: index, %arg8: index, %arg9: index, %arg10: index, %arg11: index, %arg12: f32) {
    kvcache.store_quantized %arg0, %arg3[%arg6, %arg7, %arg8, %arg9] : vector<128xbf16>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    kvcache.store_quantized %arg1, %arg3[%arg6, %arg7, %arg8, %arg9] page %arg10 : vector<32xf32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    kvcache.store_quantized %arg1, %arg3[%arg6, %arg7, %arg8, %arg9] scale_page %arg11 : vector<32xf32>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    kvcache.store_quantized %arg2, %arg5[%arg6, %arg7, %arg8, %arg9] : vector<80xf16>, !kvcache.paged<f8E5M2, #kv1, page_size = 64, scale = f16, granularity = 32>
    kvcache.store_quantized %arg0, %arg4[%arg6, %arg7, %arg8, %arg9] page %arg10 scale_page %arg11 tensor_scale %arg12 {note = "kept"} : vector<128xbf16>, !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
    return
  }
  func.func @store_of_a_scalar(%arg0: f32, %arg1: !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 1>, %arg2: index) {
    kvcache.store_quantized %arg0, %arg1[%arg2, %arg2, %arg2, %arg2] : f32, !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 1>
    return
  }
  func.func @powers_of_two(%arg0: vector<128xbf16>, %arg1: !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>, %arg2: index) {
    %quantized, %scale = kvcache.quantize %arg0 {power_of_two} : vector<128xbf16> -> vector<128xf8E4M3FN>, vector<4xf8E8M0FNU>
    kvcache.store_quantized %arg0, %arg1[%arg2, %arg2, %arg2, %arg2] {least_amax, power_of_two} : vector<128xbf16>, !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
    return
  }
  func.func @zero_points(%arg0: vector<32xbf16>, %arg1: !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>, %arg2: index) -> vector<32xbf16> {
    kvcache.store_quantized %arg0, %arg1[%arg2, %arg2, %arg2, %arg2] : vector<32xbf16>, !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>
    %0 = kvcache.load %arg1[%arg2, %arg2, %arg2, %arg2] : !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16> -> vector<32xbf16>
    %1 = kvcache.load_quantized %arg1[%arg2, %arg2, %arg2, %arg2] : !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16> -> vector<32xi4>
    kvcache.store %1, %arg1[%arg2, %arg2, %arg2, %arg2] : vector<32xi4>, !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>
    %2 = kvcache.load_scale %arg1[%arg2, %arg2, %arg2, %arg2] {zero_point} : !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16> -> vector<4xf16>
    kvcache.store_scale %2, %arg1[%arg2, %arg2, %arg2, %arg2] {zero_point} : vector<4xf16>, !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>
    return %0 : vector<32xbf16>
  }
  func.func @group_of_tokens(%arg0: vector<32x4xbf16>, %arg1: !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 1, zero_point = f16, token_granularity = 32>, %arg2: index) -> memref<?x2x8x256xf16, strided<[?, 2048, 256, 1], offset: ?>> {
    kvcache.store_quantized %arg0, %arg1[%arg2, %arg2, %arg2, %arg2] page %arg2 scale_page %arg2 : vector<32x4xbf16>, !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 1, zero_point = f16, token_granularity = 32>
    %0 = kvcache.scales_base %arg1 : !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 1, zero_point = f16, token_granularity = 32>
    return %0 : memref<?x2x8x256xf16, strided<[?, 2048, 256, 1], offset: ?>>
  }
}


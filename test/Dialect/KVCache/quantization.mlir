// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#ragged = #kvcache.params<num_heads = 8, head_size = 80>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!int8 = !kvcache.paged<i8, #kv, page_size = 64, scale = bf16, granularity = 128>
!nvfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!ragged = !kvcache.paged<f8E5M2, #ragged, page_size = 64, scale = f16, granularity = 32>

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @quantize(
// CHECK-SAME:    %[[V:[^:]*]]: vector<128xbf16>, %[[W:[^:]*]]: vector<2xf32>, %[[X:[^:]*]]: f16, %[[S:[^:]*]]: f32)
// CHECK:         %{{.*}}, %{{.*}} = kvcache.quantize %[[V]] : vector<128xbf16> -> vector<128xf8E4M3FN>, f32
// CHECK:         %{{.*}}, %{{.*}} = kvcache.quantize %[[V]] : vector<128xbf16> -> vector<128xf8E5M2>, vector<1xbf16>
// CHECK:         %{{.*}}, %{{.*}} = kvcache.quantize %[[V]] : vector<128xbf16> -> vector<128xi8>, vector<4xf16>
// CHECK:         %{{.*}}, %{{.*}} = kvcache.quantize %[[V]] : vector<128xbf16> -> vector<128xf4E2M1FN>, vector<4xf8E8M0FNU>
// CHECK:         %{{.*}}, %{{.*}} = kvcache.quantize %[[V]] tensor_scale %[[S]] : vector<128xbf16> -> vector<128xf4E2M1FN>, vector<8xf8E4M3FN>
// CHECK:         %{{.*}}, %{{.*}} = kvcache.quantize %[[W]] tensor_scale %[[S]] {lanes = 8 : i64} : vector<2xf32> -> vector<2xf4E2M1FN>, f8E4M3FN
// CHECK:         %{{.*}}, %{{.*}} = kvcache.quantize %[[X]] {lanes = 32 : i64, note = "kept"} : f16 -> i8, f32
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "quantize"
// GENERIC:         "kvcache.quantize"(%{{[^,)]*}}) : (vector<128xbf16>) -> (vector<128xf8E4M3FN>, f32)
// GENERIC:         "kvcache.quantize"(%{{[^,)]*}}, %{{[^,)]*}}) : (vector<128xbf16>, f32) -> (vector<128xf4E2M1FN>, vector<8xf8E4M3FN>)
// GENERIC:         "kvcache.quantize"(%{{[^,)]*}}, %{{[^,)]*}}) <{lanes = 8 : i64}>
func.func @quantize(%v: vector<128xbf16>, %w: vector<2xf32>, %x: f16, %s: f32) {
  %0:2 = kvcache.quantize %v : vector<128xbf16> -> vector<128xf8E4M3FN>, f32
  %1:2 = kvcache.quantize %v : vector<128xbf16> -> vector<128xf8E5M2>, vector<1xbf16>
  %2:2 = kvcache.quantize %v : vector<128xbf16> -> vector<128xi8>, vector<4xf16>
  %3:2 = kvcache.quantize %v : vector<128xbf16> -> vector<128xf4E2M1FN>, vector<4xf8E8M0FNU>
  %4:2 = kvcache.quantize %v tensor_scale %s : vector<128xbf16> -> vector<128xf4E2M1FN>, vector<8xf8E4M3FN>
  %5:2 = kvcache.quantize %w tensor_scale %s {lanes = 8} : vector<2xf32> -> vector<2xf4E2M1FN>, f8E4M3FN
  %6:2 = kvcache.quantize %x {lanes = 32, note = "kept"} : f16 -> i8, f32
  return
}

// CHECK-LABEL: func.func @quantize_with_zero_points(
// CHECK-SAME:    %[[V:[^:]*]]: vector<128xbf16>, %[[W:[^:]*]]: vector<8xf32>)
// CHECK:         %{{.*}}, %{{.*}}, %{{.*}} = kvcache.quantize %[[V]] : vector<128xbf16> -> vector<128xi4>, f32, f32
// CHECK:         %{{.*}}, %{{.*}}, %{{.*}} = kvcache.quantize %[[V]] : vector<128xbf16> -> vector<128xi4>, vector<4xf16>, vector<4xf16>
// CHECK:         %{{.*}}, %{{.*}}, %{{.*}} = kvcache.quantize %[[W]] {lanes = 4 : i64} : vector<8xf32> -> vector<8xi4>, bf16, bf16
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "quantize_with_zero_points"
// GENERIC:         "kvcache.quantize"(%{{[^,)]*}}) : (vector<128xbf16>) -> (vector<128xi4>, f32, f32)
func.func @quantize_with_zero_points(%v: vector<128xbf16>, %w: vector<8xf32>) {
  %0:3 = kvcache.quantize %v : vector<128xbf16> -> vector<128xi4>, f32, f32
  %1:3 = kvcache.quantize %v : vector<128xbf16> -> vector<128xi4>, vector<4xf16>, vector<4xf16>
  %2:3 = kvcache.quantize %w {lanes = 4} : vector<8xf32> -> vector<8xi4>, bf16, bf16
  return
}

// CHECK-LABEL: func.func @dequantize(
// CHECK-SAME:    %[[FP8:[^:]*]]: vector<16xf8E4M3FN>, %[[FP4:[^:]*]]: vector<16xf4E2M1FN>, %[[INT8:[^:]*]]: i8, %[[F32:[^:]*]]: f32, %[[BF16:[^:]*]]: vector<4xbf16>, %[[E8M0:[^:]*]]: f8E8M0FNU, %[[E4M3:[^:]*]]: f8E4M3FN)
// CHECK:         kvcache.dequantize %[[FP8]], %[[F32]] : vector<16xf8E4M3FN>, f32 -> vector<16xbf16>
// CHECK:         kvcache.dequantize %[[FP8]], %[[BF16]] : vector<16xf8E4M3FN>, vector<4xbf16> -> vector<16xf64>
// CHECK:         kvcache.dequantize %[[FP4]], %[[E8M0]] : vector<16xf4E2M1FN>, f8E8M0FNU -> vector<16xf16>
// CHECK:         kvcache.dequantize %[[FP4]], %[[E4M3]] tensor_scale %[[F32]] : vector<16xf4E2M1FN>, f8E4M3FN -> vector<16xf32>
// CHECK:         kvcache.dequantize %[[INT8]], %[[F32]] {note = "kept"} : i8, f32 -> f32
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "dequantize"
// GENERIC:         "kvcache.dequantize"(%{{[^,)]*}}, %{{[^,)]*}}) : (vector<16xf8E4M3FN>, f32) -> vector<16xbf16>
// GENERIC:         "kvcache.dequantize"(%{{[^,)]*}}, %{{[^,)]*}}, %{{[^,)]*}}) : (vector<16xf4E2M1FN>, f8E4M3FN, f32) -> vector<16xf32>
func.func @dequantize(%fp8: vector<16xf8E4M3FN>, %fp4: vector<16xf4E2M1FN>, %int8: i8, %f32: f32,
                      %bf16: vector<4xbf16>, %e8m0: f8E8M0FNU, %e4m3: f8E4M3FN) {
  %0 = kvcache.dequantize %fp8, %f32 : vector<16xf8E4M3FN>, f32 -> vector<16xbf16>
  %1 = kvcache.dequantize %fp8, %bf16 : vector<16xf8E4M3FN>, vector<4xbf16> -> vector<16xf64>
  %2 = kvcache.dequantize %fp4, %e8m0 : vector<16xf4E2M1FN>, f8E8M0FNU -> vector<16xf16>
  %3 = kvcache.dequantize %fp4, %e4m3 tensor_scale %f32 : vector<16xf4E2M1FN>, f8E4M3FN -> vector<16xf32>
  %4 = kvcache.dequantize %int8, %f32 {note = "kept"} : i8, f32 -> f32
  return
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @load_dequantizes(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[N:[^:]*]]: !kvcache.paged<{{.*}}>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index, %[[SCALE_PAGE:[^:]*]]: index, %[[S:[^:]*]]: f32)
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : [[FP8:!kvcache.paged<f8E4M3FN, .*, page_size = 64, scale = f32, granularity = 32>]] -> bf16
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] : [[FP8]] -> vector<16xf16>
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] scale_page %[[SCALE_PAGE]] : [[FP8]] -> vector<64xf64>
// CHECK:         kvcache.load %[[N]][%[[B]], %[[H]], %[[T]], %[[D]]] tensor_scale %[[S]] : [[NVFP4:!kvcache.paged<f4E2M1FN, .*>]] -> vector<2xf32>
// CHECK:         kvcache.load %[[N]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] scale_page %[[SCALE_PAGE]] tensor_scale %[[S]] {note = "kept"} : [[NVFP4]] -> vector<128xf32>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "load_dequantizes"
// GENERIC:         "kvcache.load"({{.*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>}>
// GENERIC:         "kvcache.load"({{.*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 1>}>
// GENERIC:         "kvcache.load"({{.*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>}>
func.func @load_dequantizes(%k: !fp8, %n: !nvfp4, %b: index, %h: index, %t: index, %d: index, %page: index,
                            %scale_page: index, %s: f32) {
  %0 = kvcache.load %k[%b, %h, %t, %d] : !fp8 -> bf16
  %1 = kvcache.load %k[%b, %h, %t, %d] page %page : !fp8 -> vector<16xf16>
  %2 = kvcache.load %k[%b, %h, %t, %d] scale_page %scale_page : !fp8 -> vector<64xf64>
  %3 = kvcache.load %n[%b, %h, %t, %d] tensor_scale %s : !nvfp4 -> vector<2xf32>
  %4 = kvcache.load %n[%b, %h, %t, %d] page %page scale_page %scale_page tensor_scale %s {note = "kept"}
         : !nvfp4 -> vector<128xf32>
  return
}

// CHECK-LABEL: func.func @load_quantized(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[I:[^:]*]]: !kvcache.paged<{{.*}}>, %[[N:[^:]*]]: !kvcache.paged<{{.*}}>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.load_quantized %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : !kvcache.paged<f8E4M3FN, {{.*}}> -> vector<16xf8E4M3FN>
// CHECK:         kvcache.load_quantized %[[I]][%[[B]], %[[H]], %[[T]], %[[D]]] : !kvcache.paged<i8, {{.*}}> -> i8
// CHECK:         kvcache.load_quantized %[[N]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] {note = "kept"} : !kvcache.paged<f4E2M1FN, {{.*}}> -> vector<128xf4E2M1FN>
func.func @load_quantized(%k: !fp8, %i: !int8, %n: !nvfp4, %b: index, %h: index, %t: index, %d: index,
                          %page: index) {
  %0 = kvcache.load_quantized %k[%b, %h, %t, %d] : !fp8 -> vector<16xf8E4M3FN>
  %1 = kvcache.load_quantized %i[%b, %h, %t, %d] : !int8 -> i8
  %2 = kvcache.load_quantized %n[%b, %h, %t, %d] page %page {note = "kept"} : !nvfp4 -> vector<128xf4E2M1FN>
  return
}

// Whole groups, or a whole head, whose last group may be shorter.

// CHECK-LABEL: func.func @store_quantized(
// CHECK-SAME:    %[[V:[^:]*]]: vector<128xbf16>, %[[G:[^:]*]]: vector<32xf32>, %[[R:[^:]*]]: vector<80xf16>, %[[K:[^:]*]]: !kvcache.paged<{{.*}}>, %[[N:[^:]*]]: !kvcache.paged<{{.*}}>, %[[RAGGED:[^:]*]]: !kvcache.paged<{{.*}}>, %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index, %[[SCALE_PAGE:[^:]*]]: index, %[[S:[^:]*]]: f32)
// CHECK:         kvcache.store_quantized %[[V]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : vector<128xbf16>, [[FP8:!kvcache.paged<f8E4M3FN, .*>]]
// CHECK:         kvcache.store_quantized %[[G]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] : vector<32xf32>, [[FP8]]
// CHECK:         kvcache.store_quantized %[[G]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] scale_page %[[SCALE_PAGE]] : vector<32xf32>, [[FP8]]
// CHECK:         kvcache.store_quantized %[[R]], %[[RAGGED]][%[[B]], %[[H]], %[[T]], %[[D]]] : vector<80xf16>, !kvcache.paged<f8E5M2, {{.*}}>
// CHECK:         kvcache.store_quantized %[[V]], %[[N]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] scale_page %[[SCALE_PAGE]] tensor_scale %[[S]] {note = "kept"} : vector<128xbf16>, !kvcache.paged<f4E2M1FN, {{.*}}>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "store_quantized"
// GENERIC:         "kvcache.store_quantized"({{.*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0>}>
// GENERIC:         "kvcache.store_quantized"({{.*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0>}>
// GENERIC:         "kvcache.store_quantized"({{.*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1, 0>}>
// GENERIC:         "kvcache.store_quantized"({{.*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1>}>
func.func @store_quantized(%v: vector<128xbf16>, %g: vector<32xf32>, %r: vector<80xf16>, %k: !fp8, %n: !nvfp4,
                           %ragged: !ragged, %b: index, %h: index, %t: index, %d: index, %page: index,
                           %scale_page: index, %s: f32) {
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<128xbf16>, !fp8
  kvcache.store_quantized %g, %k[%b, %h, %t, %d] page %page : vector<32xf32>, !fp8
  kvcache.store_quantized %g, %k[%b, %h, %t, %d] scale_page %scale_page : vector<32xf32>, !fp8
  kvcache.store_quantized %r, %ragged[%b, %h, %t, %d] : vector<80xf16>, !ragged
  kvcache.store_quantized %v, %n[%b, %h, %t, %d] page %page scale_page %scale_page tensor_scale %s {note = "kept"}
      : vector<128xbf16>, !nvfp4
  return
}

// A group of one element takes a scalar.

// CHECK-LABEL: func.func @store_of_a_scalar(
// CHECK:         kvcache.store_quantized %{{.*}}, %{{.*}}[{{.*}}] : f32, !kvcache.paged<i8, {{.*}}, scale = f32, granularity = 1>
func.func @store_of_a_scalar(%x: f32, %k: !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 1>,
                             %i: index) {
  kvcache.store_quantized %x, %k[%i, %i, %i, %i]
      : f32, !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 1>
  return
}

// CHECK-LABEL: func.func @powers_of_two(
// CHECK:         kvcache.quantize %{{.*}} {power_of_two} : vector<128xbf16> -> vector<128xf8E4M3FN>, vector<4xf8E8M0FNU>
// CHECK:         kvcache.store_quantized %{{.*}}, %{{.*}}[{{.*}}] {least_amax, power_of_two} : vector<128xbf16>, [[FP8]]
func.func @powers_of_two(%v: vector<128xbf16>, %k: !fp8, %i: index) {
  %w, %s = kvcache.quantize %v {power_of_two} : vector<128xbf16> -> vector<128xf8E4M3FN>, vector<4xf8E8M0FNU>
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] {least_amax, power_of_two} : vector<128xbf16>, !fp8
  return
}

!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

// CHECK-LABEL: func.func @zero_points(
// CHECK:         kvcache.store_quantized %{{.*}}, %{{.*}}[{{.*}}] : vector<32xbf16>, [[INT4:!kvcache.paged<i4, .*, scale = f16, granularity = 32, zero_point = f16>]]
// CHECK:         kvcache.load %{{.*}}[{{.*}}] : [[INT4]] -> vector<32xbf16>
// CHECK:         kvcache.load_quantized %{{.*}}[{{.*}}] : [[INT4]] -> vector<32xi4>
// CHECK:         kvcache.store %{{.*}}, %{{.*}}[{{.*}}] : vector<32xi4>, [[INT4]]
// CHECK:         %[[Z:.*]] = kvcache.load_scale %{{.*}}[{{.*}}] {zero_point} : [[INT4]] -> vector<4xf16>
// CHECK:         kvcache.store_scale %[[Z]], %{{.*}}[{{.*}}] {zero_point} : vector<4xf16>, [[INT4]]
func.func @zero_points(%v: vector<32xbf16>, %k: !int4, %i: index) -> vector<32xbf16> {
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] : vector<32xbf16>, !int4
  %x = kvcache.load %k[%i, %i, %i, %i] : !int4 -> vector<32xbf16>
  %q = kvcache.load_quantized %k[%i, %i, %i, %i] : !int4 -> vector<32xi4>
  kvcache.store %q, %k[%i, %i, %i, %i] : vector<32xi4>, !int4
  %z = kvcache.load_scale %k[%i, %i, %i, %i] {zero_point} : !int4 -> vector<4xf16>
  kvcache.store_scale %z, %k[%i, %i, %i, %i] {zero_point} : vector<4xf16>, !int4
  return %x : vector<32xbf16>
}

// CHECK-LABEL: func.func @group_of_tokens(
// CHECK:         kvcache.store_quantized %{{.*}}, %{{.*}}[{{.*}}] page %{{.*}} scale_page %{{.*}} : vector<32x4xbf16>, [[KIVI:!kvcache.paged<i4, .*, scale = f16, granularity = 1, zero_point = f16, token_granularity = 32>]]
// CHECK:         kvcache.scales_base %{{.*}} : [[KIVI]]
func.func @group_of_tokens(%v: vector<32x4xbf16>, %k: !kivi, %i: index)
    -> memref<?x2x8x256xf16, strided<[?, 2048, 256, 1], offset: ?>> {
  kvcache.store_quantized %v, %k[%i, %i, %i, %i] page %i scale_page %i : vector<32x4xbf16>, !kivi
  %s = kvcache.scales_base %k : !kivi
  return %s : memref<?x2x8x256xf16, strided<[?, 2048, 256, 1], offset: ?>>
}

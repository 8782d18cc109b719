// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

// Alignment: the largest power of two that divides the bytes of the access, of
// a head and of a row, and is at most that of the blocks, 16.

!bf16_heads_of_128 = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_bf16_heads_of_128(
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<6xbf16>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<6xbf16>
func.func @alignment_of_bf16_heads_of_128(%k: !bf16_heads_of_128, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<1xbf16>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xbf16>, !bf16_heads_of_128
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<2xbf16>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xbf16>, !bf16_heads_of_128
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<4xbf16>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xbf16>, !bf16_heads_of_128
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<8xbf16>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xbf16>, !bf16_heads_of_128
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<16xbf16>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xbf16>, !bf16_heads_of_128
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<32xbf16>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xbf16>, !bf16_heads_of_128
  %v3 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<3xbf16>
  kvcache.store %v3, %k[%b, %b, %b, %d] : vector<3xbf16>, !bf16_heads_of_128
  %v6 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_128 -> vector<6xbf16>
  kvcache.store %v6, %k[%b, %b, %b, %d] : vector<6xbf16>, !bf16_heads_of_128
  return
}

#f32_heads_of_128 = #kvcache.params<num_heads = 8, head_size = 128>
!f32_heads_of_128 = !kvcache.paged<f32, #f32_heads_of_128, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f32_heads_of_128(
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf32>
func.func @alignment_of_f32_heads_of_128(%k: !f32_heads_of_128, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<1xf32>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf32>, !f32_heads_of_128
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<2xf32>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf32>, !f32_heads_of_128
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<4xf32>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf32>, !f32_heads_of_128
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<8xf32>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf32>, !f32_heads_of_128
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<16xf32>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf32>, !f32_heads_of_128
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_128 -> vector<32xf32>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xf32>, !f32_heads_of_128
  return
}

#f8_heads_of_128 = #kvcache.params<num_heads = 8, head_size = 128>
!f8_heads_of_128 = !kvcache.paged<f8E4M3FN, #f8_heads_of_128, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f8_heads_of_128(
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<4xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<4xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf8E4M3FN>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xf8E4M3FN>
func.func @alignment_of_f8_heads_of_128(%k: !f8_heads_of_128, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<1xf8E4M3FN>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf8E4M3FN>, !f8_heads_of_128
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<2xf8E4M3FN>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf8E4M3FN>, !f8_heads_of_128
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<4xf8E4M3FN>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf8E4M3FN>, !f8_heads_of_128
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<8xf8E4M3FN>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf8E4M3FN>, !f8_heads_of_128
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<16xf8E4M3FN>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf8E4M3FN>, !f8_heads_of_128
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_128 -> vector<32xf8E4M3FN>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xf8E4M3FN>, !f8_heads_of_128
  return
}

#bf16_heads_of_80 = #kvcache.params<num_heads = 8, head_size = 80>
!bf16_heads_of_80 = !kvcache.paged<bf16, #bf16_heads_of_80, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_bf16_heads_of_80(
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<80xbf16>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<80xbf16>
func.func @alignment_of_bf16_heads_of_80(%k: !bf16_heads_of_80, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<1xbf16>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xbf16>, !bf16_heads_of_80
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<2xbf16>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xbf16>, !bf16_heads_of_80
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<4xbf16>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xbf16>, !bf16_heads_of_80
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<8xbf16>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xbf16>, !bf16_heads_of_80
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<16xbf16>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xbf16>, !bf16_heads_of_80
  %v32 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<32xbf16>
  kvcache.store %v32, %k[%b, %b, %b, %d] : vector<32xbf16>, !bf16_heads_of_80
  %v80 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_80 -> vector<80xbf16>
  kvcache.store %v80, %k[%b, %b, %b, %d] : vector<80xbf16>, !bf16_heads_of_80
  return
}

#bf16_heads_of_3 = #kvcache.params<num_heads = 8, head_size = 3>
!bf16_heads_of_3 = !kvcache.paged<bf16, #bf16_heads_of_3, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_bf16_heads_of_3(
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<1xbf16>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<2xbf16>
// CHECK:         vector.load {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
// CHECK:         vector.store {{.*}} {alignment = 2 : i64} : {{.*}}, vector<3xbf16>
func.func @alignment_of_bf16_heads_of_3(%k: !bf16_heads_of_3, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_3 -> vector<1xbf16>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xbf16>, !bf16_heads_of_3
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_3 -> vector<2xbf16>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xbf16>, !bf16_heads_of_3
  %v3 = kvcache.load %k[%b, %b, %b, %d] : !bf16_heads_of_3 -> vector<3xbf16>
  kvcache.store %v3, %k[%b, %b, %b, %d] : vector<3xbf16>, !bf16_heads_of_3
  return
}

#f8_heads_of_3 = #kvcache.params<num_heads = 5, head_size = 3>
!f8_heads_of_3 = !kvcache.paged<f8E5M2, #f8_heads_of_3, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f8_heads_of_3(
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E5M2>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<1xf8E5M2>
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<2xf8E5M2>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<2xf8E5M2>
// CHECK:         vector.load {{.*}} {alignment = 1 : i64} : {{.*}}, vector<3xf8E5M2>
// CHECK:         vector.store {{.*}} {alignment = 1 : i64} : {{.*}}, vector<3xf8E5M2>
func.func @alignment_of_f8_heads_of_3(%k: !f8_heads_of_3, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_3 -> vector<1xf8E5M2>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf8E5M2>, !f8_heads_of_3
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_3 -> vector<2xf8E5M2>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf8E5M2>, !f8_heads_of_3
  %v3 = kvcache.load %k[%b, %b, %b, %d] : !f8_heads_of_3 -> vector<3xf8E5M2>
  kvcache.store %v3, %k[%b, %b, %b, %d] : vector<3xf8E5M2>, !f8_heads_of_3
  return
}

#f32_heads_of_20 = #kvcache.params<num_heads = 1, head_size = 20>
!f32_heads_of_20 = !kvcache.paged<f32, #f32_heads_of_20, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f32_heads_of_20(
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : {{.*}}, vector<1xf32>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<20xf32>
// CHECK:         vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<20xf32>
func.func @alignment_of_f32_heads_of_20(%k: !f32_heads_of_20, %b: index, %d: index) {
  %v1 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<1xf32>
  kvcache.store %v1, %k[%b, %b, %b, %d] : vector<1xf32>, !f32_heads_of_20
  %v2 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<2xf32>
  kvcache.store %v2, %k[%b, %b, %b, %d] : vector<2xf32>, !f32_heads_of_20
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<4xf32>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf32>, !f32_heads_of_20
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<8xf32>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf32>, !f32_heads_of_20
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<16xf32>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf32>, !f32_heads_of_20
  %v20 = kvcache.load %k[%b, %b, %b, %d] : !f32_heads_of_20 -> vector<20xf32>
  kvcache.store %v20, %k[%b, %b, %b, %d] : vector<20xf32>, !f32_heads_of_20
  return
}

#f16_heads_of_36 = #kvcache.params<num_heads = 3, head_size = 36>
!f16_heads_of_36 = !kvcache.paged<f16, #f16_heads_of_36, page_size = 16>

// CHECK-LABEL: func.func @alignment_of_f16_heads_of_36(
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<8xf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<16xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<16xf16>
// CHECK:         vector.load {{.*}} {alignment = 8 : i64} : {{.*}}, vector<36xf16>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<36xf16>
func.func @alignment_of_f16_heads_of_36(%k: !f16_heads_of_36, %b: index, %d: index) {
  %v4 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<4xf16>
  kvcache.store %v4, %k[%b, %b, %b, %d] : vector<4xf16>, !f16_heads_of_36
  %v8 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<8xf16>
  kvcache.store %v8, %k[%b, %b, %b, %d] : vector<8xf16>, !f16_heads_of_36
  %v16 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<16xf16>
  kvcache.store %v16, %k[%b, %b, %b, %d] : vector<16xf16>, !f16_heads_of_36
  %v36 = kvcache.load %k[%b, %b, %b, %d] : !f16_heads_of_36 -> vector<36xf16>
  kvcache.store %v36, %k[%b, %b, %b, %d] : vector<36xf16>, !f16_heads_of_36
  return
}

// -----

// In GPU code for a chip with 32-byte accesses pages are aligned to 32, where
// their distances are known to be.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!narrow = !kvcache.paged<bf16, <num_heads = 8, head_size = 24>, page_size = 64>
!blocks = memref<?x2x?x64x8x128xbf16>
!odd_offset = memref<?x2x?x64x8x128xbf16, strided<[262144, 131072, 65536, 1024, 128, 1], offset: 8>>
!odd_layers = memref<?x2x?x64x8x128xbf16, strided<[262160, 131080, 65544, 1024, 128, 1]>>
!one_layer = memref<?x2x1x64x8x128xbf16, strided<[131072, 65536, 8, 1024, 128, 1]>>
!open = memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1]>>
!lengths = memref<?xi32>
!lut = memref<?x?xi32>

// CHECK-LABEL: gpu.func @wide_accesses(
// CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.store {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
// CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<32xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
gpu.module @sm_100a [#nvvm.target<chip = "sm_100a">] {
  gpu.func @wide_accesses(%blocks: !blocks, %lengths: !lengths, %lut: !lut,
                          %n: !narrow, %b: index, %out: memref<32xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !blocks, !lengths, !lut -> !collection
    %k = kvcache.paged_view value %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    kvcache.store %v, %k[%b, %b, %b, %b] : vector<16xbf16>, !cache
    %w = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<32xbf16>
    %x = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<8xbf16>
    %y = kvcache.load %n[%b, %b, %b, %b] : !narrow -> vector<16xbf16>
    vector.store %w, %out[%b] : memref<32xbf16>, vector<32xbf16>
    vector.store %x, %out[%b] : memref<32xbf16>, vector<8xbf16>
    vector.store %y, %out[%b] : memref<32xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @odd_offset(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @odd_offset(%blocks: !odd_offset, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !odd_offset, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @odd_layers(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @odd_layers(%blocks: !odd_layers, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !odd_layers, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @no_second_layer(
  // CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @no_second_layer(%blocks: !one_layer, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !one_layer, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @open(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @open(%blocks: !open, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !open, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @cast(
  // CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @cast(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %b: index, %out: memref<16xbf16>) kernel {
    %cast = memref.cast %blocks : !blocks to !open
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %cast, %lengths, %lut, %max, %max : !open, !lengths, !lut -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @of_another_function(
  // CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
  gpu.func @of_another_function(%k: !cache, %b: index, %out: memref<16xbf16>) kernel {
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }
}

// CHECK-LABEL: gpu.func @narrow_chip(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
gpu.module @sm_90a [#nvvm.target<chip = "sm_90a">] {
  gpu.func @narrow_chip(%k: !cache, %b: index, %out: memref<16xbf16>) kernel {
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }
}

// With several targets the module's code must run on all of them.

// CHECK-LABEL: gpu.func @several_chips(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<16xbf16>
gpu.module @several [#nvvm.target<chip = "sm_100a">, #nvvm.target<chip = "sm_90a">] {
  gpu.func @several_chips(%k: !cache, %b: index, %out: memref<16xbf16>) kernel {
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<16xbf16>
    vector.store %v, %out[%b] : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }
}

// RUN: kvcache-opt %s --kvcache-floats-as-bits | FileCheck %s --check-prefixes=CHECK,FP8
// RUN: kvcache-opt %s --kvcache-floats-as-bits=bf16 | FileCheck %s --check-prefixes=CHECK,BF16

// Narrow floats become integers of their width, wherever a type is written.

// CHECK:         memref.global "private" constant @table : memref<4xi8> = dense<[56, 64, 68, -128]>
memref.global "private" constant @table : memref<4xf8E4M3FN> = dense<[1.0, 2.0, 3.0, -0.0]>

// FP8:           func.func private @declaration(memref<?xi8>, vector<8xi8>, tuple<i4, i8>, bf16) -> i8
// BF16:          func.func private @declaration(memref<?xi8>, vector<8xi8>, tuple<i4, i8>, i16) -> i8
func.func private @declaration(memref<?xf8E4M3FN>, vector<8xf8E5M2>, tuple<f4E2M1FN, f8E8M0FNU>, bf16) -> f8E8M0FNU

// CHECK-LABEL: func.func @moves(
// CHECK-SAME:      %[[IN:.*]]: memref<?x16xi8, strided<[?, 1], offset: ?>>, %[[OUT:.*]]: memref<?x16xi8>, %[[I:.*]]: index, %[[C:.*]]: i1)
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0> : vector<16xi8>
// CHECK:         %[[X:.*]] = vector.load %[[IN]][%[[I]], %[[I]]] {alignment = 16 : i64} : memref<?x16xi8, strided<[?, 1], offset: ?>>, vector<16xi8>
// CHECK:         %[[Y:.*]] = scf.if %[[C]] -> (vector<16xi8>)
// CHECK:           scf.yield %[[X]] : vector<16xi8>
// CHECK:           scf.yield %[[ZERO]] : vector<16xi8>
// CHECK:         vector.store %[[Y]], %[[OUT]]
func.func @moves(%in: memref<?x16xf8E4M3FN, strided<[?, 1], offset: ?>>, %out: memref<?x16xf8E4M3FN>, %i: index,
                 %c: i1) {
  %zero = arith.constant dense<0.0> : vector<16xf8E4M3FN>
  %x = vector.load %in[%i, %i] {alignment = 16 : i64}
      : memref<?x16xf8E4M3FN, strided<[?, 1], offset: ?>>, vector<16xf8E4M3FN>
  %y = scf.if %c -> vector<16xf8E4M3FN> {
    scf.yield %x : vector<16xf8E4M3FN>
  } else {
    scf.yield %zero : vector<16xf8E4M3FN>
  }
  vector.store %y, %out[%i, %i] : memref<?x16xf8E4M3FN>, vector<16xf8E4M3FN>
  return
}

// Constants keep their bits: NaNs, infinities, and negative zero.

// CHECK-LABEL: func.func @constants(
// CHECK-DAG:     arith.constant 127 : i8
// CHECK-DAG:     arith.constant 124 : i8
// CHECK-DAG:     arith.constant 1 : i4
// FP8-DAG:       arith.constant 0xFFC1 : bf16
// FP8-DAG:       arith.constant dense<[1.500000e+00, -0.000000e+00]> : vector<2xbf16>
// BF16-DAG:      arith.constant -63 : i16
// BF16-DAG:      arith.constant dense<[16320, -32768]> : vector<2xi16>
func.func @constants() -> (f8E4M3FN, f8E5M2, f4E2M1FN, bf16, vector<2xbf16>) {
  %nan = arith.constant 0x7F : f8E4M3FN
  %infinity = arith.constant 0x7C : f8E5M2
  %half = arith.constant 0.5 : f4E2M1FN
  %bf16_nan = arith.constant 0xFFC1 : bf16
  %bf16_pair = arith.constant dense<[1.5, -0.0]> : vector<2xbf16>
  return %nan, %infinity, %half, %bf16_nan, %bf16_pair : f8E4M3FN, f8E5M2, f4E2M1FN, bf16, vector<2xbf16>
}

// Wide floats are left alone.

// CHECK-LABEL: func.func @wide_floats(
// CHECK-SAME:      %{{.*}}: f16, %{{.*}}: f32, %{{.*}}: memref<?xf64>)
func.func @wide_floats(%x: f16, %y: f32, %z: memref<?xf64>) {
  return
}

// CHECK-LABEL: func.func @six_bits(
// CHECK-SAME:      %{{.*}}: i6, %{{.*}}: vector<4xi6>)
func.func @six_bits(%x: f6E2M3FN, %y: vector<4xf6E3M2FN>) {
  return
}

// The conversions of NVVM keep the name of their format.

// CHECK-LABEL: func.func @format_of_a_conversion(
// CHECK:         nvvm.convert.f32x2.to.f4x2 %{{.*}}, %{{.*}} : i8(f4E2M1FN)
func.func @format_of_a_conversion(%x: f32, %y: f32) -> i8 {
  %0 = nvvm.convert.f32x2.to.f4x2 %x, %y : i8 (f4E2M1FN)
  return %0 : i8
}

// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:      %{{.*}}: memref<?xi8>)
// CHECK-SAME:      workgroup(%{{.*}} : memref<16xi8, #gpu.address_space<workgroup>>)
// CHECK-SAME:      attributes {kvcache.parameters = [{name = "x", type = memref<?xi8>}]}
gpu.module @kernels {
  gpu.func @kernel(%x: memref<?xf8E4M3FN>) workgroup(%tile: memref<16xf8E4M3FN, #gpu.address_space<workgroup>>)
      kernel attributes {kvcache.parameters = [{name = "x", type = memref<?xf8E4M3FN>}]} {
    gpu.return
  }
}

// Instructions of vectors and tiles keep their types.
// BF16-LABEL: func.func @instructions(
// BF16-SAME:      %[[X:.*]]: vector<16xf32>, %[[A:.*]]: vector<32xi16>, %[[TILE:.*]]: !amx.tile<16x32xbf16>) -> vector<16xi16>
// BF16:         %[[FLOATS:.*]] = vector.bitcast %[[A]] : vector<32xi16> to vector<32xbf16>
// BF16:         %[[SUM:.*]] = x86vector.avx512.dot %[[X]], %[[FLOATS]], %{{.*}} : vector<32xbf16> -> vector<16xf32>
// BF16:         %[[NARROW:.*]] = x86vector.avx512.cvt.packed.f32_to_bf16 %[[SUM]] : vector<16xf32> -> vector<16xbf16>
// BF16:         %[[BITS:.*]] = vector.bitcast %[[NARROW]] : vector<16xbf16> to vector<16xi16>
// BF16:         return %[[BITS]]
func.func @instructions(%x: vector<16xf32>, %a: vector<32xbf16>, %tile: !amx.tile<16x32xbf16>) -> vector<16xbf16> {
  %sum = x86vector.avx512.dot %x, %a, %a : vector<32xbf16> -> vector<16xf32>
  %narrow = x86vector.avx512.cvt.packed.f32_to_bf16 %sum : vector<16xf32> -> vector<16xbf16>
  return %narrow : vector<16xbf16>
}

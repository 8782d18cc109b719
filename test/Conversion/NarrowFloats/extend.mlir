// RUN: kvcache-opt %s --kvcache-narrow-floats --split-input-file | FileCheck %s

// The encoding is moved to its place in an f32 and multiplied by 2^120. What is
// larger than 448 gets an exponent of ones.

// CHECK-LABEL: func.func @e4m3_to_f32(
// CHECK-SAME:      %[[X:.*]]: f8E4M3FN) -> f32
// CHECK-DAG:     %[[SHIFT:.*]] = arith.constant 20 : i32
// CHECK-DAG:     %[[MASK:.*]] = arith.constant -2014314496 : i32
// CHECK-DAG:     %[[REBIAS:.*]] = arith.constant 1.329228E+36 : f32
// CHECK-DAG:     %[[ONES:.*]] = arith.constant 2139095040 : i32
// CHECK-DAG:     %[[POSITIVE:.*]] = arith.constant 2147483647 : i32
// CHECK-DAG:     %[[LARGEST:.*]] = arith.constant 4.480000e+02 : f32
// CHECK:         %[[ENCODED:.*]] = arith.bitcast %[[X]] : f8E4M3FN to i8
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[ENCODED]] : i8 to i32
// CHECK:         %[[SHIFTED:.*]] = arith.shli %[[WIDE]], %[[SHIFT]] : i32
// CHECK:         %[[MASKED:.*]] = arith.andi %[[SHIFTED]], %[[MASK]] : i32
// CHECK:         %[[SMALL:.*]] = arith.bitcast %[[MASKED]] : i32 to f32
// CHECK:         %[[NUMBER:.*]] = arith.mulf %[[SMALL]], %[[REBIAS]] : f32
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[NUMBER]] : f32 to i32
// CHECK:         %[[SPECIAL:.*]] = arith.ori %[[BITS]], %[[ONES]] : i32
// CHECK:         %[[MAGNITUDE_BITS:.*]] = arith.andi %[[BITS]], %[[POSITIVE]] : i32
// CHECK:         %[[MAGNITUDE:.*]] = arith.bitcast %[[MAGNITUDE_BITS]] : i32 to f32
// CHECK:         %[[IS_SPECIAL:.*]] = arith.cmpf ogt, %[[MAGNITUDE]], %[[LARGEST]] : f32
// CHECK:         %[[SELECTED:.*]] = arith.select %[[IS_SPECIAL]], %[[SPECIAL]], %[[BITS]] : i32
// CHECK:         %[[RESULT:.*]] = arith.bitcast %[[SELECTED]] : i32 to f32
// CHECK:         return %[[RESULT]] : f32
func.func @e4m3_to_f32(%x: f8E4M3FN) -> f32 {
  %0 = arith.extf %x : f8E4M3FN to f32
  return %0 : f32
}

// -----

// CHECK-LABEL: func.func @e5m2_to_f32(
// CHECK-DAG:     %[[SHIFT:.*]] = arith.constant 21 : i32
// CHECK-DAG:     %[[REBIAS:.*]] = arith.constant 5.19229686E+33 : f32
// CHECK-DAG:     %[[LARGEST:.*]] = arith.constant 5.734400e+04 : f32
// CHECK:         arith.shli %{{.*}}, %[[SHIFT]] : i32
// CHECK:         arith.mulf %{{.*}}, %[[REBIAS]] : f32
// CHECK:         arith.cmpf ogt, %{{.*}}, %[[LARGEST]] : f32
func.func @e5m2_to_f32(%x: f8E5M2) -> f32 {
  %0 = arith.extf %x : f8E5M2 to f32
  return %0 : f32
}

// -----

// No conversion from or to f16, which may be a call on a CPU.

// CHECK-LABEL: func.func @e4m3_to_f16(
// CHECK-NOT:     arith.extf
// CHECK-NOT:     arith.truncf
// CHECK:         %[[RESULT:.*]] = arith.bitcast %{{.*}} : i16 to f16
// CHECK:         return %[[RESULT]] : f16
func.func @e4m3_to_f16(%x: f8E4M3FN) -> f16 {
  %0 = arith.extf %x : f8E4M3FN to f16
  return %0 : f16
}

// -----

// f8E5M2 is the upper half of an f16.

// CHECK-LABEL: func.func @e5m2_to_f16(
// CHECK-SAME:      %[[X:.*]]: f8E5M2) -> f16
// CHECK:         %[[SHIFT:.*]] = arith.constant 8 : i16
// CHECK-NEXT:    %[[ENCODED:.*]] = arith.bitcast %[[X]] : f8E5M2 to i8
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extui %[[ENCODED]] : i8 to i16
// CHECK-NEXT:    %[[BITS:.*]] = arith.shli %[[WIDE]], %[[SHIFT]] : i16
// CHECK-NEXT:    %[[RESULT:.*]] = arith.bitcast %[[BITS]] : i16 to f16
// CHECK-NEXT:    return %[[RESULT]] : f16
func.func @e5m2_to_f16(%x: f8E5M2) -> f16 {
  %0 = arith.extf %x : f8E5M2 to f16
  return %0 : f16
}

// -----

// CHECK-LABEL: func.func @e4m3_to_bf16(
// CHECK:         %[[SHIFT:.*]] = arith.constant 16 : i32
// CHECK:         %[[BITS:.*]] = arith.select
// CHECK:         %[[UPPER:.*]] = arith.shrui %[[BITS]], %[[SHIFT]] : i32
// CHECK:         %[[NARROW:.*]] = arith.trunci %[[UPPER]] : i32 to i16
// CHECK:         %[[RESULT:.*]] = arith.bitcast %[[NARROW]] : i16 to bf16
// CHECK:         return %[[RESULT]] : bf16
func.func @e4m3_to_bf16(%x: f8E4M3FN) -> bf16 {
  %0 = arith.extf %x : f8E4M3FN to bf16
  return %0 : bf16
}

// -----

// CHECK-LABEL: func.func @e5m2_to_f64(
// CHECK:         %[[BITS:.*]] = arith.select
// CHECK:         %[[NUMBER:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK:         %[[RESULT:.*]] = arith.extf %[[NUMBER]] : f32 to f64
// CHECK:         return %[[RESULT]] : f64
func.func @e5m2_to_f64(%x: f8E5M2) -> f64 {
  %0 = arith.extf %x : f8E5M2 to f64
  return %0 : f64
}

// -----

// CHECK-LABEL: func.func @vector_of_any_rank(
// CHECK-SAME:      %[[X:.*]]: vector<2x[4]xf8E4M3FN>)
// CHECK:         %[[ENCODED:.*]] = arith.bitcast %[[X]] : vector<2x[4]xf8E4M3FN> to vector<2x[4]xi8>
// CHECK:         arith.extsi %[[ENCODED]] : vector<2x[4]xi8> to vector<2x[4]xi32>
// CHECK:         %[[BITS:.*]] = arith.select
// CHECK:         %[[RESULT:.*]] = arith.bitcast %[[BITS]] : vector<2x[4]xi32> to vector<2x[4]xf32>
// CHECK:         return %[[RESULT]]
func.func @vector_of_any_rank(%x: vector<2x[4]xf8E4M3FN>) -> vector<2x[4]xf32> {
  %0 = arith.extf %x : vector<2x[4]xf8E4M3FN> to vector<2x[4]xf32>
  return %0 : vector<2x[4]xf32>
}

// -----

// CHECK-LABEL: func.func @other_extensions_are_left(
// CHECK-SAME:      %[[X:.*]]: f16, %[[Y:.*]]: f8E4M3FNUZ, %[[Z:.*]]: tensor<4xf8E4M3FN>, %[[W:.*]]: f8E5M2)
// CHECK-NEXT:    arith.extf %[[X]] : f16 to f32
// CHECK-NEXT:    arith.extf %[[Y]] : f8E4M3FNUZ to f32
// CHECK-NEXT:    arith.extf %[[Z]] : tensor<4xf8E4M3FN> to tensor<4xf32>
// CHECK-NEXT:    arith.extf %[[W]] : f8E5M2 to f128
func.func @other_extensions_are_left(
    %x: f16, %y: f8E4M3FNUZ, %z: tensor<4xf8E4M3FN>, %w: f8E5M2)
    -> (f32, f32, tensor<4xf32>, f128) {
  %0 = arith.extf %x : f16 to f32
  %1 = arith.extf %y : f8E4M3FNUZ to f32
  %2 = arith.extf %z : tensor<4xf8E4M3FN> to tensor<4xf32>
  %3 = arith.extf %w : f8E5M2 to f128
  return %0, %1, %2, %3 : f32, f32, tensor<4xf32>, f128
}

// -----

// CHECK-LABEL: func.func @moves_are_left(
// CHECK-SAME:      %[[X:.*]]: vector<4xf8E5M2>)
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[X]] : vector<4xf8E5M2> to vector<4xi8>
// CHECK-NEXT:    return %[[BITS]]
func.func @moves_are_left(%x: vector<4xf8E5M2>) -> vector<4xi8> {
  %0 = arith.bitcast %x : vector<4xf8E5M2> to vector<4xi8>
  return %0 : vector<4xi8>
}

// -----

// CHECK-LABEL: gpu.func @kernel(
// CHECK-NOT:     arith.extf
// CHECK:         gpu.return
gpu.module @kernels {
  gpu.func @kernel(%x: f8E4M3FN, %to: memref<f32>) kernel {
    %0 = arith.extf %x : f8E4M3FN to f32
    memref.store %0, %to[] : memref<f32>
    gpu.return
  }
}

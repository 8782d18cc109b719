// RUN: kvcache-opt %s --kvcache-narrow-floats --split-input-file | FileCheck %s

// The magnitude is clamped to 448. Adding 2^20 times its power of two, at least
// 2^-6, leaves a count of eighths of that power in the low bits, and the exponent
// adds eight for each power from 2^-6 on: less 8 * 121, which are 56 places more
// in the sum, 1048576 + 56 / 8.

// CHECK-LABEL: func.func @f32_to_e4m3(
// CHECK-SAME:      %[[X:.*]]: f32) -> f8E4M3FN
// CHECK-DAG:     %[[POSITIVE:.*]] = arith.constant 2147483647 : i32
// CHECK-DAG:     %[[LARGEST:.*]] = arith.constant 1138753536 : i32
// CHECK-DAG:     %[[SHIFT:.*]] = arith.constant 20 : i32
// CHECK-DAG:     %[[FACTOR:.*]] = arith.constant 0x49800038 : f32
// CHECK-DAG:     %[[MIN_NORMAL:.*]] = arith.constant 1015021568 : i32
// CHECK-DAG:     %[[INFINITY:.*]] = arith.constant 2139095040 : i32
// CHECK-DAG:     %[[NAN:.*]] = arith.constant 127 : i32
// CHECK-DAG:     %[[SIGN_SHIFT:.*]] = arith.constant 24 : i32
// CHECK-DAG:     %[[SIGN_BIT:.*]] = arith.constant 128 : i32
// CHECK:         %[[ENCODED:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK:         %[[MAGNITUDE:.*]] = arith.andi %[[ENCODED]], %[[POSITIVE]] : i32
// CHECK:         %[[CLAMPED:.*]] = arith.minui %[[MAGNITUDE]], %[[LARGEST]] : i32
// CHECK:         %[[EXPONENT:.*]] = arith.andi %[[CLAMPED]], %[[INFINITY]] : i32
// CHECK:         %[[POWER:.*]] = arith.maxui %[[EXPONENT]], %[[MIN_NORMAL]] : i32
// CHECK-DAG:     %[[POWER_F32:.*]] = arith.bitcast %[[POWER]] : i32 to f32
// CHECK-DAG:     %[[NUMBER:.*]] = arith.bitcast %[[CLAMPED]] : i32 to f32
// CHECK:         %[[LARGE:.*]] = arith.mulf %[[POWER_F32]], %[[FACTOR]] fastmath<contract> : f32
// CHECK:         %[[SUM:.*]] = arith.addf %[[LARGE]], %[[NUMBER]] fastmath<contract> : f32
// CHECK-DAG:     %[[COUNT:.*]] = arith.bitcast %[[SUM]] : f32 to i32
// CHECK-DAG:     %[[OF_EXPONENT:.*]] = arith.shrui %[[POWER]], %[[SHIFT]] : i32
// CHECK:         %[[ROUNDED:.*]] = arith.addi %[[COUNT]], %[[OF_EXPONENT]] : i32
// CHECK:         %[[TOP:.*]] = arith.shrui %[[ENCODED]], %[[SIGN_SHIFT]] : i32
// CHECK:         %[[SIGN:.*]] = arith.andi %[[TOP]], %[[SIGN_BIT]] : i32
// CHECK:         %[[IS_NAN:.*]] = arith.cmpi ugt, %[[MAGNITUDE]], %[[INFINITY]] : i32
// CHECK:         %[[SELECTED:.*]] = arith.select %[[IS_NAN]], %[[NAN]], %[[ROUNDED]] : i32
// CHECK:         %[[SIGNED:.*]] = arith.ori %[[SELECTED]], %[[SIGN]] : i32
// CHECK:         %[[NARROW:.*]] = arith.trunci %[[SIGNED]] : i32 to i8
// CHECK:         %[[RESULT:.*]] = arith.bitcast %[[NARROW]] : i8 to f8E4M3FN
// CHECK:         return %[[RESULT]] : f8E4M3FN
func.func @f32_to_e4m3(%x: f32) -> f8E4M3FN {
  %0 = arith.truncf %x : f32 to f8E4M3FN
  return %0 : f8E4M3FN
}

// -----

// CHECK-LABEL: func.func @f32_to_e5m2(
// CHECK-DAG:     %[[LARGEST:.*]] = arith.constant 1197473792 : i32
// CHECK-DAG:     %[[FACTOR:.*]] = arith.constant 0x4A00003C : f32
// CHECK-DAG:     %[[NAN:.*]] = arith.constant 126 : i32
// CHECK:         arith.minui %{{.*}}, %[[LARGEST]] : i32
// CHECK:         arith.mulf %{{.*}}, %[[FACTOR]] fastmath<contract> : f32
// CHECK:         arith.select %{{.*}}, %[[NAN]], %{{.*}} : i32
func.func @f32_to_e5m2(%x: f32) -> f8E5M2 {
  %0 = arith.truncf %x : f32 to f8E5M2
  return %0 : f8E5M2
}

// -----

// Rounds once: not to f32 first.

// CHECK-LABEL: func.func @f64_to_e4m3(
// CHECK-NOT:     arith.truncf
// CHECK:         %[[FACTOR:.*]] = arith.constant 0x{{[0-9A-F]*}} : f64
// CHECK-NOT:     arith.truncf
// CHECK:         arith.mulf %{{.*}}, %[[FACTOR]] fastmath<contract> : f64
// CHECK-NOT:     arith.truncf
// CHECK:         arith.trunci %{{.*}} : i64 to i8
func.func @f64_to_e4m3(%x: f64) -> f8E4M3FN {
  %0 = arith.truncf %x : f64 to f8E4M3FN
  return %0 : f8E4M3FN
}

// -----

// No conversion from f16, which may be a call on a CPU.

// CHECK-LABEL: func.func @f16_to_e4m3(
// CHECK-SAME:      %[[X:.*]]: f16)
// CHECK-DAG:     %[[REBIAS:.*]] = arith.constant 5.19229686E+33 : f32
// CHECK-DAG:     %[[INFINITY:.*]] = arith.constant 1199570944 : i32
// CHECK:         %[[ENCODED:.*]] = arith.bitcast %[[X]] : f16 to i16
// CHECK:         arith.extsi %[[ENCODED]] : i16 to i32
// CHECK:         arith.mulf %{{.*}}, %[[REBIAS]] : f32
// CHECK:         arith.cmpi ugt, %{{.*}}, %[[INFINITY]] : i32
func.func @f16_to_e4m3(%x: f16) -> f8E4M3FN {
  %0 = arith.truncf %x : f16 to f8E4M3FN
  return %0 : f8E4M3FN
}

// -----

// The exponents are the same: no arithmetic in floating point.

// CHECK-LABEL: func.func @f16_to_e5m2(
// CHECK:         arith.bitcast %{{.*}} : f16 to i16
// CHECK-NOT:     i32
// CHECK-NOT:     arith.addf
// CHECK:         arith.trunci %{{.*}} : i16 to i8
func.func @f16_to_e5m2(%x: f16) -> f8E5M2 {
  %0 = arith.truncf %x : f16 to f8E5M2
  return %0 : f8E5M2
}

// -----

// CHECK-LABEL: func.func @bf16_to_e4m3(
// CHECK-SAME:      %[[X:.*]]: bf16)
// CHECK:         %[[SHIFT:.*]] = arith.constant 16 : i32
// CHECK:         %[[ENCODED:.*]] = arith.bitcast %[[X]] : bf16 to i16
// CHECK:         %[[WIDE:.*]] = arith.extui %[[ENCODED]] : i16 to i32
// CHECK:         arith.shli %[[WIDE]], %[[SHIFT]] : i32
func.func @bf16_to_e4m3(%x: bf16) -> f8E4M3FN {
  %0 = arith.truncf %x : bf16 to f8E4M3FN
  return %0 : f8E4M3FN
}

// -----

// CHECK-LABEL: func.func @vector_of_any_rank(
// CHECK-SAME:      %[[X:.*]]: vector<2x8xf32>)
// CHECK:         arith.bitcast %[[X]] : vector<2x8xf32> to vector<2x8xi32>
// CHECK:         %[[RESULT:.*]] = arith.bitcast %{{.*}} : vector<2x8xi8> to vector<2x8xf8E4M3FN>
// CHECK:         return %[[RESULT]]
func.func @vector_of_any_rank(%x: vector<2x8xf32>) -> vector<2x8xf8E4M3FN> {
  %0 = arith.truncf %x : vector<2x8xf32> to vector<2x8xf8E4M3FN>
  return %0 : vector<2x8xf8E4M3FN>
}

// -----

// CHECK-LABEL: func.func @explicit_nearest_even(
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @explicit_nearest_even(%x: f32) -> f8E4M3FN {
  %0 = arith.truncf %x to_nearest_even : f32 to f8E4M3FN
  return %0 : f8E4M3FN
}

// -----

// CHECK-LABEL: func.func @other_truncations_are_left(
// CHECK-SAME:      %[[X:.*]]: f32, %[[Y:.*]]: tensor<4xf32>, %[[Z:.*]]: f128)
// CHECK-NEXT:    arith.truncf %[[X]] toward_zero : f32 to f8E4M3FN
// CHECK-NEXT:    arith.truncf %[[X]] : f32 to f8E5M2FNUZ
// CHECK-NEXT:    arith.truncf %[[X]] : f32 to f16
// CHECK-NEXT:    arith.truncf %[[Y]] : tensor<4xf32> to tensor<4xf8E4M3FN>
// CHECK-NEXT:    arith.truncf %[[Z]] : f128 to f8E5M2
func.func @other_truncations_are_left(%x: f32, %y: tensor<4xf32>, %z: f128)
    -> (f8E4M3FN, f8E5M2FNUZ, f16, tensor<4xf8E4M3FN>, f8E5M2) {
  %0 = arith.truncf %x toward_zero : f32 to f8E4M3FN
  %1 = arith.truncf %x : f32 to f8E5M2FNUZ
  %2 = arith.truncf %x : f32 to f16
  %3 = arith.truncf %y : tensor<4xf32> to tensor<4xf8E4M3FN>
  %4 = arith.truncf %z : f128 to f8E5M2
  return %0, %1, %2, %3, %4
      : f8E4M3FN, f8E5M2FNUZ, f16, tensor<4xf8E4M3FN>, f8E5M2
}

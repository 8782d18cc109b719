// RUN: kvcache-opt %s --kvcache-narrow-floats --split-input-file | FileCheck %s

// f8E8M0FNU is the exponent of an f32. Code 0 is 2^-127, a subnormal f32.

// CHECK-LABEL: func.func @e8m0_to_f32(
// CHECK-SAME:      %[[X:.*]]: f8E8M0FNU)
// CHECK-DAG:     %[[SHIFT:.*]] = arith.constant 23 : i32
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant 4194304 : i32
// CHECK-DAG:     %[[CODE:.*]] = arith.constant -1 : i8
// CHECK-DAG:     %[[NAN:.*]] = arith.constant 2143289344 : i32
// CHECK:         %[[ENCODED:.*]] = arith.bitcast %[[X]] : f8E8M0FNU to i8
// CHECK:         %[[WIDE:.*]] = arith.extui %[[ENCODED]] : i8 to i32
// CHECK:         %[[SHIFTED:.*]] = arith.shli %[[WIDE]], %[[SHIFT]]
// CHECK:         %[[NUMBER:.*]] = arith.maxui %[[SHIFTED]], %[[LEAST]]
// CHECK:         %[[IS_NAN:.*]] = arith.cmpi eq, %[[ENCODED]], %[[CODE]]
// CHECK:         %[[BITS:.*]] = arith.select %[[IS_NAN]], %[[NAN]], %[[NUMBER]]
// CHECK:         %[[RESULT:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK:         return %[[RESULT]]
func.func @e8m0_to_f32(%x: f8E8M0FNU) -> f32 {
  %0 = arith.extf %x : f8E8M0FNU to f32
  return %0 : f32
}

// -----

// CHECK-LABEL: func.func @e8m0_to_f16(
// CHECK:         %[[SINGLE:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK:         %[[RESULT:.*]] = arith.truncf %[[SINGLE]] : f32 to f16
// CHECK:         return %[[RESULT]]
func.func @e8m0_to_f16(%x: f8E8M0FNU) -> f16 {
  %0 = arith.extf %x : f8E8M0FNU to f16
  return %0 : f16
}

// -----

// The mantissa carries into the exponent, from 2^-127 on.

// CHECK-LABEL: func.func @upward(
// CHECK-SAME:      %[[X:.*]]: f32)
// CHECK-DAG:     %[[LARGEST:.*]] = arith.constant 2130706432 : i32
// CHECK-DAG:     %[[CARRY:.*]] = arith.constant 8388607 : i32
// CHECK-DAG:     %[[SHIFT:.*]] = arith.constant 23 : i32
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant 4194305 : i32
// CHECK-DAG:     %[[NAN:.*]] = arith.constant 255 : i32
// CHECK-DAG:     %[[ZERO_F32:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK:         %[[CLAMPED:.*]] = arith.minsi %[[BITS]], %[[LARGEST]]
// CHECK:         %[[CARRIED:.*]] = arith.addi %[[CLAMPED]], %[[CARRY]]
// CHECK:         %[[EXPONENT:.*]] = arith.shrui %[[CARRIED]], %[[SHIFT]]
// CHECK:         %[[IS_LEAST:.*]] = arith.cmpi slt, %[[BITS]], %[[LEAST]]
// CHECK:         %[[NUMBER:.*]] = arith.select %[[IS_LEAST]], %{{.*}}, %[[EXPONENT]]
// CHECK:         %[[IS_NAN:.*]] = arith.cmpf ult, %[[X]], %[[ZERO_F32]]
// CHECK:         %[[CODE:.*]] = arith.select %[[IS_NAN]], %[[NAN]], %[[NUMBER]]
// CHECK:         arith.trunci %[[CODE]] : i32 to i8
func.func @upward(%x: f32) -> f8E8M0FNU {
  %0 = arith.truncf %x upward : f32 to f8E8M0FNU
  return %0 : f8E8M0FNU
}

// -----

// CHECK-LABEL: func.func @nearest(
// CHECK-DAG:     %[[CARRY:.*]] = arith.constant 4194304 : i32
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant 6291456 : i32
// CHECK:         arith.addi %{{.*}}, %[[CARRY]]
// CHECK:         arith.cmpi slt, %{{.*}}, %[[LEAST]]
func.func @nearest(%x: f32) -> f8E8M0FNU {
  %0 = arith.truncf %x : f32 to f8E8M0FNU
  return %0 : f8E8M0FNU
}

// -----

// CHECK-LABEL: func.func @toward_zero(
// CHECK:         %[[LEAST:.*]] = arith.constant 8388608 : i32
// CHECK-NOT:     arith.addi
// CHECK:         arith.cmpi slt, %{{.*}}, %[[LEAST]]
func.func @toward_zero(%x: f32) -> f8E8M0FNU {
  %0 = arith.truncf %x toward_zero : f32 to f8E8M0FNU
  return %0 : f8E8M0FNU
}

// RUN: kvcache-opt %s --kvcache-workaround-e8m0-folding | FileCheck %s
// RUN: kvcache-opt %s --kvcache-workaround-e8m0-folding --canonicalize | FileCheck %s --check-prefix=FOLDED

// MLIR 22 would fold the first to infinity and the second to a power without a
// sign.

// CHECK-LABEL:  func.func @extended_nan_is_opaque(
// CHECK:          %[[NAN:.*]] = arith.constant 0xFF : f8E8M0FNU
// CHECK:          %[[BITS:.*]] = arith.bitcast %[[NAN]] : f8E8M0FNU to i8
// CHECK:          %[[OPAQUE:.*]] = builtin.unrealized_conversion_cast %[[BITS]] : i8 to f8E8M0FNU
// CHECK:          arith.extf %[[OPAQUE]] : f8E8M0FNU to f32
// FOLDED-LABEL: func.func @extended_nan_is_opaque(
// FOLDED:         arith.extf
func.func @extended_nan_is_opaque() -> f32 {
  %nan = arith.constant 0xFF : f8E8M0FNU
  %x = arith.extf %nan : f8E8M0FNU to f32
  return %x : f32
}

// A negative number has the code of NaN.

// CHECK-LABEL:  func.func @truncation_is_integer_arithmetic(
// CHECK-NOT:      arith.truncf
// FOLDED-LABEL: func.func @truncation_is_integer_arithmetic(
// FOLDED:         %[[NAN:.*]] = arith.constant 0xFF : f8E8M0FNU
// FOLDED:         return %[[NAN]]
func.func @truncation_is_integer_arithmetic() -> f8E8M0FNU {
  %x = arith.constant -2.0 : f32
  %p = arith.truncf %x : f32 to f8E8M0FNU
  return %p : f8E8M0FNU
}

// CHECK-LABEL:  func.func @other_types_are_unchanged(
// CHECK-NEXT:     arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK-NEXT:     arith.truncf %{{.*}} : f32 to f8E5M2
func.func @other_types_are_unchanged(%x: f8E4M3FN) -> f8E5M2 {
  %0 = arith.extf %x : f8E4M3FN to f32
  %1 = arith.truncf %0 : f32 to f8E5M2
  return %1 : f8E5M2
}

// RUN: kvcache-opt %s --kvcache-lower-math --split-input-file | FileCheck %s

// A function, an intrinsic of LLVM, and what only the math library has.

// CHECK-LABEL: func.func @each_kind(
// CHECK:         call @__mlir_math_ipowi_i32
// CHECK:         llvm.intr.exp
// CHECK:         call @erff
// CHECK-NOT:     math.
func.func @each_kind(%i: i32, %x: f32) -> (i32, f32, f32) {
  %power = math.ipowi %i, %i : i32
  %e = math.exp %x : f32
  %erf = math.erf %x : f32
  return %power, %e, %erf : i32, f32, f32
}

// -----

// CHECK-LABEL: func.func @none(
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    return
func.func @none(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}

// RUN: mlir-opt %s --canonicalize | FileCheck %s

// [mlir][arith] Folds of f8E8M0FNU give an infinity and a negative number
//
// The format has a NaN, no infinity and no sign. mlir-opt 22.1 folds the
// extension of the NaN to infinity (mended by llvm-project#214919), and the
// truncation of -2.0 to a constant that the format has no bits for. Expected: a
// NaN in f32, and a NaN or no fold.

// CHECK-LABEL: @fold
// CHECK-DAG: arith.constant 0x7F800000 : f32
// CHECK-DAG: arith.constant -2.000000e+00 : f8E8M0FNU
func.func @fold() -> (f32, f8E8M0FNU) {
  %nan = arith.constant 0xFF : f8E8M0FNU
  %wide = arith.extf %nan : f8E8M0FNU to f32
  %negative = arith.constant -2.0 : f32
  %narrow = arith.truncf %negative : f32 to f8E8M0FNU
  return %wide, %narrow : f32, f8E8M0FNU
}

// RUN: mlir-opt %s --arith-int-range-narrowing=int-bitwidths-supported=32 | FileCheck %s

// [mlir][arith] --arith-int-range-narrowing divides large unsigned numbers as
// signed ones
//
// %number is at most 3,000,000,000, which fits 32 bits only without a sign.
// mlir-opt 22.1 narrows the signed division to i32 nevertheless: 3,000,000,000 / 2
// becomes -647,483,648. Expected: no narrowing, or a division without a sign.

// CHECK-LABEL: @half
// CHECK: arith.index_castui %{{.*}} : index to i32
// CHECK: arith.divsi %{{.*}} : i32
// CHECK: arith.index_castui %{{.*}} : i32 to index
func.func @half(%any: index) -> index {
  %most = arith.constant 3000000000 : index
  %two = arith.constant 2 : index
  %number = arith.minui %any, %most : index
  %half = arith.divsi %number, %two : index
  return %half : index
}

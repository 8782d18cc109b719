// RUN: kvcache-opt %s --kvcache-emulate-tiles | FileCheck %s

// A tile is a vector of rows, also where loops carry it. A product is a loop over the rows of one operand and the pairs of
// each: the low halves first.

// CHECK-LABEL: func.func @multiply(
// CHECK-SAME:      %[[A:.*]]: memref<4x16x16xi32>, %[[B:.*]]: memref<4x16x16xf32>, %[[C:.*]]: memref<16x16xf32>)
// CHECK-COUNT-3: memref.alloca() : memref<16x16x{{i32|f32}}>
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16x16xf32>
// CHECK:         scf.for {{.*}} iter_args({{.*}} = %[[ZERO]]) -> (vector<16x16xf32>)
// CHECK-COUNT-16:  vector.load %[[A]]{{.*}}, vector<16xi32>
// CHECK-COUNT-16:  vector.load %[[B]]{{.*}}, vector<16xf32>
// CHECK:           scf.for %[[ROW:.*]] = %c0{{.*}} to %c16
// CHECK:             scf.for %[[K:.*]] = %c0{{.*}} to %c16{{.*}} -> (vector<16xf32>)
// CHECK:               memref.load %{{.*}}[%[[ROW]], %[[K]]] : memref<16x16xi32>
// CHECK:               arith.shli
// CHECK:               vector.fma
// CHECK:               arith.andi
// CHECK:               vector.fma
// CHECK-COUNT-16: vector.store %{{.*}}, %[[C]]
// CHECK-NOT:     amx
func.func @multiply(%a: memref<4x16x16xi32>, %b: memref<4x16x16xf32>, %c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = amx.tile_zero : !amx.tile<16x16xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> !amx.tile<16x16xf32> {
    %lhs = amx.tile_load %a[%i, %c0, %c0] : memref<4x16x16xi32> into !amx.tile<16x32xbf16>
    %rhs = amx.tile_load %b[%i, %c0, %c0] : memref<4x16x16xf32> into !amx.tile<16x32xbf16>
    %next = amx.tile_mulf %lhs, %rhs, %acc : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    scf.yield %next : !amx.tile<16x16xf32>
  }
  amx.tile_store %c[%c0, %c0], %sum : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

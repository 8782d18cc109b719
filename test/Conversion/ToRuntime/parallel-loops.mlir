// RUN: kvcache-opt %s --kvcache-lower-parallel-loops=threads=4 --split-input-file | FileCheck %s
// RUN: kvcache-opt %s --kvcache-lower-parallel-loops --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: not kvcache-opt %s --kvcache-lower-parallel-loops=threads=0 --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE

// ONE-NOT: kvcacheParallelFor
// NONE: error: expects 'threads' to be positive, got 0

// CHECK-LABEL: func.func @two_dimensions(
// CHECK-SAME:      %[[M:.*]]: memref<?x?xf32>, %[[F:.*]]: f32, %[[ENDS0:.*]]: index, %[[ENDS1:.*]]: index)
// CHECK:         %[[FIELDS:.*]] = llvm.alloca %{{.*}} x !llvm.struct<({{.*}})>
// CHECK:         llvm.store %{{.*}}, %[[FIELDS]]
// CHECK:         %[[BODY:.*]] = constant @two_dimensions_loop : (!llvm.ptr, index, index) -> ()
// CHECK:         %[[POINTER:.*]] = builtin.unrealized_conversion_cast %[[BODY]]
// CHECK:         llvm.call @kvcacheParallelFor(%{{.*}}, %{{.*}}, %[[POINTER]], %[[FIELDS]])
// CHECK-NOT:     scf.parallel
func.func @two_dimensions(%m: memref<?x?xf32>, %f: f32, %end0: index, %end1: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %own = memref.alloca() : memref<4xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%end0, %end1) step (%c2, %c2) {
    memref.store %f, %own[%c0] : memref<4xf32>
    %x = memref.load %own[%c0] : memref<4xf32>
    memref.store %x, %m[%i, %j] : memref<?x?xf32>
  }
  return
}
// CHECK-LABEL: func.func private @two_dimensions_loop(
// CHECK-SAME:      %[[SHARED:.*]]: !llvm.ptr, %[[BEGIN:.*]]: index, %[[END:.*]]: index) attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK:         llvm.load %[[SHARED]]
// CHECK:         memref.alloca() : memref<4xf32>
// CHECK:         scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]]
// CHECK:           arith.remui %[[I]]
// CHECK:           arith.divui %[[I]]
// CHECK:           memref.store

// -----

// Results, memory of the heap, other loops and kernels stay.

// CHECK-LABEL: func.func @stay(
// CHECK-COUNT-3: scf.parallel
// CHECK-NOT:     kvcacheParallelFor
func.func @stay(%n: index, %m: memref<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%c0) -> index {
    scf.reduce(%i : index) {
    ^bb0(%a: index, %b: index):
      %c = arith.addi %a, %b : index
      scf.reduce.return %c : index
    }
  }
  %tile = memref.alloc() : memref<4xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %m[%i] : memref<?xf32>
    memref.store %x, %tile[%c0] : memref<4xf32>
    %y = memref.load %tile[%c0] : memref<4xf32>
    memref.store %y, %m[%i] : memref<?xf32>
  }
  memref.dealloc %tile : memref<4xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    gpu.printf "%d", %i : index
  }
  return %sum : index
}

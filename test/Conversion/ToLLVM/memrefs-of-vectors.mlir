// RUN: kvcache-opt %s --kvcache-expand-for-llvm | FileCheck %s

// A load from a memref of vectors is one of an element: it has no rows.

// CHECK-LABEL: func.func @elements(
// CHECK:         vector.load %{{.*}} : memref<?x?xvector<2x4xf32>>, vector<2x4xf32>
// CHECK:         vector.store %{{.*}} : memref<?x?xvector<2x4xf32>>, vector<2x4xf32>
func.func @elements(%a: memref<?x?xvector<2x4xf32>>, %i: index, %j: index) {
  %x = vector.load %a[%i, %j] : memref<?x?xvector<2x4xf32>>, vector<2x4xf32>
  vector.store %x, %a[%j, %i] : memref<?x?xvector<2x4xf32>>, vector<2x4xf32>
  return
}

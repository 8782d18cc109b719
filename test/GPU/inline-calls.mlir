// RUN: kvcache-opt %s --split-input-file --kvcache-inline-calls | FileCheck %s

// A device function goes into its kernel and away.

// CHECK-LABEL: gpu.module @called
// CHECK-NOT:     func.func
// CHECK:         gpu.func @kernel(%[[VALUE:.*]]: f32, %[[OUT:.*]]: memref<f32>)
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[VALUE]], %[[VALUE]]
// CHECK-NEXT:      memref.store %[[SUM]], %[[OUT]]
gpu.module @called {
  func.func private @twice(%value: f32) -> f32 {
    %sum = arith.addf %value, %value : f32
    return %sum : f32
  }
  gpu.func @kernel(%value: f32, %out: memref<f32>) kernel {
    %sum = func.call @twice(%value) : (f32) -> f32
    memref.store %sum, %out[] : memref<f32>
    gpu.return
  }
}

// -----

// A private function without calls goes away, too.

// CHECK-NOT:   @unused
// CHECK-LABEL: func.func @used
func.func private @unused() {
  return
}
func.func @used() {
  return
}

// -----

// Without calls and private functions, the module stays as it is.

// CHECK-LABEL: func.func @alone
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf
// CHECK-NEXT:    return %[[SUM]]
func.func @alone(%value: f32) -> f32 {
  %sum = arith.addf %value, %value : f32
  return %sum : f32
}

// RUN: kvcache-opt %s --kvcache-wrap-parallel-bodies | FileCheck %s

// Only the innermost loop gets a region, which upstream's conversion to
// launches takes for one op with side effects.

// CHECK-LABEL: func.func @innermost_loop_is_wrapped(
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK-NEXT:      scf.parallel (%[[J:.*]]) =
// CHECK-NEXT:        scf.execute_region {
// CHECK-NEXT:          memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// CHECK-NEXT:          scf.yield
// CHECK-NEXT:        }
func.func @innermost_loop_is_wrapped(%m: memref<4x4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c4) step (%c1) {
      memref.store %x, %m[%i, %j] : memref<4x4xf32>
    }
  }
  return
}

// A kernel that exists already is no loop that becomes one: nothing warns.

// CHECK-LABEL: func.func @loop_in_a_launch_is_wrapped(
// CHECK:         gpu.launch
// CHECK:           scf.parallel
// CHECK-NEXT:        scf.execute_region
func.func @loop_in_a_launch_is_wrapped(%m: memref<4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
             threads(%g, %h, %k) in (%l = %c1, %m0 = %c1, %n = %c1) {
    scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
      memref.store %x, %m[%i] : memref<4xf32>
    }
    gpu.terminator
  }
  return
}

// RUN: kvcache-opt %s --control-flow-sink --loop-invariant-code-motion --cse | FileCheck %s

// Threads that share a group converge in `quantize`: it stays where its author put
// it, used or not. Without `lanes` it may go anywhere.

// CHECK-LABEL: func.func @shared_groups_do_not_sink(
// CHECK:         kvcache.quantize %{{.*}} {lanes = 8
// CHECK:         scf.if
// CHECK-NOT:       kvcache.quantize
// CHECK:           memref.store
func.func @shared_groups_do_not_sink(%x: vector<2xf32>, %leads: i1, %out: memref<?xf32>, %i: index) {
  %w, %s = kvcache.quantize %x {lanes = 8} : vector<2xf32> -> vector<2xi8>, f32
  scf.if %leads {
    memref.store %s, %out[%i] : memref<?xf32>
  }
  return
}

// CHECK-LABEL: func.func @groups_of_one_thread_sink(
// CHECK-NOT:     kvcache.quantize
// CHECK:         scf.if
// CHECK:           kvcache.quantize
func.func @groups_of_one_thread_sink(%x: vector<2xf32>, %leads: i1, %out: memref<?xf32>, %i: index) {
  %w, %s = kvcache.quantize %x : vector<2xf32> -> vector<2xi8>, f32
  scf.if %leads {
    memref.store %s, %out[%i] : memref<?xf32>
  }
  return
}

// CHECK-LABEL: func.func @shared_groups_stay_in_loops(
// CHECK:         scf.for
// CHECK-COUNT-2:   kvcache.quantize %{{.*}} {lanes = 32
func.func @shared_groups_stay_in_loops(%x: vector<2xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %w0, %s0 = kvcache.quantize %x {lanes = 32} : vector<2xf32> -> vector<2xi8>, f32
    %w1, %s1 = kvcache.quantize %x {lanes = 32} : vector<2xf32> -> vector<2xi8>, f32
  }
  return
}
